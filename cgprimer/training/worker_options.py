"""The options of training with several workers, and the spelling of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from cgprimer.errors import UsageError

PROTOCOLS = ("sync", "async", "backup", "groups")
LOCAL_CLUSTER = "local"  #: the cluster that is started on this machine for a run
_CLUSTER_ADDRESS = re.compile(r"(tcp|tls|ws|wss)://[^\s/]+:\d{1,5}")
_PLACEMENT = re.compile(r"layers:([1-9]\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options for training with multiple workers, with their defaults.

    Attributes:
        workers: the number of workers.
        simulate: whether the workers are simulated on a virtual clock.
        cluster: the address of a dask scheduler, or ``local``.
        protocol: how the gradients of the workers are combined: one of :data:`PROTOCOLS`.
        staleness: for ``async``, how many gradients a worker may be ahead of the slowest.
        backup: for ``backup``, the number of workers for which an update does not wait.
        groups: for ``groups``, the number of groups.
        delays: the distribution of the compute times of simulated workers.
        place: how the graph is divided between workers, such as ``layers:2``.
        micro_batches: the number of parts of a batch that pass through the stages of a divided
            graph one after the other.
    """

    workers: int | None = None
    simulate: bool = False
    cluster: str | None = None
    protocol: str = "sync"
    staleness: int | None = None
    backup: int | None = None
    groups: int | None = None
    delays: str = "exponential"
    place: str | None = None
    micro_batches: int = 1

    @classmethod
    def from_settings(cls, settings: Any) -> WorkerOptions | None:
        """Return the worker options in the settings of a run; None for a run without workers.

        Raises:
            UsageError: an option is set that has no effect without workers.
        """
        options = cls(**{field.name: getattr(settings, field.name) for field in fields(cls)})
        if options.micro_batches > 1 and options.place is None:
            raise UsageError(
                "`micro_batches` requires a graph that is divided into stages",
                hint="set place='layers:2' (--place layers:2)",
            )
        if options.workers is not None or options.place is not None:
            return options
        for field in fields(cls):
            if getattr(options, field.name) != field.default:
                hint = "set workers=8 (--workers 8) or place='layers:2' (--place layers:2)"
                raise UsageError(f"`{field.name}` requires multiple workers", hint=hint)
        return None

    @property
    def stages(self) -> int:
        """The number of stages into which the graph is divided, 1 if it is not divided."""
        return 1 if self.place is None else parse_stage_count(self.place)

    @property
    def protocol_options(self) -> dict[str, int | None]:
        """The options that belong to a single protocol: staleness, backup and groups."""
        return {"staleness": self.staleness, "backup": self.backup, "groups": self.groups}


def parse_stage_count(place: str) -> int:
    """Return the number of stages in a placement such as ``layers:2``.

    Raises:
        UsageError: the string is not a placement.

    >>> parse_stage_count("layers:2")
    2
    """
    match = _PLACEMENT.fullmatch(place) if isinstance(place, str) else None
    if match is None:
        hint = "write layers:2 to divide the graph into two parts"
        raise UsageError(f"`place` must have the form layers:N, got {place!r}", hint=hint)
    return int(match[1])


def check_cluster_address(address: Any) -> str:
    """Validate the address of a cluster: ``local``, or the address of a dask scheduler.

    Raises:
        UsageError: the value is neither.

    >>> check_cluster_address("tcp://10.0.0.7:8786")
    'tcp://10.0.0.7:8786'
    """
    if address == LOCAL_CLUSTER:
        return LOCAL_CLUSTER
    if isinstance(address, str) and _CLUSTER_ADDRESS.fullmatch(address):
        return address
    hint = "use 'local', or the address that the scheduler of dask prints: tcp://10.0.0.7:8786"
    raise UsageError(f"`cluster` must be 'local' or an address, got {address!r}", hint=hint)
