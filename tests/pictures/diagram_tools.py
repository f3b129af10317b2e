"""Graphs that several tests draw, and a check of the texts of a figure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import cgprimer

F1 = """input x[2] = [1, 2]; parameter w1[2,2] = [[1, -1], [.5, -2]], w2[2] = [1, 3], y = 1
xh = x @ w1; xr = relu(xh); xp = xr @ w2; xL = (xp - y)^2"""


def load(graph: str) -> cgprimer.ExpressionGraph:
    """Load an example by its name, or parse a text."""
    return cgprimer.parse(graph) if "=" in graph else cgprimer.load(graph)


def check_texts(figure: Figure, texts: Iterable[Text], bars: Iterable[Bbox] = ()) -> None:
    """Check that texts and bars are inside the figure and do not overlap."""
    renderer, whole = FigureCanvasAgg(figure).get_renderer(), figure.bbox
    boxes = [("bar", bar) for bar in bars]
    for text in texts:
        box = text.get_window_extent(renderer)
        inner = 0.18 * box.height  # room for accents and descenders that no text uses twice
        corners = [[box.x0 + 1, box.y0 + inner], [box.x1 - 1, box.y1 - inner]]
        if box.width > 1:  # texts at points outside of the axes are not drawn
            boxes.append((text.get_text(), Bbox(corners)))
    for words, box in boxes:
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, words
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, words
    for (one, a), (other, b) in combinations(boxes, 2):
        assert not a.overlaps(b), (one, other)
