"""Compare results with recorded ones: additions pass, anything missing or different fails."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
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


ANY = "*"


def differences(
    recorded: Any, actual: Any, tolerance: float = 1e-9, at: str = "$"
) -> Iterator[str]:
    """Yield what is missing from ``actual`` or differs, each with its path in the JSON.

    Numbers differ if their relative error exceeds the tolerance; errors below ``tolerance`` times
    1e-3 are allowed in any case, so that rounding errors around 0 pass.
    """
    if recorded == ANY:
        return
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for key, value in recorded.items():
            if key in actual:
                yield from differences(value, actual[key], tolerance, f"{at}.{key}")
            else:
                yield f"{at}.{key} is missing"
    elif isinstance(recorded, list) and isinstance(actual, list):
        if len(recorded) != len(actual):
            yield f"{at} has {len(actual)} items, not {len(recorded)}"
        else:
            for index, (before, after) in enumerate(zip(recorded, actual, strict=True)):
                yield from differences(before, after, tolerance, f"{at}[{index}]")
    elif _is_number(recorded) and _is_number(actual):
        if not close(recorded, actual, tolerance):
            yield f"{at} is {actual!r}, not {recorded!r}"
    elif type(recorded) is not type(actual) or recorded != actual:
        yield f"{at} is {actual!r}, not {recorded!r}"


def missing_numbers(recorded: list[float], actual: list[float], tolerance: float) -> list[float]:
    """Return the recorded numbers that do not follow each other, in order, in ``actual``."""
    rest = iter(actual)
    for index, number in enumerate(recorded):
        if not any(close(number, other, tolerance) for other in rest):
            return recorded[index:]
    return []


def close(recorded: float, actual: float, tolerance: float) -> bool:
    """Return whether two numbers agree; nan agrees with nan."""
    if math.isnan(recorded) or math.isnan(actual):
        return math.isnan(recorded) and math.isnan(actual)
    return math.isclose(recorded, actual, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
