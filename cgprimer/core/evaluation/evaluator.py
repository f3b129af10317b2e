"""The evaluator: one loop over the instructions of a tape, on any kind of number.

The loop runs on Python's floats, on numpy arrays, on complex numbers and on mpmath numbers: the
types of the leaf values determine the arithmetic. Single points are computed with this loop, and
every engine is compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from cgprimer.core.methods.derivative_program import Number
from cgprimer.core.operations import float_arithmetic
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.errors import EngineError, name_hint

Lookup = Callable[[Applied], Callable[..., Number]]  # from an operation to its function
Steps = list[tuple[Callable[..., Number], tuple[int, ...]]]


def values_of(
    tape: Tape, leaf_values: Mapping[str, Number], *, roots: Iterable[int] | None = None
) -> list[Number]:
    """Return every value of a tape, in its order.

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
    values: list[Number] = []
    for (kind, name, value, _), wanted in zip(tape.leaves, needed, strict=False):
        if kind == "constant":
            values.append(value)
        elif wanted and name not in leaf_values:
            raise EngineError(f"there is no value for {name!r}", hint=name_hint(name, leaf_values))
        else:
            values.append(leaf_values.get(name, math.nan))
    lookup = arithmetic([*values, *filter(None, tape.shapes)])  # arrays may be made of numbers
    steps = with_functions(tape, lookup)
    if roots is not None:
        wanted_steps = zip(steps, needed[len(values) :], strict=True)
        steps = [step if wanted else (lambda: math.nan, ()) for step, wanted in wanted_steps]
    with quiet(lookup):
        return run_steps(steps, values)


def run_steps(steps: Steps, values: list[Number]) -> list[Number]:
    """Apply each function to its operands; append the results to the leaves' values."""
    append = values.append
    for function, operands in steps:
        if len(operands) == 2:
            left, right = operands
            append(function(values[left], values[right]))
        else:
            append(function(*[values[o] for o in operands]))
    return values


def with_functions(tape: Tape, lookup: Lookup) -> Steps:
    """Return a tape's instructions with functions instead of operations."""
    functions = {name: lookup(name) for name in {name for name, _ in tape.instructions}}
    return [(functions[name], operands) for name, operands in tape.instructions]


def arithmetic(values: Iterable[Number]) -> Lookup:
    """Return the lookup of functions for these values: on floats, arrays or mpmath numbers.

    >>> arithmetic([1.0, 2.0])("exp")(0.0)
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


def quiet(lookup: Lookup | None) -> AbstractContextManager[None]:
    """Return a context in which numpy does not warn of infinities and nan."""
    if lookup is float_arithmetic.float_function:
        return nullcontext()
    import numpy as np

    return np.errstate(all="ignore")
