"""Constant factors leave sums: the sum of ``2*y`` is twice the sum of ``y``.

The adjoint of a squared error begins with a factor 2, that of a cube with a 3. They would be
multiplied into every sample; once, after the sum, is enough.
"""

from __future__ import annotations

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import varying
from cgprimer.core.tape.tape import Tape

_MOST = 64.0  # larger factors could move a sum across the end of the range of numbers


def constant_factors(tape: Tape) -> tuple[Tape, dict[str, float]]:
    """A tape without the constant factors of its outputs, and the factor of each output.

    An output of the given tape is the factor times the output of the new one. Only values that
    lead to nothing but products are touched; outputs that do not vary with the sample keep their
    value. A factor that products would make large or tiny goes back to where it was.

    >>> import cgprimer
    >>> from cgprimer.native.plans.optimization import optimize
    >>> tape = optimize(cgprimer.tape(cgprimer.parse("xw = 2*(3*xa)*sin(xa)")))
    >>> plain, factors = constant_factors(tape)
    >>> factors, len(tape), len(plain)
    ({'xw': 6.0}, 4, 2)
    """
    free = _leading_to_products(tape)
    builder = Builder()
    new: list[int] = []
    factor: list[float] = []
    for leaf in tape.leaves:
        constant = leaf.kind == "constant"
        new.append(builder.constant(leaf.value) if constant else builder.leaf(leaf.kind, leaf.name))
        factor.append(1.0)
    for position, (name, operands) in enumerate(tape.instructions):
        moved = [new[o] for o in operands]
        taken = 1.0
        if free[len(tape.leaves) + position]:
            for o in operands if name != "div" else operands[:1]:
                taken *= factor[o]
            if not 1 / _MOST <= abs(taken) <= _MOST:  # products of factors: back they go
                for o, at in zip(operands, range(len(moved)), strict=True):
                    if factor[o] != 1.0:
                        moved[at] = builder.emit("mul", builder.constant(factor[o]), moved[at])
                taken = 1.0
            if name == "neg":
                new.append(moved[0])
                factor.append(-taken)
                continue
            if name == "mul":
                first, second = (builder.value_of(v) for v in moved)
                number, other = (first, moved[1]) if first is not None else (second, moved[0])
                if number is not None and 1 / _MOST <= abs(number * taken) <= _MOST:
                    new.append(other)
                    factor.append(number * taken)
                    continue
        new.append(builder.emit(name, *moved))
        factor.append(taken)
    builder.names = {name: new[i] for name, i in tape.names.items() if factor[i] == 1.0}
    outputs = {name: new[i] for name, i in tape.outputs.items()}
    factors = {name: factor[i] for name, i in tape.outputs.items()}
    return builder.finish(outputs, prune=True), factors


def _leading_to_products(tape: Tape) -> list[bool]:
    """For each value whether it varies and is used for nothing but products that end in outputs."""
    free = varying(tape)
    first = len(tape.leaves)
    for index in range(first):
        free[index] = False
    outputs = set(tape.outputs.values())
    used = [False] * tape.size
    for position in range(len(tape) - 1, -1, -1):
        here = first + position
        name, operands = tape.instructions[position]
        if not used[here] and here not in outputs:
            free[here] = False
        carries = free[here] and name in ("mul", "neg", "div")
        for which, operand in enumerate(operands):
            used[operand] = True
            if not carries or (name == "div" and which == 1):
                free[operand] = False
    return free
