"""Domains of inputs: the possible values of an input, such as the labels of two classes.

A domain is a finite set of numbers or ``one-hot``. It is written after a declaration,
``input y = 1 in {0, 1}``, and restricts the values that are sampled for the input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from cgprimer.core.language.syntax_tree import Shape

ONE_HOT = "one-hot"
Domain: TypeAlias = tuple[float, ...] | str  #: a finite set of numbers, or ``one-hot``


def domain_contains(domain: Domain, value: Any) -> bool:
    """Return whether a domain contains a scalar, or all elements of an array (nested sequences).

    A finite set must contain every element of an array. If the domain is ``one-hot``, every vector
    along the last axis must be one-hot.

    >>> domain_contains((0.0, 1.0), 1.0)
    True
    >>> domain_contains((-1.0, 1.0), ((1.0, 0.0), (1.0, -1.0)))
    False
    >>> domain_contains("one-hot", (0.0, 1.0, 0.0)), domain_contains("one-hot", (0.0, 1.0, 1.0))
    (True, False)
    """
    if domain == ONE_HOT:
        return _is_one_hot(value)
    allowed, pending = frozenset(domain), [value]
    while pending:
        part = pending.pop()
        if isinstance(part, Sequence):
            pending.extend(part)
        elif part not in allowed:
            return False
    return True


def _is_one_hot(value: Any) -> bool:
    """Return whether every vector along the last axis of nested sequences is one-hot."""
    if not isinstance(value, Sequence):
        return False
    if any(isinstance(part, Sequence) for part in value):
        return all(map(_is_one_hot, value))
    return sorted(value) == [0.0] * (len(value) - 1) + [1.0]


def domain_shape_error(domain: Domain, shape: Shape) -> str:
    """Return the error message for a one-hot input of unsuitable shape, or an empty string."""
    if domain != ONE_HOT or (shape and shape[-1] > 1):
        return ""
    actual = f"[{','.join(map(str, shape))}]" if shape else "a scalar"
    return f"a one-hot input must have two or more classes on its last axis, got {actual}"


def domain_values_error(values: Sequence[float]) -> tuple[str, int]:
    """Return the error message for an invalid domain and the index of the invalid value.

    For a valid domain the result is ``("", 0)``.

    >>> domain_values_error([0.0, 1.0, 0.0])
    ('the values of a domain must be distinct; 0 is repeated', 2)
    """
    if not values:
        return "a domain must have at least one value, as in {0, 1}", 0
    previous = set[float]()
    for index, value in enumerate(values):
        if not math.isfinite(value):
            return f"the values of a domain must be finite, got {value:g}", index
        if value in previous:
            return f"the values of a domain must be distinct; {value:g} is repeated", index
        previous.add(value)
    return "", 0
