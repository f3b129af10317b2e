"""A file of finished results, with which an interrupted run continues."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from cgprimer.course.checks.check_results import Result
from cgprimer.errors import DataError
from cgprimer.support.files import write_atomically

_SAVE_INTERVAL = 1.0  # seconds between two writes of the file


class ResultJournal:
    """A file of finished results, from which an interrupted run of a check can continue.

    Attributes:
        results: finished results, keyed by everything that they depend on (``Check.key``).
        written_files: absolute paths of the files that earlier runs wrote.
    """

    def __init__(self, path: Path | None = None, *, fresh: bool = False) -> None:
        """Read a journal; it is empty if the file does not exist yet.

        Args:
            path: the file; None to save nothing.
            fresh: ignore earlier results.

        Raises:
            DataError: the file is not a journal.
        """
        self.path = path
        self.results: dict[str, Result] = {}
        self.written_files: list[str] = []
        self._saved_at = time.monotonic()
        if path is None or fresh or not path.exists():
            return
        try:
            data: Any = json.loads(path.read_bytes())
            entries = data["cgprimer journal"].items()
            self.results = {key: Result.from_dict(entry) for key, entry in entries}
            self.written_files = [str(file) for file in data["wrote"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            hint = "choose another file with --journal"
            raise DataError(f"{path} is not a journal of checks", hint=hint) from None

    def add(self, key: str, result: Result) -> None:
        """Add a finished result, and save the journal at most once per second.

        Raises:
            UsageError: the file cannot be written.
        """
        self.results[key] = result
        if time.monotonic() > self._saved_at + _SAVE_INTERVAL:
            self.save()

    def save(self) -> None:
        """Write the journal file atomically, without results that a grader error caused.

        Raises:
            UsageError: the file cannot be written.
        """
        if self.path is None:
            return
        entries = {
            key: result.to_dict()
            for key, result in self.results.items()
            if result.failure is None or result.failure.kind != "grader"
        }
        text = json.dumps({"cgprimer journal": entries, "wrote": self.written_files})
        write_atomically(self.path, text)
        self._saved_at = time.monotonic()
