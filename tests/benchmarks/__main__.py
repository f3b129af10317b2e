"""``python -m tests.benchmarks``: what things cost, measured side by side in one run.

Prints a Markdown table, and with ``--json PATH`` writes the same as JSON. Contestants take turns,
so that a noisy moment hits all of them; the least of the runs counts. Results are compared with
each other before any time is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cgprimer

ROOT = Path(__file__).parents[2]
TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
START = {"ab": 0.3, "bc": 0.5, "cd": 0.1, "ac": 0.7}
LECTURE = ["xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3"]

Row = dict[str, Any]


def least(contestants: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of each contestant: the least of so many runs, taken in turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def batch_gradient(samples: int = 1_000_000) -> list[Row]:
    """Loss and gradient of the lecture graph over a batch, against hand-written numpy."""
    graph = cgprimer.parse(LECTURE)
    data = cgprimer.make_dataset(graph, truth=TRUTH, samples=samples)
    xa, target = data.inputs["xa"], data.targets["xw"]

    def by_hand(ab: float, bc: float, cd: float, ac: float) -> tuple[float, dict[str, float]]:
        xx = xa**2
        xy = ab * xx + ac * xa
        xz = bc * xx + xy
        error = cd * xx + xz**3 - target
        bar_xw = 2 * error
        bar_xz = bar_xw * 3 * xz**2
        shared = float(np.sum(bar_xz * xx))
        gradient = {"ab": shared, "bc": shared, "cd": float(np.sum(bar_xw * xx)),
                    "ac": float(np.sum(bar_xz * xa))}  # fmt: skip
        return float(np.sum(error * error)), gradient

    def tuned_by_hand(ab: float, bc: float, cd: float, ac: float) -> tuple[float, dict[str, float]]:
        xx = xa * xa
        xz = (ab + bc) * xx + ac * xa
        square = xz * xz
        error = cd * xx + square * xz - target
        bar_xz = 6 * error * square
        shared = float(bar_xz @ xx)
        gradient = {
            "ab": shared,
            "bc": shared,
            "cd": float(2 * (error @ xx)),
            "ac": float(bar_xz @ xa),
        }
        return float(error @ error), gradient

    ours = {
        m: cgprimer.loss_and_gradient(graph, data, method=m, engine="numpy")
        for m in cgprimer.methods()
    }
    loss, gradient = by_hand(**START)
    for name, result in [
        ("tuned", tuned_by_hand(**START)),
        *((m, f(START)) for m, f in ours.items()),
    ]:
        np.testing.assert_allclose(result[0], loss, rtol=1e-9, err_msg=name)
        for parameter, value in gradient.items():
            np.testing.assert_allclose(result[1][parameter], value, rtol=1e-6, err_msg=name)
    contestants: dict[str, Callable[[], object]] = {
        "numpy by hand": lambda: by_hand(**START),
        "numpy by hand, tuned": lambda: tuned_by_hand(**START),
        **{f"cgprimer, {m}": lambda f=f: f(START) for m, f in ours.items()},
    }
    best = least(contestants, 7)
    base = best["numpy by hand"]
    what = f"lecture graph, loss and gradient, {samples:,} samples"
    return [{"workload": what, "who": n, "seconds": s, "ratio": s / base} for n, s in best.items()]


def one_sample_epoch(samples: int = 10_000) -> list[Row]:
    """One epoch of one-sample-at-a-time SGD, against the original class where it is installed."""
    graph = cgprimer.parse(LECTURE)
    data = cgprimer.make_dataset(graph, truth=TRUTH, samples=samples)

    def ours(method: str) -> Callable[[], object]:
        return lambda: cgprimer.train(
            graph, data, method=method, engine="numpy", optimizer="sgd", learning_rate=1e-6,
            schedule="constant", epochs=1, batch_size=1, start=START,
        )  # fmt: skip

    contestants = {f"cgprimer, {m}": ours(m) for m in cgprimer.methods()}
    original = original_class(samples)
    if original is not None:
        contestants["ComputationalGraphPrimer 1.1.5"] = original
    best = least(contestants, 3)
    base = best["cgprimer, reverse"]
    what = f"one-sample SGD, one epoch, {samples:,} samples"
    return [{"workload": what, "who": n, "seconds": s, "ratio": s / base} for n, s in best.items()]


def original_class(samples: int) -> Callable[[], object] | None:
    """A training run of the original module; its gradient is another one, so only time compares."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        from ComputationalGraphPrimer import ComputationalGraphPrimer
    except ImportError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        cgp = ComputationalGraphPrimer(
            expressions=LECTURE, output_vars=["xw"], dataset_size=samples, learning_rate=1e-6,
            grad_delta=1e-4, display_loss_how_often=samples,
        )  # fmt: skip
        cgp.parse_general_dag_expressions()
        cgp.gen_gt_dataset(vals_for_learnable_params=TRUTH)

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            cgp.train_on_all_data()

    return run


def chain(lengths: tuple[int, ...] = (12_500, 25_000, 50_000, 100_000)) -> list[Row]:
    """A chain of expressions: every stage should take time linear in its length."""
    from cgprimer.execution.run import Runner
    from cgprimer.tapes.lower import lower

    rows: list[Row] = []
    first: dict[str, float] = {}
    for length in lengths:
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
            first.setdefault(stage, seconds)
            linear = first[stage] * length / lengths[0]
            what = f"chain of {length:,} expressions, reverse"
            rows.append(
                {"workload": what, "who": stage, "seconds": seconds, "ratio": seconds / linear}
            )
    return rows


def reading() -> list[Row]:
    """Parsing: a hundred thousand expressions, and one sum of a hundred thousand terms."""
    many = "\n".join(f"x{i + 1} = a{i}*x{i} + b" for i in range(100_000))
    one = "xw = " + " + ".join(f"a{i}*x{i}" for i in range(100_000))
    best = least({"100,000 expressions": lambda: cgprimer.parse(many),
                  "a sum of 100,000 terms": lambda: cgprimer.parse(one)}, 3)  # fmt: skip
    return [
        {"workload": "parse to a graph", "who": n, "seconds": s, "ratio": 1.0}
        for n, s in best.items()
    ]


def processes() -> list[Row]:
    """Whole processes, cold: interpreter, imports, work."""
    command = str(Path(sys.executable).with_name("cgprimer"))
    lecture = str(ROOT / "examples" / "lecture.cg")

    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run(arguments, check=True, capture_output=True)

    best = least(
        {
            'python -c "import click"': run(sys.executable, "-c", "import click"),
            "cgprimer --help": run(command, "--help"),
            "cgprimer grad": run(command, "grad", lecture),
            "cgprimer train": run(command, "train", lecture),
            "cgprimer train --epochs 0": run(command, "train", lecture, "--epochs", "0"),
        },
        7,
    )
    base = best['python -c "import click"']
    return [
        {"workload": "whole process", "who": n, "seconds": s, "ratio": s / base}
        for n, s in best.items()
    ]


WORKLOADS = {
    "batch": batch_gradient,
    "epoch": one_sample_epoch,
    "chain": chain,
    "parse": reading,
    "process": processes,
}


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), model
        )
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cgprimer": cgprimer.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help=f"of: {', '.join(WORKLOADS)}; all unless given",
    )
    parser.add_argument("--json", type=Path, help="write the results here, too")
    arguments = parser.parse_args()
    unknown = [w for w in arguments.workloads if w not in WORKLOADS]
    if unknown:
        parser.error(f"unknown workload {unknown[0]!r}")
    rows = [row for name in arguments.workloads or WORKLOADS for row in WORKLOADS[name]()]
    print("; ".join(f"{k} {v}" for k, v in machine().items()))
    print("\n| workload | who | ms | ratio |\n|---|---|---:|---:|")
    for row in rows:
        time_and_ratio = f"{row['seconds'] * 1e3:.4g} | {row['ratio']:.2f}"
        print(f"| {row['workload']} | {row['who']} | {time_and_ratio} |")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
