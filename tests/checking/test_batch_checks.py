"""Folders of submissions, journals, and what courses are given, with a kind made for tests."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import types
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from cgprimer.course.checks import batch_checks
from cgprimer.course.checks.batch_checks import check_all
from cgprimer.course.checks.check_results import LEVELS, Failure, Part, Result, create_failed_result
from cgprimer.course.checks.class_page import render_class_page
from cgprimer.course.checks.result_files import convert_to_gradescope, format_csv, format_junit_xml
from cgprimer.course.checks.result_journal import ResultJournal
from cgprimer.course.checks.sandbox import Limits, MachineError
from cgprimer.course.checks.submission_search import find_submissions
from cgprimer.errors import DataError, UsageError
from tests.approval import approved, refused
from tests.checking import halves
from tests.checking.halves import BROKEN, LOOP, ONE, PARTS, RIGHT, SIGN, check_half_here, half_check
from tests.checking.submissions import define_names, read_tables
from tests.cli.cli_tools import bad, good, read_json, run

CLASS = {"ann": RIGHT, "bob": SIGN, "cyd": ONE, "dan": BROKEN, "eve": SIGN}
HOSTILE = '<script>alert("x")</script>&'


def write_class(folder: Path) -> Path:
    """Write a class of five into a new folder."""
    folder.mkdir()
    for name, text in CLASS.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class of five, and a file that the command is about."""
    (tmp_path / "notes.txt").write_text("halves")
    return write_class(tmp_path / "class")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """Of the same class."""
    folder = write_class(tmp_path_factory.mktemp("results") / "class")
    return [check_half_here(file) for file in sorted(folder.iterdir())]


@pytest.fixture(autouse=True)
def half_is_a_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a kind of check to the command; it runs in this process except in marked tests."""
    if not request.node.get_closest_marker("usefixtures"):
        monkeypatch.setattr(halves, "check_half", halves.check_half_here)
    import cgprimer.cli.check_command as group

    monkeypatch.setitem(group._KINDS, "half", "Halves.")
    monkeypatch.setitem(group.command.commands.data, "half", lambda: halves.command)  # type: ignore[attr-defined]


def test_one_submission_reads_like_a_report(folder: Path) -> None:
    for name in ("bob.py", "dan.py"):
        approved(good("check", "half", folder.parent / "notes.txt", folder / name), "0 of 3 points")


def test_levels_of_feedback_say_less_and_less(folder: Path, results: list[Result]) -> None:
    what = ("check", "half", folder.parent / "notes.txt", folder / "bob.py", "--feedback")
    assert good(*what, "points") == "bob.py: 0 of 3 points\n"
    assert "sign" not in json.dumps(read_json(*what, "part"))
    bob, cyd = results[1:3]
    assert "sign" in str(bob.at("mistake"))
    assert "sign" not in str(bob.at("part"))
    assert "small  wrong" in str(bob.at("part"))
    assert str(bob.at("points")) == bob.at("points").only_wrong() == "bob.py: 0 of 3 points"
    assert repr(bob) == "<Result bob.py: 0 of 3 points>"
    assert [(cyd.at(level).points, cyd.at(level).possible) for level in LEVELS] == [(1, 3)] * 3


def test_a_result_is_read_back_as_it_was(results: list[Result]) -> None:
    for result in results:
        assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_a_folder_gives_a_table_a_page_and_a_journal(folder: Path) -> None:
    here = folder.parent
    done = run("check", "half", "notes.txt", "class", "--jobs", 2, cwd=here)
    assert done.returncode == 0, done.stderr
    assert "2 x sign" in done.stdout
    assert "1 x syntax error" in done.stdout
    approved(done.stderr, "eve.py ... bob.py")
    rows = list(csv.DictReader(io.StringIO((here / "class.csv").read_text())))
    columns = ("submission", "points", "mistakes", "failure", "same as")
    assert [tuple(row[column] for column in columns) for row in rows] == [
        ("ann.py", "3", "", "", ""),
        ("bob.py", "0", "sign", "", ""),
        ("cyd.py", "1", "", "", ""),
        ("dan.py", "0", "syntax error", "syntax error: expected ':'", ""),
        ("eve.py", "0", "sign", "", "bob.py"),
    ]
    page = (here / "class.html").read_text()
    assert "<title>half: class</title>" in page
    assert "<bdi>bob</bdi>, <bdi>eve</bdi>" in page  # names may be written from right to left
    again = run("check", "half", "notes.txt", "class", cwd=here)
    assert again.returncode == 0, again.stderr
    approved(again.stderr, "5")
    assert again.stdout == done.stdout


def test_what_changes_is_checked_again(folder: Path) -> None:
    def reused(kind: batch_checks.Check | None = None, **settings: Any) -> int:
        journal = ResultJournal(folder.parent / "journal")
        return check(folder, kind, journal=journal, **settings).reused

    assert (reused(), reused()) == (0, 5)
    (folder / "ann.py").write_text(RIGHT + "# again\n")
    assert (reused(), reused()) == (4, 5)
    assert reused(half_check("another")) == 0
    assert reused(limits=Limits(time=1)) == 0


@pytest.mark.usefixtures("folder")  # in the sandbox
@pytest.mark.slow
def test_one_loop_among_many_costs_only_itself(folder: Path) -> None:
    (folder / "bob.py").write_text(LOOP)
    results = check(folder, limits=Limits(time=1), jobs=2).results
    assert [result.points for result in results] == [3, 0, 1, 0, 0]
    assert results[1].mistakes == ("out of time",)
    approved(str(results[1].failure), "1 s")


def test_an_interrupted_run_gives_what_it_has_and_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, check_right = folder.parent, halves.check_half

    def interrupt(submission: Any, limits: Limits) -> Result:
        if Path(submission).name == "dan.py":  # the last one, since eve's is bob's
            raise KeyboardInterrupt
        return check_right(submission, limits)

    monkeypatch.setattr(halves, "check_half", interrupt)
    done = run("check", "half", "notes.txt", "class", cwd=here)
    assert done.returncode == 130, done.stderr
    approved(done.stderr, "4 of 5")
    assert "ann.py" in done.stdout
    assert (here / "class.csv").read_text().count("\n") == 5
    monkeypatch.setattr(halves, "check_half", check_right)
    done = run("check", "half", "notes.txt", "class", cwd=here)
    assert done.returncode == 0, done.stderr
    approved(done.stderr, "4")
    assert (here / "class.csv").read_text().count("\n") == 6


def test_nothing_is_written_over_that_is_not_ours(folder: Path) -> None:
    here = folder.parent
    (here / "class.csv").write_text("mine")
    said = bad("check", "half", "notes.txt", "class", cwd=here)
    approved(said, "class.csv")
    assert (here / "class.csv").read_text() == "mine"
    good("check", "half", "notes.txt", "class", "--force", cwd=here)
    good("check", "half", "notes.txt", "class", cwd=here)  # now it is ours
    (here / "class.journal").write_text('{"results": 1}')
    approved(bad("check", "half", "notes.txt", "class", cwd=here))
    good("check", "half", "notes.txt", "class", "--fresh", "--force", cwd=here)


def test_folders_of_students_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    handed = tmp_path / "class"
    for name in ("ann", "bob", "dan", "eve"):
        (handed / name).mkdir(parents=True)
        (handed / name / "homework.py").write_text(RIGHT)
    (handed / ".hidden").mkdir()
    (handed / "cyd.py").write_text(SIGN)
    (handed / "Ann.py").write_text(ONE)
    (handed / "bob" / "second.py").write_text(RIGHT)  # which one is it?
    (handed / "dan" / "half.py").write_text(ONE)  # the name of the check
    (handed / "eve" / "homework.py").rename(handed / "eve" / "homework.txt")
    (tmp_path / "notes.txt").write_text("")
    done = run("check", "half", "notes.txt", "class", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    approved(done.stderr, "ann ... 2 ... Ann.py")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "class.csv").read_text())))
    points = {row["submission"]: row["points"] for row in rows}
    assert points == {"Ann.py": "1", "ann": "3", "bob": "0", "cyd.py": "0", "dan": "1", "eve": "0"}
    failures = {row["submission"]: row["failure"] for row in rows}
    assert "the folder contains several submissions: homework.py, second.py" in failures["bob"]
    assert "the folder contains no submission" in failures["eve"]
    for paths in ([handed / ".hidden"], [handed / "nosuch.py"], []):
        with refused(UsageError):
            find_submissions(paths)
    twice = find_submissions([handed / "cyd.py", handed])
    assert len(twice) == len(find_submissions([handed])) + 1  # by its path, too


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_links_pipes_and_large_files_are_refused(folder: Path) -> None:
    solutions = folder.parent / "solutions"
    solutions.mkdir()
    (solutions / "half.py").write_text(RIGHT)
    for name in ("bob", "cyd", "eve"):
        (folder / f"{name}.py").unlink()
    (folder / "bob.py").symlink_to(solutions / "half.py")
    os.mkfifo(folder / "cyd.py")
    (folder / "eve.py").write_bytes(b"#" * 11_000_000)
    (folder / "fay.py").symlink_to("nosuch.py")
    (folder / "gus.py").symlink_to("gus.py")
    (folder / "hal").symlink_to(solutions)
    (folder / "ida").mkdir()
    (folder / "ida" / "half.py").symlink_to(solutions / "half.py")
    failures = {r.submission: str(r.failure) for r in check(folder).results}
    for name in ("bob.py", "fay.py", "gus.py", "hal", "ida"):
        assert "the submission is a symbolic link" in failures[name]
    assert "the submission is not a readable file" in failures["cyd.py"]
    assert "exceeds 1,000,000 bytes" in failures["eve.py"]
    named = check(folder / "bob.py")
    assert [(r.submission, r.points) for r in named.results] == [("bob.py", 3)]  # it was asked for


def check(folder: Path, kind: batch_checks.Check | None = None, **settings: Any) -> Any:
    """Check the submissions of a folder."""
    limits = settings.pop("limits", Limits())
    return check_all(kind or half_check(), find_submissions([folder]), limits, **settings)


def raising(error: BaseException, at: str = "bob.py") -> batch_checks.Check:
    def run(submission: Any, limits: Limits) -> Result:
        if Path(submission).name == at:
            raise error
        return halves.check_half(submission, limits)

    return batch_checks.Check("half", "", run, parts=PARTS)


@pytest.mark.parametrize(
    ("error", "reused"),
    [(DataError("an answer is its own parent"), 5), (ZeroDivisionError("ours"), 3)],
)
def test_an_error_about_one_submission_is_its_result(
    error: Exception, reused: int, folder: Path
) -> None:
    """A defect of the grader is not stored: the submission, and its copy, are checked again."""
    journal = folder.parent / "journal"
    results = check(folder, raising(error), journal=ResultJournal(journal)).results
    assert [result.points for result in results] == [3, 0, 1, 0, 0]
    assert results[1].possible == 3
    approved(str(results[1].failure))
    assert check(folder, journal=ResultJournal(journal)).reused == reused


@pytest.mark.parametrize("error", [MachineError("no processes"), OSError(28, "No space left")])
def test_an_error_of_the_machine_ends_the_run_and_keeps_results(
    error: Exception, folder: Path
) -> None:
    (folder / "eve.py").write_text(RIGHT + "# eve\n")
    journal = ResultJournal(folder.parent / "journal")
    with pytest.raises(MachineError):
        check_all(raising(error, "eve.py"), find_submissions([folder]), Limits(), journal=journal)
    assert len(ResultJournal(folder.parent / "journal").results) == 4


def test_texts_in_results_are_bounded_and_can_be_written(folder: Path) -> None:
    def run(submission: Any, limits: Limits) -> Result:
        odd = "\ud800\x1b" + "x" * 10**6
        part = Part("small", 1, 0, "wrong", odd, odd, (odd,) * 1000)
        return Result("half", "", (part,), odd, 0, Failure("answers", odd, odd), (odd,))

    kind = batch_checks.Check("half", "", run, parts=PARTS)
    found = check(folder, kind, journal=ResultJournal(folder.parent / "journal")).results
    assert len(json.dumps(found[0].to_dict())) < 2_000_000
    texts = format_csv(found), render_class_page(found, ""), format_junit_xml(found), str(found[0])
    assert all(text.encode() for text in texts)
    stored = ResultJournal(folder.parent / "journal").results
    assert next(iter(stored.values())).parts == found[0].parts


def test_a_folder_and_a_file_are_never_the_same_submission(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "list.py").write_text("[]")
    (folder / "list.ipynb").write_text("[]")
    assert check(folder).same.keys() == {"eve.py"}


def hostile() -> Result:
    parts = (
        Part("=1+1", 1, 1, "right"),
        Part(HOSTILE, 2, 0, "wrong", HOSTILE, HOSTILE, (HOSTILE,)),
        Part("c", 1, 0.5, "suspicious", "", "why"),
    )
    failure = Failure("exception", HOSTILE + "\x00\x1b", HOSTILE)
    return Result("half", f"={HOSTILE}.py", parts, HOSTILE + "\x07", 0.5, failure)


@pytest.mark.parametrize(("points", "text"), read_tables("tables.txt")["medians"])
def test_the_median_of_a_class(points: str, text: str) -> None:
    rows = [map(int, row.split("/")) for row in points.split()]
    parts = [(Part("all", most, one, "wrong"),) for one, most in rows]
    results = [Result("half", f"{k}.py", part) for k, part in enumerate(parts)]
    assert text in render_class_page(results, "Homework")


def test_a_failure_has_no_points() -> None:
    result = create_failed_result("half", "ann.py", {}, Failure("time", "over 5 s"))
    page = render_class_page([result], "Homework")
    assert result.percent == 0
    assert "; 0 with all points." in page
    assert "100 %" not in page
    result = create_failed_result("half", "ann.py", PARTS, Failure("time", "over 5 s"))
    assert (result.points, result.possible, result.mistakes) == (0, 3, ("out of time",))
    assert "out of time: over 5 s" in str(result)
    with pytest.raises(AssertionError, match="out of time: over 5 s"):
        result.require("small")
    with refused(UsageError, "'small'"):
        result.require("smal")


def test_text_from_outside_is_escaped_wherever_it_goes() -> None:
    page = render_class_page([hostile()], HOSTILE)
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") > 5
    row = list(csv.reader(io.StringIO(format_csv([hostile()]))))
    assert row[1][0].startswith("'=<script>")
    assert row[0][3] == "'=1+1"
    root = xml.fromstring(format_junit_xml([hostile()]))
    assert HOSTILE in (root.findtext(".//failure") or "")
    assert not {"\x00", "\x07", "\x1b"} & {*str(hostile()), *format_csv([hostile()])}
    gradescope = convert_to_gradescope(hostile())
    assert "<script>" in json.dumps(gradescope)
    assert gradescope["output_format"] == "text"


def test_junit_has_the_structure_that_servers_read(results: list[Result]) -> None:
    untimed = [replace(result, seconds=0.5) for result in results]
    approved(format_junit_xml(untimed))
    only = xml.fromstring(format_junit_xml([results[1].at("points")]))
    assert [case.get("name") for case in only.iter("testcase")] == ["half"]
    assert "sign" not in xml.tostring(only, encoding="unicode")


@pytest.mark.skipif(os.name != "posix", reason="names that files may have there")
def test_no_name_loses_a_result_or_forges_a_line(folder: Path) -> None:
    for name in ("a\x07.py", "a\x08.py", "a\x1b.py", "b\n  b  3\nc.py", "ann.ipynb"):
        (folder / name).write_text(f"# {name!r}\n{RIGHT}" if name != "ann.ipynb" else "{}")
    said = good("check", "half", "notes.txt", "class", "--gradescope", "all", cwd=folder.parent)
    rows = csv.reader(io.StringIO((folder.parent / "class.csv").read_text(), newline=""))
    names = [row[0] for row in rows][1:]
    assert len(names) == len(set(names)) == len(CLASS) + 5
    assert all(line.split()[-1] != "3" for line in said.splitlines() if line.startswith("  b"))
    kept = {json.loads(file.read_text())["score"] for file in (folder.parent / "all").glob("ann*")}
    assert len(list((folder.parent / "all").iterdir())) == len(CLASS) + 5
    assert kept == {3, 0}


def test_gradescope_of_one_and_of_many(folder: Path, results: list[Result]) -> None:
    here = folder.parent
    for result in results[1:4]:  # as documented at gradescope-autograders.readthedocs.io
        approved(json.dumps(convert_to_gradescope(replace(result, seconds=0.5)), indent=1))
    for name in ("ann", "eve"):
        (folder / f"{name}.py").unlink()
    good("check", "half", "notes.txt", "class/cyd.py", "--gradescope", "results.json", cwd=here)
    data = json.loads((here / "results.json").read_text())
    assert (data["score"], data["stdout_visibility"]) == (1, "hidden")
    good("check", "half", "notes.txt", "class", "--gradescope", "all", cwd=here)
    assert sorted(f.name for f in (here / "all").iterdir()) == ["bob.json", "cyd.json", "dan.json"]
    level = ("--feedback", "points", "--gradescope", "less.json")
    good("check", "half", "notes.txt", "class/bob.py", *level, cwd=here)
    assert "sign" not in (here / "less.json").read_text()


def grade(root: Path) -> Any:
    """Return what ``run_autograder`` leaves behind, with cgprimer from the wheel in the archive."""
    paths = os.pathsep.join([str(root / "package"), str(Path(__file__).resolve().parents[2])])
    variables = {"AUTOGRADER": str(root), "PYTHON": sys.executable, "PYTHONPATH": paths}
    done = subprocess.run(
        ["bash", str(root / "source" / "run_autograder")],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads((root / "results" / "results.json").read_text())


@pytest.mark.slow
def test_the_autograder_grades(folder: Path) -> None:
    here, root = folder.parent, folder.parent / "autograder"
    (here / "my notes.txt").write_text("halves")
    options = ("--strictly", "--time", "2", "--autograder", "auto.zip")
    good("check", "half", "my notes.txt", "class/ann.py", *options, cwd=here)
    for name in ("submission", "results"):
        (root / name).mkdir(parents=True)
    with zipfile.ZipFile(here / "auto.zip") as archive:
        archive.extractall(root / "source")
        modes = {i.filename: i.external_attr >> 16 for i in archive.infolist()}
    assert modes["run_autograder"] & modes["setup.sh"] & 0o111
    wheel, package = next((root / "source").glob("cgprimer-*.whl")), str(root / "package")
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", package]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    with open(root / "package/cgprimer/cli/check_command.py", "a") as file:  # the kind of tests
        file.write("\n_KINDS['half'] = 'Halves.'\n")
        file.write("def _half(): import tests.checking.halves as h; return h.command\n")
        file.write("command.commands.data['half'] = _half\n")
    line = (root / "source" / "run_autograder").read_text()
    assert "cgprimer check half 'files/my notes.txt' --strictly --time 2 --force" in line
    submission = root / "submission" / "anything.py"
    for text, score in ((RIGHT, 3), (ONE, 1)):
        submission.write_text(text)
        assert grade(root)["score"] == score
    submission.rename(submission.with_name("second.py")).with_name("first.py").write_text(RIGHT)
    data = grade(root)
    assert data["score"] == 0
    assert all(words in data["output"] for words in ("first.py", "second.py", "half.py"))
    for file_left in submission.parent.iterdir():
        file_left.unlink()
    data = grade(root)  # nothing was handed in
    assert data["score"] == 0
    assert "expected a file ending in .py or .ipynb" in data["output"]
    assert [test["max_score"] for test in data["tests"]] == [1, 2]
    (root / "source" / "files" / "my notes.txt").unlink()
    submission.write_text(RIGHT)
    data = grade(root)
    assert data["score"] == 0
    assert "tell your instructor" in data["output"]


class OtterCase:
    """What Otter's decorator keeps, by its documentation."""

    def __init__(self, name: str | None = None, points: float | None = None, **_: Any) -> None:
        self.name, self.points = name, points

    def __call__(self, function: Any) -> OtterCase:
        self.function = function
        return self


def test_otter_reads_and_runs_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = folder.parent
    good("check", "half", "notes.txt", "--otter", "half.py", "--feedback", "part", cwd=here)
    text = (here / "half.py").read_text()
    assert "OK_FORMAT = False" in text
    assert not re.search("1.5|2000", text)
    files = types.ModuleType("otter.test_files")
    files.test_case = OtterCase  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    monkeypatch.setitem(sys.modules, "otter.test_files", files)
    made: dict[str, Any] = {}
    exec(text, made)  # noqa: S102  as Otter does
    cases = [value for value in made.values() if isinstance(value, OtterCase)]
    assert made["points"] == sum(case.points or 0 for case in cases) == 3
    assert [case.name for case in cases] == ["small", "large"]
    cases[0].function(define_names(ONE))
    with pytest.raises(AssertionError, match=r"^wrong$"):
        cases[1].function(define_names(ONE))


def test_nbgrader_cells_grade_a_notebook(folder: Path) -> None:
    here = folder.parent
    good("check", "half", "notes.txt", "--nbgrader", "half.ipynb", cwd=here)
    cells = json.loads((here / "half.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    assert sources[0].startswith("def half(x):")
    assert sources[0].endswith("### BEGIN SOLUTION\n### END SOLUTION")
    about = [cell["metadata"]["nbgrader"] for cell in cells]
    keys = {"schema_version", "grade", "locked", "solution", "task", "grade_id"}
    for entry in about:
        assert entry.keys() == keys | ({"points"} if entry["grade"] else set())
        assert entry["schema_version"] == 3
        assert re.fullmatch("[a-z0-9_-]+", entry["grade_id"])
        assert entry["locked"] or entry["solution"]
    assert len({entry["grade_id"] for entry in about}) == len(about)
    assert [entry["points"] for entry in about if entry["grade"]] == [1, 2]
    names = define_names(ONE)
    exec(sources[1], names)  # noqa: S102
    assert eval(sources[2], names) == 1  # noqa: S307
    with pytest.raises(AssertionError, match="it is not half of it"):
        eval(sources[3], names)  # noqa: S307


def test_the_skeleton_is_no_error_and_wrong_use_is_one(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    text = good("check", "half", "notes.txt", "--skeleton", cwd=tmp_path)
    (tmp_path / "half.py").write_text(text)
    assert "half.py: 0 of 3" in good("check", "half", "notes.txt", "half.py", cwd=tmp_path)
    approved(bad("check", "half", "notes.txt", cwd=tmp_path))
    approved(bad("check", "half", "notes.txt", "x.py", cwd=tmp_path), "x.py")
    assert "half" in bad("check", "hafl", cwd=tmp_path)
    for option, value in (("--time", "inf"), ("--processes", "-1")):
        assert option in bad("check", "half", "notes.txt", "x.py", option, value, cwd=tmp_path)
