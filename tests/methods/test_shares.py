"""Contributions (`shares`) sum to adjoints and tangents; optimization removes them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given

import cgprimer
from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.core.methods.edge_tape import edge_tape
from cgprimer.core.tape.tape import Tape
from tests.methods.graph_strategies import Case, cases

LECTURE = cgprimer.parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
AT = {"xa": 0.5, "ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}


# Simplification merges xa, -(-xa) and xa^1, and their sines.
MERGED = cgprimer.parse("v1 = -(-xa) + xa; v2 = v1*sin(-(-xa)) + xa^1*sin(xa)^1")
# The adjoint of 2*xa is the unnamed constant 1 + 1, next to the named constant 1.
CONSTANT = cgprimer.parse("v1 = 2*xa + 2*xa")


def tape_values(tape: Tape, at: dict[str, float], seeds: dict[str, float]) -> list[float]:
    return values_of(tape, {**at, **seeds})


def check_shares(tape: Tape, values: list[float], *, backwards: bool) -> None:
    """Check that products are upstream times partial and that totals are their running sums."""
    assert all(share.tail < share.head for share in tape.shares)
    sums: dict[int, float] = {}
    for share in tape.shares:
        partial, product, total = (values[i] for i in share[2:])
        to, source = (share.tail, share.head) if backwards else (share.head, share.tail)
        sums[to] = sums.get(to, 0.0) + product
        if source in sums and all(map(math.isfinite, (partial, product, sums[source]))):
            assert product == pytest.approx(sums[source] * partial, rel=1e-9, abs=1e-12)
        if math.isfinite(total) and math.isfinite(sums[to]):
            scale = max(map(abs, sums.values()))
            assert total == pytest.approx(sums[to], rel=1e-9, abs=1e-9 * scale)


def reverse_program(graph: cgprimer.ExpressionGraph) -> DerivativeProgram:
    return cgprimer.differentiate(cgprimer.tape(graph), of=graph.outputs[-1], wrt=leaf_names(graph))


def leaf_names(graph: cgprimer.ExpressionGraph) -> tuple[str, ...]:
    return (*graph.inputs, *graph.parameters)


@given(cases())
@example(Case(MERGED, {"xa": 0.5}, 1.0))
@example(Case(CONSTANT, {"xa": 0.5}, 1.0))
def test_reverse_mode_contributions_sum_to_adjoints(case: Case) -> None:
    graph, at = case.graph, case.at
    program = reverse_program(graph)
    values = tape_values(program.tape, at, {})
    check_shares(program.tape, values, backwards=True)
    last = {share.tail: share.total for share in program.shares}
    for name in program.wrt:
        leaf = program.tape.index(name)
        bar = program.tape.outputs.get(f"bar.{name}")
        if leaf in last and bar is not None:
            assert values[last[leaf]] == values[bar] or math.isnan(values[bar])


@given(cases())
@example(Case(MERGED, {"xa": 0.5}, 1.0))
@example(Case(CONSTANT, {"xa": 0.5}, 1.0))
def test_forward_mode_contributions_sum_to_tangents(case: Case) -> None:
    graph, at = case.graph, case.at
    seeded = leaf_names(graph)[0]
    tape = cgprimer.differentiate(
        cgprimer.tape(graph), of=graph.outputs[-1], wrt=seeded, method="forward"
    ).tape
    values = tape_values(tape, at, {f"dot.{seeded}": 1.0})
    check_shares(tape, values, backwards=False)


@pytest.mark.parametrize("graph", [LECTURE, MERGED, CONSTANT])
@pytest.mark.parametrize("operations", [False, True])
def test_edge_tape_computes_the_gradient(graph: cgprimer.ExpressionGraph, operations: bool) -> None:
    primal, (output,) = cgprimer.tape(graph), graph.outputs
    at = {name: AT[name] for name in leaf_names(graph)}
    back = edge_tape(primal, of=output, operations=operations)
    values = tape_values(back.tape, at, {})
    check_shares(back.tape, values, backwards=True)
    exact = cgprimer.gradient(graph, at, wrt=(*graph.variables, *graph.parameters))
    for name, value in exact.items():
        assert values[back.totals[primal.index(name)]] == pytest.approx(value, rel=1e-14)
    forth = edge_tape(primal, wrt="xa", operations=operations)
    values = tape_values(forth.tape, at, {})
    check_shares(forth.tape, values, backwards=False)
    assert values[forth.totals[primal.index(output)]] == pytest.approx(exact["xa"], rel=1e-14)


def test_optimized_tapes_drop_contributions() -> None:
    program = reverse_program(LECTURE)
    assert optimize(program.tape).shares == ()
    assert len(optimize(program.tape)) == len(optimize(replace(program.tape, shares=())))
