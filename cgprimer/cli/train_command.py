"""``cgprimer train``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from cgprimer.cli.common import graph_command
from cgprimer.cli.configuration import load_configuration
from cgprimer.cli.grouped_help import OUTPUT, option
from cgprimer.cli.option_values import PATH
from cgprimer.cli.shared_options import dark_option, force_option, json_option
from cgprimer.cli.training_options import run_options
from cgprimer.expressions import ExpressionGraph


def _read_file_argument(context: click.Context, _: object, file: str | None) -> str | None:
    """Return the path of a graph file; load a .toml file as configuration instead."""
    if file is None or not file.endswith(".toml"):
        return file
    load_configuration(context, file)
    return None


def _parse_resume_option(context: click.Context, parameter: object, path: str | None) -> str | None:
    """Return the path of the run file to resume; for a folder, also load its configuration."""
    if path is None or not os.path.isdir(path):
        return path
    from cgprimer.training.run_directory import CONFIG
    from cgprimer.training.runs import RUN

    config = Path(path, CONFIG)
    if config.is_file() and not context.default_map:
        load_configuration(context, str(config))
    return str(Path(path, RUN))


@graph_command(optional=True, reader=_read_file_argument)
@run_options()
@option("--plot", group=OUTPUT, **PATH, help="Write a plot of the loss: .png, .svg or .pdf.")
@dark_option
@option("--save", group=OUTPUT, **PATH, help="Save the run as JSON, at checkpoints and at the end.")
@option(
    "--directory",
    group=OUTPUT,
    **PATH,
    help="Folder for the configuration, metrics, run, parameters and plot.",
)
@option(
    "--resume",
    group=OUTPUT,
    metavar="PATH",
    type=click.Path(),
    callback=_parse_resume_option,
    is_eager=True,
    help="Resume the run in this file or folder.",
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
    from cgprimer.cli.training_job import TrainingOutputs, run_training_job

    outputs = TrainingOutputs(plot, dark, save, directory, resume, force, as_json)
    run_training_job(graph, truth, start, outputs, settings)
