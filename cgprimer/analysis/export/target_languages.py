"""Primitives as texts of other languages: what each language has, and what is written out.

Where a language lacks a function, a file gets a definition of it, made from ``DEFINITIONS``: once,
in cgprimer's own language, for all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cgprimer.analysis.export.program_statements import Line, Operand
from cgprimer.core.operations.array_operation import ArrayOperation
from cgprimer.core.operations.primitive_registry import (
    OPERANDS,
    RECIPROCALS,
    Applied,
    find_primitive,
    parse_partial,
)
from cgprimer.expressions import Name, Number, fold

DEFINITIONS: dict[str, str] = {
    **{name: f"1/{other}(a)" for name, other in RECIPROCALS.items()},
    **{f"a{name}": f"a{other}(1/a)" for name, other in RECIPROCALS.items()},
    "log_base": "log(a)/log(b)",
    "logaddexp": "where(equal(a, b), a + 0.6931471805599453, max(a, b) + log1p(exp(-abs(a - b))))",
    "xlogy": "where(equal(a, 0)*equal(b, 0), a, a*log(b))",
    "sigmoid": "where(less(a, 0), exp(-abs(a)), 1)/(1 + exp(-abs(a)))",
    "softplus": "max(a, 0) + log1p(exp(-abs(a)))",
    "relu": "max(a, 0)",
    "leaky_relu": "where(less(a, 0), a*b, a)",
    "gelu": "0.5*a*erfc(-0.7071067811865476*a)",
    "sign": "where(less(0, a), 1, where(less(a, 0), -1, a))",
    "heaviside": "where(less(0, a), 1, where(less(a, 0), 0, 0.5 + a))",
    "step": "heaviside(a)",
    "max": "where(less(b, a), a, where(equal(a, a), b, a))",
    "min": "where(less(a, b), a, where(equal(a, a), b, a))",
    "clamp": "min(max(a, b), c)",
}
_UNARY = """
    exp expm1 log log1p log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    erf erfc
"""
UNARY = tuple(_UNARY.split())
INFIX = {
    "add": "({a} + {b})", "sub": "({a} - {b})", "mul": "({a} * {b})", "div": "({a} / {b})",
    "neg": "(-{a})", "copy": "{a}", "stop_gradient": "{a}",
}  # fmt: skip
_SAID = re.compile(r'""".*?"""|(?:#|//)[^\n]*', re.DOTALL)  # docstrings, comments
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Language:
    """How a language writes the primitives.

    Attributes:
        texts: what it has, with ``{a}``, ``{b}``, ``{c}``; in parentheses where others may bind.
        define: writes a function: its name, its arguments and its value.
        helpers: the text of functions that ``texts`` uses, by name.
        special: numbers that are not finite.
        constant: how a number is written as an operand of a function; as ``number`` writes it.
        structural: writes a primitive that moves elements; None where there are single numbers.
    """

    texts: Mapping[str, str]
    define: Callable[[str, Sequence[str], str], str]
    helpers: Mapping[str, str] = field(default_factory=dict)
    special: tuple[str, str] = ("math.inf", "math.nan")
    constant: str = "{0}"
    structural: Callable[[ArrayOperation, Line, list[str]], str] | None = None
    finite: Callable[[float], str] = repr

    def number(self, value: float) -> str:
        """A number, exactly; in parentheses if it has a sign.

        >>> Language({}, lambda *_: "").number(-0.1)
        '(-0.1)'
        """
        if math.isfinite(value):
            text = self.finite(float(value))
        else:
            text = self.special[1] if math.isnan(value) else self.special[0]
            text = f"-{text}" if value < 0 else text
        return f"({text})" if text.startswith("-") else text

    def has(self, name: Applied) -> bool:
        """Whether it can write a primitive."""
        if not isinstance(name, str):
            return self.structural is not None and not name.runs_python
        known = {*self.texts, *self.helpers, *DEFINITIONS}
        return find_primitive(name).built_in and name in known

    def line(self, line: Line) -> str:
        """The right-hand side of an instruction."""
        name = line.primitive
        texts = [self._operand(name, operand) for operand in line.operands]
        if not isinstance(name, str):
            assert self.structural is not None
            return self.structural(name, line, texts)
        divisor = line.operands[-1]
        if name == "div" and isinstance(divisor, float) and divisor:
            return f"{texts[0]} / {texts[1]}"
        text = self.applied(name, texts)
        bare = self.texts.get(name, "").startswith("(") or (name == "copy" and text[0] == "(")
        return text[1:-1] if bare else text

    def _operand(self, name: Applied, operand: Operand) -> str:
        if isinstance(operand, str):
            return operand
        text = self.number(operand)
        return text if name in INFIX or name == "pow" else self.constant.format(text)

    def applied(self, name: str, operands: Sequence[str]) -> str:
        """A primitive applied to operands that are written as these texts."""
        if name in self.texts:
            return self.texts[name].format(**dict(zip(OPERANDS, operands, strict=False)))
        return f"{name}({', '.join(operands)})"

    def helper(self, name: str) -> str:
        """The text of a function that other texts use; empty where there is none."""
        if name in self.helpers:
            return self.helpers[name]
        if name not in DEFINITIONS or name in self.texts:
            return ""

        def leaf(node: Name | Number) -> str:
            constant = isinstance(node, Number)
            return self.constant.format(self.number(node.value)) if constant else node.name  # type: ignore[union-attr]

        body = fold(parse_partial(DEFINITIONS[name]), leaf, self.applied)
        return self.define(name, OPERANDS[: find_primitive(name).arity], body)

    def needed(self, *texts: str) -> list[str]:
        """The helpers that texts use, and those that these use, in an order to define them in."""
        found: dict[str, str] = {}

        def visit(text: str) -> None:
            for word in dict.fromkeys(_WORD.findall(_SAID.sub("", text))):
                own = self.helper(word)
                if own and word not in found:
                    found[word] = ""  # its own name stands in its text
                    visit(own)
                    del found[word]  # behind those that it uses
                    found[word] = own

        for text in texts:
            visit(text)
        return list(found.values())

    def words(self) -> set[str]:
        """The names that it, or a helper, has in a file."""
        own = {*self.helpers, *DEFINITIONS}
        return own | set(_WORD.findall(" ".join(self.texts.values()))) - {*OPERANDS}


def python_function(name: str, arguments: Sequence[str], body: str) -> str:
    """A function of Python's."""
    return f"def {name}({', '.join(arguments)}):\n    return {body}"


def aligned(lines: Iterable[tuple[str, str]], comment: str) -> list[str]:
    """Lines with their notes below each other, as far as that fits."""
    pairs = list(lines)
    column = min(max((len(code) for code, said in pairs if said), default=0), 56) + 2
    return [f"{code:<{column}}{comment} {said}" if said else code for code, said in pairs]
