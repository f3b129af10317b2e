"""Check many submissions: find them in folders, run several at a time, continue interrupted runs.

Whatever a submission does, it ends as a result of that submission. Only an error of the machine
(:class:`~cgprimer.course.checks.sandbox.MachineError`, a full disk, an interruption) ends a run.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path

from cgprimer import __version__
from cgprimer.course.checks.check_results import Failure, Result, create_failed_result, sanitize
from cgprimer.course.checks.result_journal import ResultJournal
from cgprimer.course.checks.sandbox import Limits, MachineError, Submission, stop_all
from cgprimer.course.checks.submission_files import read_regular_file
from cgprimer.errors import CgprimerError, UsageError, join_names

ENDINGS = (".py", ".ipynb")  # of programs
_LARGEST = 10_000_000  # bytes of a file that is read to see whether it has changed
_ONE_LINE = {9: "\ufffd", 10: "\ufffd"}  # a name with lines would forge rows of tables
_OF_MACHINE = {  # errors that no submission causes: disk, memory, processes, open files
    errno.EAGAIN,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EROFS,
}


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
    endings: tuple[str, ...] = ENDINGS  # of files that are submissions

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


def submissions_in(
    paths: Iterable[Path], endings: tuple[str, ...] = ENDINGS, called: str = ""
) -> dict[str, Path]:
    """Files by the names of their submissions: those given, and those in the folders given.

    In a folder these are ``ann.py`` of the student ann, and the file in the folder ``bob/``: the
    only one with such an ending, or the one that is ``called`` so. Where it cannot be told, the
    folder itself is the submission, and the check says what is wrong with it.

    Raises:
        UsageError: a path that is not there, a folder without submissions, nothing at all.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no file {path}")
        inside = [path.resolve()]  # a link that is named may lead anywhere, one in a folder may not
        if path.is_dir():
            inside = _submissions_of_class(path, endings, called)
            if not inside:
                ending = " or ".join(endings)
                raise UsageError(f"there are no submissions in {path}: no file ends in {ending}")
        for file in inside:
            own = path.is_dir() and file.parent != path  # in a folder of the student's own
            shown = path if not path.is_dir() else file.parent if own else file
            name, place = (sanitize(n).translate(_ONE_LINE) for n in (shown.name, str(file)))
            others = (f"{place} ({number})" for number in count(2))
            found[next(n for n in chain((name, place), others) if n not in found)] = file
    if not found:
        raise UsageError(f"which submission? Give a {endings[0]} file, or a folder of them")
    return found


def _submissions_of_class(folder: Path, endings: tuple[str, ...], called: str) -> list[Path]:
    """Return the file of each student in a class's folder; links are not followed."""
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if _is_folder(entry):
            found.append(_file_in(entry, endings, called))
        elif entry.suffix in endings or (entry.is_symlink() and entry.is_dir()):
            found.append(entry)
    return found


def _is_folder(path: Path) -> bool:
    """Return whether a path is a folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _file_in(folder: Path, endings: tuple[str, ...], called: str) -> Path:
    """Return the submission in a student's folder, or the folder if it cannot be told."""
    files = [folder / name for name in _names_in(folder) if name.endswith(endings)]
    named = [file for file in files if file.stem == called]
    return (named or files)[0] if len(named or files) == 1 else folder


def _names_in(folder: Path) -> list[str]:
    """Return the names in a student's folder; none if it may not be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def student_of(submission: str) -> str:
    """Whose it is: the name of the file without its ending, or of the folder.

    >>> student_of("ann.py"), student_of("ann.lee")
    ('ann', 'ann.lee')
    """
    return re.sub(r"\.(py|ipynb|csv|json|md)$", "", submission)


def several_of_one(submissions: Iterable[str]) -> dict[str, list[str]]:
    """Students with more than one submission, and those.

    >>> several_of_one(["ann.py", "Ann.ipynb", "bob.py"])
    {'ann': ['ann.py', 'Ann.ipynb']}
    """
    found: dict[str, list[str]] = {}
    for name in submissions:
        found.setdefault(Path(student_of(name)).name.casefold(), []).append(name)
    return {student: names for student, names in found.items() if len(names) > 1}


def check_all(
    check: Check,
    files: dict[str, Path],
    limits: Limits,
    *,
    jobs: int = 1,
    journal: ResultJournal | None = None,
    on_result: Callable[[int, int], None] | None = None,
) -> Batch:
    """The result of every file; equal files are checked once.

    With a journal a run that was interrupted goes on where it stopped. On an interruption the
    batch has what is finished.

    Raises:
        UsageError: the journal cannot be written.
        MachineError: the sandbox cannot start, or the machine has no disk space or memory left.
    """
    keys = {name: check.key(_content(path), limits) for name, path in files.items()}
    journal = journal or ResultJournal()
    known = journal.results
    first: dict[str, str] = {}  # key -> the first submission that has it
    for name, key in keys.items():
        first.setdefault(key, name)
    kept = sum(key in known for key in keys.values())
    pool = ThreadPoolExecutor(jobs)
    new = {key: name for key, name in first.items() if key not in known}
    waiting = {pool.submit(_run, check, files[n], limits): key for key, n in new.items()}
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            journal.add(waiting[future], future.result())
            if on_result:
                on_result(len(first) - len(waiting) + done, len(first))
    except KeyboardInterrupt:  # what is finished is given back, and the rest is named
        pool.shutdown(wait=False, cancel_futures=True)
        stop_all()
    except MachineError:
        pool.shutdown(wait=False, cancel_futures=True)
        stop_all()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        journal.save()
    results = {n: replace(known[key], submission=n) for n, key in keys.items() if key in known}
    return Batch(
        tuple(results.values()),
        kept,
        tuple(name for name in files if name not in results),
        {name: first[key] for name, key in keys.items() if first[key] != name},
    )


def _run(check: Check, path: Path, limits: Limits) -> Result:
    """Return the result of one submission, whatever it does.

    Raises:
        MachineError: the machine is at fault, not the submission.
    """
    try:
        reason = _why_unreadable(path, check.endings)
        if not reason:
            return check.run(path, limits).cleaned()
        failure = Failure("missing", reason)
    except MachineError:
        raise
    except CgprimerError as error:  # about what the submission has answered
        failure = Failure("answers", error.message)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OF_MACHINE:
            raise MachineError(f"the machine cannot run submissions: {error}") from error
        failure = Failure("grader", f"{type(error).__name__}: {error} (or its answers are forged)")
    return create_failed_result(check.name, path.name, check.parts, failure).cleaned()


def _why_unreadable(path: Path, endings: tuple[str, ...]) -> str:
    """Return why a submission is not a file that can be read, or nothing."""
    if path.is_symlink():
        return "it is a link to another place"
    if path.is_dir():
        files = [name for name in _names_in(path) if name.endswith(endings)]
        return f"which file is it? There are {join_names(files)}" if files else "it has no file"
    if not path.is_file() or not os.access(path, os.R_OK):
        return "it is no file that can be read"
    return ""


def _content(path: Path) -> bytes:
    """Return what tells whether a submission has changed."""
    try:
        about = path.lstat()
        data = repr(about).encode()
        if stat.S_ISDIR(about.st_mode):
            data = repr(_names_in(path)).encode()
        elif stat.S_ISREG(about.st_mode):
            data = read_regular_file(path, _LARGEST) or data
    except (OSError, UsageError) as error:
        return repr(error).encode()
    kind = f"{stat.S_IFMT(about.st_mode)}{path.suffix}"  # a folder is never the same as a file
    return kind.encode(errors="surrogateescape") + b"\0" + data


def by_mistake(results: Sequence[Result]) -> dict[str, list[str]]:
    """Who made which mistake, the most frequent one first."""
    found: dict[str, list[str]] = {}
    for result in results:
        for mistake in result.mistakes:
            found.setdefault(mistake, []).append(result.submission)
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0])))
