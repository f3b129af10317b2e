"""Custom functions, checkpoints, wrapped functions and their derivatives."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import (
    DifferentiationError,
    Function,
    Node,
    UsageError,
    Value,
    checkpoint,
    grad,
    hessian,
    jacobian,
    memory,
    primitive,
)
from cgprimer.errors import ShapeError
from tests.approval import approved, refused

Layer = namedtuple("Layer", "w b")


class Silly(Function):
    """Truncate to an unsigned byte; the backward pass adds the truncated fraction."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        cut = np.trunc(np.clip(x, 0, 255))
        ctx.save(x - cut)
        return cut

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad + ctx.saved[0]


class Product(Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved
        return grad * b, grad * a


def test_quantization_example_of_the_lecture() -> None:
    x = Value([3.75, 4.5], name="x")
    y = Silly.apply(x)
    np.testing.assert_array_equal(y.data, [3.0, 4.0])
    assert str(y.grad_fn) == "Silly -> AccumulateGrad x"
    y.backward(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(x.grad, [2.75, 3.5])


def test_backward_is_called_once_with_needs_input_grad() -> None:
    calls = []

    class Counted(Product):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            calls.append((grad, ctx.needs_input_grad))
            of_a, of_b = Product.backward(ctx, grad)
            return of_a if ctx.needs_input_grad[0] else None, of_b

    a, b = Value(2.0), Value(5.0)
    Counted.apply(a, b).backward()
    assert (a.grad, b.grad, calls) == (5.0, 2.0, [(1.0, (True, True))])
    c = Value(3.0)
    Counted.apply(c, c).backward()
    assert c.grad == 6.0
    Counted.apply(7.0, c).backward()
    assert (c.grad, calls[-1]) == (13.0, (1.0, (False, True)))
    with pytest.raises(UsageError, match="forward"):
        Function.apply(a)


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.kept = x
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * grad * ctx.kept**2


def test_double_backward_requires_saved_arguments() -> None:
    assert grad(grad(lambda x: Product.apply(x, x * x)))(2.0) == 12.0
    assert grad(grad(Cube.apply))(2.0) == 12.0
    with refused(DifferentiationError):
        grad(grad(lambda x: Silly.apply(x) * x))(2.5)


@pytest.mark.parametrize(
    ("gradients", "said"),
    [
        (lambda ctx, g: (g, g, g), "3 ... 2"),
        (lambda ctx, g: g, "1"),
        (lambda ctx, g: (np.ones(3), g), "(3,) ... 0 ... (2,)"),
        (lambda ctx, g: ("x", g), ""),
    ],
)
def test_invalid_gradients_from_backward_raise(gradients: Any, said: str) -> None:
    wrong = type("Wrong", (Product,), {"backward": staticmethod(gradients)})
    with refused(cgprimer.CgprimerError, said):
        wrong.apply(Value([1.0, 2.0]), Value([3.0, 4.0])).backward(np.ones(2))


def test_saved_arrays_are_protected_from_in_place_changes() -> None:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            powers = np.exp(x)
            ctx.save(powers, x)
            powers *= 10.0
            return powers

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 10.0 * grad * ctx.saved[0]

    x = Value([0.0, 1.0])
    Scaled.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad, 10.0 * np.exp([0.0, 1.0]), rtol=1e-15)
    out = Scaled.apply(x).sum()
    x.data[0] = 5.0
    with refused(DifferentiationError, "'Scaled'"):
        out.backward()


@pytest.fixture
def silly() -> Any:
    cgprimer.register_primitive("silly", Silly)
    yield
    cgprimer.unregister_primitive("silly")


def test_registered_function_is_part_of_the_language(silly: None) -> None:
    graph = cgprimer.parse("xq = silly(k*xa); xw = 3*xq")
    at = {"k": 1.5, "xa": np.array([2.5, 0.5])}
    np.testing.assert_array_equal(graph.evaluate(at)["xw"], [9.0, 0.0])
    np.testing.assert_array_equal(cgprimer.gradient(graph, at)["k"], [2.5 * 3.75, 0.5 * 3.75])
    assert "silly(" in str(cgprimer.tape(graph))
    assert "silly_backward(" in str(cgprimer.differentiate(cgprimer.tape(graph)))


@pytest.mark.parametrize("method", [m for m in cgprimer.methods() if m != "reverse"])
@pytest.mark.parametrize(
    "text", ["xw = silly(k*xa)", "parameter k[2] = 1; input xa[2] = 2; xw = sum(silly(k*xa))"]
)
def test_registered_function_supports_only_reverse_mode(
    silly: None, method: str, text: str
) -> None:
    graph = cgprimer.parse(text)
    at = {"k": 1.5, "xa": 2.5} if "[" not in text else {}
    with refused(DifferentiationError, "'silly'"):
        cgprimer.gradient(graph, at, method=method)
    with pytest.raises(DifferentiationError, match="silly"):
        cgprimer.hessian(graph, at)


def test_checkpoint_gradients_include_captured_values() -> None:
    rng = np.random.default_rng(0)
    w, x = Value(rng.normal(size=(3, 3))), Value(rng.normal(size=3))

    def layer(v: Value) -> Value:
        return (w @ v).tanh() * v

    gradients = []
    for one in (layer, checkpoint(layer)):
        one(one(x * 2.0)).sum().backward()
        gradients.append((w.grad, x.grad))
        w.zero_grad(), x.zero_grad()
    for result, expected in zip(*gradients, strict=True):
        np.testing.assert_array_equal(result, expected)
    f = lambda v: checkpoint(lambda u: (u * u).sin())(v) * v  # noqa: E731
    g = lambda v: (v * v).sin() * v  # noqa: E731
    assert grad(f)(0.7) == grad(g)(0.7)
    assert grad(grad(f))(0.7) == pytest.approx(grad(grad(g))(0.7), rel=1e-14)
    start = np.array([0.7, -0.2])
    result, expected = (hessian(lambda v, h=h: h(v).sum())(start) for h in (f, g))
    np.testing.assert_allclose(result, expected, rtol=1e-14)
    w, x = Value(2.0), Value(np.inf)  # the derivative with respect to x is zero
    checkpoint(lambda a, b: a * np.heaviside(b, 0.5))(w, x).backward()
    assert (w.grad, x.grad) == (1.0, 0.0)


def test_checkpoint_rejects_nondeterministic_functions() -> None:
    rng = np.random.default_rng(0)
    noisy = checkpoint(lambda x: x * rng.normal())
    with refused(DifferentiationError):
        noisy(Value(2.0)).backward()
    with refused(UsageError):
        checkpoint(lambda x: (x, x))(Value(2.0))
    w = Value([1.0, 2.0], name="w")
    y = checkpoint(lambda x: x * w)(Value([1.0, 1.0])).sum()
    w.data = [7.0, 2.0]
    with pytest.raises(DifferentiationError, match="'w'"):
        y.backward()


def test_wrapped_numpy_functions_of_the_lecture() -> None:
    multiply, exp, add, divide = map(primitive, (np.multiply, np.exp, np.add, np.divide))
    z = Node(1.5, name="z")
    t2 = exp(multiply(z, -1))
    y = divide(1, add(t2, 1))
    assert [t2.value, y.value] == pytest.approx([0.2231301601484298, 0.8175744761936437], rel=1e-15)
    assert f"Final answer: {y:.3f}" == "Final answer: 0.818"
    approved(f"{y}\n{y!r}")
    assert (y.function, y.parents[1].function, y.parents[1].parents[0]) == ("divide", "add", t2)
    for passes in (1, 2):
        y.backward()
        assert z.grad == pytest.approx(passes * 0.14914645207033286, rel=1e-14)


def test_node_operators() -> None:
    z = Node(1.5, name="z")
    y = 1.0 / (np.float64(2.0) * z - z * z + z**2.0)
    assert (y.function, y.parents[1].function, y.value) == ("divide", "add", 1 / 3)
    y.backward()
    assert z.grad == pytest.approx(-2.0 / 9.0)
    row = Node([1.0, -2.0])
    (abs(-row) @ [3.0, 5.0]).backward()
    assert row.grad.tolist() == [3.0, -5.0]


def test_custom_primitives_with_derivatives() -> None:
    cube = primitive(lambda x: x**3, derivative=lambda x: 3 * x**2, name="cube")
    assert grad(cube)(2.0) == 12.0
    assert grad(grad(cube))(2.0) == 12.0
    assert cube(3.0) == 27.0
    node = cube(Node(2.0))
    assert str(node) == "cube = 8.0\n  2.0"
    scaled = primitive(
        lambda a, b: a * b * b, derivative=(lambda a, b: b * b, lambda a, b: 2 * a * b)
    )
    a, b = Value([1.0, 2.0]), Value(3.0)
    scaled(a, b).sum().backward()
    np.testing.assert_array_equal(a.grad, [9.0, 9.0])
    assert b.grad == 18.0
    assert grad(grad(lambda x: scaled(2.0, x)))(5.0) == 4.0
    assert str(scaled(a, b).grad_fn).startswith("<lambda>")


def test_invalid_primitive_arguments_raise() -> None:
    for arguments in ((3,), (np.exp, (1.0,)), (np.exp, 1.0)):
        with refused(UsageError):
            primitive(*arguments)  # type: ignore[arg-type]
    with refused(UsageError, "1 ... 2"):
        primitive(np.hypot, derivative=np.cos)(Value(1.0), 2.0)
    with refused(UsageError, "0 ... x="):
        primitive(np.sin, derivative=np.cos)(x=Value(1.0))
    with refused(ShapeError, "[2] ... [3]"):
        primitive(np.sin, derivative=lambda x: np.ones(3))(Value([1.0, 2.0])).sum().backward()


def test_memory_counts_shared_arrays_once() -> None:
    x = Value(np.ones((4, 5)), name="x")
    y = x.T.tanh()
    result = memory((y * y).sum())
    approved(f"{result}\n{result!r}", "shared")
    assert (result.kept, result.given) == (328, 160)
    assert memory(lambda v: (v.T.tanh() ** 2).sum(), np.ones((4, 5))).given == 160
    assert [r.what for r in memory(Silly.apply(x)).rows] == ["x", "Silly", "Silly saved"]
    scalar = memory(Value(2.0) * Value(3.0, requires_grad=False))
    assert [row.gradient for row in scalar.rows] == [8, 0, 0]
    for arguments in ((3.0,), (lambda v: "text", 1.0)):
        with refused(UsageError):
            memory(*arguments)  # type: ignore[arg-type]


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_hessians_and_third_derivatives() -> None:
    x = np.array([0.5, -1.2, 2.0])
    expected = np.array(
        [[1200 * 0.25 + 482, -200.0, 0.0],
         [-200.0, 202 + 1200 * 1.44 - 800, 480.0],
         [0.0, 480.0, 200.0]]
    )  # fmt: skip
    np.testing.assert_allclose(hessian(rosenbrock)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(jacobian(grad(rosenbrock))(x), expected, rtol=1e-12)


CALLS = Path(__file__).with_name("derivatives.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", [line for line in CALLS if not line.startswith("#")])
def test_derivatives_of_calls(line: str) -> None:
    call, expected = line.split(" | ")
    names = {name: getattr(cgprimer, name) for name in cgprimer.__all__}
    names |= {"np": np, "Layer": Layer}
    assert eval(call, names) == eval(expected, names)  # noqa: S307 - of the file


def test_argument_indices_out_of_range_raise() -> None:
    with pytest.raises(UsageError):
        grad(lambda x, y: x * y**2, -3)(3.0, 2.0)
