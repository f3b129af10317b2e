"""Residuals of a graph over a dataset, their Jacobian, and their linearization at a point.

A residual is an output minus its target: one per sample, output and element of an output. The
Jacobian J, the derivatives of the residuals with respect to the parameters, has one row per
residual; one derivative program computes it for all samples in one call. The other modules of this
package see vectors and matrices only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_expressions import target_column_name
from cgprimer.expressions import parse_element
from cgprimer.tapes import reachable
from cgprimer.training.parameter_vector import ParameterVectors

Array = Any
RANK = 1e-12  # singular values below this fraction of the maximum are zero (columns scaled to 1)


@dataclass(frozen=True, eq=False)
class Residuals:
    """The weighted residuals of a graph over a dataset, as a function of its parameters."""

    runner: Runner  # outputs and their derivatives with respect to the free parameters
    vectors: ParameterVectors  # conversion of parameters to vectors
    columns: Mapping[str, Array]  # inputs
    samples: int
    free: Array  # indices of the vector's free elements
    low: Array  # lower bounds of all elements of the vector
    high: Array  # upper bounds
    weights: Array  # square roots of the residuals' weights, or the scalar 1
    target: Array  # targets of all outputs, as one vector
    sizes: tuple[int, ...]  # number of elements of each output

    def __getstate__(self) -> Any:  # compiled code cannot be pickled
        return {**vars(self), "runner": (self.runner.program, self.runner.engine)}

    def __setstate__(self, state: Any) -> None:
        program, engine = state["runner"]
        vars(self).update(state, runner=Runner(program, engine=engine, samples=state["samples"]))

    def evaluate(self, values: Array) -> tuple[Array, Array]:
        """Compute the weighted residuals, shape (m,), and their Jacobian, shape (m, n_free)."""
        outputs, jacobian = self.compute_outputs(values, self.columns, self.samples)
        if not np.ndim(self.weights):
            return outputs - self.target, jacobian
        return self.weights * (outputs - self.target), self.weights[:, None] * jacobian

    def compute_outputs(
        self, values: Array, columns: Mapping[str, Array], samples: int
    ) -> tuple[Array, Array]:
        """Compute all outputs as one vector, output after output, and their Jacobian."""
        program = self.runner.program
        parts = self.vectors.parts(values)
        scalars = {n: float(v) if v.ndim == 0 else v for n, v in parts.items()}
        results = self.runner(columns, scalars, samples)
        outputs = [_reshape_samples(results.values[o], samples).ravel() for o in program.of]
        jacobians = [
            np.concatenate(
                [
                    _reshape_samples(results.derivatives[o, n], len(y), parts[n].size)
                    for n in program.wrt
                ],
                axis=1,
            )
            for o, y in zip(program.of, outputs, strict=True)
        ]
        differentiated = [
            k for k, e in enumerate(self.vectors.elements) if parse_element(e).array in program.wrt
        ]
        jacobian = np.concatenate(jacobians)
        if len(differentiated) != len(self.free):  # some elements of an array are frozen
            jacobian = jacobian[:, np.isin(differentiated, self.free)]
        return np.concatenate(outputs), jacobian

    def clip(self, values: Array) -> Array:
        """Return the parameter values, clipped to their bounds."""
        return np.clip(values, self.low, self.high)

    @cached_property
    def target_norm(self) -> float:
        """The Euclidean norm of the weighted targets."""
        return float(np.linalg.norm(self.weights * self.target))

    @cached_property
    def is_linear(self) -> bool:
        """True if J does not depend on the parameters, so that one step reaches the minimum."""
        program, tape = self.runner.program, self.runner.program.tape
        if not program.seeds_only:  # the tape of finite differences does not show it
            return False
        roots = [tape.outputs[read.output] for run in program.passes for read in run.reads]
        leaves = zip(tape.leaves, reachable(tape, roots), strict=False)
        return not any(is_used and leaf.name in self.vectors.shapes for leaf, is_used in leaves)


def _reshape_samples(result: Any, samples: int, size: int = 0) -> Array:
    """Reshape an engine's result to one row per sample, with ``size`` columns unless it is 0."""
    array = np.asarray(result, float)
    if not array.ndim:
        array = np.broadcast_to(array, (samples,))
    return array.reshape(samples, size) if size else array.reshape(samples, -1)


def stack_targets(columns: Mapping[str, Array], outputs: tuple[str, ...]) -> Array:
    """Stack the targets of all outputs into one vector, output after output."""
    return np.concatenate([columns[target_column_name(name)].ravel() for name in outputs])


class Linearization:
    """The residuals and their Jacobian at one point, factorized to compute the next step.

    Everything is computed from the triangular factor R of ``[J r] = Q R``: J'J equals R'R, but
    forming J'J would square the condition number and lose half of the digits. Parameters at a bound
    that the gradient pushes outwards are held there; their columns are left out.

    Source: Golub and Van Loan 2013, "Matrix Computations", section 5.3.
    """

    def __init__(self, problem: Residuals, values: Array) -> None:
        self.values = values
        self.target_norm = problem.target_norm
        with np.errstate(all="ignore"):
            self.residuals, self.jacobian = problem.evaluate(values)
            self.sum_of_squares = float(self.residuals @ self.residuals)
        self.is_finite = bool(np.isfinite(self.sum_of_squares) and np.isfinite(self.jacobian).all())
        self.active, self.active_indices = np.arange(len(problem.free)), problem.free
        if not self.is_finite:
            return
        descent = -(self.jacobian.T @ self.residuals)
        free, low, high = (vector[problem.free] for vector in (values, problem.low, problem.high))
        is_held = ((free <= low) & (descent < 0)) | ((free >= high) & (descent > 0))
        self.active = np.flatnonzero(~is_held)
        self.active_indices = problem.free[self.active]
        n = len(self.active)
        augmented = np.column_stack([self.jacobian[:, self.active], self.residuals])
        upper: Array = np.linalg.qr(augmented, mode="r")
        square = np.zeros((n + 1, n + 1))
        square[: len(upper)] = upper
        self.triangle, self.projection = square[:n, :n], square[:n, n]
        self.orthogonal_norm = square[n, n]
        self.column_norms = np.sqrt((self.triangle**2).sum(axis=0))
        self.scales = np.where(self.column_norms > 0, self.column_norms, 1.0)
        self.left_vectors, self.singular_values, self.right_vectors = np.linalg.svd(
            self.triangle / self.scales
        )
        threshold = RANK * (self.singular_values[0] if n else 0.0)
        self.rank = int((self.singular_values > threshold).sum())

    @property
    def n_active(self) -> int:
        """The number of parameter elements that are free and not held at a bound."""
        return len(self.active)

    @cached_property
    def reducible_norm(self) -> float:
        """The norm of the residual component that a change of the parameters can remove."""
        return float(np.linalg.norm(self.left_vectors[:, : self.rank].T @ self.projection))

    @cached_property
    def rounding_norm(self) -> float:
        """The estimated norm of the rounding errors in outputs and targets."""
        moved = float(np.linalg.norm(self.triangle @ self.values[self.active_indices]))
        return 4 * float(np.finfo(float).eps) * (self.target_norm + moved)

    @cached_property
    def relative_offset(self) -> float:
        """The reducible part of the residuals relative to the irreducible part; 0 at a minimum.

        It is the length of the Gauss-Newton step in units of the standard errors.

        Source: Bates and Watts 1981, "A relative offset orthogonality convergence criterion for
        nonlinear least squares", Technometrics 23.
        """
        irreducible = max(
            self.sum_of_squares - self.reducible_norm**2, float(self.orthogonal_norm) ** 2
        )
        freedom = max(1, len(self.residuals) - self.rank)
        scale = np.sqrt(max(self.rank, 1) * irreducible / freedom)
        if scale > 0:
            return self.reducible_norm / float(scale)
        return np.inf if self.reducible_norm else 0.0

    def compute_step(self, damping: float, scaling: Array) -> Array:
        """Solve ``(J'J + damping diag(scaling)^2) d = -J'r`` for the step of minimum norm.

        The equation is solved as the least-squares problem ``[J; sqrt(damping) scaling] d =
        [-r; 0]``: J'J, which has half as many correct digits, is never formed.
        """
        lower = np.sqrt(damping) * np.diag(scaling)
        matrix = np.concatenate([self.triangle, lower])
        norms = np.sqrt((matrix**2).sum(axis=0))
        norms[norms == 0] = 1.0
        right_side = np.concatenate([self.projection, np.zeros(len(lower))])
        step = np.zeros(len(self.values))
        solution = np.linalg.lstsq(matrix / norms, right_side, rcond=RANK)[0]
        step[self.active_indices] = -solution / norms
        return step

    def predict_sum_of_squares(self, step: Array) -> float:
        """Return the sum of squares after a step, as predicted by the linear model."""
        residuals = self.triangle @ step[self.active_indices] + self.projection
        return float(residuals @ residuals + self.orthogonal_norm**2)
