"""What one would write by hand in numpy: the chain rule, worked out on paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer, only_lecture, only_networks

Array = Any


def lecture_gradient(order: tuple[str, ...], parts: dict[str, float]) -> Array:
    return np.array([float(parts[name]) for name in order])


def _plain(work: Workload, settings: Settings) -> Entry:
    xa = work.columns["xa"].astype(settings.dtype)
    target = work.target.astype(settings.dtype)
    ab, bc, cd, ac = (work.start_by_name[name] for name in ("ab", "bc", "cd", "ac"))

    def run() -> Result:
        xx = xa**2
        xy = ab * xx + ac * xa
        xz = bc * xx + xy
        error = cd * xx + xz**3 - target
        bar_xw = 2 * error
        bar_xz = bar_xw * 3 * xz**2
        shared = np.sum(bar_xz * xx)
        parts = {"ab": shared, "bc": shared, "cd": np.sum(bar_xw * xx), "ac": np.sum(bar_xz * xa)}
        return float(np.sum(error * error)), lecture_gradient(work.parameters, parts)

    return Entry(run, lambda found: found)


def _tuned(work: Workload, settings: Settings) -> Entry:
    xa = work.columns["xa"].astype(settings.dtype)
    target = work.target.astype(settings.dtype)
    ab, bc, cd, ac = (work.start_by_name[name] for name in ("ab", "bc", "cd", "ac"))

    def run() -> Result:
        xx = xa * xa
        xz = (ab + bc) * xx + ac * xa
        square = xz * xz
        error = cd * xx + square * xz - target
        bar_xz = 6 * error * square
        shared = bar_xz @ xx
        parts = {"ab": shared, "bc": shared, "cd": 2 * (error @ xx), "ac": bar_xz @ xa}
        return float(error @ error), lecture_gradient(work.parameters, parts)

    return Entry(run, lambda found: found)


def _network(work: Workload, settings: Settings) -> Entry:
    points = work.points(settings.dtype)
    target = work.target.astype(settings.dtype)[:, None]
    layers = [(w.astype(settings.dtype), b.astype(settings.dtype))
              for w, b in work.matrices(work.start)]  # fmt: skip

    def run() -> tuple[float, list[tuple[Array, Array]]]:
        hidden = [points]
        for w, b in layers[:-1]:
            hidden.append(np.tanh(hidden[-1] @ w.T + b))
        w, b = layers[-1]
        error = hidden[-1] @ w.T + b - target
        bar = 2 * error
        gradients = [(bar.T @ hidden[-1], bar.sum(axis=0))]
        for place in range(len(layers) - 1, 0, -1):
            h = hidden[place]
            bar = (bar @ layers[place][0]) * (1 - h * h)
            gradients.append((bar.T @ hidden[place - 1], bar.sum(axis=0)))
        return float(np.sum(error * error)), gradients[::-1]

    return Entry(run, lambda found: (found[0], work.vector(found[1])))


def peers(settings: Settings) -> list[Peer]:
    if settings.device == "cuda":
        return []
    return [
        Peer("numpy by hand", _plain, refuses=only_lecture),
        Peer("numpy by hand, tuned", _tuned, refuses=only_lecture),
        Peer("numpy by hand, matrices", _network, refuses=only_networks),
    ]
