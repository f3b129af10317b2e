"""``cgprimer data``: datasets from graphs."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import graph_command, note
from cgprimer.cli.options import SAMPLING, TRUTH
from cgprimer.core.graph import ExpressionGraph


@graph_command(
    SAMPLING,
    TRUTH,
    "-o, --output PATH  A .csv or .npz file (default: CSV on standard output).",
)
def command(graph: ExpressionGraph, output: str | None, **settings: Any) -> None:
    """Make a dataset from a graph with known parameters.

    \b
    Examples:
      cgprimer data lecture -o lecture.csv
      cgprimer data lecture --samples 100 --noise 0.1 --seed 7
      cgprimer data -e "xw = k*xa" --truth k=2 --low 0 --high 10 -o line.npz
    """
    from cgprimer.data import make_dataset

    dataset = make_dataset(graph, **settings)
    if output is None or output == "-":
        click.echo(dataset.to_csv(), nl=False)
    else:
        dataset.save(output)
        note(f"wrote {len(dataset):,} samples to {output}")
