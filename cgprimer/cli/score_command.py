"""``cgprimer score``: how well a run predicts samples."""

from __future__ import annotations

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note, save_plot
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, load_run_or_fit
from cgprimer.cli.shared_options import columns_option, dark_option, force_option, json_option


@make_command()
@option(
    "--data",
    **PATH,
    required=True,
    help="Data file with a column for each input and output: .csv, .npz or .parquet.",
)
@columns_option
@option("--plot", **PATH, help="Write a plot of the predictions over the two inputs.")
@dark_option
@force_option
@json_option
@click.argument("run", type=click.Path())
def command(
    run: str,
    data: str,
    columns: dict[str, str],
    plot: str | None,
    dark: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Compute loss, R^2 and, for classes, the confusion matrix of a run on new samples.

    \b
    Examples:
      cgprimer train lecture --save run.json
      cgprimer data lecture --samples 100 --seed 1 -o new.csv
      cgprimer score run.json --data new.csv

    RUN is a file written by train --save or fit --save, or the folder of a run. The loss is the
    training loss. With one output, the predicted class is the target value nearest to the output;
    with several outputs, it is the index of the largest output.
    """
    from cgprimer.cli.training_report import format_score
    from cgprimer.training.losses import load_samples

    check_outputs(force, plot=plot)
    saved_run = load_run_or_fit(run)
    samples = load_samples(saved_run.known_graph, data, saved_run.settings["loss"], columns)
    score = saved_run.score(samples)
    if as_json:
        echo_json(score.as_dict())
    else:
        click.echo("\n".join(format_score(score)))
    save_plot(plot, "boundary", saved_run, samples, dark=dark)
    if plot:
        note(f"wrote {plot}")
