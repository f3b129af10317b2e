"""What settings say about many workers, and what many cannot do together."""

from __future__ import annotations

from collections.abc import Sequence

from cgprimer.errors import UsageError
from cgprimer.training.distributed.layer_cuts import stages_of
from cgprimer.training.distributed.protocols import Plan, plan
from cgprimer.training.losses import function_of
from cgprimer.training.settings import DEFAULTS, Settings
from cgprimer.training.update_rules import Optimizer


def plan_of(settings: Settings, rule: Optimizer, lengths: Sequence[int]) -> Plan | None:
    """How many workers train together; None for one that is alone.

    Raises:
        UsageError: what cannot be done together, or says something of workers that are not there.
    """
    own = ("staleness", "backup", "groups")
    workers, samples, name = settings.workers, sum(lengths), settings.place
    replicas = 1 if name is None else _replicas(settings, stages_of(name))
    if name is not None:
        workers = replicas * stages_of(name)
    if settings.micro_batches > min(samples, settings.batch_size or samples) or (
        settings.micro_batches > 1 and not name
    ):
        what = f"{settings.micro_batches} micro-batches are parts of the batch of a placed graph"
        raise UsageError(what, hint="place='layers:2' (--place layers:2), and as many samples")
    if workers is None:
        for name in ("simulate", "cluster", "protocol", *own, "delays"):
            if getattr(settings, name) != DEFAULTS[name]:
                hint = "say how many: workers=8 (--workers 8), or place='layers:2'"
                raise UsageError(f"{name} is about many workers", hint=hint)
        return None
    if settings.simulate == bool(settings.cluster):
        hint = "on a virtual clock: simulate=True (--simulate); here: cluster='local' (--cluster"
        hint += " local); on other machines: --cluster tcp://HOST:PORT"
        both = f": simulated, or on the cluster {settings.cluster}" if settings.simulate else ""
        raise UsageError(f"where do the {workers:,} workers work{both}?", hint=hint)
    if settings.cluster:
        _check_travels(settings)
    if rule.kind != "rule":
        what = f"{rule.name} goes its own way through the samples, which many workers cannot share"
        raise UsageError(what, hint="an optimizer of gradients, such as sgd, momentum or adam")
    if settings.simulate and len(lengths) > 1:
        what = "simulated workers are in one memory, and these samples are read in blocks"
        raise UsageError(what, hint="Dataset.load(path) if memory is enough, or --cluster")
    if workers > samples:
        raise UsageError(f"there are {workers:,} workers, more than the {samples:,} samples")
    if settings.place:
        return plan(settings.protocol, replicas, **{name: getattr(settings, name) for name in own})
    return plan(settings.protocol, workers, **{name: getattr(settings, name) for name in own})


def _replicas(settings: Settings, stages: int) -> int:
    """Return how many times the placed graph is there: once, or as often as there are workers for.

    Raises:
        UsageError: workers that do not divide into replicas, or a protocol that cannot have them.
    """
    name, workers = settings.place, settings.workers or stages
    if workers % stages:
        what = f"{name} takes {stages} workers for each replica, and {workers} is not a multiple"
        raise UsageError(what, hint=f"leave --workers out, or --workers {2 * stages}")
    replicas = workers // stages
    if replicas == 1 and settings.protocol != "sync":
        raise UsageError(
            "the stages of one graph work together: with one replica the protocol is sync",
            hint=f"--workers {2 * stages} makes two replicas",
        )
    if settings.protocol == "backup":
        what = "backup workers stop in the middle of a gradient, which the stages of a graph cannot"
        raise UsageError(what, hint="--protocol sync, async or groups")
    if replicas > 1 and settings.cluster:
        what = f"on a cluster a placed graph is there once, with {stages} workers"
        raise UsageError(what, hint="--simulate has several replicas")
    return replicas


def _check_travels(settings: Settings) -> None:
    """Raise UsageError for what only a virtual clock has, or no other process can be told."""
    if settings.delays != DEFAULTS["delays"]:
        hint = "leave --delays out, or --simulate without --cluster"
        raise UsageError("on a cluster gradients take what they take", hint=hint)
    named = {name: getattr(settings, name) for name in ("loss", "method", "engine")}
    for name, given in named.items():
        if not isinstance(given, str) or (name == "loss" and function_of(given)):
            what = f"the {name} {given!r} is a function of Python, which cannot travel to workers"
            raise UsageError(what, hint="an expression, or --simulate")
