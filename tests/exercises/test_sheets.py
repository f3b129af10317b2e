"""Sheets of a class: no two alike, no answer in what students get, and the same points for all."""

from __future__ import annotations

import ast
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks.sheets.sheet_problems import Problem, Worksheet, read_sheets
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.exercises import documents, printed_sheets
from cgprimer.course.exercises.exercise_sheets import exercises_for
from cgprimer.course.exercises.roster import (
    Student,
    read_roster,
    safe_name,
    students_by_submission,
)
from cgprimer.course.exercises.sheet_files import EVERYBODY, write_exercises
from cgprimer.errors import CgprimerError, DataError, UsageError
from tests.approval import approved, refused
from tests.exercises.neatness import ROWS

TEXTS = {"to_markdown": "md", "to_html": "html", "to_latex": "tex", "to_notebook": "ipynb"}


def class_of(many: int) -> list[Student]:
    return [Student(f"Student {k}", str(k), f"student-{k}") for k in range(many)]


def test_each_student_has_another_sheet() -> None:
    sheets = dict(exercises_for(class_of(8), kinds=["adjoint", "gradient"], seed=1))
    assert len({repr(sheet.problems) for sheet in sheets.values()}) == 8
    later = dict(exercises_for(class_of(9)[::-1], kinds=["adjoint", "gradient"], seed=1))
    assert all(later[student] == sheet for student, sheet in sheets.items())
    lecture = cgprimer.parse("xb = a*xa; xw = xb + b")
    given = [s for _, s in exercises_for(class_of(8), lecture, kinds="adjoint", seed=1)]
    assert len({s.problems[0].graph for s in given}) == 8
    assert all("xb = a*xa" in s.problems[0].graph for s in given)
    usual, zero = (dict(exercises_for(class_of(2), kinds="trace", **o)) for o in ({}, {"seed": 0}))
    assert usual == zero
    assert cgprimer.exercise(kinds="trace") == cgprimer.exercise(kinds="trace", seed=0)


def test_too_few_different_sheets_are_an_error() -> None:
    graph = cgprimer.parse("xw = xa*xa")
    with refused(UsageError, "only"):
        list(exercises_for(class_of(40), graph, kinds="gradient", seed=1))


def test_every_sheet_of_a_class_is_worth_the_same() -> None:
    sheets = [s for _, s in exercises_for(class_of(6), kinds=["trace", "paths", "adjoint"])]
    blanks = {len(build_worksheet(p).blanks) for sheet in sheets for p in sheet.problems}
    assert len(blanks) > 2, "the sheets have different numbers of blanks"
    for sheet in sheets:
        result = cgprimer.check_trace(sheet, {})
        assert (result.points, result.possible) == (0, 30)
        assert result.subtotals == {f"problem {k}": (0, 10) for k in (1, 2, 3)}
        assert sheet.to_markdown().count("(10 points)") == 3
    ((_, alone),) = exercises_for(class_of(1), kinds="trace", points=None)
    n_blanks = len(build_worksheet(alone.problems[0]).blanks)
    assert cgprimer.check_trace(alone, {}).possible == n_blanks
    ((_, most),) = exercises_for(class_of(1), kinds="trace", points=1000)
    assert cgprimer.check_trace(most, {}).possible == 1000


@pytest.mark.parametrize("points", [0, -1, 1001, 2.5, "7", True])
def test_points_are_integers_up_to_1000(points: Any) -> None:
    with pytest.raises(UsageError, match="points"):
        list(exercises_for(class_of(1), kinds="trace", points=points))
    with pytest.raises(DataError):
        Problem("trace", "", {"points": points}).points_of_blanks(3)


@pytest.mark.parametrize("count", [1, 3, 7, 24, 64, 999, 5000])
def test_points_of_blanks_add_up(count: int) -> None:
    parts = Problem("trace", "", {"points": 10}).points_of_blanks(count)
    assert round(sum(parts), 9) == 10
    assert max(parts) - min(parts) < 0.0101


def test_documents_show_the_question_and_the_solution() -> None:
    """The texts of a small sheet, of its solution and of its forms."""
    problems = (
        Problem("adjoint", "input xa = 3; parameter b = 2; xw = b*xa^2", {"digits": 0}),
        Problem("trace", "input xa = 1.5; xp = sin(xa); xw = xp/xa", {"digits": 3}),
        Problem(
            "paths",
            "input xa = 0.7; xp = sin(xa); xq = xa^2; xw = xp*xq",
            {"digits": 3, "of": "xw", "wrt": "xa"},
        ),
    )
    sheet = replace(cgprimer.exercise(kinds="trace"), problems=problems, student="Ann")
    for solution in (False, True):
        text = sheet.to_markdown(solution=solution)
        approved(text.partition("<!-- cgprimer")[0] + text.rpartition("-->")[2])
    assert printed_sheets.latex_document(sheet) == sheet.to_latex()
    assert printed_sheets.sheet_page(sheet) == sheet.to_html()
    body = sheet.to_latex(solution=True).partition(r"\begin{document}")[2]
    approved(re.sub(r"\\begin{tikzpicture}.*?\\end{tikzpicture}", "", body, flags=re.DOTALL))
    page = re.sub(r"<(style|script|svg).*?</\1>", "", sheet.to_html(solution=True), flags=re.DOTALL)
    approved(re.sub(r"</t[hd]>\s*", "</> ", re.sub(r"\s*\n\s*", "\n", page.partition("<body")[2])))
    approved(sheet.to_csv())
    approved("\n\n".join(json.loads(sheet.to_notebook())["cells"][k]["source"] for k in (2, 4)))


def test_formulas_of_exact_answers_have_ten_digits() -> None:
    asked = {"digits": 0, "of": "xw", "wrt": "xa"}
    problem = Problem("paths", "input xa = 7; xp = 3/xa; xw = xp*xa", asked)
    sheet = replace(cgprimer.exercise(kinds="trace"), problems=(problem,))
    assert "`-0.0612244898*7`" in sheet.to_markdown(solution=True)


def with_other_answers(problem: Problem) -> Worksheet:
    """Return the worksheet of a question, with all correct values replaced by others."""
    table = build_worksheet(problem)
    blanks = {
        id(b): replace(b, value="1x9" if isinstance(b.value, str) else b.value * 1.7 + 0.123)
        for b in table.blanks
    }
    rows = tuple(tuple(blanks.get(id(cell), cell) for cell in row) for row in table.rows)
    return replace(table, rows=rows, blanks=tuple(blanks.values()))


def test_files_for_students_do_not_depend_on_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no answer is in them, not even in another encoding."""
    few = ["trace", "paths", "shapes", "mistake"]
    sheet = cgprimer.exercise(kinds=few, seed=2, difficulty=3)
    written = [getattr(sheet, name)() for name in TEXTS] + [sheet.to_csv(), sheet.to_dict()]
    solution = sheet.to_markdown(solution=True)
    monkeypatch.setattr(documents, "build_worksheet", with_other_answers)
    assert [getattr(sheet, n)() for n in TEXTS] + [sheet.to_csv(), sheet.to_dict()] == written
    assert sheet.to_markdown(solution=True) != solution


def test_files_contain_their_questions_but_no_seed(tmp_path: Path) -> None:
    few = ["trace", "shapes", "optimizer", "mistake"]
    sheet = cgprimer.exercise(kinds=few, seed=987654321, difficulty=2, student="Zoë <b> -->")
    for name, ending in TEXTS.items():
        text = getattr(sheet, name)()
        assert "987654321" not in text
        assert re.search(r"cgprimer-sheet.*|$", text)[0].isascii()  # type: ignore[index]
        file = tmp_path / f"sheet.{ending}"
        file.write_text(text, encoding="utf-8")
        (found,) = read_sheets(file).values()
        assert (found.identifier, found.problems) == (sheet.identifier, sheet.problems)
    assert repr(sheet) == (
        f"<Sheet {sheet.identifier} of Zoë <b> -->: trace, shapes, optimizer, mistake>"
    )
    assert set(sheet.to_dict()) == {"format", "sheet", "title", "student", "problems"}


@pytest.mark.parametrize(("name", "text"), ROWS["changed sheets"])
def test_changed_sheets_are_rejected(name: str, text: str, tmp_path: Path) -> None:
    if text == "changed":
        text = cgprimer.exercise(kinds="trace").to_markdown().replace('"xw"', '"xp"')
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=name) as caught:
        read_sheets(tmp_path / name)
    if name == "sheet.md":  # other messages contain those of the version of Python
        approved(str(caught.value))


HOSTILE = r"\input{/etc/passwd} <script>alert(1)</script> | `x` $a_b$ %"


def test_names_of_students_cannot_add_markup() -> None:
    sheet = cgprimer.exercise(kinds="gradient", student=HOSTILE, title=HOSTILE)
    page = sheet.to_html()
    assert "<script>alert" not in page
    assert page.count("<script") == 1
    assert r"\input{" not in sheet.to_latex().replace("\\\\input{", "")
    assert "<script>" not in sheet.to_markdown()
    assert json.loads(sheet.to_notebook())["metadata"]["cgprimer"]["student"] == HOSTILE


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdf(tmp_path: Path) -> None:
    sheet = cgprimer.exercise(
        kinds=["optimizer", "paths"], student=HOSTILE + " Zoë 李", difficulty=3
    )
    write_exercises([(EVERYBODY[0], sheet)], tmp_path, formats=["pdf"])
    assert (tmp_path / "students" / "sheet.pdf").read_bytes()[:4] == b"%PDF"


def test_missing_or_failing_pdflatex_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(UsageError, "PDF") as caught:
        write_exercises([], tmp_path, formats=["pdf"])
    assert "latex" in caught.value.hint
    (tmp_path / "pdflatex").write_text("#!/bin/sh\necho '! Undefined control sequence.'\nexit 1\n")
    (tmp_path / "pdflatex").chmod(0o755)
    with refused(UsageError, "Undefined control sequence."):
        printed_sheets.sheet_pdf(cgprimer.exercise(kinds="trace"))


def test_notebooks_are_valid() -> None:
    nbformat = pytest.importorskip("nbformat")
    sheet = cgprimer.exercise(kinds=["adjoint", "paths"])
    for solution in (False, True):
        book = nbformat.reads(sheet.to_notebook(solution=solution), as_version=4)
        nbformat.validate(book)
        codes = [ast.parse(cell.source) for cell in book.cells if cell.cell_type == "code"]
        assert len(codes) == (0 if solution else 2)
        assert any(cell.get("attachments") for cell in book.cells)


def test_pictures_have_no_metadata_and_load_nothing() -> None:
    (picture,) = re.findall(r"<svg.*</svg>", cgprimer.exercise(kinds="paths").to_html(), re.DOTALL)
    assert "metadata" not in picture
    assert not re.search(r"""(?:href|src)=["'](?!#)""", picture)


def test_files_of_a_class(tmp_path: Path) -> None:
    students = class_of(2)
    sheets = exercises_for(students, kinds="paths", seed=1)
    assert write_exercises(sheets, tmp_path / "hw", formats=["markdown", "notebook"]) == 2
    names = sorted(str(p.relative_to(tmp_path / "hw")) for p in (tmp_path / "hw").rglob("*.*"))
    assert names == sorted(
        ["grader/sheets.json"]
        + [f"grader/student-{k}-solution{e}" for k in (0, 1) for e in (".md", ".ipynb", "-1.svg")]
        + [f"students/student-{k}{e}" for k in (0, 1) for e in (".md", ".ipynb", ".csv", "-1.svg")]
    )
    read = read_sheets(tmp_path / "hw" / "grader" / "sheets.json").values()
    assert [sheet.file for sheet in read] == ["student-0", "student-1"]
    broken = exercises_for(students, cgprimer.parse("xw = a*xa"), kinds="shapes")
    with pytest.raises(CgprimerError):
        write_exercises(broken, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").touch()
    with refused(UsageError, "file"):
        write_exercises(exercises_for(students, kinds="trace"), tmp_path / "file")


def roster(folder: Path, text: str) -> list[Student]:
    file = folder / "class.csv"
    file.write_text(text, encoding="utf-8")
    return read_roster(file)


@pytest.mark.parametrize(("text", "students"), ROWS["rosters"])
def test_files_are_named_by_id_or_email(
    tmp_path: Path, text: str, students: list[tuple[str, str, str]]
) -> None:
    found = roster(tmp_path, text)
    assert [(student.name, student.key, student.file) for student in found] == students
    header, first = text.removeprefix("\ufeff").replace(";", ",").split("\n")[:2]
    assert found[0].columns == tuple(zip(header.split(","), first.split(","), strict=True))


def test_names_of_files_are_transliterated() -> None:
    for text, name in ROWS["names of files"]:
        assert safe_name(text) == name


@pytest.mark.parametrize(("text", "message"), ROWS["invalid rosters"])
def test_invalid_roster_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    with refused(DataError, message):
        roster(tmp_path, text)


def test_numbers_of_equal_names_do_not_depend_on_the_order_of_the_roster(tmp_path: Path) -> None:
    lines = ["Åse", "Ase", "Åsé", "Ase-2"]
    names = [
        {s.name: s.file for s in roster(tmp_path, "name\n" + "\n".join(order))}
        for order in (lines, lines[::-1])
    ]
    assert names[0] == names[1]
    assert len({*names[0].values()}) == 4
    assert names[0]["Ase-2"] == "ase-2"


def test_submissions_are_matched_to_students(tmp_path: Path) -> None:
    students = roster(tmp_path, "name,id,e-mail\nAnn Lee,7,lee@x.org\nBo Lee,8,bo@x.org\n")
    files = {"a": "ann-lee", "b": "8", "c": "lee@x.org", "d": "bo", "e": "lee-2", "f": "Ann LEE"}
    matches = students_by_submission(students, files)
    assert {name: s.key for name, s in matches.items()} == {
        "a": "7", "b": "8", "c": "7", "d": "8", "f": "7",
    }  # fmt: skip
    twins = roster(tmp_path, "name,id\nAnn,1\nÅnn,2\n")
    assert students_by_submission(twins, {"x": "ann", "y": "2"}) == {"y": twins[1]}
