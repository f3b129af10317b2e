"""Printed reports of runs and scores."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np

from cgprimer.analysis.text_tables import table
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.tapes import elements
from cgprimer.training.identifiability import Identifiability, format_combination
from cgprimer.training.predictions import Score
from cgprimer.training.runs import TrainingRun

_MAX_ROWS = 12  # elements of an array that are printed; of larger arrays only the norm is


def format_run(
    run: TrainingRun,
    determined: Identifiability | None,
    graph: ExpressionGraph,
    *,
    converged: bool = True,
) -> str:
    """Format the losses of a run, and its parameters next to their true values.

    Args:
        run: the run.
        determined: identifiability of the parameters; None leaves it out.
        graph: the graph that was trained.
        converged: whether the loss is near a minimum; if not, the report calls the values of the
            parameters preliminary.
    """
    rows = _build_parameter_rows(run, determined, graph, converged)
    # Only generated data have true values; otherwise the declared values are printed.
    reference = "true" if run.truth else "declared"
    header = ["parameter", "learned" if converged else "so far", reference, ""]
    columns = [k for k in range(4) if k < 2 or any(row[k] for row in rows)]
    cells = [[row[k] for k in columns] for row in [header, *rows]]
    sentences = determined.sentences(graph.outputs) if determined else []
    lines = [
        *_format_losses(run),
        *_format_validation_losses(run),
        *([run.reason] if run.stopped == "patience" else []),
        *_suggest_longer_training(run, converged),
        *_format_worker_record(run),
        "",
        table(
            cells[0], cells[1:], left=[k for k, column in enumerate(columns) if column in (0, 3)]
        ),
        *([""] if sentences else []),
        *sentences,
    ]
    return "\n".join(lines)


def _format_losses(run: TrainingRun) -> list[str]:
    """Format the initial and final losses, the numbers of epochs and steps, and the settings."""
    settings = run.settings
    held_out = isinstance(settings["validation"], float)
    samples = settings["samples"] - (settings["validation_samples"] if held_out else 0)
    fraction = ""
    if run.start_loss > 0 and run.loss >= 0:
        fraction = f" ({format_number(run.loss / run.start_loss, 2)} of the start)"
    choices = ", ".join(f"{name} {settings[name]}" for name in ("method", "engine", "optimizer"))
    lines = [
        f"loss {format_number(run.start_loss)} -> {format_number(run.loss)}{fraction}",
        f"{pluralize(run.epochs, 'epoch')}, {pluralize(run.steps, 'step')} over"
        f" {pluralize(samples, 'sample')},"
        f" {run.seconds:.3f} s; {choices}",
    ]
    if run.penalty:
        lines.append(f"regularizers add {format_number(run.penalty)} to the loss")
    return lines


def _build_parameter_rows(
    run: TrainingRun, determined: Identifiability | None, graph: ExpressionGraph, converged: bool
) -> list[list[str]]:
    """Return a table row for each parameter and each identifiable combination of parameters."""
    undetermined = determined.undetermined() if determined else ()
    declared = run.parameters.keys() - graph.initializers.keys()
    reference_values = run.truth or {
        n: v for n, v in graph.point(needed=()).items() if n in declared
    }
    both = run.parameters, reference_values
    learned, reference = (split_arrays(values, run.shapes) for values in both)
    rows = []
    for name, shape in run.shapes.items():
        names = tuple(elements(name, shape))
        if len(names) <= _MAX_ROWS:
            for element in names:
                remark = "not determined by itself" if element in undetermined else ""
                pair = (learned[element], reference.get(element))
                rows.append([element, *map(format_number, pair), remark])
            continue
        norms = (float(np.linalg.norm(values[name])) if name in values else None for values in both)
        free = sum(element in undetermined for element in names)
        remark = f"{free} of {len(names)} not determined by themselves" if free else ""
        rows.append([f"norm of {name}{format_shape(shape)}", *map(format_number, norms), remark])
    for combination in determined.determined if determined else ():
        sums = ["", ""]
        for k, values in enumerate((learned, reference)):
            if combination.keys() <= values.keys():
                sums[k] = format_number(_combine(combination, values))
        remark = "determined" if converged else "determined, not yet reached"
        rows.append([format_combination(combination), *sums, remark])
    return rows


def _combine(combination: Mapping[str, float], values: Mapping[str, float]) -> float:
    """Return a linear combination of values; 0 if it is 0 up to rounding errors.

    >>> _combine({"w": 1.0, "b": 0.5}, {"w": 0.1 + 0.2, "b": -0.6})
    0.0
    """
    terms = [coefficient * values[name] for name, coefficient in combination.items()]
    total = sum(terms)
    return 0.0 if abs(total) <= 1e-14 * sum(map(abs, terms)) else total


def _suggest_longer_training(run: TrainingRun, converged: bool) -> list[str]:
    """Return the lines of a hint if training ended before the loss was near its minimum."""
    if converged or run.stopped != "finished" or not run.steps:
        return []
    rate = format_number(run.settings["learning_rate"], 3)
    return [
        "not converged: the loss can still fall by more than 20 %",
        f"hint: train longer (--epochs {10 * run.epochs}), or change --learning-rate (now {rate})"
        " or --batch-size",
    ]


def _format_worker_record(run: TrainingRun) -> list[str]:
    """Format a summary and a timeline of a run with multiple workers."""
    if not run.team:
        return []
    from cgprimer.training.distributed.worker_record import (
        format_timeline,
        record_of,
        summarize_record,
    )

    record = record_of(run)
    return ["", *summarize_record(record, run.steps), "", *format_timeline(record)]


def _format_validation_losses(run: TrainingRun) -> list[str]:
    """Format the last and the minimum validation loss."""
    losses, samples = run.validation_losses, run.settings["validation_samples"]
    if not (losses and samples):
        return []
    over = f"over {samples:,} samples"
    finite = [(loss, epoch) for epoch, loss in enumerate(losses, start=1) if isfinite(loss)]
    if not finite:
        return [
            f"no finite validation loss {over}: the graph or the loss is not finite at some samples"
        ]
    least, epoch = min(finite)
    last = f"validation loss {format_number(losses[-1])} {over}"
    those = "; its parameters are the result" if run.best_epoch else ""
    return [f"{last}, minimum {format_number(least)} after epoch {epoch:,}{those}"]


def format_score(score: Score, samples: str = "samples") -> list[str]:
    """Format the loss, R^2 and, for classes, accuracy and confusion matrix, as text."""
    r2 = "" if np.isnan(score.r2) else f", R^2 {format_number(score.r2)}"
    lines = [f"loss {format_number(score.loss)} over {score.samples:,} {samples}{r2}"]
    if (confusion := score.confusion) is None:
        return lines
    correct = int(np.trace(confusion.counts))
    accuracy = format_number(correct / score.samples)
    lines += [f"accuracy {accuracy}: {correct:,} of {score.samples:,} correct", ""]
    labels = [
        label if isinstance(label, str) else format_number(label) for label in confusion.labels
    ]
    rows = [
        [label, *map(str, counts)]
        for label, counts in zip(labels, confusion.counts.tolist(), strict=True)
    ]
    return [*lines, table(["true, predicted:", *labels], rows)]
