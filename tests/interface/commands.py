"""Read the outputs of a command line: numbers, and the data of files."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).with_name("files")
_NUMBER = re.compile(
    r"(?<![\w.^])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)"
)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
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
