"""``cgprimer ensemble``: train an ensemble and measure the error of its average."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cgprimer.analysis.text_tables import table
from cgprimer.cli.common import (
    check_outputs,
    defer_write_errors,
    echo_json,
    graph_command,
    note,
    progress_bar,
)
from cgprimer.cli.grouped_help import option
from cgprimer.cli.model_options import collect_models, load_model_data, model_options
from cgprimer.cli.option_values import PATH, POSITIVE_INTEGER
from cgprimer.cli.shared_options import force_option, json_option, take_method_options
from cgprimer.cli.training_data import DATA_ARGUMENTS
from cgprimer.cli.training_options import run_options
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.training.data import Dataset, require_in_memory
from cgprimer.training.ensembles import Ensemble
from cgprimer.training.losses import DEFAULT
from cgprimer.training.settings import SETTING_NAMES
from cgprimer.training.sweeps import format_cell

_SHARE = 0.25  # fraction of the samples to hold out, without --validation


@graph_command(optional=True)
@run_options(lists=True)
@model_options
@option("--members", **POSITIVE_INTEGER, default=10, help="Number of members of the ensemble.")
@option(
    "--bootstrap/--no-bootstrap",
    default=True,
    help="Train members on bootstrap samples, or on all samples from different initial values.",
)
@option(
    "--jobs", **POSITIVE_INTEGER, help="Number of parallel runs (default: number of CPU cores)."
)
@option("--directory", **PATH, help="Folder in which the runs of the members are saved.")
@force_option
@json_option
def command(
    graph: ExpressionGraph | None,
    truth: dict[str, float],
    graphs: tuple[str, ...],
    sizes: tuple[str, ...],
    activation: str,
    members: int,
    bootstrap: bool,
    jobs: int | None,
    directory: str | None,
    force: bool,
    as_json: bool,
    method: str,
    **settings: Any,
) -> None:
    """Train an ensemble on bootstrap samples and average its predictions (bagging).

    \b
    Examples:
      cgprimer ensemble lecture --samples 300 --noise 5
      cgprimer ensemble lecture --members 25 --samples 300 --noise 5 --epochs 50
      cgprimer ensemble lecture --sizes 1-4-1,1-8-1 --samples 300
      cgprimer ensemble lecture --sizes 1-4-1 --no-bootstrap --samples 300

    Prints the out-of-bag error of the average. On the samples of --validation (default: a quarter
    of the data), prints the error v of a member, the covariance c of the errors of two members,
    and the expected error v/K + c(K-1)/K next to the measured error of the average. If all members
    have the same graph, also prints the error of one model with their mean parameters. With
    several graphs, sizes or values of a setting, the members take turns in using them.
    """
    from cgprimer.training.ensembles import ensemble

    models = collect_models(graph, graphs, sizes, activation)
    options = take_method_options(method, settings)
    lists = {n: settings.pop(n) for n in SETTING_NAMES if isinstance(settings.get(n), list)}
    settings |= {name: values[0] for name, values in lists.items() if len(values) == 1}
    vary = {"graph": models} if models else {}
    vary |= {name: values for name, values in lists.items() if len(values) > 1}
    origin = {name: settings.pop(name) for name in DATA_ARGUMENTS}
    check_outputs(force, folder=directory)
    loss = settings.get("loss", DEFAULT)
    graph, dataset, others = load_model_data(graph, models, origin, truth, loss)
    dataset = require_in_memory(dataset, "samples are drawn from all data")
    if others is None or isinstance(others, float):
        dataset, others = dataset.split(others or _SHARE, origin["seed"])
    others = require_in_memory(others, "errors are taken over all samples")
    if directory:  # before training, so that an invalid folder wastes no time
        Path(directory).mkdir(parents=True, exist_ok=True)
    with progress_bar("members") as on_run:
        bag = ensemble(
            graph, dataset, members=members, vary=vary, bootstrap=bootstrap, seed=origin["seed"],
            jobs=jobs, on_run=on_run, method=method, **settings, **options,
        )  # fmt: skip

    def save_runs() -> None:
        """Save the run of each ensemble member in the folder."""
        if directory:
            for k, run in enumerate(bag.runs, start=1):
                run.save(Path(directory, f"member-{k}.json"))

    with defer_write_errors(save_runs):
        result = _compute_errors(bag, others, bootstrap)
        echo_json(result) if as_json else click.echo(_format_errors(bag, result))
    if directory:
        note(f"wrote {pluralize(len(bag.runs), 'run')} to {directory}")


def _compute_errors(bag: Ensemble, others: Dataset, bootstrap: bool) -> dict[str, Any]:
    """Compute the errors of the ensemble members and of their average on held-out samples."""
    spread = bag.spread(others)
    try:
        averaged = bag.averaged_weights_error(others)
    except UsageError:  # different graphs
        averaged = None
    return {
        "losses": [run.loss for run in bag.runs],
        "members_varied": list(bag.varied),
        "squared_errors": bag.squared_errors(others),
        "out_of_bag": bag.out_of_bag() if bootstrap else None,
        "others": len(others),
        **asdict(spread),
        "expected": spread.expected,
        "averaged_weights": averaged,
    }


def _format_errors(bag: Ensemble, result: dict[str, Any]) -> str:
    """Format the errors of an ensemble and its members as text."""
    count, samples = len(bag.runs), f"{len(bag.data):,} samples"
    lines = [f"{pluralize(count, 'member')}, each on all {samples}"]
    if (unseen := result["out_of_bag"]) is not None:
        classes = (
            f", accuracy {format_number(unseen['accuracy'], 4)}" if "accuracy" in unseen else ""
        )
        lines = [
            f"{pluralize(count, 'member')}, each on {samples}, sampled with replacement",
            f"out of bag: mean squared error {format_number(unseen['squared-error'])}{classes}"
            f" over {unseen['samples']:,} samples",
        ]
    heading = f"{result['others']:,} new samples"
    if names := [*bag.varied[0]]:
        rows = [
            [str(k), *(format_cell(one[name]) for name in names), format_number(error)]
            for k, (one, error) in enumerate(
                zip(bag.varied, result["squared_errors"], strict=True), start=1
            )
        ]
        titles = ["member", *(name.replace("_", " ") for name in names), "mean squared error"]
        lines += ["", table(titles, rows, left=tuple(range(1, len(names) + 1)))]
    rows = [
        ["v", format_number(result["variance"]), "mean squared error of a member"],
        ["c", format_number(result["covariance"]), "mean product of the errors of two members"],
        [
            "v/K + c(K-1)/K",
            format_number(result["expected"]),
            f"expected error of the average for K = {count}",
        ],
        ["measured", format_number(result["measured"]), "mean squared error of the average"],
    ]
    if result["averaged_weights"] is not None:
        meaning = "mean squared error of one model with the members' mean parameters"
        rows.append(["averaged weights", format_number(result["averaged_weights"]), meaning])
    return "\n".join([*lines, "", table(["", heading, ""], rows, left=(0, 2))])
