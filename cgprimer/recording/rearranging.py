"""Functions of numpy that move elements: they are asked where each goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.primitives import shaped
from cgprimer.recording.eager import EAGER
from cgprimer.recording.value import Value


def value_of(a: Any) -> Any:
    """An argument as a value; lists of values are joined."""
    if isinstance(a, Value):
        return a
    if isinstance(a, list | tuple) and any(isinstance(part, Value) for part in a):
        return joined(a)
    return Value(a, requires_grad=False)


def joined(parts: Any, axis: int = 0) -> Any:
    """``numpy.stack``: values of one shape along an axis of their own."""
    grown = []
    for part in map(value_of, parts):
        place = axis % (part.ndim + 1)
        grown.append(part.reshape(*part.shape[:place], 1, *part.shape[place:]))
    return shaped.concatenate(EAGER, grown, axis)


def rearranged(function: Callable[..., Any], most: int = 9) -> Callable[..., Any]:
    """A function of numpy that moves elements: it is asked where each goes; 0 fills the rest."""

    def applied(a: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) + len(kwargs) > most or "out" in kwargs:
            raise TypeError(f"out=, or more than {most} arguments after the array")
        a = value_of(a)
        places = function(places_of(a), *args, **kwargs)
        return [placed(a, p) for p in places] if isinstance(places, list) else placed(a, places)

    return applied


def places_of(a: Any) -> Any:
    """For each element its place, counted from 1."""
    return np.arange(1, a.size + 1).reshape(a.shape)


def placed(a: Any, places: Any) -> Any:
    """The elements at such places, 0 at 0; by a shape, an order of axes or slices if these do."""
    own = places_of(a)
    if np.array_equal(places.reshape(-1), own.reshape(-1)):
        return a.reshape(places.shape)
    if places.ndim == a.ndim and places.size and places.all():
        order = np.argsort(np.argsort([-step for step in places.strides], kind="stable"))
        if places.size == a.size and np.array_equal(own.transpose(order), places):
            return a.transpose(order.tolist())
        key = []
        first = np.unravel_index(places.flat[0] - 1, a.shape)
        for axis, (begin, n) in enumerate(zip(map(int, first), places.shape, strict=True)):
            second = places.take(min(1, n - 1), axis).flat[0] - 1
            step = int(np.unravel_index(second, a.shape)[axis]) - begin or 1
            end = begin + step * n
            key.append(slice(begin, end if end >= 0 else None, step))
        if np.array_equal(own[tuple(key)], places):
            return a[tuple(key)]
    if not a.size:
        return a.sum() * np.zeros(places.shape, a.dtype)
    made = a.reshape(-1)[places - 1]
    return made if places.all() else np.where(places > 0, made, 0.0)
