"""Progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(work: str, wanted: bool = True) -> Iterator[Callable[..., None] | None]:
    """A bar, gone when the work is done; None where standard error is no terminal.

    It is called with how much is done, of how much, and the loss, if there is one.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console  # honours NO_COLOR
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn(work), BarColumn(), MofNCompleteColumn(), Remaining())
    loss_column = TextColumn("{task.fields[loss]}")
    with Progress(*columns, loss_column, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(work, total=None, loss="")

        def on_progress(done: int, total: int, loss: float | None = None) -> None:
            text = "" if loss is None else f"loss {loss:.4g}"
            bar.update(task, completed=done, total=total, loss=text)

        yield on_progress
