"""Homework and many workers: checks and sheets as processes, gradients simulated and on a cluster.

Wall-clock time, and the processor's of all processes of a command: measure while nothing else runs.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import cgprimer

from ..measuring import Row
from ..settings import Settings, quietly

_COMMAND = Path(sys.executable).with_name("cgprimer")
_GRAPH = "xh = tanh(p*xa + q); xo = sigmoid(r*xh + s*xb); xw = t*xo^2 + u*xa*xb + v + k*xh"
_RIGHT = """\
from math import cosh, exp, tanh
def gradient(xa, xb, p, q, r, s, t, u, v, k):
    h = tanh(p*xa + q)
    o = 1/(1 + exp(-(r*h + s*xb)))
    do = 2*t*o*o*(1 - o)
    dh = (do*r + k)/cosh(p*xa + q)**2
    return {"p": dh*xa, "q": dh, "r": do*h, "s": do*xb, "t": o*o, "u": xa*xb, "v": 1.0, "k": h}
"""
_WRONGS = ("*(1 - o)", "2*", "/cosh(p*xa + q)**2", " + k", "*xa,")  # each left out


def homework(settings: Settings) -> list[Row]:
    """What a course waits for."""
    with tempfile.TemporaryDirectory() as name:
        return [
            *_checks(Path(name), settings),
            *_sheets(Path(name), settings),
            *_simulated(settings),
        ]


def _command(who: str, folder: Path, *arguments: object) -> Row:
    """A command as a whole process."""
    quietly(f"homework: {who}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(
        [str(_COMMAND), *map(str, arguments)], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    took = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    note = "" if done.returncode in (0, 1) and not done.stderr.startswith("error") else "FAILED"
    extra = {"processor": round(used, 2)}
    return Row("homework", "whole processes", who, took, note=note, extra=extra)


def _checks(folder: Path, settings: Settings) -> list[Row]:
    (folder / "graph.cg").write_text(_GRAPH)
    (folder / "right.py").write_text(_RIGHT)
    (folder / "wrong.py").write_text(_RIGHT.replace(_WRONGS[0], ""))
    (folder / "class").mkdir()
    count = 5 if settings.quick else 100
    for k in range(count):
        left_out = _WRONGS[k // 2 % len(_WRONGS)] if k % 2 else ""
        text = _RIGHT.replace(left_out, "," if left_out == "*xa," else "") if k % 2 else _RIGHT
        (folder / "class" / f"student{k:03}.py").write_text(f"# {k}\n{text}")
    check = ("check", "gradient", "graph.cg")
    return [
        _command(f"a {kind} submission, 8 parameters at 100 points", folder,
                 *check, f"{kind}.py", "--points", 100)
        for kind in ("right", "wrong")
    ] + [
        _command(f"{count} submissions at 100 points, --jobs 2", folder,
                 *check, "class", "--points", 100, "--jobs", 2)
    ]  # fmt: skip


def _sheets(folder: Path, settings: Settings) -> list[Row]:
    count = 3 if settings.quick else 200
    names = "".join(f"{k},Student {k}\n" for k in range(count))
    (folder / "roster.csv").write_text(f"id,name\n{names}")
    made = _command(f"{count} sheets of all kinds with solutions, HTML", folder,
                    "exercise", "--students", "roster.csv", "--seed", 1, "-o", "sheets",
                    "--format", "html")  # fmt: skip
    return [made]


def _simulated(settings: Settings) -> list[Row]:
    graph = cgprimer.load("lecture")
    gradients = 1_000 if settings.quick else 10_000
    data = cgprimer.make_dataset(graph, samples=gradients)
    quietly("homework: simulated gradients")
    begin = time.process_time()
    run = cgprimer.train(
        graph, data, epochs=1, batch_size=1, workers=1_000, protocol="async", simulate=True,
        optimizer="sgd", learning_rate=1e-9, schedule="constant",
    )  # fmt: skip
    used = time.process_time() - begin
    where = f"1,000 workers, {run.steps:,} gradients, async"
    return [Row("homework", "simulated", where, used)]


def _clustered(settings: Settings) -> list[Row]:
    """Steps of 100,000 samples, computed by one worker and divided between two."""
    if find_spec("distributed") is None:
        return []
    text = "input x[16]; parameter A[64,16], a[64], B[64,64], b[64], c[64]"
    graph = cgprimer.parse(f"{text}; xh = tanh(A @ x + a); xu = tanh(B @ xh + b); xw = c @ xu")
    samples, batch = (4_000, 1_000) if settings.quick else (2_000_000, 100_000)
    inputs = np.random.default_rng(0).normal(size=(samples, 16))
    data = cgprimer.Dataset.from_arrays({"x": inputs}, {"xw": np.tanh(inputs[:, 0])})
    rows: list[Row] = []
    for workers in (1, 2):
        quietly(f"homework: {workers} of a cluster")
        ends: list[float] = []
        cgprimer.train(
            graph, data, epochs=2, batch_size=batch // workers, workers=workers, cluster="local",
            optimizer="sgd", learning_rate=1e-3,
            on_step=lambda *_, ends=ends: ends.append(time.perf_counter()),
        )  # fmt: skip
        took = float(np.median(np.diff(ends)))
        who, where = f"{workers} of a local cluster", f"a step of {batch:,} samples, 16-64-64-1"
        ratio = None if not rows else rows[0].seconds / took  # type: ignore[operator]
        rows.append(Row("homework", where, who, took, ratio=ratio))
    return rows
