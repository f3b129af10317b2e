"""The texts around a graph's picture: a title above it, notes and a legend below it."""

from __future__ import annotations

from dataclasses import dataclass

from cgprimer.pictures.diagram import Diagram
from cgprimer.pictures.geometry import Size
from cgprimer.pictures.legend import Entry, Legend
from cgprimer.pictures.lettering import block_size, wrap_words
from cgprimer.pictures.theme import (
    DETAIL_SIZE,
    SLIDE_ASPECT,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    SMALLEST_SIZE,
    TITLE_SIZE,
    roles_in,
)

MARGIN = 18.0
NOTES_GAP = 16.0
_TITLE_GAP = 18.0
_SMALLEST_WIDTH = 640.0
NOTE_WIDTH = 900.0  # notes are broken into lines of about a slide's width


@dataclass(frozen=True, slots=True)
class Captions:
    """The texts around a picture, and the size of the figure that holds all of it; points.

    Attributes:
        title: lines of the title.
        notes: lines under the picture.
        legend: below the notes.
        above: height above the graph, the margin included.
        below: height below the graph, the margin included.
        size: width and height of the figure, padded to a slide's shape where that adds little.
        filled: width and height without that padding.
    """

    title: tuple[str, ...]
    notes: tuple[str, ...]
    legend: Legend
    above: float
    below: float
    size: Size
    filled: Size

    @property
    def smallest_text(self) -> float:
        """The size in points of the smallest text once the figure fills a 16:9 slide."""
        return text_on_slide(*self.size)


def captions(diagram: Diagram, graph: Size) -> Captions:
    """The captions of a picture whose graph has that width and height in points.

    >>> from cgprimer.pictures.diagram import Node
    >>> found = captions(Diagram((Node("xa", "xa", "input"),), (), "A title"), (900, 300))
    >>> found.title, found.legend.rows, found.size[0]
    (('A title',), [['input']], 936.0)
    """
    entries: list[Entry] = [*roles_in(diagram)]
    if any(edge.emphasis for edge in diagram.edges):
        entries.append("path")
    inner = max(graph[0], _SMALLEST_WIDTH - 2 * MARGIN)
    inner = max(inner, Legend(entries, 0.0).width)  # of the widest entry
    title = wrap_words(diagram.title, inner, TITLE_SIZE, bold=True)
    width = max(inner, NOTE_WIDTH)
    notes = [line for note in diagram.notes for line in wrap_words(note, width, DETAIL_SIZE)]
    title_width, title_height = block_size(title, TITLE_SIZE, bold=True)
    notes_width, notes_height = block_size(notes, DETAIL_SIZE)
    inner = max(inner, title_width, notes_width)
    legend = Legend(entries, inner)
    above = MARGIN + (title_height + _TITLE_GAP if title else 0.0)
    below = MARGIN + (legend.height + NOTES_GAP if entries else 0.0)
    below += notes_height + NOTES_GAP if notes else 0.0
    filled = (inner + 2 * MARGIN, graph[1] + above + below)
    return Captions(title, tuple(notes), legend, above, below, slide_size(*filled), filled)


def slide_size(width: float, height: float) -> Size:
    """Pad to 16:9 where that at most doubles a side; other pictures stay as they are.

    >>> slide_size(1600, 700), slide_size(5000, 500)
    ((1600, 900.0), (5000, 500))
    """
    wide, tall = max(width, height * SLIDE_ASPECT), max(height, width / SLIDE_ASPECT)
    if (wide <= 2 * width and tall <= 2 * height) or width <= _SMALLEST_WIDTH:
        return (wide, tall)
    return (width, height)


def text_on_slide(width: float, height: float) -> float:
    """The size in points of a picture's smallest text on a slide of 13.33 by 7.5 inches.

    A picture smaller than the slide is not blown up.

    >>> text_on_slide(800, 400), text_on_slide(1920, 1080)
    (16.0, 8.0)
    """
    scale = min(SLIDE_WIDTH / width, SLIDE_HEIGHT / height)
    return SMALLEST_SIZE * min(scale, 1.0)
