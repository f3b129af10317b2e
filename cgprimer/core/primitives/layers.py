"""Layers that train in one way and are used in another: dropout and batch normalization.

Each is written out in primitives, in one of two ways: while training, dropout multiplies by a mask
that is drawn anew for each sample, and batch normalization takes mean and variance over the batch;
afterwards, dropout multiplies by what a mask is on average, and mean and variance are running ones
that training has kept. Derivatives need nothing of their own: those of the primitives do.

A builder has a ``mode`` (``""`` for use, ``batch`` for statistics of the batch, ``masks`` for
masks, ``training`` for both) and the ``vertex`` that is written out, after which what a layer adds
is named.

Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting";
Ioffe and Szegedy 2015, "Batch normalization", algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import prod
from typing import Any

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.errors import ShapeError, UsageError, name_hint
from cgprimer.numbers_and_arrays import as_value

Builder = Any
MASK, MEAN, VARIANCE = "mask", "mean", "variance"  #: kinds of names: ``mask.xh``, ``mean.xy``
EPSILON = 1e-5  #: under the root of batch normalization; PyTorch's too
_KEPT = "p is the probability that a unit is kept; PyTorch's p is that of dropping it, 1 - p"


def dropout(b: Builder, x: Any, p: Any) -> Any:
    """A unit is kept with the probability p; afterwards it counts p times."""
    keep = b.value_of(p)
    if keep is None or not 0 <= keep <= 1:
        raise ShapeError("the p of dropout(x, p) is a number from 0 to 1", hint=_KEPT)
    if b.mode in ("training", "masks"):
        p = b.leaf("column", _own_name(b, MASK), keep, b.shape(x))
    return b.emit("mul", x, p)


def batchnorm(b: Builder, x: Any, gamma: Any, beta: Any, epsilon: Any = None) -> Any:
    """Scaled and shifted after mean and variance have become 0 and 1."""
    least = EPSILON if epsilon is None else b.value_of(epsilon)
    if least is None or not least >= 0:
        hint = f"batchnorm(x, gamma, beta) takes {EPSILON:g}"
        raise ShapeError("what is added to the variance is a number, 0 or more", hint=hint)
    names = _own_name(b, MEAN), _own_name(b, VARIANCE)
    if b.mode in ("training", "batch"):
        mean = b.name(b.emit(Structural("batch_mean", len(b.shape(x))), x), names[0])
        moved = b.emit("sub", x, mean)
        square = b.emit("mul", moved, moved)
        variance = b.name(b.emit(Structural("batch_mean", len(b.shape(x))), square), names[1])
    else:
        mean = b.leaf("scalar", names[0], 0.0, b.shape(x))
        variance = b.leaf("scalar", names[1], 1.0, b.shape(x))
        moved = b.emit("sub", x, mean)
    root = b.emit("sqrt", b.emit("add", variance, b.constant(least)) if least else variance)
    return b.emit("add", b.emit("mul", gamma, b.emit("div", moved, root)), beta)


def is_statistic(name: str) -> bool:
    """Whether a name is that of a mean or variance which a layer keeps."""
    return name.startswith((MEAN + ".", VARIANCE + "."))


def statistics_of(leaves: Iterable[Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """The running statistics at a point, those before training unless given.

    Args:
        leaves: of a tape.
        point: what is given, by name.

    Raises:
        UsageError: the point has some but not all, or others.
    """
    own = {leaf.name: leaf for leaf in leaves if is_statistic(leaf.name)}
    given = {name: value for name, value in point.items() if "." in name}
    stray = sorted(given.keys() ^ own.keys()) if given else []
    if stray:
        what = "is none of" if stray[0] in given else "is missing among"
        raise UsageError(f"{stray[0]!r} {what} the statistics", hint=name_hint(stray[0], own))
    return {n: as_value(n, given.get(n, leaf.value), leaf.shape) for n, leaf in own.items()}


def mode_of(layers: Container[str], point: Iterable[str], samples: Shape) -> str:
    """Return how layers are written out at a point: samples without running statistics are a batch.

    Args:
        layers: names of the layer functions that the graph applies.
        point: names of the values that are given.
        samples: shape of the samples, () for one.

    Raises:
        UsageError: a batch of one sample.
    """
    if "batchnorm" not in layers or not samples or any(map(is_statistic, point)):
        return ""
    if prod(samples) == 1:
        hint = "give several samples; or a number, which goes with running statistics"
        raise UsageError("batchnorm has one sample here, and that has no variance", hint=hint)
    return "batch"


def _own_name(b: Builder, kind: str) -> str:
    """``mean.xy`` in the vertex xy, and ``mean.xy.2`` for a second one."""
    first = name = f"{kind}.{b.vertex}"
    number = 1
    while name in b.names:
        number += 1
        name = f"{first}.{number}"
    return name
