"""Start values and the ground truth of graphs that declare initializers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer import networks
from cgprimer.training.estimators import flat_objective
from tests.cli.cli_tools import here

TEXT = "input x[3]; parameter W[2,3] = glorot, b[2] = zeros, k = 5; xo = k*(W @ x + b) + c"


@pytest.fixture
def graph() -> cgprimer.ExpressionGraph:
    return cgprimer.parse(TEXT)


def data(graph: cgprimer.ExpressionGraph) -> cgprimer.Dataset:
    return cgprimer.make_dataset(graph, truth={"c": 0.5}, samples=50)


def test_a_run_starts_at_samples_of_the_initializers(graph: cgprimer.ExpressionGraph) -> None:
    runs = [cgprimer.train(graph, data(graph), epochs=1, seed=seed) for seed in (0, 1, 0)]
    for run, seed in zip(runs, (0, 1, 0), strict=True):
        np.testing.assert_array_equal(run.start["W"], graph.sampled_start(seed)["W"])
        np.testing.assert_array_equal(run.start["b"], [0.0, 0.0])
        np.testing.assert_array_equal(run.truth["W"], np.array(graph.values["W"]))
    assert runs[0].start["W"].tolist() == runs[2].start["W"].tolist()
    assert runs[0].start["W"].tolist() != runs[1].start["W"].tolist()
    assert runs[0].parameters["W"].tolist() == runs[2].parameters["W"].tolist()


def test_other_parameters_start_where_they_did(graph: cgprimer.ExpressionGraph) -> None:
    plain = cgprimer.parse(TEXT.replace(" = glorot", "").replace(" = zeros", ""))
    truth = {"W": 1.0, "b": 0.0, "c": 0.5}
    dataset = cgprimer.make_dataset(plain, truth=truth, samples=50)
    before, after = (cgprimer.train(g, dataset, epochs=0, seed=7).start for g in (plain, graph))
    assert (before["k"], before["c"]) == (after["k"], after["c"])
    assert before["W"].tolist() != after["W"].tolist()


def test_given_and_frozen_values_take_precedence(graph: cgprimer.ExpressionGraph) -> None:
    given = cgprimer.train(graph, data(graph), epochs=0, start={"W": 0.25, "b[1]": 2.0}).start
    assert given["W"].tolist() == [[0.25] * 3] * 2
    assert given["b"].tolist() == [0.0, 2.0]
    frozen = cgprimer.train(graph, data(graph), epochs=1, freeze=["W"])
    assert frozen.parameters["W"].tolist() == np.array(graph.values["W"]).tolist()


def test_other_entry_points_start_at_the_same_values(graph: cgprimer.ExpressionGraph) -> None:
    _, start, names = flat_objective(graph, data(graph), seed=4)
    by_name = dict(zip(names, start.tolist(), strict=True))
    assert by_name["W[1,2]"] == graph.sampled_start(4)["W"][1, 2]
    assert by_name["k"] == 5.0  # declared as a number
    line = cgprimer.parse("parameter a = normal(2), b = ones; xo = a*xa + b")
    fitted = cgprimer.fit(line, cgprimer.make_dataset(line, samples=20), seed=4)
    assert fitted.start == {"a": line.sampled_start(4)["a"], "b": 1.0}
    assert fitted.parameters["a"] == pytest.approx(line.values["a"])


def test_members_of_an_ensemble_start_apart(graph: cgprimer.ExpressionGraph) -> None:
    bag = cgprimer.ensemble(graph, data(graph), members=3, epochs=0, seed=2)
    starts = [member.start["W"].tolist() for member in bag.runs]
    assert starts == [graph.sampled_start(2 + k)["W"].tolist() for k in range(3)]


def test_a_saved_run_keeps_the_text_and_goes_on(
    graph: cgprimer.ExpressionGraph, tmp_path: Path
) -> None:
    settings = {"optimizer": "adam", "schedule": "constant"}
    half = cgprimer.train(graph, data(graph), epochs=2, **settings)
    half.save(tmp_path / "run.json")
    again = cgprimer.load_run(tmp_path / "run.json")
    assert again.start["W"].tolist() == half.start["W"].tolist()
    whole = cgprimer.train(graph, data(graph), epochs=4, **settings)
    resumed = cgprimer.train(graph, data(graph), epochs=4, resume=again, **settings)
    assert resumed.parameters["W"].tolist() == whole.parameters["W"].tolist()


def test_a_new_network_is_piped_to_training(tmp_path: Path) -> None:
    made = here("new", "mlp", "4-8-1", cwd=tmp_path)
    words = ("train", "-", "--samples", "2000", "--json")
    done = here(*words, cwd=tmp_path, stdin=made.stdout)
    assert done.returncode == 0, done.stderr
    run = cgprimer.train(
        networks.mlp("4-8-1", values=False),
        cgprimer.make_dataset(networks.mlp("4-8-1", values=False), samples=2000),
    )
    assert run.loss < 0.05 * run.start_loss


def test_data_from_a_file_have_no_declared_values_next_to_them(tmp_path: Path) -> None:
    text = "parameter k = normal(1), b = 2; xo = k*xa + b"
    (tmp_path / "g.cg").write_text(text, encoding="utf-8")
    (tmp_path / "d.csv").write_text("xa,xo\n1,3\n2,5\n3,7\n", encoding="utf-8")
    done = here("train", "g.cg", "--data", "d.csv", "--epochs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("k ")]
    assert len(row.split()) == 2
