"""The training loop: batches in, parameters out, and never a silent nan.

Loss is the mean over the samples of a batch of the loss of a sample. Everything random (the
start, the order of the samples) comes from one seed, and the order of epoch k from the seed and
k alone, so that a run can be taken up again where it stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from cgprimer.checked_numbers import numbers_by_name, real_number
from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.primitives.structural import shape_text
from cgprimer.core.tape.scalars import apart
from cgprimer.data import Dataset
from cgprimer.errors import DataError, NonFiniteError, UsageError, listed
from cgprimer.number_format import number
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import State
from cgprimer.training.optimizers import optimizer as optimizer_of
from cgprimer.training.settings import SETTINGS, documented, settings_of
from cgprimer.training.snapshots import Moments, moments
from cgprimer.training.steps import Done, Steps, rates

Array = Any
Value = Any  # a float, or an array of a parameter's shape
_DIVERGED = 10.0  # times the loss of the start


@dataclass(eq=False, repr=False)
class TrainingRun:
    """What training did.

    A parameter is a number, or an array of its shape.

    Attributes:
        parameters: learnt values.
        start: values before the first step.
        truth: values that the data were made with; empty for data that came from elsewhere.
        start_loss, loss: mean loss over the whole dataset before and after.
        step_losses: mean loss of the batch at every step, before the step.
        epoch_losses: mean over the samples of each epoch, each taken in its step.
        validation_losses: mean loss over the validation samples after each epoch; nan for an
            epoch without, and where the loss is no number, as outside the domain of a logarithm.
            Empty where no epoch had any.
        recorded_steps: ascending; steps after which the parameters were recorded: the end of each
            epoch; in runs of few epochs moments between, too; in long ones every second, fourth...
        recorded_parameters: for each parameter its values then.
        epochs, steps: how many were done.
        seconds: time spent in steps.
        stopped: why training ended: ``finished``, ``converged``, ``interrupted``, or ``diverged``
            where a number was not finite (the error that says so has this run) or the loss ended
            ten times above that of the start.
        reason: what diverged, in words; empty for other runs.
        settings: the arguments of the run.
        state: the optimizer's state, for taking the run up again.
    """

    parameters: dict[str, Value]
    start: dict[str, Value]
    truth: dict[str, Value]
    settings: dict[str, Any]
    start_loss: float = float("nan")
    loss: float = float("nan")
    step_losses: list[float] = field(default_factory=list)
    epoch_losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    recorded_steps: list[int] = field(default_factory=list)
    recorded_parameters: dict[str, list[Value]] = field(default_factory=dict)
    epochs: int = 0
    steps: int = 0
    seconds: float = 0.0
    stopped: str = "finished"
    reason: str = ""
    state: State = ()

    @property
    def losses_by_epoch(self) -> list[float]:
        """The curve of the run: the loss before the first step, then that of each epoch."""
        return [self.start_loss, *self.epoch_losses]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self.stopped == "interrupted"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter; ``()`` of a number."""
        return {name: np.shape(value) for name, value in self.parameters.items()}

    def in_numbers(self) -> TrainingRun:
        """The same run with a name for each number: ``W[0,1]``. What is drawn are numbers.

        >>> TrainingRun({"w": np.array([1.0, 2.0])}, {}, {}, {}).in_numbers().parameters
        {'w[0]': 1.0, 'w[1]': 2.0}
        """
        shapes = self.shapes
        if not any(shapes.values()):
            return self
        each = [apart(values, shapes) for values in (self.parameters, self.start, self.truth)]
        recorded = {
            name: np.array(values).reshape(len(values), *shapes[name])
            for name, values in self.recorded_parameters.items()
        }
        over_time = {name: part.tolist() for name, part in apart(recorded, shapes).items()}
        return replace(
            self, parameters=each[0], start=each[1], truth=each[2], recorded_parameters=over_time
        )

    def __repr__(self) -> str:
        learnt = listed(
            n + (shape_text(value.shape) if np.ndim(value) else f"={number(value, 6)}")
            for n, value in self.parameters.items()
        )
        losses = f"loss {number(self.start_loss, 6)} -> {number(self.loss, 6)}"
        return f"<TrainingRun {self.stopped}: {self.steps} steps, {losses}, {learnt}>"


@documented
def train(
    graph: ExpressionGraph,
    dataset: Dataset,
    *,
    start: Mapping[str, Any] | None = None,
    validation: Dataset | float | None = None,
    resume: TrainingRun | None = None,
    on_step: Callable[[int, int, float], None] | None = None,
    on_progress: Callable[[int, int, float], None] | None = None,
    **settings_and_options: Any,
) -> TrainingRun:
    """Learn a graph's parameters from data.

    Args:
        graph: the graph; its parameters are learnt.
        dataset: a column for each input and each output.
        start: start values, numbers or arrays of the parameters' shapes; those not given are drawn.
        validation: other samples, or a share of the dataset (between 0 and 1) that is then not
            trained on: their mean loss after each epoch is recorded.
        resume: a run to take up where it ended, with the same optimizer, batches and number of
            samples, and with the same seed where a share of them is for validation; with the same
            other settings too, the result is that of one uninterrupted run.
        on_step: called after each step with the step, the number of steps and the batch's loss.
            Steps are then done one by one in Python, whatever the engine could do by itself.
        on_progress: the same, called a few times a second.
        {settings}
        settings_and_options: such settings (they stand in ``training/settings.py``), and options
            of the method.

    Returns:
        The run. Ctrl-C ends it early and cleanly, with ``stopped == "interrupted"``.

    Raises:
        UsageError, DataError: wrong arguments, missing columns, no samples, a value in the data
            that is not finite.
        NonFiniteError: the loss or the gradient became infinite or nan; the message names vertex,
            sample and step, and ``error.run`` is the run up to the step before.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> run = train(graph, cgprimer.make_dataset(graph, samples=1000))
    >>> {name: round(value, 3) for name, value in run.parameters.items()}
    {'k': 3.0, 'b': -1.0}
    """
    checked_graph(graph)
    if not isinstance(dataset, Dataset):
        hint = "cgprimer.make_dataset(graph), Dataset.load(path) or Dataset.from_arrays(...)"
        raise UsageError(f"expected a Dataset, not {type(dataset).__name__}", hint=hint)
    settings, options = settings_of(settings_and_options)
    rule, given, names = optimizer_of(settings.optimizer), len(dataset), graph.parameters
    seed, epochs = settings.seed, settings.epochs
    rate = rule.rate if settings.learning_rate is None else settings.learning_rate
    dataset, others, share = _parts(dataset, validation, seed)
    samples = len(dataset)
    batch = min(settings.batch_size or samples, samples)
    objective = Objective(
        graph,
        loss=settings.loss,
        method=settings.method,
        engine=settings.engine,
        dtype=settings.dtype,
        options=options,
        samples=samples * epochs,
    )
    vectors = objective.vectors
    recorded = asdict(settings) | {
        "engine": objective.runner.engine, "learning_rate": rate, "batch_size": batch,
        "samples": given, "validation": share, "validation_samples": len(others or ()),
        "steps_per_epoch": -(-samples // batch),
    }  # fmt: skip
    if resume is None:
        begin = vectors.values(np.random.default_rng(seed).random(len(vectors)))
        begin |= numbers_by_name("start", start, "parameter", names, shapes=graph.shapes)
        run = TrainingRun(begin, {**begin}, {}, recorded)
        run.recorded_parameters = {name: [] for name in names}
    else:
        run = _taken_up(resume, recorded, vectors.shapes)
    run.truth = {n: v for n, v in dataset.truth.items() if n in names}
    values = vectors.vector(run.parameters).astype(objective.precision)
    state = tuple(p.astype(values.dtype) if p.ndim else p for p in run.state)
    held = Done(run.steps, values, state or rule.start(values), [])
    rate_of = partial(rates, rate, settings.schedule, epochs * -(-samples // batch))
    columns, one_by_one = objective.columns(dataset), on_step is not None
    order = seed if settings.shuffle else None
    steps = Steps(objective, columns, rule, batch, rate_of, order, one_by_one)
    validate = None
    if others is not None:
        resident = objective.resident(objective.columns(others))
        validate = partial(objective.mean_loss, resident, len(others))
    when = moments(epochs, steps.per_epoch, len(values), settings.short_run_records)
    _thin(run, when)
    mean_loss = partial(objective.mean_loss, steps.resident, samples)
    if resume is None:
        run.start_loss = mean_loss(values)

    def tell(done: Done) -> None:
        for listener in (on_step, on_progress):
            if listener is not None:
                listener(done.steps, epochs * steps.per_epoch, done.losses[-1])

    bad = _go_through(run, steps, held, epochs, settings.stop_below, tell, when, validate)
    place = f"at step {run.steps + 1:,} (epoch {run.epochs + 1})"
    if bad is None:
        run.loss = mean_loss(vectors.vector(run.parameters))
        if not np.isfinite(run.loss):
            bad, place = np.arange(samples), "after the last step"
    if bad is not None:
        why = objective.not_finite(dataset, run.parameters, bad)
        raise _stopped(f"training stopped {place}: {why}", run)
    if run.stopped == "finished" and 0 < _DIVERGED * run.start_loss < run.loss:
        run.stopped = "diverged"
        run.reason = f"the loss has grown from {number(run.start_loss, 6)} to {number(run.loss, 6)}"
    return run


def _parts(
    dataset: Dataset, validation: Dataset | float | None, seed: int
) -> tuple[Dataset, Dataset | None, float]:
    """The samples to train on, those to validate with, and what share of the whole those are."""
    for data, use in (dataset, "learn from"), (validation, "validate with"):
        if isinstance(data, Dataset):
            data.check_finite("" if data is dataset else "validation ")
            if not len(data):
                raise DataError(f"there are no samples to {use}")
    if validation is None or isinstance(validation, Dataset):
        return dataset, validation, 0.0
    share = real_number("validation, where it is no Dataset,", validation)
    return *dataset.split(share, seed), share


def _go_through(
    run: TrainingRun,
    steps: Steps,
    held: Done,
    epochs: int,
    stop_below: float | None,
    tell: Callable[[Done], None],
    when: Moments,
    validate: Callable[[Array], float] | None,
) -> Array | None:
    """All epochs still to do; the samples of a step that was not finite, if one was."""
    kept: list[tuple[int, Array]] = []
    clock = time.perf_counter()
    try:
        for epoch in range(run.epochs, epochs):
            halts = when.of_epoch(epoch)
            for done in steps.epoch(epoch, held, halts):
                run.step_losses += done.losses
                if done.failed is None and done.steps in halts:
                    kept.append((done.steps, done.values))
                held = done  # one assignment: Ctrl-C comes before it or after it
                if held.failed is not None:
                    return held.failed
                tell(done)
            if validate is not None or run.validation_losses:
                begun = time.perf_counter()
                other = math.nan if validate is None else validate(held.values)
                missing = epoch - len(run.validation_losses)  # taken up, and begun without
                run.validation_losses += [*[math.nan] * missing, other]
                clock += time.perf_counter() - begun  # it is no part of the steps' time
            run.epoch_losses.append(steps.mean(run.step_losses[-steps.per_epoch :]))
            run.epochs = epoch + 1
            if stop_below is not None and run.epoch_losses[-1] < stop_below:
                run.stopped = "converged"
                break
    except KeyboardInterrupt:
        run.stopped = "interrupted"
    finally:
        run.seconds += time.perf_counter() - clock
        run.steps, run.state = held.steps, held.state
        del run.step_losses[run.steps :]
        del run.epoch_losses[run.epochs :], run.validation_losses[run.epochs :]
        vectors = steps.objective.vectors
        for step, values in [one for one in kept if one[0] <= run.steps]:
            run.recorded_steps.append(step)
            for name, value in vectors.values(values).items():
                run.recorded_parameters[name].append(value)
        run.parameters = vectors.values(held.values)
    return None


def _thin(run: TrainingRun, when: Moments) -> None:
    """Leave out the records of a run that a longer one has no room for."""
    left = [k for k, step in enumerate(run.recorded_steps) if step in when]
    run.recorded_steps = [run.recorded_steps[k] for k in left]
    for name, values in run.recorded_parameters.items():
        run.recorded_parameters[name] = [values[k] for k in left]


def _taken_up(earlier: Any, settings: dict[str, Any], shapes: Mapping[str, Any]) -> TrainingRun:
    """A copy of an earlier run to go on with, if its state and its place still mean something."""
    if not isinstance(earlier, TrainingRun):
        raise UsageError(f"expected a TrainingRun to resume, not {type(earlier).__name__}")
    if list(earlier.shapes.items()) != list(shapes.items()):
        own = ", ".join(n + (shape_text(s) if s else "") for n, s in earlier.shapes.items())
        raise UsageError(f"the run is one of another graph: its parameters are {own}")
    began = dict(earlier.settings)
    if not isinstance(began.get("validation"), float):
        began["validation"] = 0.0  # no share of the data: other samples, or none
    hints = {name: setting.same for name, setting in SETTINGS.items() if setting.same}
    hints |= dict.fromkeys(("samples", "validation"), hints["batch_size"])
    if settings["validation"]:  # else a seed only orders the samples, and another does no harm
        hints["seed"] = (
            "it has drawn the samples to validate with, and another would take samples that were"
            f" trained on: seed={began.get('seed')} (--seed {began.get('seed')})"
        )
    for name, hint in hints.items():
        if began.get(name) != settings[name]:
            then, now = began.get(name), settings[name]
            raise UsageError(
                f"the run began with {name} {then}, and cannot go on with {now}", hint=hint
            )
    run = deepcopy(earlier)
    run.settings, run.stopped, run.reason = settings, "finished", ""
    return run


def _stopped(why: str, run: TrainingRun) -> NonFiniteError:
    """The error of a run that cannot go on, which takes the run along."""
    run.stopped, run.reason = "diverged", why
    hint = "try a smaller learning rate (--learning-rate), or inputs inside the domains"
    if not run.steps:
        hint = (
            "the very first step: look at the start values (--start), the inputs' bounds (--low,"
            " --high) and the loss; cross-entropy needs outputs between 0 and 1, as of sigmoid(...)"
        )
    error = NonFiniteError(why, hint=hint)
    error.run = run
    return error
