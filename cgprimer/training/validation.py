"""Validation: the loss on samples that were not trained on, once an epoch."""

from __future__ import annotations

import numpy as np

from cgprimer.checked_numbers import real_number
from cgprimer.data import Dataset
from cgprimer.errors import DataError, UsageError

_STREAM = 1_000_003  # beside the seed: another order than that of any epoch


def parts(
    dataset: Dataset, validation: Dataset | float | None, seed: int
) -> tuple[Dataset, Dataset | None, float]:
    """The samples to train on, those to validate with, and the share of the whole that those are.

    Raises:
        UsageError, DataError: as :func:`split`; a value that is not finite, or no sample.
    """
    for data, use, what in (
        (dataset, "learn from", ""),
        (validation, "validate with", "validation "),
    ):
        if isinstance(data, Dataset):
            data.check_finite(what)
            if not len(data):
                raise DataError(f"there are no samples to {use}")
    if validation is None or isinstance(validation, Dataset):
        return dataset, validation, 0.0
    share = real_number("validation, where it is no Dataset,", validation)
    return *split(dataset, share, seed), share


def split(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """A dataset in two: samples to train on, and a share of them to validate with.

    Which samples are kept out is drawn from the seed; both parts keep the order of the samples.

    Raises:
        UsageError: the share is not between 0 and 1.
        DataError: one of the two would have no sample.

    >>> data = Dataset.from_arrays({"xa": [0.0, 1.0, 2.0, 3.0]}, {"xw": [0.0, 2.0, 4.0, 6.0]})
    >>> [len(part) for part in split(data, 0.25, seed=0)]
    [3, 1]
    """
    if not 0 < share < 1:
        raise UsageError(
            f"the share of samples to validate with lies between 0 and 1, and is not {share:g}"
        )
    samples = len(dataset)
    kept_out = round(share * samples)
    if not 0 < kept_out < samples:
        raise DataError(
            f"{share:g} of {samples} samples leaves nothing to"
            f" {'validate with' if kept_out == 0 else 'train on'}",
            hint="more samples, another share, or a dataset of its own to validate with",
        )
    order = np.random.default_rng([seed, _STREAM]).permutation(samples)
    chosen = np.zeros(samples, bool)
    chosen[order[:kept_out]] = True
    return dataset.where(~chosen), dataset.where(chosen)
