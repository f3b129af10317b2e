"""Methods agree with numpy on random array graphs; passes and verification of array tapes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.operations.element_operations import Concatenate, Take
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.operations.shape_operations import Broadcast, Transpose
from cgprimer.core.tape.scalarization import elements, scalarize, split_arrays
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.core.tape.tape_passes import remove_dead_code, substitute_seeds
from cgprimer.core.tape.verifier import verify
from tests.approval import approved
from tests.arrays.array_graphs import Case, array_cases, difference_jacobians, difference_quotients

METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")
ENGINES = ("plain", "numpy")
TOLERANCE = {"finite-difference": 1e-5}
SIZE_LIMIT_ERRORS = (
    cgprimer.PathLimitError,
    cgprimer.ExpressionSwellError,
)  # too large for a method
few_examples = settings(max_examples=5, deadline=None)


def assert_near(result, expected, tolerance: float, what: str) -> None:
    assert list(result) == list(expected), what
    for name, value in expected.items():
        assert np.shape(result[name]) == np.shape(value), (what, name)
        scale = 1 + np.max(np.abs(value), initial=0)
        np.testing.assert_allclose(
            result[name], value, rtol=0, atol=tolerance * scale, err_msg=f"{what} {name}"
        )


@settings(max_examples=25)
@given(array_cases(scalar=False))
def test_values_match_numpy(case: Case):
    result = case.graph.evaluate(case.at)
    for name, value in case.values.items():
        if name in result:
            np.testing.assert_allclose(result[name], value, rtol=1e-12, atol=1e-12)
            assert np.shape(result[name]) == np.shape(value), name


@few_examples
@given(array_cases(), st.data())
def test_gradients_and_jacobians_match_difference_quotients(case: Case, data) -> None:
    graph, names = case.graph, case.leaves
    for of in ("xo", data.draw(st.sampled_from(list(case.functions)))):
        compute = cgprimer.gradient if of == "xo" else cgprimer.jacobian
        exact: dict[str, Any] = {}
        for method in METHODS:
            options = {"limit": 2000} if method == "path-sum" else {}
            try:
                result = compute(graph, case.at, of=of, wrt=names, method=method, **options)
            except SIZE_LIMIT_ERRORS:
                continue
            result = result if of == "xo" else result[of]
            if exact:
                assert_near(result, exact, TOLERANCE.get(method, 1e-11), method)
            else:
                exact = result
                assert_near(exact, difference_jacobians(case, of, names), 1e-6, method)


def torch_names(torch: Any) -> dict[str, Any]:
    """Return the torch functions for the functions of the language."""

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
def test_gradients_match_torch(case: Case) -> None:
    """Evaluate the text of the graph with torch."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    definitions = [line for line in case.lines if " = " in line]
    assume("::-1" not in "".join(definitions))  # torch does not support negative steps
    names = torch_names(torch)
    leaves = {n: torch.tensor(v, requires_grad=True) for n, v in case.at.items()}
    names |= leaves
    for line in definitions:
        name, _, expression = line.partition(" = ")
        names[name] = eval(expression.replace("^", "**"), {}, names)  # noqa: S307 - of our own text
    slopes_ = torch.autograd.grad(names["xo"], list(leaves.values()), materialize_grads=True)
    expected = {n: s.detach().numpy() for n, s in zip(leaves, slopes_, strict=True)}
    for method in ("reverse", "forward"):
        result = cgprimer.gradient(case.graph, case.at, wrt=case.leaves, method=method)
        assert_near(result, expected, 1e-12, f"{method} compared with torch")


@few_examples
@given(array_cases(), st.sampled_from(["reverse", "forward"]), st.integers(1, 4))
def test_batches_match_single_points_on_every_engine(case: Case, method: str, samples: int):
    """Some leaves have one value per sample, others one value for all samples."""
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
        result = cgprimer.gradient(graph, many, wrt=names, method=method, engine=engine)
        assert_near(result, expected, 1e-11, f"{method} on {engine}")


@settings(max_examples=2)
@given(array_cases(steps=3))
def test_hessian_by_every_method_pair(case: Case):
    graph, names = case.graph, case.leaves
    expected = cgprimer.hessian(graph, case.at, wrt=names)
    for name, other in itertools.product(names[:2], names):

        def gradient(value: Any, name: str = name, other: str = other) -> Any:
            return cgprimer.gradient(graph, {**case.at, name: value}, wrt=other)[other]

        slope = difference_quotients(gradient, case.values[name])
        assert_near({name: expected[other][name]}, {name: slope}, 1e-5, f"d{other}")
    for inner, outer in itertools.product(METHODS[:-1], METHODS):
        try:
            result = cgprimer.hessian(graph, case.at, wrt=names, method=f"{outer}-over-{inner}")
        except SIZE_LIMIT_ERRORS:
            continue
        for name in names:
            what = f"{outer}-over-{inner} d{name}"
            assert_near(result[name], expected[name], TOLERANCE.get(outer, 1e-10), what)
    rng = np.random.default_rng(0)
    vector = {n: rng.normal(size=case.values[n].shape) for n in names}
    product = {
        n: sum(np.tensordot(expected[n][m], vector[m], vector[m].ndim) for m in names)
        for n in names
    }
    result = cgprimer.hessian_vector_product(graph, case.at, vector)
    assert_near(result, product, 1e-9, "product")


@pytest.mark.parametrize("engine", [e.name for e in cgprimer.engines() if e.available])
def test_gradient_of_norm_at_zero_is_zero(engine: str) -> None:
    graph = cgprimer.parse("input x[2] = [0, 0], y[2] = [3, 4]; z = norm(x) + 2*norm(y)")
    for method in cgprimer.methods():
        result = cgprimer.gradient(graph, wrt=["x", "y"], method=method, engine=engine)
        np.testing.assert_allclose(result["x"], [0.0, 0.0], atol=1e-9)
        np.testing.assert_allclose(result["y"], [1.2, 1.6], rtol=1e-6)
    assert graph.evaluate()["z"] == 10.0


def test_array_partials_multiply_to_the_gradient():
    """Case F1: the partial of each edge of x w1 -> relu -> w2 is a Jacobian."""
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


NETWORK = """
input x[3]
parameter W[2,3], b[2]
xh = tanh(W @ x + b)
xs = softmax(xh)
xo = sum(xs[::-1]*xh, 0) + max(xh) + mean(reshape(transpose(W), 2, 3))
"""
LEAVES = (Leaf("column", "x", 0.0, (3,)), Leaf("scalar", "W", 0.0, (2, 3)), Leaf("scalar", "k"))
INVALID_INSTRUCTIONS = {
    "incompatible matrix shapes": (Matmul(2, 2), (0, 1)),
    "elementwise primitive with different shapes": ("add", (0, 1)),
    "array and scalar without broadcast": ("mul", (0, 2)),
    "broadcast to a smaller shape": (Broadcast(1, (2,)), (0,)),
    "concatenation of incompatible shapes": (Concatenate(-1), (0, 1)),
    "axis out of range": (Transpose((-1, -2, -3)), (0,)),
    "index out of bounds": (Take((5,)), (0,)),
    "unknown primitive": ("rotate", (0,)),
}


@pytest.mark.parametrize("fault", INVALID_INSTRUCTIONS)
def test_verifier_rejects_invalid_array_tapes(fault):
    with pytest.raises(cgprimer.TapeError):
        verify(Tape(LEAVES, (Instruction(*INVALID_INSTRUCTIONS[fault]),), {"y": 3}))


@settings(max_examples=6, deadline=None)
@given(array_cases())
def test_passes_and_scalarization_preserve_values(case: Case):
    """Check dead code removal, optimization, substituted seeds and scalarization."""
    program = cgprimer.differentiate(cgprimer.tape(case.graph), wrt=case.leaves, method="forward")
    for one in program.passes[:3]:
        given = {**case.at, **one.seeds}
        full = values_of(program.tape, given)
        for made in (remove_dead_code(program.tape), optimize(program.tape),
                     substitute_seeds(program.tape, one.seeds)):  # fmt: skip
            values = values_of(made, given)
            for name, index in made.outputs.items():
                expected = full[program.tape.outputs[name]]
                np.testing.assert_allclose(values[index], expected, rtol=1e-11, atol=1e-11)
        shapes = {leaf.name: leaf.shape for leaf in program.tape.leaves}
        flat = scalarize(program.tape)
        values = values_of(flat, split_arrays(given, shapes))
        for name, index in program.tape.outputs.items():
            parts = elements(name, np.shape(full[index]))
            for part, expected in zip(parts, np.ravel(full[index]), strict=True):
                np.testing.assert_allclose(
                    values[flat.outputs[part]], expected, rtol=1e-10, atol=1e-10
                )


def test_blocked_sum_reduction(monkeypatch):
    """Gradients of matrices are summed per block, and the last block may be shorter."""
    from cgprimer.core.evaluation import array_evaluator

    monkeypatch.setattr(array_evaluator, "_BLOCK", 2)  # blocks of 64 samples
    program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse(NETWORK)))
    rng = np.random.default_rng(0)
    at = {"W": rng.normal(size=(2, 3)), "b": rng.normal(size=2)}
    for samples in (0, 1, 64, 65, 300):
        x = rng.normal(size=(samples, 3))
        each = Runner(program)({"x": x}, at, samples)
        total = Runner(program, reduction="sum")({"x": x}, at, samples)
        for pair, value in each.derivatives.items():
            np.testing.assert_allclose(total.derivatives[pair], value.sum(0), atol=1e-11)
        assert total.values["xo"] == pytest.approx(each.values["xo"].sum(), rel=1e-12)


def test_printed_array_tapes():
    approved(str(cgprimer.tape(cgprimer.parse(NETWORK))))
    graph = cgprimer.parse("input x[2]; parameter w[2]; xh = 1*x + 0; xo = (w @ xh)*1 + x[0]^1")
    approved(str(scalarize(cgprimer.tape(graph))))


def test_float32_is_preserved():
    """Constants, softmax and sums do not promote float32 arrays."""
    text = "input x[4], t[3]; parameter W[3,4], b[3]; xo = -sum(t*log_softmax(relu(W @ x + b)))"
    program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse(text)), wrt=["W"])
    columns = {"x": np.random.default_rng(0).normal(size=(3, 4)), "t": np.eye(3)}
    scalars = {"W": np.full((3, 4), 0.5), "b": np.zeros(3)}
    for reduction in ("sum", "none"):
        result = Runner(program, dtype="float32", reduction=reduction)(columns, scalars, 3)
        assert {v.dtype for v in result.derivatives.values()} == {np.dtype("float32")}
        exact = Runner(program, reduction=reduction)(columns, scalars, 3)
        for pair, value in exact.derivatives.items():
            np.testing.assert_allclose(result.derivatives[pair], value, rtol=1e-4, atol=1e-6)
