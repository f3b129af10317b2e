"""Objects in a notebook: pictures and tables without a magic command; names are never HTML."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import cgprimer
from cgprimer.core.tape.tape_entries import Leaf

LECTURE = cgprimer.load("examples/lecture.cg")


def shown(thing: Any) -> dict[str, str]:
    return thing._repr_mimebundle_()


def is_png(text: str) -> bool:
    return base64.b64decode(text, validate=True)[1:4] == b"PNG"


def test_graph_is_a_picture_that_fits_its_cell() -> None:
    bundle = shown(LECTURE)
    assert bundle["text/plain"] == repr(LECTURE)
    assert bundle["image/svg+xml"].startswith('<svg style="max-width: 100%; height: auto"')
    assert bundle["image/svg+xml"] == LECTURE._repr_svg_()
    assert is_png(bundle["image/png"])
    empty = cgprimer.parse("parameter k = 1")
    assert empty._repr_svg_() is None
    assert set(shown(empty)) == {"text/plain"}


def test_tapes_and_programs_are_listings() -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = where(less(xa, ab), 1, 2)"))
    program = cgprimer.differentiate(tape, "xw", "ab")
    for thing in (tape, program):
        bundle = shown(thing)
        listing = re.fullmatch(r"<pre [^>]*>\n(.*)\n</pre>", bundle["text/html"], re.DOTALL)
        assert listing
        assert listing[1] == str(thing)
        assert bundle["text/plain"] == repr(thing)


def test_arrays_are_matrices() -> None:
    graph = cgprimer.load("examples/matrix_backpropagation.cg")
    program = cgprimer.differentiate(cgprimer.tape(graph), wrt="w1")
    assert "bar_w1" in shown(program)["text/html"]
    for thing in (cgprimer.trace(graph, method="reverse"), cgprimer.step(graph)):
        assert "[[2, 0], [4, 0]]" in shown(thing)["text/html"]


def test_long_listings_and_lines_are_cut() -> None:
    long = cgprimer.parse("\n".join(f"x{i + 1} = x{i} + 1" for i in range(1_500)))
    html = shown(cgprimer.tape(long))["text/html"]
    assert html.count("\n") < 210
    assert "… 1,302 more lines; print(...) shows all" in html
    wide = cgprimer.parse(f"xw = {' + '.join(f'x{i}' for i in range(300))}")
    program = cgprimer.differentiate(cgprimer.tape(wide), "xw", "x1")
    assert max(map(len, shown(program)["text/html"].split("\n"))) < 210
    rows = tuple(cgprimer.TraceRow("xa", "input", 1.0, 1.0) for _ in range(1_500))
    table = shown(cgprimer.Trace("forward", "tangent", "xa", "xa", rows))["text/html"]
    assert table.count("<tr>") == 201
    assert "… 1,300 more rows" in table


def test_representation_of_a_large_object_is_one_short_line() -> None:
    names = [f"w{i}" for i in range(100)]
    graph = cgprimer.parse(f"xw = {' + '.join(f'{name}*xa' for name in names)}")
    at, tape = dict.fromkeys([*names, "xa"], 1.0), cgprimer.tape(graph)
    program, trace = cgprimer.differentiate(tape, "xw", names), cgprimer.trace(graph, at)
    comparison = cgprimer.compare(graph, at, methods="reverse")
    for thing in (graph, tape, program, trace, comparison, cgprimer.TrainingRun(at, at, {}, {})):
        assert len(repr(thing)) < 250
        assert "\n" not in repr(thing)
    assert cgprimer.parse(graph.text).text == graph.text  # the text of a graph is never cut


def test_trace_is_a_table() -> None:
    bundle = shown(cgprimer.trace(cgprimer.parse("input xa = 2; xw = xa^2"), method="reverse"))
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", bundle["text/html"])
    assert [cell.strip() for cell in cells[-4:]] == ["xw", "xa^2", "4", "1"]


LINE = cgprimer.parse("parameter k = 3; xw = k*xa")
NOISY = cgprimer.make_dataset(LINE, samples=20, noise=0.1)


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "run": (lambda: cgprimer.train(LINE, NOISY, epochs=3), "finished after 3 steps"),
    "comparison": (lambda: cgprimer.compare(LECTURE, methods=["forward", "reverse"]), "reverse"),
    "fit": (lambda: cgprimer.fit(LINE, NOISY), "standard error</th>"),
    "sweep": (
        lambda: cgprimer.sweep(LINE, NOISY, {"optimizer": ["sgd", "adam"]}, epochs=2),
        '<td style="text-align: left">adam</td>',
    ),
    "ensemble": (
        lambda: cgprimer.ensemble(LINE, NOISY, members=3, epochs=2),
        "Ensemble of 3 runs",
    ),
    "memory": (
        lambda: cgprimer.memory(cgprimer.Value([1.0, 2.0]).tanh().sum()),
        "kept for the backward pass: 24 bytes",
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "run" else pytest.mark.slow) for n in RESULTS]
)
def test_results_are_tables_and_pictures(name: str) -> None:
    create, text = RESULTS[name]
    bundle = shown(create())
    assert text in bundle["text/html"]
    assert "<svg" in bundle["text/html"]
    assert is_png(bundle["image/png"])
    assert bundle["text/plain"]


def test_score_is_a_table() -> None:
    data = cgprimer.make_dataset(cgprimer.parse("parameter k = 3; xw = step(k*xa)"), samples=20)
    run = cgprimer.train(cgprimer.parse("xw = k*xa + b"), data, epochs=2)
    html = shown(run.score(data))["text/html"]
    assert "true, predicted:" in html
    assert "R²" in html


def test_page_is_in_a_sandboxed_frame() -> None:
    page = cgprimer.step(cgprimer.parse("input xa = 1; xw = xa^2"), wrt="xa")
    assert isinstance(page, str)
    assert len(repr(page)) < 60
    html = shown(page)["text/html"]
    frame = r'<iframe title="[^"]*" style="[^"]*" sandbox="allow-scripts" [^<>]*></iframe>'
    assert re.fullmatch(frame, html)


def test_names_are_never_html() -> None:
    # Names cannot hold a <; where one came in by another way, it is escaped all the same.
    evil = "<script>alert(1)</script>"
    row = cgprimer.TraceRow(evil, evil, 1.0, 1.0)
    trace = cgprimer.Trace("forward", "tangent", evil, evil, (row,))
    run = cgprimer.TrainingRun({evil: 1.0}, {evil: 1.0}, {}, {}, stopped=evil)
    tape = cgprimer.Tape((Leaf("column", evil),), (), {evil: 0}, {evil: 0})
    for thing in (trace, run, tape):
        html = shown(thing)["text/html"]
        assert "script" in html
        assert "<script" not in html
    assert "<script" not in shown(cgprimer.Page(evil))["text/html"]


def test_parsing_loads_no_code_for_notebooks() -> None:
    program = (
        "import cgprimer, sys; cgprimer.parse('xw = xa');"
        " print([m for m in sys.modules if 'notebook' in m or 'pictures' in m])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


# --- IPython itself ------------------------------------------------------------------------------


@pytest.fixture
def formatter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The display formatter of a notebook, as cgprimer finds it."""
    formatters = pytest.importorskip("IPython.core.formatters")
    display = formatters.DisplayFormatter()
    shell = SimpleNamespace(display_formatter=display)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    monkeypatch.delitem(vars(cgprimer), "draw", raising=False)
    return display


def test_figure_is_displayed_without_a_magic_command(formatter: Any) -> None:
    figure = cgprimer.draw(LECTURE)
    for thing in (figure, LECTURE):
        assert set(formatter.format(thing)[0]) == {"image/png", "image/svg+xml", "text/plain"}
    vars(cgprimer).pop("plot", None)  # as when it is the first name that a session asks for
    formatter.mimebundle_formatter.deferred_printers.clear()
    formatter.mimebundle_formatter.type_printers.clear()
    _ = cgprimer.plot
    assert set(formatter.format(figure)[0]) == {"image/png", "image/svg+xml", "text/plain"}
    figure.canvas.manager = object()  # pyplot's own: its support of notebooks shows them
    assert set(formatter.format(figure)[0]) == {"text/plain"}


def test_terminal_draws_no_pictures(formatter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(formatter.format(cgprimer.tape(LECTURE))[0]) == {"text/html", "text/plain"}
    formatter.active_types = ["text/plain"]
    encode = "cgprimer.visualization.diagrams.figure_files.encode_figure"
    monkeypatch.setattr(encode, None)  # would raise
    for thing in (LECTURE, cgprimer.draw(LECTURE), cgprimer.tape(LECTURE)):
        assert set(formatter.format(thing)[0]) == {"text/plain"}
