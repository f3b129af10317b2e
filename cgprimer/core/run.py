"""Derivative programs on engines: the passes are run and their readings put together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cgprimer.core.engines import DTYPES, Array, Executable, Reduction, select
from cgprimer.core.methods.contract import DerivativeProgram, Pass, StepRule
from cgprimer.core.tape.passes import with_seeds
from cgprimer.errors import UsageError


@dataclass(frozen=True, slots=True)
class Derivatives:
    """What a program computed.

    Attributes:
        values: for each differentiated name its value.
        derivatives: for each pair ``(of, wrt)`` the derivative.

    Each is an array of shape (samples,), or a sum over the samples.
    """

    values: dict[str, Array]
    derivatives: dict[tuple[str, str], Array]


def engine_for(program: DerivativeProgram, engine: str, samples: int | None) -> str:
    """The engine's name, with ``auto`` resolved for a program and a number of samples."""
    if engine != "auto":
        return engine
    if program.step is not None and program.step.imaginary:
        return "numpy"  # the only one that has complex numbers
    return select("auto", work=None if samples is None else samples * program.operation_count).name


class Runner:
    """A derivative program compiled for an engine; call it as often as there are points.

    Args:
        program: what to run.
        engine: name of an engine.
        reduction: ``none`` or ``sum`` over the samples.
        dtype: ``float64`` or ``float32``.
        samples: how many there will be, where that is known: ``auto`` goes by it.

    Raises:
        UsageError: unknown engine or dtype, or a complex step on an engine without complex numbers.
        EngineError: the engine cannot be used here.
    """

    def __init__(
        self,
        program: DerivativeProgram,
        *,
        engine: str = "numpy",
        reduction: Reduction = "none",
        dtype: str = "float64",
        samples: int | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(
                f"there is no dtype {dtype!r} here", hint=f"one of: {', '.join(DTYPES)}"
            )
        chosen = select(engine_for(program, engine, samples))
        if program.step is not None and program.step.imaginary:
            if chosen.name != "numpy":
                raise UsageError(f"complex steps run on the engine 'numpy', not on {chosen.name!r}")
            dtype = "complex128"
        self.program = program
        self.chosen = chosen
        self.engine = chosen.name
        self.bits = np.finfo(dtype).nmant
        # A step per sample divides each sample's difference: sums are taken after that.
        scalars = program.tape.of_kind("scalar")
        self.sum_later = (
            program.step is not None
            and reduction == "sum"
            and any(name not in scalars for name in program.wrt)
        )
        inner: Reduction = "none" if self.sum_later else reduction
        self.compile = partial(chosen.compile, reduction=inner, dtype=dtype)
        self.execute = self.compile(program.tape)
        self.alone: dict[int, Executable] = {}

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> Derivatives:
        """Values and derivatives at a point, or at every sample."""
        program = self.program
        if program.step is not None:
            return self._differences(program.step, columns, scalars, samples)
        values: dict[str, Array] = {}
        found: dict[tuple[str, str], Array] = {}
        for number, run in enumerate(program.passes):
            outputs = self.execute(columns, {**scalars, **run.seeds}, samples)
            values = values or {name: outputs[name] for name in program.of}
            if len(run.seeds) > 1 and not all(
                np.isfinite(outputs[r.output]).all() for r in run.reads
            ):
                outputs = self._alone(number)(columns, scalars, samples)
            _read(run, outputs, found)
        return Derivatives(values, found)

    def _alone(self, number: int) -> Executable:
        """A pass on a tape of its own, without what its zero seeds would multiply.

        Compiled only where it is needed: a seed of 0 that meets an infinite partial derivative
        would turn a finite derivative into nan.
        """
        if number not in self.alone:
            seeded = with_seeds(self.program.tape, self.program.passes[number].seeds)
            self.alone[number] = self.compile(seeded)
        return self.alone[number]

    def _differences(
        self, rule: StepRule, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> Derivatives:
        with np.errstate(all="ignore"):  # moving an infinity is a nan, not a warning
            return self._quotients(rule, columns, scalars, samples)

    def _quotients(
        self,
        rule: StepRule,
        columns: Mapping[str, Array],
        scalars: Mapping[str, Any],
        samples: int,
    ) -> Derivatives:
        program = self.program
        unshifted = {column: np.zeros(samples) for column in program.shifts.values()}
        base = self.execute({**columns, **unshifted}, scalars, samples)
        steps: dict[str, Array] = {}
        for name in program.wrt:
            known = columns.get(name, scalars.get(name, base.get(name)))
            steps[name] = step_size(rule, np.real(known) if known is not None else 0.0, self.bits)
        found: dict[tuple[str, str], Array] = {}
        for run in program.passes:
            outputs = base
            if run.shifted:
                moved_columns, moved_scalars = {**columns, **unshifted}, dict(scalars)
                move = run.steps * steps[run.shifted]
                if run.shifted in program.shifts:
                    moved_columns[program.shifts[run.shifted]] = move
                elif run.shifted in columns:
                    moved_columns[run.shifted] = columns[run.shifted] + move
                elif run.shifted in scalars:
                    moved_scalars[run.shifted] = scalars[run.shifted] + move
                outputs = self.execute(moved_columns, moved_scalars, samples)
            if rule.imaginary:
                outputs = {name: np.imag(value) for name, value in outputs.items()}
            _read(run, outputs, found)
        values = {name: np.real(base[name]) for name in program.of}
        quotients = {pair: total / steps[pair[1]] for pair, total in found.items()}
        if rule.imaginary:
            # Off the real domain, or where numpy's complex function leaves rounding errors in the
            # imaginary part, that part means nothing; divided by h = 1e-90 it is enormous.
            for pair in found:
                real = values[pair[0]]
                # The step of a tiny variable is tinier still, and its derivative may be large.
                scale = np.maximum(1.0, rule.relative(self.bits) / steps[pair[1]])
                likely = np.abs(quotients[pair]) <= 1e30 * scale * np.maximum(1.0, np.abs(real))
                quotients[pair] = np.where(np.isfinite(real) & likely, quotients[pair], np.nan)
        if self.sum_later:
            values = {name: np.sum(value) for name, value in values.items()}
            quotients = {pair: np.sum(quotient) for pair, quotient in quotients.items()}
        return Derivatives(values, quotients)


def step_size(rule: StepRule, value: Array, bits: int = 52) -> Array:
    """The step for a variable of a given value, in the variable's unit.

    Args:
        rule: how to choose.
        value: of the variable; a float, or an array for a step per sample.
        bits: binary digits of the computation: 52 for float64, 23 for float32.

    >>> step_size(StepRule(None, 3), 8.0) == 2.0**-14
    True
    """
    if rule.size is not None:
        return np.broadcast_to(rule.size, np.shape(value)) if np.ndim(value) else rule.size
    if rule.imaginary:  # no cancellation: it can be tiny, and must be for a tiny variable
        size = np.abs(value)
        return rule.relative(bits) * np.where((size > 0) & (size < 1), size, 1.0)
    if isinstance(value, float):  # one sample at a time: numpy would take longer than the sample
        size = abs(value) if math.isfinite(value) else 1.0
        return rule.relative(bits) * 2.0 ** math.floor(math.log2(max(1.0, size)))
    scale = np.maximum(1.0, np.abs(np.where(np.isfinite(value), value, 1.0)))
    return rule.relative(bits) * np.exp2(np.floor(np.log2(scale)))


def _read(run: Pass, outputs: Mapping[str, Array], found: dict[tuple[str, str], Array]) -> None:
    for read in run.reads:
        share = outputs[read.output] if read.weight == 1.0 else read.weight * outputs[read.output]
        pair = (read.of, read.wrt)
        found[pair] = found[pair] + share if pair in found else share
