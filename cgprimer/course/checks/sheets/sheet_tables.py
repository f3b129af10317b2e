"""Traces, edges, paths and gradients as tables with blanks.

Each blank has a formula that computes it from earlier blanks, so that a table can be computed again
from a student's own numbers. Formulas of derivatives consist of the contributions of core's sweep
over the edges of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from cgprimer.analysis.trace import TraceRow, trace
from cgprimer.core.derivatives import gradient
from cgprimer.core.evaluation.evaluator import choose_arithmetic
from cgprimer.core.methods.edge_tape import edge_tape
from cgprimer.course.checks.sheets.sheet_problems import Blank, Cell, Worksheet
from cgprimer.errors import CgprimerError
from cgprimer.expressions import Apply, Expression, ExpressionGraph, Name, Number, fold
from cgprimer.support.number_format import format_number
from cgprimer.support.value_names import internal_name
from cgprimer.tapes import Tape, contributions, differentiate, labels
from cgprimer.tapes import tape as build_tape

Values = Mapping[str, Any]
_MAX_PATHS = 40  # of a name


def evaluate_formula(formula: Expression, values: Values) -> Any:
    """Evaluate a formula whose names are scalars or arrays.

    >>> evaluate_formula(Apply("mul", (Name("a"), Number(3.0))), {"a": 2.0})
    6.0
    """

    def read_leaf(node: Name | Number) -> Any:
        """Return the value of a named variable or of a constant."""
        return values[node.name] if isinstance(node, Name) else node.value

    def apply(name: str, operands: list[Any]) -> Any:
        """Apply a primitive or an array operation to values."""
        if name in ("sum", "largest"):  # reductions of all elements, as traces write them
            import numpy as np

            return float((np.sum if name == "sum" else np.max)(operands[0]))
        is_array_operation = type(name) is not str  # returns an array even for a scalar
        return choose_arithmetic([name] if is_array_operation else operands)(name)(*operands)

    return fold(formula, read_leaf, apply)


def multiply(left: Expression, right: Expression) -> Expression:
    """Return the product of two formulas, simplified for factors 1 and -1."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Number) and abs(one.value) == 1:
            return other if one.value == 1 else Apply("neg", (other,))
    return Apply("mul", (left, right))


def add_terms(terms: Iterable[Expression]) -> Expression:
    """Return the formula for the sum of the given terms, or 0 if there are no terms."""
    operands = list(terms)
    return reduce(lambda a, b: Apply("add", (a, b)), operands) if operands else Number(0.0)


def multiply_all(factors: Iterable[Expression]) -> Expression:
    """Return the formula for the product of one or more factors."""
    return reduce(multiply, factors)


Formulas = dict[tuple[str, str], Expression]  #: keyed by edge, (tail, head)


@dataclass(frozen=True)
class EdgeFormulas:
    """The formula of the partial derivative on each edge of a graph, and the order of a sweep.

    Attributes:
        tape: the tape of partials, adjoints and tangents.
        names: the names of the vertices, keyed by their index on the tape.
        partials: the formula of the partial on each edge, in the names of the graph.
    """

    tape: Tape
    names: Mapping[int, str]
    partials: Formulas

    @classmethod
    def derive(
        cls,
        graph: ExpressionGraph,
        *,
        of: str | None = None,
        wrt: str | None = None,
        operations: bool = False,
    ) -> EdgeFormulas:
        """Derive the partial on each edge, and sweep backward from ``of`` or forward from ``wrt``.

        Args:
            graph: the graph.
            of: the output of a reverse sweep.
            wrt: the variable of a forward sweep.
            operations: treat the result of every operation as a vertex.

        >>> from cgprimer.core.graph import parse
        >>> formulas = EdgeFormulas.derive(parse("xb = xa^2; xw = 3*xb"), of="xw")
        >>> {edge: evaluate_formula(tree, {"xa": 5.0}) for edge, tree in formulas.partials.items()}
        {('xa', 'xb'): 10.0, ('xb', 'xw'): 3.0}
        """
        primal = build_tape(graph)
        edges = edge_tape(primal, of=of, wrt=wrt, operations=operations)
        printed = labels(primal)
        names = {new: printed[old] for old, new in edges.vertices.items() if printed[old]}
        formulas = _build_formulas(edges.tape, names)
        partials = {}
        for (tail, head), index in edges.partials.items():
            if not printed[tail]:  # a constant
                continue
            is_double = primal.instructions[head - len(primal.leaves)] == ("add", (tail, tail))
            one_per_use = Apply("add", (Number(1.0), Number(1.0)))  # the partial of a + a
            partials[printed[tail], printed[head]] = one_per_use if is_double else formulas[index]
        return cls(edges.tape, names, partials)

    def list_contributions(self) -> Iterator[tuple[str, str, Expression]]:
        """Yield the tail, the head and the partial of each contribution, in sweep order."""
        for contribution in contributions(self.tape):
            edge = self.names.get(contribution.tail, ""), self.names.get(contribution.head, "")
            if edge in self.partials:
                yield *edge, self.partials[edge]


def _build_formulas(tape: Tape, names: Mapping[int, str]) -> list[Expression]:
    """Return a formula for each value of a tape, in terms of the named values."""
    formulas: list[Expression] = []
    for index, leaf in enumerate(tape.leaves):
        is_constant = leaf.kind == "constant"
        formulas.append(Number(leaf.value) if is_constant else Name(names.get(index, leaf.name)))
    for index, (primitive, operands) in enumerate(tape.instructions, len(formulas)):
        formula = Apply(primitive, tuple(formulas[o] for o in operands))
        formulas.append(Name(names[index]) if index in names else formula)
    return formulas


# --- traces: values, tangents, adjoints ----------------------------------------------------------


def build_derivative_formulas(
    names: Sequence[str], graph: ExpressionGraph, kind: str, seed: str, level: str
) -> dict[str, Expression]:
    """Return the formula of each tangent or adjoint, in the order of the computation.

    An adjoint is the sum of the contributions of all edges that leave a vertex, a tangent the sum
    of the contributions of all edges that lead to a vertex.

    Args:
        names: the names of the rows of the trace, in order.
        graph: the graph.
        kind: ``tangent`` or ``adjoint``.
        seed: the name whose tangent or adjoint is 1.
        level: ``operations`` or ``variables``: the vertices of the trace.
    """
    operations = level == "operations"
    terms: dict[str, list[Expression]] = {name: [] for name in names}
    if kind == "adjoint":
        edges = EdgeFormulas.derive(graph, of=seed, operations=operations)
        for tail, head, partial_formula in edges.list_contributions():
            terms[tail].append(multiply(Name(internal_name("bar", head)), partial_formula))
        names = names[::-1]
    else:
        edges = EdgeFormulas.derive(graph, wrt=seed, operations=operations)
        for tail, head, partial_formula in edges.list_contributions():
            terms[head].append(multiply(partial_formula, Name(internal_name("dot", tail))))
    return {name: Number(1.0) if name == seed else add_terms(terms[name]) for name in names}


def solve_blank(
    row: str,
    column: str,
    name: str,
    tree: Expression,
    values: dict[str, Any],
    operation: str = "",
) -> Blank:
    """Evaluate a formula, add its value to ``values``, and return a blank for the value.

    Args:
        row: the first cell of the row.
        column: the heading of the column.
        name: the name of the value in formulas.
        tree: the formula.
        values: the values so far, keyed by name; updated.
        operation: the primitive that computes the value of the row, for tangents.
    """
    values[name] = evaluate_formula(tree, values)
    return Blank(row, column, name, values[name], tree, operation=operation)


def build_trace_table(
    graph: ExpressionGraph, settings: Values, kind: str
) -> tuple[list[TraceRow], list[Blank]]:
    """Return the rows and the blanks of a trace; values come before tangents or adjoints."""
    of, level = settings.get("of"), settings.get("level", "operations")
    rows = list(trace(graph, of=of, method="reverse", level=level).rows)
    blanks = [Blank(r.name, "value", r.name, r.value, r.tree) for r in rows if r.tree]
    if kind != "trace":
        seed = settings["wrt"] if kind == "tangent" else rows[-1].name
        mark = "dot" if kind == "tangent" else "bar"
        if seed not in [row.name for row in rows]:
            raise ValueError(f"unknown row {seed!r}")
        names = [row.name for row in rows]
        trees = build_derivative_formulas(names, graph, kind, seed, level)
        values = {row.name: row.value for row in rows}
        forward = rows if kind == "tangent" else []
        operations = {r.name: str(r.tree.primitive) for r in forward if isinstance(r.tree, Apply)}
        for name, tree in trees.items():
            operation = operations.get(name, "")
            blanks.append(
                solve_blank(name, kind, internal_name(mark, name), tree, values, operation)
            )
    return rows, blanks


_INSTRUCTIONS = {
    "trace": ("Evaluation trace", "Compute the value of each row, down to `{last}`."),
    "tangent": (
        "Tangents: forward mode with respect to `{wrt}`",
        "Next to each value write its tangent, its derivative with respect to `{wrt}`, from the"
        " first row to the last.",
    ),
    "adjoint": (
        "Adjoints: reverse mode from `{last}`",
        "Next to each value write its adjoint, the derivative of `{last}` with respect to it, from"
        " the last row to the first.",
    ),
}


def _build_trace_worksheet(kind: str, graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet for an evaluation trace; ``kind`` may add tangents or adjoints."""
    rows, blanks = build_trace_table(graph, settings, kind)
    known_values = {r.name: r.value for r in rows if r.tree is None or settings.get("values_given")}
    blanks = [blank for blank in blanks if blank.name not in known_values]
    columns = ["value"] if kind == "trace" else ["value", kind]
    cells: dict[tuple[str, str], Cell] = {(b.row, b.column): b for b in blanks}
    cells |= {(name, "value"): format_number(value, 10) for name, value in known_values.items()}
    table = [
        (row.name, row.tree or row.expression, *(cells[row.name, column] for column in columns))
        for row in rows
    ]
    title, sentence = (
        text.format(wrt=settings.get("wrt"), last=rows[-1].name) for text in _INSTRUCTIONS[kind]
    )
    header = ("row", "expression", *columns)
    return Worksheet(title, [sentence], header, table, blanks, known_values, settings["digits"])


# --- paths and gradients -------------------------------------------------------------------------


def list_paths(graph: ExpressionGraph, of: str, wrt: str) -> tuple[tuple[str, ...], ...]:
    """Return all paths from ``wrt`` to ``of``, the shortest first."""
    program = differentiate(build_tape(graph), (of,), (wrt,), method="path-sum", limit=_MAX_PATHS)
    return (program.paths or {})[of, wrt]


def build_path_formulas(
    graph: ExpressionGraph, of: str, wrt: str
) -> tuple[dict[tuple[str, ...], Expression], Formulas]:
    """Return the formula for the product of partials along each path, and all partials."""
    partials = EdgeFormulas.derive(graph).partials
    return {
        path: multiply_all(Name(internal_name("edge", a, b)) for a, b in pairwise(path))
        for path in list_paths(graph, of, wrt)
    }, partials


def evaluate_variables(graph: ExpressionGraph) -> dict[str, Any]:
    """Return the values of all inputs, parameters and variables at the declared point."""
    return graph.point(None) | graph.evaluate()


def quote_names(names: Iterable[str]) -> str:
    """Return the names in backquotes, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def quote_values(values: Values, names: Iterable[str], digits: int) -> str:
    """Return values such as ``xa = 2``, each in backquotes, separated by commas."""
    return quote_names(f"{name} = {format_number(values[name], digits or 10)}" for name in names)


def build_list_worksheet(
    title: str, text: Sequence[str], heading: str, blanks: Sequence[Blank], known_values: Values,
    digits: int, **more: Any,
) -> Worksheet:  # fmt: skip
    """Build a worksheet with one row per blank: the requested quantity and the blank."""
    header, rows = (heading, blanks[0].column), [(blank.row, blank) for blank in blanks]
    return Worksheet(title, text, header, rows, blanks, known_values, digits, **more)


def _build_path_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet that asks for partials on edges, path products and their sum."""
    of, wrt, digits = settings["of"], settings["wrt"], settings["digits"]
    values = evaluate_variables(graph)
    along, partials = build_path_formulas(graph, of, wrt)
    used = dict.fromkeys(edge for path in along for edge in pairwise(path))
    known_values = dict(values)
    rows = [(f"edge {a} -> {b}", internal_name("edge", a, b), partials[a, b]) for a, b in used]
    rows += [(f"path {' -> '.join(p)}", internal_name("path", *p), t) for p, t in along.items()]
    rows += [
        (f"d{of}/d{wrt}", "sum", add_terms(Name(internal_name("path", *path)) for path in along))
    ]
    blanks = [solve_blank(row, "derivative", name, tree, values) for row, name, tree in rows]
    # More digits than the answers need, since the partials are computed from these values.
    point = quote_values(known_values, (*graph.parameters, *graph.variables), digits and 2 * digits)
    text = (
        "Write the local partial derivative on each edge: the derivative of its head with respect"
        " to its tail, with the other operands fixed. Then write the product along each path, and"
        " the sum of the products.",
        f"The values are {point}.",
    )
    look = {"parameters": "vertices"} if wrt in graph.parameters else {}
    title = f"Partials on edges, and the sum over paths from `{wrt}` to `{of}`"
    return build_list_worksheet(title, text, "what", blanks, known_values, digits, picture=look)


def _build_gradient_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet that asks for the value of a variable and for its gradient."""
    of, digits = settings["of"], settings["digits"]
    values = evaluate_variables(graph)
    known_values = dict(values)
    blanks = [Blank(of, "number", of, values[of])]
    derivatives = gradient(graph, of=of, wrt=settings["wrt"])
    for name in settings["wrt"]:
        tree: Expression | None
        try:
            along, partials = build_path_formulas(graph, of, name)
            tree = add_terms(along.values())
            for (tail, head), partial in partials.items():
                known_values[internal_name("edge", tail, head)] = evaluate_formula(partial, values)
        except CgprimerError:  # too many paths to name one that is left out
            tree = None
        result = internal_name("gradient", name)
        blanks.append(Blank(f"d{of}/d{name}", "number", result, derivatives[name], tree))
    point = {n: values[n] for n in (*graph.inputs, *graph.parameters)}
    text = (
        *quote_definitions(graph),
        f"Find `{of}` and its derivatives with respect to"
        f" {quote_names(settings['wrt'])} at {quote_values(point, point, 0)}.",
    )
    return build_list_worksheet(
        f"The gradient of `{of}` by hand", text, "what", blanks, known_values, digits
    )


def quote_definitions(graph: ExpressionGraph) -> tuple[str, ...]:
    """Return the definitions of a graph, each in backquotes."""
    return tuple(f"`{name} = {graph.expression(name)}`" for name in graph.definitions)


BUILDERS: dict[str, Callable[[ExpressionGraph, Values], Worksheet]] = {
    **{kind: partial(_build_trace_worksheet, kind) for kind in _INSTRUCTIONS},
    "paths": _build_path_worksheet,
    "gradient": _build_gradient_worksheet,
}
