"""``cgprimer data``: datasets from graphs, and samples of classes."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import check_outputs, graph_command, note
from cgprimer.cli.options import FORCE, SAMPLING, TRUTH, is_given
from cgprimer.expressions import ExpressionGraph

_CLASSES = "gaussians|moons|spirals|xor|lecture-neurons|lecture-planes"
_OF_GRAPHS = ("low", "high", "truth")


@graph_command(
    SAMPLING,
    TRUTH,
    f"""\
--classes {_CLASSES}  Samples of two classes instead; a graph gives their columns its names.
--batch-size 1..  lecture-neurons: divide so many samples at a time by their maximum (default: all).
-o, --output PATH  A .csv, .npz or .parquet file (default: CSV on standard output).""",
    FORCE,
    optional=True,
)
def command(
    graph: ExpressionGraph | None,
    output: str | None,
    force: bool,
    classes: str | None,
    batch_size: int | None,
    **settings: Any,
) -> None:
    """Make a dataset from a graph with known parameters, or samples of two classes.

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
                raise click.UsageError(f"--{name} is for data of a graph: leave --classes out")
        chosen = {n: settings[n] for n in ("samples", "seed", "noise") if is_given(n)}
        dataset = make_classes(classes, graph, batch_size=batch_size, **chosen)
    elif graph is None:
        raise click.UsageError("data of what? Give a FILE, -e TEXT or --classes")
    elif batch_size is not None:
        raise click.UsageError("--batch-size is for --classes lecture-neurons")
    else:
        dataset = make_dataset(graph, **settings)
    if output is None:
        click.echo(dataset.to_csv(), nl=False)
    else:
        dataset.save(output)
        note(f"wrote {len(dataset):,} samples to {output}")
