"""``cgprimer data``: datasets from graphs, and samples of classes."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import check_outputs, graph_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, POSITIVE_INTEGER
from cgprimer.cli.shared_options import (
    force_option,
    is_given,
    samples_option,
    sampling_options,
    truth_option,
)
from cgprimer.expressions import ExpressionGraph

_CLASSES = "gaussians|moons|spirals|xor|lecture-neurons|lecture-planes"
_OF_GRAPHS = ("low", "high", "truth")


@graph_command(optional=True)
@samples_option
@sampling_options
@truth_option
@option(
    "--classes",
    type=click.Choice(
        ["gaussians", "moons", "spirals", "xor", "lecture-neurons", "lecture-planes"]
    ),
    help="Sample two classes from this distribution; FILE then only names the columns.",
)
@option(
    "--batch-size",
    **POSITIVE_INTEGER,
    help="Batch size for the batch normalization of lecture-neurons (default: all samples).",
)
@option(
    "-o",
    "--output",
    **PATH,
    help="Output file: .csv, .npz or .parquet (default: CSV on standard output).",
)
@force_option
def command(
    graph: ExpressionGraph | None,
    output: str | None,
    force: bool,
    classes: str | None,
    batch_size: int | None,
    **settings: Any,
) -> None:
    """Generate a dataset from a graph with known parameters, or samples of two classes.

    \b
    Examples:
      cgprimer data lecture -o lecture.csv
      cgprimer data lecture --samples 100 --noise 0.1 --seed 7
      cgprimer data -e "xw = k*xa" --truth k=2 --low 0 --high 10 -o line.npz
      cgprimer data --classes moons --samples 200 -o moons.csv
    """
    from cgprimer.training.data import make_dataset
    from cgprimer.training.data.class_samples import make_classes

    output = None if output == "-" else output
    check_outputs(force, output)
    if classes is not None:
        for name in _OF_GRAPHS:
            if is_given(name):
                raise click.UsageError(f"--{name} cannot be used with --classes")
        chosen = {n: settings[n] for n in ("samples", "seed", "noise") if is_given(n)}
        dataset = make_classes(classes, graph, batch_size=batch_size, **chosen)
    elif graph is None:
        raise click.UsageError("missing graph: pass a FILE, -e TEXT or --classes")
    elif batch_size is not None:
        raise click.UsageError("--batch-size requires --classes lecture-neurons")
    else:
        dataset = make_dataset(graph, **settings)
    if output is None:
        click.echo(dataset.to_csv(), nl=False)
    else:
        dataset.save(output)
        note(f"wrote {len(dataset):,} samples to {output}")
