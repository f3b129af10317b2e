"""Start values and ground truth of graphs that declare initializers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.training.estimators import flat_objective
from tests.cli.cli_tools import good, here

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


def test_other_functions_start_at_equal_values() -> None:
    _, start, names = flat_objective(GRAPH, DATA, seed=4)
    by_name = dict(zip(names, start.tolist(), strict=True))
    assert by_name["W[1,2]"] == GRAPH.sampled_start(4)["W"][1, 2]
    assert by_name["k"] == 5.0  # declared
    line = cgprimer.parse("parameter a = normal(2), b = ones; xo = a*xa + b")
    fitted = cgprimer.fit(line, cgprimer.make_dataset(line, samples=20), seed=4)
    assert fitted.start == {"a": line.sampled_start(4)["a"], "b": 1.0}
    bag = cgprimer.ensemble(GRAPH, DATA, members=3, epochs=0, seed=2)
    for k, member in enumerate(bag.runs):
        np.testing.assert_array_equal(member.start["W"], GRAPH.sampled_start(2 + k)["W"])


def test_commands_with_initializers(tmp_path: Path) -> None:
    network = here("new", "mlp", "2-3-1").stdout
    piped = here("train", "-", "--samples", "50", "--epochs", "9", "--json", stdin=network)
    assert piped.returncode == 0, piped.stderr
    (tmp_path / "d.csv").write_text("xa,xo\n1,3\n2,5\n3,7\n", encoding="utf-8")
    text = "parameter k = normal(1), b = 2; xo = k*xa + b"
    shown = good("train", "-e", text, "--data", "d.csv", "--epochs", "2", cwd=tmp_path)
    (row,) = [line for line in shown.splitlines() if line.startswith("k ")]
    assert len(row.split()) == 2  # without a declared value
