"""What is said of a run, and of how well it predicts."""

from __future__ import annotations

from math import isfinite

import numpy as np

from cgprimer.analysis.text_tables import table
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.tapes import elements
from cgprimer.training.identifiability import Identifiability, format_combination
from cgprimer.training.predictions import Score
from cgprimer.training.runs import TrainingRun

_MOST_ROWS = 12  # numbers of an array that are shown one by one; of larger ones the norm is


def report(
    run: TrainingRun,
    found: Identifiability | None,
    graph: ExpressionGraph,
    *,
    converged: bool = True,
) -> str:
    """Return the loss, the parameters next to the true ones, and what the data determine.

    Args:
        run: what is reported.
        found: what the data determine; None leaves it out.
        graph: the graph that was trained.
        converged: whether the loss could hardly fall any more; if not, the values of the
            parameters are not presented as learnt.
    """
    undetermined = found.undetermined() if found else ()
    # Only data that were made have a truth; beside others stands what the graph declares.
    word = "true" if run.truth else "declared"
    declared = run.parameters.keys() - graph.initializers.keys()
    known = run.truth or {n: v for n, v in graph.point(needed=()).items() if n in declared}
    both = run.parameters, known
    learnt, beside = (split_arrays(of, run.shapes) for of in both)
    rows = []
    for name, shape in run.shapes.items():
        each = tuple(elements(name, shape))
        if len(each) <= _MOST_ROWS:
            for one in each:
                remark = "not determined by itself" if one in undetermined else ""
                rows.append(
                    [one, format_number(learnt[one]), format_number(beside.get(one)), remark]
                )
            continue
        norms = (float(np.linalg.norm(of[name])) if name in of else None for of in both)
        free = sum(one in undetermined for one in each)
        remark = f"{free} of {len(each)} not determined by themselves" if free else ""
        rows.append([f"norm of {name}{format_shape(shape)}", *map(format_number, norms), remark])
    for combination in found.determined if found else ():
        sums = ["", ""]
        for k, values in enumerate((learnt, beside)):
            if combination.keys() <= values.keys():
                sums[k] = format_number(sum(c * values[n] for n, c in combination.items()))
        remark = "determined" if converged else "determined, not yet reached"
        rows.append([format_combination(combination), *sums, remark])
    width = 4 if any(row[3] for row in rows) else 3
    header = ["parameter", "learnt" if converged else "so far", word, ""]
    comparable = run.start_loss > 0 and run.loss >= 0
    share = f" ({format_number(run.loss / run.start_loss, 2)} of the start)" if comparable else ""
    settings = run.settings
    shared = isinstance(settings["validation"], float)  # a share of the data is not trained on
    samples = settings["samples"] - (settings["validation_samples"] if shared else 0)
    how = ", ".join(f"{name} {settings[name]}" for name in ("method", "engine", "optimizer"))
    sentences = found.sentences(graph.outputs) if found else []
    lines = [
        f"loss {format_number(run.start_loss)} -> {format_number(run.loss)}{share}",
        f"{run.epochs:,} epochs, {run.steps:,} steps over {samples:,} samples,"
        f" {run.seconds:.3f} s; {how}",
        *([f"regularizers add {format_number(run.penalty)} to that loss"] if run.penalty else []),
        *_validation_lines(run),
        *([run.reason] if run.stopped == "patience" else []),
        *_convergence_lines(run, converged),
        *_team_lines(run),
        "",
        table(header[:width], [row[:width] for row in rows], left=(0, 3)),
        *([""] if sentences else []),
        *sentences,
    ]
    return "\n".join(lines)


def _convergence_lines(run: TrainingRun, converged: bool) -> list[str]:
    """Return what to change where training ended before the loss was near its minimum."""
    if converged or run.stopped != "finished" or not run.steps:
        return []
    rate = format_number(run.settings["learning_rate"], 3)
    return [
        "not converged: the loss can still fall by more than 20 %",
        f"hint: train longer (--epochs {10 * run.epochs}), or change --learning-rate (now {rate})"
        " or --batch-size",
    ]


def _team_lines(run: TrainingRun) -> list[str]:
    if not run.team:
        return []
    from cgprimer.training.distributed.worker_record import (
        format_timeline,
        record_of,
        summarize_record,
    )

    record = record_of(run)
    return ["", *summarize_record(record, run.steps), "", *format_timeline(record)]


def _validation_lines(run: TrainingRun) -> list[str]:
    losses, samples = run.validation_losses, run.settings["validation_samples"]
    if not (losses and samples):
        return []
    over = f"over {samples:,} other samples"
    finite = [(loss, epoch) for epoch, loss in enumerate(losses, start=1) if isfinite(loss)]
    if not finite:
        return [f"no finite validation loss {over}: some lie where the graph or the loss has none"]
    least, epoch = min(finite)
    last = f"validation loss {format_number(losses[-1])} {over}"
    those = ": the parameters are of that one" if run.best_epoch else ""
    return [f"{last}, least {format_number(least)} after epoch {epoch:,}{those}"]


def score_lines(score: Score, of: str = "samples") -> list[str]:
    """How good predictions are: in numbers, and for classes who is taken for whom."""
    r2 = "" if np.isnan(score.r2) else f", R^2 {format_number(score.r2)}"
    said = [f"loss {format_number(score.loss)} over {score.samples:,} {of}{r2}"]
    if (found := score.confusion) is None:
        return said
    right = int(np.trace(found.counts))
    said += [
        f"accuracy {format_number(right / score.samples)}: {right:,} of {score.samples:,} right",
        "",
    ]
    names = [label if isinstance(label, str) else format_number(label) for label in found.labels]
    rows = [[n, *map(str, row)] for n, row in zip(names, found.counts.tolist(), strict=True)]
    return [*said, table(["true, predicted:", *names], rows)]
