"""What training inside an engine is made of: all passes in one tape, sums, and single epochs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.interfaces import SampleBatches
from cgprimer.backends.program_cache import merge_passes
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.derivative_program import Pass, Read
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import optimizer
from tests.native.engine_agreement import FORMS, form
from tests.training.training_graphs import two_outputs as graph
from tests.training.training_graphs import two_targets as data

METHODS = ("reverse", "forward", "symbolic", "path-sum")


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


# --- loss and gradient for optimizers of others --------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("form_name", FORMS)
def test_loss_and_gradient(form_name: str, reduction: str, dtype: str) -> None:
    random = np.random.default_rng(8)
    points = [dict(zip(graph().parameters, random.random(20), strict=False)) for _ in range(3)]
    close = 1e-10 if dtype == "float64" else 1e-4
    for method in (*METHODS, "finite-difference"):
        settings: dict[str, Any] = {"method": method, "reduction": reduction, "dtype": dtype}
        with form(form_name):
            call = cgprimer.loss_and_gradient(graph(), data(), engine="cpu", **settings)
        known = cgprimer.loss_and_gradient(graph(), data(), engine="numpy", **settings)
        found = [call(point) for point in points]  # all before any is looked at
        if method == "finite-difference":
            close = 1e-6 if dtype == "float64" else 0.2
        for point, (loss, slopes) in zip(points, found, strict=True):
            wanted, expected = known(point)
            scale = sum(map(abs, expected.values()))
            assert loss == pytest.approx(wanted, rel=close)
            assert slopes == pytest.approx(expected, rel=close, abs=close * scale)
            assert all(type(value) is float for value in (loss, *slopes.values()))


# --- all passes in one tape ----------------------------------------------------------------------


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize(
    ("method", "options"),
    [
        *((method, {}) for method in METHODS),
        ("forward", {"carry": True}),
        ("symbolic", {"share": False}),
    ],
    ids=str,
)
def test_a_single_run_is_what_the_runner_gives(
    method: str, options: dict[str, Any], form_name: str
) -> None:
    primal = with_loss(cgprimer.tape(graph()), "squared-error")
    parameters = graph().parameters
    program = differentiate(primal, of=LOSS, wrt=parameters, method=method, **options)
    tape = merge_passes(program)
    assert tape is not None
    assert list(tape.outputs) == [LOSS, *(f"d.{LOSS}.d.{name}" for name in parameters)]
    random = np.random.default_rng(1)
    columns = {name: random.uniform(-1, 1, 43) for name in primal.of_kind("column")}
    scalars = {name: float(random.uniform(-1, 1)) for name in primal.of_kind("scalar")}
    wanted = Runner(program, engine="numpy", reduction="sum")(columns, scalars, 43)
    with form(form_name):
        run = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")
    found = list(run(columns, scalars, 43).values())
    known = [wanted.values[LOSS], *(wanted.derivatives[LOSS, name] for name in parameters)]
    np.testing.assert_allclose(found, known, rtol=1e-11, atol=1e-11)


def test_there_is_no_single_run_for_differences_and_for_too_much() -> None:
    tape = cgprimer.tape(cgprimer.parse("xh = k*xa + b; xw = sin(xh)*xh"))
    for scheme in ("central", "complex-step"):
        program = differentiate(tape, method="finite-difference", scheme=scheme)
        assert merge_passes(program) is None
    program = differentiate(tape, method="forward")
    with mock.patch(
        "cgprimer.backends.program_cache.MAX_MERGED_OPERATIONS", program.operation_count - 1
    ):
        assert merge_passes(program) is None
    settings: dict[str, Any] = {"epochs": 1, "learning_rate": 0.01}
    with mock.patch("cgprimer.backends.program_cache.MAX_MERGED_OPERATIONS", 1):
        run = cgprimer.train(graph(), data(), engine="cpu", **settings)
    wanted = cgprimer.train(graph(), data(), engine="numpy", **settings)
    assert run.parameters == pytest.approx(wanted.parameters, rel=1e-10)


def test_readings_count_as_much_as_they_say() -> None:
    """Weights, and several readings of one derivative, as a method may have them."""
    program = differentiate(
        cgprimer.tape(cgprimer.parse("xw = sin(k*xa)*m")), wrt=("k", "m"), method="forward"
    )
    weighted = replace(
        program,
        passes=tuple(
            Pass(
                tuple(Read(r.of, r.wrt, r.output, w) for r in p.reads for w in (2.0, -0.5)), p.seeds
            )
            for p in program.passes
        ),
    )
    tape = merge_passes(weighted)
    assert tape is not None
    columns, scalars = {"xa": np.linspace(0, 1, 9)}, {"k": 0.5, "m": 2.0}
    found = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")(
        columns, scalars, 9
    )
    wanted = Runner(program, reduction="sum")(columns, scalars, 9)
    assert found["xw"] == pytest.approx(wanted.values["xw"])
    for name in ("k", "m"):
        expected = 1.5 * wanted.derivatives["xw", name]
        assert found[f"d.xw.d.{name}"] == pytest.approx(expected)


# --- an epoch, by itself -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("form_name", FORMS)
def test_an_epoch_that_fails_ends_with_the_loss_that_did(form_name: str, name: str) -> None:
    """Values and state are those before the step; what was given stays as it is."""
    line = cgprimer.parse("xw = sqrt(xa)*k + b")
    xa = np.linspace(1.0, 2.0, 20)
    xa[13] = -1.0
    columns = {"xa": xa, "target.xw": np.ones(20)}
    rule = optimizer(name)
    with form(form_name):
        trainer = Objective(line, engine="cpu").trainer(rule, 3)
    assert trainer is not None
    start = np.array([0.25, -1.0])
    state = rule.start(start)
    batches = SampleBatches(columns, np.arange(20), 3)
    values, after, losses, failed = trainer.run_updates(batches, start, state, np.full(7, 1e-3))
    assert failed == 4
    assert len(losses) == 5
    assert np.isfinite(losses[:4]).all()
    assert np.isnan(losses[4])
    fewer = SampleBatches(columns, np.arange(12), 3)
    known, known_state, known_losses, none = trainer.run_updates(
        fewer, start, state, np.full(4, 1e-3)
    )
    assert none == -1
    np.testing.assert_array_equal(values, known)
    np.testing.assert_array_equal(losses[:4], known_losses)
    for part, other in zip(after, known_state, strict=True):
        np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(start, [0.25, -1.0])
    for part in state:
        np.testing.assert_array_equal(part, np.zeros_like(part))
