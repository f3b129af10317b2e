"""Descriptions of figures, and runs that were never trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from cgprimer.training.loop import TrainingRun


def entries(figure: Figure) -> list[str]:
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    return [text.get_text() for legend in legends if legend for text in legend.get_texts()]


def numbers(axis: Axis) -> list[str]:
    """Return the numbers on an axis inside the picture."""
    low, high = sorted(axis.get_view_interval())
    places = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False)
    return [text.get_text() for place, text in places if low <= place <= high]


def drawn(figure: Figure, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a line."""
    (line,) = [line for axes in figure.axes for line in axes.lines if line.get_label() == label]
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


def describe(figure: Figure) -> str:
    """Return panels, axes, curves, texts and the legend of a figure as lines of text."""

    def join(values: Iterable[float]) -> str:
        return " ".join(f"{value:.3g}" for value in values)

    lines = [f"title: {figure.get_suptitle()}"]
    for axes in figure.axes:
        lines.append(f"panel: {axes.get_title()}")
        for name in ("x", "y", "z")[: 3 if hasattr(axes, "zaxis") else 2]:
            axis, scale = getattr(axes, f"{name}axis"), getattr(axes, f"get_{name}scale")()
            label, ends = axis.get_label_text(), sorted(axis.get_view_interval())
            ticks = ", ".join(numbers(axis)) + axis.get_offset_text().get_text()
            turned = any(text.get_rotation() for text in axis.get_majorticklabels())
            lines.append(f"  {label} ({scale}) from {join(ends)}: {ticks}{' turned' * turned}")
        for line in axes.lines:
            data = getattr(line, "get_data_3d", line.get_data)()
            points = [join(values) for values in zip(*data, strict=True)]
            shown = points if len(points) <= 6 else [*points[:3], "...", *points[-3:]]
            lines.append(f"  {line.get_label()} ({len(points)}): {', '.join(shown)}")
        areas = [area.get_label() for area in (*axes.patches, *axes.collections)]
        lines += [f"  area: {label}" for label in areas]
        lines += [f"  text: {text.get_text()}" for text in axes.texts]
    own = [line for line in lines if "_child" not in line]  # not the axes of the coordinates
    return "\n".join([*own, *(f"legend: {entry}" for entry in entries(figure))])


def run_of(losses: Sequence[float], **fields: Any) -> TrainingRun:
    """Return a run whose steps had these losses."""
    given: dict[str, Any] = {"parameters": {}, "start": {}, "truth": {}, "settings": {}}
    return TrainingRun(**given | {"step_losses": list(losses), "steps": len(losses)} | fields)


def runs_of(histories: Mapping[str, Sequence[float]]) -> dict[str, TrainingRun]:
    return {name: run_of(losses) for name, losses in histories.items()}


def moved(
    values: Mapping[str, Sequence[float]],
    truth: Mapping[str, float] | None = None,
    steps_per_epoch: float = 1,
) -> TrainingRun:
    """Return a run whose parameters had these values at the start and after each step."""
    steps = len(next(iter(values.values()))) - 1
    return run_of(
        [1.0] * steps,
        parameters={name: moments[-1] for name, moments in values.items()},
        start={name: moments[0] for name, moments in values.items()},
        truth=dict(truth or {}),
        settings={"steps_per_epoch": steps_per_epoch, "epochs": steps},
        recorded_steps=list(range(1, steps + 1)),
        recorded_parameters={name: list(moments[1:]) for name, moments in values.items()},
        epochs=steps,
        epoch_losses=[1.0] * steps,
    )
