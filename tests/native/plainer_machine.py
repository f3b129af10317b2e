"""Run as a program: the CPU engine against numpy, in few words, on whatever machine it finds.

Prints the bits of a vector and what was compared. Started by the tests of portability with fewer
vectors than the machine has.
"""

from __future__ import annotations

import numpy as np

import cgprimer
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.core.methods import differentiate
from cgprimer.core.operations import numpy_arithmetic, primitives
from cgprimer.core.tape.builder import Builder
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    assert_alike,
    check,
    compiled,
    form,
    random_point,
)

AWKWARD = np.array([0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 40.0, 1e-310, 1e160, np.inf, -np.inf, np.nan])


def every_primitive() -> int:
    rows = [row for row in primitives() if row.built_in]
    builder = Builder()
    columns = [builder.column(f"x{number}") for number in range(3)]
    outputs = {row.name: builder.emit(row.name, *columns[: row.arity]) for row in rows}
    tape = builder.finish(outputs)
    awkward = [grid.ravel() for grid in np.meshgrid(AWKWARD, AWKWARD, AWKWARD[::-1])]
    drawn = np.random.default_rng(3).uniform(0.1, 0.9, (3, 101))
    for form_name in FORMS:
        for dtype in DTYPES:
            run = compiled(tape, form_name, "none", dtype)
            for points in (awkward, drawn):
                with np.errstate(all="ignore"):
                    given = [p.astype(dtype) for p in points]
                    samples = len(given[0])
                    wanted = {
                        row.name: np.broadcast_to(
                            numpy_arithmetic.numpy_function(row.name)(*given[: row.arity]), samples
                        )
                        for row in rows
                    }
                names = {f"x{number}": column for number, column in enumerate(given)}
                close = 1e-12 if dtype == "float64" else 1e-5
                assert_alike(run(names, {}, samples), wanted, close=close)
    return len(rows)


def graphs() -> None:
    lines = [f"h{j} = tanh(a{j}*xa + b{j}*xb + c{j}*xc + d{j})" for j in range(5)]
    total = " + ".join(f"e{j}*h{j}" for j in range(5))
    graph = cgprimer.parse([*lines, f"xw = {total} + sin(xa)*cos(xa)", "output xw"])
    for method in ("reverse", "symbolic"):
        tape = differentiate(cgprimer.tape(graph), method=method).tape
        for form_name in FORMS:
            for dtype in DTYPES:
                for samples in (1, 3, 67):
                    columns, scalars = random_point(tape, samples, dtype=dtype, low=-1.0)
                    check(tape, form_name, columns, scalars, samples, dtype=dtype)


def training() -> None:
    graph = cgprimer.parse("xh = tanh(k*xa + b); xw = xh*k + c; parameter k = 2, b = 1, c = 0.5")
    data = cgprimer.make_dataset(graph, samples=53, seed=1)
    for optimizer in ("sgd", "momentum", "adam"):
        for batch in (1, 7, None):
            settings = {"epochs": 2, "batch_size": batch, "optimizer": optimizer}
            wanted = cgprimer.train(graph, data, engine="numpy", learning_rate=0.01, **settings)
            for form_name in FORMS:
                with form(form_name):
                    run = cgprimer.train(graph, data, engine="cpu", learning_rate=0.01, **settings)
                np.testing.assert_allclose(run.step_losses, wanted.step_losses, rtol=1e-10)


if __name__ == "__main__":
    count = every_primitive()
    graphs()
    training()
    print(f"{get_target_processor().bits} bits, {count} primitives")
