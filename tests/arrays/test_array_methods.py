"""On random graphs of arrays everything agrees with numpy, and all methods with each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cgprimer
from tests.arrays.array_graphs import Case, array_cases, differences, slopes

METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")
ENGINES = ("plain", "numpy")
TOLERANCE = {"finite-difference": 1e-5}
TANGLED = (cgprimer.PathLimitError, cgprimer.ExpressionSwellError)  # too large for a method
some = settings(max_examples=5, deadline=None)


def assert_near(found, expected, tolerance: float, what: str) -> None:
    assert list(found) == list(expected), what
    for name, value in expected.items():
        assert np.shape(found[name]) == np.shape(value), (what, name)
        scale = 1 + np.max(np.abs(value), initial=0)
        np.testing.assert_allclose(
            found[name], value, rtol=0, atol=tolerance * scale, err_msg=f"{what} {name}"
        )


@settings(max_examples=25)
@given(array_cases(scalar=False))
def test_values_are_numpys(case: Case):
    found = case.graph.evaluate(case.at)
    for name, value in case.values.items():
        if name in found:
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12)
            assert np.shape(found[name]) == np.shape(value), name


@some
@given(array_cases(), st.data())
def test_gradients_and_jacobians_are_numpys_slopes_by_every_method(case: Case, data) -> None:
    graph, names = case.graph, case.leaves
    for of in ("xo", data.draw(st.sampled_from(list(case.functions)))):
        compute = cgprimer.gradient if of == "xo" else cgprimer.jacobian
        exact: dict[str, Any] = {}
        for method in METHODS:
            options = {"limit": 2000} if method == "path-sum" else {}
            try:
                found = compute(graph, case.at, of=of, wrt=names, method=method, **options)
            except TANGLED:
                continue
            found = found if of == "xo" else found[of]
            if exact:
                assert_near(found, exact, TOLERANCE.get(method, 1e-11), method)
            else:
                exact = found
                assert_near(exact, slopes(case, of, names), 1e-6, method)


def torch_names(torch: Any) -> dict[str, Any]:
    """Return functions of the language in torch's words."""

    def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a, *axes: function(a, dim=axes or tuple(range(a.ndim)))

    def transpose(a: Any, *order: int) -> Any:
        return a.permute(order or tuple(reversed(range(a.ndim))))

    return {
        **{n: getattr(torch, n) for n in ("sin", "tanh", "exp", "sqrt", "sigmoid", "softmax")},
        "log_softmax": torch.log_softmax,
        "sum": reduced(torch.sum),
        "mean": reduced(torch.mean),
        "max": torch.amax,
        "min": torch.amin,
        "norm": torch.norm,
        "dot": lambda a, b: (a * b).sum(),
        "transpose": transpose,
        "reshape": lambda a, *shape: a.reshape(shape),
        "concatenate": lambda a, b: torch.cat([a, b]),
    }


@pytest.mark.slow
@settings(max_examples=100)
@given(array_cases(steps=6))
def test_gradients_are_those_of_torch(case: Case) -> None:
    """Torch runs the text of the graph."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    definitions = [line for line in case.lines if " = " in line]
    assume("::-1" not in "".join(definitions))  # torch has no steps backwards
    names = torch_names(torch)
    leaves = {n: torch.tensor(v, requires_grad=True) for n, v in case.at.items()}
    names |= leaves
    for line in definitions:
        name, _, expression = line.partition(" = ")
        names[name] = eval(expression.replace("^", "**"), {}, names)  # noqa: S307 - of our own text
    slopes_ = torch.autograd.grad(names["xo"], list(leaves.values()), materialize_grads=True)
    expected = {n: s.detach().numpy() for n, s in zip(leaves, slopes_, strict=True)}
    for method in ("reverse", "forward"):
        found = cgprimer.gradient(case.graph, case.at, wrt=case.leaves, method=method)
        assert_near(found, expected, 1e-12, f"{method} beside torch")


@some
@given(array_cases(), st.sampled_from(["reverse", "forward"]), st.integers(1, 4))
def test_samples_are_points_side_by_side_on_every_engine(case: Case, method: str, samples: int):
    """Some leaves have a value for each sample, some one for all."""
    graph, names, rng = case.graph, case.leaves, np.random.default_rng(samples)
    many = {
        name: rng.uniform(-1.5, 1.5, (samples, *value.shape)) if name[0] in "xw" else value
        for name, value in case.at.items()
    }
    points = [{n: v[i] if n[0] in "xw" else v for n, v in many.items()} for i in range(samples)]
    each = [cgprimer.gradient(graph, at, wrt=names) for at in points]
    expected = {n: np.stack([one[n] for one in each]) for n in names}
    values = [graph.evaluate(at) for at in points]
    together = graph.evaluate(many)
    for name in together:
        stacked = np.stack([one[name] for one in values])
        np.testing.assert_allclose(together[name], stacked, rtol=1e-12, atol=1e-12)
    for engine in ENGINES:
        found = cgprimer.gradient(graph, many, wrt=names, method=method, engine=engine)
        assert_near(found, expected, 1e-11, f"{method} on {engine}")


@settings(max_examples=2)
@given(array_cases(steps=3))
def test_second_derivatives_by_every_pair(case: Case):
    graph, names = case.graph, case.leaves
    expected = cgprimer.hessian(graph, case.at, wrt=names)
    for name, other in itertools.product(names[:2], names):

        def gradient(value: Any, name: str = name, other: str = other) -> Any:
            return cgprimer.gradient(graph, {**case.at, name: value}, wrt=other)[other]

        slope = differences(gradient, case.values[name])
        assert_near({name: expected[other][name]}, {name: slope}, 1e-5, f"d{other}")
    for inner, outer in itertools.product(METHODS[:-1], METHODS):
        try:
            found = cgprimer.hessian(graph, case.at, wrt=names, method=f"{outer}-over-{inner}")
        except TANGLED:
            continue
        for name in names:
            what = f"{outer}-over-{inner} d{name}"
            assert_near(found[name], expected[name], TOLERANCE.get(outer, 1e-10), what)
    rng = np.random.default_rng(0)
    vector = {n: rng.normal(size=case.values[n].shape) for n in names}
    product = {
        n: sum(np.tensordot(expected[n][m], vector[m], vector[m].ndim) for m in names)
        for n in names
    }
    found = cgprimer.hessian_vector_product(graph, case.at, vector)
    assert_near(found, product, 1e-9, "product")


@pytest.mark.parametrize("engine", [e.name for e in cgprimer.engines() if e.available])
def test_the_gradient_of_a_norm_at_zero_is_zero(engine: str) -> None:
    graph = cgprimer.parse("input x[2] = [0, 0], y[2] = [3, 4]; z = norm(x) + 2*norm(y)")
    for method in cgprimer.methods():
        found = cgprimer.gradient(graph, wrt=["x", "y"], method=method, engine=engine)
        np.testing.assert_allclose(found["x"], [0.0, 0.0], atol=1e-9)
        np.testing.assert_allclose(found["y"], [1.2, 1.6], rtol=1e-6)
    assert graph.evaluate()["z"] == 10.0


def test_partials_of_arrays_multiply_to_the_gradient():
    """Case F1: along x w1 -> relu -> w2, the partial of each edge is a Jacobian."""
    graph = cgprimer.parse(
        "input x[2] = [1, 2], xt = 1; parameter w1[2,2] = [[1, -1], [0.5, -2]], w2[2] = [1, 3]\n"
        "xh = x @ w1; xr = relu(xh); xp = xr @ w2; xl = (xp - xt)^2"
    )
    edges = cgprimer.partials(graph)
    on, by = edges.variable_to_variable, edges.variable_to_parameter
    np.testing.assert_array_equal(on["xh", "x"], np.array([[1, 0.5], [-1, -2]]))
    np.testing.assert_array_equal(on["xr", "xh"], np.diag([1, 0]))
    np.testing.assert_array_equal(on["xp", "xr"], [1, 3])
    chain = on["xl", "xp"] * np.einsum("r,rh,hij", on["xp", "xr"], on["xr", "xh"], by["xh", "w1"])
    np.testing.assert_array_equal(chain, cgprimer.gradient(graph)["w1"])
    many = cgprimer.partials(graph, {"x": np.ones((5, 2))})
    assert many.variable_to_parameter["xh", "w1"].shape == (5, 2, 2, 2)
