"""The natural order of vertices that a layout may exchange without changing the picture.

A layout engine sees no difference between the elements of an array, and may put ``x[1]`` above
``x[0]``. Where such vertices can be exchanged (where that is an automorphism of the graph), they
are, so that they stand in the order in which they come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from cgprimer.visualization.diagrams.geometry import Size

Edges = Sequence[tuple[str, str]]

_SIMILAR = 0.6  # of the largest width and height: vertices that get equal sizes
_MOST = 1_000  # vertices and edges: each round of the refinement reads all of them


def natural_order(
    layer: Mapping[str, int | None],
    height: Mapping[str, float],
    looks: Mapping[str, Hashable],
    edges: Edges,
) -> dict[str, str]:
    """Return for each vertex the one whose position it takes; an empty mapping for no change.

    Args:
        layer: of each vertex, in their natural order.
        height: of each vertex in its layer, increasing from top to bottom.
        looks: what must be equal of vertices that are exchanged, such as size and shape.
        edges: pairs of vertices.

    >>> edges = [("x[0]", "s"), ("x[1]", "s")]
    >>> layer, looks = {"x[0]": 0, "x[1]": 0, "s": 1}, dict.fromkeys(("x[0]", "x[1]", "s"), 0)
    >>> natural_order(layer, {"x[0]": 9.0, "x[1]": 0.0, "s": 5.0}, looks, edges)
    {'x[0]': 'x[1]', 'x[1]': 'x[0]', 's': 's'}
    """
    if len(layer) + len(edges) > _MOST:
        return {}
    colours = _refine_colours({key: (layer[key], looks[key]) for key in layer}, edges)
    alike: dict[int, list[str]] = defaultdict(list)
    for key in layer:
        alike[colours[key]].append(key)
    found: dict[str, str] = {}
    for keys in alike.values():
        slots = sorted(keys, key=height.__getitem__)
        found.update(zip(keys, slots, strict=True))
    moved = sorted((found[tail], found[head]) for tail, head in edges)
    if all(key == slot for key, slot in found.items()) or moved != sorted(edges):
        return {}
    return {key: found[key] for key in layer}


def equalize_sizes(
    sizes: Mapping[str, Size], shapes: Mapping[str, Hashable], edges: Edges
) -> dict[str, Size]:
    """Return sizes that are equal for vertices which could be exchanged, if they are similar.

    >>> equalize_sizes({"a": (40, 20), "b": (44, 20), "s": (9, 9)}, {}, [("a", "s"), ("b", "s")])
    {'a': (44, 20), 'b': (44, 20), 's': (9, 9)}
    """
    if len(sizes) + len(edges) > _MOST:
        return dict(sizes)
    colours = _refine_colours({key: shapes.get(key) for key in sizes}, edges)
    alike: dict[int, list[Size]] = defaultdict(list)
    for key, size in sizes.items():
        alike[colours[key]].append(size)
    largest = {c: (max(w for w, _ in s), max(h for _, h in s)) for c, s in alike.items()}
    least = {c: (min(w for w, _ in s), min(h for _, h in s)) for c, s in alike.items()}
    similar = {
        c
        for c in alike
        if all(_SIMILAR * b <= a for a, b in zip(least[c], largest[c], strict=True))
    }
    return {key: largest[c] if (c := colours[key]) in similar else sizes[key] for key in sizes}


def _refine_colours(colours: Mapping[str, Hashable], edges: Edges) -> dict[str, int]:
    """Return colours that differ where vertices or their neighbourhoods do.

    Source: Weisfeiler and Leman (1968), colour refinement.
    """
    into: dict[str, list[str]] = defaultdict(list)
    onto: dict[str, list[str]] = defaultdict(list)
    for tail, head in edges:
        into[head].append(tail)
        onto[tail].append(head)
    numbers = _number_colours(colours)
    count = 0
    while count < len(set(numbers.values())):
        count = len(set(numbers.values()))
        numbers = _number_colours(
            {
                key: (own, _sorted_colours(numbers, into[key]), _sorted_colours(numbers, onto[key]))
                for key, own in numbers.items()
            }
        )
    return numbers


def _sorted_colours(numbers: Mapping[str, int], keys: Sequence[str]) -> tuple[int, ...]:
    """Return the colours of some vertices, in order."""
    return tuple(sorted(map(numbers.__getitem__, keys)))


def _number_colours(colours: Mapping[str, Hashable]) -> dict[str, int]:
    """Return small integers in the place of colours."""
    known: dict[Hashable, int] = {}
    return {key: known.setdefault(colour, len(known)) for key, colour in colours.items()}
