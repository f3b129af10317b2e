"""Each benchmark runs, wrong contestants get no time, and the page shows the recorded figures."""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cgprimer

from . import __main__ as command
from . import report
from .harness import Cell, Contestant, Figure, Result, Settings, Skipped, measure, relative_error
from .random_graphs import KINDS, random_expressions
from .sections import loss_and_gradient
from .workloads import create_workload, network

WITH_PROCESSES = (
    "whole_commands", "time_before_the_first_gradient", "training_and_fitting", "homework",
)  # fmt: skip
QUICK = ("--quick", "--budget", "0")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "cache"))


def run_quickly(section: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the smallest run of a section prints, after checks that hold for all sections."""
    assert command.main([section, *QUICK]) == 0
    printed = capsys.readouterr().out
    for table in command.load_section(section).TABLES:
        head = "| " + " | ".join([*table.labels, *table.columns]) + " |\n"
        assert head in printed
        rows = printed.partition(head)[2].partition("\n\n")[0].splitlines()[1:]
        assert rows
        assert all(re.search(r"\| [\d,.]+\*? \|", row) for row in rows)
    # Only other libraries may be left out.
    notes = [line for line in printed.splitlines() if line.startswith("- ")]
    assert not [note for note in notes if "cgprimer" in note.partition(": ")[0].lower()]
    return printed


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in WITH_PROCESSES else name
        for name in command.SECTIONS
    ],
)
def test_each_section_runs_without_other_libraries(
    section: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in command.PEERS:
        monkeypatch.setitem(sys.modules, name, None)
    printed = run_quickly(section, capsys)
    if section == "loss_and_gradient":
        assert "- torch eager, scalar form, W1: skipped: torch is not installed\n" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    "section",
    ["loss_and_gradient", "stochastic_gradient_descent", "arrays_and_recorded_python"],
)
def test_other_libraries_agree_with_cgprimer(
    section: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = run_quickly(section, capsys)
    reasons = set(re.findall(r": skipped: (.*)", printed))
    refusals = "is not installed|has no |written for the lecture graph"
    assert not [reason for reason in reasons if not re.search(refusals, reason)]


# --- measuring ------------------------------------------------------------------------------------


def wrong_by(error: float, component: int, expected: Result) -> Contestant:
    """Return a contestant with an error in one component of the gradient."""
    gradient = np.array(expected[1])
    gradient[component] += error * abs(gradient[component])
    return Contestant(lambda: (expected[0], gradient), lambda result: result)


def test_only_correct_contestants_get_a_time() -> None:
    def fail() -> Contestant:
        raise ValueError("a message\nof two lines")

    def skip() -> Contestant:
        raise Skipped("has no sine")

    def import_missing() -> Contestant:
        import no_such_module  # noqa: F401

        raise AssertionError

    expected = create_workload("M1", samples=20).reference()
    smallest = int(np.argmin(np.abs(expected[1])))
    makers = {
        "correct": lambda: wrong_by(0.0, 0, expected),
        "slightly wrong": lambda: wrong_by(1e-6, smallest, expected),
        "nan": lambda: wrong_by(float("nan"), 3, expected),
        "fails": fail,
        "skips": skip,
        "missing": import_missing,
    }
    figures = measure(makers, 0.0, expected=expected)
    assert figures["correct"].value is not None
    assert {name: f.note for name, f in figures.items() if f.value is None and f.runs == 0} == {
        "slightly wrong": figures["slightly wrong"].note,
        "nan": "WRONG: relative error inf",
        "fails": "skipped: ValueError: a message",
        "skips": "skipped: has no sine",
        "missing": "skipped: no_such_module is not installed",
    }
    assert figures["slightly wrong"].note.startswith("WRONG: relative error ")


def test_contestants_take_turns_and_the_least_time_counts() -> None:
    now, order = 0.0, []
    durations = {"a": itertools.cycle([3.0, 1.0, 2.0]), "b": itertools.cycle([5.0])}

    def prepare(name: str) -> Contestant:
        def run() -> None:
            nonlocal now
            order.append(name)
            now += next(durations[name])

        return Contestant(run, scale=10.0 if name == "b" else 1.0)

    makers = {name: (lambda name=name: prepare(name)) for name in durations}
    figures = measure(makers, 6.0, clock=lambda: now)
    assert "".join(order[2:]) == "ababab"  # the first two are compared with the reference
    assert figures["a"] == Figure(1.0, 2.0, 3)
    assert figures["b"] == Figure(50.0, 50.0, 3, scaled=True)


def test_errors_of_small_components_are_relative_to_the_largest() -> None:
    expected: Result = 2.0, np.array([1.0, 1e-9])
    assert relative_error((2.0, [1.0, 1e-9]), expected) == 0
    assert relative_error((2.0, [1.0, 1.01e-9]), expected) == pytest.approx(1e-8)
    assert relative_error((2.2, [1.0, 1e-9]), expected) == pytest.approx(0.1)
    assert relative_error((2.0, [1.0]), expected) == float("inf")
    assert relative_error((float("nan"), [1.0, 1e-9]), expected) == float("inf")


def test_wrong_and_failing_sections_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(settings: Settings) -> list[Cell]:
        raise RuntimeError("broken")

    wrong = Cell(("autograd",), "W1", Figure(note="WRONG: relative error 1"))
    sections = {
        "methods": SimpleNamespace(TABLES=(), measure_cells=fail),
        "homework": SimpleNamespace(
            TABLES=loss_and_gradient.TABLES, measure_cells=lambda _: [wrong]
        ),
    }
    monkeypatch.setattr(command, "load_section", sections.__getitem__)
    for names, expected in ((["methods", "homework"], 1), (["homework"], 1), (["methods"], 1)):
        assert command.main([*names, *QUICK]) == expected
        captured = capsys.readouterr()
        assert ("RuntimeError: broken" in captured.err) == ("methods" in names)
        assert ("- autograd, W1: WRONG" in captured.out) == ("homework" in names)


# --- workloads ------------------------------------------------------------------------------------


def test_random_graphs_have_the_requested_operations() -> None:
    for operations in (100, 1000, 5000):
        lines, inputs, parameters = random_expressions(operations)
        graph = cgprimer.parse("\n".join(lines))
        tape = cgprimer.tape(graph)
        assert len(tape) == operations
        assert len(graph.outputs) == 1
        assert set(graph.inputs) == set(inputs)
        assert set(graph.parameters) == set(parameters)
        counts = Counter(str(instruction.primitive) for instruction in tape.instructions)
        fair = operations / len(KINDS)
        assert all(fair / 2 < counts[kind] < 2 * fair for kind in KINDS), counts
        assert random_expressions(operations)[0] == lines


def test_matrices_and_expressions_describe_the_same_network() -> None:
    work = network("small", (3, 5, 2, 1), 7)
    np.testing.assert_array_equal(work.vector(work.matrices(work.start)), work.start)
    output = work.function(np, list(work.columns.values()), work.start.tolist())
    hidden = work.points()
    for layer, (weights, bias) in enumerate(work.matrices(work.start)):
        hidden = (np.tanh(hidden) if layer else hidden) @ weights.T + bias
    np.testing.assert_allclose(output, hidden[:, 0], rtol=1e-13)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_shows_the_recorded_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = report.PAGE.read_text("utf-8")
    parts = re.split(r"(?m)^## ", page)[1:]
    with_tables = [report.heading_name(part.split("\n")[0]) for part in parts if "\n| " in part]
    assert with_tables == [*command.SECTIONS]
    copy = tmp_path / "page.md"
    copy.write_text(re.sub(r"(?m)\d(?=[^|\n]* \|$)", "7", page), "utf-8")
    assert copy.read_text("utf-8") != page
    monkeypatch.setattr(report, "PAGE", copy)
    assert command.main(["--write-page"]) == 0
    assert copy.read_text("utf-8") == page


def test_recording_replaces_one_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE", "RESULTS"):
        copy = tmp_path / name
        copy.write_text(getattr(report, name).read_text("utf-8"), "utf-8")
        monkeypatch.setattr(report, name, copy)
    before = report.PAGE.read_text("utf-8")
    cells = [
        Cell(("grad",), "time", Figure(0.0012345, 0.002, 7)),
        Cell(("plot",), "time", Figure(note="skipped: torch is not installed")),
        Cell(("draw",), "time", Figure(12.3456, 13.0, 3, scaled=True)),
    ]
    section = SimpleNamespace(
        TABLES=command.load_section("single_calls").TABLES, measure_cells=lambda _: cells
    )
    monkeypatch.setattr(command, "load_section", lambda _: section)
    assert command.main(["single_calls", "--record"]) == 0
    after = report.PAGE.read_text("utf-8")
    rows = "| call | time |\n| --- | ---: |\n| grad | 1.23 |\n| draw | 12,346* |\n\n## Whole"
    assert rows in after
    assert after.partition("## Whole")[2] == before.partition("## Whole")[2]
    assert f"**Machine.** Sections single calls: {report.describe_machine()['processor']}" in after
    assert report.recorded_cells(report.load_results()["single_calls"]) == cells


def test_only_full_runs_are_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["methods", "--quick", "--record"])
    assert "--record needs a full run" in capsys.readouterr().err
