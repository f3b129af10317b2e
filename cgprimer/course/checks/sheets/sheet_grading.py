"""Grading of one problem: correct answers, consequences of earlier mistakes, and named mistakes.

The expected value of each blank is computed twice: from correct values, and from the numbers that
the student wrote in earlier blanks. So a mistake costs the points of one blank only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from cgprimer.course.checks.check_results import Part, Verdict, sanitize
from cgprimer.course.checks.sheets import formula_mistakes as s
from cgprimer.course.checks.sheets.answer_files import BlankKey, normalize_name
from cgprimer.course.checks.sheets.answer_values import (
    is_empty_answer,
    parse_array,
    parse_names,
    parse_number,
    parse_shape,
    truncate_answer,
)
from cgprimer.course.checks.sheets.sheet_problems import Blank, Problem, Worksheet, list_numbers
from cgprimer.course.checks.sheets.sheet_questions import compute_last_place, is_same_number
from cgprimer.course.checks.sheets.sheet_tables import evaluate_formula
from cgprimer.errors import DataError
from cgprimer.expressions import Apply, names_in, postorder
from cgprimer.support.number_format import format_number

FOLLOWS = "follows from an earlier mistake"
_CANCELLATION = 1e-11  # rounding error of a sum whose terms cancel, relative to its terms
CORRECT_UNITS = 2.0  #: units in the last place that rounded intermediate results may cost
_FEW_DIGITS = (1, 2, 3)  # significant digits of a rounded answer that is recognized
_EXPLANATIONS = {
    s.SIGN: "wrong sign",
    s.OVERWRITTEN: "a contribution is missing: add up the contributions of all uses of the value",
    s.ONE_PATH: "a path is missing: add up the contributions of all paths",
    s.PRODUCT: "the product rule has two terms: f'*g + f*g'",
    s.QUOTIENT: "the quotient rule has two terms: (f'*g - f*g')/g^2",
    s.TERM: "a term is missing: the tangent has one term for each operand that has a tangent",
    s.NO_UPSTREAM: "this is only the local partial derivative: multiply it by the upstream"
    " derivative",
    s.NO_LOCAL: "this is only the upstream derivative: multiply it by the local partial derivative",
    s.NO_FACTOR: "a factor is missing",
    s.POINT: "a partial derivative was evaluated at another value of the table",
    s.EXPONENT: "the exponent of a power was not decreased by 1",
    s.ADDED: "the partial derivatives along a path must be multiplied, not added",
    s.OPERATION: "another operation was used",
    s.TWICE: "wrong by a factor of 2",
    s.SWAPPED: "the numbers of two blanks are swapped",
    s.SHAPE: "this is the transposed matrix",
    s.ROUNDED: "rounded to fewer digits than the sheet requires",
    s.ZERO: "a zero that follows from an earlier mistake earns no points",
}
_FRACTIONS = {s.ROUNDED: 0.5}  # of the points; other mistakes earn none
_PARSERS: dict[str, Any] = {
    "number": parse_number,
    "array": parse_array,
    "shape": parse_shape,
    "names": parse_names,
    "name": parse_names,
}


def grade_problem(
    number: int, worksheet: Worksheet, problem: Problem, texts: Mapping[BlankKey, str]
) -> Iterator[Part]:
    """Grade a problem: yield one part per blank, in the order of the computation.

    Args:
        number: the number of the problem on the sheet.
        worksheet: the worksheet of the problem.
        problem: the problem.
        texts: the answers to the sheet.
    """
    answers, errors = _parse_answers(number, worksheet, texts)
    grading = _Grading(worksheet, answers)
    possible = problem.points_of_blanks(len(worksheet.blanks))
    for blank, points in zip(worksheet.blanks, possible, strict=True):
        if blank.name not in answers:
            grade = _Grade(0.0, "wrong", "", errors.get(blank.name, "no answer"))
            grading.compute_expected(blank)
        elif blank.form in ("number", "array"):
            grade = grading.grade(blank, answers[blank.name])
        elif _is_correct(blank, answers[blank.name]):
            grade = _Grade(1.0, "right")
        else:
            this = "these are" if blank.form == "names" else "this is"
            grade = _Grade(0.0, "wrong", "", f"{this} not the correct {blank.form}")
        fraction, verdict, mistake, message = grade
        name, group = f"{number} {blank.row} {blank.column}", f"problem {number}"
        yield Part(name, points, points * fraction, verdict, mistake, message, problem=group)


class PredictedAnswer(NamedTuple):
    """A wrong answer that a known mistake leads to, with its grade.

    Attributes:
        value: the answer, a number or an array of the shape of the correct answer.
        fraction: the fraction of the points that the answer earns.
        message: the explanation for the student.
    """

    value: Any
    fraction: float
    message: str


def predict_answers(worksheet: Worksheet) -> Iterator[tuple[Blank, list[PredictedAnswer]]]:
    """Yield the blanks that ask for numbers, with the wrong answers that mistakes lead to.

    All earlier answers are assumed to be correct. The most likely mistake comes first.

    >>> from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
    >>> problem = Problem("trace", "input xa = 3; xb = 2*xa; xw = xb - xa", {"digits": 0})
    >>> for blank, answers in predict_answers(build_worksheet(problem)):
    ...     print(blank.name, blank.value, [(a.value, a.message) for a in answers][:2])
    xb 6.0 [(-6.0, 'wrong sign'), (5.0, 'another operation was used')]
    xw 3.0 [(-3.0, 'wrong sign'), (9.0, 'another operation was used')]
    """
    grading = _Grading(worksheet, {})
    grading.values = dict(grading.correct)
    for blank in worksheet.blanks:
        if blank.form in ("number", "array"):
            with np.errstate(all="ignore"):
                yield blank, [*grading.grade_predictions(blank)]


def _parse_answers(
    number: int, worksheet: Worksheet, texts: Mapping[BlankKey, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parse the answers to a problem.

    Returns:
        The values of the answers and the error messages, both keyed by the name of the blank.
    """
    answers, errors = dict[str, Any](), dict[str, str]()
    for blank in worksheet.blanks:
        key = number, normalize_name(blank.row), normalize_name(blank.column)
        text = truncate_answer(texts.get(key, ""))
        if is_empty_answer(text):
            continue
        try:
            answers[blank.name] = _PARSERS[blank.form](text)
        except DataError as error:
            hint = f" ({error.hint})" if error.hint else ""
            errors[blank.name] = f"cannot read the answer: {sanitize(error.message + hint)}"
    return answers, errors


def _is_correct(blank: Blank, answer: Any) -> bool:
    """Return whether an answer (a shape or a list of names) is correct."""
    if blank.form == "shape":
        return bool(answer == blank.value)
    names = {normalize_name(name) for name in answer}
    return names == {normalize_name(name) for name in parse_names(blank.value)}


class _Grade(NamedTuple):
    """The grade of an answer: the fraction of the points, the verdict and its explanation."""

    fraction: float
    verdict: Verdict
    mistake: str = ""
    message: str = ""


class _Grading:
    """A grader for one problem; wrong answers are carried forward into later steps.

    Attributes:
        worksheet: the worksheet of the problem.
        answers: the values of the answers, keyed by blank.
        values: the values with which the student continues: the answers, or expected values.
        correct: the correct values.
        wrong: the names of the blanks with wrong answers.
        uniform_columns: the columns in which the student wrote the same answer everywhere. Such
            an answer follows from itself, so that it earns no points as a consequence.
    """

    def __init__(self, worksheet: Worksheet, answers: Mapping[str, Any]) -> None:
        self.worksheet, self.answers, self.digits = worksheet, answers, worksheet.digits
        self.values, self.wrong = dict(worksheet.known_values), set[str]()
        self.correct = self.values | {blank.name: blank.value for blank in worksheet.blanks}
        columns: dict[str, list[str]] = {}
        for blank in worksheet.blanks:
            if blank.name in answers:
                columns.setdefault(blank.column, []).append(str(answers[blank.name]))
        self.uniform_columns = {
            column for column, texts in columns.items() if len(texts) > 2 and len({*texts}) == 1
        }

    def compute_expected(self, blank: Blank) -> Any:
        """Compute and store the value of a blank that follows from the student's earlier answers.

        If the blank has no formula, or the formula is not finite, this is the correct value.
        """
        expected = blank.value if blank.tree is None else evaluate_formula(blank.tree, self.values)
        if isinstance(expected, float) and not isfinite(expected):
            expected = blank.value
        self.values[blank.name] = expected
        return expected

    def grade(self, blank: Blank, answer: Any) -> _Grade:
        """Grade a number or an array, and store the answer for the grading of later blanks."""
        expected = self.compute_expected(blank)
        is_affected = blank.tree is not None and not self.wrong.isdisjoint(names_in(blank.tree))
        if is_affected and blank.column in self.uniform_columns:
            expected = blank.value
        grade = self._compare(blank, answer, expected, is_affected)
        if not self._is_close(answer, blank.value, CORRECT_UNITS):
            self.wrong.add(blank.name)
        if _has_shape(answer, blank.value):
            is_scalar = isinstance(blank.value, float)
            self.values[blank.name] = (
                float(np.ravel(answer)[0]) if is_scalar else answer.reshape(blank.value.shape)
            )
        return grade

    def grade_predictions(self, blank: Blank) -> Iterator[PredictedAnswer]:
        """Yield the wrong answers that mistakes predict; of close answers only the likeliest."""
        distinct = [blank.value]
        for mistake, answer in self._list_predictions(blank):
            numbers = list_numbers(answer)
            is_usable = _has_shape(answer, blank.value) and all(map(isfinite, numbers))
            if not is_usable or not any(numbers):
                continue
            if not any(self._is_close(answer, other) for other in distinct):
                distinct.append(answer)
                fraction = _FRACTIONS.get(mistake, 0.0)
                yield PredictedAnswer(answer, fraction, _EXPLANATIONS[mistake])

    def _list_predictions(self, blank: Blank) -> Iterator[tuple[str, Any]]:
        """Yield (mistake, answer) pairs in the order of the grader; some answers may be correct."""
        if getattr(blank.value, "ndim", 0) == 2:
            yield s.SHAPE, blank.value.T
        yield from s.predict_wrong_answers(blank, self.correct)
        if blank.tree is None:
            yield s.SIGN, -blank.value
        if blank.form == "number" and not self.digits:
            for digits in _FEW_DIGITS:
                answer = float(format_number(blank.value, digits))
                if _is_rounded(answer, blank.value):
                    yield s.ROUNDED, answer

    def _compare(self, blank: Blank, answer: Any, expected: Any, is_affected: bool) -> _Grade:
        """Grade an answer by the correct value and by the value expected after earlier answers.

        Args:
            blank: the blank.
            answer: the answer.
            expected: the value that follows from the student's numbers.
            is_affected: whether an earlier answer in the formula is wrong.
        """
        if self._is_close(answer, blank.value, CORRECT_UNITS):
            return _Grade(1.0, "right")
        rounding = self._bound_rounding(blank)
        if rounding and abs(answer) <= rounding and abs(expected) <= rounding:
            answer = expected = 0.0  # all terms cancel
        if self._is_close(answer, expected):  # includes rounded intermediate results
            is_zero = not any(list_numbers(expected)) and any(list_numbers(blank.value))
            if is_affected and is_zero:
                return _Grade(0.0, "wrong", s.ZERO, _EXPLANATIONS[s.ZERO])
            return _Grade(1.0, "right", "", FOLLOWS if is_affected else "")
        mistake = self._find_mistake(blank, answer)
        is_exact = not self.digits and blank.form == "number"
        if (
            is_exact
            and not mistake
            and (_is_rounded(answer, blank.value) or _is_rounded(answer, expected))
        ):
            fraction = _FRACTIONS[s.ROUNDED]
            return _Grade(fraction, "suspicious", s.ROUNDED, _EXPLANATIONS[s.ROUNDED])
        return _Grade(0.0, "wrong", mistake, _EXPLANATIONS.get(mistake, "wrong number"))

    def _bound_rounding(self, blank: Blank) -> float:
        """Return a bound on the rounding error in a blank whose terms nearly cancel."""
        if self.digits or blank.form != "number" or not isinstance(blank.tree, Apply):
            return 0.0
        nodes = postorder(blank.tree)
        maximum = max(float(np.max(np.abs(evaluate_formula(node, self.values)))) for node in nodes)
        return _CANCELLATION * maximum if isfinite(maximum) else 0.0

    def _find_mistake(self, blank: Blank, answer: Any) -> str:
        """Return the most likely mistake that leads to an answer, or an empty string."""
        if self._is_swapped(blank, answer):
            return s.SWAPPED
        if getattr(answer, "ndim", 0) == 2 and self._is_close(answer.T, blank.value, CORRECT_UNITS):
            return s.SHAPE
        if not any(list_numbers(answer)):
            return ""
        for values in (self.values, self.correct):
            for mistake, predicted in s.predict_wrong_answers(blank, values):
                if self._is_close(answer, predicted):
                    return mistake
        is_opposite = blank.tree is None and self._is_close(answer, -blank.value)
        return s.SIGN if is_opposite else ""

    def _is_swapped(self, blank: Blank, answer: Any) -> bool:
        """Return whether an answer is swapped with the answer to a blank in its row or column."""
        for other in self.worksheet.blanks:
            if other is blank or other.form != blank.form or other.name not in self.answers:
                continue
            is_near = other.column == blank.column or other.row == blank.row
            if (
                is_near
                and self._is_close(self.answers[other.name], blank.value)
                and self._is_close(answer, other.value)
                and not self._is_close(blank.value, other.value)
            ):
                return True
        return False

    def _is_close(self, one: Any, other: Any, units: float = 1.0) -> bool:
        """Return whether two numbers or two arrays agree in the required number of digits.

        Args:
            one: a number or an array.
            other: a number or an array.
            units: the tolerance in units of the last place.
        """
        return _has_shape(one, other) and all(
            is_same_number(a, b, 0)
            or (
                self.digits > 0
                and not _are_short_integers(a, b, self.digits)
                and abs(a - b) <= units * compute_last_place(b, self.digits) * (1 + 1e-9)
            )
            for a, b in zip(list_numbers(one), list_numbers(other), strict=True)
        )


def _has_shape(answer: Any, value: Any) -> bool:
    """Return whether an answer has the shape of a value; a scalar may replace a 1x1 matrix."""
    shape, expected = getattr(answer, "shape", ()), getattr(value, "shape", ())
    return shape == expected or (shape == () and all(n == 1 for n in expected))


def _are_short_integers(one: float, other: float, digits: int) -> bool:
    """Return whether two numbers are integers with at most the required number of digits.

    Such integers are not rounded, so that they are equal or different.
    """
    return float(one).is_integer() and float(other).is_integer() and abs(other) < 10**digits


def _is_rounded(answer: float, value: float) -> bool:
    """Return whether an answer is the given value rounded to at most three digits.

    Integers are not rounded: 10 for 12 is wrong. An integer answer for another value needs three
    digits; with fewer digits it is more likely the result of another computation.

    >>> _is_rounded(0.56, 0.5625), _is_rounded(10, 12), _is_rounded(2, 2.25)
    (True, False, False)
    """
    if float(value).is_integer() or (float(answer).is_integer() and abs(answer) < 100):
        return False
    return any(
        float(format_number(answer, digits)) == answer
        and abs(answer - value) <= (0.5 + 1e-9) * compute_last_place(value, digits)
        for digits in _FEW_DIGITS
    )
