"""L-BFGS: SciPy computes all iterations over all samples; the training loop reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.training.constraints import Constraints
from cgprimer.training.update_rules import Optimizer

Array = Any
_SUPPORTED = ("l2", "low", "high", "free")  # constraints that SciPy's method supports


class LbfgsIterations:
    """The iterations of L-BFGS from a start point, computed by SciPy.

    Source: SciPy's ``minimize(method="L-BFGS-B")``; Byrd, Lu, Nocedal and Zhu 1995.

    Args:
        compute_loss: function from the parameters to the mean loss and its gradient.
        rule: the optimizer ``l-bfgs``; ``memory`` is the number of stored iterations.
        constraints: bounds, l2 penalty and frozen parameters.
        values: the start point.
        max_iterations: the maximum number of iterations.

    Attributes:
        points: the parameters before the first iteration and after each iteration.
        losses: the mean loss at each point.
        interrupted: whether Ctrl-C stopped the iterations.

    Raises:
        UsageError: a constraint is not supported.

    >>> rule = Optimizer("l-bfgs", lambda p, g, state, rate, memory=10: (p, state))
    >>> found = LbfgsIterations(
    ...     lambda p: (float((p**2).sum()), 2*p), rule, Constraints(), np.array([3.0, 4.0]), 9
    ... )
    >>> (found.points[-1].round(6) + 0.0).tolist(), found.losses[0]
    ([0.0, 0.0], 25.0)
    """

    def __init__(
        self,
        compute_loss: Callable[[Array], tuple[float, Array]],
        rule: Optimizer,
        constraints: Constraints,
        values: Array,
        max_iterations: int,
    ) -> None:
        from scipy.optimize import minimize

        columns = constraints.columns
        other = [name for name in columns if name not in _SUPPORTED]
        other += ["max_norm"] * bool(constraints.norms)
        if other:
            hint = "use another optimizer, or only l2, bounds and freeze"
            raise UsageError(f"the optimizer 'l-bfgs' does not support {other[0]}", hint=hint)
        free = np.asarray(columns.get("free", np.ones(len(values))) != 0)
        low, high = (columns.get(k, np.full(len(values), s * np.inf)) for k, s in
                     (("low", -1), ("high", 1)))  # fmt: skip
        begin = np.array(values, float)
        losses: dict[bytes, float] = {}

        def compute_penalized_loss(free_parameters: Array) -> tuple[float, Array]:
            """Compute the loss plus its l2 penalty, and the gradient of the free parameters."""
            parameters = begin.copy()
            parameters[free] = free_parameters
            with np.errstate(all="ignore"):
                loss, gradient = compute_loss(parameters)
                losses[parameters.tobytes()] = loss
                gradient = gradient + 2 * columns.get("l2", 0.0) * parameters
                return loss + constraints.penalty(parameters), gradient[free]

        self.points, self.interrupted = [begin], False

        def store_point(free_parameters: Array) -> None:
            """Append the parameters after an iteration, including frozen parameters."""
            parameters = begin.copy()
            parameters[free] = free_parameters
            self.points.append(parameters)

        ends = np.stack([low[free], high[free]], axis=1)
        steps = {
            "maxcor": int(rule.hyper["memory"]),
            "maxiter": max_iterations,
            "ftol": 1e-15,
            "gtol": 1e-10,
        }
        try:
            minimize(
                compute_penalized_loss,
                begin[free],
                jac=True,
                method="L-BFGS-B",
                bounds=ends,
                callback=store_point,
                options={**steps, "maxfun": 20 * max_iterations + 20},
            )
        except KeyboardInterrupt:
            self.interrupted = True
        self.losses = [losses.get(point.tobytes(), np.nan) for point in self.points]
