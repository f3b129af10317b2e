"""Functions from functions: gradients, Jacobians and Hessians that nest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from cgprimer import grad, hessian, jacobian, no_grad, value_and_grad
from cgprimer.errors import UsageError


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
    assert grad(grad(grad(grad(lambda v: v**4))))(1.5) == 24.0
    third = jacobian(hessian(lambda v: np.sum(v**3)))(np.array([1.0, 2.0]))
    assert third.shape == (2, 2, 2)
    assert (third[0, 0, 0], third[1, 1, 1], third.sum()) == (6.0, 6.0, 12.0)


def test_a_derivative_is_one_under_no_grad_too() -> None:
    def f(x: Any) -> Any:
        return x**3

    def held(x: Any) -> Any:
        with no_grad():
            return x * grad(f)(x)

    with no_grad():
        assert (grad(f)(2.0), value_and_grad(f)(2.0), hessian(f)(2.0)) == (12.0, (8.0, 12.0), 12.0)
        assert jacobian(f)(np.array([2.0])).tolist() == [[12.0]]
    assert value_and_grad(held)(2.0) == (24.0, 0.0)
    assert value_and_grad(lambda x: x * held(x))(2.0) == (48.0, 24.0)


def test_derivatives_of_nothing_are_empty_and_of_constants_zero() -> None:
    assert jacobian(lambda x: 2.0 * x)(np.zeros(0)).shape == (0, 0)
    assert jacobian(jacobian(lambda x: 2.0 * x[:0]))(np.ones(3)).shape == (0, 3, 3)
    assert grad(lambda x: 3.0)(np.ones(2)).tolist() == [0.0, 0.0]
    assert jacobian(lambda x: np.ones(3))(np.ones(2)).tolist() == np.zeros((3, 2)).tolist()


def test_a_function_may_change_the_dictionary_that_it_gets() -> None:
    def halved(p: dict[str, Any]) -> Any:
        p["a"] = p["a"] * 2.0
        return p["a"]

    given = {"a": 1.0}
    assert grad(halved)(given) == {"a": 2.0}
    assert given == {"a": 1.0}


class Layer(NamedTuple):
    w: Any
    b: float


def test_tuples_and_named_tuples_are_trees() -> None:
    assert grad(lambda t: t[0] * t[1])((2.0, 3.0)) == (3.0, 2.0)
    assert hessian(lambda t: t[0] ** 2 * t[1])((1.0, 2.0)) == ((4.0, 2.0), (2.0, 0.0))
    assert grad(lambda t: (np.sin(t) * 2.0).sum())([0.0, 0.0]).tolist() == [2.0, 2.0]
    found = grad(lambda p: (p.w * p.b).sum())(Layer(np.ones(2), 3.0))
    assert type(found) is Layer
    assert found.w.tolist() == [3.0, 3.0]
    assert grad(lambda p: p.w * p.b)(Layer(2.0, 3.0)) == (3.0, 2.0)


def test_an_argument_may_be_counted_from_the_end() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * y**2

    assert grad(function, -1)(3.0, 2.0) == 12.0
    assert grad(function, (-1, 0))(3.0, 2.0) == (12.0, 4.0)
    with pytest.raises(UsageError):
        grad(function, -3)(3.0, 2.0)
