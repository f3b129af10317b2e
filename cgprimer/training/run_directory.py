"""The folder of a run.

    run.toml         the settings; ``cgprimer train run.toml`` repeats the run
    graph.cg         the graph
    metrics.jsonl    one line of JSON per epoch, written at its end
    run.json         the run, as :func:`cgprimer.save_run` writes it; a checkpoint until its end
    parameters.json  the learned parameters

A process that is killed leaves the last checkpoint, and possibly more lines in ``metrics.jsonl``
than the checkpoint has epochs; a run that is resumed writes these lines again.
"""

from __future__ import annotations

from pathlib import Path

from cgprimer.errors import UsageError
from cgprimer.support.files import format_json, write_atomically
from cgprimer.training.runs import RUN, TrainingRun, run_as_dict, save_run

CONFIG, METRICS, GRAPH = "run.toml", "metrics.jsonl", "graph.cg"
PARAMETERS, LOSS = "parameters.json", "loss.png"


class RunDirectory:
    """A folder for the files of a run, with methods to pass to ``train`` as callbacks.

    Raises:
        UsageError: a file cannot be written.

    >>> import cgprimer, tempfile
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     directory = RunDirectory(folder)
    ...     run = cgprimer.train(
    ...         graph, data, epochs=2, on_epoch=directory.epoch, on_checkpoint=directory.checkpoint
    ...     )
    ...     directory.end(run)
    ...     [path.name for path in sorted(Path(folder).iterdir())]
    ['metrics.jsonl', 'parameters.json', 'run.json']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._written_epochs = -1  # -1 before the file is created

    def checkpoint(self, run: TrainingRun) -> None:
        """Write the current state of the run to ``run.json``."""
        save_run(run, self.path / RUN)

    def epoch(self, run: TrainingRun) -> None:
        """Append a line to ``metrics.jsonl`` for each epoch that ended since the last call."""
        path = self.path / METRICS
        epochs = range(max(0, self._written_epochs), run.epochs)
        text = "".join(_format_epoch(run, epoch) for epoch in epochs)
        if self._written_epochs < 0:
            write_atomically(path, text)
        elif text:
            try:
                with path.open("a", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
        self._written_epochs = run.epochs

    def end(self, run: TrainingRun) -> None:
        """Write the final run, the lines of all epochs and the learned parameters."""
        self.checkpoint(run)
        self.epoch(run)
        parameters = run_as_dict(run, run.graph)["parameters"]
        write_atomically(self.path / PARAMETERS, format_json(parameters) + "\n")


def _format_epoch(run: TrainingRun, epoch: int) -> str:
    """Format the losses and metrics of an epoch, counted from 0, as a line of JSON."""
    steps = (epoch + 1) * run.settings["steps_per_epoch"]
    entry = {"epoch": epoch + 1, "step": steps, "loss": run.epoch_losses[epoch]}
    if run.validation_losses:
        entry["validation_loss"] = run.validation_losses[epoch]
    entry |= {name: values[epoch] for name, values in run.metrics.items()}
    return format_json(entry, indent=None) + "\n"
