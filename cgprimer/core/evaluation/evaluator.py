"""The evaluator: one loop over the instructions of a tape, on any kind of number.

The loop runs on Python's floats, on numpy arrays, on complex and mpmath numbers, and on sympy
expressions: only the functions that the instructions apply differ. Single points are computed with
this loop, and every engine is compared with it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

from cgprimer.core.methods.derivative_program import Number
from cgprimer.core.operations import float_arithmetic
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.errors import EngineError, name_hint

#: Returns the function that computes an operation.
Lookup: TypeAlias = Callable[[Applied], Callable[..., Any]]
#: An instruction as the loop runs it: index of the result, function to call, indices of the
#: operands, and indices of the values that are released afterwards.
PreparedInstruction: TypeAlias = tuple[int, Callable[..., Any], tuple[int, ...], tuple[int, ...]]


def values_of(
    tape: Tape, leaf_values: Mapping[str, Number], *, roots: Iterable[int] | None = None
) -> list[Number]:
    """Evaluate a tape; return the values of all its leaves and instructions, by index.

    Args:
        tape: the tape to evaluate.
        leaf_values: a number or an array for each column and scalar; with mpmath numbers the
            results are mpmath numbers.
        roots: indices of the values to compute; all by default. A value that no root needs is nan.

    Raises:
        EngineError: a column or scalar that is needed has no value.

    >>> import cgprimer
    >>> values_of(cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb/k")), {"xa": 1.5, "k": 0.0})
    [1.5, 0.0, 2.0, 3.0, inf]
    """
    needed = [True] * tape.size if roots is None else reachable(tape, roots)
    values: list[Number] = [math.nan] * tape.size
    for index, (kind, name, value, _) in enumerate(tape.leaves):
        if kind == "constant":
            values[index] = value
        elif needed[index] and name not in leaf_values:
            raise EngineError(f"missing value for {name!r}", hint=name_hint(name, leaf_values))
        else:
            values[index] = leaf_values.get(name, math.nan)
    lookup = choose_arithmetic([*values[: len(tape.leaves)], *filter(None, tape.shapes)])
    instructions = [one for one in prepare_instructions(tape, lookup) if needed[one[0]]]
    with ignore_numpy_warnings(lookup):
        run_instructions(instructions, values)
    return values


def run_instructions(instructions: Iterable[PreparedInstruction], values: list[Any]) -> None:
    """Run instructions of a tape; store each result in the list of values.

    Args:
        instructions: the prepared instructions in execution order.
        values: a list with one slot for each value of the tape; the leaves have their values.
    """
    for index, function, operands, released in instructions:
        if len(operands) == 2:
            left, right = operands
            values[index] = function(values[left], values[right])
        else:
            values[index] = function(*[values[o] for o in operands])
        if released:
            for operand in released:
                values[operand] = None


def prepare_instructions(
    tape: Tape, lookup: Lookup, *, keep: Iterable[int] | None = None
) -> list[PreparedInstruction]:
    """Prepare the instructions of a tape for :func:`run_instructions`.

    Args:
        tape: the tape to run.
        lookup: returns the function that computes an operation.
        keep: indices of the values that are read after the run; all other values are released
            after their last use. By default no value is released.
    """
    functions = {name: lookup(name) for name in {name for name, _ in tape.instructions}}
    instructions = list(enumerate(tape.instructions, len(tape.leaves)))
    if keep is None:
        return [(index, functions[name], operands, ()) for index, (name, operands) in instructions]
    last_use = {o: index for index, (_, operands) in instructions for o in operands}
    permanent = {*keep}
    return [
        (
            index,
            functions[name],
            operands,
            tuple({o for o in operands if last_use[o] == index} - permanent),
        )
        for index, (name, operands) in instructions
    ]


def evaluate_instructions(
    instructions: Sequence[PreparedInstruction], leaf_values: list[Any]
) -> list[Any]:
    """Run prepared instructions on leaf values; return all values of the tape."""
    values = leaf_values + [None] * len(instructions)
    run_instructions(instructions, values)
    return values


def choose_arithmetic(values: Iterable[Number]) -> Lookup:
    """Choose float, numpy or mpmath functions by the types of the values.

    >>> choose_arithmetic([1.0, 2.0])("exp")(0.0)
    1.0
    """
    kinds = {type(value) for value in values} - {float}
    if not kinds:
        return float_arithmetic.float_function
    if any(kind.__module__.startswith("mpmath") for kind in kinds):
        from cgprimer.core.operations import symbolic_arithmetic

        return symbolic_arithmetic.mpmath_function
    from cgprimer.core.operations import numpy_arithmetic

    return numpy_arithmetic.numpy_function


def ignore_numpy_warnings(lookup: Lookup | None) -> AbstractContextManager[None]:
    """Return a context in which numpy does not warn of infinities and nan.

    Args:
        lookup: the lookup of the functions; nothing is done for functions on floats.
    """
    numpy = sys.modules.get("numpy")  # no value is an array before numpy is imported
    if lookup is float_arithmetic.float_function or numpy is None:
        return nullcontext()
    context: AbstractContextManager[None] = numpy.errstate(all="ignore")
    return context
