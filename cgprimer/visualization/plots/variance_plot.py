"""The variance of a mini-batch gradient as a function of the batch size: it falls like 1/B.

Source: Bottou, Curtis and Nocedal 2018, "Optimization methods for large-scale machine learning",
section 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.errors import NonFiniteError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_integer, check_named_values
from cgprimer.training.data import Dataset, make_dataset, require_in_memory
from cgprimer.training.losses import load_samples
from cgprimer.training.objective import Objective
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.cost_plot import sort_counts

_MAX_BATCH = 1024  # default maximum batch size
_MAX_SAMPLES = 4000  # used to estimate the variance of the gradient of one sample


def variance(
    graph: ExpressionGraph,
    data: Dataset | str | Path | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    sizes: int | Sequence[int] = (),
    batches: int = 400,
    loss: str = "squared-error",
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Plot the variance of a mini-batch gradient against the batch size, with the line 1/B.

    The variance is the mean squared distance to the gradient over all samples, summed over the
    parameters. The samples of a batch are sampled with replacement; without replacement the
    variance is smaller by the factor (N-B)/(N-1). If it is below the squared norm of the full
    gradient, the gradient of a batch usually points in the right direction.

    Args:
        graph: the graph.
        data: inputs and targets; 10,000 samples generated from the values of the parameters unless
            given.
        at: values of parameters; other parameters have the initial values of a training run with
            the same seed.
        sizes: one or several batch sizes. Default: powers of two up to 1024.
        batches: number of batches of each size.
        loss: as for training.
        seed: random seed of data, initial values and batches.

    Raises:
        UsageError: no parameters, or fewer than two batches.
        NonFiniteError: a gradient is not finite.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> figure = variance(graph, sizes=[1, 16], batches=1000)
    >>> [text.get_text() for text in figure.legends[0].get_texts()][:2]
    ['measured over 1,000 batches: slope -1.01', '1/B']
    """
    result = gradient_variances(graph, data, at, sizes, batches, loss, seed)
    x = np.array(result.sizes, float)
    figure, axes, look = slide.create_plot(
        dark, title, "Variance of a mini-batch gradient", x="batch size B", y="variance"
    )
    slope = format_number(result.slope, 3)
    lines = [
        (result.variances, f"measured over {batches:,} batches: slope {slope}"),
        (result.of_one / x, "1/B"),
        (np.full(len(x), result.square), "squared norm of the full gradient"),
    ]
    for order, (values, label) in enumerate(lines):
        style = slide.choose_curve_style(order, look) | ({} if order == 0 else {"marker": ""})
        if values.min() > 0:
            axes.plot(x, values, **style, linewidth=2.4, markersize=10, label=label)
    for which in "xy":
        slide.use_log_axis(axes, which)
    slide.draw_legend_below(figure, axes, look)
    return figure


@dataclass(frozen=True, eq=False)
class Variances:
    """The variances of mini-batch gradients at one point, for several batch sizes.

    Attributes:
        sizes: batch sizes.
        variances: measured variances; shape (sizes,).
        of_one: variance of the gradient of one sample, the numerator of the line 1/B.
        square: squared norm of the gradient over all samples.
    """

    sizes: tuple[int, ...]
    variances: Any
    of_one: float
    square: float

    @property
    def slope(self) -> float:
        """The slope of log variance over log batch size; nan for a single batch size."""
        if len(self.sizes) < 2 or not (self.variances > 0).all():
            return float("nan")
        return float(np.polyfit(np.log(self.sizes), np.log(self.variances), 1)[0])


def gradient_variances(
    graph: ExpressionGraph, data: Any = None, at: Mapping[str, Any] | None = None,
    sizes: int | Sequence[int] = (), batches: int = 400, loss: str = "squared-error", seed: int = 0,
) -> Variances:  # fmt: skip
    """Measure the variance of mini-batch gradients for each batch size.

    >>> from cgprimer.core.graph import parse
    >>> data = Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [1.0, 3.0]})
    >>> result = gradient_variances(parse("xw = k*xa"), data, {"k": 2.0}, [1, 4])
    >>> result.of_one, result.square
    (4.0, 0.0)
    """
    batches = check_integer("the number of batches", batches, minimum=2)
    seed = check_integer("the seed", seed)
    data = make_dataset(graph, seed=seed) if data is None else load_samples(graph, data, loss)
    data = require_in_memory(data, "gradients are sampled from all samples")
    data.check_finite()
    count = len(data)
    powers = [2**k for k in range(11) if 2**k <= min(_MAX_BATCH, count)]
    chosen = sort_counts(powers if isinstance(sizes, Sequence) and not sizes else sizes, "sizes")
    objective = Objective(graph, loss=loss, dataset=data)
    vectors, random = objective.vectors, np.random.default_rng(seed)
    given_values = check_named_values("at", at, "parameter", graph.parameters, shapes=graph.shapes)
    start = vectors.values(random.random(len(vectors)))  # the initial values of `train`
    values = vectors.vector({**start, **given_values}).astype(objective.precision)
    columns = objective.columns(data)

    def compute_gradient(indices: Any) -> Any:
        """Compute the mean gradient of the loss over the samples with the given indices."""
        part = {name: column[indices] for name, column in columns.items()}
        return np.asarray(objective.sums(part, values, len(indices))[1], float) / len(indices)

    with np.errstate(all="ignore"):
        full = compute_gradient(np.arange(count))

        def compute_squared_error(indices: Any) -> float:
            """Return the squared distance of a batch gradient from the full gradient."""
            return _compute_squared_norm(compute_gradient(indices) - full)

        measured = [
            np.mean(
                [compute_squared_error(random.integers(0, count, size)) for _ in range(batches)]
            )
            for size in chosen
        ]
        of_one = np.mean(
            [compute_squared_error(np.array([k])) for k in _choose_samples(count, random)]
        )
    if not np.isfinite([*measured, of_one]).all():
        hint = "choose other values (--at NAME=VALUE)"
        raise NonFiniteError("gradients must be finite at the chosen point", hint=hint)
    return Variances(tuple(chosen), np.array(measured), float(of_one), _compute_squared_norm(full))


def _compute_squared_norm(vector: Any) -> float:
    """Return the squared Euclidean norm."""
    return float(vector @ vector)


def _choose_samples(count: int, random: Any) -> Any:
    """Return the indices of all samples, or of a random subset if the data set is large."""
    if count <= _MAX_SAMPLES:
        return np.arange(count)
    return random.choice(count, _MAX_SAMPLES, replace=False)
