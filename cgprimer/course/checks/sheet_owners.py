"""Find submissions that contain another student's sheet than the names of their files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cgprimer.course.checks.check_results import Failure, sanitize
from cgprimer.course.checks.sheets.answer_files import read_answers
from cgprimer.course.checks.sheets.sheet_problems import Sheet
from cgprimer.course.checks.submission_search import remove_ending
from cgprimer.course.exercises.roster import Student, students_by_submission
from cgprimer.errors import DataError


def find_exchanged_sheets(
    sheets: Mapping[str, Sheet], files: Mapping[str, Path], students: Sequence[Student] = ()
) -> dict[str, Failure]:
    """Return a failure for each file of one student that contains the sheet of another student."""
    identifiers = {name: _read_identifier(file) for name, file in files.items()}
    return compare_owners(sheets, identifiers, students)


def compare_owners(
    sheets: Mapping[str, Sheet], identifiers: Mapping[str, str], students: Sequence[Student] = ()
) -> dict[str, Failure]:
    """Return a failure for each submission of one student with the sheet of another student.

    A file or folder belongs to the student whose name, e-mail address or name of files it has. If
    it matches no student or several students, the submission is accepted.

    Args:
        sheets: the sheets of a class, keyed by identifier.
        identifiers: the identifiers of the submitted sheets, keyed by the name of the submission.
        students: the class list, if there is one.
    """
    owners = {
        identifier: _find_owner(sheet, students)
        for identifier, sheet in sheets.items()
        if sheet.student
    }
    listed, have_sheets = set(students), set(owners.values())
    everybody = [*students, *(owner for owner in owners.values() if owner not in listed)]
    names = {name: Path(remove_ending(name)).name for name in identifiers}
    failures = {}
    for name, student in students_by_submission(everybody, names).items():
        owner = owners.get(identifiers[name])
        if owner is None or owner == student:
            continue
        if student not in have_sheets and owner not in listed:
            continue  # the class list may have another name for the same person
        one, other = owner.name, student.name
        if one == other:
            one, other = owner.file, student.file
        failures[name] = Failure("sheet", sanitize(f"this is the sheet of {one}, not of {other}"))
    return failures


def _find_owner(sheet: Sheet, students: Sequence[Student]) -> Student:
    """Return the student of a sheet from the class list, or else from the sheet alone."""
    same_name = [student for student in students if student.name == sheet.student]
    same_file = [student for student in students if student.file == sheet.file]
    matches = [student for student in same_name if student in same_file] or same_name or same_file
    return matches[0] if len(matches) == 1 else Student(sheet.student, sheet.file, sheet.file)


def _read_identifier(file: Path) -> str:
    """Return the identifier of the sheet in a file with answers; empty if there is none."""
    try:
        return read_answers(file).sheet
    except DataError:
        return ""
