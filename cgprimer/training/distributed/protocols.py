"""Protocols: who computes when, at which parameters, and which gradients make a step.

Workers have the samples and return gradients; one place, the server, has the parameters. A protocol
is a generator over a :class:`Team`: it sends parameters to workers, receives gradients and yields
those that together make one step. Whoever runs it makes the step (the optimizer is none of its
business), tells the team the new parameters, and asks for the next. The same functions run on a
virtual clock (:mod:`cgprimer.training.distributed.simulator`) and on real machines.

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
    """Samples whose gradient somebody shall compute: some of an epoch's order, perhaps none."""

    number: int  # since the beginning of the run
    epoch: int
    start: int  # places in the epoch's order of the samples
    stop: int

    @property
    def samples(self) -> int:
        """How many there are."""
        return self.stop - self.start


class Arrival(NamedTuple):
    """A gradient that a worker has sent."""

    worker: int
    task: Task
    version: int  # of the parameters that it was computed at: how many steps there had been
    loss: float  # the sum over the task's samples
    gradient: Array  # the same; shape (numbers,)
    time: float  # when it arrived, in seconds of the team's clock


class Team(Interface):
    """Workers, wherever they are, and the server's parameters as they know them."""

    @property
    def workers(self) -> Sequence[int]:
        """Their numbers, from 0 on."""

    @property
    def now(self) -> float:
        """Seconds of its clock."""

    def at(self, values: Array, version: int) -> None:
        """Tell the server's parameters, for whatever is sent from now on."""

    def send(self, worker: int) -> None:
        """Give a worker that has nothing to do the parameters, and the next task."""

    def receive(self) -> Arrival:
        """Wait for the next gradient. A worker that is lost on the way is the team's affair."""

    def drop(self) -> None:
        """Whoever is still computing stops: its gradient is not wanted any more."""

    def told(self) -> dict[str, Any]:
        """What the workers did, as plain data for a run's file."""


Steps = Iterator[list[Arrival]]  # the gradients of each step


def synchronous(team: Team) -> Steps:
    """All compute at the same parameters; the mean of all gradients makes a step."""
    while True:
        for worker in team.workers:
            team.send(worker)
        yield [team.receive() for _ in team.workers]


def asynchronous(team: Team, staleness: float = math.inf) -> Steps:
    """Each gradient makes a step as soon as it arrives, whatever the others are computing at.

    With a bound, a worker waits that is more gradients than that ahead of the slowest.
    """
    done, waiting = dict.fromkeys(team.workers, 0), set[int]()
    for worker in team.workers:
        team.send(worker)
    while True:
        arrived = team.receive()
        yield [arrived]
        done[arrived.worker] += 1
        if staleness == math.inf:
            team.send(arrived.worker)
            continue
        waiting.add(arrived.worker)
        least = min(done.values())
        for worker in sorted(w for w in waiting if done[w] - least <= staleness):
            waiting.remove(worker)
            team.send(worker)


def with_backup(team: Team, spare: int = 1) -> Steps:
    """As synchronous, but so many are not waited for: what the last ones have is dropped."""
    enough = len(team.workers) - spare
    while True:
        for worker in team.workers:
            team.send(worker)
        arrived: list[Arrival] = []
        while len(arrived) < enough or not any(one.task.samples for one in arrived):
            arrived.append(team.receive())
        yield arrived
        team.drop()


def in_groups(team: Team, count: int = 2) -> Steps:
    """Synchronous inside each group, asynchronous across: a group's mean makes a step."""
    size = len(team.workers) // count
    members = [team.workers[k * size : (k + 1) * size] for k in range(count)]
    arrived: list[list[Arrival]] = [[] for _ in members]
    for worker in team.workers:
        team.send(worker)
    while True:
        one = team.receive()
        group = team.workers.index(one.worker) // size
        arrived[group].append(one)
        if len(arrived[group]) == size:
            yield arrived[group]
            arrived[group] = []
            for worker in members[group]:
                team.send(worker)


@dataclass(frozen=True)
class TeamPlan:
    """A protocol for a given number of workers.

    Attributes:
        steps: the generator of the protocol, given a team.
        workers: the number of workers.
        gradients_per_update: the number of tasks whose samples belong to one update, including
            tasks whose gradients are dropped.
        resumes: whether no task is under way between two updates, so that a run can be interrupted
            and resumed with the same result.
    """

    steps: Callable[[Team], Steps]
    workers: int
    gradients_per_update: int
    resumes: bool


_PROTOCOL_OPTIONS = {"async": "staleness", "backup": "backup", "groups": "groups"}


def plan_protocol(
    protocol: str,
    workers: int,
    *,
    staleness: int | None = None,
    backup: int | None = None,
    groups: int | None = None,
) -> TeamPlan:
    """Plan a protocol for a given number of workers.

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
        return TeamPlan(lambda team: asynchronous(team, bound), workers, 1, False)
    if protocol == "backup":
        spare = 1 if backup is None else backup
        if not 0 <= spare < workers:
            what = f"backup must be less than the number of workers, got {spare}"
            hint = "choose fewer backup workers (--backup): an update waits for at least one"
            raise UsageError(f"{what} for {workers} workers", hint=hint)
        return TeamPlan(lambda team: with_backup(team, spare), workers, workers, True)
    if protocol == "groups":
        count = 2 if groups is None else groups
        if count < 1 or workers % count:
            what = f"workers must be a multiple of groups, got {workers} workers and {count} groups"
            raise UsageError(what, hint="choose other --groups or --workers")
        return TeamPlan(lambda team: in_groups(team, count), workers, workers // count, count == 1)
    return TeamPlan(synchronous, workers, workers, True)
