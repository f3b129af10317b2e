"""Residuals of a graph over data, and their derivatives: what least squares is told of a graph.

A residual is an output minus its target, one for each sample, output and element of an output.
``J``, their derivatives by the parameters, has a row for each of them; a program of ours computes
it, at all samples in one call. The rest of the room sees vectors and matrices only.
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
from cgprimer.training.parameter_vector import Vectors

Array = Any
RANK = 1e-12  # singular values below this share of the largest, columns of J scaled to 1, are zero


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of a graph over data."""

    runner: Runner  # outputs and their derivatives by the parameters that may move
    vectors: Vectors  # the parameters
    columns: Mapping[str, Array]  # the inputs
    samples: int
    free: Array  # places in the vector that may move
    low: Array  # bounds of all numbers of the vector
    high: Array
    weights: Array  # square roots of the residuals' weights, or 1
    target: Array  # what the outputs, as one vector, shall be
    sizes: tuple[int, ...]  # how many numbers each output has

    def __getstate__(self) -> Any:  # what is compiled stays in its process
        return {**vars(self), "runner": (self.runner.program, self.runner.engine)}

    def __setstate__(self, state: Any) -> None:
        program, engine = state["runner"]
        vars(self).update(state, runner=Runner(program, engine=engine, samples=state["samples"]))

    def at(self, values: Array) -> tuple[Array, Array]:
        """Weighted residuals, and J: shapes (residuals,) and (residuals, numbers that may move)."""
        outputs, slopes = self.outputs(values, self.columns, self.samples)
        if not np.ndim(self.weights):
            return outputs - self.target, slopes
        return self.weights * (outputs - self.target), self.weights[:, None] * slopes

    def outputs(
        self, values: Array, columns: Mapping[str, Array], samples: int
    ) -> tuple[Array, Array]:
        """All outputs at some inputs as one vector, output after output, and their derivatives."""
        program = self.runner.program
        parts = self.vectors.parts(values)
        scalars = {n: float(v) if v.ndim == 0 else v for n, v in parts.items()}
        found = self.runner(columns, scalars, samples)
        whole = [_rows(found.values[o], samples).ravel() for o in program.of]
        slopes = [
            np.concatenate(
                [_rows(found.derivatives[o, n], len(y), parts[n].size) for n in program.wrt], axis=1
            )
            for o, y in zip(program.of, whole, strict=True)
        ]
        wanted = [
            k for k, e in enumerate(self.vectors.elements) if parse_element(e).array in program.wrt
        ]
        matrix = np.concatenate(slopes)
        if len(wanted) != len(self.free):  # some elements of an array are fixed
            matrix = matrix[:, np.isin(wanted, self.free)]
        return np.concatenate(whole), matrix

    def clipped(self, values: Array) -> Array:
        """The nearest values within the bounds."""
        return np.clip(values, self.low, self.high)

    @cached_property
    def target_length(self) -> float:
        """The length of the weighted targets."""
        return float(np.linalg.norm(self.weights * self.target))

    @cached_property
    def linear(self) -> bool:
        """Whether J does not depend on the parameters, so that one step solves it."""
        program, tape = self.runner.program, self.runner.program.tape
        if not program.seeds_only:  # finite differences: not to be seen from the tape
            return False
        roots = [tape.outputs[read.output] for run in program.passes for read in run.reads]
        needed = zip(tape.leaves, reachable(tape, roots), strict=False)
        return not any(wanted and leaf.name in self.vectors.shapes for leaf, wanted in needed)


def _rows(found: Any, rows: int, size: int = 0) -> Array:
    """What an engine found, a row a sample; with a size, so many columns."""
    array = np.asarray(found, float)
    if not array.ndim:
        array = np.broadcast_to(array, (rows,))
    return array.reshape(rows, size) if size else array.reshape(rows, -1)


def target_of(columns: Mapping[str, Array], outputs: tuple[str, ...]) -> Array:
    """The targets as one vector, output after output."""
    return np.concatenate([columns[target_column_name(name)].ravel() for name in outputs])


class Local:
    """The linear model of the residuals at a point: everything a step is computed from.

    Its numbers come from the triangle R of ``[J r] = Q R``: J'J is R'R, and nothing is squared that
    need not be, which would halve the digits. Parameters that stand at a bound and would leave it
    do not move; their columns are left out.

    Source: Golub and Van Loan 2013, "Matrix Computations", section 5.3.
    """

    def __init__(self, problem: Residuals, values: Array) -> None:
        self.values = values
        self.target = problem.target_length
        with np.errstate(all="ignore"):
            self.residuals, self.jacobian = problem.at(values)
            self.sum = float(self.residuals @ self.residuals)
        self.finite = bool(np.isfinite(self.sum) and np.isfinite(self.jacobian).all())
        self.movable, self.places = np.arange(len(problem.free)), problem.free
        if not self.finite:
            return
        downhill = -(self.jacobian.T @ self.residuals)
        here, low, high = (of[problem.free] for of in (values, problem.low, problem.high))
        held = ((here <= low) & (downhill < 0)) | ((here >= high) & (downhill > 0))
        self.movable = np.flatnonzero(~held)
        self.places = problem.free[self.movable]
        n = len(self.movable)
        both = np.column_stack([self.jacobian[:, self.movable], self.residuals])
        upper: Array = np.linalg.qr(both, mode="r")
        triangle = np.zeros((n + 1, n + 1))
        triangle[: len(upper)] = upper
        self.triangle, self.projected, self.rest = triangle[:n, :n], triangle[:n, n], triangle[n, n]
        self.norms = np.sqrt((self.triangle**2).sum(axis=0))
        self.scale = np.where(self.norms > 0, self.norms, 1.0)
        self.left, self.singular, self.rows = np.linalg.svd(self.triangle / self.scale)
        least = RANK * (self.singular[0] if n else 0.0)
        self.rank = int((self.singular > least).sum())

    @property
    def size(self) -> int:
        """How many numbers may move from here."""
        return len(self.movable)

    @cached_property
    def reach(self) -> float:
        """The part of the residuals, a length, that moving the parameters could still take away."""
        return float(np.linalg.norm(self.left[:, : self.rank].T @ self.projected))

    @cached_property
    def rounding(self) -> float:
        """How much of the residuals, a length, the rounding of outputs and targets may make up."""
        moved = float(np.linalg.norm(self.triangle @ self.values[self.places]))
        return 4 * float(np.finfo(float).eps) * (self.target + moved)

    @cached_property
    def offset(self) -> float:
        """The relative offset: that part against what no step takes away, per degree of freedom.

        It is the length of the Gauss-Newton step, measured by standard errors; 0 is a minimum.

        Source: Bates and Watts 1981, "A relative offset orthogonality convergence criterion for
        nonlinear least squares", Technometrics 23.
        """
        left = max(self.sum - self.reach**2, float(self.rest) ** 2)
        spare = max(1, len(self.residuals) - self.rank)
        size = np.sqrt(max(self.rank, 1) * left / spare)
        return self.reach / float(size) if size > 0 else (np.inf if self.reach else 0.0)

    def step(self, damping: float, scaling: Array) -> Array:
        """The step d that solves ``(J'J + damping diag(scaling)^2) d = -J'r``; of least length.

        Written as least squares, ``[J; sqrt(damping) scaling] d = [-r; 0]``, so that J'J, which has
        twice as few digits, is never formed.
        """
        lower = np.sqrt(damping) * np.diag(scaling)
        whole = np.concatenate([self.triangle, lower])
        norms = np.sqrt((whole**2).sum(axis=0))
        norms[norms == 0] = 1.0
        right = np.concatenate([self.projected, np.zeros(len(lower))])
        moved = np.zeros(len(self.values))
        moved[self.places] = -np.linalg.lstsq(whole / norms, right, rcond=RANK)[0] / norms
        return moved

    def predicted(self, step: Array) -> float:
        """The sum of squares that the linear model promises after a step."""
        ahead = self.triangle @ step[self.places] + self.projected
        return float(ahead @ ahead + self.rest**2)
