"""Suggestions for operations whose value or partial derivative is not finite."""

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
    """An operation with a result that is not finite, and its operands.

    Attributes:
        row: the name of the primitive or array operation.
        text: the expression of the operation.
        operands: the expressions of the operands.
        values: the values of the operands; for arrays, the elements at which the result is not
            finite. Empty if no single elements determine the result, as in matrix products.
    """

    row: str
    text: str
    operands: tuple[str, ...]
    values: tuple[float, ...]


def suggest_for_value(op: Operation, value: float) -> str:
    """Suggest a remedy for an operation with finite operands and a result of inf or nan."""
    index = 1 if op.row == "xlogy" else 0
    a, x = op.operands[index], op.values[index] if op.values else 1.0
    if op.row in ("exp", "expm1", "sinh", "cosh"):
        return (
            f"{op.row} overflows for operands above 710: use sigmoid(x), softplus(x),"
            " logaddexp(a, b) or log_softmax(x), or subtract the maximum of the exponents first"
        )
    if op.row in _LOG and x == 0.0:
        return (
            "the logarithm of 0 is -inf: for the logarithm of a sigmoid or softmax, use"
            " -softplus(-x) or log_softmax(x) (the losses cross-entropy-logit and"
            " softmax-cross-entropy); xlogy(p, p) is p*log(p) with value 0 at 0"
        )
    if op.row == "div" and op.values[1] == 0.0:
        b = op.operands[1]
        return (
            f"prevent a divisor of 0, as in {a}/({b} + 1e-12) if {b} >= 0, or choose a value"
            f" for 0: where({b}, {a}/where({b}, {b}, 1), 0)"
        )
    if op.row == "pow":
        if x == 0.0:
            return f"0 to a negative power is 1/0: keep {a} away from 0"
        if x < 0.0 and op.values[1] % 1:
            power = f"{op.values[1]:g}"
            return f"power {power} of a negative number is not real: use abs({a}) or {a} >= 0"
    if op.row == "xlogy":
        return (
            f"{a} is negative: cross-entropy requires outputs between 0 and 1, such as"
            " sigmoid(...); cross-entropy-logit accepts outputs before the sigmoid"
        )
    row = _find_primitive_row(op)
    is_overflow = isinf(value) and op.row in _ARITHMETIC
    if row is not None and op.values and row.domain != _EVERYWHERE and not is_overflow:
        domain = _insert_operands(row.domain, op.operands)
        return f"{op.row} is defined for {domain}; {row.edges}".rstrip("; ")
    return "the result exceeds 1.8e308: scale the inputs or parameters"


def suggest_for_partial(op: Operation, partial: float) -> str:
    """Suggest a remedy for an operation with a finite value but a non-finite partial derivative."""
    a = op.operands[0]
    if op.row == "sqrt" or (op.row == "pow" and op.values[:1] == (0.0,)):
        return (
            f"the derivative of {op.text} is {partial:g} at 0, which is correct: start away"
            f" from 0, or smooth the function: sqrt({a} + 1e-12)"
            if op.row != "pow"
            else f"the derivative of {op.text} is {partial:g} at 0: start away from 0, or add a"
            f" small constant to {a}"
        )
    if op.row in ("asin", "acos", "acosh", "atanh", "asec", "acsc"):
        return (
            f"the derivative of {op.row} is infinite at the edge of its domain: stay inside, as"
            f" with {op.row}(clamp({a}, -0.999999, 0.999999)) for asin and acos, or compute the"
            " angle with atan"
        )
    row = _find_primitive_row(op)
    if row is not None and row.edges:
        return f"{op.row}: {row.edges}"
    return "the derivative exceeds 1.8e308: scale the inputs or parameters"


def suggest_for_branch(op: Operation, condition: str, *, where_true: bool) -> str:
    """Suggest a remedy for an operation in the branch that ``where`` does not select.

    Args:
        op: the operation.
        condition: the condition of ``where``.
        where_true: True if the branch is selected when the condition is true.
    """
    a = op.operands[-1] if op.row in ("div", "xlogy") else op.operands[0]
    harmless = f"where({condition}, {a}, 1)" if where_true else f"where({condition}, 1, {a})"
    if op.row == "div":
        fixed = f"{op.operands[0]}/{harmless}"
    else:
        fixed = op.text.replace(f"({a}", f"({harmless}", 1)
        fixed = fixed if fixed != op.text else f"with {harmless} instead of {a}"
    return (
        "where() does not select this branch, but multiplies its derivative by 0, and 0 times inf"
        f" or nan is nan: use a harmless operand, {fixed}"
    )


PRODUCT = (
    "the adjoint and the partial are finite, but their product exceeds 1.8e308: the gradient"
    " explodes; use smaller weights, fewer layers or scaled inputs"
)
SUM = "contributions of both signs are infinite, or their sum exceeds 1.8e308"


def _find_primitive_row(op: Operation) -> Primitive | None:
    """Return an operation's row in the primitive table; None for array operations."""
    return find_primitive(op.row) if op.values else None


def _insert_operands(domain: str, operands: tuple[str, ...]) -> str:
    """Replace a, b and c in the description of a domain by the operands' expressions."""
    names: Mapping[str, str] = dict(zip("abc", operands, strict=False))
    parts = [names.get(part, part) for part in domain.split(" ")]
    return " ".join(parts)
