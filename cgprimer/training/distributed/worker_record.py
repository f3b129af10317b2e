"""What a team did, read from a run: who was busy, who waited, how old the gradients were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from cgprimer.errors import DataError, pluralize
from cgprimer.support.number_format import format_number
from cgprimer.training.distributed.simulator import Span
from cgprimer.training.worker_options import parse_stage_count

WORDS = {  # kind of a span: its letter in texts, and what a worker does
    "compute": ("=", "computes"),
    "forward": ("f", "forward"),
    "backward": ("b", "backward"),
    "receive": ("<", "receives"),
    "send": (">", "sends"),
    "dropped": ("x", "is dropped"),
    "lost": ("!", "is lost"),
    "away": (" ", "is away"),
    "wait": (".", "waits"),
}
_NEXT = "|"  # where a worker goes on with another gradient at once
_WIDTH, _ROWS = 72, 16  # of a timeline in letters
_SHOWN = 4.0  # spans of a worker, on average, in what a timeline shows
_BUSY = ("compute", "forward", "backward")
_TASKS = (*_BUSY, "dropped")


@dataclass(frozen=True, slots=True)
class Record:
    """What a team did.

    Attributes:
        workers: how many.
        clock: seconds from the beginning to the last step.
        times: of the steps whose losses the run has, when each was made.
        staleness: how many steps were made between the moment at which a gradient's parameters were
            sent and its own, to how many gradients that was so.
        spans: what workers did, in the order of the ends; of long runs the first ones.
        seconds: for each kind of span those of each worker.
        protocol: whose steps they are; of a graph that was placed, how.
        virtual: whether the clock is.
    """

    workers: int
    clock: float
    times: tuple[float, ...]
    staleness: dict[int, int]
    spans: tuple[Span, ...]
    seconds: dict[str, tuple[float, ...]]
    protocol: str = "sync"
    virtual: bool = True

    @property
    def busy(self) -> list[float]:
        """The share of its time in which each worker computed what was used."""
        each = zip(*(self.seconds[kind] for kind in _BUSY if kind in self.seconds), strict=True)
        return [sum(parts) / self.clock if self.clock else 0.0 for parts in each]

    @property
    def placed(self) -> bool:
        """Whether the workers are stages of one graph."""
        return self.protocol.startswith("layers")

    @property
    def replicated(self) -> bool:
        """Whether the graph is placed several times: data and model parallelism together."""
        return self.placed and "," in self.protocol

    def word(self, kind: str) -> str:
        """What a worker does; one that waits for its neighbours is a part of the bubble."""
        return "bubble" if self.placed and kind == "wait" else WORDS[kind][1]

    def shares(self) -> dict[str, float]:
        """Of the time of all workers together, the share of each kind, waiting among them."""
        whole = self.clock * self.workers or 1.0
        found = {kind: sum(each) / whole for kind, each in self.seconds.items()}
        return {**found, "wait": max(0.0, 1 - sum(found.values()))}

    @property
    def mean_staleness(self) -> float:
        """Over all gradients that were used."""
        count = sum(self.staleness.values())
        return sum(age * n for age, n in self.staleness.items()) / count if count else 0.0

    def beginning(self) -> float:
        """A time up to which a timeline can be read: of some spans of each worker, or two steps."""
        if self.placed and self.times:
            return self.times[min(1, len(self.times) - 1)]
        ends = sorted(span.end for span in self.spans)
        tasks = sum(span.kind in _TASKS for span in self.spans)
        place = int(_SHOWN * self.workers * max(1, len(self.spans) // max(1, tasks)))
        return ends[min(place, len(ends) - 1)] if ends else self.clock


def record_of(run: Any) -> Record:
    """What a run says of its workers.

    Raises:
        DataError: it had none, or what stands there is no such record.
    """
    team = run.team
    if not team:
        hint = "cgprimer train FILE --workers 8 --simulate --save run.json"
        raise DataError("the run had no workers beside itself", hint=hint)
    try:
        seconds = {str(k): tuple(map(float, each)) for k, each in dict(team["seconds"]).items()}
        (workers,) = {len(each) for each in seconds.values()}
        spans = tuple(
            Span(int(w), str(kind), float(begin), float(end), int(version))
            for w, kind, begin, end, version in team["spans"]
        )
        staleness = {int(age): int(n) for age, n in team["staleness"]}
        if not all(0 <= s.worker < workers and s.kind in WORDS for s in spans):
            raise ValueError
        times = tuple(map(float, team["times"]))
        clock, settings = float(team["clock"]), run.settings
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("what the run says of its workers cannot be read") from error
    protocol = str(settings.get("protocol", "sync"))
    how = str(settings.get("place") or protocol)
    if settings.get("place") and workers > parse_stage_count(how):
        how = f"{how}, {protocol}"
    return Record(
        workers, clock, times, staleness, spans, seconds, how, bool(settings.get("simulate", True))
    )


def check_team(run: Any) -> None:
    """Raise an error where a run cannot be taken up with what it says of its workers."""
    record, pending = record_of(run), run.team["pending"]
    alone = record.placed and not record.replicated
    drawn = run.team.get("drawn", 0 if alone else [0] * record.workers)
    counts = [drawn] * record.workers if alone else [*drawn]
    if len(counts) != record.workers or len(record.times) != len(run.step_losses):
        raise ValueError
    if not all(isinstance(n, int) and n >= 0 for n in (*counts, *pending)):
        raise TypeError


def summary(record: Record, steps: int) -> list[str]:
    """What a team did, in four lines."""
    shares = record.shares()
    least, most = (format_number(100 * end, 3) for end in (min(record.busy), max(record.busy)))
    seen = ((kind, share) for kind, share in shares.items() if share > 5e-4)
    said = [f"{record.word(kind)} {format_number(100 * share, 3)} %" for kind, share in seen]
    clock = f"{format_number(record.clock, 5)} s{' of the virtual clock' if record.virtual else ''}"
    lines = [
        f"{pluralize(record.workers, 'worker')}, {record.protocol}: {steps:,} steps in {clock},"
        f" {format_number(record.clock / max(1, steps), 4)} s per step",
        f"of the workers' time: {', '.join(said)}",
        f"the busiest worker is used {most} % of the time, the idlest {least} %",
    ]
    if record.staleness and (not record.placed or record.replicated):
        oldest = max(record.staleness)
        mean = format_number(record.mean_staleness, 3)
        lines.append(
            f"staleness: {mean} steps on average, {oldest} at most" if oldest else "staleness: none"
        )
    return lines


def timeline(record: Record, until: float | None = None) -> list[str]:
    """A row for each worker, a letter for what it did most of the time in a piece of the clock.

    >>> from cgprimer.training.distributed.simulator import Span
    >>> spans = (Span(0, "compute", 0, 1, 0), Span(1, "compute", 0, 4, 0))
    >>> one = Record(2, 4.0, (), {}, spans, {"compute": (1.0, 4.0)})
    >>> print(*(row.rstrip(".") for row in timeline(one, 4.0)[1:3]), sep="\\n")
    worker 1  ==================
    worker 2  ========================================================================
    """
    until = until or record.beginning()
    width, wide = _WIDTH, len(f"worker {record.workers}")
    cell = until / width or 1.0
    rows = []
    for worker in range(min(record.workers, _ROWS)):
        filled, begins = [dict[str, float]() for _ in range(width)], set[int]()
        for span in record.spans:
            if span.worker != worker or span.begin >= until:
                continue
            begins |= {int(span.begin / cell)} if span.kind in _TASKS else set()
            for k in range(int(span.begin / cell), min(width, int(span.end / cell) + 1)):
                part = min(span.end, (k + 1) * cell) - max(span.begin, k * cell)
                filled[k][span.kind] = filled[k].get(span.kind, 0.0) + part
        shares = ({**f, "wait": cell - sum(f.values())} for f in filled)
        letters = [WORDS[max(f, key=lambda kind: round(f[kind], 12))][0] for f in shares]
        for k in (
            k for k, one in enumerate(letters) if k and k in begins and one == letters[k - 1]
        ):
            letters[k] = _NEXT
        rows.append(f"worker {worker + 1}".ljust(wide) + f"  {''.join(letters)}")
    if record.workers > _ROWS:
        rows.append(f"... and {record.workers - _ROWS:,} more")
    seen = {letter for row in rows for letter, _ in groupby(row[wide + 2 :])}
    known = [(letter, record.word(kind)) for kind, (letter, _) in WORDS.items()]
    legend = ", ".join(
        f"{letter if letter != ' ' else 'blank'} {word}"
        for letter, word in (*known, (_NEXT, "goes on with another one"))
        if letter in seen
    )
    end = f"{format_number(until, 3)} s"
    head = " " * (wide + 2) + "0".ljust(width - len(end)) + end
    return [head, *rows, legend]


def as_dict(record: Record, steps: int) -> Mapping[str, Any]:
    """What is known in a few numbers, for machines."""
    return {
        "workers": record.workers,
        "protocol": record.protocol,
        "seconds": record.clock,
        "seconds_per_step": record.clock / max(1, steps),
        "used": record.busy,
        "shares": record.shares(),
        "staleness": sorted(map(list, record.staleness.items())),
    }
