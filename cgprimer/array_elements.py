"""Values of single elements of arrays, given by their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.numbers_and_arrays import Value, as_value


def put_in_place(
    at: Mapping[str, Value],
    given: Mapping[str, Value],
    shapes: Mapping[str, tuple[int, ...]],
    read: Callable[[str], tuple[str, tuple[int, ...]]],
) -> Mapping[str, Value]:
    """Values by name, with those of elements and rows such as ``x[0]`` put into their arrays.

    Args:
        at: values by names, of arrays and of their elements.
        given: values that arrays have otherwise.
        shapes: of the arrays.
        read: what reads a name: the array's and the place.

    Raises:
        UsageError: there is no such element, or the array has no value for its other ones.
    """
    parts = [(name, *read(name)) for name in at if "[" in str(name)]
    parts = [part for part in parts if part[1] in shapes and part[2]]
    if not parts:
        return at
    found = {name: value for name, value in at.items() if name not in {p[0] for p in parts}}
    for name, base, place in sorted(parts, key=lambda part: len(part[2])):  # rows come first
        shape = shapes[base]
        if len(place) > len(shape) or not all(
            -n <= i < n for i, n in zip(place, shape, strict=False)
        ):
            first = f"{base}[{','.join('0' for _ in shape)}]"
            last = f"{base}[{','.join(str(n - 1) for n in shape)}]"
            raise UsageError(
                f"{base!r} has the shape {list(shape)}: there is no {name!r}",
                hint=f"its elements are {first} to {last}",
            )
        rest = shape[len(place) :]  # of x[0] a row
        value = np.asarray(as_value(name, at[name], rest))
        known = as_value(base, found.get(base, given.get(base, math.nan)), shape)
        samples = np.broadcast_shapes(
            value.shape[: value.ndim - len(rest)], known.shape[: known.ndim - len(shape)]
        )
        found[base] = np.array(np.broadcast_to(known, (*samples, *shape)))
        found[base][(..., *place, *[slice(None)] * len(rest))] = value
    for name, base, _ in parts:
        if np.isnan(found[base]).any() and base not in at and base not in given:
            raise UsageError(
                f"{name!r} has a value and {base!r} has none for its other elements",
                hint=f"declare it, or give all: {base}=0 fills an array",
            )
    return found
