"""``cgprimer train``: the main job."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import click
import numpy as np

from cgprimer.analysis.tables import table
from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import echo_json, graph_command, named_after, note, progress_bar
from cgprimer.cli.options import ENGINE, JSON, SAMPLING, TRUTH, is_given, method_lines, own_options
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.primitives.structural import shape_text
from cgprimer.core.tape.scalars import apart, elements
from cgprimer.data import Dataset, make_dataset
from cgprimer.errors import NonFiniteError, TrainingError
from cgprimer.files import check_writable
from cgprimer.number_format import number
from cgprimer.training.checkpoint import load_run, run_as_dict, save_run
from cgprimer.training.identifiability import Identifiability, combination_text, identifiability
from cgprimer.training.loop import train
from cgprimer.training.runs import TrainingRun
from cgprimer.training.settings import SETTINGS, checked, option_lines

_MOST_ROWS = 12  # numbers of an array that are shown one by one; of larger ones the norm is
_RECORDS = 128  # of the parameters in a run of one epoch: nothing beside the start of a process
_LONG = (
    "state",
    "step_losses",
    "recorded_steps",
    "recorded_parameters",
    "steps_apart",
    "epoch_total",
)  # not in --json
_DATA = ("data", "samples", "seed", "low", "high", "noise", "validation")  # where they come from
_CHECKS: dict[str, Any] = {name: partial(checked, name) for name in SETTINGS}


def _validation(value: str | None) -> str | float | None:
    try:
        share = None if value is None else float(value)
    except ValueError:
        return value
    if share is not None and not 0 < share < 1:
        raise click.BadParameter(f"{value} is no share of the samples, which lies between 0 and 1")
    return share


@graph_command(
    """\
--data PATH  A .csv or .npz file; without it data are made from the true values.
--validation SHARE|PATH  Samples that are not trained on, whose loss is taken after each epoch: a
  share of the data, such as 0.2, or a file of their own.""",
    SAMPLING,
    TRUTH,
    "--start NAME=VALUE,...  Start values; the others are drawn from the seed.",
    option_lines(),
    method_lines("reverse"),
    ENGINE,
    "--plot PATH  Draw the loss as .png, .svg or .pdf.",
    "--save PATH  Write the run as JSON.",
    "--resume PATH  Take up a run that --save, or Ctrl-C, has written.",
    JSON,
    validation=_validation,
    **_CHECKS,
)
def command(
    graph: ExpressionGraph,
    truth: dict[str, float],
    start: dict[str, float],
    plot: str | None,
    save: str | None,
    resume: str | None,
    as_json: bool,
    method: str,
    **settings: Any,
) -> None:
    """Learn a graph's parameters from data.

    \b
    Examples:
      cgprimer train lecture
      cgprimer train lecture --plot loss.png --save run.json
      cgprimer train lecture --data lecture.csv --optimizer sgd --learning-rate 1e-4
      cgprimer train lecture --batch-size 1 --epochs 1
      cgprimer train lecture --samples 300 --noise 20 --validation 0.3 --save run.json
      cgprimer train lecture --resume run.json --epochs 60

    Prints what was learnt beside the true values, or beside those that the graph declares where
    the data are your own, and says which parameters the data cannot determine.
    Ctrl-C ends the run and saves what has been learnt.
    """
    options = own_options(method, settings)
    if plot:
        from cgprimer.pictures.saving import check_picture_path

        check_picture_path(Path(plot))
    if save:
        check_writable(save)
    earlier = load_run(resume, graph) if resume else None
    if earlier is not None:
        if start:
            raise click.UsageError("--resume goes on from the run's own values: leave --start out")
        _as_the_run_began(earlier, settings)
    origin = {name: settings.pop(name) for name in _DATA}
    dataset, others = _data(graph, origin, truth)
    failure = None
    try:
        with progress_bar("training") as on_progress:
            run = train(
                graph,
                dataset,
                method=method,
                seed=origin["seed"],
                start=start,
                validation=others,
                short_run_records=_RECORDS,
                resume=earlier,
                on_progress=on_progress,
                **settings,
                **options,
            )
    except NonFiniteError as error:
        if not (save and isinstance(error.run, TrainingRun)):
            raise
        run, failure = error.run, error
    run.settings |= {**origin, "samples": len(dataset)}
    keep = Path(save) if save else named_after(graph, ".run.json")
    if save or run.interrupted:
        save_run(run, keep, graph)
    if failure is not None:
        note(f"saved the run up to the last finite step as {save}")
        raise failure
    if plot and run.step_losses:
        from cgprimer import plot as plots
        from cgprimer.pictures.saving import save_figure

        title = f"Mean loss, {Path(graph.source.name).stem}"
        save_figure(plots.loss({"training": run}, title=title), Path(plot))
    found = identifiability(graph, dataset, run.parameters)
    if as_json:
        result = {k: v for k, v in run_as_dict(run, graph).items() if k not in _LONG}
        if found is not None:
            result["identifiability"] = asdict(found)
            del result["identifiability"]["parameters"]
        echo_json(result)
    else:
        click.echo(_report(run, found, graph))
    for path in filter(None, [keep if save or run.interrupted else None, plot]):
        note(f"wrote {path}")
    if not graph.inputs:
        note("note: the graph has no inputs, so all samples are alike")
    if 0 < run.start_loss < run.loss:
        note("note: the loss has grown; try a smaller learning rate (--learning-rate)")
    if run.interrupted:
        note(f"interrupted at step {run.steps:,}; go on with --resume {keep}")
        sys.exit(INTERRUPTED)
    if run.stopped == "diverged":
        raise TrainingError(f"training diverged: {run.reason}")


def _as_the_run_began(earlier: TrainingRun, settings: dict[str, Any]) -> None:
    """Fill in what the command line leaves open with what the saved run was given."""
    saved = earlier.settings
    settings |= {n: saved[n] for n in settings if n in saved and not is_given(n)}
    if earlier.epochs >= settings["epochs"]:
        raise click.UsageError(
            f"the run has done {earlier.epochs:,} epochs already; with --epochs say how many it"
            f" shall have in all: more than that, not {settings['epochs']:,}"
        )
    for name in _DATA:
        if name != "samples" and settings[name] != saved.get(name, settings[name]):
            note(f"note: the run began with other data ({name} differs): losses do not compare")


def _data(
    graph: ExpressionGraph, origin: dict[str, Any], truth: dict[str, float]
) -> tuple[Dataset, Dataset | float | None]:
    """Data from a file, or made from the true values; others to validate with, or their share."""
    load = partial(Dataset.load, inputs=graph.inputs, targets=graph.outputs)
    others = origin["validation"] or None  # 0 in a saved run: none
    others = load(others) if isinstance(others, str) else others
    if origin["data"] is None:
        drawn = {name: origin[name] for name in _DATA if name not in ("data", "validation")}
        return make_dataset(graph, truth=truth, **drawn), others
    if truth:
        raise click.UsageError("--truth makes data, --data reads them: give one of the two")
    return load(origin["data"]), others


def _report(run: TrainingRun, found: Identifiability | None, graph: ExpressionGraph) -> str:
    undetermined = found.undetermined() if found else ()
    # Only data that were made have a truth; beside others stands what the graph declares.
    word = "true" if run.truth else "declared"
    known = run.truth or {n: v for n, v in graph.point(needed=()).items() if n in run.parameters}
    learnt, beside = (apart(of, run.shapes) for of in (run.parameters, known))
    rows = []
    for name, shape in run.shapes.items():
        each = tuple(elements(name, shape))
        if len(each) <= _MOST_ROWS:
            for one in each:
                remark = "not determined by itself" if one in undetermined else ""
                rows.append([one, number(learnt[one]), number(beside.get(one)), remark])
            continue
        norms = (
            float(np.linalg.norm(of[name])) if name in of else None
            for of in (run.parameters, known)
        )
        free = sum(one in undetermined for one in each)
        remark = f"{free} of {len(each)} not determined by themselves" if free else ""
        rows.append([f"norm of {name}{shape_text(shape)}", *map(number, norms), remark])
    for combination in found.determined if found else ():
        sums = ["", ""]
        for k, values in enumerate((learnt, beside)):
            if combination.keys() <= values.keys():
                sums[k] = number(sum(c * values[n] for n, c in combination.items()))
        rows.append([combination_text(combination), *sums, "determined"])
    width = 4 if any(row[3] for row in rows) else 3
    header = ["parameter", "learnt", word, ""]
    comparable = run.start_loss > 0 and run.loss >= 0
    share = f" ({number(run.loss / run.start_loss, 2)} of the start)" if comparable else ""
    settings = run.settings
    shared = isinstance(settings["validation"], float)  # a share of the data is not trained on
    samples = settings["samples"] - (settings["validation_samples"] if shared else 0)
    how = ", ".join(f"{name} {settings[name]}" for name in ("method", "engine", "optimizer"))
    sentences = found.sentences(graph.outputs) if found else []
    lines = [
        f"loss {number(run.start_loss)} -> {number(run.loss)}{share}",
        f"{run.epochs:,} epochs, {run.steps:,} steps over {samples:,} samples,"
        f" {run.seconds:.3f} s; {how}",
        *_validation_lines(run),
        "",
        table(header[:width], [row[:width] for row in rows], left=(0, 3)),
        *([""] if sentences else []),
        *sentences,
    ]
    return "\n".join(lines)


def _validation_lines(run: TrainingRun) -> list[str]:
    losses, samples = run.validation_losses, run.settings["validation_samples"]
    if not (losses and samples):
        return []
    over = f"over {samples:,} other samples"
    finite = [(loss, epoch) for epoch, loss in enumerate(losses, start=1) if isfinite(loss)]
    if not finite:
        return [f"no finite validation loss {over}: some lie where the graph or the loss has none"]
    least, epoch = min(finite)
    last = f"validation loss {number(losses[-1])} {over}"
    return [f"{last}, least {number(least)} after epoch {epoch:,}"]
