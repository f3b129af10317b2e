"""``cgprimer tape``: the program of a graph, of a derivative, and what the passes make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import cgprimer
from tests.approval import approved
from tests.cli.cli_tools import LECTURE, bad, good

LAYERS = "\n".join(
    [
        *(
            f"xh{j} = tanh({' + '.join(f'w{j}{i}*x{i}' for i in range(4))} + b{j})"
            for j in range(4)
        ),
        "xw = v0*xh0 + v1*xh1 + v2*xh2 + v3*xh3",
    ]
)


def test_the_tape_of_a_graph() -> None:
    assert good("tape", LECTURE).rstrip("\n") == str(cgprimer.tape(cgprimer.load(LECTURE)))


@pytest.mark.parametrize("method", cgprimer.methods())
def test_the_tape_of_a_derivative(method: str) -> None:
    tape = cgprimer.tape(cgprimer.load(LECTURE))
    program = cgprimer.differentiate(tape, of="xw", wrt=["ab", "cd"], method=method)
    shown = good("tape", LECTURE, "--method", method, "--of", "xw", "--wrt", "ab,cd")
    assert shown.rstrip("\n") == str(program.tape)


def test_a_loss_is_put_onto_the_tape() -> None:
    shown = good("tape", "-e", "xw = k*xa", "--loss", "squared-error")
    assert "target    target_xw" in shown
    assert shown.splitlines()[-1] == "output    loss_sample"
    assert "bar_k" in good(
        "tape", "-e", "xw = k*xa", "--loss", "squared-error", "--method", "reverse"
    )


def test_the_passes_of_the_lecture_example() -> None:
    shown = good("tape", LECTURE, "--method", "reverse", "--loss", "squared-error", "--passes")
    for line in (
        "powers:    18 -> 18 instructions; 4 powers expanded",
        "xy = ac*xa + v1   without v2",
        "bar_ab, bar_bc = sum of bar_xz*xx",
        "1    xz = bc*xx + xy",
        "rows: 4",
        "tape 18 instructions -> optimized 18 -> 15 steps per sample, 0 steps per call; 4 rows",
    ):
        assert line in shown.splitlines(), line


def test_the_passes_of_a_network_show_its_matrices(tmp_path: Path) -> None:
    file = tmp_path / "network.cg"
    file.write_text(LAYERS)
    shown = good("tape", file, "--method", "reverse", "--loss", "squared-error", "--passes")
    assert "4 sums over 4 values" in shown
    rows = [line.split()[2:] for line in shown.splitlines() if line.endswith("w23    b2")]
    assert rows == [["w20", "w21", "w22", "w23", "b2"]]
    assert "4 by 4" in shown
    assert "matrix 4x4 * (x0, x1, x2, x3)" in shown


def test_without_sums_there_is_a_value_for_each_sample() -> None:
    shown = good("tape", "-e", "xw = sin(k^2)*xa + cos(xa) - sin(xa)", "--passes")
    assert "none: the outputs are values per sample" in shown
    assert "== Hoisting: once per call, not once per sample\nv1 = k*k\nv2 = sin(v1)\n" in shown
    assert "= sin(xa), cos(xa)" in shown
    assert shown.splitlines()[-1].endswith("2 steps per call; 2 rows")


def test_large_tapes_are_cut_and_all_shows_all() -> None:
    text = "; ".join(f"x{i} = sin(x{i - 1})" for i in range(1, 301))
    shown = good("tape", "-e", text).splitlines()
    assert len(shown) == 202
    assert shown[-2:] == ["... 102 more lines", "(--all shows all)"]
    whole = good("tape", "-e", text, "--all").splitlines()
    assert len(whole) == 302
    passes = good("tape", "-e", text, "--passes").splitlines()
    assert len(passes) < 100
    assert "(--all shows all)" in passes
    assert "x300 = sin(x299)" in "".join(good("tape", "-e", text, "--passes", "--all"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--of", "xw"], "--method"),
        (["--wrt", "ab"], "--method"),
        (["--step", "1e-3"], "--method"),
        (["--method", "reverse", "--step", "1e-3"], "--step ... --method finite-difference"),
        (["--method", "reverse", "--wrt", "nosuch"], "nosuch"),
        (["--loss", "squared-errr"], "squared-error"),
        (["--method", "newton"], "newton"),
    ],
)
def test_wrong_use_is_said_in_a_line(arguments: list[str], says: str) -> None:
    approved(bad("tape", LECTURE, *arguments), says)


def test_a_graph_of_constants_has_passes_too() -> None:
    shown = good("tape", "-e", "xw = 2*3", "--passes")
    assert shown.splitlines()[-1] == (
        "tape 1 instruction -> optimized 0 -> 0 steps per sample, 0 steps per call; 0 rows"
    )
