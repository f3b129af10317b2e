"""The same outputs for less work: passes from a tape to a tape that engines run before execution.

They may merge values that carry different names, so they come after differentiation, never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from cgprimer.core.language.syntax import Structural
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.tape import Share, Tape, shape_of
from cgprimer.core.tape.verifier import checked
from cgprimer.garbage_collection import collector_paused

_LARGEST_POWER = 64  # beyond it a call of pow is no slower than the multiplications


def optimize(tape: Tape, *, powers: bool = True, shares: bool = False) -> Tape:
    """The same outputs for less work: dead code, sharing, constants, whole powers.

    Args:
        tape: what is optimized.
        powers: write whole powers as multiplications: ``x^3`` as ``x*x*x``, ``x^-2`` as
            ``1/(x*x)``.
        shares: keep the tape's shares and what they consist of, for whoever shows them.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> tape = lower(parse("xx = xa^2; xy = xa^2*1; xw = xx*xy"))
    >>> len(tape), len(optimize(tape))
    (4, 2)
    """
    with collector_paused():
        builder = Builder()
        new = [builder.leaf(*leaf) for leaf in tape.leaves]
        kept = tape.shares if shares else ()
        needed = reachable(tape, [*tape.outputs.values(), *chain.from_iterable(kept)])[len(new) :]
        for (name, operands), wanted in zip(tape.instructions, needed, strict=True):
            if not wanted:
                new.append(-1)
            elif name == "copy":
                new.append(new[operands[0]])
            elif powers and name == "pow" and _whole(builder.value_of(new[operands[1]])):
                exponent = int(builder.value_of(new[operands[1]]) or 0)
                new.append(_multiplied_out(builder, new[operands[0]], exponent))
            else:
                new.append(builder.emit(name, *[new[o] for o in operands]))
        builder.names = {name: new[i] for name, i in tape.names.items() if new[i] >= 0}
        outputs = {name: new[i] for name, i in tape.outputs.items()}
        made = checked(builder.finish(outputs, prune=not kept))
        place = [builder.moved[i] for i in new]  # of what none asks for, a value that none reads
        return replace(made, shares=tuple([Share(*[place[i] for i in s]) for s in kept]))


def _whole(exponent: float | None) -> bool:
    return exponent is not None and 0 < abs(exponent) <= _LARGEST_POWER and exponent % 1 == 0


def _multiplied_out(builder: Builder, base: int, exponent: int) -> int:
    """Binary powering: few multiplications, shared between the powers of one base."""
    result: int | None = None
    square, left = base, abs(exponent)
    while left:
        if left & 1:
            result = square if result is None else builder.emit("mul", result, square)
        left >>= 1
        if left:
            square = builder.emit("mul", square, square)
    assert result is not None
    return result if exponent > 0 else builder.emit("div", builder.constant(1.0), result)


def _seed(builder: Builder, value: Any) -> int | None:
    """A seed as a constant, or as an array that is 1 at one place; None where it is 0."""
    if isinstance(value, float):
        return builder.constant(value) if value else None
    places = [tuple(map(int, place)) for place in zip(*value.nonzero(), strict=True)]
    if not places:
        return None
    return builder.emit(Structural("scatter", places[0], value.shape), builder.constant(1.0))


def with_seeds(tape: Tape, seeds: Mapping[str, Any]) -> Tape:
    """With seeds as constants, and what is multiplied by a seed of 0 left out altogether.

    A tangent that is 0 because its seed is 0 is no number that could meet an infinity: there is
    nothing to multiply. (At run time ``0*inf`` would be nan.)
    """
    builder = Builder()
    new: list[int | None] = []  # None: zero by construction

    def zero(index: int) -> int:
        return builder.broadcast(builder.constant(0.0), shape_of(tape, index))

    for leaf in tape.leaves:
        if leaf.name in seeds:
            new.append(_seed(builder, seeds[leaf.name]))
        else:
            new.append(builder.leaf(*leaf))
    for name, operands in tape.instructions:
        moved = [new[o] for o in operands]
        known = [m for m in moved if m is not None]
        if len(known) == len(moved):
            new.append(builder.emit(name, *known))
        elif name == "add" or (name == "sub" and moved[1] is None):
            new.append(known[0] if known else None)
        elif name == "sub":
            new.append(builder.emit("neg", *known))
        elif (
            name in ("mul", "neg", "copy")
            or (name == "div" and moved[0] is None)
            or (isinstance(name, Structural) and (not known or name.kind == "matmul"))
        ):
            new.append(None)
        else:  # not linear in the seed: a plain zero
            filled = [zero(o) if m is None else m for o, m in zip(operands, moved, strict=True)]
            new.append(builder.emit(name, *filled))
    outputs = {}
    for name, index in tape.outputs.items():
        found = new[index]
        outputs[name] = zero(index) if found is None else found
    return checked(builder.finish(outputs, prune=True))
