"""Many workers on a virtual clock: the lecture's numbers, order statistics, one worker as proof."""

from __future__ import annotations

import dataclasses
import random
import statistics
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.training.distributed.delays import Delays, parse_delays
from cgprimer.training.distributed.protocols import Task, gather_asynchronously, plan_protocol
from cgprimer.training.distributed.simulator import SimulatedTeam
from cgprimer.training.distributed.worker_record import record_of
from cgprimer.training.runs import TrainingRun
from cgprimer.training.settings import DEFAULT_SETTINGS, create_settings
from cgprimer.training.strategy_choice import plan_training
from cgprimer.training.worker_options import PROTOCOLS, WorkerOptions
from tests.approval import refused
from tests.docs.scaling import Curve, curves_of

LINE = cgprimer.parse("xw = k*x")
PAIR = cgprimer.Dataset.from_arrays({"x": [1.0, 2.0]}, {"xw": [3.0, 6.0]})
PLAIN: dict[str, Any] = {
    "optimizer": "sgd", "learning_rate": 0.05, "schedule": "constant", "start": {"k": 0.0},
    "batch_size": 1, "shuffle": False, "epochs": 1, "simulate": True,
}  # fmt: skip


def lecture(samples: int = 600) -> tuple[cgprimer.ExpressionGraph, cgprimer.Dataset]:
    graph = cgprimer.load("lecture")
    return graph, cgprimer.make_dataset(graph, samples=samples)


def differ(one: TrainingRun, other: TrainingRun) -> float:
    """The largest relative difference of parameters."""
    return max(
        float(np.max(np.abs(value - other.parameters[n]) / np.maximum(1, np.abs(value))))
        for n, value in one.parameters.items()
    )


# --- F14 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "more", "k"),
    [
        ("sync", {"workers": 2}, 0.75),  # the mean of both gradients
        ("async", {"workers": 2}, 1.5),  # both taken at k = 0
        ("async", {"workers": 1}, 1.38),  # the second taken after the first was applied
        ("async", {"workers": 2, "delays": "constant,dies(0,2)"}, 1.38),  # the same, by two
        ("backup", {"workers": 2, "delays": "1,5"}, 0.3),  # the second is dropped
        ("groups", {"workers": 2, "groups": 1}, 0.75),
        ("groups", {"workers": 2, "groups": 2}, 1.5),
    ],
)
def test_the_lectures_two_samples(protocol: str, more: dict[str, Any], k: float) -> None:
    run = cgprimer.train(LINE, PAIR, protocol=protocol, **{**PLAIN, **more})
    assert run.parameters["k"] == pytest.approx(k, abs=1e-12)


@pytest.mark.parametrize(("protocol", "seconds"), [("sync", 5.0), ("backup", 1.0)])
def test_a_step_takes_as_long_as_the_slowest_that_is_waited_for(
    protocol: str, seconds: float
) -> None:
    data = cgprimer.make_dataset(LINE, truth={"k": 3.0}, samples=30)
    run = cgprimer.train(LINE, data, workers=3, protocol=protocol, delays="1,1,5", **PLAIN)
    assert run.team["times"] == [seconds * (step + 1) for step in range(10)]


def test_a_step_waits_for_a_task_with_samples() -> None:
    """The last step of an epoch has one sample, which the slow worker has."""
    data = cgprimer.Dataset.from_arrays({"x": np.ones(4)}, {"xw": np.ones(4)})
    how = {**PLAIN, "workers": 3, "protocol": "backup", "delays": "5,1,1"}
    run = cgprimer.train(LINE, data, **how)
    assert run.steps == 2
    assert run.parameters["k"] == pytest.approx(1 - (1 - 2 * 0.05) ** 2, abs=1e-12)


# --- one worker with the k-fold batch ------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("samples", [600, 611])  # 611: the last batch is not full
def test_synchronous_workers_are_one_with_the_k_fold_batch(optimizer: str, samples: int) -> None:
    graph, data = lecture(samples)
    how: dict[str, Any] = {
        "optimizer": optimizer, "learning_rate": 1e-5, "epochs": 4, "l2": 1e-3, "warm_up": 1,
    }  # fmt: skip
    one = cgprimer.train(graph, data, batch_size=40, **how)
    many = cgprimer.train(
        graph, data, batch_size=5, workers=8, simulate=True, delays="pareto", **how
    )
    assert differ(one, many) <= 1e-12
    assert many.epoch_losses == pytest.approx(one.epoch_losses, rel=1e-12)
    assert many.steps == one.steps


def test_so_are_networks_of_arrays_and_sums_and_all_samples_at_once() -> None:
    graph = cgprimer.networks.mlp("3-5-1")
    data = cgprimer.make_dataset(graph, samples=60, truth=_drawn(graph))
    for more in {"reduction": "sum", "learning_rate": 1e-3}, {"batch_size": None}:
        how = {"epochs": 3, "batch_size": 20, **more}
        each = {**how, "batch_size": how["batch_size"] and 5}
        one = cgprimer.train(graph, data, **how)
        many = cgprimer.train(graph, data, workers=4, simulate=True, **each)
        assert differ(one, many) <= 1e-12


def _drawn(graph: cgprimer.ExpressionGraph) -> dict[str, Any]:
    numbers = np.random.default_rng(1)
    return {n: numbers.normal(size=graph.shapes.get(n, ())) for n in graph.parameters}


def test_dropout_drops_the_same_units_whoever_computes() -> None:
    graph = cgprimer.load("dropout")
    data = cgprimer.make_dataset(graph, samples=40, truth=_drawn(graph), targets=False)
    how: dict[str, Any] = {"epochs": 3, "loss": "output", "learning_rate": 1e-3}
    one = cgprimer.train(graph, data, batch_size=20, **how)
    many = cgprimer.train(graph, data, batch_size=5, workers=4, simulate=True, **how)
    assert differ(one, many) <= 1e-12


def test_every_sample_is_learnt_from_once_an_epoch() -> None:
    """All numbers as parameters, each moved by its own sample alone, and by no other."""
    graph = cgprimer.parse("parameter w[6]; input x[6]; xl = sum(w*x); output xl")
    data = cgprimer.Dataset.from_arrays({"x": np.eye(6)})
    for protocol in ("sync", "async", "groups"):
        run = cgprimer.train(
            graph, data, loss="output", workers=2, protocol=protocol, reduction="sum",
            **{**PLAIN, "start": {"w": np.zeros(6)}, "epochs": 3},
        )  # fmt: skip
        assert run.parameters["w"] == pytest.approx(np.full(6, -0.05 * 3), abs=1e-12), protocol


# --- order statistics ----------------------------------------------------------------------------


def harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


@pytest.mark.parametrize(("workers", "spare"), [(8, 0), (8, 2), (20, 5)])
def test_a_step_takes_the_mean_of_an_order_statistic(workers: int, spare: int) -> None:
    """Of exponential delays: H(N + b) - H(b). Source: Renyi 1953, on order statistics."""
    steps = 60_000 // workers
    team = _team(workers, steps * workers, "exponential(2)")
    going = plan_protocol("backup", workers, backup=spare).gather_gradients(team)
    for version in range(1, steps):
        assert len(next(going)) == workers - spare
        team.set_parameters(0.0, version)
    expected = 2 * (harmonic(workers) - harmonic(spare))
    assert team.now / (steps - 1) == pytest.approx(expected, rel=0.02)


def test_asynchronous_workers_never_wait_and_are_stale_by_the_others() -> None:
    data = cgprimer.make_dataset(LINE, truth={"k": 3.0}, samples=4_000)
    run = cgprimer.train(
        LINE, data, workers=5, protocol="async", **{**PLAIN, "learning_rate": 1e-3}
    )
    record = record_of(run)
    assert record.clock / run.steps == pytest.approx(1 / 5, rel=0.05)
    assert record.mean_staleness == pytest.approx(4, rel=0.01)
    assert min(record.utilization) > 0.98


# --- the virtual clock ---------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_seed_gives_the_same_trace(protocol: str) -> None:
    graph, data = lecture()
    how: dict[str, Any] = {
        "workers": 4, "protocol": protocol, "simulate": True, "epochs": 2,
        "delays": "pareto(1.5),slow(3,1),dies(2,4),network(0.01)",
    }  # fmt: skip
    runs = [cgprimer.train(graph, data, seed=seed, **how) for seed in (1, 1, 2)]
    assert runs[0].team == runs[1].team != runs[2].team
    assert runs[0].parameters == runs[1].parameters


def test_the_times_are_these_on_every_machine() -> None:
    """Written down: another machine, or another numpy, must draw the same."""
    drawn = list(islice(parse_delays("exponential", 3).sample_seconds(1, 7), 3))
    assert drawn == [1.5537453112190385, 1.1781342582976655, 0.44985702509657266]
    assert list(islice(parse_delays("pareto(1.5)", 3).sample_seconds(1, 7), 1)) == [
        0.9391481094309286
    ]


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [("exponential(2)", 2.0, 2.0), ("pareto(4,3)", 3.0, 3 / 8**0.5), ("constant(3)", 3.0, 0.0)],
)
def test_laws_have_their_mean_and_deviation(text: str, mean: float, deviation: float) -> None:
    drawn = list(islice(parse_delays(text, 1).sample_seconds(0, 3), 20_000))
    assert statistics.fmean(drawn) == pytest.approx(mean, rel=0.03)
    assert statistics.pstdev(drawn) == pytest.approx(deviation, rel=0.1)


def test_exponential_times_are_exponential_all_along() -> None:
    drawn = sorted(islice(parse_delays("exponential", 1).sample_seconds(0, 11), 20_000))
    law = [1 - np.exp(-value) for value in drawn]
    apart = max(abs(share - (k + 0.5) / len(law)) for k, share in enumerate(law))
    assert apart < 1.63 / len(law) ** 0.5  # Kolmogorov and Smirnov at 1 %


def _team(workers: int, tasks: int, delays: str, size: int = 1) -> SimulatedTeam:
    each = (Task(k, 0, k, k + 1) for k in range(tasks))
    team = SimulatedTeam(
        workers, each, lambda v, t: (0.0, v), parse_delays(delays, workers), 0, size
    )
    team.set_parameters(0.0, 0)
    return team


def test_the_servers_line_takes_one_after_the_other() -> None:
    """k workers of one second: the last is sent to after k bytes, and back after another."""
    team = _team(5, 5, "constant,network(0.1)")
    for worker in team.workers:
        team.start_task(worker)
    times = [team.receive_gradient().time for _ in team.workers]
    assert times == pytest.approx([1.2, 1.3, 1.4, 1.5, 1.6])


def test_a_worker_that_dies_begins_anew_with_the_parameters_of_its_return() -> None:
    team = _team(2, 9, "2,2,dies(1,5)".replace("2,2", "constant(2)"))
    going = gather_asynchronously(team)
    seen = []
    for version in range(1, 6):
        (one,) = next(going)
        seen.append((one.worker, one.time, one.version))
        team.set_parameters(float(version), version)
    assert seen == [(0, 2.0, 0), (0, 4.0, 1), (0, 6.0, 2), (1, 7.0, 2), (0, 8.0, 3)]
    kinds = {s.kind: (s.begin, s.end) for s in team.trace.spans if s.worker == 1}
    assert kinds == {"lost": (0.0, 1.0), "away": (1.0, 5.0), "compute": (5.0, 7.0)}


def test_a_worker_that_returns_knows_no_step_that_is_still_to_come() -> None:
    """Worker 2 returns at 2.5, while the gradient that makes a step at 3 is on its way."""
    team = _team(2, 9, "constant,dies(0,2.5),network(1)")
    team.start_task(0)
    team.start_task(1)
    assert team.receive_gradient().time == 3.0
    team.set_parameters(1.0, 1)
    late = team.receive_gradient()
    assert (late.worker, late.version, late.time) == (1, 0, 5.5)


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_bounded_staleness_keeps_workers_together(bound: int) -> None:
    done = dict.fromkeys(range(4), 0)
    team, ahead = _team(4, 200, "exponential,slow(9)"), 0
    going = gather_asynchronously(team, bound)
    for version in range(1, 120):
        (one,) = next(going)
        team.set_parameters(0.0, version)
        done[one.worker] += 1
        ahead = max(ahead, max(done.values()) - min(done.values()))
    assert ahead == bound + 1  # the one that has just been received is not yet waited for


def test_the_clock_of_random_teams_adds_up() -> None:
    """Whatever happens, no worker does two things at a time, and the seconds are the spans'."""
    numbers = random.Random(5)
    graph, data = lecture(300)
    for _ in range(12):
        workers = numbers.randint(1, 6)
        protocol = numbers.choice([p for p in PROTOCOLS if p != "groups" or workers % 2 == 0])
        delays = "exponential" + numbers.choice(["", ",slow(4)", ",network(0.004)"])
        delays += numbers.choice(["", ",dies(1,3)", ",dies(0,2,1),dies(5,6,1)"])
        backup = {"backup": min(1, workers - 1)} if protocol == "backup" else {}
        run = cgprimer.train(
            graph, data, workers=workers, protocol=protocol, delays=delays, simulate=True,
            batch_size=7, epochs=2, **backup,
        )  # fmt: skip
        record = record_of(run)
        for worker in range(workers):
            own = sorted(s[2:4] for s in record.spans if s.worker == worker)
            assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(own))
            total = sum(each[worker] for each in record.seconds.values())
            assert total == pytest.approx(sum(end - begin for begin, end in own))
            assert total <= record.clock + 1e-9
        assert sum(record.time_fractions().values()) == pytest.approx(1)


# --- runs that are taken up ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "more"), [("sync", {}), ("backup", {}), ("backup", {"backup": 3})]
)
def test_a_run_that_is_taken_up_is_the_uninterrupted_one(
    protocol: str, more: dict[str, Any], tmp_path: Any
) -> None:
    graph, data = lecture()
    how: dict[str, Any] = {
        "workers": 5, "protocol": protocol, "simulate": True, "schedule": "constant",
        "delays": f"exponential,slow(2),network({0.1 if more else 0.001})", **more,
    }  # fmt: skip
    whole = cgprimer.train(graph, data, epochs=6, **how)
    cgprimer.train(graph, data, epochs=2, **how).save(tmp_path / "run.json")
    half = cgprimer.load_run(tmp_path / "run.json", graph)
    again = cgprimer.train(graph, data, epochs=6, resume=half, **how)
    assert again.parameters == whole.parameters
    assert again.team["times"] == whole.team["times"]
    assert again.team["seconds"] == whole.team["seconds"]


def test_an_asynchronous_run_that_is_interrupted_loses_no_sample(tmp_path: Any) -> None:
    graph = cgprimer.parse("parameter w[40]; input x[40]; xl = sum(w*x); output xl")
    data = cgprimer.Dataset.from_arrays({"x": np.eye(40)})
    how: dict[str, Any] = {
        **PLAIN, "workers": 4, "protocol": "async", "loss": "output", "reduction": "sum",
        "start": {"w": np.zeros(40)}, "epochs": 2,
    }  # fmt: skip

    def stop(step: int, steps: int, loss: float) -> None:
        if step == 33:
            raise KeyboardInterrupt

    half = cgprimer.train(graph, data, on_step=stop, **how)
    assert half.stopped == "interrupted"
    assert len(half.team["pending"]) == 3
    half.save(tmp_path / "run.json")
    how.pop("start")
    again = cgprimer.train(graph, data, resume=cgprimer.load_run(tmp_path / "run.json"), **how)
    assert again.steps == 80
    assert again.parameters["w"] == pytest.approx(np.full(40, -0.1), abs=1e-12)


# --- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"workers": 3}, "3 ... 2"),
        ({"workers": 0}, "workers ... 1"),
        ({"workers": 2, "simulate": False}, "2"),
        ({"protocol": "asinc", "workers": 2}, "'asinc' ... 'async'"),
        ({"workers": 2, "optimizer": "l-bfgs", "learning_rate": None}, "l-bfgs"),
        ({"workers": 2, "optimizer": "coordinates"}, "coordinates"),
        ({"workers": 2, "delays": "exponetial"}, "'exponetial' ... 'exponential'"),
        ({"workers": 2, "delays": "exponential(-1)"}, "-1"),
        ({"workers": 2, "delays": "1,-2"}, "worker ... -2"),
        ({"workers": 2, "delays": "1,2,3"}, "3 ... 2"),
        ({"workers": 2, "delays": "slow(2,3)"}, "3 ... 2"),
        ({"workers": 2, "delays": "dies(3,2)"}, "2"),
        ({"workers": 2, "delays": "pareto(1)"}, "1"),
        ({"workers": 2, "delays": "network(x)"}, "'x'"),
        ({"workers": 2, "backup": 1}, "backup ... sync"),
        ({"workers": 2, "protocol": "backup", "backup": 2}, "backup"),
        ({"workers": 2, "protocol": "groups", "groups": 3}, "3"),
        ({"workers": 2, "protocol": "async", "staleness": -1}, "0 ... -1"),
        ({"protocol": "async", "simulate": False}, "protocol"),
        ({"delays": "constant", "simulate": False}, "delays"),
        ({"workers": 2, "batch_size": 2}, "2"),
    ],
)
def test_what_cannot_be_is_said_before_any_work(more: dict[str, Any], said: str) -> None:
    with refused(UsageError, said):
        cgprimer.train(LINE, PAIR, **{**PLAIN, **more})


def test_batchnorm_and_blocks_are_refused() -> None:
    graph = cgprimer.load("batch_normalization")
    data = cgprimer.make_dataset(graph, samples=40, targets=False)
    with pytest.raises(UsageError, match="batchnorm"):
        cgprimer.train(graph, data, loss="output", workers=2, simulate=True, batch_size=5)


def test_a_gradient_that_is_not_finite_ends_the_run_with_its_sample() -> None:
    graph = cgprimer.parse("xw = log(k*x)")
    data = cgprimer.Dataset.from_arrays({"x": [1.0, 2.0, -1.0, 4.0]}, {"xw": [0.0] * 4})
    with pytest.raises(NonFiniteError, match="sample 2") as told:
        cgprimer.train(graph, data, workers=2, **{**PLAIN, "start": {"k": 1.0}})
    assert told.value.run.steps == 1


def test_a_run_without_workers_has_no_record() -> None:
    with refused(DataError):
        record_of(cgprimer.train(LINE, PAIR, epochs=1))
    run = cgprimer.train(LINE, PAIR, workers=2, **PLAIN)
    run.team["spans"] = [[7, "compute", 0, 1, 0]]
    with refused(DataError):
        record_of(run)


def test_delays_are_data() -> None:
    assert parse_delays("exponential(2) + slow(5,1) + network(1e-9)", 3) == Delays(
        "exponential", (2.0,), slow=((0, 5.0),), network=1e-9
    )


def test_the_options_of_workers_have_the_defaults_of_the_settings() -> None:
    options = dataclasses.asdict(WorkerOptions())
    assert options == {name: DEFAULT_SETTINGS[name] for name in options}


# --- on paper ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "curve", [c for curves in curves_of(1e-3) for c in curves], ids=lambda c: c.name
)
def test_the_formulas_of_the_page_are_those_of_the_simulator(curve: Curve) -> None:
    assert curve.simulated(100, 1) == pytest.approx(curve.formula(100), rel=0.04)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("drawn", 3), ("drawn", [1]), ("drawn", [-1, 1]), ("pending", ["a"]), ("times", []),
        ("seconds", {}), ("seconds", {"compute": [1.0]}), ("spans", 3), ("staleness", [["a", 1]]),
        ("clock", "x"),
    ],
)  # fmt: skip
def test_a_file_that_was_tampered_with_is_refused(key: str, value: Any, tmp_path: Any) -> None:
    run = cgprimer.train(LINE, PAIR, workers=2, **PLAIN)
    run.team = {**run.team, key: value}
    run.save(tmp_path / "run.json")
    with refused(DataError):
        cgprimer.load_run(tmp_path / "run.json")


def test_single_precision_and_blocks(tmp_path: Any) -> None:
    graph, data = lecture(200)
    run = cgprimer.train(graph, data, workers=4, simulate=True, dtype="float32", epochs=2)
    run.save(tmp_path / "run.json")
    assert cgprimer.load_run(tmp_path / "run.json").team == run.team
    settings, _ = create_settings({"workers": 4, "simulate": True, "batch_size": 10})
    with refused(UsageError):
        plan_training(settings, graph, [100, 100])
