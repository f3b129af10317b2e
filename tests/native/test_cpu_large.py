"""Long tapes: nothing recurses, nothing grows faster than the tape, and the values stay right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.methods import differentiate
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from tests.native.engine_agreement import REDUCTIONS, assert_alike, by_numpy, directly


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


def chain(operations: int) -> Tape:
    """Values that stay between -2 and 2, of many kinds of operations, each made of earlier ones."""
    builder = Builder(share=False)
    x, k, m = builder.column("x"), builder.scalar("k"), builder.scalar("m")
    half = builder.constant(0.5)
    values = [x]
    for number in range(operations):
        last, earlier = values[-1], values[max(0, len(values) - 2 - number % 40)]
        match number % 7:
            case 0:
                values.append(builder.emit("sin", last))
            case 1:
                values.append(builder.emit("mul", last, k))
            case 2:
                values.append(builder.emit("add", last, m if number % 2 else x))
            case 3:
                values.append(builder.emit("mul", last, half))
            case 4:
                values.append(builder.emit("tanh", last))
            case 5:
                values.append(builder.emit("sub", earlier, last))
            case _:
                values.append(builder.emit("max", last, builder.emit("neg", earlier)))
    return builder.finish({"w": builder.emit("sin", values[-1]), "early": values[operations // 2]})


def lines(operations: int) -> cgprimer.ExpressionGraph:
    """The same idea as a graph, a vertex for each line."""
    text = ["v0 = sin(k*xa) + b"]
    for number in range(1, operations // 4):
        text.append(f"v{number} = sin(v{number - 1}*k + xa)*0.5 + b*v{number // 2}/(1 + xa^2)*0.1")
    return cgprimer.parse([*text, f"output v{len(text) - 1}"])


def point(tape: Tape, samples: int) -> tuple[dict[str, Any], dict[str, float]]:
    columns = {name: np.linspace(-1.0, 1.0, samples) for name in tape.of_kind("column")}
    return columns, dict(zip(tape.of_kind("scalar"), (0.75, 0.1), strict=True))


def test_twenty_thousand_operations() -> None:
    tape = chain(20_000)
    columns, scalars = point(tape, 100)
    wanted = directly(tape, columns, scalars, 100)
    for reduction in REDUCTIONS:
        run = select_engine("cpu").compile(tape, reduction=reduction, dtype="float64")
        found = run(columns, scalars, 100)
        known = wanted if reduction == "none" else {n: np.sum(v) for n, v in wanted.items()}
        assert_alike(found, known, scale=1.0 if reduction == "none" else 100.0, close=1e-11)
    # Rows are used again: live values are few, however long the tape is.
    assert run.code.buffer < 2**21


def test_the_gradient_of_a_long_graph() -> None:
    graph = lines(4000)
    tape = differentiate(cgprimer.tape(graph), method="reverse").tape
    assert len(tape) > 10_000
    columns, scalars = {"xa": np.linspace(-1, 1, 70)}, {"k": 0.7, "b": 0.3}
    found = select_engine("cpu").compile(tape, reduction="none", dtype="float64")(
        columns, scalars, 70
    )
    wanted = by_numpy(tape)(columns, scalars, 70)
    scale = max(float(np.max(np.abs(v))) for v in wanted.values())
    assert_alike(found, wanted, scale=10 * scale)


@pytest.mark.slow
def test_a_million_operations(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path))
    tape = chain(1_000_000)
    columns, scalars = point(tape, 100)
    wanted = directly(tape, {n: c[::9] for n, c in columns.items()}, scalars, 12)
    for _ in range(2):  # the second time from the folder
        run = select_engine("cpu").compile(tape, reduction="none", dtype="float64")
        found = run(columns, scalars, 100)
        assert_alike({n: v[::9] for n, v in found.items()}, wanted, close=1e-10)
    assert len(list(tmp_path.glob("code-*"))) == 1


@pytest.mark.slow
def test_the_gradient_of_a_million_operations() -> None:
    primal = chain(250_000)
    tape = differentiate(primal, of="w", wrt=("k", "m"), method="reverse").tape
    columns, scalars = point(tape, 100)
    found = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")(
        columns, scalars, 100
    )
    wanted = {n: np.sum(v) for n, v in directly(tape, columns, scalars, 100).items()}
    scale = 100 * max(map(abs, wanted.values()))
    assert_alike(found, wanted, scale=scale, close=1e-9)
