"""Tables of the steps of finite differences, symbolic differentiation and path-sum.

A trace of forward or reverse mode shows a tangent or an adjoint next to each value. The tables of
the other methods show evaluations and difference quotients, the derivative formula of each
variable, or the paths and the products of the partial derivatives along them.
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
_DIGITS = 12  # of evaluations, which differ only in the last digits
_QUOTIENTS = {
    "central": "(f(x + h) - f(x - h))/(2h)",
    "forward": "(f(x + h) - f(x))/h",
    "complex-step": "Im f(x + ih)/h",
}


@dataclass(frozen=True, slots=True)
class MethodSteps:
    """A table that shows how a method arrives at a derivative, step by step.

    Attributes:
        title: a description of the rows.
        columns: the titles of the columns.
        rows: a string, an expression or a number for each column.
        digits: the number of significant digits.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 8

    def to_table(self, style: str = "text") -> str:
        """Format the title and the table as text, Markdown or LaTeX, or the table alone as CSV."""
        rows = [[self._format_cell(cell, style) for cell in row] for row in self.rows]
        left = [k for k, cell in enumerate(self.rows[0]) if not isinstance(cell, float)]
        columns = (
            [_format_latex_text(c) for c in self.columns] if style == "latex" else self.columns
        )
        body = table(columns, rows, style=style, left=left)
        title = f"% {self.title}" if style == "latex" else self.title
        return body if style == "csv" else f"{title}\n\n{body}"

    def _format_cell(self, cell: Cell, style: str) -> str:
        """Format one cell for a table in the given style."""
        if isinstance(cell, float):
            if style == "latex":
                return f"${format_latex_number(cell, self.digits)}$"
            return repr(cell) if style == "csv" else format_number(cell, self.digits)
        if style == "latex":
            return _format_latex_text(cell) if isinstance(cell, str) else f"${latex(cell)}$"
        return cell if isinstance(cell, str) else unparse(cell)

    def to_dict(self) -> dict[str, Any]:
        """Return the title, columns and rows as a dictionary for JSON."""
        rows = [[c if isinstance(c, str | float) else unparse(c) for c in r] for r in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows}


def _format_latex_text(text: str) -> str:
    """Escape a string for LaTeX; arrows and asterisks become mathematical symbols."""
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
    """Tabulate how a method computes a derivative; None if the method has no such table.

    Args:
        method: the method; the trace itself shows forward and reverse mode.
        graph: the graph.
        primal: the tape of the graph; arrays are not supported.
        point: the values of the leaves.
        rows: the rows of the trace, with values and tangents.
        of: the variable to differentiate.
        wrt: the name with respect to which it is differentiated.
        options: the options of the method.
    """
    if primal.has_arrays or any(getattr(row.value, "shape", ()) for row in rows):
        return None
    if method == "finite-difference" and wrt in point:
        return _tabulate_evaluations(primal, point, rows, of, wrt, options)
    if method == "symbolic":
        return _tabulate_formulas(graph, rows, of, wrt)
    if method == "path-sum":
        return _tabulate_paths(graph, primal, point, of, wrt, options)
    return None


def _tabulate_evaluations(
    primal: Tape,
    point: Mapping[str, Any],
    rows: Sequence[Any],
    of: str,
    wrt: str,
    options: Mapping[str, Any],
) -> MethodSteps:
    """Tabulate the values at the shifted points, and the finite-difference quotients."""
    program = differentiate(primal, of, wrt, method="finite-difference", **options)
    assert program.step_rule is not None
    scheme = str(options.get("scheme", "central"))
    step = float(program.step_rule.choose_step(float(point[wrt])))
    schemes: dict[str, dict[str, complex]] = {
        "central": {f"at {wrt} - h": -step, f"at {wrt} + h": step},
        "forward": {f"at {wrt}": 0.0, f"at {wrt} + h": step},
        "complex-step": {f"imaginary part at {wrt} + ih": step * 1j},
    }
    shifts = schemes[scheme]
    indices = {name: index for index, name in enumerate(labels(primal)) if name}
    varying = [row for row in rows if row.tree is not None or row.name == wrt]
    roots = [indices[row.name] for row in varying]
    runs = [
        values_of(primal, {**point, wrt: point[wrt] + shift}, roots=roots)
        for shift in shifts.values()
    ]
    evaluations = tuple(
        (
            row.name,
            row.tree or row.expression,
            *(_select_part(run[indices[row.name]], scheme) for run in runs),
            float(row.derivative),
        )
        for row in varying
    )
    title = f"h = {format_number(step, 4)}; quotient {_QUOTIENTS[scheme]}"
    return MethodSteps(title, ("name", "expression", *shifts, "quotient"), evaluations, _DIGITS)


def _select_part(value: Any, scheme: str) -> float:
    """Return the imaginary part of a value for the complex step, otherwise its real part."""
    return float(value.imag if scheme == "complex-step" else value.real)


def _tabulate_formulas(
    graph: ExpressionGraph, rows: Sequence[Any], of: str, wrt: str
) -> MethodSteps | None:
    """Tabulate the symbolic derivative of each expression and its value."""
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


def _tabulate_paths(
    graph: ExpressionGraph,
    primal: Tape,
    point: Mapping[str, Any],
    of: str,
    wrt: str,
    options: Mapping[str, Any],
) -> MethodSteps | None:
    """Tabulate the paths, the products of the partial derivatives along them, and their sum."""
    program = differentiate(primal, of, wrt, method="path-sum", **options)
    paths = (program.paths or {}).get((of, wrt), ())
    edges = partials(graph, {name: point[name] for name in graph.point(point) if name in point})
    factors: dict[tuple[str, str], Any] = {
        **edges.variable_to_variable,
        **edges.variable_to_parameter,
    }
    rows, total = list[tuple[Cell, ...]](), 0.0
    for path in sorted(paths, key=lambda path: (len(path), path)):
        path_edges = [(head, tail) for tail, head in pairwise(path)]
        if not factors.keys() >= {*path_edges}:  # the path ends at a value without a name
            return None
        path_factors = [float(factors[edge]) for edge in path_edges]
        product = prod(path_factors)
        total += product
        text = " * ".join(
            f"({format_number(f, 6)})" if f < 0 else format_number(f, 6) for f in path_factors
        )
        rows.append((" -> ".join(path), text, product))
    rows.append(("sum over all paths", "", total))
    count = pluralize(len(paths), "path")
    term = "the product of the partial derivatives along the path"
    title = f"d{of}/d{wrt} as the sum over {count} of {term}"
    return MethodSteps(title, ("path", "partial derivatives", "product"), tuple(rows))
