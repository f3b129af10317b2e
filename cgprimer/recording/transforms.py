"""Transforms of Python functions: gradients, Jacobians and Hessians.

Transforms nest: inside another transform the backward pass is recorded, so ``grad(grad(f))`` is
the second derivative. Arguments may be numbers, arrays, and lists, tuples and dictionaries of
them; derivatives have the same structure.

Source: the interfaces of HIPS autograd and JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cgprimer.errors import DifferentiationError, UsageError, pluralize
from cgprimer.recording.backward_pass import compute_adjoints
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.rearranging import stack
from cgprimer.recording.recording_state import State, set_recording
from cgprimer.recording.value import Value

Tree = Any  # a number, an array, a value, or lists, tuples and dictionaries of them


def grad(function: Callable[..., Any], argument: int | tuple[int, ...] = 0) -> Callable[..., Tree]:
    """Return a function that computes the gradient of a scalar-valued function.

    Args:
        function: a function of numbers, arrays or trees of them, written with numpy, ``if`` and
            ``for``.
        argument: index of the argument to differentiate with respect to, or a tuple of indices.

    Returns:
        A function of the same arguments that returns the gradient, in the shape of the argument;
        a tuple for several arguments.

    Raises:
        DifferentiationError: the function does not return a scalar.

    >>> grad(lambda x: x**3)(2.0), grad(grad(lambda x: x**3))(2.0)
    (12.0, 12.0)
    >>> grad(lambda p: p["w"]*p["x"])({"w": 3.0, "x": 2.0})
    {'w': 2.0, 'x': 3.0}
    """
    with_value = value_and_grad(function, argument)

    @wraps(with_value)
    def gradient(*args: Any, **kwargs: Any) -> Tree:
        """Compute the gradient of the function at the given arguments."""
        return with_value(*args, **kwargs)[1]

    return gradient


def value_and_grad(
    function: Callable[..., Any], argument: int | tuple[int, ...] = 0
) -> Callable[..., tuple[Any, Tree]]:
    """Return a function that computes both the value and the gradient; see :func:`grad`.

    >>> value_and_grad(lambda x: x*x)(3.0)
    (9.0, 6.0)
    """
    _check_arguments(function, argument)

    @wraps(function)
    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[Any, Tree]:
        """Compute the value and the gradient of the function at the given arguments."""
        value, variables, nested = call_with_values(function, argument, args, kwargs)
        value = _check_scalar_result(value)
        adjoints = compute_adjoints(value, create_graph=nested) if value.requires_grad else {}
        gradients = map_leaves(lambda _, v: _get_adjoint(adjoints, v), variables)
        return (value if nested else value._data), gradients

    return value_and_gradient


def _check_scalar_result(result: Any) -> Value:
    """Check that the result of a function is a scalar, and return the result as a ``Value``.

    Raises:
        DifferentiationError: the result is not a scalar.
    """
    if result is None or isinstance(result, tuple | list | dict):
        kind = "None" if result is None else f"a {type(result).__name__}"
        raise DifferentiationError(
            f"grad() requires a scalar-valued function, but the function returned {kind}",
            hint="use jacobian(f) to differentiate all results of a function" if result else "",
        )
    value = result if isinstance(result, Value) else Value(result, requires_grad=False)
    if value.shape:
        raise DifferentiationError(
            "grad() requires a scalar-valued function, but the function returned an array of shape"
            f" {value.shape}",
            hint="reduce the result with sum(), or use jacobian(f)",
        )
    return value


def create_jacobian(
    function: Callable[..., Any], argument: int | tuple[int, ...] = 0
) -> Callable[..., Tree]:
    """Return a function that computes the Jacobian of the given function.

    The shape of the Jacobian is the shape of the result followed by the shape of the argument.
    """
    _check_arguments(function, argument)

    @wraps(function)
    def jacobian(*args: Any, **kwargs: Any) -> Tree:
        """Compute the Jacobian of the function at the given arguments."""
        result, variables, nested = call_with_values(function, argument, args, kwargs)
        return map_leaves(lambda _, value: _compute_jacobian(value, variables, nested), result)

    return jacobian


def _compute_jacobian(value: Any, variables: Tree, nested: bool) -> Tree:
    """Compute the Jacobian of a value with respect to all variables, one pass per element."""
    if not isinstance(value, Value) or not value.requires_grad:
        value = Value(value, requires_grad=False)
        return map_leaves(lambda _, v: _create_zeros(v, value.shape), variables)
    seeds = np.eye(value.size, dtype=value.dtype).reshape(value.size, *value.shape)
    passes = [
        compute_adjoints(value, seed if value.shape else None, create_graph=nested)
        for seed in seeds
    ]

    def stack_rows(_: str, v: Value) -> Any:
        """Stack the gradients of all elements with respect to one variable."""
        rows = [_get_adjoint(adjoints, v) for adjoints in passes]
        if not rows:
            return _create_zeros(v, value.shape)
        matrix = stack(rows) if nested else np.stack([np.asarray(row) for row in rows])
        matrix = matrix.reshape(value.shape + v.shape)
        return matrix if matrix.ndim or nested or matrix.dtype == np.float32 else float(matrix)

    return map_leaves(stack_rows, variables)


def create_hessian(
    function: Callable[..., Any], argument: int | tuple[int, ...] = 0
) -> Callable[..., Tree]:
    """Return a function that computes the Hessian, as the Jacobian of the gradient."""
    return create_jacobian(grad(function, argument), argument)


def _check_arguments(function: Any, argument: Any) -> None:
    """Check the arguments of a transform: a function, and one or more argument indices."""
    if not callable(function):
        hint = "use cgprimer.gradient(cgprimer.parse(text), point) for a graph"
        if isinstance(function, Value):
            hint = "use value.backward() for a Value"
        raise UsageError(
            f"grad(), jacobian() and hessian() require a function, got {function!r}", hint=hint
        )
    indices = argument if isinstance(argument, tuple) else (argument,)
    if not all(isinstance(index, int) for index in indices):
        raise UsageError(
            f"`argument` must be an integer or a tuple of integers, got {argument!r}",
            hint="count positional arguments from 0, for example argument=(0, 1)",
        )


def call_with_values(
    function: Callable[..., Any], argument: int | tuple[int, ...], args: Any, kwargs: Any
) -> tuple[Any, Tree, bool]:
    """Call a function after converting the differentiated arguments to values.

    Records the call even under ``no_grad``.

    Returns:
        The result, the new values in the structure of the arguments, and whether the call is inside
        another transform.
    """
    indices = argument if isinstance(argument, tuple) else (argument,)
    if not all(-len(args) <= index < len(args) for index in indices):
        raise UsageError(
            f"cannot differentiate with respect to argument {max(indices)}: the function was called"
            f" with {pluralize(len(args), 'positional argument')}",
            hint="pass the argument by position, not by keyword" if kwargs else "",
        )
    nested = State.thread.depth > 0
    arguments = list(args)
    for index in indices:
        arguments[index] = map_leaves(_create_leaf, args[index])
    # a copy of the structure, which the function cannot change
    variables = tuple(map_leaves(lambda _, v: v, arguments[index]) for index in indices)
    with set_recording(True, with_lines=State.thread.with_lines, extra_depth=1):
        result = function(*arguments, **kwargs)
    return result, variables if isinstance(argument, tuple) else variables[0], nested


def _create_leaf(_: str, data: Any) -> Value:
    """Create the value of a differentiated argument; copy an argument that is a value."""
    leaf: Value = EAGER.emit("copy", data) if isinstance(data, Value) else Value(data)
    leaf.requires_grad = True
    return leaf


def _get_adjoint(adjoints: dict[Any, Any], value: Value) -> Any:
    """Return the adjoint of a value; zeros if the result does not depend on the value."""
    return adjoints[value] if value in adjoints else _create_zeros(value)


def _create_zeros(value: Value, leading: tuple[int, ...] = ()) -> Any:
    """Create zeros with the shape and dtype of a value, and optional leading axes."""
    zeros = np.zeros(leading + value.shape, value.dtype)[()]
    return zeros if zeros.ndim or zeros.dtype == np.float32 else 0.0


def map_leaves(function: Callable[[str, Any], Any], tree: Tree, name: str = "") -> Tree:
    """Call ``function(name, leaf)`` for every leaf of a tree; return a tree of the results.

    A list of plain numbers is a leaf. The leaf ``p["w"]`` of an argument ``p`` is named ``p_w``.
    """
    if isinstance(tree, dict):
        return {k: map_leaves(function, v, f"{name}_{k}") for k, v in tree.items()}
    if isinstance(tree, tuple) or (
        isinstance(tree, list)
        and (not tree or any(isinstance(p, Value | np.ndarray | tuple | list | dict) for p in tree))
    ):
        parts = [map_leaves(function, v, f"{name}_{k}") for k, v in enumerate(tree)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(name, tree)
