"""``cgprimer exercise`` and ``cgprimer check trace``, as lecturers and graders call them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.approval import approved
from tests.cli.cli_tools import bad, good, run

ROSTER = "name,id\nAda Lovelace,1\nCarl Friedrich Gauß,2\n"


def test_a_class_gets_sheets_and_points(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text(ROSTER, encoding="utf-8")
    line = ("exercise", "lecture", "--kind", "adjoint", "--kind", "gradient", "--students",
            "class.csv", "--format", "markdown", "--format", "html", "-o", "hw")  # fmt: skip
    approved(run(*line, cwd=tmp_path).stderr, "2 ... hw/students")
    answers = tmp_path / "answers"
    answers.mkdir()
    solution = tmp_path / "hw" / "grader" / "1-solution.md"
    (answers / "ada.md").write_bytes(solution.read_bytes())
    form = (tmp_path / "hw" / "students" / "2.csv").read_text()
    (answers / "carl.csv").write_text(form.replace("adjoint,\n", "adjoint,1\n", 1))
    table = good("check", "trace", "hw/grader/sheets.json", "answers", cwd=tmp_path)
    approved(table, "ada.md ... carl.csv")
    one = ("check", "trace", "hw/students/1.html", "answers/ada.md")
    found = json.loads(good(*one, "--json", cwd=tmp_path))
    assert found["points"] == found["possible"] == 20  # ten points for each problem
    assert "right" in good(*one, cwd=tmp_path)
    assert "right" not in good(*one, "--only-wrong", cwd=tmp_path)
    approved(bad(*line, cwd=tmp_path), "hw")
    good(*line, "--force", cwd=tmp_path)


def test_the_table_and_the_page_of_a_class_have_the_columns_of_the_roster(tmp_path: Path) -> None:
    roster = (
        "Name,Student ID,E-Mail,Section\nSøren Å,s1,soren@x.y,=1+1\nПётр,s2,p@x.y,B\nEve,s3,,B\n"
    )
    (tmp_path / "class.csv").write_text(roster, encoding="utf-8")
    good("exercise", "--kind", "trace", "--kind", "adjoint", "--students", "class.csv",
         "-o", "hw", cwd=tmp_path)  # fmt: skip
    answers = tmp_path / "answers"
    answers.mkdir()
    right = (tmp_path / "hw" / "grader" / "s1-solution.md").read_bytes()
    (answers / "soren.md").write_bytes(right)
    (answers / "s2.csv").write_bytes((tmp_path / "hw" / "students" / "s2.csv").read_bytes())
    (answers / "zoe.csv").write_text("no form")
    arguments = ("check", "trace", "hw/grader/sheets.json", "answers", "--students", "class.csv")
    done = run(*arguments, "--only-wrong", cwd=tmp_path)
    assert "soren.md" not in done.stdout.partition("\n\n")[0]
    assert "s2.csv" in done.stdout
    approved(done.stderr, "zoe.csv")
    approved(done.stderr, "Eve")
    table = (tmp_path / "answers.csv").read_text(encoding="utf-8")
    table = re.sub(r"\d\.\d\d(?=,[^,]*,\d+\.\d,)", "SECONDS", table)
    approved(table, "s1 ... '=1+1 ... Пётр")  # no formula for a spreadsheet
    page = (tmp_path / "answers.html").read_text(encoding="utf-8")
    assert "100 %" in page
    assert "10 of 10" in page
    assert 'id="wrong"' in page


def test_answers_to_another_sheet_are_refused(tmp_path: Path) -> None:
    for seed in (1, 2):
        good("exercise", "--kind", "trace", "--seed", seed, "-o", f"s{seed}", cwd=tmp_path)
    process = run("check", "trace", "s1/grader/sheets.json", "s2/students/sheet.csv", cwd=tmp_path)
    assert "broken answers: sheet.csv contains answers to sheet" in process.stdout


def test_gradescope_gets_the_file_with_the_name_of_the_check(tmp_path: Path) -> None:
    for name, text in (("gradient", "xa"), ("first", "2*xa"), ("second", "3*xa")):
        (tmp_path / f"{name}.py").write_text(f"def gradient(xa, k): return {text}\n")
    (tmp_path / "g.cg").write_text("xw = k*xa")
    line = ("check", "gradient", "g.cg", "--wrt", "k", "--gradescope", "r.json")
    run(*line, "first.py", "gradient.py", cwd=tmp_path)
    result = json.loads((tmp_path / "r.json").read_text())
    assert [part["status"] for part in result["tests"]] == ["passed"]
    approved(bad(*line, "first.py", "second.py", "--force", cwd=tmp_path), "r.json")
    assert "gradient.py" in (tmp_path / "r.json").read_text()


def test_questions_for_course_systems_are_only_in_the_folder_of_the_grader(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text(ROSTER, encoding="utf-8")
    line = ("exercise", "lecture", "--kind", "gradient", "--students", "class.csv", "--seed", "3",
            "--format", "qti", "--format", "moodle", "-o", "quiz")  # fmt: skip
    approved(run(*line, cwd=tmp_path).stderr, "quiz/grader/qti.zip ... moodle.xml")
    files = {path.name: path.read_bytes() for path in (tmp_path / "quiz").rglob("*.*")}
    assert files.keys() == {"moodle.xml", "qti.zip", "sheets.json"}
    assert b"gradient 002" in files["moodle.xml"]
    assert b"Lovelace" not in files["moodle.xml"]
    approved(bad(*line, cwd=tmp_path), "quiz")
    good(*line, "--format", "html", "--force", cwd=tmp_path)
    assert {f.name for f in (tmp_path / "quiz" / "students").iterdir()} == {
        "1.csv", "1.html", "2.csv", "2.html",
    }  # fmt: skip
    for name in ("moodle.xml", "qti.zip"):
        assert (tmp_path / "quiz" / "grader" / name).read_bytes() == files[name]
