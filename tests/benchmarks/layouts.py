"""``python -m tests.benchmarks.layouts``: layout libraries on thirty graphs, in one run.

Every library gets the same vertices and label sizes and the same gaps; what is measured is the
lines as they would be drawn. `docs/internals/decisions.md` explains the choice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from .layout_contest.contestants import Contestant, contestants
from .layout_contest.measures import Drawing, Measured, measured
from .layout_contest.problems import Problem, problem, problems
from .reporting import machine

_PACKAGES = ("graphlay", "fast-sugiyama", "grandalf", "networkx", "scipy")
_FIRST = "cgprimer draw (graphlay)"


@dataclass(frozen=True, slots=True)
class Result:
    """One contestant on one graph; `error` says why there is no layout."""

    who: str
    graph: str
    vertices: int
    edges: int
    seconds: float = math.nan
    found: Measured | None = None
    error: str = ""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.layouts",
        description="Layout libraries on thirty graphs: crossings, edges through vertices, size.",
    )
    made.add_argument("--only", default="", metavar="PART", help="graphs with this in their name")
    made.add_argument("--who", default="", metavar="PART", help="contestants, likewise")
    made.add_argument("--graphs", action="store_true", help="a second table: crossings by graph")
    made.add_argument("--json", type=Path, metavar="FILE", help="every figure")
    made.add_argument("--digests", action="store_true", help=argparse.SUPPRESS)
    return made


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    chosen = {n: c for n, c in contestants().items() if given.who in n}
    graphs = {n: make for n, make in problems().items() if given.only in n}
    if given.digests:
        print(json.dumps(digests(chosen, [problem(n, make())[0] for n, make in graphs.items()])))
        return 0
    results: list[Result] = []
    for name, make in graphs.items():
        set_up = problem(name, make())[0]
        results += [_contest(who, contestant, set_up) for who, contestant in chosen.items()]
        print(f"{name}: done", file=sys.stderr)
    same = _same_everywhere(given.only, given.who)
    about = machine(os.cpu_count() or 1)
    versions = {name: _version(name) for name in _PACKAGES}
    print(f"{about['processor']}; Python {about['python']}; {about['date']}; {versions}\n")
    print(summary(results, same))
    if given.graphs:
        print(by_graph(results))
    if given.json:
        rows = [asdict(result) for result in results]
        given.json.write_text(json.dumps({"machine": about, "versions": versions, "rows": rows}))
    return 0


def _contest(who: str, contestant: Contestant, given: Problem) -> Result:
    """The best time of up to three runs, and what the drawing measures."""
    result = Result(who, given.name, len(given.diagram.nodes), len(given.diagram.edges))
    times: list[float] = []
    drawing = Drawing({}, ())
    try:
        while not times or (len(times) < 3 and sum(times) < 1.0):
            start = time.perf_counter()
            drawing = contestant(given)
            times.append(time.perf_counter() - start)
    except Exception as error:  # a library that fails on a graph is a result, too
        return Result(**{**_fields(result), "error": f"{type(error).__name__}: {error}"})
    return Result(**{**_fields(result), "seconds": min(times), "found": measured(given, drawing)})


def _fields(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in ("who", "graph", "vertices", "edges")}


def digests(chosen: dict[str, Contestant], given: Sequence[Problem]) -> dict[str, str]:
    """A digest of all coordinates of each contestant, to a thousandth of a point."""
    found = {}
    for who, contestant in chosen.items():
        text = hashlib.sha256()
        for one in given:
            try:
                drawing = contestant(one)
            except Exception as error:
                text.update(type(error).__name__.encode())
                continue
            for line in drawing.lines:
                text.update(str([(round(x, 3) + 0.0, round(y, 3) + 0.0) for x, y in line]).encode())
        found[who] = text.hexdigest()
    return found


def _same_everywhere(only: str, who: str) -> dict[str, bool]:
    """Whether two processes with different hash seeds draw the same."""
    seen = []
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.benchmarks.layouts", "--digests"]
        command += ["--only", only, "--who", who]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        seen.append(json.loads(done.stdout))
    return {name: seen[0][name] == seen[1][name] for name in seen[0]}


def summary(results: Sequence[Result], same: dict[str, bool]) -> str:
    """One row per contestant: sums over the graphs, medians where sums would say little."""
    head = (
        "layout", "graphs", "crossings", "edges through vertices", "vertices overlapping",
        "lines too close, inch", "edges not to the right", "median text on a slide, pt",
        "graphs with text of 14 pt or more",
        "length of edges", "median time, ms", "longest, ms", "same in two processes",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 2) + " --- |"]
    ink = {r.graph: r.found.ink for r in results if r.who == _FIRST and r.found}
    for who in dict.fromkeys(result.who for result in results):
        mine = [r for r in results if r.who == who and r.found]
        found = [r.found for r in mine if r.found]
        asked = sum(r.who == who for r in results)
        if not found:
            lines.append(f"| {who} | 0 of {asked} |" + " |" * (len(head) - 2))
            continue
        ratios = [math.log(r.found.ink / ink[r.graph]) for r in mine if r.found and r.graph in ink]
        length = f"{math.exp(sum(ratios) / len(ratios)):.2f}" if ratios else "-"
        cells = (
            who, str(len(mine)) if len(mine) == asked else f"{len(mine)} of {asked}",
            f"{sum(m.crossings for m in found):,}", f"{sum(m.through for m in found):,}",
            f"{sum(m.overlaps for m in found):,}",
            f"{sum(m.close for m in found) / 72:,.0f}", f"{sum(m.backward for m in found):,}",
            f"{median(m.text for m in found):.1f}", f"{sum(m.text >= 14 for m in found)}", length,
            f"{1e3 * median(r.seconds for r in mine):.3g}",
            f"{1e3 * max(r.seconds for r in mine):,.0f}", "yes" if same.get(who) else "no",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def by_graph(results: Sequence[Result]) -> str:
    """Per graph: crossings, and edges through vertices after a plus sign, of each contestant."""
    whom = list(dict.fromkeys(result.who for result in results))
    lines = [f"| graph | vertices | edges | {' | '.join(whom)} |"]
    lines.append("| --- |" + " ---: |" * (len(whom) + 2))
    for graph in dict.fromkeys(result.graph for result in results):
        mine = {r.who: r for r in results if r.graph == graph}
        first = next(iter(mine.values()))
        cells = [graph, str(first.vertices), str(first.edges)]
        for who in whom:
            found = mine[who].found
            cell = mine[who].error if found is None else f"{found.crossings}"
            cells.append(cell + (f"+{found.through}" if found and found.through else ""))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not here"


if __name__ == "__main__":
    sys.exit(main())
