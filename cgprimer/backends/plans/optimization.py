"""Optimization passes that run on a tape before its execution plan is built.

The passes may merge values with different names, so they run after differentiation, never before.
"""

from __future__ import annotations

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values, reachable
from cgprimer.core.tape.verifier import verify
from cgprimer.support.garbage_collection import pause_garbage_collection

_MAX_POWER = 64  # for larger exponents, pow is as fast as the multiplications
_MAX_FACTOR = 64.0  # larger factors could make a sum overflow or underflow


def optimize(tape: Tape, *, powers: bool = True) -> Tape:
    """Return an equivalent tape with fewer instructions.

    Eliminate dead code and common subexpressions, fold constants and expand integer powers.

    Args:
        tape: the tape to optimize.
        powers: expand integer powers into multiplications: ``x^3`` into ``x*x*x``, ``x^-2`` into
            ``1/(x*x)``.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> tape = lower(parse("xx = xa^2; xy = xa^2*1; xw = xx*xy"))
    >>> len(tape), len(optimize(tape))
    (4, 2)
    """
    with pause_garbage_collection():
        builder = Builder()
        new = [builder.leaf(*leaf) for leaf in tape.leaves]
        reached = reachable(tape, tape.outputs.values())[len(new) :]
        for (name, operands), needed in zip(tape.instructions, reached, strict=True):
            if not needed:
                new.append(-1)
            elif name == "copy":
                new.append(new[operands[0]])
            elif (
                powers
                and name == "pow"
                and (power := _get_integer_exponent(builder.value_of(new[operands[1]])))
            ):
                new.append(_expand_power(builder, new[operands[0]], power))
            else:
                new.append(builder.emit(name, *[new[o] for o in operands]))
        builder.names = {name: new[i] for name, i in tape.names.items() if new[i] >= 0}
        outputs = {name: new[i] for name, i in tape.outputs.items()}
        return verify(builder.finish(outputs, prune=True))


def _get_integer_exponent(exponent: float | None) -> int:
    """Return an exponent as an integer if the power should be expanded, otherwise 0."""
    expandable = exponent is not None and abs(exponent) <= _MAX_POWER and exponent % 1 == 0
    return int(exponent or 0) if expandable else 0


def _expand_power(builder: Builder, base: int, exponent: int) -> int:
    """Emit an integer power as multiplications, by repeated squaring."""
    result: int | None = None
    square, remaining = base, abs(exponent)
    while remaining:
        if remaining & 1:
            result = square if result is None else builder.emit("mul", result, square)
        remaining >>= 1
        if remaining:
            square = builder.emit("mul", square, square)
    assert result is not None
    return result if exponent > 0 else builder.emit("div", builder.constant(1.0), result)


def extract_constant_factors(tape: Tape) -> tuple[Tape, dict[str, float]]:
    """Move constant factors out of the outputs, so that a sum is scaled only once.

    The adjoint of a squared error contains a factor 2, that of a cube a 3. The sum over the
    samples of ``2*y`` is twice the sum of ``y``: one multiplication instead of one per sample.

    Only values that are used in products alone are changed; outputs that do not vary with the
    sample keep their value. A factor that would become very large or very small in a product is
    multiplied at its original position.

    Returns:
        The new tape and the factor of each output: an output of the given tape is its factor
        times the output of the new tape.

    >>> import cgprimer
    >>> tape = optimize(cgprimer.tape(cgprimer.parse("xw = 2*(3*xa)*sin(xa)")))
    >>> plain, factors = extract_constant_factors(tape)
    >>> factors, len(tape), len(plain)
    ({'xw': 6.0}, 4, 2)
    """
    movable = _find_movable_values(tape)
    builder = Builder()
    new: list[int] = []
    factor: list[float] = []
    for leaf in tape.leaves:
        if leaf.kind == "constant":
            new.append(builder.constant(leaf.value))
        else:
            new.append(builder.leaf(leaf.kind, leaf.name))
        factor.append(1.0)
    for index, (name, operands) in enumerate(tape.instructions, len(tape.leaves)):
        copies = [new[o] for o in operands]
        extracted = 1.0
        if movable[index]:
            for o in operands if name != "div" else operands[:1]:
                extracted *= factor[o]
            if not _is_safe_factor(extracted):
                for position, o in enumerate(operands):
                    if factor[o] != 1.0:
                        constant_factor = builder.constant(factor[o])
                        copies[position] = builder.emit("mul", constant_factor, copies[position])
                extracted = 1.0
            if name == "neg":
                new.append(copies[0])
                factor.append(-extracted)
                continue
            if name == "mul":
                left, right = (builder.value_of(v) for v in copies)
                constant, other = (left, copies[1]) if left is not None else (right, copies[0])
                if constant is not None and _is_safe_factor(constant * extracted):
                    new.append(other)
                    factor.append(constant * extracted)
                    continue
        new.append(builder.emit(name, *copies))
        factor.append(extracted)
    builder.names = {name: new[i] for name, i in tape.names.items() if factor[i] == 1.0}
    outputs = {name: new[i] for name, i in tape.outputs.items()}
    factors = {name: factor[i] for name, i in tape.outputs.items()}
    return builder.finish(outputs, prune=True), factors


def _is_safe_factor(factor: float) -> bool:
    """Return whether multiplying a sum by a factor cannot cause overflow or underflow."""
    return 1 / _MAX_FACTOR <= abs(factor) <= _MAX_FACTOR


def _find_movable_values(tape: Tape) -> list[bool]:
    """Return, for each value, whether its constant factors can be moved out of the outputs.

    A value is movable if it varies with the sample and leads to outputs through products alone.
    """
    movable = find_varying_values(tape)
    first = len(tape.leaves)
    for index in range(first):
        movable[index] = False
    outputs = set(tape.outputs.values())
    used = [False] * tape.size
    for index in range(tape.size - 1, first - 1, -1):
        name, operands = tape.instructions[index - first]
        if not used[index] and index not in outputs:
            movable[index] = False
        propagates = movable[index] and name in ("mul", "neg", "div")
        for position, operand in enumerate(operands):
            used[operand] = True
            if not propagates or (name == "div" and position == 1):
                movable[operand] = False
    return movable
