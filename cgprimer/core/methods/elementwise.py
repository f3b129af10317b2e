"""Differentiate tapes with arrays element by element, for methods that support only scalars."""

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
    """Differentiate a tape with arrays element by element, with a method for scalars.

    Args:
        method: the method.
        tape: the tape.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        options: options of the method.
    """
    shapes = select_array_shapes(tape, (*of, *wrt))
    program = method(
        scalarize(tape), list_element_names(of, shapes), list_element_names(wrt, shapes), **options
    )
    return convert_to_array_program(program, tape, of, wrt, shapes)


def list_element_names(names: Iterable[str], shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    """Return the names of all elements of arrays with the given names and shapes."""
    return tuple(e for name in names for e in elements(name, shapes.get(name, ())))


def convert_to_array_program(
    program: DerivativeProgram,
    primal: Tape,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    shapes: Mapping[str, Shape],
) -> DerivativeProgram:
    """Convert a derivative program for elements into a program for whole arrays.

    Args:
        program: the program for elements.
        primal: the tape with arrays that was differentiated.
        of: the names of the differentiated arrays.
        wrt: the names of the arrays with respect to which they are differentiated.
        shapes: the shapes of the arrays among ``of`` and ``wrt``.
    """
    leaves = {leaf.name: leaf.shape for leaf in primal.leaves if leaf.shape}
    return replace(program, of=of, wrt=wrt, shapes=shapes, elements=leaves)
