"""The sizes of the steps of finite differences.

A step is given, or chosen for each variable from its size: large enough that rounding in ``f`` does
not drown the difference, small enough that the next term of the Taylor series does not either.

Source: Press et al., "Numerical Recipes", section 5.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Number = Any  # a float, or an array of samples


@dataclass(frozen=True, slots=True)
class StepRule:
    """The size of a variable's step: ``size``, or chosen from the variable.

    The chosen step is ``relative(bits) * max(1, |value|)``, with the value rounded down to a
    power of two so that the shift itself is exact in most cases. A step has the unit of its
    variable.

    Attributes:
        size: the step, if it is given.
        root: the step is about this root of the machine epsilon; 0 for a complex step, which may be
            as small as the format allows.
    """

    size: float | None
    root: int

    def relative_step(self, bits: int) -> float:
        """Return the step for a variable of size 1, in a precision of ``bits`` binary digits."""
        return 2.0 ** -round(bits / self.root) if self.root else 2.0**-300

    def choose_step(self, value: Number, bits: int = 52) -> Number:
        """Return the step for a variable of a given value, a number or an array of samples.

        >>> StepRule(None, 3).choose_step(8.0) == 2.0**-14
        True
        """
        if self.size is not None:
            return self.size
        if isinstance(value, float):
            size = abs(value) if math.isfinite(value) else 1.0
            if not self.root:  # no cancellation: it can be tiny, and must be for a tiny variable
                small = size if 0.0 < size < 1.0 else 1.0
                return max(
                    self.relative_step(bits) * small, min(small * 2.0**-20, 2.0**-600), 5e-324
                )
            # Not by a logarithm, which is rounded: that of 15.999999999999998 is 4.
            return math.ldexp(self.relative_step(bits), math.frexp(max(1.0, size))[1] - 1)
        import numpy as np

        sizes = np.abs(np.where(np.isfinite(value), value, 1.0))
        if not self.root:
            near = np.where((sizes > 0) & (sizes < 1), sizes, 1.0)
            least = np.maximum(np.minimum(near * 2.0**-20, 2.0**-600), 5e-324)
            return np.maximum(self.relative_step(bits) * near, least)
        return np.ldexp(self.relative_step(bits), np.frexp(np.maximum(1.0, sizes))[1] - 1)
