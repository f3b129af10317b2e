"""Schedules for recording parameters during training, without slowing it down.

Parameters are recorded at the ends of epochs, where the loop stops anyway; only runs of a few long
epochs are stopped in between. Longer runs leave out every second record, so that a run that is
resumed has the same records as a run that was never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_RECORDS = 1000  #: of a run
MAX_STEP_LOSSES = 100_000  #: of a run: two megabytes of a file
DEFAULT_SHORT_RUN_RECORDS = 8  #: of a run of fewer than five epochs
_MAX_NUMBERS = 200_000  # in all records of a run, so that the file of a large network stays small
_MIN_RECORDS = 8  # whatever the number of parameters
_FEW_EPOCHS = 5  # from this number on, the ends of epochs are enough to draw a curve
_MIN_DISTANCE = 1024  # steps between two records within an epoch, times the number of records


@dataclass(frozen=True, slots=True)
class RecordingSchedule:
    """A schedule for recording parameters: the steps after which they are recorded.

    Attributes:
        steps_per_epoch: the number of steps of an epoch.
        records_per_epoch: the number of records in a recorded epoch, evenly spaced, the last one at
            its end; a power of two.
        epoch_interval: the number of epochs from one recorded epoch to the next; a power of two.
    """

    steps_per_epoch: int
    records_per_epoch: int = 1
    epoch_interval: int = 1

    def list_steps(self, epoch: int) -> tuple[int, ...]:
        """Return the steps of the run, within an epoch, after which parameters are recorded.

        >>> RecordingSchedule(200, records_per_epoch=4).list_steps(0)
        (50, 100, 150, 200)
        >>> RecordingSchedule(200, epoch_interval=2).list_steps(0)
        ()
        """
        if (epoch + 1) % self.epoch_interval:
            return ()
        first = epoch * self.steps_per_epoch
        count = self.records_per_epoch
        return tuple(first + self.steps_per_epoch * k // count for k in range(1, count + 1))

    def __contains__(self, step: int) -> bool:
        """Return whether the parameters are recorded after a step."""
        return step in self.list_steps((step - 1) // self.steps_per_epoch)


def plan_recording(
    epochs: int,
    steps_per_epoch: int,
    parameters: int,
    short_run_records: int = DEFAULT_SHORT_RUN_RECORDS,
) -> RecordingSchedule:
    """Choose the steps of a run after which its parameters are recorded.

    Args:
        epochs: the number of epochs.
        steps_per_epoch: the number of steps of an epoch.
        parameters: the number of scalars in a record.
        short_run_records: the approximate number of records of a run of fewer than five epochs; a
            larger number is also reached in short epochs.

    >>> plan_recording(30, 200, 4)
    RecordingSchedule(steps_per_epoch=200, records_per_epoch=1, epoch_interval=1)
    >>> plan_recording(1, 10_000, 4, short_run_records=128).records_per_epoch
    128
    >>> plan_recording(3000, 200, 4).epoch_interval
    4
    """
    most = max(_MIN_RECORDS, min(MAX_RECORDS, _MAX_NUMBERS // max(1, parameters)))
    count = interval = 1
    if 0 < epochs < _FEW_EPOCHS:
        distance = max(1, _MIN_DISTANCE // short_run_records)
        most_records = min(short_run_records, most)
        while 2 * count * distance <= steps_per_epoch and 2 * count * epochs <= most_records:
            count *= 2
    while epochs > most * interval:
        interval *= 2
    return RecordingSchedule(steps_per_epoch, count, interval)
