"""Grade a class with hostile submissions in it, and print what came of it as JSON.

Run as a program of its own, so that it can be run as any user:
python -m tests.checking.grade_hostile_class FOLDER kernel|python STUDENTS JOBS
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from cgprimer.course.checks import sandbox
from cgprimer.course.checks.batch_checks import check_all
from cgprimer.course.checks.check_results import Result
from cgprimer.course.checks.class_page import render_class_page
from cgprimer.course.checks.result_files import convert_to_gradescope, format_csv, format_junit_xml
from cgprimer.course.checks.result_journal import ResultJournal
from cgprimer.course.checks.sandbox import Limits
from cgprimer.course.checks.submission_search import find_submissions
from tests.checking.halves import RIGHT, half_check
from tests.checking.hostile_submissions import hostile_class, state_of


def end_of(result: Result) -> str:
    return result.failure.kind if result.failure else "graded"


def peak_megabytes() -> float:
    """Return the largest memory of this program; getrusage counts what ran before exec, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def main(folder: Path, protection: str, students: int, jobs: int) -> dict[str, Any]:
    sandbox.KERNEL = protection == "kernel"
    handed, temporary = folder / "class", folder / "temporary"
    handed.mkdir(parents=True)
    temporary.mkdir(mode=0o755)
    folder.chmod(0o755)
    tempfile.tempdir = str(temporary)
    secret = folder / "solution.py"
    secret.write_text("0.123456")
    secret.chmod(0o600)
    with suppress(OSError):
        os.setxattr(secret, "user.keep", b"1")
    before = state_of(secret)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    expected = hostile_class(handed, secret, server.getsockname()[1], sandbox.KERNEL)
    for number in range(students - len(expected)):
        (handed / f"right{number}.py").write_text(f"{RIGHT}# {number}\n")
    limits = Limits(time=1, memory=300, output=100)
    journal = ResultJournal(folder / "class.journal")
    files = find_submissions([handed], stem="half")
    batch = check_all(half_check(), files, limits, jobs=jobs, journal=journal)
    results = {r.submission: r for r in batch.results}
    written = [
        format_csv(batch.results),
        render_class_page(batch.results, "class"),
        format_junit_xml(batch.results),
    ]
    written += [json.dumps(convert_to_gradescope(r)) for r in batch.results]
    return {
        "missing": sorted(expected.keys() - results.keys()),
        "unexpected": {
            name: str(results[name])
            for name, ends in expected.items()
            if name in results and end_of(results[name]) not in ends
        },
        "ends": {name: end_of(results[name]) for name in expected if name in results},
        "defects": [n for n, r in results.items() if end_of(r) == "grader"],
        "wronged": [n for n, r in results.items() if n.startswith("right") and r.points != 3],
        "results": len(results),
        "characters": sum(len(text.encode()) for text in written),
        "secret changed": state_of(secret) != before,
        "folders left": [path.name for path in temporary.iterdir()],
        "processes left": processes_in(temporary),
        "megabytes": peak_megabytes(),
    }


def processes_in(folder: Path) -> list[str]:
    """Return the processes that have a home in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={folder}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
    return found


if __name__ == "__main__":
    place, kind, *numbers = sys.argv[1:]
    print(json.dumps(main(Path(place), kind, *map(int, numbers))))
