"""Syntax tree to LaTeX mathematics, with the forms of the primitive table."""

from __future__ import annotations

import re

from cgprimer.core.language.syntax import Expression, Name, Number, fold
from cgprimer.core.primitives import primitive
from cgprimer.core.primitives.notation import number_text

# Operator: how tightly it binds, and what its operands need to go without parentheses. A quotient
# is a fraction and an exponent stands above the line: their operands need none.
_INFIX = {
    "add": (1, (1, 2)),
    "sub": (1, (1, 2)),
    "mul": (2, (2, 3)),
    "neg": (3, (3,)),
    "pow": (4, (5, 0)),
    "div": (4, (0, 0)),
}
_ATOM = 5
_BEGINS_WITH_A_DIGIT = re.compile(r"\{*(\\frac\{+)?[0-9]")
_GREEK = frozenset(
    ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
     "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
     "omega")
)  # fmt: skip


def latex(expression: Expression) -> str:
    r"""The LaTeX of an expression, for use in mathematics mode.

    A product is set with a small space, with a dot where the second factor begins with a digit
    (``2 3`` and ``2 3/4`` would read as other numbers); what begins with a sign gets parentheses.

    >>> from cgprimer.core.primitives.notation import parse_expression
    >>> print(latex(parse_expression("(cd + 1)*xx^2")))
    \left(\mathit{cd} + 1\right) \, {\mathit{xx}}^{2}
    >>> print(latex(parse_expression("2*3*a*-b")))
    2 \cdot 3 \, a \cdot \left(-b\right)
    """

    def leaf(node: Name | Number) -> tuple[str, int]:
        if isinstance(node, Name):
            return latex_name(node.name), _ATOM
        text = number_text(node.value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
        mantissa, scientific, power = text.partition("e")
        if scientific:
            text = rf"{mantissa} \cdot 10^{{{int(power)}}}"
        return text, 2 if scientific else 3 if text.startswith("-") else _ATOM

    def apply(name: str, arguments: list[tuple[str, int]]) -> tuple[str, int]:
        binding, needed = _INFIX.get(name, (_ATOM, (0,) * len(arguments)))
        texts = []
        for i, ((text, bound), need) in enumerate(zip(arguments, needed, strict=True)):
            after_a_sign = text.startswith("-") and (i or name == "neg") and need
            texts.append(rf"\left({text}\right)" if bound < need or after_a_sign else text)
        if name == "mul" and (
            arguments[1][0].startswith("-") or _BEGINS_WITH_A_DIGIT.match(texts[1])
        ):
            return rf"{texts[0]} \cdot {texts[1]}", binding
        form = primitive(name).latex
        return form.format(**dict(zip("abc", texts, strict=False))), binding

    return fold(expression, leaf, apply)[0]


def latex_name(name: str) -> str:
    r"""A name in LaTeX: Greek names as letters, trailing digits and what follows ``_`` as index.

    >>> print(latex_name("bar_xz"), latex_name("x1"), latex_name("alpha"))
    \mathit{bar}_{xz} x_{1} \alpha
    """
    stem, _, index = name.partition("_")
    digits = re.fullmatch(r"(.*?[^0-9])([0-9]+)", stem)
    if digits and not index:
        stem, index = digits[1], digits[2]
    if stem in _GREEK:
        stem = rf"\{stem}"
    elif len(stem) != 1:
        stem = rf"\mathit{{{stem}}}"
    return rf"{stem}_{{{index.replace('_', ', ')}}}" if index else stem
