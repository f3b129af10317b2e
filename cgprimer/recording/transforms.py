"""Functions from functions: the derivative of what a Python function computes.

They nest: inside another transform the backward pass is recorded, too, so that ``grad(grad(f))``
is the second derivative. Arguments may be numbers, arrays, and lists, tuples and dictionaries of
them; derivatives come in the same arrangement.

Source: the interface of HIPS autograd and JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.recording.backward import adjoints
from cgprimer.recording.eager import EAGER, State, recording
from cgprimer.recording.rearranging import joined
from cgprimer.recording.value import Value

Tree = Any  # a number, an array, a value, or lists, tuples and dictionaries of them


def grad(function: Callable[..., Any], argument: int | tuple[int, ...] = 0) -> Callable[..., Tree]:
    """The gradient of a function that returns a number.

    Args:
        function: of numbers, arrays or trees of them; written with numpy, ``if`` and ``for``.
        argument: by which argument to differentiate, or by which ones.

    Returns:
        A function of the same arguments that returns the gradient, in the shape of the argument;
        a tuple where there are several.

    Raises:
        DifferentiationError: the function returns more than one number.

    >>> grad(lambda x: x**3)(2.0), grad(grad(lambda x: x**3))(2.0)
    (12.0, 12.0)
    >>> grad(lambda p: p["w"]*p["x"])({"w": 3.0, "x": 2.0})
    {'w': 2.0, 'x': 3.0}
    """

    both = value_and_grad(function, argument)

    @wraps(both)
    def differentiated(*args: Any, **kwargs: Any) -> Tree:
        return both(*args, **kwargs)[1]

    return differentiated


def value_and_grad(
    function: Callable[..., Any], argument: int | tuple[int, ...] = 0
) -> Callable[..., tuple[Any, Tree]]:
    """The value and the gradient; everything else is as in :func:`grad`.

    >>> value_and_grad(lambda x: x*x)(3.0)
    (9.0, 6.0)
    """

    _check(function, argument)

    @wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Tree]:
        value, chosen, nested = called_with(function, argument, args, kwargs)
        if value is None or isinstance(value, tuple | list | dict):
            what = "nothing" if value is None else f"a {type(value).__name__}"
            raise DifferentiationError(
                f"a gradient is of one number, and the function returned {what}",
                hint="jacobian(f) differentiates all that a function returns" if value else "",
            )
        if not isinstance(value, Value):
            value = Value(value, requires_grad=False)
        if value.shape:
            raise DifferentiationError(
                f"a gradient is of one number, and the function returned the shape {value.shape}",
                hint="sum it up, or take jacobian(f)",
            )
        bars = adjoints(value, create_graph=nested) if value.requires_grad else {}
        found = mapped(lambda _, v: _bar(bars, v), chosen)
        return (value if nested else value._data), found

    return differentiated


def jacobian_of(
    function: Callable[..., Any], argument: int | tuple[int, ...] = 0
) -> Callable[..., Tree]:
    """All derivatives of what a function returns: the result's shape, then the argument's."""

    _check(function, argument)

    @wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Tree:
        result, chosen, nested = called_with(function, argument, args, kwargs)

        def rows(_: str, value: Any) -> Tree:
            if not isinstance(value, Value) or not value.requires_grad:
                value = Value(value, requires_grad=False)
                return mapped(lambda _, v: _zeros(v, value.shape), chosen)
            seeds = np.eye(value.size, dtype=value.dtype).reshape(value.size, *value.shape)
            passes = [
                adjoints(value, seed if value.shape else None, create_graph=nested)
                for seed in seeds
            ]

            def stacked(_: str, v: Value) -> Any:
                found = [_bar(bars, v) for bars in passes]
                if not found:
                    return _zeros(v, value.shape)
                whole = joined(found) if nested else np.stack([np.asarray(f) for f in found])
                made = whole.reshape(value.shape + v.shape)
                return made if made.ndim or nested or made.dtype == np.float32 else float(made)

            return mapped(stacked, chosen)

        return mapped(rows, result)

    return differentiated


def hessian_of(
    function: Callable[..., Any], argument: int | tuple[int, ...] = 0
) -> Callable[..., Tree]:
    """All second derivatives of a function that returns a number: the Jacobian of its gradient."""
    return jacobian_of(grad(function, argument), argument)


def _check(function: Any, argument: Any) -> None:
    if not callable(function):
        hint = "cgprimer.gradient(cgprimer.parse(text), point) is of a graph"
        hint = (
            "value.backward() gives the leaves their grad" if isinstance(function, Value) else hint
        )
        raise UsageError(f"a derivative is of a function, not of {function!r}", hint=hint)
    places = argument if isinstance(argument, tuple) else (argument,)
    if not all(isinstance(place, int) for place in places):
        said = f"arguments to differentiate by are counted from 0, not {argument!r}"
        raise UsageError(said, hint="0 is the first; several are a tuple: (0, 1)")


def called_with(
    function: Callable[..., Any], argument: int | tuple[int, ...], args: Any, kwargs: Any
) -> tuple[Any, Tree, bool]:
    """The result, the arguments to differentiate by as values, and whether this is nested.

    A derivative is one under ``no_grad``, too; then nobody differentiates it again.
    """
    places = argument if isinstance(argument, tuple) else (argument,)
    if not all(-len(args) <= place < len(args) for place in places):
        raise UsageError(
            f"there are {len(args)} arguments: none is number {max(places)}",
            hint="those to differentiate by are given without their names" if kwargs else "",
        )
    nested = State.here.depth > 0
    moved = list(args)
    for place in places:
        moved[place] = mapped(_leaf, args[place])
    chosen = tuple(mapped(lambda _, v: v, moved[p]) for p in places)  # which nobody changes
    with recording(True, with_lines=State.here.with_lines, deeper=1):
        result = function(*moved, **kwargs)
    return result, chosen if isinstance(argument, tuple) else chosen[0], nested


def _leaf(_: str, data: Any) -> Value:
    """A value of its own: of one that is recorded already, a copy."""
    made: Value = EAGER.emit("copy", data) if isinstance(data, Value) else Value(data)
    made.requires_grad = True
    return made


def _bar(bars: dict[Any, Any], value: Value) -> Any:
    return bars[value] if value in bars else _zeros(value)


def _zeros(value: Value, before: tuple[int, ...] = ()) -> Any:
    """No derivative: zeros of a value's shape and precision, with axes before them."""
    made = np.zeros(before + value.shape, value.dtype)[()]
    return made if made.ndim or made.dtype == np.float32 else 0.0


def mapped(function: Callable[[str, Any], Any], tree: Tree, name: str = "") -> Tree:
    """A function of the name and the value of each leaf of a tree, in the same arrangement.

    A list of plain numbers is a leaf.
    """
    if isinstance(tree, dict):
        return {k: mapped(function, v, f"{name}_{k}") for k, v in tree.items()}
    if isinstance(tree, tuple) or (
        isinstance(tree, list)
        and (not tree or any(isinstance(p, Value | np.ndarray | tuple | list | dict) for p in tree))
    ):
        parts = [mapped(function, v, f"{name}_{k}") for k, v in enumerate(tree)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(name, tree)
