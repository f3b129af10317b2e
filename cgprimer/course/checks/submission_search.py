"""Find the submissions of a class in folders, and group them by student and by mistake."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path

from cgprimer.course.checks.check_results import Result, sanitize
from cgprimer.errors import UsageError, join_words

PROGRAM_ENDINGS = (".py", ".ipynb")
_CONTROL_CHARACTERS = {9: "\ufffd", 10: "\ufffd"}  # in file names, they could forge rows of tables


def find_submissions(
    paths: Iterable[Path], endings: tuple[str, ...] = PROGRAM_ENDINGS, stem: str = ""
) -> dict[str, Path]:
    """Find the submissions in the given files and folders.

    In a folder, ``ann.py`` is the submission of the student ann. The submission in a folder
    ``bob/`` is its only file with such an ending, or the file with the given stem. If there are
    several candidates, the folder itself is the submission, and the check reports the problem.

    Args:
        paths: files and folders.
        endings: the endings of file names of submissions.
        stem: the preferred file name without its ending.

    Returns:
        The files, keyed by the name of the submission.

    Raises:
        UsageError: a path does not exist, a folder has no submissions, or there are no paths.
    """
    submissions: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"no such file: {path}")
        files = [path.resolve()]  # a given link may lead anywhere, a link in a folder may not
        if path.is_dir():
            files = _list_submissions(path, endings, stem)
            if not files:
                raise UsageError(
                    f"{path} contains no submissions: expected a file ending in"
                    f" {join_words(endings, 'or')}"
                )
        for file in files:
            has_folder = path.is_dir() and file.parent != path
            shown = path if not path.is_dir() else file.parent if has_folder else file
            name, full = (
                sanitize(n).translate(_CONTROL_CHARACTERS) for n in (shown.name, str(file))
            )
            numbered = (f"{full} ({number})" for number in count(2))
            key = next(n for n in chain((name, full), numbered) if n not in submissions)
            submissions[key] = file
    if not submissions:
        one = f"a {join_words(endings, 'or')} file"
        raise UsageError(f"missing submission: pass {one}, or a folder of submissions")
    return submissions


def _list_submissions(folder: Path, endings: tuple[str, ...], stem: str) -> list[Path]:
    """Return the submission of each student in a class folder, without following links."""
    files = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir() and not entry.is_symlink():
            files.append(_select_file(entry, endings, stem))
        elif entry.suffix in endings or (entry.is_symlink() and entry.is_dir()):
            files.append(entry)
    return files


def _select_file(folder: Path, endings: tuple[str, ...], stem: str) -> Path:
    """Return the only submission in a student's folder, or the folder if there are several."""
    files = [folder / name for name in list_file_names(folder) if name.endswith(endings)]
    preferred = [file for file in files if file.stem == stem]
    candidates = preferred or files
    return candidates[0] if len(candidates) == 1 else folder


def list_file_names(folder: Path) -> list[str]:
    """Return the sorted file names in a student's folder; empty if the folder is unreadable."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def remove_ending(submission: str) -> str:
    """Return the name of a student: the submission name without the file extension.

    >>> remove_ending("ann.py"), remove_ending("ann.lee")
    ('ann', 'ann.lee')
    """
    return re.sub(r"\.(py|ipynb|csv|json|md)$", "", submission)


def find_repeated_submissions(submissions: Iterable[str]) -> dict[str, list[str]]:
    """Return the submissions of each student who has more than one submission.

    >>> find_repeated_submissions(["ann.py", "Ann.ipynb", "bob.py"])
    {'ann': ['ann.py', 'Ann.ipynb']}
    """
    groups: dict[str, list[str]] = {}
    for name in submissions:
        groups.setdefault(Path(remove_ending(name)).name.casefold(), []).append(name)
    return {student: names for student, names in groups.items() if len(names) > 1}


def group_by_mistake(results: Sequence[Result]) -> dict[str, list[str]]:
    """Group submissions by mistake, the most frequent mistake first."""
    groups: dict[str, list[str]] = {}
    for result in results:
        for mistake in result.mistakes:
            groups.setdefault(mistake, []).append(result.submission)
    return dict(sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0])))
