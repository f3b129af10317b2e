r"""Diagrams as TikZ: a LaTeX document of its own, whose ``tikzpicture`` can be put into another.

Everything stands where it stands in the other pictures; one unit is one point (``bp``). The
document needs TikZ and nothing else that a small TeX installation might lack: the page gets its
size from the picture's box, and fonts beyond Computer Modern are used where they are.

Source: T. Tantau, "The TikZ and PGF packages", manual for version 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from cgprimer.pictures.captions import NOTE_WIDTH
from cgprimer.pictures.diagram import Diagram, Node
from cgprimer.pictures.geometry import Box, Point
from cgprimer.pictures.latex_text import escaped, fallbacks, prose
from cgprimer.pictures.shapes import outline, pill_radius
from cgprimer.pictures.slide_layout import SlideLayout, slide_layout
from cgprimer.pictures.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    LABEL_SIZE,
    LINE_SPACING,
    TITLE_SIZE,
    Theme,
    roles_in,
    theme,
)

_LONGEST = 12_000.0  # points; TeX's and PDF's largest pages are a little larger
_BORDER = 18.0
_PREAMBLE = r"""% pdflatex, lualatex or xelatex makes a page of the picture's size.
% For a document of your own copy the colours, the library and the tikzpicture.
\documentclass{article}
\usepackage{iftex}
\ifPDFTeX
  \usepackage[utf8]{inputenc}
  \IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{\usepackage{fix-cm}}
\else
  \usepackage{fontspec}
  \IfFontExistsTF{DejaVu Sans}{\setsansfont{DejaVu Sans}}{}
\fi
\usepackage{tikz}
\usetikzlibrary{arrows.meta, backgrounds}""".splitlines()
_PAGE = r"""\setbox0=\hbox{%"""
_END_OF_PAGE = r"""}
\ifdefined\pagewidth
  \pagewidth=\wd0 \pageheight=\dimexpr\ht0+\dp0\relax
\else
  \pdfpagewidth=\wd0 \pdfpageheight=\dimexpr\ht0+\dp0\relax
\fi
\hoffset=-1in \voffset=-1in
\shipout\box0
\end{document}""".splitlines()


def tikz(diagram: Diagram, *, dark: bool = False) -> str:
    r"""A diagram as a LaTeX document: ``pdflatex graph.tex`` makes a page of the picture's size.

    It needs TikZ, which every TeX distribution has. A picture longer than a page can be is made
    smaller as a whole.

    >>> nodes = (Node("xa", "x_a", "input"),)
    >>> text = tikz(Diagram(nodes, ()))
    >>> print(r"\begin{tikzpicture}" in text, r" x\_a\strut" in text)
    True True
    """
    look = theme(dark)
    picture = slide_layout(diagram)
    pen = _Pen(min(1.0, _LONGEST / max(picture.layout.width, picture.layout.height, 1.0)))
    roles = roles_in(diagram)
    colours = {"background": look.background, "ink": look.ink, "edge": look.edge}
    colours["path"] = look.path
    for role in roles:
        colours[f"{role}line"] = look.roles[role].outline
        colours[f"{role}fill"] = look.roles[role].fill
    size = pen.length
    body = [
        r"\begin{tikzpicture}[x=1bp, y=-1bp, text=ink, font=\sffamily, inner sep=0,",
        r"  show background rectangle, background rectangle/.style={fill=background},"
        f" inner frame sep={size(_BORDER)},",
        f"  edge/.style={{draw=edge, line width={size(1.8)}, rounded corners={size(12)},"
        f" -{{Stealth[length={size(11)}, width={size(10)}]}}}},",
        f"  path edge/.style={{edge, draw=path, double=background, double distance={size(2.4)},"
        f" -{{Stealth[length={size(16)}, width={size(15)}]}}}},",
    ]
    for role in roles:
        style = look.roles[role]
        dots = ", dotted" if style.shape == "dotted" else ""
        body.append(
            f"  {role}/.style={{draw={role}line, fill={role}fill,"
            f" line width={size(style.line_width)}{dots}}},"
        )
    body.append(f"  path vertex/.style={{draw=path, line width={size(4)}}}]")
    body += _edges(diagram, picture, pen)
    for node in diagram.nodes:
        body += _vertex(node, picture, look, pen)
    body += [*_above_and_below(diagram, picture, pen), r"\end{tikzpicture}"]
    lines = [
        *_PREAMBLE,
        *fallbacks("\n".join(body)),
        *(rf"\definecolor{{{n}}}{{HTML}}{{{c[1:].upper()}}}" for n, c in colours.items()),
        r"\begin{document}",
        _PAGE,
        *body[:-1],
        body[-1] + "%",
        *_END_OF_PAGE,
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Pen:
    """Writes lengths, points and fonts; `scale` is below 1 where the picture is too long."""

    scale: float

    def length(self, points: float) -> str:
        return f"{points * self.scale:.4g}bp"

    def point(self, point: Point) -> str:
        return f"({point[0] * self.scale:.1f},{point[1] * self.scale:.1f})"

    def rectangle(self, box: Box, inset: float) -> str:
        across, along = box.width / 2 - inset, box.height / 2 - inset
        return (
            f"{self.point((box.x - across, box.y - along))} rectangle "
            f"{self.point((box.x + across, box.y + along))}"
        )

    def size(self, size: float) -> str:
        line = self.length(size * LINE_SPACING)
        return rf"\fontsize{{{self.length(size)}}}{{{line}}}\selectfont "

    def font(self, size: float) -> str:
        return rf"font=\sffamily{self.size(size).strip()}"


def _edges(diagram: Diagram, picture: SlideLayout, pen: _Pen) -> list[str]:
    lines = []
    for edge, route in zip(diagram.edges, picture.layout.routes, strict=True):
        style = "path edge" if edge.emphasis else "edge"
        lines.append(rf"\draw[{style}] {' -- '.join(map(pen.point, route))};")
    for box, texts in zip(picture.labels.boxes, picture.label_texts, strict=True):
        if box is not None:
            text = r"\\".join(map(escaped, texts))
            lines.append(
                rf"\node[fill=background, align=center, {pen.font(EDGE_LABEL_SIZE)},"
                rf" inner sep={pen.length(2)}] at {pen.point((box.x, box.y))} {{{text}}};"
            )
    return lines


def _vertex(node: Node, picture: SlideLayout, look: Theme, pen: _Pen) -> list[str]:
    box = picture.layout.boxes[node.key]
    shape = look.roles[node.role].shape
    style = f"{node.role}, path vertex" if node.emphasis else node.role
    if shape == "hexagon":
        path = " -- ".join(map(pen.point, outline(shape, box))) + " -- cycle"
    else:
        path = pen.rectangle(box, 0.0)
    radius = {"rounded": 10.0, "circle": pill_radius(box) - 0.1}.get(shape)
    corners = f"rounded corners={pen.length(radius)}, " if radius else ""
    lines = [rf"\path[{corners}{style}] {path};"]
    if shape == "double":
        # Of a highlighted vertex the outer outline is wide, and two are still seen.
        inner = f"{style}, line width={pen.length(1.2)}" if node.emphasis else style
        lines.append(rf"\path[{inner}] {pen.rectangle(box, 4.0)};")
    first = rf"{{{pen.size(LABEL_SIZE)}\bfseries\boldmath {escaped(node.label)}\strut}}"
    text = r"\\".join((first, *map(escaped, picture.details[node.key])))
    # The node's font decides how far apart all lines are.
    lines.append(
        rf"\node[align=center, {pen.font(DETAIL_SIZE)}] at {pen.point((box.x, box.y))} {{{text}}};"
    )
    return lines


def _above_and_below(diagram: Diagram, picture: SlideLayout, pen: _Pen) -> list[str]:
    layout = picture.layout
    width = f"text width={pen.length(max(layout.width, NOTE_WIDTH))}, align=center"
    lines = []
    if diagram.title:
        at = pen.point((layout.width / 2, -20))
        title = prose(diagram.title)
        font = rf"{pen.font(TITLE_SIZE)}\bfseries\boldmath"
        lines.append(rf"\node[anchor=south, {width}, {font}] at {at} {{{title}}};")
    if diagram.notes:
        at = pen.point((layout.width / 2, layout.height + 20))
        text = r"\\".join(map(prose, diagram.notes))
        lines.append(rf"\node[anchor=north, {width}, {pen.font(DETAIL_SIZE)}] at {at} {{{text}}};")
    return lines
