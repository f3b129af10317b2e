"""``cgprimer new``: graphs that nobody types."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import networks
from cgprimer.cli.common import check_outputs, make_command, note
from cgprimer.cli.options import FORCE, is_given
from cgprimer.errors import UsageError
from cgprimer.support.files import write_atomically
from cgprimer.support.validation import check_choice

_OWN = {  # the options of each kind; all have a seed
    "mlp": ("activation", "output", "bias", "scalars"),
    "neuron": ("activation", "bias"),
    "chain": ("activation",),
    "polynomial": (),
    "recurrent": ("activation",),
    "random": ("inputs",),
}


@make_command(
    """\
--activation NAME  A function of one number, or none (default: tanh; of a neuron sigmoid).
--output NAME  mlp: the function of the last layer, softmax too (default: none).
--bias/--no-bias  mlp, neuron: whether every unit adds a parameter of its own (default: it does).
--scalars  mlp: a name for each unit and weight, instead of matrices.
--inputs 1..  random: how many inputs (default: 2).
--values  Write numbers instead of initializers, determined by the seed.
--seed 0.. =0  Random seed of the numbers and of a random graph; implies --values except for random.
-o, --to PATH  Write the text here (default: standard output).""",
    FORCE,
)
@click.argument("kind")
@click.argument("size")
def command(
    kind: str, size: str, to: str | None, force: bool, values: bool, seed: int, **given: Any
) -> None:
    """Write the text of a network, a chain, a polynomial, a recurrent unit or a random graph.

    \b
    Examples:
      cgprimer new mlp 4-2-1 --activation sigmoid -o net.cg
      cgprimer new mlp 4-2-1 --scalars
      cgprimer new neuron 4
      cgprimer new chain 10 --activation sigmoid
      cgprimer new polynomial 3
      cgprimer new recurrent 3
      cgprimer new random 12 --seed 7

    KIND is one of these, SIZE says how large it is: units per layer of an mlp, the inputs of a
    neuron, the values of a chain, a degree, the steps of a unit, the expressions of a graph.
    """
    check_choice("kind", kind, _OWN)
    chosen = {name: value for name, value in given.items() if is_given(name)}
    for name in chosen:
        if name not in _OWN[kind]:
            raise click.UsageError(f"--{name} does not belong to {kind}")
    if kind != "mlp" and not size.isdecimal():
        raise UsageError(f"the size of a {kind} is a whole number, not {size!r}")
    chosen["values"] = values or (kind != "random" and is_given("seed"))
    made = getattr(networks, kind)(size if kind == "mlp" else int(size), seed=seed, **chosen)
    if to is None:
        click.echo(made.source.text)
        return
    check_outputs(force, to)
    write_atomically(to, made.source.text + "\n")
    note(f"wrote {to}")
