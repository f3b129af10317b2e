"""Workers on a cluster of dask.distributed: processes on this machine, or on other machines.

Each worker is an actor of dask: an object in a process of the cluster that has the samples and
computes one gradient at a time. If the process of a worker fails, another process replaces it, with
the same data, and repeats the task at the same parameters. Nothing is lost, because a worker has no
state between two tasks.

Dask runs in an event loop in a separate thread; all functions with ``async`` run there.
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
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from multiprocessing import resource_tracker
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from cgprimer import __version__
from cgprimer.errors import CgprimerError, TrainingError, UsageError, pluralize
from cgprimer.training.worker_options import LOCAL_CLUSTER

Create = Callable[[], Any]  # creates the object of a worker in its process
RecordLostProcess = Callable[[int, float], None]  # of a worker and the start of the lost task
_TIMEOUT = 10.0  # seconds to wait for a scheduler or a process
_PATIENCE = 30.0  # seconds without any process after which a run ends
_SEARCH_SECONDS = 1.0  # between two requests for the processes of the cluster
_RETRY_SECONDS = 0.1  # between two attempts to start a worker
_POLL_SECONDS = 0.2  # between two checks for Ctrl-C
_MAX_ATTEMPTS = 5  # to run a task on processes that fail
_LOGGERS = ("distributed", "tornado", "asyncio")  # are silenced: errors of workers are raised


# --- in the process of a worker ------------------------------------------------------------------


class Failure(NamedTuple):
    """An error in a worker process, stored as strings because some errors cannot be pickled."""

    message: str
    hint: str
    is_usage_error: bool


_shared_objects: WeakValueDictionary[str, Any] = WeakValueDictionary()  # of the workers here


class Shard:
    """A dask actor in a worker process, with the object that computes the worker's results."""

    _object: Any = None

    def prepare(self, key: str, create: Create | None) -> bool | Failure:
        """Find or create the worker's object; return whether the object exists now, or a failure.

        Workers in the same process share the object with the given key. Without a function that
        creates the object, the worker can only share an existing one.
        """
        self._object = _shared_objects.get(key)
        if self._object is None and create is not None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the process that started the run shows them
                    self._object = _shared_objects[key] = create()
            except Exception as error:
                return _describe_failure(error)
        return self._object is not None

    def call(self, method: str, *arguments: Any) -> tuple[Any, float]:
        """Call a method of the worker's object; return its result or failure, and the duration."""
        begin = time.perf_counter()
        try:
            result = getattr(self._object, method)(*arguments)
        except Exception as error:
            result = _describe_failure(error)
        return result, time.perf_counter() - begin


def _describe_failure(error: Exception) -> Failure:
    """Convert an error to a failure with its message and its hint."""
    if isinstance(error, CgprimerError):
        return Failure(error.message, error.hint, error.exit_code == 2)
    return Failure(f"{type(error).__name__}: {error}", "", False)


def _find_installed_version() -> str | None:
    """Return the version of cgprimer in a worker process; None if it is not installed."""
    try:
        from cgprimer import __version__ as version
    except ImportError:
        return None
    return version


# Dask pickles functions of __main__ by their code: a worker may not have this module.
_find_installed_version.__module__ = "__main__"


# --- in the process of the run -------------------------------------------------------------------


class Cluster:
    """Worker processes, started on this machine or provided by a dask scheduler.

    Args:
        address: :data:`LOCAL_CLUSTER`, or the address of a scheduler.
        workers: the number of workers.
        create: creates the object of a worker in its process; it is sent there once.

    Raises:
        UsageError: distributed is not installed, no scheduler answers, the cluster has too few
            processes or another version of cgprimer, or ``create`` fails there.
    """

    def __init__(self, address: str, workers: int, create: Create) -> None:
        try:
            import distributed
        except ImportError:
            hint = "run pip install 'cgprimer[cluster]'"
            raise UsageError("a cluster requires the package `distributed`", hint=hint) from None
        self.address, self.create, self.key = address, create, uuid.uuid4().hex
        self._dask: Any = distributed
        self.size = workers
        self._client: Any = None
        self._cluster: Any = None
        self._shards: list[Any] = [None] * workers
        self._process_addresses: list[str | None] = [None] * workers
        self._search_time = 0.0
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        self._log_levels = [(logger, logger.level) for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_event_loop, daemon=True)
        self._thread.start()
        try:
            self.wait(self._open())
        except BaseException:
            self.close()
            raise

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start a coroutine in the event loop of the cluster."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the event loop and return its result; Ctrl-C cancels it."""
        future = self.start(coroutine)
        try:
            while True:
                with suppress(FutureTimeoutError):
                    return future.result(_POLL_SECONDS)
                if future.done():
                    return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Stop the processes of a local cluster, or disconnect from a remote cluster."""
        with suppress(Exception):
            self.start(self._disconnect()).result(_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()
        for logger, level in self._log_levels:
            logger.setLevel(level)

    async def call(
        self, worker: int, record_lost_process: RecordLostProcess, method: str, *arguments: Any
    ) -> tuple[Any, float]:
        """Return the result of a method of a worker's object, and the seconds it took there.

        If the process of the worker fails, the call is repeated in another process.

        Args:
            worker: the index of the worker.
            record_lost_process: called whenever the process of the worker has failed.
            method: the name of the method.
            arguments: the arguments of the method.

        Raises:
            UsageError, TrainingError: an error in the worker, or no process is left.
        """
        for _ in range(_MAX_ATTEMPTS):
            begin = time.perf_counter()
            if self._shards[worker] is None or await self._can_move(worker):
                await self._start_worker(worker)
            try:
                result, seconds = await self._shards[worker].call(method, *arguments)
            except Exception:  # of any kind: the process has failed
                self._shards[worker] = None
                record_lost_process(worker, begin)
                continue
            return self._unwrap_result(worker, result), seconds
        raise TrainingError(
            f"{pluralize(_MAX_ATTEMPTS, 'process', 'processes')} failed in a row on the same task",
            hint="check the memory of the workers and their dask logs",
        )

    def _run_event_loop(self) -> None:
        """Run the event loop with Ctrl-C blocked, so that its child processes ignore it as well."""
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # if started later, it would unblock the signal
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._loop.run_forever()

    async def _open(self) -> None:
        """Connect to the scheduler and start all workers."""
        address: Any = self.address
        if address == LOCAL_CLUSTER:
            address = self._cluster = await self._dask.LocalCluster(
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
                address, asynchronous=True, set_as_default=False, timeout=_TIMEOUT
            )
        except OSError:
            what = f"no scheduler answered at {self.address} within {_TIMEOUT:g} s"
            raise UsageError(what, hint="start a scheduler with `dask scheduler`") from None
        versions = await self._client.run(_find_installed_version, on_error="ignore")
        self._check_processes(versions)
        self._client.direct_to_workers = await self._can_connect(versions)
        await asyncio.gather(*map(self._start_worker, range(self.size)))

    def _check_processes(self, versions: Mapping[str, str | None]) -> None:
        """Check that the cluster has enough processes, all with this version of cgprimer.

        Raises:
            UsageError: too few processes, or another version.
        """
        if len(versions) < self.size:
            count = pluralize(len(versions), "worker")
            what = f"the cluster at {self.address} has {count}, but {self.size:,} are required"
            hint = "start workers: dask worker"
            if versions:
                hint = f"choose --workers {len(versions)}, or {hint}"
            raise UsageError(what, hint=hint)
        for address, version in versions.items():
            if version != __version__:
                installed = f"cgprimer {version}" if version else "no cgprimer"
                what = f"the worker at {address} must have cgprimer {__version__}, got {installed}"
                raise UsageError(what, hint="install the same version on client and workers")

    async def _can_connect(self, addresses: Iterable[str]) -> bool:
        """Return whether all workers can be reached directly, without the scheduler."""
        try:
            for address in addresses:
                arguments = self._client.connection_args
                connection = await self._dask.core.connect(
                    address, timeout=_SEARCH_SECONDS, **arguments
                )
                connection.abort()
        except OSError:
            return False
        return True

    async def _disconnect(self) -> None:
        """Close the client and the local cluster, and cancel all other tasks of the event loop."""
        other_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for resource in (self._client, self._cluster):
            if resource is not None:
                with suppress(Exception):
                    await resource.close()
        for task in other_tasks:
            task.cancel()

    async def _list_processes(self) -> list[str]:
        """Return the addresses of all processes of the cluster."""
        self._search_time = time.monotonic()
        identity = await self._client.scheduler.identity(n_workers=-1)
        return list(identity["workers"])

    async def _can_move(self, worker: int) -> bool:
        """Return whether a worker that shares a process can move to an unused process."""
        address = self._process_addresses[worker]
        is_shared = self._process_addresses.count(address) > 1
        if not is_shared or time.monotonic() < self._search_time + _SEARCH_SECONDS:
            return False
        with suppress(OSError):
            return not {*await self._list_processes()} <= {*self._process_addresses}
        return False

    async def _start_worker(self, worker: int) -> None:
        """Start a worker in the process with the fewest workers.

        Raises:
            TrainingError: the cluster has had no process for a while.
        """
        begin, attempts = time.monotonic(), Counter[str]()
        self._process_addresses[worker] = None
        while time.monotonic() < begin + _PATIENCE:
            try:
                processes = await self._list_processes()
                used = attempts + Counter(filter(None, self._process_addresses))
                address = self._process_addresses[worker] = min(processes, key=used.__getitem__)
                attempts[address] += 1
                shard = await asyncio.wait_for(self._create_shard(address), _TIMEOUT)
                is_ready = await shard.prepare(self.key, None)
                is_ready = is_ready or await shard.prepare(self.key, self.create)
            except Exception:  # of any kind: no process, or a process that has just failed
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._unwrap_result(worker, is_ready)
            self._shards[worker] = shard
            return
        what = f"no worker was available at {self.address} for {_PATIENCE:g} s"
        raise TrainingError(what, hint="continue from the saved run with --resume")

    async def _create_shard(self, address: str) -> Any:
        """Create the actor of a worker in the process with the given address."""
        with self._client.as_current():
            options = {"workers": [address], "allow_other_workers": False, "pure": False}
            return await self._client.submit(Shard, actor=True, **options)

    def _unwrap_result(self, worker: int, result: Any) -> Any:
        """Return the result of a worker; raise an error if the result is a failure."""
        if not isinstance(result, Failure):
            return result
        error_class = UsageError if result.is_usage_error else TrainingError
        message = f"worker {worker + 1} at {self._process_addresses[worker]}: {result.message}"
        raise error_class(message, hint=result.hint)
