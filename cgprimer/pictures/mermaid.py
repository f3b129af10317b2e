"""Diagrams as Mermaid flowcharts, which GitHub, GitLab and many editors draw inside Markdown.

Source: https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import json
import re

from cgprimer.pictures.diagram import Diagram
from cgprimer.pictures.lettering import wrap_expression
from cgprimer.pictures.theme import roles_in, theme

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
config:
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


def mermaid(diagram: Diagram, *, dark: bool = False) -> str:
    """A diagram as a Mermaid flowchart; put it into a fence called ``mermaid``.

    Vertices are called ``n0``, ``n1``, ... in the diagram's order, because a user's name may be a
    word of Mermaid's own. Notes become a box of their own.

    >>> from cgprimer.pictures.diagram import Edge, Node
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
        details = [line for text in node.detail for line in wrap_expression(text)]
        text = "<br/>".join((f"<b>{_escaped(node.label)}</b>", *map(_escaped, details)))
        lines.append(f'  {number[node.key]}{opening}"{text}"{closing}:::{node.role}')
    for edge in diagram.edges:
        arrow = "==>" if edge.emphasis else "-->"
        text = "<br/>".join(map(_escaped, edge.label.split("\n")))
        label = f'|"{text}"|' if text else ""
        lines.append(f"  {number[edge.tail]} {arrow}{label} {number[edge.head]}")
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
    if bold := ",".join(str(k) for k, edge in enumerate(diagram.edges) if edge.emphasis):
        lines.append(f"  linkStyle {bold} stroke:{look.path},stroke-width:5px")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Characters that Mermaid or the Markdown in its labels could take for markup, by number."""
    return re.sub(r"[^\w =.,()/\u0080-\U0010ffff]|_", lambda m: f"#{ord(m[0])};", text)
