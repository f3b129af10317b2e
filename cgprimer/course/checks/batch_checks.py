"""Check many submissions: several at a time, and continue interrupted runs.

Whatever a submission does, it becomes a result of that submission. Only an error of the machine
(:class:`~cgprimer.course.checks.sandbox.MachineError`, a full disk, an interruption) ends a run.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from cgprimer import __version__
from cgprimer.course.checks.check_results import Failure, Result, create_failed_result
from cgprimer.course.checks.result_journal import ResultJournal
from cgprimer.course.checks.sandbox import Limits, MachineError, Submission, stop_submissions
from cgprimer.course.checks.submission_files import read_regular_file
from cgprimer.course.checks.submission_search import PROGRAM_ENDINGS, list_file_names
from cgprimer.course.exercises.roster import Student
from cgprimer.errors import CgprimerError, UsageError, join_names, join_words

_MAX_BYTES = 10_000_000  # of a file whose content is compared
_MACHINE_ERRORS = {  # errors that no submission causes: disk, memory, processes, open files
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
    """A kind of check with its settings, and the function that checks one submission.

    Attributes:
        name: the name of the command.
        reference: the settings on which verdicts depend: graph, options, seed.
        run: the function that checks one submission.
        skeleton: the file that students start from.
        call: the check as a Python expression, in which ``NAMES`` stands for the names of a
            notebook.
        parts: the maximum points of each part.
        endings: the endings of file names of submissions.
        find_failures: a function from the files of all submissions, keyed by name, and the class
            list to failures that do not depend on the content of a file alone.
    """

    name: str
    reference: str
    run: Callable[[Submission, Limits], Result]
    skeleton: str = ""
    call: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    endings: tuple[str, ...] = PROGRAM_ENDINGS
    find_failures: Callable[[Mapping[str, Path], Sequence[Student]], Mapping[str, Failure]] = (
        lambda files, students: {}
    )

    def key(self, submission: bytes, limits: Limits) -> str:
        """Return a hash of the check, the limits and the submission, which determine the result."""
        parts = (__version__, self.name, self.reference, repr(limits))
        head = "\0".join(parts).encode()
        return hashlib.sha256(head + b"\0" + submission).hexdigest()


@dataclass(frozen=True)
class Batch:
    """The results of checking many submissions, and the submissions that were not checked.

    Attributes:
        results: the results, in the order of the files.
        reused: the number of results that the journal had.
        missing: the submissions that were not checked before an interruption.
        same: for each submission with the content of an earlier one, the earlier submission.
    """

    results: tuple[Result, ...]
    reused: int
    missing: tuple[str, ...] = ()
    same: dict[str, str] = field(default_factory=dict)


def check_all(
    check: Check,
    files: dict[str, Path],
    limits: Limits,
    *,
    jobs: int = 1,
    journal: ResultJournal | None = None,
    on_result: Callable[[int, int], None] | None = None,
    students: Sequence[Student] = (),
) -> Batch:
    """Check many submissions; identical submissions are checked only once.

    If the run is interrupted, the batch has the finished results.

    Args:
        check: the check.
        files: the file of each submission, keyed by name.
        limits: the limits of the sandbox.
        jobs: the number of submissions that are checked at a time.
        journal: results of earlier runs, which are not checked again; updated.
        on_result: a function called after each result with the number of finished and all results.
        students: the class list, if there is one.

    Raises:
        UsageError: the journal cannot be written.
        MachineError: the sandbox cannot start, or the machine has no disk space or memory left.
    """
    keys = {name: check.key(_read_fingerprint(path), limits) for name, path in files.items()}
    journal = journal or ResultJournal()
    results = journal.results
    first: dict[str, str] = {}  # the first submission with each key
    for name, key in keys.items():
        first.setdefault(key, name)
    reused = sum(key in results for key in keys.values())
    pool = ThreadPoolExecutor(jobs)
    new = {key: name for key, name in first.items() if key not in results}
    waiting = {
        pool.submit(_check_submission, check, files[n], limits): key for key, n in new.items()
    }
    try:
        for n_finished, future in enumerate(as_completed(waiting), 1):
            journal.add(waiting[future], future.result())
            if on_result:
                on_result(len(first) - len(waiting) + n_finished, len(first))
    except (KeyboardInterrupt, MachineError) as error:
        completed = [future for future in waiting if future.done() and not future.exception()]
        pool.shutdown(wait=False, cancel_futures=True)
        running = [future for future in waiting if future.running()]
        for _ in range(10):  # a submission that is just starting cannot be stopped yet
            stop_submissions()
            if not wait(running, 0.2).not_done:
                break
        for future in completed:
            journal.add(waiting[future], future.result())
        if isinstance(error, MachineError):
            raise
        # After an interruption, finished results are returned, and the others are listed.
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        journal.save()
    finished = {
        name: replace(results[key], submission=name) for name, key in keys.items() if key in results
    }
    readable = {name: files[name] for name, result in finished.items() if not result.failure}
    for name, failure in check.find_failures(readable, students).items():
        finished[name] = finished[name].reject(failure)
    return Batch(
        tuple(finished.values()),
        reused,
        tuple(name for name in files if name not in finished),
        {name: first[key] for name, key in keys.items() if first[key] != name},
    )


def _check_submission(check: Check, path: Path, limits: Limits) -> Result:
    """Check one submission; an error that the submission causes becomes a failed result.

    Raises:
        MachineError: the machine caused an error, not the submission.
    """
    try:
        reason = _explain_unreadable(path, check.endings)
        if not reason:
            return check.run(path, limits).cleaned()
        failure = Failure("missing", reason)
    except MachineError:
        raise
    except CgprimerError as error:  # about the answers of the submission
        failure = Failure("answers", error.message)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
            raise MachineError(f"the machine cannot run submissions: {error}") from error
        failure = Failure(
            "grader", f"{type(error).__name__}: {error} (or the submission forged its answers)"
        )
    return create_failed_result(check.name, path.name, check.parts, failure).cleaned()


def _explain_unreadable(path: Path, endings: tuple[str, ...]) -> str:
    """Return the reason why a submission cannot be read; an empty string if it is readable."""
    if path.is_symlink():
        return "the submission is a symbolic link"
    if path.is_dir():
        files = [name for name in list_file_names(path) if name.endswith(endings)]
        if files:
            return f"the folder contains several submissions: {join_names(files)}"
        choices = join_words(endings, "or")
        return f"the folder contains no submission: expected a file ending in {choices}"
    if not path.is_file() or not os.access(path, os.R_OK):
        return "the submission is not a readable file"
    return ""


def _read_fingerprint(path: Path) -> bytes:
    """Return bytes that identify a submission: its content, or its metadata if it is unreadable."""
    try:
        status = path.lstat()
        data = repr(status).encode()
        if stat.S_ISDIR(status.st_mode):
            data = repr(list_file_names(path)).encode()
        elif stat.S_ISREG(status.st_mode):
            data = read_regular_file(path, _MAX_BYTES) or data
    except (OSError, UsageError) as error:
        return repr(error).encode()
    kind = f"{stat.S_IFMT(status.st_mode)}{path.suffix}"  # a folder is never equal to a file
    return kind.encode(errors="surrogateescape") + b"\0" + data
