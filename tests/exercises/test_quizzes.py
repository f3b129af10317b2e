"""Quiz questions, read back by other readers and compared with the grader of sheets."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from html import escape, unescape
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.sheets.answer_files import normalize_name
from cgprimer.course.checks.sheets.sheet_problems import Blank
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.exercises import moodle_questions, quiz_questions
from cgprimer.course.exercises.exercise_sheets import Exercise, exercises_for
from cgprimer.course.exercises.roster import Student
from cgprimer.course.exercises.sheet_files import write_exercises
from tests.exercises.quiz_readers import (
    NAMESPACES,
    QtiPackage,
    ReadField,
    grade_item,
    metadata,
    read_moodle,
)

HOSTILE = "<script>alert(1)</script> ]]> & ~=} {1:NUMERICAL:=1} a/b $course$ \"'"
SCALAR = ["trace", "tangent", "adjoint", "paths", "gradient", "optimizer"]


@cache
def sheet_of(kind: str, difficulty: int) -> Exercise:
    return cgprimer.exercise(kinds=kind, seed=4, difficulty=difficulty)


def answer_one(sheet: Exercise, blank: Blank, text: str) -> Part:
    """Grade one answer on a sheet with `check trace`; all other answers are correct."""
    texts = {(1, b.row, b.column): str(b.value) for b in build_worksheet(sheet.problems[0]).blanks}
    result = cgprimer.check_trace(sheet, texts | {(1, blank.row, blank.column): text})
    return next(p for p in result.parts if p.name == f"1 {blank.row} {blank.column}")


def check_fields(sheet: Exercise, fields: list[ReadField]) -> int:
    """Check that each field is graded as the blank of the sheet; return the number of mistakes."""
    blanks = {
        (normalize_name(b.row), b.column): b for b in build_worksheet(sheet.problems[0]).blanks
    }
    assert {(normalize_name(f.row), f.column) for f in fields} == blanks.keys()
    mistakes = 0
    for field in fields:
        blank = blanks[normalize_name(field.row), field.column]
        assert field.grade(f"{blank.value!r}") == (1.0, "")
        correct, *predicted = field.alternatives
        for near, is_right in (("0.95", True), ("1.05", False)):
            for sign in (1, -1):
                text = f"{Decimal(correct.answer) + sign * correct.tolerance * Decimal(near):f}"
                part = answer_one(sheet, blank, text)
                assert (part.verdict == "right") == is_right, (text, part)
                assert (field.grade(text)[0] == 1) == is_right
        for wrong in predicted:
            part = answer_one(sheet, blank, wrong.answer)
            assert part.mistake
            assert (wrong.fraction, unescape(wrong.feedback)) == (
                part.points / part.possible, part.message,
            )  # fmt: skip
            assert field.grade(wrong.answer) == (wrong.fraction, wrong.feedback)
            mistakes += 1
    return mistakes


@pytest.mark.parametrize("difficulty", [1, 3])
@pytest.mark.parametrize("kind", SCALAR)
def test_moodle_grades_as_the_check_of_sheets(kind: str, difficulty: int) -> None:
    sheet = sheet_of(kind, difficulty)
    (question,) = read_moodle(sheet.to_moodle())
    assert question.pool == f"$course$/top/Exercises/{kind}"
    assert check_fields(sheet, question.fields) >= len(question.fields)
    assert len({field.weight for field in question.fields}) == 1
    assert ("graph.svg" in question.html) == (kind == "paths")
    assert all(b64decode(f).startswith(b"<?xml") for f in question.files.values())


def drop_messages(worksheet: Any) -> Any:
    return replace_messages(worksheet, "wrong number")


predict_answers = quiz_questions.predict_answers


def replace_messages(worksheet: Any, message: str) -> Any:
    for blank, answers in predict_answers(worksheet):
        yield blank, [answer._replace(message=message) for answer in answers]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("compute_tolerance", lambda value, digits, units=1.0: 0.011),
        ("predict_answers", drop_messages),
        ("format_number", lambda value, digits: f"{value:.2g}"),
    ],
)
def test_planted_faults_are_found(
    name: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = sheet_of("tangent", 3)
    monkeypatch.setattr(quiz_questions, name, fault)
    (question,) = read_moodle(sheet.to_moodle())
    with pytest.raises(AssertionError):
        check_fields(sheet, question.fields)


@pytest.mark.parametrize("text", ["f'*g + f*g'", r"a~b}#c{\ %50%=", HOSTILE, "&#125; &amp;", "Ж→"])
def test_feedback_is_shown_as_written(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = partial(replace_messages, message=text)
    monkeypatch.setattr(quiz_questions, "predict_answers", fault)
    sheet = sheet_of("trace", 1)

    def read_feedback() -> set[str]:
        (question,) = read_moodle(sheet.to_moodle())
        return {a.feedback for f in question.fields for a in f.alternatives[1:]}

    assert read_feedback() == {escape(text)}
    package = QtiPackage(sheet.to_qti())
    feedback = package.items[1].findtext(".//*[@ident='general_incorrect_fb']//qti:mattext",
                                         namespaces=NAMESPACES)  # fmt: skip
    assert f": {escape(text)}</li>" in (feedback or "").replace("&#39;", "&#x27;").replace(
        "&#34;", "&quot;"
    )
    monkeypatch.setattr(moodle_questions, "escape_cloze", str)
    if escape(text) != text:
        with pytest.raises(AssertionError):
            assert read_feedback() == {escape(text)}


def test_choices_and_matrices() -> None:
    sheet = cgprimer.exercise(kinds=["shapes", "picture", "mistake"], seed=2, difficulty=2)
    shapes, picture, mistake = read_moodle(sheet.to_moodle())
    worksheets = [build_worksheet(problem) for problem in sheet.problems]
    values = {b.row: b.value for b in worksheets[0].blanks if b.form != "shape"}
    read: dict[str, list[float]] = {}
    weights: dict[str, int] = {}
    for field in shapes.fields:
        read.setdefault(field.row, []).append(float(field.alternatives[0].answer))
        weights[field.row] = weights.get(field.row, 0) + field.weight
        assert all(field.grade(a.answer) == (0.0, a.feedback) for a in field.alternatives[1:])
    assert read == {row: np.ravel(value).tolist() for row, value in values.items()}
    assert len({*weights.values()}) == 1
    for question, worksheet in ((picture, worksheets[1]), (mistake, worksheets[2])):
        for field, blank in zip(question.fields, worksheet.blanks, strict=True):
            if field.kind == "NUMERICAL":
                continue
            credit = {a.answer for a in field.alternatives if a.fraction == 1}
            assert credit == {*blank.value.split(", ")}
            wrong = {a.fraction for a in field.alternatives} - {1.0}
            assert wrong == ({0.0} if field.kind == "MULTICHOICE" else {-1.0})
    items = [i for i in QtiPackage(sheet.to_qti()).items if metadata(i, "points_possible") != "0"]
    assert len(items) == sum(len(q.fields) for q in (shapes, picture, mistake))
    for item, field in zip(items[-len(mistake.fields) - len(picture.fields) :],
                           [*picture.fields, *mistake.fields], strict=True):  # fmt: skip
        options = {
            unescape(label.findtext(".//qti:mattext", "", NAMESPACES)): label.get("ident", "")
            for label in item.iterfind(".//qti:response_label[@ident]", NAMESPACES)
        }
        if field.kind != "NUMERICAL":
            right = {options[a.answer] for a in field.alternatives if a.fraction == 1}
            assert grade_item(item, right)[0] == 100
            assert grade_item(item, {*options.values()} - right)[0] == 0


@pytest.mark.parametrize("kind", SCALAR)
def test_canvas_grades_as_the_check_of_sheets(kind: str) -> None:
    sheet = sheet_of(kind, 3)
    package = QtiPackage(sheet.to_qti())
    text, *items = package.items
    assert metadata(text, "question_type") == "text_only_question"
    (question,) = read_moodle(sheet.to_moodle())
    by_place = {(f.row, f.column): f for f in question.fields}
    prompts = [item.findtext(".//qti:mattext", "", NAMESPACES) for item in items]
    assert len(prompts) == len(by_place)
    total = fsum(float(metadata(item, "points_possible")) for item in items)
    assert round(total, 3) == cgprimer.check_trace(sheet, {}).possible
    for item, prompt in zip(items, prompts, strict=True):
        place = unescape(re.sub(r"<[^>]*>|\(\d+\) ", "", prompt)).strip()
        row, _, column = place.replace(" -> ", " → ").rpartition(", ")
        correct, *wrong = by_place[row, column].alternatives
        for factor, score in (("-1.05", 0), ("-0.95", 100), ("0", 100), ("1", 100), ("1.05", 0)):
            answer = Decimal(correct.answer) + correct.tolerance * Decimal(factor)
            shown = {"general_fb"} | ({"general_incorrect_fb"} if not score and wrong else set())
            assert grade_item(item, {str(answer)}) == (score, shown)
        feedback = item.findtext(".//*[@ident='general_incorrect_fb']//qti:mattext", "", NAMESPACES)
        for mistake in wrong:
            assert f"<li>{mistake.answer}: " in feedback
            assert grade_item(item, {mistake.answer})[0] == 0


def test_pools_have_no_names_and_no_equal_questions(tmp_path: Path) -> None:
    students = [Student(f"Secret {k}", f"mailbox{k}", f"file{k}") for k in range(6)]
    sheets = list(
        exercises_for(students, kinds=["adjoint", "paths"], title=f"{HOSTILE} \0", seed=5)
    )
    for folder in ("one", "two"):
        write_exercises(sheets, tmp_path / folder, formats=["qti", "moodle"])
    files = {p.name: p for p in (tmp_path / "one").rglob("*.*")}
    assert files.keys() == {"moodle.xml", "qti.zip", "sheets.json"}
    assert not (tmp_path / "one" / "students").exists()
    for name, file in files.items():
        assert file.read_bytes() == (tmp_path / "two" / "grader" / name).read_bytes()
    text = files["moodle.xml"].read_text()
    package = QtiPackage(files["qti.zip"].read_bytes())
    for content in (text, *(data.decode() for data in package.files.values())):
        assert not re.search(r"Secret|mailbox|file\d|<script>", content)
        assert not any(sheet.identifier in content for _, sheet in sheets)
    questions = read_moodle(text)
    title = f"{HOSTILE} \ufffd"
    path = "$course$/top/" + title.replace("/", "//")
    assert {q.pool for q in questions} == {f"{path}/adjoint", f"{path}/paths"}
    assert len({q.html for q in questions}) == len({(q.pool, q.name) for q in questions}) == 12
    weights = [[field.weight for field in q.fields] for q in questions]
    assert all(sum(w) in (10, len(w)) and len({*w}) == 1 for w in weights)
    assert package.root[0].get("title") == title
    groups = {name: items for name, items in package.groups.items() if items}
    assert [len(items) for items in groups.values()] == [6, 6]
    for name in groups:
        section = package.root.find(f".//*[@ident='{name}']")
        assert section is not None
        assert section.findtext(".//qti:selection_number", "", NAMESPACES) == "1"
        assert section.findtext(".//qti:points_per_item", "", NAMESPACES) == "10"
    for item, question in zip(package.items, questions, strict=True):
        numbers = [f.alternatives[0] for f in question.fields]
        graded = [grade_item(item, {n.answer})[0] for n in numbers]
        assert 100 in graded
        assert metadata(item, "question_type") == "numerical_question"
        assert item.findtext(".//qti:mattext", "", NAMESPACES).count("<strong>?</strong>") == 1
