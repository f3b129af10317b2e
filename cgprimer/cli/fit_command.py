"""``cgprimer fit``: nonlinear least squares."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click
import numpy as np

from cgprimer.analysis.text_tables import table
from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import (
    check_outputs,
    echo_json,
    graph_command,
    note,
    save_plot,
    shown_anyway,
)
from cgprimer.cli.options import (
    ENGINE,
    FORCE,
    JSON,
    SAMPLING,
    TRUTH,
    is_given,
    method_lines,
    own_options,
)
from cgprimer.cli.train_command import DATA, data_of
from cgprimer.errors import TrainingError, UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_fraction
from cgprimer.training.data import Dataset
from cgprimer.training.fitting.bootstrap import Bootstrap
from cgprimer.training.fitting.fit import ALGORITHMS, DAMPING_NAMES, fit
from cgprimer.training.fitting.fit_result import Fit

_ALIKE = 0.95  # correlation from which on two parameters are named
_TRACED = 10  # digits of a trace: an iterate is compared with one by hand
_MOST_TRACED = 8  # parameters that a trace has room for
_MOST_SHOWN = 4  # rows of J'J
_ORIGIN = ("data", "columns", "samples", "low", "high", "noise")  # of data


@graph_command(
    DATA,
    SAMPLING,
    TRUTH,
    f"""\
--start NAME=VALUE,...  Start values; the others are what the graph declares, or drawn from the
  seed where the data were made from that.
--freeze NAME,...  Parameters that keep their start value.
--bounds NAME=LOW:HIGH,...  Bounds of parameters; one side may be left out.
--weights NAME  A column of the data: the samples' weights in the sum of squares.
--algorithm {"|".join(ALGORITHMS)} =auto  auto is gauss-newton where the graph is linear in its
  parameters, else levenberg-marquardt, and if that fails trust-region; from there on they are
  SciPy's.
--damping {"|".join(DAMPING_NAMES)} =auto  How levenberg-marquardt chooses lambda.
--first-damping NUMBER  The first lambda (default: by damping).
--iterations 1.. =1000  The most steps that are tried.
--bootstrap 2..  Fit so many resamples of the data, too.
--resample residuals|pairs =residuals  What the bootstrap draws.""",
    method_lines("reverse"),
    ENGINE,
    """\
--trace  Show each step: parameters, sum of squares, lambda, and whether it was accepted.
--level NUMBER =0.95  Of the band in the picture, and of the bootstrap's intervals.
--plot PATH  Draw data, curve with band, and residuals as .png, .svg or .pdf.
--dark  The picture for dark slides.
--save PATH  Write the fit as JSON.""",
    FORCE,
    JSON,
    level=partial(check_fraction, "the level"),
)
def command(
    graph: ExpressionGraph,
    seed: int,
    truth: dict[str, Any],
    weights: str | None,
    bootstrap: int | None,
    resample: str,
    trace: bool,
    level: float,
    plot: str | None,
    dark: bool,
    save: str | None,
    force: bool,
    as_json: bool,
    method: str,
    **settings: Any,
) -> None:
    """Fit a graph's parameters to data by least squares.

    \b
    Examples:
      cgprimer fit saturation --samples 20 --low 0 --high 6 --noise 5 --start b1=500,b2=0.1
      cgprimer data saturation --samples 20 --low 0 --high 6 --noise 5 -o rise.csv
      cgprimer fit saturation --data rise.csv --plot rise.png --save rise.json
      cgprimer fit saturation --data rise.csv --bounds b1=0:1000,b2=0: --bootstrap 1000
      cgprimer fit exponential --samples 3 --start k=1 --trace
      cgprimer fit lecture --samples 100

    Gauss-Newton and Levenberg-Marquardt go down the sum of squares of all residuals and accept a
    step only if it falls. Prints parameters with standard errors, and what the data cannot tell.
    A fit that ends at no minimum is reported as such, with exit code 1.
    """
    options = own_options(method, settings)
    if is_given("resample") and not bootstrap:
        raise click.UsageError("--resample says what the bootstrap draws: give --bootstrap 1000")
    check_outputs(force, save, plot=plot)
    origin = {name: settings.pop(name) for name in _ORIGIN}
    dataset, _ = data_of(graph, {**origin, "seed": seed, "validation": None}, truth)
    weighed = None
    if weights:
        if origin["data"] is None:
            raise UsageError("--weights names a column of --data")
        weighed = Dataset.load(origin["data"], inputs=(weights,)).columns[weights]
    found = fit(graph, dataset, weights=weighed, method=method, seed=seed, **settings, **options)
    again = None
    if bootstrap and found.converged:
        again = found.bootstrap(bootstrap, seed=seed, pairs=resample == "pairs")
    with shown_anyway(
        lambda: found.save(save) if save else None,
        lambda: save_plot(plot, "fit", found, level=level, dark=dark),
    ):
        if as_json:
            result = found.as_dict()
            if trace:
                result["history"] = [vars(trial) for trial in found.history]
            if again:
                result["bootstrap"] = {
                    "standard_errors": again.standard_errors,
                    "intervals": again.intervals(level),
                    "failed": again.failed,
                }
            echo_json(result)
        else:
            click.echo(
                "\n\n".join([*([_trace(found)] if trace else []), _report(found, again, level)])
            )
    for path in filter(None, [save, plot]):
        note(f"wrote {path}")
    if found.reason == "interrupted":
        note("interrupted: these are the best values so far")
        sys.exit(INTERRUPTED)
    if not found.converged:
        hint = _suggest_remedy(found, settings["iterations"])
        raise TrainingError(f"the fit has not converged: {found.reason}", hint=hint)


def _suggest_remedy(result: Fit, limit: int) -> str:
    """Return a hint for a fit that did not converge; `limit` is the maximum number of steps."""
    if "singular" in result.reason:  # the reason itself says what to do
        return ""
    if result.iterations >= limit:
        return (
            "try another algorithm (--algorithm trust-region), more steps (--iterations), or other"
            " start values (--start)"
        )
    return "try start values closer to a solution (--start), or bounds (--bounds)"


def _trace(found: Fit) -> str:
    """The steps as a table, under the normal equations of the first one as they are taught."""
    names = found.problem.vectors.elements
    shown = [names[k] for k in found.problem.free][:_MOST_TRACED]
    header = ["step", *shown, "sum of squares", "lambda", "accepted"]
    rows = []
    for trial in found.history:
        values = dict(zip(names, trial.values.tolist(), strict=True))
        cells = [_traced(values[name]) for name in shown]
        accepted = ("yes" if trial.accepted else "no") if trial.step else ""
        damping = format_number(trial.damping, 4)
        total = _traced(trial.residual_sum_of_squares)
        rows.append([str(trial.step), *cells, total, damping, accepted])
    residuals, jacobian = found.problem.evaluate(found.history[0].values)
    matrix, gradient = jacobian.T @ jacobian, jacobian.T @ residuals
    lines = []
    if len(gradient) <= _MOST_SHOWN:
        text = ", ".join(f"[{_row(row)}]" for row in matrix)
        lines = [f"At the start J'J = [{text}], J'r = [{_row(gradient)}].", ""]
    if found.algorithm == "gauss-newton":
        lines = ["J'J d = -J'r", *lines]
    elif found.algorithm == "levenberg-marquardt":
        what = "I" if found.damping != "marquardt" else "diag(J'J)"
        lines = [f"(J'J + lambda {what}) d = -J'r", *lines]
    return "\n".join([*lines, table(header, rows, left=())])


def _traced(value: float) -> str:
    """All digits, zeros at the end too: iterates are compared digit by digit."""
    text = f"{value:#.{_TRACED}g}"
    return format_number(value, _TRACED) if "e" in text or not value else text


def _row(values: Any) -> str:
    return ", ".join(format_number(float(value), 5) for value in values)


def _report(found: Fit, again: Bootstrap | None, level: float) -> str:
    rows = []
    for name, value in found.parameters.items():
        error = found.standard_errors.get(name)
        remark = {None: "fixed", np.inf: "not determined by itself"}.get(error, "")
        if name in found.held_at_bounds:
            remark = "at its bound"
        shown = "" if error is None or not found.converged else format_number(error)
        rows.append([name, format_number(value), shown, remark])
    header = ["parameter", "value", "standard error", ""]
    if again:
        spread, ends = again.standard_errors, again.intervals(level)
        header[3:3] = ["bootstrap", f"{format_number(100 * level, 3)} % of them"]
        for row in rows:
            row[3:3] = ["", ""]
            if row[0] in spread:
                interval = " to ".join(format_number(end, 5) for end in ends[row[0]])
                row[3:5] = [format_number(spread[row[0]], 4), interval]
    wide = len(header) if any(row[-1] for row in rows) else len(header) - 1
    how = found.algorithm + (f" (damping {found.damping})" if found.damping else "")
    steps = pluralize(found.iterations, "step", "steps")
    spread_line = (
        f"residual standard deviation {format_number(found.residual_standard_deviation)},"
        f" {pluralize(found.degrees_of_freedom, 'degree', 'degrees')} of freedom"
    )
    lines = [
        f"{'converged' if found.converged else 'NOT converged'}: {found.reason}",
        f"{steps}, {found.seconds:.3f} s; {how}",
        "",
        table(header[:wide], [row[:wide] for row in rows], left=(0, len(header) - 1)),
        "",
        f"residual sum of squares {format_number(found.residual_sum_of_squares)}; {spread_line}",
        *(_alike(found) if found.converged else []),
        *found.sentences,
    ]
    if again and again.failed:
        lines.append(f"{again.failed:,} fits of resampled data did not converge and are left out.")
    return "\n".join(lines)


def _alike(found: Fit) -> list[str]:
    """The two parameters that are told apart worst, where that is badly."""
    size = np.abs(np.nan_to_num(np.tril(found.correlation, -1)))
    if not size.size or size.max() < _ALIKE:
        return []
    one, other = np.unravel_index(int(size.argmax()), size.shape)
    names, value = found.estimated, float(found.correlation[one, other])
    return [
        f"The errors of {names[other]} and {names[one]} depend on each other:"
        f" their correlation is {format_number(value, 5)}."
    ]
