"""Worker threads: each thread runs compiled code on one range of samples.

Compiled code runs without Python's global lock, so Python threads suffice. Waking a sleeping thread
takes about 30 microseconds, however: a fifth of the time for a million samples of the lecture
graph. Therefore a worker polls its mailbox for the next call before it sleeps; in a loop of
gradients it is still awake. The ranges depend only on the number of samples and of threads, so
results are reproducible.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock, Thread

import numpy as np

from cgprimer.backends.cpu.llvm_library import CompiledLibrary
from cgprimer.errors import UsageError

THREADS = "CGPRIMER_THREADS"  # environment: number of threads; by default, all cores of the process
MIN_OPERATIONS = (
    500_000  # operations per thread below which another thread costs more than it gains
)
_SPINS = 200_000  # polls of the mailbox before a worker sleeps: some tenths of a millisecond
_ARGUMENTS = 6  # of the compiled functions; functions with fewer arguments ignore the last ones
# Offsets in the mailbox, in words of eight bytes; the first three are in separate cache lines.
_TICKET, _FINISHED, _ASLEEP, _FUNCTION, _SIZE = 0, 8, 16, 24, 40


def get_thread_count() -> int:
    """Return the number of threads that CGPRIMER_THREADS requests, or the number of cores."""
    requested = os.environ.get(THREADS, "").strip()
    if requested:
        if not requested.isdigit() or int(requested) < 1:
            raise UsageError(f"{THREADS} must be a positive integer, got {requested!r}")
        return int(requested)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split_samples(samples: int, unit: int, operations: int) -> list[tuple[int, int]]:
    """Split samples into one range per thread.

    Args:
        samples: number of samples.
        unit: number of samples that the code processes at a time; the length of every range but the
            last is a multiple of it.
        operations: number of operations per sample.

    Returns:
        The first sample and the end of each range.

    >>> split_samples(64, 16, 1)
    [(0, 64)]
    """
    units = max(1, samples // unit)
    worthwhile = samples * operations // MIN_OPERATIONS + 1
    threads = min(get_thread_count(), units, worthwhile) if worthwhile > 1 else 1
    starts = [units * thread // threads * unit for thread in range(threads)]
    return list(pairwise([*starts, samples]))


def run_in_threads(function: int, calls: Sequence[Sequence[int]]) -> None:
    """Call a compiled function in parallel, once per list of arguments.

    Args:
        function: address of the function.
        calls: lists of integers and addresses; the caller keeps the data at the addresses alive.
    """
    compiled = _wrap_function(function)
    busy: list[_Worker] = []
    try:
        for number, arguments in enumerate(calls[1:]):
            while len(_workers) <= number:
                _workers.append(_Worker())
            worker = _workers[number]
            if worker.lock.acquire(blocking=False):
                busy.append(worker)
                worker.post(function, arguments)
            else:  # another thread of the program is using the worker
                compiled(*_pad_arguments(arguments))
        if calls:
            compiled(*_pad_arguments(calls[0]))
    finally:  # never leave while another thread still writes to this call's arrays
        interrupt: BaseException | None = None
        while busy:
            try:
                while busy:
                    busy[-1].wait()
                    busy.pop().lock.release()
            except BaseException as error:  # postponed until all workers are done
                interrupt = error
        if interrupt is not None:
            raise interrupt


@lru_cache(maxsize=64)
def _wrap_function(function: int) -> Callable[..., None]:
    """Return a Python function that calls the compiled function at an address."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * _ARGUMENTS)(function)


def _pad_arguments(arguments: Sequence[int]) -> list[int]:
    """Append zeros to a list of arguments, up to the fixed number of arguments."""
    return [*arguments, *[0] * (_ARGUMENTS - len(arguments))]


class _Worker:
    """A worker thread with a mailbox, in which callers post calls of compiled functions."""

    def __init__(self) -> None:
        self.lock = Lock()  # one caller at a time
        self.space = np.zeros(_SIZE + 8, np.int64)
        self.mailbox = self.space[-self.space.ctypes.data // 8 % 8 :]
        self.mailbox_address = self.mailbox.ctypes.data
        self.functions = _load_mailbox_functions()
        self.alarm: SimpleQueue[None] = SimpleQueue()
        Thread(target=self._serve_calls, name="cgprimer", daemon=True).start()

    def _serve_calls(self) -> None:
        """Run posted calls in a loop; sleep if no call is posted for a while."""
        last = 0
        while True:
            last = self.functions.serve(self.mailbox_address, last, _SPINS)
            self.alarm.get()

    def post(self, function: int, arguments: Sequence[int]) -> None:
        """Post a call of a compiled function to the worker."""
        self.mailbox[_FUNCTION] = function
        self.mailbox[_FUNCTION + 1 : _FUNCTION + 1 + len(arguments)] = arguments
        if self.functions.post(self.mailbox_address):
            self.alarm.put(None)

    def wait(self) -> None:
        """Wait until the worker has finished the posted call."""
        while not self.functions.wait(self.mailbox_address, 10 * _SPINS):
            if self.mailbox[_ASLEEP]:  # Ctrl-C came between the ticket and the alarm
                self.alarm.put(None)
            time.sleep(0.0002)  # a long call, or no free core: yield the core of this thread


_workers: list[_Worker] = []

if hasattr(os, "register_at_fork"):  # a child process has no worker threads
    os.register_at_fork(after_in_child=_workers.clear)


class _MailboxFunctions:
    """The compiled functions that access a mailbox: ``serve``, ``post`` and ``wait``."""

    def __init__(self) -> None:
        self.library = CompiledLibrary("threads", "", _generate_mailbox_ir)
        self.serve, self.post, self.wait = (
            ctypes.CFUNCTYPE(*[ctypes.c_int64] * (count + 1))(self.library.get_address(name))
            for name, count in (("serve", 3), ("post", 1), ("wait", 2))
        )


_load_mailbox_functions = cache(_MailboxFunctions)


def _generate_mailbox_ir() -> str:
    """Generate the LLVM IR of the mailbox functions ``serve``, ``post`` and ``wait``.

    All loads and stores that both sides see are sequentially consistent. A worker announces that it
    sleeps, then checks the ticket again; a caller writes the ticket, then checks whether the worker
    sleeps. At least one of them notices the other.
    """
    offsets = {"ticket": _TICKET, "done": _FINISHED, "asleep": _ASLEEP, "function": _FUNCTION}
    addresses = "".join(
        f"  %{name}.at = getelementptr i64, ptr %mailbox, i64 {offset}\n"
        for name, offset in offsets.items()
    )
    words = "".join(
        f"  %at{k} = getelementptr i64, ptr %mailbox, i64 {_FUNCTION + 1 + k}\n"
        f"  %word{k} = load i64, ptr %at{k}\n"
        for k in range(_ARGUMENTS)
    )
    arguments = ", ".join(f"i64 %word{k}" for k in range(_ARGUMENTS))
    return (
        _MAILBOX_IR.replace("PLACES", addresses).replace("WORDS", words).replace("GIVEN", arguments)
    )


_MAILBOX_IR = """
define i64 @serve(ptr %mailbox, i64 %last, i64 %patience) {
entry:
PLACES
  atomicrmw xchg ptr %asleep.at, i64 0 seq_cst
  br label %look
look:
  %known = phi i64 [%last, %entry], [%ticket, %work], [%known, %idle], [%known, %tired]
  %looks = phi i64 [0, %entry], [0, %work], [%more, %idle], [0, %tired]
  %ticket = load atomic i64, ptr %ticket.at seq_cst, align 8
  %new = icmp ne i64 %ticket, %known
  br i1 %new, label %work, label %idle
work:
  atomicrmw xchg ptr %asleep.at, i64 0 seq_cst
  %function = load ptr, ptr %function.at
WORDS
  call void %function(GIVEN)
  atomicrmw xchg ptr %done.at, i64 %ticket seq_cst
  br label %look
idle:
  %more = add i64 %looks, 1
  %patient = icmp slt i64 %more, %patience
  br i1 %patient, label %look, label %tired
tired:
  atomicrmw xchg ptr %asleep.at, i64 1 seq_cst
  %again = load atomic i64, ptr %ticket.at seq_cst, align 8
  %late = icmp ne i64 %again, %known
  br i1 %late, label %look, label %sleep
sleep:
  ret i64 %known
}

define i64 @post(ptr %mailbox) {
PLACES
  %before = load atomic i64, ptr %ticket.at seq_cst, align 8
  %ticket = add i64 %before, 1
  atomicrmw xchg ptr %ticket.at, i64 %ticket seq_cst
  %asleep = load atomic i64, ptr %asleep.at seq_cst, align 8
  ret i64 %asleep
}

define i64 @wait(ptr %mailbox, i64 %patience) {
entry:
PLACES
  %ticket = load atomic i64, ptr %ticket.at seq_cst, align 8
  br label %look
look:
  %looks = phi i64 [0, %entry], [%more, %idle]
  %done = load atomic i64, ptr %done.at seq_cst, align 8
  %ready = icmp eq i64 %done, %ticket
  br i1 %ready, label %yes, label %idle
idle:
  %more = add i64 %looks, 1
  %patient = icmp slt i64 %more, %patience
  br i1 %patient, label %look, label %no
yes:
  ret i64 1
no:
  ret i64 0
}
"""
