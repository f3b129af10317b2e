"""``cgprimer tape``: the straight-line program of a graph, and what engines make of it."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NAMES
from cgprimer.cli.shared_options import method_options, take_method_options
from cgprimer.expressions import ExpressionGraph

_MAX_LINES = 200  # of a tape; a part of --passes has fewer
_MAX_PASS_LINES = 24
# As in cgprimer.backends.code_listing, which this module does not load to say what it does.
_FORMS = ("cpu", "cpu-interpreter", "cuda", "cuda-interpreter")


@graph_command()
@method_options()
@option(
    "--of", **NAMES, help="Variables to differentiate (default: all outputs); requires --method."
)
@option(
    "--wrt",
    **NAMES,
    help="Variables to differentiate with respect to (default: all parameters); requires --method.",
)
@option(
    "--training",
    is_flag=True,
    help="Include the dropout masks and batch statistics that training uses.",
)
@option("--loss", metavar="LOSS", help="Loss to add as a node after the outputs, as in training.")
@option("--scalars", is_flag=True, help="Expand arrays into scalar instructions.")
@option("--passes", is_flag=True, help="Print the tape after each optimization pass.")
@option(
    "--code",
    "form",
    type=click.Choice(["cpu", "cpu-interpreter", "cuda", "cuda-interpreter"]),
    help="Print the code that this engine generates.",
)
@option("--all", "show_all", is_flag=True, help="Print all lines of a large tape.")
def command(
    graph: ExpressionGraph,
    method: str | None,
    scalars: bool,
    passes: bool,
    show_all: bool,
    training: bool,
    **settings: Any,
) -> None:
    """Print the tape, the list of instructions, of a graph or of its derivative.

    \b
    Examples:
      cgprimer tape lecture
      cgprimer tape lecture --method reverse
      cgprimer tape lecture --method reverse --loss squared-error --passes
      cgprimer tape lecture --method reverse --loss squared-error --code cuda
      cgprimer tape -e "xw = sin(k*xa)" --method forward --wrt xa
      cgprimer tape matrix_backpropagation --method reverse

    With --loss, --passes and --code show code that sums over the samples; without --loss, they show
    code that computes one value per sample. --code cpu and --code cuda show the code for this tape;
    cpu-interpreter and cuda-interpreter show the interpreter for large tapes. No GPU is required.
    """
    from cgprimer.backends.plans.plan_printing import format_passes, truncate_lines
    from cgprimer.core.derivatives import tape_with_elements
    from cgprimer.core.loss_expressions import LOSS
    from cgprimer.core.loss_node import with_loss
    from cgprimer.tapes import differentiate, scalarize

    options = take_method_options(method, settings)
    of, wrt, loss, form = (settings[name] for name in ("of", "wrt", "loss", "form"))
    if passes and form is not None:
        raise click.UsageError("--passes cannot be used with --code")
    graph_tape = tape_with_elements(graph, of or (), "training" if training else "")
    if loss is not None:
        graph_tape = with_loss(graph_tape, loss)
    if method is None:
        if of or wrt:
            raise click.UsageError("--of and --wrt require --method")
    else:
        of = of or ((LOSS,) if loss is not None else graph.outputs)
        names = wrt or graph.parameters or graph.inputs
        graph_tape = differentiate(graph_tape, of=of, wrt=names, method=method, **options).tape
    graph_tape = scalarize(graph_tape) if scalars else graph_tape
    if passes:
        text = format_passes(
            graph_tape, sums=loss is not None, max_lines=None if show_all else _MAX_PASS_LINES
        )
    elif form is not None:
        from cgprimer.backends.code_listing import code_text

        text = code_text(graph_tape, form, sums=loss is not None)
    else:
        text = str(graph_tape)
    lines = truncate_lines(text.split("\n"), None if show_all or passes else _MAX_LINES)
    click.echo("\n".join(lines))
    if any(line.startswith("... ") for line in lines):
        click.echo("(--all shows all)")
