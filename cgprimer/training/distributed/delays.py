"""How long workers take: laws by name, each worker with random numbers of its own.

A text says it, parts joined by commas, or by ``+`` where a comma is already something else:
``exponential,slow(5),network(1e-9)``. Times are seconds of a virtual clock; workers are counted
from 1. The random numbers use nothing but the four operations and comparisons, so that a seed gives
the same times on every machine.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cgprimer.errors import UsageError
from cgprimer.support.validation import check_choice, check_real_number

Draw = Callable[[], float]  # a number between 0 and 1
_USUAL = 2.0  # the shape of Pareto's law


def constant(uniform: Draw, mean: float = 1.0) -> Iterator[float]:
    """Always the same."""
    while True:
        yield mean


def exponential(uniform: Draw, mean: float = 1.0) -> Iterator[float]:
    """Exponentially distributed: whoever has waited long has no reason to expect the end soon.

    Source: von Neumann 1951, "Various techniques used in connection with random digits": by
    comparisons alone, without a logarithm, whose last digit depends on the machine.
    """
    while True:
        whole = 0
        while True:
            first = least = uniform()
            falls = True
            while (drawn := uniform()) < least:
                least, falls = drawn, not falls
            if falls:
                break
            whole += 1
        yield mean * (whole + first)


def pareto(uniform: Draw, shape: float = _USUAL, mean: float = 1.0) -> Iterator[float]:
    """A heavy tail: some take very long; of a shape of 2 or less the variance is infinite.

    Source: Pareto's law is e to the power of an exponentially distributed number; taken in decimal
    arithmetic, which is the same everywhere.
    """
    least = mean * (shape - 1) / shape
    for drawn in exponential(uniform, 1 / shape):
        yield least * float(Decimal(drawn).exp())


LAWS: dict[str, Callable[..., Iterator[float]]] = {
    "constant": constant, "exponential": exponential, "pareto": pareto,
}  # fmt: skip
_MORE = ("slow", "dies", "network")
_PART = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?|([^\s,+()]+))\s*(?:[,+]|$)")


@dataclass(frozen=True)
class Delays:
    """How long workers take.

    Attributes:
        law: of :data:`LAWS`, and its numbers; or ``constant`` and `each`.
        numbers: of the law.
        each: seconds of each worker, where they are given one by one.
        slow: worker to factor.
        away: worker to when it dies and when it returns.
        network: seconds that a byte takes through the server's line, each way.
    """

    law: str = "constant"
    numbers: tuple[float, ...] = ()
    each: tuple[float, ...] = ()
    slow: tuple[tuple[int, float], ...] = ()
    away: tuple[tuple[int, float, float], ...] = ()
    network: float = 0.0

    def of_worker(self, worker: int, seed: int) -> Iterator[float]:
        """What the gradients of a worker take, one after the other."""
        # 32 bits for the worker: no two streams begin alike.
        uniform = random.Random((seed << 32) + worker).random
        numbers = (self.each[worker],) if self.each else self.numbers
        factor = math.prod(by for one, by in self.slow if one == worker)
        return (factor * seconds for seconds in LAWS[self.law](uniform, *numbers))

    def away_of(self, worker: int) -> list[tuple[float, float]]:
        """When a worker is away: ascending."""
        return sorted((begin, end) for one, begin, end in self.away if one == worker)


def delays_of(text: str, workers: int) -> Delays:
    """What a text says about so many workers.

    Raises:
        UsageError: an unknown law, a number out of its range, a worker that there is not.

    >>> delays_of("exponential(2), slow(5)", 3)
    Delays(law='exponential', numbers=(2.0,), each=(), slow=((2, 5.0),), away=(), network=0.0)
    >>> delays_of("1, 1, 5", 3).each
    (1.0, 1.0, 5.0)
    """
    found = Delays()
    law, numbers, each = "", tuple[float, ...](), list[float]()
    slow, away, network = list[tuple[int, float]](), list[tuple[int, float, float]](), 0.0
    for name, given, bare in _parts(text):
        if bare:
            each.append(_time("the time of a worker", bare))
            continue
        check_choice("delay", name, (*LAWS, *_MORE))
        if name in LAWS:
            if law:
                raise UsageError(f"delays have one law, not {law} and {name}")
            law, numbers = name, _of_law(name, given)
        elif name == "slow":
            factor, worker = _numbered(name, given, 1, workers)
            slow.append((worker, _time("the factor of slow", factor[0], above=True)))
        elif name == "dies":
            ends, worker = _numbered(name, given, 2, workers)
            begin, end = (_time("a time of dies", one) for one in ends)
            if end <= begin:
                raise UsageError(f"a worker that dies at {begin:g} cannot return at {end:g}")
            away.append((worker, begin, end))
        else:
            (seconds,) = _count(name, given, 1, 1)
            network = _time("the seconds of a byte", seconds)
    if each and (law or len(each) != workers):
        what = "times of each worker leave no room for a law" if law else (
            f"these are the times of {len(each)} workers, and there are {workers}"
        )  # fmt: skip
        raise UsageError(what, hint="a law, as exponential is, or a time for each: 1,1,5")
    return Delays(law or found.law, numbers, tuple(each), tuple(slow), tuple(away), network)


def _parts(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Name and what stands in its brackets, or a number without a name."""
    if not isinstance(text, str):
        raise UsageError(f"delays are said by a text, not by {type(text).__name__}")
    at = 0
    while at < len(text) or not at:
        read = _PART.match(text, at)
        if read is None:
            what = f"delays: {text[at:] or text!r} cannot be read"
            raise UsageError(what, hint="such as exponential, exponential(2),slow(5) or 1,1,5")
        name, given, bare = read.groups()
        yield name or "", [part.strip() for part in given.split(",")] if given else [], bare or ""
        at = read.end()


def _time(what: str, text: str, *, above: bool = False) -> float:
    try:
        value: float | str = float(text)
    except ValueError:
        value = text
    if isinstance(value, float) and math.isfinite(value) and value < 0:
        raise UsageError(f"{what} cannot be negative: {text}")
    return check_real_number(what, value, **({"above": 0} if above else {}))


def _of_law(name: str, given: Sequence[str]) -> tuple[float, ...]:
    numbers = _count(name, given, 0, 2 if name == "pareto" else 1)
    found = tuple(_time(f"a number of {name}", one, above=True) for one in numbers)
    if name == "pareto" and found and found[0] <= 1:
        raise UsageError(f"pareto has a mean for a shape above 1, not for {found[0]:g}")
    return found


def _count(name: str, given: Sequence[str], least: int, most: int) -> Sequence[str]:
    if not least <= len(given) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise UsageError(f"{name} takes {wanted} numbers, not {len(given)}", hint=_FORMS)
    return given


def _numbered(
    name: str, given: Sequence[str], count: int, workers: int
) -> tuple[Sequence[str], int]:
    """Numbers, and the worker behind them: the last one unless given."""
    given = _count(name, given, count, count + 1)
    number = given[count] if len(given) > count else str(workers)
    if not number.isdecimal() or not 1 <= int(number) <= workers:
        raise UsageError(f"{name}: there is no worker {number} of {workers}")
    return given[:count], int(number) - 1


_FORMS = "constant(TIME), exponential(MEAN), pareto(SHAPE, MEAN), slow(FACTOR, WORKER), dies(AT,"
_FORMS += " BACK, WORKER), network(SECONDS OF A BYTE); the last worker unless another is named"
