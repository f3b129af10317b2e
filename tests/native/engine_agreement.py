"""Running tapes on the CPU engine in either of its forms, and comparing engines with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from cgprimer.backends.cpu import cpu_engine
from cgprimer.core.evaluation.engines import Reduction, select_engine
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.tape.tape import Tape

Array = Any
FORMS = ("straight", "interpreted")
REDUCTIONS: tuple[Reduction, ...] = ("none", "sum")
DTYPES = ("float64", "float32")
CLOSE = {"float64": 1e-12, "float32": 2e-5}
CLASSES = {"straight": "StraightLineExecutable", "interpreted": "InterpretedExecutable"}
# Of straight-line code so much that nothing in these tests goes to the interpreter; none at all.
_LONGEST = {"straight": 4000, "interpreted": -1}


@contextmanager
def form(name: str) -> Iterator[None]:
    """The engine makes straight-line code of everything, or code for the interpreter."""
    with mock.patch.object(cpu_engine, "STRAIGHT", _LONGEST[name]):
        yield


def compiled(tape: Tape, name: str, reduction: Reduction = "none", dtype: str = "float64") -> Any:
    """A tape compiled in one form; fails if the engine has taken the other one."""
    with form(name):
        made = select_engine("cpu").compile(tape, reduction=reduction, dtype=dtype)
    assert type(made).__name__ == CLASSES[name]
    return made


def by_numpy(tape: Tape, reduction: Reduction = "none", dtype: str = "float64") -> Any:
    return select_engine("numpy").compile(tape, reduction=reduction, dtype=dtype)


def directly(
    tape: Tape, columns: Mapping[str, Array], scalars: Mapping[str, float], samples: int
) -> dict[str, Array]:
    """The outputs, an instruction after the other as the tape has them, in double precision."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for leaf in tape.leaves:
            if leaf.kind == "constant":
                values.append(np.float64(leaf.value))
            else:
                chosen = columns if leaf.kind == "column" else scalars
                values.append(np.asarray(chosen[leaf.name], float))
        for name, operands in tape.instructions:
            values.append(numpy_arithmetic.numpy_function(name)(*[values[o] for o in operands]))
    return {n: np.array(np.broadcast_to(values[i], samples)) for n, i in tape.outputs.items()}


def random_point(
    tape: Tape, samples: int, *, seed: int = 0, dtype: str = "float64", low: float = -2.0
) -> tuple[dict[str, Array], dict[str, float]]:
    """Columns and scalars between ``low`` and 2."""
    random = np.random.default_rng(seed)
    columns = {n: random.uniform(low, 2.0, samples).astype(dtype) for n in tape.of_kind("column")}
    return columns, {n: float(random.uniform(low, 2.0)) for n in tape.of_kind("scalar")}


def kind_of(values: Array) -> Array:
    """0 for finite numbers, 1 and -1 for infinities, 2 for nan."""
    values = np.asarray(values)
    return np.where(np.isnan(values), 2, np.where(np.isinf(values), np.sign(values), 0))


def assert_alike(
    found: Mapping[str, Array],
    wanted: Mapping[str, Array],
    *,
    scale: Array = 1.0,
    close: float = 1e-12,
) -> None:
    """The same classes of values everywhere, and finite ones near each other.

    Args:
        found, wanted: output to values.
        scale: of the numbers that are added up on the way, one for all or one per sample.
        close: how near, relative to the larger of scale and value.
    """
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        got, want = np.asarray(found[name]), np.asarray(value)
        assert got.shape == want.shape, name
        wrong = np.flatnonzero(kind_of(got) != kind_of(want))
        assert [(name, i, got.flat[i], want.flat[i]) for i in wrong[:5]] == []
        fine = np.isfinite(want)
        size = np.maximum(np.broadcast_to(scale, want.shape)[fine], np.abs(want[fine]))
        error = np.abs(got[fine].astype(float) - want[fine])
        wrong = np.flatnonzero(error > close * size)
        assert [(name, got[fine][i], want[fine][i], size[i]) for i in wrong[:5]] == []


def check(
    tape: Tape,
    name: str,
    columns: Mapping[str, Array],
    scalars: Mapping[str, float],
    samples: int,
    *,
    dtype: str = "float64",
    close: float | None = None,
) -> None:
    """Values per sample and sums in one form are those of the tape's instructions.

    Sums are compared relative to the sum of the absolute values: rounding errors grow with it.
    """
    close = CLOSE[dtype] if close is None else close
    per_sample = directly(tape, columns, scalars, samples)
    found = compiled(tape, name, "none", dtype)(columns, scalars, samples)
    for value in found.values():
        assert value.dtype == np.dtype(dtype)
    assert_alike(found, per_sample, close=close)
    with np.errstate(all="ignore"):
        sums = {n: np.sum(v, dtype=float) for n, v in per_sample.items()}
        finite = [np.abs(v[np.isfinite(v)]) for v in per_sample.values()]
        total = max([1.0, *(float(np.sum(v)) for v in finite)])
    found = compiled(tape, name, "sum", dtype)(columns, scalars, samples)
    assert_alike(found, sums, close=close, scale=total)
