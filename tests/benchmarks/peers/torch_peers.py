"""PyTorch: eager and compiled, as scalar expressions over columns and as matrices."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer, only_networks, too_large, too_long


@cache
def _warm(device: str, threads: int) -> None:
    """Starting the library is not what is measured."""
    import torch

    if device == "cpu":
        torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    x = torch.ones(3, device=device, requires_grad=True)
    (x * x).sum().backward()


def _tools(settings: Settings) -> tuple[Any, Callable[[Any], Any], Callable[[], None]]:
    """torch, what puts an array on the device, and what waits for the device."""
    import torch

    _warm(settings.device, settings.threads)
    dtype = getattr(torch, settings.dtype)

    def put(value: Any) -> Any:
        return torch.tensor(np.asarray(value), dtype=dtype, device=settings.device)

    wait = torch.cuda.synchronize if settings.device == "cuda" else lambda: None
    return torch, put, wait


def _scalar(work: Workload, settings: Settings, *, compiled: bool = False) -> Entry:
    torch, put, wait = _tools(settings)
    columns = [put(column) for column in work.columns.values()]
    target = put(work.target)
    start = [put(value).requires_grad_() for value in work.start]
    function = work.function

    def loss(columns: Any, target: Any, parameters: Any) -> Any:
        error = function(torch, columns, parameters) - target
        return (error * error).sum()

    if compiled:
        torch._dynamo.reset()
        loss = torch.compile(loss)

    def run() -> Any:
        value = loss(columns, target, start)
        found = value.detach(), torch.autograd.grad(value, start)
        wait()
        return found

    def read(found: Any) -> Result:
        return float(found[0]), np.array([float(g) for g in found[1]])

    return Entry(run, read)


def _matrices(work: Workload, settings: Settings, *, compiled: bool = False) -> Entry:
    torch, put, wait = _tools(settings)
    points, target = put(work.points(settings.dtype)), put(work.target[:, None])
    start = [
        (put(w).requires_grad_(), put(b).requires_grad_()) for w, b in work.matrices(work.start)
    ]
    flat = [part for layer in start for part in layer]

    def loss(points: Any, target: Any, layers: Any) -> Any:
        hidden = points
        for w, b in layers[:-1]:
            hidden = torch.tanh(torch.nn.functional.linear(hidden, w, b))
        error = torch.nn.functional.linear(hidden, *layers[-1]) - target
        return (error * error).sum()

    if compiled:
        torch._dynamo.reset()
        loss = torch.compile(loss)

    def run() -> Any:
        value = loss(points, target, start)
        found = value.detach(), torch.autograd.grad(value, flat)
        wait()
        return found

    def read(found: Any) -> Result:
        parts = [part.cpu().numpy() for part in found[1]]
        return float(found[0]), work.vector(list(zip(parts[::2], parts[1::2], strict=True)))

    return Entry(run, read)


def _no_device(settings: Settings) -> str:
    import torch

    if settings.device == "cuda" and not torch.cuda.is_available():
        return "skipped: torch sees no GPU"
    return ""


def _cannot_compile(estimate: float, settings: Settings) -> str:
    compilers = ("c++", "g++", "clang++", "cl")
    if settings.device == "cpu" and not any(map(shutil.which, compilers)):
        return "skipped: torch.compile needs a C++ compiler"
    return "" if settings.torch_compile else too_long(estimate, settings)


def _eager_refuses(work: Workload, settings: Settings) -> str:
    return _no_device(settings) or too_large(work, settings)


def _compiled_refuses(work: Workload, settings: Settings) -> str:
    # Measured: 4 s for a handful of operations, 35 s for a thousand.
    return _cannot_compile(5 + 0.03 * work.operations, settings) or _no_device(settings)


def peers(settings: Settings) -> list[Peer]:
    return [
        Peer("torch eager, scalar form", _scalar, ("torch",), _eager_refuses),
        Peer(
            "torch eager, matrix form",
            _matrices,
            ("torch",),
            lambda work, s: only_networks(work, s) or _no_device(s),
        ),
        Peer(
            "torch.compile, scalar form",
            lambda work, s: _scalar(work, s, compiled=True),
            ("torch",),
            _compiled_refuses,
        ),
        Peer(
            "torch.compile, matrix form",
            lambda work, s: _matrices(work, s, compiled=True),
            ("torch",),
            lambda work, s: only_networks(work, s) or _cannot_compile(10, s) or _no_device(s),
        ),
    ]
