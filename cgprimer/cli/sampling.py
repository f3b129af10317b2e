"""The options that say how a dataset is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def sampling_options(function: F) -> F:
    """``--samples``, ``--seed``, ``--low``, ``--high``, ``--noise``."""
    for option in (
        click.option(
            "--noise",
            type=click.FloatRange(0),
            default=0.0,
            show_default=True,
            help="Standard deviation added to every target.",
        ),
        click.option(
            "--high", type=float, default=1.0, show_default=True, help="Upper bound of inputs."
        ),
        click.option(
            "--low", type=float, default=-1.0, show_default=True, help="Lower bound of inputs."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0),
            default=0,
            show_default=True,
            help="Of everything random.",
        ),
        click.option(
            "--samples",
            type=click.IntRange(1),
            default=10_000,
            show_default=True,
            help="How many samples are made.",
        ),
    ):
        function = option(function)
    return function
