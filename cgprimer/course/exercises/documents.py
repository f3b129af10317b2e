"""Exercise sheets as Markdown and as notebooks, and the content that all formats share.

A student's file contains only questions. A solution has the same tables filled in, and next to a
derivative the formula from which it follows; both are computed when the file is written.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any, Generic, NamedTuple, TypeVar

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
from cgprimer.support.templates import Markup, escape_markdown, render_template
from cgprimer.support.value_names import format_name, parse_internal
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

_MARKS = re.compile(r"`([^`]*)`|\*([^*]+)\*")
_SELF_EXPLANATORY = ("trace", "optimizer")  # kinds whose tables show how each value is computed
_BLANK_WIDTH = 12  # spaces of an empty cell in Markdown
FormattedCell = TypeVar("FormattedCell")


class TextPiece(NamedTuple):
    """A piece of a paragraph; its kind is ``text``, ``code`` or ``emphasis``."""

    kind: str
    text: str


@dataclass(frozen=True)
class SheetTable(Generic[FormattedCell]):
    """A table of a problem, with its cells formatted for one type of document."""

    header: Sequence[str]
    rows: list[list[FormattedCell]]


@dataclass(frozen=True)
class Section:
    """A problem of an exercise sheet, with its number and its worksheet.

    Attributes:
        number: the number of the problem, from 1.
        problem: the question.
        worksheet: the tables with their solution.
    """

    number: int
    problem: Problem
    worksheet: Worksheet

    @cached_property
    def picture(self) -> Diagram | None:
        """The diagram above the tables, or None if the problem has no diagram."""
        if self.worksheet.picture is None:
            return None
        return graph_diagram(parse(self.problem.graph, name="<sheet>"), **self.worksheet.picture)

    @property
    def heading(self) -> str:
        """The heading of the problem: number, title and points."""
        points = round(fsum(self.problem.points_of_blanks(len(self.worksheet.blanks))))
        return f"Problem {self.number}. {self.worksheet.title} ({pluralize(points, 'point')})"

    @property
    def paragraphs(self) -> Sequence[str]:
        """The paragraphs of the question on a sheet; the last one states the required digits."""
        text = (*self.worksheet.text, *self.worksheet.notation)
        return (*text, *self.describe_digits("you may write fractions such as `3/4`"))

    def describe_digits(self, notation: str) -> Sequence[str]:
        """Return a paragraph about the required digits, or nothing if no blank is a number.

        Args:
            notation: the notation of exact numbers.
        """
        worksheet = self.worksheet
        if not any(blank.form in ("number", "array") for blank in worksheet.blanks):
            return ()
        rounding = (
            f"Round to {worksheet.digits} significant digits; use more digits for intermediate"
            " results if you can."
        )
        return (rounding if worksheet.digits else f"All numbers are exact; {notation}.",)

    def format_tables(
        self, format_content: Callable[[Cell, bool], FormattedCell], solution: bool
    ) -> list[SheetTable[FormattedCell]]:
        """Format the tables of the problem, with the blanks left empty or filled in.

        Args:
            format_content: formats a cell; its second argument tells whether the cell is a blank.
            solution: fill in the blanks, and add a column with the formulas of derivatives.
        """

        def format_row(row: Sequence[Cell]) -> list[FormattedCell]:
            """Format the cells of a row, with the blanks left empty or filled in."""
            return [
                format_content(cell.format_value(self.worksheet.digits) if solution else "", True)
                if isinstance(cell, Blank)
                else format_content(cell, False)
                for cell in row
            ]

        tables = []
        if self.worksheet.given_table:
            header, rows = self.worksheet.given_table
            tables.append(SheetTable(header, [format_row(row) for row in rows]))
        header, rows = self.worksheet.header, self.worksheet.rows
        formatted = [format_row(row) for row in rows]
        formulas = [self._find_derivative_formula(row) for row in rows if solution]
        if any(formulas):
            header = (*header, "formula")
            for cells, formula in zip(formatted, formulas, strict=True):
                cells.append(format_content(formula or "", False))
        return [*tables, SheetTable(header, formatted)]

    def _find_derivative_formula(self, row: Sequence[Cell]) -> Cell | None:
        """Return the formula for a row's derivative, or None if the row already shows it.

        Partials of edges and products along paths are numbers in the formula.
        """
        last, kind = row[-1], self.problem.kind
        if not isinstance(last, Blank) or last.tree is None or kind in _SELF_EXPLANATORY:
            return None
        if last.column == "value" and kind != "shapes":
            return None
        values = dict(self.worksheet.known_values) | {
            b.name: b.value for b in self.worksheet.blanks
        }
        replacements: dict[str, Expression] = {
            name: Name(format_name(name)) for name in names_in(last.tree)
        }
        for name in replacements:
            if parse_internal(name).kind in ("edge", "path"):
                number = format_number(values[name], self.worksheet.digits or 10)
                replacements[name] = Number(float(number))
        tree = substitute(last.tree, replacements)
        expressions = [format_cell(cell) for cell in row if isinstance(cell, Apply)]
        formula = unparse(tree)
        is_internal = last.column == "value" and "stop_gradient" in formula  # in softmax
        if is_internal or last.tree in row or formula in expressions:
            return None
        display = readable(tree)
        return tree if display == formula else DisplayFormula(display)


def build_sections(sheet: Sheet) -> list[Section]:
    """Build a section for each problem of a sheet, with the tables to fill in."""
    return [Section(k, p, build_worksheet(p)) for k, p in enumerate(sheet.problems, start=1)]


def format_headings(sheet: Sheet, *, solution: bool) -> tuple[str, str]:
    """Return the title and the subtitle of a sheet or of its solution."""
    title = f"{sheet.title}: solution" if solution else sheet.title
    return title, " · ".join(filter(None, (sheet.student, f"sheet {sheet.identifier}")))


def encode_sheet(sheet: Sheet) -> Markup:
    """Encode a sheet as one line of JSON that can be embedded in a comment or a script."""
    text = json.dumps(sheet.to_dict(), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e"))


def split_text(text: str) -> list[TextPiece]:
    """Split a paragraph into plain text, code between backticks and emphasis between asterisks.

    >>> [piece.kind for piece in split_text("Compute `xw` and *all* values.")]
    ['text', 'code', 'text', 'emphasis', 'text']
    """
    pieces, end = [], 0
    for match in _MARKS.finditer(text):
        pieces.append(TextPiece("text", text[end : match.start()]))
        kind, content = ("emphasis", match[2]) if match[1] is None else ("code", match[1])
        pieces.append(TextPiece(kind, content))
        end = match.end()
    return [*pieces, TextPiece("text", text[end:])]


# --- Markdown ------------------------------------------------------------------------------------


def render_markdown(
    sheet: Sheet,
    *,
    solution: bool = False,
    format_picture: Callable[[Section], str] | None = None,
) -> str:
    """Render a sheet in Markdown, with tables in which students fill in their answers.

    Args:
        sheet: the sheet.
        solution: fill in the tables.
        format_picture: returns the Markdown of a section's picture; by default the picture is
            replaced by the text of the graph.
    """
    title, subtitle = format_headings(sheet, solution=solution)
    sections = [
        {
            "heading": Markup(section.heading),
            "body": Markup(_render_section(section, solution, format_picture)),
        }
        for section in build_sections(sheet)
    ]
    return render_template(
        "course/exercises/sheet.md",
        title=title,
        subtitle=subtitle,
        data=encode_sheet(sheet),
        sections=sections,
    )


def _render_section(
    section: Section, solution: bool, format_picture: Callable[[Section], str] | None
) -> str:
    """Render the question, the picture and the tables of a section in Markdown."""
    picture = ""
    if section.picture:
        graph_text = f"```text\n{section.problem.graph}\n```"
        picture = format_picture(section) if format_picture else graph_text
    tables = []
    for sheet_table in section.format_tables(_format_markdown_cell, solution):
        header = [escape_markdown(name) for name in sheet_table.header]
        columns = range(len(header))
        tables.append(Markup(table(header, sheet_table.rows, style="markdown", left=columns)))
    return render_template(
        "course/exercises/sheet_section.md",
        paragraphs=map(Markup, section.paragraphs),
        picture=Markup(picture),
        tables=tables,
    ).rstrip("\n")


def _format_markdown_cell(cell: Cell, _: bool) -> str:
    """Format a table cell in Markdown: formulas as code, blanks as spaces."""
    text = format_cell(cell).replace("|", "\\|") or " " * _BLANK_WIDTH
    is_code = isinstance(cell, Apply | Name | DisplayFormula)
    return f"`{text}`" if is_code else text.replace(" -> ", " → ")


# --- notebooks -----------------------------------------------------------------------------------


def render_notebook(
    sheet: Sheet, *, solution: bool = False, svg: Callable[[Diagram], str] | None = None
) -> str:
    """Render a sheet as a notebook, with one dictionary of answers to fill in per problem.

    Args:
        sheet: the sheet.
        solution: fill in the tables instead of asking for answers.
        svg: draws a diagram; without this function the notebook has no pictures.
    """
    title, subtitle = map(escape_markdown, format_headings(sheet, solution=solution))
    cells = [_create_markdown_cell(f"# {title}\n\n{subtitle}", 0)]
    for section in build_sections(sheet):
        attachments: dict[str, Any] = {}
        format_picture = None
        if section.picture and svg:
            data = b64encode(svg(section.picture).encode()).decode()
            attachments = {"graph.svg": {"image/svg+xml": data}}
            format_picture = _link_attachment
        body = _render_section(section, solution, format_picture)
        text = f"## {section.heading}\n\n{body}"
        cells.append(_create_markdown_cell(text, 2 * section.number, attachments))
        if not solution:
            cells.append({
                "cell_type": "code",
                "execution_count": None,
                "id": f"answers-{section.number}",
                "metadata": {},
                "outputs": [],
                "source": format_dictionary(section.number, section.worksheet),
            })  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"cgprimer": sheet.to_dict(), "kernelspec": kernel}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return format_json(notebook) + "\n"


def _link_attachment(_: Section) -> str:
    """Return the Markdown that displays the picture attached to a notebook cell."""
    return "![the graph](attachment:graph.svg)"


def _create_markdown_cell(
    text: str, number: int, attachments: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Create a Markdown cell of a notebook; ``number`` makes its id unique."""
    optional = {"attachments": attachments} if attachments else {}
    return {
        "cell_type": "markdown",
        "id": f"text-{number}",
        "metadata": {},
        "source": text,
        **optional,
    }
