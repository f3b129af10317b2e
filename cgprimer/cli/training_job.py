"""The work of ``cgprimer train``: start or resume a run, save it, and print the results."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import check_outputs, echo_json, note, progress_bar
from cgprimer.cli.run_output import RunWriter, catch_interrupts
from cgprimer.cli.shared_options import METHOD_OPTION_NAMES, is_given, take_method_options
from cgprimer.cli.training_data import DATA_ARGUMENTS, load_or_generate_data
from cgprimer.cli.training_report import format_run, format_score
from cgprimer.core.loss_expressions import OUTPUT
from cgprimer.errors import NonFiniteError, TrainingError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.checkpoint import load_run
from cgprimer.training.convergence import has_converged
from cgprimer.training.data import Blocks, Dataset, normalize_data
from cgprimer.training.identifiability import identifiability
from cgprimer.training.loop import train
from cgprimer.training.run_directory import CONFIG, LOSS, METRICS, PARAMETERS
from cgprimer.training.runs import RUN, TrainingRun, run_as_dict

_MAX_RECORDS = 128  # parameter records of a run of one epoch; recording them takes about 4 ms
_NOT_PRINTED = (  # keys of a saved run that --json leaves out
    "state", "step_losses", "recorded_steps", "recorded_parameters", "steps_apart", "epoch_total",
    "team",
)  # fmt: skip
Data = Dataset | Blocks


@dataclass(frozen=True)
class TrainingOutputs:
    """The options of ``cgprimer train`` for output files and printed results."""

    plot: str | None
    dark: bool
    save: str | None
    directory: str | None
    resume: str | None
    force: bool
    as_json: bool


def run_training_job(
    graph: ExpressionGraph | None,
    truth: dict[str, float],
    start: dict[str, float],
    outputs: TrainingOutputs,
    settings: dict[str, Any],
) -> None:
    """Run ``cgprimer train``: load data, train, save the run, and print the results.

    Raises:
        TrainingError: the run diverged.
    """
    given_method_options = {name: settings[name] for name in METHOD_OPTION_NAMES if is_given(name)}
    method_options = take_method_options(settings["method"], settings)
    earlier = load_run(outputs.resume, graph) if outputs.resume else None
    graph = graph or (earlier.graph if earlier else None)
    if graph is None:
        raise click.UsageError("missing graph: pass a FILE (- for standard input) or -e TEXT")
    if earlier is not None:
        outputs = _resume_in_directory(outputs, start)
        method_options = _adopt_settings(earlier, settings, method_options, outputs)
        start, truth = {}, truth or ({} if settings["data"] else earlier.truth)
    check_outputs(
        outputs.force,
        outputs.save,
        plot=outputs.plot,
        folder=outputs.directory,
        resume=outputs.resume,
    )
    origin = {name: settings.pop(name) for name in DATA_ARGUMENTS}
    dataset, validation = load_or_generate_data(graph, origin, truth, settings["loss"])
    writer = RunWriter(graph, outputs.save, outputs.directory, origin)
    directory = outputs.directory
    if directory and (outputs.force or not Path(directory, CONFIG).exists()):
        configuration = {**origin, **settings, **given_method_options}
        writer.write_configuration(configuration | {"truth": truth, "start": start})
    arguments = settings | method_options | {
        "start": start,
        "validation": validation,
        "resume": earlier,
        "seed": origin["seed"],
    }  # fmt: skip
    run = _train_and_save(graph, dataset, arguments, writer, outputs.force)
    if isinstance(validation, float):
        validation = dataset.split(validation, origin["seed"])[1]
    _print_results(run, graph, dataset, validation, outputs.as_json)
    writer.draw_loss(run, outputs.plot, outputs.dark)
    _print_notes(run, graph, writer)
    if run.stopped == "diverged":
        raise TrainingError(f"training diverged: {run.reason}")


def _train_and_save(
    graph: ExpressionGraph,
    dataset: Data,
    arguments: dict[str, Any],
    writer: RunWriter,
    force: bool,
) -> TrainingRun:
    """Train a graph and save the run, even after Ctrl-C or an error.

    Raises:
        TrainingError: training failed; the run up to the failure is saved if a file is given.
    """
    failure = None
    with catch_interrupts() as ignore_interrupts:
        try:
            run = _train(graph, dataset, arguments, writer)
        except TrainingError as error:
            if not (writer.has_target and isinstance(error.run, TrainingRun)):
                raise
            run, failure = error.run, error
        ignore_interrupts()
        writer.finish(run, force)
    if failure is not None:
        last = "last finite step" if isinstance(failure, NonFiniteError) else "last step"
        for path in writer.written:
            note(f"saved the run up to the {last} as {path}")
        raise failure
    return run


def _train(
    graph: ExpressionGraph, dataset: Data, arguments: dict[str, Any], writer: RunWriter
) -> TrainingRun:
    """Train with a progress bar; return a resumed run unchanged if it is already complete."""
    earlier: TrainingRun | None = arguments["resume"]
    if earlier is not None and earlier.epochs == arguments["epochs"]:
        return earlier
    with progress_bar("training") as on_progress:
        return train(
            graph,
            dataset,
            on_progress=on_progress,
            on_epoch=writer.write_epoch if writer.folder else None,
            on_checkpoint=writer.save_checkpoint if writer.has_target else None,
            short_run_records=_MAX_RECORDS,
            **arguments,
        )


def _print_results(
    run: TrainingRun,
    graph: ExpressionGraph,
    dataset: Data,
    validation: Data | None,
    as_json: bool,
) -> None:
    """Print the learned parameters, their identifiability and, with metrics, the score."""
    determined = None
    if run.settings["loss"] != OUTPUT:  # without targets the data determine no parameters
        determined = identifiability(graph, normalize_data(dataset, run.scales), run.parameters)
    score = run.score(validation or dataset) if run.settings["metrics"] else None
    converged = run.settings["loss"] == OUTPUT or has_converged(run, graph, dataset)
    if not as_json:
        click.echo(format_run(run, determined, graph, converged=converged))
        if score is not None:
            samples = "validation samples" if validation else "samples"
            click.echo("\n".join(["", *format_score(score, samples)]))
        return
    result = {k: v for k, v in run_as_dict(run, graph).items() if k not in _NOT_PRINTED}
    result["converged"] = converged
    if determined is not None:
        result["identifiability"] = asdict(determined)
        del result["identifiability"]["parameters"]
    if run.team:
        from cgprimer.training.distributed.worker_record import record_as_dict, record_of

        result["team"] = record_as_dict(record_of(run), run.steps)
    if score is not None:
        result["score"] = score.as_dict()
    echo_json(result)


def _print_notes(run: TrainingRun, graph: ExpressionGraph, writer: RunWriter) -> None:
    """Print file names and warnings; exit with an error if the run is incomplete or unsaved."""
    for path in writer.written:
        note(f"wrote {path}")
    if not graph.inputs:
        note("note: the graph has no inputs, so all samples are identical")
    if 0 < run.start_loss < run.loss:
        note("note: the loss increased; try a smaller learning rate (--learning-rate)")
    if writer.error:
        note(f"error: the run was not saved: {writer.error}")
    if run.interrupted:
        note(f"interrupted at step {run.steps:,}{writer.resume_hint()}")
    if run.interrupted or writer.error:
        sys.exit(INTERRUPTED if run.interrupted else 1)


def _resume_in_directory(outputs: TrainingOutputs, start: dict[str, float]) -> TrainingOutputs:
    """Return the output options of a resumed run, which writes to its original folder again.

    Raises:
        click.UsageError: initial values are given.
    """
    source = click.get_current_context().get_parameter_source("start")
    if start and source is ParameterSource.COMMANDLINE:
        raise click.UsageError("--start cannot be used with --resume")
    path = Path(outputs.resume or "")
    if path.name == RUN and path.with_name(CONFIG).is_file():
        return replace(outputs, directory=outputs.directory or os.path.dirname(path) or ".")
    return outputs


def _adopt_settings(
    earlier: TrainingRun,
    settings: dict[str, Any],
    method_options: dict[str, Any],
    outputs: TrainingOutputs,
) -> dict[str, Any]:
    """Use the settings of a saved run, except for settings given on the command line.

    Returns:
        The options of the method.

    Raises:
        click.UsageError: the run has no epochs left, and all of its files are written.
    """
    saved = earlier.settings
    settings |= {name: saved[name] for name in settings if name in saved and not is_given(name)}
    if settings["method"] == saved.get("method"):
        method_options = {**saved.get("options", {}), **method_options}
    complete = earlier.epochs == settings["epochs"] and not _lacks_files(outputs)
    if complete or earlier.epochs > settings["epochs"]:
        raise click.UsageError(
            f"the run already has {earlier.epochs:,} epochs: --epochs is the total number and must"
            f" be larger, got {settings['epochs']:,}"
        )
    for name in DATA_ARGUMENTS:
        before, now = saved.get(name, settings[name]), settings[name]
        if name != "samples" and _remove_folder(now) != _remove_folder(before):
            note(
                f"note: the run was started with different data ({name}); the losses are not"
                " comparable"
            )
    return method_options


def _lacks_files(outputs: TrainingOutputs) -> bool:
    """Return whether requested output files of a complete run are missing."""
    save, resume, directory = outputs.save, outputs.resume or "", outputs.directory
    if outputs.plot or (save and Path(save).resolve() != Path(resume).resolve()):
        return True
    files = (METRICS, PARAMETERS, LOSS)
    return directory is not None and not all(Path(directory, name).is_file() for name in files)


def _remove_folder(value: Any) -> Any:
    """Return the file name of a path without its folder; return non-paths unchanged."""
    return Path(value).name if isinstance(value, str) else value
