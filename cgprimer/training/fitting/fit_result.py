"""What a fit has found: parameters, how sure they are, and why it ended.

Near a minimum residuals are nearly linear in the parameters. So their covariance is that of linear
regression, ``s^2 (J'J)^-1``, with s the standard deviation of the residuals, and bands follow from
it. `bootstrap.py` asks resampled data instead.

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
from cgprimer.training.fitting.residuals import Local, Residuals
from cgprimer.training.parameter_vector import Vectors
from cgprimer.training.runs import TrainingRun

if TYPE_CHECKING:
    from cgprimer.training.fitting.bootstrap import Bootstrap

Array = Any
FORMAT, VERSION = "cgprimer-fit", 1
_NOTHING = 1e-6  # share of a null direction, parameters scaled, that is rounding


def saved_fit(path: str | Path) -> TrainingRun | None:
    """A fit in a file that ``save`` wrote, as a run that has learnt it; None of any other file.

    Raises:
        DataError: it is a broken one.
    """
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            return None
    except (OSError, ValueError, RecursionError):
        return None
    try:
        graph = parse(str(fields["graph"]), name=str(path))
        vectors = Vectors(graph)
        numbers = [float(fields["parameters"][name]) for name in vectors.elements]
    except (KeyError, TypeError, ValueError, CgprimerError):
        hint = "such files are written by fit --save"
        raise DataError(f"{path} does not hold a fit of cgprimer", hint=hint) from None
    learnt = vectors.values(np.array(numbers))
    return TrainingRun(learnt, {}, {}, {"loss": "squared-error"}, graph=graph)


@dataclass(frozen=True)
class Band:
    """An output with what the data leave open of it: arrays of the samples' shape, or numbers."""

    value: Any
    standard_error: Any
    low: Any
    high: Any


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What :func:`cgprimer.fit` has found.

    A number of an array has a name of its own here: ``W[0,1]``; `point` has the arrays.

    Attributes:
        parameters: values of all parameters at the end, those that were fixed too.
        start: values at the start.
        standard_errors: of the parameters that were fitted and stand at no bound; infinite for one
            that the data do not determine, nan where there are as many parameters as data.
        residual_sum_of_squares: over all samples and outputs, weighted.
        residual_standard_deviation: its root per degree of freedom, in the outputs' unit.
        degrees_of_freedom: data less the rank.
        rank: how many combinations of the fitted parameters the data determine.
        relative_offset: how long a further step would be, in standard errors; 0 at a minimum.
        converged: whether it is a minimum.
        reason: why it ended, in words.
        sentences: in words, what the data do not determine.
        algorithm, damping: what found it.
        iterations: steps that were tried.
        history: the points that were tried, the start first, with what became of them.
        seconds: how long it took.
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
    end: Local = field(kw_only=True)

    @property
    def point(self) -> dict[str, Any]:
        """The parameters as the graph has them: numbers, and arrays of their shapes."""
        return self.problem.vectors.values(self.end.values)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The parameters that have a standard error, in the order of `covariance`."""
        return tuple(self.standard_errors)

    @cached_property
    def covariance(self) -> Array:
        """Of the estimated parameters, a square matrix; nan beside what is not determined."""
        factor, (unknown, _) = covariance_factor(self.end), undetermined(self.end)
        found = self.residual_standard_deviation**2 * (factor @ factor.T)
        found[unknown], found[:, unknown] = math.nan, math.nan
        found[unknown, unknown] = math.inf
        return found

    @property
    def correlation(self) -> Array:
        """The same with ones on the diagonal."""
        sizes = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Array = self.covariance / np.outer(sizes, sizes)
        np.fill_diagonal(found, 1.0)
        return found

    @property
    def normal_matrix(self) -> Array:
        """J'J at the end, as it is taught: of the estimated parameters."""
        matrix = self.end.jacobian[:, self.end.movable]
        return matrix.T @ matrix

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Of each estimated parameter from where to where, by Student's t."""
        times = self._quantile(level)
        return {
            n: (self.parameters[n] - times * error, self.parameters[n] + times * error)
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
        """An output at some inputs, and the band in which it lies.

        Args:
            at: values of the inputs, numbers or arrays; those of the data unless given.
            of: which output; the only one unless given.
            level: the share of such bands that hold the truth, between 0 and 1.
            prediction: a band for new measurements instead, which scatter themselves.

        >>> import cgprimer
        >>> graph = cgprimer.parse("y = a + b*x")
        >>> data = cgprimer.Dataset.from_arrays({"x": [0, 1, 2]}, {"y": [0.9, 3.2, 4.9]})
        >>> band = cgprimer.fit(graph, data).band({"x": 1})
        >>> round(band.value, 6), round(band.standard_error, 6), round(band.high, 6)
        (3.0, 0.141421, 4.796929)
        """
        times, names = self._quantile(level), self.problem.runner.program.wrt
        of = resolve_output(self.graph, of)
        given = self.dataset.inputs if at is None else at
        inputs = {n: v for n, v in given.items() if n in self.graph.inputs}
        found = compute_derivatives(self.graph, {**inputs, **self.point}, of, names)
        value = np.asarray(found.values[of])
        slopes = np.concatenate(
            [np.asarray(found.derivatives[of, n]).reshape(*value.shape, -1) for n in names], axis=-1
        )
        elements = self.problem.vectors.elements
        known = [e for e in elements if parse_element(e).array in names]
        slopes = slopes[..., [known.index(name) for name in self.estimated]]
        _, null = undetermined(self.end)
        spread = self.residual_standard_deviation
        error = spread * np.linalg.norm(slopes @ covariance_factor(self.end), axis=-1)
        loose = np.abs(slopes @ null).max(axis=-1, initial=0.0)
        error = np.where(loose > _NOTHING * np.linalg.norm(slopes, axis=-1), math.inf, error)
        width = times * (np.hypot(error, spread) if prediction else error)
        parts = (value, error, value - width, value + width)
        return Band(*(part if value.ndim else float(part) for part in parts))

    def bootstrap(self, samples: int = 1000, *, seed: int = 0, pairs: bool = False) -> Bootstrap:
        """Fit resampled data repeatedly: see :mod:`cgprimer.training.fitting.bootstrap`."""
        from cgprimer.training.fitting.bootstrap import bootstrap

        return bootstrap(self.problem, self.end, self.estimated, samples, seed=seed, pairs=pairs)

    def as_dict(self) -> dict[str, Any]:
        """The fit as plain data: what `save` writes and ``--json`` prints."""
        own = ("history", "graph", "dataset", "problem", "end")
        plain = {k: v for k, v in vars(self).items() if k not in own and k != "covariance"}
        plain |= {"covariance": self.covariance, "correlation": self.correlation}
        plain |= {"estimated": self.estimated}
        return {"format": FORMAT, "version": VERSION, "graph": self.graph.text, **plain}

    def save(self, path: str | Path) -> None:
        """Write the fit, with the text of its graph and its history, as JSON.

        Raises:
            UsageError: the file cannot be written.
        """
        names = self.problem.vectors.elements
        given = [dict(zip(names, t.values.tolist(), strict=True)) for t in self.history]
        history = [{**vars(t), "values": v} for t, v in zip(self.history, given, strict=True)]
        write_atomically(path, format_json({**self.as_dict(), "history": history}) + "\n")

    def __repr__(self) -> str:
        values = join_names(
            f"{n}={format_number(value, 6)}" for n, value in self.parameters.items()
        )
        how = "converged" if self.converged else "not converged"
        total = format_number(self.residual_sum_of_squares, 6)
        return f"<Fit {how}: {self.iterations} steps, residual sum of squares {total}, {values}>"

    def _quantile(self, level: float) -> float:
        """Student's t for a two-sided level."""
        level = check_fraction("the level", level)
        if not self.degrees_of_freedom:
            return math.nan
        from scipy.special import stdtrit

        return float(stdtrit(self.degrees_of_freedom, (1 + level) / 2))


def covariance_factor(end: Local) -> Array:
    """A matrix F with F F' = (J'J)^-1, of what is determined; one row a parameter."""
    rank = end.rank
    found: Array = (end.rows[:rank].T / end.singular[:rank]) / end.scale[:, None]
    return found


def undetermined(end: Local) -> tuple[Array, Array]:
    """Which parameters the data do not determine, and a direction a column that changes nothing."""
    null = end.rows[end.rank :].T / end.scale[:, None]
    lengths = np.linalg.norm(null, axis=0)
    shares = np.abs(end.rows[end.rank :].T).max(axis=1, initial=0.0)
    return np.flatnonzero(shares > _NOTHING), null / np.where(lengths > 0, lengths, 1.0)
