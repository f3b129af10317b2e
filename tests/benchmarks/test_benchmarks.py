"""Each benchmark runs, wrong contestants get no time, and the page shows the recorded figures."""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cgprimer
from tests.approval import approved

from . import __main__ as command
from . import report
from .harness import Cell, Contestant, Figure, Result, Settings, Skipped, measure, relative_error
from .sections import loss_and_gradient
from .workloads import KINDS, create_workload, network, random_expressions

QUICK = ("--quick", "--budget", "0")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("section", "peers"),
    [
        ("loss_and_gradient", False),
        *(
            pytest.param(section, peers, marks=pytest.mark.slow)
            for section in command.SECTIONS
            for peers in (False, True)
            if (section, peers) != ("loss_and_gradient", False)
            and (not peers or section in ("loss_and_gradient", "stochastic_gradient_descent",
                                          "arrays_and_recorded_python"))
        ),
    ],
)  # fmt: skip
def test_each_section_runs_with_and_without_other_libraries(
    section: str,
    peers: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not peers:
        for name in command.PEERS:
            monkeypatch.setitem(sys.modules, name, None)
    assert command.main([section, *QUICK]) == 0
    printed = capsys.readouterr().out
    for table in command.load_section(section).TABLES:
        head = "| " + " | ".join([*table.labels, *table.columns]) + " |\n"
        rows = printed.partition(head)[2].partition("\n\n")[0].splitlines()[1:]
        assert rows or "no folder shared/nist" in printed
        assert all(re.search(r"\| [\d,.]+\*? \|", row) for row in rows)
    notes = dict(re.findall(r"^- (.*?): (.*)", printed, re.MULTILINE))
    assert not [name for name in notes if "cgprimer" in name.lower()]
    refusals = "is not installed|has no |written for the lecture graph|no folder shared/nist"
    assert not [reason for reason in notes.values() if not re.search(refusals, reason)]
    if not peers and section == "loss_and_gradient":
        assert notes["torch eager, scalar form, W1"] == "skipped: torch is not installed"


def test_only_correct_contestants_get_a_time() -> None:
    loss, gradient = expected = create_workload("W1", samples=20).reference()

    def with_factor(factor: float, component: int) -> Contestant:
        wrong = np.array(gradient)
        wrong[component] *= factor
        return Contestant(lambda: (loss, wrong), lambda result: result)

    def fail(error: Exception) -> Contestant:
        raise error

    makers = {
        "correct": lambda: with_factor(1.0, 0),
        "slightly wrong": lambda: with_factor(1 + 1e-6, int(np.argmin(np.abs(gradient)))),
        "nan": lambda: with_factor(float("nan"), 3),
        "fails": lambda: fail(ValueError("a message\nof two lines")),
        "skips": lambda: fail(Skipped("has no sine")),
        "missing": lambda: fail(ImportError(name="no_such_module")),
    }
    figures = measure(makers, 0.0, expected=expected)
    assert figures.pop("correct").value is not None
    assert {(figure.value, figure.runs) for figure in figures.values()} == {(None, 0)}
    approved("\n".join(f"{name}: {figure.note}" for name, figure in figures.items()))


def test_contestants_take_turns_and_the_least_time_counts() -> None:
    now, order = 0.0, []
    durations = {"a": itertools.cycle([3.0, 1.0, 2.0]), "b": itertools.cycle([5.0])}

    def prepare(name: str) -> Contestant:
        def run() -> None:
            nonlocal now
            order.append(name)
            now += next(durations[name])

        return Contestant(run, scale=10.0 if name == "b" else 1.0)

    makers = {name: partial(prepare, name) for name in durations}
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
    def measure_cells(settings: Settings) -> list[Cell]:
        return [Cell(("autograd",), "W1", Figure(note="WRONG: relative error 1"))]

    sections = {
        "methods": SimpleNamespace(TABLES=()),  # cannot be measured
        "homework": SimpleNamespace(TABLES=loss_and_gradient.TABLES, measure_cells=measure_cells),
    }
    monkeypatch.setattr(command, "load_section", sections.__getitem__)
    for names in (["methods", "homework"], ["homework"], ["methods"]):
        assert command.main([*names, *QUICK]) == 1
        captured = capsys.readouterr()
        assert ("AttributeError" in captured.err) == ("methods" in names)
        assert ("- autograd, W1: WRONG" in captured.out) == ("homework" in names)


def test_random_graphs_have_the_requested_operations() -> None:
    for operations in (100, 1000):
        graph = cgprimer.parse("\n".join(random_expressions(operations)))
        tape = cgprimer.tape(graph)
        assert len(tape) == operations
        assert (len(graph.outputs), len(graph.inputs)) == (1, 4)
        assert len(graph.parameters) == max(4, operations // 20)
        counts = Counter(str(instruction.primitive) for instruction in tape.instructions)
        fair = operations / len(KINDS)
        assert all(fair / 2 < counts[kind] < 2 * fair for kind in KINDS), counts


def test_matrices_and_expressions_describe_the_same_network() -> None:
    work = network("small", (3, 5, 2, 1), 7)
    np.testing.assert_array_equal(work.vector(work.matrices(work.start)), work.start)
    output = work.function(np, list(work.columns.values()), work.start.tolist())
    hidden = work.points()
    for layer, (weights, bias) in enumerate(work.matrices(work.start)):
        hidden = (np.tanh(hidden) if layer else hidden) @ weights.T + bias
    np.testing.assert_allclose(output, hidden[:, 0], rtol=1e-13)


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
    assert f"**Machine.** Sections single calls: {report.describe_machine()}" in after
    assert report.recorded_cells(report.load_results()["single_calls"]) == cells


def test_only_full_runs_are_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["methods", "--quick", "--record"])
    assert "--record needs a full run" in capsys.readouterr().err
