"""Metrics of predictions: accuracy, explained variance and the confusion matrix.

Metrics are functions of outputs and targets, which are columns keyed by name. Classes are either
the values of one target (0 and 1; -1 and 1; 1, 2, 3), of which the one nearest to the output is
predicted, or the index of the largest of several outputs. Ties go to the lowest label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.errors import DataError
from cgprimer.tapes import elements

Array = Any
Columns = Mapping[str, Array]
_MAX_CLASSES = 30
_COMMON_LABELS = (0.0, 1.0), (-1.0, 1.0)  # a column of ones has two classes, too


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Confusion matrix: ``counts[i, j]`` samples of class i were predicted as class j.

    Attributes:
        labels: numbers, or names of outputs.
        counts: shape (classes, classes).
    """

    labels: tuple[Any, ...]
    counts: Array

    @property
    def accuracy(self) -> float:
        """The fraction of samples on the diagonal, between 0 and 1."""
        return float(np.trace(self.counts) / self.counts.sum())


def find_class_indices(rows: Array, labels: Array) -> Array:
    """Predict the class of each row by its maximum or, for one output, by the nearest label.

    >>> find_class_indices(np.array([[0.1, 0.7]]), np.array([])).tolist()
    [1]
    >>> find_class_indices(np.array([[0.5], [0.6]]), np.array([0.0, 1.0])).tolist()
    [0, 1]
    """
    if rows.shape[1] > 1:
        return rows.argmax(axis=1)
    # The midpoint between two labels belongs to the lower label.
    return np.searchsorted((labels[1:] + labels[:-1]) / 2, rows[:, 0], side="left")


def confusion(outputs: Columns, targets: Columns) -> Confusion:
    """Count the samples of each true class (rows) and predicted class (columns).

    Raises:
        DataError: the targets are not classes (at most thirty different integers).

    >>> found = confusion({"xw": np.array([0.2, 0.9, 0.5])}, {"xw": np.array([0.0, 1.0, 1.0])})
    >>> found.labels, found.counts.tolist()
    ((0.0, 1.0), [[1, 0], [1, 1]])
    """
    labels, predicted = find_classes(outputs, targets)
    _, true = find_classes(targets, targets)
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (true, predicted), 1)
    return Confusion(labels, counts)


def find_classes(outputs: Columns, targets: Columns) -> tuple[tuple[Any, ...], Array]:
    """Return the labels in the targets, and the index of each sample's predicted label.

    Returns:
        The labels in ascending order, and for each sample the index of its label.

    Raises:
        DataError: the targets are not classes (at most thirty different integers).
    """
    predictions, wanted = stack_elements(outputs, targets), stack_elements(targets, targets)
    if wanted.shape[1] > 1:
        if (wanted % 1).any() and not np.allclose(wanted.sum(axis=1), 1):
            raise DataError(
                "the targets must be classes: integers, or probabilities that add up to 1"
            )
        names = [e for n, column in targets.items() for e in elements(n, np.shape(column)[1:])]
        return tuple(names), find_class_indices(predictions, wanted[:0])
    values = np.unique(wanted)
    values = next((np.array(two) for two in _COMMON_LABELS if {*values[:3]} <= {*two}), values)
    if len(values) > _MAX_CLASSES or (values % 1).any():
        name = next(iter(targets))
        message = f"the target {name!r} must have at most {_MAX_CLASSES} different integers"
        raise DataError(message, hint="for other targets, use the metric r2")
    return tuple(values.tolist()), find_class_indices(predictions, values)


def accuracy(outputs: Columns, targets: Columns) -> float:
    """Return the fraction of samples whose class is predicted correctly, between 0 and 1.

    >>> accuracy({"xw": np.array([0.2, 0.9, 0.5])}, {"xw": np.array([0.0, 1.0, 1.0])})
    0.6666666666666666
    """
    return confusion(outputs, targets).accuracy


def r_squared(outputs: Columns, targets: Columns) -> float:
    """Return the coefficient of determination R^2, the explained fraction of the variance.

    It is at most 1, and 0 for predictions that equal the mean. For several targets it is averaged;
    it is nan if a target does not vary.

    Source: Draper and Smith 1998, "Applied regression analysis", section 1.3.

    >>> r_squared({"xw": np.array([1.0, 2.0, 3.5])}, {"xw": np.array([1.0, 2.0, 3.0])})
    0.875
    """
    predictions, wanted = stack_elements(outputs, targets), stack_elements(targets, targets)
    left = ((wanted - predictions) ** 2).sum(axis=0)
    with np.errstate(all="ignore"):
        scores = 1 - left / ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=0)
    return float(np.where(np.isfinite(scores), scores, np.nan).mean())


METRICS: dict[str, Callable[[Columns, Columns], float]] = {
    "accuracy": accuracy, "r2": r_squared,
}  # fmt: skip


def convert_to_probabilities(outputs: Columns, loss: str) -> dict[str, Array]:
    """Convert logits to probabilities if the loss is computed from logits.

    >>> convert_to_probabilities({"xo": np.array([0.0])}, "cross-entropy-logit")
    {'xo': array([0.5])}
    """
    if loss == "softmax-cross-entropy":
        arrays = {name: np.asarray(of, float) for name, of in outputs.items()}
        if all(of.ndim == 1 for of in arrays.values()):  # each output is a class
            shares = _compute_softmax(np.stack([*arrays.values()], axis=-1))
            return {name: shares[:, k] for k, name in enumerate(arrays)}
        return {name: _compute_softmax(of) for name, of in arrays.items()}
    if loss != "cross-entropy-logit":
        return dict(outputs)
    return {name: 0.5 + 0.5 * np.tanh(0.5 * np.asarray(of)) for name, of in outputs.items()}


def _compute_softmax(rows: Array) -> Array:
    """Compute the softmax of each row."""
    shares = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def stack_elements(columns: Columns, order: Iterable[str]) -> Array:
    """Stack the elements of all columns into one matrix of shape (samples, elements)."""
    parts = [np.asarray(columns[name], float) for name in order]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
