"""The execution plan of a tape: its instructions arranged in steps.

A plan annotates an optimized tape. It separates the steps that run once per call (``uniform``)
from those that run for every sample (``varying``). It also contains the results of the fusion
passes: multiply-add, sine with cosine, affine groups and reductions.
:func:`cgprimer.backends.plans.planning.build_plan` creates a plan, and
:func:`cgprimer.backends.plans.row_allocation.allocate_rows` assigns buffer rows to its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cgprimer.core.registration import RESERVED
from cgprimer.core.tape.tape import Tape

FUSED = RESERVED  # names of plan steps that are not primitives


class PlanStep(NamedTuple):
    """One step of an execution plan: a primitive or a fused operation.

    ``operands`` and ``results`` are values of the tape, or additional values (see :class:`Plan`).
    ``name`` is the name of a primitive or one of:

    ==========  ==================================================================================
    ``fma``     ``(a, b, c)``: a*b + c
    ``fms``     ``(a, b, c)``: a*b - c
    ``fnma``    ``(a, b, c)``: c - a*b
    ``sincos``  ``(a,)``: two results, sin(a) and cos(a)
    ``affine``  an :class:`AffineGroup`; operands are its inputs, results its outputs
    ``sum``     ``(a,)``: adds a to an accumulator; the result is the index of the accumulator
    ``dot``     ``(a, b)``: adds a*b to an accumulator; the result is the index of the accumulator
    ``outer``   an :class:`OuterProduct`; operands are its left and right factors, no results
    ==========  ==================================================================================
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]


class AffineGroup(NamedTuple):
    """A matrix-vector product: ``outputs[j] = sum_i weights[j][i] * inputs[i] + biases[j]``.

    Inputs vary with the sample; weights and biases do not. A missing bias is -1.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    biases: tuple[int, ...]


class OuterProduct(NamedTuple):
    """Outer products summed over the samples: ``accumulators[i][j] += left[i] * right[j]``.

    A pair that is not needed has the accumulator -1.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    accumulators: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Execution plan of a tape: plan steps in execution order.

    Attributes:
        tape: the optimized tape; its leaves are the inputs of the plan.
        size: number of values: first the values of the tape, then values that passes added. Values
            of the tape that were fused into a step are not computed.
        uniform: steps on values that do not vary with the sample, run once per call.
        varying: steps that run for every sample (for a block of samples at a time).
        groups: position in ``varying`` of an affine or outer step -> its group.
        accumulators: for each accumulator the value that it sums up, or -1 for a product that is
            never stored; empty unless the outputs are summed.
        outputs: output name -> value, for outputs that are not in ``summed``.
        summed: output name -> accumulator, for outputs that are summed over the samples.
    """

    tape: Tape
    size: int
    uniform: tuple[PlanStep, ...]
    varying: tuple[PlanStep, ...]
    groups: dict[int, AffineGroup | OuterProduct]
    accumulators: tuple[int, ...]
    outputs: dict[str, int]
    summed: dict[str, int]
