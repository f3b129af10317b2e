"""Worksheets of one update of an optimizer, computed row by row for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cgprimer.core.derivatives import gradient
from cgprimer.course.checks.sheets.sheet_problems import Blank, Cell, Worksheet
from cgprimer.course.checks.sheets.sheet_tables import (
    Values,
    add_terms,
    quote_definitions,
    quote_names,
    quote_values,
    solve_blank,
)
from cgprimer.expressions import Apply, Expression, ExpressionGraph, Name, Number, fold
from cgprimer.support.number_format import format_number
from cgprimer.support.value_names import internal_name
from cgprimer.training.rule_tables import OPTIMIZER_TABLE, SCHEDULES
from cgprimer.training.statement_tapes import parse_statements


def _format_for_paper(optimizer: str) -> str:
    """Format the update rule of an optimizer as in textbooks, without epsilon.

    >>> _format_for_paper("adagrad")
    's = s + g^2; p = p - rate*g/(sqrt(s))'
    """
    return OPTIMIZER_TABLE[optimizer].formula.replace("g*g", "g^2").replace(" + epsilon", "")


#: Update rules of worksheets, as statements.
RULES = {
    "sgd": _format_for_paper("sgd"),
    "decaying rate": f"r = {SCHEDULES['exponential'].formula}; p = p - r*g",
    "weight decay": "p = (1 - 2*rate*lambda)*p - rate*g",
    "proximal l1": "h = p - rate*g; p = sign(h)*max(abs(h) - 2*rate*lambda, 0)",
    "max-norm": "h = p - rate*g; n = norm; p = h*min(1, c/n)",
    **{n: _format_for_paper(n) for n in ("momentum", "nesterov", "adagrad", "rmsprop", "adam")},
}
_NORM = "norm"  # in a rule, the norm of the values of `h` of all parameters


def parse_rule(rule: str) -> tuple[tuple[str, Expression], ...]:
    """Parse a worksheet's update rule into (assigned name, formula) pairs."""
    return parse_statements(RULES[rule])


@dataclass
class _RuleNames:
    """The current names of an update rule's variables, as printed and for each parameter.

    Attributes:
        parameters: the parameters that the rule updates.
        hyperparameters: names that are equal for all parameters.
        latest: the current name of each variable, such as ``p'`` after ``p`` was assigned.
    """

    parameters: Sequence[str]
    hyperparameters: Mapping[str, float]
    latest: dict[str, str] = field(default_factory=dict)

    def substitute(self, formula: Expression, parameter: str = "") -> Expression:
        """Replace variables in a formula by their current names, for one parameter or for print.

        Args:
            formula: a formula of the rule.
            parameter: the parameter; empty for the printed formula.
        """

        def rename(node: Name | Number) -> Expression:
            """Return the current name of a variable; other leaves are unchanged."""
            if isinstance(node, Number) or node.name in self.hyperparameters:
                return node
            if node.name == _NORM:
                names = (internal_name("h", p) if parameter else f"h_{p}" for p in self.parameters)
                squares = (Apply("pow", (Name(name), Number(2.0))) for name in names)
                return Apply("sqrt", (add_terms(squares),))
            name = self.latest.get(node.name, node.name)
            return Name(f"{name}.{parameter}" if parameter else name)

        return fold(formula, rename, lambda name, operands: Apply(name, tuple(operands)))


def build_optimizer_worksheet(graph: ExpressionGraph, settings: Values) -> Worksheet:
    """Build a worksheet about one update step of an optimizer."""
    rule, names, of = settings["rule"], list(settings["wrt"]), settings["of"]
    state: Mapping[str, Mapping[str, float]] = settings["state"]
    hyperparameters: Mapping[str, float] = settings["settings"]
    derivatives = gradient(graph, of=of, wrt=names)
    point = graph.point(None)
    values: dict[str, Any] = {name: float(value) for name, value in hyperparameters.items()}
    for name in names:
        values[internal_name("p", name)] = point[name]
        values |= {f"{variable}.{name}": float(old[name]) for variable, old in state.items()}
    known_values = dict(values)
    values |= {internal_name("g", name): derivatives[name] for name in names}
    blanks = [Blank("g", name, internal_name("g", name), derivatives[name]) for name in names]
    rows: list[Sequence[Cell]] = [("g", f"d{of}/dp", *blanks)]
    rule_names = _RuleNames(names, hyperparameters, {name: name for name in ("p", *state)})
    for variable, formula in parse_rule(rule):
        new = f"{variable}'" if variable in rule_names.latest else variable
        row = [
            solve_blank(new, name, f"{new}.{name}", rule_names.substitute(formula, name), values)
            for name in names
        ]
        rows.append((new, rule_names.substitute(formula), *row))
        blanks += row
        rule_names.latest[variable] = new
    text = (
        *quote_definitions(graph),
        f"Compute one update of *{rule}* on `{of}` for the parameters {quote_names(names)}"
        f" at {quote_values(point, point, 0)}; {quote_values(hyperparameters, hyperparameters, 0)}."
        f" Compute the rule row by row, separately for each parameter `p`; `g` is the derivative of"
        f" `{of}` with respect to `p`, and a prime marks the updated value.",
        *_describe_state(state),
    )
    title, header = f"One step of {rule}", ("row", "formula", *names)
    return Worksheet(title, text, header, rows, blanks, known_values, settings["digits"])


def _describe_state(state: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return, for each state variable, a sentence with its values before the update."""
    sentences = []
    for variable, values in state.items():
        texts = [f"{format_number(value, 10)} for `{name}`" for name, value in values.items()]
        sentences.append(f"Before the update, `{variable}` is {', '.join(texts)}.")
    return sentences
