"""Engines: the protocol, the registry, and the optional declarations of an engine.

An engine compiles a tape to a function of columns and scalars. It does not know derivatives: a
differentiated tape is a tape like any other. Fast engines, including those of this package, are
found by entry points of installed packages or added by :func:`cgprimer.register_engine`. This
module does not know their names: ``auto`` reads their declarations
(:mod:`cgprimer.core.evaluation.engine_choice`).
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

# Measured on networks with 4 to 64 units per layer: scalar code is faster than matrix products up
# to 32 units (five times at 4 units).
SCALARIZE_UP_TO = 5_000  #: operations per sample up to which compiled scalar code is faster


class Engine(Protocol):
    """Interface of an engine, which compiles tapes.

    An engine may have three more attributes, each with a default. They are read by
    :func:`explain_unsupported`, :func:`get_minimum_work` and :func:`prefers_scalars`.

    - ``unsupported(tape, dtype)`` returns the reason why the engine cannot run a tape, or ``""``.
      Default: the engine processes samples one by one, in real numbers, without Python functions.
    - ``minimum_work(tape)`` returns the number of operations per run (instructions times samples
      times passes) from which ``auto`` prefers the engine to those with a lower minimum. Default:
      never.
    - ``scalarize_up_to`` is the number of operations per sample up to which tapes with arrays are
      expanded into scalar operations for the engine; 0 for never. Default: always.
    """

    name: str

    def unavailable(self) -> str:
        """Return the reason why the engine is not available on this machine; empty if it is."""

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
        """Compile a tape to a function that can be called many times."""


ENGINES: Registry[Engine] = Registry(
    "engine", "cgprimer.engines", {"plain": "cgprimer.core.evaluation.plain_engine:PLAIN"}
)


def select_engine(name: str) -> Engine:
    """Return the engine with the given name, if it is available on this machine.

    Raises:
        UsageError: no engine has this name.
        EngineError: the engine is not available on this machine.

    >>> select_engine("plain").name
    'plain'
    """
    engine = find_engine(name)
    reason = engine.unavailable()
    if reason:
        usable = ", ".join(other.name for other in iterate_engines() if not other.unavailable())
        raise EngineError(
            f"the engine {name!r} is not available: {reason}",
            hint=f"choose one of {usable}, or 'auto' for the fastest of them",
        )
    return engine


select = select_engine  #: the name of earlier versions


def find_engine(name: str) -> Engine:
    """Return the engine with the given name, even if it is not available on this machine.

    Raises:
        UsageError: no engine has this name.
    """
    if name not in ENGINES:
        raise UsageError(f"unknown engine {name!r}", hint=_engine_hint(name))
    return ENGINES[name]


def list_engine_names() -> tuple[str, ...]:
    """Return the names of all engines; engines for small workloads come first.

    >>> list_engine_names()[:4]
    ('plain', 'numpy', 'cpu', 'cuda')
    """
    plain, *others = ENGINES.names()  # the built-in engine is the first one of the registry
    scalars = Tape((), (), {})

    def read_minimum_work(name: str) -> float:
        """Return the minimum work of an engine; infinity if the engine cannot be imported."""
        try:
            return get_minimum_work(ENGINES[name], scalars)
        except UsageError:  # an engine of another package that cannot be imported
            return math.inf

    return (plain, *sorted(others, key=read_minimum_work))


def iterate_engines() -> Iterator[Engine]:
    """Yield all engines that can be imported."""
    for name in list_engine_names():
        try:
            yield ENGINES[name]
        except UsageError:  # an engine of another package: `engines()` reports the reason
            continue


def explain_unsupported(engine: Engine, tape: Tape, dtype: str = "float64") -> str:
    """Return the reason why an engine cannot run a tape; empty if it can."""
    declared: Any = getattr(engine, "unsupported", None)
    if declared is not None:
        return str(declared(tape, dtype))
    if tape.combines_samples:
        return "'batch_mean' (part of batchnorm) needs all samples at once, not one by one"
    if tape.custom:
        return f"{tape.custom[0]!r} is a Python function"
    return "it does not support complex numbers" if dtype.startswith("complex") else ""


def check_supported(engine: Engine, tape: Tape, dtype: str = "float64") -> None:
    """Check that an engine can run a tape.

    Raises:
        UsageError: the engine cannot run the tape; the hint lists engines that can.
    """
    reason = explain_unsupported(engine, tape, dtype)
    if reason:
        able = [
            other.name for other in iterate_engines() if not explain_unsupported(other, tape, dtype)
        ]
        raise UsageError(
            f"the engine {engine.name!r} cannot run this program: {reason}",
            hint=f"choose one of {join_names(able)}",
        )


def get_minimum_work(engine: Engine, tape: Tape) -> float:
    """Return the minimum number of operations at which ``auto`` selects the engine."""
    declared: Any = getattr(engine, "minimum_work", None)
    return math.inf if declared is None else float(declared(tape))


def prefers_scalars(engine: Engine, tape: Tape) -> bool:
    """Return whether an engine prefers scalar operations to the array operations of a tape."""
    limit = get_scalarization_limit(engine)
    return limit > 0 and count_scalar_operations(tape)[0] <= limit


def get_scalarization_limit(engine: Engine) -> float:
    """Return the maximum number of operations for which an engine prefers scalars to arrays."""
    return float(getattr(engine, "scalarize_up_to", math.inf))


def count_scalar_operations(tape: Tape) -> tuple[int, int]:
    """Count the operations, and the leaves and outputs, of a tape after scalarization (cached)."""
    if tape not in _SCALAR_COSTS:
        _SCALAR_COSTS[tape] = estimate_scalar_cost(tape)
    return _SCALAR_COSTS[tape]


_SCALAR_COSTS: WeakKeyDictionary[Tape, tuple[int, int]] = WeakKeyDictionary()


def _engine_hint(name: str) -> str:
    """Return a hint for an unknown engine name."""
    available = list_engine_names()
    if available == ("plain",):
        return (
            "engines are found by the metadata of installed packages, and cgprimer's is missing:"
            " install it (python -m pip install .) instead of running it unpacked"
        )
    for engine in iterate_engines():
        if name.lower() in getattr(engine, "aliases", ()):
            return f"use {engine.name!r}"
    return did_you_mean(name, available) or f"choose one of auto, {', '.join(available)}"
