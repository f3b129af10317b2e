"""Datasets larger than memory: files that are read block by block in each epoch."""

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
from cgprimer.training.data.data_sources import (
    ColumnRoles,
    open_source,
    report_read_errors,
    select_columns,
)
from cgprimer.training.data.dataset import (
    Dataset,
    build_dataset,
    concatenate_datasets,
    list_source_columns,
)
from cgprimer.training.data.dataset_columns import Array, Source, select_sample_indices

_LARGEST_IN_MEMORY = 1 << 24  # numbers of a file that is read into memory at once: 128 MB


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """A dataset that stays in a file and is read block by block in each epoch.

    A block is a row group of a Parquet file (small row groups are merged), about 250,000 rows of
    numpy arrays (memory-mapped unless the file is compressed), or 16 MB of a CSV file.
    :func:`cgprimer.train` shuffles the order of the blocks in each epoch, and the samples within
    each block: a batch holds only samples of one block. If the rows of a file are sorted, for
    instance by date or by class, shuffle the file once before training.

    >>> import cgprimer, tempfile
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cgprimer.make_dataset(graph, samples=300_000).save(f"{folder}/d.parquet")
    ...     blocks = Blocks.load(f"{folder}/d.parquet", inputs=["xa"], targets=["xw"])
    ...     len(blocks), blocks.lengths, blocks.block(1)
    (300000, [262144, 37856], <Dataset: 37,856 samples, inputs xa, targets xw>)
    """

    source: Source
    roles: ColumnRoles
    lengths: list[int]  #: number of samples of each block
    read: list[int]  # number of samples of each block in the file, before a split
    changes: tuple[Callable[[Dataset], Dataset], ...] = ()  # of each block when it is read
    truth: dict[str, Any] = field(default_factory=dict)  #: empty, as for every dataset from a file

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        inputs: Iterable[str] = (),
        targets: Iterable[str] = (),
        columns: Mapping[str, str] | None = None,
    ) -> Blocks:
        """Open a file as blocks; the arguments and errors are those of :meth:`Dataset.load`."""
        with report_read_errors(path):
            source = open_source(path)
            roles = select_columns(source, inputs, targets, columns)
            lengths = source.block_lengths(list_source_columns(roles))
        if not sum(lengths):
            raise DataError(f"{source.location} contains no samples")
        return cls(source, roles, lengths, lengths)

    @cached_property
    def starts(self) -> list[int]:
        """The index of the first sample of each block, then the total number of samples."""
        return list(accumulate(self.lengths, initial=0))

    def __len__(self) -> int:
        """Number of samples."""
        return self.starts[-1]

    def __repr__(self) -> str:
        inputs, targets = (", ".join(of) or "none" for of in self.roles.values())
        size = f"{len(self):,} samples in {len(self.lengths)} blocks"
        return f"<Blocks: {size}, inputs {inputs}, targets {targets}>"

    def block(self, number: int) -> Dataset:
        """Read the samples of one block from the file.

        Args:
            number: the index of the block, from 0.

        Returns:
            The samples of the block, in memory.

        Raises:
            UsageError: the index is out of range.
            UsageError, DataError: as for :meth:`Dataset.load`.
        """
        if not isinstance(number, int | np.integer) or not 0 <= number < len(self.read):
            last = len(self.read) - 1
            raise UsageError(f"a block index must be an integer from 0 to {last}, got {number!r}")
        with report_read_errors(self.source.location):
            columns = self.source.read_block(number, list_source_columns(self.roles))
        first = sum(self.read[:number])
        data = build_dataset(Dataset, self.source.location, self.roles, columns, first)
        for change in self.changes:
            data = change(data)
        return data

    def where(self, chosen: Array) -> Dataset:
        """Return the samples that a boolean mask or an array of indices selects."""
        parts, chosen = [], select_sample_indices(chosen, len(self))
        wanted = chosen[order := np.argsort(chosen)]
        for number, (start, end) in enumerate(pairwise(self.starts)):
            inside = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)]
            if len(inside):
                parts.append(self.block(number).where(inside - start))
        return concatenate_datasets(parts or [self.block(0).where([])]).where(np.argsort(order))

    def map(self, change: Callable[[Dataset], Dataset]) -> Blocks:
        """Return blocks that apply a function to each block after reading it."""
        return replace(self, changes=(*self.changes, change))

    def split(self, share: float, seed: int) -> tuple[Blocks, Blocks]:
        """Split each block into training and validation samples, as :meth:`Dataset.split` does."""
        share = check_fraction("the validation fraction", share)
        validation = [round(share * length) for length in self.lengths]
        training = [n - held_out for n, held_out in zip(self.lengths, validation, strict=True)]

        def select_part(index: int, lengths: list[int]) -> Blocks:
            """Return the training part (index 0) or the validation part (index 1) of all blocks."""
            return replace(self.map(lambda data: data.split(share, seed)[index]), lengths=lengths)

        return select_part(0, training), select_part(1, validation)


def require_in_memory(data: Dataset | Blocks, reason: str) -> Dataset:
    """Return the dataset if it is in memory; raise UsageError if it is read in blocks."""
    if isinstance(data, Blocks):
        hint = "load the file with Dataset.load(path) if it fits into memory"
        raise UsageError(f"{reason}, but this dataset is read in blocks", hint=hint)
    return data


def resolve_dataset(
    data: Any,
    graph: ExpressionGraph,
    *,
    columns: Mapping[str, str] | None = None,
    targets: Iterable[str] | None = None,
) -> Dataset | Blocks:
    """Convert a dataset, a file or a data frame to a dataset with the columns a graph needs.

    Args:
        data: a dataset; a file, which is read in blocks if it is large; or a data frame.
        graph: the graph whose inputs and outputs are read from a file or data frame.
        columns: names in the graph to names in the file, where they differ.
        targets: names of the target columns; by default all outputs of the graph.

    Raises:
        UsageError: an argument of another type, or a file that cannot be read.
        DataError: a missing column, or a value that is not a finite number.
    """
    if isinstance(data, Dataset | Blocks):
        return data
    outputs = graph.outputs if targets is None else tuple(targets)
    roles: dict[str, Any] = {"inputs": graph.inputs, "targets": outputs, "columns": columns}
    if isinstance(data, str | Path):
        with report_read_errors(data):
            source = open_source(data)
            size = source.estimate_size(list_source_columns(select_columns(source, **roles)))
        if size > _LARGEST_IN_MEMORY:
            return Blocks.load(data, **roles)
    return Dataset.load(data, **roles)
