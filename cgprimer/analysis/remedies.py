"""What to do about an operation whose value, or whose slope, is not finite: a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import NamedTuple

from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.primitive_registry import Primitive

_LOG = ("log", "log2", "log10", "log_base", "xlogy")
_ARITHMETIC = ("add", "sub", "mul", "div", "pow")
_EVERYWHERE = "all real numbers"


class Operation(NamedTuple):
    """An operation at a point.

    Attributes:
        row: the primitive's name; another text where it moves elements or multiplies matrices.
        text: how it is written.
        operands: their texts.
        values: of its operands, of arrays the element where it is not finite; none where there is
            no such element, as of a product of matrices.
    """

    row: str
    text: str
    operands: tuple[str, ...]
    values: tuple[float, ...]


def of_value(op: Operation, value: float) -> str:
    """For a value that is not finite, of operands that are."""
    which = 1 if op.row == "xlogy" else 0
    a, x = op.operands[which], op.values[which] if op.values else 1.0
    if op.row in ("exp", "expm1", "sinh", "cosh"):
        return (
            f"{op.row} is beyond 1.8e308 from 710 on: sigmoid(x), softplus(x), logaddexp(a, b) and"
            " log_softmax(x) say what is meant without it; or take the largest exponent off first"
        )
    if op.row in _LOG and x == 0.0:
        return (
            "the logarithm of 0 is -inf: of a probability that sigmoid or softmax made take the"
            " logarithm of those instead, -softplus(-x) or log_softmax(x) (the losses"
            " cross-entropy-logit and softmax-cross-entropy); p*log(p) is 0 at 0 as xlogy(p, p)"
        )
    if op.row == "div" and op.values[1] == 0.0:
        b = op.operands[1]
        return (
            f"divide by what cannot be 0, as in {a}/({b} + 1e-12) if {b} >= 0, or choose a value"
            f" for 0: where({b}, {a}/where({b}, {b}, 1), 0)"
        )
    if op.row == "pow":
        if x == 0.0:
            return f"0 to a negative power is 1/0: keep {a} away from 0"
        if x < 0.0 and op.values[1] % 1:
            return f"a negative number has no power {op.values[1]:g}: abs({a}), or {a} >= 0"
    if op.row == "xlogy":
        return (
            f"{a} is negative: cross-entropy needs outputs between 0 and 1, as of sigmoid(...), and"
            " the loss cross-entropy-logit takes them before it"
        )
    row = _row(op)
    overflow = isinf(value) and op.row in _ARITHMETIC
    if row is not None and op.values and row.domain != _EVERYWHERE and not overflow:
        domain = _named(row.domain, op.operands)
        return f"{op.row} is defined for {domain}; {row.edges}".rstrip("; ")
    return "the result is beyond 1.8e308: smaller numbers (scale inputs or parameters)"


def of_slope(op: Operation, partial: float) -> str:
    """For a slope that is not finite where the value is."""
    a = op.operands[0]
    if op.row == "sqrt" or (op.row == "pow" and op.values[:1] == (0.0,)):
        return (
            f"at 0 the slope of {op.text} is {partial:g}: that is so, and no mistake. Start away"
            f" from 0, or round the corner off: sqrt({a} + 1e-12)"
            if op.row != "pow"
            else f"at 0 the slope of {op.text} is {partial:g}: start away from 0, or add a little"
            f" to {a}"
        )
    if op.row in ("asin", "acos", "acosh", "atanh", "asec", "acsc"):
        return (
            f"the slope of {op.row} is infinite at the edge of its domain: keep inside, as with"
            f" {op.row}(clamp({a}, -0.999999, 0.999999)) for asin and acos, or compute the angle"
            " by atan"
        )
    row = _row(op)
    if row is not None and row.edges:
        return f"{op.row}: {row.edges}"
    return "the slope is beyond 1.8e308: smaller numbers (scale inputs or parameters)"


def of_branch(op: Operation, condition: str, *, where_true: bool) -> str:
    """For an operation in the branch that ``where`` does not take: 0 times inf is nan.

    Args:
        op: the operation.
        condition: of the ``where``.
        where_true: whether the branch is that of a condition that holds.
    """
    a = op.operands[-1] if op.row in ("div", "xlogy") else op.operands[0]
    harmless = f"where({condition}, {a}, 1)" if where_true else f"where({condition}, 1, {a})"
    if op.row == "div":
        fixed = f"{op.operands[0]}/{harmless}"
    else:
        fixed = op.text.replace(f"({a}", f"({harmless}", 1)
        fixed = fixed if fixed != op.text else f"with {harmless} in the place of {a}"
    return (
        "where() does not take this branch, but its slope counts, times 0, and 0 times inf or nan"
        f" is nan: give it a harmless operand, {fixed}"
    )


PRODUCT = (
    "the adjoint is finite and so is the slope, but their product is beyond 1.8e308: the gradient"
    " explodes; smaller weights, fewer steps, or scaled inputs"
)
SUM = "shares of both signs are infinite, or their sum is beyond 1.8e308"


def _row(op: Operation) -> Primitive | None:
    return find_primitive(op.row) if op.values else None


def _named(domain: str, operands: tuple[str, ...]) -> str:
    """A domain of the table, which is about a, b and c, in the operands' texts."""
    names: Mapping[str, str] = dict(zip("abc", operands, strict=False))
    words = [names.get(word, word) for word in domain.split(" ")]
    return " ".join(words)
