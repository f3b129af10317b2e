"""Wrapped functions and nodes: the way in which recording is introduced in lectures.

Source: CS 6406, second lecture; Autodidact (Johnson, Duvenaud, Maclaurin), "primitive" and "Node".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from cgprimer.core.operations.array_shapes import broadcast_shapes
from cgprimer.errors import UsageError, pluralize
from cgprimer.recording.custom_functions import CustomOperation
from cgprimer.recording.data_conversion import to_data, to_operand
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.value import Value
from cgprimer.recording.value_base import ValueBase

_MAX_DEPTH = 30  # levels in the text of a node


class Node:
    """A node of a traced computation: a value, its function, and its parent nodes.

    Args:
        value: a scalar or an array.
        name: name of the node in printed text.

    Attributes:
        value: the scalar or array.
        function: name of the function that computed the node; empty for a leaf.
        fun: the function itself; None for a leaf.
        parents: the arguments of the function, as nodes.

    >>> import numpy as np
    >>> from cgprimer import Node, primitive
    >>> exp, multiply = primitive(np.exp), primitive(np.multiply)
    >>> z = Node(1.5, name="z")
    >>> y = exp(multiply(z, -1.0))
    >>> print(y)
    exp = 0.22313016014842982
      multiply = -1.5
        z = 1.5
        -1.0
    >>> y.backward()
    >>> round(z.grad, 6)
    -0.22313
    """

    __array_ufunc__ = None  # operators of numpy defer to the node

    def __init__(self, value: Any, name: str = "") -> None:
        self._value = value if isinstance(value, Value) else Value(value, name=name)
        self.name, self.function = name, ""
        self.fun: Callable[..., Any] | None = None
        self.parents: tuple[Node, ...] = ()

    @property
    def value(self) -> Any:
        """The scalar or array of the node."""
        return self._value.data

    @property
    def grad(self) -> Any:
        """The gradient accumulated in all backward passes."""
        return self._value.grad

    def backward(self, gradient: Any = None) -> None:
        """Add the derivatives of this node to ``grad`` of the nodes that it depends on.

        The graph is retained, so that it can be printed afterwards.
        """
        self._value.backward(gradient, retain_graph=True)

    def __str__(self) -> str:
        lines: list[str] = []
        stack = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            text = _format_data(node.value)
            label = node.function or node.name
            lines.append("  " * depth + (f"{label} = {text}" if label else text))
            if depth < _MAX_DEPTH:
                stack.extend((parent, depth + 1) for parent in reversed(node.parents))
            elif node.parents:
                lines.append("  " * (depth + 1) + "...")
        return "\n".join(lines)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __repr__(self) -> str:
        label = self.function or self.name
        return f"<Node {label}: {_format_data(self.value)}>".replace(" :", ":")


def primitive(
    function: Callable[..., Any], derivative: Any = None, *, name: str = ""
) -> Callable[..., Any]:
    """Wrap a function so that calls with nodes or values are recorded.

    Args:
        function: a differentiable function of numpy, such as ``np.exp``; or any elementwise
            function of numbers and arrays, together with its derivative.
        derivative: a tuple with one partial derivative per argument, each a function of all
            arguments; or a single function if there is one argument.
        name: name in printed text; by default, the name of the function.

    Returns:
        A function that returns a node for nodes, a value for values, and plain data for plain
        data.

    Raises:
        UsageError: ``function`` or ``derivative`` is not callable, or the number of derivatives
            does not match the number of arguments.

    >>> from cgprimer import Value, primitive
    >>> cube = primitive(lambda x: x**3, derivative=lambda x: 3*x**2, name="cube")
    >>> x = Value(2.0)
    >>> y = cube(x)
    >>> y.backward()
    >>> y.data, x.grad
    (8.0, 12.0)
    """
    if not callable(function):
        raise UsageError(f"primitive() requires a function, got {function!r}")
    label = name or getattr(function, "__name__", "function")
    derivatives = derivative if isinstance(derivative, tuple | list) else (derivative,)
    if derivative is None:
        derivatives = ()
    if not all(map(callable, derivatives)):
        raise UsageError(f"`derivative` of {label!r} must be a function or a tuple of functions")
    apply = _attach_derivatives(function, derivatives, label) if derivatives else function

    @wraps(function)
    def traced(*arguments: Any, **options: Any) -> Any:
        """Call the function; given a node, return a node whose parents are the arguments."""
        values = [a._value if isinstance(a, Node) else a for a in arguments]
        result = apply(*values, **options)
        if not any(isinstance(a, Node) for a in arguments):
            return result
        node = Node(result)
        node.function, node.fun = label, function
        node.parents = tuple(a if isinstance(a, Node) else Node(a) for a in arguments)
        return node

    return traced


def _attach_derivatives(
    function: Callable[..., Any], derivatives: Sequence[Callable[..., Any]], label: str
) -> Callable[..., Any]:
    """Return an elementwise function of values whose backward pass uses the given derivatives."""

    class Elementwise:
        """The forward and backward pass of the elementwise function."""

        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            """Apply the function and save its arguments."""
            ctx.save(*arguments)
            return function(*arguments)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            """Multiply the upstream gradient by each partial derivative."""
            partials = [to_operand(derivative(*ctx.saved)) for derivative in derivatives]
            return tuple(EAGER.emit("mul", grad, partial) for partial in partials)

    Elementwise.__name__ = Elementwise.__qualname__ = label

    def apply(*arguments: Any, **options: Any) -> Any:
        """Call the function with broadcast operands and record the call."""
        if options or len(arguments) != len(derivatives):
            raise UsageError(
                f"{label!r} requires {pluralize(len(derivatives), 'argument')}, one per derivative,"
                f" got {len(arguments)}" + "".join(f" and {name}=" for name in options),
                hint="pass one derivative per argument: derivative=(dfdx, dfdy)",
            )
        if not any(isinstance(a, ValueBase) for a in arguments):
            return function(*arguments)
        operands = [to_operand(a) for a in arguments]
        shape = broadcast_shapes(label, *map(EAGER.shape, operands))
        return CustomOperation(Elementwise, [EAGER.broadcast(o, shape) for o in operands]).apply()

    return apply


def _add_operators() -> None:
    """Define Python's operators for nodes as wrappers around numpy functions."""
    binary = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
              "pow": np.power, "matmul": np.matmul}  # fmt: skip
    for operator, function in binary.items():
        apply = primitive(function)
        setattr(Node, f"__{operator}__", apply)
        setattr(Node, f"__r{operator}__", lambda self, other, apply=apply: apply(other, self))
    for operator, function in {"neg": np.negative, "abs": np.absolute}.items():
        setattr(Node, f"__{operator}__", primitive(function))


_add_operators()


def _format_data(value: Any) -> str:
    """Format a scalar in full, and an array with 4 digits on one line."""
    data = to_data(value)
    if type(data) is float:
        return repr(data)
    return np.array2string(data, precision=4, threshold=8).replace("\n", "")
