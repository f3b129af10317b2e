"""micrograd: one Python object per operation and sample. A few samples are timed and scaled up.

It has no sin, exp or tanh, and no division of its own; the functions are added in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer

NODES = 20_000  # about so many operations are timed


def _unary(name: str, f: Callable[[float], float], slope: Callable[[float, float], float]) -> Any:
    """A function for micrograd's values, from the function and its derivative at (x, f(x))."""
    from micrograd.engine import Value

    def apply(x: Any) -> Any:
        out = Value(f(x.data), (x,), name)

        def backward() -> None:
            x.grad += slope(x.data, out.data) * out.grad

        out._backward = backward
        return out

    return staticmethod(apply)


def functions() -> Any:
    """What stands for ``m`` in a workload's function."""
    return type(
        "Functions",
        (),
        {
            "sin": _unary("sin", math.sin, lambda x, y: math.cos(x)),
            "exp": _unary("exp", math.exp, lambda x, y: y),
            "tanh": _unary("tanh", math.tanh, lambda x, y: 1 - y * y),
        },
    )


def _prepare(work: Workload, settings: Settings) -> Entry:
    from micrograd.engine import Value

    few = work.head(max(1, min(work.samples, NODES // work.operations)))
    rows = list(zip(*(c.tolist() for c in few.columns.values()), few.target.tolist(), strict=True))
    m, function = functions(), work.function

    def run() -> Result:
        loss, total = 0.0, np.zeros(len(work.start))
        for *inputs, target in rows:
            parameters = [Value(p) for p in work.start.tolist()]
            output = function(m, [Value(x) for x in inputs], parameters)
            error = (output - target) ** 2
            error.backward()
            loss += error.data
            total += [p.grad for p in parameters]
        return loss, total

    note = f"{few.samples} samples timed, scaled up"
    return Entry(run, lambda found: found, work.samples / few.samples, few.samples, note)


def _refuses(work: Workload, settings: Settings) -> str:
    if settings.dtype != "float64":
        return "skipped: Python's floats are float64"
    return ""


def peers(settings: Settings) -> list[Peer]:
    if settings.device == "cuda":
        return []
    return [Peer("micrograd", _prepare, ("micrograd",), _refuses)]
