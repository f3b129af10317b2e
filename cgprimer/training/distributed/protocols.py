"""Protocols: which worker computes when, at which parameters, and which gradients make an update.

Workers have the samples and return gradients; the server has the parameters. A protocol is a
generator over a :class:`Team`: it sends parameters to workers, receives gradients and yields the
gradients of one update. The caller of the generator applies the update, sets the new parameters of
the team and asks for the next gradients. The same functions run on a virtual clock
(:mod:`cgprimer.training.distributed.simulator`) and on real machines.

Sources: Dean et al. 2012, "Large scale distributed deep networks" (asynchronous: Downpour SGD);
Ho et al. 2013, "More effective distributed ML via a stale synchronous parallel parameter server"
(bounded staleness); Chen et al. 2016, "Revisiting distributed synchronous SGD" (backup workers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from typing import Protocol as Interface

from cgprimer.errors import UsageError

Array = Any


class Task(NamedTuple):
    """A task of a worker: the gradient over a range of samples in the order of an epoch.

    Attributes:
        number: the index of the task since the start of the run.
        epoch: the index of the epoch.
        start: the first position in the order of the epoch.
        stop: the position after the last one.
    """

    number: int
    epoch: int
    start: int
    stop: int

    @property
    def samples(self) -> int:
        """The number of samples of the task."""
        return self.stop - self.start


class Arrival(NamedTuple):
    """A gradient that a worker has sent to the server.

    Attributes:
        worker: the index of the worker.
        task: the task of the worker.
        version: the number of updates before the parameters at which the gradient was computed.
        loss: the sum of the losses over the samples of the task.
        gradient: the sum of the gradients over the samples of the task; shape (parameters,).
        time: the time of arrival, in seconds of the team's clock.
    """

    worker: int
    task: Task
    version: int
    loss: float
    gradient: Array
    time: float


class Team(Interface):
    """Interface of a team of workers, on a virtual clock or on real machines."""

    @property
    def workers(self) -> Sequence[int]:
        """The indices of the workers, from 0."""

    @property
    def now(self) -> float:
        """The current time, in seconds of the team's clock."""

    def set_parameters(self, values: Array, version: int) -> None:
        """Set the parameters that are sent to workers from now on."""

    def start_task(self, worker: int) -> None:
        """Send the parameters and the next task to an idle worker."""

    def receive_gradient(self) -> Arrival:
        """Wait for the next gradient, and replace workers that are lost in the meantime."""

    def drop_tasks(self) -> None:
        """Stop all workers that are still computing, because their gradients are not needed."""

    def record(self) -> dict[str, Any]:
        """Return the trace of the workers' activities as a dict for a saved run."""


UpdateGradients = Iterator[list[Arrival]]  # the gradients of each update


def gather_synchronously(team: Team) -> UpdateGradients:
    """Yield the gradients of all workers, computed at the same parameters, for each update."""
    while True:
        for worker in team.workers:
            team.start_task(worker)
        yield [team.receive_gradient() for _ in team.workers]


def gather_asynchronously(team: Team, staleness: float = math.inf) -> UpdateGradients:
    """Yield each gradient as soon as it arrives, without waiting for other workers.

    With a bound on the staleness, a worker waits that is more gradients than the bound ahead of
    the slowest worker.
    """
    finished, waiting = dict.fromkeys(team.workers, 0), set[int]()
    for worker in team.workers:
        team.start_task(worker)
    while True:
        arrival = team.receive_gradient()
        yield [arrival]
        finished[arrival.worker] += 1
        if staleness == math.inf:
            team.start_task(arrival.worker)
            continue
        waiting.add(arrival.worker)
        slowest = min(finished.values())
        for worker in sorted(w for w in waiting if finished[w] - slowest <= staleness):
            waiting.remove(worker)
            team.start_task(worker)


def gather_with_backup(team: Team, n_backup: int = 1) -> UpdateGradients:
    """Yield the gradients of the fastest workers for each update; drop the remaining gradients."""
    enough = len(team.workers) - n_backup
    while True:
        for worker in team.workers:
            team.start_task(worker)
        arrivals: list[Arrival] = []
        while len(arrivals) < enough or not any(arrival.task.samples for arrival in arrivals):
            arrivals.append(team.receive_gradient())
        yield arrivals
        team.drop_tasks()


def gather_in_groups(team: Team, n_groups: int = 2) -> UpdateGradients:
    """Yield the gradients of a group of workers as soon as the whole group has computed them."""
    size = len(team.workers) // n_groups
    members = [team.workers[k * size : (k + 1) * size] for k in range(n_groups)]
    arrivals: list[list[Arrival]] = [[] for _ in members]
    for worker in team.workers:
        team.start_task(worker)
    while True:
        arrival = team.receive_gradient()
        group = team.workers.index(arrival.worker) // size
        arrivals[group].append(arrival)
        if len(arrivals[group]) == size:
            yield arrivals[group]
            arrivals[group] = []
            for worker in members[group]:
                team.start_task(worker)


@dataclass(frozen=True)
class TeamPlan:
    """The plan of a team: its protocol and its number of workers.

    Attributes:
        gather_gradients: the generator of the protocol, given a team.
        workers: the number of workers.
        gradients_per_update: the number of tasks whose samples belong to one update, including
            tasks whose gradients are dropped.
        is_resumable: whether no task is under way between two updates, so that a run can be
            interrupted and resumed with the same result.
    """

    gather_gradients: Callable[[Team], UpdateGradients]
    workers: int
    gradients_per_update: int
    is_resumable: bool


_PROTOCOL_OPTIONS = {"async": "staleness", "backup": "backup", "groups": "groups"}


def plan_protocol(
    protocol: str,
    workers: int,
    *,
    staleness: int | None = None,
    backup: int | None = None,
    groups: int | None = None,
) -> TeamPlan:
    """Create the training plan for a team of workers from a protocol's name and options.

    Args:
        protocol: one of :data:`cgprimer.training.worker_options.PROTOCOLS`.
        workers: the number of workers.
        staleness: for ``async``, how many gradients a worker may be ahead of the slowest.
        backup: for ``backup``, the number of workers for which an update does not wait.
        groups: for ``groups``, the number of groups.

    Raises:
        UsageError: an option of another protocol, or an option that does not match the number of
            workers.

    >>> plans = plan_protocol("sync", 8), plan_protocol("async", 8)
    >>> [plan.gradients_per_update for plan in (*plans, plan_protocol("groups", 8, groups=4))]
    [8, 1, 2]
    """
    options = {"staleness": staleness, "backup": backup, "groups": groups}
    for owner, option in _PROTOCOL_OPTIONS.items():
        if options[option] is not None and owner != protocol:
            hint = f"choose --protocol {owner}, or leave out --{option}"
            what = f"{option} is an option of the protocol {owner!r}, got the protocol {protocol!r}"
            raise UsageError(what, hint=hint)
    if protocol == "async":
        bound = math.inf if staleness is None else staleness
        return TeamPlan(lambda team: gather_asynchronously(team, bound), workers, 1, False)
    if protocol == "backup":
        n_backup = 1 if backup is None else backup
        if not 0 <= n_backup < workers:
            raise UsageError(
                f"backup must be less than the number of workers, got {n_backup} for"
                f" {workers} workers",
                hint="choose fewer backup workers (--backup): an update waits for at least one",
            )
        return TeamPlan(lambda team: gather_with_backup(team, n_backup), workers, workers, True)
    if protocol == "groups":
        n_groups = 2 if groups is None else groups
        if n_groups < 1 or workers % n_groups:
            raise UsageError(
                f"workers must be a multiple of groups, got {workers} workers and"
                f" {n_groups} groups",
                hint="choose --groups so that it divides --workers",
            )
        return TeamPlan(
            lambda team: gather_in_groups(team, n_groups),
            workers,
            workers // n_groups,
            n_groups == 1,
        )
    return TeamPlan(gather_synchronously, workers, workers, True)
