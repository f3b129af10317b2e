"""Arguments of a run, looked at before anything is compiled."""

from __future__ import annotations

import numpy as np

from cgprimer.data import Dataset
from cgprimer.errors import DataError, UsageError, name_hint

SCHEDULES = ("cosine", "constant")


def refuse_non_finite(dataset: Dataset, kind: str = "") -> None:
    """Raise DataError with the first value that is infinite or nan; `kind` is a word before it."""
    for name, column in {**dataset.inputs, **dataset.targets}.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise DataError(
                f"{kind}sample {bad[0]} of the column {name!r} is {column[bad[0]]}",
                hint="take such samples out before training",
            )


def whole_batch(batch_size: int | None, samples: int) -> int:
    """The samples of a step: all of them for None, never more than there are."""
    if samples == 0:
        raise DataError("there are no samples to learn from")
    if batch_size is None:
        return samples
    if not isinstance(batch_size, int | np.integer):
        raise UsageError(f"a batch has a whole number of samples, not {batch_size!r}")
    if batch_size < 1:
        raise UsageError(f"a batch has at least one sample, not {batch_size}")
    return min(int(batch_size), samples)


def check(
    *,
    epochs: int,
    schedule: str,
    learning_rate: float | None,
    stop_below: float | None,
    seed: int,
    short_run_records: int,
) -> None:
    """Raise UsageError for numbers that make no run."""
    counts = {"epochs": epochs, "seed": seed, "short_run_records": short_run_records}
    for what, count in counts.items():
        if not isinstance(count, int | np.integer):
            raise UsageError(f"{what} must be a whole number, not {count!r}")
    if seed < 0:
        raise UsageError(f"a seed cannot be negative, as {seed} is")
    if short_run_records < 1:
        raise UsageError(
            f"the parameters are recorded at least once, not {short_run_records} times"
        )
    if epochs < 0:
        raise UsageError(f"the number of epochs cannot be {epochs}")
    if schedule not in SCHEDULES:
        raise UsageError(
            f"there is no schedule {schedule!r}",
            hint=name_hint(schedule, SCHEDULES),
        )
    if learning_rate is not None and not (np.isfinite(learning_rate) and learning_rate > 0):
        raise UsageError(f"the learning rate must be positive, not {learning_rate}")
    if stop_below is not None and not stop_below > 0:
        raise UsageError(f"the loss to stop below must be positive, not {stop_below}")


def share(validation: object) -> float:
    """The share of samples to validate with, as a number."""
    number = int | float | np.integer | np.floating
    if isinstance(validation, number) and not isinstance(validation, bool):
        return float(validation)
    raise UsageError(
        f"validation takes a Dataset or a share of the samples, not {type(validation).__name__}"
    )
