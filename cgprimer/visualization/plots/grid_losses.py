"""Mean losses at many values of two parameters, with as few calls to numpy as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from cgprimer.core.evaluation.evaluator import evaluate_instructions, prepare_instructions
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.training.data import Dataset
from cgprimer.training.objective import Objective

Array = Any
LossAtPoint = Callable[[Any], tuple[float, Array]]  # mean loss and gradient at two values
MANY_SAMPLES = 20_000  # from this number of samples on, points are evaluated one by one, compiled
_MAX_CHUNK_VALUES = 2**20  # values of a chunk of points: 8 megabytes
_SINGLE_THREAD_SIZE = 2**18  # multiplications for which OpenBLAS uses one thread


class MeanLoss:
    """The mean loss as a function of two parameters, with the other parameters fixed."""

    def __init__(
        self,
        objective: Objective,
        data: Dataset,
        names: Sequence[str],
        values: Mapping[str, float],
    ) -> None:
        elements = objective.vectors.elements
        self._objective, self._samples = objective, len(data)
        self._columns = objective.columns(data)
        self._point = np.array([float(values.get(n, 0.0)) for n in elements])
        self._indices = [elements.index(name) for name in names]

    def at_point(self, two: Any) -> tuple[float, Array]:
        """Return the mean loss and its gradient at the given values of the two parameters."""
        self._point[self._indices] = two
        with np.errstate(all="ignore"):
            total, gradient = self._objective.sums(self._columns, self._point, self._samples)
        return total / self._samples, gradient[self._indices] / self._samples

    def at_points(self, points: Array) -> Array:
        """Return the mean losses at many points, of shape (points, 2)."""
        objective, primal = self._objective, self._objective.primal
        # Custom operations and operations across samples accept only the axis of the samples.
        has_one_axis = objective.function or primal.custom or primal.combines_samples
        if has_one_axis or self._samples >= MANY_SAMPLES:
            return np.array([self.at_point(two)[0] for two in points])
        counts = [self._samples if varies else 1 for varies in find_varying_values(primal)]
        size = sum(count * prod(primal.shapes[k]) for k, count in enumerate(counts))
        chunk = max(1, _MAX_CHUNK_VALUES // size)
        instructions = prepare_instructions(primal, _find_batched_function)
        chunks = [points[begin : begin + chunk] for begin in range(0, len(points), chunk)]
        return np.concatenate([self._evaluate_chunk(two, instructions) for two in chunks])

    def _evaluate_chunk(self, points: Array, instructions: Any) -> Array:
        """Return the mean losses at a chunk of points, with one function call per instruction.

        Parameters that vary have an axis for the points, and an axis of length 1 for the samples.
        """
        objective, primal = self._objective, self._objective.primal
        parts = objective.vectors.parts(np.arange(len(self._point)))
        varied = {n: part for n, part in parts.items() if np.isin(self._indices, part).any()}
        vectors = np.repeat(self._point[None], len(points), axis=0)
        vectors[:, self._indices] = points
        values = {**self._columns, **objective.scalars(self._point)}
        values |= {name: vectors[:, None, part] for name, part in varied.items()}
        leaves = [f.value if f.kind == "constant" else values[f.name] for f in primal.leaves]
        with np.errstate(all="ignore"):
            losses = evaluate_instructions(instructions, leaves)[primal.outputs[LOSS]]
            return np.broadcast_to(losses, (len(points), self._samples)).mean(axis=1)


def _find_batched_function(name: Any) -> Callable[..., Array]:
    """Return the NumPy function that evaluates a primitive at all points in one call."""
    plain = numpy_arithmetic.numpy_function(name)
    if name == "pow":  # squares by numpy take ten times as long
        return lambda a, b: a * a if isinstance(b, float) and b == 2.0 else plain(a, b)
    if not isinstance(name, Matmul) or {*name.ranks} != {1, 2}:
        return plain

    def multiply(a: Array, b: Array) -> Array:
        """Multiply vectors or matrices whose leading axes are points and samples."""
        vector, matrix = (a, b) if name.left_rank == 1 else (b, np.swapaxes(a, -1, -2))
        if matrix.ndim == 4 and matrix.shape[1] == 1 and vector.ndim > 1:  # a matrix per point
            return _multiply_in_blocks(vector, matrix[:, 0])
        if vector.ndim == 3 and matrix.ndim == 2:
            return _multiply_in_blocks(vector, matrix)
        return plain(a, b)

    return multiply


def _multiply_in_blocks(a: Array, b: Array) -> Array:
    """Compute ``a @ b`` in row blocks that are so small that OpenBLAS uses a single thread."""
    block, rows = _SINGLE_THREAD_SIZE // (b.shape[-2] * b.shape[-1] or 1), a.shape[-2]
    if not 8 <= block < rows:
        return np.matmul(a, b)
    rows -= rows % block
    blocks = a[..., :rows, :].reshape(*a.shape[:-2], -1, block, a.shape[-1])
    product = np.matmul(blocks, b[..., None, :, :])
    product = product.reshape(*product.shape[:-3], rows, product.shape[-1])
    return np.concatenate([product, np.matmul(a[..., rows:, :], b)], axis=-2)
