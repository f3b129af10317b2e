"""Steps that a machine does in one go: multiply and add, the sine and the cosine of one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import chain
from operator import itemgetter

from cgprimer.native.plans.plan import Step

_new = tuple.__new__
_OPERANDS = itemgetter(1)


def multiply_add(steps: list[Step], kept: Collection[int]) -> list[Step]:
    """Products that nothing but one sum uses become a part of it.

    Rounded once instead of twice on machines that have such an instruction, so the last digit may
    differ.

    Args:
        steps: in the order in which they run.
        kept: values that are needed for more than these steps.

    >>> multiply_add([Step("mul", (0, 1), (3,)), Step("sub", (2, 3), (4,))], ())
    [Step(name='fnma', operands=(0, 1, 2), results=(4,))]
    """
    uses = Counter(chain.from_iterable(map(_OPERANDS, steps)))
    uses.update(kept)
    uses.update(kept)  # not used once, then
    product_at = {step[2][0]: place for place, step in enumerate(steps) if step[0] == "mul"}
    found: list[Step | None] = list(steps)
    for place, (name, operands, results) in enumerate(steps):
        if name in ("add", "sub"):
            a, b = operands
            # Of two products the second: the first is what a sum has come to so far.
            if uses[b] == 1 and b in product_at:
                product, other, fused = b, a, "fma" if name == "add" else "fnma"
            elif uses[a] == 1 and a in product_at:
                product, other, fused = a, b, "fma" if name == "add" else "fms"
            else:
                continue
            factors = steps[product_at[product]][1]
            found[product_at[product]] = None
            found[place] = _new(Step, (fused, (*factors, other), results))
    return [step for step in found if step is not None]


def sine_cosine(steps: list[Step]) -> list[Step]:
    """The sine and the cosine of one value become one step, at the place of the first of them.

    >>> sine_cosine([Step("cos", (0,), (1,)), Step("sin", (0,), (2,))])
    [Step(name='sincos', operands=(0,), results=(2, 1))]
    """
    cosines = {step[1]: place for place, step in enumerate(steps) if step[0] == "cos"}
    if not cosines:
        return steps
    found: list[Step | None] = list(steps)
    for place, (name, operands, results) in enumerate(steps):
        if name == "sin" and operands in cosines:
            other = cosines[operands]
            both = Step("sincos", operands, (*results, *steps[other][2]))
            found[max(place, other)] = None
            found[min(place, other)] = both
    return [step for step in found if step is not None]
