"""``cgprimer fit``: nonlinear least squares."""

from __future__ import annotations

import sys
from typing import Any

import click
import numpy as np

from cgprimer.analysis.text_tables import table
from cgprimer.cli import INTERRUPTED
from cgprimer.cli.common import (
    check_outputs,
    defer_write_errors,
    echo_json,
    graph_command,
    note,
    save_plot,
)
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    NAMES,
    NUMBER,
    PATH,
    POSITIVE_INTEGER,
    read_bounds,
    read_fraction,
)
from cgprimer.cli.shared_options import (
    columns_option,
    dark_option,
    data_option,
    engine_option,
    force_option,
    is_given,
    json_option,
    method_options,
    samples_option,
    sampling_options,
    take_method_options,
    truth_option,
)
from cgprimer.cli.training_data import load_or_generate_data
from cgprimer.errors import TrainingError, UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.training.data import Dataset
from cgprimer.training.fitting.bootstrap import Bootstrap
from cgprimer.training.fitting.fit import fit
from cgprimer.training.fitting.fit_result import Fit

_HIGH_CORRELATION = 0.95  # correlation from which on two parameters are named
_STEP_DIGITS = 10  # digits of a trace: an iterate is compared with one by hand
_MAX_STEP_PARAMETERS = 8  # parameters that a trace has room for
_MAX_MATRIX_ROWS = 4  # rows of J'J
_DATA_ARGUMENTS = ("data", "columns", "samples", "low", "high", "noise")  # of data


@graph_command()
@data_option
@columns_option
@samples_option
@sampling_options
@truth_option
@option(
    "--start",
    **ASSIGNMENTS,
    help="Initial values of parameters (default: declared values, otherwise random values).",
)
@option("--freeze", **NAMES, help="Parameters to keep at their initial values.")
@option(
    "--bounds",
    metavar="NAME=LOW:HIGH,...",
    multiple=True,
    callback=read_bounds,
    help="Lower and upper bounds of parameters, such as k=0:1.",
)
@option("--weights", metavar="NAME", help="Data column that contains the weight of each sample.")
@option(
    "--algorithm",
    type=click.Choice(
        [
            "auto",
            "gauss-newton",
            "levenberg-marquardt",
            "trust-region",
            "dogleg",
            "minpack",
            "l-bfgs",
        ]
    ),
    default="auto",
    help="Algorithm; auto tries Gauss-Newton (for linear problems) or"
    " Levenberg-Marquardt, then trust-region.",
)
@option(
    "--damping",
    type=click.Choice(["auto", "tens", "marquardt", "nielsen"]),
    default="auto",
    help="Strategy for the damping factor lambda of Levenberg-Marquardt.",
)
@option(
    "--first-damping",
    **NUMBER,
    help="Initial damping factor lambda (default: depends on --damping).",
)
@option("--iterations", **POSITIVE_INTEGER, default=1000, help="Maximum number of iterations.")
@option(
    "--bootstrap",
    metavar="N",
    type=click.IntRange(min=2),
    help="Number of bootstrap fits, for standard errors and confidence intervals.",
)
@option(
    "--resample",
    type=click.Choice(["residuals", "pairs"]),
    default="residuals",
    help="Data to resample in the bootstrap: residuals, or pairs of inputs and targets.",
)
@method_options("reverse")
@engine_option
@option("--trace", is_flag=True, help="Print a table of all iterations.")
@option(
    "--level",
    metavar="NUMBER",
    type=float,
    default=0.95,
    callback=read_fraction,
    help="Confidence level of the plotted band and of the bootstrap intervals.",
)
@option("--plot", **PATH, help="Write a plot of the data, the fitted curve and the residuals.")
@dark_option
@option("--save", **PATH, help="Save the fit as JSON.")
@force_option
@json_option
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

    Gauss-Newton and Levenberg-Marquardt minimize the sum of squared residuals and accept a step
    only if the sum decreases. Prints the parameters with their standard errors, and the parameters
    that the data do not determine. If the fit does not converge, the exit code is 1.
    """
    options = take_method_options(method, settings)
    if is_given("resample") and not bootstrap:
        raise click.UsageError("--resample requires --bootstrap")
    check_outputs(force, save, plot=plot)
    origin = {name: settings.pop(name) for name in _DATA_ARGUMENTS}
    dataset, _ = load_or_generate_data(graph, {**origin, "seed": seed, "validation": None}, truth)
    weighed = None
    if weights:
        if origin["data"] is None:
            raise UsageError("--weights requires --data")
        weighed = Dataset.load(origin["data"], inputs=(weights,)).columns[weights]
    result = fit(graph, dataset, weights=weighed, method=method, seed=seed, **settings, **options)
    resampled = None
    if bootstrap and result.converged:
        resampled = result.bootstrap(bootstrap, seed=seed, pairs=resample == "pairs")
    with defer_write_errors(
        lambda: result.save(save) if save else None,
        lambda: save_plot(plot, "fit", result, level=level, dark=dark),
    ):
        if as_json:
            echo_json(_fit_to_dict(result, resampled, level, history=trace))
        else:
            steps = [_format_steps(result)] if trace else []
            click.echo("\n\n".join([*steps, _format_fit(result, resampled, level)]))
    for path in filter(None, [save, plot]):
        note(f"wrote {path}")
    if result.reason == "interrupted":
        note("interrupted: the printed values are the best found so far")
        sys.exit(INTERRUPTED)
    if not result.converged:
        hint = _suggest_remedy(result, settings["iterations"])
        raise TrainingError(f"the fit did not converge: {result.reason}", hint=hint)


def _fit_to_dict(
    result: Fit, resampled: Bootstrap | None, level: float, *, history: bool
) -> dict[str, Any]:
    """Convert a fit to a dictionary for JSON, with iterations and bootstrap if requested."""
    summary = result.as_dict()
    if history:
        summary["history"] = [vars(trial) for trial in result.history]
    if resampled:
        summary["bootstrap"] = {
            "standard_errors": resampled.standard_errors,
            "intervals": resampled.intervals(level),
            "failed": resampled.failed,
        }
    return summary


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


def _format_steps(result: Fit) -> str:
    """Format the initial normal equations of a fit, followed by a table of its iterations."""
    names = result.problem.vectors.elements
    shown = [names[k] for k in result.problem.free][:_MAX_STEP_PARAMETERS]
    header = ["step", *shown, "sum of squares", "lambda", "accepted"]
    rows = []
    for trial in result.history:
        values = dict(zip(names, trial.values.tolist(), strict=True))
        cells = [_format_iterate(values[name]) for name in shown]
        accepted = ("yes" if trial.accepted else "no") if trial.step else ""
        damping = format_number(trial.damping, 4)
        total = _format_iterate(trial.residual_sum_of_squares)
        rows.append([str(trial.step), *cells, total, damping, accepted])
    residuals, jacobian = result.problem.evaluate(result.history[0].values)
    matrix, gradient = jacobian.T @ jacobian, jacobian.T @ residuals
    lines = []
    if len(gradient) <= _MAX_MATRIX_ROWS:
        text = ", ".join(f"[{_format_row(row)}]" for row in matrix)
        lines = [f"At the start J'J = [{text}], J'r = [{_format_row(gradient)}].", ""]
    if result.algorithm == "gauss-newton":
        lines = ["J'J d = -J'r", *lines]
    elif result.algorithm == "levenberg-marquardt":
        what = "I" if result.damping != "marquardt" else "diag(J'J)"
        lines = [f"(J'J + lambda {what}) d = -J'r", *lines]
    return "\n".join([*lines, table(header, rows, left=())])


def _format_iterate(value: float) -> str:
    """Format a parameter value of an iteration, with trailing zeros to align the digits."""
    text = f"{value:#.{_STEP_DIGITS}g}"
    return format_number(value, _STEP_DIGITS) if "e" in text or not value else text


def _format_row(values: Any) -> str:
    """Format a row of a matrix: numbers separated by commas."""
    return ", ".join(format_number(float(value), 5) for value in values)


def _format_fit(result: Fit, resampled: Bootstrap | None, level: float) -> str:
    """Format parameters, standard errors and residuals of a fit as text."""
    rows = []
    for name, value in result.parameters.items():
        error = result.standard_errors.get(name)
        remark = {None: "fixed", np.inf: "not determined by itself"}.get(error, "")
        if name in result.held_at_bounds:
            remark = "at its bound"
        shown = "" if error is None or not result.converged else format_number(error)
        rows.append([name, format_number(value), shown, remark])
    header = ["parameter", "value", "standard error", ""]
    if resampled:
        spread, ends = resampled.standard_errors, resampled.intervals(level)
        header[3:3] = ["bootstrap", f"{format_number(100 * level, 3)} % of them"]
        for row in rows:
            row[3:3] = ["", ""]
            if row[0] in spread:
                interval = " to ".join(format_number(end, 5) for end in ends[row[0]])
                row[3:5] = [format_number(spread[row[0]], 4), interval]
    wide = len(header) if any(row[-1] for row in rows) else len(header) - 1
    algorithm = result.algorithm + (f" (damping {result.damping})" if result.damping else "")
    steps = pluralize(result.iterations, "step", "steps")
    spread_line = (
        f"residual standard deviation {format_number(result.residual_standard_deviation)},"
        f" {pluralize(result.degrees_of_freedom, 'degree', 'degrees')} of freedom"
    )
    lines = [
        f"{'converged' if result.converged else 'NOT converged'}: {result.reason}",
        f"{steps}, {result.seconds:.3f} s; {algorithm}",
        "",
        table(header[:wide], [row[:wide] for row in rows], left=(0, len(header) - 1)),
        "",
        f"residual sum of squares {format_number(result.residual_sum_of_squares)}; {spread_line}",
        *(_describe_correlation(result) if result.converged else []),
        *result.sentences,
    ]
    if resampled and resampled.failed:
        lines.append(
            f"{resampled.failed:,} fits of resampled data did not converge and are excluded."
        )
    return "\n".join(lines)


def _describe_correlation(result: Fit) -> list[str]:
    """Return a sentence about the most correlated pair of parameters, if highly correlated."""
    size = np.abs(np.nan_to_num(np.tril(result.correlation, -1)))
    if not size.size or size.max() < _HIGH_CORRELATION:
        return []
    one, other = np.unravel_index(int(size.argmax()), size.shape)
    names, value = result.estimated, float(result.correlation[one, other])
    return [
        f"The errors of {names[other]} and {names[one]} depend on each other:"
        f" their correlation is {format_number(value, 5)}."
    ]
