"""Code for primitives in other languages.

If a language lacks a function, the file defines it. ``DEFINITIONS`` has these definitions, written
in cgprimer's own language once for all targets.
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
_COMMENT = re.compile(r'""".*?"""|/\*.*?\*/|(?:#|//)[^\n]*', re.DOTALL)  # docstrings, comments
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Language:
    """The syntax of a target language: code for primitives, numbers and functions.

    Attributes:
        texts: code for primitives with operands ``{a}``, ``{b}``, ``{c}``, in parentheses where
            precedence matters, keyed by primitive.
        define: returns the definition of a function from its name, arguments and value.
        helpers: definitions of functions that ``texts`` uses, keyed by name.
        special: code for infinity and nan.
        constant: format of a number as an operand of a function.
        structural: returns code for an array operation; None for languages without arrays.
        finite: formats a finite number.
    """

    texts: Mapping[str, str]
    define: Callable[[str, Sequence[str], str], str]
    helpers: Mapping[str, str] = field(default_factory=dict)
    special: tuple[str, str] = ("math.inf", "math.nan")
    constant: str = "{0}"
    structural: Callable[[ArrayOperation, Line, list[str]], str] | None = None
    finite: Callable[[float], str] = repr

    def format_number(self, value: float) -> str:
        """Format a float as exact code, in parentheses if it is negative.

        >>> Language({}, lambda *_: "").format_number(-0.1)
        '(-0.1)'
        """
        if math.isfinite(value):
            text = self.finite(float(value))
        else:
            text = self.special[1] if math.isnan(value) else self.special[0]
            text = f"-{text}" if value < 0 else text
        return f"({text})" if text.startswith("-") else text

    def supports(self, name: Applied) -> bool:
        """Return whether an operation can be expressed in the target language."""
        if not isinstance(name, str):
            return self.structural is not None and not name.runs_python
        defined = {*self.texts, *self.helpers, *DEFINITIONS}
        return find_primitive(name).built_in and name in defined

    def format_right_side(self, line: Line) -> str:
        """Return the code of the right-hand side of an instruction."""
        name = line.primitive
        texts = [self._format_operand(name, operand) for operand in line.operands]
        if not isinstance(name, str):
            assert self.structural is not None
            return self.structural(name, line, texts)
        divisor = line.operands[-1]
        if name == "div" and isinstance(divisor, float) and divisor:
            return f"{texts[0]} / {texts[1]}"
        text = self.apply(name, texts)
        is_copy_in_parentheses = name == "copy" and text[0] == "("
        has_parentheses = self.texts.get(name, "").startswith("(") or is_copy_in_parentheses
        return text[1:-1] if has_parentheses else text

    def _format_operand(self, name: Applied, operand: Operand) -> str:
        """Format an identifier or a constant as an operand of an operation."""
        if isinstance(operand, str):
            return operand
        text = self.format_number(operand)
        return text if name in INFIX or name == "pow" else self.constant.format(text)

    def apply(self, name: str, operands: Sequence[str]) -> str:
        """Return the code that applies a primitive to operands."""
        if name in self.texts:
            return self.texts[name].format(**dict(zip(OPERANDS, operands, strict=False)))
        return f"{name}({', '.join(operands)})"

    def define_helper(self, name: str) -> str:
        """Return the code of a helper function; empty if it is built into the language."""
        if name in self.helpers:
            return self.helpers[name]
        if name not in DEFINITIONS or name in self.texts:
            return ""

        def format_leaf(node: Name | Number) -> str:
            """Format a name or a number of an expression as code."""
            constant = isinstance(node, Number)
            return self.constant.format(self.format_number(node.value)) if constant else node.name  # type: ignore[union-attr]

        body = fold(parse_partial(DEFINITIONS[name]), format_leaf, self.apply)
        return self.define(name, OPERANDS[: find_primitive(name).arity], body)

    def collect_helpers(self, *texts: str) -> list[str]:
        """Return the helper functions that the given code calls, in order of dependency."""
        definitions: dict[str, str] = {}

        def visit(text: str) -> None:
            """Add the helper functions that a piece of code calls, directly or indirectly."""
            for identifier in dict.fromkeys(_IDENTIFIER.findall(_COMMENT.sub("", text))):
                definition = self.define_helper(identifier)
                if definition and identifier not in definitions:
                    definitions[identifier] = ""  # the definition contains its own name
                    visit(definition)
                    del definitions[identifier]  # move it after the definitions that it uses
                    definitions[identifier] = definition

        for text in texts:
            visit(text)
        return list(definitions.values())

    def list_words(self) -> set[str]:
        """Return all identifiers that occur in the language's code for primitives."""
        helpers = {*self.helpers, *DEFINITIONS}
        return helpers | set(_IDENTIFIER.findall(" ".join(self.texts.values()))) - {*OPERANDS}


def define_python_function(name: str, arguments: Sequence[str], body: str) -> str:
    """Return the definition of a Python function that evaluates an expression."""
    return f"def {name}({', '.join(arguments)}):\n    return {body}"


def align_comments(lines: Iterable[tuple[str, str]], marker: str) -> list[str]:
    """Join lines of code with their comments; the comments are aligned in one column."""
    pairs = list(lines)
    column = min(max((len(code) for code, comment in pairs if comment), default=0), 56)
    return [f"{code:<{column}}  {marker} {comment}" if comment else code for code, comment in pairs]
