"""HIPS autograd: numpy, traced anew at every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer, too_large


def _prepare(work: Workload, settings: Settings) -> Entry:
    import autograd.numpy as anp
    from autograd import value_and_grad

    columns = [np.ascontiguousarray(c, dtype=settings.dtype) for c in work.columns.values()]
    target = work.target.astype(settings.dtype)
    start = work.start.astype(settings.dtype)
    function = work.function

    def loss(parameters: Any) -> Any:
        scalars = [parameters[i] for i in range(len(start))]
        error = function(anp, columns, scalars) - target
        return anp.sum(error * error)

    gradient = value_and_grad(loss)

    def read(found: Any) -> Result:
        return float(found[0]), np.asarray(found[1])

    return Entry(lambda: gradient(start), read)


def peers(settings: Settings) -> list[Peer]:
    if settings.device == "cuda":
        return []
    return [Peer("autograd", _prepare, ("autograd",), too_large)]
