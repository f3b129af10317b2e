"""``cgprimer new``: write graphs of networks, chains, polynomials and random graphs."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import networks
from cgprimer.cli.common import check_outputs, make_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, POSITIVE_INTEGER
from cgprimer.cli.shared_options import force_option, is_given
from cgprimer.errors import UsageError
from cgprimer.support.files import write_atomically
from cgprimer.support.validation import check_choice

_OPTIONS_BY_KIND = {  # the options of each kind; all have a seed
    "mlp": ("activation", "output", "bias", "scalars"),
    "neuron": ("activation", "bias"),
    "chain": ("activation",),
    "polynomial": (),
    "recurrent": ("activation",),
    "random": ("inputs",),
}


@make_command()
@option(
    "--activation",
    metavar="NAME",
    help="Activation function, or none (default: tanh, or sigmoid for a neuron).",
)
@option(
    "--output",
    metavar="NAME",
    help="Activation function of the last layer of an mlp (default: none).",
)
@option(
    "--bias/--no-bias",
    default=None,
    help="Add a bias to each unit of an mlp or a neuron (default: --bias).",
)
@option(
    "--scalars",
    is_flag=True,
    help="Define units and weights of an mlp as scalars instead of matrices.",
)
@option("--inputs", **POSITIVE_INTEGER, help="Number of inputs of a random graph (default: 2).")
@option("--values", is_flag=True, help="Write random parameter values instead of initializers.")
@option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Random seed; implies --values, except for a random graph.",
)
@option("-o", "--to", **PATH, help="Output file (default: standard output).")
@force_option
@click.argument("kind")
@click.argument("size")
def command(
    kind: str, size: str, to: str | None, force: bool, values: bool, seed: int, **arguments: Any
) -> None:
    """Write the expressions of a network, chain, polynomial, recurrent unit or random graph.

    \b
    Examples:
      cgprimer new mlp 4-2-1 --activation sigmoid -o net.cg
      cgprimer new mlp 4-2-1 --scalars
      cgprimer new neuron 4
      cgprimer new chain 10 --activation sigmoid
      cgprimer new polynomial 3
      cgprimer new recurrent 3
      cgprimer new random 12 --seed 7

    KIND is mlp, neuron, chain, polynomial, recurrent or random. SIZE is the number of units per
    layer (mlp), inputs (neuron), values (chain), time steps (recurrent) or expressions (random), or
    the degree (polynomial).
    """
    check_choice("kind", kind, _OPTIONS_BY_KIND)
    chosen = {name: value for name, value in arguments.items() if is_given(name)}
    for name in chosen:
        if name not in _OPTIONS_BY_KIND[kind]:
            raise click.UsageError(f"--{name} cannot be used with {kind}")
    if kind != "mlp" and not size.isdecimal():
        raise UsageError(f"the size of a {kind} must be an integer, got {size!r}")
    chosen["values"] = values or (kind != "random" and is_given("seed"))
    graph = getattr(networks, kind)(size if kind == "mlp" else int(size), seed=seed, **chosen)
    if to is None:
        click.echo(graph.source.text)
        return
    check_outputs(force, to)
    write_atomically(to, graph.source.text + "\n")
    note(f"wrote {to}")
