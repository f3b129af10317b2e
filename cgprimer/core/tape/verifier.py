"""The verifier: every tape goes through it after lowering and after every differentiator."""

from __future__ import annotations

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives import primitives
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import TapeError


def checked(tape: Tape) -> Tape:
    """The tape itself, if it keeps all rules.

    The rules: leaves have known kinds and columns and scalars have different names; primitives
    are known and have as many operands as their arity; every operand is defined before its use;
    names and outputs point at values.

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
        if isinstance(name, Structural):
            arity[name] = len(operands)
        if name not in arity:
            raise TapeError(f"instruction {position} uses the unknown primitive {name!r}")
        if len(operands) != arity[name]:
            raise TapeError(
                f"instruction {position}: {name!r} takes {arity[name]} operands,"
                f" has {len(operands)}"
            )
        here = first + position
        if min(operands, default=0) < 0 or max(operands, default=-1) >= here:
            operand = next(o for o in operands if not 0 <= o < here)
            raise TapeError(
                f"instruction {position}: operand {operand} is not defined before its use"
            )
    if tape.shapes and len(tape.shapes) != size:
        raise TapeError("not every value has a shape")
    for what, table in (("output", tape.outputs), ("name", tape.names)):
        for name, index in table.items():
            if not 0 <= index < size:
                raise TapeError(f"{what} {name!r} points at value {index}, of {size}")
    return tape
