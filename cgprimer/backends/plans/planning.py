"""Construction of the execution plan of a tape: all passes, in their order.

Each pass is a function in a separate module of this package.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from cgprimer.backends.plans.affine_groups import AffineRewrite, find_affine_groups
from cgprimer.backends.plans.fusion import fuse_multiply_add, fuse_sine_cosine
from cgprimer.backends.plans.optimization import optimize
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan, PlanStep
from cgprimer.backends.plans.reductions import Reductions, plan_reductions
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.support.garbage_collection import pause_garbage_collection

_new = tuple.__new__


def build_plan(tape: Tape, *, sums: bool) -> Plan:
    """Optimize a tape and build its execution plan.

    Args:
        tape: any tape of scalars.
        sums: sum the outputs over the samples.

    >>> import cgprimer
    >>> plan = build_plan(cgprimer.tape(cgprimer.parse("xw = sin(k)*xa + m")), sums=True)
    >>> [step.name for step in plan.uniform], [step.name for step in plan.varying]
    (['sin'], ['fma', 'sum'])
    """
    with pause_garbage_collection():
        return _build_optimized_plan(optimize(tape), sums=sums)


def _build_optimized_plan(tape: Tape, *, sums: bool) -> Plan:
    """Build the execution plan of a tape that is already optimized."""
    is_varying = find_varying_values(tape)
    use_counts = count_uses(tape, is_varying)
    no_reductions = Reductions([], {}, {}, {}, [])
    reductions = plan_reductions(tape, is_varying, use_counts) if sums else no_reductions
    affine = find_affine_groups(tape, is_varying, use_counts)
    if affine is None:
        return _build_optimized_plan(_add_constant_one(tape), sums=sums)
    uniform, steps = _split_steps(tape, is_varying, affine, reductions)
    required = {v for v in reductions.accumulators if v >= 0}
    required.update(o for pair in reductions.dots.values() for o in pair)
    required.update(o for outer in reductions.outers for o in (*outer.left, *outer.right))
    if not sums:
        required.update(tape.outputs.values())
    steps = fuse_sine_cosine(fuse_multiply_add(steps, required))
    steps = _insert_reductions(steps, reductions)
    group_of: dict[tuple[Any, ...], AffineGroup | OuterProduct] = {
        **{(group.inputs, group.outputs): group for group in affine.groups.values()},
        **{((*outer.left, *outer.right), ()): outer for outer in reductions.outers},
    }
    grouping = enumerate(steps) if group_of else ()
    return Plan(
        tape=tape,
        size=affine.size,
        uniform=(*uniform, *affine.uniform),
        varying=tuple(steps),
        groups={i: group_of[s[1:]] for i, s in grouping if s.name in ("affine", "outer")},
        accumulators=tuple(reductions.accumulators),
        outputs={n: i for n, i in tape.outputs.items() if n not in reductions.summed},
        summed=reductions.summed,
    )


def _add_constant_one(tape: Tape) -> Tape:
    """Return a copy of a tape with the constant 1, the weight of terms without a coefficient."""
    builder = Builder(share=False, simplify=False)
    index_of = builder.extend(tape)
    builder.constant(1.0)
    return builder.finish({name: index_of[index] for name, index in tape.outputs.items()})


def count_uses(tape: Tape, is_varying: list[bool]) -> list[int]:
    """Count the uses of each value by varying instructions and by outputs.

    Several outputs with the same value count as one use.
    """
    use_counts = [0] * tape.size
    for (_, operands), counts in zip(
        tape.instructions, is_varying[len(tape.leaves) :], strict=True
    ):
        if counts:
            for operand in operands:
                use_counts[operand] += 1
    for index in set(tape.outputs.values()):
        use_counts[index] += 1
    return use_counts


def _split_steps(
    tape: Tape, is_varying: list[bool], affine: AffineRewrite, reductions: Reductions
) -> tuple[list[PlanStep], list[PlanStep]]:
    """Split instructions into uniform and varying steps; replace weighted sums by affine steps."""
    uniform: list[PlanStep] = []
    steps: list[PlanStep] = []
    groups, sums = affine.groups, affine.sums
    removed = affine.absorbed | reductions.products.keys()
    index = len(tape.leaves)
    for name, operands in tape.instructions:
        if index in sums:
            if index in groups:
                group = groups[index]
                steps.append(PlanStep("affine", group.inputs, group.outputs))
            steps.extend(sums[index])
        elif index not in removed:
            step = _new(PlanStep, (name, operands, (index,)))
            (steps if is_varying[index] else uniform).append(step)
        index += 1
    return uniform, steps


def _insert_reductions(steps: list[PlanStep], reductions: Reductions) -> list[PlanStep]:
    """Insert each reduction directly after the step that computes its last operand.

    Early reductions keep the live ranges of their operands short.
    """
    sums = ((k, value) for k, value in enumerate(reductions.accumulators) if value >= 0)
    inserted = [PlanStep("sum", (value,), (accumulator,)) for accumulator, value in sums]
    inserted += [PlanStep("dot", pair, (k,)) for k, pair in reductions.dots.items()]
    inserted += [PlanStep("outer", (*outer.left, *outer.right), ()) for outer in reductions.outers]
    if not inserted:
        return steps
    # The position of the step that computes each operand; -1 for columns.
    computed_at = dict.fromkeys(chain.from_iterable(s.operands for s in inserted), -1)
    for position, (_, _, results) in enumerate(steps):
        for value in results:
            if value in computed_at:
                computed_at[value] = position
    after: dict[int, list[PlanStep]] = {}
    for step in inserted:
        after.setdefault(max(computed_at[o] for o in step.operands), []).append(step)
    merged = after.get(-1, [])
    for position, step in enumerate(steps):
        merged.append(step)
        if position in after:
            merged += after[position]
    return merged


plan = build_plan  # deprecated name, kept for imports that the documentation has shown
