"""How finite differences, symbolic differentiation and path-sum reach a derivative, step by step.

A trace of forward or reverse mode has a tangent or an adjoint next to every value. The other
methods do something else, and this module tabulates it: evaluations and quotients, the derivative
formula of each variable, or the paths and the products of the partials along them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from cgprimer.analysis.latex import latex
from cgprimer.analysis.rules import rules
from cgprimer.analysis.text_tables import table
from cgprimer.core.edge_partials import partials
from cgprimer.errors import DifferentiationError, UsageError, pluralize
from cgprimer.expressions import Expression, ExpressionGraph, unparse
from cgprimer.support.number_format import format_latex_number, format_number
from cgprimer.tapes import Tape, differentiate, labels, values_of

Cell = str | float | Expression
_DIGITS = 12  # of evaluations, whose differences are in the last of them
_QUOTIENTS = {
    "central": "(f(x + h) - f(x - h))/(2h)",
    "forward": "(f(x + h) - f(x))/h",
    "complex-step": "Im f(x + ih)/h",
}


@dataclass(frozen=True, slots=True)
class MethodSteps:
    """The steps of one method as a table.

    Attributes:
        title: a sentence on what the rows hold.
        columns: the titles of the columns.
        rows: a text, an expression or a number for each column.
        digits: significant digits of the numbers that are shown.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 8

    def to_table(self, style: str = "text") -> str:
        """Return the title and the table as text, Markdown or LaTeX; as CSV the table alone."""
        rows = [[self._cell(cell, style) for cell in row] for row in self.rows]
        left = [k for k, cell in enumerate(self.rows[0]) if not isinstance(cell, float)]
        columns = [_latex_text(c) for c in self.columns] if style == "latex" else self.columns
        written = table(columns, rows, style=style, left=left)
        title = f"% {self.title}" if style == "latex" else self.title
        return written if style == "csv" else f"{title}\n\n{written}"

    def _cell(self, cell: Cell, style: str) -> str:
        if isinstance(cell, float):
            if style == "latex":
                return f"${format_latex_number(cell, self.digits)}$"
            return repr(cell) if style == "csv" else format_number(cell, self.digits)
        if style == "latex":
            return _latex_text(cell) if isinstance(cell, str) else f"${latex(cell)}$"
        return cell if isinstance(cell, str) else unparse(cell)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data."""
        rows = [[c if isinstance(c, str | float) else unparse(c) for c in r] for r in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows}


def _latex_text(text: str) -> str:
    """Return a text for LaTeX, with arrows and signs of multiplication as mathematics."""
    escaped = text.replace("_", r"\_")
    return escaped.replace("->", r"$\to$").replace("*", r"$\cdot$")


def tabulate_method_steps(
    method: str,
    graph: ExpressionGraph,
    primal: Tape,
    point: Mapping[str, Any],
    rows: Sequence[Any],
    of: str,
    wrt: str,
    options: Mapping[str, Any],
) -> MethodSteps | None:
    """Return the steps of a method, or None where there is no table of them.

    Args:
        method: the differentiator; forward and reverse mode have no other table than the trace.
        graph: the graph.
        primal: its tape; a tape with arrays has no such table.
        point: a number for each leaf of the tape.
        rows: the rows of the trace, with values and tangents.
        of: the variable that is differentiated.
        wrt: the name that it is differentiated by.
        options: the options of the method.
    """
    if primal.has_arrays or any(getattr(row.value, "shape", ()) for row in rows):
        return None
    if method == "finite-difference" and wrt in point:
        return _evaluations(primal, point, rows, of, wrt, options)
    if method == "symbolic":
        return _formulas(graph, rows, of, wrt)
    if method == "path-sum":
        return _paths(graph, primal, point, of, wrt, options)
    return None


def _evaluations(
    primal: Tape,
    point: Mapping[str, Any],
    rows: Sequence[Any],
    of: str,
    wrt: str,
    options: Mapping[str, Any],
) -> MethodSteps:
    """Return each value at the moved points, and the quotient."""
    program = differentiate(primal, of, wrt, method="finite-difference", **options)
    assert program.step_rule is not None
    scheme = str(options.get("scheme", "central"))
    step = float(program.step_rule.choose_step(float(point[wrt])))
    schemes: dict[str, dict[str, complex]] = {
        "central": {f"at {wrt} - h": -step, f"at {wrt} + h": step},
        "forward": {f"at {wrt}": 0.0, f"at {wrt} + h": step},
        "complex-step": {f"imaginary part at {wrt} + ih": step * 1j},
    }
    moves = schemes[scheme]
    indices = {name: index for index, name in enumerate(labels(primal)) if name}
    moving = [row for row in rows if row.tree is not None or row.name == wrt]
    roots = [indices[row.name] for row in moving]
    runs = [
        values_of(primal, {**point, wrt: point[wrt] + move}, roots=roots) for move in moves.values()
    ]
    evaluations = tuple(
        (
            row.name,
            row.tree or row.expression,
            *(_part(run[indices[row.name]], scheme) for run in runs),
            float(row.derivative),
        )
        for row in moving
    )
    title = f"h = {format_number(step, 4)}; quotient {_QUOTIENTS[scheme]}"
    return MethodSteps(title, ("name", "expression", *moves, "quotient"), evaluations, _DIGITS)


def _part(value: Any, scheme: str) -> float:
    return float(value.imag if scheme == "complex-step" else value.real)


def _formulas(graph: ExpressionGraph, rows: Sequence[Any], of: str, wrt: str) -> MethodSteps | None:
    """Return the derivative of each expression as a formula, and its value."""
    try:
        derivation = rules(graph, wrt, of=of)
    except (UsageError, DifferentiationError):  # a function for which calculus has no rule
        return None
    derivatives = {row.name: row.derivative for row in rows}
    formulas = [
        (
            f"{section.name}'",
            section.expression,
            section.derivative,
            float(derivatives[section.name]),
        )
        for section in reversed(derivation.sections)
        if section.name in derivatives
    ]
    columns = ("name", "expression", "derivative", "value")
    title = f"' is d/d{wrt}; 'cgprimer rules' shows each rule"
    return MethodSteps(title, columns, tuple(formulas))


def _paths(
    graph: ExpressionGraph,
    primal: Tape,
    point: Mapping[str, Any],
    of: str,
    wrt: str,
    options: Mapping[str, Any],
) -> MethodSteps | None:
    """Return each path, the product of the partials along it, and the sum of the products."""
    program = differentiate(primal, of, wrt, method="path-sum", **options)
    paths = (program.paths or {}).get((of, wrt), ())
    edges = partials(graph, {name: point[name] for name in graph.point(point) if name in point})
    factors: dict[tuple[str, str], Any] = {
        **edges.variable_to_variable,
        **edges.variable_to_parameter,
    }
    products, total = list[tuple[Cell, ...]](), 0.0
    for path in sorted(paths, key=lambda path: (len(path), path)):
        edges_along = [(head, tail) for tail, head in pairwise(path)]
        if not factors.keys() >= {*edges_along}:  # a path that ends at an inner value
            return None
        along = [float(factors[edge]) for edge in edges_along]
        product = prod(along)
        total += product
        text = " * ".join(
            f"({format_number(f, 6)})" if f < 0 else format_number(f, 6) for f in along
        )
        products.append((" -> ".join(path), text, product))
    products.append(("sum over all paths", "", total))
    count = pluralize(len(paths), "path")
    title = f"d{of}/d{wrt} as the sum over {count} of the product of the partials along it"
    return MethodSteps(title, ("path", "partials", "product"), tuple(products))
