"""Sheets as Markdown and as notebooks, and what all formats share.

A student's file holds questions. A solution has the same tables filled in, and beside a derivative
how it follows; both are worked out when the file is written.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cgprimer.analysis.tables import table
from cgprimer.checking.sheets.forms import dictionary
from cgprimer.checking.sheets.problems import Blank, Cell, Problem, Sheet, Worksheet, cell_text
from cgprimer.checking.sheets.worked import worked
from cgprimer.core.graph import parse
from cgprimer.core.language.syntax import Apply, Expression, Name, Number, fold
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.tape.printing import shown_name
from cgprimer.errors import plural
from cgprimer.files import json_text
from cgprimer.number_format import number
from cgprimer.pictures.diagram import Diagram
from cgprimer.pictures.graph_diagrams import graph_diagram

HOW = "how it follows"
_INLINE = re.compile(r"`([^`]*)`|\*([^*]+)\*")
_FORMULA_GIVEN = ("trace", "optimizer")  # kinds whose tables show how each number follows


@dataclass(frozen=True)
class Section:
    """A problem as it is set: its number, its kind and its table."""

    place: int
    problem: Problem
    made: Worksheet

    @cached_property
    def picture(self) -> Diagram | None:
        """The graph that is drawn above the table, if there is one."""
        if self.made.picture is None:
            return None
        return graph_diagram(parse(self.problem.graph, name="<sheet>"), **self.made.picture)

    @property
    def heading(self) -> str:
        """Number, title and points."""
        return f"Problem {self.place}. {self.made.title} ({plural(len(self.made.blanks), 'point')})"

    @property
    def text(self) -> tuple[str, ...]:
        """Paragraphs, with the digits that are asked for at the end."""
        if not any(blank.form in ("number", "array") for blank in self.made.blanks):
            return self.made.text
        said = f"Round to {self.made.digits} significant digits; keep more on the way if you can."
        exact = "All numbers are exact; fractions such as `3/4` are fine."
        return (*self.made.text, said if self.made.digits else exact)

    def tables(
        self, cell: Callable[[Cell], str], *, solution: bool
    ) -> Iterator[tuple[tuple[str, ...], list[list[str]]]]:
        """Headers and rows of the tables; blanks are left empty, or filled in for a solution."""

        def written(given: Cell) -> str:
            if not isinstance(given, Blank):
                return cell(given)
            return cell(given.text(self.made.digits)) if solution else ""

        if self.made.above:
            header, rows = self.made.above
            yield header, [[written(c) for c in row] for row in rows]
        rows_made = [[written(c) for c in row] for row in self.made.rows]
        header = self.made.header
        if solution and self.problem.kind not in _FORMULA_GIVEN:
            found = [self._how(row) for row in self.made.rows]
            if any(found):
                header = (*header, HOW)
                rows_made = [
                    [*row, cell(tree) if tree is not None else ""]
                    for row, tree in zip(rows_made, found, strict=True)
                ]
        yield header, rows_made

    def _how(self, row: tuple[Cell, ...]) -> Expression | None:
        """The formula of a row's derivative; along edges and paths in numbers."""
        last = row[-1]
        if not isinstance(last, Blank) or last.tree is None or any(c is last.tree for c in row):
            return None
        values = dict(self.made.given) | {b.name: b.value for b in self.made.blanks}
        if last.column == "value" and self.problem.kind != "shapes":
            return None

        def leaf(node: Name | Number) -> Expression:
            if isinstance(node, Name) and node.name.startswith(("edge.", "path.")):
                return Number(float(number(values[node.name], self.made.digits or 10)))
            return Name(shown_name(node.name)) if isinstance(node, Name) else node

        tree = fold(last.tree, leaf, lambda name, operands: Apply(name, tuple(operands)))
        return (
            None if any(isinstance(c, Apply) and unparse(c) == unparse(tree) for c in row) else tree
        )


def sections(sheet: Sheet) -> list[Section]:
    """The problems of a sheet, worked out."""
    return [Section(k, p, worked(p)) for k, p in enumerate(sheet.problems, start=1)]


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
    for header, rows in section.tables(_markdown_cell, solution=solution):
        head = [_md(text) for text in header]
        wide = [[cell or " " * 12 for cell in row] for row in rows]
        lines += [table(head, wide, style="markdown", left=range(len(head))), ""]
    return lines[:-1]


def _markdown_cell(cell: Cell) -> str:
    text = cell_text(cell).replace("|", "\\|")
    return f"`{text}`" if isinstance(cell, Apply | Name) else text.replace(" -> ", " → ")


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
                "metadata": {}, "outputs": [], "source": dictionary(section.place, section.made),
            })  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"cgprimer": sheet.to_dict(), "kernelspec": kernel}
    return json_text({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}) + "\n"


def _text_cell(text: str, place: int, attachments: dict[str, Any] | None = None) -> dict[str, Any]:
    more = {"attachments": attachments} if attachments else {}
    return {"cell_type": "markdown", "id": f"text-{place}", "metadata": {}, "source": text, **more}
