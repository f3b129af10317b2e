"""Options in named groups of the help, for commands with many options."""

from __future__ import annotations

from typing import Any

import click

DATA = "Data options"
MODEL = "Model options"
OPTIMIZER = "Optimizer options"
REGULARIZATION = "Regularization options"
STOPPING = "Stopping options"
OUTPUT = "Output options"
WORKERS = "Worker options"
DIFFERENTIATION = "Differentiation options"
OTHER = "Options"
_ORDER = (
    MODEL, DATA, OTHER, DIFFERENTIATION, OPTIMIZER, REGULARIZATION, STOPPING, WORKERS, OUTPUT
)  # fmt: skip
_TERM_WIDTH = 32  # characters; the help text of a longer option begins on the next line


class GroupedOption(click.Option):
    """An option that belongs to a group of the help.

    Args:
        *declarations: the spellings of the option, as for :class:`click.Option`.
        group: heading of the group.
        **attributes: further arguments of :class:`click.Option`.
    """

    def __init__(self, *declarations: Any, group: str = OTHER, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.group = group


class GroupedHelp(click.Command):
    """A command whose help shows the options of each group under a heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group; without groups, write them under one heading."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                groups.setdefault(getattr(parameter, "group", OTHER), []).append(record)
        for heading in sorted(groups, key=_ORDER.index):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=_TERM_WIDTH)
