"""``cgprimer ensemble``: bagging, and what averaging gains."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cgprimer.analysis.tables import table
from cgprimer.cli.common import (
    check_outputs,
    echo_json,
    graph_command,
    note,
    progress_bar,
    shown_anyway,
)
from cgprimer.cli.options import FORCE, JSON, own_options
from cgprimer.cli.train import ORIGIN, READERS, data_of, run_options
from cgprimer.core.graph import ExpressionGraph
from cgprimer.data import whole_dataset
from cgprimer.errors import plural
from cgprimer.number_format import number

_SHARE = 0.25  # of the samples, kept to measure with unless others are given


@graph_command(
    run_options(),
    """\
--members 1.. =10  How many runs, each on samples drawn with repeats.
--jobs 1..  How many runs at once (default: as many as there are cores).
--directory PATH  A folder for the members' runs: member-1.json and so on.""",
    FORCE,
    JSON,
    **READERS,
)
def command(
    graph: ExpressionGraph,
    truth: dict[str, float],
    members: int,
    jobs: int | None,
    directory: str | None,
    force: bool,
    as_json: bool,
    method: str,
    **settings: Any,
) -> None:
    """Bagging: train members on bootstrap samples and average them.

    \b
    Examples:
      cgprimer ensemble lecture --samples 300 --noise 5
      cgprimer ensemble lecture --members 25 --samples 300 --noise 5 --epochs 50

    Prints the error of the average on samples that members have not seen, and on those of
    --validation (a quarter of the data unless given) the error v of a member, the covariance c of
    two members' errors, and v/K + c(K-1)/K beside the measured error of the average.
    """
    from cgprimer.training.ensembles import ensemble

    options = own_options(method, settings)
    origin = {name: settings.pop(name) for name in ORIGIN}
    check_outputs(force, folder=directory)
    dataset, others = data_of(graph, origin, truth, settings["loss"])
    dataset = whole_dataset(dataset, "samples are drawn from all data")
    if others is None or isinstance(others, float):
        dataset, others = dataset.split(others or _SHARE, origin["seed"])
    others = whole_dataset(others, "errors are taken over all samples")
    if directory:  # where that is refused, nothing is computed in vain
        Path(directory).mkdir(parents=True, exist_ok=True)
    with progress_bar("members") as on_run:
        bag = ensemble(
            graph, dataset, members=members, seed=origin["seed"], jobs=jobs, on_run=on_run,
            method=method, **settings, **options,
        )  # fmt: skip
    spread, unseen = bag.spread(others), bag.out_of_bag()

    def keep() -> None:
        if directory:
            for k, run in enumerate(bag.runs, start=1):
                run.save(Path(directory, f"member-{k}.json"))

    with shown_anyway(keep):
        if as_json:
            losses = [run.loss for run in bag.runs]
            result = {**asdict(spread), "expected": spread.expected}
            echo_json({"losses": losses, "out_of_bag": unseen, "others": len(others), **result})
        else:
            count = len(bag.runs)
            rows = [
                ["v", number(spread.variance), "mean squared error of a member"],
                ["c", number(spread.covariance), "mean product of the errors of two members"],
                ["v/K + c(K-1)/K", number(spread.expected), f"what is left of v by K = {count}"],
                ["measured", number(spread.measured), "mean squared error of the average"],
            ]
            classes = f", accuracy {number(unseen['accuracy'], 4)}" if "accuracy" in unseen else ""
            click.echo(
                f"{plural(count, 'member')}, each on {len(dataset):,} samples drawn with repeats\n"
                f"out of bag: mean squared error {number(unseen['squared-error'])}{classes}"
                f" over {unseen['samples']:,} samples\n\n"
                + table(["", f"on {len(others):,} others", ""], rows, left=(0, 2))
            )
    if directory:
        note(f"wrote {plural(len(bag.runs), 'run')} to {directory}")
