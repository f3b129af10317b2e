"""Engines: the protocol, the registry, and what an engine may declare.

An engine turns a tape into something that can be called with columns and scalars. It knows nothing
of derivatives: a differentiated tape is a tape like any other. Fast engines, the package's own
included, are found by entry points of installed packages or added by
:func:`cgprimer.register_engine`. This module knows none of their names: ``auto`` goes by what they
declare (:mod:`cgprimer.core.evaluation.engine_choice`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

from cgprimer.core.methods.derivative_program import Execute
from cgprimer.core.tape.scalarization import estimate_scalar_cost
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError, UsageError, did_you_mean, join_names
from cgprimer.support.plugins import Registry

Reduction = Literal["none", "sum"]

# Scalar code of networks with 4 to 64 units a layer was measured: up to 32 units it is faster than
# matrix products (five times at 4 units), beyond it matrix products are.
SCALARIZE_UP_TO = 5_000  #: operations of a sample up to which compiled scalar code is faster


class Engine(Protocol):
    """A way to run tapes.

    An engine may have three more attributes, each with a default. They are read by
    :func:`unsupported`, :func:`minimum_work` and :func:`scalarizes` in this module.

    - ``unsupported(tape, dtype)`` returns the reason why the engine cannot run a tape, or ``""``.
      Default: it takes samples one by one, in real numbers, and knows no Python functions.
    - ``minimum_work(tape)`` returns the operations of a run (instructions times samples times
      passes) from which ``auto`` prefers the engine to those with a lower minimum. Default: never.
    - ``scalarize_up_to`` is the number of operations of a sample up to which tapes with arrays are
      written out in scalars for the engine; 0 for never. Default: always.
    """

    name: str

    def unavailable(self) -> str:
        """Return the reason why the engine cannot be used on this machine; empty if it can."""

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
        """Prepare a tape to be run many times."""


ENGINES: Registry[Engine] = Registry(
    "engine", "cgprimer.engines", {"plain": "cgprimer.core.evaluation.plain_engine:PLAIN"}
)


def select(name: str) -> Engine:
    """Return the engine of a name.

    Raises:
        UsageError: no engine has this name.
        EngineError: the engine cannot be used on this machine.

    >>> select("plain").name
    'plain'
    """
    engine = find(name)
    reason = engine.unavailable()
    if reason:
        usable = ", ".join(other.name for other in loaded() if not other.unavailable())
        raise EngineError(
            f"the engine {name!r} cannot be used here: {reason}",
            hint=f"usable engines: {usable}; 'auto' chooses the fastest of them",
        )
    return engine


def find(name: str) -> Engine:
    """Return the engine of a name, whether or not it can be used on this machine.

    Raises:
        UsageError: no engine has this name.
    """
    if name not in ENGINES:
        raise UsageError(f"unknown engine {name!r}", hint=_engine_hint(name))
    return ENGINES[name]


def names() -> tuple[str, ...]:
    """Return the names of all engines, those that ``auto`` chooses for less work first.

    >>> names()[:4]
    ('plain', 'numpy', 'cpu', 'cuda')
    """
    plain, *others = ENGINES.names()  # the built-in engine is the first one of the registry
    scalars = Tape((), (), {})

    def work(name: str) -> float:
        try:
            return minimum_work(ENGINES[name], scalars)
        except UsageError:  # an engine of another package that cannot be imported
            return math.inf

    return (plain, *sorted(others, key=work))


def loaded() -> Iterator[Engine]:
    """Yield all engines that can be imported."""
    for name in names():
        try:
            yield ENGINES[name]
        except UsageError:  # an engine of another package: `engines()` reports the reason
            continue


def unsupported(engine: Engine, tape: Tape, dtype: str = "float64") -> str:
    """Return the reason why an engine cannot run a tape; empty if it can."""
    declared: Any = getattr(engine, "unsupported", None)
    if declared is not None:
        return str(declared(tape, dtype))
    if tape.combines_samples:
        return "'batch_mean' (part of batchnorm) needs all samples at once, not one by one"
    if tape.custom:
        return f"{tape.custom[0]!r} is a function of Python's"
    return "it has no complex numbers" if dtype.startswith("complex") else ""


def check_supported(engine: Engine, tape: Tape, dtype: str = "float64") -> None:
    """Raise an error that names the engines that can run a tape, if an engine cannot.

    Raises:
        UsageError: the engine cannot run the tape.
    """
    reason = unsupported(engine, tape, dtype)
    if reason:
        able = [other.name for other in loaded() if not unsupported(other, tape, dtype)]
        raise UsageError(
            f"the engine {engine.name!r} cannot run this: {reason}",
            hint=f"engines that can: {join_names(able)}",
        )


def minimum_work(engine: Engine, tape: Tape) -> float:
    """Return the operations of a run from which ``auto`` may choose an engine for a tape."""
    declared: Any = getattr(engine, "minimum_work", None)
    return math.inf if declared is None else float(declared(tape))


def scalarizes(engine: Engine, tape: Tape) -> bool:
    """Return whether a tape with arrays is written out in scalars for an engine."""
    limit = scalarization_limit(engine)
    return limit > 0 and scalar_cost(tape)[0] <= limit


def scalarization_limit(engine: Engine) -> float:
    """Return the operations of a sample up to which an engine wants scalars in place of arrays."""
    return float(getattr(engine, "scalarize_up_to", math.inf))


def scalar_cost(tape: Tape) -> tuple[int, int]:
    """Return the operations, and the leaves and outputs, of a tape in scalars; computed once."""
    if tape not in _SCALAR_COSTS:
        _SCALAR_COSTS[tape] = estimate_scalar_cost(tape)
    return _SCALAR_COSTS[tape]


_SCALAR_COSTS: WeakKeyDictionary[Tape, tuple[int, int]] = WeakKeyDictionary()


def _engine_hint(name: str) -> str:
    available = names()
    if available == ("plain",):
        return (
            "engines are found by the metadata of installed packages, and cgprimer's is missing:"
            " install it (python -m pip install .) instead of running it unpacked"
        )
    for engine in loaded():
        if name.lower() in getattr(engine, "aliases", ()):
            return f"use {engine.name!r}"
    return did_you_mean(name, available) or f"choose one of auto, {', '.join(available)}"
