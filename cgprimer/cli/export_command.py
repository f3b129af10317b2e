"""``cgprimer export``: a graph and its derivative program as a file in another language."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import check_outputs, graph_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH
from cgprimer.cli.shared_options import (
    at_option,
    force_option,
    method_options,
    of_option,
    take_method_options,
    wrt_option,
)
from cgprimer.expressions import ExpressionGraph

_TARGETS = "python|numpy|torch|jax|c|sympy|latex"


@graph_command(with_loss=True)
@option(
    "--to",
    type=click.Choice(["python", "numpy", "torch", "jax", "c", "sympy", "latex"]),
    default="python",
    help="Language or library of the exported file.",
)
@at_option
@of_option
@wrt_option
@method_options("reverse")
@option("-o", "--output", **PATH, help="Output file (default: standard output).")
@force_option
def command(
    graph: ExpressionGraph, to: str, method: str, output: str | None, force: bool, **settings: Any
) -> None:
    """Export a graph and its derivative program as a self-checking file.

    \b
    Examples:
      cgprimer export lecture
      cgprimer export lecture --to c -o lecture.c
      cgprimer export mazur --to torch --wrt w1,w5 -o mazur_torch.py
      cgprimer export matrix_backpropagation --to numpy -o matrices.py
      cgprimer export -e "xw = sin(k*xa)" --to latex --method forward -o sine.tex
      cgprimer export lecture --to python --loss squared-error -o loss.py --force

    The file defines the functions value and gradient. When it is run, it checks their results
    against reference values, and its exit code is 1 if a value differs.
    """
    from cgprimer.analysis.export.exporter import export
    from cgprimer.support.files import write_atomically

    options = take_method_options(method, settings)
    if output:
        check_outputs(force, output)
    settings["wrt"] = settings["wrt"] or graph.parameters or graph.inputs
    text = export(graph, to, method=method, **settings, **options)
    if output:
        write_atomically(output, text)
        note(f"wrote {output}")
    else:
        click.echo(text, nl=False)
