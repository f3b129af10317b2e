"""cgprimer's engines, through the public interface."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import cgprimer

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer


@contextmanager
def empty_cache() -> Iterator[None]:
    """Nothing from earlier runs or other engines: the others compile anew, too."""
    before = os.environ.get("CGPRIMER_CACHE")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["CGPRIMER_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["CGPRIMER_CACHE"]
            if before is not None:
                os.environ["CGPRIMER_CACHE"] = before


def _prepare(engine: str) -> Callable[[Workload, Settings], Entry]:
    def prepare(work: Workload, settings: Settings) -> Entry:
        start = work.start_by_name
        with empty_cache():
            call = cgprimer.loss_and_gradient(
                work.graph, work.dataset, engine=engine, dtype=settings.dtype
            )
            call(start)

        def read(found: tuple[float, dict[str, float]]) -> Result:
            return found[0], [found[1][name] for name in work.parameters]

        return Entry(lambda: call(start), read)

    return prepare


def engines(settings: Settings) -> list[str]:
    """Names of the engines that can be used here and are wanted."""
    available = [engine.name for engine in cgprimer.engines() if engine.available]
    if settings.device == "cuda":
        return [name for name in available if name == "cuda"]
    return [name for name in available if name != "cuda"]


def peers(settings: Settings) -> list[Peer]:
    return [Peer(f"cgprimer {name}", _prepare(name), ours=True) for name in engines(settings)]
