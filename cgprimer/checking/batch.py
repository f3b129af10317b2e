"""Many submissions: found in folders, checked several at a time, gone on with when interrupted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgprimer import __version__
from cgprimer.checking.results import Failure, Result, not_run, renamed
from cgprimer.checking.sandbox import Limits, Submission, stop_all
from cgprimer.errors import CgprimerError, DataError, UsageError, listed
from cgprimer.files import write_whole

_SECONDS = 1.0  # between two writings of a journal


@dataclass(frozen=True)
class Check:
    """A kind of check with its settings, ready for submissions."""

    name: str  # as the command is called
    reference: str  # all that verdicts depend on but the submission: graph, settings, seed
    run: Callable[[Submission, Limits], Result]
    skeleton: str = ""  # the file that students start from
    # The same in Python, where NAMES stands for the names of a notebook:
    # cgprimer.check_gradient(cgprimer.parse("..."), NAMES)
    call: str = ""
    parts: dict[str, float] = field(default_factory=dict)  # the points that each can bring
    endings: tuple[str, ...] = (".py",)  # of files that are submissions

    def key(self, submission: bytes, limits: Limits) -> str:
        """What a result depends on, as one short text."""
        parts = (__version__, self.name, self.reference, repr(limits))
        head = "\0".join(parts).encode()
        return hashlib.sha256(head + b"\0" + submission).hexdigest()


@dataclass(frozen=True)
class Batch:
    """The results that there are, in the order of the files, and what a grader should know."""

    results: tuple[Result, ...]
    kept: int  # of them, those that a journal had
    missing: tuple[str, ...] = ()  # that were not checked before an interruption
    same: dict[str, str] = field(default_factory=dict)  # submission -> an earlier one like it


@dataclass
class Journal:
    """Results by the content of the submission and all that they depend on, and files written."""

    path: Path | None = None
    results: dict[str, Result] = field(default_factory=dict)
    wrote: list[str] = field(default_factory=list)  # as absolute paths

    @classmethod
    def read(cls, path: Path) -> Journal:
        """What a file holds; nothing, where there is none yet.

        Raises:
            DataError: it is something else.
        """
        if not path.exists():
            return cls(path)
        try:
            data: Any = json.loads(path.read_bytes())
            results = {k: Result.from_dict(v) for k, v in data["cgprimer journal"].items()}
            return cls(path, results, list(map(str, data["wrote"])))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DataError(f"{path} is no journal of checks", hint="--journal OTHER") from None

    def write(self) -> None:
        """Write it whole, or not at all; a defect of the grader is not kept.

        Raises:
            UsageError: it cannot be written.
        """
        if self.path is None:
            return
        kept = {
            key: result.to_dict()
            for key, result in self.results.items()
            if result.failure is None or result.failure.kind != "grader"
        }
        text = json.dumps({"cgprimer journal": kept, "wrote": self.wrote})
        write_whole(self.path, text)


def submissions_in(paths: Iterable[Path], endings: tuple[str, ...] = (".py",)) -> dict[str, Path]:
    """Files by the names of their submissions: those given, and those in the folders given.

    In a folder these are ``ann.py`` of the student ann, and the only ``.py`` file in each folder
    ``bob/``; other ``endings`` in the place of ``.py``.

    Raises:
        UsageError: a path that is not there, a folder without submissions, a student's folder
            with several files, nothing at all, or two files of one student.
    """
    found: list[tuple[str, Path]] = []
    for path in paths:
        if path.is_dir():
            inside = _in_folder(path, endings)
            if not inside:
                ending = " or ".join(endings)
                raise UsageError(f"there are no submissions in {path}: no file ends in {ending}")
            found += inside
        elif path.exists():
            found.append((path.name, path))
        else:
            raise UsageError(f"there is no file {path}")
    if not found:
        raise UsageError(f"which submission? Give a {endings[0]} file, or a folder of them")
    students: dict[str, list[str]] = {}
    for name, path in found:
        student = Path(name).stem if name.endswith(endings) else name
        students.setdefault(student.casefold(), []).append(str(path))
    several = [f"{name} ({', '.join(files)})" for name, files in students.items() if files[1:]]
    if several:
        raise UsageError(
            f"two submissions of one student: {listed(several)}",
            hint=f"leave one of them, or call them differently, as ann-late{endings[0]}",
        )
    return dict(found)


def _in_folder(folder: Path, endings: tuple[str, ...]) -> list[tuple[str, Path]]:
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            files = sorted(file for file in entry.iterdir() if file.suffix in endings)
            if len(files) > 1:
                names = listed([file.name for file in files])
                raise UsageError(
                    f"which file is the submission of {entry.name}? There are {names}",
                    hint=f"leave one {endings[0]} file in {entry}",
                )
            found += [(entry.name, file) for file in files]
        elif entry.suffix in endings:
            found.append((entry.name, entry))
    return found


def check_all(
    check: Check,
    files: dict[str, Path],
    limits: Limits,
    *,
    jobs: int = 1,
    journal: Journal | None = None,
    on_result: Callable[[int, int], None] | None = None,
) -> Batch:
    """The result of every file; equal files are checked once.

    With a journal a run that was interrupted goes on where it stopped. On an interruption the
    batch has what is finished.

    Raises:
        UsageError: a file cannot be read, the journal cannot be written.
    """
    content = {name: _content(path) for name, path in files.items()}
    keys = {name: check.key(data, limits) for name, data in content.items()}
    journal = journal or Journal()
    known = journal.results
    first: dict[str, str] = {}  # key -> the first submission that has it
    for name, key in keys.items():
        first.setdefault(key, name)
    kept = sum(key in known for key in keys.values())
    written = time.monotonic()
    pool = ThreadPoolExecutor(jobs)
    waiting = {
        pool.submit(_run, check, files[name], limits): key
        for key, name in first.items()
        if key not in known
    }
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            known[waiting[future]] = future.result()
            if on_result:
                on_result(len(first) - len(waiting) + done, len(first))
            if time.monotonic() > written + _SECONDS:
                journal.write()
                written = time.monotonic()
    except KeyboardInterrupt:  # what is finished is given back, and the rest is named
        pool.shutdown(wait=False, cancel_futures=True)
        stop_all()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        journal.write()
    results = {n: renamed(known[key], n) for n, key in keys.items() if key in known}
    return Batch(
        tuple(results.values()),
        kept,
        tuple(name for name in files if name not in results),
        {name: first[key] for name, key in keys.items() if first[key] != name},
    )


def _run(check: Check, path: Path, limits: Limits) -> Result:
    """The result of one; where the grader itself has a defect, the others are graded still."""
    try:
        return check.run(path, limits)
    except CgprimerError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return not_run(check.name, path.name, check.parts, Failure("grader", what))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def by_mistake(results: Sequence[Result]) -> dict[str, list[str]]:
    """Who made which mistake, the most frequent one first."""
    found: dict[str, list[str]] = {}
    for result in results:
        for mistake in result.mistakes:
            found.setdefault(mistake, []).append(result.submission)
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0])))
