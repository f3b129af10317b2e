"""Thirty graphs of 3 to 300 vertices, with the vertex and label sizes that pictures give them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import cgprimer
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.geometry import Size
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import SlideLayout, slide_layout
from cgprimer.visualization.diagrams.theme import Shape, theme
from tests.benchmarks.random_graphs import random_expressions

_EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True, slots=True)
class Problem:
    """A graph to lay out.

    Attributes:
        name: for the table.
        diagram: the vertices and edges, as `cgprimer draw --all` would draw them.
        sizes: width and height of every vertex, in points.
        label_sizes: of every edge's label, None where there is none.
        shapes: the outline of every vertex.
    """

    name: str
    diagram: Diagram
    sizes: Mapping[str, Size]
    label_sizes: tuple[Size | None, ...]
    shapes: Mapping[str, Shape]


def problem(name: str, diagram: Diagram) -> tuple[Problem, SlideLayout]:
    """The sizes are read off cgprimer's own picture, which is returned as well."""
    picture = slide_layout(diagram)
    roles = theme(dark=False).roles
    return Problem(
        name,
        diagram,
        {key: (box.width, box.height) for key, box in picture.layout.boxes.items()},
        tuple(None if box is None else (box.width, box.height) for box in picture.labels.boxes),
        {node.key: roles[node.role].shape for node in diagram.nodes},
    ), picture


def chain(count: int) -> list[str]:
    return [f"x{k + 1} = tanh(x{k})" for k in range(count - 1)]


def wide_sum(count: int) -> list[str]:
    return [f"xsum = {' + '.join(f'w{k}*x{k}' for k in range(count))}"]


def grid(side: int) -> list[str]:
    """Every vertex depends on the one before it and on the one above it: planar."""
    lines = []
    for i in range(side):
        for j in range(side):
            before = [f"x{i - 1}_{j}"] * (i > 0) + [f"x{i}_{j - 1}"] * (j > 0)
            lines += [f"x{i}_{j} = {' + '.join(before)}"] if before else []
    return lines


def tree(depth: int) -> list[str]:
    """A binary tree of products, its leaves the inputs."""
    return [
        f"x{level}_{k} = x{level + 1}_{2 * k}*x{level + 1}_{2 * k + 1}"
        for level in reversed(range(depth))
        for k in range(2**level)
    ]


def random_tree(count: int, seed: int) -> list[str]:
    """Every vertex is used once, by one of those after it."""
    source = random.Random(seed)
    users: dict[int, list[int]] = {}
    for k in range(count - 1):
        users.setdefault(source.randrange(k + 1, min(count, k + 40)), []).append(k)
    return [f"x{k} = sin({' + '.join(f'x{j}' for j in used)})" for k, used in users.items()]


def network(*widths: int) -> list[str]:
    """A fully connected network; its weights are the labels of its edges."""
    lines = []
    for layer, (before, width) in enumerate(pairwise(widths), start=1):
        for unit in range(width):
            terms = (f"w{layer}{unit}{k}*x{layer - 1}_{k}" for k in range(before))
            lines.append(f"x{layer}_{unit} = tanh({' + '.join(terms)})")
    return lines


def layered(layers: int, width: int, seed: int) -> list[str]:
    """Two or three operands each, mostly from the layer before, some from further back."""
    source = random.Random(seed)
    lines = []
    for layer in range(1, layers):
        for unit in range(width):
            used = {
                (max(0, layer - source.choice((1, 1, 1, 1, 2, 3))), source.randrange(width))
                for _ in range(source.choice((2, 2, 3)))
            }
            lines.append(f"x{layer}_{unit} = {' + '.join(f'x{i}_{j}' for i, j in sorted(used))}")
    return lines


def _example(name: str, level: str) -> Callable[[], Diagram]:
    graph = cgprimer.load(_EXAMPLES / f"{name}.cg")
    return lambda: graph_diagram(graph, level=level, everything=True)


def _text(lines: list[str], level: str = "variables") -> Callable[[], Diagram]:
    return lambda: graph_diagram(cgprimer.parse(lines), level=level, everything=True)


_MEAN_OF_SQUARES = [
    "input x1 = 1, x2 = 1, x3 = 1, x4 = 1",
    *(f"z{i} = 3*(x{i} + 2)^2" for i in range(1, 5)),
    "y = (z1 + z2 + z3 + z4)/4",
]


def problems() -> dict[str, Callable[[], Diagram]]:
    """The thirty, by name; each is made when it is called."""
    return {
        "cosine_of_square": _example("cosine_of_square", "variables"),
        "lecture": _example("lecture", "variables"),
        "two_paths": _example("two_paths", "variables"),
        "baydin": _example("baydin", "variables"),
        "mean_of_squares": _text(_MEAN_OF_SQUARES),
        "mazur": _example("mazur", "variables"),
        "lecture, operations": _example("lecture", "operations"),
        "cs231n_neuron, operations": _example("cs231n_neuron", "operations"),
        "logistic_loss, operations": _example("logistic_loss", "operations"),
        "cubic, operations": _example("cubic", "operations"),
        "mean_of_squares, operations": _text(_MEAN_OF_SQUARES, "operations"),
        "mazur, operations": _example("mazur", "operations"),
        "network 2-3-1": _text(network(2, 3, 1)),
        "network 4-8-8-1": _text(network(4, 8, 8, 1)),
        "network 2-3-1, operations": _text(network(2, 3, 1), "operations"),
        "chain of 20": _text(chain(20)),
        "chain of 120": _text(chain(120)),
        "sum of 8": _text(wide_sum(8)),
        "sum of 40": _text(wide_sum(40)),
        "grid 4 x 4": _text(grid(4)),
        "grid 8 x 8": _text(grid(8)),
        "tree of 31": _text(tree(4)),
        "tree of 127": _text(tree(6)),
        "random tree of 300": _text(random_tree(300, 1)),
        "layered 5 x 5": _text(layered(5, 5, 1)),
        "layered 10 x 8": _text(layered(10, 8, 2)),
        "layered 20 x 8": _text(layered(20, 8, 3)),
        "random 60": _text(random_expressions(60, 1)[0]),
        "random 150": _text(random_expressions(150, 1)[0]),
        "random 340": _text(random_expressions(340, 1)[0]),
    }
