"""Workers on a cluster of dask.distributed: processes here, or on machines anywhere.

Each worker is an actor of dask's: an object in a process of the cluster that has the samples, and
is asked for gradients, one at a time. Where the process of a worker dies, another one takes its
place: it is given what the first one was made of, and the same task at the same parameters.
Nothing is lost, for a worker keeps nothing between two tasks.

Dask runs in an event loop of its own, in a thread; everything with ``async`` belongs there.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from multiprocessing import resource_tracker
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from cgprimer import __version__
from cgprimer.errors import CgprimerError, TrainingError, UsageError, pluralize
from cgprimer.training.worker_options import LOCAL_CLUSTER

Make = Callable[[], Any]  # what a worker works with, made in its process
Lost = Callable[[int, float], None]  # a worker, and since when it had been at what is lost
_REACH = 10.0  # seconds in which a scheduler answers
_PATIENCE = 30.0  # seconds without any worker after which a run ends
_LOOK = 1.0  # seconds between two looks at who is there
_TRIES = 5  # times that a task's worker may die
_QUIET = ("distributed", "tornado", "asyncio")  # what they log of workers that die is said here


# --- in the worker's process ---------------------------------------------------------------------


class Failure(NamedTuple):
    """What went wrong in a worker, as plain text: not every error can travel."""

    message: str
    hint: str
    wrong_use: bool


_made: WeakValueDictionary[str, Any] = WeakValueDictionary()  # what several workers here share


class Shard:
    """A worker's part in its process."""

    _own: Any = None

    def prepare(self, key: str, make: Make | None) -> bool | Failure:
        """Get ready; whether that is so, as it is not where nobody here knows how to."""
        self._own = _made.get(key)
        if self._own is None and make is not None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they are said where the run was begun
                    self._own = _made[key] = make()
            except Exception as error:
                return _failure(error)
        return self._own is not None

    def ask(self, method: str, *given: Any) -> tuple[Any, float]:
        """What a method of it gives, or a failure, and the seconds that it took."""
        begun = time.perf_counter()
        try:
            found = getattr(self._own, method)(*given)
        except Exception as error:
            found = _failure(error)
        return found, time.perf_counter() - begun


def _failure(error: Exception) -> Failure:
    if isinstance(error, CgprimerError):
        return Failure(error.message, error.hint, error.exit_code == 2)
    return Failure(f"{type(error).__name__}: {error}", "", False)


def _version() -> str | None:
    try:
        from cgprimer import __version__ as found
    except ImportError:
        return None
    return found


_version.__module__ = "__main__"  # it travels by its code: a worker may not have this module


# --- here ----------------------------------------------------------------------------------------


class Cluster:
    """Workers in the processes of a cluster; those of a local one are started, and stopped.

    Args:
        where: :data:`LOCAL_CLUSTER`, or the address of a scheduler.
        workers: how many.
        make: makes in a worker's process what it works with; it is sent there once.

    Raises:
        UsageError: distributed is not installed, no scheduler answers, it has fewer workers, or
            another cgprimer than this one; or what `make` raises there.
    """

    def __init__(self, where: str, workers: int, make: Make) -> None:
        try:
            import distributed
        except ImportError:
            hint = "pip install 'cgprimer[cluster]'"
            raise UsageError("a cluster needs distributed, which is not here", hint=hint) from None
        self.where, self.make, self.key = where, make, uuid.uuid4().hex
        self._dask: Any = distributed
        self.size = workers
        self._client: Any = None
        self._cluster: Any = None
        self._shards: list[Any] = [None] * workers
        self._at: list[str | None] = [None] * workers
        self._looked = 0.0
        loggers = map(logging.getLogger, _QUIET)
        self._levels = [(one, one.level) for one in loggers]
        for one, _ in self._levels:
            one.setLevel(logging.CRITICAL + 1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        try:
            self.wait(self._open())
        except BaseException:
            self.close()
            raise

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Begin something in the event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something in the event loop; Ctrl-C ends it."""
        going = self.start(work)
        try:
            while True:
                with suppress(NotYet):
                    return going.result(0.2)
                if going.done():
                    return going.result()
        finally:
            going.cancel()

    def close(self) -> None:
        """Stop what was started here, and leave the others alone."""
        with suppress(Exception):
            self.start(self._shut()).result(_REACH)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_REACH)
        if not self._thread.is_alive():
            self._loop.close()
        for one, level in self._levels:
            one.setLevel(level)

    async def ask(self, worker: int, lost: Lost, method: str, *given: Any) -> tuple[Any, float]:
        """What a worker's method gives, and the seconds that it took there.

        Args:
            worker: which; if its process dies, it goes on in another one.
            lost: is told of that.
            method: of what was made.
            given: its arguments.

        Raises:
            UsageError, TrainingError: what went wrong there; there is no worker left.
        """
        for _ in range(_TRIES):
            begun = time.perf_counter()
            if self._shards[worker] is None or await self._may_move(worker):
                await self._place(worker)
            try:
                found, took = await self._shards[worker].ask(method, *given)
            except Exception:  # whatever dask says, it has died
                self._shards[worker] = None
                lost(worker, begun)
                continue
            return self._checked(worker, found), took
        what = (
            f"{pluralize(_TRIES, 'process', 'processes')} died one after the other at the same task"
        )
        raise TrainingError(what, hint="memory may be too little: see what dask logs there")

    def _run(self) -> None:
        """The event loop. Processes that it starts inherit that Ctrl-C is not for them."""
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # else it is started later, and undoes that
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._loop.run_forever()

    async def _open(self) -> None:
        where: Any = self.where
        if where == LOCAL_CLUSTER:
            where = self._cluster = await self._dask.LocalCluster(
                n_workers=self.size,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
                silence_logs=logging.CRITICAL + 1,
                env={"CGPRIMER_THREADS": "1"},
                asynchronous=True,
            )
        try:
            self._client = await self._dask.Client(
                where, asynchronous=True, set_as_default=False, timeout=_REACH
            )
        except OSError:
            what = f"no scheduler answers at {self.where}: it was asked for {_REACH:g} s"
            raise UsageError(what, hint="start one: dask scheduler") from None
        versions = await self._client.run(_version, on_error="ignore")
        if len(versions) < self.size:
            what = f"the cluster at {self.where} has {pluralize(len(versions), 'worker')}"
            hint = f"fewer (--workers {len(versions)})" if versions else "start some: dask worker"
            raise UsageError(f"{what}, not {self.size:,}", hint=hint)
        for address, version in versions.items():
            if version != __version__:
                has = f"cgprimer {version}" if version else "no cgprimer"
                what = f"the worker at {address} has {has}, and here is {__version__}"
                raise UsageError(what, hint="install the same version in both places")
        self._client.direct_to_workers = await self._reaches(versions)
        await asyncio.gather(*map(self._place, range(self.size)))

    async def _reaches(self, addresses: Iterable[str]) -> bool:
        """Whether the way to all workers need not lead through the scheduler."""
        try:
            for address in addresses:
                own = self._client.connection_args
                comm = await self._dask.core.connect(address, timeout=_LOOK, **own)
                comm.abort()
        except OSError:
            return False
        return True

    async def _shut(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for one in (self._client, self._cluster):
            if one is not None:
                with suppress(Exception):
                    await one.close()
        for task in others:
            task.cancel()

    async def _there(self) -> list[str]:
        """The addresses of all processes of the cluster."""
        self._looked = time.monotonic()
        known = await self._client.scheduler.identity(n_workers=-1)
        return list(known["workers"])

    async def _may_move(self, worker: int) -> bool:
        """Whether a worker that shares a process may have one of its own again."""
        at = self._at[worker]
        if self._at.count(at) < 2 or time.monotonic() < self._looked + _LOOK:
            return False
        with suppress(OSError):
            return not {*await self._there()} <= {*self._at}
        return False

    async def _place(self, worker: int) -> None:
        """Make a worker in a process, the one that has the fewest."""
        begun, tried, self._at[worker] = time.monotonic(), Counter[str](), None
        while time.monotonic() < begun + _PATIENCE:
            try:
                there = await self._there()
                used = tried + Counter(at for at in self._at if at)
                at = self._at[worker] = min(there, key=used.__getitem__)
                tried[at] += 1
                shard = await asyncio.wait_for(self._actor(at), _REACH)
                ready = await shard.prepare(self.key, None) or await shard.prepare(
                    self.key, self.make
                )
            except Exception:  # nobody is there, or not any more
                await asyncio.sleep(0.1)
                continue
            self._checked(worker, ready)
            self._shards[worker] = shard
            return
        what = f"there has been no worker at {self.where} for {_PATIENCE:g} s"
        raise TrainingError(what, hint="--resume goes on with what was saved")

    async def _actor(self, address: str) -> Any:
        with self._client.as_current():
            place = {"workers": [address], "allow_other_workers": False, "pure": False}
            return await self._client.submit(Shard, actor=True, **place)

    def _checked(self, worker: int, found: Any) -> Any:
        """What a worker has given, unless it failed."""
        if not isinstance(found, Failure):
            return found
        kind = UsageError if found.wrong_use else TrainingError
        what = f"worker {worker + 1} at {self._at[worker]}: {found.message}"
        raise kind(what, hint=found.hint)
