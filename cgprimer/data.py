"""Datasets: named columns of inputs and targets, made from a graph or read from a file."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.checked_numbers import numbers_by_name, real_number, whole_number
from cgprimer.columns import SKIP, as_column, kind_of, read_csv, read_npz, together
from cgprimer.core.derivatives import tape
from cgprimer.core.engines import select
from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.primitives.structural import shape_text
from cgprimer.core.run import compiled
from cgprimer.core.tape.scalars import elements
from cgprimer.errors import DataError, MissingValueError, UsageError
from cgprimer.files import write_whole
from cgprimer.number_format import numbers
from cgprimer.numbers_and_arrays import first_bad

Array = Any
Bound = float | Mapping[str, float]
_STREAM = 1_000_003  # beside the seed: another order than that of any epoch
_LINE = 1_000  # letters: arrays in a message are not broken into lines


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
            ", ".join(n + (shape_text(c.shape[1:]) if c.ndim > 1 else "") for n, c in of.items())
            or "none"
            for of in (self.inputs, self.targets)
        )
        return f"<Dataset: {len(self):,} samples, inputs {inputs}, targets {targets}>"

    def where(self, chosen: Array) -> Dataset:
        """The samples that a mask, or their numbers, choose."""
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
        if not 0 < share < 1:
            between = "the share of samples to validate with lies between 0 and 1"
            raise UsageError(f"{between}, and is not {share:g}")
        kept_out = round(share * len(self))
        if not 0 < kept_out < len(self):
            use = "validate with" if kept_out == 0 else "train on"
            hint = "more samples, another share, or a dataset of its own to validate with"
            raise DataError(f"{share:g} of {len(self)} samples leaves nothing to {use}", hint=hint)
        chosen = np.zeros(len(self), bool)
        chosen[np.random.default_rng([seed, _STREAM]).permutation(len(self))[:kept_out]] = True
        return self.where(~chosen), self.where(chosen)

    def check_finite(self, what: str = "") -> None:
        """Raise DataError with the first value that is infinite or nan; ``what`` comes before."""
        for name, column in self.columns.items():
            if bad := first_bad(column, column.ndim - 1):
                where = f"{what}sample {bad[1]} of the column {name + bad[2]!r}"
                raise DataError(f"{where} is {bad[0]}, not finite", hint=SKIP)

    def save(self, path: str | Path) -> None:
        """Write as CSV or NPZ, by the file's ending.

        CSV has a header with the names (of an array those of its elements, ``x[0]``) and one line
        per sample, numbers in their shortest exact form; NPZ has arrays called ``inputs/NAME`` and
        ``targets/NAME``.

        Raises:
            UsageError: another ending, or the file cannot be written.
        """
        if kind_of(path) == ".csv":
            write_whole(path, self.to_csv())
            return
        arrays = {f"inputs/{n}": c for n, c in self.inputs.items()}
        arrays |= {f"targets/{n}": c for n, c in self.targets.items()}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_whole(path, buffer.getvalue())

    def to_csv(self) -> str:
        """The text of a CSV file.

        >>> print(Dataset.from_arrays({"x": [[0.5, 2.0]]}, {"xw": [0.1]}).to_csv(), end="")
        x[0],x[1],xw
        0.5,2.0,0.1
        """
        named = self.columns.items()
        names = [e for name, column in named for e in elements(name, column.shape[1:])]
        flat = [column.reshape(len(self), math.prod(column.shape[1:])).T for _, column in named]
        rows = zip(*(part for columns in flat for part in columns.tolist()), strict=True)
        header = ",".join(f'"{name}"' if "," in name else name for name in names)
        lines = [header, *(",".join(map(repr, row)) for row in rows)]
        return "\n".join(lines) + "\n"

    @classmethod
    def load(
        cls, path: str | Path, *, inputs: Iterable[str] = (), targets: Iterable[str] = ()
    ) -> Dataset:
        """Read a CSV or NPZ file.

        Args:
            path: the file; the ending tells its kind.
            inputs: columns that are inputs. A graph's ``inputs``, for instance. Of ``x`` these are
                the columns ``x[0]``, ``x[1]``, ..., where there are such.
            targets: columns that are targets. A graph's ``outputs``, for instance.

        If neither is given, an NPZ file's own roles are used, and in a CSV file the last column
        is the target. Columns that are not asked for are left out.

        Raises:
            UsageError: the file cannot be read or its ending is unknown.
            DataError: a missing column, a row of the wrong length, a field that is no number or
                not finite; the message names file and line.
        """
        read = read_csv if kind_of(path) == ".csv" else read_npz
        try:
            ours, theirs, place = read(Path(path), tuple(inputs), tuple(targets))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise DataError(f"{path} is not UTF-8 text") from None
        try:
            data = cls.from_arrays(ours, theirs)
            data.check_finite()
        except DataError as error:
            raise DataError(f"{place}: {error.message}", hint=error.hint) from None
        return data


def make_dataset(
    graph: ExpressionGraph,
    *,
    truth: Mapping[str, Any] | None = None,
    samples: int = 10_000,
    seed: int = 0,
    low: Bound = -1.0,
    high: Bound = 1.0,
    noise: float = 0.0,
) -> Dataset:
    """Data that a graph with known parameters would produce.

    Inputs are drawn uniformly, independently of each other; targets are the graph's outputs,
    plus normal noise if asked for. Equal arguments give equal data on every machine.

    Args:
        graph: the graph.
        truth: values of the parameters, numbers or arrays of their shapes; those declared in the
            text fill the rest.
        samples: how many.
        seed: of numpy's generator (PCG64).
        low, high: bounds of the inputs, in their unit: a number for all, or one for each name.
        noise: standard deviation of what is added to each target, in the target's unit.

    Raises:
        MissingValueError: a parameter has no true value.
        UsageError: samples below 1, bounds the wrong way round, negative noise, or no numbers.
        DataError: a target is not finite for some input.

    >>> from cgprimer.core.graph import parse
    >>> data = make_dataset(parse("xw = k*xa"), truth={"k": 2.0}, samples=3, seed=1)
    >>> bool((data.targets["xw"] == 2*data.inputs["xa"]).all())
    True
    """
    checked_graph(graph)
    samples = whole_number("the number of samples", samples, least=1)
    seed = whole_number("the seed", seed)
    if real_number("the noise", noise) < 0:
        raise UsageError(f"the noise is a standard deviation and cannot be {noise}")
    truth = numbers_by_name("truth", truth, "parameter", graph.parameters, shapes=graph.shapes)
    try:
        point = graph.point(truth, needed=graph.parameters)
    except MissingValueError as error:
        raise MissingValueError(
            error.message.replace("no value", "no true value"),
            hint="give truth={...} (--truth NAME=VALUE), write in the text: parameter NAME = VALUE,"
            " or give data of your own (--data)",
        ) from None
    if not graph.definitions:
        raise UsageError("there is nothing to make data from: the graph has no expressions")
    random = np.random.default_rng(seed)
    columns = {}
    for name in graph.inputs:
        lowest, highest = _bound(low, name, "low"), _bound(high, name, "high")
        if not lowest <= highest or not math.isfinite(highest - lowest):
            wrong = "are too far apart" if lowest <= highest else "are the wrong way round"
            raise UsageError(f"the bounds of {name!r} {wrong}: {lowest} and {highest}")
        columns[name] = random.uniform(lowest, highest, (samples, *graph.shapes.get(name, ())))
    scalars = {name: point[name] for name in graph.parameters}
    execute = compiled(select("numpy"), tape(graph), reduction="none", dtype="float64")
    targets = execute(columns, scalars, samples)
    for name in graph.outputs:
        found = targets[name]
        if bad := first_bad(found, found.ndim - 1):
            value, sample, place = bad
            count = np.count_nonzero(~np.isfinite(found).reshape(samples, -1).all(axis=1))
            where = ", ".join(
                f"{n}={numbers(columns[n][sample], 6, width=_LINE)}" for n in graph.inputs
            )
            some = f"{count:,} of {samples:,} samples"
            what = f"the target {name + place!r} is {value} for {some}, first at {where}"
            hint = "choose bounds inside the domain: low=..., high=... (--low, --high)"
            raise DataError(what, hint=hint)
        if noise:
            targets[name] = found + random.normal(0.0, noise, found.shape)
    return Dataset(columns, targets, scalars)


def _bound(bound: Bound, name: str, what: str) -> float:
    if isinstance(bound, Mapping):
        if name not in bound:
            raise UsageError(f"no {what} bound is given for {name!r}")
        bound = bound[name]
    return real_number(f"the {what} bound of {name!r}", bound)
