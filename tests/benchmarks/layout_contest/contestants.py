"""The libraries, each asked as its documentation says and given the same sizes and gaps.

A library that knows only points gets its answer spread until the real vertices fit, by
`columns.py`. Lines are led on to the outlines of vertices as in cgprimer's own pictures.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import networkx

from cgprimer.visualization.diagrams.geometry import Box, Point, Size, round_corners
from cgprimer.visualization.diagrams.layout import COMFORTABLE
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.vertex_shapes import clip_to_outline

from .columns import LABEL_MARGIN, LAYER_GAP, NODE_GAP, in_columns, least_scale, straight
from .measures import Drawing
from .problems import Problem

_LONGEST = 5_000.0  # points from the middle of a force-directed layout
_CORNER = 36.0  # rounding of bends, as in cgprimer's pictures
Contestant = Callable[[Problem], Drawing]
Layers = dict[Any, int]


def as_drawn(problem: Problem) -> Drawing:
    """What `cgprimer draw` draws: graphlay with cgprimer's settings, and the work around it."""
    picture = slide_layout(problem.diagram)
    return Drawing(picture.layout.boxes, picture.layout.lines)


def graphlay(*, even: bool = False, **options: Any) -> Contestant:
    """graphlay, with cgprimer's gaps; `options` are its own.

    `even` asks twice: the second time with all vertices of a layer as wide as the widest, so that
    none stands in the way of what leaves its neighbour; lines are level up to the real outline.
    """

    def draw(problem: Problem) -> Drawing:
        sizes = {
            key: (w + 2 * COMFORTABLE.clear, h + 2 * COMFORTABLE.clear)
            for key, (w, h) in problem.sizes.items()
        }
        answer = _graphlay_answer(problem, sizes, options)
        keys = [node.key for node in problem.diagram.nodes]
        if even:
            layer = {k: raw["rank"] for k, raw in zip(keys, answer["nodes"], strict=True)}
            widest: dict[Any, float] = {}
            for key, (width, _) in sizes.items():
                widest[layer[key]] = max(width, widest.get(layer[key], 0.0))
            sizes = {key: (widest[layer[key]], height) for key, (_, height) in sizes.items()}
            answer = _graphlay_answer(problem, sizes, options)
        boxes = {
            key: Box(raw["center"]["x"], -raw["center"]["y"], *problem.sizes[key])
            for key, raw in zip(keys, answer["nodes"], strict=True)
        }
        lines = []
        for edge, raw in zip(problem.diagram.edges, answer["edges"], strict=True):
            route = [(point["x"], -point["y"]) for point in raw["points"]]
            if even:
                (x, y), (last_x, last_y) = route[0], route[-1]
                route = [(x - 1.0, y), *route, (last_x + 1.0, last_y)]
                before, after = (x + 1.0, y), (last_x - 1.0, last_y)
            else:
                before, after = route[1], route[-2]
            start = clip_to_outline(problem.shapes[edge.tail], boxes[edge.tail], before, route[0])
            end = clip_to_outline(problem.shapes[edge.head], boxes[edge.head], after, route[-1])
            lines.append(round_corners((start, *route[1:-1], end), _CORNER))
        return Drawing(boxes, tuple(lines))

    return draw


def _graphlay_answer(
    problem: Problem, sizes: Mapping[str, Size], options: Mapping[str, Any]
) -> dict[str, Any]:
    from graphlay import Graph, layout

    graph = Graph()
    for node in problem.diagram.nodes:
        graph.node(node.key, width=sizes[node.key][0], height=sizes[node.key][1])
    for edge, size in zip(problem.diagram.edges, problem.label_sizes, strict=True):
        label = {"label_size": {"width": size[0], "height": size[1]}} if size else {}
        graph.edge(edge.tail, edge.head, **label)
    spacing = {
        "layer_gap": LAYER_GAP - 2 * COMFORTABLE.clear,
        "node_gap": NODE_GAP - 2 * COMFORTABLE.clear,
        "dummy_gap": NODE_GAP - 2 * COMFORTABLE.clear,
        "edge_label_margin": LABEL_MARGIN,
    }
    labels = {"reservation": "always"}
    asked = {"direction": "leftright", "spacing": spacing, "labels": labels, **options}
    return layout(graph, preset="layered", options=asked).to_dict()


def fast_sugiyama(*, named: bool = False, **options: Any) -> Contestant:
    """Vertices are given as numbers unless `named`; its dummy vertices are the bends."""

    def draw(problem: Problem) -> Drawing:
        from fast_sugiyama import from_edges

        keys = [node.key for node in problem.diagram.nodes]
        name = {key: key if named else index for index, key in enumerate(keys)}
        pairs = [(name[e.tail], name[e.head]) for e in problem.diagram.edges]
        high = max(height for _, height in problem.sizes.values()) + NODE_GAP
        found = from_edges(
            pairs, vertex_spacing=high, dummy_vertices=True, dummy_size=0.3, **options
        ).align_layouts_horizontal(spacing=high)
        places: dict[Any, Point] = {}
        onward: dict[Any, list[Any]] = {}
        for positions, _, _, edges in found:
            layers = sorted({y for _, (_, y) in positions}, reverse=True)
            places.update((v, (layers.index(y), x)) for v, (x, y) in positions)
            for tail, head in edges or ():
                onward.setdefault(tail, []).append(head)
        chains = _chains(set(name.values()), onward)
        where = {key: places[name[key]] for key in keys if name[key] in places}
        for key in keys:  # it leaves out vertices without edges
            where.setdefault(key, (0.0, high * (len(where) + 1)))
        routes = [[places[dummy] for dummy in chains[pair].pop()] for pair in pairs]
        return in_columns(problem, where, routes)

    return draw


def multipartite(problem: Problem) -> Drawing:
    """Topological generations as layers, as in networkx's own gallery."""
    graph = _digraph(problem)
    for layer, keys in enumerate(networkx.topological_generations(graph)):
        for key in keys:
            graph.nodes[key]["layer"] = layer
    found = networkx.multipartite_layout(graph, subset_key="layer")
    high = max(height for _, height in problem.sizes.values()) + NODE_GAP
    step = _layer_step(graph, found) or 1.0
    where = {
        key: (float(graph.nodes[key]["layer"]), float(y) / step * high)
        for key, (_, y) in found.items()
    }
    return in_columns(problem, where, [[] for _ in problem.diagram.edges])


def force_directed(method: str) -> Contestant:
    """Kamada-Kawai or spring layout; the picture grows until no vertices overlap, if it can."""

    def draw(problem: Problem) -> Drawing:
        graph = _digraph(problem)
        if method == "spring":
            found = networkx.spring_layout(graph, seed=0)
        else:
            found = networkx.kamada_kawai_layout(graph)
        centres = {key: (float(x), float(y)) for key, (x, y) in found.items()}
        extent = max(max(abs(x), abs(y)) for x, y in centres.values()) or 1.0
        scale = min(least_scale(problem, centres), _LONGEST / extent)
        grown = {key: (x * scale, y * scale) for key, (x, y) in centres.items()}
        return straight(problem, grown)

    return draw


def grandalf(problem: Problem) -> Drawing:
    from grandalf.graphs import Edge, Graph, Vertex
    from grandalf.layouts import SugiyamaLayout

    vertices = {node.key: Vertex(node.key) for node in problem.diagram.nodes}
    for key, vertex in vertices.items():
        width, height = problem.sizes[key]
        vertex.view = _View(height, width)  # it draws from top to bottom
    edges = [Edge(vertices[e.tail], vertices[e.head]) for e in problem.diagram.edges]
    for edge in edges:
        edge.view = _Path()
    where: dict[str, Point] = {}
    bends: dict[Any, list[Point]] = {}
    below = 0.0
    for component in Graph(list(vertices.values()), edges).C:
        found = SugiyamaLayout(component)
        found.xspace, found.yspace = NODE_GAP, LAYER_GAP
        found.init_all(optimize=True)
        found.draw(3)
        low = min(v.view.xy[0] - v.view.w / 2 for v in component.sV)
        high = max(v.view.xy[0] + v.view.w / 2 for v in component.sV)
        for vertex in component.sV:
            where[vertex.data] = (found.grx[vertex].rank, vertex.view.xy[0] - low + below)
        for edge in component.sE:
            first = found.grx[edge.v[0]].rank + 1
            inner = enumerate(edge.view.points[1:-1])
            bends[edge] = [(first + k, x - low + below) for k, (x, _) in inner]
        below += high - low + NODE_GAP
    return in_columns(problem, where, [bends[edge] for edge in edges])


class _View:
    def __init__(self, w: float, h: float) -> None:
        self.w, self.h, self.xy = w, h, (0.0, 0.0)


class _Path:
    def __init__(self) -> None:
        self.points: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        self.points = list(points)


def graphviz(problem: Problem) -> Drawing:
    """`dot`, a program of its own: not to be chosen here, but what others are measured against."""
    number = {node.key: index for index, node in enumerate(problem.diagram.nodes)}
    lines = [
        "digraph { rankdir=LR;",
        f"graph [nodesep={NODE_GAP / 72:g}, ranksep={LAYER_GAP / 72:g}];",
        'node [shape=box, fixedsize=true, label=""]; edge [arrowhead=none];',
    ]
    for key, index in number.items():
        width, height = problem.sizes[key]
        lines.append(f"{index} [width={width / 72:.4f}, height={height / 72:.4f}];")
    for edge, size in zip(problem.diagram.edges, problem.label_sizes, strict=True):
        label = ""
        if size:
            table = f'<table border="0" fixedsize="true" width="{size[0]:.0f}"'
            label = f' [label=<{table} height="{size[1]:.0f}"><tr><td></td></tr></table>>]'
        lines.append(f"{number[edge.tail]} -> {number[edge.head]}{label};")
    text = "\n".join([*lines, "}"])
    done = subprocess.run(["dot", "-Tjson"], input=text, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    keys = list(number)
    centres = {
        keys[int(raw["name"])]: _pair(raw["pos"]) for raw in answer["objects"] if "pos" in raw
    }
    curves = [_bezier(raw["pos"]) for raw in answer.get("edges", ())]
    return Drawing({k: Box(*centres[k], *problem.sizes[k]) for k in keys}, tuple(curves))


def contestants() -> dict[str, Contestant]:
    """All that are here, by name; `missing` names those that are not."""
    diagonal = {"style": "diagonal", "port_sides": "facing_only"}
    found: dict[str, Contestant] = {
        "cgprimer draw (graphlay)": as_drawn,
        "graphlay, diagonal": graphlay(routing=diagonal),
        "graphlay, diagonal, thorough": graphlay(routing=diagonal, effort="thorough"),
        "graphlay, diagonal, Brandes-Koepf": graphlay(
            routing=diagonal, coords={"placement": "brandes_koepf"}
        ),
        "graphlay, diagonal, layers of even width": graphlay(even=True, routing=diagonal),
        "graphlay, orthogonal": graphlay(routing={"style": "orthogonal"}),
    }
    if not missing("fast_sugiyama"):
        found["fast-sugiyama"] = fast_sugiyama()
        found["fast-sugiyama, median"] = fast_sugiyama(crossing_minimization="median")
        found["fast-sugiyama, vertices by name"] = fast_sugiyama(named=True)
    if not missing("grandalf"):
        found["grandalf"] = grandalf
    found["networkx multipartite"] = multipartite
    found["networkx kamada_kawai"] = force_directed("kamada_kawai")
    found["networkx spring"] = force_directed("spring")
    if shutil.which("dot"):
        found["Graphviz dot (a binary)"] = graphviz
    return found


def missing(module: str) -> bool:
    return find_spec(module) is None


def _digraph(problem: Problem) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(node.key for node in problem.diagram.nodes)
    graph.add_edges_from((e.tail, e.head) for e in problem.diagram.edges)
    return graph


def _layer_step(graph: networkx.DiGraph, found: Mapping[str, Any]) -> float:
    """The least distance of two vertices of the same layer; 0 where every layer has one."""
    layers: dict[int, list[float]] = {}
    for key, (_, y) in found.items():
        layers.setdefault(graph.nodes[key]["layer"], []).append(float(y))
    gaps = [
        b - a
        for ys in layers.values()
        for a, b in zip(sorted(ys), sorted(ys)[1:], strict=False)
    ]  # fmt: skip
    return min(gaps, default=0.0)


def _chains(real: set[Any], onward: Mapping[Any, Sequence[Any]]) -> dict[Any, list[list[Any]]]:
    """The dummy vertices between the ends of every edge."""
    found: dict[Any, list[list[Any]]] = {}
    for tail in real:
        for first in onward.get(tail, ()):
            between, at = [], first
            while at not in real:
                between.append(at)
                at = onward[at][0]
            found.setdefault((tail, at), []).append(between)
    return found


def _pair(text: str) -> Point:
    x, y = text.split(",")
    return (float(x), float(y))


def _bezier(text: str) -> tuple[Point, ...]:
    points = [_pair(part) for part in text.split() if not part.startswith(("e,", "s,"))]
    line = [points[0]]
    for k in range(0, len(points) - 3, 3):
        a, b, c, d = points[k : k + 4]
        for step in range(1, 13):
            t = step / 12
            w = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            line.append(
                (
                    w[0] * a[0] + w[1] * b[0] + w[2] * c[0] + w[3] * d[0],
                    w[0] * a[1] + w[1] * b[1] + w[2] * c[1] + w[3] * d[1],
                )
            )
    return tuple(line)
