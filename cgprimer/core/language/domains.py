"""Domains of inputs: the values that an input may have, such as the labels of two classes.

A domain is a finite set of numbers or ``one-hot``. It is written behind a declaration,
``input y = 1 in {0, 1}``, and says which values an input has wherever values are sampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from cgprimer.core.language.syntax import Shape

ONE_HOT = "one-hot"
Domain: TypeAlias = tuple[float, ...] | str  #: a finite set of numbers, or ``one-hot``


def contains(domain: Domain, value: Any) -> bool:
    """Return whether a value, a number or nested sequences of numbers, lies in a domain.

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
    """Return why an input of this shape cannot have the domain; empty if it can."""
    if domain != ONE_HOT or (shape and shape[-1] > 1):
        return ""
    is_ = "has one class only" if shape else "is a number"
    return f"a one-hot input is an array with two or more classes on its last axis; this one {is_}"


def set_problem(numbers: Sequence[float]) -> tuple[str, int]:
    """Return why numbers are not a finite set, and the index of the number at fault.

    The text is empty if they are one.

    >>> set_problem([0.0, 1.0, 0.0])
    ('a domain has each value once; 0 is repeated', 2)
    """
    if not numbers:
        return "a domain has at least one value, as in {0, 1}", 0
    known = set[float]()
    for index, value in enumerate(numbers):
        if not math.isfinite(value):
            return f"the values of a domain are finite, got {value:g}", index
        if value in known:
            return f"a domain has each value once; {value:g} is repeated", index
        known.add(value)
    return "", 0
