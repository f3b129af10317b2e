"""Datasets larger than memory: a file that is read a block at a time, as often as it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_fraction
from cgprimer.training.data.data_sources import Chosen, chosen, reading, source_of
from cgprimer.training.data.dataset import Dataset, joined, made, names_of
from cgprimer.training.data.dataset_columns import Array, Source, numbers_of

_WHOLE = 1 << 24  # numbers that are read into memory at once: 128 MB


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """The samples of a file, read again whenever they are gone through, a block at a time.

    Blocks are the row groups of a Parquet file (small ones several at a time), some 250,000 rows
    of arrays of numpy, which stay in the file unless it is compressed, and 32 MB of CSV.
    :func:`cgprimer.train` goes through the blocks in an order drawn for each epoch, and through
    the samples of each in one of its own: a sample meets in its batch only samples of its block.
    Rows that a file has in order, as by date or by class, are mixed within their blocks alone:
    shuffle such a file once.

    >>> import cgprimer, tempfile
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cgprimer.make_dataset(graph, samples=600_000).save(f"{folder}/d.parquet")
    ...     blocks = Blocks.load(f"{folder}/d.parquet", inputs=["xa"], targets=["xw"])
    ...     len(blocks), blocks.lengths, blocks.block(1)
    (600000, [262144, 262144, 75712], <Dataset: 262,144 samples, inputs xa, targets xw>)
    """

    source: Source
    roles: Chosen
    lengths: list[int]  #: how many samples each block has
    read: list[int]  # how many of them the file has
    changes: tuple[Callable[[Dataset], Dataset], ...] = ()  # of each block that was read
    truth: dict[str, Any] = field(default_factory=dict)  #: as of any file: none

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        inputs: Iterable[str] = (),
        targets: Iterable[str] = (),
        columns: Mapping[str, str] | None = None,
    ) -> Blocks:
        """A file as blocks. Arguments and errors are those of :meth:`Dataset.load`."""
        with reading(path):
            source = source_of(path)
            roles = chosen(source, inputs, targets, columns)
            lengths = source.lengths(names_of(roles))
        if not sum(lengths):
            raise DataError(f"{source.place}: there are no samples")
        return cls(source, roles, lengths, lengths)

    @cached_property
    def starts(self) -> list[int]:
        """The number of each block's first sample."""
        return list(accumulate(self.lengths, initial=0))

    def __len__(self) -> int:
        """Number of samples."""
        return self.starts[-1]

    def __repr__(self) -> str:
        inputs, targets = (", ".join(of) or "none" for of in self.roles.values())
        size = f"{len(self):,} samples in {len(self.lengths)} blocks"
        return f"<Blocks: {size}, inputs {inputs}, targets {targets}>"

    def block(self, number: int) -> Dataset:
        """The samples of a block, read anew.

        Raises:
            UsageError: there is no such block.
            UsageError, DataError: as for :meth:`Dataset.load`.
        """
        if not isinstance(number, int | np.integer) or not 0 <= number < len(self.read):
            raise UsageError(f"there are blocks 0 to {len(self.read) - 1}, and no {number!r}")
        with reading(self.source.place):
            found = self.source.read(number, names_of(self.roles))
        data = made(Dataset, self.source.place, self.roles, found, sum(self.read[:number]))
        for change in self.changes:
            data = change(data)
        return data

    def where(self, chosen: Array) -> Dataset:
        """The samples that a mask, or their numbers, choose."""
        parts, chosen = [], numbers_of(chosen, len(self))
        wanted = chosen[order := np.argsort(chosen)]
        for number, (start, end) in enumerate(pairwise(self.starts)):
            inside = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)]
            if len(inside):
                parts.append(self.block(number).where(inside - start))
        return joined(parts or [self.block(0).where([])]).where(np.argsort(order))

    def map(self, change: Callable[[Dataset], Dataset]) -> Blocks:
        """The same with each block changed, when it has been read, to one of the same length."""
        return replace(self, changes=(*self.changes, change))

    def split(self, share: float, seed: int) -> tuple[Blocks, Blocks]:
        """In two, as :meth:`Dataset.split` does it with each block."""
        share = check_fraction("the share of samples to validate with", share)
        out = [round(share * length) for length in self.lengths]
        left = [length - less for length, less in zip(self.lengths, out, strict=True)]

        def part(which: int, lengths: list[int]) -> Blocks:
            return replace(self.map(lambda data: data.split(share, seed)[which]), lengths=lengths)

        return part(0, left), part(1, out)


def whole_dataset(data: Dataset | Blocks, why: str) -> Dataset:
    """Data that are in memory as a whole; of blocks a UsageError, which says why they must be."""
    if isinstance(data, Blocks):
        hint = "Dataset.load(path) if memory is enough"
        raise UsageError(f"{why}, and these data are read in blocks", hint=hint)
    return data


def dataset_of(
    given: Any,
    graph: ExpressionGraph,
    *,
    columns: Mapping[str, str] | None = None,
    targets: Iterable[str] | None = None,
) -> Dataset | Blocks:
    """What is given for data, as a dataset for a graph.

    Args:
        given: a dataset; a file, which is read in blocks where it is large; or a data frame.
        graph: whose inputs and outputs are read from a file or frame.
        columns: our names to those there, where they differ.
        targets: names of columns, if not all outputs have one.

    Raises:
        UsageError: it is none of these, or cannot be read.
        DataError: a missing column, a value that is no finite number.
    """
    if isinstance(given, Dataset | Blocks):
        return given
    outputs = graph.outputs if targets is None else tuple(targets)
    roles: dict[str, Any] = {"inputs": graph.inputs, "targets": outputs, "columns": columns}
    if isinstance(given, str | Path):
        with reading(given):
            source = source_of(given)
            size = source.size(names_of(chosen(source, **roles)))
        if size > _WHOLE:
            return Blocks.load(given, **roles)
    return Dataset.load(given, **roles)
