"""What the tests of plots read off a figure, and runs that were never trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from cgprimer.training.loop import TrainingRun


def entries(figure: Figure) -> list[str]:
    """What stands in the legends."""
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    return [text.get_text() for legend in legends if legend for text in legend.get_texts()]


def numbers(axis: Axis) -> list[str]:
    """What stands on an axis, inside the picture."""
    low, high = sorted(axis.get_view_interval())
    places = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [text.get_text() for place, text in places if low <= place <= high]


def drawn(figure: Figure, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line."""
    (line,) = [line for axes in figure.axes for line in axes.lines if line.get_label() == label]
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


def run_of(losses: Sequence[float], **fields: Any) -> TrainingRun:
    """A run whose steps had these losses."""
    given: dict[str, Any] = {"parameters": {}, "start": {}, "truth": {}, "settings": {}}
    return TrainingRun(**given | {"step_losses": list(losses), "steps": len(losses)} | fields)


def runs_of(histories: Mapping[str, Sequence[float]]) -> dict[str, TrainingRun]:
    """Runs by name whose steps had these losses."""
    return {name: run_of(losses) for name, losses in histories.items()}


def moved(
    values: Mapping[str, Sequence[float]], truth: Mapping[str, float] | None = None, **fields: Any
) -> TrainingRun:
    """A run of a step an epoch whose parameters had these values, at the start and after each."""
    steps = len(next(iter(values.values()))) - 1
    return run_of(
        [1.0] * steps,
        parameters={name: moments[-1] for name, moments in values.items()},
        start={name: moments[0] for name, moments in values.items()},
        truth=dict(truth or {}),
        settings={"steps_per_epoch": 1, "epochs": steps},
        recorded_steps=list(range(1, steps + 1)),
        recorded_parameters={name: list(moments[1:]) for name, moments in values.items()},
        epochs=steps,
        epoch_losses=[1.0] * steps,
        **fields,
    )
