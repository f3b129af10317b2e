"""``cgprimer data``: datasets from graphs."""

from __future__ import annotations

import click

from cgprimer.cli.common import (
    assignments_option,
    graph_arguments,
    make_command,
    note,
    read_graph,
)
from cgprimer.cli.sampling import sampling_options


@make_command(name="data")
@graph_arguments
@sampling_options
@assignments_option("--truth", "True values of parameters; declared values fill the rest.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    help="A .csv or .npz file (default: CSV on standard output).",
)
def command(
    file: str | None,
    expression: str | None,
    samples: int,
    seed: int,
    low: float,
    high: float,
    noise: float,
    truth: dict[str, float],
    output: str | None,
) -> None:
    """Make a dataset from a graph with known parameters.

    \b
    Examples:
      cgprimer data lecture -o lecture.csv
      cgprimer data lecture --samples 100 --noise 0.1 --seed 7
      cgprimer data -e "xw = k*xa" --truth k=2 --low 0 --high 10 -o line.npz
    """
    from cgprimer.data import make_dataset

    graph = read_graph(file, expression)
    dataset = make_dataset(
        graph, truth=truth, samples=samples, seed=seed, low=low, high=high, noise=noise
    )
    if output in (None, "-"):
        click.echo(dataset.to_csv(), nl=False)
    else:
        assert output is not None
        dataset.save(output)
        note(f"wrote {len(dataset):,} samples to {output}")
