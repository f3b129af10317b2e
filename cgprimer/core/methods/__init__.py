"""The differentiators: a method is a function from a tape to a derivative program."""

from __future__ import annotations

import inspect
from typing import Any

from cgprimer.core.methods.contract import DerivativeProgram, Differentiator, Names, as_names
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.verifier import checked
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.garbage_collection import collector_paused
from cgprimer.plugins import Registry

_OWN = ("finite-difference", "symbolic", "forward", "reverse", "path-sum")
METHODS: Registry[Differentiator] = Registry(
    "method",
    "cgprimer.methods",
    {name: f"{__name__}.{name.replace('-', '_')}:differentiate" for name in _OWN},
)
WITH_SHAPES = ("forward", "reverse")  # others differentiate arrays element by element


def methods() -> tuple[str, ...]:
    """The names of all differentiators.

    >>> methods()[:5]
    ('finite-difference', 'symbolic', 'forward', 'reverse', 'path-sum')
    """
    return METHODS.names()


def differentiate(
    tape: Tape,
    of: Names | None = None,
    wrt: Names | None = None,
    *,
    method: str = "reverse",
    **options: Any,
) -> DerivativeProgram:
    """The program that computes derivatives of a tape.

    Args:
        tape: what is differentiated.
        of: a name or names; the tape's only output unless given.
        wrt: a name or names of leaves or inner variables; by default all scalars (the
            parameters), or all columns (the inputs) of a tape without scalars.
        method: one of :func:`methods`.
        options: of the method: ``scheme`` and ``step`` (finite-difference), ``share`` and
            ``limit`` (symbolic), ``carry`` (forward), ``limit`` (path-sum).

    Returns:
        A program; ``print`` shows it as readable code.

    Raises:
        UsageError: unknown method, option or name, or several outputs to choose from.
        DifferentiationError: the method cannot do it.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xz = bc*xa; xw = xz^3"))
    >>> print(cgprimer.differentiate(tape, method="reverse"))
    # given: xa, bc
    # primal
    xz = bc*xa
    xw = xz^3
    # derivative
    bar_xw = 1
    bar_xz = 3*xz^2
    bar_bc = bar_xz*xa
    # output  xw
    # output  bar_bc
    # 1 pass
    """
    function = METHODS[method]
    if of is None:
        if len(tape.outputs) != 1:
            several = f"there are several outputs: {', '.join(tape.outputs)}"
            raise UsageError(several, hint="say which with of=... (--of NAME)")
        of = tuple(tape.outputs)
    if wrt is None:
        wrt = tape.of_kind("scalar") or tape.of_kind("column")
        if not wrt:
            raise UsageError("there are no parameters or inputs to differentiate with respect to")
    allowed = list(inspect.signature(function).parameters)[3:]
    for name in options:
        if name == "dtype":
            raise UsageError(
                "derivatives at a point are computed in double precision",
                hint="float32 is for data: loss_and_gradient(..., dtype='float32'), train --dtype",
            )
        if name not in allowed:
            has = f"its options are: {', '.join(allowed)}" if allowed else "it has no options"
            said = f"there is no argument {name!r}, and {method!r} has no option {name!r}"
            raise UsageError(said, hint=has)
    if method != "reverse" and tape.custom:
        from cgprimer.core.primitives.shaped import no_derivative

        raise no_derivative(tape.custom[0])
    together = any(getattr(name, "kind", "") == "batch_mean" for name, _ in tape.instructions)
    if together and method in ("symbolic", "path-sum"):
        raise DifferentiationError(
            f"{method!r} looks at one sample, and 'batch_mean' (in batchnorm, too) at all of them",
            hint="take reverse, forward or finite-difference",
        )
    with collector_paused():
        names = as_names(of, "of"), as_names(wrt, "wrt")
        if tape.shapes and (method not in WITH_SHAPES or options.get("carry")):
            from cgprimer.core.methods.elementwise import differentiate_elements

            program = differentiate_elements(function, tape, *names, **options)
        else:
            program = function(tape, *names, **options)
        checked(program.tape)
    return program
