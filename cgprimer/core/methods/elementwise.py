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
        pairs = [*product(self.of, self.wrt)] or {
            (of.partition("[")[0], wrt.partition("[")[0]): 0 for of, wrt in found.derivatives
        }  # the edges of a graph
        made = {pair: self._whole(*pair, found.derivatives) for pair in pairs}
        return Derivatives(
            together(found.values, {n: self.shapes.get(n, ()) for n in self.of}), made
        )

    def _whole(self, of: str, wrt: str, found: Mapping[tuple[str, str], Number]) -> Number:
        """One array of shape samples + head + tail; an element without an edge has 0."""
        head, tail = self.shapes.get(of, ()), self.shapes.get(wrt, ())
        if not head and not tail:
            return found[of, wrt]
        import numpy as np

        parts = [found.get(p, 0.0) for p in product(elements(of, head), elements(wrt, tail))]
        made = np.stack(np.broadcast_arrays(*parts), axis=-1) if parts else np.zeros(0)
        return made.reshape(made.shape[:-1] + head + tail)


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
