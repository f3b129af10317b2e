"""Diagrams as Mermaid flowcharts, which GitHub, GitLab and many editors draw inside Markdown.

Source: https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import json
import re

from cgprimer.drawing.diagram import Diagram, Edge, Role
from cgprimer.drawing.theme import Theme, theme

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

    >>> from cgprimer.drawing.diagram import Node
    >>> a, b = Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",))
    >>> print("\\n".join(mermaid(Diagram((a, b), (Edge("xa", "xb", "ab"),))).splitlines()[:4]))
    flowchart LR
      n0("<b>xa</b>"):::input
      n1[["<b>xb</b><br/>ab#42;xa"]]:::output
      n0 -->|"ab"| n1
    """
    look = theme(dark)
    number = {node.key: f"n{index}" for index, node in enumerate(diagram.nodes)}
    lines = ["---", f"title: {json.dumps(diagram.title)}", "---"] if diagram.title else []
    lines.append("flowchart LR")
    for node in diagram.nodes:
        opening, closing = _BRACKETS[look.roles[node.role].shape]
        text = "<br/>".join((f"<b>{_escaped(node.label)}</b>", *map(_escaped, node.detail)))
        lines.append(f'  {number[node.key]}{opening}"{text}"{closing}:::{node.role}')
    lines += [_arrow(edge, number) for edge in diagram.edges]
    if diagram.notes:
        lines.append(f'  notes["{"<br/>".join(map(_escaped, diagram.notes))}"]:::notes')
        lines.append(f"  classDef notes fill:none,stroke:none,color:{look.ink}")
    present = {node.role for node in diagram.nodes}
    lines += [_class(role, look) for role in look.roles if role in present]
    marked = [node for node in diagram.nodes if node.emphasis]
    if marked:
        names = ",".join(number[node.key] for node in marked)
        lines.append(f"  classDef path stroke:{look.path},stroke-width:4px")
        lines.append(f"  class {names} path")
    bold = [str(index) for index, edge in enumerate(diagram.edges) if edge.emphasis]
    if bold:
        lines.append(f"  linkStyle {','.join(bold)} stroke:{look.path},stroke-width:5px")
    return "\n".join(lines) + "\n"


def _arrow(edge: Edge, number: dict[str, str]) -> str:
    arrow = "==>" if edge.emphasis else "-->"
    text = "<br/>".join(map(_escaped, edge.label.split("\n")))
    label = f'|"{text}"|' if edge.label else ""
    return f"  {number[edge.tail]} {arrow}{label} {number[edge.head]}"


def _class(role: Role, look: Theme) -> str:
    style = look.roles[role]
    fill = look.background if style.shape == "dotted" else style.fill
    dotted = ",stroke-dasharray:2 3" if style.shape == "dotted" else ""
    return (
        f"  classDef {role} fill:{fill},stroke:{style.outline},color:{look.ink},"
        f"stroke-width:{style.line_width:g}px{dotted}"
    )


def _escaped(text: str) -> str:
    """Characters that Mermaid or the Markdown in its labels could take for markup, by number."""
    return re.sub(r"[^\w =.,()/\u0080-\U0010ffff]|_", lambda m: f"#{ord(m[0])};", text)
