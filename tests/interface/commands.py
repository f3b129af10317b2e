"""Run a command line in this process, and summarize the files that it writes."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from cgprimer.__main__ import main

FILES = Path(__file__).with_name("files")
_NUMBER = re.compile(
    r"(?<![\w.^])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)"
)
_UNSET = ("NO_COLOR", "FORCE_COLOR", "CGPRIMER_DEBUG", "PYTHONWARNINGS", "COLUMNS")


@dataclass(frozen=True)
class Outcome:
    """The exit code, the outputs, and the names of new or changed files."""

    exit_code: int
    stdout: str
    stderr: str
    written: tuple[str, ...]


def run_command(args: list[str], folder: Path, stdin: str = "") -> Outcome:
    """Run ``cgprimer ARGS`` in a folder."""
    before = _contents(folder)
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    environment = {name: value for name, value in os.environ.items() if name not in _UNSET}
    with (
        mock.patch.object(sys, "argv", ["cgprimer", *args]),
        mock.patch.object(sys, "stdin", given),
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder),
        warnings.catch_warnings(action="default"),
    ):
        exit_code: Any = 0
        try:
            main()
        except SystemExit as end:
            exit_code = end.code or 0
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    after = _contents(folder)
    written = sorted(name for name in after if after[name] != before.get(name))
    return Outcome(exit_code, texts[0], texts[1], tuple(written))


def _contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text, in order; digits inside of names are left out."""
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def summarize(path: Path) -> Any:
    """Return the data of a file in JSON, CSV, npz or Parquet; of other files None."""
    match path.suffix:
        case ".json" | ".ipynb":
            return json.loads(path.read_text(encoding="utf-8"))
        case ".jsonl":
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        case ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                header, *rows = csv.reader(file)
            return {"columns": header, "rows": [[_number(cell) for cell in row] for row in rows]}
        case ".npz":
            with np.load(path) as arrays:
                return {name: arrays[name].tolist() for name in arrays.files}
        case ".parquet":
            from pyarrow.parquet import read_table

            return read_table(path).to_pydict()
    return None


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
