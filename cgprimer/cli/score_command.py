"""``cgprimer score``: how well a run predicts samples."""

from __future__ import annotations

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note, save_plot
from cgprimer.cli.options import COLUMNS, FORCE, JSON, run_or_fit


@make_command(
    f"""\
--data PATH!  A .csv, .npz or .parquet file with a column for each input and each output.
{COLUMNS}
--plot PATH  Draw what is predicted over the plane of two inputs as .png, .svg or .pdf.
--dark  The picture for dark slides.""",
    FORCE,
    JSON,
)
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
    """How well a run predicts samples: loss, R^2, and for classes who is taken for whom.

    \b
    Examples:
      cgprimer train lecture --save run.json
      cgprimer data lecture --samples 100 --seed 1 -o new.csv
      cgprimer score run.json --data new.csv

    RUN is a file that train --save or fit --save wrote, or the folder of a run. The loss is the one
    that was minimised. Of a few values of one target the one nearest to the output is predicted, of
    several outputs the largest.
    """
    from cgprimer.cli.training_report import score_lines
    from cgprimer.training.losses import load_samples

    check_outputs(force, plot=plot)
    learnt = run_or_fit(run)
    samples = load_samples(learnt.known_graph, data, learnt.settings["loss"], columns)
    score = learnt.score(samples)
    if as_json:
        echo_json(score.as_dict())
    else:
        click.echo("\n".join(score_lines(score)))
    save_plot(plot, "boundary", learnt, samples, dark=dark)
    if plot:
        note(f"wrote {plot}")
