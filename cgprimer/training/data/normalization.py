"""Standardization of columns to mean 0 and standard deviation 1, and its inverse."""

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
_ROUNDING = 1e-12  # standard deviation relative to the mean, below which a column is constant


def compute_scales(data: Dataset | Blocks, *, targets: bool = False) -> dict[str, Array]:
    """Compute the mean and standard deviation of each input, and optionally of each target.

    The statistics of an array are computed per element. The standard deviation of a constant
    column is 1. Blocks are combined by the formulas of Chan, Golub and LeVeque 1979 ("Updating
    formulae and a pairwise algorithm for computing sample variances").

    >>> compute_scales(Dataset.from_arrays({"xa": [1.0, 3.0], "xb": [5.0, 5.0]}))
    {'inputs/xa': array([2., 1.]), 'inputs/xb': array([5., 1.])}
    """
    moments: dict[str, tuple[Array, Array]] = {}  # mean, sum of squared deviations
    count = 0
    for block in map(data.block, range(len(data.lengths))):
        columns = {f"inputs/{name}": column for name, column in block.inputs.items()}
        if targets:
            columns |= {f"targets/{name}": column for name, column in block.targets.items()}
        total = count + len(block)
        for name, column in columns.items() if len(block) else ():
            mean = column.mean(axis=0)
            squares = ((column - mean) ** 2).sum(axis=0)
            if count:
                previous_mean, previous_squares = moments[name]
                difference, fraction = mean - previous_mean, len(block) / total
                squares = previous_squares + squares + difference**2 * (count * fraction)
                mean = previous_mean + difference * fraction
            moments[name] = mean, squares
        count = total
    scales = {}
    for name, (mean, squares) in moments.items():
        deviation = np.sqrt(squares / count)
        varies = deviation > _ROUNDING * abs(mean)
        scales[name] = np.array([mean, np.where(varies, deviation, 1.0)])
    return scales


def normalize_data(data: Data, scales: Scales) -> Data:
    """Standardize columns: subtract the mean and divide by the standard deviation.

    >>> normalize_data(Dataset.from_arrays({"xa": [1.0, 3.0]}), {"inputs/xa": [2.0, 1.0]}).inputs
    {'xa': array([-1.,  1.])}
    """
    if not scales:
        return data
    if isinstance(data, Blocks):
        return cast(Data, data.map(partial(normalize_data, scales=scales)))
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


def denormalize_outputs(outputs: Mapping[str, Array], scales: Scales) -> dict[str, Array]:
    """Convert outputs of a model with standardized targets to the original units.

    >>> denormalize_outputs({"xw": np.array([0.5])}, {"targets/xw": [10.0, 2.0]})
    {'xw': array([11.])}
    """
    return {
        name: column * scales[key][1] + scales[key][0]
        if (key := f"targets/{name}") in scales
        else column
        for name, column in outputs.items()
    }
