"""Reference interpreters of tapes, and strategies for the texts of random graphs.

The interpreters share only the table of primitives with the package's engines; the rational
interpreter shares nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax_tree import Name, fold
from cgprimer.core.operations import numpy_arithmetic, primitives
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.tape import Tape

FUNCTIONS = sorted(
    {row.spelling: row for row in primitives() if row.spelling}.values(), key=lambda row: row.name
)
EXACT: dict[str, Callable[..., Fraction]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "copy": operator.pos,
}


def evaluate_primitive(name: str, operands: Iterable[np.float64]) -> np.float64:
    """Return the value of a primitive in float64."""
    with np.errstate(all="ignore"):
        return np.float64(numpy_arithmetic.numpy_function(name)(*map(np.float64, operands)))


def all_values(tape: Tape, given: Mapping[str, float]) -> list[np.float64]:
    """Return all values of a tape in float64, leaves first."""
    values = [
        np.float64(leaf.value if leaf.kind == "constant" else given[leaf.name])
        for leaf in tape.leaves
    ]
    for name, operands in tape.instructions:
        values.append(evaluate_primitive(name, [values[o] for o in operands]))
    return values


def tree_values(graph: ExpressionGraph, at: Mapping[str, float]) -> dict[str, np.float64]:
    """Return all values of a graph in float64, computed from the parsed expressions."""
    values = {n: np.float64(at[n]) for n in (*graph.inputs, *graph.parameters)}
    for name, tree in graph.definitions.items():
        value = fold(
            tree,
            lambda leaf: values[leaf.name] if isinstance(leaf, Name) else leaf.value,
            evaluate_primitive,
        )
        values[name] = np.float64(value)
    return values


def outputs(tape: Tape, given: Mapping[str, float]) -> dict[str, float]:
    values = all_values(tape, given)
    return {name: float(values[index]) for name, index in tape.outputs.items()}


def exact_outputs(tape: Tape, given: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the outputs in exact rational arithmetic.

    Raises:
        ZeroDivisionError: an instruction divides by zero.
    """
    values = [
        Fraction(leaf.value) if leaf.kind == "constant" else given[leaf.name]
        for leaf in tape.leaves
    ]
    for name, operands in tape.instructions:
        if name == "pow":
            base, exponent = (values[o] for o in operands)
            assert exponent.denominator == 1
            values.append(base ** int(exponent))
        else:
            values.append(EXACT[name](*(values[o] for o in operands)))
    return {name: values[index] for name, index in tape.outputs.items()}


def expressions(
    names: list[str], *, numbers: list[str], functions: bool = False
) -> st.SearchStrategy[str]:
    """Generate texts of fully parenthesized expressions."""

    def extend(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        number, operator = st.sampled_from(numbers), st.sampled_from("+-*/")
        choices = [
            st.tuples(left, operator, right).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
            for left, right in ((children, children), (children, number), (number, children))
        ]
        choices += [
            st.tuples(children, st.integers(-3, 3)).map(lambda t: f"({t[0]})^{t[1]}"),
            children.map(lambda text: f"(-{text})"),
        ]
        if functions:
            choices.append(
                st.sampled_from(FUNCTIONS).flatmap(
                    lambda row: st.tuples(*[children] * row.arity).map(
                        lambda operands: f"{row.spelling}({', '.join(operands)})"
                    )
                )
            )
        return st.one_of(choices)

    return st.recursive(st.sampled_from(names), extend, max_leaves=8)


NAMES = ("xa", "xb", "k", "m")
POINTS = st.fixed_dictionaries(
    {n: st.floats(-3.0, 3.0, allow_nan=False) | st.sampled_from([0.5, 1.0, 2.0]) for n in NAMES}
)


@st.composite
def texts(draw: st.DrawFn, **more) -> str:
    """Generate texts of graphs in which later definitions use earlier ones."""
    names, lines = [*NAMES], []
    for i in range(draw(st.integers(1, 4))):
        lines.append(f"x{i} = {draw(expressions(names, **more))}")
        names.append(f"x{i}")
    outputs = draw(st.lists(st.sampled_from(names[4:]), min_size=1, unique=True))
    return "\n".join([*lines, f"output {', '.join(outputs)}"])


def lowered(text: str) -> Tape:
    return lower(cgprimer.parse(text))
