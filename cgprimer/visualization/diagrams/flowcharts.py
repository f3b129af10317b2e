"""Diagrams in languages of programs that decide themselves where everything goes.

DOT is drawn by Graphviz, Mermaid by GitHub, GitLab and many editors inside of Markdown.

Sources: https://graphviz.org/doc/info/lang.html, https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import json
import re
from html import escape

from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.text_layout import wrap_lines
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    LABEL_SIZE,
    TITLE_SIZE,
    roles_in,
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
# The colours of what has no class; lines are broken here and nowhere else: only notes come near
# the width.
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
    """A diagram as DOT: ``dot -Tsvg graph.dot`` draws it, and other programs read it.

    Vertices are called by their keys. The title stands above, the notes below the picture.

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
    for node in diagram.nodes:
        style = look.roles[node.role]
        label = f'<font point-size="{LABEL_SIZE:g}"><b>{escape(node.label)}</b></font>'
        for line in wrap_lines(node.detail):
            label += f'<br/><font point-size="{DETAIL_SIZE:g}">{escape(line)}</font>'
        outline = look.path if node.emphasis else style.outline
        dashes = ', style="filled,dashed"' if node.dropped else ""
        width = style.line_width + (2.4 if node.emphasis else 0.0)
        lines.append(
            f"  {_quoted(node.key)} [label=<{label}>, {_SHAPES[style.shape]},"
            f' color="{outline}", fillcolor="{style.fill}", penwidth={width:g}{dashes}];'
        )
    for edge in diagram.edges:
        parts = [f"label={_quoted(edge.label)}"] if edge.label else []
        parts += ["dir=back"] if diagram.backward_arrows else []
        parts += ["style=dashed"] if edge.dropped else []
        if edge.emphasis:  # two parallel lines
            parts.append(f'color="{look.path}:{look.background}:{look.path}", penwidth=2.4')
        settings = f" [{', '.join(parts)}]" if parts else ""
        lines.append(f"  {_quoted(edge.tail)} -> {_quoted(edge.head)}{settings};")
    clusters = [
        line
        for number, part in enumerate(diagram.parts)
        for line in (
            f'  subgraph "cluster part {number}" {{ style=dashed; color="{look.edge}";'
            f" peripheries=1; labelloc=t; fontsize={DETAIL_SIZE:g}; label={_quoted(part.label)};",
            *(f"    {_quoted(node.key)};" for node in diagram.nodes if node.key in part.keys),
            "  }",
        )
    ]
    if diagram.notes:  # below all vertices: a graph has one label, so they are that of a cluster
        lines += [
            f'  subgraph "cluster notes" {{ peripheries=0; labelloc=b; fontsize={DETAIL_SIZE:g};',
            f"    label=< <br/>{'<br/>'.join(map(escape, diagram.notes))}>;",
            *(clusters or [f"    {_quoted(node.key)};" for node in diagram.nodes]),
            "  }",
        ]
    else:
        lines += clusters
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def mermaid(diagram: Diagram, *, dark: bool = False) -> str:
    """A diagram as a Mermaid flowchart; put it into a fence called ``mermaid``.

    Vertices are called ``n0``, ``n1``, ... in the diagram's order, because a user's name may be a
    word of Mermaid's own. Notes become a box of their own.

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
    number = {node.key: f"n{index}" for index, node in enumerate(diagram.nodes)}
    # Signs that look alike: of a title, Mermaid would show `&`, `<`, `>` as `&amp;` and so on.
    title = diagram.title.translate({ord("&"): "＆", ord("<"): "‹", ord(">"): "›"})
    lines = ["---", *([f"title: {json.dumps(title, ensure_ascii=False)}"] if title else [])]
    lines.append(_SETTINGS.format(edge=look.edge, ink=look.ink, ground=look.background))
    for node in diagram.nodes:
        opening, closing = _BRACKETS[look.roles[node.role].shape]
        text = "<br/>".join(
            (f"<b>{_escaped(node.label)}</b>", *map(_escaped, wrap_lines(node.detail)))
        )
        lines.append(f'  {number[node.key]}{opening}"{text}"{closing}:::{node.role}')
    for edge in diagram.edges:
        arrow = "==>" if edge.emphasis else "-.->" if edge.dropped else "-->"
        text = "<br/>".join(map(_escaped, edge.label.split("\n")))
        label = f'|"{text}"|' if text else ""
        ends = number[edge.tail], number[edge.head]
        first, last = ends[::-1] if diagram.backward_arrows else ends
        lines.append(f"  {first} {arrow}{label} {last}")
    for index, part in enumerate(diagram.parts):
        lines.append(f'  subgraph part{index}["{_escaped(part.label)}"]')
        lines += [f"    {number[node.key]}" for node in diagram.nodes if node.key in part.keys]
        lines.append("  end")
    if diagram.notes:
        lines.append(f'  notes["{"<br/>".join(map(_escaped, diagram.notes))}"]:::notes')
        lines.append(f"  classDef notes fill:{look.background},stroke:none,color:{look.ink}")
    for role in roles_in(diagram):
        style = look.roles[role]
        dotted = ",stroke-dasharray:2 3" if style.shape == "dotted" else ""
        lines.append(
            f"  classDef {role} fill:{style.fill},stroke:{style.outline},color:{look.ink},"
            f"stroke-width:{style.line_width:g}px{dotted}"
        )
    if names := ",".join(number[node.key] for node in diagram.nodes if node.emphasis):
        lines.append(f"  classDef path stroke:{look.path},stroke-width:4px")
        lines.append(f"  class {names} path")
    if names := ",".join(number[node.key] for node in diagram.nodes if node.dropped):
        lines.append(f"  classDef dropped fill:{look.background},stroke-dasharray:6 4")
        lines.append(f"  class {names} dropped")
    if bold := ",".join(str(k) for k, edge in enumerate(diagram.edges) if edge.emphasis):
        lines.append(f"  linkStyle {bold} stroke:{look.path},stroke-width:5px")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Characters that Mermaid or the Markdown in its labels could take for markup, by number."""
    return re.sub(r"[^\w =.,()/\u0080-\U0010ffff]|_", lambda m: f"#{ord(m[0])};", text)
