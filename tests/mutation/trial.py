"""Run tests against mutants, and report which of them the tests caught."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutation.mutants import PACKAGES, ROOT, Mutant

# The folders of tests that know most about a package.
TESTS = {
    "support": (
        "tests/support",
        "tests/native/test_disk_cache.py",
        "tests/pages/test_number_format.py",
        "tests/interface",
        "tests/cli",
        "tests/training",
        "tests/checking",
    ),
    "core": (
        "tests/language",
        "tests/graph",
        "tests/tape",
        "tests/primitives",
        "tests/methods",
        "tests/arrays",
        "tests/lecture",
    ),
    "recording": ("tests/recording",),
    "backends": ("tests/native", "tests/cuda", "tests/data", "tests/arrays"),
    "analysis": ("tests/analysis", "tests/exporting", "tests/fitting"),
    "training": ("tests/training", "tests/workers", "tests/fitting", "tests/data"),
    "visualization": ("tests/pictures", "tests/plots", "tests/pages"),
    "course": (
        "tests/checking",
        "tests/exercises",
        "tests/trial",
        "tests/lecture",
        "tests/test_homework_notebooks.py",
    ),
    "cli": ("tests/cli", "tests/interface", "tests/pages/test_live_pages.py"),
}
SECONDS = 900  # more than any stage takes: a mutant that takes longer hangs, which counts as caught
MAX_TEST_IDS = 150  # of the tests that run a mutated line; a longer command line is slow to collect


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one mutant: `verdict` is "killed", "survived", "equivalent" or "cosmetic"."""

    mutant: Mutant
    verdict: str
    evidence: str
    seconds: float


def try_mutant(
    mutant: Mutant, stages: Iterable[Sequence[str]], jobs: str = "0", root: Path | None = None
) -> Outcome:
    """Plant a mutant and run the stages (arguments of pytest) until a test fails."""
    start = time.perf_counter()
    if mutant.judgement:
        kind, _, reason = mutant.judgement.partition(": ")
        return Outcome(mutant, kind, reason, 0.0)
    verdict, evidence = "survived", ""
    with mutant.planted(root or ROOT):
        for stage in stages:
            failure = run_tests(stage, jobs)
            if failure:
                verdict, evidence = "killed", failure
                break
    return Outcome(mutant, verdict, evidence, time.perf_counter() - start)


def run_tests(arguments: Sequence[str], jobs: str = "0") -> str:
    """Run pytest until the first failure; return the name of the failed test, or ""."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    command += ["--tb=no", "-n", jobs, *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            output = "timeout"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in (0, 5):  # passed, or no tests collected
        return ""
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].partition(" - ")[0] if lines else (output.strip().splitlines() or ["?"])[-1]


def list_stages(mutant: Mutant, coverage: Path | None, everything: bool) -> list[list[str]]:
    """Return the stages for a mutant: tests that run its line, its package's tests, all tests."""
    marks = ["-m", "not slow and not browser and not release and not mutation"]
    slow = ["-m", "slow"]
    stages = []
    if coverage is not None:
        names = find_covering_tests(coverage, mutant)
        for k in range(0, min(len(names), 4 * MAX_TEST_IDS), MAX_TEST_IDS):
            stages.append(["-m", "not mutation", *names[k : k + MAX_TEST_IDS]])
    folders = [folder for folder in TESTS[mutant.package] if (ROOT / folder).exists()]
    stages += [[*marks, *folders, f"cgprimer/{mutant.package}"], [*slow, *folders]]
    if everything:
        stages += [marks, slow]
    return stages


def find_covering_tests(coverage: Path, mutant: Mutant) -> list[str]:
    """Return the tests that run the mutant's lines, from a data file of coverage's contexts."""
    from coverage import CoverageData

    data = CoverageData(str(coverage))
    data.read()
    contexts = data.contexts_by_lineno(str(ROOT / mutant.file))
    last = mutant.line + mutant.before.count("\n")
    names = {
        context.partition("|")[0]
        for line in range(mutant.line, last + 1)
        for context in contexts.get(line, ())
    }
    return sorted(name for name in names if name and (ROOT / name.partition("::")[0]).exists())


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write outcomes as JSON."""
    records = [dataclasses.asdict(outcome) for outcome in outcomes]
    path.write_text(json.dumps(records, indent=1) + "\n", "utf-8")


def read_outcomes(path: Path) -> list[Outcome]:
    """Return the outcomes of a JSON file; none if it does not exist."""
    records = json.loads(path.read_text("utf-8")) if path.exists() else []
    return [Outcome(**{**record, "mutant": Mutant(**record["mutant"])}) for record in records]


def format_table(outcomes: Sequence[Outcome]) -> str:
    """Return a Markdown table of the outcomes by package."""
    columns = ("planted", "killed", "survived", "equivalent", "cosmetic", "score")
    lines = [f"| package | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for package in (*PACKAGES, "all"):
        chosen = [o for o in outcomes if package in (o.mutant.package, "all")]
        if not chosen:
            continue
        counts = {c: sum(o.verdict == c for o in chosen) for c in columns}
        counts["planted"] = len(chosen)
        cells = [str(counts[c]) for c in columns[:-1]] + [f"{compute_score(chosen):.0%}"]
        lines.append(f"| {package} | {' | '.join(cells)} |")
    return "\n".join(lines)


def compute_score(outcomes: Sequence[Outcome]) -> float:
    """Return the fraction of killed mutants among those that tests could kill."""
    verdicts = [o.verdict for o in outcomes if o.verdict in ("killed", "survived")]
    return verdicts.count("killed") / len(verdicts) if verdicts else 1.0
