"""The plain engine: one loop over the instructions, on any numbers; and the passes of a program.

The loop runs on Python's floats, on numpy arrays, on complex numbers and on mpmath's numbers: what
it is given decides which arithmetic the primitives are taken from. It is what a single point is
computed with, and what every other engine is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from cgprimer.core.methods.contract import DerivativeProgram, Derivatives, Execute, Given, Number
from cgprimer.core.primitives import floats
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.errors import EngineError, UsageError, name_hint

if TYPE_CHECKING:
    from cgprimer.core.engines import Engine, Reduction

DTYPES = {"float64": 52, "float32": 23}  #: with the binary digits that each has
_ONCE = 5_000  # an engine that compiles is asked for one call if it saves more than a tenth second
# Arrays are written out in numbers for an engine that compiles if that is faster, as measured with
# networks of 4 to 64 units a layer: up to 32 numbers win (a fifth of the time at 4), beyond it
# matrix products do. Each number that goes in or comes out takes a microsecond of a call.
_MATRICES, _SAMPLES_EACH = 5_000, 10
_PRODUCTS = 50  # of their operations take as long as one elsewhere
Lookup = Callable[[str], Callable[..., Number]]  # from a primitive's name to its function
Steps = list[tuple[Callable[..., Number], tuple[int, ...]]]


def values_of(
    tape: Tape, given: Mapping[str, Number], *, roots: Iterable[int] | None = None
) -> list[Number]:
    """Every value of a tape, in its order.

    Args:
        tape: what is computed.
        given: a number or an array for each column and scalar; mpmath's numbers give mpmath's.
        roots: values that are wanted; the others, where no wanted one needs them, are nan. All
            unless given.

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
        elif wanted and name not in given:
            raise EngineError(f"there is no value for {name!r}", hint=name_hint(name, given))
        else:
            values.append(given.get(name, math.nan))
    lookup = arithmetic([*values, *filter(None, tape.shapes)])  # arrays may be made of numbers
    steps = with_functions(tape, lookup)
    if roots is not None:
        wanted_steps = zip(steps, needed[len(values) :], strict=True)
        steps = [step if wanted else (lambda: math.nan, ()) for step, wanted in wanted_steps]
    with quiet(lookup):
        return run_steps(steps, values)


def run_steps(steps: Steps, values: list[Number]) -> list[Number]:
    """The loop: each function on its operands, results behind the leaves' values."""
    append = values.append
    for function, operands in steps:
        if len(operands) == 2:
            left, right = operands
            append(function(values[left], values[right]))
        else:
            append(function(*[values[o] for o in operands]))
    return values


def with_functions(tape: Tape, lookup: Lookup) -> Steps:
    """A tape's instructions with functions in the place of names."""
    functions = {name: lookup(name) for name in {name for name, _ in tape.instructions}}
    return [(functions[name], operands) for name, operands in tape.instructions]


def arithmetic(values: Iterable[Number]) -> Lookup:
    """Where to look primitives up for such numbers: floats, arrays or mpmath's.

    >>> arithmetic([1.0, 2.0])("exp")(0.0)
    1.0
    """
    kinds = {type(value) for value in values} - {float}
    if not kinds:
        return floats.function
    if any(kind.__module__.startswith("mpmath") for kind in kinds):
        from cgprimer.core.primitives import formulas

        return formulas.function
    from cgprimer.core.primitives import arrays

    return arrays.function


def quiet(lookup: Lookup | None) -> AbstractContextManager[None]:
    """Infinities and nan are values here, not warnings of numpy's."""
    if lookup is floats.function:
        return nullcontext()
    import numpy as np

    return np.errstate(all="ignore")


class Plain:
    """The loop as an engine: outputs are numbers where columns are numbers, else arrays."""

    name = "plain"

    def unavailable(self) -> str:
        """Nothing is missing: it needs Python alone, and numpy where there are arrays."""
        return ""

    def describe(self) -> str:
        """What it uses, for ``cgprimer info``."""
        return "arithmetic: Python's for numbers, numpy's for arrays"

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
        """The tape, ready to be run."""
        steps = cache(lambda: with_functions(tape, floats.function))
        plain = dtype == "float64" and not any(tape.shapes)  # arrays may be made of numbers

        @cache
        def on_arrays() -> Execute:
            from cgprimer.core.array_steps import ArraySteps

            return ArraySteps(tape, sums=reduction == "sum", dtype=dtype)

        def execute(columns: Given, scalars: Given, samples: int) -> dict[str, Number]:
            given = {**scalars, **columns}
            if plain and set(map(type, given.values())) <= {float}:
                start = [v if kind == "constant" else given[n] for kind, n, v, _ in tape.leaves]
                values = run_steps(steps(), start)
                times = samples if reduction == "sum" else 1
                return {name: values[i] * times for name, i in tape.outputs.items()}
            if tape.shapes:
                return on_arrays()(columns, scalars, samples)
            import numpy as np

            given = {n: np.asarray(v).astype(dtype, copy=False) for n, v in given.items()}
            with np.errstate(all="ignore"):
                values = values_of(tape, given)
                found = {n: np.asarray(values[i], dtype) for n, i in tape.outputs.items()}
                shapes = {n: shape_of(tape, tape.outputs[n]) for n in found}
                whole = {n: np.broadcast_to(v, (samples, *shapes[n])) for n, v in found.items()}
                if reduction == "sum":  # in double precision
                    return {n: v.sum(0, np.result_type(v, float)) for n, v in whole.items()}
                return {name: np.array(value) for name, value in whole.items()}

        return execute


PLAIN = Plain()


class Runner:
    """A derivative program compiled for an engine; call it as often as there are points.

    Args:
        program: what to run.
        engine: an engine's name, or an engine.
        reduction: ``none`` or ``sum`` over the samples.
        dtype: ``float64`` or ``float32``.
        samples: how many there will be, where that is known: ``auto`` goes by it.

    Raises:
        UsageError: unknown engine or dtype, or a complex step on an engine without complex numbers.
        EngineError: the engine cannot be used here.

    >>> import cgprimer
    >>> program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse("xw = k*xa^2")))
    >>> Runner(program)({"xa": 3.0}, {"k": 2.0}, 1).derivatives
    {('xw', 'k'): 9.0}
    """

    def __init__(
        self,
        program: DerivativeProgram,
        *,
        engine: str | Engine = PLAIN,
        reduction: Reduction = "none",
        dtype: str = "float64",
        samples: int | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(f"there is no dtype {dtype!r} here", hint=name_hint(dtype, DTYPES))
        self.program, self.bits = program, DTYPES[dtype]
        self.chosen = engine_for(engine, program, samples)
        self.engine = self.chosen.name
        self.sum_later = program.by_sample and reduction == "sum"
        prepare = partial(
            compiled,
            self.chosen,
            reduction="none" if self.sum_later else reduction,
            dtype="complex128" if program.is_complex else dtype,
        )
        self.execute = prepare(program.tape)

        @cache
        def alone(number: int) -> Execute:
            """One pass on a tape of its own, without what its zero seeds would multiply."""
            from cgprimer.core.tape.passes import with_seeds

            return prepare(with_seeds(program.tape, program.passes[number].seeds))

        self.alone = alone

    def __call__(self, columns: Given, scalars: Given, samples: int) -> Derivatives:
        """Values and derivatives at a point, or at every sample."""
        combined = not self.program.seeds_only or len(self.program.passes) > 1
        known = arithmetic(columns.values()) if self.chosen is PLAIN else None
        with quiet(known if combined else floats.function):
            found = self.program.run(
                self.execute, columns, scalars, samples, alone=self.alone, bits=self.bits
            )
            if not self.sum_later:
                return found
            return Derivatives(
                {name: value.sum(axis=0) for name, value in found.values.items()},
                {pair: value.sum(axis=0) for pair, value in found.derivatives.items()},
            )


def compiled(engine: Engine, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
    """A tape compiled by an engine; without ``compile_arrays`` it is given numbers alone."""
    if tape.custom or (tape.shapes and engine.name == "numpy"):  # whose blocks are of numbers
        engine = PLAIN
    if not tape.shapes or engine is PLAIN:
        return engine.compile(tape, reduction=reduction, dtype=dtype)
    from cgprimer.core.tape.scalars import apart, cost_of_numbers, scalarize, together

    whole: Any = getattr(engine, "compile_arrays", None)
    if whole is not None and cost_of_numbers(tape)[0] > _MATRICES:
        return cast(Execute, whole(tape, reduction=reduction, dtype=dtype))

    flat = engine.compile(scalarize(tape), reduction=reduction, dtype=dtype)
    given = {leaf.name: leaf.shape for leaf in tape.leaves if leaf.shape}
    made = {name: tape.shapes[index] for name, index in tape.outputs.items()}

    def execute(columns: Given, scalars: Given, samples: int) -> dict[str, Number]:
        return together(flat(apart(columns, given), apart(scalars, given), samples), made)

    return execute


def engine_for(
    engine: str | Engine, program: DerivativeProgram, samples: int | None, shape: object = None
) -> Engine:
    """The engine of a name; ``auto`` goes by the operations of one sample, times the samples.

    With a shape it is for one call: a single point, ``()``, is done before an engine has compiled
    anything, and arrays must be long before it is worth to.
    """
    tape, own = program.tape, program.tape.custom
    together = any(getattr(name, "kind", "") == "batch_mean" for name, _ in tape.instructions)
    if engine == "auto" and (shape == () or program.is_complex or own or together):
        return PLAIN
    known = getattr(engine, "name", engine) in ("plain", "numpy")
    if together and not known:
        raise UsageError(
            "'batch_mean' (in batchnorm, too) needs all samples at once, and"
            f" {getattr(engine, 'name', engine)!r} takes them one by one",
            hint="it runs on the engine 'plain' or 'numpy'",
        )
    if own and not known:
        hint = "it runs on the engine 'plain' or 'numpy'"
        raise UsageError(f"{own[0]!r} is a function of Python's", hint=hint)
    if isinstance(engine, str):
        from cgprimer.core.engines import WORTH_A_GPU, select

        work = None if samples is None else samples * len(tape) * len(program.passes)  # about
        if engine == "auto" and tape.shapes:
            from cgprimer.core.tape.scalars import cost_of_numbers

            each, ends = cost_of_numbers(tape)
            if samples is None or (each <= _MATRICES and samples < _SAMPLES_EACH * ends):
                return PLAIN
            work = samples * each * len(program.passes)
            if each > _MATRICES:
                work = min(work // _PRODUCTS // (1 if shape is None else _ONCE), WORTH_A_GPU - 1)
                found = select("auto", work=work)
                return found if hasattr(found, "compile_arrays") else PLAIN
        engine = select(engine, work=work if work is None or shape is None else work // _ONCE)
    if program.is_complex and engine.name not in ("plain", "numpy"):
        raise UsageError(f"complex steps run on the engine 'plain', not on {engine.name!r}")
    return PLAIN if program.is_complex else engine  # no other engine has complex numbers
