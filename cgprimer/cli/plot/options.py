"""What the kinds of ``cgprimer plot`` share: where the picture goes, how it looks, ranges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cgprimer.cli.common import note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

F = TypeVar("F", bound=Callable[..., Any])
_BY = ("auto", "step", "epoch")


def picture_options(function: F) -> F:
    """``-o``, ``--dark`` and ``--title``."""
    for option in (
        click.option("--title", default="", metavar="TEXT", help="Above the picture."),
        click.option("--dark", is_flag=True, help="For dark slides."),
        click.option(
            "-o",
            "--output",
            metavar="PATH",
            type=click.Path(),
            required=True,
            help="A .png, .svg or .pdf file.",
        ),
    ):
        function = option(function)
    return function


def by_option(function: F) -> F:
    """``--by``."""
    return click.option(
        "--by",
        type=click.Choice(_BY),
        default="auto",
        show_default=True,
        help="Over steps or epochs; auto: epochs if every run has five.",
    )(function)


def range_option(name: str, text: str, *, multiple: bool = False) -> Callable[[F], F]:
    """An option that takes ``LOW:HIGH``."""

    def one(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[float, float]:
        low, colon, high = text.partition(":")
        try:
            if colon:
                return float(low), float(high)
        except ValueError:
            pass
        raise click.BadParameter(f"expected LOW:HIGH, such as -3:3, got {text!r}", ctx, parameter)

    def read(ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
        if multiple:
            return tuple(one(ctx, parameter, text) for text in given)
        return None if given is None else one(ctx, parameter, given)

    return click.option(name, metavar="LOW:HIGH", callback=read, multiple=multiple, help=text)


def check_output(output: str) -> None:
    """Refuse, before the work, a path that no picture can be written to."""
    from cgprimer.pictures.saving import check_picture_path

    check_picture_path(Path(output))


def save(figure: Figure, output: str) -> None:
    """Write a picture, and say so."""
    from cgprimer.pictures.saving import save_figure

    save_figure(figure, Path(output))
    note(f"wrote {output}")


def whole_numbers(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[int, ...]:
    """The callback of an option that takes ``N,...``."""
    texts = [t.strip() for text in given for t in text.split(",") if t.strip()]
    for text in texts:
        if not text.isdecimal() or int(text) < 1:
            raise click.BadParameter(f"{text!r} is no positive whole number", ctx, parameter)
    return tuple(int(text) for text in texts)
