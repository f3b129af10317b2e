"""Wrapped functions, and nodes that show how they were computed: recording as it is first taught.

Source: CS 6406, second lecture; Autodidact (Johnson, Duvenaud, Maclaurin), "primitive" and "Node".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from cgprimer.core.primitives.structural import common_shape_of
from cgprimer.errors import UsageError
from cgprimer.recording.eager import EAGER, Recorded
from cgprimer.recording.functions import Custom
from cgprimer.recording.operators import as_data, lifted
from cgprimer.recording.value import Value

_DEEPEST = 30  # levels that a node shows


class Node:
    """A value, the function that computed it, and the nodes that it was computed from.

    Args:
        value: a number or an array to begin with.
        name: what it is called where it is shown.

    Attributes:
        value: the number or array.
        function: the name of what computed it; empty for one that was given.
        fun: the function itself; None for one that was given.
        parents: the nodes that were its arguments.

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

    __array_ufunc__ = None  # numbers of numpy leave operators to the node

    def __init__(self, value: Any, name: str = "") -> None:
        self._own = value if isinstance(value, Value) else Value(value, name=name)
        self.name, self.function = name, ""
        self.fun: Callable[..., Any] | None = None
        self.parents: tuple[Node, ...] = ()

    @property
    def value(self) -> Any:
        """The number or array."""
        return self._own.data

    @property
    def grad(self) -> Any:
        """What backward passes added up."""
        return self._own.grad

    def backward(self, gradient: Any = None) -> None:
        """Add the derivative of this node to ``grad`` of those it was computed from.

        The graph is kept, so that it can be shown afterwards.
        """
        self._own.backward(gradient, retain_graph=True)

    def __str__(self) -> str:
        lines: list[str] = []
        stack = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            shown = _text(node.value)
            called = node.function or node.name
            lines.append("  " * depth + (f"{called} = {shown}" if called else shown))
            if depth < _DEEPEST:
                stack.extend((parent, depth + 1) for parent in reversed(node.parents))
            elif node.parents:
                lines.append("  " * (depth + 1) + "...")
        return "\n".join(lines)

    def __format__(self, how: str) -> str:
        return format(self.value, how) if how else str(self)

    def __repr__(self) -> str:
        return f"<Node {self.function or self.name}: {_text(self.value)}>".replace(" :", ":")


def primitive(
    function: Callable[..., Any], derivative: Any = None, *, name: str = ""
) -> Callable[..., Any]:
    """A function that is recorded.

    Args:
        function: one of numpy's that can be differentiated here, such as ``np.exp``; or one of
            one's own with its derivative, of numbers and arrays, element by element.
        derivative: for each argument a function of the arguments, or just the one of one.
        name: what it is called where it is shown; the function's own name unless given.

    Returns:
        A function of nodes, which gives a node; of values, which gives a value; of plain numbers.

    Raises:
        UsageError: it is no function, or there are too few derivatives.

    >>> from cgprimer import Value, primitive
    >>> cube = primitive(lambda x: x**3, derivative=lambda x: 3*x**2, name="cube")
    >>> x = Value(2.0)
    >>> y = cube(x)
    >>> y.backward()
    >>> y.data, x.grad
    (8.0, 12.0)
    """
    if not callable(function):
        raise UsageError(f"primitive(f) wraps a function, not {function!r}")
    called = name or getattr(function, "__name__", "function")
    rules = derivative if isinstance(derivative, tuple | list) else (derivative,)
    rules = () if derivative is None else rules
    if not all(callable(rule) for rule in rules):
        raise UsageError(f"the derivatives of {called!r} are functions, one for each argument")
    apply = _derived(function, rules, called) if rules else function

    @wraps(function)
    def recorded(*arguments: Any, **options: Any) -> Any:
        plain = [a._own if isinstance(a, Node) else a for a in arguments]
        made = apply(*plain, **options)
        if not any(isinstance(a, Node) for a in arguments):
            return made
        node = Node(made)
        node.function, node.fun = called, function
        node.parents = tuple(a if isinstance(a, Node) else Node(a) for a in arguments)
        return node

    return recorded


def _derived(
    function: Callable[..., Any], rules: Sequence[Callable[..., Any]], called: str
) -> Callable[..., Any]:
    """A function whose backward pass multiplies by given derivatives."""

    class Derived:
        __name__ = called

        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            ctx.save(*arguments)
            return function(*arguments)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return tuple(EAGER.emit("mul", grad, lifted(rule(*ctx.saved))) for rule in rules)

    Derived.__name__ = Derived.__qualname__ = called

    def apply(*arguments: Any, **options: Any) -> Any:
        if options or len(arguments) != len(rules):
            raise UsageError(
                f"{called!r} has {len(rules)} derivatives and was given {len(arguments)} arguments"
                + ", ".join(["", *(f"{name}=" for name in options)]),
                hint="derivative=(by the first, by the second), one for each argument",
            )
        if not any(isinstance(a, Recorded) for a in arguments):
            return function(*arguments)
        operands = [lifted(a) for a in arguments]
        shape = common_shape_of(called, *map(EAGER.shape, operands))
        return Custom(Derived, [EAGER.broadcast(o, shape) for o in operands]).apply()

    return apply


for _sign, _name in [("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
                     ("truediv", "divide"), ("pow", "power"), ("matmul", "matmul")]:  # fmt: skip
    _apply = primitive(getattr(np, _name))
    setattr(Node, f"__{_sign}__", _apply)
    setattr(Node, f"__r{_sign}__", lambda self, other, apply=_apply: apply(other, self))
for _sign, _name in [("neg", "negative"), ("abs", "absolute")]:
    setattr(Node, f"__{_sign}__", primitive(getattr(np, _name)))


def _text(value: Any) -> str:
    data = as_data(value)
    if type(data) is float:
        return repr(data)
    return np.array2string(data, precision=4, threshold=8).replace("\n", "")
