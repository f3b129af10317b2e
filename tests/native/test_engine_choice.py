"""The engine that runs a program, by kind of tape, number of samples and requested engine.

``engine_choice.txt`` holds the expected table, with a column for each requested engine. It changes
only on purpose: delete the file, run this module, and review the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.core.evaluation.engine_choice import choose_engine
from cgprimer.core.evaluation.engines import ENGINES
from cgprimer.errors import CgprimerError
from cgprimer.training.gradient_forms import prefers_scalars

TABLE = Path(__file__).with_name("engine_choice.txt")
SAMPLES = (None, 0, 20, 1_000, 10_000_000)
REQUESTED = ("auto", "plain", "numpy", "cpu", "cuda", "foreign")
SCALAR = "xw = k*xa^2 + sin(k)"
COMPLEX = {"scheme": "complex-step"}
CASES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("scalar", SCALAR, "reverse", {}),
    ("scalar", SCALAR, "forward", {}),
    ("scalar", SCALAR, "finite-difference", {}),
    ("scalar", SCALAR, "finite-difference", COMPLEX),
    ("chain of 300", "; ".join(["x0 = k*xa", *(f"x{n + 1} = sin(x{n})" for n in range(300))]),
     "reverse", {}),
    *(("arrays of 4", "input x[4]; parameter W[4,4]; xo = sum(tanh(W @ x)^2)", *method)
      for method in (("reverse", {}), ("forward", {"carry": True}), ("symbolic", {}),
                     ("finite-difference", COMPLEX))),
    ("arrays of 100", "input x[100]; parameter W[100,100]; xo = sum(tanh(W @ x)^2)", "reverse", {}),
    ("arrays of 400", "input x[400]; parameter W[400,400]; xo = sum(tanh(W @ x)^2)", "reverse", {}),
    ("batch mean", "xm = k*xa - batch_mean(k*xa)", "reverse", {}),
    ("custom function", "xw = doubled(k*xa)", "reverse", {}),
)  # fmt: skip


class Foreign:
    """An engine of another package that declares nothing beyond the required protocol."""

    name = "foreign"

    def unavailable(self) -> str:
        return ""

    def compile(self, tape: Any, *, reduction: str, dtype: str) -> Any:
        raise AssertionError("nothing is compiled here")


class Doubled(cgprimer.Function):
    """A function with its own backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad


@pytest.fixture
def every_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that all engines can be used; add a foreign one and a custom function."""
    for name in ENGINES.names():
        monkeypatch.setattr(type(ENGINES[name]), "unavailable", lambda self: "")
    cgprimer.register_engine(Foreign())
    cgprimer.register_primitive("doubled", Doubled)
    yield
    cgprimer.unregister_engine("foreign")
    cgprimer.unregister_primitive("doubled")


def by_request(choose: Callable[[str], str]) -> str:
    """Return the choice for each requested engine, or the kind of error."""
    row = []
    for engine in REQUESTED:
        try:
            row.append(choose(engine))
        except CgprimerError as error:
            row.append(type(error).__name__)
    return " ".join(f"{choice:<11}" for choice in row).rstrip()


def rows(text: str, method: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is asked about a program, and the answers."""
    primal = cgprimer.tape(cgprimer.parse(text))
    program = cgprimer.differentiate(primal, method=method, **options)

    def engine(samples: int | None, shape: tuple[int, ...] | None, requested: str) -> str:
        return choose_engine(requested, program, samples, shape).name

    def form(samples: int | None, requested: str) -> str:
        scalars = prefers_scalars(primal, method, options, requested, samples)
        return "scalars" if scalars else "arrays"

    yield "single point", by_request(partial(engine, 1, ()))
    for count in SAMPLES:
        yield f"{count} samples", by_request(partial(engine, count, None))
        if count is not None:
            yield f"{count} samples, one call", by_request(partial(engine, count, (count,)))
        if primal.has_arrays:
            yield f"{count} samples, form", by_request(partial(form, count))


def table() -> str:
    lines = [f"{'':<60} {' '.join(f'{name:<11}' for name in REQUESTED).rstrip()}"]
    for kind, text, method, options in CASES:
        case = ", ".join((kind, method, *map(str, options)))
        lines += [f"{f'{case}, {asked}':<60} {row}" for asked, row in rows(text, method, options)]
    return "\n".join(lines) + "\n"


def test_the_engine_is_the_expected_one_for_every_case(every_engine: None) -> None:
    result = table()
    if not TABLE.exists():
        TABLE.write_text(result, encoding="utf-8")
        pytest.fail(f"recorded {TABLE.name}: review it")
    assert result == TABLE.read_text(encoding="utf-8")
