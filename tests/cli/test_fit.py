"""``cgprimer fit``: its report, its files, its exit codes, and what it refuses before it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import bad, good, read_json, run

F11 = "x,y\n0,1\n1,1.6487212707001282\n2,2.718281828459045\n"
NOISY = ("--samples", "20", "--low", "0", "--high", "6", "--noise", "5")


@pytest.fixture
def half(tmp_path: Path) -> Path:
    path = tmp_path / "half.csv"
    path.write_text(F11)
    return path


@pytest.mark.parametrize(
    ("algorithm", "iterates"),
    [
        ("gauss-newton", ("0.6814063886", "0.5284371186", "0.5007621362", "0.5000005561")),
        ("auto", ("0.6828112360", "0.5290917629", "0.5008051709", "0.5000006456")),
    ],
)
def test_the_steps_of_the_lecture(half: Path, algorithm: str, iterates: tuple[str, ...]) -> None:
    text = good(
        "fit", "exponential", "--data", half, "--start", "k=1", "--trace", "--algorithm", algorithm
    )
    rows = [line.split() for line in text.splitlines()]
    shown = {row[0]: row for row in rows if len(row) == 5 and row[4] in ("yes", "no")}
    assert [shown[str(k)][1] for k in range(1, 5)] == list(iterates)
    assert {row[4] for row in shown.values()} == {"yes"}
    damping = [float(shown[str(k)][3]) for k in range(1, 5)]
    assert damping == ([1, 0.1, 0.01, 0.001] if algorithm == "auto" else [0] * 4)
    assert "J'J = [[225.78]]" in text  # 7.389^2*4 + 2.718^2
    assert "converged" in text


def test_the_report_names_what_is_fixed_bounded_and_open(tmp_path: Path) -> None:
    text = good("fit", "lecture", "--samples", "50", "--freeze", "cd", "--start", "cd=3")
    rows = {line.split("  ")[0]: line for line in text.splitlines()}
    assert rows["cd"].endswith("fixed")
    assert rows["ab"].endswith("not determined by itself")
    assert "increasing ab by 1 and decreasing bc by 1 leaves xw unchanged." in text
    text = good("fit", "saturation", *NOISY, "--start", "b1=150", "--bounds", "b1=:200,b2=0:")
    rows = {line.split("  ")[0]: line for line in text.splitlines()}
    assert rows["b1"].endswith("at its bound")
    assert "b1 is at its bound 200: the sum of squares decreases beyond it." in text


def test_json_and_the_files(tmp_path: Path) -> None:
    found = read_json(
        "fit", "saturation", *NOISY, "--start", "b1=500,b2=0.1", "--save", "fit.json", "--plot",
        "fit.svg", "--bootstrap", "20", "--trace", cwd=tmp_path,
    )  # fmt: skip
    assert {
        "parameters", "standard_errors", "residual_sum_of_squares", "residual_standard_deviation",
        "converged", "reason", "rank", "covariance", "correlation", "sentences",
    } <= set(found)  # fmt: skip
    assert found["converged"] is True
    assert found["parameters"] == pytest.approx({"b1": 240, "b2": 0.5}, rel=0.1)
    assert found["history"][0]["values"] == [500.0, 0.1]
    assert set(found["bootstrap"]["intervals"]) == {"b1", "b2"}
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert saved["parameters"] == found["parameters"]
    assert saved["history"][0]["values"] == {"b1": 500.0, "b2": 0.1}
    assert "<svg" in (tmp_path / "fit.svg").read_text()
    again = ("fit", "exponential", "--save", "fit.json")
    approved(bad(*again, cwd=tmp_path), "fit.json")
    good(*again, "--force", cwd=tmp_path)
    lecture = read_json("fit", "lecture", "--samples", "50")
    assert lecture["standard_errors"]["ab"] == "inf"
    assert lecture["rank"] == 3


def test_weights_are_a_column(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x,y,w,note\n1,2,1,7\n2,4,1,7\n3,60,0,7\n")
    text = good("fit", "-e", "y = k*x", "--data", path, "--weights", "w")
    assert "1 degree of freedom" in text
    assert text.splitlines()[5].split()[:2] == ["k", "2"]


def test_arrays_by_their_elements() -> None:
    found = read_json(
        "fit", "-e", "input x; parameter W[3] = [1, 2, 0.5]; y = W[0] + W[1]*exp(-W[2]*x)",
        "--samples", "30", "--start", "W=[0,1,1]", "--freeze", "W[0]",
        "--bounds", "W[1]=0:,W[2]=0:9",
    )  # fmt: skip
    assert found["parameters"]["W[0]"] == 0
    assert found["estimated"] == ["W[1]", "W[2]"]


def test_what_does_not_converge_leaves_with_one() -> None:
    done = run("fit", "lecture", "--samples", "50", "--algorithm", "gauss-newton")
    assert done.returncode == 1
    assert done.stdout.startswith("NOT converged: J'J is singular (rank 3 of 4)")
    approved(done.stderr)
    done = run("fit", "saturation", *NOISY, "--start", "b1=1,b2=1e6", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["converged"] is False
    done = run("fit", "saturation", *NOISY, "--start", "b1=500,b2=0.1", "--iterations", "2")
    approved(done.stderr, "(--iterations)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "{half}", "--truth", "k=1"), ""),
        (("--weights", "w"), "--weights ... --data"),
        (("--data", "{half}", "--weights", "w"), "w"),
        (("--bounds", "k=1"), "expected LOW:HIGH"),
        (("--bounds", "k=0:1,k=0:2"), "k"),
        (("--bounds", "q=0:1"), "'q'"),
        (("--bounds", "k=2:1"), ""),
        (("--bounds", "k=2:3", "--start", "k=1"), ""),
        (("--freeze", "k"), ""),
        (("--start", "q=1"), "'q'"),
        (("--algorithm", "newton"), "'newton'"),
        (("--bootstrap", "1"), "1"),
        (("--level", "95"), "0 ... 1"),
        (("--plot", "fit.word"), ""),
        (("--save", "nowhere/fit.json"), "nowhere"),
        (("--data", "missing.csv"), "missing.csv"),
        (("--carry",), "--method forward"),
        (("--damping", "tens", "--algorithm", "dogleg"), "damping"),
        (("--first-damping", "3", "--algorithm", "dogleg"), "first_damping"),
        (("--resample", "pairs"), "--bootstrap"),
        (("--data", "{half}", "--noise", "3"), "--noise"),
        (("--columns", "x=t"), "--columns"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, half: Path) -> None:
    given = [argument.format(half=half) for argument in arguments]
    approved(bad("fit", "exponential", *given), message)


def test_a_start_without_a_finite_residual() -> None:
    text = bad("fit", "saturation", *NOISY, "--start", "b2=-1e5", code=1)
    approved(text, "y = b1*(1 - exp(-b2*x))")
    approved(text, "0 (x=")


def test_columns_of_other_names_and_a_fit_as_a_point(tmp_path: Path) -> None:
    own, other = tmp_path / "own.csv", tmp_path / "other.csv"
    good("data", "saturation", *NOISY, "-o", own)
    other.write_text(own.read_text().replace("x,y", "t,level"))
    start = ("--start", "b1=500,b2=0.1", "--json")
    renamed = read_json(
        "fit", "saturation", "--data", other, "--columns", "x=t,y=level", *start,
        "--save", tmp_path / "fit.json",
    )  # fmt: skip
    plain = read_json("fit", "saturation", "--data", own, *start)
    assert renamed["parameters"] == plain["parameters"]
    at = read_json("grad", "saturation", "--at", f"{tmp_path / 'fit.json'},x=2", "--json")
    b1, b2 = renamed["parameters"].values()
    assert at["values"]["y"] == pytest.approx(b1 * (1 - 2.718281828459045 ** (-2 * b2)))
    (tmp_path / "broken.json").write_text('{"format": "cgprimer-fit"}')
    error = bad("grad", "saturation", "--at", tmp_path / "broken.json")
    approved(error)
    frozen = good("fit", "saturation", "--data", own, "--start", "b1=500,b2=0.1", "--freeze", "b1")
    assert "fixed" in frozen


def test_a_column_that_the_graph_takes_for_a_parameter_is_said(tmp_path: Path) -> None:
    path = tmp_path / "z.csv"
    path.write_text("xa,z,xw\n1,2,2\n2,2,4\n3,5,6\n")
    done = run("train", "-e", "xw = k*xa + z", "--data", path, "--epochs", "1")
    approved(done.stderr, "z")
    assert "'input z'" in done.stderr


def test_predict_and_score_take_a_fit(tmp_path: Path) -> None:
    text = "y = a + b*x"
    (tmp_path / "d.csv").write_text("x,y\n0,1\n1,3\n2,4\n")
    good("fit", "-e", text, "--data", "d.csv", "--save", "fit.json", cwd=tmp_path)
    rows = good("predict", "fit.json", "--data", "d.csv", cwd=tmp_path).split()
    # Least squares by hand: b = 3/2, a = 8/3 - 3/2.
    found = [float(row.split(",")[1]) for row in rows[1:]]
    assert found == pytest.approx([7 / 6, 16 / 6, 25 / 6])
    score = read_json("score", "fit.json", "--data", "d.csv", cwd=tmp_path)
    assert score["loss"] == pytest.approx(1 / 18)
