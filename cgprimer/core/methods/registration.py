"""Methods from outside."""

from __future__ import annotations

from cgprimer.core.methods import METHODS
from cgprimer.core.methods.contract import Differentiator


def register_method(name: str, differentiate: Differentiator) -> None:
    """Add a method of one's own; a package may have it as an entry point instead.

    Args:
        name: what ``method=...`` calls it.
        differentiate: a function ``(tape, of, wrt, **options)`` to a program.

    Raises:
        UsageError: there is a method of this name.

    >>> import cgprimer
    >>> from cgprimer.core.methods import reverse
    >>> register_method("backprop", reverse.differentiate)
    >>> cgprimer.gradient(cgprimer.parse("xw = k*xa"), {"k": 2, "xa": 3}, method="backprop")
    {'k': 3.0}
    >>> METHODS.unregister("backprop")
    """
    METHODS.register(name, differentiate)


unregister_method = METHODS.unregister
