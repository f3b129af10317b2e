"""Progress bars: of a training run, and of slides that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cgprimer.core.number_format import number

_EVERY = 0.1  # seconds between updates: drawing at every step would cost more than the step


@contextmanager
def progress_bar(clock: Callable[[], float]) -> Iterator[Callable[[int, int, float], None]]:
    """A bar on standard error, gone when the work is done (rich honours NO_COLOR)."""
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None, loss="")
        last = clock()

        def on_step(step: int, total: int, loss: float) -> None:
            nonlocal last
            now = clock()
            if step in (1, total) or now - last >= _EVERY:
                last = now
                bar.update(task, completed=step, total=total, loss=number(loss, 4))

        yield on_step


@contextmanager
def drawing_bar() -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error for slides: how many are drawn, and of how many."""
    columns = (TextColumn("drawing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("drawing", total=None)

        def on_frame(number: int, total: int) -> None:
            bar.update(task, completed=number, total=total)

        yield on_frame
