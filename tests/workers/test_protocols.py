"""Workers on a virtual clock: the lecture's numbers, order statistics, equality with one worker."""

from __future__ import annotations

import dataclasses
import statistics
import tomllib
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.training.distributed.delays import Delays, parse_delays
from cgprimer.training.distributed.protocols import Task, gather_asynchronously, plan_protocol
from cgprimer.training.distributed.simulator import SimulatedTeam
from cgprimer.training.distributed.worker_record import (
    record_as_dict,
    record_of,
    summarize_record,
)
from cgprimer.training.settings import DEFAULT_SETTINGS, create_settings
from cgprimer.training.strategy_choice import plan_training
from cgprimer.training.worker_options import PROTOCOLS, WorkerOptions
from tests.approval import refused
from tests.docs.scaling import CURVES, Curve
from tests.workers.worker_tools import (
    LINE,
    PAIR,
    PLAIN,
    ROWS,
    lecture,
    max_difference,
    with_random_truth,
)


@pytest.mark.parametrize(("protocol", "more", "k"), ROWS["two samples of the lecture"])
def test_two_samples_of_the_lecture(protocol: str, more: dict[str, Any], k: float) -> None:
    """Case F14."""
    run = cgprimer.train(LINE, PAIR, protocol=protocol, **{**PLAIN, **more})
    assert run.parameters["k"] == pytest.approx(k, abs=1e-12)


@pytest.mark.parametrize(("protocol", "delays", "samples", "times"), ROWS["times of steps"])
def test_step_takes_as_long_as_the_slowest_gradient_that_it_uses(
    protocol: str, delays: str, samples: int, times: list[float]
) -> None:
    data = cgprimer.Dataset.from_arrays({"x": np.ones(samples)}, {"xw": np.ones(samples)})
    run = cgprimer.train(LINE, data, workers=3, protocol=protocol, delays=delays, **PLAIN)
    assert run.team["times"] == times
    assert run.parameters["k"] == pytest.approx(1 - 0.9 ** len(times), abs=1e-12)


@pytest.mark.parametrize(("name", "samples", "how"), ROWS["synchronous workers"])
def test_synchronous_workers_equal_one_with_the_k_fold_batch(
    name: str, samples: int, how: dict[str, Any]
) -> None:
    graph = cgprimer.networks.mlp(name) if name[0].isdigit() else cgprimer.load(name)
    data = with_random_truth(graph, samples, targets="loss" not in how)
    how = {"learning_rate": 1e-3, "epochs": 3, "l2": 1e-3, "warm_up": 1, "batch_size": 20, **how}
    delays = how.pop("delays", "constant")
    one = cgprimer.train(graph, data, **how)
    how["batch_size"] = how["batch_size"] and 5
    many = cgprimer.train(graph, data, workers=4, simulate=True, delays=delays, **how)
    assert max_difference(one, many) <= 1e-12
    assert many.epoch_losses == pytest.approx(one.epoch_losses, rel=1e-12)
    assert many.steps == one.steps


UNITS = cgprimer.parse("parameter w[40]; input x[40]; xl = sum(w*x); output xl")


@pytest.mark.parametrize("protocol", ["sync", "async", "groups"])
@pytest.mark.parametrize("interrupted", [False, True])
def test_each_sample_is_used_once_per_epoch(
    protocol: str, interrupted: bool, tmp_path: Any
) -> None:
    """Each parameter is moved by one sample only, also if the run is interrupted and resumed."""
    data = cgprimer.Dataset.from_arrays({"x": np.eye(40)})
    how = {
        **PLAIN, "workers": 4, "protocol": protocol, "loss": "output", "reduction": "sum",
        "start": {"w": np.zeros(40)}, "epochs": 2,
    }  # fmt: skip

    def stop(step: int, steps: int, loss: float) -> None:
        if step == steps // 2 - 7 and interrupted:
            raise KeyboardInterrupt

    run = cgprimer.train(UNITS, data, on_step=stop, **how)
    if interrupted:
        assert run.stopped == "interrupted"
        run.save(tmp_path / "run.json")
        how.pop("start")
        run = cgprimer.train(UNITS, data, resume=cgprimer.load_run(tmp_path / "run.json"), **how)
    assert run.parameters["w"] == pytest.approx(np.full(40, -0.05 * 2), abs=1e-12)


def _team(workers: int, tasks: int, delays: str, size: int = 1) -> SimulatedTeam:
    each = (Task(k, 0, k, k + 1) for k in range(tasks))
    team = SimulatedTeam(
        workers, each, lambda v, t: (0.0, v), parse_delays(delays, workers), 0, size
    )
    team.set_parameters(0.0, 0)
    return team


@pytest.mark.parametrize(("workers", "spare"), [(8, 0), (8, 2)])
def test_step_takes_the_mean_of_an_order_statistic(workers: int, spare: int) -> None:
    """Of exponential delays: H(N + b) - H(b). Source: Renyi 1953, on order statistics."""
    steps = 1_500
    team = _team(workers, steps * workers, "exponential(2)")
    updates = plan_protocol("backup", workers, backup=spare).gather_gradients(team)
    for version in range(1, steps):
        assert len(next(updates)) == workers - spare
        team.set_parameters(0.0, version)
    expected = 2 * sum(1 / k for k in range(spare + 1, workers + 1))
    assert team.now / (steps - 1) == pytest.approx(expected, rel=0.04)


def test_asynchronous_workers_never_wait_and_are_stale_by_the_number_of_others() -> None:
    data = cgprimer.make_dataset(LINE, truth={"k": 3.0}, samples=500)
    run = cgprimer.train(
        LINE, data, workers=5, protocol="async", **{**PLAIN, "learning_rate": 1e-3}
    )
    record = record_of(run)
    assert record.clock / run.steps == pytest.approx(1 / 5, rel=0.1)
    assert record.mean_staleness == pytest.approx(4, rel=0.02)
    assert min(record.utilization) > 0.98
    assert sum(record.staleness.values()) == run.steps


def test_sampled_times_are_the_same_on_every_machine() -> None:
    times = list(islice(parse_delays("exponential", 3).sample_seconds(1, 7), 3))
    assert times == [1.5537453112190385, 1.1781342582976655, 0.44985702509657266]
    assert next(parse_delays("pareto(1.5)", 3).sample_seconds(1, 7)) == 0.9391481094309286


@pytest.mark.parametrize(("text", "mean", "deviation"), ROWS["distributions"])
def test_distributions_have_their_mean_and_deviation(
    text: str, mean: float, deviation: float
) -> None:
    times = list(islice(parse_delays(text, 2).sample_seconds(0, 3), 8_000))
    assert statistics.fmean(times) == pytest.approx(mean, rel=0.03)
    assert statistics.pstdev(times) == pytest.approx(deviation, rel=0.1)


def test_delays_are_parsed() -> None:
    assert parse_delays("exponential(2) + slow(5,1) + dies(1,2,3) + network(1e-9)", 3) == Delays(
        "exponential", (2.0,), slow=((0, 5.0),), absences=((2, 1.0, 2.0),), network=1e-9
    )
    assert parse_delays("dies(4,5,1), dies(1,2,1)", 1).list_absences(0) == [(1, 2), (4, 5)]


def test_connection_of_the_server_transfers_one_message_at_a_time() -> None:
    """k workers of one second: the last receives after k messages, and returns after another."""
    team = _team(5, 5, "constant,network(0.1)")
    for worker in team.workers:
        team.start_task(worker)
    times = [team.receive_gradient().time for _ in team.workers]
    assert times == pytest.approx([1.2, 1.3, 1.4, 1.5, 1.6])
    seconds = {kind: sum(values) for kind, values in team.trace.seconds.items() if any(values)}
    assert seconds == pytest.approx({"receive": 1.5, "compute": 5.0, "send": 0.5})


def test_worker_that_fails_restarts_with_the_parameters_of_its_return() -> None:
    team = _team(2, 9, "constant(2),dies(1,5)")
    updates = gather_asynchronously(team)
    seen = []
    for version in range(1, 6):
        (one,) = next(updates)
        seen.append((one.worker, one.time, one.version))
        team.set_parameters(float(version), version)
    assert seen == [(0, 2.0, 0), (0, 4.0, 1), (0, 6.0, 2), (1, 7.0, 2), (0, 8.0, 3)]
    kinds = {s.kind: (s.begin, s.end) for s in team.trace.spans if s.worker == 1}
    assert kinds == {"lost": (0.0, 1.0), "away": (1.0, 5.0), "compute": (5.0, 7.0)}


def test_worker_that_returns_does_not_know_later_updates() -> None:
    """Worker 2 returns at 2.5, while the gradient of the update at 3 is on its way."""
    team = _team(2, 9, "constant,dies(0,2.5),network(1)")
    team.start_task(0)
    team.start_task(1)
    assert team.receive_gradient().time == 3.0
    team.set_parameters(1.0, 1)
    late = team.receive_gradient()
    assert (late.worker, late.version, late.time) == (1, 0, 5.5)


@pytest.mark.parametrize("bound", [0, 2])
def test_bounded_staleness_limits_the_lead_of_a_worker(bound: int) -> None:
    done = dict.fromkeys(range(4), 0)
    team, lead = _team(4, 200, "exponential,slow(9)"), 0
    updates = gather_asynchronously(team, bound)
    for version in range(1, 120):
        (one,) = next(updates)
        team.set_parameters(0.0, version)
        done[one.worker] += 1
        lead = max(lead, max(done.values()) - min(done.values()))
    assert lead == bound + 1  # the gradient that has just been received is not yet waited for


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("delays", ["exponential,slow(4),dies(1,3)", "pareto(1.5),network(0.004)"])
def test_no_worker_does_two_things_at_a_time(protocol: str, delays: str) -> None:
    how = {"workers": 4, "protocol": protocol, "delays": delays, "simulate": True}
    run = cgprimer.train(*lecture(100), batch_size=7, epochs=2, **how)
    record = record_of(run)
    for worker in range(4):
        spans = sorted(s[2:4] for s in record.spans if s.worker == worker)
        assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(spans))
        total = sum(each[worker] for each in record.seconds.values())
        assert total == pytest.approx(sum(end - begin for begin, end in spans))
        assert total <= record.clock + 1e-9
    assert sum(record.time_fractions().values()) == pytest.approx(1)
    other = cgprimer.train(*lecture(100), batch_size=7, epochs=2, seed=1, **how)
    assert other.team["times"] != run.team["times"]


@pytest.mark.parametrize("curve", [*chain(*CURVES.values())], ids=lambda curve: curve.name)
def test_formulas_of_the_documentation_predict_the_simulator(curve: Curve) -> None:
    assert curve.simulate(100) == pytest.approx(curve.formula(100), rel=0.04)


@pytest.mark.parametrize("more", ROWS["resumed runs"])
def test_resumed_run_equals_the_uninterrupted_run(more: dict[str, Any], tmp_path: Any) -> None:
    graph = cgprimer.networks.mlp("4-6-6-5-2")
    data = with_random_truth(graph, 60)
    how = {"simulate": True, "schedule": "constant", "batch_size": 5, "seed": 2, **more}
    whole = cgprimer.train(graph, data, epochs=4, **how)
    cgprimer.train(graph, data, epochs=2, **how).save(tmp_path / "run.json")
    half = cgprimer.load_run(tmp_path / "run.json", graph)
    again = cgprimer.train(graph, data, epochs=4, resume=half, **how)
    assert max_difference(again, whole) == 0
    assert again.team["times"] == pytest.approx(whole.team["times"], rel=1e-12)
    assert again.team["seconds"] == whole.team["seconds"]
    assert sorted(again.team["spans"]) == sorted(whole.team["spans"])


@pytest.mark.parametrize(
    "settings", Path(__file__).with_name("wrong_settings.txt").read_text("utf-8").splitlines()
)
def test_wrong_settings_are_rejected(settings: str) -> None:
    usual = {"simulate": True, "batch_size": 5, "epochs": 1}
    with refused(UsageError):
        cgprimer.train(*lecture(23), **usual | tomllib.loads(f"all = {{{settings}}}")["all"])


def test_batch_normalization_and_blocks_are_rejected() -> None:
    graph = cgprimer.load("batch_normalization")
    data = cgprimer.make_dataset(graph, samples=40, targets=False)
    with pytest.raises(UsageError, match="batchnorm"):
        cgprimer.train(graph, data, loss="output", workers=2, simulate=True, batch_size=5)
    settings, _ = create_settings({"workers": 2, "simulate": True, "batch_size": 1})
    with refused(UsageError):
        plan_training(settings, LINE, [1, 1])


def test_gradient_that_is_not_finite_ends_the_run_with_its_sample() -> None:
    graph = cgprimer.parse("xw = log(k*x)")
    data = cgprimer.Dataset.from_arrays({"x": [1.0, 2.0, -1.0, 4.0]}, {"xw": [0.0] * 4})
    with pytest.raises(NonFiniteError, match="sample 2") as caught:
        cgprimer.train(graph, data, workers=2, **{**PLAIN, "start": {"k": 1.0}})
    assert caught.value.run.steps == 1


@pytest.mark.parametrize(("key", "value"), ROWS["changed run files"])
def test_changed_run_file_is_rejected(key: str, value: Any, tmp_path: Any) -> None:
    run = cgprimer.train(LINE, PAIR, workers=2, **PLAIN)
    run.team = {**run.team, key: value}
    run.save(tmp_path / "run.json")
    with pytest.raises(DataError, match="does not contain a run"):
        cgprimer.load_run(tmp_path / "run.json")


def test_run_without_a_valid_record_of_workers_is_rejected() -> None:
    run = cgprimer.train(LINE, PAIR, workers=2, **PLAIN)
    run.team["spans"] = [[7, "compute", 0, 1, 0]]
    for invalid in (run, cgprimer.train(LINE, PAIR, epochs=1)):
        with refused(DataError):
            record_of(invalid)


def test_plan_of_a_protocol() -> None:
    plans = [plan_protocol(protocol, 8) for protocol in ("sync", "backup", "async", "groups")]
    plans += [plan_protocol("backup", 8, backup=2), plan_protocol("groups", 8, groups=1)]
    assert [plan.gradients_per_update for plan in plans] == [8, 8, 1, 4, 8, 8]
    assert [plan.is_resumable for plan in plans] == [True, True, False, False, True, True]


@pytest.mark.parametrize(
    ("parameters", "workers", "recorded"), [(8, 16, 48), (9, 2, 0), (1, 17, 0)]
)
def test_first_updates_of_small_runs_are_recorded(
    parameters: int, workers: int, recorded: int
) -> None:
    graph = cgprimer.parse(f"parameter w[{parameters}]; input x[{parameters}]; xl = sum(w*x)")
    data = cgprimer.Dataset.from_arrays({"x": np.ones((800, parameters))}, {"xl": np.arange(800.0)})
    how = {**PLAIN, "start": {"w": np.zeros(parameters)}, "learning_rate": 1e-6}
    how["delays"] = "constant"
    run = cgprimer.train(graph, data, workers=workers, **how)
    assert len(run.team["first"]) == recorded
    if recorded:
        time, values, gradients = run.team["first"][0]
        assert (time, [worker for worker, *_ in gradients]) == (1.0, [*range(16)])
        mean = 2 * np.mean([0.0 - target for target in range(16)])
        assert values == pytest.approx([-1e-6 * mean] * parameters)


def test_recorded_gradients_are_means_over_the_samples_of_a_task() -> None:
    data = cgprimer.Dataset.from_arrays({"x": [1.0, 2.0, 3.0, 4.0]}, {"xw": [0.0] * 4})
    how = {**PLAIN, "start": {"k": 1.0}, "batch_size": 2, "delays": "1,1"}
    run = cgprimer.train(LINE, data, workers=2, **how)
    ((_, values, gradients),) = run.team["first"]
    assert gradients == [[0, 0, [pytest.approx(2 * (1 + 4) / 2)]], [1, 0, [pytest.approx(25.0)]]]
    assert values == pytest.approx([1 - 0.05 * 15])


def test_record_without_steps_can_be_summarized() -> None:
    record = record_of(cgprimer.train(LINE, PAIR, workers=2, **PLAIN))
    assert summarize_record(record, 0)[0].endswith(f"{record.clock:.4g} s per step")
    assert record_as_dict(record, 0)["seconds_per_step"] == record.clock


def test_options_of_workers_have_the_defaults_of_the_settings() -> None:
    options = dataclasses.asdict(WorkerOptions())
    assert options == {name: DEFAULT_SETTINGS[name] for name in options}
