"""Forward mode: every value carries its tangent along.

The tangent of a value is its derivative along a direction, the seed. Each instruction combines
the tangents of its operands with its local partial derivatives:

    dot[result] = sum over operands of d(result)/d(operand) * dot[operand]

One pass gives the derivatives of all outputs along one direction, so a gradient over n
parameters takes n passes, or one pass that carries n tangents (``carry=True``).

Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., section 3.1.
"""

from __future__ import annotations

from cgprimer.differentiators.contract import (
    DerivativeProgram,
    Pass,
    Read,
    derivative_name,
    fresh,
)
from cgprimer.differentiators.reverse import signature_and
from cgprimer.tapes.builder import Builder
from cgprimer.tapes.lower import emit_partial
from cgprimer.tapes.passes import depends, reachable
from cgprimer.tapes.tape import Tape


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, carry: bool = False
) -> DerivativeProgram:
    """The program of forward mode.

    Args:
        tape: the primal.
        of: names to differentiate.
        wrt: names with respect to which.
        carry: carry all tangents along in one pass, instead of a pass for each of ``wrt``.
    """
    roots = [tape.index(name) for name in of]
    needed = reachable(tape, roots)
    builder = Builder()
    value = builder.extend(tape, keep=signature_and(tape, needed))
    outputs = {name: value[root] for name, root in zip(of, roots, strict=True)}
    zero = builder.constant(0.0)
    passes: tuple[Pass, ...]

    if carry:
        for name in wrt:
            seeds = {tape.index(name): builder.constant(1.0)}
            tangents = push(builder, tape, value, seeds, needed, suffix=f".{name}")
            for target, root in zip(of, roots, strict=True):
                outputs[derivative_name(target, name)] = tangents.get(root, zero)
        reads = tuple(Read(t, name, derivative_name(t, name)) for t in of for name in wrt)
        passes = (Pass(reads),)
    else:
        names = {name: seed_name(tape, name) for name in wrt}
        dots = {target: fresh("dot", target, tape) for target in of}
        seeds = {}
        for name in wrt:  # two names of one value, as in a derivative tape, share a tangent
            seed = builder.scalar(names[name])
            index = tape.index(name)
            seeds[index] = builder.emit("add", seeds[index], seed) if index in seeds else seed
        tangents = push(builder, tape, value, seeds, needed)
        for target, root in zip(of, roots, strict=True):
            outputs[dots[target]] = tangents.get(root, zero)
        passes = tuple(
            Pass(
                reads=tuple(Read(target, name, dots[target]) for target in of),
                seeds={names[other]: float(other == name) for other in wrt},
            )
            for name in wrt
        )
    for name, index in outputs.items():
        builder.names.setdefault(name, index)
    finished = builder.finish(outputs, prune=True)
    return DerivativeProgram(
        "forward", finished, of, wrt, passes, primal_names=frozenset(tape.names)
    )


def push(
    builder: Builder,
    tape: Tape,
    value: dict[int, int],
    seeds: dict[int, int],
    needed: list[bool],
    *,
    suffix: str = "",
) -> dict[int, int]:
    """Walk the tape forwards and compute tangents.

    Args:
        builder: where the instructions go.
        tape: the primal.
        value: the primal's values in the builder.
        seeds: tangents that are given: of leaves, and added to those of inner values.
        needed: for each value whether its tangent is of interest.
        suffix: put behind the names of the tangents, to tell several directions apart.

    Returns:
        The tangent of every needed value that depends on a seeded one.
    """
    tangents = dict(seeds)
    active = depends(tape, seeds)
    for position, (primitive, operands) in enumerate(tape.instructions):
        index = len(tape.leaves) + position
        if not (needed[index] and active[index]):
            continue
        values = tuple(value[o] for o in operands)
        total = None
        for which, operand in enumerate(operands):
            if operand not in tangents:
                continue
            partial = emit_partial(builder, primitive, which, values, value[index])
            if partial is not None:
                share = builder.emit("mul", partial, tangents[operand])
                total = share if total is None else builder.emit("add", total, share)
        if index in seeds:
            total = seeds[index] if total is None else builder.emit("add", total, seeds[index])
        if total is None:  # all partials are zero everywhere
            continue
        tangents[index] = total
        if index in tape.labels:
            builder.names.setdefault(fresh("dot", tape.labels[index], tape) + suffix, total)
    return tangents


def seed_name(tape: Tape, name: str) -> str:
    """The scalar that seeds a variable: a leaf's tangent, or what is added to an inner one's."""
    return fresh("dot" if tape.index(name) < len(tape.leaves) else "seed", name, tape)
