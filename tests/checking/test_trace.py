"""Answers to sheets: right and wrong ones, file formats, hostile files, exchanged sheets."""

from __future__ import annotations

import ast
import csv
import json
import math
import os
import re
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.batch_checks import check_all
from cgprimer.course.checks.check_results import Result
from cgprimer.course.checks.sandbox import Limits
from cgprimer.course.checks.sheet_check import build_trace_check, check_trace
from cgprimer.course.checks.sheet_owners import find_exchanged_sheets
from cgprimer.course.checks.sheets import formula_mistakes as s
from cgprimer.course.checks.sheets.answer_files import BlankKey, normalize_name, read_answers
from cgprimer.course.checks.sheets.answer_forms import format_python_form
from cgprimer.course.checks.sheets.answer_values import parse_array, parse_number
from cgprimer.course.checks.sheets.sheet_grading import FOLLOWS
from cgprimer.course.checks.sheets.sheet_problems import (
    KINDS,
    Blank,
    Problem,
    Sheet,
    Worksheet,
    format_sheets,
    read_sheets,
)
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.checks.sheets.sheet_tables import evaluate_formula
from cgprimer.course.checks.submission_search import find_submissions
from cgprimer.course.exercises.exercise_sheets import Exercise, exercises_for
from cgprimer.course.exercises.roster import Student, read_roster
from cgprimer.course.exercises.sheet_files import EVERYBODY, write_exercises
from cgprimer.errors import DataError
from cgprimer.support.number_format import format_array, format_number
from tests.approval import refused
from tests.checking.submissions import compute, read_sections, read_tables
from tests.cli.cli_tools import read_json, run

Answered = dict[BlankKey, str]
COLUMNS = {"trace": "value"}
TABLES = read_tables("tables.txt")


def text_of(value: Any, digits: int) -> str:
    if isinstance(value, str):
        return value
    return format_number(value, digits or 12) if isinstance(value, float) else repr(value.tolist())


def worked_through(table: Worksheet, slip: tuple[Blank, Any] | None = None) -> dict[str, Any]:
    """Values of every blank as a student finds them, rounded on the way; with one slip."""
    own = dict(table.known_values)
    for blank in table.blanks:
        value = blank.value if blank.tree is None else evaluate_formula(blank.tree, own)
        if slip and blank is slip[0]:
            value = slip[1]
        if table.digits and isinstance(value, float):
            value = float(format_number(value, table.digits))
        own[blank.name] = value
    return own


def as_answers(table: Worksheet, own: dict[str, Any], place: int = 1) -> Answered:
    return {(place, b.row, b.column): text_of(own[b.name], table.digits) for b in table.blanks}


def right(sheet: Sheet) -> Answered:
    found: Answered = {}
    for place, problem in enumerate(sheet.problems, start=1):
        table = build_worksheet(problem)
        found |= as_answers(table, worked_through(table), place)
    return found


def accused(result: Result) -> list[str]:
    return [f"{p.name}: {p.message}" for p in result.parts if p.points < p.possible]


@pytest.mark.parametrize("count", [1, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_right_answers_are_right(kind: str, count: int) -> None:
    for seed in range(count):
        sheet = cgprimer.exercise(kinds=kind, seed=seed, difficulty=1 + seed % 3)
        assert accused(check_trace(sheet, right(sheet))) == [], (seed, sheet.problems)


NAMED = {
    s.SIGN, s.OVERWRITTEN, s.ONE_PATH, s.NO_UPSTREAM, s.NO_LOCAL, s.NO_FACTOR, s.POINT, s.EXPONENT,
    s.ADDED, s.OPERATION, s.TWICE, s.PRODUCT, s.QUOTIENT, s.TERM,
}  # fmt: skip


def planted(kinds: tuple[str, ...], seeds: range) -> tuple[Counter[str], Counter[str], list[str]]:
    """How often each slip was made and how often named; and what went wrong besides."""
    made, named, wrong = Counter[str](), Counter[str](), list[str]()
    for seed in seeds:
        draw = Random(seed)
        for kind in kinds:
            sheet = cgprimer.exercise(kinds=kind, seed=seed, difficulty=1 + seed % 3)
            table = build_worksheet(sheet.problems[0])
            values = dict(table.known_values) | {b.name: b.value for b in table.blanks}
            options = [
                (blank, name, value)
                for blank in table.blanks
                if blank.form == "number"
                for name, value in s.predict_wrong_answers(blank, values)
                if value
                and math.isfinite(value)
                and abs(value - blank.value) > 0.01 * max(abs(value), abs(blank.value))
            ]
            for wanted in sorted({name for _, name, _ in options}):
                blank, name, value = draw.choice([o for o in options if o[1] == wanted])
                own = worked_through(table, (blank, value))
                if not all(math.isfinite(v) for v in own.values() if isinstance(v, float)):
                    continue  # the root of a number below 0: nobody can go on from there
                if len({own[b.name] for b in table.blanks if b.column == blank.column}) == 1:
                    continue  # one number everywhere is refused, here by chance
                result = check_trace(sheet, as_answers(table, own))
                part = next(p for p in result.parts if p.name == f"1 {blank.row} {blank.column}")
                # Where two slips give the same number, either name is right.
                same = {
                    n for b, n, v in options if b is blank and math.isclose(v, value, rel_tol=2e-3)
                }
                made[name] += 1
                named[name] += part.mistake in same and part.points == 0
                others = [p for p in result.parts if p.points < 1 and p is not part]
                if [p for p in others if p.mistake != s.ZERO]:
                    wrong.append(f"{sheet.problems[0]} {blank.row} {name} {value}: {others}")
    return made, named, wrong


def test_one_slip_costs_one_point_and_has_its_name() -> None:
    made, named, wrong = planted(("adjoint", "tangent", "paths", "trace", "gradient"), range(2))
    assert len(made) >= 10
    assert sum(named.values()) >= 0.95 * sum(made.values()), made - named
    assert wrong == []


@pytest.mark.slow
def test_each_slip_is_named_nearly_always() -> None:
    kinds = ("adjoint", "tangent", "paths", "trace", "gradient", "optimizer")
    made, named, wrong = planted(kinds, range(60))
    more, others, _ = planted(("tangent",), range(100, 500))  # quotients are rare
    made, named = made + more, named + others
    assert set(made) == NAMED
    assert min(made.values()) >= 15
    shares = {name: named[name] / made[name] for name in made}
    assert min(shares.values()) >= 0.95, shares
    assert wrong == []


TEXT = "input xa = 3; parameter k = 2; xb = k*xa; xc = xb^2; xw = xc + xb"
ADJOINT = Sheet((Problem("adjoint", TEXT, {"digits": 0, "values_given": True}),))
GRADES = [
    (title.split(": ", 1), *line.split(" => "))
    for title, text in read_sections("sheet_answers.txt")
    for line in text.splitlines()
]


@pytest.mark.parametrize(("sheet", "changes", "expected"), GRADES)
def test_points_and_mistakes_of_answers(sheet: list[str], changes: str, expected: str) -> None:
    """A row changes right answers; it has the points, the mistake and the message of parts."""
    kind, asked = sheet[0], ast.literal_eval(sheet[1])
    texts = f"{asked.pop('right')}; {changes}".split("; ")
    given = {(1, name, COLUMNS.get(kind, kind)): t for name, t in (e.split("=", 1) for e in texts)}
    result = check_trace(Sheet((Problem(kind, asked.pop("graph"), asked),)), given)
    parts = {part.name.split()[1]: part for part in result.parts}
    for entry in expected.split("; "):
        row, points, *details = entry.split(" ", 3)
        part = parts.pop(row)
        assert part.points == float(points), str(part)
        if details[:1] == ["not"]:
            assert part.mistake != getattr(s, details[1])
            continue
        if details:
            assert part.mistake == getattr(s, details[0], "")
        if len(details) > 1:
            assert part.message == {"FOLLOWS": FOLLOWS}.get(details[1], details[1])
    assert {(part.points, part.mistake) for part in parts.values()} <= {(1.0, "")}


def test_terms_that_cancel_leave_rounding() -> None:
    """After a mistake in xp the terms of the last tangent cancel, but for the last digits."""
    text = (
        "input x1 = -2; parameter a = -1; xp = x1*(a + x1); xq = max(xp, x1); xr = xq*xp + a;"
        " xs = xr/x1; xw = x1*xq*xs; output xw"
    )
    problem = Problem("tangent", text, {"digits": 0, "wrt": "a", "level": "operations"})
    table = build_worksheet(problem)
    blank = next(b for b in table.blanks if b.name == "xp")
    answers = as_answers(table, worked_through(table, (blank, 2 / 3)))
    result = check_trace(Sheet((problem,)), answers)
    costly = {p.name: p.mistake for p in result.parts if p.points < 1}
    assert costly == {"1 xp value": s.OPERATION, "1 xw tangent": s.ZERO}


def test_matrices() -> None:
    """Case F1."""
    sheet = cgprimer.exercise(cgprimer.load("matrix_backpropagation"), kinds="shapes", seed=2)
    table = build_worksheet(sheet.problems[0])
    answers = as_answers(table, worked_through(table))
    assert accused(check_trace(sheet, answers)) == []
    blank = next(b for b in table.blanks if b.name == "bar_w1")
    assert not np.array_equal(blank.value, blank.value.T)
    answers[1, "bar_w1", "value"] = repr(blank.value.T.tolist())
    answers[1, "bar_w2", "shape"] = "1x2"
    answers[1, "y_pred", "value"] = text_of(float(worked_through(table)["y_pred"].item()), 0)
    parts = {p.name: p for p in check_trace(sheet, answers).parts}
    assert parts["1 bar_w1 value"].mistake == s.SHAPE
    assert parts["1 bar_w2 shape"].points == 0
    assert parts["1 y_pred value"].points == 1, "a matrix of one number"
    answers[1, "h", "value"] = "[[1, 2], [3]]"
    parts = {p.name: p for p in check_trace(sheet, answers).parts}
    assert "a matrix must have" in parts["1 h value"].message


@pytest.mark.parametrize("digits", [0, 3])
def test_a_table_with_a_mistake_has_the_digits_of_the_sheet(digits: int) -> None:
    for seed in range(3):
        (problem,) = cgprimer.exercise(kinds="mistake", seed=seed, difficulty=3).problems
        table = build_worksheet(replace(problem, asked={**problem.asked, "digits": digits}))
        assert table.given_table
        numbers = [float(str(v)) for row in table.given_table[1] for v in row[2:]]
        assert numbers
        assert all(v == float(format_number(v, digits or 10)) for v in numbers)


def test_no_right_value_stands_in_a_result() -> None:
    sheet = cgprimer.exercise(kinds=["adjoint", "tangent"], seed=4, difficulty=3)
    empty = json.dumps(check_trace(sheet, {}).to_dict())
    for problem in sheet.problems:
        for blank in build_worksheet(problem).blanks:
            if len(text := format_number(blank.value, 4)) > 4:
                assert text not in empty


# --- files ---------------------------------------------------------------------------------------


def filled(sheet: Exercise, kind: str) -> str:
    """The form of a format, with right answers: numbers as numbers, all else as texts."""
    answers = right(sheet)
    header, *lines = sheet.to_csv().splitlines()
    rows = [line.split(",") for line in lines]
    ordered = [answers[int(place), row, column] for _, place, row, column, _ in rows]
    if kind == "md":
        return sheet.to_markdown(solution=True)
    if kind == "json":
        own: dict[str, dict[str, dict[str, str]]] = {}
        for (_, place, row, column, _), text in zip(rows, ordered, strict=True):
            own.setdefault(place, {}).setdefault(row, {})[column] = text
        return json.dumps({"sheet": sheet.identifier, "answers": own})
    if kind == "csv":
        filled_lines = (f'{line}"{text}"' for line, text in zip(lines, ordered, strict=True))
        return "\n".join([header, *filled_lines])
    texts = (t if re.fullmatch(r"-?[\d.]+", t) else json.dumps(t) for t in ordered)

    def fill(source: str) -> str:
        return re.sub('(?<=": )""', lambda _: next(texts), source)

    if kind == "py":
        return fill(format_python_form(sheet))
    book = json.loads(sheet.to_notebook())
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = fill(cell["source"])
    return json.dumps(book)


FEW = ("adjoint", "shapes", "optimizer", "mistake")


@pytest.mark.parametrize("kind", ["csv", "json", "md", "ipynb", "py"])
def test_answers_from_files(kind: str, tmp_path: Path) -> None:
    sheet = cgprimer.exercise(kinds=FEW, seed=6, difficulty=2)
    file = tmp_path / f"ann.{kind}"
    text = filled(sheet, kind)
    file.write_text(text, encoding="utf-8")
    result = check_trace(sheet, file)
    assert accused(result) == []
    assert result.submission == file.name
    class_ = tmp_path / "sheets.json"
    class_.write_text(format_sheets([cgprimer.exercise(kinds=FEW, seed=7), sheet]))
    assert accused(check_trace(class_, file)) == []


def test_answers_of_a_running_notebook(tmp_path: Path) -> None:
    sheet = cgprimer.exercise(kinds=FEW, seed=6)
    names: dict[str, Any] = {"math": math, "answers": 3}
    for (place, row, column), text in right(sheet).items():
        value: Any = float(text) if re.fullmatch(r"-?[\d.]+", text) else text
        names.setdefault(f"answers_{place}", {}).setdefault(row, {})[column] = value
    assert accused(check_trace(sheet.to_dict(), names)) == []
    with refused(DataError):
        check_trace(sheet, {"answers_1": 3})
    class_ = tmp_path / "sheets.json"
    class_.write_text(format_sheets([sheet]))
    check = build_trace_check(class_)
    assert "NAMES" in check.call
    assert "sheet = " in check.skeleton


def test_other_separators_and_orders(tmp_path: Path) -> None:
    file = tmp_path / "ann.csv"
    file.write_text(
        "\ufeffRow;answer;problem;column\nxb;13,0;1;adjoint\n\nxw;1;1;adjoint\n", "utf-8"
    )
    found = {p.name: p.points for p in check_trace(ADJOINT, file).parts}
    assert (found["1 xb adjoint"], found["1 xw adjoint"]) == (1.0, 1.0)


def test_another_sheet_is_told(tmp_path: Path) -> None:
    one, other, third = (cgprimer.exercise(kinds="trace", seed=k) for k in (1, 2, 3))
    file, own, two = (tmp_path / name for name in ("ann.csv", "other.json", "sheets.json"))
    own.write_text(format_sheets([other]))
    two.write_text(format_sheets([other, third]))
    file.write_text(one.to_csv())
    result = build_trace_check(own).run(file, Limits())
    assert f"  {len(result.parts)} parts not run" in str(result).splitlines()
    for sheet, text, contains in (
        (other, one.to_csv(), one.identifier),
        (two, one.to_csv(), "2"),
        (two, "problem,row,column,answer\n1,xw,value,3\n", "2"),
        (one, one.to_csv() + other.to_csv(), ""),
    ):
        file.write_text(text)
        with refused(DataError, contains):
            check_trace(sheet, file)


@pytest.mark.parametrize(("name", "text", "message"), TABLES["files without answers"])
def test_files_without_answers(name: str, text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / name
    if text != "None":
        file.write_text(compute(text))
    with refused(DataError, message):
        read_answers(file)


@pytest.mark.parametrize("row", TABLES["hostile answers"])
def test_hostile_answers_are_no_numbers(row: tuple[str]) -> None:
    text = compute(*row)
    with pytest.raises(DataError):
        parse_number(text)
    assert check_trace(ADJOINT, {(1, "xb", "adjoint"): text}).points == 0


def test_long_answers_and_large_numbers_get_a_result() -> None:
    sheet = cgprimer.exercise(kinds=KINDS, seed=1)
    blanks = [(k, normalize_name(b.row), normalize_name(b.column))
              for k, table in enumerate(map(build_worksheet, sheet.problems), start=1)
              for b in table.blanks]  # fmt: skip
    for (expression,) in TABLES["long answers"]:
        given = dict.fromkeys(blanks, compute(expression))
        assert len(check_trace(sheet, given).parts) == len(blanks)


def test_only_regular_files_of_limited_size_are_read(tmp_path: Path) -> None:
    large = tmp_path / "large.csv"
    large.write_text("problem,row,column,answer\n" + "1,x,v,1\n" * 300_000)
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    device = tmp_path / "zero.csv"
    device.symlink_to("/dev/zero")
    for file, message in ((large, ""), (pipe, "regular"), (device, "regular")):
        with refused(DataError, message):
            read_answers(file)


def test_nothing_of_a_notebook_is_run(tmp_path: Path) -> None:
    hacked = tmp_path / "hacked"
    call = f"open({str(hacked)!r}, 'w')"
    source = f"{call}\nanswers_1 = {{'xb': {{'adjoint': {call} or 13}}}}"
    book = {"metadata": {}, "cells": [{"cell_type": "code", "source": source}]}
    file = tmp_path / "ann.ipynb"
    file.write_text(json.dumps(book))
    assert {p.name: p.points for p in check_trace(ADJOINT, file).parts}["1 xb adjoint"] == 0
    assert not hacked.exists()


def test_arrays_are_read_as_they_are_printed() -> None:
    matrix = np.array([[1.0, -0.5], [0.0, 2.0]])
    assert np.array_equal(parse_array(format_array(matrix)), matrix)


@pytest.mark.parametrize(("name", "text"), TABLES["hostile files of answers"])
def test_hostile_files_of_answers_are_read_or_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(compute(text))
    with suppress(DataError):
        read_answers(tmp_path / name)


ROSTER = "id,name,email\n17,Ann Lee,lee@x.org\n18,Bob Stone,bob@x.org\n19,Cyd Novak,cn@x.org\n"
SAID = "this is the sheet of Ann Lee, not of Bob Stone"


def right_form(sheet: Sheet) -> str:
    """The form of a sheet with the right answers."""
    rows = [f'{sheet.identifier},{place},"{row}","{column}","{text}"'
            for (place, row, column), text in right(sheet).items()]  # fmt: skip
    return "\n".join(["sheet,problem,row,column,answer", *rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class of three with right answers, before anybody exchanges files."""
    (tmp_path / "class.csv").write_text(ROSTER)
    sheets = exercises_for(read_roster(tmp_path / "class.csv"), kinds=["adjoint", "gradient"])
    write_exercises(sheets, tmp_path / "homework")
    (tmp_path / "answers").mkdir()
    for sheet in read_sheets(tmp_path / "homework/grader/sheets.json").values():
        (tmp_path / "answers" / f"{sheet.file}.csv").write_text(right_form(sheet))
    return tmp_path


def check_folder(folder: Path) -> dict[str, Any]:
    check = build_trace_check(folder / "homework/grader/sheets.json")
    results = check_all(
        check, find_submissions([folder / "answers"], check.endings), Limits()
    ).results
    return {result.submission: result for result in results}


def change_sheets(folder: Path, **changed: str) -> None:
    """Write the sheets of the class and Ann's answers anew, with other names."""
    file = folder / "homework/grader/sheets.json"
    sheets = [replace(sheet, **changed) for sheet in read_sheets(file).values()]
    file.write_text(format_sheets(sheets))
    (folder / "answers/17.csv").write_text(right_form(sheets[0]))


def test_a_copy_of_another_students_form_gets_no_points_and_a_remark(folder: Path) -> None:
    answers = folder / "answers"
    shutil.copy(answers / "17.csv", answers / "18.csv")
    done = run("check", "trace", "homework/grader/sheets.json", "answers", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"18.csv: {SAID}" in done.stderr
    assert "18.csv and 17.csv have identical contents" in done.stderr
    rows = list(csv.DictReader((folder / "answers.csv").read_text().splitlines()))
    assert [row["points"] for row in rows] == ["20", "0", "20"]
    assert rows[1]["failure"].endswith(SAID)
    assert (rows[1]["same as"], rows[1]["problem 1"], rows[1]["percent"]) == ("17.csv", "0", "0.0")
    assert SAID in (folder / "answers.html").read_text()
    again = run("check", "trace", "homework/grader/sheets.json", "answers", cwd=folder)
    assert again.stdout == done.stdout  # from the journal, which has one result for both files


def test_one_file_is_told(folder: Path) -> None:
    shutil.move(folder / "answers/17.csv", folder / "bob-stone.csv")
    what = folder / "homework/grader/sheets.json", folder / "bob-stone.csv"
    data = read_json("check", "trace", *what)
    assert (data["points"], data["possible"]) == (0, 20)
    assert data["failure"]["message"] == SAID
    assert {(part["points"], part["verdict"]) for part in data["parts"]} == {(0, "not run")}
    with pytest.raises(DataError, match=SAID):
        cgprimer.check_trace(*what)


def test_the_name_of_a_students_folder_counts(folder: Path) -> None:
    for name, file in (("17", "17"), ("18", "17"), ("Cyd Novak", "19")):
        (folder / "answers" / name).mkdir()
        shutil.copy(folder / f"answers/{file}.csv", folder / "answers" / name / "17.csv")
    for file in (folder / "answers").glob("*.csv"):
        file.unlink()
    results = check_folder(folder)
    assert {n: r.points for n, r in results.items()} == {"17": 20, "18": 0, "Cyd Novak": 20}
    assert results["18"].failure.message == SAID


def test_names_of_nobody_keep_their_points(folder: Path) -> None:
    for name in ("sheet", "homework 1", "17 (2)", "stone", "bob", "lee", "dan"):
        shutil.copy(folder / "answers/17.csv", folder / f"answers/{name}.csv")
    assert {result.points for result in check_folder(folder).values()} == {20}


def find(folder: Path, names: list[str], students: list[Student]) -> dict[str, str]:
    """What is said about Ann's form under several names."""
    sheets = read_sheets(folder / "homework/grader/sheets.json")
    files = {f"{name}.csv": folder / "answers/17.csv" for name in names}
    failures = find_exchanged_sheets(sheets, files, students)
    return {name.removesuffix(".csv"): failure.message for name, failure in failures.items()}


@pytest.mark.parametrize("is_old", [False, True])
def test_a_class_list_adds_names(is_old: bool, folder: Path) -> None:
    if is_old:
        change_sheets(folder, file="")
    names = ["17", "lee", "Ann Lee", "lee@x.org", "18", "bob", "Bob Stone", "dan"]
    with_list = find(folder, names, read_roster(folder / "class.csv"))
    assert with_list == dict.fromkeys(["18", "bob", "Bob Stone"], SAID)
    without = ["Bob Stone"] if is_old else ["18", "Bob Stone"]
    assert find(folder, names, []) == dict.fromkeys(without, SAID)


def test_a_student_without_a_sheet_and_one_with_another_name(folder: Path) -> None:
    (folder / "class.csv").write_text(ROSTER.replace("Ann Lee", "Anne Lee") + "20,Dan Roe,d@x\n")
    students = read_roster(folder / "class.csv")
    said = {
        "18": "this is the sheet of Anne Lee, not of Bob Stone",
        "20": "this is the sheet of Anne Lee, not of Dan Roe",
    }
    assert find(folder, ["17", "Anne Lee", "18", "20"], students) == said
    change_sheets(folder, file="")  # then nothing says that Ann is Anne
    assert find(folder, ["17", "Anne Lee", "20"], students) == {}
    assert find(folder, ["18"], students) == {"18": SAID}


def test_equal_names_are_told_apart_by_their_files(folder: Path) -> None:
    students = [Student("Ann Lee", k, k) for k in ("17", "18")]
    change_sheets(folder, student="Ann Lee")
    assert find(folder, ["17", "Ann Lee"], students) == {}
    assert find(folder, ["18"], students) == {"18": "this is the sheet of 17, not of 18"}


def test_a_sheet_for_everybody_is_nobodys(tmp_path: Path) -> None:
    write_exercises([(EVERYBODY[0], cgprimer.exercise(kinds="adjoint"))], tmp_path)
    (tmp_path / "bob.csv").write_text(right_form(cgprimer.exercise(kinds="adjoint")))
    sheets = read_sheets(tmp_path / "grader/sheets.json")
    students = [Student("Bob Stone", "bob", "bob")]
    assert find_exchanged_sheets(sheets, {"bob.csv": tmp_path / "bob.csv"}, students) == {}
