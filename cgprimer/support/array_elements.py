"""Values of elements and rows such as ``W[0,1]``, inserted into the arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.support.array_values import Value, convert_value
from cgprimer.support.value_names import Element, parse_element


def insert_elements(
    values: Mapping[str, Value],
    defaults: Mapping[str, Value],
    shapes: Mapping[str, tuple[int, ...]],
) -> Mapping[str, Value]:
    """Return values keyed by name, with values of elements such as ``x[0]`` inserted into arrays.

    Args:
        values: values of arrays, and of their elements and rows.
        defaults: values of arrays that ``values`` does not name.
        shapes: the shapes of the arrays.

    Raises:
        UsageError: an index is out of bounds, or the other elements of an array have no value.
    """
    parts = [(name, *parse_element(name)) for name in map(str, values)]
    parts = [part for part in parts if part[1] in shapes and part[2]]
    if not parts:
        return values
    elements = {name for name, _, _ in parts}
    arrays = {name: value for name, value in values.items() if name not in elements}
    for name, base, indices in sorted(parts, key=lambda part: len(part[2])):  # rows first
        _check_indices(name, base, indices, shapes[base])
        default = arrays.get(base, defaults.get(base, math.nan))
        arrays[base] = _replace_element(name, values[name], base, default, shapes[base], indices)
    import numpy as np

    for name, base, _ in parts:
        if base not in values and base not in defaults and np.isnan(arrays[base]).any():
            raise UsageError(
                f"{name!r} is set, but other elements of {base!r} have no value",
                hint=f"declare a value for {base!r}, or set all elements with {base}=0",
            )
    return arrays


def _check_indices(name: str, base: str, indices: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise UsageError if the indices of an element or row are out of bounds."""
    in_range = (-n <= i < n for i, n in zip(indices, shape, strict=False))
    if len(indices) > len(shape) or not all(in_range):
        first = Element(base, tuple(0 for _ in shape))
        last = Element(base, tuple(n - 1 for n in shape))
        raise UsageError(
            f"{name!r} is out of bounds: {base!r} has shape {list(shape)}",
            hint=f"use an element between {first} and {last}",
        )


def _replace_element(
    name: str,
    value: Value,
    base: str,
    default: Value,
    shape: tuple[int, ...],
    indices: tuple[int, ...],
) -> Value:
    """Return a copy of an array, for all samples, with one element or row replaced."""
    import numpy as np

    rest = shape[len(indices) :]  # the shape of a row
    part = np.asarray(convert_value(name, value, rest))
    filled = convert_value(base, default, shape)
    samples = np.broadcast_shapes(
        part.shape[: part.ndim - len(rest)], filled.shape[: filled.ndim - len(shape)]
    )
    array = np.array(np.broadcast_to(filled, (*samples, *shape)))
    selection: tuple[Any, ...] = (..., *indices, *[slice(None)] * len(rest))
    array[selection] = part
    return array
