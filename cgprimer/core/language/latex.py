"""Syntax tree to LaTeX mathematics, with the forms of the primitive table."""

from __future__ import annotations

import re
from collections.abc import Callable

from cgprimer.core.language.syntax import Expression, Name, Number, fold
from cgprimer.core.language.unparse import number_text

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
_GREEK = frozenset(
    ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
     "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
     "omega")
)  # fmt: skip


def latex(expression: Expression, form: Callable[[str], str]) -> str:
    r"""The LaTeX of an expression, for use in mathematics mode.

    Args:
        expression: the tree.
        form: a format string with ``{a}``, ``{b}``, ``{c}`` for each function.

    >>> from cgprimer.core.primitives.notation import latex, parse_expression
    >>> print(latex(parse_expression("(cd + 1)*xx^2")))
    \left(\mathit{cd} + 1\right) \, {\mathit{xx}}^{2}
    """

    def leaf(node: Name | Number) -> tuple[str, int]:
        if isinstance(node, Name):
            return latex_name(node.name), _ATOM
        text = number_text(node.value)
        scientific = re.fullmatch(r"(-?[\d.]+)e([+-]\d+)", text)
        if scientific:
            text = rf"{scientific[1]} \cdot 10^{{{int(scientific[2])}}}"
        return text, 2 if scientific else 3 if text.startswith("-") else _ATOM

    def apply(name: str, arguments: list[tuple[str, int]]) -> tuple[str, int]:
        binding, needed = _INFIX.get(name, (_ATOM, (0,) * len(arguments)))
        texts = [
            text if bound >= need else rf"\left({text}\right)"
            for (text, bound), need in zip(arguments, needed, strict=True)
        ]
        return form(name).format(**dict(zip("abc", texts, strict=False))), binding

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
