"""Plans compute what their tapes do, and the work of making them grows with the tape."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.plans.optimization import extract_constant_factors, optimize
from cgprimer.backends.plans.plan import FUSED, AffineGroup, Plan
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import allocate_rows
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.tape import Tape
from tests.methods.graph_strategies import Case, cases
from tests.native.plan_running import in_fractions, loss_program, network, run_plan
from tests.tape.tape_running import all_values, exact_outputs, outputs, texts

PATIENT = [HealthCheck.filter_too_much, HealthCheck.too_slow]


def lowered(text: str) -> Tape:
    return lower(cgprimer.parse(text))


def names(found: Plan) -> list[str]:
    return [step.name for step in found.varying]


# --- values are kept -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["forward", "reverse"])
@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize("bypass", [True, False])
def test_networks_compute_what_their_tapes_do(method: str, sums: bool, bypass: bool) -> None:
    graph = network(3, 4, 4, 2, bypass=bypass)
    options = {"carry": True} if method == "forward" else {}
    tape = loss_program(graph, method, **options)
    rng = np.random.default_rng(5)
    scalars = {n: rng.uniform(-1, 1) for n in tape.of_kind("scalar")}
    samples = [{n: rng.uniform(-1, 1) for n in tape.of_kind("column")} for _ in range(3)]
    found = build_plan(tape, sums=sums)
    got = run_plan(found, samples, scalars, sums=sums, rows=allocate_rows(found))
    each = [outputs(tape, {**scalars, **sample}) for sample in samples]
    for name in tape.outputs:
        expected = [one[name] for one in each]
        np.testing.assert_allclose(got[name], sum(expected) if sums else expected, rtol=1e-12)


EXTRAS = ("", "+ b", "- b + c", "+ 1", "+ x0*x1", "- x1", "+ w0*x0", "- (w1*x1 - b)", "+ w0*x9")
FRACTIONS = st.fractions(-3, 3, max_denominator=4)


@st.composite
def sums_of_products(draw: st.DrawFn) -> str:
    """Graphs full of sums over the same values, with all that may stand between the products."""
    inputs = [f"x{i}" for i in range(draw(st.integers(3, 5)))]
    known = list(inputs)
    lines = []
    for layer in range(draw(st.integers(1, 2))):
        over = draw(st.lists(st.sampled_from(known), min_size=3, max_size=5, unique=True))
        made = []
        for j in range(draw(st.integers(3, 5))):
            text = ""
            for i, value in enumerate(draw(st.permutations(over))):
                weight = draw(
                    st.sampled_from([f"w{i}*", f"v{j}*", "2*", "(p*q)*", *[f"u{i}{j}*"] * 12, ""])
                )
                text += f" {draw(st.sampled_from('+-'))} {weight}{value}"
            extra = draw(st.sampled_from(EXTRAS))
            shape = draw(st.sampled_from(["{}", "{}", "({})^2", "-({})", "x1*({})"]))
            made.append(f"xy{layer}_{j}")
            lines.append(f"{made[-1]} = {shape.format(f'{text} {extra}'.strip())}")
        known.extend(made)
    names = [n for n in known if n not in inputs]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return "\n".join([*lines, f"output {', '.join(chosen)}"])


def agree_exactly(tape: Tape, sums: bool, data: st.DataObject) -> Plan:
    scalars = {n: data.draw(FRACTIONS) for n in tape.of_kind("scalar")}
    samples = [{n: data.draw(FRACTIONS) for n in tape.of_kind("column")} for _ in range(2)]
    try:
        each = [exact_outputs(tape, {**scalars, **sample}) for sample in samples]
    except ZeroDivisionError:
        assume(False)
    found = build_plan(tape, sums=sums)
    for places in (None, allocate_rows(found)):
        got = run_plan(
            found, samples, scalars, sums=sums, apply=in_fractions, number=Fraction, rows=places
        )
        for name in tape.outputs:
            shares = [one[name] for one in each]
            assert got[name] == (sum(shares) if sums else shares), name
    return found


@pytest.mark.slow
@given(data=st.data(), text=sums_of_products(), sums=st.booleans())
@settings(max_examples=60, suppress_health_check=PATIENT)
def test_sums_of_products_are_exact_algebra(data, text: str, sums: bool) -> None:
    agree_exactly(lowered(text), sums, data)


@given(data=st.data(), text=sums_of_products())
@settings(max_examples=40, suppress_health_check=PATIENT)
def test_so_are_their_gradients(data, text: str) -> None:
    graph = cgprimer.parse(text)
    assume(graph.parameters)
    agree_exactly(loss_program(graph), True, data)


def test_the_strategy_makes_groups() -> None:
    seen: Counter[str] = Counter()

    @given(text=sums_of_products())
    @settings(max_examples=60, database=None, suppress_health_check=PATIENT)
    def look(text: str) -> None:
        seen.update(step for step in names(build_plan(lowered(text), sums=True)) if step in FUSED)

    look()
    assert seen["affine"] >= 10
    assert seen["fma"] >= 10


@pytest.mark.slow
@given(data=st.data(), text=texts(numbers=["1", "2", "3", "-1"]), sums=st.booleans())
@settings(max_examples=60, suppress_health_check=PATIENT)
def test_plans_are_exact_algebra(data, text: str, sums: bool) -> None:
    tape = lowered(text)
    assume(all(np.isfinite(leaf.value) for leaf in tape.leaves))
    agree_exactly(tape, sums, data)


@given(case=cases(), method=st.sampled_from(["forward", "reverse", "primal"]), sums=st.booleans())
@settings(max_examples=60, suppress_health_check=PATIENT)
def test_plans_of_random_graphs_compute_what_their_tapes_do(
    case: Case, method: str, sums: bool
) -> None:
    graph = case.graph
    tape = cgprimer.tape(graph)
    if method != "primal":
        tape = cgprimer.differentiate(tape, wrt=case.names, method=method).tape
    given_values = {**dict.fromkeys(tape.of_kind("scalar"), 1.0), **case.at}
    scale = max(case.scale, *(abs(v) for v in all_values(tape, given_values) if np.isfinite(v)))
    assume(scale < 1e6)
    expected = outputs(tape, given_values)
    found = build_plan(tape, sums=sums)
    got = run_plan(found, [given_values], given_values, sums=sums, rows=allocate_rows(found))
    for name, value in expected.items():
        np.testing.assert_allclose(
            got[name] if sums else got[name][0], value, rtol=1e-12, atol=1e-12 * scale
        )


# --- the work grows with the tape ----------------------------------------------------------------


def test_a_plan_is_the_same_every_time() -> None:
    tape = loss_program(network(4, 8, 8, 1))
    one, two = build_plan(tape, sums=True), build_plan(tape, sums=True)
    assert (one.uniform, one.varying, one.groups) == (two.uniform, two.varying, two.groups)
    assert allocate_rows(one).row_of == allocate_rows(two).row_of


@pytest.mark.parametrize("terms", [20_000])
def test_a_long_sum_is_one_group_and_no_recursion(terms: int) -> None:
    text = " + ".join(f"w{i}*x{i}" for i in range(terms))
    found = build_plan(lowered(f"xw = {text}"), sums=False)
    assert [len(g.inputs) for g in found.groups.values() if isinstance(g, AffineGroup)] == [terms]
    alternating = "".join(f"{'+-'[i % 2]} x{i}*xb{i % 7}" for i in range(terms))
    fused = build_plan(lowered(f"xw = {alternating}"), sums=False)
    assert Counter(names(fused)).total() == terms
    assert allocate_rows(fused).count <= 2


def test_a_deep_chain_takes_one_row() -> None:
    text = "\n".join(f"x{i} = sin(x{i - 1})" for i in range(1, 20_001))
    found = build_plan(lowered(text), sums=False)
    assert allocate_rows(found).count == 1


def test_the_number_of_steps_of_python_grows_with_the_tape() -> None:
    """Calls and lines are counted, which no busy machine disturbs."""

    def events(width: int) -> tuple[int, int]:
        tape = loss_program(network(width, width, width, 1))
        count = 0

        def count_one(frame, event, argument):
            nonlocal count
            count += 1
            return count_one

        before = sys.gettrace()
        sys.settrace(count_one)
        try:
            found = build_plan(tape, sums=True)
            allocate_rows(found)
        finally:
            sys.settrace(before)
        return len(tape), count

    small, few = events(6)
    large, many = events(24)
    assert large > 10 * small
    assert many / large < 1.1 * few / small


def test_factors_within_bounds_leave_and_others_stay() -> None:
    tape = optimize(cgprimer.tape(cgprimer.parse("xw = (32*xa)*(32*xb)*xc")))
    _, factors = extract_constant_factors(tape)
    assert abs(factors["xw"]) <= 64
