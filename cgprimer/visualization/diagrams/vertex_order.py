"""The natural order of vertices that can be exchanged without changing the picture.

A layout engine does not distinguish the elements of an array, and can place ``x[1]`` above
``x[0]``. If an exchange of such vertices is an automorphism of the graph, they are exchanged, so
they have the order of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from cgprimer.visualization.diagrams.geometry import Size

Edges = Sequence[tuple[str, str]]

_SIMILAR = 0.6  # minimum ratio of widths and heights of vertices that get equal sizes
_MAX_SIZE = 1_000  # vertices and edges: each round of the refinement visits all of them


def find_natural_order(
    layer: Mapping[str, int | None],
    height: Mapping[str, float],
    looks: Mapping[str, Hashable],
    edges: Edges,
) -> dict[str, str]:
    """Map vertices to new positions: interchangeable vertices are sorted by name and index.

    Args:
        layer: layer of each vertex, in natural order.
        height: vertical position of each vertex, increasing from top to bottom.
        looks: properties that must be equal for an exchange, such as size and shape.
        edges: pairs of tail and head.

    >>> edges = [("x[0]", "s"), ("x[1]", "s")]
    >>> layer, looks = {"x[0]": 0, "x[1]": 0, "s": 1}, dict.fromkeys(("x[0]", "x[1]", "s"), 0)
    >>> find_natural_order(layer, {"x[0]": 9.0, "x[1]": 0.0, "s": 5.0}, looks, edges)
    {'x[0]': 'x[1]', 'x[1]': 'x[0]', 's': 's'}
    """
    if len(layer) + len(edges) > _MAX_SIZE:
        return {}
    colors = _refine_colors({key: (layer[key], looks[key]) for key in layer}, edges)
    classes: dict[int, list[str]] = defaultdict(list)
    for key in layer:
        classes[colors[key]].append(key)
    slot_of: dict[str, str] = {}
    for keys in classes.values():
        slots = sorted(keys, key=height.__getitem__)
        slot_of.update(zip(keys, slots, strict=True))
    moved = sorted((slot_of[tail], slot_of[head]) for tail, head in edges)
    if all(key == slot for key, slot in slot_of.items()) or moved != sorted(edges):
        return {}
    return {key: slot_of[key] for key in layer}


def equalize_sizes(
    sizes: Mapping[str, Size], shapes: Mapping[str, Hashable], edges: Edges
) -> dict[str, Size]:
    """Enlarge interchangeable vertices of similar size to the same size.

    >>> equalize_sizes({"a": (40, 20), "b": (44, 20), "s": (9, 9)}, {}, [("a", "s"), ("b", "s")])
    {'a': (44, 20), 'b': (44, 20), 's': (9, 9)}
    """
    if len(sizes) + len(edges) > _MAX_SIZE:
        return dict(sizes)
    colors = _refine_colors({key: shapes.get(key) for key in sizes}, edges)
    alike: dict[int, list[Size]] = defaultdict(list)
    for key, size in sizes.items():
        alike[colors[key]].append(size)
    largest = {c: (max(w for w, _ in s), max(h for _, h in s)) for c, s in alike.items()}
    least = {c: (min(w for w, _ in s), min(h for _, h in s)) for c, s in alike.items()}
    similar = {
        c
        for c in alike
        if all(_SIMILAR * b <= a for a, b in zip(least[c], largest[c], strict=True))
    }
    return {key: largest[c] if (c := colors[key]) in similar else sizes[key] for key in sizes}


def _refine_colors(colors: Mapping[str, Hashable], edges: Edges) -> dict[str, int]:
    """Refine vertex colors until vertices with different neighborhoods have different colors.

    Source: Weisfeiler and Leman (1968), color refinement.
    """
    into: dict[str, list[str]] = defaultdict(list)
    onto: dict[str, list[str]] = defaultdict(list)
    for tail, head in edges:
        into[head].append(tail)
        onto[tail].append(head)
    numbers = _number_colors(colors)
    count = 0
    while count < len(set(numbers.values())):
        count = len(set(numbers.values()))
        refined = {
            key: (color, _sort_colors(numbers, into[key]), _sort_colors(numbers, onto[key]))
            for key, color in numbers.items()
        }
        numbers = _number_colors(refined)
    return numbers


def _sort_colors(numbers: Mapping[str, int], keys: Sequence[str]) -> tuple[int, ...]:
    """Return the colors of the given vertices in sorted order."""
    return tuple(sorted(map(numbers.__getitem__, keys)))


def _number_colors(colors: Mapping[str, Hashable]) -> dict[str, int]:
    """Replace colors by consecutive integers, starting at 0."""
    numbers: dict[Hashable, int] = {}
    return {key: numbers.setdefault(color, len(numbers)) for key, color in colors.items()}
