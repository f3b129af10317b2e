"""Check the structure of tapes, after lowering and after every method."""

from __future__ import annotations

from cgprimer.core.operations import primitives
from cgprimer.core.tape.tape import Tape, infer_shapes
from cgprimer.errors import TapeError, pluralize


def verify(tape: Tape) -> Tape:
    """Return the tape unchanged if it is valid; raise an error otherwise.

    A tape is valid if the kinds of leaves and the primitives are known, columns and scalars have
    unique names, each operand is defined before its use, primitives have the right number of
    operands, names and outputs refer to existing values, and shapes are as inferred. Operands of an
    elementwise primitive must have equal shapes, except constants.

    Raises:
        TapeError: the tape is not valid; the message names the instruction.
    """
    arity = {row.name: row.arity for row in primitives()}
    size, first = tape.size, len(tape.leaves)
    seen: set[str] = set()
    for leaf in tape.leaves:
        if leaf.kind not in ("column", "scalar", "constant"):
            raise TapeError(f"leaf {leaf.name!r} has unknown kind {leaf.kind!r}")
        if leaf.kind != "constant":
            if leaf.name in seen:
                raise TapeError(f"duplicate leaf name {leaf.name!r}")
            seen.add(leaf.name)
    for position, (name, operands) in enumerate(tape.instructions):
        result = first + position
        if min(operands, default=0) < 0 or max(operands, default=-1) >= result:
            operand = next(o for o in operands if not 0 <= o < result)
            raise TapeError(
                f"instruction {position}: operand {operand} must be defined before its use"
            )
        if not isinstance(name, str):
            continue
        if name not in arity:
            raise TapeError(f"instruction {position}: unknown primitive {name!r}")
        if len(operands) != arity[name]:
            problem = f"{name!r} requires {pluralize(arity[name], 'operand')}, got {len(operands)}"
            raise TapeError(f"instruction {position}: {problem}")
    if tape.has_arrays and infer_shapes(tape) != tape.shapes:
        raise TapeError("the shapes of the tape must equal those inferred from its instructions")
    for what, table in (("output", tape.outputs), ("name", tape.names)):
        for name, index in table.items():
            if not 0 <= index < size:
                raise TapeError(
                    f"{what} {name!r} refers to value {index}, but the tape has {size} values"
                )
    return tape
