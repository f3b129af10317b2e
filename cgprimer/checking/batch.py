"""Many submissions: found in folders, checked several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cgprimer.checking.results import Result
from cgprimer.checking.sandbox import Limits, Submission
from cgprimer.errors import UsageError


@dataclass(frozen=True)
class Check:
    """A kind of check with its settings, ready for submissions."""

    name: str  # as the command is called
    reference: str  # all that verdicts depend on but the submission: graph, settings, seed
    run: Callable[[Submission, Limits], Result]
    skeleton: str = ""  # the file that students start from
    call: str = ""  # in Python, for notebooks: cgprimer.check_gradient(..., globals())


def submissions_in(paths: Iterable[Path]) -> list[Path]:
    """The files named, and those in the folders named: ``*.py``, sorted.

    Raises:
        UsageError: a path that is not there, a folder without submissions, nothing at all.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("*.py"))
            if not inside:
                raise UsageError(f"there are no submissions in {path}: no file ends in .py")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise UsageError(f"there is no file {path}")
    if not found:
        raise UsageError("which submission? Give a .py file, or a folder of them")
    return found


def check_all(
    check: Check, files: Sequence[Path], limits: Limits, *, jobs: int = 1
) -> list[Result]:
    """The result of every file, in their order."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda file: check.run(file, limits), files))
