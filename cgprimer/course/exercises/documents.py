"""Sheets as Markdown and as notebooks, and what all formats share.

A student's file holds questions. A solution has the same tables filled in, and beside a derivative
how it follows; both are worked out when the file is written.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

from cgprimer.analysis.text_tables import table
from cgprimer.course.checks.sheets.answer_forms import format_dictionary
from cgprimer.course.checks.sheets.sheet_problems import (
    Blank,
    Cell,
    DisplayFormula,
    Problem,
    Sheet,
    Worksheet,
    format_cell,
)
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.errors import pluralize
from cgprimer.expressions import (
    Apply,
    Expression,
    Name,
    Number,
    names_in,
    parse,
    readable,
    substitute,
    unparse,
)
from cgprimer.support.files import format_json
from cgprimer.support.number_format import format_number
from cgprimer.support.value_names import format_name, parse_internal
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

_INLINE = re.compile(r"`([^`]*)`|\*([^*]+)\*")
_FORMULA_GIVEN = ("trace", "optimizer")  # kinds whose tables show how each number follows


@dataclass(frozen=True)
class Section:
    """A problem as it is set: its number, its kind and its table."""

    place: int
    problem: Problem
    worksheet: Worksheet

    @cached_property
    def picture(self) -> Diagram | None:
        """The graph that is drawn above the table, if there is one."""
        if self.worksheet.picture is None:
            return None
        return graph_diagram(parse(self.problem.graph, name="<sheet>"), **self.worksheet.picture)

    @property
    def heading(self) -> str:
        """Number, title and points."""
        points = round(fsum(self.problem.points_of_blanks(len(self.worksheet.blanks))))
        return f"Problem {self.place}. {self.worksheet.title} ({pluralize(points, 'point')})"

    @property
    def text(self) -> Sequence[str]:
        """Paragraphs, with the digits that are asked for at the end."""
        if not any(blank.form in ("number", "array") for blank in self.worksheet.blanks):
            return self.worksheet.text
        digits = self.worksheet.digits
        rounded = f"Round to {digits} significant digits; keep more on the way if you can."
        exact = "All numbers are exact; fractions such as `3/4` are fine."
        return (*self.worksheet.text, rounded if digits else exact)

    def tables(
        self, write: Callable[[Cell, bool], str], solution: bool
    ) -> Iterator[tuple[Sequence[str], list[list[str]]]]:
        """Headers and rows of the tables; ``write`` is told of a cell whether it was a blank.

        Blanks are empty, or filled in for a solution, which says besides how derivatives follow.
        """

        def written(cell: Cell) -> str:
            if not isinstance(cell, Blank):
                return write(cell, False)
            return write(cell.format_value(self.worksheet.digits) if solution else "", True)

        if self.worksheet.given_table:
            header, rows = self.worksheet.given_table
            yield header, [[written(cell) for cell in row] for row in rows]
        rows = self.worksheet.rows
        header, made = self.worksheet.header, [[written(cell) for cell in row] for row in rows]
        found = [self._how(row) for row in self.worksheet.rows if solution]
        if any(found):
            header = (*header, "how it follows")
            for cells, tree in zip(made, found, strict=True):
                cells.append(write(tree or "", False))
        yield header, made

    def _how(self, row: Sequence[Cell]) -> Cell | None:
        """The formula of a row's derivative, if it does not stand there; edges and paths in it are
        numbers."""
        last, kind = row[-1], self.problem.kind
        if not isinstance(last, Blank) or last.tree is None or kind in _FORMULA_GIVEN:
            return None
        if last.column == "value" and kind != "shapes":
            return None
        blanks = self.worksheet.blanks
        values = dict(self.worksheet.known_values) | {b.name: b.value for b in blanks}
        put: dict[str, Expression] = {name: Name(format_name(name)) for name in names_in(last.tree)}
        for name in put:
            if parse_internal(name).kind in ("edge", "path"):
                put[name] = Number(float(format_number(values[name], self.worksheet.digits or 10)))
        tree = substitute(last.tree, put)
        given = [format_cell(cell) for cell in row if isinstance(cell, Apply)]
        written = unparse(tree)
        unread = last.column == "value" and "stop_gradient" in written  # of softmax
        if unread or last.tree in row or written in given:
            return None
        shown = readable(tree)
        return tree if shown == written else DisplayFormula(shown)


def sections(sheet: Sheet) -> list[Section]:
    """The problems of a sheet, worked out."""
    return [Section(k, p, build_worksheet(p)) for k, p in enumerate(sheet.problems, start=1)]


def headings(sheet: Sheet, *, solution: bool) -> tuple[str, str]:
    """The title, and the line under it."""
    title = f"{sheet.title}: solution" if solution else sheet.title
    return title, " · ".join(filter(None, (sheet.student, f"sheet {sheet.identifier}")))


def embedded(sheet: Sheet) -> str:
    """The questions as one line that neither a comment nor a script ends early."""
    text = json.dumps(sheet.to_dict(), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def inline(
    text: str, code: Callable[[str], str], strong: Callable[[str], str], rest: Callable[[str], str]
) -> str:
    """A paragraph, its formulas and stressed words written in the way of a format."""
    pieces, at = [], 0
    for mark in _INLINE.finditer(text):
        pieces += [rest(text[at : mark.start()])]
        pieces += [code(mark[1]) if mark[1] is not None else strong(mark[2])]
        at = mark.end()
    return "".join([*pieces, rest(text[at:])])


# --- Markdown ------------------------------------------------------------------------------------


def markdown(
    sheet: Sheet, *, solution: bool = False, picture: Callable[[Section], str] | None = None
) -> str:
    """A sheet in Markdown, whose tables are the form for answers.

    ``picture`` writes the image of a section that has one; without it the graph stands as text.
    """
    title, under = headings(sheet, solution=solution)
    lines = [f"# {_md(title)}", "", _md(under), "", f"<!-- cgprimer-sheet {embedded(sheet)} -->"]
    for section in sections(sheet):
        lines += ["", f"## {section.heading}", "", *_markdown_section(section, solution, picture)]
    return "\n".join(lines) + "\n"


def _markdown_section(
    section: Section, solution: bool, picture: Callable[[Section], str] | None
) -> list[str]:
    lines: list[str] = []
    for paragraph in section.text:
        lines += [paragraph, ""]
    if section.picture:
        shown = picture(section) if picture else f"```text\n{section.problem.graph}\n```"
        lines += [shown, ""]
    for header, rows in section.tables(_markdown_cell, solution):
        head = [_md(text) for text in header]
        lines += [table(head, rows, style="markdown", left=range(len(head))), ""]
    return lines[:-1]


def _markdown_cell(cell: Cell, _: bool) -> str:
    text = format_cell(cell).replace("|", "\\|") or " " * 12
    code = isinstance(cell, Apply | Name | DisplayFormula)
    return f"`{text}`" if code else text.replace(" -> ", " → ")


def _md(text: str) -> str:
    """A text without marks of Markdown or HTML."""
    return re.sub(r"([\\`*_<>|#\[\]])", r"\\\1", " ".join(text.split()))


# --- notebooks -----------------------------------------------------------------------------------


def notebook(
    sheet: Sheet, *, solution: bool = False, svg: Callable[[Diagram], str] | None = None
) -> str:
    """A sheet as a notebook: a cell with a dictionary to fill in for each problem."""
    title, under = headings(sheet, solution=solution)
    cells = [_text_cell(f"# {_md(title)}\n\n{_md(under)}", 0)]
    for section in sections(sheet):
        attachments: dict[str, Any] = {}
        shown = None
        if section.picture and svg:
            data = b64encode(svg(section.picture).encode()).decode()
            attachments = {"graph.svg": {"image/svg+xml": data}}
            shown = lambda one: "![the graph](attachment:graph.svg)"  # noqa: E731
        body = "\n".join(_markdown_section(section, solution, shown))
        cells.append(_text_cell(f"## {section.heading}\n\n{body}", 2 * section.place, attachments))
        if not solution:
            cells.append({
                "cell_type": "code", "execution_count": None, "id": f"answers-{section.place}",
                "metadata": {}, "outputs": [],
                "source": format_dictionary(section.place, section.worksheet),
            })  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"cgprimer": sheet.to_dict(), "kernelspec": kernel}
    return (
        format_json({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}) + "\n"
    )


def _text_cell(text: str, place: int, attachments: dict[str, Any] | None = None) -> dict[str, Any]:
    more = {"attachments": attachments} if attachments else {}
    return {"cell_type": "markdown", "id": f"text-{place}", "metadata": {}, "source": text, **more}
