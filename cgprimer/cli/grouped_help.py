"""Options in named groups of the help, for commands with many options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DATA = "Data options"
MODEL = "Model options"
OPTIMIZER = "Optimizer options"
REGULARIZATION = "Regularization options"
STOPPING = "Stopping options"
OUTPUT = "Output options"
WORKERS = "Worker options"
DIFFERENTIATION = "Differentiation options"
OTHER = "Options"
_MAX_UNGROUPED = 20  # options; the help of a command with fewer options has no groups
_TERM_WIDTH = 30  # characters; the help text of a longer option begins on the next line


class GroupedOption(click.Option):
    """A command-line option that the help shows under the heading of a group.

    Args:
        *declarations: the spellings of the option, as for :class:`click.Option`.
        group: heading of the group.
        **attributes: further arguments of :class:`click.Option`.
    """

    def __init__(self, *declarations: Any, group: str = OTHER, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.group = group

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the extras that click appends to a help text, without the range of values."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def option(*spellings: str, **attributes: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option whose help shows the default value.

    Args:
        *spellings: the spellings, and the argument of the command if it has another name.
        **attributes: arguments of :class:`GroupedOption`.
    """
    defaults: dict[str, Any] = {"cls": GroupedOption, "show_default": True}
    return click.option(*spellings, **defaults | attributes)


def combine_options(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that adds several options and arguments, in the given order."""

    def decorate(function: F) -> F:
        """Add the options and arguments to the function of a command."""
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class GroupedHelp(click.Command):
    """A command whose help shows the options of each group under a heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under group headings, or under one heading if there are few options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        parameters = self.get_params(ctx)
        grouped = len(parameters) > _MAX_UNGROUPED
        for parameter in parameters:
            if isinstance(parameter, click.Argument):  # the usage line shows arguments
                continue
            if (record := parameter.get_help_record(ctx)) is not None:
                group = getattr(parameter, "group", OTHER) if grouped else OTHER
                groups.setdefault(group, []).append(record)
        if len(groups.get(OTHER, ())) == 1 < len(groups):  # --help alone needs no heading
            groups[[*groups][-2]] += groups.pop(OTHER)
        for heading in sorted(groups, key=lambda heading: heading == OTHER):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=_TERM_WIDTH)
