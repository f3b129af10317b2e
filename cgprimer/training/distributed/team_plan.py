"""The plan of a team of workers: their number and protocol, checked against the other settings."""

from __future__ import annotations

from collections.abc import Sequence

from cgprimer.errors import UsageError
from cgprimer.training.distributed.protocols import TeamPlan, plan_protocol
from cgprimer.training.losses import find_loss_function
from cgprimer.training.settings import Settings
from cgprimer.training.update_plan import configure_optimizer
from cgprimer.training.worker_options import WorkerOptions


def plan_team(options: WorkerOptions, settings: Settings, block_lengths: Sequence[int]) -> TeamPlan:
    """Choose the number of workers and the protocol of a run, after checking the options.

    Args:
        options: the options for workers.
        settings: all settings of the run.
        block_lengths: the number of samples of each block.

    Raises:
        UsageError: options that contradict each other, the settings or the data.
    """
    samples = sum(block_lengths)
    replicas = 1 if options.place is None else _count_replicas(options)
    workers = options.workers if options.place is None else replicas * options.stages
    assert workers is not None
    batch_size = min(samples, settings.batch_size or samples)
    if options.micro_batches > batch_size:
        raise UsageError(
            f"cannot divide a batch of {batch_size:,} samples into"
            f" {options.micro_batches:,} micro-batches",
            hint="choose fewer micro-batches (--micro-batches) or larger batches (--batch-size)",
        )
    _check_location(options, workers, block_lengths)
    if options.cluster:
        _check_cluster_settings(options, settings)
    rule = configure_optimizer(settings)
    if rule.kind != "rule":
        raise UsageError(
            f"the optimizer {rule.name!r} does not support multiple workers",
            hint="choose an optimizer that uses gradients, such as sgd, momentum or adam",
        )
    if workers > samples:
        raise UsageError(
            f"workers must be at most the number of samples, got {workers:,} for"
            f" {samples:,} samples"
        )
    count = workers if options.place is None else replicas
    return plan_protocol(options.protocol, count, **options.protocol_options)


def _check_location(options: WorkerOptions, workers: int, block_lengths: Sequence[int]) -> None:
    """Check that the workers are either simulated or on a cluster, but not both.

    Raises:
        UsageError: both or neither, or simulated workers with data that are read in blocks.
    """
    if options.simulate == bool(options.cluster):
        message = f"workers must be simulated or on the cluster {options.cluster!r}, not both"
        if not options.simulate:
            message = (
                f"workers must be simulated or on a cluster, got {workers:,} workers without either"
            )
        raise UsageError(
            message,
            hint="choose simulate=True (--simulate) for a virtual clock, cluster='local' (--cluster"
            " local) for processes on this machine, or --cluster tcp://HOST:PORT for a scheduler",
        )
    if options.simulate and len(block_lengths) > 1:
        raise UsageError(
            "simulated workers need all samples in memory, not blocks",
            hint="load the data with Dataset.load(path) if memory allows, or use --cluster",
        )


def _count_replicas(options: WorkerOptions) -> int:
    """Return the number of replicas of a graph that is divided into stages.

    Raises:
        UsageError: the workers do not divide into replicas, or the protocol cannot have replicas.
    """
    stages = options.stages
    workers = options.workers or stages
    if workers % stages:
        raise UsageError(
            f"`workers` must be a multiple of {stages}, the number of stages, got {workers}",
            hint=f"leave out --workers, or choose --workers {2 * stages}",
        )
    replicas = workers // stages
    if replicas == 1 and options.protocol != "sync":
        raise UsageError(
            f"the protocol {options.protocol!r} requires multiple replicas of the graph",
            hint=f"choose --workers {2 * stages} for two replicas, or --protocol sync",
        )
    if options.protocol == "backup":
        raise UsageError(
            "the protocol 'backup' cannot be used with `place`: a stage cannot drop a gradient",
            hint="choose --protocol sync, async or groups",
        )
    if replicas > 1 and options.cluster:
        raise UsageError(
            f"a cluster supports one replica of a divided graph, with {stages} workers",
            hint="choose --simulate for multiple replicas",
        )
    return replicas


def _check_cluster_settings(options: WorkerOptions, settings: Settings) -> None:
    """Check that a run with these settings can use processes on a cluster.

    Raises:
        UsageError: a setting is a Python function, or has an effect only on a virtual clock.
    """
    if options.delays != WorkerOptions().delays:
        hint = "leave out --delays, or use --simulate instead of --cluster"
        raise UsageError("delays require simulated workers, not workers on a cluster", hint=hint)
    for name in ("loss", "method", "engine"):
        value = getattr(settings, name)
        if not isinstance(value, str) or (name == "loss" and find_loss_function(value)):
            what = f"the {name} {value!r} is a Python function and cannot be sent to workers"
            raise UsageError(what, hint="use an expression, or --simulate")
