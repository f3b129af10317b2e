"""Comparison of a student's derivatives with those that a mistake predicts."""

from __future__ import annotations

import numpy as np

from cgprimer.course.checks.question_points import Array, Points

TOLERANCE = 1e-9  # relative difference between predicted values and answers
MIN_POINTS = 4  # smooth points at which answers must agree


def is_predicted(
    points: Points, answers: Array, predicted: Array, noise: Array, ties: Array | None = None
) -> bool:
    """Return whether a student's derivatives match the predictions at all smooth points.

    Args:
        points: the points.
        answers: a student's derivatives with respect to one name; nan where one is missing.
        predicted: the predicted derivatives.
        noise: the rounding errors of the predicted derivatives.
        ties: the points at which the wrong computation is at a kink, and which do not count.
    """
    compared = points.smooth & ~np.isnan(answers)
    if ties is not None:
        compared &= ~ties
    first = int(compared.argmax())  # one point refutes most predictions
    difference = abs(answers[first] - predicted[first])
    if not difference <= 2 * TOLERANCE * abs(answers[first]) + noise[first] < np.inf:
        return False
    allowed = TOLERANCE * np.maximum(np.abs(predicted), np.abs(answers)) + noise
    close = np.abs(answers - predicted) <= allowed
    close &= np.isfinite(answers) & np.isfinite(allowed)
    enough = np.sum(compared) >= min(MIN_POINTS, len(compared))
    return bool(np.all(close[compared]) and enough)
