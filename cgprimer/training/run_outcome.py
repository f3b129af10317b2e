"""The outcome of a run: its final loss, and errors and reasons if it diverged."""

from __future__ import annotations

import math

import numpy as np

from cgprimer.errors import NonFiniteError
from cgprimer.support.number_format import format_number
from cgprimer.training.epoch_strategy import EpochStrategy
from cgprimer.training.runs import TrainingRun

_DIVERGED = 10.0  # ratio of the final to the initial loss above which a run has diverged


def measure_final_loss(run: TrainingRun, strategy: EpochStrategy) -> None:
    """Measure the loss and the penalty of a run at its final parameters."""
    objective = strategy.objective
    learned = objective.vectors.vector(run.parameters).astype(objective.precision)
    try:
        run.penalty = strategy.plan.constraints.penalty(learned)
        run.loss = strategy.data.mean_loss(learned, run.statistics)
    except KeyboardInterrupt:
        run.stopped, run.loss = "interrupted", math.nan


def record_divergence(run: TrainingRun, strategy: EpochStrategy) -> None:
    """Mark a finished run as diverged if its loss has grown more than tenfold."""
    if run.stopped == "finished" and 0 < _DIVERGED * run.start_loss < run.loss:
        start, end = format_number(run.start_loss, 6), format_number(run.loss, 6)
        run.stopped = "diverged"
        run.reason = _append_stable_rate(f"the loss has grown from {start} to {end}", run, strategy)


def create_nonfinite_error(
    run: TrainingRun, strategy: EpochStrategy, samples: np.ndarray, position: str
) -> NonFiniteError:
    """Mark a run as diverged and return the error that explains the first non-finite number.

    Args:
        run: the run up to the update before.
        strategy: the strategy of the run.
        samples: the indices of the samples of the batch that failed.
        position: a description of the step at which the run stopped.
    """
    from cgprimer.training.nonfinite_steps import explain_nonfinite_update

    masks = strategy.sample_masks(run.steps, len(samples))
    dataset = strategy.data.dataset
    description, origin = explain_nonfinite_update(
        strategy.objective, dataset, run.parameters, samples, masks
    )
    message = f"training stopped {position}: {description}"
    run.stopped, run.reason = "diverged", message
    hint = (
        "the first update failed: check the start values (--start), the bounds of the inputs"
        " (--low, --high) and the loss; cross-entropy requires outputs between 0 and 1, and"
        " cross-entropy-logit outputs before sigmoid(...)"
    )
    if run.steps:
        hint = "try a smaller learning rate (--learning-rate), or inputs inside the domains"
        hint = _append_stable_rate(hint, run, strategy)
    error = NonFiniteError(message, hint=hint)
    error.run, error.why = run, origin
    return error


def _append_stable_rate(sentence: str, run: TrainingRun, strategy: EpochStrategy) -> str:
    """Append the maximum stable learning rate to a sentence if the run exceeded it."""
    from cgprimer.training.curvature import append_stable_rate

    return append_stable_rate(
        sentence,
        objective=strategy.objective,
        dataset=strategy.data.dataset,
        plan=strategy.plan,
        run=run,
    )
