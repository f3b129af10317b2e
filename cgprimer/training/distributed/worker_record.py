"""The record of a team, read from a run: compute and idle times, and the staleness of gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgprimer.errors import DataError, pluralize
from cgprimer.support.number_format import format_number
from cgprimer.training.distributed.simulator import Span
from cgprimer.training.worker_options import parse_stage_count

SPAN_LABELS = {  # kind of span -> its letter in timelines, and what the worker does
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
_NEXT_TASK = "|"  # marks where a worker starts another task without a pause
_WIDTH, _ROWS = 72, 16  # of a timeline in letters
_SPANS_SHOWN = 4.0  # tasks of a worker, on average, in a timeline
_COMPUTING_KINDS = ("compute", "forward", "backward")
_TASK_KINDS = (*_COMPUTING_KINDS, "dropped")
_SMALLEST_FRACTION = 5e-4  # of the time that a summary mentions


@dataclass(frozen=True, slots=True)
class TeamRecord:
    """The recorded activities of a team of workers.

    Attributes:
        workers: the number of workers.
        clock: the seconds from the start to the last update.
        times: the time of each update whose loss the run has.
        staleness: the number of updates between the parameters of a gradient and its use -> the
            number of such gradients.
        spans: the activities of the workers in the order of their ends; the first ones of long
            runs.
        seconds: kind of span -> seconds of each worker.
        protocol: the protocol; for a graph that is divided into stages, its placement.
        is_simulated: whether the times are those of a virtual clock.
    """

    workers: int
    clock: float
    times: tuple[float, ...]
    staleness: dict[int, int]
    spans: tuple[Span, ...]
    seconds: dict[str, tuple[float, ...]]
    protocol: str = "sync"
    is_simulated: bool = True

    @property
    def utilization(self) -> list[float]:
        """The fraction of time that each worker spent on computing gradients that were used."""
        parts = [self.seconds[kind] for kind in _COMPUTING_KINDS if kind in self.seconds]
        totals = (sum(seconds) for seconds in zip(*parts, strict=True))
        return [total / self.clock if self.clock else 0.0 for total in totals]

    @property
    def has_stages(self) -> bool:
        """True if each worker runs a stage of a divided graph."""
        return self.protocol.startswith("layers")

    @property
    def has_replicas(self) -> bool:
        """True if workers run several replicas of a divided graph (data and model parallelism)."""
        return self.has_stages and "," in self.protocol

    def label(self, kind: str) -> str:
        """Return the label of a kind of activity, such as ``bubble`` for idle stages."""
        return "bubble" if self.has_stages and kind == "wait" else SPAN_LABELS[kind][1]

    def time_fractions(self) -> dict[str, float]:
        """Return the fraction of the workers' time per kind of activity, including waiting."""
        total = self.clock * self.workers or 1.0
        fractions = {kind: sum(seconds) / total for kind, seconds in self.seconds.items()}
        return {**fractions, "wait": max(0.0, 1 - sum(fractions.values()))}

    @property
    def mean_staleness(self) -> float:
        """The mean staleness of all gradients that were used, in updates."""
        count = sum(self.staleness.values())
        return sum(age * n for age, n in self.staleness.items()) / count if count else 0.0

    def timeline_end(self) -> float:
        """Return the end of a readable timeline: the time of a few tasks, or of two updates."""
        if self.has_stages and self.times:
            return self.times[min(1, len(self.times) - 1)]
        ends = sorted(span.end for span in self.spans)
        tasks = sum(span.kind in _TASK_KINDS for span in self.spans)
        index = int(_SPANS_SHOWN * self.workers * max(1, len(self.spans) // max(1, tasks)))
        return ends[min(index, len(ends) - 1)] if ends else self.clock


def record_of(run: Any) -> TeamRecord:
    """Parse and check the record of the workers of a run.

    Raises:
        DataError: the run had no workers, or its record is invalid.
    """
    team = run.team
    if not team:
        hint = "train with workers: cgprimer train FILE --workers 8 --simulate --save run.json"
        raise DataError("the run had no workers", hint=hint)
    try:
        seconds = {str(k): tuple(map(float, values)) for k, values in dict(team["seconds"]).items()}
        (workers,) = {len(values) for values in seconds.values()}
        spans = tuple(
            Span(int(worker), str(kind), float(begin), float(end), int(version))
            for worker, kind, begin, end, version in team["spans"]
        )
        staleness = {int(age): int(n) for age, n in team["staleness"]}
        if not all(0 <= s.worker < workers and s.kind in SPAN_LABELS for s in spans):
            raise ValueError
        times = tuple(map(float, team["times"]))
        clock, settings = float(team["clock"]), run.settings
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("the run has an invalid record of workers") from error
    return TeamRecord(
        workers,
        clock,
        times,
        staleness,
        spans,
        seconds,
        _describe_protocol(settings, workers),
        bool(settings.get("simulate", True)),
    )


def _describe_protocol(settings: Mapping[str, Any], workers: int) -> str:
    """Return a run's protocol or, for a divided graph, its placement and any replica protocol."""
    protocol, place = str(settings.get("protocol", "sync")), settings.get("place")
    if not place:
        return protocol
    has_replicas = workers > parse_stage_count(str(place))
    return f"{place}, {protocol}" if has_replicas else str(place)


def check_record(run: Any) -> None:
    """Raise an error if a resumed run cannot continue its worker record, as with other workers."""
    record, pending = record_of(run), run.team["pending"]
    is_single_pipeline = record.has_stages and not record.has_replicas
    sampled = run.team.get("drawn", 0 if is_single_pipeline else [0] * record.workers)
    counts = [sampled] * record.workers if is_single_pipeline else [*sampled]
    if len(counts) != record.workers or len(record.times) != len(run.step_losses):
        raise ValueError
    if not all(isinstance(n, int) and n >= 0 for n in (*counts, *pending)):
        raise TypeError


def summarize_record(record: TeamRecord, steps: int) -> list[str]:
    """Summarize the activities of a team of workers in at most four lines."""
    used = record.utilization
    least, most = (format_number(100 * fraction, 3) for fraction in (min(used), max(used)))
    fractions = record.time_fractions().items()
    parts = [
        f"{record.label(kind)} {format_number(100 * fraction, 3)} %"
        for kind, fraction in fractions
        if fraction > _SMALLEST_FRACTION
    ]
    virtual = " of the virtual clock" if record.is_simulated else ""
    lines = [
        f"{pluralize(record.workers, 'worker')}, {record.protocol}: {steps:,} steps in"
        f" {format_number(record.clock, 5)} s{virtual},"
        f" {format_number(record.clock / max(1, steps), 4)} s per step",
        f"time of the workers: {', '.join(parts)}",
        f"utilization of the workers: {least} % to {most} % of the time",
    ]
    if record.staleness and (not record.has_stages or record.has_replicas):
        oldest = max(record.staleness)
        mean = format_number(record.mean_staleness, 3)
        lines.append(
            f"staleness: {mean} steps on average, {oldest} at most" if oldest else "staleness: none"
        )
    return lines


def format_timeline(record: TeamRecord, until: float | None = None) -> list[str]:
    """Format a timeline with a row per worker and a letter for each of its activities.

    >>> from cgprimer.training.distributed.simulator import Span
    >>> spans = (Span(0, "compute", 0, 1, 0), Span(1, "compute", 0, 4, 0))
    >>> record = TeamRecord(2, 4.0, (), {}, spans, {"compute": (1.0, 4.0)})
    >>> print(*(row.rstrip(".") for row in format_timeline(record, 4.0)[1:3]), sep="\\n")
    worker 1  ==================
    worker 2  ========================================================================
    """
    until = until or record.timeline_end()
    label_width = len(f"worker {record.workers}")
    bars = [_format_worker(record, worker, until) for worker in range(min(record.workers, _ROWS))]
    rows = [f"{f'worker {k}':{label_width}}  {bar}" for k, bar in enumerate(bars, start=1)]
    if record.workers > _ROWS:
        rows.append(f"... and {record.workers - _ROWS:,} more")
    end = f"{format_number(until, 3)} s"
    head = " " * (label_width + 2) + "0".ljust(_WIDTH - len(end)) + end
    return [head, *rows, _format_legend(record, bars)]


def _format_worker(record: TeamRecord, worker: int, until: float) -> str:
    """Format the row of a worker: a letter for its main activity in each interval."""
    interval = until / _WIDTH or 1.0
    seconds, task_starts = [dict[str, float]() for _ in range(_WIDTH)], set[int]()
    for span in record.spans:
        if span.worker != worker or span.begin >= until:
            continue
        first = int(span.begin / interval)
        if span.kind in _TASK_KINDS:
            task_starts.add(first)
        for k in range(first, min(_WIDTH, int(span.end / interval) + 1)):
            part = min(span.end, (k + 1) * interval) - max(span.begin, k * interval)
            seconds[k][span.kind] = seconds[k].get(span.kind, 0.0) + part
    complete = ({**kinds, "wait": interval - sum(kinds.values())} for kinds in seconds)
    main_kinds = (max(k.items(), key=lambda item: round(item[1], 12))[0] for k in complete)
    letters = [SPAN_LABELS[kind][0] for kind in main_kinds]
    for k in sorted(task_starts):
        if 0 < k < _WIDTH and letters[k] == letters[k - 1]:
            letters[k] = _NEXT_TASK
    return "".join(letters)


def _format_legend(record: TeamRecord, bars: Sequence[str]) -> str:
    """Format the legend for the letters in a timeline."""
    used = set("".join(bars))
    labels = [(letter, record.label(kind)) for kind, (letter, _) in SPAN_LABELS.items()]
    return ", ".join(
        f"{letter if letter != ' ' else 'blank'} {label}"
        for letter, label in (*labels, (_NEXT_TASK, "starts another task"))
        if letter in used
    )


def record_as_dict(record: TeamRecord, steps: int) -> Mapping[str, Any]:
    """Summarize a record of workers as a dict for JSON."""
    return {
        "workers": record.workers,
        "protocol": record.protocol,
        "seconds": record.clock,
        "seconds_per_step": record.clock / max(1, steps),
        "used": record.utilization,
        "shares": record.time_fractions(),
        "staleness": sorted(map(list, record.staleness.items())),
    }
