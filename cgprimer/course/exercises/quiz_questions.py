"""Quiz questions for course systems: the fields of a problem, with answers and feedback.

A field accepts a number or a choice. Correct answers, tolerances and the feedback on wrong answers
come from the grader of sheets. The fields do not depend on the course system.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import lcm
from typing import NamedTuple

from cgprimer.course.checks.check_results import sanitize
from cgprimer.course.checks.sheets.answer_values import parse_names
from cgprimer.course.checks.sheets.sheet_grading import (
    CORRECT_UNITS,
    PredictedAnswer,
    predict_answers,
)
from cgprimer.course.checks.sheets.sheet_problems import Blank, Cell, Sheet, list_numbers
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet, compute_tolerance
from cgprimer.course.exercises.documents import Section, split_text
from cgprimer.course.exercises.printed_sheets import HtmlCell, draw_svg, format_html_cell
from cgprimer.expressions import parse
from cgprimer.support.number_format import format_number
from cgprimer.support.templates import Markup, render_template

_DIGITS = 12  # significant digits of numbers in files
_NONE = "none of these"


@dataclass(frozen=True)
class PredictedNumber:
    """A wrong number that a known mistake leads to.

    Attributes:
        value: the number.
        tolerance: the largest difference at which an answer matches the number.
        fraction: the fraction of the points that the number earns.
        message: the feedback.
    """

    value: str
    tolerance: float
    fraction: float
    message: str


@dataclass(frozen=True)
class NumberField:
    """A field for a number.

    Attributes:
        value: the correct number.
        tolerance: the largest difference from the number at which an answer is correct.
        predicted: the wrong numbers that known mistakes lead to, the most likely first.
        weight: the weight of the field relative to the other fields of the question.
        number: the position of the field in the question, from 1.
        entry: the position in a matrix, such as ``row 1, column 2``; empty for a scalar.
    """

    value: str
    tolerance: float
    predicted: Sequence[PredictedNumber]
    weight: int
    number: int
    entry: str = ""


@dataclass(frozen=True)
class ChoiceField:
    """A field with options, of which one is correct, or several if ``multiple`` is true."""

    options: Sequence[str]
    correct: frozenset[str]
    multiple: bool
    weight: int
    number: int
    entry: str = ""


Field = NumberField | ChoiceField


class QuizCell(NamedTuple):
    """A table cell of a quiz question: its content, or rows of fields written as markup."""

    content: HtmlCell
    fields: list[list[Markup]]


class QuizTable(NamedTuple):
    """A table of a quiz question."""

    header: Sequence[str]
    rows: list[list[QuizCell]]


@dataclass(frozen=True)
class QuizQuestion:
    """A problem of an exercise sheet as a quiz question.

    Attributes:
        section: the problem with its worksheet; its number is the position in its pool.
    """

    section: Section

    @property
    def name(self) -> str:
        """The name of the question in the question bank."""
        return f"{self.section.problem.kind} {self.section.number:03d}"

    @cached_property
    def identifier(self) -> str:
        """The hash of the problem, which identifies the question."""
        return sha256(_describe_problem(self.section).encode()).hexdigest()[:16]

    @cached_property
    def fields(self) -> dict[str, list[list[Field]]]:
        """The rows of fields for each blank, keyed by the name of the blank, in order.

        A scalar and a choice have one field, a matrix one field for each entry. Shapes have no
        fields, because the fields of the entries show them.
        """
        worksheet = self.section.worksheet
        blanks = [blank for blank in worksheet.blanks if blank.form != "shape"]
        sizes = {b.name: len(list_numbers(b.value)) if b.form == "array" else 1 for b in blanks}
        points = self.section.problem.asked.get("points") or 0
        weight = points // len(blanks) if points % len(blanks) == 0 else 0
        weight = (weight or 1) * lcm(*sizes.values())
        predicted = {blank.name: wrong for blank, wrong in predict_answers(worksheet)}
        fields: dict[str, list[list[Field]]] = {}
        number = 1
        for blank in blanks:
            if blank.name in predicted:
                wrong = predicted[blank.name]
                fields[blank.name] = _build_number_fields(
                    blank, wrong, worksheet.digits, weight, number
                )
            else:
                fields[blank.name] = [[self._build_choice_field(blank, weight, number)]]
            number += sizes[blank.name]
        return fields

    def list_fields(self) -> list[tuple[Blank, Field]]:
        """Return all fields in the order of the computation, each with its blank."""
        blanks = {blank.name: blank for blank in self.section.worksheet.blanks}
        return [
            (blanks[name], field)
            for name, rows in self.fields.items()
            for row in rows
            for field in row
        ]

    def _build_choice_field(self, blank: Blank, weight: int, number: int) -> ChoiceField:
        """Build the field for a blank that asks for a name or for several names."""
        worksheet = self.section.worksheet
        if blank.form == "name":
            rows = worksheet.given_table[1] if worksheet.given_table else ()
            names = [str(row[0]) for row in rows]
            return ChoiceField(names, frozenset({blank.value}), False, weight, number)
        correct = parse_names(blank.value) or [_NONE]
        graph = parse(self.section.problem.graph, name="<sheet>")
        options = dict.fromkeys((*graph.variables, *correct, _NONE))
        return ChoiceField([*options], frozenset(correct), True, weight, number)

    def render(
        self,
        format_field: Callable[[Field], Markup],
        picture: str,
        *,
        paragraphs: Sequence[str] = (),
    ) -> str:
        """Render the question as HTML.

        Args:
            format_field: formats a field.
            picture: the address of the picture.
            paragraphs: further paragraphs below the text of the problem.
        """

        def format_quiz_cell(cell: Cell) -> QuizCell:
            """Format a cell; blanks contain the markup of their fields."""
            if not isinstance(cell, Blank):
                return QuizCell(format_html_cell(cell, False), [])
            if cell.name not in self.fields:  # a shape
                return QuizCell(format_html_cell(str(cell.value), False), [])
            rows = [[format_field(field) for field in row] for row in self.fields[cell.name]]
            return QuizCell(format_html_cell("", True), rows)

        worksheet = self.section.worksheet
        tables = [worksheet.given_table] if worksheet.given_table else []
        text = (
            *worksheet.text,
            *self.section.describe_digits("write decimals such as `0.75`, not fractions"),
            *paragraphs,
        )
        return render_template(
            "course/exercises/quiz_question.html",
            title=split_text(worksheet.title),
            paragraphs=map(split_text, text),
            picture=picture if self.section.picture else "",
            tables=[
                QuizTable(header, [[format_quiz_cell(cell) for cell in row] for row in rows])
                for header, rows in (*tables, (worksheet.header, worksheet.rows))
            ],
        )

    def render_solution(self) -> str:
        """Render the solution as HTML: the tables filled in, with the formulas of derivatives."""
        tables = [
            QuizTable(table.header, [[QuizCell(cell, []) for cell in row] for row in table.rows])
            for table in self.section.format_tables(format_html_cell, True)
        ]
        return render_template(
            "course/exercises/quiz_question.html",
            title=split_text("Solution"),
            paragraphs=[],
            picture="",
            tables=tables,
        )

    def draw_picture(self) -> bytes:
        """Draw the picture of the problem as SVG; return nothing if the problem has no picture."""
        return draw_svg(self.section.picture) if self.section.picture else b""


class QuestionPool(NamedTuple):
    """Questions of one kind, from which a course system may select at random."""

    kind: str
    questions: list[QuizQuestion]


def collect_pools(sheets: Iterable[Sheet]) -> list[QuestionPool]:
    """Collect the different problems of all sheets in one pool for each kind.

    The questions contain neither names of students nor identifiers of sheets.
    """
    pools: dict[str, dict[str, QuizQuestion]] = {}
    for sheet in sheets:
        for problem in sheet.problems:
            pool = pools.setdefault(problem.kind, {})
            section = Section(len(pool) + 1, problem, build_worksheet(problem))
            pool.setdefault(_describe_problem(section), QuizQuestion(section))
    return [QuestionPool(kind, [*pool.values()]) for kind, pool in pools.items()]


def clean_title(sheets: Sequence[Sheet]) -> str:
    """Return the title of the sheets in one line, without characters that are invalid in XML."""
    title = sheets[0].title if sheets else ""
    return " ".join(sanitize(title).split()) or "Exercises"


def _describe_problem(section: Section) -> str:
    """Return the data of a problem as text."""
    problem = section.problem
    return json.dumps([problem.kind, problem.graph, dict(problem.asked)], sort_keys=True)


def _build_number_fields(
    blank: Blank, predicted: Iterable[PredictedAnswer], digits: int, weight: int, first: int
) -> list[list[Field]]:
    """Build the field of a scalar, or the fields of a matrix in rows.

    Args:
        blank: the blank.
        predicted: the wrong answers that mistakes lead to.
        digits: the number of significant digits; 0 for exact numbers.
        weight: the weight of the blank, which its fields share.
        first: the number of the first field.
    """
    values, shape = list_numbers(blank.value), getattr(blank.value, "shape", ())
    width = shape[-1] if shape else 1
    answers = [(list_numbers(answer.value), answer) for answer in predicted]
    fields = list[Field]()
    for index, value in enumerate(values):
        numbers = [
            PredictedNumber(
                format_number(wrong[index], _DIGITS),
                compute_tolerance(wrong[index], digits),
                answer.fraction,
                answer.message,
            )
            for wrong, answer in answers
        ]
        text, tolerance = (
            format_number(value, _DIGITS),
            compute_tolerance(value, digits, CORRECT_UNITS),
        )
        distinct = [*_select_distinct(text, tolerance, numbers)]
        entry = f"row {index // width + 1}, column {index % width + 1}" if shape else ""
        fields.append(
            NumberField(text, tolerance, distinct, weight // len(values), first + index, entry)
        )
    return [fields[k : k + width] for k in range(0, len(fields), width)]


def _select_distinct(
    value: str, tolerance: float, predicted: Iterable[PredictedNumber]
) -> Iterator[PredictedNumber]:
    """Yield the predicted numbers that match neither the correct number nor an earlier one."""
    accepted = [(float(value), tolerance)]
    for number in predicted:
        if all(abs(float(number.value) - v) > t for v, t in accepted):
            accepted.append((float(number.value), number.tolerance))
            yield number
