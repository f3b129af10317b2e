"""Columns: made arrays of, put together to arrays per sample, and read from CSV and NPZ files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError, name_hint

Array = Any
SKIP = "take such samples out before training"
Roles = tuple[dict[str, Array], dict[str, Array], str]  #: inputs, targets, where they stand
_ELEMENT = re.compile(r"(.*)\[([0-9]{1,9}(?:, ?[0-9]{1,9})*)\]")  # x[0], x[0,1]


def as_column(what: str, values: Any) -> Array:
    """A contiguous array of doubles, samples first; anything else is a DataError."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise DataError(f"{what} is not an array of real numbers") from None
    if not array.ndim:
        raise DataError(f"{what} has 0 dimensions; a column has a value per sample")
    return np.ascontiguousarray(array, dtype=np.float64)


def base(name: str) -> str:
    """What an element belongs to: ``x`` for ``x[0]``; else the name itself."""
    found = _ELEMENT.fullmatch(name)
    return found[1] if found else name


def together(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Columns of elements put together to those of arrays.

    Raises:
        DataError: an element is missing, stands twice, or is none of one number.
    """
    parts: dict[str, dict[tuple[int, ...], Array]] = {}
    for name, column in columns.items():
        found = _ELEMENT.fullmatch(name)
        place = tuple(map(int, found[2].split(","))) if found else ()
        known = parts.setdefault(base(name), {})
        if place in known or (known and not (place and next(iter(known)))):
            raise DataError(f"the column {name!r} stands beside another of the same numbers")
        if place and (column.ndim > 1 or len(place) != len(next(iter(known), place))):
            raise DataError(f"the column {name!r} does not fit those of {base(name)!r} beside it")
        known[place] = column
    made: dict[str, Array] = {}
    for name, of in parts.items():
        if () in of:
            made[name] = of[()]
            continue
        shape = tuple(max(ns) + 1 for ns in zip(*of, strict=True))
        order = []
        for k in range(min(math.prod(shape), len(of) + 1)):
            order.append(tuple(k // math.prod(shape[i + 1 :]) % n for i, n in enumerate(shape)))
            if order[-1] not in of:
                missing = f"{name}[{','.join(map(str, order[-1]))}]"
                what = f"the column {missing!r} is missing among {len(of)} of {name!r}"
                raise DataError(what, hint="elements are counted from 0, and none is left out")
        whole = np.stack([of[place] for place in order], axis=1)
        made[name] = whole.reshape(len(whole), *shape)
    return made


def kind_of(path: str | Path) -> str:
    """``.csv`` or ``.npz``; another ending is a UsageError."""
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".npz"):
        raise UsageError(f"{path}: unknown ending {kind!r}", hint="datasets are .csv or .npz")
    return kind


# --- CSV: a table of numbers is read fast, anything else a row at a time -------------------------


def read_csv(path: Path, inputs: Sequence[str], targets: Sequence[str]) -> Roles:
    """The columns asked for; if none are, the last is the target."""
    text = path.read_text(encoding="utf-8-sig")
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        repeated = [name for name in names if names.count(name) > 1]
        wrong = ""
        if not any(names):
            wrong = "the first line must hold the names of the columns"
        elif split := next((n for n in names if re.fullmatch(r"\w+\[[0-9]+", n)), ""):
            wrong = f'names with commas stand in quotes: write "{split},...]"'
        elif repeated:
            wrong = f"the column {repeated[0]!r} stands twice"
        elif len(names) == 1 and any(mark in names[0] for mark in ";\t"):
            wrong = "the columns must be separated by commas"
        elif _number(names[0]) is not None:
            wrong = "the first line must hold the names of the columns, not numbers"
        if wrong:
            raise DataError(f"{path}:1: {wrong}")
        columns: dict[str, list[int]] = {}  # those of each value
        for k, name in enumerate(names):
            columns.setdefault(base(name), []).append(k)
        if not inputs and not targets:
            *inputs, last = columns
            targets = (last,)
        wanted = tuple(dict.fromkeys((*inputs, *targets)))
        _require(path, wanted, list(columns))
        places = [k for name in wanted for k in columns[name]]
        found = _table(text.partition("\n")[2], len(names), places)
        if found is None:
            rows = list(_rows(path, reader, names, places))
            found = [np.array(column) for column in zip(*rows, strict=True)]
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: this is no CSV: {error}") from None
    if not found:
        raise DataError(f"{path}: there are no samples below the header")
    column = dict(zip(places, found, strict=True))
    ours, theirs = (
        {names[k]: column[k] for n in of for k in columns[n]} for of in (inputs, targets)
    )
    return ours, theirs, f"{path}:1"


def _table(body: str, width: int, places: list[int]) -> list[Array] | None:
    """The columns of these places; None if something is not as it must be."""
    if not body.strip():
        return None
    # Columns that nobody asks for may hold anything: a letter of each is enough.
    kinds = [(f"f{k}", float if k in places else "U1") for k in range(width)]
    try:
        table = np.loadtxt(io.StringIO(body), kinds, delimiter=",", comments=None, quotechar='"')
    except ValueError:
        return None
    found = [np.atleast_1d(np.ascontiguousarray(table[f"f{k}"])) for k in places]
    return found if all(np.isfinite(column).all() for column in found) else None


def _rows(path: Path, reader: Any, names: list[str], places: list[int]) -> Iterator[list[float]]:
    """The numbers of the rows, in the columns of these places; the first mistake is placed."""
    for row in reader:
        where = f"{path}:{reader.line_num}"
        if row and len(row) != len(names):
            raise DataError(f"{where}: {len(row)} fields, but the header has {len(names)} columns")
        values: list[float] = []
        for k in places if row else ():
            value, text = _number(row[k]), row[k].strip()
            if value is None:
                raise DataError(f"{where}: {text!r} in the column {names[k]!r} is not a number")
            if not math.isfinite(value):
                what = f"{where}: {text} in the column {names[k]!r} is not finite"
                raise DataError(what, hint=SKIP)
            values.append(value)
        if values:
            yield values


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)  # Python's own 1_000 is no number elsewhere
    except ValueError:
        return None


def read_npz(path: Path, inputs: tuple[str, ...], targets: tuple[str, ...]) -> Roles:
    """The arrays asked for; if none are, the roles that the file has."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except OSError:
        raise
    except Exception as error:  # zipfile's errors have no common base with numpy's
        raise DataError(f"{path} is not a file of numpy arrays") from error
    roles = {key.partition("/")[2] or key: key for key in arrays}
    if not inputs and not targets:
        targets = tuple(n for n, key in roles.items() if key.startswith("targets/"))
        inputs = tuple(n for n in roles if n not in targets)
    _require(path, (*inputs, *targets), list(roles))
    ours, theirs = ({n: arrays[roles[n]] for n in of} for of in (inputs, targets))
    return ours, theirs, str(path)


def _require(path: Path, wanted: tuple[str, ...], names: list[str]) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        shown = [name if name.isprintable() else repr(name) for name in names]
        what = f"{path}: there is no column {missing[0]!r}; the columns are {', '.join(shown)}"
        raise DataError(what, hint=name_hint(missing[0], shown))
