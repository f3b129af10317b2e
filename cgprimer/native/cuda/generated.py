"""The one place in the package where generated text becomes functions."""

from __future__ import annotations

from typing import Any


def functions(source: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """The functions that a generated text defines.

    The text is written by ``source.py`` and ``interpreter_source.py`` from a verified tape or from
    the table of primitives. In it values are called ``v0``, ``v1`` and so
    on, constants ``k0``, ``k1``: no name, number or text of a user's ever enters it. It is run
    once, to define kernels, which numba then compiles.

    Args:
        source: definitions of functions.
        namespace: what their global names stand for; the new functions are put into it too.

    >>> functions("def double(v0):\\n    return v0 + v0\\n", {})["double"](2.0)
    4.0
    """
    exec(compile(source, "<kernel of cgprimer>", "exec"), namespace)  # noqa: S102
    return namespace
