"""CasADi: an SX function of one sample, mapped over all of them and summed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer, too_long


def _prepare(work: Workload, settings: Settings) -> Entry:
    import casadi

    inputs = casadi.SX.sym("x", len(work.inputs))
    target = casadi.SX.sym("t")
    parameters = casadi.SX.sym("p", len(work.parameters))
    output = work.function(casadi, casadi.vertsplit(inputs), casadi.vertsplit(parameters))
    loss = (output - target) ** 2
    both = casadi.vertcat(loss, casadi.gradient(loss, parameters))
    one = casadi.Function("one", [inputs, target, parameters], [both])
    # Each thread sums over its share of the samples; the parameters are shared by all.
    chunks = settings.threads if work.samples % settings.threads == 0 else 1
    share = work.samples // chunks
    summed = one.map(share, [False, False, True], [True]) if share > 1 else one
    mapped = summed.map(chunks, "thread", chunks) if chunks > 1 else summed
    points = casadi.DM(work.points("float64").T)
    targets = casadi.DM(work.target[None, :])
    start = casadi.DM(work.start)

    def run() -> Any:
        return mapped(points, targets, start)

    def read(found: Any) -> Result:
        sums = np.asarray(found).sum(axis=1)
        return float(sums[0]), sums[1:]

    return Entry(run, read)


def _refuses(work: Workload, settings: Settings) -> str:
    if settings.dtype != "float64":
        return "skipped: CasADi computes in float64 only"
    return too_long(0.0005 * work.operations, settings)


def peers(settings: Settings) -> list[Peer]:
    if settings.device == "cuda":
        return []
    return [Peer("CasADi SX map", _prepare, ("casadi",), _refuses)]
