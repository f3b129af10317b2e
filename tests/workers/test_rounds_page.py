"""The page that steps through the first rounds shows what was computed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.support.number_format import mark_rounding
from cgprimer.training.distributed.worker_record import (
    format_timeline,
    record_of,
    summarize_record,
)
from cgprimer.visualization.pages.rounds.rounds_page import list_events, rounds_page
from tests.approval import approved, refused
from tests.cli.cli_tools import bad, good
from tests.workers.worker_tools import LINE, PAIR, PLAIN, ROWS

DATA = cgprimer.make_dataset(LINE, truth={"k": 3.0}, samples=60)


def trained(**more: Any) -> cgprimer.TrainingRun:
    return cgprimer.train(LINE, DATA, **{**PLAIN, "workers": 3, **more})


@pytest.mark.parametrize("protocol", ["sync", "async", "backup"])
def test_events_show_the_parameters_of_each_step(protocol: str) -> None:
    run = trained(protocol=protocol, delays="exponential,dies(2,4)")
    events = list_events(run, record_of(run))
    texts = {event.server for event in events}
    for step in range(5):
        short = mark_rounding(run.team["first"][step][1][0], 4)
        assert f"step {step + 1}: k = {short}".replace("= ≈", "≈ ") in texts
    times = [event.time for event in events]
    assert times == sorted(times)


@pytest.mark.parametrize(
    "options",
    ROWS["events"],
    ids=["backup", "async", "layers"],
)
def test_events_have_their_times(options: dict[str, Any]) -> None:
    run = trained(**{"delays": "constant", **options})
    events = list_events(run, record_of(run))[:20]
    approved("\n".join(f"{event.time:.3g} s: {event.words}" for event in events))


def test_page_is_complete_and_its_frames_are_in_the_picture(tmp_path: Path) -> None:
    run = cgprimer.train(LINE, PAIR, **{**PLAIN, "workers": 2}, delays="1,2")
    text = rounds_page(run, title="<b>")
    assert "<h1>&lt;b&gt;</h1>" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text)
    assert data
    assert json.loads(data[1])["frames"][-1] == {
        "at": 1.0, "words": "gradient of worker 2 arrives (k: -24): the mean of 2 gradients"
        " completes step 1", "server": "step 1: k = 0.75",
    }  # fmt: skip
    run.save(tmp_path / "run.json")
    good("plot", "workers", "run.json", "-o", "run.html", cwd=tmp_path)
    assert data[0] in (tmp_path / "run.html").read_text(encoding="utf-8")
    with refused(UsageError):
        rounds_page(run, run)
    cgprimer.train(LINE, PAIR, epochs=1).save(tmp_path / "alone.json")
    command = ("plot", "workers", "alone.json", "-o", "alone.png")
    assert "no workers" in bad(*command, cwd=tmp_path)


def test_summary_and_timeline_show_the_record() -> None:
    """Two fast workers wait or are dropped while the third computes for 5 s."""
    record = record_of(trained(delays="1,1,5"))
    approved("\n".join([*summarize_record(record, 20), *format_timeline(record, 10.0)]))
    stale = record_of(trained(protocol="async", delays="exponential"))
    approved("\n".join(summarize_record(stale, 60)))
    dropped = record_of(trained(protocol="backup", delays="1,1,5"))
    assert dropped.time_fractions() == pytest.approx(
        dict.fromkeys(dropped.seconds, 0.0) | {"compute": 2 / 3, "dropped": 1 / 3, "wait": 0.0}
    )
