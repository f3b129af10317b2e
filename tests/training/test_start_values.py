"""Start values and ground truth of graphs that declare initializers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.training.estimators import flat_objective
from tests.cli.cli_tools import here

TEXT = "input x[3]; parameter W[2,3] = glorot, b[2] = zeros, k = 5; xo = k*(W @ x + b) + c"
GRAPH = cgprimer.parse(TEXT)
DATA = cgprimer.make_dataset(GRAPH, truth={"c": 0.5}, samples=50)


def test_runs_start_at_samples_of_the_initializers() -> None:
    starts = {}
    for seed in (0, 1, 0):
        run = cgprimer.train(GRAPH, DATA, epochs=1, seed=seed)
        np.testing.assert_array_equal(run.start["W"], GRAPH.sampled_start(seed)["W"])
        np.testing.assert_array_equal(run.start["b"], [0.0, 0.0])
        np.testing.assert_array_equal(run.truth["W"], np.array(GRAPH.values["W"]))
        assert run.parameters["W"].tolist() == starts.setdefault(seed, run.parameters["W"]).tolist()
    assert starts[0].tolist() != starts[1].tolist()
    limit = np.sqrt(6 / (2 + 3))  # of Glorot and Bengio 2010
    samples = np.array([GRAPH.sampled_start(seed)["W"] for seed in range(200)])
    assert abs(samples).max() < limit
    assert samples.std() == pytest.approx(limit / np.sqrt(3), rel=0.05)


def test_other_parameters_start_as_without_initializers() -> None:
    plain = cgprimer.parse(TEXT.replace(" = glorot", "").replace(" = zeros", ""))
    data = cgprimer.make_dataset(plain, truth={"W": 1.0, "b": 0.0, "c": 0.5}, samples=50)
    before, after = (cgprimer.train(g, data, epochs=0, seed=7).start for g in (plain, GRAPH))
    assert (before["k"], before["c"]) == (after["k"], after["c"])
    assert before["W"].tolist() != after["W"].tolist()


def test_given_and_frozen_values_take_precedence() -> None:
    given = cgprimer.train(GRAPH, DATA, epochs=0, start={"W": 0.25, "b[1]": 2.0}).start
    assert given["W"].tolist() == [[0.25] * 3] * 2
    assert given["b"].tolist() == [0.0, 2.0]
    frozen = cgprimer.train(GRAPH, DATA, epochs=1, freeze=["W"])
    assert frozen.parameters["W"].tolist() == np.array(GRAPH.values["W"]).tolist()


def test_other_functions_start_at_equal_values(tmp_path: Path) -> None:
    _, start, names = flat_objective(GRAPH, DATA, seed=4)
    by_name = dict(zip(names, start.tolist(), strict=True))
    assert by_name["W[1,2]"] == GRAPH.sampled_start(4)["W"][1, 2]
    assert by_name["k"] == 5.0  # declared
    line = cgprimer.parse("parameter a = normal(2), b = ones; xo = a*xa + b")
    fitted = cgprimer.fit(line, cgprimer.make_dataset(line, samples=20), seed=4)
    assert fitted.start == {"a": line.sampled_start(4)["a"], "b": 1.0}
    assert fitted.parameters["a"] == pytest.approx(line.values["a"])
    bag = cgprimer.ensemble(GRAPH, DATA, members=3, epochs=0, seed=2)
    for k, member in enumerate(bag.runs):
        np.testing.assert_array_equal(member.start["W"], GRAPH.sampled_start(2 + k)["W"])
    settings = {"optimizer": "adam", "schedule": "constant"}
    half = cgprimer.train(GRAPH, DATA, epochs=2, **settings)
    half.save(tmp_path / "run.json")
    again = cgprimer.load_run(tmp_path / "run.json")
    assert again.start["W"].tolist() == half.start["W"].tolist()
    whole = cgprimer.train(GRAPH, DATA, epochs=4, **settings)
    resumed = cgprimer.train(GRAPH, DATA, epochs=4, resume=again, **settings)
    assert resumed.parameters["W"].tolist() == whole.parameters["W"].tolist()


def test_commands_with_initializers(tmp_path: Path) -> None:
    made = here("new", "mlp", "4-8-1", cwd=tmp_path)
    piped = here("train", "-", "--samples", "500", "--json", cwd=tmp_path, stdin=made.stdout)
    assert piped.returncode == 0, piped.stderr
    run = json.loads(piped.stdout)
    assert run["loss"] < 0.5 * run["start_loss"]
    text = "parameter k = normal(1), b = 2; xo = k*xa + b"
    (tmp_path / "g.cg").write_text(text, encoding="utf-8")
    (tmp_path / "d.csv").write_text("xa,xo\n1,3\n2,5\n3,7\n", encoding="utf-8")
    done = here("train", "g.cg", "--data", "d.csv", "--epochs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("k ")]
    assert len(row.split()) == 2  # without a declared value
