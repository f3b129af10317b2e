"""Results on standard output, messages on standard error, JSON with stable keys."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, LECTURE, bad, good, read_json, run

LECTURE_TEXT = LECTURE.read_text()
METHODS = cgprimer.methods()


def test_grad_from_file_expression_and_standard_input() -> None:
    expected = [
        "xw = 21.546875",
        "d xw / d ab = 5.671875",
        "d xw / d bc = 5.671875",
        "d xw / d cd = 0.25",
        "d xw / d ac = 11.34375",
    ]
    for done in (
        run("grad", LECTURE),
        run("grad", "-e", LECTURE_TEXT),
        run("grad", "-", stdin=LECTURE_TEXT),
    ):
        assert done.returncode == 0
        assert done.stdout.splitlines() == expected
        assert done.stderr == ""


PARABOLOID = "f = 2*x^2 + 3*y^2"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((PARABOLOID, "--at", "x=4,y=5"), ["x is an input", "y a parameter", "--wrt x,y"]),
        ((PARABOLOID, "--at", "x=4,y=5", "--json"), ["x is an input", "--wrt x,y"]),
        ((f"{PARABOLOID}*z", "--at", "x=4,y=5,z=1"), ["y, z parameters", "--wrt x,y,z", "all"]),
        (("f = sum(x)*x1*y; input x[2] = 1", "--at", "x[0]=4,x1=1,y=5"), ["--wrt x1,y"]),
        ((PARABOLOID, "--at", "x=4,y=5", "--wrt", "y"), []),
        ((f"{PARABOLOID}; parameter y = 5", "--at", "x=4"), []),
        ((f"{PARABOLOID}; input x; parameter y", "--at", "x=4,y=5"), []),
        (("f = 2*x^2 + 3*x1", "--at", "x=4,x1=5"), []),
        ((LECTURE_TEXT, "--at", "xa=4,ab=5"), []),
    ],
)
def test_grad_notes_names_whose_letter_made_one_an_input(
    words: tuple[str, ...], expected: list[str]
) -> None:
    done = run("grad", "-e", *words)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == bool(expected)
    assert all(part in done.stderr for part in expected)


@pytest.mark.parametrize("method", METHODS)
def test_grad_json(method: str) -> None:
    found = read_json("grad", LECTURE, "--method", method, "--at", "xa=-0.5", "--wrt", "xa,ab")
    assert list(found) == ["method", "values", "gradient"]
    assert found["method"] == method
    assert found["values"] == {"xw": -1.203125}
    assert found["gradient"]["xw"] == pytest.approx({"xa": 1.6875, "ab": 1.171875}, rel=1e-9)


def test_grad_of_several_outputs() -> None:
    text = "xb = p*xa; xc = p^2"
    found = read_json("grad", "-e", text, "--at", "p=3", "--at", "xa=2")
    assert found["values"] == {"xb": 6.0, "xc": 9.0}
    assert found["gradient"] == {"xb": {"p": 2.0}, "xc": {"p": 6.0}}
    assert "d xc / d p = 6.0" in good("grad", "-e", text, "--at", "p=3,xa=2", "--of", "xc")


def test_grad_without_parameters_takes_the_inputs() -> None:
    assert "d xw / d xa = 4.0" in good("grad", "-e", "xw = xa^2", "--at", "xa=2")


def test_grad_says_where_a_nan_comes_from() -> None:
    done = run("grad", "-e", "xb = log(xa); xw = k*xb", "--at", "xa=-1,k=2")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["xw = nan", "d xw / d k = nan"]
    approved(done.stderr, "log(xa) ... xb ... nan ... --why")
    found = read_json("grad", "-e", "xb = 1/xa; xw = k*xb", "--at", "xa=0,k=2")
    assert found["values"] == {"xw": "inf"}
    assert found["gradient"] == {"xw": {"k": "inf"}}


def test_grad_show_prints_a_program_and_no_numbers() -> None:
    text = good("grad", "-e", "xz = bc*xa; xw = xz^3", "--show")
    assert "bar_xz = bar_xw*(3*xz^2)" in text
    assert "1 pass" in text
    assert "d xw" not in text
    simplified = good("grad", "-e", "xz = bc*xa; xw = xz^3", "--show", "--simplify")
    assert "bar_xz = 3*xz^2" in simplified
    assert "--show" in bad("grad", "lecture", "--simplify")


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (("--method", "finite-difference", "--scheme", "forward", "--step", "0.5"), 2.5),
        (("--method", "finite-difference", "--scheme", "central", "--step", "0.5"), 2.0),
        (("--method", "finite-difference", "--scheme", "complex-step"), 2.0),
        (("--method", "symbolic", "--no-symbolic-share"), 2.0),
        (("--method", "forward", "--carry"), 2.0),
        (("--method", "path-sum", "--path-limit", "5"), 2.0),
    ],
)
def test_grad_method_options(options: tuple[str, ...], value: float) -> None:
    found = read_json("grad", "-e", "xw = k^2 + xa", "--at", "k=1,xa=0", *options)
    assert found["gradient"]["xw"]["k"] == pytest.approx(value, abs=1e-12)


def test_grad_stops_at_a_limit_with_exit_code_1() -> None:
    done = run("grad", LECTURE, "--method", "path-sum", "--path-limit", "1", "--wrt", "xa")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "path" in done.stderr


def test_trace_json_and_tables() -> None:
    found = read_json("trace", LECTURE, "--method", "forward", "--wrt", "xa")
    assert list(found) == ["method", "kind", "of", "wrt", "rows"]
    assert (found["method"], found["kind"], found["of"], found["wrt"]) == (
        ("forward", "tangent", "xw", "xa")
    )
    assert list(found["rows"][0]) == ["name", "expression", "value", "tangent"]
    assert found["rows"][-1]["tangent"] == 161.8125
    back = read_json("trace", LECTURE, "--method", "reverse", "--level", "variables")
    assert back["kind"] == "adjoint"
    assert {r["name"]: r["adjoint"] for r in back["rows"]}["xa"] == 161.8125
    rows = list(csv.DictReader(io.StringIO(good("trace", LECTURE, "--format", "csv"))))
    assert rows[-1]["name"] == "xw"
    assert float(rows[-1]["value"]) == 21.546875
    assert good("trace", LECTURE, "--format", "markdown").startswith("| name")
    assert good("trace", LECTURE, "--format", "latex").startswith(r"\begin{tabular}")


def test_compare_json_and_tables() -> None:
    found = read_json("compare", LECTURE)
    assert list(found) == [
        "of", "value", "wrt", "at", "reference", "primal_operations", "methods",
    ]  # fmt: skip
    assert [m["method"] for m in found["methods"]] == list(METHODS)
    for entry in found["methods"]:
        assert list(entry) == [
            "method", "derivatives", "relative_errors", "passes", "operations",
            "live_values", "seconds", "refused",
        ]  # fmt: skip
        assert entry["derivatives"]["ac"] == pytest.approx(11.34375, rel=1e-8)
    only = good("compare", LECTURE, "--method", "forward", "--method", "reverse", "--wrt", "xa")
    assert "forward" in only
    assert "symbolic" not in only
    table = list(csv.reader(io.StringIO(good("compare", LECTURE, "--format", "csv"))))
    assert [row[0] for row in table] == ["method", *METHODS]
    assert len({len(row) for row in table}) == 1


def test_data_on_standard_output_and_in_files(tmp_path: Path) -> None:
    done = run("data", "-e", "xw = k*xa", "--truth", "k=2", "--samples", "5", "--seed", "3")
    assert done.stderr == ""
    rows = [[float(cell) for cell in row.split(",")] for row in done.stdout.splitlines()[1:]]
    assert done.stdout.startswith("xa,xw\n")
    assert len(rows) == 5
    assert all(w == 2 * a for a, w in rows)
    for kind in ("csv", "npz"):
        path = tmp_path / f"line.{kind}"
        wrote = run(
            "data", "-e", "xw = k*xa", "--truth", "k=2", "--samples", "5", "--seed", "3",
            "-o", path,
        )  # fmt: skip
        assert wrote.returncode == 0
        assert wrote.stdout == ""
        assert str(path) in wrote.stderr
        loaded = cgprimer.Dataset.load(path, inputs=["xa"], targets=["xw"])
        assert np.column_stack([loaded.inputs["xa"], loaded.targets["xw"]]).tolist() == rows
    ranged = good(
        "data", "-e", "xw = k*xa", "--truth", "k=1", "--low", "2", "--high", "3", "--noise", "0.5"
    )
    values = np.loadtxt(io.StringIO(ranged), delimiter=",", skiprows=1)
    assert len(values) == 10_000
    assert values[:, 0].min() >= 2
    assert values[:, 0].max() <= 3
    assert (values[:, 1] - values[:, 0]).std() == pytest.approx(0.5, rel=0.05)


def test_primitives() -> None:
    assert "tanh" in good("primitives")
    shown = good("primitives", "tanh", "max")
    assert "domain:" in shown
    found = read_json("primitives", "tanh")
    assert list(found[0]) == [
        "name", "function", "arity", "partials", "domain", "edges", "analytic",
    ]  # fmt: skip
    names = {row["name"] for row in read_json("primitives")}
    assert {"exp", "log", "acsch", "gelu", "clamp", "stop_gradient"} <= names


def test_info_about_a_graph_and_about_the_machine() -> None:
    found = read_json("info", LECTURE)
    assert list(found) == [
        "source", "inputs", "outputs", "variables", "parameters", "values", "depends_on",
        "leads_to", "operations",
    ]  # fmt: skip
    assert found["depends_on"] == {
        "xx": ["xa"],
        "xy": ["xa", "xx"],
        "xz": ["xx", "xy"],
        "xw": ["xx", "xz"],
    }
    assert found["leads_to"]["xx"] == ["xy", "xz", "xw"]
    machine = read_json("info")
    assert list(machine) == [
        "cgprimer", "python", "machine", "methods", "engines", "details", "libraries",
    ]  # fmt: skip
    assert machine["methods"] == list(METHODS)
    assert machine["engines"]["numpy"] == "available"
    assert "depends_on" in good("info", LECTURE)


PICTURES = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF-"}


@pytest.mark.parametrize("kind", PICTURES)
def test_draw(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph.{kind}"
    options = ("--level", "operations", "--values") if kind == "pdf" else ("--at", "xa=-0.5")
    done = run("draw", LECTURE, "-o", path, *options)
    assert done.returncode == 0
    assert done.stdout == ""
    assert str(path) in done.stderr
    assert path.read_bytes().startswith(PICTURES[kind])
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_draw_names_its_picture_after_the_file(tmp_path: Path) -> None:
    good("draw", EXAMPLES / "olah.cg", cwd=tmp_path)
    good("draw", "-", stdin="xw = k*xa", cwd=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.png", "olah.png"]


def test_draw_leaves_an_older_picture_alone_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("older")
    assert run("draw", "-e", "xw = nosuch(xa)", "-o", path).returncode == 2
    assert run("draw", "-e", "xw = k*xa", "--values", "-o", path).returncode == 2
    assert path.read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 1


def test_numbers_are_printed_with_all_their_digits() -> None:
    out = good("grad", "-e", "xw = exp(k)", "--at", "k=1")
    assert out.splitlines()[0] == f"xw = {math.exp(1)!r}"
    assert json.loads(out.split("= ")[1].split()[0]) == math.exp(1)


def test_a_range_of_points_is_a_table() -> None:
    turn = "0:6.283185307179586:25"  # case D5
    rows = [
        line.split()
        for line in good("grad", "sine_chain", "--at", f"w={turn},b={turn}").splitlines()[2:]
    ]
    assert len(rows) == 25
    slopes = [float(row[3]) for row in rows]
    assert slopes[:6] == pytest.approx([3, 1.5, -1.5, -3, -1.5, 1.5], abs=1e-9)
    assert slopes == pytest.approx([3 * math.cos(4 * float(row[0])) for row in rows], abs=1e-8)
    one = good("grad", "sine_chain", "--at", "w=0:1:2,b=0").splitlines()
    assert one[0].split() == ["w", "y", "d", "y/d", "w", "d", "y/d", "b"]


@pytest.mark.parametrize(
    "text", ["0:1", "0:1:1", "0:1:x", "0:inf:3", "0:1:1e9", "a:1:3", "0:1:3:4"]
)
def test_a_wrong_range_is_said(text: str) -> None:
    assert "LOW:HIGH:COUNT" in bad("grad", "sine_chain", "--at", f"w={text},b=0")


def test_values_of_a_run_are_parameters_without_a_note(tmp_path: Path) -> None:
    run(
        "train", "-e", "xo = k*xa", "--truth", "k=3", "--epochs", "1", "--save", tmp_path / "r.json"
    )
    done = run("grad", "-e", "xo = k*xa", "--at", f"{tmp_path / 'r.json'},xa=1")
    assert (done.returncode, done.stderr) == (0, "")
