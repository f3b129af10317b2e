"""The diagrams that the tests of the drawing room draw."""

from __future__ import annotations

import random

from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role
from cgprimer.visualization.diagrams.geometry import Box, Point


def lecture() -> Diagram:
    nodes = (
        Node("xa", "xa", "input", ("= 0.25",)),
        Node("xx", "xx", "inner", ("ab*xa", "= 0.125")),
        Node("xy", "xy", "inner", ("bc*xx + ac*xa", "= 0.4375")),
        Node("xz", "xz", "inner", ("bc*xx + xy", "= 0.5312")),
        Node("xw", "xw", "output", ("cd*xx + xz^3", "= 0.2749")),
    )
    ends = ("xa xx ab", "xa xy ac", "xx xy bc", "xx xz bc", "xy xz", "xx xw cd", "xz xw")
    return Diagram(nodes, tuple(Edge(*end.split()) for end in ends), "Lecture example $x_1^2$")


def network(*widths: int, labels: bool = False) -> Diagram:
    nodes: list[Node] = []
    edges: list[Edge] = []
    for layer, width in enumerate(widths):
        role: Role = "inner"
        if layer in (0, len(widths) - 1):
            role = "output" if layer else "input"
        for unit in range(width):
            nodes.append(Node(f"{layer}.{unit}", f"x{'abcd'[layer]}{unit}", role))
            if layer:
                edges += [
                    Edge(f"{layer - 1}.{k}", f"{layer}.{unit}", f"w{layer}{k}{unit}" * labels)
                    for k in range(widths[layer - 1])
                ]
    return Diagram(tuple(nodes), tuple(edges))


def chain(count: int) -> Diagram:
    nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(count))
    return Diagram(nodes, tuple(Edge(str(k), str(k + 1), "ab") for k in range(count - 1)))


def scattered(count: int, seed: int) -> Diagram:
    source = random.Random(seed)
    roles: tuple[Role, ...] = ("inner", "operation", "parameter", "constant", "input", "output")
    nodes = tuple(
        Node(str(k), f"x{k}", roles[k % 6], ("a*b + c",) if k % 3 else ()) for k in range(count)
    )
    edges = [
        Edge(str(tail), str(head), "ab, c" if (head + tail) % 2 else "")
        for head in range(1, count)
        for tail in sorted({source.randrange(max(0, head - 12), head) for _ in range(2)})
    ]
    return Diagram(nodes, tuple(edges))


def squares() -> Diagram:
    """Parallel edges: v1 = x*x, v2 = v1*v1; and a vertex that no edge touches."""
    nodes = (
        Node("x", "x", "input"),
        Node("alone", "unused", "parameter"),
        Node("v1", "mul", "operation"),
        Node("v2", "mul", "operation", ("= 16",)),
    )
    return Diagram(nodes, (Edge("x", "v1"), Edge("x", "v1"), Edge("v1", "v2"), Edge("v1", "v2")))


ALL = {
    "lecture": lecture(),
    "network": network(4, 8, 8, 1),
    "labelled-network": network(4, 8, 8, 1, labels=True),
    "chain": chain(40),
    "scattered-1": scattered(60, 1),
    "scattered-2": scattered(60, 2),
    "squares": squares(),
    "single": Diagram((Node("a", "a", "output"),), ()),
}


def overlaps(box: Box, other: Box, gap: float = 0.0) -> bool:
    """Whether two rectangles come closer than a gap."""
    across = abs(box.x - other.x) * 2 < box.width + other.width + 2 * gap
    return across and abs(box.y - other.y) * 2 < box.height + other.height + 2 * gap


def contains(box: Box, point: Point) -> bool:
    """Whether a point lies inside of a rectangle."""
    return overlaps(box, Box(*point, 0.0, 0.0))
