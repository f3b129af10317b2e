"""Tapes: straight-line programs that can be built, differentiated and run.

:func:`tape` lowers a graph to a :class:`Tape`, :func:`differentiate` turns it into another tape
with derivatives, and :func:`run` computes its outputs. A :class:`Builder` emits instructions
one by one. :func:`contributions` lists the products that a derivative program adds up.

>>> import cgprimer
>>> from cgprimer import tapes
>>> primal = tapes.tape(cgprimer.parse("xb = 2*xa; xw = xb*xa"))
>>> tapes.run(primal, {"xa": 3.0})
{'xw': 18.0}
>>> program = tapes.differentiate(primal, wrt="xa")
>>> names = tapes.labels(program.tape)
>>> [(names[c.tail], names[c.head]) for c in tapes.contributions(program)]
[('xb', 'xw'), ('xa', 'xw'), ('xa', 'xb')]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.core.derivatives import tape
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import emit_vertex, lower
from cgprimer.core.tape.scalarization import elements, scalarize
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.core.tape.tape_entries import Contribution, Instruction, Leaf
from cgprimer.core.tape.tape_printing import labels

__all__ = [
    "Builder",
    "Contribution",
    "DerivativeProgram",
    "Instruction",
    "Leaf",
    "Tape",
    "contributions",
    "differentiate",
    "elements",
    "emit_vertex",
    "labels",
    "lower",
    "reachable",
    "run",
    "scalarize",
    "shape_of",
    "tape",
    "values_of",
]


def run(tape: Tape, values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a tape with the plain evaluator; return its outputs.

    Args:
        tape: the tape.
        values: a float or an array of samples for each column and scalar of the tape. The last
            axes of a value must have the shape of its leaf.

    Returns:
        The outputs, keyed by name: floats if all values are floats, else arrays.

    Raises:
        EngineError: a column or scalar has no value.

    >>> import cgprimer
    >>> run(cgprimer.tape(cgprimer.parse("xw = k*xa")), {"k": 2.0, "xa": 3.0})
    {'xw': 6.0}
    """
    computed = values_of(tape, values)
    return {name: computed[index] for name, index in tape.outputs.items()}


def contributions(program: DerivativeProgram | Tape) -> tuple[Contribution, ...]:
    """Return the contribution of each edge to the derivatives, in the order of the sweep.

    Each contribution has the fields ``tail``, ``head``, ``partial``, ``product`` and ``total``,
    which are indices of values of the program's tape. Programs of forward and reverse mode have
    contributions; the other methods have none.

    >>> import cgprimer
    >>> primal = cgprimer.tape(cgprimer.parse("xw = k*xa"))
    >>> program = cgprimer.differentiate(primal, wrt="k")
    >>> [program.tape.labels[c.tail] for c in contributions(program)]
    ['k']
    """
    return program.shares
