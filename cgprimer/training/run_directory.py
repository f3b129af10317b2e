"""A run's own folder: what decided it, how it went, and what it learnt.

    run.toml         what decided it; ``cgprimer train run.toml`` does it again
    graph.cg         the graph
    metrics.jsonl    a line of JSON for each epoch, written as it ends
    run.json         the run, as :func:`cgprimer.save_run` writes it; before its end a checkpoint
    parameters.json  what was learnt

A process that is killed leaves the last checkpoint and perhaps more lines than that has epochs;
whoever goes on writes the lines anew.
"""

from __future__ import annotations

from pathlib import Path

from cgprimer.errors import UsageError
from cgprimer.support.files import format_json, write_atomically
from cgprimer.training.runs import RUN, TrainingRun, run_as_dict, save_run

CONFIG, METRICS, GRAPH = "run.toml", "metrics.jsonl", "graph.cg"
PARAMETERS, LOSS = "parameters.json", "loss.png"


class RunDirectory:
    """Writes a run into a folder while it goes on; ``train`` calls `epoch` and `checkpoint`.

    Raises:
        UsageError: a file cannot be written.

    >>> import cgprimer, tempfile
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = RunDirectory(folder)
    ...     run = cgprimer.train(
    ...         graph, data, epochs=2, on_epoch=kept.epoch, on_checkpoint=kept.checkpoint
    ...     )
    ...     kept.end(run)
    ...     [path.name for path in sorted(Path(folder).iterdir())]
    ['metrics.jsonl', 'parameters.json', 'run.json']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._written = -1  # epochs whose lines are written; -1 before the first

    def checkpoint(self, run: TrainingRun) -> None:
        """Save the run as it stands."""
        save_run(run, self.path / RUN)

    def epoch(self, run: TrainingRun) -> None:
        """Write the lines of the epochs that have ended since."""
        path = self.path / METRICS
        text = "".join(_line(run, k) for k in range(max(0, self._written), run.epochs))
        if self._written < 0:
            write_atomically(path, text)
        elif text:
            try:
                with path.open("a", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
        self._written = run.epochs

    def end(self, run: TrainingRun) -> None:
        """Write all that is known now."""
        self.checkpoint(run)
        self.epoch(run)
        learnt = run_as_dict(run, run.graph)["parameters"]
        write_atomically(self.path / PARAMETERS, format_json(learnt) + "\n")


def _line(run: TrainingRun, epoch: int) -> str:
    """What is known of an epoch, counted from 0; the same whenever it is written."""
    steps = (epoch + 1) * run.settings["steps_per_epoch"]
    found = {"epoch": epoch + 1, "step": steps, "loss": run.epoch_losses[epoch]}
    if run.validation_losses:
        found["validation_loss"] = run.validation_losses[epoch]
    found |= {name: values[epoch] for name, values in run.metrics.items()}
    return format_json(found, indent=None) + "\n"
