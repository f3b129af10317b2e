r"""Diagrams as TikZ: a complete LaTeX document, whose ``tikzpicture`` can be copied into another.

All positions are those of the other picture formats; one unit is one point (``bp``). TikZ is the
only package that a small TeX installation might lack: the page takes its size from the box of the
picture, and fonts other than Computer Modern are optional. All text is literal.

Source: T. Tantau, "The TikZ and PGF packages", manual for version 3.1; the LaTeX Project, "LaTeX
font encodings" (encguide).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cgprimer.support.latex_text import (
    declare_missing_characters,
    escape_latex,
    escape_latex_prose,
)
from cgprimer.visualization.diagrams.diagram import Diagram, Node
from cgprimer.visualization.diagrams.geometry import Box, Point
from cgprimer.visualization.diagrams.part_frames import PADDING, format_header_lines
from cgprimer.visualization.diagrams.slide_layout import NOTE_WIDTH, SlideLayout, slide_layout
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    LABEL_SIZE,
    LINE_SPACING,
    TITLE_SIZE,
    Theme,
    list_roles,
    theme,
)
from cgprimer.visualization.diagrams.vertex_shapes import (
    compute_hexagon_corners,
    compute_pill_radius,
)

_LONGEST = 12_000.0  # points; pages of TeX and PDF can be slightly larger
_BORDER = 18.0
_PREAMBLE = r"""% made by cgprimer; pdflatex, lualatex, xelatex make a page of the picture's size.
% To use the picture in another document, copy the colors, the library and the tikzpicture.
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
\usetikzlibrary{arrows.meta, backgrounds}"""
_PAGE = r"""\begin{document}
\setbox0=\hbox{%"""
_END_OF_PAGE = r"""%
}
\ifdefined\pagewidth
  \pagewidth=\wd0 \pageheight=\dimexpr\ht0+\dp0\relax
\else
  \pdfpagewidth=\wd0 \pdfpageheight=\dimexpr\ht0+\dp0\relax
\fi
\hoffset=-1in \voffset=-1in
\shipout\box0
\end{document}
"""


def tikz(diagram: Diagram, *, dark: bool = False) -> str:
    r"""Convert a diagram to a LaTeX document whose page has the size of the picture.

    The document needs TikZ, which every TeX distribution has. A picture that is longer than the
    maximum page is scaled down.

    >>> nodes = (Node("xa", "x_a", "input"),)
    >>> text = tikz(Diagram(nodes, ()))
    >>> print(r"\begin{tikzpicture}" in text, r" x\_a\strut" in text)
    True True
    """
    look = theme(dark)
    picture = slide_layout(diagram)
    pen = _TikzFormatter(min(1.0, _LONGEST / max(picture.layout.width, picture.layout.height, 1.0)))
    roles = list_roles(diagram)
    colors = {name: getattr(look, name) for name in ("background", "ink", "edge", "path")}
    size = pen.format_length
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
        colors |= {f"{role}line": style.outline, f"{role}fill": style.fill}
        dots = ", dotted" if style.shape == "dotted" else ""
        body.append(
            f"  {role}/.style={{draw={role}line, fill={role}fill,"
            f" line width={size(style.line_width)}{dots}}},"
        )
    body.append(f"  path vertex/.style={{draw=path, line width={size(4)}}}]")
    body += [*_emit_frames(diagram, picture, pen), *_emit_edges(diagram, picture, pen)]
    for node in diagram.nodes:
        body += _emit_vertex(node, picture, look, pen)
    body += [*_emit_captions(diagram, picture, pen), r"\end{tikzpicture}"]
    declared = [
        *declare_missing_characters("\n".join(body)),
        *(rf"\definecolor{{{n}}}{{HTML}}{{{c[1:].upper()}}}" for n, c in colors.items()),
    ]
    return "\n".join([_PREAMBLE, *declared, _PAGE, *body]) + _END_OF_PAGE


@dataclass(frozen=True, slots=True)
class _TikzFormatter:
    """Formatter for lengths, points and fonts in TikZ; a `scale` below 1 shrinks the picture."""

    scale: float

    def format_length(self, points: float) -> str:
        """Format a length in points as a TikZ length."""
        return f"{points * self.scale:.4g}bp"

    def format_point(self, point: Point) -> str:
        """Format the coordinates of a point as a TikZ coordinate pair."""
        return f"({point[0] * self.scale:.1f},{point[1] * self.scale:.1f})"

    def format_rectangle(self, box: Box, inset: float) -> str:
        """Format a TikZ path for a rectangle that is `inset` smaller than a box on each side."""
        across, along = box.width / 2 - inset, box.height / 2 - inset
        return (
            f"{self.format_point((box.x - across, box.y - along))} rectangle "
            f"{self.format_point((box.x + across, box.y + along))}"
        )

    def format_font_size(self, size: float) -> str:
        """Return the LaTeX command that selects a font size."""
        line = self.format_length(size * LINE_SPACING)
        return rf"\fontsize{{{self.format_length(size)}}}{{{line}}}\selectfont "

    def format_node(
        self, style: str, size: float, at: Point, lines: Iterable[str], more: str = ""
    ) -> str:
        """Format a TikZ node with lines of LaTeX text, centered at a point."""
        font = rf"font=\sffamily{self.format_font_size(size).strip()}{more}"
        text = r"\\{}".join(lines)  # a bracket after a bare line break would be its length
        return rf"\node[{style}align=center, {font}] at {self.format_point(at)} {{{text}}};"


def _emit_frames(diagram: Diagram, picture: SlideLayout, pen: _TikzFormatter) -> list[str]:
    """Emit the TikZ commands that draw the frames around parts, with their labels."""
    lines = []
    for part, box in zip(diagram.parts, picture.layout.frames, strict=True):
        style = f"draw=edge, dash dot, line width={pen.format_length(2.2)}"
        lines.append(rf"\path[{style}] {pen.format_rectangle(box, 0.0)};")
        top = (box.x, box.y - box.height / 2 + PADDING / 2)
        label = map(escape_latex, format_header_lines(part))
        lines.append(pen.format_node("anchor=north, ", DETAIL_SIZE, top, label))
    return lines


def _emit_edges(diagram: Diagram, picture: SlideLayout, pen: _TikzFormatter) -> list[str]:
    """Emit the TikZ commands that draw the edges and their labels."""
    lines = []
    for edge, points in zip(diagram.edges, picture.layout.routes, strict=True):
        route = points[::-1] if diagram.backward_arrows else points
        style = "path edge" if edge.emphasis else "edge"
        style += ", dashed, opacity=0.5" if edge.dropped else ""
        lines.append(rf"\draw[{style}] {' -- '.join(map(pen.format_point, route))};")
    style = f"fill=background, inner sep={pen.format_length(2)}, "
    for box, texts in zip(picture.labels.boxes, picture.label_texts, strict=True):
        if box is not None:
            lines.append(
                pen.format_node(style, DETAIL_SIZE, (box.x, box.y), map(escape_latex, texts))
            )
    return lines


def _emit_vertex(node: Node, picture: SlideLayout, look: Theme, pen: _TikzFormatter) -> list[str]:
    """Emit the TikZ commands that draw a vertex: its outline and its text."""
    box = picture.layout.boxes[node.key]
    shape = look.roles[node.role].shape
    style = f"{node.role}, path vertex" if node.emphasis else node.role
    style += ", dashed, fill=background, draw opacity=0.5" if node.dropped else ""
    if shape == "hexagon":
        path = " -- ".join(map(pen.format_point, compute_hexagon_corners(box))) + " -- cycle"
    else:
        path = pen.format_rectangle(box, 0.0)
    radius = {"rounded": 10.0, "circle": compute_pill_radius(box) - 0.1}.get(shape)
    corners = f"rounded corners={pen.format_length(radius)}, " if radius else ""
    lines = [rf"\path[{corners}{style}] {path};"]
    if shape == "double":
        # Only the outer outline of a highlighted vertex is wide, so both remain visible.
        inner = f"{style}, line width={pen.format_length(1.2)}" if node.emphasis else style
        lines.append(rf"\path[{inner}] {pen.format_rectangle(box, 4.0)};")
    size = pen.format_font_size(LABEL_SIZE)
    first = rf"{{{size}\bfseries\boldmath {escape_latex(node.label)}\strut}}"
    text = (first, *map(escape_latex, picture.details[node.key]))
    # The font of the node determines the distance between all lines.
    return [*lines, pen.format_node("", DETAIL_SIZE, (box.x, box.y), text)]


def _emit_captions(diagram: Diagram, picture: SlideLayout, pen: _TikzFormatter) -> list[str]:
    """Emit the TikZ commands that draw the title and the notes."""
    middle, floor = picture.layout.width / 2, picture.layout.height
    width = f"text width={pen.format_length(max(picture.layout.width, NOTE_WIDTH))}"
    lines = []
    if diagram.title:
        style, title = f"anchor=south, {width}, ", [escape_latex_prose(diagram.title)]
        bold = r"\bfseries\boldmath"
        lines.append(pen.format_node(style, TITLE_SIZE, (middle, -20.0), title, bold))
    if diagram.notes:
        style, notes = f"anchor=north, {width}, ", map(escape_latex_prose, diagram.notes)
        lines.append(pen.format_node(style, DETAIL_SIZE, (middle, floor + 20.0), notes))
    return lines
