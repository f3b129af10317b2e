"""The first rounds of many workers as a page, moment by moment."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cgprimer.errors import UsageError, join_names, pluralize
from cgprimer.support.number_format import mark_rounding
from cgprimer.tapes import elements
from cgprimer.training.distributed.worker_record import TeamRecord, record_of
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.figure_files import figure_bytes
from cgprimer.visualization.pages.page_rendering import encode_script_data, render_page
from cgprimer.visualization.plots.plotted_runs import Run, named_runs
from cgprimer.visualization.plots.workers_plot import timeline

_DIGITS = 4
_PASSES = {"forward": "has passed micro-batch {} on", "backward": "has sent {}'s adjoints back"}


class Moment(NamedTuple):
    """Something that happens.

    Attributes:
        time: when, in seconds of the team's clock.
        words: what.
        server: the parameters after it.
    """

    time: float
    words: str
    server: str


def page(
    *runs: Run | Mapping[str, Run],
    show: str = "auto",
    until: float | None = None,
    dark: bool = False,
    title: str | None = None,
) -> str:
    """A page to be stepped through; arguments as ``cgprimer.plot.workers``, of one run.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=20)
    >>> run = cgprimer.train(graph, data, workers=2, simulate=True, batch_size=5, epochs=1)
    >>> page(run).splitlines()[0]
    '<!doctype html>'
    """
    run_names = named_runs(runs)
    if len(run_names) > 1 or show not in ("auto", "timeline"):
        raise UsageError("a page steps through the timeline of one run")
    (run,) = run_names.values()
    record = record_of(run)
    end = until or record.timeline_end()
    pictures = dict[str, str]()
    for theme in "light", "dark":
        figure = timeline(record, run.steps, end, dark=theme == "dark", title="")
        pictures[theme] = base64.b64encode(figure_bytes(figure, "svg")).decode()
    box = figure.axes[0].get_position()  # known after the layout
    data = {
        "box": [box.x0, box.x1, 1 - box.y1, 1 - box.y0],
        "frames": [
            {"at": one.time / end, "words": one.words, "server": one.server}
            for one in moments(run, record)
            if one.time <= end
        ],
    }
    default_title = f"{record.workers} workers, {record.protocol}: step by step"
    return render_page(
        "visualization/pages/rounds/rounds_page.html",
        default_title if title is None else title,
        dark=dark,
        pictures=pictures,
        data=encode_script_data(data),
    )


def moments(run: TrainingRun, record: TeamRecord) -> list[Moment]:
    """What happens, in its order, as far as the record goes.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*x")
    >>> data = cgprimer.Dataset.from_arrays({"x": [1, 2]}, {"xw": [3, 6]})
    >>> run = cgprimer.train(
    ...     graph, data, workers=2, simulate=True, delays="1,5", batch_size=1, epochs=1,
    ...     optimizer="sgd", learning_rate=0.05, shuffle=False, start={"k": 0},
    ... )
    >>> print(*(f"{one.time:g}: {one.words}; {one.server}" for one in moments(run, record_of(run))),
    ...     sep="\\n")
    0: all begin with the parameters of the start; start: k = 0
    1: worker 1's gradient (k: -6) is there; start: k = 0
    5: worker 2's gradient (k: -24) is there: the mean of 2 gradients makes step 1; step 1: k = 0.75
    """
    names = [e for name, shape in run.shapes.items() for e in elements(name, shape)]

    def said(values: Any, joined: str) -> str:
        each = zip(names, values, strict=False)
        texts = (f"{name}{joined}{mark_rounding(value, _DIGITS)}" for name, value in each)
        return ", ".join(texts).replace("= ≈", "≈ ")

    start = [float(v) for value in run.start.values() for v in getattr(value, "flat", (value,))]
    server = f"start: {said(start, ' = ')}" if len(names) <= _DIGITS * 2 else "start"
    found = [Moment(0.0, "all begin with the parameters of the start", server)]
    steps = run.team.get("first", [])
    known = {(w, v): g for _, _, parts in steps for w, v, g in parts}
    coming, step = iter(steps), 0
    now = next(coming, None)
    for time, what, worker, version in _events(record):
        words = what
        if what == "gradient":
            own = known.get((worker, version))
            of = f" ({said(own, ': ')})" if own else ""
            words = f"worker {worker + 1}'s gradient{of} is there"
            if step > version:
                words += f", {pluralize(step - version, 'step')} old"
        last = now is not None and time >= now[0]
        if now and last and (record.has_stages or [worker, version] == now[2][-1][:2]):
            several, step = len(now[2]), step + 1
            mean = f"the mean of {several} gradients" if several > 1 else "it"
            words = f"{words}: {'that' if record.has_stages else mean} makes step {step}"
            server, now = f"step {step}: {said(now[1], ' = ')}", next(coming, None)
        found.append(Moment(time, words, server))
    return found


def _events(record: TeamRecord) -> Iterator[tuple[float, str, int, int]]:
    """Ends of spans as times, words, workers, versions; what ends together in one line."""
    arrives = "send" if any(span.kind == "send" for span in record.spans) else "compute"
    dropped: dict[float, list[str]] = {}
    found = []
    for worker, kind, begin, end, version in record.spans:
        name = f"worker {worker + 1}"
        if kind == arrives:
            found.append((end, "gradient", worker, version))
        elif kind == "dropped":
            dropped.setdefault(end, []).append(name)
        elif kind == "away":
            found.append((begin, f"{name} dies: what it was computing is lost", -1, 0))
            found.append((end, f"{name} returns, and begins anew", -1, 0))
        elif kind in _PASSES:
            found.append((end, f"{name} {_PASSES[kind].format(version)}", -1, 0))
    for time, names in dropped.items():
        found.append(
            (time, f"what {join_names(names)} {'have' if names[1:] else 'has'} is dropped", -1, 0)
        )
    yield from sorted(found, key=lambda one: one[0])  # dropped behind what has made the step
