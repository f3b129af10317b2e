"""The variance of a mini-batch gradient against the batch size: it falls like 1/B.

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
from cgprimer.training.losses import samples_for
from cgprimer.training.objective import Objective
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.cost_plot import as_counts

_MOST = 1024  # samples of a batch, unless more are asked for
_SAMPLES = 4000  # whose variance is taken for that of one sample


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
    """The variance of a mini-batch gradient against the batch size, beside the line 1/B.

    It is the mean squared distance from the gradient over all samples, summed over the parameters.
    Samples of a batch are drawn with repeats; without them it is less by the factor (N-B)/(N-1).
    Where it is below the square of that gradient, a batch mostly knows the way.

    Args:
        graph: the graph.
        data: inputs and targets; 10,000 samples made from the parameters' values unless given.
        at: values of parameters; the others are where training with this seed begins.
        sizes: of batches, a number or several; powers of two up to 1024 unless given.
        batches: drawn of each size.
        loss: as for training.
        seed: of data, start and batches.

    Raises:
        UsageError: no parameters, or fewer than two batches.
        NonFiniteError: a gradient is not finite.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer plot variance lecture -o variance.png
        cgprimer plot variance saturation --at b1=200,b2=1 --sizes 1,10,100 -o variance.svg --dark

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> figure = variance(graph, sizes=[1, 16], batches=20_000)
    >>> [text.get_text() for text in figure.legends[0].get_texts()][:2]
    ['measured over 20,000 batches: slope -0.993', '1/B']
    """
    found = gradient_variances(graph, data, at, sizes, batches, loss, seed)
    x = np.array(found.sizes, float)
    figure, axes, look = slide.framed(
        dark, title, "Variance of a mini-batch gradient", x="batch size B", y="variance"
    )
    lines = [
        (
            found.variances,
            f"measured over {batches:,} batches: slope {format_number(found.slope, 3)}",
        ),
        (found.of_one / x, "1/B"),
        (np.full(len(x), found.square), "square of the gradient over all samples"),
    ]
    for order, (values, label) in enumerate(lines):
        style = slide.curve_style(order, look) | ({} if order == 0 else {"marker": ""})
        if values.min() > 0:
            axes.plot(x, values, **style, linewidth=2.4, markersize=10, label=label)
    for which in "xy":
        slide.log_axis(axes, which)
    slide.legend_below(figure, axes, look)
    return figure


@dataclass(frozen=True, eq=False)
class Variances:
    """Variances of mini-batch gradients at one point."""

    sizes: tuple[int, ...]
    variances: Any  # measured, shape (sizes,)
    of_one: float  # variance of the gradient of one sample: what falls as 1/B
    square: float  # of the norm of the gradient over all samples

    @property
    def slope(self) -> float:
        """Of the straight line through logarithms of variance and size; nan of one size."""
        if len(self.sizes) < 2 or not (self.variances > 0).all():
            return float("nan")
        return float(np.polyfit(np.log(self.sizes), np.log(self.variances), 1)[0])


def gradient_variances(
    graph: ExpressionGraph, data: Any = None, at: Mapping[str, Any] | None = None,
    sizes: int | Sequence[int] = (), batches: int = 400, loss: str = "squared-error", seed: int = 0,
) -> Variances:  # fmt: skip
    """What :func:`variance` draws; the arguments are its own.

    >>> from cgprimer.core.graph import parse
    >>> data = Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [1.0, 3.0]})
    >>> found = gradient_variances(parse("xw = k*xa"), data, {"k": 2.0}, [1, 4])
    >>> found.of_one, found.square
    (4.0, 0.0)
    """
    batches = check_integer("the number of batches", batches, minimum=2)
    seed = check_integer("the seed", seed)
    data = make_dataset(graph, seed=seed) if data is None else samples_for(graph, data, loss)
    data = require_in_memory(data, "gradients are drawn from all samples")
    data.check_finite()
    count = len(data)
    powers = [2**k for k in range(11) if 2**k <= min(_MOST, count)]
    wanted = as_counts(powers if isinstance(sizes, Sequence) and not sizes else sizes, "sizes")
    objective = Objective(graph, loss=loss, dataset=data)
    vectors, random = objective.vectors, np.random.default_rng(seed)
    own = check_named_values("at", at, "parameter", graph.parameters, shapes=graph.shapes)
    drawn = vectors.values(random.random(len(vectors)))  # the start that `train` draws
    values = vectors.vector({**drawn, **own}).astype(objective.precision)
    columns = objective.columns(data)

    def gradient(chosen: Any) -> Any:
        part = {name: column[chosen] for name, column in columns.items()}
        return np.asarray(objective.sums(part, values, len(chosen))[1], float) / len(chosen)

    with np.errstate(all="ignore"):
        whole = gradient(np.arange(count))
        measured = [
            np.mean([_square(gradient(random.integers(0, count, size)) - whole)
                     for _ in range(batches)])
            for size in wanted
        ]  # fmt: skip
        one = np.mean([_square(gradient(np.array([k])) - whole) for k in _some(count, random)])
    if not np.isfinite([*measured, one]).all():
        raise NonFiniteError("a gradient is not finite there", hint="other values: --at NAME=VALUE")
    return Variances(tuple(wanted), np.array(measured), float(one), _square(whole))


def _square(vector: Any) -> float:
    return float(vector @ vector)


def _some(count: int, random: Any) -> Any:
    """All samples, or so many of them that their mean is known well."""
    return np.arange(count) if count <= _SAMPLES else random.choice(count, _SAMPLES, replace=False)
