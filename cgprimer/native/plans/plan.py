"""What an engine runs: a tape's instructions arranged in steps.

A plan is an annotation on an optimized tape. It says what is computed once a call (``uniform``)
and what for every sample (``varying``), which instructions are one step of a machine (a
multiplication and an addition, the sine and the cosine of one value), which sums of products
over the same values are a matrix at work, and which products are only ever summed over the
samples. :func:`cgprimer.native.plans.making.plan` makes it;
:func:`cgprimer.native.plans.storage.storage_of` says where in a block's buffer the values live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cgprimer.core.tape.tape import Tape
from cgprimer.registration import RESERVED

FUSED = RESERVED  # steps that are no primitive's


class Step(NamedTuple):
    """One step. ``operands`` and ``results`` are values of the tape, or further ones (see Plan).

    The name is a primitive's, or one of:

    ==========  ==================================================================================
    ``fma``     ``(a, b, c)``: a*b + c
    ``fms``     ``(a, b, c)``: a*b - c
    ``fnma``    ``(a, b, c)``: c - a*b
    ``sincos``  ``(a,)``: two results, sin(a) and cos(a)
    ``affine``  a :class:`Affine` group; operands are its inputs, results its outputs
    ``sum``     ``(a,)``: adds a to an accumulator; the result is the accumulator's number
    ``dot``     ``(a, b)``: adds a*b to an accumulator; the result is the accumulator's number
    ``outer``   an :class:`Outer` group; operands are its left and its right values, no results
    ==========  ==================================================================================
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]


class Affine(NamedTuple):
    """``outputs[j] = sum over i of weights[j][i] * inputs[i] + biases[j]``.

    Inputs vary with the sample; weights and biases do not. ``biases[j]`` is -1 where there is none.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    biases: tuple[int, ...]


class Outer(NamedTuple):
    """``accumulator[numbers[i][j]] += left[i] * right[j]``, summed over the samples.

    A number is -1 where the pair is not wanted.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    numbers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Steps in the order in which they run.

    Attributes:
        tape: the optimized tape; its leaves are the values that are given.
        size: number of values: those of the tape, then further ones that the passes made. Not
            every value of the tape is computed: what a step takes in has no place of its own.
        uniform: steps on values that no sample changes, once a call.
        varying: steps for every sample (a block of samples at a time).
        groups: for each position in ``varying`` that is an affine or outer step, its group.
        accumulators: for each accumulator the value that it sums up, or -1 for a product that is
            never stored; empty unless the plan is one of sums.
        outputs: for each output its value; with sums, for an output that varies with the sample
            the number of its accumulator in ``summed`` instead.
        summed: output name to accumulator.
    """

    tape: Tape
    size: int
    uniform: tuple[Step, ...]
    varying: tuple[Step, ...]
    groups: dict[int, Affine | Outer]
    accumulators: tuple[int, ...]
    outputs: dict[str, int]
    summed: dict[str, int]
