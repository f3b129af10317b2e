"""Files of a run that are written during and after training, and the handling of Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cgprimer.cli.common import default_output_path, note, save_plot
from cgprimer.cli.configuration import format_configuration
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.files import write_atomically
from cgprimer.training.run_directory import CONFIG, GRAPH, LOSS, RunDirectory
from cgprimer.training.runs import TrainingRun, save_run


class RunWriter:
    """A writer that saves a training run to a file, to a folder, or to both.

    Args:
        graph: the graph of the run.
        save: path of the file of the run.
        folder: path of the folder of the run.
        origin: options that determine the data, recorded with the run.
    """

    def __init__(
        self, graph: ExpressionGraph, save: str | None, folder: str | None, origin: dict[str, Any]
    ) -> None:
        self.graph, self.save, self.origin = graph, save, origin
        self.folder = RunDirectory(folder) if folder else None
        self.written: list[Path] = []
        self.error: CgprimerError | None = None

    @property
    def has_target(self) -> bool:
        """True if the run is written to a file or a folder."""
        return bool(self.save or self.folder)

    def write_configuration(self, values: dict[str, Any]) -> None:
        """Write the graph, and a run.toml with paths that are relative to the folder."""
        assert self.folder is not None
        folder = self.folder.path
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot create {folder}: {error.strerror or error}") from None
        for name in ("data", "validation"):
            if isinstance(values[name], str):
                values[name] = os.path.relpath(values[name], folder)
        if values["batch_size"] is None:
            values["batch_size"] = "all"
        configuration = {
            name: value
            for name, value in values.items()
            if value is not None and value not in ({}, ())
        }
        write_atomically(folder / GRAPH, self.graph.text)
        write_atomically(folder / CONFIG, format_configuration({"graph": GRAPH, **configuration}))

    def save_checkpoint(self, run: TrainingRun) -> None:
        """Save the run so far; if this fails, print a note and continue."""
        run.settings |= {**self.origin, "samples": run.settings["samples"]}
        if save := self.save:
            self._try_to_write(lambda: save_run(run, save, self.graph))
        if folder := self.folder:
            self._try_to_write(lambda: folder.checkpoint(run))

    def write_epoch(self, run: TrainingRun) -> None:
        """Append the metrics of the last epoch to the metrics file of the folder."""
        if folder := self.folder:
            self._try_to_write(lambda: folder.epoch(run))

    def _try_to_write(self, write: Callable[[], None]) -> None:
        """Call a function that writes files; print a note about the first write error."""
        try:
            write()
        except CgprimerError as error:
            if self.error is None:
                note(f"note: {error}")
            self.error = error

    def finish(self, run: TrainingRun, force: bool) -> None:
        """Save the finished run; without an output path, save only an interrupted run."""
        self.error = None
        run.settings |= {**self.origin, "samples": run.settings["samples"]}
        if run.interrupted and not self.has_target:
            names = (
                default_output_path(self.graph, f".run{n}.json") for n in ("", *range(2, 10_000))
            )
            self.save = str(next(name for name in names if force or not name.exists()))
        try:
            if self.save:
                save_run(run, self.save, self.graph)
                self.written.append(Path(self.save))
            if self.folder:
                self.folder.end(run)
                self.written.append(self.folder.path)
        except CgprimerError as error:
            self.error = error

    def draw_loss(self, run: TrainingRun, plot: str | None, dark: bool = False) -> None:
        """Save a plot of the loss to a file, to the folder of the run, or to both."""
        paths = [Path(plot)] if plot else []
        if self.folder and self.error is None:
            paths.append(self.folder.path / LOSS)
        if not (paths and run.step_losses):
            return
        title = f"Mean loss, {Path(self.graph.source.name).stem}"
        for path in paths:
            save_plot(path, "loss", {"training": run}, title=title, dark=dark)
        self.written += paths[: 1 if plot else 0]

    def resume_hint(self) -> str:
        """Return the end of a message that says how to resume the run, or "" without a file."""
        return f"; continue with --resume {self.written[0]}" if self.written else ""


@contextmanager
def catch_interrupts() -> Iterator[Callable[[], None]]:
    """Interrupt only at the first Ctrl-C, so that results can still be saved and printed.

    Yields:
        A function after whose call Ctrl-C is ignored.
    """
    ignored: list[bool] = []
    pressed: list[bool] = []

    def interrupt(*_: object) -> None:
        """Raise KeyboardInterrupt at the first Ctrl-C, unless interrupts are already ignored."""
        pressed.append(True)
        if not ignored:
            ignored.append(True)
            raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: ignored.append(True)
    finally:
        if in_main_thread:  # after Ctrl-C, the results are printed before the process ends
            signal.signal(signal.SIGINT, signal.SIG_IGN if pressed else handler)
