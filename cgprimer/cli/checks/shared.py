"""What the commands of ``cgprimer check`` share: submissions, limits, and the ways to report."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cgprimer.checking.batch import Check, check_all, submissions_in
from cgprimer.checking.report import LEVELS, report
from cgprimer.checking.sandbox import Limits
from cgprimer.cli.common import echo_json, make_command

_SHARED = f"""\
--feedback {"|".join(LEVELS)} =mistake  How much is said: points, which part, what kind of mistake.
--jobs 1.. =1  How many submissions are run at the same time.
--time 0.1.. =10.0  Seconds of computing that a submission may take.
--memory 64.. =1024  Megabytes that it may use.
--output-limit 1.. =1000  Kilobytes that it may print.
--processes 1.. =16  Processes and threads that it may have.
--forbid NAME,...  Modules that it may not import, as cgprimer,torch.
--json (as_json)  Print the result as JSON."""


def check_command(*texts: str, **more: Any) -> Callable[[Callable[..., Check]], click.Command]:
    """A command that checks submissions: its function gives the :class:`Check`, the rest is shared.

    Arguments of its own stand before the submissions::

        @check_command("--points 1.. =100  How many points.")
        @click.argument("file", type=click.Path())
        def command(file: str, points: int) -> Check: ...
    """

    def decorate(function: Callable[..., Check]) -> click.Command:
        @wraps(function)
        def checking(
            submissions: tuple[str, ...],
            feedback: str,
            jobs: int,
            time: float,
            memory: int,
            output_limit: int,
            processes: int,
            forbid: tuple[str, ...],
            as_json: bool,
            **given: Any,
        ) -> None:
            limits = Limits(time, memory, output_limit, processes, forbidden=forbid)
            check = function(**given)
            files = submissions_in([Path(text) for text in submissions])
            results = check_all(check, files, limits, jobs=jobs)
            if as_json:
                found = [result.to_dict() for result in results]
                echo_json(found[0] if len(found) == 1 else found)
                return
            for result in results:
                click.echo(report(result, feedback))

        path = click.Path()
        argument = click.argument("submissions", nargs=-1, type=path, metavar="SUBMISSION...")
        # Arguments of the kind itself were put on first, and come before.
        own = list(getattr(function, "__click_params__", ()))  # before SUBMISSION joins them
        made = make_command(*texts, _SHARED, **more)(argument(checking))
        made.params = [*reversed(own), *(p for p in made.params if p not in own)]
        return made

    return decorate
