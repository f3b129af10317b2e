"""Files with the sheet of another student than their names say: no points, and a remark."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks.batch_checks import check_all
from cgprimer.course.checks.sandbox import Limits
from cgprimer.course.checks.sheet_check import build_trace_check
from cgprimer.course.checks.sheet_owners import find_exchanged_sheets
from cgprimer.course.checks.sheets.sheet_problems import Sheet, format_sheets, read_sheets
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.checks.submission_search import find_submissions
from cgprimer.course.exercises.exercise_sheets import exercises_for
from cgprimer.course.exercises.roster import Student, read_roster
from cgprimer.course.exercises.sheet_files import EVERYBODY, write_exercises
from cgprimer.errors import DataError
from tests.cli.cli_tools import read_json, run

ROSTER = "id,name,email\n17,Ann Lee,lee@x.org\n18,Bob Stone,bob@x.org\n19,Cyd Novak,cn@x.org\n"
SAID = "this is the sheet of Ann Lee, not of Bob Stone"


def right_form(sheet: Sheet) -> str:
    """The form of a sheet with the right answers."""
    rows = ["sheet,problem,row,column,answer"]
    for number, problem in enumerate(sheet.problems, 1):
        for blank in build_worksheet(problem).blanks:
            cells = (blank.row, blank.column, blank.format_value(0))
            rows.append(",".join([sheet.identifier, str(number), *(f'"{cell}"' for cell in cells)]))
    return "\n".join(rows)


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
