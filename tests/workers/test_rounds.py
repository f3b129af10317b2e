"""The page that steps through the first rounds: what it says is what was computed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.support.number_format import mark_rounding
from cgprimer.training.distributed.worker_record import record_of
from cgprimer.visualization.pages.rounds.rounds_page import list_events, rounds_page
from tests.approval import refused
from tests.cli.cli_tools import bad, good
from tests.workers.test_protocols import LINE, PAIR, PLAIN

DATA = cgprimer.make_dataset(LINE, truth={"k": 3.0}, samples=60)


def trained(**more: Any) -> cgprimer.TrainingRun:
    return cgprimer.train(LINE, DATA, **{**PLAIN, "workers": 3, **more})


def frames(text: str) -> list[dict[str, Any]]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text)
    assert found
    return list(json.loads(found[1])["frames"])


@pytest.mark.parametrize("protocol", ["sync", "async", "backup"])
def test_a_moment_has_the_parameters_of_the_step(protocol: str) -> None:
    run = trained(protocol=protocol, delays="exponential,dies(2,4)")
    told = {one.server for one in list_events(run, record_of(run))}
    for step in range(5):
        short = mark_rounding(run.team["first"][step][1][0], 4)
        assert f"step {step + 1}: k = {short}".replace("= ≈", "≈ ") in told
    times = [one.time for one in list_events(run, record_of(run))]
    assert times == sorted(times)


def test_what_is_dropped_and_who_dies_is_said_when_it_happens() -> None:
    run = trained(protocol="backup", delays="1,1,5")
    said = [(one.time, one.words) for one in list_events(run, record_of(run))]
    assert (1.0, "the gradient of worker 3 is dropped") in said
    run = trained(protocol="async", delays="constant,dies(1.5,4)")
    said = [(one.time, one.words) for one in list_events(run, record_of(run))]
    assert (1.5, "worker 3 fails: its current gradient is lost") in said
    assert (4.0, "worker 3 returns and starts again") in said


def test_stages_pass_micro_batches_on() -> None:
    graph = cgprimer.load("lecture")
    data = cgprimer.make_dataset(graph, samples=20)
    run = cgprimer.train(
        graph, data, place="layers:2", micro_batches=2, batch_size=10, epochs=1, simulate=True
    )
    words = [one.words for one in list_events(run, record_of(run))]
    assert words[1] == "worker 1 sent micro-batch 1 to the next stage"
    assert any(one.endswith("completes step 1") for one in words)


def test_the_page_is_whole_and_its_frames_lie_in_the_picture(tmp_path: Path) -> None:
    run = cgprimer.train(LINE, PAIR, **{**PLAIN, "workers": 2}, delays="1,2")
    text = rounds_page(run, title="<b>")
    assert "<h1>&lt;b&gt;</h1>" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert frames(text)[-1] == {
        "at": 1.0, "words": "gradient of worker 2 arrives (k: -24): the mean of 2 gradients"
        " completes step 1", "server": "step 1: k = 0.75",
    }  # fmt: skip
    run.save(tmp_path / "run.json")
    good("plot", "workers", "run.json", "-o", "run.html", cwd=tmp_path)
    assert frames((tmp_path / "run.html").read_text(encoding="utf-8")) == frames(text)
    with refused(UsageError):
        rounds_page(run, run)
    assert "no workers" in _told(tmp_path)


def _told(folder: Path) -> str:
    cgprimer.train(LINE, PAIR, epochs=1).save(folder / "alone.json")
    return bad("plot", "workers", "alone.json", "-o", "alone.png", cwd=folder)
