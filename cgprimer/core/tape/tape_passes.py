"""Transform tapes: remove dead code, substitute seeds, rename values; estimate live memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_printing import assign_printed_names
from cgprimer.core.tape.verifier import verify
from cgprimer.support.value_names import parse_element


def remove_dead_code(tape: Tape) -> Tape:
    """Return a tape without the instructions and constants that no output depends on.

    Columns and scalars are not removed, since they are the arguments of the program.
    """
    builder = Builder(share=False, simplify=False)
    value = builder.extend(tape)
    return builder.finish({name: value[i] for name, i in tape.outputs.items()}, prune=True)


def live_memory(tape: Tape) -> int:
    """Return the maximum number of computed values that are alive at the same time.

    This is the memory that a run needs per sample, in values. Leaves are not counted.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> live_memory(lower(parse("xb = sin(xa); xc = sin(xb); xd = sin(xc)")))
    2
    """
    first = len(tape.leaves)
    last = {o: index for index, (_, used) in enumerate(tape.instructions, first) for o in used}
    last |= dict.fromkeys(tape.outputs.values(), tape.size)
    alive = maximum = 0
    for index, (_, operands) in enumerate(tape.instructions, first):
        maximum = max(maximum, alive + 1)
        ends = sum(last[o] == index for o in set(operands) if o >= first)
        alive += (index in last) - ends
    return maximum


def convert_scalars_to_columns(tape: Tape, names: Iterable[str]) -> Tape:
    """Return a tape on which the scalars with the given names are columns (one value per sample).

    If a name is that of an array, its elements become columns.
    """
    moved = {("scalar", name) for name in names}
    leaves = [(f.kind, parse_element(f.name).array) in moved for f in tape.leaves]
    pairs = zip(leaves, tape.leaves, strict=True)
    return replace(tape, leaves=tuple([f._replace(kind="column") if m else f for m, f in pairs]))


def _emit_seed(builder: Builder, value: Any) -> int | None:
    """Emit the value of a seed: a constant, or an array with a single 1; None if it is zero."""
    if isinstance(value, float):
        return builder.constant(value) if value else None
    positions = [tuple(map(int, index)) for index in zip(*value.nonzero(), strict=True)]
    if not positions:
        return None
    from cgprimer.core.operations.element_operations import scatter

    return int(scatter(builder, builder.constant(1.0), positions[0], value.shape))


def substitute_seeds(tape: Tape, seeds: Mapping[str, Any]) -> Tape:
    """Return a tape with constants instead of seeds, and without products with seeds that are 0.

    Without these products, infinite partials have no effect on tangents that are 0: at run time,
    ``0*inf`` would be nan.

    Args:
        tape: the tape of a derivative program.
        seeds: the value of each seed: a float, or an array with at most one nonzero element.
    """
    builder = Builder()
    new: list[int | None] = []  # None if zero because of the seeds

    def emit_zero(index: int) -> int:
        """Emit a zero with the shape of a value of the tape."""
        return builder.broadcast(builder.constant(0.0), tape.shapes[index])

    for leaf in tape.leaves:
        if leaf.name in seeds:
            new.append(_emit_seed(builder, seeds[leaf.name]))
        else:
            new.append(builder.leaf(*leaf))
    for name, operands in tape.instructions:
        moved = [new[o] for o in operands]
        nonzero = [m for m in moved if m is not None]
        if len(nonzero) == len(moved):
            new.append(builder.emit(name, *nonzero))
        elif name == "add" or (name == "sub" and moved[1] is None):
            new.append(nonzero[0] if nonzero else None)
        elif name == "sub":
            new.append(builder.emit("neg", *nonzero))
        elif (
            name in ("mul", "neg", "copy")
            or (name == "div" and moved[0] is None)
            or (not isinstance(name, str) and (not nonzero or name.name == "matmul"))
        ):
            new.append(None)
        else:  # not linear in the seed
            filled = [
                emit_zero(o) if m is None else m for o, m in zip(operands, moved, strict=True)
            ]
            new.append(builder.emit(name, *filled))
    outputs = tape.outputs.items()
    values = {name: emit_zero(i) if (one := new[i]) is None else one for name, i in outputs}
    return verify(builder.finish(values, prune=True))


def apply_printed_names(tape: Tape) -> Tape:
    """Return a tape whose values are renamed to their printed names (underscores, not dots).

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xy = batchnorm(xa, g, b)"))
    >>> apply_printed_names(tape).of_kind("scalar")
    ('g', 'b', 'mean_xy', 'variance_xy')
    """
    shown = assign_printed_names(tape)
    leaves = tuple([leaf._replace(name=shown.get(leaf.name, leaf.name)) for leaf in tape.leaves])
    names, outputs = ({shown[n]: i for n, i in of.items()} for of in (tape.names, tape.outputs))
    return replace(tape, leaves=leaves, names=names, outputs=outputs)
