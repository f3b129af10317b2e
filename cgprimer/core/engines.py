"""What every engine offers, and how one is chosen.

An engine turns a tape into something that can be called with columns and scalars. It knows
nothing of derivatives: what a differentiator made is a tape like any other. Fast engines, our own
too, are found by entry points of installed packages, or added by :func:`cgprimer.register_engine`.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from cgprimer.core.methods.contract import Execute
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError, UsageError, did_you_mean
from cgprimer.plugins import Registry

Array = Any
Reduction = Literal["none", "sum"]

# What ``auto`` goes by, in operations (of the tape, times samples): rules of thumb.
WORTH_COMPILING = 20_000  # below it numpy has finished before the compiled code is loaded
WORTH_A_GPU = 2_000_000_000  # below it the processor is done before the columns have arrived
_WORTH = {"plain": -1, "numpy": 0, "cpu": WORTH_COMPILING, "cuda": WORTH_A_GPU}


class Engine(Protocol):
    """A way to run tapes."""

    name: str

    def unavailable(self) -> str:
        """Why the engine cannot be used on this machine; empty if it can."""

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
        """Prepare a tape for being run many times."""


ENGINES: Registry[Engine] = Registry(
    "engine", "cgprimer.engines", {"plain": "cgprimer.core.run:PLAIN"}
)


def select(name: str, *, work: int | None = None) -> Engine:
    """The engine of a name.

    Args:
        name: ``auto`` is the fastest one that this machine has for the work.
        work: operations of all samples together, in one run; None if that is not known.

    Raises:
        UsageError: there is no such engine.
        EngineError: it cannot be used here.

    >>> select("auto", work=10).name
    'numpy'
    """
    if name == "auto":
        least = WORTH_COMPILING if work is None else work
        worthy = (n for n, worth in reversed(_WORTH.items()) if least >= worth and n in ENGINES)
        name = next(n for n in worthy if not ENGINES[n].unavailable())
    if name not in ENGINES:
        if name in _WORTH:
            hint = (
                "engines are found by the metadata of installed packages, and cgprimer's is not "
                "there: install it (python -m pip install .) in place of running it unpacked"
            )
        elif name.lower() == "gpu":
            hint = "GPUs are used by the engine 'cuda'"
        else:
            hint = did_you_mean(name, names()) or f"one of: auto, {', '.join(names())}"
        raise UsageError(f"there is no engine {name!r}", hint=hint)
    reason = ENGINES[name].unavailable()
    if reason:
        usable = ", ".join(n for n in names() if not ENGINES[n].unavailable())
        raise EngineError(
            f"the engine {name!r} cannot be used here: {reason}",
            hint=f"usable here: {usable}; 'auto' takes the fastest of them",
        )
    return ENGINES[name]


def names() -> tuple[str, ...]:
    """Those that ``auto`` knows come first, the slowest before the others."""
    names = ENGINES.names()
    return tuple(dict.fromkeys((*(name for name in _WORTH if name in names), *names)))
