"""Values: against plain Python arithmetic, with broadcasting, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

import cgprimer
from cgprimer.errors import MissingValueError, UsageError
from tests.approval import refused
from tests.graph.graph_texts import Plan, plans

LECTURE = "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3"
TRUTH = {"ab": 1, "bc": 2, "cd": 3, "ac": 4}


@given(plans())
@settings(max_examples=25, deadline=None)
def test_values_are_those_of_python_arithmetic(plan: Plan) -> None:
    graph = cgprimer.parse(plan.text)
    given_values = {n: v for n, v in plan.values.items() if n in (*graph.inputs, *graph.parameters)}
    values = graph.evaluate(given_values)
    assert tuple(values) == graph.variables
    for name, expected in plan.computed().items():
        assert values[name] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("shape", [(1,), (4,), (0,), (3, 2), (1, 1), (0, 3), (2, 1, 3)])
def test_every_variable_has_the_samples_shape(shape: tuple[int, ...]) -> None:
    graph = cgprimer.parse(f"{LECTURE}; xconst = 7; xpar = ab")
    xa = np.linspace(-1.0, 1.0, math.prod(shape)).reshape(shape)
    values = graph.evaluate({"xa": xa, **TRUTH})
    assert {v.shape for v in values.values()} == {shape}
    assert {v.dtype for v in values.values()} == {np.dtype(float)}
    np.testing.assert_allclose(values["xw"], 3 * xa**2 + (3 * xa**2 + 4 * xa) ** 3, rtol=1e-12)
    assert (values["xconst"] == 7.0).all()


def test_any_real_scalar_gives_floats() -> None:
    for number in (2, 2.0, True, np.float32(2), np.int64(2), np.array(2.0), np.bool_(True)):
        values = cgprimer.parse("xw = 3*xa").evaluate({"xa": number})
        assert values["xw"] == 3 * float(number)
        assert type(values["xw"]) is type(values["xa"]) is float


def test_the_callers_arrays_stay_as_they_are() -> None:
    xa = np.arange(3.0)
    xa.flags.writeable = False
    values = cgprimer.parse("xb = xa; xw = xb + 1").evaluate({"xa": xa})
    values["xb"] += 1  # what comes back belongs to the caller
    values["xa"] += 1
    assert xa.tolist() == [0.0, 1.0, 2.0]
    assert values["xw"].tolist() == [1.0, 2.0, 3.0]


def test_declared_values_are_the_default_and_at_goes_before_them() -> None:
    graph = cgprimer.parse("input xa = 0.5; parameter k = 3; xw = k*xa")
    assert graph.evaluate()["xw"] == 1.5
    assert graph.evaluate({"xa": 2})["xw"] == 6.0
    assert graph.evaluate({"k": 1})["xw"] == 0.5
    assert graph.values == {"xa": 0.5, "k": 3.0}


def test_a_missing_value_is_named_with_the_mistyped_name_that_has_one() -> None:
    graph = cgprimer.parse("input xa = 1; parameter bb = 2; xw = ab*xa")
    with refused(MissingValueError, "'bb'"):
        graph.evaluate()
    assert graph.point(needed=["xa"]) == {"xa": 1.0, "bb": 2.0}


@pytest.mark.parametrize(
    ("at", "contains"),
    [
        ({"abb": 1}, "'abb' ... 'ab'"),
        ({"qqqq": 1}, "'qqqq'"),
        ({"xx": 1}, "'xx'"),
        ({"xa": "0.5"}, "'xa'"),
        ({"xa": None}, "'xa'"),
        ({"xa": 1j}, "'xa'"),
        ({"xa": [1, [2, 3]]}, "'xa'"),
        ({"xa": {"a": 1}}, "'xa'"),
    ],
)
def test_a_point_that_does_not_fit_is_a_usage_error(at, contains: str) -> None:
    with refused(UsageError, contains):
        cgprimer.parse(LECTURE).evaluate({"xa": 0.5, **TRUTH, **at})
