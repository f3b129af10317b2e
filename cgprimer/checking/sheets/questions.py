"""Matrices, an optimizer's step, pictures and planted mistakes as tables with blanks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.analysis.trace import trace
from cgprimer.checking.sheets.problems import Blank, Cell, Worksheet
from cgprimer.checking.sheets.tables import (
    Known,
    formulas,
    listed_values,
    path_trees,
    paths_between,
    total,
    trace_table,
    value_of,
    values_at,
)
from cgprimer.core.derivatives import gradient
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.parser import parse_program
from cgprimer.core.language.syntax import Apply, Definition, Expression, Name, Number, fold
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.number_format import number, numbers

# --- matrices ------------------------------------------------------------------------------------


def _shape(value: Any) -> str:
    return "x".join(map(str, getattr(value, "shape", ()))) or "number"


def _shapes(graph: ExpressionGraph, asked: Known) -> Worksheet:
    """Values forward and adjoints backward, each with its shape; one mark for each of the two."""
    found = trace(graph, of=asked.get("of"), method="reverse")
    given = {row.name: row.value for row in found.rows if row.tree is None}
    rows: list[tuple[Cell, ...]] = []
    blanks: list[Blank] = []
    for row in found.rows:
        if row.tree is None:
            rows.append(
                (row.name, row.expression, _shape(row.value), numbers(row.value, width=999))
            )
    for row in (*found.rows, *found.backward):
        if row.tree is None:
            continue
        back = row in found.backward
        form = "number" if isinstance(row.value, float) else "array"
        own = (
            Blank(row.name, "shape", f"shape.{row.name}", _shape(row.value), form="shape"),
            Blank(row.name, "value", row.name, row.value, row.tree, form),
        )
        blanks += own
        rows.append((row.name, "adjoint" if back else row.tree, *own))
    last = found.of
    text = (
        f"Write each value with its shape (such as `2x3`; `number` for a single one), forward to"
        f" `{last}`; then, back from `{last}`, the adjoint of each: `bar_h` is the derivative of"
        f" `{last}` with respect to `h`. Matrices are written row by row, as `[[1, 2], [3, 4]]`.",
    )
    header = ("row", "expression", "shape", "value")
    return Worksheet(
        "Matrix back-propagation", text, header, tuple(rows), tuple(blanks), given, asked["digits"]
    )


# --- an optimizer's step -------------------------------------------------------------------------

RULES = {  # as a course writes them; tests compare them with the optimizers of cgprimer
    "sgd": "p = p - rate*g",
    "decaying rate": "r = rate*gamma^t; p = p - r*g",
    "weight decay": "p = (1 - 2*rate*lambda)*p - rate*g",
    "proximal l1": "h = p - rate*g; p = sign(h)*max(abs(h) - 2*rate*lambda, 0)",
    "max-norm": "h = p - rate*g; n = norm; p = h*min(1, c/n)",
    "momentum": "v = beta*v + g; p = p - rate*v",
    "nesterov": "v = beta*v + g; p = p - rate*(g + beta*v)",
    "adagrad": "s = s + g^2; p = p - rate*g/sqrt(s)",
    "rmsprop": "s = alpha*s + (1 - alpha)*g^2; p = p - rate*g/sqrt(s)",
    "adam": "m = beta1*m + (1 - beta1)*g; v = beta2*v + (1 - beta2)*g^2; "
    "mh = m/(1 - beta1^t); vh = v/(1 - beta2^t); p = p - rate*mh/sqrt(vh)",
}
_NORM = "norm"  # in a rule: of the values of `h` of all parameters


def _for_each(values: Mapping[str, float]) -> str:
    return ", ".join(f"{number(value, 10)} for `{name}`" for name, value in values.items())


def _optimizer(graph: ExpressionGraph, asked: Known) -> Worksheet:
    rule, names, digits = asked["rule"], list(asked["wrt"]), asked["digits"]
    state: Mapping[str, Mapping[str, float]] = asked["state"]
    settings: Mapping[str, float] = asked["settings"]
    of = asked["of"]
    found = gradient(graph, of=of, wrt=names)
    point = graph.point(None)
    statements = [
        s
        for s in parse_program(RULES[rule], FUNCTIONS, "<rule>").statements
        if isinstance(s, Definition)
    ]
    known: dict[str, Any] = {name: float(value) for name, value in settings.items()}
    for name in names:
        known[f"p.{name}"] = point[name]
        known |= {f"{part}.{name}": float(values[name]) for part, values in state.items()}
    given = dict(known)
    rows: list[tuple[Cell, ...]] = []
    blanks = []
    latest = {part: part for part in ("p", *state)}

    def add(row: str, formula: Cell, name: str, trees: Mapping[str, Expression | None]) -> None:
        own = []
        for one in names:
            tree = trees[one]
            known[f"{name}.{one}"] = found[one] if tree is None else value_of(tree, known)
            own.append(Blank(row, one, f"{name}.{one}", known[f"{name}.{one}"], tree))
        blanks.extend(own)
        rows.append((row, formula, *own))

    def renamed(tree: Expression, own: str) -> Expression:
        """A formula of the rule with the names of one parameter; as it is written of none."""

        def leaf(node: Name | Number) -> Expression:
            if isinstance(node, Number) or node.name in settings:
                return node
            if node.name == _NORM:
                parts = (Name(f"h.{n}" if own else f"h_{n}") for n in names)
                return Apply("sqrt", (total(Apply("pow", (p, Number(2.0))) for p in parts),))
            name = latest.get(node.name, node.name)
            return Name(f"{name}.{own}" if own else name)

        return fold(tree, leaf, lambda name, operands: Apply(name, tuple(operands)))

    add("g", f"d{of}/dp", "g", dict.fromkeys(names))
    for statement in statements:
        trees = {one: renamed(statement.expression, one) for one in names}
        new = f"{statement.name}'" if statement.name in latest else statement.name
        add(new, renamed(statement.expression, ""), new, trees)
        latest[statement.name] = new
    numbers_said = ", ".join(f"`{name} = {number(v, 10)}`" for name, v in settings.items())
    text = (
        *formulas(graph),
        f"Do one step of *{rule}* on `{of}` for the parameters {', '.join(f'`{n}`' for n in names)}"
        f" at {listed_values(point, point, 0)}; {numbers_said}."
        f" The rule is worked through row by row, for each parameter `p` by itself; `g` is the"
        f" derivative of `{of}` with respect to it, and a name with a stroke is the new one.",
        *(f"Before the step `{part}` is {_for_each(own)}." for part, own in state.items()),
    )
    header = ("row", "formula", *names)
    return Worksheet(f"One step of {rule}", text, header, tuple(rows), tuple(blanks), given, digits)


# --- pictures ------------------------------------------------------------------------------------


def _picture(graph: ExpressionGraph, asked: Known) -> Worksheet:
    """Questions about a drawn graph; from the second difficulty on with partials on its edges."""
    known = values_at(graph)
    given, blanks = dict(known), list[Blank]()
    for number_, (what, *about) in enumerate(asked["questions"], start=1):
        tree: Expression | None = None
        form, value = "names", None  # type: str, Any
        if what == "inputs":
            sentence, value = "the inputs", graph.inputs
        elif what == "depends_on":
            sentence = f"what {about[0]} depends on directly (variables)"
            value = tuple(graph.depends_on.get(about[0], ()))
        elif what == "leads_to":
            sentence = f"what {about[0]} leads to directly"
            value = tuple(graph.leads_to.get(about[0], ()))
        elif what == "count":
            sentence, form = f"how many paths lead from {about[0]} to {about[1]}", "number"
            value = float(len(paths_between(graph, about[1], about[0])))
        else:
            of, wrt = about[1], about[0]
            along, partials = path_trees(graph, of, wrt)
            for (tail, head), partial in partials.items():
                given[f"edge.{tail}.{head}"] = value_of(partial, known)
            form = "number"
            if what == "path":
                path = tuple(about[2])
                tree = along[path]
                sentence = f"the share of the path {' -> '.join(path)} in d{of}/d{wrt}"
            else:
                tree, sentence = total(along.values()), f"d{of}/d{wrt}"
            value = value_of(tree, given)
        name = {"path": f"path.{number_}", "sum": "sum"}.get(what, f"q{number_}")
        shown = ", ".join(value) if form == "names" else value
        blanks.append(Blank(sentence, "answer", name, shown, tree, form))
    drawn = any(what in ("path", "sum") for what, *_ in asked["questions"])
    text = (
        "Answer from the picture alone. Names are written apart by commas, in any order.",
        *(["On each edge stands the partial derivative of its head by its tail."] * drawn),
    )
    look: dict[str, Any] = {"partials": True} if drawn else {}
    if not graph.inputs:  # what everything begins with
        look["parameters"] = "vertices"
    rows: tuple[tuple[Cell, ...], ...] = tuple((blank.row, blank) for blank in blanks)
    header = ("question", "answer")
    return Worksheet(
        "Read the picture", text, header, rows, tuple(blanks), given, asked["digits"], look
    )


# --- a planted mistake ---------------------------------------------------------------------------


def _mistake(graph: ExpressionGraph, asked: Known) -> Worksheet:
    """A worked table as somebody wrote it; its numbers are the question's, wrong ones included."""
    kind, digits = asked["table"], asked["digits"]
    rows, blanks = trace_table(graph, asked, kind)
    shown = dict(zip((b.name for b in blanks), map(float, asked["shown"]), strict=True))
    known = {row.name: row.value for row in rows if row.tree is None} | shown
    first = None
    for blank in blanks:
        assert blank.tree is not None
        if not same(value_of(blank.tree, known), shown[blank.name], digits):
            first = blank
            break
    if first is None:
        raise ValueError("no row is wrong")
    mark = {"trace": "", "tangent": "dot.", "adjoint": "bar."}[kind]
    table: list[tuple[Cell, ...]] = []
    for row in rows:
        cells: list[Cell] = [row.name, row.tree if row.tree is not None else row.expression]
        cells.append(number(known[row.name], digits or 10))
        cells += [number(shown[mark + row.name], digits or 10)] if mark else []
        table.append(tuple(cells))
    column = {"trace": "value"}.get(kind, kind)
    order = (
        "from the last row to the first" if kind == "adjoint" else "from the first row to the last"
    )
    seed = f" with respect to `{asked['wrt']}`" if kind == "tangent" else ""
    text = (
        f"Somebody worked out this table{seed}: its values, and then its {column}s, {order}."
        if mark
        else "Somebody worked out this table, from the first row to the last.",
        f"One {column} is wrong, and those that follow from it were worked out with the wrong one."
        " Which row went wrong first, and what is right there?",
    )
    right = value_of(first.tree, known) if first.tree is not None else first.value
    answers = (
        Blank("the row that first went wrong", "answer", "row", first.row, form="name"),
        Blank(f"its right {column}", "answer", "right", right, first.tree),
    )
    header = ("row", "expression", "value", *([kind] if mark else []))
    given = {**known, first.name: right}
    return Worksheet(
        "Find the mistake", text, ("question", "answer"), tuple((b.row, b) for b in answers),
        answers, given, digits, above=(header, tuple(table)),
    )  # fmt: skip


def same(one: float, other: float, digits: int) -> bool:
    """Whether two numbers are the same in so many digits; 0 for all that arithmetic keeps."""
    if digits:
        return number(one, digits) == number(other, digits) or abs(one - other) <= unit(one, digits)
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1e-3)


def unit(value: float, digits: int) -> float:
    """One in the last of so many digits of a number.

    >>> unit(21.5, 4), unit(0.0, 4)
    (0.01, 0.0001)
    """
    from math import floor, isfinite, log10

    if not value or not isfinite(value):
        return 10.0**-digits
    return 10.0 ** (floor(log10(abs(value))) + 1 - digits)


MAKERS = {
    "shapes": _shapes,
    "optimizer": _optimizer,
    "picture": _picture,
    "mistake": _mistake,
}
