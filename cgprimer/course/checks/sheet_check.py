"""The check of answers to a sheet: reads the sheet and the answers, and grades each problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.course.checks.batch_checks import Check
from cgprimer.course.checks.check_results import Failure, Result, create_failed_result, sanitize
from cgprimer.course.checks.sandbox import Limits, Submission
from cgprimer.course.checks.sheet_owners import compare_owners, find_exchanged_sheets
from cgprimer.course.checks.sheets.answer_files import (
    ENDINGS,
    Answers,
    normalize_name,
    parse_namespace,
    read_answers,
)
from cgprimer.course.checks.sheets.answer_forms import format_python_form
from cgprimer.course.checks.sheets.sheet_grading import grade_problem
from cgprimer.course.checks.sheets.sheet_problems import Sheet, parse_sheet, read_sheets
from cgprimer.course.checks.sheets.sheet_questions import build_worksheets
from cgprimer.errors import DataError, UsageError, join_names
from cgprimer.support.type_checks import check_type


def check_trace(
    sheet: Sheet | str | Path | Mapping[str, Any],
    answers: Answers | str | Path | Mapping[Any, Any],
    *,
    name: str = "answers",
) -> Result:
    """Grade the answers to an exercise sheet.

    Args:
        sheet: a :class:`Sheet`, its ``to_dict()``, a file with a sheet in any format, or the
            ``sheets.json`` of a class, from which the sheet that the answers name is used.
        answers: a CSV, JSON, Markdown or Python file, a notebook, the names of a running notebook
            (``globals()``), or a string for each ``(problem, row, column)``.
        name: the name of the answers in the result; for a file, the name of the file.

    Returns:
        A part for each blank, worth one point unless the sheet says otherwise. A number that
        follows from earlier mistakes gets all points, with a message. No correct number is shown.

    Raises:
        UsageError: an argument has another type.
        DataError: a file cannot be read, or the answers belong to another sheet, or to the sheet
            of another student than the name of their file says.

    >>> from cgprimer.course.checks.sheets.sheet_problems import Problem
    >>> text = "input xa = 3; xb = xa^2; xw = xb + xa"
    >>> sheet = Sheet((Problem("trace", text, {"digits": 0}),))
    >>> found = check_trace(sheet, {(1, "xb", "value"): "6", (1, "xw", "value"): "9"})
    >>> [(part.name, part.points, part.mistake) for part in found.parts]
    [('1 xb value', 0.0, 'another operation'), ('1 xw value', 1.0, '')]
    >>> found.parts[1].message
    'follows from an earlier mistake'
    """
    expected = "a Sheet, its to_dict() or the path of a file"
    check_type("sheet", sheet, (Sheet, str, Path, Mapping), expected)
    expected = "a dictionary of answers or the path of a file"
    check_type("answers", answers, (Answers, str, Path, Mapping), expected)
    file = Path(answers) if isinstance(answers, str | Path) else None
    name = file.name if file else name
    answers = _convert_answers(answers)
    if isinstance(sheet, Mapping):
        sheet = parse_sheet(sheet, "the sheet")
    if not isinstance(sheet, Sheet):
        sheets = read_sheets(sheet)
        failures = compare_owners(sheets, {name: answers.sheet}) if file else {}
        if failure := failures.get(name):
            hint = "rename the file if its name is wrong"
            raise DataError(f"{name}: {failure.message}", hint=hint)
        sheet = _select_sheet(sheets, answers, sheet, name)
    if answers.sheet and answers.sheet != sheet.identifier:
        problem = f"but this is sheet {sheet.identifier}"
        message = f"{name} contains answers to sheet {answers.sheet}, {problem}"
        hint = "sheets differ by seed, graph and student: pass the sheet of these answers"
        raise DataError(message, hint=hint)
    with np.errstate(all="ignore"):  # answers may be arbitrarily large
        parts = tuple(
            part
            for (number, worksheet), problem in zip(
                build_worksheets(sheet), sheet.problems, strict=True
            )
            for part in grade_problem(number, worksheet, problem, answers.texts)
        )
    return Result("trace", name, parts)


def _convert_answers(answers: Answers | str | Path | Mapping[Any, Any]) -> Answers:
    """Convert answers in a file, in notebook variables or in a mapping to ``Answers``."""
    if isinstance(answers, Answers):
        return answers
    if isinstance(answers, str | Path):
        return read_answers(answers)
    if any(isinstance(key, str) for key in answers):
        return parse_namespace(answers)
    try:
        texts = {
            (number, normalize_name(row), normalize_name(column)): str(text)
            for (number, row, column), text in answers.items()
        }
    except (TypeError, ValueError):
        raise UsageError("the keys of `answers` must be tuples (problem, row, column)") from None
    return Answers("", texts)


def build_trace_check(sheet: str | Path) -> Check:
    """Build a check that grades answer files for one sheet or for the sheets of a class.

    The sheets are read once. Answers that cannot be read, or that belong to another sheet, are a
    failure of that submission.

    Raises:
        DataError: the sheet cannot be read.
    """
    sheets = read_sheets(sheet)
    single = [*sheets.values()] if len(sheets) == 1 else []
    parts = _find_equal_points([*sheets.values()])
    for one in single:
        for (number, worksheet), problem in zip(build_worksheets(one), one.problems, strict=True):
            points = problem.points_of_blanks(len(worksheet.blanks))
            for blank, possible in zip(worksheet.blanks, points, strict=True):
                parts[f"{number} {blank.row} {blank.column}"] = possible

    def run(answers: Submission, limits: Limits) -> Result:
        """Grade one answer file; an unreadable file is reported as failed."""
        assert isinstance(answers, str | Path)
        name = Path(answers).name
        try:
            read = read_answers(answers)
            return check_trace(_select_sheet(sheets, read, sheet, name), read, name=name)
        except DataError as error:
            failure = Failure("answers", sanitize(error.message))
            return create_failed_result("trace", name, parts, failure)

    calls = [f"cgprimer.check_trace({one.to_dict()!r}, NAMES)" for one in single]
    forms = [format_python_form(one) for one in single]
    return Check(
        "trace", ",".join(sheets), run, "".join(forms), "".join(calls), parts, endings=ENDINGS,
        find_failures=partial(find_exchanged_sheets, sheets),
    )  # fmt: skip


def _find_equal_points(sheets: Sequence[Sheet]) -> dict[str, float]:
    """Return the points for each problem if all sheets of a class have the same points."""
    points = [[problem.asked.get("points") for problem in sheet.problems] for sheet in sheets]
    if len(sheets) < 2 or None in points[0] or any(row != points[0] for row in points):
        return {}
    return {f"problem {number}": float(value) for number, value in enumerate(points[0], 1) if value}


def _select_sheet(sheets: Mapping[str, Sheet], answers: Answers, source: Any, name: str) -> Sheet:
    """Find the sheet to which answers belong among the sheets of a class.

    Args:
        sheets: the sheets, keyed by identifier.
        answers: the answers.
        source: the file of the sheets, for messages.
        name: the name of the answers, for messages.
    """
    if answers.sheet in sheets:
        return sheets[answers.sheet]
    if len(sheets) == 1:
        return next(iter(sheets.values()))
    if not answers.sheet:
        message = f"{name} does not name its sheet, which must be one of {len(sheets)}"
        hint = "use a form that 'cgprimer exercise' wrote: it contains the sheet's identifier"
        raise DataError(message, hint=hint)
    problem = f"which is not one of the {len(sheets)} sheets in {source}"
    hint = f"choose answers to one of the sheets {join_names(sheets, 4)}"
    raise DataError(f"{name} contains answers to sheet {answers.sheet}, {problem}", hint=hint)
