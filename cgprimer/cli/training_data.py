"""Data of the commands that train: read from a file, or generated from known parameters."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import note
from cgprimer.cli.shared_options import refuse_generation_options
from cgprimer.core.loss_expressions import OUTPUT
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Blocks, Dataset, make_dataset
from cgprimer.training.data.data_sources import list_column_names
from cgprimer.training.losses import DEFAULT, load_samples

#: Arguments of a command that determine its data.
DATA_ARGUMENTS = ("data", "columns", "samples", "seed", "low", "high", "noise", "validation")


def load_or_generate_data(
    graph: ExpressionGraph,
    arguments: dict[str, Any],
    truth: dict[str, float],
    loss: str | list[str] = DEFAULT,
    *,
    allowed: str = "",
) -> tuple[Dataset | Blocks, Dataset | Blocks | float | None]:
    """Load or generate data; also return the validation data or the fraction to hold out.

    Args:
        graph: the graph whose inputs, outputs and loss determine the columns.
        arguments: the values of :data:`DATA_ARGUMENTS`.
        truth: true values of parameters, for generated data.
        loss: a loss, or several losses whose columns are read.
        allowed: an option of generated data that is also valid for data from a file.
    """
    validation = arguments["validation"] or None  # a saved run has 0 for no validation
    columns = arguments["columns"]
    if isinstance(validation, str):
        validation = _load_data(graph, validation, loss, columns)
    if arguments["data"] is not None:
        refuse_generation_options(truth, allowed)
        return _load_data(graph, arguments["data"], loss, columns), validation
    if columns and not isinstance(arguments["validation"], str):
        raise click.UsageError("--columns requires --data")
    generation = {
        name: arguments[name]
        for name in DATA_ARGUMENTS
        if name not in ("data", "columns", "validation")
    }
    targets = loss not in (OUTPUT, [OUTPUT])
    return make_dataset(graph, truth=truth, targets=targets, **generation), validation


def _load_data(
    graph: ExpressionGraph, path: str, loss: str | list[str], columns: dict[str, str]
) -> Dataset | Blocks:
    """Load the data columns that a graph and its loss require."""
    parameters = [name for name in list_column_names(path, columns) if name in graph.parameters]
    if parameters:
        note(
            f"note: column {parameters[0]} is ignored because {parameters[0]} is a parameter;"
            f" declare 'input {parameters[0]}' in the graph to use it"
        )
    return load_samples(graph, path, loss, columns)
