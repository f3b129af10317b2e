"""The request and the answer of a layout engine.

An engine is a function that accepts a `LayoutRequest` and returns a `LayoutAnswer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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
