"""Execution plans: exact algebra, the expected steps, and rows that are reused in time.

Plans are run here one step and one sample at a time in fractions, without rounding.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.code_listing import code_text
from cgprimer.backends.plans.optimization import extract_constant_factors, optimize
from cgprimer.backends.plans.plan import AffineGroup, Plan
from cgprimer.backends.plans.plan_printing import format_passes
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import allocate_rows
from cgprimer.core.tape.tape import Tape
from tests.approval import approved
from tests.native.engine_agreement import gradient_tape, network
from tests.tape.tape_running import EXACT, exact_outputs, texts

Values = Mapping[str, Fraction]
OPERATIONS: dict[str, Callable[..., Fraction]] = {
    **EXACT,
    "pow": lambda a, b: a ** int(b),
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
}


def run_plan(plan: Plan, samples: Sequence[Values], scalars: Values) -> dict[str, Any]:
    """Return for each output its values for the samples, or their sum if the plan sums it."""
    rows = allocate_rows(plan)
    totals = [Fraction(0)] * len(plan.accumulators)
    outputs: dict[str, Any] = {name: [] for name in plan.outputs}
    for sample in samples:
        values: dict[int, Fraction] = {}
        for index, leaf in enumerate(plan.tape.leaves):
            given_values = sample if leaf.kind == "column" else scalars
            constant = leaf.kind == "constant"
            values[index] = Fraction(leaf.value) if constant else given_values[leaf.name]
        for name, operands, (target,) in plan.uniform:
            values[target] = OPERATIONS[name](*[values[o] for o in operands])
        table: list[tuple[int, Fraction] | None] = [None] * rows.count

        def read(index: int, values: Any = values, table: Any = table) -> Fraction:
            if index in values:
                return values[index]
            owner, value = table[rows.row_of[index]]
            assert owner == index, "a row was reused before the last use of its value"
            return value

        for position, (name, operands, results) in enumerate(plan.varying):
            group: Any = plan.groups.get(position)
            computed: list[Fraction] = []
            if name == "affine":
                for row, bias in zip(group.weights, group.biases, strict=True):
                    products = [read(w) * read(v) for w, v in zip(row, group.inputs, strict=True)]
                    computed.append(sum(products) + (read(bias) if bias >= 0 else 0))
                assert results == group.outputs
            elif name == "outer":
                for left, numbers in zip(group.left, group.accumulators, strict=True):
                    for right, number in zip(group.right, numbers, strict=True):
                        if number >= 0:
                            totals[number] += read(left) * read(right)
            elif name in ("sum", "dot"):
                factors = [read(o) for o in operands]
                totals[results[0]] += factors[0] * (factors[1] if name == "dot" else 1)
            else:
                computed = [OPERATIONS[name](*map(read, operands))]
            if name == "affine":  # results are written while operands are still read
                written = {rows.row_of[r] for r in results}
                assert len(written) == len(results)
                assert not written & {rows.row_of.get(o, -1) for o in operands}
            for result, value in zip(results if computed else (), computed, strict=True):
                table[rows.row_of[result]] = (result, value)
        for name, index in plan.outputs.items():
            outputs[name].append(read(index))
    return outputs | {name: totals[number] for name, number in plan.summed.items()}


# --- values --------------------------------------------------------------------------------------

EXTRAS = ("", "+ b", "- b + c", "+ 1", "+ x0*x1", "- x1", "+ w0*x0", "- (w1*x1 - b)", "+ w0*x9")
FRACTIONS = st.fractions(-3, 3, max_denominator=4)


@st.composite
def sums_of_products(draw: st.DrawFn) -> str:
    """Draw graphs of sums over equal values, with other operations between the products."""
    inputs = [f"x{i}" for i in range(draw(st.integers(3, 5)))]
    known, lines = list(inputs), []
    for layer in range(draw(st.integers(1, 2))):
        terms = draw(st.lists(st.sampled_from(known), min_size=3, max_size=5, unique=True))
        for j in range(draw(st.integers(3, 5))):
            text = ""
            for i, value in enumerate(draw(st.permutations(terms))):
                weights = [f"w{i}*", f"v{j}*", "2*", "(p*q)*", *[f"u{i}{j}*"] * 12, ""]
                text += f" {draw(st.sampled_from('+-'))} {draw(st.sampled_from(weights))}{value}"
            extra = draw(st.sampled_from(EXTRAS))
            shape = draw(st.sampled_from(["{}", "{}", "({})^2", "-({})", "x1*({})"]))
            lines.append(f"xy{layer}_{j} = {shape.format(f'{text} {extra}'.strip())}")
        known += [line.partition(" ")[0] for line in lines if line.startswith(f"xy{layer}")]
    outputs = [name for name in known if name not in inputs]
    chosen = draw(st.lists(st.sampled_from(outputs), min_size=1, unique=True))
    return "\n".join([*lines, f"output {', '.join(chosen)}"])


def assert_exact(tape: Tape, sums: bool, data: st.DataObject) -> None:
    scalars = {name: data.draw(FRACTIONS) for name in tape.of_kind("scalar")}
    samples = [{name: data.draw(FRACTIONS) for name in tape.of_kind("column")} for _ in range(2)]
    try:
        expected = [exact_outputs(tape, {**scalars, **sample}) for sample in samples]
    except (ZeroDivisionError, OverflowError):
        assume(False)
    plan = build_plan(tape, sums=sums)
    result = run_plan(plan, samples, scalars)
    assert {*result} == {*tape.outputs}
    for name in tape.outputs:
        values = [one[name] for one in expected]
        assert result[name] == (sum(values) if name in plan.summed else values), name


@pytest.mark.parametrize(
    "examples", [12, pytest.param(150, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_plans_compute_what_their_tapes_do(examples: int) -> None:
    steps: Counter[str] = Counter()

    @given(st.data(), sums_of_products() | texts(numbers=["1", "2", "3", "-1"]), st.booleans())
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def agree_exactly(data: st.DataObject, text: str, sums: bool) -> None:
        graph = cgprimer.parse(text)
        tape = cgprimer.tape(graph)
        steps.update(step.name for step in build_plan(tape, sums=sums).varying)
        assert_exact(tape, sums, data)
        if text.startswith("xy") and graph.parameters:  # sums of products
            assert_exact(gradient_tape(graph), True, data)

    agree_exactly()
    assert {"affine", "fma"} <= {*steps}


@pytest.mark.parametrize(("method", "options"), [("forward", {"carry": True}), ("reverse", {})])
@given(data=st.data())
@settings(max_examples=2)
def test_rows_of_deep_networks_hold_each_value_until_its_last_use(
    method: str, options: dict[str, Any], data: st.DataObject
) -> None:
    graph = network(2, 4, 4, 1, bypass=True)
    lines = [line.replace("tanh", "") for line in str(graph).splitlines()]
    tape = gradient_tape(cgprimer.parse(lines), method, **options)
    assert_exact(tape, True, data)


# --- steps ---------------------------------------------------------------------------------------

SUM = " + ".join(f"a{i}*x{i}" for i in range(1, 9))
LONG = " + ".join(f"a*x{i}" for i in range(2, 9))
OUTER = [f"xw{i}{j} = x{i}*xb{j}" for i in range(3) for j in range(4)]
PAIRS = [(f"x{i}", f"xz{j}") for i in range(6) for j in range(12)]
PAIRS += [(f"xh{i}", f"xz{j}") for i in range(6) for j in range(2)]
PER_SAMPLE = {
    "terms in any order, on either side, with any sign": (
        "xw = a*x1 - x2*b + (c*x3 + (d*x4 - (e*x5 - f*x6))) + g*x7 + h*x8"
    ),
    "constants and negated products": f"xw = 2*x1 + (-(b*x0)) + {LONG}",
    "terms that do not vary": f"xw = a*x1 + m + {LONG} - n + 2",
    "a value with two weights": f"xw = a*x1 + b*x1 + {LONG}",
    "values without a weight": f"xw = x9 + a*x1 + {LONG} - x0",
    "a sum with another use": f"xs = {SUM}; xw = xs + b*x9; xv = sin(xs); output xw, xv",
    "a product with another use": f"xp = a0*x0; xw = xp + {SUM}; xv = sin(xp); output xw, xv",
    "a product that is an output": f"xp = a0*x0; xw = xp + {SUM}; output xp, xw",
    "small sums": "xw = a*x1 + b*x2 + c; xv = x1 + x2 + x3 + x4 + x5",
    "products of columns": "xw = x1*x2 + x3*x4 + x5*x6 + x7*x8",
    "nested products": "xw = a*(b*(c*(d*(e*(f*(g*(h*x1)))))))",
    "two sums with biases": "; ".join(
        f"xz{j} = " + " + ".join(f"w{j}{i}*x{i}" for i in range(4)) + f" + b{j}" for j in range(2)
    ),
    "signs as weights": "; ".join(
        f"xz{j} = 2 + a{j}*x1 + b{j}*x2 {'-+'[j % 2]} x3" for j in range(4)
    ),
    "separate terms": "; ".join(f"xz{j} = tanh(a{j}*x1 + b{j}*x2 + x{j + 3})" for j in range(4)),
    "hoisting": "xw = sin(k*m)*xa + exp(k)",
    "multiply-adds": "xw = xa*xb + xc*xd; xv = (xa*xc)*xd + xb; xu = xd + xc*xb; output xw, xv, xu",
    "multiply-subtracts": "xw = xa*xb - xc; xv = xc - xa*xd; xu = 2*xa - 1; output xw, xv, xu",
    "products of two sums": "xp = xa*xb; xw = xp + xc; xv = xp - xd; output xw, xv",
    "a product twice in a sum": "xp = xa*xb; xw = xp + xp",
    "sine and cosine": "xb = sin(xa); xc = cos(xa); xd = cos(xe); output xb, xc, xd",
}
SUMMED = {
    "products of an output": "xb = sin(xa); xw = xb*xa; xv = xb + 1; output xw, xv",
    "products with another use": "xp = xa*xb; xw = sin(xp); xv = xp + xc; output xp, xw, xv",
    "equal values": "xw = xa*xb; xv = xb*xa; xu = xa; xt = xu; xs = k; output xw, xv, xu, xt, xs",
    "one value of two names": (
        "xb = sin(xa)*cos(xa) + exp(k)*xa^4; xw = xb + k; xv = xb; output xw, xv"
    ),
    "squares": "xw = xa*xa; xv = xb*xb; xu = xc*xc; xt = xd*xd",
    "overlapping pairs": "xw = xa*xb; xv = xb*xc; xu = xc*xa; xt = xd*xe",
    "disjoint pairs": "xw = xa*xb; xv = xc*xd; xu = xe*xf; xt = xg*xh",
    "outer product": "; ".join(OUTER),
    "a gap": "; ".join(line for line in OUTER if not line.startswith("xw12")),
    "an element with another use": "; ".join([*OUTER, "xq = sin(xw12)"]),
    "a side that two products share": "; ".join(
        f"xw{n} = {a}*{b}" for n, (a, b) in enumerate(PAIRS)
    ),
}


@pytest.mark.parametrize("name", [*PER_SAMPLE, *SUMMED, "a network", "a network with a bypass"])
def test_plans_are_approved(name: str) -> None:
    sums = name not in PER_SAMPLE
    if name.startswith("a network"):  # the layers and their reverse pass are matrices
        tape = gradient_tape(network(2, 4, 4, 3, bypass="bypass" in name))
    else:
        tape = cgprimer.tape(cgprimer.parse((SUMMED if sums else PER_SAMPLE)[name]))
    passes = format_passes(tape, sums=sums)
    approved("\n\n".join(p for p in passes.split("\n\n")[1:] if not p.endswith("\nnone")))
    assert "..." in format_passes(tape, sums=sums, max_lines=1)
    approved(code_text(tape, "cuda-interpreter", sums=sums).partition("\ndef ")[0])


def test_constant_factors_leave_a_sum_only_within_bounds() -> None:
    tape = optimize(cgprimer.tape(cgprimer.parse("xw = (32*xa)*(32*xb)*xc")))
    assert abs(extract_constant_factors(tape)[1]["xw"]) <= 64


# --- the work grows with the tape ----------------------------------------------------------------


def test_long_tapes_need_no_recursion_and_few_rows() -> None:
    terms = 3_000

    def planned(text: str) -> Plan:
        return build_plan(cgprimer.tape(cgprimer.parse(text)), sums=False)

    plan = planned("xw = " + " + ".join(f"w{i}*x{i}" for i in range(terms)))
    (group,) = plan.groups.values()
    assert isinstance(group, AffineGroup)
    assert (len(group.outputs), len(group.inputs)) == (1, terms)
    plan = planned("xw = " + "".join(f"{'+-'[i % 2]} x{i}*xb{i % 7}" for i in range(terms)))
    assert len(plan.varying) == terms
    assert allocate_rows(plan).count <= 2
    plan = planned("\n".join(f"x{i} = sin(x{i - 1})" for i in range(1, terms)))
    assert allocate_rows(plan).count == 1


def test_the_work_of_planning_is_proportional_to_the_tape() -> None:
    """Count calls and lines of Python, which do not depend on the load of the machine."""

    def count_events(width: int) -> tuple[int, int]:
        tape, count = gradient_tape(network(width, width, width, 1)), 0

        def count_one(frame: Any, event: str, argument: Any) -> Any:
            nonlocal count
            count += 1
            return count_one

        before = sys.gettrace()
        sys.settrace(count_one)
        try:
            allocate_rows(build_plan(tape, sums=True))
        finally:
            sys.settrace(before)
        return len(tape), count

    small, few = count_events(6)
    large, many = count_events(18)
    assert large > 5 * small
    assert many / large < 1.1 * few / small
