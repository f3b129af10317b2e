"""Samples of a run: validation samples split off, all columns checked and normalized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_real_number
from cgprimer.training.data import Blocks, Dataset, compute_scales, normalize_data
from cgprimer.training.losses import load_samples
from cgprimer.training.settings import Settings

Array = Any
Data = Dataset | Blocks


@dataclass(frozen=True)
class PreparedSamples:
    """The checked and normalized samples of a run, for training and for validation.

    Attributes:
        total: the number of samples in the dataset before validation samples are split off.
        training: the samples to train on.
        validation: the validation samples, if any.
        validation_fraction: the fraction of the dataset that is split off for validation.
        scales: mean and standard deviation of the columns that are normalized.
    """

    total: int
    training: Data
    validation: Data | None
    validation_fraction: float
    scales: dict[str, Array]


def prepare_samples(
    graph: ExpressionGraph,
    dataset: Data,
    validation: Any,
    settings: Settings,
    earlier_scales: Mapping[str, Array],
) -> PreparedSamples:
    """Split off the validation samples of a run, check all values and normalize the columns.

    Args:
        graph: the graph to train.
        dataset: the samples.
        validation: validation samples, or the fraction of the dataset to use for validation.
        settings: the settings of the run.
        earlier_scales: the scales of the run that is resumed, empty without one.

    Raises:
        UsageError, DataError: settings that the samples do not allow, or values that are not
            finite.
    """
    training, other, fraction = _split_samples(graph, dataset, validation, settings)
    scales = dict(earlier_scales)
    if settings.normalize and not scales:
        scales = compute_scales(training, targets=settings.normalize == "all")
        _check_target_scales(scales, graph.outputs)
    return PreparedSamples(
        total=len(dataset),
        training=normalize_data(training, scales),
        validation=other and normalize_data(other, scales),
        validation_fraction=fraction,
        scales=scales,
    )


def _split_samples(
    graph: ExpressionGraph, dataset: Data, validation: Any, settings: Settings
) -> tuple[Data, Data | None, float]:
    """Return the training samples, the validation samples and the validation fraction.

    Raises:
        UsageError, DataError: settings that the samples do not allow, or values that are not
            finite.
    """
    if settings.batch_size is None and len(dataset.lengths) > 1:
        raise UsageError(
            "batch_size=None needs all samples in memory, but the dataset is read in blocks",
            hint="choose a batch size, or load the data with Dataset.load(path) if memory allows",
        )
    if settings.patience and validation is None:
        hint = "set validation=0.2 (--validation 0.2) to keep a fifth of the data for validation"
        raise UsageError("`patience` requires validation samples", hint=hint)
    other = None
    if validation is not None and not isinstance(validation, Real):
        other = load_samples(graph, validation, settings.loss)
    _check_samples(dataset, "training")
    if other is not None:
        _check_samples(other, "validation")
    if validation is None or other is not None:
        return dataset, other, 0.0
    fraction = check_real_number("validation, if it is not a Dataset,", validation)
    return *dataset.split(fraction, settings.seed), fraction


def _check_samples(data: Data, purpose: str) -> None:
    """Raise DataError if a dataset has no samples or a value that is not finite.

    Blocks are checked when they are read.
    """
    if isinstance(data, Dataset):
        data.check_finite("" if purpose == "training" else "validation ")
        if not len(data):
            raise DataError(f"the {purpose} data contain no samples")


def _check_target_scales(scales: Mapping[str, Array], outputs: tuple[str, ...]) -> None:
    """Raise UsageError if targets are normalized and an output has no target with its name."""
    targets = {name for name in scales if name.startswith("targets/")}
    missing = [name for name in outputs if f"targets/{name}" not in targets]
    if targets and missing:
        raise UsageError(
            f"normalize='all' requires a target for the output {missing[0]!r}",
            hint="set normalize='inputs' (--normalize inputs), or give the target the name of the"
            " output",
        )
