"""Comparisons of methods as pages, in notebooks and as slides: numbers, bars, markup, files."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import cgprimer
from cgprimer.analysis.comparison import Comparison, compare
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.visualization.pages.comparison import fitted_graph
from cgprimer.visualization.pages.comparison.comparison_page import (
    comparison_page,
    render_notebook_html,
    trace_method,
)
from cgprimer.visualization.pages.comparison.comparison_slides import (
    comparison_slides,
    save_comparison,
)
from tests.approval import approved, refused
from tests.pictures.diagram_tools import check_texts

LONG = "a_name_of_forty_characters_that_goes_on__"


def forty() -> Comparison:
    """Return a comparison with forty derivatives."""
    terms = " + ".join(f"sin(weight_{k}*x{k % 4})" for k in range(40))
    at = {f"weight_{k}": 0.1 * k - 1.7 for k in range(40)} | {f"x{k}": k + 0.5 for k in range(4)}
    return compare(cgprimer.parse(f"xw = {terms}"), at)


def doubling() -> Comparison:
    """Return a comparison with more paths than the path sum accepts."""
    steps = [f"w{n} = sin(v{n - 1}); v{n} = w{n}*v{n - 1}" for n in range(1, 25)]
    return compare(cgprimer.parse("; ".join(["v0 = k*xa", *steps])), {"k": 0.7, "xa": 0.4})


GRAPHS = {
    "lecture": lambda: compare(cgprimer.load("lecture")),
    "integers": lambda: compare(cgprimer.load("lecture"), {"xa": 2}),
    "mazur": lambda: compare(cgprimer.load("mazur")),
    "one variable": lambda: compare(cgprimer.parse("xw = xa^2"), {"xa": 3}),
    "no operation": lambda: compare(cgprimer.parse("xw = xa"), {"xa": 3}),
    "forty parameters": forty,
    "refusals": doubling,
    "kink": lambda: compare(cgprimer.parse("xw = abs(xa) + k"), {"xa": 0, "k": 1}, wrt=["xa", "k"]),
    "nan": lambda: compare(cgprimer.parse("xw = log(xa)*k"), {"xa": -1, "k": 1}),
    "hidden": lambda: compare(cgprimer.parse("xw = stop_gradient(xa)*xa"), {"xa": 2.0}),
    "long names": lambda: compare(cgprimer.parse(f"{LONG}b = {LONG}a^2"), {f"{LONG}a": -1e-5}),
}


@cache
def comparison(name: str) -> Comparison:
    """Return a comparison, which is computed once, with times that do not vary."""
    found = GRAPHS[name]()
    results = [replace(r, seconds=1e-4 * k) for k, r in enumerate(found.results, 1)]
    return replace(found, results=tuple(results))


class Reader(HTMLParser):
    """Headings and rows of tables as lines, and every tag; tags must close as they open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.lines: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "wbr"):
            self.open.append(tag)
        if tag in ("tr", "h1", "h2", "h3", "title"):
            self.lines.append("")
        if tag in ("td", "th") and self.lines[-1]:
            self.lines[-1] += " | "

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th", "h1", "h2", "h3", "title"} & {*self.open}:
            self.lines[-1] += data


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("hidden", "refusals")]
SHOWN = ["integers", "kink", *SLOW]


@pytest.mark.parametrize("name", SHOWN)
def test_pages_show_what_is_approved(name: str) -> None:
    found = comparison(name)
    approved("\n".join(Reader(comparison_page(found)).lines))
    for refusal in (r for r in found.results if r.refused):
        with pytest.raises(DifferentiationError):
            trace_method(found, refusal)


def test_a_page_loads_nothing_escapes_its_title_and_is_accessible() -> None:
    title = "<script>alert(1)</script> & @COSTS@ \"quoted\" 'too'"
    text = comparison_page(comparison("lecture"), title=title, dark=True)
    page = Reader(text)
    assert page.lines[:2] == [title, title]
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert page.tags[0][1]["data-look"] == "dark"
    policies = [a for tag, a in page.tags if tag == "meta" and a.get("http-equiv")]
    assert "default-src 'none'" in (policies[0]["content"] or "")
    for tag, attrs in page.tags:
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#")[0] == "#" or tag == "link", (tag, attrs)
    assert "url(" not in re.sub(r"url\(#\w+\)", "", text)
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    bars = [a for tag, a in page.tags if tag == "span" and a.get("class") == "bar"]
    assert len(bars) == 1 + 3 * 5
    assert all(attrs["aria-hidden"] == "true" for attrs in bars)
    (picture,) = (attrs for tag, attrs in page.tags if tag == "svg")
    assert picture["role"] == "img"
    assert "output xw = cd*xx + xz^3 = 21.546875" in (picture["aria-label"] or "")


def test_functions_without_a_reference() -> None:
    cgprimer.register_primitive("twice", lambda a: 2 * a, partials="2")
    try:
        found = compare(cgprimer.parse("xw = twice(xa)"), {"xa": 3})
        text = comparison_page(found)
    finally:
        cgprimer.unregister_primitive("twice")
    assert sum("no reference" in line for line in Reader(text).lines) == 5


def test_a_notebook_shows_graph_and_tables_in_its_own_style() -> None:
    found = comparison("one variable")
    text = found._repr_html_()
    page = Reader(text)
    assert text == render_notebook_html(found)
    assert [tag for tag, _ in page.tags].count("svg") == 1
    assert not any(tag in ("html", "body", "script", "h1") for tag, _ in page.tags)
    approved("\n".join(page.lines))
    style = re.sub(r"/\*.*?\*/", "", text[text.index("<style>") + 7 : text.index("</style>")])
    selectors = [part for rule in re.findall(r"([^{}]+)\{", style) for part in rule.split(",")]
    assert all(selector.strip().startswith(".comparison") for selector in selectors)


def texts(figure: Figure) -> list[Text]:
    """Return all texts that are not empty."""
    return [t for axes in figure.axes for t in axes.texts if t.get_text().strip()]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def bars(figure: Figure) -> list[Rectangle]:
    patches = [patch for axes in figure.axes for patch in axes.patches]
    return [p for p in patches if isinstance(p, Rectangle) and p.get_label() == "bar"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n != "lecture")) for n in GRAPHS],
)
def test_slides_can_be_read_and_nothing_overlaps(name: str) -> None:
    slides = comparison_slides(comparison(name), dark=len(name) % 2 == 0)
    assert len(slides) <= 2
    for slide in slides:
        assert slide.get_size_inches() == pytest.approx((13.333, 7.5), abs=0.01)
        assert min(text.get_fontsize() for text in texts(slide)) >= 13.99
        slide.set_dpi(72)
        corners = [(bar.get_xy(), bar.get_width(), bar.get_height()) for bar in bars(slide)]
        boxes = [Bbox([[x, 540 - y - height], [x + width, 540 - y]])
                 for (x, y), width, height in corners]  # fmt: skip
        assert all(box.x1 <= 932.5 for box in boxes)
        check_texts(slide, texts(slide), boxes)


def test_bars_are_as_long_as_their_numbers() -> None:
    found = comparison("lecture")
    (slide,) = comparison_slides(found)
    columns: dict[float, list[float]] = {}
    for bar in bars(slide):  # four methods are exact: one bar of an error, three for each method
        columns.setdefault(round(bar.get_x(), 1), []).append(bar.get_width())
    (error,), *lengths = (columns[x] for x in sorted(columns))
    for column, name in zip(lengths, ("operations", "live_values", "seconds"), strict=True):
        numbers = [getattr(r, name) for r in found.results]
        expected = [number / max(numbers) for number in numbers]
        assert [width / max(column) for width in column] == pytest.approx(expected, abs=0.02)
    worst = found.result("finite-difference").worst_error
    assert worst is not None
    assert error / max(lengths[0]) == pytest.approx((17 + math.log10(worst)) / 17, abs=0.01)


@pytest.mark.parametrize("name", SHOWN)
def test_slides_show_what_is_approved(name: str) -> None:
    for slide in comparison_slides(comparison(name)):
        approved(" | ".join(words(slide)))


@pytest.mark.slow
def test_a_slide_has_the_derivatives_with_the_largest_errors() -> None:
    found = comparison("forty parameters")
    seen = words(comparison_slides(found)[-1])
    shown = [text for text in seen if text.startswith("dxw/d")]
    assert 5 < len(shown) < 40
    assert f"{40 - len(shown)} more derivatives of 40 not shown" in " ".join(seen)
    errors = found.result("finite-difference").errors
    assert f"dxw/d{max(errors, key=lambda name: errors[name])}" in shown


def test_titles_are_shown_as_written_and_long_ones_shortened() -> None:
    for title in ("$a_1$ <b> & 100 %", "word " * 100):
        figure = cgprimer.draw_comparison(comparison("one variable"), title=title)
        approved(" | ".join(words(figure)[:2]))
        assert not any(text.get_parse_math() for text in texts(figure))


@pytest.mark.slow
def test_a_dense_graph_is_summarized_before_it_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = fitted_graph.slide_layout
    monkeypatch.setattr(
        fitted_graph, "slide_layout", lambda d: sizes.append(len(d.nodes)) or real(d)
    )
    sums = [f"v{n} = sin({' + '.join(f'v{k}' for k in range(n))})" for n in range(1, 20)]
    graph = cgprimer.parse("; ".join(["v0 = k*xa", *sums]))
    dense = compare(graph, {"k": 0.7, "xa": 0.4}, methods=["reverse"])
    assert "summarized by layers" in " ".join(words(comparison_slides(dense)[0]))
    assert 0 < max(sizes) < len(graph.variables)


def test_draw_comparison_and_save_comparison_write_the_same_files(tmp_path: Path) -> None:
    found, path = comparison("one variable"), tmp_path / "d.SVG"
    save_comparison(found, path, dark=True, title="a < b")
    first = path.read_bytes()
    cgprimer.draw_comparison(found, dark=True, title="a < b", output=str(path))
    assert path.read_bytes() == first
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.slow
def test_two_slides_are_two_pages_or_two_files(tmp_path: Path) -> None:
    two = comparison("mazur")
    assert cgprimer.draw_comparison(two).get_size_inches() == pytest.approx((13.3, 15), abs=0.1)
    assert save_comparison(two, tmp_path / "a.pdf") == (tmp_path / "a.pdf",)
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "a.pdf").read_bytes())) == 2
    written = save_comparison(two, tmp_path / "c.svg")
    assert [path.name for path in written] == ["c.svg", "c-2.svg"]
    (tmp_path / "a-2.png").mkdir()
    with refused(UsageError):
        save_comparison(two, tmp_path / "a.png")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.pdf", "c.svg", "c-2.svg", "a-2.png"}


@pytest.mark.parametrize("name", ["a.gif", "a", "a.tex", ".pdf", "missing/a.pdf"])
def test_wrong_paths_are_refused_before_the_work(name: str, tmp_path: Path) -> None:
    with refused(UsageError):
        save_comparison(comparison("one variable"), tmp_path / name)
    with pytest.raises(UsageError):
        cgprimer.draw_comparison(cgprimer.load("lecture"), output=tmp_path / name)
    assert list(tmp_path.iterdir()) == []
