"""L-BFGS: SciPy makes all steps, over all samples, and the loop goes through them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.training.constraints import Constraints
from cgprimer.training.update_rules import Optimizer

Array = Any
_WITH = ("l2", "low", "high", "free")  # what SciPy's method can be told


class LbfgsIterations:
    """The steps of L-BFGS from a point.

    Source: SciPy's ``minimize(method="L-BFGS-B")``; Byrd, Lu, Nocedal and Zhu 1995.

    Args:
        mean: parameters to mean loss and gradient.
        rule: ``l-bfgs``; its ``memory`` is how many steps are remembered.
        around: bounds and l2, which are kept to; frozen parameters stay.
        values, most: where to begin, and how many steps to make at most.

    Attributes:
        points: the parameters before the first step and after each; shape (numbers,) each.
        losses: the mean loss at each point.
        interrupted: whether Ctrl-C ended them.

    Raises:
        UsageError: a constraint that the method cannot keep to.

    >>> rule = Optimizer("l-bfgs", lambda p, g, state, rate, memory=10: (p, state))
    >>> found = LbfgsIterations(
    ...     lambda p: (float((p**2).sum()), 2*p), rule, Constraints(), np.array([3.0, 4.0]), 9
    ... )
    >>> (found.points[-1].round(6) + 0.0).tolist(), found.losses[0]
    ([0.0, 0.0], 25.0)
    """

    def __init__(
        self,
        mean: Callable[[Array], tuple[float, Array]],
        rule: Optimizer,
        around: Constraints,
        values: Array,
        most: int,
    ) -> None:
        from scipy.optimize import minimize

        columns = around.columns
        other = [name for name in columns if name not in _WITH] + ["max_norm"] * bool(around.norms)
        if other:
            hint = "it takes l2, bounds and freeze; the others go with any other optimizer"
            raise UsageError(f"l-bfgs and {other[0]} do not go together", hint=hint)
        free = np.asarray(columns.get("free", np.ones(len(values))) != 0)
        low, high = (columns.get(k, np.full(len(values), s * np.inf)) for k, s in
                     (("low", -1), ("high", 1)))  # fmt: skip
        begin = np.array(values, float)
        losses: dict[bytes, float] = {}

        def compute_penalized_loss(part: Array) -> tuple[float, Array]:
            whole = begin.copy()
            whole[free] = part
            with np.errstate(all="ignore"):
                loss, gradient = mean(whole)
                losses[whole.tobytes()] = loss
                gradient = gradient + 2 * columns.get("l2", 0.0) * whole
                return loss + around.penalty(whole), gradient[free]

        self.points, self.interrupted = [begin], False

        def store_point(part: Array) -> None:
            whole = begin.copy()
            whole[free] = part
            self.points.append(whole)

        ends = np.stack([low[free], high[free]], axis=1)
        steps = {"maxcor": int(rule.hyper["memory"]), "maxiter": most, "ftol": 1e-15, "gtol": 1e-10}
        try:
            minimize(
                compute_penalized_loss,
                begin[free],
                jac=True,
                method="L-BFGS-B",
                bounds=ends,
                callback=store_point,
                options={**steps, "maxfun": 20 * most + 20},
            )
        except KeyboardInterrupt:
            self.interrupted = True
        self.losses = [losses.get(point.tobytes(), np.nan) for point in self.points]
