"""Comparisons as slides: what stands on them, that it can be read, and the files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import cgprimer
from cgprimer.analysis.comparison import Comparison, compare
from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.slide_layout import SlideLayout
from cgprimer.visualization.pages.comparison import comparison_text, fitted_graph
from cgprimer.visualization.pages.comparison.comparison_slides import (
    comparison_slides,
    save_comparison,
)
from tests.approval import refused

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = "a_name_of_forty_characters_that_goes_on__"


def chain(length: int, step: str) -> str:
    return "; ".join(["v0 = k*xa", *(step.format(a=n, b=n - 1) for n in range(1, length))])


def weights(count: int) -> Comparison:
    terms = " + ".join(f"sin(weight_{k}*x{k % 4})" for k in range(count))
    at = {f"weight_{k}": 0.1 * k - 1.7 for k in range(count)} | {f"x{k}": k + 0.5 for k in range(4)}
    return compare(cgprimer.parse(f"xw = {terms}"), at)


GRAPHS = {
    "lecture": lambda: compare(cgprimer.load(EXAMPLES / "lecture.cg")),
    "mazur": lambda: compare(cgprimer.load(EXAMPLES / "mazur.cg")),
    "log_sine": lambda: compare(cgprimer.load(EXAMPLES / "log_sine.cg")),
    "neuron": lambda: compare(cgprimer.load(EXAMPLES / "cs231n_neuron.cg")),
    "one variable": lambda: compare(cgprimer.parse("xw = xa^2"), {"xa": 3}),
    "no operation": lambda: compare(cgprimer.parse("xw = xa"), {"xa": 3}),
    "inner variable": lambda: compare(cgprimer.load(EXAMPLES / "lecture.cg"), wrt=["xx"]),
    "two methods": lambda: compare(
        cgprimer.load(EXAMPLES / "lecture.cg"), methods=["forward", "reverse"]
    ),
    "forty parameters": lambda: weights(40),
    "a hundred vertices": lambda: compare(
        cgprimer.parse(chain(100, "v{a} = sin(v{b})*v{b}")), {"k": 0.7, "xa": 0.4}
    ),
    "refusals": lambda: compare(
        cgprimer.parse(chain(25, "w{a} = sin(v{b}); v{a} = w{a}*v{b}")), {"k": 0.7, "xa": 0.4}
    ),
    "kink": lambda: compare(cgprimer.parse("xw = abs(xa) + k"), {"xa": 0, "k": 1}, wrt=["xa", "k"]),
    "nan": lambda: compare(cgprimer.parse("xw = log(xa)*k"), {"xa": -1, "k": 1}),
    "hidden": lambda: compare(cgprimer.parse("xw = stop_gradient(xa)*xa"), {"xa": 2.0}),
    "long names": lambda: compare(cgprimer.parse(f"{LONG}b = {LONG}a^2"), {f"{LONG}a": -1e-5}),
}


@pytest.fixture(scope="module")
def comparisons() -> dict[str, Comparison]:
    return {name: make() for name, make in GRAPHS.items()}


def texts(figure: Figure) -> list[Text]:
    return [t for axes in figure.axes for t in axes.texts if t.get_text().strip()]


def said(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def bars(figure: Figure) -> list[Rectangle]:
    return [
        p for axes in figure.axes for p in axes.patches
        if isinstance(p, Rectangle) and p.get_label() == "bar"
    ]  # fmt: skip


def boxes(figure: Figure) -> Iterator[tuple[str, Bbox]]:
    """Where each text is, in points from the lower left corner."""
    figure.set_dpi(72)
    renderer = FigureCanvasAgg(figure).get_renderer()
    for text in texts(figure):
        box = text.get_window_extent(renderer)
        # A line's box includes room for accents and descenders that no text here fills twice.
        inner = 0.18 * box.height
        yield text.get_text(), Bbox([[box.x0 + 1, box.y0 + inner], [box.x1 - 1, box.y1 - inner]])


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_slides_can_be_read(name: str, comparisons: dict[str, Comparison]) -> None:
    slides = comparison_slides(comparisons[name], dark=len(name) % 2 == 0)  # places are the same
    assert len(slides) <= 2
    for slide in slides:
        assert slide.get_size_inches() == pytest.approx((13.333, 7.5), abs=0.01)
        assert min(text.get_fontsize() for text in texts(slide)) >= 13.99
        found = list(boxes(slide))
        for text, box in found:
            assert box.x0 >= 8, text
            assert box.x1 <= 952, text
            assert box.y0 >= 4, text
            assert box.y1 <= 536, text
        for k, (text, box) in enumerate(found):
            for other, its in found[:k]:
                assert not box.overlaps(its), (text, other)
        for bar in bars(slide):
            assert bar.get_x() + bar.get_width() <= 932.5
            assert not any(
                box.x0 < bar.get_x() + bar.get_width() and bar.get_x() < box.x1
                and box.y0 < 540 - bar.get_y() and 540 - bar.get_y() - bar.get_height() < box.y1
                for _, box in found
            )  # fmt: skip


def test_the_lecture_fits_on_one_slide_with_all_its_numbers(
    comparisons: dict[str, Comparison],
) -> None:
    found = comparisons["lecture"]
    (slide,) = comparison_slides(found)
    seen = said(slide)
    for variable in ("xa", "xx", "xy", "xz", "xw"):
        assert variable in seen
    for value in ("= 0.5", "= 0.25", "= 2.25", "= 2.75", "= 21.546875"):
        assert value in seen
    for name in found.wrt:
        assert f"dxw/d{name}" in seen
    assert seen.count("5.671875") == 10
    quotient = "≈11.34375"  # a finite difference, off by less than eight digits show
    assert [seen.count(text) for text in ("11.34375", quotient, "0.25")] == [4, 1, 5]
    for result in found.results:
        assert seen.count(result.method) >= 2  # in both tables
        assert str(result.operations) in seen
        assert comparison_text.format_operation_ratio(found, result) in seen
        assert comparison_text.format_duration(result.seconds) in seen
    assert comparison_text.format_error(found.result("finite-difference").worst_error) in seen
    assert "xw = 21.546875, computed with 9 operations" in seen


def test_bars_are_as_long_as_what_they_show(comparisons: dict[str, Comparison]) -> None:
    found = comparisons["lecture"]
    drawn = bars(comparison_slides(found)[0])
    # Four methods are exact: one bar of an error, and three for each method.
    assert len(drawn) == 1 + 3 * 5
    columns: dict[float, list[float]] = {}
    for bar in drawn:
        columns.setdefault(round(bar.get_x(), 1), []).append(bar.get_width())
    lengths = [columns[x] for x in sorted(columns)]
    for column, wanted in zip(
        lengths[1:],
        (
            [r.operations for r in found.results],
            [r.live_values for r in found.results],
            [r.seconds for r in found.results],
        ),
        strict=True,
    ):
        assert [w / max(column) for w in column] == pytest.approx(
            [w / max(wanted) for w in wanted], abs=0.02
        )
    whole = max(lengths[1])
    error = found.result("finite-difference").worst_error
    assert error is not None
    import math

    assert lengths[0][0] / whole == pytest.approx((17 + math.log10(error)) / 17, abs=0.01)
    # Colors are not alone in telling the methods apart.
    assert len({bar.get_hatch() for bar in drawn}) == 5


def test_more_derivatives_than_there_is_room_for(comparisons: dict[str, Comparison]) -> None:
    found = comparisons["forty parameters"]
    seen = said(comparison_slides(found)[-1])
    shown = [text for text in seen if text.startswith("dxw/d")]
    assert 5 < len(shown) < 40
    assert f"{40 - len(shown)} more derivatives of 40 not shown" in " ".join(seen)
    errors = found.result("finite-difference").errors
    worst = max(errors, key=lambda name: errors[name])
    assert f"dxw/d{worst}" in shown


def test_a_method_that_refuses_says_why(comparisons: dict[str, Comparison]) -> None:
    for name in ("a hundred vertices", "refusals"):
        found = comparisons[name]
        refused = [result for result in found.results if result.refused]
        assert refused
        seen = " ".join(said(comparison_slides(found)[-1]))
        for result in refused:
            assert f"refused: {result.refused}" in seen
    assert "path-sum" in {r.method for r in comparisons["refusals"].results if r.refused}


def test_a_kink_has_no_error_and_says_so(comparisons: dict[str, Comparison]) -> None:
    seen = said(comparison_slides(comparisons["kink"])[0])
    assert seen.count("–") == 5
    assert any(text.startswith("no derivative for xa here") for text in seen)
    assert "no reference" in said(comparison_slides(comparisons["nan"])[0])
    hidden = said(comparison_slides(comparisons["hidden"])[0])
    assert hidden.count("no reference") == 5
    assert "–" not in hidden


def test_values_that_nobody_gave_are_not_shown() -> None:
    graph = cgprimer.parse("xw = k*xa; xv = q*xa")
    found = compare(graph, {"k": 3, "xa": 2}, of="xw", wrt=["k"])
    seen = said(comparison_slides(found)[0])
    assert "k=3" in seen
    assert "q" in seen
    assert not any("= 0" in text or "q=" in text for text in seen)


def test_all_slides_on_one_figure_and_titles_as_written(comparisons: dict[str, Comparison]) -> None:
    figure = cgprimer.draw_comparison(comparisons["mazur"], title="$a_1$ <b> & 100 %")
    assert figure.get_size_inches() == pytest.approx((13.333, 15.0), abs=0.01)
    titles = [text for text in texts(figure) if text.get_text() == "$a_1$ <b> & 100 %"]
    assert len(titles) == 2
    assert not any(text.get_parse_math() for text in texts(figure))
    long = cgprimer.draw_comparison(comparisons["log_sine"], title="word " * 100)
    assert any(text.endswith("…") for text in said(long))
    slide = said(cgprimer.draw_comparison(comparisons["one variable"]))
    assert "The derivative of xw, by five methods" in slide


def pages(path: Path) -> int:
    return len(re.findall(rb"/Type /Page\b", path.read_bytes()))


@pytest.mark.slow
def test_files(tmp_path: Path, comparisons: dict[str, Comparison]) -> None:
    two, one = comparisons["mazur"], comparisons["log_sine"]
    assert save_comparison(two, tmp_path / "a.pdf") == (tmp_path / "a.pdf",)
    assert pages(tmp_path / "a.pdf") == 2
    save_comparison(one, tmp_path / "b.pdf", dark=True)
    assert pages(tmp_path / "b.pdf") == 1
    written = save_comparison(two, tmp_path / "c.svg")
    assert [path.name for path in written] == ["c.svg", "c-2.svg"]
    save_comparison(one, tmp_path / "d.PNG")
    save_comparison(one, tmp_path / "e.html")
    names = {"a.pdf", "b.pdf", "c.svg", "c-2.svg", "d.PNG", "e.html"}
    assert {path.name for path in tmp_path.iterdir()} == names
    before = (tmp_path / "b.pdf").read_bytes()
    save_comparison(one, tmp_path / "b.pdf", dark=True)
    assert before == (tmp_path / "b.pdf").read_bytes()


@pytest.mark.parametrize("name", ["a.html", "a.pdf", "a.png", "a.svg"])
def test_draw_comparison_writes_what_the_command_line_does(
    name: str, tmp_path: Path, comparisons: dict[str, Comparison]
) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    found = comparisons["one variable"]
    save_comparison(found, tmp_path / "there" / name, dark=True, title="a < b")
    figure = cgprimer.draw_comparison(
        found, dark=True, title="a < b", output=str(tmp_path / "here" / name)
    )
    assert figure.get_size_inches()[1] == pytest.approx(7.5)
    written, wanted = ({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
                       for folder in ("here", "there"))  # fmt: skip
    assert written == wanted
    assert name in written


def test_draw_comparison_looks_at_the_path_first(tmp_path: Path) -> None:
    with refused(UsageError):
        cgprimer.draw_comparison(GRAPHS["lecture"](), output=tmp_path / "missing" / "a.png")
    with pytest.raises(UsageError, match=r"\.html, \.pdf, \.png, \.svg"):
        cgprimer.draw_comparison(GRAPHS["lecture"](), output=tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_few_vertices_with_many_edges_are_summarised_and_not_arranged_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arranged: list[int] = []

    def slide_layout(diagram: Diagram) -> SlideLayout:
        arranged.append(len(diagram.nodes))
        return real(diagram)

    real = fitted_graph.slide_layout
    monkeypatch.setattr(fitted_graph, "slide_layout", slide_layout)
    sums = [f"v{n} = sin({' + '.join(f'v{k}' for k in range(n))})" for n in range(1, 20)]
    graph = cgprimer.parse("; ".join(["v0 = k*xa", *sums]))
    found = compare(graph, {"k": 0.7, "xa": 0.4}, methods=["reverse"])
    slides = comparison_slides(found)
    assert any("summarized by layers" in text for text in said(slides[0]))
    assert arranged
    assert max(arranged) < len(graph.variables)


@pytest.mark.parametrize("name", ["a.gif", "a", "a.tex", ".pdf"])
def test_an_unknown_ending_names_the_known_ones(
    name: str, tmp_path: Path, comparisons: dict[str, Comparison]
) -> None:
    with pytest.raises(UsageError, match=r"\.html, \.pdf, \.png, \.svg"):
        save_comparison(comparisons["log_sine"], tmp_path / name)


def test_a_folder_that_is_not_there(tmp_path: Path, comparisons: dict[str, Comparison]) -> None:
    with refused(UsageError):
        save_comparison(comparisons["log_sine"], tmp_path / "missing" / "a.pdf")
    (tmp_path / "a-2.png").mkdir()
    with refused(UsageError):
        save_comparison(comparisons["mazur"], tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a-2.png"]
