"""Running a plan a step and a sample at a time, from the words of its definition.

Nothing here is shared with an engine. Values are taken from their rows if rows are given, so a
row that is used again too early gives a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import cgprimer
from cgprimer.backends.plans.plan import Plan
from cgprimer.backends.plans.row_allocation import RowAllocation
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.tape.tape import Tape
from tests.tape.tape_running import EXACT

Number = Any
Apply = Callable[[str, Sequence[Number]], Number]


def in_doubles(name: str, operands: Sequence[Number]) -> np.float64:
    with np.errstate(all="ignore"):
        return np.float64(numpy_arithmetic.numpy_function(name)(*operands))


def in_fractions(name: str, operands: Sequence[Number]) -> Fraction:
    if name == "pow":
        assert operands[1].denominator == 1
        return operands[0] ** int(operands[1])
    return EXACT[name](*operands)


def run_plan(
    plan: Plan,
    samples: Sequence[Mapping[str, Number]],
    scalars: Mapping[str, Number],
    *,
    sums: bool,
    apply: Apply = in_doubles,
    number: Callable[[float], Number] = np.float64,
    rows: RowAllocation | None = None,
) -> dict[str, Any]:
    """For each output its values for the samples, or their sum."""
    totals = [number(0.0)] * len(plan.accumulators)
    found: dict[str, Any] = {name: [] for name in plan.outputs}
    for sample in samples:
        values: dict[int, Number] = {}
        for index, leaf in enumerate(plan.tape.leaves):
            given = sample if leaf.kind == "column" else scalars
            values[index] = number(leaf.value) if leaf.kind == "constant" else given[leaf.name]
        for name, operands, (target,) in plan.uniform:
            values[target] = apply(name, [values[o] for o in operands])
        table = [None] * rows.count if rows else []

        def read(
            value: int, values: dict[int, Number] = values, table: list[Number] = table
        ) -> Number:
            return values[value] if value in values or not rows else table[rows.row_of[value]]

        def write(
            value: int,
            result: Number,
            values: dict[int, Number] = values,
            table: list[Number] = table,
        ) -> None:
            if rows:
                table[rows.row_of[value]] = result
            else:
                values[value] = result

        for position, step in enumerate(plan.varying):
            one_step(plan, position, step, read, write, totals, apply)
        for name, index in plan.outputs.items():
            found[name].append(read(index))
    if sums:  # the others are the same for all samples
        found = {name: sum(shares, number(0.0)) for name, shares in found.items()}
    return {**found, **{name: totals[n] for name, n in plan.summed.items()}}


def one_step(plan, position, step, read, write, totals, apply) -> None:
    name, operands, results = step
    match name:
        case "affine":
            group = plan.groups[position]
            for output, row, bias in zip(group.outputs, group.weights, group.biases, strict=True):
                total = None
                for weight, value in zip(row, group.inputs, strict=True):
                    product = apply("mul", [read(weight), read(value)])
                    total = product if total is None else apply("add", [total, product])
                write(output, total if bias < 0 else apply("add", [total, read(bias)]))
        case "outer":
            group = plan.groups[position]
            for left, numbers in zip(group.left, group.accumulators, strict=True):
                for right, accumulator in zip(group.right, numbers, strict=True):
                    if accumulator >= 0:
                        totals[accumulator] += apply("mul", [read(left), read(right)])
        case "sum":
            totals[results[0]] += read(operands[0])
        case "dot":
            totals[results[0]] += apply("mul", [read(o) for o in operands])
        case "sincos":
            write(results[0], apply("sin", [read(operands[0])]))
            write(results[1], apply("cos", [read(operands[0])]))
        case "fma" | "fms" | "fnma":
            product = apply("mul", [read(o) for o in operands[:2]])
            other = read(operands[2])
            how = {
                "fma": ("add", product, other),
                "fms": ("sub", product, other),
                "fnma": ("sub", other, product),
            }[name]
            write(results[0], apply(how[0], how[1:]))
        case _:
            write(results[0], apply(name, [read(o) for o in operands]))


# --- graphs to plan ------------------------------------------------------------------------------


def network(*sizes: int, bypass: bool = False) -> ExpressionGraph:
    """A tanh network as scalar expressions; the last layer is linear."""
    lines = []
    before = [f"x{i}" for i in range(sizes[0])]
    for layer, size in enumerate(sizes[1:], 1):
        here = []
        for j in range(size):
            terms = [f"w{layer}_{j}_{i}*{name}" for i, name in enumerate(before)]
            text = " + ".join([*terms, f"b{layer}_{j}"])
            text = text if layer == len(sizes) - 1 else f"tanh({text})"
            if bypass and size == len(before):
                text += f" + {before[j]}"
            lines.append(f"h{layer}_{j} = {text}")
            here.append(f"h{layer}_{j}")
        before = here
    return cgprimer.parse([*lines, f"output {', '.join(before)}"])


def loss_program(graph: ExpressionGraph, method: str = "reverse", **options) -> Tape:
    """Loss and gradient of a graph, as in training."""
    tape = with_loss(cgprimer.tape(graph), "squared-error")
    return cgprimer.differentiate(
        tape, of=LOSS, wrt=graph.parameters, method=method, **options
    ).tape
