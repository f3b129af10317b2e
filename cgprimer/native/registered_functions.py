"""Primitives from outside: functions that somebody registered, called with care."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgprimer.errors import EngineError

Array = Any


def result_of(
    name: str, function: Callable[..., Array], operands: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """What a function makes of arrays; it gets copies, which it may keep or change.

    Raises:
        EngineError: the result is no array of real numbers of the operands' shape.

    >>> import numpy as np
    >>> result_of("twice", lambda a: a + a, [np.ones(2)], (2,))
    array([2., 2.])
    """
    found = function(*[np.array(operand) for operand in operands])
    array = np.asarray(found)
    if found is None or array.dtype.kind not in "biuf":
        kind = "None" if found is None else f"numbers of the type {array.dtype}"
        raise EngineError(f"the primitive {name!r} returned {kind}; it must return real numbers")
    if array.shape not in ((), shape):
        raise EngineError(
            f"the primitive {name!r} returned the shape {array.shape} for operands of the shape"
            f" {shape}",
            hint="a primitive works element by element, on arrays of any length",
        )
    return array
