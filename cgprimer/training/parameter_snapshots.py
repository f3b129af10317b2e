"""Parameters over time: recorded at moments that do not slow a run down, and not too often.

A record is kept at the end of an epoch, where the loop stands still anyway; only runs of a few
long epochs are halted on the way. Thinning leaves out every second record, so that the moments
of a longer run are some of those of a shorter one: a run that is taken up again keeps the same
records as one that was never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST = 1000  # records of a run
MOST_LOSSES = 100_000  # of steps: two megabytes of a file
_NUMBERS = 200_000  # in all records together, so that a large network's file stays small
_LEAST = 8  # records, however many parameters there are
_FEW = 5  # epochs; from so many on their ends are enough to draw a curve
WITHIN = 8  # records of a run of one epoch, unless more are asked for
_APART = 1024  # steps, over the records asked for: between two records within an epoch, at least


@dataclass(frozen=True, slots=True)
class Moments:
    """When parameters are recorded."""

    per_epoch: int  # steps of an epoch
    parts: int = 1  # records in an epoch, evenly spaced, the last at its end; a power of two
    every: int = 1  # epochs from one record to the next; a power of two

    def of_epoch(self, epoch: int) -> tuple[int, ...]:
        """The steps, counted from the beginning of the run, after which to record.

        >>> Moments(200, parts=4).of_epoch(0), Moments(200, every=2).of_epoch(0)
        ((50, 100, 150, 200), ())
        """
        if (epoch + 1) % self.every:
            return ()
        first = epoch * self.per_epoch
        return tuple(
            first + self.per_epoch * part // self.parts for part in range(1, self.parts + 1)
        )

    def __contains__(self, step: int) -> bool:
        return step in self.of_epoch((step - 1) // self.per_epoch)


def plan_moments(epochs: int, per_epoch: int, parameters: int, within: int = WITHIN) -> Moments:
    """The moments of a run of so many epochs, of so many steps each.

    A record has a number for each of the parameters. A run of fewer than five epochs has about
    `within` records; whoever asks for many gets them in short epochs, too.

    >>> plan_moments(30, 200, 4)
    Moments(per_epoch=200, parts=1, every=1)
    >>> plan_moments(1, 10_000, 4, within=128)
    Moments(per_epoch=10000, parts=128, every=1)
    >>> plan_moments(3000, 200, 4)
    Moments(per_epoch=200, parts=1, every=4)
    """
    most = max(_LEAST, min(MOST, _NUMBERS // max(1, parameters)))
    parts = every = 1
    if 0 < epochs < _FEW:
        apart = max(1, _APART // within)
        while 2 * parts * apart <= per_epoch and 2 * parts * epochs <= min(within, most):
            parts *= 2
    while epochs > most * every:
        every *= 2
    return Moments(per_epoch, parts, every)
