"""The training loop: batches in, parameters out, and never a silent nan.

Loss is the mean over the samples of a batch of the loss of a sample. Everything random (the
start, the order of the samples) comes from one seed, and the order of epoch k from the seed and
k alone, so that a run can be taken up again where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from cgprimer.analysis.nonfinite_origin import Why
from cgprimer.core.graph import check_graph
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.type_checks import check_functions
from cgprimer.support.validation import check_named_values, check_real_number
from cgprimer.training.data import (
    Blocks,
    Dataset,
    compute_scales,
    denormalize_outputs,
    normalize_data,
)
from cgprimer.training.epochs import Epochs, Measure, thin
from cgprimer.training.losses import beside_outputs, data_for, samples_for
from cgprimer.training.metrics import METRICS
from cgprimer.training.nonfinite_steps import not_finite
from cgprimer.training.objective import Objective, Resident
from cgprimer.training.parameter_snapshots import moments
from cgprimer.training.parameter_vector import Vectors
from cgprimer.training.predictions import beside_targets
from cgprimer.training.runs import TrainingRun, differences
from cgprimer.training.settings import (
    DEFAULTS,
    SETTINGS,
    Settings,
    documented,
    settings_of,
)
from cgprimer.training.training_steps import Change, Done, Steps, change_of
from cgprimer.training.update_rules import State

Array = Any
Data = Dataset | Blocks
_DIVERGED = 10.0  # times the loss of the start


@documented
def train(
    graph: ExpressionGraph,
    dataset: Any,
    *,
    start: Mapping[str, Any] | None = None,
    validation: Any = None,
    resume: TrainingRun | None = None,
    on_step: Callable[[int, int, float], None] | None = None,
    on_progress: Callable[[int, int, float], None] | None = None,
    on_epoch: Callable[[TrainingRun], None] | None = None,
    on_checkpoint: Callable[[TrainingRun], None] | None = None,
    **settings_and_options: Any,
) -> TrainingRun:
    """Learn a graph's parameters from data.

    Args:
        graph: the graph; its parameters are learnt.
        dataset: a column for each input and each output: a Dataset, :class:`cgprimer.Blocks`, a
            file's path (large files are read in blocks), or a data frame.
        start: start values, numbers or arrays of the parameters' shapes; those not given are drawn.
        validation: other samples, or a share of the dataset (between 0 and 1) that is then not
            trained on: their mean loss after each epoch is recorded.
        resume: a run to take up where it ended, with the same optimizer, batches and number of
            samples, and with the same seed where a share of them is for validation; with the same
            other settings too, the result is that of one uninterrupted run, bit by bit.
        on_step: called after each step with the step, the number of steps and the batch's loss.
            Steps are then done one by one in Python, whatever the engine could do by itself.
        on_progress: the same, called a few times a second.
        on_epoch: called after each epoch with the run, whose losses are up to date.
        on_checkpoint: called before the first step and every so often with the run as it stands,
            from which it could be taken up: to save it.
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
    settings, options = _checked(
        graph,
        settings_and_options,
        on_step=on_step,
        on_progress=on_progress,
        on_epoch=on_epoch,
        on_checkpoint=on_checkpoint,
    )
    dataset, settings = data_for(graph, dataset, settings)
    settings = settings.for_samples(len(dataset))
    given, names, seed, epochs = len(dataset), graph.parameters, settings.seed, settings.epochs
    dataset, others, share = _parts(graph, dataset, validation, settings)
    dataset, others, scales = _normalized(dataset, others, settings, resume, graph.outputs)
    samples = len(dataset)
    how = change_of(settings, graph, dataset.lengths)
    around = how.around
    objective = Objective(
        graph,
        loss=settings.loss,
        method=how.method,
        engine=settings.engine,
        dtype=settings.dtype,
        options=options,
        samples=samples * epochs,
        mode="training",
        free=around.columns.get("free"),
        dataset=dataset,
    )
    vectors = objective.vectors
    recorded = asdict(settings) | {
        "engine": objective.runner.engine, "method": how.method, "learning_rate": how.rate,
        "batch_size": how.batch, "samples": given, "validation": share,
        "validation_samples": len(others or ()), "steps_per_epoch": how.per_epoch,
        **({"options": options} if options else {}),
    }  # fmt: skip
    if resume is None:
        own = check_named_values(
            "start", start, "parameter", names, shapes=graph.shapes, parts=True
        )
        drawn = vectors.sampled_start(seed)
        begin = around.begun(vectors, drawn, own, graph.values)
        run = TrainingRun(begin, {**begin}, {}, recorded, scales=scales, graph=graph)
        run.recorded_parameters = {name: [] for name in names}
    else:
        run = _taken_up(resume, recorded, graph, how.rule.start(np.zeros(len(vectors))))
    run.truth = {n: v for n, v in dataset.truth.items() if n in names}
    values = vectors.vector(run.last_parameters or run.parameters).astype(objective.precision)
    state = tuple(p.astype(values.dtype) if p.ndim else p for p in run.state)
    resident, one_by_one = Resident(objective, dataset), on_step is not None
    steps = _steps_of(how)(objective, resident, how, one_by_one)
    running = run.last_statistics or run.statistics or objective.layers.first()
    held = Done(run.steps, values, steps.begun(values, state), [], statistics=running)
    when = moments(epochs, steps.per_epoch, len(values), settings.short_run_records)
    thin(run, when, epochs * steps.per_epoch)
    measures: dict[str, Measure] = {}
    if others is not None:
        measures[""] = Resident(objective, others).mean_loss
    if settings.metrics:
        measures |= _metrics(graph, vectors, others or dataset, settings, scales)
    if resume is None:
        run.start_loss = resident.mean_loss(values, held.statistics)

    def tell(done: Done) -> None:
        for listener in (on_step, on_progress):
            if listener is not None:
                listener(done.steps, epochs * steps.per_epoch, done.losses[-1])

    going = Epochs(run, steps, held, settings, measures, tell, on_epoch, on_checkpoint)
    bad = going.through(when)
    place = f"at step {run.steps + 1:,} (epoch {run.epochs + 1})"
    if bad is None:
        try:
            learnt = vectors.vector(run.parameters).astype(objective.precision)
            run.penalty = around.penalty(learnt)
            run.loss = resident.mean_loss(learnt, run.statistics)
        except KeyboardInterrupt:  # again, or only now
            run.stopped, run.loss = "interrupted", math.nan
        if run.stopped != "interrupted" and not np.isfinite(run.loss):
            bad, place = np.arange(samples), "after the last step"
    explained = partial(_explained, objective=objective, dataset=dataset, how=how, run=run)
    if bad is not None:
        masks = steps.drawn(run.steps, len(bad))
        said, why = not_finite(objective, dataset, run.parameters, bad, masks)
        raise _stopped(f"training stopped {place}: {said}", why, run, explained)
    if run.stopped == "finished" and 0 < _DIVERGED * run.start_loss < run.loss:
        run.stopped = "diverged"
        run.reason = explained(
            f"the loss has grown from {format_number(run.start_loss, 6)}"
            f" to {format_number(run.loss, 6)}"
        )
    return run


def _checked(
    graph: ExpressionGraph, settings: Mapping[str, Any], **functions: object
) -> tuple[Settings, dict[str, Any]]:
    """Return the settings and the options of the method, after a check of all arguments."""
    check_graph(graph)
    check_functions(**functions)
    return settings_of(settings)


def _steps_of(how: Change) -> type[Steps]:
    """Who makes the steps; one who works alone does not load what many need."""
    if how.plan is None:
        return Steps
    from cgprimer.training.worker_steps import TeamSteps

    return TeamSteps


def _explained(said: str, **of: Any) -> str:
    from cgprimer.training.curvature import with_stable_rate  # loaded by runs that fail

    return with_stable_rate(said, **of)


def _parts(
    graph: ExpressionGraph, dataset: Data, validation: Any, settings: Settings
) -> tuple[Data, Data | None, float]:
    """The samples to train on, those to validate with, and what share of the whole those are."""
    if settings.batch_size is None and len(dataset.lengths) > 1:
        what = "all samples in one batch are read at once, and these are read in blocks"
        raise UsageError(what, hint="a batch size, or Dataset.load(path) if memory is enough")
    if settings.patience and validation is None:
        hint = "validation=0.2 keeps a fifth of the data out (--validation 0.2)"
        raise UsageError("patience looks at the loss on validation samples: give some", hint=hint)
    others = None
    if validation is not None and not isinstance(validation, Real):
        others = samples_for(graph, validation, settings.loss)
    for data, use in (dataset, "learn from"), (others, "validate with"):
        if isinstance(data, Dataset):  # blocks are looked at as they are read
            data.check_finite("" if data is dataset else "validation ")
            if not len(data):
                raise DataError(f"there are no samples to {use}")
    if validation is None or others is not None:
        return dataset, others, 0.0
    share = check_real_number("validation, where it is no Dataset,", validation)
    return *dataset.split(share, settings.seed), share


def _normalized(
    dataset: Data,
    others: Data | None,
    settings: Settings,
    resume: TrainingRun | None,
    outputs: tuple[str, ...],
) -> tuple[Data, Data | None, dict[str, Array]]:
    """Both by the scales of what is trained on, or of the run that is taken up; and these."""
    scales = dict(resume.scales) if isinstance(resume, TrainingRun) else {}
    if settings.normalize and not scales:
        scales = compute_scales(dataset, targets=settings.normalize == "all")
        own = {name for name in scales if name.startswith("targets/")}
        if own and (unlike := [n for n in outputs if f"targets/{n}" not in own]):
            what = f"no target is called {unlike[0]!r}, so nothing tells the units of that output"
            hint = "normalize='inputs' (--normalize inputs), or a target named as its output"
            raise UsageError(what, hint=hint)
    return normalize_data(dataset, scales), others and normalize_data(others, scales), scales


def _metrics(
    graph: ExpressionGraph,
    vectors: Vectors,
    data: Data,
    settings: Settings,
    scales: Mapping[str, Array],
) -> dict[str, Measure]:
    """Functions from parameters' numbers and statistics to each metric over some samples.

    Raises:
        DataError: the targets are not what a metric compares with.
    """
    try:
        targets = denormalize_outputs(beside_outputs(graph, settings.loss, data.block(0)), scales)
    except DataError as error:
        own = f"metrics compare each output with the target of its name: {error.message}"
        raise DataError(own, hint=f"--columns {graph.outputs[0]}=..., or no --metrics") from None
    for name in settings.metrics:  # before any work
        METRICS[name](targets, targets)

    def measure(name: str, values: Array, running: Mapping[str, Array]) -> float:
        at = {**vectors.values(values), **running}
        return METRICS[name](*beside_targets(graph, data, at, settings.loss, scales))

    return {name: partial(measure, name) for name in settings.metrics}


def _taken_up(
    earlier: Any, settings: dict[str, Any], graph: ExpressionGraph, state: State
) -> TrainingRun:
    """A copy of an earlier run to go on with, if its state and its place still mean something."""
    if not isinstance(earlier, TrainingRun):
        raise UsageError(f"expected a TrainingRun (from load_run), not {type(earlier).__name__}")
    if differs := differences(earlier, graph):
        raise UsageError(f"the run is one of another graph: {differs}")
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
        then, now = began.get(name, DEFAULTS.get(name)), settings[name]
        if then != now:
            raise UsageError(
                f"the run began with {name} {then}, and cannot go on with {now}", hint=hint
            )
    if earlier.steps and [np.shape(p) for p in earlier.state] != [np.shape(p) for p in state]:
        raise DataError(f"the run's state is none of the optimizer {settings['optimizer']!r}")
    run = deepcopy(replace(earlier, graph=None))  # a graph is never changed, and large
    run.settings, run.stopped, run.reason, run.graph = settings, "finished", "", graph
    return run


def _stopped(
    said: str, why: Why | None, run: TrainingRun, explained: Callable[[str], str]
) -> NonFiniteError:
    """The error of a run that cannot go on, which takes the run along."""
    run.stopped, run.reason = "diverged", said
    hint = explained("try a smaller learning rate (--learning-rate), or inputs inside the domains")
    if not run.steps:
        hint = (
            "the very first step: look at the start values (--start), the inputs' bounds (--low,"
            " --high) and the loss; cross-entropy needs outputs between 0 and 1, and"
            " cross-entropy-logit takes them before sigmoid(...)"
        )
    error = NonFiniteError(said, hint=hint)
    error.run, error.why = run, why
    return error
