"""Layers that behave differently during and after training: dropout and batch normalization.

Both are expanded into primitives, so they need no derivative rules. During training, dropout
multiplies by a mask that is drawn for each sample, and batch normalization uses the mean and the
variance of the batch. After training, dropout multiplies by the mean of the masks, and batch
normalization uses the running mean and variance.

A builder has a ``mode`` (``""`` after training, ``batch`` for statistics of the batch, ``masks``
for masks, ``training`` for both) and the current ``vertex``, from which the names of masks and
statistics are derived.

Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting";
Ioffe and Szegedy 2015, "Batch normalization", algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import prod
from typing import Any

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.errors import ShapeError, UsageError, name_hint
from cgprimer.support.array_values import convert_value
from cgprimer.support.value_names import internal_name, is_internal, parse_internal

Builder = Any
MASK, MEAN, VARIANCE = "mask", "mean", "variance"  #: kinds of internal names
EPSILON = 1e-5  #: added to the variance by batch normalization, as in PyTorch
_HINT = "p is the probability of keeping a unit; PyTorch's p is the probability of dropping it"


def expand_dropout(b: Builder, x: Any, p: Any) -> Any:
    """Emit dropout: in training, keep each unit with probability p; at inference, multiply by p."""
    keep = b.value_of(p)
    if keep is None or not 0 <= keep <= 1:
        raise ShapeError("p in dropout(x, p) must be a constant between 0 and 1", hint=_HINT)
    if b.mode in ("training", "masks"):
        p = b.leaf("column", _create_name(b, MASK), keep, b.shape(x))
    return b.emit("mul", x, p)


def expand_batchnorm(b: Builder, x: Any, gamma: Any, beta: Any, epsilon: Any = None) -> Any:
    """Emit batch normalization: normalize to mean 0 and variance 1, then scale and shift."""
    offset = EPSILON if epsilon is None else b.value_of(epsilon)
    if offset is None or not offset >= 0:
        hint = f"the default of batchnorm(x, gamma, beta) is {EPSILON:g}"
        raise ShapeError("epsilon in batchnorm must be a nonnegative constant", hint=hint)
    names = _create_name(b, MEAN), _create_name(b, VARIANCE)
    if b.mode in ("training", "batch"):
        from cgprimer.core.operations.batch_operations import BatchMean

        mean = b.name(b.emit(BatchMean.create(len(b.shape(x))), x), names[0])
        centered = b.emit("sub", x, mean)
        square = b.emit("mul", centered, centered)
        variance = b.name(b.emit(BatchMean.create(len(b.shape(x))), square), names[1])
    else:
        mean = b.leaf("scalar", names[0], 0.0, b.shape(x))
        variance = b.leaf("scalar", names[1], 1.0, b.shape(x))
        centered = b.emit("sub", x, mean)
    root = b.emit("sqrt", b.emit("add", variance, b.constant(offset)) if offset else variance)
    return b.emit("add", b.emit("mul", gamma, b.emit("div", centered, root)), beta)


def is_statistic(name: str) -> bool:
    """Return whether a name denotes a running mean or variance."""
    return parse_internal(name).kind in (MEAN, VARIANCE)


def collect_statistics(leaves: Iterable[Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the running statistics of layers at a point; their initial values by default.

    Args:
        leaves: the leaves of a tape.
        point: values, keyed by name.

    Raises:
        UsageError: a statistic of the point is unknown, or a statistic is missing.
    """
    expected = {leaf.name: leaf for leaf in leaves if is_statistic(leaf.name)}
    values = {name: value for name, value in point.items() if is_internal(name)}
    if wrong := sorted(values.keys() ^ expected.keys()) if values else []:
        name = wrong[0]
        message = f"{'unknown' if name in values else 'missing'} running statistic {name!r}"
        raise UsageError(message, hint=name_hint(name, expected))
    return {
        n: convert_value(n, values.get(n, leaf.value), leaf.shape) for n, leaf in expected.items()
    }


def choose_layer_mode(layers: Container[str], point: Iterable[str], samples: Shape) -> str:
    """Choose whether layers use batch statistics or running statistics at a point.

    Args:
        layers: names of the layer functions in the graph.
        point: names of the values at the point.
        samples: shape of the samples; ``()`` for a single sample.

    Raises:
        UsageError: the batch has a single sample.
    """
    if "batchnorm" not in layers or not samples or any(map(is_statistic, point)):
        return ""
    if prod(samples) == 1:
        hint = "give several samples, or scalars to use the running statistics"
        raise UsageError("batchnorm requires more than one sample per batch, got 1", hint=hint)
    return "batch"


def _create_name(b: Builder, kind: str) -> str:
    """Create an unused name for a mask or statistic: ``mean.xy``, else ``mean.xy.2``, and so on."""
    first = name = internal_name(kind, b.vertex)
    number = 1
    while name in b.names:
        number += 1
        name = f"{first}.{number}"
    return name
