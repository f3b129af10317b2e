"""Evaluation traces as in a textbook: a line per step, its value, and its tangent or adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.analysis.points import point_values
from cgprimer.analysis.tables import table
from cgprimer.core.derivatives import chosen_names, chosen_output
from cgprimer.core.derivatives import tape as tape_of
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
        rows = {row.name: row for row in self.rows}
        if name not in rows:
            raise UsageError(f"the trace has no row {name!r}", hint=name_hint(name, rows))
        return rows[name]

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
        header = ["name", "expression", "value", self.kind if style == "csv" else self.heading]
        show = repr if style == "csv" else number
        rows = [[r.name, r.expression, show(r.value), show(r.derivative)] for r in self.rows]
        if style == "latex":
            over, under = ("", self.wrt) if self.kind == "tangent" else (self.of, "v")
            over = f" {latex_name(over)}" if over else ""
            header[3] = rf"$\partial{over} / \partial {latex_name(under)}$"
            rows = [
                [
                    f"${latex_name(r.name)}$",
                    f"${latex(r.tree)}$" if r.tree else r.expression,
                    f"${latex_number(r.value)}$",
                    f"${latex_number(r.derivative)}$",
                ]
                for r in self.rows
            ]
        elif style == "markdown":  # a star between spaces would turn into emphasis
            code = [f"`{r.expression}`" if r.tree else r.expression for r in self.rows]
            rows = [[r[0], text, *r[2:]] for r, text in zip(rows, code, strict=True)]
        return table(header, rows, style=style, left=(0, 1))

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys: method, kind, of, wrt, rows."""
        names = ("name", "expression", "value", self.kind)
        values = ((r.name, r.expression, r.value, r.derivative) for r in self.rows)
        rows = [dict(zip(names, row, strict=True)) for row in values]
        own = {"method": self.method, "kind": self.kind, "of": self.of, "wrt": self.wrt}
        return {**own, "rows": rows}

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
    target, seeded = chosen_output(graph, of), ""
    if method != "reverse":
        seeded, *others = chosen_names(graph, wrt if wrt is not None else _only_input(graph))
        if others:
            raise UsageError("a trace is seeded by one name; the others get a trace of their own")
    elif wrt is not None:
        what = "reverse mode seeds the output: its adjoints are with respect to every value"
        raise UsageError(what, hint="choose the output with of=... (--of), or another method")
    primal = tape_of(graph)
    shown = _shown(primal, target, level)
    point = point_values(graph, at, of=target)
    values = values_of(primal, point, roots=shown)
    sums = _derivatives(primal, shown, target, seeded, point, method, options)
    names, trees = labels(primal), expressions(primal)
    if level == "variables":
        trees |= {primal.index(name): tree for name, tree in graph.definitions.items()}
    rows = []
    for index in shown:
        name, tree = names[index], trees.get(index)
        given = "parameter" if name in graph.parameters else "input"
        text = given if tree is None else unparse(tree)
        rows.append(TraceRow(name, text, values[index], sums[index], tree))
    return Trace(method, "tangent" if seeded else "adjoint", target, seeded, tuple(rows))


def _derivatives(
    primal: Tape,
    shown: list[int],
    target: str,
    seeded: str,
    point: Mapping[str, float],
    method: str,
    options: Mapping[str, Any],
) -> dict[int, float]:
    """The tangent of each row, or its adjoint where nothing is seeded.

    Forward and reverse mode sweep once, and what their shares add up to is read off. Other methods
    are asked for the derivative of each row.
    """
    rows = {f"row.{index}": index for index in shown}
    whole = replace(primal, outputs={**rows, target: primal.index(target)})
    if method in ("forward", "reverse"):
        whole = replace(whole, names={**primal.names, **rows})
    of, wrt = (tuple(rows), (seeded,)) if seeded else ((target,), tuple(rows))
    program = differentiate(whole, of, wrt, method=method, **options)
    if method not in ("forward", "reverse"):
        found = Runner(program)(point, {}, 1).derivatives
        return {index: found[row, seeded] for row, index in rows.items()}
    values = values_of(program.tape, {**point, **program.passes[0].seeds})
    sums = {s.head if seeded else s.tail: values[s.total] for s in program.shares}  # the last stays
    seed = primal.index(seeded or target)
    return {i: sums.get(program.tape.index(row), float(i == seed)) for row, i in rows.items()}


def _shown(primal: Tape, target: str, level: str) -> list[int]:
    """Values that the target needs, leaves first; constants are not rows of their own."""
    needed = reachable(primal, [primal.index(target)])
    constants = {index for index, leaf in enumerate(primal.leaves) if leaf.kind == "constant"}
    candidates = range(primal.size) if level == "operations" else sorted(primal.labels)
    return [index for index in candidates if needed[index] and index not in constants]


def _only_input(graph: ExpressionGraph) -> str:
    if len(graph.inputs) == 1:
        return graph.inputs[0]
    known = ", ".join((*graph.inputs, *graph.parameters))
    raise UsageError("say which variable is seeded", hint=f"wrt=... (--wrt), one of: {known}")
