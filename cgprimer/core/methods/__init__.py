"""Methods of differentiation: functions from a tape to a derivative program."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Differentiator,
    Names,
    normalize_names,
)
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.verifier import verify
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.support.garbage_collection import pause_garbage_collection
from cgprimer.support.plugins import Registry
from cgprimer.support.type_checks import check_type

_BUILT_IN = ("finite-difference", "symbolic", "forward", "reverse", "path-sum")
METHODS: Registry[Differentiator] = Registry(
    "method",
    "cgprimer.methods",
    {name: f"{__name__}.{name.replace('-', '_')}:differentiate" for name in _BUILT_IN},
)
WITH_SHAPES = ("forward", "reverse")  # others differentiate arrays element by element


def methods() -> tuple[str, ...]:
    """Return the names of all methods.

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
    """Return a program that computes derivatives of a tape.

    Args:
        tape: the tape to differentiate.
        of: the name or names of the values to differentiate; by default the only output.
        wrt: the name or names of the leaves or inner variables with respect to which to
            differentiate; by default all scalars (the parameters), or all columns (the inputs)
            if the tape has no scalars.
        method: one of :func:`methods`.
        options: options of the method: ``scheme`` and ``step`` (finite-difference), ``share`` and
            ``limit`` (symbolic), ``carry`` (forward), ``limit`` (path-sum).

    Returns:
        A program; ``print`` shows it as readable code.

    Raises:
        UsageError: a method, option or name is unknown, or `of` is missing and the tape has
            several outputs.
        DifferentiationError: the method does not support the tape.

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
    check_type("tape", tape, Tape, "a Tape", hint="cgprimer.tape(graph) builds the tape of a graph")
    function = METHODS[method]
    if options:
        _check_options(method, function, options)
    _check_supported(method, tape)
    with pause_garbage_collection():
        names = _resolve_names(tape, of, wrt)
        if tape.has_arrays and (method not in WITH_SHAPES or options.get("carry")):
            from cgprimer.core.methods.elementwise import differentiate_elements

            program = differentiate_elements(function, tape, *names, **options)
        else:
            program = function(tape, *names, **options)
        verify(program.tape)
    return program


def _resolve_names(
    tape: Tape, of: Names | None, wrt: Names | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names in ``of`` and in ``wrt`` as tuples; use the defaults for None."""
    if of is None and len(tape.outputs) != 1:
        if not tape.outputs:
            raise UsageError("the tape has no output")
        names = ", ".join(tape.outputs)
        message = f"the tape must have a single output, got {len(tape.outputs)}: {names}"
        raise UsageError(message, hint="choose one with `of=NAME`")
    if wrt is None:
        wrt = tape.of_kind("scalar") or tape.of_kind("column")
        if not wrt:
            raise UsageError("cannot differentiate: the tape has no parameters and no inputs")
    of = tuple(tape.outputs) if of is None else of
    return normalize_names(of, "of"), normalize_names(wrt, "wrt")


def _check_options(method: str, function: Differentiator, options: Mapping[str, Any]) -> None:
    """Raise an error if an option is unknown to a method."""
    allowed = list(inspect.signature(function).parameters)[3:]
    for name in options:
        if name == "dtype":
            raise UsageError(
                "`dtype` is not an option: derivatives are computed in double precision",
                hint="use `loss_and_gradient(..., dtype='float32')` for data in float32",
            )
        if name not in allowed:
            valid_options = f"valid options: {', '.join(allowed)}"
            hint = valid_options if allowed else "the method has no options"
            message = f"unknown argument {name!r}: not an option of method {method!r}"
            raise UsageError(message, hint=hint)


def _check_supported(method: str, tape: Tape) -> None:
    """Raise an error if a method does not support the operations of a tape."""
    if method != "reverse" and tape.custom:
        from cgprimer.core.operations.custom_operations import create_forward_mode_error

        raise create_forward_mode_error(tape.custom[0])
    if method in ("symbolic", "path-sum") and tape.combines_samples:
        raise DifferentiationError(
            f"method {method!r} does not support 'batch_mean' (used by batchnorm), which combines"
            " samples",
            hint="choose one of the methods reverse, forward, finite-difference",
        )
