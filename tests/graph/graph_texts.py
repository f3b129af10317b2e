"""Random graphs, made as plain data so that a test can compute with them without the package."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from hypothesis import strategies as st

INPUTS = ("xa", "xaa", "x", "c")  # c is declared
PARAMETERS = ("a", "ab", "k")


@dataclass(frozen=True)
class Plan:
    """Definitions by name, each using only names before it; the text may have another order."""

    definitions: dict[str, str]
    order: tuple[str, ...]  # of the statements in the text
    values: dict[str, float]
    outputs: tuple[str, ...]

    @property
    def text(self) -> str:
        lines = ["input c = 0.25", *(f"{name} = {self.definitions[name]}" for name in self.order)]
        return "\n".join([*lines, *([f"output {', '.join(self.outputs)}"] if self.outputs else [])])

    @property
    def names_used(self) -> dict[str, set[str]]:
        """Names in each definition."""
        return {n: {*re.findall(r"\b[a-z]+\b(?!\()", t)} for n, t in self.definitions.items()}

    def computed(self) -> dict[str, float]:
        """Every definition's value, computed by Python."""
        known = dict(self.values)
        for name, text in self.definitions.items():
            python = re.sub(r"(sin|tanh)\(", r"math.\1(", text)
            known[name] = eval(python, {"math": math}, known)  # noqa: S307 - of our own text
        return {name: known[name] for name in self.definitions}


def _grown(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Every operation has parentheses of its own: precedence plays no part."""
    binary = st.tuples(children, st.sampled_from([" + ", " - ", "*"]), children)
    unary = st.tuples(st.sampled_from(["-", "sin", "tanh"]), children)
    return binary.map(lambda t: f"({''.join(t)})") | unary.map(
        lambda t: f"(-{t[1]})" if t[0] == "-" else f"{t[0]}({t[1]})"
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    definitions: dict[str, str] = {}
    usable = [*INPUTS, *PARAMETERS]
    names = st.sampled_from(["xb", "xab", "xx", "d", "y", "xz", "sin"])
    for name in draw(st.lists(names, min_size=1, max_size=6, unique=True)):
        leaf = st.sampled_from([*usable, "0.5", "1", "2", "3.25", "0.001"])
        definitions[name] = draw(st.recursive(leaf, _grown, max_leaves=6))
        usable.append(name)
    number = st.floats(-2.0, 2.0, allow_nan=False)
    return Plan(
        definitions,
        tuple(draw(st.permutations(list(definitions)))),
        {name: draw(number) for name in (*INPUTS, *PARAMETERS)},
        tuple(draw(st.lists(st.sampled_from(list(definitions)), max_size=3, unique=True))),
    )
