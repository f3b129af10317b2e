"""The choice of an engine for a program, based on the declarations of the engines."""

from __future__ import annotations

from collections.abc import Iterator

from cgprimer.core.evaluation.engines import (
    Engine,
    check_supported,
    count_scalar_operations,
    explain_unsupported,
    find_engine,
    get_minimum_work,
    iterate_engines,
    prefers_scalars,
    select_engine,
)
from cgprimer.core.evaluation.plain_engine import PLAIN
from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.support.type_checks import check_type

_ASSUMED_WORK = 20_000  # operations per run if the number of samples is unknown
# Compilation for a single call pays off if it saves more than a tenth of a second.
_CALLS_PER_COMPILATION = 5_000
# Each argument and each result of scalarized code takes a microsecond per call.
_SAMPLES_PER_ARGUMENT = 10


def choose_engine(
    engine: str | Engine,
    program: DerivativeProgram,
    samples: int | None,
    shape: Shape | None = None,
) -> Engine:
    """Choose the engine that runs a program.

    Args:
        engine: an engine, its name, or ``auto`` for the fastest for this program.
        program: the program to run.
        samples: the number of samples per call, if known.
        shape: the shape of the samples of a single call; ``()`` is a single point, which the
            engine plain computes. None for a program that is called many times.

    Raises:
        UsageError: no engine has this name, or the engine cannot run the program.
        EngineError: the engine is not available on this machine.

    >>> import cgprimer
    >>> program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse("xw = k*xa^2")))
    >>> choose_engine("auto", program, 1, ()).name, choose_engine("auto", program, 10).name
    ('plain', 'numpy')
    """
    if not hasattr(engine, "compile"):
        check_type("engine", engine, str, "a name")
    if engine == "auto":
        if shape == () or program.is_complex:
            return PLAIN
        return _choose_fastest_engine(program, samples, single_call=shape is not None)
    chosen = find_engine(engine) if isinstance(engine, str) else engine
    check_supported(chosen, program.tape, "complex128" if program.is_complex else "float64")
    return select_engine(engine) if isinstance(engine, str) else engine


def _choose_fastest_engine(
    program: DerivativeProgram, samples: int | None, *, single_call: bool
) -> Engine:
    """Choose the engine that is expected to be the fastest for a program."""
    tape = program.tape
    if samples is None:
        work = _ASSUMED_WORK
    else:
        work = (
            samples
            * (count_scalar_operations(tape)[0] if tape.has_arrays else len(tape))
            * len(program.passes)
        )
    if single_call:
        work //= _CALLS_PER_COMPILATION
    worthwhile = sorted(_find_worthwhile_engines(program, samples, work), key=lambda pair: pair[0])
    for _, engine in reversed(worthwhile):
        if not explain_unsupported(engine, tape) and not engine.unavailable():
            return engine
    return PLAIN


def _find_worthwhile_engines(
    program: DerivativeProgram, samples: int | None, work: int
) -> Iterator[tuple[float, Engine]]:
    """Yield ``(minimum work, engine)`` for each engine that is worthwhile for a program."""
    tape = program.tape
    if tape.has_arrays and samples is None:
        return
    for engine in iterate_engines():
        minimum = get_minimum_work(engine, tape)
        if minimum > work:
            continue
        if tape.has_arrays and prefers_scalars(engine, tape):
            arguments = count_scalar_operations(tape)[1]
            if samples is not None and samples < _SAMPLES_PER_ARGUMENT * arguments:
                continue
        yield minimum, engine
