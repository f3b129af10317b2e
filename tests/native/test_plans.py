"""Execution plans: exact algebra, the expected steps, and rows that are reused in time.

Plans are run here one step and one sample at a time in fractions, without rounding.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.plans.optimization import extract_constant_factors, optimize
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import allocate_rows
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_printing import labels
from tests.native.engine_agreement import gradient_tape, network
from tests.tape.tape_running import EXACT, exact_outputs, texts

Values = Mapping[str, Fraction]
FUSED = {"fma": "{0}*{1} + {2}", "fms": "{0}*{1} - {2}", "fnma": "{2} - {0}*{1}"}


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
            values[target] = apply(name, [values[o] for o in operands])
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
            elif name in FUSED:
                a, b, c = (read(o) for o in operands)
                product = a * b
                computed = [{"fma": product + c, "fms": product - c, "fnma": c - product}[name]]
            else:
                computed = [apply(name, [read(o) for o in operands])]
            if name == "affine":  # results are written while operands are still read
                written = {rows.row_of[r] for r in results}
                assert len(written) == len(results)
                assert not written & {rows.row_of.get(o, -1) for o in operands}
            for result, value in zip(results if computed else (), computed, strict=True):
                table[rows.row_of[result]] = (result, value)
        for name, index in plan.outputs.items():
            outputs[name].append(read(index))
    return outputs | {name: totals[number] for name, number in plan.summed.items()}


def apply(name: str, operands: Sequence[Fraction]) -> Fraction:
    if name == "pow":
        assert operands[1].denominator == 1
        return operands[0] ** int(operands[1])
    return EXACT[name](*operands)


def planned(text: str, *, sums: bool = False) -> Plan:
    return build_plan(cgprimer.tape(cgprimer.parse(text)), sums=sums)


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan.varying]


def groups(plan: Plan, kind: type) -> list[Any]:
    return [group for group in plan.groups.values() if isinstance(group, kind)]


def labels_of(plan: Plan, values: Sequence[int]) -> list[str]:
    """Return names of values, numbers of constants, "none" for -1, and "new" for other values."""
    known, leaves = labels(plan.tape), plan.tape.leaves
    return [
        "none" if v < 0
        else f"{leaves[v].value:g}" if v < len(leaves) and leaves[v].kind == "constant"
        else known[v] if v < plan.tape.size
        else "new"
        for v in values
    ]  # fmt: skip


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
    "examples", [25, pytest.param(150, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_plans_compute_what_their_tapes_do(examples: int) -> None:
    steps: Counter[str] = Counter()

    @given(st.data(), sums_of_products() | texts(numbers=["1", "2", "3", "-1"]), st.booleans())
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def agree_exactly(data: st.DataObject, text: str, sums: bool) -> None:
        graph = cgprimer.parse(text)
        tape = cgprimer.tape(graph)
        steps.update(names(build_plan(tape, sums=sums)))
        assert_exact(tape, sums, data)
        if text.startswith("xy") and graph.parameters:  # sums of products
            assert_exact(gradient_tape(graph), True, data)

    agree_exactly()
    assert {"affine", "fma"} <= {*steps}


@pytest.mark.parametrize("bypass", [True, False])
@pytest.mark.parametrize("method", ["forward", "reverse"])
@given(data=st.data())
@settings(max_examples=2)
def test_rows_of_deep_networks_hold_each_value_until_its_last_use(
    method: str, bypass: bool, data: st.DataObject
) -> None:
    options = {"carry": True} if method == "forward" else {}
    graph = network(2, 4, 4, 1, bypass=bypass)
    lines = [line.replace("tanh", "") for line in str(graph).splitlines()]
    tape = gradient_tape(cgprimer.parse(lines), method, **options)
    assert_exact(tape, True, data)


# --- affine groups -------------------------------------------------------------------------------

LONG = " + ".join(f"a*x{i}" for i in range(2, 9))


@pytest.mark.parametrize(
    ("text", "weights", "bias", "others"),
    [
        # Terms in any order, on either side, with any sign
        (
            "a*x1 - x2*b + (c*x3 + (d*x4 - (e*x5 - f*x6))) + g*x7 + h*x8",
            "a new c d new f g h", "none", [],
        ),
        # Constants and negated products
        (f"2*x1 + (-(b*x0)) + {LONG}", "2 a a a a a a a new", "none", []),
        # Terms that do not vary are summed once
        (f"a*x1 + m + {LONG} - n + 2", "a a a a a a a a", "new", []),
        # A value with two weights: one of them is added
        (f"a*x1 + b*x1 + {LONG}", "a a a a a a a a", "none", ["fma"]),
        # A value without weight does not widen a single sum
        (f"x9 + a*x1 + {LONG} - x0", "a a a a a a a a", "none", ["add", "sub"]),
    ],
)  # fmt: skip
def test_sums_of_weighted_values_become_an_affine_step(
    text: str, weights: str, bias: str, others: list[str]
) -> None:
    plan = planned(f"xw = {text}")
    (group,) = groups(plan, AffineGroup)
    row = dict(zip(labels_of(plan, group.inputs), labels_of(plan, group.weights[0]), strict=True))
    order = sorted(row, key=lambda name: (name == "x0", name))
    assert [row[name] for name in order] == weights.split()
    assert labels_of(plan, group.biases) == [bias]
    assert sorted(names(plan)) == sorted(["affine", *others])


def test_sums_over_equal_values_become_one_matrix() -> None:
    layer = [f"xz{j} = " + " + ".join(f"w{j}{i}*x{i}" for i in range(4)) for j in range(2)]
    plan = planned("\n".join(f"{line} + b{j}" for j, line in enumerate(layer)))
    (group,) = groups(plan, AffineGroup)
    assert labels_of(plan, group.inputs) == ["x0", "x1", "x2", "x3"]
    assert labels_of(plan, group.outputs) == ["xz0", "xz1"]
    assert labels_of(plan, group.weights[1]) == ["w10", "w11", "w12", "w13"]
    assert labels_of(plan, group.biases) == ["b0", "b1"]
    assert (names(plan), plan.uniform, plan.size) == (["affine"], (), plan.tape.size)
    plan = planned("\n".join(f"xz{j} = 2 + a{j}*x1 + b{j}*x2 {'-+'[j % 2]} x3" for j in range(4)))
    (group,) = groups(plan, AffineGroup)
    assert labels_of(plan, [row[2] for row in group.weights]) == ["new", "1", "new", "1"]
    assert ([s.name for s in plan.uniform], names(plan)) == (["neg"], ["affine"])
    plan = planned("\n".join(f"xz{j} = tanh(a{j}*x1 + b{j}*x2 + x{j + 3})" for j in range(4)))
    (group,) = groups(plan, AffineGroup)
    assert labels_of(plan, group.inputs) == ["x1", "x2"]
    assert Counter(names(plan)) == {"affine": 1, "add": 4, "tanh": 4}


@pytest.mark.parametrize(
    ("text", "inputs", "steps"),
    [
        ("xs = {}; xw = xs + b*x9; xv = sin(xs); output xw, xv", 8, "affine fma sin"),
        ("xp = a0*x0; xw = xp + {}; xv = sin(xp); output xw, xv", 8, "add affine mul sin"),
        ("xp = a0*x0; xw = xp + {}; output xp, xw", 8, "add affine mul"),
        ("xw = a*x1 + b*x2 + c", 0, "add fma mul"),  # too small
        ("xw = x1*x2 + x3*x4 + x5*x6 + x7*x8", 0, "fma fma fma mul"),
        ("xw = a*(b*(c*(d*(e*(f*(g*(h*x1)))))))", 0, "mul mul mul mul mul mul mul mul"),
        ("xw = x1 + x2 + x3 + x4 + x5", 0, "add add add add"),
    ],
)
def test_values_with_other_uses_stay_separate(text: str, inputs: int, steps: str) -> None:
    plan = planned(text.format(" + ".join(f"a{i}*x{i}" for i in range(1, 9))))
    assert [len(group.inputs) for group in groups(plan, AffineGroup)] == [inputs] * bool(inputs)
    assert sorted(names(plan)) in (steps.split(), sorted([*steps.split()[1:], "fma"]))


def shapes(plan: Plan, kind: type) -> list[tuple[int, int]]:
    if kind is AffineGroup:
        return [(len(g.outputs), len(g.inputs)) for g in groups(plan, AffineGroup)]
    return [(len(g.left), len(g.right)) for g in groups(plan, OuterProduct)]


@pytest.mark.parametrize("sizes", [(3, 5, 2), (2, 4, 4, 4, 3), (4, 8, 8, 1)])
@pytest.mark.parametrize("bypass", [False, True])
def test_layers_and_their_reverse_pass_are_matrices(sizes: tuple[int, ...], bypass: bool) -> None:
    plan = build_plan(gradient_tape(network(*sizes, bypass=bypass)), sums=True)
    forward = [(b, a) for a, b in pairwise(sizes) if a * b >= 8]
    # The adjoints of a single output are products.
    backward = [(a, b) for a, b in pairwise(sizes[1:]) if a * b >= 8 and b > 1]
    assert Counter(shapes(plan, AffineGroup)) == Counter([*forward, *backward])
    weights = sorted(sorted({a, b}) for a, b in pairwise(sizes))
    assert sorted(sorted({*shape}) for shape in shapes(plan, OuterProduct)) == weights
    rows = allocate_rows(plan).row_of
    for group in groups(plan, AffineGroup):  # the results of a matrix are in adjacent rows
        places = [rows[v] for v in group.outputs]
        assert places == list(range(places[0], places[0] + len(places)))


# --- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sums", "steps"),
    [
        ("xw = sin(k*m)*xa + exp(k)", False, "fma"),
        ("xw = xa*xb + xc*xd", False, "mul fma"),
        ("xp = xa*xb; xw = xp + xc; output xp, xw", False, "mul add"),
        ("xp = xa*xb; xw = xp + xc; xv = xp - xd; output xw, xv", False, "mul add sub"),
        ("xp = xa*xb; xw = xp + xp", False, "mul add"),
        ("xw = (xa*xb)*xc + xd", False, "mul fma"),
        ("xb = sin(xa); xc = cos(xa); xw = xb*xc; output xb, xc", False, "sincos"),
        ("xb = sin(xa); xc = cos(xd); output xb, xc", False, "sin cos"),
        ("xb = sin(xa); xw = xb*xa; xv = xb + 1; output xw, xv", True, "sin dot add sum"),
        ("xw = xa*xb; xv = sin(xw); output xw, xv", True, "mul sum sin sum"),
        ("xp = xa*xb; xw = xp + xc; output xp, xw", True, "mul sum add sum"),
        (
            "xw = sin(xa); xv = exp(xw); xu = xv*xw; xt = xa*xa; output xw, xu, xt",
            True,
            "dot sin sum exp dot",
        ),
        ("xw = xa*xa; xv = xb*xb; xu = xc*xc; xt = xd*xd", True, "dot dot dot dot"),
        ("xw = xa*xb; xv = xb*xc; xu = xc*xa; xt = xd*xe", True, "dot dot dot dot"),
        ("xw = xa*xb; xv = xc*xd; xu = xe*xf; xt = xg*xh", True, "dot dot dot dot"),
    ],
)
def test_steps_of_small_tapes(text: str, sums: bool, steps: str) -> None:
    assert names(planned(text, sums=sums)) == steps.split()


@pytest.mark.parametrize(
    ("text", "name", "operands"),
    [
        ("xa*xb + xc", "fma", "xa xb xc"),
        ("xc + xa*xb", "fma", "xa xb xc"),
        ("xa*xb - xc", "fms", "xa xb xc"),
        ("xc - xa*xb", "fnma", "xa xb xc"),
        ("2*xa - 1", "fms", "2 xa 1"),
    ],
)
def test_a_product_in_a_sum_becomes_a_multiply_add(text: str, name: str, operands: str) -> None:
    plan = planned(f"xw = {text}")
    assert names(plan) == [name]
    assert labels_of(plan, plan.varying[0].operands) == operands.split()


def test_equal_values_share_an_accumulator() -> None:
    text = "xw = xa*xb; xv = xb*xa; xu = xa*xb; xt = xa; xs = k; output xw, xv, xu, xt, xs"
    plan = planned(text, sums=True)
    assert names(plan) == ["sum", "dot"]
    assert plan.summed == {"xw": 0, "xv": 0, "xu": 0, "xt": 1}
    assert plan.outputs == {"xs": plan.tape.names["k"]}


def test_products_of_two_lists_are_an_outer_product_with_gaps() -> None:
    lines = [f"xw{i}{j} = x{i}*xb{j}" for i in range(3) for j in range(4)]
    missing = [line for line in lines if not line.startswith("xw12")]
    for text, gaps, others in (
        (lines, 0, []),
        (missing, 1, []),
        ([*lines, "xq = sin(xw12)"], 1, ["mul", "sin", "sum"]),
    ):
        plan = planned("\n".join(text), sums=True)
        (group,) = groups(plan, OuterProduct)
        assert sorted(labels_of(plan, group.left)) == ["x0", "x1", "x2"]
        assert sorted(labels_of(plan, group.right)) == ["xb0", "xb1", "xb2", "xb3"]
        assert sum(row.count(-1) for row in group.accumulators) == gaps
        assert sorted(names(plan)) == sorted(["outer", *others])
    # x with both layers, h with the second only: two products share a side.
    pairs = [(f"x{i}", f"xz{j}") for i in range(6) for j in range(12)]
    pairs += [(f"xh{i}", f"xz{j}") for i in range(6) for j in range(2)]
    plan = planned("\n".join(f"xw{n} = {a}*{b}" for n, (a, b) in enumerate(pairs)), sums=True)
    assert names(plan) == ["outer", "outer"]
    assert not any(-1 in row for g in groups(plan, OuterProduct) for row in g.accumulators)


def test_constant_factors_leave_a_sum_only_within_bounds() -> None:
    tape = optimize(cgprimer.tape(cgprimer.parse("xw = (32*xa)*(32*xb)*xc")))
    assert abs(extract_constant_factors(tape)[1]["xw"]) <= 64


# --- the work grows with the tape ----------------------------------------------------------------


def test_long_tapes_need_no_recursion_and_few_rows() -> None:
    terms = 5_000
    plan = planned("xw = " + " + ".join(f"w{i}*x{i}" for i in range(terms)))
    assert shapes(plan, AffineGroup) == [(1, terms)]
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
