"""Log-softmax as one operation; composed of primitives, it would keep six arrays.

The reverse-mode rule is the usual one: the adjoint, minus softmax times the sum of the adjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.custom_operations import CustomCall
from cgprimer.core.operations.shape_operations import sum_over_axes


class LogSoftmax:
    """The log-softmax operation along one axis.

    Args:
        axis: axis along which the exponentials sum to 1, counted from the end: -1 or less.
    """

    name, positions, is_rule = "log_softmax", (0,), True

    def __init__(self, axis: int) -> None:
        self.axis, self.arguments = axis, (None, float(axis))

    def __repr__(self) -> str:
        return f"log_softmax {self.axis}"

    def shape(self, operand_shape: Shape) -> Shape:
        """Return the shape of the result, which is the shape of the operand."""
        return operand_shape

    def evaluate(self, a: Any, ranks: Sequence[int]) -> Any:
        """Compute log-softmax of an array; subtract the maximum first to prevent overflow."""
        swapped = a.swapaxes(self.axis, 0).copy()  # numpy reduces the first axis 3 times as fast
        swapped -= np.maximum.reduce(swapped, initial=-np.inf)
        swapped -= np.log(np.add.reduce(np.exp(swapped)))
        return swapped.swapaxes(self.axis, 0)

    def emit_adjoint(self, builder: Any, index: int, adjoint: Any, values: Sequence[Any]) -> Any:
        """Emit the contribution to the adjoint of the operand (the reverse-mode rule)."""
        total = sum_over_axes(builder, adjoint, [self.axis], keep=True)
        return builder.emit(
            "sub", adjoint, builder.emit("mul", builder.emit("exp", values[-1]), total)
        )


@cache
def create_log_softmax(rank: int, axis: int) -> CustomCall:
    """Return the log-softmax primitive for arrays of the given rank; ``axis`` is negative."""
    return CustomCall(LogSoftmax(axis), (rank, rank))
