"""Methods that know scalars alone, on graphs with arrays: differentiate each element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Differentiator,
    select_array_shapes,
)
from cgprimer.core.tape.scalarization import elements, scalarize
from cgprimer.core.tape.tape import Tape


def differentiate_elements(
    method: Differentiator, tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], **options: Any
) -> DerivativeProgram:
    """Return the program of a method that knows scalars alone, for a tape with arrays."""
    shapes = select_array_shapes(tape, (*of, *wrt))
    program = method(
        scalarize(tape), list_element_names(of, shapes), list_element_names(wrt, shapes), **options
    )
    return convert_to_array_program(program, tape, of, wrt, shapes)


def list_element_names(names: Iterable[str], shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    """Return the names of the elements of all names."""
    return tuple(e for name in names for e in elements(name, shapes.get(name, ())))


def convert_to_array_program(
    program: DerivativeProgram,
    primal: Tape,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    shapes: Mapping[str, Shape],
) -> DerivativeProgram:
    """Return a program for elements as one for the arrays that they belong to.

    Args:
        program: differentiates elements.
        primal: the tape with the arrays that are given.
        of, wrt: names of the arrays.
        shapes: the shapes of the arrays among them.
    """
    leaves = {leaf.name: leaf.shape for leaf in primal.leaves if leaf.shape}
    return replace(program, of=of, wrt=wrt, shapes=shapes, elements=leaves)
