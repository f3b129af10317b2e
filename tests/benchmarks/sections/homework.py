"""Checks and sheets of a course, as whole processes."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..harness import Cell, Figure, Settings, child_processor_time, one_row, report_progress
from ..report import COMMAND, PROGRAMS, Table, fixed

TABLES = (Table(("task",), {"elapsed time": fixed(2), "processor time": fixed(2)}),)
GRAPH = "xh = tanh(p*xa + q); xo = sigmoid(r*xh + s*xb); xw = t*xo^2 + u*xa*xb + v + k*xh"
RIGHT = (PROGRAMS / "right_submission.py.txt").read_text()
# Each wrong submission lacks one of these factors.
FACTORS = {"*(1 - o)": "", "2*": "", "/cosh(p*xa + q)**2": "", " + k": "", "*xa,": ","}
MISTAKES = [RIGHT.replace(text, replacement) for text, replacement in FACTORS.items()]


def measure_cells(settings: Settings) -> Iterator[Cell]:
    submissions, sheets = (2, 1) if settings.quick else (100, 200)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "graph.cg").write_text(GRAPH)
        (folder / "right.py").write_text(RIGHT)
        (folder / "wrong.py").write_text(MISTAKES[0])
        (folder / "class").mkdir()
        for k in range(submissions):
            text = MISTAKES[k // 2 % len(MISTAKES)] if k % 2 else RIGHT
            (folder / "class" / f"student{k:03}.py").write_text(f"# {k}\n{text}")
        roster = "".join(f"{k},Student {k}\n" for k in range(sheets))
        (folder / "roster.csv").write_text(f"id,name\n{roster}")
        check = "check gradient graph.cg"
        commands = {
            "a right submission, 8 parameters at 100 points": f"{check} right.py --points 100",
            "a wrong submission, 8 parameters at 100 points": f"{check} wrong.py --points 100",
            f"{submissions} submissions at 100 points, --jobs 2": (
                f"{check} class --points 100 --jobs 2"
            ),
            f"{sheets} sheets of all kinds with solutions, HTML": (
                "exercise --students roster.csv --seed 1 -o sheets --format html"
            ),
        }
        for label, command in commands.items():
            yield from _run_command(label, command, folder)


def _run_command(label: str, command: str, folder: Path) -> Iterator[Cell]:
    report_progress(label)
    begin, used = time.perf_counter(), child_processor_time()
    process = subprocess.run(
        [COMMAND, *command.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    figures = {
        "elapsed time": Figure(time.perf_counter() - begin, runs=1),
        "processor time": Figure(child_processor_time() - used, runs=1),
    }
    # A check exits with 1 if a submission is wrong.
    if process.returncode not in (0, 1) or process.stderr.startswith("error"):
        note = f"skipped: {process.stderr.strip().partition(chr(10))[0]}"
        figures = {column: Figure(note=note) for column in figures}
    yield from one_row(figures, label)
