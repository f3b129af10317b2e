"""Reverse mode: one sweep forward for the values, one sweep back for the adjoints.

The adjoint of a value is the derivative of the output with respect to it. Walking back from the
output, every instruction hands its own adjoint on to its operands, each share multiplied by the
local partial derivative:

    bar[operand] += bar[result] * d(result)/d(operand)

All derivatives of one output come out of one pass, however many parameters there are: the price
is a small multiple of computing the output itself (Baur and Strassen 1983; Griewank and Walther,
"Evaluating Derivatives", 2nd ed., chapter 3).
"""

from __future__ import annotations

from collections.abc import Iterable

from cgprimer.core.methods.contract import DerivativeProgram, Pass, Read, fresh
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import emit_partial
from cgprimer.core.tape.passes import depends, reachable
from cgprimer.core.tape.tape import Tape


def differentiate(tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...]) -> DerivativeProgram:
    """The program of reverse mode: a pass for each name in ``of``."""
    roots = [tape.index(name) for name in of]
    sources = [tape.index(name) for name in wrt]
    needed = reachable(tape, roots)
    active = depends(tape, sources)

    builder = Builder()
    value = builder.extend(tape, keep=needed)
    # A seed for each output, if there are several; a pass sets one of them to 1.
    seeds = {name: fresh("seed", name, tape) for name in of if len(of) > 1}
    adjoints = {} if seeds else {roots[0]: builder.constant(1.0)}
    for root, name in zip(roots, seeds.values(), strict=False):
        seed = builder.scalar(name)
        adjoints[root] = builder.emit("add", adjoints[root], seed) if root in adjoints else seed
    region = [i for i in range(len(tape.leaves), tape.size) if needed[i] and active[i]]
    sweep(builder, tape, value, adjoints, region, active)

    zero = builder.constant(0.0)
    outputs = {name: value[root] for name, root in zip(of, roots, strict=True)}
    bars = {name: fresh("bar", name, tape) for name in wrt}
    for name, source in zip(wrt, sources, strict=True):
        outputs[bars[name]] = adjoints.get(source, zero)
        builder.names.setdefault(bars[name], outputs[bars[name]])
    passes = tuple(
        Pass(
            reads=tuple(Read(name, w, bars[w]) for w in wrt),
            seeds={seed: float(other == name) for other, seed in seeds.items()},
        )
        for name in of
    )
    finished = builder.finish(outputs, prune=True)
    return DerivativeProgram(
        "reverse", finished, of, wrt, passes, primal_names=frozenset(tape.names)
    )


def sweep(
    builder: Builder,
    tape: Tape,
    value: dict[int, int],
    adjoints: dict[int, int],
    region: Iterable[int],
    active: list[bool],
    *,
    name_adjoints: bool = True,
) -> None:
    """Walk a region of the tape backwards and accumulate adjoints.

    Args:
        builder: where the instructions go.
        tape: the primal.
        value: the primal's values in the builder.
        adjoints: seeds at first; filled with the adjoint of every value that is reached.
        region: the instructions to walk, in execution order.
        active: for each value whether its adjoint is of interest.
        name_adjoints: call the adjoint of ``xz`` ``bar.xz``, for whoever reads the program.
    """
    one = builder.constant(1.0)
    for index in reversed(list(region)):
        bar = adjoints.get(index)
        if bar is None:  # nothing that the output needs
            continue
        if name_adjoints and index in tape.labels:
            builder.names.setdefault(fresh("bar", tape.labels[index], tape), bar)
        primitive, operands = tape.instructions[index - len(tape.leaves)]
        values = tuple(value[o] for o in operands)
        for which, operand in enumerate(operands):
            if not active[operand]:
                continue
            partial = emit_partial(builder, primitive, which, values, value[index])
            if partial is not None:
                product = bar if partial == one else builder.emit("mul", bar, partial)
                builder.hand(adjoints, operand, product, values[which], value[index], partial)
