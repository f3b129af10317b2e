"""Everyone that is compared: cgprimer's engines, and what could be used instead."""

from __future__ import annotations

from collections.abc import Callable

from ..measuring import Entry
from ..settings import Settings
from ..workloads import Workload
from . import (
    autograd_peer,
    by_hand,
    casadi_peer,
    cupy_peer,
    jax_peers,
    micrograd_peer,
    numba_peer,
    ours,
    torch_peers,
)
from .contract import Peer

# In the order of the tables.
MODULES = (
    ours, by_hand, numba_peer, jax_peers, torch_peers, cupy_peer, casadi_peer, autograd_peer,
    micrograd_peer,
)  # fmt: skip


def all_peers(settings: Settings) -> list[Peer]:
    """Those that make sense on the device, installed or not."""
    found = [peer for module in MODULES for peer in module.peers(settings)]
    if settings.peers:
        wanted = [part.lower() for part in settings.peers]
        found = [p for p in found if p.ours or any(part in p.name.lower() for part in wanted)]
    return found


def makers(
    work: Workload, settings: Settings
) -> tuple[dict[str, Callable[[], Entry]], list[tuple[str, str]]]:
    """For a workload: who takes part, and who does not and why."""
    ready: dict[str, Callable[[], Entry]] = {}
    absent: list[tuple[str, str]] = []
    for peer in all_peers(settings):
        reason = peer.missing() or peer.refuses(work, settings)
        if reason:
            absent.append((peer.name, reason))
        else:
            ready[peer.name] = lambda peer=peer: peer.prepare(work, settings)
    return ready, absent
