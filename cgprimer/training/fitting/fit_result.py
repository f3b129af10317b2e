"""The result of a fit: parameters, their uncertainty, and why the fit ended.

Near a minimum the residuals are nearly linear in the parameters. The covariance of the parameters
is therefore that of linear regression, ``s^2 (J'J)^-1``, where s is the standard deviation of the
residuals; confidence bands follow from it. `bootstrap.py` estimates the uncertainty by resampling.

Source: Bates and Watts 1988, "Nonlinear Regression Analysis and Its Applications", chapter 2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.core.derivatives import compute_derivatives, resolve_output
from cgprimer.errors import CgprimerError, DataError, join_names
from cgprimer.expressions import ExpressionGraph, parse, parse_element
from cgprimer.support.files import format_json, write_atomically
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_fraction
from cgprimer.training.data import Dataset
from cgprimer.training.fitting.least_squares_descent import Trial
from cgprimer.training.fitting.residuals import Linearization, Residuals
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.runs import TrainingRun

if TYPE_CHECKING:
    from cgprimer.training.fitting.bootstrap import Bootstrap

Array = Any
FORMAT, VERSION = "cgprimer-fit", 1
_NULL_TOLERANCE = 1e-6  # component of a null direction (parameters scaled) that is rounding


def load_fit_as_run(path: str | Path) -> TrainingRun | None:
    """Load a saved fit as a training run; return None if the file holds something else.

    Raises:
        DataError: the file of a fit is damaged.
    """
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            return None
    except (OSError, ValueError, RecursionError):
        return None
    try:
        graph = parse(str(fields["graph"]), name=str(path))
        vectors = ParameterVectors(graph)
        numbers = [float(fields["parameters"][name]) for name in vectors.elements]
    except (KeyError, TypeError, ValueError, CgprimerError):
        hint = "save fits with 'cgprimer fit --save FILE'"
        raise DataError(f"{path} does not contain a fit saved by cgprimer", hint=hint) from None
    parameters = vectors.values(np.array(numbers))
    return TrainingRun(parameters, {}, {}, {"loss": "squared-error"}, graph=graph)


@dataclass(frozen=True)
class Band:
    """An output at given inputs, with its standard error and its confidence interval."""

    value: Any
    standard_error: Any
    low: Any
    high: Any


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The result of :func:`cgprimer.fit`: fitted parameters with their uncertainty.

    Elements of arrays are separate entries with names such as ``W[0,1]``; `point` has the arrays.

    Attributes:
        parameters: final values of all parameters, frozen ones included.
        start: start values.
        standard_errors: standard errors of the fitted parameters that are not at a bound; infinite
            for a parameter that the data do not determine, nan if there are as many parameters as
            data.
        residual_sum_of_squares: weighted sum over all samples and outputs.
        residual_standard_deviation: square root of the sum of squares per degree of freedom, in
            the outputs' unit.
        degrees_of_freedom: number of data minus the rank.
        rank: number of combinations of the fitted parameters that the data determine.
        relative_offset: length of the next step in standard errors; 0 at a minimum.
        converged: whether the final point is a minimum.
        reason: why the fit ended.
        sentences: sentences about parameters that the data do not determine.
        algorithm, damping: the algorithm and the damping strategy that were used.
        iterations: number of trial steps.
        history: all trial points, the start first.
        seconds: duration of the fit.
    """

    parameters: dict[str, float]
    start: dict[str, float]
    standard_errors: dict[str, float]
    residual_sum_of_squares: float
    residual_standard_deviation: float
    degrees_of_freedom: int
    rank: int
    relative_offset: float
    converged: bool
    reason: str
    sentences: tuple[str, ...]
    algorithm: str
    damping: str
    iterations: int
    seconds: float
    history: tuple[Trial, ...]
    graph: ExpressionGraph
    dataset: Dataset
    problem: Residuals = field(kw_only=True)
    end: Linearization = field(kw_only=True)

    @property
    def point(self) -> dict[str, Any]:
        """The fitted parameters keyed by name, as scalars and arrays."""
        return self.problem.vectors.values(self.end.values)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The names of the parameters with a standard error, in the row order of `covariance`."""
        return tuple(self.standard_errors)

    @property
    def held_at_bounds(self) -> tuple[str, ...]:
        """The names of the fitted parameters whose final value is at a bound."""
        indices = sorted({*self.problem.free.tolist()} - {*self.end.active_indices.tolist()})
        return tuple(self.problem.vectors.elements[k] for k in indices)

    @cached_property
    def covariance(self) -> Array:
        """The covariance matrix of the estimated parameters.

        The variance of an undetermined parameter is infinite, and its covariances are nan.
        """
        factor, (unknown, _) = compute_covariance_factor(self.end), find_undetermined(self.end)
        matrix = self.residual_standard_deviation**2 * (factor @ factor.T)
        matrix[unknown], matrix[:, unknown] = math.nan, math.nan
        matrix[unknown, unknown] = math.inf
        return matrix

    @property
    def correlation(self) -> Array:
        """The correlation matrix of the estimated parameters."""
        sizes = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            matrix: Array = self.covariance / np.outer(sizes, sizes)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    @property
    def normal_matrix(self) -> Array:
        """The matrix J'J of the estimated parameters at the final point."""
        matrix = self.end.jacobian[:, self.end.active]
        return matrix.T @ matrix

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return the confidence interval of each estimated parameter (Student's t distribution).

        Args:
            level: the confidence level, between 0 and 1.
        """
        factor = self._compute_quantile(level)
        return {
            n: (self.parameters[n] - factor * error, self.parameters[n] + factor * error)
            for n, error in self.standard_errors.items()
        }

    def band(
        self,
        at: Mapping[str, Any] | None = None,
        *,
        of: str | None = None,
        level: float = 0.95,
        prediction: bool = False,
    ) -> Band:
        """Compute an output and its confidence band, or its prediction band, at given inputs.

        Args:
            at: values of the inputs, scalars or arrays; by default the data's inputs.
            of: the name of the output; may be omitted if the graph has one output.
            level: the confidence level, between 0 and 1.
            prediction: compute the band of new measurements instead of the band of the curve.

        >>> import cgprimer
        >>> graph = cgprimer.parse("y = a + b*x")
        >>> data = cgprimer.Dataset.from_arrays({"x": [0, 1, 2]}, {"y": [0.9, 3.2, 4.9]})
        >>> band = cgprimer.fit(graph, data).band({"x": 1})
        >>> round(band.value, 6), round(band.standard_error, 6), round(band.high, 6)
        (3.0, 0.141421, 4.796929)
        """
        factor, names = self._compute_quantile(level), self.problem.runner.program.wrt
        of = resolve_output(self.graph, of)
        points = self.dataset.inputs if at is None else at
        inputs = {n: v for n, v in points.items() if n in self.graph.inputs}
        result = compute_derivatives(self.graph, {**inputs, **self.point}, of, names)
        value = np.asarray(result.values[of])
        gradients = [np.asarray(result.derivatives[of, n]) for n in names]
        gradient = np.concatenate([g.reshape(*value.shape, -1) for g in gradients], axis=-1)
        elements = self.problem.vectors.elements
        differentiated = [e for e in elements if parse_element(e).array in names]
        gradient = gradient[..., [differentiated.index(name) for name in self.estimated]]
        _, null = find_undetermined(self.end)
        deviation = self.residual_standard_deviation
        error = deviation * np.linalg.norm(gradient @ compute_covariance_factor(self.end), axis=-1)
        # The output is undetermined if it changes along a direction that changes no residual.
        change = np.abs(gradient @ null).max(axis=-1, initial=0.0)
        is_undetermined = change > _NULL_TOLERANCE * np.linalg.norm(gradient, axis=-1)
        error = np.where(is_undetermined, math.inf, error)
        width = factor * (np.hypot(error, deviation) if prediction else error)
        parts = (value, error, value - width, value + width)
        return Band(*(part if value.ndim else float(part) for part in parts))

    def bootstrap(self, samples: int = 1000, *, seed: int = 0, pairs: bool = False) -> Bootstrap:
        """Fit resampled data many times to estimate the uncertainty of the parameters."""
        from cgprimer.training.fitting.bootstrap import bootstrap

        return bootstrap(self.problem, self.end, self.estimated, samples, seed=seed, pairs=pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return the fit as a dictionary for JSON, as ``--json`` prints it."""
        excluded = ("history", "graph", "dataset", "problem", "end", "covariance")
        plain = {k: v for k, v in vars(self).items() if k not in excluded}
        plain |= {"covariance": self.covariance, "correlation": self.correlation}
        plain |= {"estimated": self.estimated}
        return {"format": FORMAT, "version": VERSION, "graph": self.graph.text, **plain}

    def save(self, path: str | Path) -> None:
        """Write the fit, with its graph and its history, to a JSON file.

        Raises:
            UsageError: the file cannot be written.
        """
        names = self.problem.vectors.elements
        history = [
            {**vars(trial), "values": dict(zip(names, trial.values.tolist(), strict=True))}
            for trial in self.history
        ]
        write_atomically(path, format_json({**self.as_dict(), "history": history}) + "\n")

    def __repr__(self) -> str:
        values = join_names(
            f"{n}={format_number(value, 6)}" for n, value in self.parameters.items()
        )
        state = "converged" if self.converged else "not converged"
        total = format_number(self.residual_sum_of_squares, 6)
        return f"<Fit {state}: {self.iterations} steps, residual sum of squares {total}, {values}>"

    def _compute_quantile(self, level: float) -> float:
        """Return the quantile of Student's t distribution for a two-sided confidence interval."""
        level = check_fraction("the confidence level", level)
        if not self.degrees_of_freedom:
            return math.nan
        from scipy.special import stdtrit

        return float(stdtrit(self.degrees_of_freedom, (1 + level) / 2))


def compute_covariance_factor(end: Linearization) -> Array:
    """Return a factor F of the covariance, ``F F' = (J'J)^-1``, one row per active parameter."""
    rank = end.rank
    factor: Array = (end.right_vectors[:rank].T / end.singular_values[:rank]) / end.scales[:, None]
    return factor


def find_undetermined(end: Linearization) -> tuple[Array, Array]:
    """Return the indices of undetermined parameters, and a basis of the null space of J."""
    null_vectors = end.right_vectors[end.rank :].T
    null = null_vectors / end.scales[:, None]
    norms = np.linalg.norm(null, axis=0)
    components = np.abs(null_vectors).max(axis=1, initial=0.0)
    indices = np.flatnonzero(components > _NULL_TOLERANCE)
    return indices, null / np.where(norms > 0, norms, 1.0)
