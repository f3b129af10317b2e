"""How a program of one pass is finished: every derivative is an output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.core.methods.contract import DerivativeProgram, Pass, Read
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape


def one_pass(
    method: str,
    builder: Builder,
    tape: Tape,
    wrt: tuple[str, ...],
    values: Mapping[str, int],
    derivatives: Mapping[tuple[str, str], int],
    **more: Any,
) -> DerivativeProgram:
    """A program of one pass: ``values`` of each name and ``derivatives`` of each pair, made."""
    reads = tuple(Read(of, name, derivative_name(of, name)) for of, name in derivatives)
    outputs = {**values, **{derivative_name(*pair): index for pair, index in derivatives.items()}}
    for name, index in outputs.items():
        builder.names.setdefault(name, index)
    made, primal = builder.finish(outputs, prune=True), frozenset(tape.names)
    return DerivativeProgram(
        method, made, tuple(values), wrt, (Pass(reads),), primal_names=primal, **more
    )


def derivative_name(of: str, wrt: str) -> str:
    """What an output is called that holds a derivative; printed ``d_xw_ab``.

    >>> derivative_name("xw", "ab")
    'd.xw.ab'
    """
    return f"d.{of}.{wrt}"
