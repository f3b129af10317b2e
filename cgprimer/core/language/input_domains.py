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


def contains(domain: Domain, value: Any) -> bool:
    """Return whether a value (a scalar or nested sequences of numbers) is in a domain.

    Each number of an array must be in a finite set; each row of its last axis must be one-hot.

    >>> contains((0.0, 1.0), 1.0), contains((-1.0, 1.0), ((1.0, 0.0), (1.0, -1.0)))
    (True, False)
    >>> contains("one-hot", (0.0, 1.0, 0.0)), contains("one-hot", (0.0, 1.0, 1.0))
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
    if not isinstance(value, Sequence):
        return False
    if any(isinstance(part, Sequence) for part in value):
        return all(map(_is_one_hot, value))
    return sorted(value) == [0.0] * (len(value) - 1) + [1.0]


def shape_problem(domain: Domain, shape: Shape) -> str:
    """Return an error message, or an empty text if an input of this shape can have the domain."""
    if domain != ONE_HOT or (shape and shape[-1] > 1):
        return ""
    actual = f"[{','.join(map(str, shape))}]" if shape else "a scalar"
    return f"a one-hot input must have two or more classes on its last axis, got {actual}"


def set_problem(numbers: Sequence[float]) -> tuple[str, int]:
    """Return an error message and the index of the invalid number; ("", 0) for a valid set.

    >>> set_problem([0.0, 1.0, 0.0])
    ('the values of a domain must be distinct; 0 is repeated', 2)
    """
    if not numbers:
        return "a domain must have at least one value, as in {0, 1}", 0
    previous = set[float]()
    for index, value in enumerate(numbers):
        if not math.isfinite(value):
            return f"the values of a domain must be finite, got {value:g}", index
        if value in previous:
            return f"the values of a domain must be distinct; {value:g} is repeated", index
        previous.add(value)
    return "", 0
