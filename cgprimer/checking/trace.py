"""Answers to a sheet, graded from its questions: what is right, what follows, which slip it was.

Every blank is worked out twice: from right numbers, and from those that the student had in the
blanks before it. So one mistake costs one point, and what was done right afterwards counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from cgprimer.checking.batch import Check
from cgprimer.checking.results import Failure, Part, Result, not_run
from cgprimer.checking.sandbox import Limits, Submission
from cgprimer.checking.sheets import slips as s
from cgprimer.checking.sheets.answers import (
    ENDINGS,
    Answers,
    Place,
    answers_in,
    array_in,
    is_empty,
    names_in,
    number_in,
    plain,
    read_answers,
    shape_in,
)
from cgprimer.checking.sheets.forms import form_python
from cgprimer.checking.sheets.problems import Blank, Sheet, Worksheet, read_sheets, sheet_from
from cgprimer.checking.sheets.questions import same, unit
from cgprimer.checking.sheets.tables import value_of
from cgprimer.checking.sheets.worked import worked
from cgprimer.core.language.syntax import Name, postorder
from cgprimer.errors import DataError, listed
from cgprimer.number_format import number

FOLLOWS = "follows from an earlier mistake"
_LOOSE = 2.0  # units of the last digit that rounding on the way may cost
_FEWER = (1, 2, 3)  # digits: an exact number, rounded to so many, is known for what it is
_SENTENCES = {
    s.SIGN: "its sign is wrong",
    s.OVERWRITTEN: "a share is missing: what is used several times adds all of them up",
    s.ONE_PATH: "not all paths are in it: the shares of all of them are added up",
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

    >>> from cgprimer.checking.sheets.problems import Problem
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
        answers = answers_in(answers)
    elif isinstance(answers, Mapping):
        answers = Answers("", {(k, plain(r), plain(c)): str(t) for (k, r, c), t in answers.items()})
    if isinstance(sheet, Mapping):
        sheet = sheet_from(sheet, "the sheet")
    one = sheet if isinstance(sheet, Sheet) else _chosen(read_sheets(sheet), answers, sheet, name)
    if answers.sheet and answers.sheet != one.identifier:
        what = f"{name} answers sheet {answers.sheet}, and this is sheet {one.identifier}"
        raise DataError(
            what, hint="another seed, graph or student: take the sheet that it belongs to"
        )
    sheets = enumerate(map(worked, one.problems), start=1)
    parts = tuple(part for k, made in sheets for part in _graded(k, made, answers.texts))
    return Result("trace", name, parts)


def trace_check(sheet: str | Path) -> Check:
    """The same for many: a sheet, or a class's sheets, read once; answers that cannot be read, or
    belong to another sheet, are a failure of theirs.

    Raises:
        DataError: the sheet cannot be read.
    """
    sheets = read_sheets(sheet)
    only = [*sheets.values()] if len(sheets) == 1 else []
    parts = dict.fromkeys((name for one in only for name in parts_of(one)), 1.0)

    def run(answers: Submission, limits: Limits) -> Result:
        assert isinstance(answers, str | Path)
        name = Path(answers).name
        try:
            found = read_answers(answers)
            return check_trace(_chosen(sheets, found, sheet, name), found, name=name)
        except DataError as error:
            return not_run("trace", name, parts, Failure("answers", error.message))

    calls = [f"cgprimer.check_trace({one.to_dict()!r}, NAMES)" for one in only]
    forms = [form_python(one) for one in only]
    return Check(
        "trace", ",".join(sheets), run, "".join(forms), "".join(calls), parts, endings=ENDINGS
    )


def parts_of(sheet: Sheet) -> list[str]:
    """What the parts of a result are called."""
    made = enumerate(map(worked, sheet.problems), start=1)
    return [f"{k} {blank.row} {blank.column}" for k, one in made for blank in one.blanks]


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
    raise DataError(what, hint=f"of another seed or graph? They are {listed(sheets, 4)}")


def _graded(place: int, made: Worksheet, texts: Mapping[Place, str]) -> Iterator[Part]:
    """The parts of a problem, in the order in which it is worked out."""
    given = {
        blank.name: texts.get((place, plain(blank.row), plain(blank.column)), "")
        for blank in made.blanks
    }
    right = dict(made.given) | {blank.name: blank.value for blank in made.blanks}
    read: dict[str, Any] = {}
    complaints: dict[str, str] = {}
    for blank in made.blanks:
        if not is_empty(given[blank.name]):
            try:
                read[blank.name] = _READERS[blank.form](given[blank.name])
            except DataError as error:
                complaints[blank.name] = error.message
    own, wrong = dict(made.given), set[str]()
    alike = {column for column in made.header if _one_number(made, column, read)}
    for blank in made.blanks:
        name = f"{place} {blank.row} {blank.column}"
        expected = blank.value
        if blank.tree is not None:
            expected = value_of(blank.tree, own)
            if isinstance(expected, float) and not isfinite(expected):
                expected = blank.value  # nobody can go on from there
        own[blank.name] = expected
        if blank.name not in read:
            message = f"not readable: {complaints[blank.name]}" if blank.name in complaints else ""
            yield Part(name, 1.0, 0.0, "wrong", "", message or "no answer")
            continue
        answer = read[blank.name]
        if blank.form not in ("number", "array"):
            right_one = _matches(blank, answer)
            yield Part(name, 1.0, float(right_one), "right" if right_one else "wrong")
            continue
        before = (
            {n.name for n in postorder(blank.tree) if isinstance(n, Name)} if blank.tree else set()
        )
        after = bool(before & wrong)
        if after and blank.column in alike:
            expected = blank.value
        part = _judged(name, blank, answer, expected, made, own, right, read, after)
        if not _close(answer, blank.value, made.digits, _LOOSE):
            wrong.add(blank.name)
        if _fits(answer, blank.value):
            own[blank.name] = _as(blank, answer)
        yield part


def _one_number(made: Worksheet, column: str, read: Mapping[str, Any]) -> bool:
    """Whether somebody wrote one number everywhere: it follows from itself, and shows nothing."""
    own = [read[b.name] for b in made.blanks if b.column == column and b.name in read]
    return len(own) > 2 and len({str(value) for value in own}) == 1


_READERS: dict[str, Any] = {
    "number": number_in, "array": array_in, "shape": shape_in, "names": names_in, "name": names_in,
}  # fmt: skip


def _matches(blank: Blank, answer: Any) -> bool:
    if blank.form == "shape":
        return bool(answer == blank.value)
    return {plain(name) for name in answer} == {plain(name) for name in names_in(blank.value)}


def _judged(
    name: str,
    blank: Blank,
    answer: Any,
    expected: Any,
    made: Worksheet,
    own: Mapping[str, Any],
    right: Mapping[str, Any],
    read: Mapping[str, Any],
    after_mistake: bool,
) -> Part:
    digits = made.digits
    if _close(answer, blank.value, digits, _LOOSE):
        return Part(name, 1.0, 1.0, "right")
    if _close(answer, expected, digits, 1.0):  # with roundings, or mistakes, on the way
        if not after_mistake:
            return Part(name, 1.0, 1.0, "right")
        if not _any(expected) and _any(blank.value):
            return Part(name, 1.0, 0.0, "wrong", s.ZERO, _SENTENCES[s.ZERO])
        return Part(name, 1.0, 1.0, "right", "", FOLLOWS)
    if not digits and blank.form == "number" and _rounded(answer, blank.value, expected):
        return Part(name, 1.0, 0.5, "suspicious", s.ROUNDED, _SENTENCES[s.ROUNDED])
    mistake = _slip(blank, answer, made, own, right, read)
    return Part(name, 1.0, 0.0, "wrong", mistake, _SENTENCES.get(mistake, "this is not the number"))


def _slip(
    blank: Blank,
    answer: Any,
    made: Worksheet,
    own: Mapping[str, Any],
    right: Mapping[str, Any],
    read: Mapping[str, Any],
) -> str:
    """The short name of the likeliest slip that gives this number; empty where none does."""
    for other in made.blanks:
        ours = other.form == blank.form and other.name in read and other is not blank
        if ours and (other.column == blank.column or other.row == blank.row):
            taken = _close(answer, other.value, made.digits, 1.0)
            differ = not _close(blank.value, other.value, made.digits, 1.0)
            if taken and differ and _close(read[other.name], blank.value, made.digits, 1.0):
                return s.SWAPPED
    matrix = blank.form == "array" and getattr(answer, "ndim", 0) == 2
    if matrix and _close(answer.T, blank.value, made.digits, _LOOSE):
        return s.SHAPE
    if not _any(answer):
        return ""
    for known in (own, right):
        for name, value in s.slips(blank, known):
            if _close(answer, value, made.digits, 1.0):
                return name
    if (
        blank.form == "number"
        and blank.tree is None
        and _close(answer, -blank.value, made.digits, 1.0)
    ):
        return s.SIGN
    return ""


def _close(one: Any, other: Any, digits: int, units: float) -> bool:
    """Whether two numbers, or arrays of one shape, agree in the digits that are asked for."""
    if not _fits(one, other):
        return False
    if not isinstance(one, float) or not isinstance(other, float):
        import numpy as np

        pairs = zip(np.ravel(one), np.ravel(other), strict=True)
        return all(_close(float(a), float(b), digits, units) for a, b in pairs)
    if same(one, other, 0):
        return True
    return bool(digits) and abs(one - other) <= units * unit(other, digits) * (1 + 1e-9)


def _fits(one: Any, other: Any) -> bool:
    """Whether shapes are the same; a matrix of one entry may be written as a number."""
    shape, theirs = getattr(one, "shape", ()), getattr(other, "shape", ())
    return shape == theirs or (shape == () and all(n == 1 for n in theirs))


def _as(blank: Blank, answer: Any) -> Any:
    """The answer in the shape of the right one."""
    shape = getattr(blank.value, "shape", ())
    if not shape:
        return float(answer)
    import numpy as np

    return np.reshape(answer, shape)


def _any(value: Any) -> bool:
    return bool(value) if isinstance(value, float) else bool(value.any())


def _rounded(answer: float, *values: float) -> bool:
    """Whether it is one of these, in fewer digits than it has."""
    return bool(answer) and any(float(number(v, k)) == answer for v in values for k in _FEWER)
