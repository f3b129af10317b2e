"""Sheets: neat numbers, the same from the same seed, no two alike, and no answer in them."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks.sheets.sheet_problems import (
    KINDS,
    Problem,
    Sheet,
    Worksheet,
    read_sheets,
)
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.exercises import documents, problem_generation, simple_numbers
from cgprimer.course.exercises.exercise_sheets import Exercise, exercises_for
from cgprimer.course.exercises.roster import Student, read_roster, safe_name
from cgprimer.course.exercises.sheet_files import EVERYBODY, write_exercises
from cgprimer.errors import CgprimerError, DataError, UsageError
from tests.approval import refused

TEXTS = ("to_markdown", "to_html", "to_latex", "to_notebook")


def looked_at(problem: Problem) -> Worksheet:
    """A problem, after a look whether a student can work it by hand."""
    table = build_worksheet(problem)
    numbers = simple_numbers.list_answers(table)
    graph = cgprimer.parse(problem.graph)
    assert table.blanks
    assert all(abs(v) <= 1e4 and (not v or abs(v) >= 1e-3) for v in numbers), numbers
    if not table.digits:
        assert all(len(f"{abs(v):g}".replace(".", "").lstrip("0")) <= 4 for v in numbers), numbers
    if problem.kind != "picture":
        assert any(numbers)
    assert not simple_numbers.is_at_kink(cgprimer.tape(graph), graph.point(None))
    for blank in table.blanks:
        if blank.form == "array":
            assert blank.value.any()
    return table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("difficulty", [1, 2, 3])
def test_problems_are_neat(kind: str, difficulty: int) -> None:
    for seed in range(2):
        (problem,) = cgprimer.exercise(kinds=kind, seed=seed, difficulty=difficulty).problems
        looked_at(problem)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_seeds_give_no_degenerate_problem(kind: str) -> None:
    for seed in range(1000):
        sheet = cgprimer.exercise(kinds=kind, seed=seed, difficulty=1 + seed % 3)
        looked_at(sheet.problems[0])


def test_a_bound_on_the_norm_does_something() -> None:
    problems = cgprimer.exercise(kinds="optimizer", difficulty=2, seed=5, count=12).problems
    bounded = [problem for problem in problems if problem.asked["rule"] == "max-norm"]
    norms = [{b.row: b.value for b in build_worksheet(problem).blanks}["n"] for problem in bounded]
    assert norms
    assert all(n > p.asked["settings"]["c"] for n, p in zip(norms, bounded, strict=True))


def test_degenerate_problems_are_seen() -> None:
    """The judge of neatness itself."""

    def judged(text: str, kind: str = "trace") -> bool:
        graph = cgprimer.parse(text)
        table = build_worksheet(Problem(kind, text, {"digits": 0}))
        return simple_numbers.is_degenerate(table, cgprimer.tape(graph), graph.point(None))

    assert not judged("input xa = 3; xb = xa*5; xw = xb - xa")
    assert judged("input xa = 3; xb = xa*5; xw = xb - xb"), "the last is 0"
    assert judged("input xa = 0; xb = xa*5; xc = xb*xa; xw = xb + xc + 2"), "0"
    assert judged("input xa = 1; xb = xa/(xa - 1)"), "a division by 0"
    assert judged("input xa = -1; xw = log(xa)")
    assert judged("input xa = 2; xb = xa - 2; xw = relu(xb) + xa"), "a kink"
    assert judged("input xa = 2, xb = 2; xw = max(xa, xb)")
    assert judged("input xa = 1; xb = xa^2; xc = xb*xa; xd = xc*xb; xw = xd*2"), "mostly 1"
    table = build_worksheet(Problem("trace", "input xa = 1.2345; xw = xa^2", {"digits": 0}))
    assert not simple_numbers.is_exact(table, 1)
    table = build_worksheet(Problem("trace", "input xa = 1e-5; xw = xa*1e-9", {"digits": 0}))
    assert not simple_numbers.is_readable(table)


def test_the_same_seed_gives_the_same_sheet_and_another_another() -> None:
    few = ["trace", "adjoint", "mistake"]
    one, again = (cgprimer.exercise(kinds=few, seed=3) for _ in range(2))
    assert one == again
    assert one.identifier == again.identifier
    others = {"seed": 4}, {"seed": 3, "student": "Ann"}, {"seed": 3, "difficulty": 2}
    assert (
        len({one.identifier, *(cgprimer.exercise(kinds=few, **o).identifier for o in others)}) == 4
    )
    alone = cgprimer.exercise(kinds="adjoint", seed=3).problems[0]
    assert alone in one.problems, "other kinds on the sheet change nothing"
    several = cgprimer.exercise(kinds="trace", count=6).problems
    assert len({p.graph for p in several}) == 6


def class_of(many: int) -> list[Student]:
    return [Student(f"Student {k}", str(k), f"student-{k}") for k in range(many)]


def test_everybody_gets_another_sheet() -> None:
    sheets = dict(exercises_for(class_of(8), kinds=["adjoint", "gradient"], seed=1))
    assert len({repr(sheet.problems) for sheet in sheets.values()}) == 8
    later = dict(exercises_for(class_of(9)[::-1], kinds=["adjoint", "gradient"], seed=1))
    assert all(later[student] == sheet for student, sheet in sheets.items())
    lecture = cgprimer.load("lecture")
    own = [s for _, s in exercises_for(class_of(8), lecture, kinds="adjoint", seed=1)]
    assert len({s.problems[0].graph for s in own}) == 8
    assert all("xz = bc*xx + xy" in s.problems[0].graph for s in own)


@pytest.mark.slow
def test_two_hundred_students(tmp_path: Path) -> None:
    many = write_exercises(exercises_for(class_of(200), seed=5), tmp_path, formats=["html"])
    assert many == 200
    sheets = read_sheets(tmp_path / "grader" / "sheets.json").values()
    assert len({repr(sheet.problems) for sheet in sheets}) == 200
    for sheet in sheets:
        for problem in sheet.problems:
            looked_at(problem)


def test_too_few_different_sheets_are_told() -> None:
    graph = cgprimer.parse("xw = xa*xa")
    with refused(UsageError, "only"):
        list(exercises_for(class_of(40), graph, kinds="gradient", seed=1))


@pytest.mark.parametrize(
    ("text", "kinds", "message"),
    [
        ("input x[2]; parameter W[3,2]; xw = sum(W @ x)", "trace", ""),
        ("xw = a*xa", "shapes", ""),
        ("xw = xa^2", "optimizer", ""),
        ("xb = dropout(a*xa, 0.5)", "all", "layers"),
        ("xb = a*xa; xc = a/xa", "trace", ""),
        ("xw = a*xa", "tracing", "'tracing'"),
        ("xw = exp(exp(exp(100*xa + 10*a)))", "adjoint", ""),
    ],
)
def test_what_cannot_be_asked_is_told(
    text: str, kinds: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem_generation, "_TRIES", 50)
    with refused(UsageError, message):
        cgprimer.exercise(cgprimer.parse(text), kinds=kinds)


def test_difficulties_have_names() -> None:
    assert cgprimer.exercise(kinds="trace", difficulty="hard") == cgprimer.exercise(
        kinds="trace", difficulty=3
    )
    with refused(UsageError, "'4'"):
        cgprimer.exercise(difficulty=4)


# --- what students get ---------------------------------------------------------------------------


def with_other_answers(problem: Problem) -> Worksheet:
    """The same question, of which every right value is another one."""
    table = build_worksheet(problem)
    blanks = {
        id(b): replace(b, value="1x9" if isinstance(b.value, str) else b.value * 1.7 + 0.123)
        for b in table.blanks
    }
    rows = tuple(tuple(blanks.get(id(cell), cell) for cell in row) for row in table.rows)
    return replace(table, rows=rows, blanks=tuple(blanks.values()))


@pytest.mark.parametrize("difficulty", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_no_answer_stands_in_what_students_get(
    difficulty: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even in another encoding: their files are the same whatever the answers are."""
    sheet = cgprimer.exercise(seed=2, difficulty=difficulty)
    written = [getattr(sheet, name)() for name in TEXTS] + [sheet.to_csv(), sheet.to_dict()]
    solution = sheet.to_markdown(solution=True)
    monkeypatch.setattr(documents, "build_worksheet", with_other_answers)
    assert [getattr(sheet, n)() for n in TEXTS] + [sheet.to_csv(), sheet.to_dict()] == written
    assert sheet.to_markdown(solution=True) != solution


def test_questions_hold_no_seed_and_survive_a_round_trip(tmp_path: Path) -> None:
    sheet = cgprimer.exercise(seed=987654321, difficulty=2, student="Ann <b> -->")
    for name in TEXTS:
        text = getattr(sheet, name)()
        assert "987654321" not in text
        ending = {"to_markdown": "md", "to_html": "html", "to_latex": "tex"}.get(name, "ipynb")
        file = tmp_path / f"sheet.{ending}"
        file.write_text(text, encoding="utf-8")
        (found,) = read_sheets(file).values()
        assert (found.identifier, found.problems) == (sheet.identifier, sheet.problems)


def test_changed_sheets_are_told(tmp_path: Path) -> None:
    sheet = cgprimer.exercise(kinds="trace")
    file = tmp_path / "sheet.md"
    file.write_text(sheet.to_markdown().replace('"xw"', '"xp"'))
    with refused(DataError):
        read_sheets(file)
    for text in (
        "",
        "# no sheet",
        "<!-- cgprimer-sheet {] -->",
        '<!-- cgprimer-sheet {"a": 1} -->',
    ):
        file.write_text(text)
        with refused(DataError):
            read_sheets(file)
    file = tmp_path / "sheets.json"
    for text in ("", "[]", '{"sheets": [1]}', '{"sheets": []}', "[" * 100_000, "null"):
        file.write_text(text)
        with pytest.raises(DataError):
            read_sheets(file)


HOSTILE = r"\input{/etc/passwd} <script>alert(1)</script> | `x` $a_b$ %"


def test_texts_of_users_stay_texts() -> None:
    sheet = cgprimer.exercise(kinds="gradient", student=HOSTILE, title=HOSTILE)
    page = sheet.to_html()
    assert "<script>alert" not in page
    assert page.count("<script") == 1
    assert r"\input{" not in sheet.to_latex().replace("\\\\input{", "")
    assert "<script>" not in sheet.to_markdown()
    assert json.loads(sheet.to_notebook())["metadata"]["cgprimer"]["student"] == HOSTILE


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdf(tmp_path: Path) -> None:
    sheet = cgprimer.exercise(
        kinds=["optimizer", "paths"], student=HOSTILE + " Zoë 李", difficulty=3
    )
    write_exercises([(EVERYBODY[0], sheet)], tmp_path, formats=["pdf"])
    assert (tmp_path / "students" / "sheet.pdf").read_bytes()[:4] == b"%PDF"


def test_without_pdflatex_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(UsageError, "PDF") as told:
        write_exercises([], tmp_path, formats=["pdf"])
    assert "latex" in told.value.hint


def test_notebooks_are_notebooks() -> None:
    nbformat = pytest.importorskip("nbformat")
    sheet = cgprimer.exercise(kinds=["adjoint", "paths"])
    for solution in (False, True):
        book = nbformat.reads(sheet.to_notebook(solution=solution), as_version=4)
        nbformat.validate(book)
        codes = [cell.source for cell in book.cells if cell.cell_type == "code"]
        assert len(codes) == (0 if solution else 2)
        assert any(cell.get("attachments") for cell in book.cells)
        for source in codes:
            ast.parse(source)


def test_pictures_hold_nothing_but_the_picture() -> None:
    page = cgprimer.exercise(kinds="picture", difficulty=3).to_html()
    picture = re.search(r"<svg.*</svg>", page, re.DOTALL)
    assert picture
    assert "metadata" not in picture[0]
    assert not re.search(r"""(?:href|src)=["'](?!#)""", page), "a page needs nothing beside it"


# --- rosters -------------------------------------------------------------------------------------


def roster(folder: Path, text: str) -> list[Student]:
    file = folder / "class.csv"
    file.write_text(text, encoding="utf-8")
    return read_roster(file)


def test_rosters(tmp_path: Path) -> None:
    found = roster(tmp_path, "\ufeffID;Name;Mail\n7;Zoë O'Neil;z@x\n\n8;Zoë O'Neil;y@x\n")
    cells = (("ID", "7"), ("Name", "Zoë O'Neil"), ("Mail", "z@x"))
    assert found[0] == Student("Zoë O'Neil", "7", "7", cells)
    assert [(s.name, s.key, s.file) for s in found[1:]] == [("Zoë O'Neil", "8", "8")]
    assert roster(tmp_path, "name\n../../etc/passwd\n")[0].file == "etc-passwd"
    assert roster(tmp_path, "id\n李\n")[0] == Student("李", "李", "u674e", (("id", "李"),))
    assert safe_name("NUL") == "nul-"
    assert safe_name("***") == "student"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'name' ... 'id'"),
        ("name,id\n", ""),
        ("group,section\na@b,1\n", "'name' ... 'id'"),
        ("name\nAnn\nBob\nann\n", "4 ... 'ann' ... 2"),
        ("name,id\nAnn,1\nBob,1\n", "3 ... '1' ... 2"),
        ("name,id\nAnn,1\nBob,\n", "3 ... Bob ... id"),
    ],
)
def test_rosters_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    with refused(DataError, message):
        roster(tmp_path, text)


def files_of(folder: Path, text: str) -> list[str]:
    return [student.file for student in roster(folder, text)]


def test_files_go_by_id_or_email_and_else_by_the_transliterated_name(tmp_path: Path) -> None:
    assert files_of(tmp_path, "name,id\nSøren Å,s-17\nПётр,s-18\n") == ["s-17", "s-18"]
    assert files_of(tmp_path, "name,E-Mail\nŁukasz,lu@uni.pl\n") == ["lu-uni-pl"]
    assert files_of(tmp_path, "name,email,id\nA,a@x.y,7\n") == ["7"]
    names = "name\nSøren Kierkegaard\nПётр Щукин\nŁukasz Żak\nΓιώργος\nĐặng\nÞóra\n"
    assert files_of(tmp_path, names) == [
        "soren-kierkegaard", "pyotr-shchukin", "lukasz-zak", "giorgos", "dang", "thora",
    ]  # fmt: skip


def test_equal_names_of_files_do_not_depend_on_the_order_of_the_roster(tmp_path: Path) -> None:
    lines = ["Åse", "Ase", "Åsé", "Ase-2"]
    one = dict(zip(lines, files_of(tmp_path, "name\n" + "\n".join(lines)), strict=True))
    back = files_of(tmp_path, "name\n" + "\n".join(lines[::-1]))
    assert dict(zip(lines[::-1], back, strict=True)) == one
    assert len({*one.values()}) == 4
    assert one["Ase-2"] == "ase-2"


def test_every_sheet_of_a_class_is_worth_the_same(tmp_path: Path) -> None:
    sheets = [s for _, s in exercises_for(class_of(6), kinds=["trace", "paths", "adjoint"])]
    blanks = {len(build_worksheet(p).blanks) for sheet in sheets for p in sheet.problems}
    assert len(blanks) > 2, "the sheets have different numbers of blanks"
    for sheet in sheets:
        result = cgprimer.check_trace(sheet, {})
        assert (result.points, result.possible) == (0, 30)
        assert result.subtotals == {f"problem {k}": (0, 10) for k in (1, 2, 3)}
        assert sheet.to_markdown().count("(10 points)") == 3
    ((_, own),) = exercises_for(class_of(1), kinds="trace", points=None)
    assert cgprimer.check_trace(own, {}).possible == len(build_worksheet(own.problems[0]).blanks)


@pytest.mark.parametrize("points", [0, 1001, 2.5, "a", True])
def test_points_are_integers(points: Any) -> None:
    with pytest.raises(UsageError, match="points"):
        list(exercises_for(class_of(1), kinds="trace", points=points))


@pytest.mark.parametrize("count", [1, 3, 7, 24, 64, 999, 5000])
def test_points_of_blanks_add_up(count: int) -> None:
    shares = Problem("trace", "", {"points": 10}).points_of_blanks(count)
    assert round(sum(shares), 9) == 10
    assert max(shares) - min(shares) < 0.0101
    for wrong in (0, -1, 10**9, 1.5, "7", True):
        with pytest.raises(DataError):
            Problem("trace", "", {"points": wrong}).points_of_blanks(count)


def test_files_of_a_class(tmp_path: Path) -> None:
    students = class_of(2)
    pairs: Iterator[Any] = exercises_for(students, kinds="paths", seed=1)
    write_exercises(pairs, tmp_path / "hw", formats=["markdown", "notebook"])
    names = sorted(str(p.relative_to(tmp_path / "hw")) for p in (tmp_path / "hw").rglob("*.*"))
    assert names == sorted(
        ["grader/sheets.json"]
        + [f"grader/student-{k}-solution{e}" for k in (0, 1) for e in (".md", ".ipynb", "-1.svg")]
        + [f"students/student-{k}{e}" for k in (0, 1) for e in (".md", ".ipynb", ".csv", "-1.svg")]
    )
    broken = exercises_for(students, cgprimer.parse("xw = a*xa"), kinds="shapes")
    with pytest.raises(CgprimerError):
        write_exercises(broken, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_sheet_is_data() -> None:
    sheet = cgprimer.exercise(kinds="trace")
    assert isinstance(sheet, Exercise | Sheet)
    assert repr(sheet) == f"<Sheet {sheet.identifier}: trace>"
    assert set(sheet.to_dict()) == {"format", "sheet", "title", "student", "problems"}


def traced(text: str, seed: int) -> cgprimer.ExpressionGraph:
    """A graph with the numbers that a student is given for its trace."""
    sheet = cgprimer.exercise(cgprimer.parse(text), kinds="trace", seed=seed, difficulty=3)
    return cgprimer.parse(sheet.problems[0].graph)


def test_no_maximum_of_equal_numbers_is_asked_for() -> None:
    for seed in range(40):
        graph = traced("xb = a*xa; xc = max(xb, b); xw = xc + a", seed)
        assert graph.evaluate()["xb"] != graph.values["b"], seed


@pytest.mark.parametrize(
    "text",
    [
        "xb = 2*xa; xc = xb + a; xd = xc - xa; xw = xd + b",  # 0 at its end
        "xb = xa + a; xc = xb + b; xd = xc*a; xe = xd + xb; xw = xe + a",  # 0 before its end
    ],
)
def test_most_numbers_of_a_trace_are_not_zero(text: str) -> None:
    for seed in range(150):
        graph = traced(text, seed)
        values = [graph.evaluate()[name] for name in graph.definitions]
        assert values[-1] != 0
        assert 3 * values.count(0.0) <= len(values), seed
