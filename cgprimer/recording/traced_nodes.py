"""Wrapped functions, and nodes that show how they were computed: recording as it is first taught.

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
    """A value, the function that computed it, and the nodes that were its arguments.

    Args:
        value: a number or an array.
        name: name of the node in printed text.

    Attributes:
        value: the number or array.
        function: name of the function that computed the node; empty for a leaf.
        fun: the function itself; None for a leaf.
        parents: the nodes that were arguments of the function.

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

    __array_ufunc__ = None  # numpy's numbers leave operators to the node

    def __init__(self, value: Any, name: str = "") -> None:
        self._value = value if isinstance(value, Value) else Value(value, name=name)
        self.name, self.function = name, ""
        self.fun: Callable[..., Any] | None = None
        self.parents: tuple[Node, ...] = ()

    @property
    def value(self) -> Any:
        """The number or array."""
        return self._value.data

    @property
    def grad(self) -> Any:
        """The accumulated gradient of all backward passes."""
        return self._value.grad

    def backward(self, gradient: Any = None) -> None:
        """Add the derivative of this node to ``grad`` of the nodes that it depends on.

        The graph is kept, so that it can be shown afterwards.
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
    """Wrap a function so that its calls are recorded.

    Args:
        function: a differentiable function of numpy, such as ``np.exp``; or any elementwise
            function of numbers and arrays, together with its derivative.
        derivative: for each argument a function of all arguments; a single function for a
            function of one argument.
        name: name in printed text; by default the name of the function.

    Returns:
        A function that returns a node for nodes, a value for values, and plain data for plain
        data.

    Raises:
        UsageError: ``function`` or ``derivative`` is not callable, or there are too few
            derivatives.

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
        raise UsageError(f"the derivatives of {label!r} must be functions, one for each argument")
    apply = _attach_derivatives(function, derivatives, label) if derivatives else function

    @wraps(function)
    def traced(*arguments: Any, **options: Any) -> Any:
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
    """Return a function for values whose backward pass multiplies by the given derivatives."""

    class Elementwise:
        """A function with a custom backward pass."""

        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            ctx.save(*arguments)
            return function(*arguments)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            partials = [to_operand(derivative(*ctx.saved)) for derivative in derivatives]
            return tuple(EAGER.emit("mul", grad, partial) for partial in partials)

    Elementwise.__name__ = Elementwise.__qualname__ = label

    def apply(*arguments: Any, **options: Any) -> Any:
        if options or len(arguments) != len(derivatives):
            raise UsageError(
                f"{label!r} has {pluralize(len(derivatives), 'derivative')}, got"
                f" {pluralize(len(arguments), 'argument')}"
                + ", ".join(["", *(f"{name}=" for name in options)]),
                hint="pass one derivative for each argument: derivative=(by_first, by_second)",
            )
        if not any(isinstance(a, ValueBase) for a in arguments):
            return function(*arguments)
        operands = [to_operand(a) for a in arguments]
        shape = broadcast_shapes(label, *map(EAGER.shape, operands))
        return CustomOperation(Elementwise, [EAGER.broadcast(o, shape) for o in operands]).apply()

    return apply


def _add_operators() -> None:
    """Give nodes Python's operators, each a wrapped function of numpy."""
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
    data = to_data(value)
    if type(data) is float:
        return repr(data)
    return np.array2string(data, precision=4, threshold=8).replace("\n", "")
