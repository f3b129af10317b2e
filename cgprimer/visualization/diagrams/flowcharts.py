"""Diagrams in the languages DOT and Mermaid, whose programs compute the layout.

DOT is drawn by Graphviz, Mermaid by GitHub, GitLab and many editors inside of Markdown.

Sources: https://graphviz.org/doc/info/lang.html, https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape

from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.text_layout import wrap_lines
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    LABEL_SIZE,
    TITLE_SIZE,
    Theme,
    list_roles,
    theme,
)

_SHAPES = {
    "rounded": 'shape=box, style="filled,rounded"',
    "rectangle": "shape=box, style=filled",
    "double": "shape=box, style=filled, peripheries=2",
    "hexagon": "shape=hexagon, style=filled",
    "dotted": 'shape=box, style="filled,dotted"',
    "circle": "shape=ellipse, style=filled",
}
_BRACKETS = {
    "rounded": ("(", ")"),
    "rectangle": ("[", "]"),
    "double": ("[[", "]]"),
    "hexagon": ("{{", "}}"),
    "dotted": ("[", "]"),
    "circle": ("([", "])"),
}
# Colors of elements without a class. Lines are broken by cgprimer: only notes are near the wrapping
# width of Mermaid.
_SETTINGS = """\
config:  # made by cgprimer
  theme: base
  themeVariables:
    lineColor: "{edge}"
    primaryTextColor: "{ink}"
    nodeTextColor: "{ink}"
    titleColor: "{ink}"
    edgeLabelBackground: "{ground}"
  flowchart:
    wrappingWidth: 900
---
flowchart LR"""


def dot(diagram: Diagram, *, dark: bool = False) -> str:
    """Convert a diagram to DOT, the language of Graphviz, which ``dot -Tsvg graph.dot`` draws.

    The names of vertices are their keys. The title is above the picture, the notes are below.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> a, b = Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",))
    >>> print(dot(Diagram((a, b), (Edge("xa", "xb", "ab"),))).splitlines()[-2])
      "xa" -> "xb" [label="ab"];
    """
    look = theme(dark)
    lines = [
        "digraph {  // made by cgprimer",
        f'  graph [rankdir=LR, bgcolor="{look.background}", fontname="DejaVu Sans",'
        f' fontsize={TITLE_SIZE:g}, fontcolor="{look.ink}", ranksep=0.8, nodesep=0.4,'
        " margin=0, pad=0.25];",
        f'  node [fontname="DejaVu Sans", fontcolor="{look.ink}", margin="0.2,0.12"];',
        f'  edge [fontname="DejaVu Sans", fontsize={DETAIL_SIZE:g}, fontcolor="{look.ink}",'
        f' color="{look.edge}", penwidth=1.8];',
    ]
    if diagram.title:
        lines.append(f"  label=<<b>{escape(diagram.title)}</b><br/> >; labelloc=t;")
    lines += [_emit_dot_node(node, look) for node in diagram.nodes]
    lines += [_emit_dot_edge(edge, diagram.backward_arrows, look) for edge in diagram.edges]
    clusters = [
        line
        for number, part in enumerate(diagram.parts)
        for line in (
            f'  subgraph "cluster part {number}" {{ style=dashed; color="{look.edge}";'
            f" peripheries=1; labelloc=t; fontsize={DETAIL_SIZE:g};"
            f" label={_quote_dot(part.label)};",
            *(f"    {_quote_dot(node.key)};" for node in diagram.nodes if node.key in part.keys),
            "  }",
        )
    ]
    if diagram.notes:  # a graph has only one label, so the notes are the label of a cluster
        lines += [
            f'  subgraph "cluster notes" {{ peripheries=0; labelloc=b; fontsize={DETAIL_SIZE:g};',
            f"    label=< <br/>{'<br/>'.join(map(escape, diagram.notes))}>;",
            *(clusters or [f"    {_quote_dot(node.key)};" for node in diagram.nodes]),
            "  }",
        ]
    else:
        lines += clusters
    return "\n".join([*lines, "}"]) + "\n"


def _emit_dot_node(node: Node, look: Theme) -> str:
    """Return the DOT statement that declares a vertex."""
    style = look.roles[node.role]
    label = f'<font point-size="{LABEL_SIZE:g}"><b>{escape(node.label)}</b></font>'
    for line in wrap_lines(node.detail):
        label += f'<br/><font point-size="{DETAIL_SIZE:g}">{escape(line)}</font>'
    outline = look.path if node.emphasis else style.outline
    dashes = ', style="filled,dashed"' if node.dropped else ""
    width = style.line_width + (2.4 if node.emphasis else 0.0)
    return (
        f"  {_quote_dot(node.key)} [label=<{label}>, {_SHAPES[style.shape]},"
        f' color="{outline}", fillcolor="{style.fill}", penwidth={width:g}{dashes}];'
    )


def _emit_dot_edge(edge: Edge, backward: bool, look: Theme) -> str:
    """Return the DOT statement that declares an edge."""
    attributes = [f"label={_quote_dot(edge.label)}"] if edge.label else []
    attributes += ["dir=back"] if backward else []
    attributes += ["style=dashed"] if edge.dropped else []
    if edge.emphasis:  # two parallel lines
        attributes.append(f'color="{look.path}:{look.background}:{look.path}", penwidth=2.4')
    settings = f" [{', '.join(attributes)}]" if attributes else ""
    return f"  {_quote_dot(edge.tail)} -> {_quote_dot(edge.head)}{settings};"


def _quote_dot(text: str) -> str:
    """Quote a string for DOT, with escaped quotes and line breaks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def mermaid(diagram: Diagram, *, dark: bool = False) -> str:
    """Convert a diagram to a Mermaid flowchart for a Markdown code block ``mermaid``.

    The names of vertices are ``n0``, ``n1``, ..., because user names can be keywords of Mermaid.
    Notes are in a separate box.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> a, b = Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",))
    >>> text = mermaid(Diagram((a, b), (Edge("xa", "xb", "ab"),)))
    >>> print(text[text.index("flowchart LR") : text.index("  classDef")].rstrip())
    flowchart LR
      n0("<b>xa</b>"):::input
      n1[["<b>xb</b><br/>ab#42;xa"]]:::output
      n0 -->|"ab"| n1
    """
    look = theme(dark)
    identifiers = {node.key: f"n{index}" for index, node in enumerate(diagram.nodes)}
    # Similar characters: in a title, Mermaid would show `&`, `<`, `>` as `&amp;` and so on.
    title = diagram.title.translate({ord("&"): "＆", ord("<"): "‹", ord(">"): "›"})
    lines = ["---", *([f"title: {json.dumps(title, ensure_ascii=False)}"] if title else [])]
    lines.append(_SETTINGS.format(edge=look.edge, ink=look.ink, ground=look.background))
    for node in diagram.nodes:
        opening, closing = _BRACKETS[look.roles[node.role].shape]
        text = "<br/>".join(
            (
                f"<b>{_escape_mermaid(node.label)}</b>",
                *map(_escape_mermaid, wrap_lines(node.detail)),
            )
        )
        lines.append(f'  {identifiers[node.key]}{opening}"{text}"{closing}:::{node.role}')
    for edge in diagram.edges:
        arrow = "==>" if edge.emphasis else "-.->" if edge.dropped else "-->"
        text = "<br/>".join(map(_escape_mermaid, edge.label.split("\n")))
        label = f'|"{text}"|' if text else ""
        ends = identifiers[edge.tail], identifiers[edge.head]
        first, last = ends[::-1] if diagram.backward_arrows else ends
        lines.append(f"  {first} {arrow}{label} {last}")
    for index, part in enumerate(diagram.parts):
        lines.append(f'  subgraph part{index}["{_escape_mermaid(part.label)}"]')
        lines += [f"    {identifiers[n.key]}" for n in diagram.nodes if n.key in part.keys]
        lines.append("  end")
    if diagram.notes:
        lines.append(f'  notes["{"<br/>".join(map(_escape_mermaid, diagram.notes))}"]:::notes')
        lines.append(f"  classDef notes fill:{look.background},stroke:none,color:{look.ink}")
    return "\n".join([*lines, *_emit_mermaid_styles(diagram, identifiers, look)]) + "\n"


def _emit_mermaid_styles(
    diagram: Diagram, identifiers: Mapping[str, str], look: Theme
) -> list[str]:
    """Return the Mermaid statements that style roles, the highlighted path and dropped vertices."""
    lines = []
    for role in list_roles(diagram):
        style = look.roles[role]
        dotted = ",stroke-dasharray:2 3" if style.shape == "dotted" else ""
        lines.append(
            f"  classDef {role} fill:{style.fill},stroke:{style.outline},color:{look.ink},"
            f"stroke-width:{style.line_width:g}px{dotted}"
        )
    if names := ",".join(identifiers[node.key] for node in diagram.nodes if node.emphasis):
        lines.append(f"  classDef path stroke:{look.path},stroke-width:4px")
        lines.append(f"  class {names} path")
    if names := ",".join(identifiers[node.key] for node in diagram.nodes if node.dropped):
        lines.append(f"  classDef dropped fill:{look.background},stroke-dasharray:6 4")
        lines.append(f"  class {names} dropped")
    if bold := ",".join(str(k) for k, edge in enumerate(diagram.edges) if edge.emphasis):
        lines.append(f"  linkStyle {bold} stroke:{look.path},stroke-width:5px")
    return lines


def _escape_mermaid(text: str) -> str:
    """Replace characters that are markup in Mermaid or Markdown by their character codes."""
    return re.sub(r"[^\w =.,()/\u0080-\U0010ffff]|_", lambda m: f"#{ord(m[0])};", text)
