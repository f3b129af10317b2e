"""Sources of datasets (files by extension, data frames) and the choice of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from cgprimer.errors import DataError, UsageError, name_hint
from cgprimer.support.files import convert_path
from cgprimer.support.value_names import Element
from cgprimer.training.data.dataset_columns import Source, get_array_name

FILES = "use a .csv, .npz or .parquet file"
_READERS = {  # extension -> module and class, imported when a file is opened
    ".csv": ("cgprimer.training.data.csv_files", "CsvFile"),
    ".npz": ("cgprimer.training.data.numpy_files", "NumpyFile"),
    ".npy": ("cgprimer.training.data.numpy_files", "NumpyFile"),
    ".parquet": ("cgprimer.training.data.arrow_tables", "ParquetFile"),
}
_MAX_NAMES, _LONGEST_NAME = 40, 100  # limits of the list of columns in a message
_COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")


def check_data_file_extension(path: str | Path) -> str:
    """Return a dataset file's extension in lower case; raise UsageError if it is unknown."""
    kind = convert_path(path).suffix.lower()
    if kind not in _READERS:
        hint = "decompress the file first" if kind in _COMPRESSED else FILES
        raise UsageError(f"{path}: unknown file extension {kind!r}", hint=hint)
    return kind


def open_source(source: Any) -> Source:
    """Open a dataset file or a data frame as a data source.

    Raises:
        UsageError: an argument of another type, or a file with an unknown extension.
        DataError: the content does not match the extension.
        OSError: the file cannot be read.
    """
    if isinstance(source, str | Path):
        module, name = _READERS[check_data_file_extension(source)]
        opened: Source = getattr(import_module(module), name)(Path(source))
        return opened
    if not hasattr(source, "__arrow_c_stream__"):
        hint = "use cgprimer.make_dataset(graph), Dataset.load(path), Dataset.from_arrays(...), or"
        hint += " a data frame of pandas, polars or Arrow"
        raise UsageError(
            f"data must be a Dataset, a file or a data frame, got {type(source).__name__}",
            hint=hint,
        )
    from cgprimer.training.data.arrow_tables import DataFrameSource

    return DataFrameSource(source)


@contextmanager
def report_read_errors(path: Any) -> Iterator[None]:
    """Convert operating-system errors to UsageError, and encoding errors to DataError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is not UTF-8 text", hint="save the file with UTF-8 encoding"
        ) from None


ColumnRoles = dict[str, dict[str, str]]  #: role -> name in the graph -> name in the source


def select_columns(
    source: Source,
    inputs: Iterable[str],
    targets: Iterable[str],
    columns: Mapping[str, str] | None = None,
) -> ColumnRoles:
    """Select the source columns of each input and target; by default all columns.

    Args:
        source: the file or data frame.
        inputs, targets: names in the graph. An array ``x`` is read from its element columns
            ``x[0]``, ``x[1]``, ..., if they exist.
        columns: names in the graph to names in the source, where they differ.

    Raises:
        DataError: a column is missing, or occurs twice.
        UsageError: `columns` has a name that is neither an input nor a target.
    """
    wanted = {"inputs": tuple(dict.fromkeys(inputs)), "targets": tuple(dict.fromkeys(targets))}
    available = {role: _map_column_names(source, role, columns or {}) for role in wanted}
    requested = wanted["inputs"] + wanted["targets"]
    if not requested:
        wanted = _choose_default_roles(source, list(available["inputs"]))
    elif unknown := [name for name in columns or () if get_array_name(name) not in requested]:
        message = f"columns: unknown input or output {unknown[0]!r}"
        raise UsageError(message, hint=name_hint(unknown[0], requested))
    roles: ColumnRoles = {}
    for role, names in wanted.items():
        roles[role] = {}
        for name in names:
            roles[role] |= _find_columns(source, name, available[role])
    return roles


def _choose_default_roles(source: Source, names: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the inputs and targets that a source declares, or the last column as the target."""
    arrays = list(dict.fromkeys(get_array_name(name) for name in names))
    if not source.has_roles:
        return {"inputs": tuple(arrays[:-1]), "targets": tuple(arrays[-1:])}
    targets = [get_array_name(name[8:]) for name in source.names if name.startswith("targets/")]
    inputs = {get_array_name(name[7:]) for name in source.names if name.startswith("inputs/")}
    return {
        "inputs": tuple(name for name in arrays if name not in targets or name in inputs),
        "targets": tuple(dict.fromkeys(targets)),
    }


def _find_columns(source: Source, name: str, available: Mapping[str, str]) -> dict[str, str]:
    """Map a scalar, or each element of an array, to the name of its source column."""
    columns = {n: column for n, column in available.items() if name in (n, get_array_name(n))}
    if not columns:
        numbered = [n for n in source.names if re.fullmatch(rf"{re.escape(name)}_?[0-9]+", n)]
        elements = ",".join(f"{Element(name, (k,))}={n}" for k, n in enumerate(numbered))
        hint = f"; for another name: --columns {name}=COLUMN"
        hint += f"; for an array: --columns {elements}" * bool(numbered)
        raise _create_missing_column_error(source, name, hint)
    if repeated := [column for column in columns.values() if source.names.count(column) > 1]:
        raise DataError(f"{source.location}: column {repeated[0]!r} occurs more than once")
    return columns


def list_column_names(source: Any, columns: Mapping[str, str] | None = None) -> list[str]:
    """List the column names of a file or data frame, with one name per array.

    Args:
        source: a file or a data frame.
        columns: names in the graph to names in the source, where they differ.

    Raises:
        UsageError, DataError: as for :func:`open_source`, or a missing column.
    """
    with report_read_errors(source):
        available = _map_column_names(open_source(source), "inputs", columns or {})
    return list(dict.fromkeys(map(get_array_name, available)))


def _map_column_names(source: Source, role: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Map names in the graph to source columns; ``role`` is ``inputs`` or ``targets``."""
    available: dict[str, str] = {}
    other = "targets/" if role == "inputs" else "inputs/"
    prefixes = (other, f"{role}/") if source.has_roles else ()
    for prefix in ("", *prefixes):  # a later prefix takes precedence
        for name in source.names:
            if name.startswith(prefix or tuple(prefixes)) == bool(prefix):
                available[name.removeprefix(prefix)] = name
    original = dict(available)
    for graph_name, column in columns.items():
        renamed = {
            n: graph_name + n[len(column) :] for n in original if column in (n, get_array_name(n))
        }
        if not renamed:
            raise _create_missing_column_error(source, column)
        for name in [n for n in available if graph_name in (n, get_array_name(n))]:
            del available[name]
        available |= {name: original[n] for n, name in renamed.items()}
    return available


def _create_missing_column_error(source: Source, name: str, hint: str = "") -> DataError:
    """Create the error for a missing column, which lists the existing columns."""
    names = source.names
    if source.has_roles:
        names = [n.removeprefix("inputs/").removeprefix("targets/") for n in names]
    printable = (get_array_name(n) if n.isprintable() else repr(n) for n in names)
    arrays = dict.fromkeys(
        n if len(n) <= _LONGEST_NAME else f"{n[:_LONGEST_NAME]}..." for n in printable
    )
    listed = ", ".join(list(arrays)[:_MAX_NAMES]) + (", ..." if len(arrays) > _MAX_NAMES else "")
    message = f"{source.location}: missing column {name!r}; the columns are {listed}"
    return DataError(message, hint=name_hint(name, arrays) + hint)
