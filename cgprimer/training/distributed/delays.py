"""Compute times of simulated workers: distributions by name, with random numbers for each worker.

A string describes them, with parts separated by commas, or by ``+`` where a comma already has
another meaning: ``exponential,slow(5),network(1e-9)``. Times are seconds of a virtual clock;
workers are counted from 1. The samples use only the four operations and comparisons, so that a seed
gives the same times on every machine.
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

Uniform = Callable[[], float]  # samples from [0, 1)
_DEFAULT_SHAPE = 2.0  # of the Pareto distribution


def repeat_constant(uniform: Uniform, mean: float = 1.0) -> Iterator[float]:
    """Yield the constant compute time ``mean`` endlessly."""
    while True:
        yield mean


def sample_exponential(uniform: Uniform, mean: float = 1.0) -> Iterator[float]:
    """Yield samples of an exponential distribution with the given mean.

    Source: von Neumann 1951, "Various techniques used in connection with random digits": by
    comparisons only, without a logarithm, whose last digit depends on the machine.
    """
    while True:
        integer_part = 0
        while True:
            first = smallest = uniform()
            accepted = True
            while (sample := uniform()) < smallest:
                smallest, accepted = sample, not accepted
            if accepted:
                break
            integer_part += 1
        yield mean * (integer_part + first)


def sample_pareto(
    uniform: Uniform, shape: float = _DEFAULT_SHAPE, mean: float = 1.0
) -> Iterator[float]:
    """Yield samples of a Pareto distribution, which has a heavy tail.

    The variance is infinite for a shape of 2 or less.

    Source: e to the power of an exponentially distributed number has a Pareto distribution; the
    power is computed in decimal arithmetic, which is the same on every machine.
    """
    minimum = mean * (shape - 1) / shape
    for exponent in sample_exponential(uniform, 1 / shape):
        yield minimum * float(Decimal(exponent).exp())


DISTRIBUTIONS: dict[str, Callable[..., Iterator[float]]] = {
    "constant": repeat_constant,
    "exponential": sample_exponential,
    "pareto": sample_pareto,
}
_MODIFIERS = ("slow", "dies", "network")
_PART = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?|([^\s,+()]+))\s*(?:[,+]|$)")
_FORMS = (
    "use constant(TIME), exponential(MEAN), pareto(SHAPE, MEAN), slow(FACTOR, WORKER),"
    " dies(FAILURE TIME, RETURN TIME, WORKER) or network(SECONDS PER BYTE); WORKER is the last one"
    " unless given"
)


@dataclass(frozen=True)
class Delays:
    """The compute times of simulated workers, and the transfer time per byte.

    Attributes:
        distribution: a name in :data:`DISTRIBUTIONS`.
        parameters: the parameters of the distribution.
        seconds: the constant seconds of each worker, instead of a distribution.
        slow: pairs of a worker and the factor of its times.
        absences: for each failure the worker, the time of the failure and the time of its return.
        network: the seconds per byte through the connection of the server, each way.
    """

    distribution: str = "constant"
    parameters: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    slow: tuple[tuple[int, float], ...] = ()
    absences: tuple[tuple[int, float, float], ...] = ()
    network: float = 0.0

    def sample_seconds(self, worker: int, seed: int) -> Iterator[float]:
        """Yield the compute times of a worker in seconds, one per gradient."""
        # 32 bits for the worker: no two workers have the same stream.
        uniform = random.Random((seed << 32) + worker).random
        parameters = (self.seconds[worker],) if self.seconds else self.parameters
        factor = math.prod(factor for slow_worker, factor in self.slow if slow_worker == worker)
        return (
            factor * seconds for seconds in DISTRIBUTIONS[self.distribution](uniform, *parameters)
        )

    def list_absences(self, worker: int) -> list[tuple[float, float]]:
        """Return pairs of the times at which a worker fails and returns, in ascending order."""
        return sorted((begin, end) for failing, begin, end in self.absences if failing == worker)


def parse_delays(description: str, workers: int) -> Delays:
    """Parse the description of the delays of workers, such as ``exponential,slow(5)``.

    Raises:
        UsageError: an unknown distribution, a number out of range, or an unknown worker.

    >>> delays = parse_delays("exponential(2), slow(5)", 3)
    >>> delays.distribution, delays.parameters, delays.slow
    ('exponential', (2.0,), ((2, 5.0),))
    >>> parse_delays("1, 1, 5", 3).seconds
    (1.0, 1.0, 5.0)
    """
    distribution, parameters, seconds = "", tuple[float, ...](), list[float]()
    slow, absences, network = list[tuple[int, float]](), list[tuple[int, float, float]](), 0.0
    for name, arguments, plain_number in _split_parts(description):
        if plain_number:
            seconds.append(_parse_number("the time of a worker", plain_number))
            continue
        check_choice("delay", name, (*DISTRIBUTIONS, *_MODIFIERS))
        if name in DISTRIBUTIONS:
            if distribution:
                what = f"`delays` must have one distribution, got {distribution} and {name}"
                raise UsageError(what)
            distribution, parameters = name, _parse_distribution_parameters(name, arguments)
        elif name == "slow":
            (factor,), worker = _split_worker(name, arguments, 1, workers)
            slow.append((worker, _parse_number("the factor of slow", factor, positive=True)))
        elif name == "dies":
            absences.append(_parse_absence(arguments, workers))
        else:
            (text,) = _check_argument_count(name, arguments, 1, 1)
            network = _parse_number("the seconds per byte of network", text)
    _check_times(seconds, distribution, workers)
    return Delays(
        distribution or Delays.distribution,
        parameters,
        tuple(seconds),
        tuple(slow),
        tuple(absences),
        network,
    )


def _check_times(seconds: Sequence[float], distribution: str, workers: int) -> None:
    """Raise UsageError unless delays are given as a distribution or as one time per worker."""
    hint = "use a distribution, such as exponential, or one time per worker: 1,1,5"
    if seconds and distribution:
        message = "`delays` must be either a distribution or one time per worker, not both"
        raise UsageError(message, hint=hint)
    if seconds and len(seconds) != workers:
        what = (
            f"`delays` must have one time per worker, got {len(seconds)} times for"
            f" {workers} workers"
        )
        raise UsageError(what, hint=hint)


def _split_parts(description: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield each part of a delay description: a name with arguments, or a plain number."""
    if not isinstance(description, str):
        raise UsageError(f"`delays` must be a string, got {type(description).__name__}")
    position = 0
    while position < len(description) or not position:
        match = _PART.match(description, position)
        if match is None:
            what = f"cannot parse the delays {description[position:] or description!r}"
            raise UsageError(
                what, hint="write the delays as exponential, exponential(2),slow(5) or 1,1,5"
            )
        name, arguments, number = match.groups()
        values = [value.strip() for value in arguments.split(",")] if arguments else []
        yield name or "", values, number or ""
        position = match.end()


def _parse_number(quantity: str, text: str, *, positive: bool = False) -> float:
    """Parse a number that must not be negative; ``quantity`` names it in error messages."""
    try:
        value: float | str = float(text)
    except ValueError:
        value = text
    if isinstance(value, float) and math.isfinite(value) and value < 0:
        raise UsageError(f"{quantity} must not be negative, got {text}")
    return check_real_number(quantity, value, **({"above": 0} if positive else {}))


def _parse_distribution_parameters(name: str, arguments: Sequence[str]) -> tuple[float, ...]:
    """Parse the parameters of a distribution of compute times."""
    texts = _check_argument_count(name, arguments, 0, 2 if name == "pareto" else 1)
    numbers = tuple(_parse_number(f"a parameter of {name}", text, positive=True) for text in texts)
    if name == "pareto" and numbers and numbers[0] <= 1:
        what = f"the shape of pareto must be greater than 1, got {numbers[0]:g}"
        raise UsageError(what, hint="choose a shape above 1: otherwise the mean is infinite")
    return numbers


def _parse_absence(arguments: Sequence[str], workers: int) -> tuple[int, float, float]:
    """Parse the arguments of ``dies``: a worker, and the times of its failure and return."""
    times, worker = _split_worker("dies", arguments, 2, workers)
    begin, end = (_parse_number("a time of dies", text) for text in times)
    if end <= begin:
        raise UsageError(
            "dies: the worker must return after its failure, got a failure at"
            f" {begin:g} and a return at {end:g}"
        )
    return worker, begin, end


def _check_argument_count(
    name: str, arguments: Sequence[str], minimum: int, maximum: int
) -> Sequence[str]:
    """Return the arguments of one part of a delay description after checking their number.

    Raises:
        UsageError: their number is out of range.
    """
    if not minimum <= len(arguments) <= maximum:
        expected = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"
        noun = "argument" if expected == "1" else "arguments"
        raise UsageError(f"{name} requires {expected} {noun}, got {len(arguments)}", hint=_FORMS)
    return arguments


def _split_worker(
    name: str, arguments: Sequence[str], count: int, workers: int
) -> tuple[Sequence[str], int]:
    """Return the first ``count`` arguments and a worker index (default: the last worker)."""
    arguments = _check_argument_count(name, arguments, count, count + 1)
    number = arguments[count] if len(arguments) > count else str(workers)
    if not number.isdecimal() or not 1 <= int(number) <= workers:
        raise UsageError(f"{name}: the worker number must be from 1 to {workers}, got {number}")
    return arguments[:count], int(number) - 1
