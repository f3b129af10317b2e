"""All cores: a call is cut into as many parts as there are, each for a thread of its own.

Compiled code runs without Python's lock, so Python's threads are enough. Waking a thread that
sleeps takes some 30 microseconds, though, as long as a fifth of a million samples of the lecture
graph. So a worker, once it is done, looks for the next call for a moment before it goes to sleep:
in a loop of gradients it is still awake. Which part does what depends on the number of samples
and of threads alone: the same result from run to run.
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

from cgprimer.errors import UsageError
from cgprimer.native.cpu.library import Library

THREADS = "CGPRIMER_THREADS"  # environment: how many threads; all cores of the process unless set
WORTH = 500_000  # operations below which handing over to another thread costs more than it gives
_PATIENCE = 200_000  # looks at the mailbox before a worker goes to sleep: some tenths of a ms
_ARGUMENTS = 6  # of the functions that are called; those with fewer ignore the last ones
# The mailbox: numbers of eight bytes, each of the first three in a cache line of its own.
_TICKET, _DONE, _ASLEEP, _FUNCTION, _SIZE = 0, 8, 16, 24, 40

Call = Callable[[], object]


def count() -> int:
    """How many threads may be used."""
    asked = os.environ.get(THREADS, "").strip()
    if asked:
        if not asked.isdigit() or int(asked) < 1:
            raise UsageError(f"{THREADS} is a number of threads, not {asked!r}")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parts(samples: int, unit: int, operations: int) -> list[tuple[int, int]]:
    """First and last sample of each thread's part.

    Args:
        samples: how many there are.
        unit: how many samples are taken at a time; only the last part may end between.
        operations: per sample.

    >>> parts(64, 16, 1)
    [(0, 64)]
    """
    units = max(1, samples // unit)
    worth = samples * operations // WORTH + 1
    wanted = min(count(), units, worth) if worth > 1 else 1
    edges = [units * part // wanted * unit for part in range(wanted)]
    return list(pairwise([*edges, samples]))


def run(function: int, calls: Sequence[Sequence[int]]) -> None:
    """Call the function at an address with each list of arguments, in a thread each; wait for all.

    The arguments are integers and addresses. Whoever calls keeps what stands there alive.
    """
    plain = _callable(function)
    taken: list[_Worker] = []
    try:
        for number, arguments in enumerate(calls[1:]):
            while len(_workers) <= number:
                _workers.append(_Worker())
            worker = _workers[number]
            if worker.lock.acquire(blocking=False):
                taken.append(worker)
                worker.post(function, arguments)
            else:  # another thread of the caller's is using it
                plain(*_filled(arguments))
        if calls:
            plain(*_filled(calls[0]))
    finally:  # never leave while another thread still writes to this call's arrays
        interrupt: BaseException | None = None
        while taken:
            try:
                while taken:
                    taken[-1].wait()
                    taken.pop().lock.release()
            except BaseException as error:  # put off until all are done
                interrupt = error
        if interrupt is not None:
            raise interrupt


@lru_cache(maxsize=64)
def _callable(function: int) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * _ARGUMENTS)(function)


def _filled(arguments: Sequence[int]) -> list[int]:
    return [*arguments, *[0] * (_ARGUMENTS - len(arguments))]


class _Worker:
    """A thread that waits for calls at a mailbox."""

    def __init__(self) -> None:
        self.lock = Lock()  # one caller at a time
        self.space = np.zeros(_SIZE + 8, np.int64)
        self.mailbox = self.space[-self.space.ctypes.data // 8 % 8 :]
        self.place = self.mailbox.ctypes.data
        self.functions = _mail()
        self.alarm: SimpleQueue[None] = SimpleQueue()
        Thread(target=self._work, name="cgprimer", daemon=True).start()

    def _work(self) -> None:
        last = 0
        while True:
            last = self.functions.serve(self.place, last, _PATIENCE)
            self.alarm.get()

    def post(self, function: int, arguments: Sequence[int]) -> None:
        """Hand a call over."""
        self.mailbox[_FUNCTION] = function
        self.mailbox[_FUNCTION + 1 : _FUNCTION + 1 + len(arguments)] = arguments
        if self.functions.post(self.place):
            self.alarm.put(None)

    def wait(self) -> None:
        """Until the call is done."""
        while not self.functions.wait(self.place, 10 * _PATIENCE):
            if self.mailbox[_ASLEEP]:  # Ctrl-C came between the ticket and the alarm
                self.alarm.put(None)
            time.sleep(0.0002)  # it takes long, or has no core: let others have this one


_workers: list[_Worker] = []

if hasattr(os, "register_at_fork"):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_workers.clear)


class _Mail:
    """The functions at both sides of a mailbox, compiled."""

    def __init__(self) -> None:
        self.library = Library("threads", "", _mail_text)
        self.serve, self.post, self.wait = (
            ctypes.CFUNCTYPE(*[ctypes.c_int64] * (count + 1))(self.library.address(name))
            for name, count in (("serve", 3), ("post", 1), ("wait", 2))
        )


_mail = cache(_Mail)


def _mail_text() -> str:
    """A module with ``serve``, ``post`` and ``wait``.

    All loads and stores that both sides see are sequentially consistent: a worker says that it
    sleeps and then looks at the ticket once more, a caller writes the ticket and then looks
    whether the worker sleeps; one of them sees the other.
    """
    places = {"ticket": _TICKET, "done": _DONE, "asleep": _ASLEEP, "function": _FUNCTION}
    found = "".join(
        f"  %{name}.at = getelementptr i64, ptr %mailbox, i64 {place}\n"
        for name, place in places.items()
    )
    words = "".join(
        f"  %at{k} = getelementptr i64, ptr %mailbox, i64 {_FUNCTION + 1 + k}\n"
        f"  %word{k} = load i64, ptr %at{k}\n"
        for k in range(_ARGUMENTS)
    )
    given = ", ".join(f"i64 %word{k}" for k in range(_ARGUMENTS))
    return _MAIL.replace("PLACES", found).replace("WORDS", words).replace("GIVEN", given)


_MAIL = """
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
