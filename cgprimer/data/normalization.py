"""Columns with mean 0 and standard deviation 1, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from cgprimer.data.blocks import Blocks
from cgprimer.data.columns import Array
from cgprimer.data.dataset import Dataset

Scales = Mapping[str, Mapping[str, Any]]  #: role -> name -> [mean, standard deviation]
Data = TypeVar("Data", Dataset, Blocks)


def scales_of(data: Dataset | Blocks, *, targets: bool = False) -> dict[str, dict[str, Any]]:
    """Mean and standard deviation of each input over the samples, on request of targets, too.

    Of an array these are those of each of its numbers; the deviation of what does not vary is 1.
    Blocks are put together as Chan, Golub and LeVeque 1979 do it ("Updating formulae").

    >>> scales_of(Dataset.from_arrays({"xa": [1.0, 3.0], "xb": [5.0, 5.0]}))
    {'inputs': {'xa': [2.0, 1.0], 'xb': [5.0, 1.0]}}
    """
    found: dict[str, dict[str, Any]] = {}
    seen = 0
    for block in map(data.block, range(len(data.lengths))):
        if not (count := len(block)):
            continue
        for role in ("inputs", "targets")[: 1 + targets]:
            of = found.setdefault(role, {})
            for name, column in getattr(block, role).items():
                mean = column.mean(axis=0)
                squares = ((column - mean) ** 2).sum(axis=0)
                if seen:
                    before, sum_before = of[name]
                    apart = mean - before
                    squares = sum_before + squares + apart**2 * (seen * count / (seen + count))
                    mean = before + apart * (count / (seen + count))
                of[name] = mean, squares
        seen += count
    return {
        role: {
            name: [mean.tolist(), np.where(s > 0, np.sqrt(s / seen), 1.0).tolist()]
            for name, (mean, s) in of.items()
        }
        for role, of in found.items()
    }


def normalized(data: Data, scales: Scales) -> Data:
    """The same samples, less the mean and by the deviation; what has no scale stays as it is.

    >>> normalized(Dataset.from_arrays({"xa": [1.0, 3.0]}), {"inputs": {"xa": [2.0, 1.0]}}).inputs
    {'xa': array([-1.,  1.])}
    """
    if not scales:
        return data
    if isinstance(data, Blocks):
        return data.map(partial(normalized, scales=scales))
    inputs, targets = (
        {
            name: (column - np.array(of[name][0])) / np.array(of[name][1]) if name in of else column
            for name, column in columns.items()
        }
        for columns, of in (
            (data.inputs, scales.get("inputs", {})),
            (data.targets, scales.get("targets", {})),
        )
    )
    return replace(data, inputs=inputs, targets=targets, truth={})


def restored(outputs: Mapping[str, Array], scales: Scales) -> dict[str, Array]:
    """Outputs in the unit of the targets, whose scale was taken away.

    >>> restored({"xw": np.array([0.5])}, {"targets": {"xw": [10.0, 2.0]}})
    {'xw': array([11.])}
    """
    of = scales.get("targets", {})
    return {
        name: column * np.array(of[name][1]) + np.array(of[name][0]) if name in of else column
        for name, column in outputs.items()
    }
