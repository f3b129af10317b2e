"""Comparisons as a page and in notebooks: numbers, markup, and that nothing comes from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import cgprimer
from cgprimer.analysis.comparison import Comparison, compare
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.support.number_format import mark_rounding
from cgprimer.visualization.pages.comparison import comparison_text
from cgprimer.visualization.pages.comparison.comparison_page import (
    comparison_page,
    render_notebook_html,
    trace_method,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
EMPTY = {"meta", "link", "path", "use", "wbr"}


class Reader(HTMLParser):
    """Tables as rows of texts, headings, and every attribute; tags must close as they open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in EMPTY and tag not in ("path", "use"):
            return
        self.open.append(tag)
        if tag == "table":
            self.rows = self.tables.setdefault(f"{dict(attrs)['class']} {len(self.tables)}", [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag in ("h1", "h2", "h3", "title"):
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
        elif self.open and self.open[-1] in ("h1", "h2", "h3", "title"):
            self.headings[-1] += data


@pytest.fixture(scope="module")
def lecture() -> Comparison:
    return compare(cgprimer.load(EXAMPLES / "lecture.cg"))


def table(page: Reader, kind: str, which: int = 0) -> list[list[str]]:
    return [rows for name, rows in page.tables.items() if name.split()[0] == kind][which]


def test_the_tables_say_what_python_says(lecture: Comparison) -> None:
    page = Reader(comparison_page(lecture))
    derivatives = table(page, "derivatives")
    assert derivatives[0] == ["derivative", *(r.method for r in lecture.results)]
    for row, name in zip(derivatives[1:], lecture.wrt, strict=True):
        assert row[0] == f"dxw/d{name}"
        wanted = [
            f"{mark_rounding(r.derivatives[name])} {comparison_text.format_error(r.errors[name])}"
            for r in lecture.results
        ]
        assert row[1:] == wanted
    costs = table(page, "costs")
    for row, r in zip(costs[1:], lecture.results, strict=True):
        assert row == [
            r.method,
            comparison_text.format_error(r.worst_error) or "no reference",
            "4 paths" if r.method == "path-sum" else str(r.passes),
            f"{r.operations} {comparison_text.format_operation_ratio(lecture, r)}",
            str(r.live_values),
            comparison_text.format_duration(r.seconds),
        ]


def test_every_method_has_its_trace(lecture: Comparison) -> None:
    page = Reader(comparison_page(lecture))
    for which, result in enumerate(lecture.results):
        made = cgprimer.trace(
            lecture.graph,
            method=result.method,
            wrt=None if result.method == "reverse" else lecture.wrt[0],
        )
        rows = table(page, "trace", which)
        assert rows[0] == ["name", "expression", "value", made.heading]
        assert rows[1:] == [
            [r.name, r.expression, mark_rounding(r.value, 6), mark_rounding(r.derivative, 6)]
            for r in made.rows
        ]
    assert page.headings[-6:] == [*(r.method for r in lecture.results), "How to read the numbers"]


def test_bars_and_colors_are_not_read_aloud_and_headers_have_a_scope(lecture: Comparison) -> None:
    page = Reader(comparison_page(lecture))
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    bars = [a for tag, a in page.tags if tag == "span" and a.get("class") == "bar"]
    assert len(bars) == 1 + 3 * 5
    assert all(attrs["aria-hidden"] == "true" for attrs in bars)
    (picture,) = (attrs for tag, attrs in page.tags if tag == "svg")
    assert picture["role"] == "img"
    assert "output xw = cd*xx + xz^3 = 21.546875" in (picture["aria-label"] or "")


def test_nothing_comes_from_outside(lecture: Comparison) -> None:
    text = comparison_page(lecture)
    assert "default-src 'none'" in text
    assert len(text.encode()) < 1_000_000
    for tag, attrs in Reader(text).tags:
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#")[0] == "#" or tag == "link", (tag, attrs)
    links = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "url(" not in re.sub(r"url\(#\w+\)", "", text)
    light = {"#1a1a1a", "#4a4a4a", "#0072b2", "#c44f00"}  # the picture follows the style sheet
    assert not light & set(re.findall(r"#[0-9a-f]{6}\b", text[text.index("<svg") :]))


@pytest.mark.parametrize("dark", [False, True])
def test_text_of_a_user_is_never_markup(lecture: Comparison, dark: bool) -> None:
    title = "<script>alert(1)</script> & @COSTS@ \"quoted\" 'too'"
    page = Reader(comparison_page(lecture, title=title, dark=dark))
    assert page.headings[0] == page.headings[1] == title
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert (dict(page.tags[0][1]).get("data-look") == "dark") is dark


def test_methods_that_refuse_and_graphs_that_are_large() -> None:
    steps = [f"v{n} = sin(v{n - 1})*v{n - 1}; w{n} = v{n} + v{n - 1}" for n in range(1, 60)]
    found = compare(cgprimer.parse("; ".join(["v0 = k*xa", *steps, "xw = w59"])),
                    {"k": 0.7, "xa": 0.4}, of="xw")  # fmt: skip
    refused = [r for r in found.results if r.refused]
    assert [r.method for r in refused] == ["symbolic"]
    text = comparison_page(found)
    page = Reader(text)
    assert any(row[1:] == [f"refused: {refused[0].refused}"] for row in table(page, "costs"))
    assert len(table(page, "derivatives")[0]) == 1 + 4
    assert "summarized by layers" in text
    rows = table(page, "trace")
    assert len(rows) == 1 + 30 + 1
    assert any("omitted" in row[0] for row in rows)
    with pytest.raises(DifferentiationError):
        trace_method(found, refused[0])


def test_kinks_and_functions_without_a_reference() -> None:
    kink = compare(cgprimer.parse("xw = abs(xa) + k"), {"xa": 0, "k": 1}, wrt=["xa", "k"])
    text = comparison_page(kink)
    assert [c.split()[-1] for c in table(Reader(text), "derivatives")[1][1:]] == ["–"] * 5
    assert "no derivative for xa here" in text
    cgprimer.register_primitive("twice", lambda a: 2 * a, partials="2")
    try:
        found = compare(cgprimer.parse("xw = twice(xa)"), {"xa": 3})
        page = Reader(comparison_page(found))
    finally:
        cgprimer.unregister_primitive("twice")
    assert {row[1] for row in table(page, "costs")[1:]} == {"no reference"}
    assert [row[1:] for row in table(page, "derivatives")[1:]] == [["2"] * 5]


def test_a_notebook_shows_graph_and_tables(lecture: Comparison) -> None:
    text = lecture._repr_html_()
    assert text == render_notebook_html(lecture)
    page = Reader(text)
    assert [name.split()[0] for name in page.tables] == ["derivatives", "costs"]
    assert sum(tag == "svg" for tag, _ in page.tags) == 1
    assert not any(tag in ("html", "body", "script", "h1") for tag, _ in page.tags)
    # Its rules touch nothing else in the notebook.
    style = re.sub(r"/\*.*?\*/", "", text[text.index("<style>") + 7 : text.index("</style>")])
    assert all(
        part.strip().startswith(".comparison")
        for rule in re.findall(r"([^{}]+)\{", style)
        for part in rule.split(",")
    )


def test_a_comparison_prints_as_before(lecture: Comparison) -> None:
    assert "ExpressionGraph" not in repr(lecture)
    assert str(lecture).startswith("xw = 21.546875, computed with 9 operations")
    with pytest.raises(UsageError):
        lecture.to_table("picture")
