"""Pictures of graphs as SVG without matplotlib, for notebooks in which it is not installed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from cgprimer.support.templates import render_template
from cgprimer.visualization.diagrams.diagram import Diagram, Node
from cgprimer.visualization.diagrams.geometry import Box
from cgprimer.visualization.diagrams.slide_layout import (
    MARGIN,
    NOTES_GAP,
    SlideLayout,
    slide_layout,
)
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    LABEL_SIZE,
    LINE_SPACING,
    RoleStyle,
    list_roles,
    theme,
)
from cgprimer.visualization.diagrams.vertex_shapes import (
    compute_hexagon_corners,
    compute_pill_radius,
)

_Text = tuple[float, float, float, str, str]  # x, y, font size, weight and text
_STACK = 5.0  # points between the outlines of a stack
_SWATCH = Box(0.0, 0.0, 30.0, 20.0)  # the symbol of a role in the legend
_SYMBOL_GAP, _ENTRY_GAP = 8.0, 24.0  # between a symbol and its text; between legend entries


def render_svg(diagram: Diagram) -> str:
    """Render the picture of a graph that a notebook shows, as an SVG element.

    Highlighted paths, dropped vertices and frames of parts are drawn only by matplotlib.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> render_svg(Diagram((Node("xa", "xa", "input"),), ())).count("<rect")
    2
    """
    picture, look = slide_layout(diagram), theme(dark=False)
    captions, layout = picture.captions, picture.layout
    width, height = captions.size
    left = layout.width / 2 - width / 2
    top = -captions.above - (height - captions.filled[1]) / 2
    shapes: list[tuple[Any, ...]] = []
    texts: list[_Text] = []
    for node in diagram.nodes:
        box, style = layout.boxes[node.key], look.roles[node.role]
        for behind in (2, 1) if node.count > 1 else ():
            shapes += _list_outlines(style, box.translate(_STACK * behind, -_STACK * behind))
        shapes += _list_outlines(style, box)
        texts += _list_vertex_texts(node, box, picture)
    backgrounds = []
    for label, lines in zip(picture.labels.boxes, picture.label_texts, strict=True):
        if label is not None:
            backgrounds.append((label.x - label.width / 2, label.y - label.height / 2,
                                label.width, label.height))  # fmt: skip
            first = label.y - (len(lines) - 1) / 2 * DETAIL_SIZE * LINE_SPACING
            texts += _stack_lines(label.x, first, lines)
    legend = top + height - MARGIN - captions.legend.height / 2
    x = layout.width / 2 - _measure_legend(diagram) / 2
    for role in list_roles(diagram):
        style = look.roles[role]
        shapes += _list_outlines(style, _SWATCH.translate(x + _SWATCH.width / 2, legend))
        wide = measure_text(style.label, DETAIL_SIZE)
        x += _SWATCH.width + _SYMBOL_GAP + wide
        texts.append((x - wide / 2, legend, DETAIL_SIZE, "normal", style.label))
        x += _ENTRY_GAP
    notes = top + height - captions.below + NOTES_GAP + DETAIL_SIZE / 2
    texts += _stack_lines(layout.width / 2, notes, captions.notes)
    values: dict[str, Any] = {
        "look": look, "left": left, "top": top, "width": width, "height": height,
        "lines": layout.lines, "backgrounds": backgrounds, "shapes": shapes, "texts": texts,
        "label": f"graph of {', '.join(node.label for node in diagram.nodes)}",
        # A page can contain several pictures, and their arrow heads need different names.
        "key": hashlib.sha256(repr(asdict(layout)).encode()).hexdigest()[:8],
    }  # fmt: skip
    return render_template("visualization/diagrams/svg_picture.svg", **values)


def _measure_legend(diagram: Diagram) -> float:
    """Return the width of the legend in one row."""
    labels = [theme(dark=False).roles[role].label for role in list_roles(diagram)]
    entries = [_SWATCH.width + _SYMBOL_GAP + measure_text(label, DETAIL_SIZE) for label in labels]
    return sum(entries) + _ENTRY_GAP * (len(entries) - 1)


def _list_outlines(style: RoleStyle, box: Box) -> Iterator[tuple[Any, ...]]:
    """Yield the outlines of a vertex: style, hexagon corners, or rectangle and corner radius."""
    if style.shape == "hexagon":
        slant = min(12.0, box.width / 5)
        yield (style, compute_hexagon_corners(box, slant), 0.0, 0.0, 0.0, 0.0, 0.0)
        return
    radius = {"circle": compute_pill_radius(box), "rounded": min(10.0, box.height / 4)}
    for inset in (0.0, 4.0) if style.shape == "double" else (0.0,):
        wide, high = box.width - 2 * inset, box.height - 2 * inset
        corner = (box.x - wide / 2, box.y - high / 2)
        yield (style, None, *corner, wide, high, radius.get(style.shape, 0.0))


def _list_vertex_texts(node: Node, box: Box, picture: SlideLayout) -> Iterator[_Text]:
    """Yield the label of a vertex and its detail lines."""
    detail = picture.details[node.key]
    y = box.y - LINE_SPACING * len(detail) * DETAIL_SIZE / 2
    yield (box.x, y, LABEL_SIZE, "bold", node.label)
    yield from _stack_lines(box.x, y + LINE_SPACING * (LABEL_SIZE + DETAIL_SIZE) / 2, detail)


def _stack_lines(x: float, y: float, lines: Iterable[str]) -> Iterator[_Text]:
    """Yield lines of small text, centered at `x`; the first line is at the height `y`."""
    for number, text in enumerate(lines):
        yield (x, y + number * DETAIL_SIZE * LINE_SPACING, DETAIL_SIZE, "normal", text)
