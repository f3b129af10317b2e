"""``cgprimer train``: the main job."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import check_outputs, echo_json, graph_command, note, progress_bar
from cgprimer.cli.configuration import configure
from cgprimer.cli.grouped_help import OUTPUT, option
from cgprimer.cli.run_output import Kept, interrupted_once
from cgprimer.cli.shared_options import (
    METHOD_OPTION_NAMES,
    dark_option,
    force_option,
    is_given,
    json_option,
    refuse_generation_options,
    take_method_options,
)
from cgprimer.cli.training_options import run_options
from cgprimer.cli.training_report import report, score_lines
from cgprimer.core.loss_expressions import OUTPUT as OUTPUT_LOSS
from cgprimer.errors import NonFiniteError, TrainingError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.checkpoint import load_run
from cgprimer.training.convergence import has_converged
from cgprimer.training.data import Blocks, Dataset, make_dataset, normalize_data
from cgprimer.training.data.data_sources import column_names
from cgprimer.training.identifiability import identifiability
from cgprimer.training.loop import train
from cgprimer.training.losses import DEFAULT, load_samples
from cgprimer.training.run_directory import CONFIG, LOSS, METRICS, PARAMETERS
from cgprimer.training.runs import RUN, TrainingRun, run_as_dict

_RECORDS = 128  # of the parameters in a run of one epoch: nothing beside the start of a process
_LONG = (  # not in --json
    "state", "step_losses", "recorded_steps", "recorded_parameters", "steps_apart", "epoch_total",
    "team",
)  # fmt: skip
ORIGIN = ("data", "columns", "samples", "seed", "low", "high", "noise", "validation")  # of data


def _read_file(context: click.Context, _: object, file: str | None) -> str | None:
    """Return the file of a graph; take defaults from a configuration file."""
    if file is None or not file.endswith(".toml"):
        return file
    configure(context, file)
    return None


def _read_resume(context: click.Context, parameter: object, path: str | None) -> str | None:
    """Return the file of a run; take defaults from the configuration if the path is a folder."""
    if path is None or not os.path.isdir(path):
        return path
    config = Path(path, CONFIG)
    if config.is_file() and not context.default_map:
        configure(context, str(config))
    return str(Path(path, RUN))


@graph_command(optional=True, reader=_read_file)
@run_options()
@option(
    "--plot",
    group=OUTPUT,
    metavar="PATH",
    type=click.Path(),
    help="Write a plot of the loss as .png, .svg or .pdf.",
)
@dark_option
@option(
    "--save",
    group=OUTPUT,
    metavar="PATH",
    type=click.Path(),
    help="Write the run as JSON, at checkpoints and at the end.",
)
@option(
    "--directory",
    group=OUTPUT,
    metavar="PATH",
    type=click.Path(),
    help="Folder for configuration, metrics, run, parameters and figures.",
)
@option(
    "--resume",
    group=OUTPUT,
    metavar="PATH",
    type=click.Path(),
    callback=_read_resume,
    is_eager=True,
    help="Resume a run from its file or --directory.",
)
@force_option
@json_option
def command(
    graph: ExpressionGraph | None,
    truth: dict[str, float],
    start: dict[str, float],
    plot: str | None,
    dark: bool,
    save: str | None,
    directory: str | None,
    resume: str | None,
    force: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn a graph's parameters from data.

    \b
    Examples:
      cgprimer train lecture --plot loss.png --save run.json
      cgprimer train lecture --data lecture.csv --optimizer sgd --learning-rate 1e-4
      cgprimer train lecture --samples 300 --noise 20 --validation 0.3 --patience 5
      cgprimer train lecture --resume run.json --epochs 60
      cgprimer train lecture --workers 8 --protocol async --simulate

    Prints learned and true parameter values, and names parameters that the data do not determine.
    FILE may be a run.toml, whose keys are these options. Ctrl-C stops the run and saves it.
    """
    chosen = {name: settings[name] for name in METHOD_OPTION_NAMES if is_given(name)}
    own = take_method_options(settings["method"], settings)
    earlier = load_run(resume, graph) if resume else None
    graph = earlier.graph if graph is None and earlier is not None else graph
    if graph is None:
        raise click.UsageError("which graph? Give a FILE (- for standard input) or -e TEXT")
    if earlier is not None and resume:
        source = click.get_current_context().get_parameter_source("start")
        if start and source is ParameterSource.COMMANDLINE:
            raise click.UsageError("--resume goes on from the run's own values: leave --start out")
        if Path(resume).name == RUN and Path(resume).with_name(CONFIG).is_file():
            directory = directory or os.path.dirname(resume) or "."
        own = _as_the_run_began(
            earlier, settings, own, _lacks_outputs(directory, plot, save, resume)
        )
        start, truth = {}, truth or ({} if settings["data"] else earlier.truth)
    check_outputs(force, save, plot=plot, folder=directory, resume=resume)
    origin = {name: settings.pop(name) for name in ORIGIN}
    dataset, others = data_of(graph, origin, truth, settings["loss"])
    kept = Kept(graph, save, directory, origin)
    if directory and (force or not Path(directory, CONFIG).exists()):
        kept.configure({**origin, **settings, **chosen, "truth": truth, "start": start})
    given: dict[str, Any] = {"start": start, "validation": others, "resume": earlier}
    given |= {"seed": origin["seed"], "short_run_records": _RECORDS}
    given |= {"on_epoch": kept.epoch if directory else None}
    given |= {"on_checkpoint": kept.checkpoint if save or directory else None}
    failure = None
    with interrupted_once() as hold:
        try:
            run = _trained(graph, dataset, given | settings | own)
        except TrainingError as error:
            if not ((save or directory) and isinstance(error.run, TrainingRun)):
                raise
            run, failure = error.run, error
        hold()
        kept.end(run, force)
    if failure is not None:
        for path in kept.written:
            last = "last finite step" if isinstance(failure, NonFiniteError) else "last step"
            note(f"saved the run up to the {last} as {path}")
        raise failure
    if isinstance(others, float):
        others = dataset.split(others, origin["seed"])[1]
    _say(run, graph, dataset, others, as_json)
    kept.draw(run, plot, dark)
    for path in kept.written:
        note(f"wrote {path}")
    if not graph.inputs:
        note("note: the graph has no inputs, so all samples are alike")
    if 0 < run.start_loss < run.loss:
        note("note: the loss has grown; try a smaller learning rate (--learning-rate)")
    if kept.failed:
        note(f"error: the run is not saved: {kept.failed}")
    if run.interrupted:
        note(f"interrupted at step {run.steps:,}{kept.go_on()}")
    if run.interrupted or kept.failed:
        sys.exit(INTERRUPTED if run.interrupted else 1)
    if run.stopped == "diverged":
        raise TrainingError(f"training diverged: {run.reason}")


def _say(
    run: TrainingRun,
    graph: ExpressionGraph,
    dataset: Dataset | Blocks,
    others: Dataset | Blocks | None,
    as_json: bool,
) -> None:
    """Print what was learnt, and how good it is where that was asked for."""
    found = None  # what a loss itself does not depend on is no question of data
    if run.settings["loss"] != OUTPUT_LOSS:
        found = identifiability(graph, normalize_data(dataset, run.scales), run.parameters)
    score = run.score(others or dataset) if run.settings["metrics"] else None
    converged = run.settings["loss"] == OUTPUT_LOSS or has_converged(run, graph, dataset)
    if not as_json:
        click.echo(report(run, found, graph, converged=converged))
        if score is not None:
            click.echo(
                "\n".join(["", *score_lines(score, "other samples" if others else "samples")])
            )
        return
    result = {k: v for k, v in run_as_dict(run, graph).items() if k not in _LONG}
    result["converged"] = converged
    if found is not None:
        result["identifiability"] = asdict(found)
        del result["identifiability"]["parameters"]
    if run.team:
        from cgprimer.training.distributed.worker_record import record_as_dict, record_of

        result["team"] = record_as_dict(record_of(run), run.steps)
    if score is not None:
        result["score"] = score.as_dict()
    echo_json(result)


def _trained(
    graph: ExpressionGraph, dataset: Dataset | Blocks, settings: dict[str, Any]
) -> TrainingRun:
    """Return the run at its end; one that was killed before its figures has reached it already."""
    earlier: TrainingRun | None = settings["resume"]
    if earlier is not None and earlier.epochs == settings["epochs"]:
        return earlier
    with progress_bar("training") as on_progress:
        return train(graph, dataset, on_progress=on_progress, **settings)


def _lacks_outputs(directory: str | None, plot: str | None, save: str | None, resume: str) -> bool:
    """Return whether a finished run has files left to write."""
    if plot or (save and Path(save).resolve() != Path(resume).resolve()):
        return True
    return directory is not None and not all(
        Path(directory, name).is_file() for name in (METRICS, PARAMETERS, LOSS)
    )


def _as_the_run_began(
    earlier: TrainingRun, settings: dict[str, Any], own: dict[str, Any], lacks_outputs: bool
) -> dict[str, Any]:
    """Fill in what the command line leaves open with what the saved run was given.

    Return the options of the method.

    Raises:
        click.UsageError: the run has no epochs left, and all of its files are written.
    """
    saved = earlier.settings
    settings |= {n: saved[n] for n in settings if n in saved and not is_given(n)}
    if settings["method"] == saved.get("method"):
        own = {**saved.get("options", {}), **own}
    complete = earlier.epochs == settings["epochs"] and not lacks_outputs
    if complete or earlier.epochs > settings["epochs"]:
        raise click.UsageError(
            f"the run has done {earlier.epochs:,} epochs already; with --epochs say how many it"
            f" shall have in all: more than that, not {settings['epochs']:,}"
        )
    for name in ORIGIN:
        if name != "samples" and _named(settings[name]) != _named(saved.get(name, settings[name])):
            note(f"note: the run began with other data ({name} differs): losses do not compare")
    return own


def _named(origin: Any) -> Any:
    """A file by its name alone: its folder is another one, seen from elsewhere."""
    return Path(origin).name if isinstance(origin, str) else origin


def data_of(
    graph: ExpressionGraph,
    origin: dict[str, Any],
    truth: dict[str, float],
    loss: str | list[str] = DEFAULT,
    *,
    allowed: str = "",
) -> tuple[Dataset | Blocks, Dataset | Blocks | float | None]:
    """Data from a file, or made from the true values; others to validate with, or their share.

    They have the columns that the loss needs, or any of several. `allowed` is an option that makes
    data elsewhere, and means something else for data from a file.
    """
    others, columns = origin["validation"] or None, origin["columns"]  # 0 in a saved run: none

    def load(path: str) -> Dataset | Blocks:
        if both := [n for n in column_names(path, columns) if n in graph.parameters]:
            hint = f"'input {both[0]}' in the graph would make it an input"
            note(f"note: {both[0]} is a parameter, and a column that is not used; {hint}")
        return load_samples(graph, path, loss, columns)

    others = load(others) if isinstance(others, str) else others
    if origin["data"] is None:
        if columns and not isinstance(origin["validation"], str):
            raise click.UsageError("--columns is about a file: give one with --data")
        drawn = {n: origin[n] for n in ORIGIN if n not in ("data", "columns", "validation")}
        return make_dataset(
            graph, truth=truth, targets=loss not in (OUTPUT_LOSS, [OUTPUT_LOSS]), **drawn
        ), others
    refuse_generation_options(truth, allowed)
    return load(origin["data"]), others
