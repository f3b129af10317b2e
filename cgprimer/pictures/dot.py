"""Diagrams as DOT, the language of Graphviz, which then decides where everything goes.

Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

from html import escape

from cgprimer.pictures.diagram import Diagram, Edge, Node
from cgprimer.pictures.lettering import wrap_expression
from cgprimer.pictures.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    LABEL_SIZE,
    TITLE_SIZE,
    Theme,
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


def dot(diagram: Diagram, *, dark: bool = False) -> str:
    """A diagram as DOT: ``dot -Tsvg graph.dot`` draws it, and other programs read it.

    Vertices are called by their keys. The title stands above, the notes below the picture.

    >>> a, b = Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",))
    >>> print(dot(Diagram((a, b), (Edge("xa", "xb", "ab"),))).splitlines()[-2])
      "xa" -> "xb" [label="ab"];
    """
    look = theme(dark)
    lines = [
        "digraph {",
        f'  graph [rankdir=LR, bgcolor="{look.background}", fontname="DejaVu Sans",'
        f' fontsize={TITLE_SIZE:g}, fontcolor="{look.ink}", ranksep=0.8, nodesep=0.4,'
        " margin=0, pad=0.25];",
        f'  node [fontname="DejaVu Sans", fontcolor="{look.ink}", margin="0.2,0.12"];',
        f'  edge [fontname="DejaVu Sans", fontsize={EDGE_LABEL_SIZE:g}, fontcolor="{look.ink}",'
        f' color="{look.edge}", penwidth=1.8];',
    ]
    if diagram.title:
        lines.append(f"  label=<<b>{escape(diagram.title)}</b><br/> >; labelloc=t;")
    lines += [_vertex(node, look) for node in diagram.nodes]
    lines += [_arrow(edge, look) for edge in diagram.edges]
    if diagram.notes:  # below all vertices: a graph has one label, so they are that of a cluster
        lines += [
            f'  subgraph "cluster notes" {{ peripheries=0; labelloc=b; fontsize={DETAIL_SIZE:g};',
            f"    label=< <br/>{'<br/>'.join(map(escape, diagram.notes))}>;",
            *(f"    {_quoted(node.key)};" for node in diagram.nodes),
            "  }",
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _vertex(node: Node, look: Theme) -> str:
    style = look.roles[node.role]
    details = [line for text in node.detail for line in wrap_expression(text)]
    label = f'<font point-size="{LABEL_SIZE:g}"><b>{escape(node.label)}</b></font>'
    label += "".join(
        f'<br/><font point-size="{DETAIL_SIZE:g}">{escape(line)}</font>' for line in details
    )
    outline = look.path if node.emphasis else style.outline
    width = style.line_width + (2.4 if node.emphasis else 0.0)
    return (
        f"  {_quoted(node.key)} [label=<{label}>, {_SHAPES[style.shape]},"
        f' color="{outline}", fillcolor="{style.fill}", penwidth={width:g}];'
    )


def _arrow(edge: Edge, look: Theme) -> str:
    parts = [f"label={_quoted(edge.label)}"] if edge.label else []
    if edge.emphasis:  # two parallel lines
        parts.append(f'color="{look.path}:{look.background}:{look.path}", penwidth=2.4')
    settings = f" [{', '.join(parts)}]" if parts else ""
    return f"  {_quoted(edge.tail)} -> {_quoted(edge.head)}{settings};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
