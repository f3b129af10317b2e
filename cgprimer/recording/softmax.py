"""The logarithm of softmax as one step: what its six would compute and keep is no value here.

Its rule is the one that the table of functions tells: the adjoint, less softmax times its sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives import shaped


class LogSoftmax:
    """What a structural primitive ``custom`` holds here; for another tape it writes its rule.

    Args:
        axis: along which exponentials add up to 1, from the last on: -1 or less.
    """

    name, places, is_rule = "log_softmax", (0,), True

    def __init__(self, axis: int) -> None:
        self.axis, self.arguments = axis, (None, float(axis))

    def __repr__(self) -> str:
        return f"log_softmax {self.axis}"

    def shape(self, own: Shape) -> Shape:
        """That of the operand."""
        return own

    def value(self, a: Any, ranks: Sequence[int]) -> Any:
        """Of an array. The largest is taken off first, so that nothing overflows."""
        turned = a.swapaxes(self.axis, 0).copy()  # numpy reduces the first axis in a third of time
        turned -= np.maximum.reduce(turned, initial=-np.inf)
        turned -= np.log(np.add.reduce(np.exp(turned)))
        return turned.swapaxes(self.axis, 0)

    def pull(self, b: Any, name: Structural, which: int, bar: Any, values: Sequence[Any]) -> Any:
        """The rule for reverse mode."""
        total = shaped.total(b, bar, [self.axis], keep=True)
        return b.emit("sub", bar, b.emit("mul", b.emit("exp", values[-1]), total))


@cache
def log_softmax_along(rank: int, axis: int) -> Structural:
    """The primitive for arrays with so many axes, along one counted from the end."""
    return Structural("custom", LogSoftmax(axis), (rank, rank))
