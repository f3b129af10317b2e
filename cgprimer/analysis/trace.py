"""Evaluation traces as in a textbook: a line per step, its value, and its tangent or adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.analysis.points import point_values
from cgprimer.analysis.tables import table
from cgprimer.core.derivatives.evaluation import chosen_names, chosen_output
from cgprimer.core.derivatives.evaluation import tape as tape_of
from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.language.syntax import Expression
from cgprimer.core.methods import differentiate
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.run import Runner, values_of
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.printing import expressions, labels
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError, name_hint, plural
from cgprimer.number_format import latex_number, number

LEVELS = ("operations", "variables")


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One step.

    Attributes:
        name: of the value; ``v1``, ``v2``, ... where the text gives none.
        expression: how it is computed; ``input`` or ``parameter`` for what is given.
        value: the primal.
        derivative: the tangent (derivative of this value along the seed) or the adjoint
            (derivative of the output with respect to this value).
        tree: the expression's syntax tree; None for what is given.
    """

    name: str
    expression: str
    value: float
    derivative: float
    tree: Expression | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole evaluation.

    Attributes:
        method: the differentiator.
        kind: ``tangent`` or ``adjoint``.
        of: the variable whose derivative the adjoints are; the last row's, for tangents.
        wrt: the variable with respect to which the tangents are; empty for adjoints.
        rows: the steps in execution order. Adjoints are computed from the last row to the first.
    """

    method: str
    kind: str
    of: str
    wrt: str
    rows: tuple[TraceRow, ...]

    def row(self, name: str) -> TraceRow:
        """The row of a name.

        Raises:
            UsageError: there is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise UsageError(
            f"the trace has no row {name!r}", hint=name_hint(name, (r.name for r in self.rows))
        )

    def __repr__(self) -> str:
        return f"<Trace {self.method}: {self.of}, {plural(len(self.rows), 'row')} of {self.kind}s>"

    @property
    def heading(self) -> str:
        """What the derivative column holds, as a title."""
        if self.kind == "tangent":
            return f"tangent d/d{self.wrt}"
        return f"adjoint d{self.of}/d(name)"

    def to_table(self, style: str = "text") -> str:
        """As ``text``, ``markdown``, ``latex`` or ``csv`` (which has all digits).

        Raises:
            UsageError: another style.
        """
        if style == "latex":
            symbol = latex_name(self.wrt or self.of)
            heading = (
                rf"$\partial / \partial {symbol}$"
                if self.kind == "tangent"
                else rf"$\partial {symbol} / \partial v$"
            )
            header = ["name", "expression", "value", heading]
            rows = [
                [
                    f"${latex_name(r.name)}$",
                    f"${latex(r.tree)}$" if r.tree else r.expression,
                    f"${latex_number(r.value)}$",
                    f"${latex_number(r.derivative)}$",
                ]
                for r in self.rows
            ]
        else:
            header = ["name", "expression", "value", self.kind if style == "csv" else self.heading]
            show = repr if style == "csv" else number
            rows = [[r.name, r.expression, show(r.value), show(r.derivative)] for r in self.rows]
            if style == "markdown":  # a star between spaces would turn into emphasis
                code = [f"`{r.expression}`" if r.tree else r.expression for r in self.rows]
                rows = [[r[0], text, *r[2:]] for r, text in zip(rows, code, strict=True)]
        return table(header, rows, style=style, left=(0, 1))

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys: method, kind, of, wrt, rows."""
        rows = [
            {"name": r.name, "expression": r.expression, "value": r.value, self.kind: r.derivative}
            for r in self.rows
        ]
        return {
            "method": self.method,
            "kind": self.kind,
            "of": self.of,
            "wrt": self.wrt,
            "rows": rows,
        }

    def __str__(self) -> str:
        return self.to_table()


def trace(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: str | None = None,
    method: str = "forward",
    level: str = "operations",
    **options: Any,
) -> Trace:
    """The evaluation of a variable, step by step.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable that is evaluated; the only output unless given.
        wrt: the variable that is seeded: tangents are derivatives with respect to it. The only
            input unless given. Reverse mode seeds ``of`` instead and needs none.
        method: ``reverse`` gives adjoints, every other method tangents.
        level: ``operations`` for a row per operation, ``variables`` for a row per variable.
        options: of the method.

    Raises:
        UsageError: an unknown name, method or level; ``wrt`` with reverse mode; arrays.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> print(trace(parse("input xa = 0.5; xx = xa^2; xw = 3*xx + xa"), wrt="xa"))
    name    expression      value    tangent d/dxa
    ------  ------------  -------  ---------------
    xa      input             0.5                1
    xx      xa^2             0.25                1
    v1      3*xx             0.75                3
    xw      v1 + xa          1.25                4
    """
    checked_graph(graph)
    if level not in LEVELS:
        raise UsageError(f"there is no level {level!r}", hint=f"one of: {', '.join(LEVELS)}")
    target = chosen_output(graph, of)
    primal = tape_of(graph)
    shown = _shown(primal, target, level)
    keys = {index: f"row.{index}" for index in shown}
    whole = replace(
        primal, outputs={**{k: i for i, k in keys.items()}, target: primal.index(target)}
    )
    point = point_values(graph, at, of=target)
    if method == "reverse":
        if wrt is not None:
            raise UsageError(
                "reverse mode seeds the output: its adjoints are with respect to every value",
                hint="choose the output with of=... (--of), or another method",
            )
        program = differentiate(whole, target, tuple(keys.values()), method=method, **options)
        pairs = {index: (target, key) for index, key in keys.items()}
    else:
        names_seeded = chosen_names(graph, wrt if wrt is not None else _only_input(graph))
        if len(names_seeded) > 1:
            raise UsageError("a trace is seeded by one name; the others get a trace of their own")
        seeded = names_seeded[0]
        program = differentiate(whole, tuple(keys.values()), seeded, method=method, **options)
        pairs = {index: (key, seeded) for index, key in keys.items()}
    found = Runner(program)(
        {name: point[name] for name in graph.inputs},
        {name: point[name] for name in graph.parameters},
        1,
    )
    values = values_of(primal, point, roots=shown)
    names, trees = labels(primal), expressions(primal)
    if level == "variables":
        trees |= {primal.index(name): tree for name, tree in graph.definitions.items()}
    rows = []
    for index in shown:
        tree = trees.get(index)
        kind = "parameter" if names[index] in graph.parameters else "input"
        rows.append(
            TraceRow(
                names[index],
                kind if tree is None else unparse(tree),
                values[index],
                found.derivatives[pairs[index]],
                tree,
            )
        )
    kind = "adjoint" if method == "reverse" else "tangent"
    return Trace(method, kind, target, "" if method == "reverse" else seeded, tuple(rows))


def _shown(primal: Tape, target: str, level: str) -> list[int]:
    """Values that the target needs, leaves first; constants are not rows of their own."""
    needed = reachable(primal, [primal.index(target)])
    found = []
    for index, wanted in enumerate(needed):
        if not wanted or (index < len(primal.leaves) and primal.leaves[index].kind == "constant"):
            continue
        if level == "operations" or index in primal.labels:
            found.append(index)
    return found


def _only_input(graph: ExpressionGraph) -> str:
    if len(graph.inputs) == 1:
        return graph.inputs[0]
    raise UsageError(
        "say which variable is seeded",
        hint=f"wrt=... (--wrt), one of: {', '.join((*graph.inputs, *graph.parameters))}",
    )
