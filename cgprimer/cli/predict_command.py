"""``cgprimer predict``: predict the outputs of a run for other inputs."""

from __future__ import annotations

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, load_run_or_fit
from cgprimer.cli.shared_options import columns_option, force_option


@make_command()
@option(
    "--data",
    **PATH,
    required=True,
    help="Data file with a column for each input: .csv, .npz or .parquet.",
)
@columns_option
@option(
    "-o",
    "--output",
    **PATH,
    help="Output file: .csv, .npz or .parquet (default: CSV on standard output).",
)
@force_option
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.argument("run", type=click.Path())
def command(
    run: str, data: str, columns: dict[str, str], output: str | None, force: bool, as_json: bool
) -> None:
    """Predict outputs for new inputs with the learned parameters of a run.

    \b
    Examples:
      cgprimer train lecture --save run.json
      cgprimer data lecture --samples 5 --seed 1 -o new.csv
      cgprimer predict run.json --data new.csv
      cgprimer predict run.json --data new.csv -o predicted.csv
      cgprimer fit lecture --samples 100 --save fit.json
      cgprimer predict fit.json --data new.csv

    RUN is a file written by train --save or fit --save, or the folder of a run. Prints the inputs
    and the predicted outputs.
    """
    from cgprimer.training.data import Dataset

    check_outputs(force, output)
    saved_run = load_run_or_fit(run)
    samples = Dataset.load(data, inputs=saved_run.known_graph.inputs, columns=columns)
    outputs = saved_run.predict(samples)
    if as_json:
        echo_json(outputs)
        return
    predictions = Dataset.from_arrays(samples.inputs, outputs)
    if output is None:
        click.echo(predictions.to_csv(), nl=False)
    else:
        predictions.save(output)
        note(f"wrote {len(predictions):,} samples to {output}")
