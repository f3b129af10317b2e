"""Forward mode: compute each value together with its tangent.

The tangent of a value is its derivative along a direction, the seed. Each instruction combines
the tangents of its operands with its local partial derivatives:

    dot[result] = sum over operands of d(result)/d(operand) * dot[operand]

One pass computes the derivatives of all outputs along one direction. The gradient with respect to n
parameters requires n passes, or one pass with n tangents for each value (``carry=True``).

Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., section 3.1.
"""

from __future__ import annotations

from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Pass,
    Read,
    derivative_name,
    find_unused_name,
    iterate_unit_seeds,
    select_array_shapes,
)
from cgprimer.core.operations.primitive_registry import find_operation
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_dependents, reachable


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, carry: bool = False
) -> DerivativeProgram:
    """Return the program of forward mode.

    Args:
        tape: the tape to differentiate.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        carry: compute the tangents for all names in ``wrt`` in a single pass.
    """
    roots = [tape.index(name) for name in of]
    keep = reachable(tape, roots)
    builder = Builder()
    builder.extend(tape, keep=[False] * tape.size)  # columns and scalars come before seeds
    zero, shapes = builder.constant(0.0), select_array_shapes(tape, (*of, *wrt))
    passes: tuple[Pass, ...]

    if carry:
        one = builder.constant(1.0)
        starts = [({tape.index(name): one}, f".{name}") for name in wrt]
        value, directions = emit_tangents(builder, tape, keep, starts)
        tangents = {
            derivative_name(target, name): direction.get(root, zero)
            for name, direction in zip(wrt, directions, strict=True)
            for target, root in zip(of, roots, strict=True)
        }
        passes = (Pass(tuple(Read(t, name, derivative_name(t, name)) for t in of for name in wrt)),)
    else:
        names = {name: choose_seed_name(tape, name) for name in wrt}
        dots = {target: find_unused_name("dot", target, tape) for target in of}
        seeds: dict[int, int] = {}
        for name in wrt:
            index = tape.index(name)
            seed = builder.leaf("scalar", names[name], shape=shapes.get(name, ()))
            seeds[index] = builder.emit("add", seeds[index], seed) if index in seeds else seed
        value, (direction,) = emit_tangents(builder, tape, keep, [(seeds, "")])
        tangents = {
            dots[target]: builder.broadcast(direction.get(root, zero), shapes.get(target, ()))
            for target, root in zip(of, roots, strict=True)
        }
        passes = tuple(
            Pass(
                tuple(Read(target, name, dots[target], column=index) for target in of), seed_values
            )
            for name, index, seed_values in iterate_unit_seeds(
                {names[w]: (w, shapes.get(w, ())) for w in wrt}
            )
        )
    outputs = {name: value[root] for name, root in zip(of, roots, strict=True)} | tangents
    for name, index in tangents.items():
        builder.names.setdefault(name, index)
    finished = builder.finish(outputs, prune=True)
    return DerivativeProgram("forward", finished, of, wrt, passes, shapes=shapes)


def emit_tangents(
    builder: Builder, tape: Tape, keep: list[bool], directions: list[tuple[dict[int, int], str]]
) -> tuple[dict[int, int], list[dict[int, int]]]:
    """Copy a tape to a builder, with the tangents of each instruction directly after it.

    Args:
        builder: the builder.
        tape: the tape.
        keep: for each value of the tape, whether to copy it.
        directions: for each direction, the seed tangents keyed by value (those of inner values
            are added to their tangents), and a suffix for the names of tangents.

    Returns:
        The value in the builder for each value of the tape, and for each direction the tangents.
    """
    tangents = [dict(seeds) for seeds, _ in directions]
    active = [find_dependents(tape, seeds) for seeds, _ in directions]
    leaves = builder.extend(tape, keep=[False] * tape.size)
    first = {new: index for index, new in leaves.items()}  # of the equal values of the tape

    def emit_instruction_tangents(index: int, value: dict[int, int]) -> int:
        """Emit the tangents of an instruction in all directions; return its value."""
        primitive, operands = tape.instructions[index - len(tape.leaves)]
        values = tuple(value[o] for o in operands)
        operation = find_operation(primitive)
        merged = first.setdefault(value[index], index)
        for (_, suffix), dot, reached in zip(directions, tangents, active, strict=True):
            if not reached[index]:
                continue
            if merged != index and merged in dot:  # simplified, such as -(-x): no edges lead to it
                dot[index] = dot[merged]
                continue
            seed = dot.pop(index, None)  # of an inner value: added to its tangent
            for position, operand in enumerate(operands):
                if operand not in dot:
                    continue
                contribution = operation.jvp(builder, position, dot[operand], values, value[index])
                if contribution is not None:
                    product, partial = contribution
                    builder.add_contribution(
                        dot, index, product, values[position], value[index], partial
                    )
            if seed is not None:
                dot[index] = builder.emit("add", dot[index], seed) if index in dot else seed
            if index in dot and index in tape.labels:
                name = find_unused_name("dot", tape.labels[index], tape) + suffix
                builder.names.setdefault(name, dot[index])
        return value[index]

    return builder.extend(tape, keep=keep, then=emit_instruction_tangents), tangents


def choose_seed_name(tape: Tape, name: str) -> str:
    """Return a name for the seed tangent of a variable: ``dot.xa``, or ``seed.xz`` if computed."""
    return find_unused_name("dot" if tape.index(name) < len(tape.leaves) else "seed", name, tape)
