"""Diagrams as Mermaid flowcharts, which GitHub, GitLab and many editors draw inside Markdown.

Source: https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import json
import re

from cgprimer.pictures.diagram import Diagram, Edge, Role
from cgprimer.pictures.lettering import wrap_expression
from cgprimer.pictures.theme import Theme, roles_in, theme

_WIDEST = 900  # pixels of a line; only notes come near it
_BRACKETS = {
    "rounded": ("(", ")"),
    "rectangle": ("[", "]"),
    "double": ("[[", "]]"),
    "hexagon": ("{{", "}}"),
    "dotted": ("[", "]"),
    "circle": ("([", "])"),
}


def mermaid(diagram: Diagram, *, dark: bool = False) -> str:
    """A diagram as a Mermaid flowchart; put it into a fence called ``mermaid``.

    Vertices are called ``n0``, ``n1``, ... in the diagram's order, because a user's name may be a
    word of Mermaid's own. Notes become a box of their own.

    >>> from cgprimer.pictures.diagram import Node
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
    lines = [*_settings(diagram, look), "flowchart LR"]
    for node in diagram.nodes:
        opening, closing = _BRACKETS[look.roles[node.role].shape]
        details = [line for text in node.detail for line in wrap_expression(text)]
        text = "<br/>".join((f"<b>{_escaped(node.label)}</b>", *map(_escaped, details)))
        lines.append(f'  {number[node.key]}{opening}"{text}"{closing}:::{node.role}')
    lines += [_arrow(edge, number) for edge in diagram.edges]
    if diagram.notes:
        lines.append(f'  notes["{"<br/>".join(map(_escaped, diagram.notes))}"]:::notes')
        lines.append(f"  classDef notes fill:{look.background},stroke:none,color:{look.ink}")
    lines += [_class(role, look) for role in roles_in(diagram)]
    marked = [node for node in diagram.nodes if node.emphasis]
    if marked:
        names = ",".join(number[node.key] for node in marked)
        lines.append(f"  classDef path stroke:{look.path},stroke-width:4px")
        lines.append(f"  class {names} path")
    bold = [str(index) for index, edge in enumerate(diagram.edges) if edge.emphasis]
    if bold:
        lines.append(f"  linkStyle {','.join(bold)} stroke:{look.path},stroke-width:5px")
    return "\n".join(lines) + "\n"


def _settings(diagram: Diagram, look: Theme) -> list[str]:
    """The title and the colours of what has no class; lines are broken here and nowhere else."""
    lines = ["---"]
    if diagram.title:
        lines.append(f"title: {json.dumps(_plain(diagram.title), ensure_ascii=False)}")
    return [
        *lines,
        "config:",
        "  theme: base",
        "  themeVariables:",
        f'    lineColor: "{look.edge}"',
        f'    primaryTextColor: "{look.ink}"',
        f'    nodeTextColor: "{look.ink}"',
        f'    titleColor: "{look.ink}"',
        f'    edgeLabelBackground: "{look.background}"',
        "  flowchart:",
        f"    wrappingWidth: {_WIDEST}",
        "---",
    ]


def _plain(title: str) -> str:
    """A title with signs that look alike: Mermaid would show `&`, `<`, `>` as `&amp;` and so on."""
    return title.translate({ord("&"): "＆", ord("<"): "‹", ord(">"): "›"})


def _arrow(edge: Edge, number: dict[str, str]) -> str:
    arrow = "==>" if edge.emphasis else "-->"
    text = "<br/>".join(map(_escaped, edge.label.split("\n")))
    label = f'|"{text}"|' if edge.label else ""
    return f"  {number[edge.tail]} {arrow}{label} {number[edge.head]}"


def _class(role: Role, look: Theme) -> str:
    style = look.roles[role]
    dotted = ",stroke-dasharray:2 3" if style.shape == "dotted" else ""
    return (
        f"  classDef {role} fill:{style.fill},stroke:{style.outline},color:{look.ink},"
        f"stroke-width:{style.line_width:g}px{dotted}"
    )


def _escaped(text: str) -> str:
    """Characters that Mermaid or the Markdown in its labels could take for markup, by number."""
    return re.sub(r"[^\w =.,()/\u0080-\U0010ffff]|_", lambda m: f"#{ord(m[0])};", text)
