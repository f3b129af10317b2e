"""Options that several commands share, and functions that read how options were given."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cgprimer.cli.grouped_help import DATA, DIFFERENTIATION, MODEL, OUTPUT, combine_options, option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    NAMES,
    NUMBER,
    PATH,
    POSITIVE_INTEGER,
    TEXT,
    read_columns,
    read_domains,
)
from cgprimer.core.methods import methods
from cgprimer.core.methods.finite_difference import SCHEMES

F = TypeVar("F", bound=Callable[..., Any])

_METHOD_OPTIONS = {  # argument of a command -> method, name of the option in the library
    "scheme": ("finite-difference", "scheme"),
    "step": ("finite-difference", "step"),
    "symbolic_share": ("symbolic", "share"),
    "symbolic_limit": ("symbolic", "limit"),
    "path_limit": ("path-sum", "limit"),
    "carry": ("forward", "carry"),
}
METHOD_OPTION_NAMES = tuple(_METHOD_OPTIONS)


class NumberRange(click.FloatRange):
    """A range of floats that rejects nan, which :class:`click.FloatRange` accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert an option value to a float; reject nan and values outside the range."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


at_option = option(
    "--at",
    group=MODEL,
    **ASSIGNMENTS,
    help="Values of inputs and parameters, ranges LOW:HIGH:COUNT, or a saved run"
    " (default: declared values).",
)
expression_option = option(
    "-e", "--expression", group=MODEL, metavar="TEXT", help="Expressions to use instead of FILE."
)
loss_option = option(
    "--loss",
    group=MODEL,
    metavar="LOSS",
    help="Loss to add as a node after the outputs; --at target=VALUE sets its target.",
)
keep_option = option("--keep", **NAMES, help="Inputs to keep at their declared values.")
domain_option = option(
    "--domain",
    multiple=True,
    metavar="NAME=VALUES,...",
    callback=read_domains,
    help="Allowed values of inputs, such as y=0,1 or y=one-hot (default: declared domains).",
)
wrt_option = option(
    "--wrt",
    group=DIFFERENTIATION,
    **NAMES,
    help="Variables to differentiate with respect to (default: parameters, otherwise inputs).",
)
engine_option = option(
    "--engine",
    group=DIFFERENTIATION,
    metavar="NAME",
    default="auto",
    help="Execution engine ('cgprimer info' lists all).",
)
data_option = option(
    "--data",
    group=DATA,
    **PATH,
    help="Data file: .csv, .npz or .parquet (default: generated data).",
)
columns_option = option(
    "--columns",
    group=DATA,
    multiple=True,
    metavar="NAME=COLUMN,...",
    callback=read_columns,
    help="Data columns of variables, such as y=label (default: same names).",
)
samples_option = option(
    "--samples",
    group=DATA,
    **POSITIVE_INTEGER,
    default=10_000,
    help="Number of samples to generate.",
)
truth_option = option(
    "--truth",
    group=DATA,
    **ASSIGNMENTS,
    help="True parameter values of generated data (default: declared values).",
)
start_option = option(
    "--start",
    group=MODEL,
    **ASSIGNMENTS,
    help="Initial values of parameters (default: random values).",
)
seed_option = option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, help="Random seed."
)
json_option = option(
    "--json", "as_json", group=OUTPUT, is_flag=True, help="Print the result as JSON."
)
force_option = option("--force", group=OUTPUT, is_flag=True, help="Overwrite existing files.")
dark_option = option("--dark", group=OUTPUT, is_flag=True, help="Use a dark color theme.")
of_option = option(
    "--of", metavar="NAME", help="Variable to differentiate (default: the only output)."
)
differentiated_loss_option = option(
    "--loss",
    metavar="NAME|TEXT",
    help="Loss to differentiate instead of the output; --at target=VALUE sets its target.",
)
plot_title_option = option("--title", **TEXT, help="Title of the plot.")
plot_output_option = option(
    "-o", "--output", **PATH, required=True, help="Output file: .png, .svg or .pdf."
)


sampling_options = combine_options(
    option(
        "--seed",
        group=DATA,
        metavar="N",
        type=click.IntRange(min=0),
        default=0,
        help="Random seed.",
    ),
    option("--low", group=DATA, **NUMBER, default=-1.0, help="Lower bound of generated inputs."),
    option("--high", group=DATA, **NUMBER, default=1.0, help="Upper bound of generated inputs."),
    option(
        "--noise",
        group=DATA,
        metavar="NUMBER",
        type=NumberRange(min=0),
        default=0.0,
        help="Standard deviation of the noise in generated targets.",
    ),
)
"""The options ``--seed``, ``--low``, ``--high`` and ``--noise`` for generated data."""


def method_options(default: str | None = None) -> Callable[[F], F]:
    """Return a decorator that adds ``--method`` and the options of all differentiation methods."""
    return combine_options(
        option(
            "--method",
            group=DIFFERENTIATION,
            metavar="METHOD",
            type=click.Choice(methods()),
            default=default,
            help=f"Differentiation method: {', '.join(methods())}.",
        ),
        option(
            "--scheme",
            group=DIFFERENTIATION,
            metavar="SCHEME",
            type=click.Choice(tuple(SCHEMES)),
            help="Finite differences: central (default), forward or complex-step.",
        ),
        option(
            "--step",
            group=DIFFERENTIATION,
            **NUMBER,
            help="Step size of finite differences (default: scaled to the value).",
        ),
        option(
            "--symbolic-share/--no-symbolic-share",
            group=DIFFERENTIATION,
            default=None,
            help="Share common subexpressions of symbolic derivatives (default).",
        ),
        option(
            "--symbolic-limit",
            group=DIFFERENTIATION,
            **POSITIVE_INTEGER,
            help="Maximum number of operations in a symbolic derivative (default: 5000).",
        ),
        option(
            "--path-limit",
            group=DIFFERENTIATION,
            **POSITIVE_INTEGER,
            help="Maximum number of paths in path-sum (default: 10000).",
        ),
        option(
            "--carry",
            group=DIFFERENTIATION,
            is_flag=True,
            help="Propagate all forward-mode tangents in a single pass.",
        ),
    )


def take_method_options(method: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of differentiation methods from the arguments and return them.

    Returns:
        The given options, under their names in the library.

    Raises:
        click.UsageError: an option of another method is given.
    """
    options = {}
    for name, (owner, library_name) in _METHOD_OPTIONS.items():
        value = arguments.pop(name)
        if not is_given(name):
            continue
        flag = name.replace("_", "-")
        if method is None:
            raise click.UsageError(f"--{flag} requires --method {owner}")
        if owner != method:
            raise click.UsageError(f"--{flag} requires --method {owner}, got --method {method}")
        options[library_name] = value
    return options


def refuse_generation_options(truth: Any, allowed: str = "") -> None:
    """Raise an error if options for generated data are used with data from a file.

    Raises:
        click.UsageError: such an option is given on the command line.
    """
    context = click.get_current_context()
    for name in ("truth", "samples", "low", "high", "noise"):
        if name == allowed:
            continue
        source = context.get_parameter_source(name)  # a run.toml may contain the options
        if source is ParameterSource.COMMANDLINE or (name == "truth" and truth):
            raise click.UsageError(
                f"--{name} cannot be used with --data: it applies to generated data"
            )


def is_given(name: str) -> bool:
    """Return whether an option is set on the command line or in a configuration file."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT
