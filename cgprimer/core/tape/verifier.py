"""The verifier: every tape goes through it after lowering and after every differentiator."""

from __future__ import annotations

from cgprimer.core.operations import primitives
from cgprimer.core.tape.tape import Tape, infer_shapes
from cgprimer.errors import TapeError


def verify(tape: Tape) -> Tape:
    """Return the tape itself, if it keeps all rules.

    The rules: leaves have known kinds and columns and scalars have different names; primitives
    are known and have as many operands as their arity; every operand is defined before its use;
    names and outputs point at values; shapes fit, and those of an elementwise primitive's operands
    are equal (constants have every shape).

    Raises:
        TapeError: a rule is broken; the message says which instruction breaks it.
    """
    arity = {row.name: row.arity for row in primitives()}
    size, first = tape.size, len(tape.leaves)
    seen: set[str] = set()
    for leaf in tape.leaves:
        if leaf.kind not in ("column", "scalar", "constant"):
            raise TapeError(f"leaf {leaf.name!r} is of the unknown kind {leaf.kind!r}")
        if leaf.kind != "constant":
            if leaf.name in seen:
                raise TapeError(f"two leaves are called {leaf.name!r}")
            seen.add(leaf.name)
    for position, (name, operands) in enumerate(tape.instructions):
        result = first + position
        if min(operands, default=0) < 0 or max(operands, default=-1) >= result:
            operand = next(o for o in operands if not 0 <= o < result)
            raise TapeError(
                f"instruction {position}: operand {operand} is not defined before its use"
            )
        if not isinstance(name, str):
            continue
        if name not in arity:
            raise TapeError(f"instruction {position} uses the unknown primitive {name!r}")
        if len(operands) != arity[name]:
            takes = f"{name!r} takes {arity[name]} operands, has {len(operands)}"
            raise TapeError(f"instruction {position}: {takes}")
    if tape.has_arrays and infer_shapes(tape) != tape.shapes:
        raise TapeError("the shapes of the tape are not those that its instructions imply")
    for what, table in (("output", tape.outputs), ("name", tape.names)):
        for name, index in table.items():
            if not 0 <= index < size:
                raise TapeError(f"{what} {name!r} points at value {index}, of {size}")
    return tape
