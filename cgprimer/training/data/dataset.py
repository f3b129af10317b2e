"""Datasets in memory: named columns of inputs and targets."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.array_values import find_nonfinite
from cgprimer.support.files import write_atomically
from cgprimer.support.validation import check_fraction, check_integer
from cgprimer.tapes import elements
from cgprimer.training.data.data_sources import (
    FILES,
    ColumnRoles,
    check_data_file_extension,
    open_source,
    report_read_errors,
    select_columns,
)
from cgprimer.training.data.dataset_columns import (
    SKIP,
    Array,
    combine_elements,
    convert_column,
    select_sample_indices,
)

_SPLIT_STREAM = 1_000_003  # distinguishes the random order of a split from that of an epoch


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A dataset in memory: one array per input and target, with equal numbers of samples.

    A value is a scalar or an array: the column of an input ``x[4]`` has shape (samples, 4).

    Attributes:
        inputs: names of input variables to their columns, float64 of shape (samples, ...).
        targets: names of output variables to their columns.
        truth: ground-truth values of the parameters of generated data; empty for other data,
            whatever the graph declares.

    >>> data = Dataset.from_arrays(inputs={"xa": [0.0, 1.0]}, targets={"xw": [3.0, 4.0]})
    >>> len(data), data.targets["xw"]
    (2, array([3., 4.]))
    """

    inputs: dict[str, Array]
    targets: dict[str, Array]
    truth: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls, inputs: Mapping[str, Any], targets: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Create a dataset from arrays or lists; contiguous float64 arrays are not copied.

        Columns named ``x[0]``, ``x[1]``, ... (``W[0,0]``, ... for two axes) are combined to arrays.

        Args:
            inputs: names to columns: a dictionary or a data frame. The first axis is the samples.
            targets: names to columns, as for `inputs`; by default none.

        Raises:
            UsageError: an argument that is not a mapping, or a name that is not printable text.
            DataError: no columns, columns of different lengths, a column that is not an array of
                real numbers, or a missing element.

        >>> Dataset.from_arrays({"x[0]": [1, 2], "x[1]": [3, 4]}).inputs["x"]
        array([[1., 3.],
               [2., 4.]])
        """
        columns: dict[str, dict[str, Array]] = {"input": {}, "target": {}}
        for role, mapping in (
            ("input", inputs),
            ("target", {} if targets is None else targets),
        ):
            if not hasattr(mapping, "items"):
                message = f"{role}s must map names to columns, got {type(mapping).__name__}"
                hint = f'pass {role}s={{"xa": array}}, or a data frame with these column names'
                raise UsageError(message, hint=hint)
            for name, values in mapping.items():
                if not isinstance(name, str) or not name.isprintable():
                    raise UsageError(f"column names must be printable strings, got {name!r}")
                columns[role][name] = convert_column(f"{role} {name!r}", values)
        lengths = {
            f"{role} {name}": len(column)
            for role, named_columns in columns.items()
            for name, column in named_columns.items()
        }
        if not lengths:
            raise DataError("a dataset needs at least one column")
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise DataError(f"columns must have equal lengths, got {listed}")
        return cls(combine_elements(columns["input"]), combine_elements(columns["target"]))

    @property
    def columns(self) -> dict[str, Array]:
        """All columns keyed by name, inputs first."""
        return {**self.inputs, **self.targets}

    def __len__(self) -> int:
        """Number of samples."""
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        inputs, targets = map(_describe_columns, (self.inputs, self.targets))
        return f"<Dataset: {len(self):,} samples, inputs {inputs}, targets {targets}>"

    def where(self, chosen: Array) -> Dataset:
        """Return the samples that a boolean mask or an array of indices selects."""
        chosen = select_sample_indices(chosen, len(self))
        inputs = {name: column[chosen] for name, column in self.inputs.items()}
        targets = {name: column[chosen] for name, column in self.targets.items()}
        return replace(self, inputs=inputs, targets=targets)

    def split(self, share: float, seed: int) -> tuple[Dataset, Dataset]:
        """Split the samples randomly into training and validation data.

        Args:
            share: the fraction of the samples in the validation data.
            seed: the random seed.

        Raises:
            UsageError: the fraction is not between 0 and 1.
            DataError: one of the two parts would be empty.

        >>> data = Dataset.from_arrays({"xa": [0.0, 1.0, 2.0, 3.0]})
        >>> [len(part) for part in data.split(0.25, seed=0)]
        [3, 1]
        """
        share = check_fraction("the validation fraction", share)
        seed = check_integer("the seed", seed)
        held_out = round(share * len(self))
        if not 0 < held_out < len(self):
            part = "validation" if held_out == 0 else "training"
            hint = "use more samples, another fraction, or a separate validation dataset"
            message = f"a validation fraction of {share:g} of {len(self)} samples leaves no samples"
            raise DataError(f"{message} for {part}", hint=hint)
        in_validation = np.zeros(len(self), bool)
        order = np.random.default_rng([seed, _SPLIT_STREAM]).permutation(len(self))
        in_validation[order[:held_out]] = True
        return self.where(~in_validation), self.where(in_validation)

    def check_finite(self, what: str = "", first: int = 0) -> None:
        """Raise DataError if any value is infinite or nan.

        Args:
            what: the beginning of the message.
            first: the index of the first sample, for the message.
        """
        for name, column in (*self.inputs.items(), *self.targets.items()):
            if nonfinite := find_nonfinite(column, column.ndim - 1):
                value, sample, element = nonfinite
                message = f"{what}sample {first + sample} of column {name + element!r}"
                raise DataError(f"{message} must be finite, got {value}", hint=SKIP)

    # A dataset in memory is a single block: `Blocks` has the same interface.

    @property
    def lengths(self) -> list[int]:
        """The number of samples in each block; a dataset in memory is a single block."""
        return [len(self)]

    def block(self, number: int) -> Dataset:
        """Return the whole dataset, which is its only block."""
        return self

    # --- files and frames -----------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the dataset to a CSV, NPZ or Parquet file; the file extension selects the format.

        A CSV file has a header with the names (element names such as ``x[0]`` for an array) and
        one line per sample, with numbers in their shortest exact form. A Parquet file has the same
        columns. An NPZ file has arrays called ``inputs/NAME`` and ``targets/NAME``.

        Raises:
            UsageError: another file extension, or the file cannot be written.
            DataError: for CSV or Parquet, an input and a target have the same name.
        """
        kind = check_data_file_extension(path)
        if kind == ".csv":
            write_atomically(path, self.to_csv())
        elif kind == ".parquet":
            from cgprimer.training.data.arrow_tables import encode_parquet

            write_atomically(path, encode_parquet(self.to_arrow()))
        elif kind == ".npz":
            arrays = {f"inputs/{n}": c for n, c in self.inputs.items()}
            arrays |= {f"targets/{n}": c for n, c in self.targets.items()}
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            write_atomically(path, buffer.getvalue())
        else:
            raise UsageError(f"{path}: cannot save a dataset as {kind}", hint=FILES)

    def _split_into_scalar_columns(self) -> dict[str, Array]:
        """Return one column per scalar; arrays are split into element columns."""
        if shared := [name for name in self.inputs if name in self.targets]:
            message = f"column names must be unique: {shared[0]!r} is both an input and a target"
            raise DataError(
                message, hint="save an .npz file, which stores inputs and targets separately"
            )
        scalars: dict[str, Array] = {}
        for name, column in self.columns.items():
            shape = column.shape[1:]
            flat = column.reshape(len(self), math.prod(shape)).T
            scalars |= zip(elements(name, shape), flat, strict=True)
        return scalars

    def to_csv(self) -> str:
        """Return the dataset in CSV format, as a string.

        >>> print(Dataset.from_arrays({"x": [[0.5, 2.0]]}, {"xw": [0.1]}).to_csv(), end="")
        x[0],x[1],xw
        0.5,2.0,0.1
        """
        columns = self._split_into_scalar_columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        header = ",".join(f'"{name}"' if "," in name else name for name in columns)
        lines = [header, *(",".join(map(repr, row)) for row in rows)]
        return "\n".join(lines) + "\n"

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table`` with one column per scalar.

        >>> Dataset.from_arrays({"x": [[0.5, 2.0]]}, {"xw": [0.1]}).to_arrow().to_pylist()
        [{'x[0]': 0.5, 'x[1]': 2.0, 'xw': 0.1}]
        """
        import pyarrow as pa

        return pa.table(
            {name: pa.array(part) for name, part in self._split_into_scalar_columns().items()}
        )

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with one column per scalar."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame`` with one column per scalar."""
        import polars

        return polars.from_arrow(self.to_arrow())

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        graph: ExpressionGraph | None = None,
        *,
        inputs: Iterable[str] = (),
        targets: Iterable[str] = (),
        columns: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Create a dataset from a data frame of pandas or polars, or from an Arrow table.

        Args:
            frame: an object with ``__arrow_c_stream__``.
            graph: the graph whose inputs and outputs are read by default.
            inputs, targets, columns: as for :meth:`load`.

        Raises:
            UsageError: the argument is not a data frame.
            DataError: a missing column, a column that is not numeric, or a value that is missing
                or not finite.

        >>> import cgprimer, pyarrow
        >>> table = pyarrow.table({"height": [1.0, 2.0], "day": ["mon", "tue"], "label": [0, 1]})
        >>> graph = cgprimer.parse("xo = k*xa")
        >>> Dataset.from_frame(table, graph, columns={"xa": "height", "xo": "label"}).inputs
        {'xa': array([1., 2.])}
        """
        if graph is not None:
            inputs, targets = tuple(inputs) or graph.inputs, tuple(targets) or graph.outputs
        return cls.load(frame, inputs=inputs, targets=targets, columns=columns)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        inputs: Iterable[str] = (),
        targets: Iterable[str] = (),
        columns: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Read a CSV, NPZ, NPY or Parquet file into memory; :class:`Blocks` reads large files.

        Args:
            path: the file; its extension determines the format.
            inputs: names of the inputs, for instance a graph's ``inputs``. An array ``x`` is read
                from the columns ``x[0]``, ``x[1]``, ..., if they exist.
            targets: names of the targets, for instance a graph's ``outputs``.
            columns: names in the graph to names in the file, where they differ:
                ``{"y": "label"}``, or ``{"x[0]": "height"}`` for an element.

        By default, an NPZ file determines inputs and targets by its names, and in other files the
        last column is the target. Columns that are not requested are ignored.

        Raises:
            UsageError: the file cannot be read, or its extension is unknown.
            DataError: a missing column, a row of the wrong length, or a field that is not a finite
                number; the message names the file and, for CSV, the line.
        """
        with report_read_errors(path):
            source = open_source(path)
            roles = select_columns(source, inputs, targets, columns)
            arrays = source.read_all(list_source_columns(roles))
        if not (arrays and len(arrays[0])):
            raise DataError(f"{source.location} contains no samples")
        return build_dataset(cls, source.location, roles, arrays)


def list_source_columns(roles: ColumnRoles) -> list[str]:
    """List the source columns of all inputs and targets, without duplicates."""
    return list(dict.fromkeys(column for names in roles.values() for column in names.values()))


def build_dataset(
    kind: type[Dataset], location: str, roles: ColumnRoles, columns: list[Array], first: int = 0
) -> Dataset:
    """Build a dataset from source columns, and check that all values are finite."""
    by_name = dict(zip(list_source_columns(roles), columns, strict=True))
    inputs, targets = (
        {name: by_name[column] for name, column in names.items()} for names in roles.values()
    )
    try:
        data = kind.from_arrays(inputs, targets)
        data.check_finite(first=first)
    except DataError as error:
        raise DataError(f"{location}: {error.message}", hint=error.hint) from None
    return data


def concatenate_datasets(parts: list[Dataset]) -> Dataset:
    """Concatenate the samples of datasets that have the same columns."""
    inputs = concatenate_columns([part.inputs for part in parts])
    targets = concatenate_columns([part.targets for part in parts])
    return replace(parts[0], inputs=inputs, targets=targets)


def concatenate_columns(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Concatenate the samples of columns that have the same names."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _describe_columns(columns: Mapping[str, Array]) -> str:
    """Return the names of columns, with the shapes of arrays, for ``repr``."""
    described = (
        name + (format_shape(column.shape[1:]) if column.ndim > 1 else "")
        for name, column in columns.items()
    )
    return ", ".join(described) or "none"
