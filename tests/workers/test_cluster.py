"""Workers that are processes of dask.distributed: equality with one worker, kills, Ctrl-C.

Slow tests start processes; they need ``pip install 'cgprimer[cluster]'``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import TrainingError, UsageError
from cgprimer.training.distributed import cluster as clusters
from cgprimer.training.distributed.gradient_tasks import Gradients
from cgprimer.training.distributed.protocols import Task
from cgprimer.training.distributed.worker_record import record_of, summarize_record
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.worker_options import check_cluster_address
from tests.approval import refused
from tests.cli.cli_tools import COMMAND, environment
from tests.workers.worker_tools import lecture, max_difference

HOW: dict[str, Any] = {"optimizer": "adam", "learning_rate": 1e-2, "epochs": 3, "batch_size": 20}

CLUSTER = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}


def list_worker_processes(parent: int = 0) -> set[int]:
    """Return the running processes of workers that a process, or any process, has started."""
    command = ["ps", "-ewwo", "pid=,ppid=,stat=,args="]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {
        int(pid)
        for pid, ppid, state, args in (row.split(None, 3) for row in rows)
        if parent in (0, int(ppid)) and "spawn_main" in args and not state.startswith("Z")
    }


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of three processes that exists already."""
    distributed = pytest.importorskip("distributed", reason="needs cgprimer[cluster]")
    with distributed.LocalCluster(n_workers=3, **CLUSTER) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("address", ["nowhere", "tcp://", "tcp://host", "http://host:80", 3])
def test_invalid_address_is_rejected(address: Any) -> None:
    with refused(UsageError):
        check_cluster_address(address)


def test_engine_of_python_functions_or_missing_package_is_rejected(monkeypatch: Any) -> None:
    how = {**HOW, "workers": 2, "cluster": "local"}
    with refused(UsageError):
        cgprimer.train(*lecture(60), engine=type("Engine", (), {"compile": None})(), **how)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"cgprimer\[cluster\]"):
        cgprimer.train(*lecture(60), **how)


@pytest.mark.parametrize(("parts", "size"), [(1, 7), (2, 7), (3, 50), (3, 1000)])
def test_divided_blocks_have_each_sample_once(
    tmp_path: Path, parts: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every n-th task reads samples of the same part only."""
    monkeypatch.setattr("cgprimer.training.data.csv_files._BLOCK", 12_000)
    graph = cgprimer.parse("xw = k*xa")
    data = cgprimer.make_dataset(graph, samples=1000, truth={"k": 2.0})
    data.save(tmp_path / "d.csv")
    blocks = cgprimer.Blocks.load(tmp_path / "d.csv", inputs=["xa"], targets=["xw"])
    assert len(blocks.lengths) > 2
    objective = Objective(graph, samples=1000, dataset=blocks)
    gradients = Gradients(
        objective, ResidentData(objective, blocks), seed=0, shuffle=True, parts=parts, size=size
    )
    for epoch in range(4):  # each with another order of the blocks
        tasks = [Task(k, epoch, a, min(a + size, 1000)) for k, a in enumerate(range(0, 1000, size))]
        chosen = [gradients.sample_indices(task) for task in tasks]
        assert sorted(np.concatenate(chosen).tolist()) == list(range(1000))
    for task, numbers in zip(tasks, chosen, strict=True):
        assert gradients.read_columns(task)["xa"].tolist() == data.inputs["xa"][numbers].tolist()
    ends = [sorted(np.concatenate(chosen[k::parts] or [[]])) for k in range(parts)]
    assert all(part[-1] - part[0] == len(part) - 1 for part in ends if part)


@pytest.mark.slow
def test_synchronous_processes_equal_one_with_the_k_fold_batch(address: str) -> None:
    graph, data = lecture(611)  # the last batch is not full
    run = cgprimer.train(graph, data, workers=2, cluster=address, **HOW)
    alone = cgprimer.train(graph, data, **{**HOW, "batch_size": 40})
    assert max_difference(run, alone) < 1e-12
    assert run.step_losses == pytest.approx(alone.step_losses, rel=1e-12)
    assert not record_of(run).is_simulated
    assert "virtual" not in summarize_record(record_of(run), run.steps)[0]
    half = cgprimer.train(graph, data, workers=2, cluster=address, **{**HOW, "epochs": 2})
    again = cgprimer.train(graph, data, workers=2, cluster=address, resume=half, **HOW)
    assert again.steps == run.steps
    how = {**HOW, "batch_size": 40, "place": "layers:2", "micro_batches": 3}
    stages = cgprimer.train(graph, data, cluster=address, **how)
    assert max_difference(stages, alone) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "more"), [("async", {"staleness": 1}), ("backup", {}), ("groups", {"groups": 3})]
)
def test_other_protocols_learn(address: str, protocol: str, more: dict[str, Any]) -> None:
    graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    data = cgprimer.make_dataset(graph, samples=900)
    how = {**HOW, "epochs": 10, "learning_rate": 0.05}
    run = cgprimer.train(graph, data, workers=3, cluster=address, protocol=protocol, **more, **how)
    assert run.loss < 1e-2 * run.start_loss
    assert run.steps == 10 * (15 if protocol == "backup" else 45)


@pytest.mark.slow
def test_each_process_reads_its_part_of_a_file(address: str, tmp_path: Path) -> None:
    graph = cgprimer.parse("xw = a*xa + sin(b*xb)")
    data = cgprimer.make_dataset(graph, samples=300_000, truth={"a": 2.0, "b": 1.0})
    data.save(tmp_path / "d.npz")
    blocks = cgprimer.Blocks.load(tmp_path / "d.npz", inputs=["xa", "xb"], targets=["xw"])
    assert len(blocks.lengths) == 2
    how = {**HOW, "batch_size": 150_000}
    two = cgprimer.train(graph, blocks, workers=2, cluster=address, **how)
    alone = cgprimer.train(graph, data, **{**how, "batch_size": None})
    assert max_difference(two, alone) < 1e-12


@pytest.mark.slow
def test_cluster_without_enough_workers_is_rejected(address: str, monkeypatch: Any) -> None:
    graph, data = lecture(60)
    with refused(UsageError, "3 ... 4"):
        cgprimer.train(graph, data, workers=4, cluster=address, **{**HOW, "batch_size": 5})
    monkeypatch.setattr(clusters, "__version__", "0.0.1")
    with refused(UsageError, "0.0.1"):
        cgprimer.train(graph, data, workers=2, cluster=address, **HOW)
    monkeypatch.setattr(clusters, "_TIMEOUT", 0.5)
    with refused(UsageError, "tcp://127.0.0.1:9"):
        cgprimer.train(graph, data, workers=2, cluster="tcp://127.0.0.1:9", **HOW)


@pytest.mark.slow
def test_killed_process_changes_no_result() -> None:
    pytest.importorskip("distributed", reason="needs cgprimer[cluster]")
    graph, data = lecture(3000)
    killed, others = list[int](), list_worker_processes(os.getpid())

    def kill(step: int, steps: int, loss: float) -> None:
        if step == 60:
            killed.append(max(list_worker_processes(os.getpid()) - others))
            os.kill(killed[0], signal.SIGKILL)

    how = {**HOW, "workers": 3, "epochs": 4}
    run = cgprimer.train(graph, data, cluster="local", on_step=kill, **how)
    assert killed
    assert run.stopped == "finished"
    assert sum(run.team["seconds"]["lost"]) > 0
    alone = cgprimer.train(graph, data, **{**HOW, "epochs": 4, "batch_size": 60})
    assert max_difference(run, alone) < 1e-12
    assert run.loss == pytest.approx(alone.loss, rel=1e-12)
    assert list_worker_processes(os.getpid()) <= others


@pytest.mark.slow
def test_run_whose_processes_are_all_lost_ends_with_its_results(monkeypatch: Any) -> None:
    distributed = pytest.importorskip("distributed", reason="needs cgprimer[cluster]")
    monkeypatch.setattr(clusters, "_PATIENCE", 1.0)
    graph, data = lecture(3000)
    how = {"n_workers": 1, "processes": False, "protocol": "tcp://", **CLUSTER}
    with distributed.LocalCluster(**how) as cluster:

        def stop_workers(step: int, steps: int, loss: float) -> None:
            if step == 30:
                cluster.scale(0)
                while cluster.workers:
                    time.sleep(0.05)

        how = {**HOW, "workers": 1, "cluster": cluster.scheduler_address, "on_step": stop_workers}
        with refused(TrainingError) as caught:
            cgprimer.train(graph, data, **how)
    assert isinstance(caught.value.run, cgprimer.TrainingRun)
    assert caught.value.run.steps >= 30


def wait_until(is_reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs cgprimer[cluster]")
    words = "train lecture --workers 2 --cluster local --epochs 3000 --batch-size 5 --save run.json"
    process = subprocess.Popen(
        [str(COMMAND), *words.split(), "--checkpoint-every", "1s"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        start_new_session=True, env=environment(),
    )  # fmt: skip
    workers = set[int]()
    try:
        wait_until((tmp_path / "run.json").exists)
        workers = list_worker_processes(process.pid)
        assert len(workers) == 2
        os.killpg(process.pid, signal.SIGINT)  # also the workers, as from a terminal
        _, messages = process.communicate(timeout=30)
        wait_until(lambda: not workers & list_worker_processes())
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the session of the command and its workers
        process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in messages
    assert "--resume run.json" in messages
