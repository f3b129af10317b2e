"""What a value varies with: nothing, the scalars, or the sample."""

from __future__ import annotations

from typing import Literal

from cgprimer.core.tape.tape import Tape

Variance = Literal["constant", "scalar", "column"]


def variance(tape: Tape) -> list[Variance]:
    """For each value what it varies with: nothing, the scalars, or the sample.

    What does not vary with the sample is computed once per run.
    """
    found: list[Variance] = [leaf.kind for leaf in tape.leaves]
    rank = {"constant": 0, "scalar": 1, "column": 2}
    for _, operands in tape.instructions:
        found.append(max((found[o] for o in operands), key=rank.__getitem__))
    return found
