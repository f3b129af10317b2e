"""The same outputs for less work: passes from a tape to a tape that engines run before execution.

They may merge values that carry different names, so they come after differentiation, never before.
"""

from __future__ import annotations

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.verifier import checked
from cgprimer.garbage_collection import collector_paused

_LARGEST_POWER = 64  # beyond it a call of pow is no slower than the multiplications


def optimize(tape: Tape, *, powers: bool = True) -> Tape:
    """The same outputs for less work: dead code, sharing, constants, whole powers.

    Args:
        tape: what is optimized.
        powers: write whole powers as multiplications: ``x^3`` as ``x*x*x``, ``x^-2`` as
            ``1/(x*x)``.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> tape = lower(parse("xx = xa^2; xy = xa^2*1; xw = xx*xy"))
    >>> len(tape), len(optimize(tape))
    (4, 2)
    """
    with collector_paused():
        builder = Builder()
        new = [builder.leaf(*leaf) for leaf in tape.leaves]
        needed = reachable(tape, tape.outputs.values())[len(new) :]
        for (name, operands), wanted in zip(tape.instructions, needed, strict=True):
            if not wanted:
                new.append(-1)
            elif name == "copy":
                new.append(new[operands[0]])
            elif powers and name == "pow" and (power := _whole(builder.value_of(new[operands[1]]))):
                new.append(_multiplied_out(builder, new[operands[0]], power))
            else:
                new.append(builder.emit(name, *[new[o] for o in operands]))
        builder.names = {name: new[i] for name, i in tape.names.items() if new[i] >= 0}
        outputs = {name: new[i] for name, i in tape.outputs.items()}
        return checked(builder.finish(outputs, prune=True))


def _whole(exponent: float | None) -> int:
    """A power that is multiplied out; 0 for none."""
    whole = exponent is not None and abs(exponent) <= _LARGEST_POWER and exponent % 1 == 0
    return int(exponent or 0) if whole else 0


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
