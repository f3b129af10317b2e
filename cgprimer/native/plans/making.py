"""From a tape to a plan: what engines do before they make code of it.

Each pass is a function in a file of its own; here they are put in order.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import varying
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.plans.affine import Grouped, affine_groups
from cgprimer.native.plans.fusion import multiply_add, sine_cosine
from cgprimer.native.plans.optimization import optimize
from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.reductions import Reductions, reductions

_new = tuple.__new__


def plan(tape: Tape, *, sums: bool) -> Plan:
    """Arrange a tape in steps.

    Args:
        tape: any tape; it is optimized first.
        sums: the outputs are wanted as sums over the samples.

    >>> import cgprimer
    >>> found = plan(cgprimer.tape(cgprimer.parse("xw = sin(k)*xa + m")), sums=True)
    >>> [step.name for step in found.uniform], [step.name for step in found.varying]
    (['sin'], ['fma', 'sum'])
    """
    with collector_paused():
        return _planned(optimize(tape), sums=sums)


def _planned(tape: Tape, *, sums: bool) -> Plan:
    varies = varying(tape)
    uses = counted(tape, varies)
    none = Reductions([], {}, {}, {}, [])
    reduced = reductions(tape, varies, uses) if sums else none
    grouped = affine_groups(tape, varies, uses)
    if grouped is None:  # the constant 1 is wanted among the leaves
        builder = Builder(share=False, simplify=False)
        moved = builder.extend(tape)
        builder.constant(1.0)
        more = builder.finish({name: moved[index] for name, index in tape.outputs.items()})
        return _planned(more, sums=sums)
    uniform, steps = _steps(tape, varies, grouped, reduced)
    kept = {v for v in reduced.accumulators if v >= 0}
    kept.update(o for pair in reduced.dots.values() for o in pair)
    kept.update(o for outer in reduced.outers for o in (*outer.left, *outer.right))
    if not sums:
        kept.update(tape.outputs.values())
    steps = sine_cosine(multiply_add(steps, kept))
    steps = _with_reductions(steps, reduced)
    known: dict[tuple[Any, ...], Affine | Outer] = {
        **{(group.inputs, group.outputs): group for group in grouped.groups.values()},
        **{((*outer.left, *outer.right), ()): outer for outer in reduced.outers},
    }
    grouping = enumerate(steps) if known else ()
    return Plan(
        tape=tape,
        size=grouped.size,
        uniform=(*uniform, *grouped.uniform),
        varying=tuple(steps),
        groups={i: known[s[1:]] for i, s in grouping if s.name in ("affine", "outer")},
        accumulators=tuple(reduced.accumulators),
        outputs={n: i for n, i in tape.outputs.items() if n not in reduced.summed},
        summed=reduced.summed,
    )


def counted(tape: Tape, varies: list[bool]) -> list[int]:
    """For each value how often steps on samples use it; outputs count once for each value."""
    uses = [0] * tape.size
    for (_, operands), wanted in zip(tape.instructions, varies[len(tape.leaves) :], strict=True):
        if wanted:
            for operand in operands:
                uses[operand] += 1
    for index in set(tape.outputs.values()):
        uses[index] += 1
    return uses


def _steps(
    tape: Tape, varies: list[bool], grouped: Grouped, reduced: Reductions
) -> tuple[list[Step], list[Step]]:
    """Uniform and varying steps, one per instruction; groups where their first sums stood."""
    uniform: list[Step] = []
    steps: list[Step] = []
    groups, sums = grouped.groups, grouped.sums
    gone = grouped.absorbed | reduced.products.keys()
    index = len(tape.leaves)
    for name, operands in tape.instructions:
        if index in sums:
            if index in groups:
                group = groups[index]
                steps.append(Step("affine", group.inputs, group.outputs))
            steps.extend(sums[index])
        elif index not in gone:
            step = _new(Step, (name, operands, (index,)))
            (steps if varies[index] else uniform).append(step)
        index += 1
    return uniform, steps


def _with_reductions(steps: list[Step], reduced: Reductions) -> list[Step]:
    """With each sum right after the last value it needs, so that values are done with early."""
    sums = ((number, value) for number, value in enumerate(reduced.accumulators) if value >= 0)
    wanted = [Step("sum", (value,), (number,)) for number, value in sums]
    wanted += [Step("dot", pair, (number,)) for number, pair in reduced.dots.items()]
    wanted += [Step("outer", (*outer.left, *outer.right), ()) for outer in reduced.outers]
    if not wanted:
        return steps
    # The place of the last operand that is made; columns are there before the first step.
    made: dict[int, int] = dict.fromkeys(chain.from_iterable(s.operands for s in wanted), -1)
    for position, (_, _, results) in enumerate(steps):
        for value in results:
            if value in made:
                made[value] = position
    after: dict[int, list[Step]] = {}
    for step in wanted:
        after.setdefault(max(made[o] for o in step.operands), []).append(step)
    found = after.get(-1, [])
    for position, step in enumerate(steps):
        found.append(step)
        if position in after:
            found += after[position]
    return found
