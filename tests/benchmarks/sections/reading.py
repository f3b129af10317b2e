"""Parsing, lowering, a long chain, and whole processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cgprimer

from ..measuring import Entry, Row, add_ratios, contest
from ..settings import Settings, quietly
from ..workloads import make_workload

ROOT = Path(__file__).parents[3]


def reading(settings: Settings) -> list[Row]:
    """Parse and lower: the workloads, 100,000 expressions, and one sum of 100,000 terms."""
    from cgprimer.core.tape.lowering import lower

    size = 1_000 if settings.quick else 100_000
    texts = {
        f"{size:,} expressions a*x + b": "\n".join(
            f"x{i + 1} = a{i}*x{i} + b" for i in range(size)
        ),
        f"one sum of {size:,} terms": "xw = " + " + ".join(f"a{i}*x{i}" for i in range(size)),
    }
    names = (
        ("W1", "M1", "M2", "r1k") if settings.quick else ("W1", "M1", "M2", "r1k", "r10k", "N64")
    )
    for name in names:
        texts[name] = "\n".join(make_workload(name, samples=1).expressions)
    rows: list[Row] = []
    for what, text in texts.items():
        graph = cgprimer.parse(text)
        expressions, operations = text.count("\n") + 1, len(lower(graph))
        entries = {
            "parse": lambda text=text: Entry(lambda: cgprimer.parse(text)),
            "lower": lambda graph=graph: Entry(lambda: lower(graph)),
        }
        for row in contest(
            "parse", what, entries, None, budget=settings.budget / 2, progress=quietly
        ):
            row.first = None
            assert row.seconds is not None
            row.extra = {
                "expressions": expressions,
                "us per expression": row.seconds / expressions * 1e6,
                "us per operation": row.seconds / operations * 1e6,
            }
            rows.append(row)
    return rows


def chain(settings: Settings) -> list[Row]:
    """A chain of expressions: every stage should take time linear in its length."""
    from cgprimer.core.evaluation.runner import Runner
    from cgprimer.core.tape.lowering import lower

    lengths = (500, 1_000) if settings.quick else (12_500, 25_000, 50_000, 100_000)
    rows: list[Row] = []
    first: dict[str, float] = {}
    for length in lengths:
        quietly(f"chain {length:,}")
        text = "\n".join(f"x{i + 1} = a{i % 7}*x{i} + sin(x{i})" for i in range(length))
        column, scalars = {"x0": np.array([0.5])}, {f"a{i}": 0.5 for i in range(7)}
        stages: dict[str, float] = {}
        clock = time.perf_counter()

        def lap(name: str, stages: dict[str, float] = stages) -> None:
            nonlocal clock
            now = time.perf_counter()
            stages[name] = now - clock
            clock = time.perf_counter()

        graph = cgprimer.parse(text)
        lap("parse")
        tape = lower(graph)
        lap("lower")
        program = cgprimer.differentiate(tape)
        lap("differentiate")
        runner = Runner(program, engine="numpy")
        lap("compile")
        runner(column, scalars, 1)
        lap("run")
        stages["all"] = sum(stages.values())
        for stage, seconds in stages.items():
            linear = first.setdefault(stage, seconds) * length / lengths[0]
            where = f"chain of {length:,} expressions, reverse, numpy"
            rows.append(Row("chain", where, stage, seconds, ratio=seconds / linear, runs=1))
    return rows


def processes(settings: Settings) -> list[Row]:
    """Whole processes, cold: interpreter, imports, work."""
    command = str(Path(sys.executable).with_name("cgprimer"))
    start = [command] if Path(command).exists() else [sys.executable, "-m", "cgprimer"]
    lecture = str(ROOT / "examples" / "lecture.cg")
    with tempfile.TemporaryDirectory() as folder:
        picture, page = str(Path(folder) / "lecture.png"), str(Path(folder) / "lecture.html")
        sine = str(ROOT / "examples" / "sine.cg")
        commands = {
            'python -c "import click"': [sys.executable, "-c", "import click"],
            'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
            "cgprimer --help": [*start, "--help"],
            "cgprimer grad": [*start, "grad", lecture],
            "cgprimer draw": [*start, "draw", lecture, "-o", picture],
            "cgprimer draw --adjoints": [*start, "draw", lecture, "--adjoints", "-o", picture],
            "cgprimer compare": [*start, "compare", lecture],
            "cgprimer step": [*start, "step", lecture, "--force", "-o", page],
            "cgprimer plot error": [*start, "plot", "error", sine, "-o", picture],
            "cgprimer plot surface": [*start, "plot", "surface", lecture, "-o", picture],
            "cgprimer train --epochs 0": [*start, "train", lecture, "--epochs", "0"],
            "cgprimer train --engine auto": [*start, "train", lecture, "--engine", "auto"],
            "cgprimer train --engine numpy": [*start, "train", lecture, "--engine", "numpy"],
        }
        if settings.quick:
            commands = dict([*commands.items()][:4])

        def entry(arguments: list[str]) -> Callable[[], Entry]:
            run = lambda: subprocess.run(  # noqa: E731 - a name is shorter than a nested def
                arguments, check=True, capture_output=True
            )
            return lambda: Entry(run)

        rows = contest(
            "process",
            "whole process",
            {name: entry(arguments) for name, arguments in commands.items()},
            None,
            budget=max(settings.budget, 0.1) * 2,
            progress=quietly,
        )
    for row in rows:
        row.first = None
    add_ratios(rows, lambda row: "click" in row.who)
    return rows
