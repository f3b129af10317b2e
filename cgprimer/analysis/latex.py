"""Syntax tree to LaTeX mathematics, with the forms of the primitive table."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeAlias

from cgprimer.core.language.syntax_tree import Operator, operator_name
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS
from cgprimer.expressions import Expression, Name, Number, fold, number_text

# Operator: how tightly it binds, and what its operands need to go without parentheses. A quotient
# is a fraction and an exponent stands above the line: their operands need none.
_INFIX = {
    "add": (1, (1, 2)),
    "sub": (1, (1, 2)),
    "mul": (2, (2, 3)),
    "neg": (3, (3,)),
    "pow": (4, (5, 0)),
    "div": (4, (0, 0)),
    "matmul": (2, (2, 3)),
    "dot": (2, (2, 3)),
    "transpose": (4, (5,)),
    "index": (5, (5,)),
    "take": (5, (5,)),
}
_ATOM = 5
_NUMBERS = (
    "dot",
    "norm",
    "sum",
    "mean",
    "largest",
    "smallest",
    "index",
    "take",
)  # at most, as a rule
Part: TypeAlias = tuple[str, int, bool]  # a text, how tightly it binds, whether it is an array
_BEGINS_WITH_A_DIGIT = re.compile(r"\{*(\\frac\{+)?[0-9]")
_GREEK = frozenset(
    ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
     "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
     "omega")
)  # fmt: skip


def latex(
    expression: Expression,
    arrays: Collection[str] = (),
    forms: Callable[[str], str] = lambda kind: "",
) -> str:
    r"""The LaTeX of an expression, for use in mathematics mode.

    A product is set with a small space, with a dot where the second factor begins with a digit
    (``2 3`` and ``2 3/4`` would read as other numbers); what begins with a sign gets parentheses.
    A product of two of the names that are ``arrays``, element by element, gets a dot in a circle.
    What the table does not have is written in ``forms``.

    >>> from cgprimer.core.operations.notation import parse_expression
    >>> print(latex(parse_expression("(cd + 1)*xx^2")))
    \left(\mathit{cd} + 1\right) \, {\mathit{xx}}^{2}
    >>> print(latex(parse_expression("norm(transpose(W) @ x[0] + b*c)"), arrays="bc"))
    \left\lVert {W}^{\top} \, x_{0} + b \odot c \right\rVert
    >>> print(latex(parse_expression("2*3*a*-b")))
    2 \cdot 3 \, a \cdot \left(-b\right)
    """

    def leaf(node: Name | Number) -> Part:
        if isinstance(node, Name):
            return latex_name(node.name), _ATOM, node.name in arrays
        text = number_text(node.value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
        mantissa, scientific, power = text.partition("e")
        if scientific:
            text = rf"{mantissa} \cdot 10^{{{int(power)}}}"
        return text, 2 if scientific else 3 if text.startswith("-") else _ATOM, False

    def apply(name: str | Operator, arguments: list[Part]) -> Part:
        kind = operator_name(name)
        settings = [] if isinstance(name, str) else name.format_settings()
        if kind == "transpose" and (settings or len(arguments) > 1):
            kind = "permuted"  # axes in an order of their own
        binding, needed = _INFIX.get(kind, (_ATOM, (0,) * len(arguments)))
        texts = []
        for i, ((text, bound, _), need) in enumerate(zip(arguments, needed, strict=True)):
            after_a_sign = text.startswith("-") and (i or name == "neg") and need
            texts.append(rf"\left({text}\right)" if bound < need or after_a_sign else text)
        several = all(argument[2] for argument in arguments)
        array = kind not in _NUMBERS and any(argument[2] for argument in arguments)
        if name == "mul" and several:
            return rf"{texts[0]} \odot {texts[1]}", binding, True
        if name == "mul" and (
            arguments[1][0].startswith("-") or _BEGINS_WITH_A_DIGIT.match(texts[1])
        ):
            return rf"{texts[0]} \cdot {texts[1]}", binding, array
        if kind in ("index", "take"):
            stem = f"{{{texts[0]}}}" if "_" in texts[0] else texts[0]
            return rf"{stem}_{{{', '.join(settings)}}}", binding, False
        if kind == "transpose":
            return rf"{{{texts[0]}}}^{{\top}}", binding, array
        row = ARRAY_FUNCTIONS.get(kind)
        form = (
            row.latex
            if row
            else find_primitive(name).latex
            if isinstance(name, str)
            else forms(kind)
        )
        if not form:
            spelled = (row.spelling if row else kind).replace("_", r"\_")
            listed = ", ".join([*texts, *settings])
            return rf"\operatorname{{{spelled}}}\left({listed}\right)", _ATOM, array
        return form.format(**dict(zip("abc", texts, strict=False))), binding, array

    return fold(expression, leaf, apply)[0]


def latex_name(name: str) -> str:
    r"""A name in LaTeX: Greek names as letters, trailing digits and what follows ``_`` as index.

    >>> print(latex_name("bar_xz"), latex_name("x1"), latex_name("alpha"))
    \bar{\mathit{xz}} x_{1} \alpha
    >>> print(latex_name("bar_w2"), latex_name("dot_h_1"))
    \bar{w}_{2} \dot{h}_{1}
    """
    name, dashes = name.rstrip("'"), "'" * name.count("'")
    stem, _, index = name.partition("_")
    if stem in ("bar", "dot") and index:
        letter, under, place = latex_name(index).partition("_")
        return rf"\{stem}{{{letter}}}{under}{place}"
    digits = re.fullmatch(r"(.*?[^0-9])([0-9]+)", stem)
    if digits and not index:
        stem, index = digits[1], digits[2]
    if stem in _GREEK:
        stem = rf"\{stem}"
    elif len(stem) != 1:
        stem = rf"\mathit{{{stem}}}"
    return (rf"{stem}_{{{index.replace('_', ', ')}}}" if index else stem) + dashes
