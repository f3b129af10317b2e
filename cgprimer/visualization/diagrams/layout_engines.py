"""The interface of layout engines: functions that place the vertices of a graph in layers.

graphlay is used if it is installed, and otherwise the built-in layout of `layered_layout.py`.
`set_layout_engine` installs another engine, such as dagre in a browser (`dagre_layout.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

from cgprimer.support.caller_warnings import warn_user
from cgprimer.visualization.diagrams.geometry import Point, Size


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """A graph to lay out. Lengths are in points; vertices are numbered in topological order.

    Attributes:
        sizes: width and height of each vertex, with the distance to edges of other vertices.
        edges: pairs of tail and head.
        label_sizes: width and height of the label of each edge; None for an edge without a label.
        layer_gap: minimum gap between neighboring layers.
        node_gap: minimum gap between vertices of a layer.
        edge_gap: minimum gap between an edge and other vertices or edges of a layer.
        label_gap: gap on either side of a label along its edge.
        down: True for layers from top to bottom, otherwise from left to right.
        square: True for horizontal and vertical edges, if the engine supports them.
        fold: preferred width over height of layers in several rows; 0 for one row. An engine that
            cannot fold layers returns one row.
        symmetric: True to center vertices between their neighbors; otherwise one path is straight.
    """

    sizes: tuple[Size, ...]
    edges: tuple[tuple[int, int], ...]
    label_sizes: tuple[Size | None, ...]
    layer_gap: float = 36.0
    node_gap: float = 14.0
    edge_gap: float = 15.0
    label_gap: float = 30.0
    down: bool = False
    square: bool = False
    fold: float = 0.0
    symmetric: bool = False


class LayoutAnswer(NamedTuple):
    """The positions that a layout engine computes; y increases downwards.

    Attributes:
        ranks: the layer of each vertex, starting at 0; None for a vertex without a layer.
        centers: the center of each vertex.
        routes: the corners of each edge, from the side of its tail to the side of its head.
    """

    ranks: tuple[int | None, ...]
    centers: tuple[Point, ...]
    routes: tuple[Sequence[Point], ...]


LayoutEngine: TypeAlias = Callable[[LayoutRequest], LayoutAnswer]

_installed_engines: list[LayoutEngine] = []  # empty, or the engine that replaces the default


def set_layout_engine(engine: LayoutEngine | None) -> None:
    """Install the engine of all following layouts; None restores the default engine.

    >>> from cgprimer.visualization.diagrams.layered_layout import lay_out_layers
    >>> set_layout_engine(lay_out_layers)
    >>> find_layout_engine().__name__
    'lay_out_layers'
    >>> set_layout_engine(None)
    """
    _installed_engines[:] = [] if engine is None else [engine]


def find_layout_engine() -> LayoutEngine:
    """Return the installed engine, or else graphlay, or else the built-in layout with a warning."""
    if _installed_engines:
        return _installed_engines[0]
    try:
        from cgprimer.visualization.diagrams.graphlay_layout import lay_out_with_graphlay
    except ImportError:
        from cgprimer.visualization.diagrams.layered_layout import lay_out_layers

        _warn_of_missing_graphlay()
        return lay_out_layers
    return lay_out_with_graphlay


@cache
def _warn_of_missing_graphlay() -> None:
    """Warn once that the built-in layout is used."""
    warn_user("graphlay is not installed, so graphs are drawn with the built-in layout")
