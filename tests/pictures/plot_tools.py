"""What the tests of plots read off a figure."""

from __future__ import annotations

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure


def entries(figure: Figure) -> list[str]:
    """What stands in the legends."""
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    return [text.get_text() for legend in legends if legend for text in legend.get_texts()]


def numbers(axis: Axis) -> list[str]:
    """What stands on an axis, inside the picture."""
    low, high = sorted(axis.get_view_interval())
    places = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [text.get_text() for place, text in places if low <= place <= high]


def drawn(figure: Figure, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line."""
    (line,) = [line for axes in figure.axes for line in axes.lines if line.get_label() == label]
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)
