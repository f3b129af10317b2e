"""``cgprimer fit``: its report, its files, and its exit codes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import bad, good, read_json, run

HALF = "x,y\n0,1\n1,1.6487212707001282\n2,2.718281828459045\n"
NOISY = ("--samples", "20", "--low", "0", "--high", "6", "--noise", "5")


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """Return a file with three points of exp(x/2)."""
    path = tmp_path / "half.csv"
    path.write_text(HALF)
    return path


@pytest.mark.parametrize(
    ("algorithm", "iterates", "damping"),
    [
        ("gauss-newton", ("0.6814063886", "0.5284371186", "0.5007621362", "0.5000005561"), [0] * 4),
        ("auto", ("0.6828112360", "0.5290917629", "0.5008051709", "0.5000006456"),
         [1, 0.1, 0.01, 0.001]),
    ],
)  # fmt: skip
def test_trace_prints_the_steps_of_the_lecture(
    half: Path, algorithm: str, iterates: tuple[str, ...], damping: list[float]
) -> None:
    line = ("fit", "exponential", "--data", half, "--start", "k=1", "--trace")
    text = good(*line, "--algorithm", algorithm)
    rows = {row[0]: row for row in map(str.split, text.splitlines()) if len(row) == 5}
    steps = [rows[str(k)] for k in range(1, 5)]
    assert [row[1] for row in steps] == list(iterates)
    assert [float(row[3]) for row in steps] == damping
    assert {row[4] for row in steps} == {"yes"}
    assert "J'J = [[225.78]]" in text  # 7.389^2*4 + 2.718^2


def test_files_contain_the_printed_fit(tmp_path: Path) -> None:
    line = ("fit", "saturation", *NOISY, "--start", "b1=500,b2=0.1", "--save", "fit.json")
    found = read_json(*line, "--bootstrap", "20", "--trace", cwd=tmp_path)
    assert found["parameters"] == pytest.approx({"b1": 240, "b2": 0.5}, rel=0.1)
    assert found["history"][0]["values"] == [500.0, 0.1]
    assert set(found["bootstrap"]["intervals"]) == {"b1", "b2"}
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert saved["parameters"] == found["parameters"]
    assert saved["history"][0]["values"] == {"b1": 500.0, "b2": 0.1}
    approved(bad(*line, cwd=tmp_path), "fit.json")
    at = read_json("grad", "saturation", "--at", "fit.json,x=2", cwd=tmp_path)
    b1, b2 = found["parameters"].values()
    assert at["values"]["y"] == pytest.approx(b1 * (1 - math.exp(-2 * b2)))


def test_weights_and_renamed_columns_are_read(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("t,z,w,note\n1,2,1,7\n2,4,1,7\n3,60,0,7\n")
    found = read_json("fit", "-e", "y = k*x", "--data", "d.csv", "--columns", "x=t,y=z",
                      "--weights", "w", cwd=tmp_path)  # fmt: skip
    assert found["parameters"]["k"] == pytest.approx(2)  # the point of weight 0 does not count


def test_elements_of_arrays_are_frozen_and_bounded() -> None:
    text = "input x; parameter W[3] = [1, 2, 0.5]; y = W[0] + W[1]*exp(-W[2]*x)"
    found = read_json("fit", "-e", text, "--samples", "30", "--start", "W=[0,1,1]",
                      "--freeze", "W[0]", "--bounds", "W[1]=0:,W[2]=0:9")  # fmt: skip
    assert found["parameters"]["W[0]"] == 0
    assert found["estimated"] == ["W[1]", "W[2]"]


def test_fits_that_do_not_converge_have_exit_code_1() -> None:
    process = run("fit", "lecture", "--samples", "50", "--algorithm", "gauss-newton")
    assert process.returncode == 1
    assert process.stdout.startswith("NOT converged: J'J is singular (rank 3 of 4)")
    line = ("fit", "saturation", *NOISY, "--start", "b1=500,b2=0.1", "--iterations", "2")
    process = run(*line, "--json")
    assert (process.returncode, json.loads(process.stdout)["converged"]) == (1, False)
    approved(process.stderr, "--iterations")
