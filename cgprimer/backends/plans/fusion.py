"""Fusion of plan steps: multiply-add, and the sine and cosine of the same value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import chain
from operator import itemgetter

from cgprimer.backends.plans.plan import PlanStep

_new = tuple.__new__
_OPERANDS = itemgetter(1)


def fuse_multiply_add(steps: list[PlanStep], required: Collection[int]) -> list[PlanStep]:
    """Fuse each multiplication whose only use is an addition or subtraction into a multiply-add.

    The result is rounded once instead of twice on machines with such an instruction, so the last
    digit may differ.

    Args:
        steps: plan steps in execution order.
        required: values that must be computed, such as outputs.

    >>> fuse_multiply_add([PlanStep("mul", (0, 1), (3,)), PlanStep("sub", (2, 3), (4,))], ())
    [PlanStep(name='fnma', operands=(0, 1, 2), results=(4,))]
    """
    uses = Counter(chain.from_iterable(map(_OPERANDS, steps)))
    uses.update(required)
    uses.update(required)  # two uses: never fused
    product_at = {step[2][0]: position for position, step in enumerate(steps) if step[0] == "mul"}
    fused_steps: list[PlanStep | None] = list(steps)
    for position, (name, operands, results) in enumerate(steps):
        if name in ("add", "sub"):
            a, b = operands
            # Of two products, fuse the second: the first is often a running sum.
            if uses[b] == 1 and b in product_at:
                product, other, fused = b, a, "fma" if name == "add" else "fnma"
            elif uses[a] == 1 and a in product_at:
                product, other, fused = a, b, "fma" if name == "add" else "fms"
            else:
                continue
            factors = steps[product_at[product]][1]
            fused_steps[product_at[product]] = None
            fused_steps[position] = _new(PlanStep, (fused, (*factors, other), results))
    return [step for step in fused_steps if step is not None]


def fuse_sine_cosine(steps: list[PlanStep]) -> list[PlanStep]:
    """Fuse the sine and the cosine of the same value into one step, at the earlier position.

    >>> fuse_sine_cosine([PlanStep("cos", (0,), (1,)), PlanStep("sin", (0,), (2,))])
    [PlanStep(name='sincos', operands=(0,), results=(2, 1))]
    """
    cosines = {step[1]: position for position, step in enumerate(steps) if step[0] == "cos"}
    if not cosines:
        return steps
    fused_steps: list[PlanStep | None] = list(steps)
    for position, (name, operands, results) in enumerate(steps):
        if name == "sin" and operands in cosines:
            other = cosines[operands]
            both = PlanStep("sincos", operands, (*results, *steps[other][2]))
            fused_steps[max(position, other)] = None
            fused_steps[min(position, other)] = both
    return [step for step in fused_steps if step is not None]
