"""``cgprimer sweep``: many runs with other settings, in one table, one file and one picture."""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import Any

import click

from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import (
    check_outputs,
    echo_json,
    graph_command,
    note,
    progress_bar,
    save_plot,
)
from cgprimer.cli.options import FORCE, JSON, own_options
from cgprimer.cli.train import ORIGIN, READERS, data_of, run_options
from cgprimer.core.graph import ExpressionGraph
from cgprimer.files import write_whole
from cgprimer.training.losses import DEFAULT
from cgprimer.training.settings import ONE_OR_BY_NAME, SETTINGS, from_text

_APART = re.compile(r",(?![^(\[]*[)\]])")  # commas outside of brackets


def _values(name: str, given: tuple[str, ...]) -> list[Any]:
    """The values of a setting that a text lists."""
    texts = [text.strip() for part in given for text in _APART.split(part)]
    return [from_text(name, text) for text in texts if text]


def _values_or_assignments(name: str, given: tuple[str, ...]) -> Any:
    """Return numbers to vary, or one setting that gives values by parameter name."""
    if any("=" in text for text in given):
        return READERS[name](given)
    return _values(name, given)


_READ: dict[str, Any] = READERS | {
    name: partial(_values_or_assignments if one.takes == ONE_OR_BY_NAME else _values, name)
    for name, one in SETTINGS.items()
    if one.varies
}


@graph_command(
    run_options(several=True),
    """\
--seeds VALUE,...  Seeds of the start values and of the order of the samples; the data stay.
--threshold NUMBER  The table says after how many steps the loss was below it (default: a tenth of
  the loss at the start).
--jobs 1..  How many runs at once (default: as many as there are cores).
--csv PATH  Write the table with all digits.
--plot PATH  Draw the losses of all runs as .png, .svg or .pdf.
--dark  The picture for dark slides.""",
    FORCE,
    JSON,
    seeds=partial(_values, "seed"),
    **_READ,
)
def command(
    graph: ExpressionGraph,
    truth: dict[str, float],
    start: dict[str, float],
    seeds: list[int],
    threshold: float | None,
    jobs: int | None,
    csv: str | None,
    plot: str | None,
    dark: bool,
    force: bool,
    as_json: bool,
    method: str,
    **settings: Any,
) -> None:
    """Train once for each combination of settings, and compare.

    \b
    Examples:
      cgprimer sweep lecture --optimizer sgd,momentum,adam --learning-rate 1e-4,1e-3,1e-2
      cgprimer sweep lecture --learning-rate 1e-3,1e-2 --batch-size 1,50,all --epochs 10
      cgprimer sweep lecture --optimizer sgd,adam --csv sweep.csv --plot sweep.png

    A setting takes several values, joined by commas; with one value it is the same in all runs.
    All runs begin with the same parameters and go through the same samples, unless seeds vary.
    """

    from cgprimer.training.sweeps import sweep

    options = own_options(method, settings)
    check_outputs(force, csv, plot=plot)
    lists = {n: settings.pop(n) for n in SETTINGS if isinstance(settings.get(n), list)}
    origin = {name: settings.pop(name) for name in ORIGIN}
    lists |= {"seed": seeds or [origin["seed"]]}
    dataset, others = data_of(graph, origin, truth, lists.get("loss") or DEFAULT)
    every = {name: values[0] for name, values in lists.items() if len(values) == 1}
    vary = {name: values for name, values in lists.items() if len(values) > 1}
    with progress_bar("sweep") as on_run:
        how = {
            "method": method,
            "start": start,
            "validation": others,
            **every,
            **settings,
            **options,
        }
        found = sweep(graph, dataset, vary, threshold=threshold, jobs=jobs, on_run=on_run, **how)
    if as_json:
        echo_json({"threshold": found.threshold, "runs": found.rows()})
    else:
        click.echo(found.table())
    if csv:
        write_whole(csv, found.to_csv())
    save_plot(plot, "sweep", found, dark=dark)
    for path in filter(None, (csv, plot)):
        note(f"wrote {path}")
    if found.halted:
        note(f"interrupted: {found.halted:,} runs were not begun")
        sys.exit(INTERRUPTED)
