"""What datasets are read from: files by their endings, frames; and their columns by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cgprimer.errors import DataError, UsageError, name_hint
from cgprimer.support.files import convert_path
from cgprimer.support.value_names import Element
from cgprimer.training.data.arrow_tables import Frame, ParquetFile
from cgprimer.training.data.csv_files import CsvFile
from cgprimer.training.data.dataset_columns import Source, base
from cgprimer.training.data.numpy_files import NumpyFile

FILES = "datasets are .csv, .npz or .parquet"
_KINDS: dict[str, Any] = {
    ".csv": CsvFile, ".npz": NumpyFile, ".npy": NumpyFile, ".parquet": ParquetFile,
}  # fmt: skip
_MANY, _LONG = 40, 100  # names of columns, and letters of each, stand in a message, no more
_PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")


def kind_of(path: str | Path) -> str:
    """The ending, in small letters; another than those of datasets is a UsageError."""
    kind = convert_path(path).suffix.lower()
    if kind not in _KINDS:
        hint = "unpack it first" if kind in _PACKED else FILES
        raise UsageError(f"{path}: unknown ending {kind!r}", hint=hint)
    return kind


def source_of(given: Any) -> Source:
    """A file, or a data frame.

    Raises:
        UsageError: it is neither, or another kind of file.
        DataError: it is no file of its kind.
        OSError: it cannot be read.
    """
    if isinstance(given, str | Path):
        opened: Source = _KINDS[kind_of(given)](Path(given))
        return opened
    if not hasattr(given, "__arrow_c_stream__"):
        hint = "cgprimer.make_dataset(graph), Dataset.load(path), Dataset.from_arrays(...), or a"
        hint += " data frame of pandas, polars or Arrow"
        raise UsageError(f"expected a Dataset, not {type(given).__name__}", hint=hint)
    return Frame(given)


@contextmanager
def reading(path: Any) -> Iterator[None]:
    """What the system says against reading a file is a UsageError; no text is a DataError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is not UTF-8 text", hint="save the file with UTF-8 encoding"
        ) from None


Chosen = dict[str, dict[str, str]]  #: role -> our name of a column -> the source's


def chosen(
    source: Source,
    inputs: Iterable[str],
    targets: Iterable[str],
    columns: Mapping[str, str] | None = None,
) -> Chosen:
    """The columns that inputs and targets are read from; if none are asked for, all.

    Args:
        source: what has them.
        inputs, targets: their names. Of ``x`` these are ``x[0]``, ``x[1]``, ..., if there are such.
        columns: our names to the source's, where they differ.

    Raises:
        DataError: a column is missing, or stands twice.
        UsageError: columns name something that is not asked for.
    """
    wanted = {"inputs": tuple(dict.fromkeys(inputs)), "targets": tuple(dict.fromkeys(targets))}
    known = {role: _named(source, role, columns or {}) for role in wanted}
    whole = list(dict.fromkeys(base(name) for name in known["inputs"]))
    if not any(wanted.values()):
        theirs = whole[-1:]
        if source.roles:
            theirs = [base(n[8:]) for n in source.names if n.startswith("targets/")]
            only = {base(n[7:]) for n in source.names if n.startswith("inputs/")}
            whole = [name for name in whole if name not in theirs or name in only]
        else:
            whole = whole[:-1]
        wanted = {"inputs": tuple(whole), "targets": tuple(dict.fromkeys(theirs))}
    elif strange := [n for n in columns or () if base(n) not in sum(wanted.values(), ())]:
        asked = list(sum(wanted.values(), ()))
        what = f"there is no input or output {strange[0]!r} to give a column to"
        raise UsageError(what, hint=name_hint(strange[0], asked))
    found: Chosen = {}
    for role, names in wanted.items():
        found[role] = {}
        for name in names:
            of = {n: theirs for n, theirs in known[role].items() if base(n) == name or n == name}
            if not of:
                like = [n for n in source.names if re.fullmatch(rf"{re.escape(name)}_?[0-9]+", n)]
                array = ",".join(f"{Element(name, (k,))}={theirs}" for k, theirs in enumerate(like))
                more = f"; of an array: --columns {array}" * bool(like)
                raise _missing(source, name, f"; another name: --columns {name}=COLUMN{more}")
            if twice := [theirs for theirs in of.values() if source.names.count(theirs) > 1]:
                raise DataError(f"{source.place}: the column {twice[0]!r} stands twice")
            found[role] |= of
    return found


def column_names(given: Any, columns: Mapping[str, str] | None = None) -> list[str]:
    """The columns of a file or a frame by our names, an array as one.

    Raises:
        UsageError, DataError: as for :func:`source_of`, or there is no such column.
    """
    with reading(given):
        found = _named(source_of(given), "inputs", columns or {})
    return list(dict.fromkeys(map(base, found)))


def _named(source: Source, role: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Our names of all columns in a role, those of the other one too, to the source's."""
    found: dict[str, str] = {}
    other = "targets/" if role == "inputs" else "inputs/"
    beginnings = (other, f"{role}/") if source.roles else ()
    for start in ("", *beginnings):  # the later ones win
        for name in source.names:
            if name.startswith(start or tuple(beginnings)) == bool(start):
                found[name.removeprefix(start)] = name
    given = dict(found)
    for ours, theirs in columns.items():
        same = {n: ours + n[len(theirs) :] for n in given if n == theirs or base(n) == theirs}
        if not same:
            raise _missing(source, theirs)
        for name in [n for n in found if n == ours or base(n) == ours]:
            del found[name]
        found |= {name: given[n] for n, name in same.items()}
    return found


def _missing(source: Source, name: str, more: str = "") -> DataError:
    names = source.names
    if source.roles:
        names = [n.removeprefix("inputs/").removeprefix("targets/") for n in names]
    shown = (base(n) if n.isprintable() else repr(n) for n in names)
    bases = dict.fromkeys(n if len(n) <= _LONG else f"{n[:_LONG]}..." for n in shown)
    few = ", ".join(list(bases)[:_MANY]) + (", ..." if len(bases) > _MANY else "")
    what = f"{source.place}: there is no column {name!r}; the columns are {few}"
    return DataError(what, hint=name_hint(name, bases) + more)
