"""Correct gradients of a question, computed in ways that share no code with the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.trial.grading.evaluation import NUMPY, Values, definitions, evaluate

Gradient = Callable[[Values], Any]
LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "squared-error": lambda out, target: (out - target) ** 2,
    "half-squared-error": lambda out, target: (out - target) ** 2 / 2,
    "absolute-error": lambda out, target: NUMPY["abs"](out - target),
}


class Question:
    """What a check asks: a scalar function of named values, built from the text of a graph."""

    def __init__(
        self, graph: Any, wrt: list[str], *, loss: str = "", batch: int = 0, reduction: str = "mean"
    ) -> None:
        self.program, self.of = definitions(graph), graph.outputs[0]
        self.sampled = {*graph.inputs, "target"}
        self.wrt, self.loss, self.batch, self.reduction = wrt, loss, batch, reduction

    def value(self, at: Mapping[str, Any]) -> Any:
        """Return the loss, or the output, at a point; inputs and targets have samples in front."""
        if not self.batch:
            return self._sample(at)
        total = 0
        for index in range(self.batch):
            one = {n: (v[index] if n in self.sampled else v) for n, v in at.items()}
            total = total + self._sample(one)
        return total / self.batch if self.reduction == "mean" else total

    def _sample(self, at: Mapping[str, Any]) -> Any:
        out = evaluate(self.program, at)[self.of]
        return LOSSES[self.loss](out, at["target"]) if self.loss else out


def by_complex_step(question: Question, dtype: Any = complex) -> Gradient:
    """Return the imaginary part of a complex step, in double precision or in single as torch."""

    def slope(f: Callable[[Any], Any], base: Any, index: Any) -> float:
        moved = base.copy()
        moved[index] += 1e-20j
        return float(np.imag(f(moved)) / 1e-20)

    return lambda values: _slopes(question, values, dtype, slope)


def by_differences(question: Question, step: float, relative: bool = False) -> Gradient:
    """Return central differences with a fixed step, or one that grows with the number."""

    def slope(f: Callable[[Any], Any], base: Any, index: Any) -> float:
        h = step * max(1.0, abs(float(base[index]))) if relative else step
        up, down = base.copy(), base.copy()
        up[index] += h
        down[index] -= h
        return float((f(up) - f(down)) / (up[index] - down[index] if relative else 2 * h))

    return lambda values: _slopes(question, values, float, slope)


def _slopes(
    question: Question, values: Values, dtype: Any, slope: Callable[..., float]
) -> list[Any]:
    real = np.float32 if dtype == np.complex64 else float
    at = {n: np.asarray(v, dtype=real) for n, v in values.items()}
    result = []
    for name in question.wrt:
        base = at[name].astype(dtype)
        f = lambda moved, name=name: question.value({**at, name: moved})  # noqa: E731
        out = np.empty(base.shape, real)
        for index in np.ndindex(base.shape):
            out[index] = slope(f, base, index)
        result.append(out if base.shape else float(out))
    return result


WAYS: dict[str, Callable[[Question], Gradient]] = {
    "complex step": by_complex_step,
    "single precision": lambda q: by_complex_step(q, np.complex64),
    "central differences 1e-5": lambda q: by_differences(q, 1e-5),
    "central differences 1e-6": lambda q: by_differences(q, 1e-6),
    "central differences 6e-6 relative": lambda q: by_differences(q, 6e-6, relative=True),
}
