"""Train a graph: preparation of the samples, choice of a strategy, epochs, and final loss.

The loss of a batch is the mean over its samples. One seed determines all random numbers (start
values, order of the samples), and the order of an epoch depends only on the seed and the index of
the epoch, so that a run can be resumed where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from cgprimer.core.graph import check_graph
from cgprimer.errors import DataError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.type_checks import check_functions
from cgprimer.support.validation import check_named_values
from cgprimer.training.data import Blocks, Dataset, denormalize_outputs
from cgprimer.training.epoch_strategy import EpochStrategy, Progress
from cgprimer.training.epochs import Callbacks, EpochLoop, Measure, thin_records
from cgprimer.training.losses import align_targets, load_training_data
from cgprimer.training.metrics import METRICS
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.parameter_snapshots import plan_recording
from cgprimer.training.run_outcome import (
    create_nonfinite_error,
    measure_final_loss,
    record_divergence,
)
from cgprimer.training.runs import TrainingRun
from cgprimer.training.sample_preparation import PreparedSamples, prepare_samples
from cgprimer.training.settings import Settings, add_settings_to_signature, create_settings
from cgprimer.training.strategy_choice import choose_strategy, plan_training
from cgprimer.training.update_plan import UpdatePlan

Array = Any


@add_settings_to_signature
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
    """Train a graph: learn its parameters from data.

    Args:
        graph: the graph; training learns its parameters.
        dataset: a column for each input and each output: a Dataset, :class:`cgprimer.Blocks`, the
            path of a file (a large file is read in blocks), or a data frame.
        start: initial values of parameters: numbers, or arrays of the parameters' shapes. All
            other initial values are random.
        validation: validation samples, or a fraction of the dataset (between 0 and 1) to hold out.
            The mean loss of these samples is recorded after each epoch.
        resume: a run to continue, with the same optimizer, batch size and number of samples, and
            with the same seed if a fraction of the samples is for validation. If all other settings
            are equal, the result is that of one uninterrupted run, bit by bit.
        on_step: called after each step with the step, the number of steps and the loss of the
            batch. The engine then runs single steps instead of whole epochs.
        on_progress: called with the same arguments a few times per second.
        on_epoch: called after each epoch with the run, whose losses are up to date.
        on_checkpoint: called before the first step and at each checkpoint with the run so far,
            for example to save it.
        method: differentiation method of the gradient.
        engine: engine that runs the tapes; ``auto`` chooses by the size of the tape.
        dtype: precision of the computation, ``float64`` or ``float32``.
        loss: name of a loss (squared-error, half-squared-error, absolute-error, huber(1),
            cross-entropy, cross-entropy-logit, softmax-cross-entropy, hinge), an expression in
            ``out`` and ``target`` or in names of the graph and of data columns, or ``output`` if
            the output of the graph is the loss.
        reduction: reduction of the loss over a batch, ``mean`` or ``sum``. Reported losses are
            always means.
        optimizer: name of an optimizer (sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw,
            coordinates, l-bfgs, or a registered one), or the text of an update rule, such as
            ``v = mu*v + g; p = p - rate*v``.
        hyper: hyperparameters of optimizer and schedule, keyed by name, such as ``{"beta": 0.8}``.
            All hyperparameters of an update rule given as a text are required.
        learning_rate: learning rate of the first step. The default depends on the optimizer.
        schedule: learning-rate schedule: cosine, constant, exponential, steps, or an expression in
            ``t`` (the epoch, from 0), ``step``, ``steps``, ``epochs`` and ``rate``, such as
            ``rate/(1 + 0.01*t)``.
        warm_up: number of epochs in which the learning rate rises linearly from 0 to the value of
            the schedule.
        scale: factors of the learning rate, keyed by parameter.
        l2: coefficient of weight decay: ``l2*W^2`` is added to the loss. One number for all
            parameters, or numbers keyed by parameter.
        l1: coefficient of the sparsity penalty: ``2*l1*|W|`` is added to the loss, by proximal
            steps that stop at 0. One number, or numbers keyed by parameter.
        max_norm: maximum norm of each array, and of all scalar parameters together. One number, or
            numbers keyed by parameter; the key ``a+b`` limits the norm of a and b together.
        norm: order p of the norm limited by ``max_norm``, from 1 to infinity.
        bounds: lower and upper bounds keyed by parameter, such as ``{"k": (0, 1)}``.
        freeze: parameters that keep their initial or declared values; no derivatives with respect
            to these parameters are computed.
        epochs: number of epochs. The default is 30, and more for fewer than 10,000 samples, up to
            3,000.
        batch_size: number of samples per step, or ``"all"``.
        seed: random seed of the initial values (uniform in [0, 1)) and of the order of the samples.
        normalize: standardize inputs (``inputs``), or inputs and targets (``all``), to mean 0 and
            standard deviation 1 over the training samples. The run records the scales and applies
            them to predictions.
        shuffle: shuffle the samples in every epoch.
        stop_below: stop when the mean loss of an epoch is below this value.
        patience: stop when the validation loss has not decreased for this number of epochs. The
            parameters are those of the best epoch.
        metrics: metrics to record after each epoch (accuracy, r2), over the validation samples if
            given.
        checkpoint_every: interval between checkpoints: a number of epochs, or seconds such as
            ``"30s"``.
        workers: number of workers, each of which computes gradients of ``batch_size`` samples.
        simulate: simulate the workers on a virtual clock.
        cluster: run the workers as processes of dask.distributed: ``local`` starts processes on
            this machine, ``tcp://HOST:PORT`` connects to a running scheduler.
        protocol: gradients that an update combines: those of all workers (sync), of a single worker
            (async), of all but the slowest workers (backup), or of a group of workers (groups).
        staleness: maximum number of gradients that a worker may be ahead of the slowest one, for
            ``protocol="async"``. The default is no limit.
        backup: number of slow workers that an update does not wait for, for
            ``protocol="backup"`` (default: 1).
        groups: number of groups of workers, for ``protocol="groups"`` (default: 2).
        delays: compute time per gradient of simulated workers, in seconds: constant,
            exponential(1), pareto(2), or one time per worker, such as 1,1,5. Optional additions:
            slow(5) for a slow worker, dies(10,20) for an absent worker, network(1e-9) for the
            seconds per transferred byte.
        place: ``layers:N`` cuts the graph by layers into N stages, each on its own worker.
        micro_batches: number of parts of a batch that pass through the stages in a pipeline.
        short_run_records: approximate number of recorded parameter values in a run of fewer than
            five epochs. Longer runs record the parameters at the ends of epochs. Each record stops
            an engine for about 30 microseconds.
        settings_and_options: the settings above, and options of the differentiation method.

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
    check_graph(graph)
    check_functions(
        on_step=on_step, on_progress=on_progress, on_epoch=on_epoch, on_checkpoint=on_checkpoint
    )
    settings, options = create_settings(settings_and_options)
    dataset, settings = load_training_data(graph, dataset, settings)
    settings = settings.for_samples(len(dataset))
    scales = resume.scales if isinstance(resume, TrainingRun) else {}
    samples = prepare_samples(graph, dataset, validation, settings, scales)
    plan = plan_training(settings, graph, samples.training.lengths)
    objective = _create_objective(graph, plan, samples, options)
    recorded_settings = _record_settings(plan, objective, samples, options)
    if resume is None:
        run = _create_run(plan, objective, samples, start, recorded_settings)
    else:
        from cgprimer.training.resumption import resume_run

        initial_state = plan.rule.start(np.zeros(len(objective.vectors)))
        run = resume_run(resume, recorded_settings, graph, initial_state)
    truth = samples.training.truth
    run.truth = {name: truth[name] for name in truth if name in graph.parameters}
    data = ResidentData(objective, samples.training)
    strategy = choose_strategy(objective, data, plan, observed=on_step is not None)
    progress = _create_initial_progress(run, strategy)
    steps = settings.epochs * plan.updates_per_epoch
    schedule = plan_recording(
        settings.epochs, plan.updates_per_epoch, len(progress.values), settings.short_run_records
    )
    thin_records(run, schedule, steps)
    measures = _create_measures(objective, samples, settings)
    if resume is None:
        run.start_loss = data.mean_loss(progress.values, progress.statistics)

    def report_progress(progress: Progress) -> None:
        """Call ``on_step`` and ``on_progress`` with the latest progress."""
        for listener in (on_step, on_progress):
            if listener is not None:
                listener(progress.updates, steps, progress.losses[-1])

    callbacks = Callbacks(report_progress, on_epoch, on_checkpoint)
    failed_samples = EpochLoop(run, strategy, progress, measures, callbacks).train(schedule)
    return _finish_run(run, strategy, failed_samples)


def _create_objective(
    graph: ExpressionGraph, plan: UpdatePlan, samples: PreparedSamples, options: Mapping[str, Any]
) -> Objective:
    """Create the objective that a run minimizes over its training samples."""
    settings = plan.settings
    return Objective(
        graph,
        loss=settings.loss,
        method=plan.method,
        engine=settings.engine,
        dtype=settings.dtype,
        options=options,
        samples=len(samples.training) * settings.epochs,
        mode="training",
        free=plan.constraints.columns.get("free"),
        dataset=samples.training,
    )


def _record_settings(
    plan: UpdatePlan, objective: Objective, samples: PreparedSamples, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a run as saved in its file, including values chosen by default."""
    return asdict(plan.settings) | {
        "engine": objective.runner.engine,
        "method": plan.method,
        "learning_rate": plan.learning_rate,
        "batch_size": plan.batch_size,
        "samples": samples.total,
        "validation": samples.validation_fraction,
        "validation_samples": len(samples.validation or ()),
        "steps_per_epoch": plan.updates_per_epoch,
        **({"options": options} if options else {}),
    }


def _create_run(
    plan: UpdatePlan,
    objective: Objective,
    samples: PreparedSamples,
    start: Mapping[str, Any] | None,
    recorded_settings: dict[str, Any],
) -> TrainingRun:
    """Create a run with its start values and recorded settings."""
    graph, vectors = objective.graph, objective.vectors
    start_values = check_named_values(
        "start", start, "parameter", graph.parameters, shapes=graph.shapes, parts=True
    )
    random_start = vectors.sampled_start(plan.settings.seed)
    values = plan.constraints.choose_start(vectors, random_start, start_values, graph.values)
    run = TrainingRun(values, {**values}, {}, recorded_settings, scales=samples.scales, graph=graph)
    run.recorded_parameters = {name: [] for name in graph.parameters}
    return run


def _create_initial_progress(run: TrainingRun, strategy: EpochStrategy) -> Progress:
    """Return the progress at the start of a new run or of a resumed run."""
    objective = strategy.objective
    vector = objective.vectors.vector(run.last_parameters or run.parameters)
    values = vector.astype(objective.precision)
    state = tuple(p.astype(values.dtype) if p.ndim else p for p in run.state)
    statistics = (
        run.last_statistics or run.statistics or objective.layers.create_initial_statistics()
    )
    initial_state = strategy.initial_state(values, state)
    return Progress(run.steps, values, initial_state, [], statistics=statistics)


def _finish_run(
    run: TrainingRun, strategy: EpochStrategy, failed_samples: Array | None
) -> TrainingRun:
    """Measure the final loss of a run, and check whether the run diverged.

    Raises:
        NonFiniteError: a number was not finite, during the run or at its end.
    """
    if failed_samples is not None:
        position = f"at step {run.steps + 1:,} (epoch {run.epochs + 1})"
        raise create_nonfinite_error(run, strategy, failed_samples, position)
    measure_final_loss(run, strategy)
    if run.stopped != "interrupted" and not np.isfinite(run.loss):
        all_samples = np.arange(strategy.samples)
        raise create_nonfinite_error(run, strategy, all_samples, "after the last step")
    record_divergence(run, strategy)
    return run


def _create_measures(
    objective: Objective, samples: PreparedSamples, settings: Settings
) -> dict[str, Measure]:
    """Return the functions that measure the validation loss and the metrics after an epoch.

    Raises:
        DataError: a metric cannot be computed from the targets.
    """
    measures: dict[str, Measure] = {}
    if samples.validation is not None:
        measures[""] = ResidentData(objective, samples.validation).mean_loss
    if settings.metrics:
        data = samples.validation or samples.training
        measures |= _create_metric_functions(objective, data, settings, samples.scales)
    return measures


def _create_metric_functions(
    objective: Objective,
    data: Dataset | Blocks,
    settings: Settings,
    scales: Mapping[str, Array],
) -> dict[str, Measure]:
    """Return the functions that compute the metrics of a run, keyed by metric.

    Raises:
        DataError: a metric cannot be computed from the targets.
    """
    from cgprimer.training.predictions import pair_outputs_with_targets

    graph, vectors, loss = objective.graph, objective.vectors, settings.loss
    try:
        targets = denormalize_outputs(align_targets(graph, loss, data.block(0)), scales)
    except DataError as error:
        what = f"metrics require a target with the name of each output: {error.message}"
        hint = f"add --columns {graph.outputs[0]}=..., or leave out --metrics"
        raise DataError(what, hint=hint) from None
    for name in settings.metrics:  # targets that a metric cannot use are rejected before training
        METRICS[name](targets, targets)

    def compute_metric(name: str, values: Array, statistics: Mapping[str, Array]) -> float:
        """Compute a metric of the outputs at the given parameters and statistics."""
        point = {**vectors.values(values), **statistics}
        return METRICS[name](*pair_outputs_with_targets(graph, data, point, loss, scales))

    return {name: partial(compute_metric, name) for name in settings.metrics}
