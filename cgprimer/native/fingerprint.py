"""What a tape is, in bytes: equal for equal tapes, in every process."""

from __future__ import annotations

import hashlib
import marshal

from cgprimer.core.primitives import primitive
from cgprimer.core.tape.tape import Tape


def fingerprint(tape: Tape) -> str:
    """A name for a tape's content: leaves, instructions, outputs, and the rows they stand for.

    Two tapes of one fingerprint compute the same; names of inner values do not count.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> one, two, other = (lower(parse(f"xw = k{sign}xa")) for sign in "**+")
    >>> fingerprint(one) == fingerprint(two), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    names, operands = zip(*tape.instructions, strict=True) if tape.instructions else ((), ())
    used = sorted(set(names))
    rows = [(row.name, row.partials, row.built_in) for row in map(primitive, used)]
    leaves = [(leaf.kind, leaf.name, leaf.value.hex()) for leaf in tape.leaves]
    # Version 2 of marshal writes equal things alike; later ones look at reference counts.
    data = marshal.dumps((names, operands, leaves, list(tape.outputs.items()), rows), 2)
    return hashlib.sha256(data).hexdigest()


def shareable(tape: Tape) -> bool:
    """Whether what is made of the tape may be kept for other processes: built-in rows alone."""
    return all(primitive(name).built_in for name in {name for name, _ in tape.instructions})
