"""The verifier: every tape goes through it after lowering and after every differentiator."""

from __future__ import annotations

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives import primitives
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import ShapeError, TapeError


def checked(tape: Tape) -> Tape:
    """The tape itself, if it keeps all rules.

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
    shaped = any(leaf.shape for leaf in tape.leaves)
    for position, (name, operands) in enumerate(tape.instructions):
        if isinstance(name, Structural):
            shaped = True
            from cgprimer.core.primitives.structural import KINDS

            if name.kind in KINDS:
                arity[name] = len(operands)
        if name not in arity:
            raise TapeError(f"instruction {position} uses the unknown primitive {name!r}")
        if len(operands) != arity[name]:
            takes = f"{name!r} takes {arity[name]} operands, has {len(operands)}"
            raise TapeError(f"instruction {position}: {takes}")
        here = first + position
        if min(operands, default=0) < 0 or max(operands, default=-1) >= here:
            operand = next(o for o in operands if not 0 <= o < here)
            raise TapeError(
                f"instruction {position}: operand {operand} is not defined before its use"
            )
    if shaped:
        _check_shapes(tape)
    for what, table in (("output", tape.outputs), ("name", tape.names)):
        for name, index in table.items():
            if not 0 <= index < size:
                raise TapeError(f"{what} {name!r} points at value {index}, of {size}")
    return tape


def _check_shapes(tape: Tape) -> None:
    from cgprimer.core.primitives.structural import result_shape, shape_text

    shapes = [leaf.shape for leaf in tape.leaves]
    constants = {i for i, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    for position, (name, operands) in enumerate(tape.instructions):
        ours = [shapes[o] for o in operands]
        try:
            if isinstance(name, Structural):
                shapes.append(result_shape(name, *ours))
                continue
        except (ShapeError, IndexError, TypeError, ValueError) as error:
            raise TapeError(f"instruction {position}: {name}: {error}") from None
        known = {s for s, o in zip(ours, operands, strict=True) if o not in constants}
        if len(known) > 1:
            texts = " and ".join(map(shape_text, sorted(known)))
            raise TapeError(f"instruction {position}: operands of {name!r} are {texts}")
        shapes.append(max(ours, key=len))
