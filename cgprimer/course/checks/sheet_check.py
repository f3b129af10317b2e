"""Answers to a sheet, graded from its questions: what is right, what follows, which slip it was.

Every blank is worked out twice: from right numbers, and from those that the student had in the
blanks before it. So one mistake costs one point, and what was done right afterwards counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.course.checks.batch_checks import Check
from cgprimer.course.checks.check_results import (
    Failure,
    Part,
    Result,
    Verdict,
    create_failed_result,
    sanitize,
)
from cgprimer.course.checks.sandbox import Limits, Submission
from cgprimer.course.checks.sheets import formula_mistakes as s
from cgprimer.course.checks.sheets.answer_files import (
    ENDINGS,
    Answers,
    BlankKey,
    normalize_name,
    parse_namespace,
    read_answers,
)
from cgprimer.course.checks.sheets.answer_forms import format_python_form
from cgprimer.course.checks.sheets.answer_values import (
    is_empty_answer,
    parse_array,
    parse_names,
    parse_number,
    parse_shape,
    truncate_answer,
)
from cgprimer.course.checks.sheets.sheet_problems import (
    Blank,
    Problem,
    Sheet,
    Worksheet,
    list_numbers,
    parse_sheet,
    read_sheets,
)
from cgprimer.course.checks.sheets.sheet_questions import (
    build_worksheets,
    compute_last_place,
    is_same_number,
)
from cgprimer.course.checks.sheets.sheet_tables import evaluate_formula
from cgprimer.errors import DataError, join_names
from cgprimer.expressions import Apply, postorder
from cgprimer.expressions import names_in as names_of
from cgprimer.support.number_format import format_number

FOLLOWS = "follows from an earlier mistake"
_LEFT = 1e-11  # of its terms, by rounding, where they cancel
_LOOSE = 2.0  # units of the last digit that rounding on the way may cost
_FEWER = (1, 2, 3)  # digits: an exact number, rounded to so many, is known for what it is
_SENTENCES = {
    s.SIGN: "its sign is wrong",
    s.OVERWRITTEN: "a share is missing: what is used several times adds all of them up",
    s.ONE_PATH: "not all paths are in it: the shares of all of them are added up",
    s.PRODUCT: "the product rule has two terms: f'*g + f*g'",
    s.QUOTIENT: "the quotient rule has two terms: (f'*g - f*g')/g^2",
    s.TERM: "a term is missing: the tangent adds one term for each operand that has a tangent",
    s.NO_UPSTREAM: "it is the local partial alone: it is multiplied with what comes along",
    s.NO_LOCAL: "it was handed on as it came: the local partial is missing",
    s.NO_FACTOR: "a factor is missing",
    s.POINT: "a partial was taken at another value than the one that stands there",
    s.EXPONENT: "a power was differentiated without lowering its exponent",
    s.ADDED: "partials along a path are multiplied, not added",
    s.OPERATION: "another operation than the one that is written",
    s.TWICE: "it is off by a factor 2",
    s.SWAPPED: "the numbers of two places were swapped",
    s.SHAPE: "it is the transposed matrix",
    s.ROUNDED: "it was rounded to fewer digits than the sheet asks for",
    s.ZERO: "a zero out of an earlier mistake shows nothing",
}


def check_trace(
    sheet: Sheet | str | Path | Mapping[str, Any],
    answers: Answers | str | Path | Mapping[Any, Any],
    *,
    name: str = "answers",
) -> Result:
    """Grade the answers to a sheet.

    Args:
        sheet: a :class:`Sheet` or its ``to_dict()``, a sheet in any of its formats, or the
            ``sheets.json`` of a class, of which the sheet is taken that the answers name.
        answers: a CSV, JSON, Markdown or Python file, a notebook, or the names of a notebook that
            is running (``globals()``), or a text for each ``(problem, row, column)``.
        name: what the answers are called in the result; a file has its own.

    Returns:
        A part for each blank, worth a point. What is right given earlier mistakes counts in full,
        and says so. No right number stands in it.

    Raises:
        DataError: a file cannot be read, or the answers belong to another sheet.

    >>> from cgprimer.course.checks.sheets.sheet_problems import Problem
    >>> text = "input xa = 3; xb = xa^2; xw = xb + xa"
    >>> sheet = Sheet((Problem("trace", text, {"digits": 0}),))
    >>> found = check_trace(sheet, {(1, "xb", "value"): "6", (1, "xw", "value"): "9"})
    >>> [(part.name, part.points, part.mistake) for part in found.parts]
    [('1 xb value', 0.0, 'another operation'), ('1 xw value', 1.0, '')]
    >>> found.parts[1].message
    'follows from an earlier mistake'
    """
    if isinstance(answers, str | Path):
        name, answers = Path(answers).name, read_answers(answers)
    elif isinstance(answers, Mapping) and any(isinstance(key, str) for key in answers):
        answers = parse_namespace(answers)
    elif isinstance(answers, Mapping):
        answers = Answers(
            "",
            {(k, normalize_name(r), normalize_name(c)): str(t) for (k, r, c), t in answers.items()},
        )
    if isinstance(sheet, Mapping):
        sheet = parse_sheet(sheet, "the sheet")
    one = sheet if isinstance(sheet, Sheet) else _chosen(read_sheets(sheet), answers, sheet, name)
    if answers.sheet and answers.sheet != one.identifier:
        what = f"{name} answers sheet {answers.sheet}, and this is sheet {one.identifier}"
        raise DataError(
            what, hint="another seed, graph or student: take the sheet that it belongs to"
        )
    tables = build_worksheets(one)
    with np.errstate(all="ignore"):  # numbers of students may be as large as they like
        parts = tuple(
            part
            for (place, made), problem in zip(tables, one.problems, strict=True)
            for part in _graded(place, made, problem, answers.texts)
        )
    return Result("trace", name, parts)


def build_trace_check(sheet: str | Path) -> Check:
    """The same for many: a sheet, or a class's sheets, read once; answers that cannot be read, or
    belong to another sheet, are a failure of theirs.

    Raises:
        DataError: the sheet cannot be read.
    """
    sheets = read_sheets(sheet)
    only = [*sheets.values()] if len(sheets) == 1 else []
    parts = _equal_points([*sheets.values()]) | {
        f"{place} {blank.row} {blank.column}": points
        for one in only
        for (place, made), problem in zip(build_worksheets(one), one.problems, strict=True)
        for blank, points in zip(
            made.blanks, problem.points_of_blanks(len(made.blanks)), strict=True
        )
    }

    def run(answers: Submission, limits: Limits) -> Result:
        assert isinstance(answers, str | Path)
        name = Path(answers).name
        try:
            found = read_answers(answers)
            return check_trace(_chosen(sheets, found, sheet, name), found, name=name)
        except DataError as error:
            return create_failed_result(
                "trace", name, parts, Failure("answers", sanitize(error.message))
            )

    calls = [f"cgprimer.check_trace({one.to_dict()!r}, NAMES)" for one in only]
    forms = [format_python_form(one) for one in only]
    return Check(
        "trace", ",".join(sheets), run, "".join(forms), "".join(calls), parts, endings=ENDINGS
    )


def _equal_points(sheets: Sequence[Sheet]) -> dict[str, float]:
    """Return the points of each problem of a class whose sheets are worth the same."""
    points = [[problem.asked.get("points") for problem in sheet.problems] for sheet in sheets]
    if len(sheets) < 2 or None in points[0] or any(own != points[0] for own in points):
        return {}
    return {f"problem {place}": float(own) for place, own in enumerate(points[0], 1) if own}


def _chosen(sheets: Mapping[str, Sheet], answers: Answers, where: Any, name: str) -> Sheet:
    """The sheet that answers belong to."""
    if answers.sheet in sheets:
        return sheets[answers.sheet]
    if len(sheets) == 1:
        return next(iter(sheets.values()))
    if not answers.sheet:
        hint = "the forms that 'cgprimer exercise' writes have it"
        raise DataError(f"{name} does not say which of {len(sheets)} sheets it answers", hint=hint)
    what = f"{name} answers sheet {answers.sheet}, which is none of the {len(sheets)} in {where}"
    raise DataError(what, hint=f"of another seed or graph? They are {join_names(sheets, 4)}")


def _graded(
    place: int, made: Worksheet, problem: Problem, texts: Mapping[BlankKey, str]
) -> Iterator[Part]:
    """Yield the parts of a problem, in the order in which it is worked out."""
    read, complaints = dict[str, Any](), dict[str, str]()
    for blank in made.blanks:
        text = truncate_answer(
            texts.get((place, normalize_name(blank.row), normalize_name(blank.column)), "")
        )
        if not is_empty_answer(text):
            try:
                read[blank.name] = _READERS[blank.form](text)
            except DataError as error:
                hint = f" ({error.hint})" if error.hint else ""
                complaints[blank.name] = f"not readable: {sanitize(error.message + hint)}"
    grading = _Grading(made, read)
    possible = problem.points_of_blanks(len(made.blanks))
    for blank, points in zip(made.blanks, possible, strict=True):
        if blank.name in read and blank.form in ("number", "array"):
            judged = grading.judged(blank, read[blank.name])
        else:
            right = blank.name in read and _matches(blank, read[blank.name])
            message = "" if right else f"this is not the right {blank.form}"
            message = message if blank.name in read else complaints.get(blank.name, "no answer")
            judged = (float(right), "right" if right else "wrong", "", message)
            grading.expected(blank)
        share, verdict, mistake, message = judged
        name, problem_name = f"{place} {blank.row} {blank.column}", f"problem {place}"
        yield Part(name, points, points * share, verdict, mistake, message, problem=problem_name)


_READERS: dict[str, Any] = {
    "number": parse_number,
    "array": parse_array,
    "shape": parse_shape,
    "names": parse_names,
    "name": parse_names,
}


def _matches(blank: Blank, answer: Any) -> bool:
    if blank.form == "shape":
        return bool(answer == blank.value)
    return {normalize_name(name) for name in answer} == {
        normalize_name(name) for name in parse_names(blank.value)
    }


Judged = tuple[float, Verdict, str, str]  #: points, verdict, mistake, message


class _Grading:
    """A problem while its blanks are graded in their order.

    ``own`` has what the student goes on with: what was answered, else what follows; ``wrong`` the
    names of wrong numbers, and ``alike`` the columns in which one number stands everywhere: it
    follows from itself, and shows nothing.
    """

    def __init__(self, made: Worksheet, read: Mapping[str, Any]) -> None:
        self.worksheet, self.read, self.digits = made, read, made.digits
        self.own, self.wrong = dict(made.known_values), set[str]()
        self.right = self.own | {blank.name: blank.value for blank in made.blanks}
        said: dict[str, list[str]] = {}
        for blank in made.blanks:
            if blank.name in read:
                said.setdefault(blank.column, []).append(str(read[blank.name]))
        self.alike = {c for c, texts in said.items() if len(texts) > 2 and len({*texts}) == 1}

    def expected(self, blank: Blank) -> Any:
        """What follows from the student's own numbers; where nobody can go on, what is right."""
        found = blank.value if blank.tree is None else evaluate_formula(blank.tree, self.own)
        if isinstance(found, float) and not isfinite(found):
            found = blank.value
        self.own[blank.name] = found
        return found

    def judged(self, blank: Blank, answer: Any) -> Judged:
        """What a number, or an array, is worth; it is the student's own from here on."""
        follows = self.expected(blank)
        after = blank.tree is not None and not self.wrong.isdisjoint(names_of(blank.tree))
        if after and blank.column in self.alike:
            follows = blank.value
        found = self._judged(blank, answer, follows, after)
        if not self._close(answer, blank.value, _LOOSE):
            self.wrong.add(blank.name)
        if _fits(answer, blank.value):
            one = isinstance(blank.value, float)
            self.own[blank.name] = (
                float(np.ravel(answer)[0]) if one else answer.reshape(blank.value.shape)
            )
        return found

    def _judged(self, blank: Blank, answer: Any, follows: Any, after: bool) -> Judged:
        if self._close(answer, blank.value, _LOOSE):
            return 1.0, "right", "", ""
        noise = self._rounding(blank)
        if noise and abs(answer) <= noise and abs(follows) <= noise:
            answer = follows = 0.0  # terms cancel, and nothing but rounding is left
        if self._close(answer, follows):  # with roundings, or mistakes, on the way
            if after and not any(list_numbers(follows)) and any(list_numbers(blank.value)):
                return 0.0, "wrong", s.ZERO, _SENTENCES[s.ZERO]
            return 1.0, "right", "", FOLLOWS if after else ""
        mistake = self._slip(blank, answer)
        exact_number = not self.digits and blank.form == "number"
        if (
            exact_number
            and not mistake
            and (_is_rounded(answer, blank.value) or _is_rounded(answer, follows))
        ):
            return 0.5, "suspicious", s.ROUNDED, _SENTENCES[s.ROUNDED]
        return 0.0, "wrong", mistake, _SENTENCES.get(mistake, "this is not the number")

    def _rounding(self, blank: Blank) -> float:
        """Return what rounding leaves of a number whose terms cancel."""
        if self.digits or blank.form != "number" or not isinstance(blank.tree, Apply):
            return 0.0
        nodes = postorder(blank.tree)
        largest = max(float(np.max(np.abs(evaluate_formula(node, self.own)))) for node in nodes)
        return _LEFT * largest if isfinite(largest) else 0.0

    def _slip(self, blank: Blank, answer: Any) -> str:
        """The short name of the likeliest slip that gives this number; empty where none does."""
        for other in self.worksheet.blanks:
            ours = other.form == blank.form and other.name in self.read and other is not blank
            if ours and (other.column == blank.column or other.row == blank.row):
                exchanged = self._close(self.read[other.name], blank.value)
                exchanged = exchanged and self._close(answer, other.value)
                if exchanged and not self._close(blank.value, other.value):
                    return s.SWAPPED
        if getattr(answer, "ndim", 0) == 2 and self._close(answer.T, blank.value, _LOOSE):
            return s.SHAPE
        if not any(list_numbers(answer)):
            return ""
        for known in (self.own, self.right):
            for name, value in s.predict_wrong_answers(blank, known):
                if self._close(answer, value):
                    return name
        opposite = blank.tree is None and self._close(answer, -blank.value)
        return s.SIGN if opposite else ""

    def _close(self, one: Any, other: Any, units: float = 1.0) -> bool:
        """Whether numbers, or arrays of one shape, agree in the digits that are asked for."""
        return _fits(one, other) and all(
            is_same_number(a, b, 0)
            or (
                self.digits > 0
                and not _are_short_integers(a, b, self.digits)
                and abs(a - b) <= units * compute_last_place(b, self.digits) * (1 + 1e-9)
            )
            for a, b in zip(list_numbers(one), list_numbers(other), strict=True)
        )


def _fits(one: Any, other: Any) -> bool:
    """Whether shapes are the same; a matrix of one entry may be written as a number."""
    shape, theirs = getattr(one, "shape", ()), getattr(other, "shape", ())
    return shape == theirs or (shape == () and all(n == 1 for n in theirs))


def _are_short_integers(one: float, other: float, digits: int) -> bool:
    """Return whether two numbers are integers of no more digits than are asked for.

    Nothing of them was rounded, so that they are equal or different.
    """
    return float(one).is_integer() and float(other).is_integer() and abs(other) < 10**digits


def _is_rounded(answer: float, value: float) -> bool:
    """Return whether a number is a fractional one, rounded to few digits.

    An integer is never rounded: 10 for 12 is wrong. An integer for a fractional number counts
    only with three digits; with fewer it is more likely the result of another computation.

    >>> _is_rounded(0.56, 0.5625), _is_rounded(10, 12), _is_rounded(2, 2.25)
    (True, False, False)
    """
    if float(value).is_integer() or (float(answer).is_integer() and abs(answer) < 100):
        return False
    return any(
        float(format_number(answer, digits)) == answer
        and abs(answer - value) <= (0.5 + 1e-9) * compute_last_place(value, digits)
        for digits in _FEWER
    )
