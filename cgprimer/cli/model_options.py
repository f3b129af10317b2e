"""Options of commands that train several models: further graphs, and networks by their sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgprimer import networks
from cgprimer.cli.common import graph_file
from cgprimer.cli.grouped_help import MODEL, combine_options, option
from cgprimer.cli.option_values import NAMES
from cgprimer.cli.shared_options import is_given, refuse_generation_options
from cgprimer.cli.training_data import load_or_generate_data
from cgprimer.core.graph.loading import load
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Blocks, Dataset

model_options = combine_options(
    option("--graphs", group=MODEL, **NAMES, help="Additional graphs to train on the same data."),
    option(
        "--sizes",
        group=MODEL,
        metavar="SIZE,...",
        multiple=True,
        help="Layer sizes of multilayer perceptrons to train instead of FILE, such as"
        " 2-4-1,2-16-1.",
    ),
    option(
        "--activation",
        group=MODEL,
        metavar="NAME",
        default="tanh",
        help="Activation function of the hidden units of --sizes.",
    ),
)
"""The options ``--graphs``, ``--sizes`` and ``--activation``."""


def collect_models(
    graph: ExpressionGraph | None, graphs: tuple[str, ...], sizes: tuple[str, ...], activation: str
) -> dict[str, ExpressionGraph]:
    """Return the graphs to train, keyed by name; empty if FILE is the only graph to train.

    Raises:
        UsageError: two graphs have the same name, layer sizes are invalid, or no graph is given.
    """
    if not sizes and is_given("activation"):
        raise click.UsageError("--activation requires --sizes")
    layers = [one.strip() for text in sizes for one in text.split(",") if one.strip()]
    models = {one: networks.mlp(one, activation=activation) for one in layers}
    named_graphs = [] if graph is None or layers else [(_build_graph_name(graph), graph)]
    named_graphs += [(Path(one).stem, load(one)) for one in graphs]
    for name, one in named_graphs:
        if name in models:
            raise UsageError(f"two graphs have the name {name!r}", hint="rename one of the files")
        models[name] = one
    if not models:
        raise click.UsageError("missing graph: pass a FILE (- for standard input) or -e TEXT")
    return models if layers or graphs else {}


def _build_graph_name(graph: ExpressionGraph) -> str:
    """Return the file name of a graph without its extension, or "graph" without a file."""
    file = graph_file(graph)
    return "graph" if file is None else file.stem


def load_model_data(
    graph: ExpressionGraph | None,
    models: dict[str, ExpressionGraph],
    origin: dict[str, Any],
    truth: dict[str, float],
    loss: str | list[str],
    allowed: str = "",
) -> tuple[ExpressionGraph, Dataset | Blocks, Dataset | Blocks | float | None]:
    """Load or generate data for several models; also return the graph that names the columns.

    Without a FILE the last column of the data is the target and all others are inputs.

    Raises:
        UsageError: there is neither a FILE nor data.
    """
    if graph is not None:
        return graph, *load_or_generate_data(graph, origin, truth, loss, allowed=allowed)
    if origin["data"] is None:
        raise click.UsageError("--sizes requires --data, or a FILE that generates data")
    refuse_generation_options(truth, allowed)
    columns, others = origin["columns"] or None, origin["validation"] or None
    if isinstance(others, str):
        others = Dataset.load(others, columns=columns)
    return next(iter(models.values())), Dataset.load(origin["data"], columns=columns), others
