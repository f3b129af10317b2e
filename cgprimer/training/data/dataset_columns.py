"""Columns: made arrays of, put together to arrays per sample, and what they are read from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from cgprimer.errors import DataError, UsageError, name_hint
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.value_names import Element
from cgprimer.tapes import elements, tape

Array = Any
SKIP = "take such samples out before training"
ROWS = 1 << 18  # of a block, about, where a file does not say: 2 MB a column
_ELEMENT = re.compile(r"(.*)\[([0-9]{1,9}(?:, ?[0-9]{1,9})*)\]")  # x[0], x[0,1]


class Source:
    """Where columns come from: a file or a frame, with its names, read a block at a time.

    Attributes:
        place: what messages begin with.
        names: of all its columns.
        roles: whether names tell inputs from targets, as ``inputs/xa``; else the last is a target.
    """

    place: str
    names: Sequence[str]
    roles: ClassVar[bool] = False

    def blocks(self, names: Sequence[str]) -> Iterator[list[Array]]:
        """These columns of all blocks, one after the other."""
        return (self.read(k, names) for k in range(len(self.lengths(names))))

    def lengths(self, names: Sequence[str]) -> list[int]:
        """How many samples each block has, in these columns."""
        return [len(block[0]) for block in self.blocks(names)]

    def whole(self, names: Sequence[str]) -> list[Array]:
        """These columns of all blocks together, as arrays of their own."""
        return list(map(np.concatenate, zip(*self.blocks(names), strict=True)))

    def size(self, names: Sequence[str]) -> int:
        """About how many numbers these columns have."""
        return sum(self.lengths(names)) * len(names)

    def read(self, block: int, names: Sequence[str]) -> list[Array]:
        """These columns of a block: arrays of numbers, not necessarily doubles.

        Raises:
            DataError: a column that is not of numbers, lacks one or has another length than others;
                a file that is damaged, or unpacks to far more than it is.
        """
        raise NotImplementedError


def as_column(what: str, values: Any) -> Array:
    """A contiguous array of doubles, samples first; anything else is a DataError."""
    masked = type(values).__name__ == "MaskedArray"
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or masked:
            raise TypeError
    except (TypeError, ValueError):
        hint = "it is masked: filled(0.0), say" if masked else ""
        raise DataError(f"{what} is not an array of real numbers", hint=hint) from None
    if not array.ndim:
        raise DataError(f"{what} has 0 dimensions; a column has a value per sample, as in [0.5]")
    return np.ascontiguousarray(array, dtype=np.float64)


def base(name: str) -> str:
    """What an element belongs to: ``x`` for ``x[0]``; else the name itself."""
    found = _ELEMENT.fullmatch(name)
    return found[1] if found else name


def column_of(given: Mapping[str, Array], name: str, role: str) -> Array:
    """A dataset's column; where there is none a DataError that names those of the same role."""
    if name not in given:
        own = f"its {role}s are {', '.join(given) or 'none'}"
        raise DataError(f"the dataset has no {role} {name!r}; {own}", hint=name_hint(name, given))
    return given[name]


def numbers_in(graph: ExpressionGraph, names: Iterable[str]) -> list[str]:
    """What the numbers of some variables or inputs of a graph are called: ``x[0]``, ``x[1]``."""
    whole = tape(graph)
    return [e for n in names for e in elements(n, whole.shapes[whole.index(n)])]


def together(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Columns of elements put together to those of arrays.

    Raises:
        DataError: an element is missing, stands twice, or is none of one number.
    """
    parts: dict[str, dict[tuple[int, ...], Array]] = {}
    for name, column in columns.items():
        found = _ELEMENT.fullmatch(name)
        place = tuple(map(int, found[2].split(","))) if found else ()
        known = parts.setdefault(base(name), {})
        if place in known or (known and not (place and next(iter(known)))):
            raise DataError(f"the column {name!r} stands beside another of the same numbers")
        if place and (column.ndim > 1 or len(place) != len(next(iter(known), place))):
            raise DataError(f"the column {name!r} does not fit those of {base(name)!r} beside it")
        known[place] = column
    made: dict[str, Array] = {}
    for name, of in parts.items():
        if () in of:
            made[name] = of[()]
            continue
        shape = tuple(max(ns) + 1 for ns in zip(*of, strict=True))
        order = []
        for k in range(min(math.prod(shape), len(of) + 1)):
            order.append(tuple(k // math.prod(shape[i + 1 :]) % n for i, n in enumerate(shape)))
            if order[-1] not in of:
                missing = str(Element(name, order[-1]))
                what = f"the column {missing!r} is missing among {len(of)} of {name!r}"
                raise DataError(what, hint="elements are counted from 0, and none is left out")
        whole = np.stack([of[place] for place in order], axis=1)
        made[name] = whole.reshape(len(whole), *shape)
    return made


def numbers_of(chosen: Any, samples: int) -> Array:
    """The numbers of the samples that a mask, or their numbers, choose."""
    numbers = np.arange(*chosen.indices(samples)) if isinstance(chosen, slice) else chosen
    try:
        found = np.array(numbers, None if np.size(numbers) else int)
        _ = np.broadcast_to(np.int8(0), samples)[found]  # is there such: however many there are
    except (IndexError, ValueError, TypeError) as error:
        raise UsageError(f"samples are chosen by a list of numbers or a mask: {error}") from None
    if found.ndim != 1:
        raise UsageError(f"samples are chosen by a list of numbers or a mask, not by {chosen!r}")
    return np.flatnonzero(found) if found.dtype == bool else found.astype(int) % max(samples, 1)
