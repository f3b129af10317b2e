"""Parsers of drawn diagrams, independent of the code that writes them.

All positions are page coordinates in points: x increases to the right, y downwards.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_formats import format_diagram, save_diagram
from cgprimer.visualization.diagrams.geometry import Box, Point

_LATEX = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textless{}": "<", r"\char36{}": "$",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"\ensuremath{\to}": "→",
    r"\ensuremath{\leftarrow}": "←", r"\ensuremath{-}": "-", r"{\ttfamily\char34}": '"',
    r"\^{}": "^", r"\ensuremath{\partial}": "∂", r"\ensuremath{\cdot}": "·",
    r"\ensuremath{\times}": "×", r"\ensuremath{\approx}": "≈",
}  # fmt: skip
_HEAD = 20.0  # length of the largest arrow head


@dataclass
class Vertex:
    """A drawn vertex: its lines of text without spaces, its style, and its outline if known."""

    text: str
    bold: bool = False
    dashed: bool = False
    box: Box | None = None


@dataclass
class Arrow:
    """A drawn arrow with the labels of the vertices at its ends, in the direction of its head."""

    tail: str
    head: str
    label: str | None = None
    bold: bool = False
    dashed: bool = False
    line: list[Point] = field(default_factory=list)


@dataclass
class Picture:
    """A parsed picture; `texts` are the texts outside of vertices, `parts` sets of vertices."""

    vertices: dict[str, Vertex]
    arrows: list[Arrow]
    parts: list[set[str]]
    texts: list[tuple[str, Point]] = field(default_factory=list)
    frames: list[Box] = field(default_factory=list)


def squeeze(lines: Iterable[str]) -> str:
    """Join lines of text and remove all spaces: lines may be broken anywhere."""
    return "".join("".join(lines).split())


@dataclass
class _Shape:
    """A closed outline or an open line, with its width, and True if it has dashes or no fill."""

    points: list[Point]
    width: float = 0.0
    dashed: bool = False
    filled: bool = False

    @property
    def box(self) -> Box:
        """The bounding box."""
        low, high = np.min(self.points, axis=0), np.max(self.points, axis=0)
        return Box(*map(float, [*(low + high) / 2, *high - low]))


def _assemble(
    outlines: Sequence[_Shape], lines: Sequence[_Shape], texts: Sequence[tuple[str, Point]]
) -> Picture:
    """Assign texts to the outlines around them, and the ends of lines to vertices."""
    vertices: dict[str, Vertex] = {}
    rest, free = list(texts), list[tuple[str, Point]]()
    for shape in sorted(outlines, key=lambda shape: -shape.box.width):
        inside = [text for text in rest if _is_inside(shape.box, text[1])]
        if inside:
            inside.sort(key=lambda text: text[1][1])
            rest = [text for text in rest if text not in inside]
            name = inside[0][0].partition("\n")[0]
            lines_of_text = squeeze(text for text, _ in inside)
            vertices[name] = Vertex(lines_of_text, shape.width > 4, shape.dashed, shape.box)
    free += rest
    frames = [line for line in lines if len(line.points) == 5 and line.points[0] == line.points[-1]]
    arrows: dict[tuple[Point, Point], Arrow] = {}
    for line in lines:
        ends = [_find_vertex(vertices, line.points[k]) for k in (0, -1)]
        if line in frames or None in ends:
            continue
        made = Arrow(str(ends[0]), str(ends[1]), None, line.width > 4, line.dashed, line.points)
        arrows.setdefault((line.points[0], line.points[-1]), made)
    centers = {name: (v.box.x, v.box.y) for name, v in vertices.items() if v.box}
    parts = [
        (frame.box, {name for name, center in centers.items() if _is_inside(frame.box, center)})
        for frame in frames
    ]
    parts = [(box, inside) for box, inside in parts if inside]  # others belong to the legend
    members, boxes = [inside for _, inside in parts], [box for box, _ in parts]
    return Picture(vertices, [*arrows.values()], members, free, boxes)


def _is_inside(box: Box, point: Point, margin: float = 0.0) -> bool:
    """Return whether a point lies in a box that is larger by a margin."""
    x, y = abs(point[0] - box.x), abs(point[1] - box.y)
    return x <= box.width / 2 + margin and y <= box.height / 2 + margin


def _find_vertex(vertices: dict[str, Vertex], point: Point) -> str | None:
    """Return the label of the vertex at whose outline a point lies."""
    found = [n for n, v in vertices.items() if v.box and _is_inside(v.box, point, 1.0)]
    return found[0] if len(found) == 1 else None


def _add_heads(shafts: Sequence[_Shape], heads: Sequence[_Shape]) -> list[_Shape]:
    """Extend each shaft to the tip of the arrow head at its end; closed frames have no head."""
    made = []
    for shaft in shafts:
        end = shaft.points[-1]
        near = sorted(heads, key=lambda head: math.dist(end, np.mean(head.points, axis=0)))
        if near and math.dist(end, near[0].points[0]) < _HEAD:
            made.append(_Shape([*shaft.points, near[0].points[0]], shaft.width, shaft.dashed))
        elif shaft.points[0] == end:
            made.append(shaft)
    return sorted(made, key=lambda shape: -shape.width)  # the wide line of a double line first


def parse_svg(diagram: Diagram, folder: Path) -> Picture:
    """Parse the paths of an SVG file; the text of a group of glyphs is in a comment."""
    save_diagram(diagram, folder / "picture.svg")
    builder = ElementTree.TreeBuilder(insert_comments=True)
    tree = ElementTree.parse(folder / "picture.svg", ElementTree.XMLParser(target=builder))
    name = "{http://www.w3.org/2000/svg}"
    outlines, heads, shafts, texts = [], [], [], []
    for group in tree.iter(f"{name}g"):
        kind = group.get("id", "")
        path = group.find(f"{name}path")
        if path is not None and kind.startswith(("patch", "line2d")):
            style = dict(part.split(": ") for part in path.get("style", "").split("; "))
            rows = [row.split() for row in re.findall(r"[MLQC]([^A-Za-z]+)", path.get("d", ""))]
            points = [(float(row[-2]), float(row[-1])) for row in rows]
            width = float(style.get("stroke-width", 1.0)) if "stroke" in style else 0.0
            dash = float(style.get("stroke-dasharray", "0").split(",")[0])
            shape = _Shape(points, width, dash > 2 * width)
            closed = path.get("d", "").rstrip().endswith("z")
            target = shafts if not closed else outlines if width else heads
            target.append(shape)
        if kind.startswith("text"):
            (words,) = (e.text for e in group.iter() if e.tag is ElementTree.Comment)
            glyphs = next(e for e in group.iter(f"{name}g") if e.get("transform"))
            x, y, x_scale, y_scale = map(
                float, re.findall(r"-?[\d.]+", glyphs.get("transform", ""))
            )
            assert x_scale == -y_scale > 0  # glyphs have a y axis that points up
            texts.append((html.unescape(str(words)).strip(), (x, y)))
    triangles = [head for head in heads if len(head.points) == 3]
    return _assemble(outlines, _add_heads(shafts, triangles), texts)


def parse_tikz(diagram: Diagram, folder: Path) -> Picture:
    """Parse the commands of a tikzpicture with the directions of its axes; TikZ's y points up."""
    text = format_diagram(diagram, "tex")
    axes = re.search(r"\[x=(-?[\d.]+)bp, y=(-?[\d.]+)bp", text)
    assert axes
    right, up = map(float, axes.groups())

    def place(points: str) -> list[Point]:
        pairs = re.findall(r"\((-?[\d.]+),(-?[\d.]+)\)", points)
        return [(right * float(x), -up * float(y)) for x, y in pairs]

    outlines, lines, texts = [], [], []
    for style, body in re.findall(r"\\path\[(.*?)\] (.*);", text):
        shape = _Shape(place(body), 4.2 if "path vertex" in style else 1.0, "dashed" in style)
        if "dash dot" in style:
            (left, top), (far, low) = shape.points
            corners = [(left, top), (far, top), (far, low), (left, low), (left, top)]
            lines.append(_Shape(corners))
        else:
            outlines.append(shape)
    for style, body in re.findall(r"\\draw\[(.*?)\] (.*);", text):
        lines.append(_Shape(place(body), 6.0 if "path edge" in style else 1.8, "dashed" in style))
    for point, body in re.findall(r"\\node\[.*\] at (\(.*?\)) \{(.*)\};", text):
        words = re.sub(r"\\fontsize\{.*?\}\{.*?\}\\selectfont |\\bfseries\\boldmath ", "", body)
        words = re.sub(r"^\{(.*?)\\strut\}", r"\1", words).replace(r"\\{}", "\n")
        for command, sign in _LATEX.items():
            words = words.replace(command, sign)
        texts.append((re.sub(r"\\([#$%&_{}])", r"\1", words), place(point)[0]))
    return _assemble(outlines, lines, texts)


def parse_dot(diagram: Diagram, folder: Path) -> Picture:
    """Parse the statements of a DOT file."""
    text = format_diagram(diagram, "dot")
    quoted = r'"((?:[^"\\]|\\.)*)"'
    names, vertices, arrows = {}, {}, []
    default = float(re.findall(r"edge \[.*penwidth=([\d.]+)", text)[0])
    for key, label, more in re.findall(rf"^  {quoted} \[label=<(.*)>, (.*)\];$", text, re.M):
        lines = re.split("<br/>", label)
        plain = [html.unescape(re.sub(r"<[^<>]*>", "", line)) for line in lines]
        names[key] = plain[0]
        width = float(re.findall(r"penwidth=([\d.]+)", more)[0])
        vertices[plain[0]] = Vertex(squeeze(plain), width > 3.5, "dashed" in more)
    for tail, head, more in re.findall(rf"^  {quoted} -> {quoted}(.*);$", text, re.M):
        label = re.search(rf"label={quoted}", more)
        words = squeeze(label[1].split("\\n")).replace('\\"', '"') if label else ""
        width = float((re.findall(r"penwidth=([\d.]+)", more) or [default])[0])
        ends = (head, tail) if "dir=back" in more else (tail, head)
        arrows.append(
            Arrow(names[ends[0]], names[ends[1]], words, width > default, "dashed" in more)
        )
    parts = [
        {names[key] for key in re.findall(rf"^    {quoted};$", body, re.M)}
        for body in re.findall(r'subgraph "cluster part \d+" \{(.*?)^  \}', text, re.M | re.S)
    ]
    return Picture(vertices, arrows, parts)


def parse_mermaid(diagram: Diagram, folder: Path) -> Picture:
    """Parse the statements of a Mermaid flowchart."""
    text = format_diagram(diagram, "mmd")

    def decode(label: str) -> list[str]:
        plain = re.sub("</?b>", "", label).split("<br/>")
        return [re.sub(r"#(\d+);", lambda found: chr(int(found[1])), line) for line in plain]

    classes = {kind: set(names.split(",")) for names, kind in
               re.findall(r"^  class (\S+) (\w+)$", text, re.M)}  # fmt: skip
    names, vertices = {}, {}
    for key, label in re.findall(r'^  (n\d+)\W+"(.*)"\W+:::\w+$', text, re.M):
        lines = decode(label)
        names[key] = lines[0]
        bold, dashed = (key in classes.get(kind, ()) for kind in ("path", "dropped"))
        vertices[lines[0]] = Vertex(squeeze(lines), bold, dashed)
    arrows = [
        Arrow(names[tail], names[head], squeeze(decode(label)), sign == "==>", sign == "-.->")
        for tail, sign, label, head in re.findall(
            r'^  (n\d+) (==>|-->|-\.->)(?:\|"(.*)"\|)? (n\d+)$', text, re.M
        )
    ]
    parts = [
        {names[key] for key in re.findall(r"^    (n\d+)$", body, re.M)}
        for body in re.findall(r"^  subgraph part\d+(.*?)^  end$", text, re.M | re.S)
    ]
    return Picture(vertices, arrows, parts)


PARSERS: dict[str, Callable[[Diagram, Path], Picture]] = {
    "svg": parse_svg,
    "tex": parse_tikz,
    "dot": parse_dot,
    "mmd": parse_mermaid,
}


def distance_to_line(point: Point, line: Sequence[Point]) -> float:
    """Return the distance of a point from a polyline."""
    distances = []
    for (ax, ay), (bx, by) in pairwise(line):
        length = max((bx - ax) ** 2 + (by - ay) ** 2, 1e-12)
        share = ((point[0] - ax) * (bx - ax) + (point[1] - ay) * (by - ay)) / length
        share = min(max(share, 0.0), 1.0)
        distances.append(math.dist(point, (ax + share * (bx - ax), ay + share * (by - ay))))
    return min(distances)
