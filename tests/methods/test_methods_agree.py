"""On random graphs all methods agree with the reference derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.errors import ExpressionSwellError, PathLimitError
from tests.approval import approved
from tests.methods.graph_strategies import Case, cases, graphs
from tests.methods.slopes import evaluate_shifted, reference_gradient, reference_hessian

# Exact methods differ in the order of additions and multiplications only: allow a few hundred
# rounding errors of the largest term (see graph_strategies.magnitude).
EXACT = 1e-10
DIFFERENCES = 1e-5

CENTRAL = {"scheme": "central"}
METHODS = (
    ("reverse", {}),
    ("reverse", {"simplify": False}),
    ("forward", {}),
    ("forward", {"carry": True}),
    ("path-sum", {"limit": 500}),
    ("finite-difference", CENTRAL),
    ("finite-difference", {"scheme": "complex-step"}),
    ("symbolic", {"share": True, "limit": 60}),
    ("symbolic", {"share": False, "limit": 60}),
)

quick = settings(derandomize=True, deadline=None, max_examples=20)


def assert_near(case: Case, result: dict, expected: dict, tolerance: float, what: str) -> None:
    assert list(result) == list(expected)
    for name, value in expected.items():
        error = np.max(np.abs(np.asarray(result[name]) - value))
        assert error <= tolerance * case.scale, f"d/d{name} by {what}: {result[name]} for {value}"


@quick
@given(case=cases(), target=st.integers(0, 7))
def test_gradients_match_difference_quotients(case, target):
    """Differentiate any vertex with respect to all variables and parameters."""
    of = list(case.graph.definitions)[-1 - target % len(case.graph.definitions)]
    value = float(evaluate_shifted(case.graph, case.at, {}, of))
    assert abs(case.graph.evaluate(case.at)[of] - value) <= 1e-12 * case.scale
    expected = reference_gradient(case.graph, case.at, case.names, of)
    # The case's scale covers adjoints of the output only; its square bounds all others.
    scale = case.scale if of in case.graph.outputs else case.scale**2
    for method, options in METHODS:
        try:
            result = cgprimer.gradient(
                case.graph, case.at, of=of, wrt=case.names, method=method, **options
            )
        except (PathLimitError, ExpressionSwellError):
            continue
        tolerance = DIFFERENCES if options == CENTRAL else EXACT
        assert_near(replace(case, scale=scale), result, expected, tolerance, f"{method} {options}")


@settings(quick, max_examples=10)
@given(case=cases(most=4))
def test_hessians_match_the_reference_on_random_graphs(case):
    names = (*case.graph.inputs, *case.graph.parameters)
    expected = reference_hessian(case.graph, case.at, names)
    largest = max(abs(value) for row in expected.values() for value in row.values())
    near = replace(case, scale=max(case.scale, largest))
    for method in (
        "reverse-over-reverse", "forward-over-reverse", "reverse-over-forward",
        "forward-over-forward", "path-sum-over-reverse", "reverse-over-path-sum", "symbolic",
    ):  # fmt: skip
        try:
            result = cgprimer.hessian(case.graph, case.at, wrt=names, method=method)
        except (PathLimitError, ExpressionSwellError):
            continue
        for name in names:
            assert_near(near, result[name], expected[name], EXACT, f"d{name} by {method}")


@quick
@given(graph=graphs())
def test_pass_and_operation_counts(graph):
    """Check Baur and Strassen's bound: a gradient costs a small multiple of the value for any n.

    The multiple depends on what counts as an operation. Here a function such as asinh or a
    division counts one and its partial several, so the bound is taken per instruction: the
    partial's own operations, a multiplication and an addition for each operand.
    """
    tape = cgprimer.tape(graph)
    wrt = (*graph.inputs, *graph.parameters)

    def passes(method: str, **options) -> int:
        return cgprimer.differentiate(tape, wrt=wrt, method=method, **options).pass_count

    assert passes("finite-difference") == 2 * len(wrt)
    assert passes("finite-difference", scheme="forward") == len(wrt) + 1
    assert passes("finite-difference", scheme="complex-step") == len(wrt)
    assert passes("forward") == len(wrt)
    assert passes("forward", carry=True) == passes("reverse") == 1
    program = cgprimer.differentiate(tape, wrt=wrt, method="reverse")
    arithmetic = {"add", "sub", "mul", "neg", "sin", "cos", "exp", "copy", "softplus"}
    costly = sum(i.primitive not in arithmetic for i in tape.instructions)
    assert program.operation_count <= 4 * len(tape) + 4 * costly + 4


@pytest.mark.parametrize(
    ("method", "options"),
    [*((m, {}) for m in cgprimer.methods()), ("forward", {"carry": True})],
    ids=str,
)
def test_printed_derivative_program(method: str, options: dict[str, bool]) -> None:
    graph = cgprimer.parse("xb = sin(k*xa)/xa; xc = xb^2 + xb*xa; xw = exp(xc)/(m - xb)")
    tape = cgprimer.tape(graph)
    printed = str(cgprimer.differentiate(tape, wrt=["k", "xa"], method=method, **options))
    if method == "symbolic":  # versions of sympy differ in the order of terms
        assert "^-1" not in printed, "a factor of power -1 is a division"
        tape = cgprimer.tape(cgprimer.parse("xw = k*xa/xb"))
        assert "= xa/xb\n" in str(cgprimer.differentiate(tape, wrt=["k"], method=method))
    else:
        approved(printed)
