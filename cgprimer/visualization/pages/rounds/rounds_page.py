"""A page that plays the first events of a distributed training run on a timeline."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cgprimer.errors import UsageError, join_names, pluralize
from cgprimer.support.number_format import mark_rounding
from cgprimer.tapes import elements
from cgprimer.training.distributed.worker_record import TeamRecord, record_of
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.figure_files import encode_figure
from cgprimer.visualization.pages.page_rendering import encode_script_data, render_page
from cgprimer.visualization.plots.plotted_runs import Run, name_runs
from cgprimer.visualization.plots.workers_plot import timeline

_DIGITS = 4
_MAX_SERVER_VALUES = 8  # the server shows the initial parameters of smaller graphs only
_PASSES = {
    "forward": "sent micro-batch {} to the next stage",
    "backward": "sent the adjoints of micro-batch {} back",
}


class RunEvent(NamedTuple):
    """An event in a distributed training run, and the server's parameters after the event.

    Attributes:
        time: the time in seconds.
        words: a description of the event.
        server: the parameters after the event.
    """

    time: float
    words: str
    server: str


class _TimedEvent(NamedTuple):
    """A recorded event with its time and, if a gradient arrives, the index of the worker.

    ``worker`` is -1 unless a gradient arrives.
    """

    time: float
    words: str
    worker: int = -1
    version: int = 0


def rounds_page(
    *runs: Run | Mapping[str, Run],
    show: str = "auto",
    until: float | None = None,
    dark: bool = False,
    title: str | None = None,
) -> str:
    """Render a page that animates the events of a distributed training run on a timeline.

    Arguments as in ``cgprimer.plot.workers``.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=20)
    >>> run = cgprimer.train(graph, data, workers=2, simulate=True, batch_size=5, epochs=1)
    >>> rounds_page(run).splitlines()[0]
    '<!doctype html>'
    """
    run_names = name_runs(runs)
    if len(run_names) > 1:
        raise UsageError(f"a page can show only one training run, got {len(run_names)}")
    if show not in ("auto", "timeline"):
        hint = "write a picture instead (-o FILE.svg), or choose `show='timeline'`"
        raise UsageError(f"a page can show only the timeline of a run, not {show}", hint=hint)
    (run,) = run_names.values()
    record = record_of(run)
    end = until or record.timeline_end()
    pictures = dict[str, str]()
    for theme in "light", "dark":
        figure = timeline(record, run.steps, end, dark=theme == "dark", title="")
        pictures[theme] = base64.b64encode(encode_figure(figure, "svg")).decode()
    box = figure.axes[0].get_position()  # known after the layout
    data = {
        "box": [box.x0, box.x1, 1 - box.y1, 1 - box.y0],
        "frames": [
            {"at": event.time / end, "words": event.words, "server": event.server}
            for event in list_events(run, record)
            if event.time <= end
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


def list_events(run: TrainingRun, record: TeamRecord) -> list[RunEvent]:
    """List the events of a distributed training run in chronological order.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*x")
    >>> data = cgprimer.Dataset.from_arrays({"x": [1, 2]}, {"xw": [3, 6]})
    >>> run = cgprimer.train(
    ...     graph, data, workers=2, simulate=True, delays="1,5", batch_size=1, epochs=1,
    ...     optimizer="sgd", learning_rate=0.05, shuffle=False, start={"k": 0},
    ... )
    >>> for event in list_events(run, record_of(run)):
    ...     print(f"{event.time:g} s: {event.words}\\n  {event.server}")
    0 s: all workers begin with the initial parameters
      start: k = 0
    1 s: gradient of worker 1 arrives (k: -6)
      start: k = 0
    5 s: gradient of worker 2 arrives (k: -24): the mean of 2 gradients completes step 1
      step 1: k = 0.75
    """
    names = [e for name, shape in run.shapes.items() for e in elements(name, shape)]

    def format_parameters(values: Any, separator: str) -> str:
        """Format the values of parameters or of their gradients, such as ``k = 0.75, m = 2``."""
        pairs = zip(names, values, strict=False)
        texts = (f"{name}{separator}{mark_rounding(value, _DIGITS)}" for name, value in pairs)
        return ", ".join(texts).replace("= ≈", "≈ ")

    start = [float(v) for value in run.start.values() for v in getattr(value, "flat", (value,))]
    server = "start"
    if len(names) <= _MAX_SERVER_VALUES:
        server = f"start: {format_parameters(start, ' = ')}"
    events = [RunEvent(0.0, "all workers begin with the initial parameters", server)]
    updates = run.team.get("first", [])
    gradients = {(w, v): g for _, _, parts in updates for w, v, g in parts}
    remaining, step = iter(updates), 0
    update = next(remaining, None)
    for time, description, worker, version in _list_timed_events(record):
        words = description
        if worker >= 0:
            gradient = gradients.get((worker, version))
            values = f" ({format_parameters(gradient, ': ')})" if gradient else ""
            words += values
            if step > version:
                words += f", {pluralize(step - version, 'step')} old"
        if (
            update
            and time >= update[0]
            and (record.has_stages or [worker, version] == update[2][-1][:2])
        ):
            n_gradients, step = len(update[2]), step + 1
            source = f"the mean of {n_gradients} gradients" if n_gradients > 1 else "it"
            words += f": {'that' if record.has_stages else source} completes step {step}"
            server = f"step {step}: {format_parameters(update[1], ' = ')}"
            update = next(remaining, None)
        events.append(RunEvent(time, words, server))
    return events


def _list_timed_events(record: TeamRecord) -> Iterator[_TimedEvent]:
    """Yield the recorded events of all workers in chronological order.

    Gradients that are dropped at the same time are one event.
    """
    arrival = "send" if any(span.kind == "send" for span in record.spans) else "compute"
    dropped: dict[float, list[str]] = {}
    events = []
    for worker, kind, begin, end, version in record.spans:
        name = f"worker {worker + 1}"
        if kind == arrival:
            events.append(_TimedEvent(end, f"gradient of {name} arrives", worker, version))
        elif kind == "dropped":
            dropped.setdefault(end, []).append(name)
        elif kind == "away":
            events.append(_TimedEvent(begin, f"{name} fails: its current gradient is lost"))
            events.append(_TimedEvent(end, f"{name} returns and starts again"))
        elif kind in _PASSES:
            events.append(_TimedEvent(end, f"{name} {_PASSES[kind].format(version)}"))
    for time, names in dropped.items():
        noun = "gradients" if names[1:] else "gradient"
        verb = "are" if names[1:] else "is"
        events.append(_TimedEvent(time, f"the {noun} of {join_names(names)} {verb} dropped"))
    # The sort is stable: dropped gradients follow the gradient that completed the step.
    yield from sorted(events, key=lambda event: event.time)
