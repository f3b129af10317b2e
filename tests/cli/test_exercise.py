"""``cgprimer exercise`` and ``cgprimer check trace``, as lecturers and graders call them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import bad, good, run

ROSTER = "name,id\nAda Lovelace,1\nCarl Friedrich Gauß,2\n"


def test_from_a_roster_to_points(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text(ROSTER, encoding="utf-8")
    make = ("exercise", "lecture", "--kind", "adjoint", "--kind", "gradient", "--students",
            "class.csv", "--format", "markdown", "--format", "html", "-o", "hw")  # fmt: skip
    done = run(*make, cwd=tmp_path)
    approved(done.stderr, "2 ... hw/students")
    answers = tmp_path / "answers"
    answers.mkdir()
    solution = tmp_path / "hw" / "grader" / "1-solution.md"
    (answers / "ada.md").write_bytes(solution.read_bytes())
    empty = (tmp_path / "hw" / "students" / "2.csv").read_text()
    (answers / "carl.csv").write_text(empty.replace("adjoint,\n", "adjoint,1\n", 1))
    table = good("check", "trace", "hw/grader/sheets.json", "answers", cwd=tmp_path)
    rows = {line.split()[0]: line.split()[1:3] for line in table.splitlines()[2:4]}
    assert rows["ada.md"][0] == rows["ada.md"][1]
    assert float(rows["carl.csv"][0]) < float(rows["carl.csv"][1]) == float(rows["ada.md"][1])
    again = run("check", "trace", "hw/grader/sheets.json", "answers", cwd=tmp_path)
    approved(again.stderr, "2")
    one = good("check", "trace", "hw/students/1.html", "answers/ada.md", "--json", cwd=tmp_path)
    found = json.loads(one)
    assert found["points"] == found["possible"] == 20, "ten points for each of two problems"
    approved(bad(*make, cwd=tmp_path), "hw")
    assert run(*make, "--force", cwd=tmp_path).returncode == 0


def test_the_table_and_the_page_of_a_class(tmp_path: Path) -> None:
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
    rows = {row["submission"]: row for row in csv.DictReader(io.StringIO(table))}
    assert rows["soren.md"]["Student ID"] == "s1"
    assert rows["soren.md"]["Section"] == "'=1+1", "no formula for a spreadsheet"
    assert rows["s2.csv"]["Name"] == "Пётр"
    assert [rows[n]["possible"] for n in ("soren.md", "s2.csv", "zoe.csv")] == ["20", "20", "20"]
    assert rows["soren.md"]["percent"] == "100.0"
    assert (rows["soren.md"]["problem 1"], rows["s2.csv"]["problem 2"]) == ("10", "0")
    page = (tmp_path / "answers.html").read_text(encoding="utf-8")
    assert "100 %" in page
    assert "10 of 10" in page
    assert 'id="wrong"' in page


def test_only_what_is_wrong_is_shown(tmp_path: Path) -> None:
    good("exercise", "--kind", "trace", "--kind", "adjoint", "-o", "hw", cwd=tmp_path)
    solution = (tmp_path / "hw" / "grader" / "sheet-solution.md").read_text(encoding="utf-8")
    (tmp_path / "a.md").write_text(solution, encoding="utf-8")
    sheet = "hw/grader/sheets.json"
    assert "right" not in good("check", "trace", sheet, "a.md", "--only-wrong", cwd=tmp_path)
    shown = good("check", "trace", sheet, "a.md", cwd=tmp_path)
    assert "problem 1: " in shown
    assert "right" in shown


def test_another_sheet_is_one_line(tmp_path: Path) -> None:
    for seed in (1, 2):
        run("exercise", "--kind", "trace", "--seed", seed, "-o", f"s{seed}", cwd=tmp_path)
    said = run("check", "trace", "s1/grader/sheets.json", "s2/students/sheet.csv", cwd=tmp_path)
    assert "broken answers: sheet.csv contains answers to sheet" in said.stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("exercise --students class.csv", "class.csv"),
        ("exercise --students none.csv", "none.csv"),
        ("exercise nosuch", "nosuch"),
        ("exercise lecture --kind tracing", "'tracing'"),
        ("exercise lecture --kind shapes", ""),
        ("exercise lecture --of xq", "'xq'"),
        ("exercise --difficulty 4", "'4'"),
        ("exercise -o class.csv", "class.csv"),
        ("check trace class.csv class.csv", "class.csv"),
        ("check trace none.json class.csv", "none.json"),
        ("check trace", "'SHEET'"),
    ],
)
def test_mistakes_are_one_line(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("name,id\n")
    approved(bad(*line.split(), cwd=tmp_path), message)
    assert [p.name for p in tmp_path.iterdir()] == ["class.csv"]
