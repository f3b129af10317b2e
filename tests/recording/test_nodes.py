"""Wrapped functions and nodes: the second lecture's way of recording."""

from __future__ import annotations

import numpy as np
import pytest

from cgprimer import Node, UsageError, Value, grad, memory, primitive
from cgprimer.errors import ShapeError
from tests.approval import approved, refused
from tests.recording.test_functions import Silly


def test_the_lectures_four_functions() -> None:
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


def test_operators_of_nodes_are_wrapped_functions() -> None:
    z = Node(1.5, name="z")
    y = 1.0 / (np.float64(2.0) * z - z * z + z**2.0)
    assert (y.function, y.parents[1].function, y.value) == ("divide", "add", 1 / 3)
    y.backward()
    assert z.grad == pytest.approx(-2.0 / 9.0)
    row = Node([1.0, -2.0])
    (abs(-row) @ [3.0, 5.0]).backward()
    assert row.grad.tolist() == [3.0, -5.0]


def test_ones_own_functions_with_their_derivatives() -> None:
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


def test_what_cannot_be_wrapped() -> None:
    for arguments in ((3,), (np.exp, (1.0,)), (np.exp, 1.0)):
        with refused(UsageError):
            primitive(*arguments)  # type: ignore[arg-type]
    with refused(UsageError, "1 ... 2"):
        primitive(np.hypot, derivative=np.cos)(Value(1.0), 2.0)
    with refused(UsageError, "0 ... x="):
        primitive(np.sin, derivative=np.cos)(x=Value(1.0))
    with refused(ShapeError, "[2] ... [3]"):
        primitive(np.sin, derivative=lambda x: np.ones(3))(Value([1.0, 2.0])).sum().backward()


def test_what_is_kept_is_counted_once_and_what_was_given_apart() -> None:
    x = Value(np.ones((4, 5)), name="x")
    y = x.T.tanh()
    found = memory((y * y).sum())
    assert [(r.what, r.bytes, r.given) for r in found.rows] == [
        ("x", 160, True), ("transpose", 0, False), ("tanh", 160, False), ("mul", 160, False),
        ("sum", 8, False),
    ]  # fmt: skip
    assert (found.kept, found.given) == (328, 160)
    assert "shared" in str(found)
    assert repr(found) == "<Memory: 328 bytes kept for the backward pass>"
    of_function = memory(lambda v: (v.T.tanh() ** 2).sum(), np.ones((4, 5)))
    assert of_function.given == 160
    saved = memory(Silly.apply(x))
    assert [r.what for r in saved.rows] == ["x", "Silly", "Silly saved"]
    scalar = memory(Value(2.0) * Value(3.0, requires_grad=False))
    assert [row.gradient for row in scalar.rows] == [8, 0, 0]
    with refused(UsageError):
        memory(3.0)  # type: ignore[arg-type]
    with refused(UsageError):
        memory(lambda v: "text", 1.0)
