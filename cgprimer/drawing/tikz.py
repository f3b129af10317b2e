r"""Diagrams as TikZ: a LaTeX document of its own, whose ``tikzpicture`` can be put into another.

Everything stands where it stands in the other pictures; one unit is one point (``bp``).

Source: T. Tantau, "The TikZ and PGF packages", manual for version 3.1.
"""

from __future__ import annotations

import unicodedata

from cgprimer.drawing.diagram import Diagram, Node
from cgprimer.drawing.graph_picture import Picture, arrange
from cgprimer.drawing.layout import Box, Point
from cgprimer.drawing.shapes import outline, pill_radius
from cgprimer.drawing.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    LABEL_SIZE,
    LINE_SPACING,
    TITLE_SIZE,
    Theme,
    theme,
)

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\^{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "-": r"\ensuremath{-}",
    "−": r"\ensuremath{-}", "×": r"\ensuremath{\times}", "÷": r"\ensuremath{\div}",
    "·": r"\ensuremath{\cdot}", "∂": r"\ensuremath{\partial}", "→": r"\ensuremath{\to}",
    "…": r"\ldots{}", "Σ": r"\ensuremath{\Sigma}", "≈": r"\ensuremath{\approx}",
}  # fmt: skip


def tikz(diagram: Diagram, *, dark: bool = False) -> str:
    r"""A diagram as a LaTeX document: ``pdflatex graph.tex`` makes a page of the picture's size.

    It needs the class ``standalone`` and TikZ, which every TeX distribution has.

    >>> nodes = (Node("xa", "x_a", "input"),)
    >>> text = tikz(Diagram(nodes, ()))
    >>> print(text.splitlines()[0], r"\bfseries x\_a" in text)
    \documentclass[tikz,border=18bp]{standalone} True
    """
    look = theme(dark)
    picture = arrange(diagram)
    present = {node.role for node in diagram.nodes}
    roles = [role for role in look.roles if role in present]
    colours = {"background": look.background, "ink": look.ink, "edge": look.edge}
    colours["path"] = look.path
    for role in roles:
        colours[f"{role}line"] = look.roles[role].outline
        dotted = look.roles[role].shape == "dotted"
        colours[f"{role}fill"] = look.background if dotted else look.roles[role].fill
    lines = [
        r"\documentclass[tikz,border=18bp]{standalone}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage{lmodern}",
        r"\usetikzlibrary{arrows.meta}",
        *(rf"\definecolor{{{n}}}{{HTML}}{{{c[1:].upper()}}}" for n, c in colours.items()),
        r"\pagecolor{background}",
        r"\begin{document}",
        r"\begin{tikzpicture}[x=1bp, y=1bp, text=ink, font=\sffamily, inner sep=0,",
        r"  edge/.style={draw=edge, line width=1.8bp, rounded corners=12bp,"
        r" -{Stealth[length=11bp, width=10bp]}},",
        r"  path edge/.style={edge, draw=path, double=background, double distance=2.4bp,"
        r" -{Stealth[length=16bp, width=15bp]}},",
    ]
    for role in roles:
        style = look.roles[role]
        dots = ", dotted" if style.shape == "dotted" else ""
        lines.append(
            rf"  {role}/.style={{draw={role}line, fill={role}fill,"
            rf" line width={style.line_width:g}bp{dots}}},"
        )
    lines.append(r"  path vertex/.style={draw=path, line width=4bp}]")
    lines += _edges(diagram, picture)
    for node in diagram.nodes:
        lines += _vertex(node, picture, look)
    lines += _above_and_below(diagram, picture)
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}"]) + "\n"


def _edges(diagram: Diagram, picture: Picture) -> list[str]:
    lines = []
    for edge, route in zip(diagram.edges, picture.routes, strict=True):
        style = "path edge" if edge.emphasis else "edge"
        lines.append(rf"\draw[{style}] {' -- '.join(map(_point, route))};")
    for box, texts in zip(picture.labels, picture.label_texts, strict=True):
        if box is not None:
            text = r"\\".join(map(escaped, texts))
            lines.append(
                rf"\node[fill=background, align=center, {_font(EDGE_LABEL_SIZE)},"
                rf" inner sep=2bp] at {_point((box.x, box.y))} {{{text}}};"
            )
    return lines


def _vertex(node: Node, picture: Picture, look: Theme) -> list[str]:
    box = picture.layout.boxes[node.key]
    shape = look.roles[node.role].shape
    style = f"{node.role}, path vertex" if node.emphasis else node.role
    if shape == "hexagon":
        path = " -- ".join(map(_point, outline(shape, box))) + " -- cycle"
    else:
        path = _rectangle(box, 0.0)
    radius = {"rounded": 10.0, "circle": pill_radius(box) - 0.1}.get(shape)
    corners = f"rounded corners={radius:.1f}bp, " if radius else ""
    lines = [rf"\path[{corners}{style}] {path};"]
    if shape == "double":
        lines.append(rf"\path[{style}] {_rectangle(box, 4.0)};")
    first = rf"{{{_size(LABEL_SIZE)}\bfseries {escaped(node.label)}}}"
    details = [rf"{{{_size(DETAIL_SIZE)}{escaped(t)}}}" for t in picture.details[node.key]]
    text = r"\\".join((first, *details))
    lines.append(rf"\node[align=center] at {_point((box.x, box.y))} {{{text}}};")
    return lines


def _above_and_below(diagram: Diagram, picture: Picture) -> list[str]:
    frame = picture.frame
    lines = []
    if diagram.title:
        at = _point((frame.x, frame.y + frame.height / 2 + 20))
        title = escaped(diagram.title)
        lines.append(rf"\node[anchor=south, {_font(TITLE_SIZE)}\bfseries] at {at} {{{title}}};")
    if diagram.notes:
        at = _point((frame.x, frame.y - frame.height / 2 - 20))
        text = r"\\".join(map(escaped, diagram.notes))
        lines.append(
            rf"\node[anchor=north, align=center, {_font(DETAIL_SIZE)}] at {at} {{{text}}};"
        )
    return lines


def _point(point: Point) -> str:
    return f"({point[0]:.1f},{point[1]:.1f})"


def _rectangle(box: Box, inset: float) -> str:
    across, along = box.width / 2 - inset, box.height / 2 - inset
    return (
        f"{_point((box.x - across, box.y - along))} rectangle "
        f"{_point((box.x + across, box.y + along))}"
    )


def _size(size: float) -> str:
    return rf"\fontsize{{{size:g}bp}}{{{size * LINE_SPACING:g}bp}}\selectfont "


def _font(size: float) -> str:
    return rf"font=\sffamily{_size(size).strip()}"


def escaped(text: str) -> str:
    r"""Text as LaTeX shows it as written; Greek letters through mathematics mode.

    >>> print(escaped("x_1^2 & α"))
    x\_1\^{}2 \& \ensuremath{\alpha}
    """
    return "".join(_ESCAPES.get(character) or _letter(character) for character in text)


def _letter(character: str) -> str:
    if character.isascii():
        return character
    words = unicodedata.name(character, "").split()
    if words[:3] == ["GREEK", "SMALL", "LETTER"] and len(words) == 4:
        return rf"\ensuremath{{\{words[3].lower().replace('lamda', 'lambda')}}}"
    return character
