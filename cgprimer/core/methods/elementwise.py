"""Methods that know numbers alone, on graphs with arrays: differentiate each element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any, ClassVar

from cgprimer.core.language.syntax import Shape
from cgprimer.core.methods.contract import (
    DerivativeProgram,
    Derivatives,
    Differentiator,
    Execute,
    Given,
    Number,
    shapes_of,
)
from cgprimer.core.tape.scalars import apart, elements, scalarize, together
from cgprimer.core.tape.tape import Tape


@dataclass(frozen=True, eq=False, repr=False)
class ElementwiseProgram(DerivativeProgram):
    """A program for the elements of arrays, called with arrays.

    Its tape is the one in numbers: what engines compile, and what is printed.
    """

    inner: DerivativeProgram | None = field(default=None, kw_only=True)
    given: Mapping[str, Shape] = field(default_factory=dict, kw_only=True)  #: shapes of leaves
    seeds_only: ClassVar[bool] = False

    def run(
        self, execute: Execute, columns: Given, scalars: Given, samples: int, **how: Any
    ) -> Derivatives:
        """As of any program; arrays are taken apart before and put together after."""
        assert self.inner is not None
        given = apart(columns, self.given), apart(scalars, self.given)
        found = self.inner.run(execute, *given, samples, **how)
        asked = {*self.of, *self.wrt}  # maybe an element, by its own name
        arrays = dict.fromkeys((_array(o, asked), _array(w, asked)) for o, w in found.derivatives)
        derivatives = {pair: self._stacked_elements(*pair, found.derivatives) for pair in arrays}
        shapes = {name: self.shapes.get(name, ()) for name in self.of}
        return Derivatives(together(found.values, shapes), derivatives)

    def _stacked_elements(
        self, of: str, wrt: str, found: Mapping[tuple[str, str], Number]
    ) -> Number:
        """One array of shape samples + head + tail; an element that has no derivative has 0."""
        head, tail = self.shapes.get(of, ()), self.shapes.get(wrt, ())
        if not head and not tail:
            return found[of, wrt]
        import numpy as np

        pairs = product(elements(of, head), elements(wrt, tail))
        made = np.stack(np.broadcast_arrays(*[found.get(pair, 0.0) for pair in pairs]), axis=-1)
        return made.reshape(made.shape[:-1] + head + tail)


def _array(element: str, asked: set[str]) -> str:
    return element if element in asked else element.partition("[")[0]


def differentiate_elements(
    method: Differentiator, tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], **options: Any
) -> DerivativeProgram:
    """The program of a method that knows numbers alone."""
    shapes = shapes_of(tape, (*of, *wrt))
    inner = method(scalarize(tape), each(of, shapes), each(wrt, shapes), **options)
    return put_together(inner, tape, of, wrt, shapes)


def each(names: Iterable[str], shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    """The elements of all names."""
    return tuple(e for name in names for e in elements(name, shapes.get(name, ())))


def put_together(
    inner: DerivativeProgram,
    primal: Tape,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    shapes: Mapping[str, Shape],
) -> DerivativeProgram:
    """A program for elements as one for the arrays that they belong to.

    Args:
        inner: of the elements.
        primal: has the arrays that are given.
        of, wrt: names of the arrays.
        shapes: theirs, where they are no single numbers.
    """
    known = {f.name: getattr(inner, f.name) for f in fields(DerivativeProgram)}
    given = {leaf.name: leaf.shape for leaf in primal.leaves if leaf.shape}
    return ElementwiseProgram(
        **{**known, "of": of, "wrt": wrt, "shapes": shapes}, inner=inner, given=given
    )
