"""``cgprimer check KIND``: a command for each kind of homework, loaded when it is asked for."""

from __future__ import annotations

import click

from cgprimer.cli import LazyGroup

_KINDS = {
    "engine": "An automatic differentiation engine, in ten stages.",
    "formula": "A gradient computed by hand, or a differentiation rule.",
    "gradient": "A function that computes a gradient.",
    "optimizer": "Optimizers: SGD, momentum, Nesterov, AdaGrad, RMSprop, Adam, AdamW.",
    "trace": "Answers to problem sheets of cgprimer exercise.",
}  # name of a module in cgprimer/cli/checks -> what it checks


@click.group(cls=LazyGroup, helps=_KINDS, modules="cgprimer.cli.checks.check_{}")
def command() -> None:
    """Check homework and name likely mistakes.

    \b
    Examples:
      cgprimer check gradient lecture --skeleton
      cgprimer check gradient lecture --autograder autograder.zip

    Every kind has its own options: cgprimer check gradient --help
    """
