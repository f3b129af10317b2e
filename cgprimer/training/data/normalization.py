"""Columns with mean 0 and standard deviation 1, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import numpy as np

from cgprimer.training.data.blocks import Blocks
from cgprimer.training.data.dataset import Dataset
from cgprimer.training.data.dataset_columns import Array

Scales = Mapping[str, Array]  #: "inputs/xa", "targets/xw" -> mean and standard deviation
Data = TypeVar("Data", bound=Dataset | Blocks)
_VARIES = 1e-12  # of the mean: what varies less is rounding


def scales_of(data: Dataset | Blocks, *, targets: bool = False) -> dict[str, Array]:
    """Mean and standard deviation of each input over the samples, on request of targets, too.

    Of an array these are those of each of its numbers; the deviation of what does not vary is 1.
    Blocks are put together as Chan, Golub and LeVeque 1979 do it ("Updating formulae").

    >>> scales_of(Dataset.from_arrays({"xa": [1.0, 3.0], "xb": [5.0, 5.0]}))
    {'inputs/xa': array([2., 1.]), 'inputs/xb': array([5., 1.])}
    """
    found: dict[str, tuple[Array, Array]] = {}  # mean, squared distances from it
    seen = 0
    for block in map(data.block, range(len(data.lengths))):
        columns = {f"inputs/{name}": column for name, column in block.inputs.items()}
        if targets:
            columns |= {f"targets/{name}": column for name, column in block.targets.items()}
        whole = seen + len(block)
        for name, column in columns.items() if len(block) else ():
            mean = column.mean(axis=0)
            squares = ((column - mean) ** 2).sum(axis=0)
            if seen:
                before, squares_before = found[name]
                apart, share = mean - before, len(block) / whole
                squares = squares_before + squares + apart**2 * (seen * share)
                mean = before + apart * share
            found[name] = mean, squares
        seen = whole
    deviations = {name: np.sqrt(squares / seen) for name, (_, squares) in found.items()}
    return {
        name: np.array([mean, np.where((d := deviations[name]) > _VARIES * abs(mean), d, 1.0)])
        for name, (mean, _) in found.items()
    }


def normalized(data: Data, scales: Scales) -> Data:
    """The same samples, less the mean and by the deviation; what has no scale stays as it is.

    >>> normalized(Dataset.from_arrays({"xa": [1.0, 3.0]}), {"inputs/xa": [2.0, 1.0]}).inputs
    {'xa': array([-1.,  1.])}
    """
    if not scales:
        return data
    if isinstance(data, Blocks):
        return cast(Data, data.map(partial(normalized, scales=scales)))
    inputs, targets = (
        {
            name: (column - scales[key][0]) / scales[key][1]
            if (key := f"{role}/{name}") in scales
            else column
            for name, column in getattr(data, role).items()
        }
        for role in ("inputs", "targets")
    )
    return cast(Data, replace(data, inputs=inputs, targets=targets, truth={}))


def restored(outputs: Mapping[str, Array], scales: Scales) -> dict[str, Array]:
    """Outputs in the units of targets whose mean and deviation were taken out.

    >>> restored({"xw": np.array([0.5])}, {"targets/xw": [10.0, 2.0]})
    {'xw': array([11.])}
    """
    return {
        name: column * scales[key][1] + scales[key][0]
        if (key := f"targets/{name}") in scales
        else column
        for name, column in outputs.items()
    }
