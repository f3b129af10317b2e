"""What is written of a run while it goes on and at its end, and what Ctrl-C must not disturb."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cgprimer.cli.common import named_after, note, save_plot
from cgprimer.cli.configuration import config_text
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.files import write_atomically
from cgprimer.training.run_directory import CONFIG, GRAPH, LOSS, RunDirectory
from cgprimer.training.runs import TrainingRun, save_run


class Kept:
    """What is written of a run, while it goes on and at its end."""

    def __init__(
        self, graph: ExpressionGraph, save: str | None, folder: str | None, origin: dict[str, Any]
    ) -> None:
        self.graph, self.save, self.origin = graph, save, origin
        self.folder = RunDirectory(folder) if folder else None
        self.written: list[Path] = []
        self.failed: CgprimerError | None = None

    def configure(self, values: dict[str, Any]) -> None:
        """Write the folder's configuration, which runs again: paths are relative to it."""
        assert self.folder is not None
        path = self.folder.path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make {path}: {error.strerror or error}") from None
        for name in ("data", "validation"):
            if isinstance(values[name], str):
                values[name] = os.path.relpath(values[name], path)
        if values["batch_size"] is None:
            values["batch_size"] = "all"
        said = {name: v for name, v in values.items() if v is not None and v not in ({}, ())}
        write_atomically(path / GRAPH, self.graph.text)
        write_atomically(path / CONFIG, config_text({"graph": GRAPH, **said}))

    def checkpoint(self, run: TrainingRun) -> None:
        """Save the run as it stands; what cannot be written now may be so later."""
        run.settings |= {**self.origin, "samples": run.settings["samples"]}
        self._tried(lambda: save_run(run, self.save, self.graph) if self.save else None)
        self._tried(lambda: self.folder.checkpoint(run) if self.folder else None)

    def epoch(self, run: TrainingRun) -> None:
        """Write down an epoch."""
        self._tried(lambda: self.folder.epoch(run) if self.folder else None)

    def _tried(self, write: Callable[[], None]) -> None:
        try:
            write()
        except CgprimerError as error:
            if self.failed is None:
                note(f"note: {error}")
            self.failed = error

    def end(self, run: TrainingRun, force: bool) -> None:
        """Save the run; where Ctrl-C ended it, in this folder if in no other place."""
        self.failed = None
        run.settings |= {**self.origin, "samples": run.settings["samples"]}
        if run.interrupted and not (self.save or self.folder):
            names = (named_after(self.graph, f".run{n}.json") for n in ("", *range(2, 10_000)))
            self.save = str(next(name for name in names if force or not name.exists()))
        try:
            if self.save:
                save_run(run, self.save, self.graph)
                self.written.append(Path(self.save))
            if self.folder:
                self.folder.end(run)
                self.written.append(self.folder.path)
        except CgprimerError as error:
            self.failed = error

    def draw(self, run: TrainingRun, plot: str | None, dark: bool = False) -> None:
        """Draw the loss where it is wanted, and into the folder."""
        paths = [Path(plot)] if plot else []
        if self.folder and self.failed is None:
            paths.append(self.folder.path / LOSS)
        if not (paths and run.step_losses):
            return
        title = f"Mean loss, {Path(self.graph.source.name).stem}"
        for path in paths:
            save_plot(path, "loss", {"training": run}, title=title, dark=dark)
        self.written += paths[: 1 if plot else 0]

    def go_on(self) -> str:
        """How to go on with what is saved."""
        return f"; go on with --resume {self.written[0]}" if self.written else ""


@contextmanager
def interrupted_once() -> Iterator[Callable[[], None]]:
    """Ctrl-C ends the steps; others, or one after `hold`, do not disturb what is saved and said."""
    over: list[bool] = []
    pressed: list[bool] = []

    def interrupt(*_: object) -> None:
        pressed.append(True)
        if not over:
            over.append(True)
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    if ours and before is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: over.append(True)
    finally:
        if ours:  # who pressed is told what was learnt, and how to go on
            signal.signal(signal.SIGINT, signal.SIG_IGN if pressed else before)
