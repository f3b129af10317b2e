"""Datasets: named columns of inputs and targets, made from a graph or read from a file."""

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
from cgprimer.training.data.arrow_tables import parquet_bytes
from cgprimer.training.data.data_sources import FILES, Chosen, chosen, kind_of, reading, source_of
from cgprimer.training.data.dataset_columns import SKIP, Array, as_column, numbers_of, together

_STREAM = 1_000_003  # beside the seed: another order than that of any epoch


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Columns of one length: a value per sample for each input and each target.

    A value is a number, or an array: the column of an input ``x[4]`` has the shape (samples, 4).

    Attributes:
        inputs: name of an input variable to its column, float64 of shape (samples, ...).
        targets: name of an output variable to its column.
        truth: values of the parameters that the data were made with; empty for data from
            elsewhere, whatever the graph declares.

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
        """A dataset from arrays or lists, copied where they are not contiguous doubles.

        Columns named ``x[0]``, ``x[1]``, ... (``W[0,0]``, ... for two axes) are put together.

        Args:
            inputs: names to columns: a dictionary, or a data frame. The first axis is the samples.
            targets: the same; none unless given.

        Raises:
            UsageError: what is given has no names, or a name that is no printable text.
            DataError: no columns, columns of different lengths, one that is no array of real
                numbers, or an element that is missing.

        >>> Dataset.from_arrays({"x[0]": [1, 2], "x[1]": [3, 4]}).inputs["x"]
        array([[1., 3.],
               [2., 4.]])
        """
        columns: dict[str, dict[str, Array]] = {"input": {}, "target": {}}
        for role, given in (("input", inputs), ("target", {} if targets is None else targets)):
            if not hasattr(given, "items"):
                what = f"{role}s map names to columns; {type(given).__name__} does not"
                hint = f'{role}s={{"xa": array}}, or a data frame with the names as its columns'
                raise UsageError(what, hint=hint)
            for name, values in given.items():
                if not isinstance(name, str) or not name.isprintable():
                    raise UsageError(f"{name!r} cannot be the name of a column")
                columns[role][name] = as_column(f"the {role} {name!r}", values)
        lengths = {f"{role} {n}": len(c) for role, of in columns.items() for n, c in of.items()}
        if not lengths:
            raise DataError("a dataset needs at least one column")
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise DataError(f"the columns have different lengths: {shown}")
        return cls(together(columns["input"]), together(columns["target"]))

    @property
    def columns(self) -> dict[str, Array]:
        """All columns, inputs first."""
        return {**self.inputs, **self.targets}

    def __len__(self) -> int:
        """Number of samples."""
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        inputs, targets = (
            ", ".join(n + (format_shape(c.shape[1:]) if c.ndim > 1 else "") for n, c in of.items())
            or "none"
            for of in (self.inputs, self.targets)
        )
        return f"<Dataset: {len(self):,} samples, inputs {inputs}, targets {targets}>"

    def where(self, chosen: Array) -> Dataset:
        """The samples that a mask, or their numbers, choose."""
        chosen = numbers_of(chosen, len(self))
        inputs = {name: column[chosen] for name, column in self.inputs.items()}
        targets = {name: column[chosen] for name, column in self.targets.items()}
        return replace(self, inputs=inputs, targets=targets)

    def split(self, share: float, seed: int) -> tuple[Dataset, Dataset]:
        """In two: samples to train on, and a share of them, drawn from the seed, to validate with.

        Raises:
            UsageError: the share is not between 0 and 1.
            DataError: one of the two would have no sample.

        >>> data = Dataset.from_arrays({"xa": [0.0, 1.0, 2.0, 3.0]})
        >>> [len(part) for part in data.split(0.25, seed=0)]
        [3, 1]
        """
        share = check_fraction("the share of samples to validate with", share)
        seed = check_integer("the seed", seed)
        kept_out = round(share * len(self))
        if not 0 < kept_out < len(self):
            use = "validate with" if kept_out == 0 else "train on"
            hint = "more samples, another share, or a dataset of its own to validate with"
            raise DataError(f"{share:g} of {len(self)} samples leaves nothing to {use}", hint=hint)
        chosen = np.zeros(len(self), bool)
        chosen[np.random.default_rng([seed, _STREAM]).permutation(len(self))[:kept_out]] = True
        return self.where(~chosen), self.where(chosen)

    def check_finite(self, what: str = "", first: int = 0) -> None:
        """Raise DataError with the first value that is infinite or nan; ``what`` comes before.

        Samples are counted from ``first``.
        """
        for name, column in (*self.inputs.items(), *self.targets.items()):
            if bad := find_nonfinite(column, column.ndim - 1):
                where = f"{what}sample {first + bad[1]} of the column {name + bad[2]!r}"
                raise DataError(f"{where} is {bad[0]}, not finite", hint=SKIP)

    # What datasets in blocks have, too: this one is a single block.

    @property
    def lengths(self) -> list[int]:
        """How many samples each block has."""
        return [len(self)]

    def block(self, number: int) -> Dataset:
        """The samples of a block."""
        return self

    # --- files and frames -----------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write as CSV, NPZ or Parquet, by the file's ending.

        CSV has a header with the names (of an array those of its elements, ``x[0]``) and one line
        per sample, numbers in their shortest exact form; Parquet has the same columns; NPZ has
        arrays called ``inputs/NAME`` and ``targets/NAME``.

        Raises:
            UsageError: another ending, or the file cannot be written.
            DataError: CSV or Parquet, where an input has the name of a target.
        """
        kind = kind_of(path)
        if kind == ".csv":
            write_atomically(path, self.to_csv())
        elif kind == ".parquet":
            write_atomically(path, parquet_bytes(self.to_arrow()))
        elif kind == ".npz":
            arrays = {f"inputs/{n}": c for n, c in self.inputs.items()}
            arrays |= {f"targets/{n}": c for n, c in self.targets.items()}
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            write_atomically(path, buffer.getvalue())
        else:
            raise UsageError(f"{path}: datasets are not written as {kind}", hint=FILES)

    def _in_numbers(self) -> dict[str, Array]:
        """A column for each number of a sample."""
        if both := [name for name in self.inputs if name in self.targets]:
            what = f"the column {both[0]!r} is an input and a target: in a table names stand once"
            raise DataError(what, hint="an .npz file tells them apart")
        found: dict[str, Array] = {}
        for name, column in self.columns.items():
            shape = column.shape[1:]
            flat = column.reshape(len(self), math.prod(shape)).T
            found |= zip(elements(name, shape), flat, strict=True)
        return found

    def to_csv(self) -> str:
        """The text of a CSV file.

        >>> print(Dataset.from_arrays({"x": [[0.5, 2.0]]}, {"xw": [0.1]}).to_csv(), end="")
        x[0],x[1],xw
        0.5,2.0,0.1
        """
        columns = self._in_numbers()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        header = ",".join(f'"{name}"' if "," in name else name for name in columns)
        lines = [header, *(",".join(map(repr, row)) for row in rows)]
        return "\n".join(lines) + "\n"

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with the columns of a CSV file.

        >>> Dataset.from_arrays({"x": [[0.5, 2.0]]}, {"xw": [0.1]}).to_arrow().to_pylist()
        [{'x[0]': 0.5, 'x[1]': 2.0, 'xw': 0.1}]
        """
        import pyarrow as pa

        return pa.table({name: pa.array(part) for name, part in self._in_numbers().items()})

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with the columns of a CSV file."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A ``polars.DataFrame`` with the columns of a CSV file."""
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
        """A dataset from a data frame of pandas or polars, or a table of Arrow.

        Args:
            frame: anything with ``__arrow_c_stream__``.
            graph: whose inputs and outputs are read, unless they are given.
            inputs, targets, columns: as for :meth:`load`.

        Raises:
            UsageError: it is no data frame.
            DataError: a missing column, one that is not of numbers, a value that is missing or not
                finite.

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
        """Read a CSV, NPZ, NPY or Parquet file into memory; :class:`Blocks` reads it in parts.

        Args:
            path: the file; the ending tells its kind.
            inputs: columns that are inputs. A graph's ``inputs``, for instance. Of ``x`` these are
                the columns ``x[0]``, ``x[1]``, ..., where there are such.
            targets: columns that are targets. A graph's ``outputs``, for instance.
            columns: where they have other names in the file: ``{"y": "label"}``. Of elements, too:
                ``{"x[0]": "height"}``.

        If neither inputs nor targets are given, an NPZ file's own roles are used, and in other
        files the last column is the target. Columns that are not asked for are left out.

        Raises:
            UsageError: the file cannot be read or its ending is unknown.
            DataError: a missing column, a row of the wrong length, a field that is no number or
                not finite; the message names the file, and of CSV the line.
        """
        with reading(path):
            source = source_of(path)
            roles = chosen(source, inputs, targets, columns)
            found = source.whole(names_of(roles))
        if not (found and len(found[0])):
            raise DataError(f"{source.place}: there are no samples")
        return made(cls, source.place, roles, found)


def names_of(roles: Chosen) -> list[str]:
    """The columns of a source that are read."""
    return list(dict.fromkeys(name for of in roles.values() for name in of.values()))


def made(
    kind: type[Dataset], place: str, roles: Chosen, found: list[Array], first: int = 0
) -> Dataset:
    """The dataset of columns that were read; all its numbers are finite."""
    columns = dict(zip(names_of(roles), found, strict=True))
    ours, theirs = ({name: columns[n] for name, n in of.items()} for of in roles.values())
    try:
        data = kind.from_arrays(ours, theirs)
        data.check_finite(first=first)
    except DataError as error:
        raise DataError(f"{place}: {error.message}", hint=error.hint) from None
    return data


def joined(parts: list[Dataset]) -> Dataset:
    """Datasets with the same columns, one after the other."""
    inputs, targets = ([getattr(p, role) for p in parts] for role in ("inputs", "targets"))
    return replace(parts[0], inputs=in_a_row(inputs), targets=in_a_row(targets))


def in_a_row(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Columns of the same names, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
