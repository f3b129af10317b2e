"""What every engine offers, and how one is chosen.

An engine turns a tape into something that can be called with columns and scalars. It knows
nothing of derivatives: whatever a differentiator made is a tape like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

from cgprimer.errors import EngineError, UsageError, did_you_mean
from cgprimer.tapes.tape import Tape

Array = Any
Reduction = Literal["none", "sum"]
DTYPES = ("float64", "float32")

_ENGINES = {"numpy": "numpy_engine"}


class Executable(Protocol):
    """A compiled tape."""

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Compute the outputs.

        Args:
            columns: for each column of the tape a contiguous array of shape (samples,).
            scalars: for each scalar of the tape a number.
            samples: how many samples there are; needed where the tape has no column.

        Returns:
            For each output an array of shape (samples,), or its sum over the samples.
        """


class Engine(Protocol):
    """A way to run tapes."""

    name: str

    def unavailable(self) -> str:
        """Why the engine cannot be used on this machine; empty if it can."""

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Executable:
        """Prepare a tape for being run many times."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine, and whether it can be used here."""

    name: str
    available: bool
    reason: str


def engines() -> tuple[EngineInfo, ...]:
    """All engines, whether each can be used on this machine, and if not, why.

    >>> [engine.name for engine in engines() if engine.available]
    ['numpy']
    """
    found = []
    for name in _ENGINES:
        reason = _load(name).unavailable()
        found.append(EngineInfo(name, not reason, reason))
    return tuple(found)


def select(name: str) -> Engine:
    """The engine of a name; ``auto`` is the fastest one that this machine has.

    Raises:
        UsageError: there is no such engine.
        EngineError: it cannot be used here.
    """
    if name == "auto":
        return _load("numpy")
    if name not in _ENGINES:
        raise UsageError(
            f"there is no engine {name!r}",
            hint=did_you_mean(name, _ENGINES) or f"one of: auto, {', '.join(_ENGINES)}",
        )
    engine = _load(name)
    reason = engine.unavailable()
    if reason:
        raise EngineError(f"the engine {name!r} cannot be used here: {reason}")
    return engine


def _load(name: str) -> Engine:
    engine: Engine = import_module(f"cgprimer.execution.{_ENGINES[name]}").ENGINE
    return engine
