"""Step sizes of finite differences.

The step is an option, or chosen from the size of each variable to balance rounding error (too small
a step) and truncation error (too large a step).

Source: Press et al., "Numerical Recipes", section 5.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Number = Any  # a float, or an array of samples


@dataclass(frozen=True, slots=True)
class StepRule:
    """A rule for the step size of a variable in finite differences.

    By default, the step size is ``relative_step(bits) * max(1, |value|)``, with the value rounded
    down to a power of two, so that most shifts are exact.

    Attributes:
        size: a fixed step size for all variables, or None.
        root: 2 or 3 if the relative step is the square or cube root of the machine epsilon; 0 for
            a complex step, which can be as small as the number format allows.
    """

    size: float | None
    root: int

    def relative_step(self, bits: int) -> float:
        """Return the step size for a variable of magnitude 1; ``bits`` is the precision in bits."""
        return 2.0 ** -round(bits / self.root) if self.root else 2.0**-300

    def choose_step(self, value: Number, bits: int = 52) -> Number:
        """Return the step size for a variable from its value.

        Args:
            value: the value of the variable: a float, or an array of samples.
            bits: the number of binary digits of the number format.

        >>> StepRule(None, 3).choose_step(8.0) == 2.0**-14
        True
        """
        if self.size is not None:
            return self.size
        if isinstance(value, float):
            size = abs(value) if math.isfinite(value) else 1.0
            if not self.root:  # no cancellation; tiny variables need a tiny step
                small = size if 0.0 < size < 1.0 else 1.0
                return max(
                    self.relative_step(bits) * small, min(small * 2.0**-20, 2.0**-600), 5e-324
                )
            # A logarithm would be rounded: that of 15.999999999999998 is 4.
            return math.ldexp(self.relative_step(bits), math.frexp(max(1.0, size))[1] - 1)
        import numpy as np

        sizes = np.abs(np.where(np.isfinite(value), value, 1.0))
        if not self.root:
            near = np.where((sizes > 0) & (sizes < 1), sizes, 1.0)
            least = np.maximum(np.minimum(near * 2.0**-20, 2.0**-600), 5e-324)
            return np.maximum(self.relative_step(bits) * near, least)
        return np.ldexp(self.relative_step(bits), np.frexp(np.maximum(1.0, sizes))[1] - 1)
