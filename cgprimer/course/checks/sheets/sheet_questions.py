"""Matrices, an optimizer's step, pictures and planted mistakes as tables with blanks.

`worked` makes the table of a question of any kind: for the sheet, the solution and the grader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import floor, isfinite, log10
from typing import Any

from cgprimer.analysis.trace import trace
from cgprimer.core.derivatives import gradient
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
    quote_definitions,
    quote_names,
    quote_values,
    solve_blank,
)
from cgprimer.errors import CgprimerError, DataError
from cgprimer.expressions import (
    Apply,
    Expression,
    ExpressionGraph,
    Name,
    Number,
    fold,
    parse,
    substitute,
)
from cgprimer.support.number_format import format_array, format_number
from cgprimer.support.value_names import internal_name
from cgprimer.training.optimizers import OPTIMIZER_TABLE
from cgprimer.training.schedules import SCHEDULES
from cgprimer.training.statement_tapes import parse_statements

# --- matrices ------------------------------------------------------------------------------------


def _format_shape(value: Any) -> str:
    return "x".join(map(str, getattr(value, "shape", ()))) or "number"


def _build_matrix_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Values forward and adjoints backward, each with its shape; one mark for each of the two."""
    found = trace(graph, of=settings.get("of"), method="reverse")
    written = graph.definitions if settings.get("level") == "variables" else {}
    known_values = {row.name: row.value for row in found.rows if row.tree is None}
    inner: dict[str, Expression] = {}  # parts of what is a row as it is written
    rows: list[Sequence[Cell]] = [
        (row.name, row.expression, _format_shape(row.value), format_array(row.value, width=999))
        for row in found.rows
        if row.tree is None
    ]
    blanks: list[Blank] = []
    for row in (*found.rows, *found.backward):
        if row.tree is None:
            continue
        back = row in found.backward
        form = "number" if isinstance(row.value, float) else "array"
        tree = substitute(row.tree, inner)
        if written and not (back or row.name in written or row.name == found.of):
            inner[row.name] = tree
            continue
        own = (
            Blank(
                row.name,
                "shape",
                internal_name("shape", row.name),
                _format_shape(row.value),
                form="shape",
            ),
            Blank(row.name, "value", row.name, row.value, tree, form),
        )
        blanks += own
        rows.append((row.name, "adjoint" if back else written.get(row.name, row.tree), *own))
    last = found.of
    text = (
        f"Write each value with its shape (such as `2x3`; `number` for a single one), forward to"
        f" `{last}`; then, back from `{last}`, the adjoint of each: `bar_h` is the derivative of"
        f" `{last}` with respect to `h`. Matrices are written row by row, as `[[1, 2], [3, 4]]`.",
    )
    header = ("row", "expression", "shape", "value")
    title, digits = "Matrix back-propagation", settings["digits"]
    return Worksheet(title, text, header, rows, blanks, known_values, digits)


# --- an optimizer's step -------------------------------------------------------------------------


def _write_for_paper(optimizer: str) -> str:
    """Return the statements of an optimizer as courses write them, without epsilon.

    >>> _write_for_paper("adagrad")
    's = s + g^2; p = p - rate*g/(sqrt(s))'
    """
    return OPTIMIZER_TABLE[optimizer].formula.replace("g*g", "g^2").replace(" + epsilon", "")


#: Update rules of worksheets, as statements.
RULES = {
    "sgd": _write_for_paper("sgd"),
    "decaying rate": f"r = {SCHEDULES['exponential'].formula}; p = p - r*g",
    "weight decay": "p = (1 - 2*rate*lambda)*p - rate*g",
    "proximal l1": "h = p - rate*g; p = sign(h)*max(abs(h) - 2*rate*lambda, 0)",
    "max-norm": "h = p - rate*g; n = norm; p = h*min(1, c/n)",
    **{n: _write_for_paper(n) for n in ("momentum", "nesterov", "adagrad", "rmsprop", "adam")},
}
_NORM = "norm"  # in a rule, the norm of the values of `h` of all parameters


def parse_rule(rule: str) -> tuple[tuple[str, Expression], ...]:
    """Return the assigned names and the expressions of a worksheet's update rule."""
    return parse_statements(RULES[rule])


def _build_optimizer_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    rule, names, digits = settings["rule"], list(settings["wrt"]), settings["digits"]
    state: Mapping[str, Mapping[str, float]] = settings["state"]
    hyper: Mapping[str, float] = settings["settings"]
    of = settings["of"]
    found = gradient(graph, of=of, wrt=names)
    point = graph.point(None)
    values: dict[str, Any] = {name: float(value) for name, value in hyper.items()}
    for name in names:
        values[internal_name("p", name)] = point[name]
        values |= {f"{part}.{name}": float(values[name]) for part, values in state.items()}
    known_values = dict(values)
    latest = {part: part for part in ("p", *state)}
    values |= {internal_name("g", name): found[name] for name in names}
    blanks = [Blank("g", name, internal_name("g", name), found[name]) for name in names]
    rows: list[Sequence[Cell]] = [("g", f"d{of}/dp", *blanks)]

    def renamed(tree: Expression, own: str) -> Expression:
        """A formula of the rule with the names of one parameter; as it is written of none."""

        def leaf(node: Name | Number) -> Expression:
            if isinstance(node, Number) or node.name in hyper:
                return node
            if node.name == _NORM:
                parts = (Name(internal_name("h", n) if own else f"h_{n}") for n in names)
                return Apply("sqrt", (add_terms(Apply("pow", (p, Number(2.0))) for p in parts),))
            name = latest.get(node.name, node.name)
            return Name(f"{name}.{own}" if own else name)

        return fold(tree, leaf, lambda name, operands: Apply(name, tuple(operands)))

    for name, expression in parse_rule(rule):
        new = f"{name}'" if name in latest else name
        own = [solve_blank(new, n, f"{new}.{n}", renamed(expression, n), values) for n in names]
        rows.append((new, renamed(expression, ""), *own))
        blanks += own
        latest[name] = new
    held = {
        p: [f"{format_number(v, 10)} for `{n}`" for n, v in own.items()] for p, own in state.items()
    }
    text = (
        *quote_definitions(graph),
        f"Do one step of *{rule}* on `{of}` for the parameters {quote_names(names)}"
        f" at {quote_values(point, point, 0)}; {quote_values(hyper, hyper, 0)}."
        f" The rule is worked through row by row, for each parameter `p` by itself; `g` is the"
        f" derivative of `{of}` with respect to it, and a name with a stroke is the new one.",
        *(f"Before the step `{part}` is {', '.join(before)}." for part, before in held.items()),
    )
    header = ("row", "formula", *names)
    return Worksheet(f"One step of {rule}", text, header, rows, blanks, known_values, digits)


# --- pictures ------------------------------------------------------------------------------------


def _build_picture_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Questions about a drawn graph; from the second difficulty on with partials on its edges."""
    values = evaluate_variables(graph)
    known_values, blanks = dict(values), list[Blank]()
    for number_, (what, *about) in enumerate(settings["questions"], start=1):
        tree: Expression | None = None
        form, value = "names", None  # type: str, Any
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
        name = {"path": internal_name("path", str(number_)), "sum": "sum"}.get(what, f"q{number_}")
        shown = ", ".join(value) if form == "names" else value
        blanks.append(Blank(sentence, "answer", name, shown, tree, form))
    drawn = any(what in ("path", "sum") for what, *_ in settings["questions"])
    text = (
        "Answer from the picture alone. Names are written apart by commas, in any order.",
        *(["On each edge stands the partial derivative of its head by its tail."] * drawn),
    )
    look: dict[str, Any] = {"partials": True} if drawn else {}
    if not graph.inputs:  # what everything begins with
        look["parameters"] = "vertices"
    title, digits = "Read the picture", settings["digits"]
    return build_list_worksheet(title, text, "question", blanks, known_values, digits, picture=look)


# --- a planted mistake ---------------------------------------------------------------------------


def _list_row_names(name: str, mark: str | None) -> tuple[str, ...]:
    """Return the names of a row's value and, with a mark, of its tangent or adjoint."""
    return (name, internal_name(mark, name)) if mark else (name,)


def _build_mistake_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """A worked table as somebody wrote it; its numbers are the question's, wrong ones included."""
    kind, digits = settings["table"], settings["digits"]
    rows, blanks = build_trace_table(graph, settings, kind)
    shown = dict(zip((b.name for b in blanks), map(float, settings["shown"]), strict=True))
    values = {row.name: row.value for row in rows if row.tree is None} | shown
    for first in blanks:
        assert first.tree is not None
        right = evaluate_formula(first.tree, values)
        if not is_same_number(right, shown[first.name], digits):
            break
    else:
        raise ValueError("no row is wrong")
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
        f"Somebody worked out this table{seed}: its values, and then its {column}s, {order}."
        if mark
        else "Somebody worked out this table, from the first row to the last.",
        f"One {column} is wrong, and those that follow from it were worked out with the wrong one."
        " Which row went wrong first, and what is right there?",
    )
    answers = (
        Blank("the row that first went wrong", "answer", "row", first.row, form="name"),
        Blank(f"its right {column}", "answer", "right", right, first.tree),
    )
    header = ("row", "expression", "value", *([kind] if mark else []))
    known_values = {**values, first.name: right}
    above = (header, table)
    return build_list_worksheet(
        "Find the mistake", text, "question", answers, known_values, digits, given_table=above
    )


def is_same_number(one: float, other: float, digits: int) -> bool:
    """Whether two numbers are the same in so many digits; 0 for all that arithmetic keeps."""
    if digits:
        return format_number(one, digits) == format_number(other, digits) or abs(
            one - other
        ) <= compute_last_place(one, digits)
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1e-3)


def compute_last_place(value: float, digits: int) -> float:
    """One in the last of so many digits of a number.

    >>> unit(21.5, 4), unit(0.0, 4)
    (0.01, 0.0001)
    """
    if not value or not isfinite(value):
        return 10.0**-digits
    return 10.0 ** (floor(log10(abs(value))) + 1 - digits)


_BUILDERS = {
    **BUILDERS,
    "shapes": _build_matrix_worksheet,
    "optimizer": _build_optimizer_worksheet,
    "picture": _build_picture_worksheet,
    "mistake": _build_mistake_worksheet,
}


@lru_cache(maxsize=64)  # a sheet, its form, its solution and its grader ask for the same
def _build_cached_worksheet(kind: str, graph: str, settings: str) -> Worksheet:
    return _BUILDERS[kind](parse(graph, name="<sheet>"), json.loads(settings))


def build_worksheet(problem: Problem) -> Worksheet:
    """A problem's table, its blanks and their values.

    Raises:
        DataError: the problem's data are not those of a sheet.

    >>> made = worked(Problem("trace", "input xa = 2; xb = xa^2; xw = 3*xb", {"digits": 0}))
    >>> [(blank.name, blank.value) for blank in made.blanks]
    [('xb', 4.0), ('xw', 12.0)]
    """
    try:
        return _build_cached_worksheet(problem.kind, problem.graph, json.dumps(dict(problem.asked)))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"a problem of the sheet is damaged: {error!r}"[:200]) from None
    except CgprimerError as error:
        what = f"a problem of the sheet cannot be worked out: {error.message}"
        raise DataError(what, hint=error.hint) from None


def build_worksheets(sheet: Sheet) -> Iterator[tuple[int, Worksheet]]:
    """The numbers of a sheet's problems, and their tables."""
    return enumerate(map(build_worksheet, sheet.problems), start=1)
