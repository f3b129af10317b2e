"""Worksheets of matrices, pictures and planted mistakes, and of problems of any kind.

The sheet, the solution and the grader use the worksheet that :func:`build_worksheet` returns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import floor, isfinite, log10
from typing import Any

from cgprimer.analysis.trace import trace
from cgprimer.course.checks.sheets.optimizer_worksheet import build_optimizer_worksheet
from cgprimer.course.checks.sheets.sheet_problems import Blank, Cell, Problem, Sheet, Worksheet
from cgprimer.course.checks.sheets.sheet_tables import (
    BUILDERS,
    Values,
    add_terms,
    build_list_worksheet,
    build_path_formulas,
    build_trace_table,
    evaluate_formula,
    evaluate_variables,
    list_paths,
)
from cgprimer.errors import CgprimerError, DataError
from cgprimer.expressions import (
    Expression,
    ExpressionGraph,
    parse,
    substitute,
)
from cgprimer.support.number_format import format_array, format_number
from cgprimer.support.value_names import internal_name

_BELOW_ONE = 0.999  # tolerance at which different integers do not agree

# --- matrices ------------------------------------------------------------------------------------


def _format_shape(value: Any) -> str:
    """Format the shape of a value in the notation of exercise sheets, such as ``2x3``."""
    return "x".join(map(str, getattr(value, "shape", ()))) or "number"


def _build_matrix_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet that asks for the shapes and values in a forward and backward pass."""
    steps = trace(graph, of=settings.get("of"), method="reverse")
    definitions = graph.definitions if settings.get("level") == "variables" else {}
    known_values = {row.name: row.value for row in steps.rows if row.tree is None}
    inner: dict[str, Expression] = {}  # parts of definitions that have no rows
    rows: list[Sequence[Cell]] = [
        (row.name, row.expression, _format_shape(row.value), format_array(row.value, width=999))
        for row in steps.rows
        if row.tree is None
    ]
    blanks: list[Blank] = []
    for row in (*steps.rows, *steps.backward):
        if row.tree is None:
            continue
        is_adjoint = row in steps.backward
        form = "number" if isinstance(row.value, float) else "array"
        tree = substitute(row.tree, inner)
        if definitions and not (is_adjoint or row.name in definitions or row.name == steps.of):
            inner[row.name] = tree
            continue
        name, shape = internal_name("shape", row.name), _format_shape(row.value)
        row_blanks = (
            Blank(row.name, "shape", name, shape, form="shape"),
            Blank(row.name, "value", row.name, row.value, tree, form),
        )
        blanks += row_blanks
        expression = "adjoint" if is_adjoint else definitions.get(row.name, row.tree)
        rows.append((row.name, expression, *row_blanks))
    last = steps.of
    text = (
        f"Complete the rows forward to `{last}`; then, backward from `{last}`, the rows of the"
        f" adjoints: `bar_h` is the derivative of `{last}` with respect to `h`.",
    )
    notation = (
        "Write shapes such as `2x3`, or `number` for a scalar, and matrices row by row, such as"
        " `[[1, 2], [3, 4]]`.",
    )
    header = ("row", "expression", "shape", "value")
    title, digits = "Matrix back-propagation", settings["digits"]
    return Worksheet(title, text, header, rows, blanks, known_values, digits, notation=notation)


# --- pictures ------------------------------------------------------------------------------------


def _build_picture_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet that asks questions about a picture of the graph."""
    values = evaluate_variables(graph)
    known_values, blanks = dict(values), list[Blank]()
    for number, (what, *about) in enumerate(settings["questions"], start=1):
        tree: Expression | None = None
        form = "names"
        value: Any = None
        if what == "inputs":
            sentence, value = "the inputs", graph.inputs
        elif what == "depends_on":
            sentence = f"what {about[0]} depends on directly (variables)"
            value = graph.depends_on.get(about[0], ())
        elif what == "leads_to":
            sentence = f"what {about[0]} leads to directly"
            value = graph.leads_to.get(about[0], ())
        elif what == "count":
            sentence, form = f"how many paths lead from {about[0]} to {about[1]}", "number"
            value = float(len(list_paths(graph, about[1], about[0])))
        else:
            wrt, of, *path = about
            along, partials = build_path_formulas(graph, of, wrt)
            known_values |= {
                internal_name("edge", a, b): evaluate_formula(p, values)
                for (a, b), p in partials.items()
            }
            form, sentence, tree = "number", f"d{of}/d{wrt}", add_terms(along.values())
            if what == "path":
                tree = along[tuple(path[0])]
                sentence = f"the share of the path {' -> '.join(path[0])} in {sentence}"
            value = evaluate_formula(tree, known_values)
        name = {"path": internal_name("path", str(number)), "sum": "sum"}.get(what, f"q{number}")
        shown = ", ".join(value) if form == "names" else value
        blanks.append(Blank(sentence, "answer", name, shown, tree, form))
    drawn = any(what in ("path", "sum") for what, *_ in settings["questions"])
    labels = "The label of an edge is the derivative of its head with respect to its tail."
    text = (f"Use only the picture. {labels}" if drawn else "Use only the picture.",)
    notation = ("Separate names by commas, in any order.",)
    look: dict[str, Any] = {"partials": True} if drawn else {}
    if not graph.inputs:  # the paths start at parameters
        look["parameters"] = "vertices"
    title, digits = "Read the picture", settings["digits"]
    return build_list_worksheet(
        title, text, "question", blanks, known_values, digits, picture=look, notation=notation
    )


# --- a planted mistake ---------------------------------------------------------------------------


def _list_row_names(name: str, mark: str | None) -> tuple[str, ...]:
    """Return the names of the values in a row: the value and, if any, the tangent or adjoint."""
    return (name, internal_name(mark, name)) if mark else (name,)


def _build_mistake_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet that asks for the one mistake planted in a table."""
    kind, digits = settings["table"], settings["digits"]
    rows, blanks = build_trace_table(graph, settings, kind)
    shown = dict(zip((b.name for b in blanks), map(float, settings["shown"]), strict=True))
    values = {row.name: row.value for row in rows if row.tree is None} | shown
    first, correct = _find_mistake(blanks, values, digits)
    mark = {"tangent": "dot", "adjoint": "bar"}.get(kind)
    table: list[Sequence[Cell]] = [
        (row.name, row.tree or row.expression,
         *(format_number(values[n], digits or 10) for n in _list_row_names(row.name, mark)))
        for row in rows
    ]  # fmt: skip
    column = {"trace": "value"}.get(kind, kind)
    order = (
        "from the last row to the first" if kind == "adjoint" else "from the first row to the last"
    )
    seed = f" with respect to `{settings['wrt']}`" if kind == "tangent" else ""
    text = (
        f"This table was filled in by hand{seed}: first the values, then the {column}s, {order}."
        if mark
        else "This table was filled in by hand, from the first row to the last.",
        f"One {column} is wrong, and the {column}s that depend on it were computed from it."
        " Which row is the first wrong one, and what is its correct number?",
    )
    answers = (
        Blank("the row that first went wrong", "answer", "row", first.row, form="name"),
        Blank(f"its right {column}", "answer", "right", correct, first.tree),
    )
    header = ("row", "expression", "value", *([kind] if mark else []))
    known_values = {**values, first.name: correct}
    return build_list_worksheet(
        "Find the mistake",
        text,
        "question",
        answers,
        known_values,
        digits,
        given_table=(header, table),
    )


def _find_mistake(blanks: Sequence[Blank], values: Values, digits: int) -> tuple[Blank, Any]:
    """Return the first blank with a wrong value, and the correct value.

    The correct value is computed from the numbers of the table, which may be wrong themselves.

    Args:
        blanks: the blanks of the table.
        values: the numbers of the table, keyed by name.
        digits: the number of significant digits; 0 for exact numbers.
    """
    for blank in blanks:
        assert blank.tree is not None
        correct = evaluate_formula(blank.tree, values)
        if not is_same_number(correct, values[blank.name], digits):
            return blank, correct
    raise ValueError("the table has no mistake to find")


def is_same_number(one: float, other: float, digits: int) -> bool:
    """Return whether two numbers agree in the given number of significant digits.

    If ``digits`` is 0, they must agree up to rounding errors.
    """
    if digits:
        difference = abs(one - other)
        is_equal_text = format_number(one, digits) == format_number(other, digits)
        return is_equal_text or difference <= compute_last_place(one, digits)
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1e-3)


def compute_last_place(value: float, digits: int) -> float:
    """Return the size of one unit in the last significant digit of a number.

    >>> compute_last_place(21.5, 4), compute_last_place(0.0, 4)
    (0.01, 0.0001)
    """
    if not value or not isfinite(value):
        return 10.0**-digits
    return 10.0 ** (floor(log10(abs(value))) + 1 - digits)


def compute_tolerance(value: float, digits: int, units: float = 1.0) -> float:
    """Return the largest difference from a number at which an answer still agrees with it.

    An integer with at most ``digits`` digits is not rounded, so another integer never agrees.

    Args:
        value: the number.
        digits: the number of significant digits; 0 for exact numbers.
        units: the tolerance of a rounded number in units of the last place.

    >>> compute_tolerance(2.0, 0), compute_tolerance(21.537, 4, 2), compute_tolerance(2345, 4, 2)
    (2e-09, 0.02, 0.999)
    """
    exact = 1e-9 * max(abs(value), 1e-3)
    if not digits:
        return exact
    tolerance = units * compute_last_place(value, digits)
    if float(value).is_integer() and abs(value) < 10**digits:
        tolerance = min(tolerance, _BELOW_ONE)
    return max(exact, tolerance)


_BUILDERS = {
    **BUILDERS,
    "shapes": _build_matrix_worksheet,
    "optimizer": build_optimizer_worksheet,
    "picture": _build_picture_worksheet,
    "mistake": _build_mistake_worksheet,
}


@lru_cache(maxsize=64)  # the sheet, its form, its solution and its grader need the same worksheet
def _build_cached_worksheet(kind: str, graph: str, settings: str) -> Worksheet:
    """Build the worksheet for a problem whose settings are a JSON string."""
    return _BUILDERS[kind](parse(graph, name="<sheet>"), json.loads(settings))


def build_worksheet(problem: Problem) -> Worksheet:
    """Build the worksheet of a problem.

    Raises:
        DataError: the data of the problem are damaged.

    >>> problem = Problem("trace", "input xa = 2; xb = xa^2; xw = 3*xb", {"digits": 0})
    >>> worksheet = build_worksheet(problem)
    >>> [(blank.name, blank.value) for blank in worksheet.blanks]
    [('xb', 4.0), ('xw', 12.0)]
    """
    try:
        return _build_cached_worksheet(problem.kind, problem.graph, json.dumps(dict(problem.asked)))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"a problem of the sheet is damaged: {error!r}"[:200]) from None
    except CgprimerError as error:
        message = f"a problem of the sheet has no solution: {error.message}"
        raise DataError(message, hint=error.hint) from None


def build_worksheets(sheet: Sheet) -> Iterator[tuple[int, Worksheet]]:
    """Yield the number and the worksheet of each problem on a sheet."""
    return enumerate(map(build_worksheet, sheet.problems), start=1)
