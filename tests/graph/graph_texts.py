"""Random graphs, made as plain data so that a test can compute with them without the package."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

Tree = float | str | tuple  # a number, a name, or (operation, operand, ...)

BINARY: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
UNARY: dict[str, Callable[[float], float]] = {"sin": math.sin, "tanh": math.tanh, "-": operator.neg}
INPUTS = ("xa", "xaa", "x", "c")  # c is declared
PARAMETERS = ("a", "ab", "k")


@dataclass(frozen=True)
class Plan:
    """Definitions by name, each using only names before it; the text may have another order."""

    definitions: dict[str, Tree]
    order: tuple[str, ...]  # of the statements in the text
    values: dict[str, float]
    outputs: tuple[str, ...]

    @property
    def text(self) -> str:
        lines = ["input c = 0.25"]
        lines += [f"{name} = {written(self.definitions[name])}" for name in self.order]
        if self.outputs:
            lines.append(f"output {', '.join(self.outputs)}")
        return "\n".join(lines)

    def computed(self, values: Mapping[str, float]) -> dict[str, float]:
        known = dict(values)
        for name, tree in self.definitions.items():
            known[name] = computed(tree, known)
        return {name: known[name] for name in self.definitions}


def written(tree: Tree) -> str:
    """Every operation in parentheses of its own: precedence plays no part."""
    if isinstance(tree, tuple):
        name, *operands = tree
        texts = [written(o) for o in operands]
        if len(texts) == 2:
            return f"({texts[0]} {name} {texts[1]})"
        return f"(-{texts[0]})" if name == "-" else f"{name}({texts[0]})"
    return tree if isinstance(tree, str) else repr(tree)


def computed(tree: Tree, known: Mapping[str, float]) -> float:
    if isinstance(tree, tuple):
        name, *operands = tree
        values = [computed(o, known) for o in operands]
        return BINARY[name](*values) if len(values) == 2 else UNARY[name](*values)
    return known[tree] if isinstance(tree, str) else tree


def names_in(tree: Tree) -> set[str]:
    if isinstance(tree, tuple):
        return set().union(*(names_in(o) for o in tree[1:]))
    return {tree} if isinstance(tree, str) else set()


def _grown(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    binary = st.tuples(st.sampled_from(sorted(BINARY)), children, children)
    return binary | st.tuples(st.sampled_from(sorted(UNARY)), children)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    definitions: dict[str, Tree] = {}
    usable = [*INPUTS, *PARAMETERS]
    names = st.sampled_from(["xb", "xab", "xx", "d", "y", "xz", "sin"])
    for name in draw(st.lists(names, min_size=1, max_size=6, unique=True)):
        leaf = st.sampled_from(usable) | st.sampled_from([0.5, 1.0, 2.0, 3.25, 1e-3])
        definitions[name] = draw(st.recursive(leaf, _grown, max_leaves=6))
        usable.append(name)
    number = st.floats(-2.0, 2.0, allow_nan=False)
    return Plan(
        definitions,
        tuple(draw(st.permutations(list(definitions)))),
        {name: draw(number) for name in (*INPUTS, *PARAMETERS)},
        tuple(draw(st.lists(st.sampled_from(list(definitions)), max_size=3, unique=True))),
    )
