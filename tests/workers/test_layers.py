"""Graphs cut by layers: the unsplit gradient, adjoints over the cuts, the pipeline's bubble."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import networks
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError
from cgprimer.training.distributed import layer_cuts, pipeline
from cgprimer.training.distributed.gradient_tasks import Gradients
from cgprimer.training.distributed.layer_cuts import adjoint_name, cut
from cgprimer.training.distributed.layer_stages import Stages
from cgprimer.training.distributed.protocols import Task
from cgprimer.training.distributed.worker_record import record_of, summarize_record
from cgprimer.training.objective import Objective, ResidentData
from tests.approval import refused
from tests.workers.test_protocols import differ

GRAPHS = {
    "lecture": cgprimer.load("lecture"),
    "network": networks.mlp("4-6-6-5-2"),
    "recurrent": networks.recurrent(6),
    "random": networks.random(40),
    "skip": cgprimer.parse("xa = sin(k*x); xb = xa^2 + m*x; xc = exp(xb)*xa; xd = xc + k*xb - x"),
    "shared": cgprimer.parse("xb = k^2*x; xc = tanh(k^2*xb + m); xd = m*xc"),
}


def made(graph: cgprimer.ExpressionGraph, samples: int = 23) -> tuple[cgprimer.Dataset, Any]:
    numbers = np.random.default_rng(3)
    truth = {n: numbers.normal(size=graph.shapes.get(n, ())) * 0.5 for n in graph.parameters}
    return cgprimer.make_dataset(graph, samples=samples, truth=truth), numbers


def by_stages(stages: Stages, values: Any, task: Task) -> tuple[float, Any]:
    """Loss and gradient as a team of stages computes them."""
    acts: dict[str, Any] = {}
    for k, part in enumerate(stages.parts):
        acts |= stages.run_forward(k, values, task, {name: acts[name] for name in part.inputs})
    bars: dict[str, Any] = {}
    gradient = 0.0
    for k in reversed(range(len(stages.parts))):
        taken = {name: acts[name] for name in stages.parts[k].inputs}
        back, own = stages.run_backward(k, values, task, taken, bars)
        gradient = gradient + own
        for name, bar in back.items():
            bars[name] = bars[name] + bar if name in bars else bar
    return stages.sum_losses(acts), gradient


@pytest.mark.parametrize(
    ("name", "count", "engine"),
    [*((name, count, "plain") for name in GRAPHS for count in (1, 2, 3)), ("lecture", 2, "cpu")],
)
def test_stages_give_the_gradient_of_the_whole(name: str, count: int, engine: str) -> None:
    graph = GRAPHS[name]
    data, numbers = made(graph)
    objective = Objective(graph, samples=len(data), dataset=data, mode="training", engine=engine)
    gradients = Gradients(objective, ResidentData(objective, data), seed=0, shuffle=True)
    values, task = numbers.normal(size=len(objective.vectors)) * 0.4, Task(0, 0, 2, 19)
    loss, gradient = gradients(values, task)
    found, own = by_stages(Stages(gradients, count), values, task)
    assert found == pytest.approx(loss, rel=1e-12)
    assert own == pytest.approx(gradient, rel=1e-12, abs=1e-12 * np.abs(gradient).max())


def test_an_adjoint_that_is_lost_on_the_way_is_noticed() -> None:
    """The proof above can fail: without what comes back over the cut the gradient is another."""
    graph = GRAPHS["network"]
    data, numbers = made(graph)
    objective = Objective(graph, samples=len(data), dataset=data, mode="training")
    gradients = Gradients(objective, ResidentData(objective, data), seed=0, shuffle=True)
    values, task = numbers.normal(size=len(objective.vectors)), Task(0, 0, 0, 9)
    stages = Stages(gradients, 2)
    given = stages.run_forward(0, values, task, {})
    zeros = {name: np.zeros_like(value) for name, value in given.items()}
    assert np.abs(stages.run_backward(0, values, task, {}, zeros)[1]).max() == 0
    back, _ = stages.run_backward(1, values, task, given, {})
    assert np.abs(stages.run_backward(0, values, task, {}, back)[1]).max() > 0


def test_a_cut_runs_between_variables_and_parts_have_what_they_need() -> None:
    graph = GRAPHS["recurrent"]
    tape = cgprimer.tape(graph)
    parts = cut(tape, 3, graph.definitions, graph.parameters)
    assert [[*part.inputs] for part in parts] == [[], ["cut.xh2"], ["cut.xh4"]]
    assert parts[0].tape.of_kind("column") == ("x1", "x2")
    assert sum(part.work for part in parts) == pytest.approx(1)
    assert adjoint_name("cut.xh2") == "cut.bar.xh2"


def test_what_is_known_before_any_sample_is_not_sent() -> None:
    """k^2 is computed by both: only columns cross a cut."""
    graph = GRAPHS["shared"]
    parts = cut(cgprimer.tape(graph), 2, graph.definitions, graph.parameters)
    assert all(name in ("cut.xb", "cut.xc") for part in parts for name in part.inputs)


def test_the_stages_tapes_compute_what_the_tape_does() -> None:
    graph = GRAPHS["skip"]
    point = {"x": 0.7, "k": 1.3, "m": -0.4}
    tape = cgprimer.tape(graph)
    known: dict[str, Any] = dict(point)
    for part in cut(tape, 3, graph.definitions, graph.parameters):
        known |= _outputs(part.tape, known)
    assert known["xd"] == _outputs(tape, point)["xd"]


def _outputs(tape: Tape, given: dict[str, Any]) -> dict[str, Any]:
    values = values_of(tape, given)
    return {name: values[i] for name, i in tape.outputs.items()}


def test_no_derivative_is_written_down_here() -> None:
    """Neither the cut nor the pipeline knows a partial: they ask the methods."""
    for module in layer_cuts, pipeline:
        text = inspect.getsource(module)
        assert "differentiate(" in text or module is pipeline
        assert "partial(" not in text
        assert ".vjp(" not in text
        assert ".jvp(" not in text


# --- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("micro", [1, 3])
@pytest.mark.parametrize("name", ["lecture", "network", "recurrent"])
def test_a_placed_run_is_the_unsplit_one(name: str, micro: int) -> None:
    graph = GRAPHS[name]
    data, _ = made(graph, 83)
    how: dict[str, Any] = {"epochs": 3, "batch_size": 20, "learning_rate": 1e-3, "l2": 1e-3}
    one = cgprimer.train(graph, data, **how)
    placed = cgprimer.train(
        graph, data, place="layers:2", micro_batches=micro, simulate=True, **how
    )
    assert differ(one, placed) <= 1e-12
    assert placed.epoch_losses == pytest.approx(one.epoch_losses, rel=1e-12)


@pytest.mark.parametrize(("stages", "micro"), [(2, 1), (2, 4), (4, 8)])
def test_the_bubble_of_equal_stages(stages: int, micro: int) -> None:
    """Source: Huang et al. 2019, section 2.3: (p - 1)/(m + p - 1)."""
    chain = "; ".join(f"x{k + 1} = sin(x{k})" for k in range(stages - 1))
    # Three operations a stage: the last one has its own, and the squared difference.
    lines = [f"x{k + 1} = sin(sin(sin(x{k})))" for k in range(stages - 1)]
    graph = cgprimer.parse("; ".join([*lines, f"xl = k*x{stages - 1}"])) if chain else None
    assert graph is not None
    data = cgprimer.make_dataset(graph, samples=4 * micro, truth={"k": 2.0})
    run = cgprimer.train(
        graph, data, place=f"layers:{stages}", micro_batches=micro, simulate=True,
        delays="constant", batch_size=None, epochs=3,
    )  # fmt: skip
    record = record_of(run)
    assert record.time_fractions()["wait"] == pytest.approx((stages - 1) / (micro + stages - 1))
    assert run.team["clock"] / run.steps == pytest.approx(
        (micro + stages - 1) / micro / stages, rel=1e-12
    )
    assert "bubble" in summarize_record(record, run.steps)[1]


def test_what_crosses_takes_its_bytes() -> None:
    graph = cgprimer.parse("xh = sin(sin(j*x)); xl = k*xh")
    data = cgprimer.make_dataset(graph, samples=10, truth={"j": 1.0, "k": 2.0})
    how: dict[str, Any] = {"place": "layers:2", "simulate": True, "batch_size": None, "epochs": 1}
    runs = [cgprimer.train(graph, data, delays=f"constant,network({c})", **how) for c in (0, 1e-3)]
    # 10 numbers of 8 bytes forward, and as many adjoints back.
    assert runs[1].team["clock"] - runs[0].team["clock"] == pytest.approx(2 * 10 * 8 * 1e-3)


def test_a_placed_run_is_taken_up(tmp_path: Any) -> None:
    graph = GRAPHS["network"]
    data, _ = made(graph, 60)
    how: dict[str, Any] = {
        "place": "layers:3", "micro_batches": 2, "simulate": True, "batch_size": 20,
        "schedule": "constant",
    }  # fmt: skip
    whole = cgprimer.train(graph, data, epochs=5, **how)
    cgprimer.train(graph, data, epochs=2, **how).save(tmp_path / "run.json")
    half = cgprimer.load_run(tmp_path / "run.json", graph)
    again = cgprimer.train(graph, data, epochs=5, resume=half, **how)
    assert differ(whole, again) == 0
    assert again.team == whole.team


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"place": "layers:9"}, "9"),
        ({"place": "layer:2"}, "'layer:2'"),
        ({"place": "layers:0"}, "'layers:0'"),
        ({"place": "layers:2", "workers": 3}, "3"),
        ({"place": "layers:2", "protocol": "async"}, ""),
        ({"place": "layers:2", "method": "forward"}, ""),
        ({"place": "layers:2", "delays": "dies(1,2)"}, ""),
        ({"place": "layers:2", "micro_batches": 50}, "50 micro-batches"),
        ({"micro_batches": 2, "simulate": False}, ""),
        ({"place": "layers:2", "simulate": False}, "2"),
    ],
)
def test_what_cannot_be_placed_is_said(more: dict[str, Any], said: str) -> None:
    graph = GRAPHS["lecture"]
    data, _ = made(graph)
    with refused(UsageError, said):
        cgprimer.train(graph, data, **{"simulate": True, "batch_size": 5, "epochs": 1, **more})


# --- data and model parallelism together --------------------------------------------------------


def replicas(**settings: Any) -> Any:
    graph = GRAPHS["network"]
    data, _ = made(graph, samples=40)
    usual = {"optimizer": "sgd", "learning_rate": 0.01, "epochs": 3, "batch_size": 5}
    return cgprimer.train(graph, data, simulate=True, seed=1, **usual, **settings)


@pytest.mark.parametrize("protocol", ["sync", "groups"])
def test_replicas_of_a_placed_graph_are_workers_of_the_protocol(protocol: str) -> None:
    placed = replicas(workers=8, place="layers:2", protocol=protocol, delays="constant")
    whole = replicas(workers=4, protocol=protocol, delays="constant")
    assert placed.steps == whole.steps
    assert differ(placed, whole) < 1e-12
    record = record_of(placed)
    assert record.workers == 8
    assert record.protocol == f"layers:2, {protocol}"
    assert {span.worker for span in record.spans} == set(range(8))


def test_asynchronous_replicas_are_stale() -> None:
    placed = replicas(workers=6, place="layers:2", protocol="async", micro_batches=2)
    record = record_of(placed)
    assert record.mean_staleness > 0
    assert any(line.startswith("staleness:") for line in summarize_record(record, placed.steps))
    alone = replicas(place="layers:2")
    assert record_of(alone).protocol == "layers:2"


def test_replicas_go_on_where_they_ended(tmp_path: Any) -> None:
    graph = GRAPHS["network"]
    data, _ = made(graph, samples=40)
    given = {"workers": 4, "place": "layers:2", "simulate": True, "batch_size": 5, "seed": 2}
    whole = cgprimer.train(graph, data, epochs=4, schedule="constant", **given)
    half = cgprimer.train(graph, data, epochs=2, schedule="constant", **given)
    half.save(tmp_path / "half.json")
    half = cgprimer.load_run(tmp_path / "half.json")
    again = cgprimer.train(graph, data, epochs=4, schedule="constant", resume=half, **given)
    assert differ(again, whole) == 0
    assert again.team["clock"] == pytest.approx(whole.team["clock"], rel=1e-12)
    assert again.team["seconds"] == whole.team["seconds"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 3}, ""),
        ({"workers": 4, "protocol": "backup"}, "backup"),
        ({"protocol": "async"}, ""),
    ],
)
def test_mistakes_with_replicas(settings: dict, message: str) -> None:
    with refused(UsageError, message):
        replicas(place="layers:2", **settings)
