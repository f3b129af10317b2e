"""Graphs that are divided into stages: gradients, adjoints at the cuts, the pipeline's bubble."""

from __future__ import annotations

from typing import Any

import pytest

import cgprimer
from cgprimer import networks
from cgprimer.training.distributed.layer_cuts import cut
from cgprimer.training.distributed.worker_record import record_of, summarize_record
from tests.workers.worker_tools import max_difference, with_random_truth

GRAPHS = {
    "lecture": cgprimer.load("lecture"),
    "network": networks.mlp("4-6-6-5-2"),
    "recurrent": networks.recurrent(6),
    "random": networks.random(40),
    "skip": cgprimer.parse("xa = sin(k*x); xb = xa^2 + m*x; xc = exp(xb)*xa; xd = xc + k*xb - x"),
    "shared": cgprimer.parse("xb = k^2*x; xc = tanh(k^2*xb + m); xd = m*xc"),
}


@pytest.mark.parametrize(
    ("name", "count", "engine"),
    [*((name, count, "plain") for name in GRAPHS for count in (2, 3)), ("lecture", 2, "cpu")],
)
def test_divided_graph_is_trained_as_the_whole_graph(name: str, count: int, engine: str) -> None:
    graph = GRAPHS[name]
    data = with_random_truth(graph, 23)
    how = {"optimizer": "sgd", "learning_rate": 0.01, "epochs": 1, "batch_size": 20, "l2": 0.1}
    whole = cgprimer.train(graph, data, engine=engine, **how)
    how |= {"place": f"layers:{count}", "micro_batches": 3, "simulate": True}
    divided = cgprimer.train(graph, data, engine=engine, **how)
    assert divided.step_losses == pytest.approx(whole.step_losses, rel=1e-12)
    assert max_difference(divided, whole) <= 1e-12


def test_cuts_are_between_variables_and_stages_have_what_they_need() -> None:
    graph = GRAPHS["recurrent"]
    parts = cut(cgprimer.tape(graph), 3, graph.definitions, graph.parameters)
    assert [[*part.inputs] for part in parts] == [[], ["cut.xh2"], ["cut.xh4"]]
    assert parts[0].tape.of_kind("column") == ("x1", "x2")
    assert sum(part.work for part in parts) == pytest.approx(1)
    assert max(part.work for part in parts) < 0.4
    shared = GRAPHS["shared"]  # k^2 does not depend on the sample: both stages compute it
    parts = cut(cgprimer.tape(shared), 2, shared.definitions, shared.parameters)
    assert {name for part in parts for name in part.inputs} <= {"cut.xb", "cut.xc"}


def test_work_of_a_stage_is_its_fraction_of_the_scalar_operations() -> None:
    """20*10 products and 20 tanh, then 2*20 products, 2 differences, 2 squares and a sum."""
    graph = cgprimer.parse(
        "input x[10], t[2]; parameter W[20,10], V[2,20]\n"
        "xh = tanh(W @ x); xl = sum((V @ xh - t)^2); output xl"
    )
    parts = cut(cgprimer.tape(graph), 2, graph.definitions, graph.parameters)
    assert [part.parameters for part in parts] == [("W",), ("V",)]
    last = 40 + 2 + 2 + 1
    assert parts[1].work == pytest.approx(last / (220 + last), rel=0.02)


@pytest.mark.parametrize(("stages", "micro"), [(2, 1), (2, 4), (4, 8)])
def test_bubble_of_equal_stages(stages: int, micro: int) -> None:
    """Source: Huang et al. 2019, section 2.3: (p - 1)/(m + p - 1)."""
    # Three operations a stage: the last one has its own, and the squared difference.
    lines = [f"x{k + 1} = sin(sin(sin(x{k})))" for k in range(stages - 1)]
    graph = cgprimer.parse("; ".join([*lines, f"xl = k*x{stages - 1}"]))
    data = cgprimer.make_dataset(graph, samples=4 * micro, truth={"k": 2.0})
    run = cgprimer.train(
        graph, data, place=f"layers:{stages}", micro_batches=micro, simulate=True,
        delays="constant", batch_size=None, epochs=3,
    )  # fmt: skip
    record = record_of(run)
    assert record.protocol == f"layers:{stages}"
    assert record.time_fractions()["wait"] == pytest.approx((stages - 1) / (micro + stages - 1))
    assert run.team["clock"] / run.steps == pytest.approx(
        (micro + stages - 1) / micro / stages, rel=1e-12
    )
    first = [span for span in record.spans if span.worker == 0][: 2 * micro]
    assert [span.kind for span in first] == ["forward"] * micro + ["backward"] * micro
    seconds = [span.end - span.begin for span in first]
    assert seconds[micro] == pytest.approx(2 * seconds[0])
    assert "bubble" in summarize_record(record, run.steps)[1]


def test_values_at_a_cut_take_transfer_time() -> None:
    graph = cgprimer.parse("xh = sin(sin(j*x)); xl = k*xh")
    data = cgprimer.make_dataset(graph, samples=10, truth={"j": 1.0, "k": 2.0})
    how: dict[str, Any] = {"place": "layers:2", "simulate": True, "batch_size": None, "epochs": 1}
    runs = [cgprimer.train(graph, data, delays=f"constant,network({c})", **how) for c in (0, 1e-3)]
    # 10 numbers of 8 bytes forward, and as many adjoints back.
    assert runs[1].team["clock"] - runs[0].team["clock"] == pytest.approx(2 * 10 * 8 * 1e-3)


@pytest.mark.parametrize("protocol", ["sync", "groups", "async"])
def test_replicas_of_a_divided_graph_are_workers_of_the_protocol(protocol: str) -> None:
    graph = GRAPHS["network"]
    data = with_random_truth(graph, 43)
    how = {"protocol": protocol, "delays": "constant", "simulate": True, "batch_size": 5, "l2": 0.1}
    divided = cgprimer.train(
        graph, data, workers=8, place="layers:2", micro_batches=3, epochs=3, **how
    )
    record = record_of(divided)
    assert (record.workers, record.protocol) == (8, f"layers:2, {protocol}")
    assert {span.worker for span in record.spans} == set(range(8))
    if protocol == "async":
        assert record.mean_staleness > 0
        assert summarize_record(record, divided.steps)[-1].startswith("staleness:")
    else:
        whole = cgprimer.train(graph, data, workers=4, epochs=3, **how)
        assert divided.epoch_losses == pytest.approx(whole.epoch_losses, rel=1e-12)
        assert max_difference(divided, whole) < 1e-12
