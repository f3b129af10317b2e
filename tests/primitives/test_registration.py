"""Registered primitives: derivatives, straight-through estimators and errors."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import find_primitive, primitives
from cgprimer.core.operations.primitive_registry import ALIASES
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.errors import SourceError, UsageError
from tests.approval import refused

TABLE_METHODS = ("forward", "reverse", "path-sum", "symbolic")


@pytest.fixture
def registered():
    """Register primitives and unregister them after the test."""
    names = []

    def register(name, *args, **kwargs):
        row = register_primitive(name, *args, **kwargs)
        names.append(name)
        return row

    yield register
    for name in names:
        unregister_primitive(name)


@pytest.mark.parametrize("method", [m for m in cgprimer.methods() if m != "symbolic"])
def test_registered_primitive_works_in_all_methods(registered, method):
    registered(
        "swish", lambda a: a / (1 + np.exp(-a)),
        partials="sigmoid(a) + a*sigmoid(a)*(1 - sigmoid(a))",
    )  # fmt: skip
    graph = cgprimer.parse("xh = swish(w*xa); xw = xh^2 + w")
    at = {"w": 0.7, "xa": np.array([-1.5, 0.0, 2.0])}
    u = at["w"] * at["xa"]
    s = 1 / (1 + np.exp(-u))
    expected = 2 * u * s * (s + u * s * (1 - s)) * at["xa"] + 1
    tolerance = 1e-8 if method == "finite-difference" else 1e-13
    result = cgprimer.gradient(graph, at, method=method)["w"]
    np.testing.assert_allclose(result, expected, rtol=tolerance)


def test_alias_is_equivalent_to_its_function():
    for names in ALIASES.items():
        graph, same = (cgprimer.parse(f"xw = {name}(xa)^2") for name in names)
        assert str(cgprimer.tape(graph)) == str(cgprimer.tape(same)), names


def test_registered_primitive_overrides_an_alias(registered):
    registered("ln", lambda a: 2 * a, partials="2")
    assert cgprimer.gradient(cgprimer.parse("xw = ln(k)"), {"k": 3.0}) == {"k": 2.0}


@pytest.mark.parametrize("method", TABLE_METHODS)
def test_case_a7_straight_through_estimator(registered, method):
    """The forward pass truncates to an unsigned byte; the derivative is 1."""
    registered(
        "byte", lambda a: np.trunc(np.clip(a, 0, 255)), partials="1", edges="straight through"
    )
    graph = cgprimer.parse("xq = byte(100*w); xw = (xq - 30)^2")
    at = {"w": np.array([0.257, 0.3, 3.0])}
    assert graph.evaluate(at)["xq"].tolist() == [25.0, 30.0, 255.0]
    result = cgprimer.gradient(graph, at, method=method)["w"]
    np.testing.assert_array_equal(result, 100 * 2 * np.array([-5.0, 0.0, 225.0]))


def test_partials_reject_unknown_names():
    for partials, name in (("cos(x)", "'x'"), ("b", "'b'"), (("1", "c"), "'c'")):
        with refused(UsageError, name):
            register_primitive("mine", np.sin, partials=partials)
    assert "mine" not in {row.name for row in primitives()}


def test_registering_an_existing_name_raises():
    for name in ("sin", "add", "pow", "log", "log_base", "stop_gradient"):
        row = find_primitive(name)
        with pytest.raises(UsageError, match="already"):
            register_primitive(name, np.sin, partials="1")
        assert find_primitive(name) is row


def test_registering_an_invalid_name_raises():
    for name in ("a", "b", "c", "out", "", "2x", "my sine", "f(x)", "x-y"):
        with refused(UsageError):
            register_primitive(name, np.sin, partials="1")


def test_unregister_primitive():
    for function, partial, slope in ((np.sin, "cos(a)", 1.0), (np.cos, "-sin(a)", 0.0)):
        register_primitive("mine", function, partials=partial)  # the name is available again
        assert cgprimer.gradient(cgprimer.parse("xw = mine(p)"), {"p": 0.0}) == {"p": slope}
        unregister_primitive("mine")
        with refused(UsageError, "'mine'"):
            find_primitive("mine")
        with pytest.raises(SourceError, match="mine"):
            cgprimer.parse("xw = mine(p)")


def test_primitive_may_change_dtype_but_not_its_inputs(registered):
    def clipped(a):
        a[a < 0] = 0
        return a

    registered("byte", lambda a: np.asarray(a).astype(np.uint8), partials="1")
    registered("clipped", clipped, partials="1")
    graph = cgprimer.parse("xw = byte(xa) - byte(k)")
    assert graph.evaluate({"xa": 3.0, "k": 4.0})["xw"] == -1.0
    data = cgprimer.Dataset.from_arrays({"xa": [3.0]}, {"xw": [-1.0]})
    assert cgprimer.loss_and_gradient(graph, data)({"k": 4.0})[0] == 0.0
    data = cgprimer.Dataset.from_arrays({"xa": [-1.0, 2.0]}, {"xw": [0.0, 2.0]})
    graph = cgprimer.parse("xw = clipped(xa)*k")  # the function receives a copy
    assert cgprimer.loss_and_gradient(graph, data)({"k": 1.0})[0] == 0.0
    assert data.inputs["xa"].tolist() == [-1.0, 2.0]


def test_reregistered_primitive_is_recompiled():
    graph = None
    for factor in (2.0, 3.0):
        register_primitive("times", lambda a, f=factor: a * f, partials=str(factor))
        try:
            graph = graph or cgprimer.parse("xw = times(k*xa)")
            assert cgprimer.gradient(graph, {"k": 1.0, "xa": 1.0}) == {"k": factor}
        finally:
            unregister_primitive("times")
