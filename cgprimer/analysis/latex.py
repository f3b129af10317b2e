"""LaTeX for expressions, with the forms of the primitive table."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeAlias

from cgprimer.core.language.syntax_tree import Operator, operator_name
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS
from cgprimer.expressions import Expression, Name, Number, fold, number_text

# Precedence of each operator, and the precedence that its operands need to be written without
# parentheses. Operands of fractions and exponents need no parentheses.
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
_SCALAR_RESULTS = (
    "dot",
    "norm",
    "sum",
    "mean",
    "largest",
    "smallest",
    "index",
    "take",
)
Part: TypeAlias = tuple[str, int, bool]  # LaTeX, precedence, whether the value is an array
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
    r"""Format an expression in LaTeX, for use in mathematics mode.

    Factors are separated by a small space, or by a dot if the second factor begins with a digit.
    A factor that begins with a sign gets parentheses. An elementwise product of arrays is written
    with a dot in a circle.

    Args:
        expression: the expression.
        arrays: the names of arrays.
        forms: returns the form of a function that the primitive table lacks, with operands ``{a}``,
            ``{b}``, ``{c}``.

    >>> from cgprimer.core.operations.notation import parse_expression
    >>> print(latex(parse_expression("(cd + 1)*xx^2")))
    \left(\mathit{cd} + 1\right) \, {\mathit{xx}}^{2}
    >>> print(latex(parse_expression("norm(transpose(W) @ x[0] + b*c)"), arrays="bc"))
    \left\lVert {W}^{\top} \, x_{0} + b \odot c \right\rVert
    >>> print(latex(parse_expression("2*3*a*-b")))
    2 \cdot 3 \, a \cdot \left(-b\right)
    """

    def format_leaf(node: Name | Number) -> Part:
        """Format a name or a number in LaTeX."""
        if isinstance(node, Name):
            return latex_name(node.name), _ATOM, node.name in arrays
        return _format_constant(node.value)

    def format_call(name: str | Operator, arguments: list[Part]) -> Part:
        """Format an operation in LaTeX from its formatted operands."""
        return _format_operation(name, arguments, forms)

    return fold(expression, format_leaf, format_call)[0]


def _format_constant(value: float) -> Part:
    """Format a number in LaTeX, with its precedence; exponents become powers of ten."""
    text = number_text(value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
    mantissa, exponent_mark, exponent = text.partition("e")
    if exponent_mark:
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", 2, False
    return text, 3 if text.startswith("-") else _ATOM, False


def _format_operation(
    name: str | Operator, arguments: list[Part], forms: Callable[[str], str]
) -> Part:
    """Format an operation in LaTeX from its formatted operands."""
    kind = operator_name(name)
    settings = [] if isinstance(name, str) else name.format_settings()
    if kind == "transpose" and (settings or len(arguments) > 1):
        kind = "permuted"  # a permutation of axes other than the usual transpose
    precedence, needed = _INFIX.get(kind, (_ATOM, (0,) * len(arguments)))
    texts = _add_parentheses(arguments, needed, name == "neg")
    is_array = kind not in _SCALAR_RESULTS and any(argument[2] for argument in arguments)
    if name == "mul":
        return _format_product(texts, arguments), precedence, is_array
    if kind in ("index", "take"):
        stem = f"{{{texts[0]}}}" if "_" in texts[0] else texts[0]
        return rf"{stem}_{{{', '.join(settings)}}}", precedence, False
    if kind == "transpose":
        return rf"{{{texts[0]}}}^{{\top}}", precedence, is_array
    row = ARRAY_FUNCTIONS.get(kind)
    if row:
        form = row.latex
    else:
        form = find_primitive(name).latex if isinstance(name, str) else forms(kind)
    if not form:
        spelling = (row.spelling if row else kind).replace("_", r"\_")
        listed = ", ".join([*texts, *settings])
        return rf"\operatorname{{{spelling}}}\left({listed}\right)", _ATOM, is_array
    return form.format(**dict(zip("abc", texts, strict=False))), precedence, is_array


def _add_parentheses(
    arguments: list[Part], needed: tuple[int, ...], is_negation: bool
) -> list[str]:
    """Put parentheses around operands that need them for precedence or for their sign."""
    texts = []
    for position, ((text, precedence, _), need) in enumerate(zip(arguments, needed, strict=True)):
        follows_sign = text.startswith("-") and (position or is_negation) and need
        has_parentheses = precedence < need or follows_sign
        texts.append(rf"\left({text}\right)" if has_parentheses else text)
    return texts


def _format_product(texts: list[str], arguments: list[Part]) -> str:
    """Format a product: a circled dot between arrays, a dot before digits, else a space."""
    if all(argument[2] for argument in arguments):
        return rf"{texts[0]} \odot {texts[1]}"
    if arguments[1][0].startswith("-") or _BEGINS_WITH_A_DIGIT.match(texts[1]):
        return rf"{texts[0]} \cdot {texts[1]}"
    form = find_primitive("mul").latex
    return form.format(a=texts[0], b=texts[1])


def latex_name(name: str) -> str:
    r"""Format a variable name in LaTeX: Greek letters, subscripts, and accents for bar and dot.

    >>> print(latex_name("bar_xz"), latex_name("x1"), latex_name("alpha"))
    \bar{\mathit{xz}} x_{1} \alpha
    >>> print(latex_name("bar_w2"), latex_name("dot_h_1"))
    \bar{w}_{2} \dot{h}_{1}
    """
    name, primes = name.rstrip("'"), "'" * name.count("'")
    stem, _, index = name.partition("_")
    if stem in ("bar", "dot") and index:
        letter, underscore, subscript = latex_name(index).partition("_")
        return rf"\{stem}{{{letter}}}{underscore}{subscript}"
    digits = re.fullmatch(r"(.*?[^0-9])([0-9]+)", stem)
    if digits and not index:
        stem, index = digits[1], digits[2]
    if stem in _GREEK:
        stem = rf"\{stem}"
    elif len(stem) != 1:
        stem = rf"\mathit{{{stem}}}"
    return (rf"{stem}_{{{index.replace('_', ', ')}}}" if index else stem) + primes
