"""``cgprimer sweep``: train with combinations of settings and compare the runs."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import (
    check_outputs,
    echo_json,
    graph_command,
    note,
    progress_bar,
    save_plot,
)
from cgprimer.cli.grouped_help import DATA, option
from cgprimer.cli.model_options import collect_models, load_model_data, model_options
from cgprimer.cli.option_values import (
    NUMBER,
    PATH,
    POSITIVE_INTEGER,
    POSITIVE_INTEGERS,
)
from cgprimer.cli.shared_options import dark_option, force_option, json_option, take_method_options
from cgprimer.cli.training_data import DATA_ARGUMENTS
from cgprimer.cli.training_options import SettingListOption, run_options
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.files import write_atomically
from cgprimer.training.losses import DEFAULT
from cgprimer.training.model_variations import TEST_SHARE
from cgprimer.training.settings import SETTING_NAMES

if TYPE_CHECKING:
    from cgprimer.training.sweeps import Sweep

_DEFAULT_SAMPLES = 10_000
_RUN_LENGTHS = ("epochs", "steps_per_epoch")
_samples_option = option(
    "--samples",
    group=DATA,
    **POSITIVE_INTEGERS,
    help="Numbers of samples to generate (default: 10000); several values vary the size"
    " of the training set.",
)


@graph_command(optional=True)
@run_options(lists=True, samples=_samples_option)
@model_options
@option(
    "--threshold",
    **NUMBER,
    help="Loss to reach; the table counts the steps until then (default: 10 % of the initial"
    " loss).",
)
@option(
    "--jobs", **POSITIVE_INTEGER, help="Number of parallel runs (default: number of CPU cores)."
)
@option("--csv", **PATH, help="Write the table of runs to a CSV file, with all digits.")
@option("--plot", **PATH, help="Write a plot of the losses of all runs.")
@dark_option
@force_option
@json_option
@click.option(
    "--seeds",
    cls=SettingListOption,
    setting="seed",
    type=int,
    help="Random seeds of the initial values and the sample order, but not of the data.",
)
def command(
    graph: ExpressionGraph | None,
    truth: dict[str, float],
    start: dict[str, float],
    samples: tuple[int, ...],
    graphs: tuple[str, ...],
    sizes: tuple[str, ...],
    activation: str,
    seeds: list[int],
    threshold: float | None,
    jobs: int | None,
    csv: str | None,
    plot: str | None,
    dark: bool,
    force: bool,
    as_json: bool,
    method: str,
    **settings: Any,
) -> None:
    """Train a graph with each combination of settings, and compare the runs.

    \b
    Examples:
      cgprimer sweep lecture --optimizer sgd,momentum,adam --learning-rate 1e-4,1e-3,1e-2
      cgprimer sweep lecture --learning-rate 1e-3,1e-2 --batch-size 1,50,all --epochs 10
      cgprimer sweep lecture --optimizer sgd,adam --csv sweep.csv --plot sweep.png
      cgprimer sweep lecture --samples 20,100,500 --noise 5 --batch-size all --epochs 300
      cgprimer sweep lecture --sizes 1-4-1,1-16-1 --samples 500 --validation 0.3

    Separate multiple values of a setting with commas; a single value applies to all runs. All runs
    start with the same parameters and use the samples in the same order, unless the seeds vary.
    Columns of the data are matched with each graph by name, otherwise by position. Without FILE,
    the last column of --data is the target.
    """
    from cgprimer.training.sweeps import sweep

    models = collect_models(graph, graphs, sizes, activation)
    options = take_method_options(method, settings)
    check_outputs(force, csv, plot=plot)
    lists = {n: settings.pop(n) for n in SETTING_NAMES if isinstance(settings.get(n), list)}
    several = len(set(samples)) > 1
    origin = {"samples": _count_samples_to_generate(samples, settings["validation"])}
    origin |= {name: settings.pop(name) for name in DATA_ARGUMENTS if name != "samples"}
    lists |= {"seed": seeds or [origin["seed"]]}
    graph, dataset, others = load_model_data(
        graph, models, origin, truth, lists.get("loss") or DEFAULT, "samples" if several else ""
    )
    every = {name: values[0] for name, values in lists.items() if len(values) == 1}
    vary: dict[str, Any] = {"samples": samples} if several else {}
    vary |= {"graph": models} if models else {}
    vary |= {name: values for name, values in lists.items() if len(values) > 1}
    with progress_bar("sweep") as on_run:
        arguments = {
            "method": method,
            "start": start,
            "validation": others,
            **every,
            **settings,
            **options,
        }
        result = sweep(
            graph, dataset, vary, threshold=threshold, jobs=jobs, on_run=on_run, **arguments
        )
    _print_sweep(result, as_json=as_json)
    if several:
        _note_longer_epochs(result)
    if csv:
        write_atomically(csv, result.to_csv())
    save_plot(plot, "sweep", result, dark=dark)
    for path in filter(None, (csv, plot)):
        note(f"wrote {path}")
    if result.halted:
        note(f"interrupted: {result.halted:,} runs were not started")
        sys.exit(INTERRUPTED)


def _print_sweep(result: Sweep, *, as_json: bool) -> None:
    """Print the runs of a sweep as JSON or as a table."""
    if as_json:
        echo_json({"threshold": result.threshold, "runs": result.rows()})
    else:
        click.echo(result.table())


def _note_longer_epochs(result: Sweep) -> None:
    """Print a note if runs differ in their number of steps per epoch."""
    different = {name: len({r.settings[name] for r in result.runs}) > 1 for name in _RUN_LENGTHS}
    if different["steps_per_epoch"] and not different["epochs"]:
        hint = "use --batch-size all for one step per epoch"
        note(f"note: runs with more samples have more steps per epoch; {hint}")


def _count_samples_to_generate(sizes: tuple[int, ...], validation: str | float | None) -> int:
    """Count the samples to generate for the largest training set and the validation set."""
    if len(set(sizes)) < 2:
        return sizes[0] if sizes else _DEFAULT_SAMPLES
    if isinstance(validation, str):
        return max(sizes)
    total = math.ceil(max(sizes) / (1 - (validation or TEST_SHARE)))
    return total + 1  # because the number of training samples is rounded
