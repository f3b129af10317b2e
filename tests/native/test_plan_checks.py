"""The rules that the tests hold plans to: every planted fault is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import cgprimer
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan, PlanStep
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import RowAllocation, allocate_rows
from cgprimer.errors import TapeError
from tests.native.plan_rules import checked_plan, checked_storage
from tests.native.plan_running import loss_program, network

SUMS = build_plan(loss_program(network(3, 4, 3, 1)), sums=True)
PLAIN = build_plan(cgprimer.tape(network(3, 4, 3, 1)), sums=False)
TRIG = build_plan(
    cgprimer.tape(
        cgprimer.parse("xb = k*m*sin(xa); xw = xb*cos(xa) + exp(k)*xa; xv = k; output xw, xv")
    ),
    sums=False,
)


def place(found: Plan, name: str) -> int:
    return next(i for i, step in enumerate(found.varying) if step.name == name)


def with_step(found: Plan, kind: str, /, **changes) -> Plan:
    at = place(found, kind)
    steps = list(found.varying)
    steps[at] = steps[at]._replace(**changes)
    return replace(found, varying=tuple(steps))


def without_step(found: Plan, at: int) -> Plan:
    groups = {i - (i > at): g for i, g in found.groups.items() if i != at}
    return replace(found, varying=found.varying[:at] + found.varying[at + 1 :], groups=groups)


def with_group(found: Plan, name: str, change: Callable) -> Plan:
    at = place(found, name)
    return replace(found, groups={**found.groups, at: change(found.groups[at])})


AFFINE: AffineGroup = SUMS.groups[place(SUMS, "affine")]  # type: ignore[assignment]
OUTER: OuterProduct = SUMS.groups[place(SUMS, "outer")]  # type: ignore[assignment]
TANH = SUMS.varying[place(SUMS, "tanh")]
COLUMN = SUMS.tape.names["x0"]

FAULTS = {
    "a step of an unknown kind": with_step(SUMS, "tanh", name="tanz"),
    "a result that is there already": with_step(SUMS, "tanh", results=(COLUMN,)),
    "a result beyond the end": with_step(SUMS, "tanh", results=(SUMS.size,)),
    "a negative result": with_step(SUMS, "tanh", results=(-1,)),
    "an operand that comes later": with_step(SUMS, "tanh", operands=TANH.results),
    "an operand beyond the end": with_step(SUMS, "tanh", operands=(SUMS.size,)),
    "a negative operand": with_step(SUMS, "tanh", operands=(-1,)),
    "nothing that varies": with_step(SUMS, "tanh", operands=(SUMS.tape.names["b1_0"],)),
    "too many operands": with_step(SUMS, "tanh", operands=(COLUMN, COLUMN)),
    "too few for a multiply-add": with_step(SUMS, "fnma", operands=(COLUMN, COLUMN)),
    "one result of a sine and cosine": with_step(TRIG, "sincos", results=(TRIG.size - 1,)),
    "two results of a tanh": with_step(SUMS, "tanh", results=(*TANH.results, SUMS.size - 1)),
    "a step that is missing": without_step(SUMS, place(SUMS, "tanh")),
    "a sum that is missing": without_step(SUMS, place(SUMS, "sum")),
    "a dot that is missing": without_step(SUMS, place(SUMS, "dot")),
    "a group without a step": without_step(SUMS, place(SUMS, "outer")),
    "a step without a group": replace(SUMS, groups={}),
    "another kind of group": with_group(SUMS, "outer", lambda g: AFFINE),
    "an affine step with an outer group": with_group(SUMS, "affine", lambda g: OUTER),
    "a group with no step": replace(SUMS, groups={**SUMS.groups, 10**6: AFFINE}),
    "an accumulator filled twice": replace(
        SUMS, varying=(*SUMS.varying, PlanStep("sum", (COLUMN,), (0,)))
    ),
    "an accumulator beyond the end": with_step(SUMS, "sum", results=(10**6,)),
    "an accumulator that nobody fills": replace(SUMS, accumulators=(*SUMS.accumulators, -1)),
    "a sum of another value": with_step(SUMS, "sum", operands=(COLUMN,)),
    "a dot of one value": with_step(SUMS, "dot", operands=(COLUMN,)),
    "other inputs than the group": with_step(SUMS, "affine", operands=AFFINE.inputs[::-1]),
    "other outputs than the group": with_step(SUMS, "affine", results=AFFINE.outputs[::-1]),
    "a row of weights too few": with_group(
        SUMS, "affine", lambda g: g._replace(weights=g.weights[1:])
    ),
    "a short row of weights": with_group(
        SUMS, "affine", lambda g: g._replace(weights=(g.weights[0][1:], *g.weights[1:]))
    ),
    "a weight that varies": with_group(
        SUMS, "affine", lambda g: g._replace(weights=((COLUMN, *g.weights[0][1:]), *g.weights[1:]))
    ),
    "a bias that varies": with_group(
        SUMS, "affine", lambda g: g._replace(biases=(COLUMN, *g.biases[1:]))
    ),
    "a bias too few": with_group(SUMS, "affine", lambda g: g._replace(biases=g.biases[1:])),
    "a bias of -2": with_group(SUMS, "affine", lambda g: g._replace(biases=(-2, *g.biases[1:]))),
    "another left side": with_group(SUMS, "outer", lambda g: g._replace(left=g.right)),
    "a row of numbers too few": with_group(
        SUMS, "outer", lambda g: g._replace(accumulators=(*g.accumulators, g.accumulators[0]))
    ),
    "a short row of numbers": with_group(
        SUMS,
        "outer",
        lambda g: g._replace(accumulators=(g.accumulators[0][1:], *g.accumulators[1:])),
    ),
    "a number that is taken": with_group(
        SUMS,
        "outer",
        lambda g: g._replace(
            accumulators=((g.accumulators[0][0],) * len(g.right), *g.accumulators[1:])
        ),
    ),
    "a number of -2": with_group(
        SUMS,
        "outer",
        lambda g: g._replace(accumulators=((-2, *g.accumulators[0][1:]), *g.accumulators[1:])),
    ),
    "a uniform step that uses a sample": replace(
        TRIG, uniform=(TRIG.uniform[0]._replace(operands=(0, 0)), *TRIG.uniform[1:])
    ),
    "a uniform step that is no primitive": replace(
        TRIG, uniform=(TRIG.uniform[0]._replace(name="fma"), *TRIG.uniform[1:])
    ),
    "a uniform step with two results": replace(
        TRIG, uniform=(TRIG.uniform[0]._replace(results=(4, 5)), *TRIG.uniform[1:])
    ),
    "a uniform step done twice": replace(TRIG, uniform=(*TRIG.uniform, TRIG.uniform[0])),
    "a uniform step that is missing": replace(TRIG, uniform=TRIG.uniform[1:]),
    "an output that is missing": replace(TRIG, outputs={}),
    "an output too many": replace(TRIG, outputs={**TRIG.outputs, "xq": 0}),
    "an output that nobody computes": replace(TRIG, outputs={**TRIG.outputs, "xw": TRIG.size}),
    "an output that is summed and is not": replace(
        SUMS, outputs={"loss.sample": SUMS.tape.outputs["loss.sample"]}
    ),
    "an output with the wrong accumulator": replace(
        SUMS, summed={**SUMS.summed, "loss.sample": 10**6}
    ),
    "an output that should be summed": replace(
        SUMS,
        outputs={"loss.sample": COLUMN},
        summed={n: i for n, i in SUMS.summed.items() if n != "loss.sample"},
    ),
}


@pytest.mark.parametrize("found", [SUMS, PLAIN, TRIG], ids=["sums", "plain", "trig"])
def test_sound_plans_are_given_back(found: Plan) -> None:
    assert checked_plan(found) is found
    placed = allocate_rows(found)
    assert checked_storage(found, placed) is placed


def test_the_faults_are_planted_in_plans_that_have_everything() -> None:
    kinds = {step.name for found in (SUMS, PLAIN, TRIG) for step in found.varying}
    assert kinds >= {"affine", "outer", "dot", "sum", "fnma", "sincos"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_plan_is_refused(fault: str) -> None:
    with pytest.raises(TapeError):
        checked_plan(FAULTS[fault])


@pytest.mark.parametrize("found", [SUMS, PLAIN, TRIG], ids=["sums", "plain", "trig"])
def test_every_step_that_is_left_out_or_done_twice_is_noticed(found: Plan) -> None:
    for at, step in enumerate(found.varying):
        with pytest.raises(TapeError):
            checked_plan(without_step(found, at))
        with pytest.raises(TapeError):
            checked_plan(replace(found, varying=(*found.varying, step)))


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [SUMS, PLAIN, TRIG], ids=["sums", "plain", "trig"])
def test_rows_are_used_again(found: Plan) -> None:
    placed = allocate_rows(found)
    made = {v for s in found.varying if s.name not in ("sum", "dot", "outer") for v in s.results}
    assert placed.row_of.keys() == made
    assert placed.count < len(made)
    assert {*placed.row_of.values()} == set(range(placed.count))


def alive(found: Plan) -> dict[int, tuple[int, int]]:
    """For each value with a row, the step that makes it and the last one that reads it."""
    span = {}
    for at, step in enumerate(found.varying):
        for operand in step.operands:
            if operand in span:
                span[operand] = (span[operand][0], at)
        if step.name not in ("sum", "dot", "outer"):
            span.update(dict.fromkeys(step.results, (at, at)))
    span.update({v: (span[v][0], 10**9) for v in found.outputs.values() if v in span})
    return span


@pytest.mark.parametrize("found", [SUMS, PLAIN, TRIG], ids=["sums", "plain", "trig"])
def test_a_value_put_onto_one_that_is_alive_is_noticed(found: Plan) -> None:
    placed = allocate_rows(found)
    span = alive(found)
    tried = 0
    for value, (made, _) in span.items():
        for other, (begin, end) in span.items():
            if begin < made < end and placed.row_of[other] != placed.row_of[value]:
                tried += 1
                moved = {**placed.row_of, value: placed.row_of[other]}
                with pytest.raises(TapeError):
                    checked_storage(found, RowAllocation(moved, placed.count))
    assert tried


def test_results_of_a_matrix_do_not_lie_on_its_inputs() -> None:
    placed = allocate_rows(PLAIN)
    second = [g for g in PLAIN.groups.values() if isinstance(g, AffineGroup)][1]
    read = [placed.row_of[v] for v in second.inputs]
    assert not {*read} & {placed.row_of[v] for v in second.outputs}
    moved = dict(zip(second.outputs, read, strict=False))
    with pytest.raises(TapeError):
        checked_storage(PLAIN, RowAllocation({**placed.row_of, **moved}, placed.count))


def test_results_of_a_matrix_are_neighbours() -> None:
    placed = allocate_rows(build_plan(loss_program(network(8, 16, 16, 16, 1)), sums=True))
    found = build_plan(loss_program(network(8, 16, 16, 16, 1)), sums=True)
    for group in found.groups.values():
        if isinstance(group, AffineGroup):
            places = [placed.row_of[v] for v in group.outputs]
            assert places == list(range(places[0], places[0] + len(places)))


def test_a_row_beyond_the_end_and_a_row_that_is_missing_are_noticed() -> None:
    placed = allocate_rows(TRIG)
    value = TRIG.varying[0].results[0]
    with pytest.raises(TapeError):
        checked_storage(TRIG, RowAllocation({**placed.row_of, value: placed.count}, placed.count))
    with pytest.raises(TapeError):
        checked_storage(
            TRIG,
            RowAllocation({v: r for v, r in placed.row_of.items() if v != value}, placed.count),
        )


def test_an_output_that_is_overwritten_is_noticed() -> None:
    found = build_plan(
        cgprimer.tape(cgprimer.parse("xb = sin(xa); xw = exp(xa); output xb, xw")), sums=False
    )
    placed = allocate_rows(found)
    assert placed.count == 2
    with pytest.raises(TapeError, match="'xb'"):
        checked_storage(found, RowAllocation(dict.fromkeys(placed.row_of, 0), 2))
