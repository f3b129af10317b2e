"""Runs beside a submission, in its process: uses a student's engine, reports what it holds.

It needs Python alone, holds no expected value and judges nothing. Its functions are given the
submission's module before their arguments. A *program* is plain data: ``leaves``, each
``["input", number]`` or ``["constant", number]``, then ``steps``, each ``[operation, operands]``;
the last value is the result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": operator.pow, "neg": operator.neg,
}  # fmt: skip
_PARENTS = ("parents", "_parents", "_prev", "prev", "children", "_children", "operands", "inputs")
_DATA = ("data", "value", "_data", "val")
_OPERATION = ("op", "_op", "operation", "operator", "op_name")
_MOST = 20_000  # values of a graph


# --- the student's numbers -----------------------------------------------------------------------


def _applied(module: Any, name: str, operands: list[Any]) -> Any:
    """An operation on numbers, or on values of the student's."""
    if name in _OPERATORS:
        return _OPERATORS[name](*operands)
    (operand,) = operands
    if name == "copy":
        return operand
    if isinstance(operand, int | float):
        return max(0.0, operand) if name == "relu" else getattr(math, name)(operand)
    if hasattr(operand, name):
        return getattr(operand, name)()
    function = getattr(module, name, None)
    if function is None:
        kind = type(operand).__name__
        raise AttributeError(f"{kind} has no {name}(), and there is no function {name}")
    return function(operand)


def _ran(module: Any, program: dict[str, Any], inputs: list[Any]) -> list[Any]:
    given = iter(inputs)
    values = [next(given) if kind == "input" else number for kind, number in program["leaves"]]
    for name, operands in program["steps"]:
        values.append(_applied(module, name, [values[k] for k in operands]))
    return values


def _function(module: Any, program: dict[str, Any]) -> Callable[..., Any]:
    """A program as a function of a list."""
    return lambda xs: _ran(module, program, list(xs))[-1]


def _inputs(program: dict[str, Any]) -> list[float]:
    return [number for kind, number in program["leaves"] if kind == "input"]


def _first(value: Any, names: tuple[str, ...]) -> Any:
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def _number(value: Any) -> Any:
    """A number; what is none, as text."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    inner = _first(value, _DATA)
    return repr(value)[:60] if not isinstance(inner, int | float) else f"a {type(value).__name__}"


def _grad(value: Any) -> Any:
    """A gradient; second stages may keep it as a value."""
    grad = getattr(value, "grad", None)
    inner = _first(grad, _DATA)
    return _number(grad if inner is None or isinstance(grad, float) else inner)


def _parents(value: Any) -> list[Any]:
    found = _first(value, _PARENTS)
    return list(found) if isinstance(found, list | tuple | set | frozenset) else []


class CyclicGraph(Exception):
    """A value is its own parent, or an ancestor of itself."""


class GraphTooLarge(Exception):
    """A graph has more values than the expression can need."""


def _graph(root: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """Every value that leads to one, operands before what is made of them, as plain data too."""
    order: list[Any] = []
    place: dict[int, int] = {}
    entered: dict[int, Any] = {}  # values are kept alive, so that no two have one id
    stack = [(root, False)]
    while stack:
        value, done = stack.pop()
        if id(value) in place:
            continue
        if done:
            place[id(value)] = len(order)
            order.append(value)
            continue
        if id(value) in entered:
            raise CyclicGraph("a value is its own parent, or an ancestor of itself")
        entered[id(value)] = value
        parents = _parents(value)
        if len(entered) > _MOST or len(stack) + len(parents) > 4 * _MOST:
            raise GraphTooLarge(f"more than {_MOST:,} values lead to the result")
        stack.append((value, True))
        stack += [(p, False) for p in reversed(parents) if id(p) not in place]
    rows = [
        {
            "data": _number(_first(value, _DATA) if not isinstance(value, int | float) else value),
            "grad": _grad(value),
            "op": str(_first(value, _OPERATION) or "")[:20],
            "parents": [place[id(p)] for p in _parents(value) if id(p) in place],
            "set": isinstance(_first(value, _PARENTS), set | frozenset),
        }
        for value in order
    ]
    return order, rows


# --- what is asked -------------------------------------------------------------------------------


def names(module: Any) -> list[str]:
    """What the submission defines."""
    return [name for name in vars(module) if not name.startswith("_")]


def quotient(module: Any, program: dict[str, Any], h: float) -> dict[str, Any]:
    """The student's difference quotient of a program with one input."""
    f = _function(module, program)
    return {"value": _number(module.difference_quotient(lambda x: f([x]), *_inputs(program), h))}


def gradient(module: Any, program: dict[str, Any], h: float) -> dict[str, Any]:
    """The student's gradient by differences, and the point afterwards."""
    point = _inputs(program)
    found = module.numerical_gradient(_function(module, program), point, h)
    return {"value": [_number(value) for value in found], "point": point}


def built(module: Any, program: dict[str, Any], do: str = "") -> dict[str, Any]:
    """What the student's values hold after a program, and after what is done then.

    ``do``: ``backward``, ``order``; or nothing.
    """
    numbers = _inputs(program)
    leaves = [module.Value(number) for number in numbers]
    values = _ran(module, program, leaves)
    root = values[-1]
    found: dict[str, Any] = {}
    before = _graph(root)[0]  # alive all the while, so that no two values have one id
    if do == "backward":
        root.backward()
    ordered = None
    if do == "order" or (do and "topological_order" in vars(module)):
        ordered = list(module.topological_order(root))[: _MOST * 4]
    order, found["nodes"] = _graph(root)
    place = {id(value): k for k, value in enumerate(order)}
    if ordered is not None:
        found["order"] = [place.get(id(value), -1) for value in ordered]
    del before
    found["at"] = [place.get(id(value), -1) for value in values]
    found["inputs"] = [_number(_first(leaf, _DATA)) for leaf in leaves]
    found["grads"] = [_grad(leaf) for leaf in leaves]
    return found


def chain(module: Any, length: int, do: str) -> dict[str, Any]:
    """A long sum: whether it can be ordered, swept, recorded at all."""
    x = module.Value(1.0)
    try:
        for _ in range(length):
            x = x + 1.0
        if do == "order":
            module.topological_order(x)
        else:
            x.backward()
        return {"error": ""}
    except RecursionError:
        return {"error": "RecursionError"}


def zeroed(module: Any, program: dict[str, Any]) -> dict[str, Any]:
    """Gradients of leaves: after a pass, zeroed, after a second pass, and without zeroing.

    ``first`` is what one pass on leaves of its own leaves behind.
    """
    first = built(module, program, "backward")
    leaves = [module.Value(number) for number in _inputs(program)]

    def swept() -> list[Any]:
        _ran(module, program, leaves)[-1].backward()
        return [_grad(leaf) for leaf in leaves]

    swept()
    module.zero_grad(leaves)
    found = {"zeroed": [_grad(leaf) for leaf in leaves]}
    found["data"] = [_number(_first(leaf, _DATA)) for leaf in leaves]
    found["second"] = swept()
    found["unzeroed"] = swept()
    leaves = [module.Value(number) for number in _inputs(program)]
    root = _ran(module, program, leaves)[-1]
    root.backward()
    root.backward()
    return found | {"again": [_grad(leaf) for leaf in leaves], "first": first}


def descended(
    module: Any, program: dict[str, Any], rate: float, steps: int, decay: float | None = None
) -> dict[str, Any]:
    """The parameters after each step of the student's SGD, and the gradients that it was given.

    Gradients are zeroed before each pass.
    """
    leaves = [module.Value(number) for number in _inputs(program)]
    optimizer = module.SGD(leaves, rate, *([] if decay is None else [decay]))
    rows, grads = [], []
    for _ in range(steps):
        for leaf in leaves:
            leaf.grad = 0.0
        _ran(module, program, leaves)[-1].backward()
        grads.append([_grad(leaf) for leaf in leaves])
        optimizer.step()
        rows.append([_number(_first(leaf, _DATA)) for leaf in leaves])
    return {"rows": rows, "grads": grads}


def taped(module: Any, program: dict[str, Any], swept: bool) -> dict[str, Any]:
    """The student's tape of a function, and, if swept, the adjoints along it."""
    tape = module.record(_function(module, program), _inputs(program))
    rows = []
    for row in tape:
        name, operands, value = row
        plain = all(isinstance(k, int) for k in operands) and isinstance(name, str)
        rows.append([str(name)[:20], [int(k) for k in operands] if plain else None, _number(value)])
    found: dict[str, Any] = {"tape": rows, "adjoints": None}
    if swept:
        found["adjoints"] = [_number(_inner(value)) for value in module.adjoints(tape)]
    return found


def _inner(value: Any) -> Any:
    inner = _first(value, _DATA)
    return value if inner is None or isinstance(value, int | float) else inner


def long_tape(module: Any, length: int) -> dict[str, Any]:
    """The adjoints of a long tape that is no student's: a leaf, and sums with it."""
    tape: list[tuple[str, tuple[int, ...], float]] = [("input", (), 1.0)]
    tape += [("add", (k, 0), k + 2.0) for k in range(length)]
    try:
        return {"first": _number(_inner(module.adjoints(tape)[0])), "error": ""}
    except RecursionError:
        return {"error": "RecursionError"}


def derivatives(module: Any, program: dict[str, Any], order: int) -> dict[str, Any]:
    """The student's derivatives of a program with one input, first to highest."""
    f = _function(module, program)
    found = module.derivatives(lambda x: f([x]), *_inputs(program), order)
    return {"value": [_number(_inner(value)) for value in found]}


def hessian(module: Any, program: dict[str, Any]) -> dict[str, Any]:
    """The student's matrix of second derivatives."""
    found = module.hessian(_function(module, program), _inputs(program))
    return {"value": [[_number(_inner(value)) for value in row] for row in found]}


def network(
    module: Any, weights: list[Any], biases: list[Any], inputs: list[list[float]]
) -> dict[str, Any]:
    """What the student's network gives, its parameters, and their gradients."""
    made = module.Network(weights, biases)
    outputs = [made(list(row)) for row in inputs]
    outputs = [list(o) if isinstance(o, list | tuple) else [o] for o in outputs]
    parameters = list(made.parameters())
    found = {
        "outputs": [[_number(_inner(o)) for o in row] for row in outputs],
        "parameters": [_number(_inner(p)) for p in parameters],
    }
    outputs[0][0].backward()
    return found | {"grads": [_grad(p) for p in parameters]}


def trained(
    module: Any, weights: list[Any], biases: list[Any], data: list[Any], rate: float, epochs: int
) -> dict[str, Any]:
    """The losses that the student's training gives, and the output and parameters afterwards."""
    made = module.Network(weights, biases)
    losses = module.train(made, [(list(x), list(y)) for x, y in data], rate, epochs)
    outputs = made(list(data[0][0]))
    first = outputs[0] if isinstance(outputs, list | tuple) else outputs
    return {
        "losses": [_number(_inner(loss)) for loss in losses or []][:10_000],
        "output": _number(_inner(first)),
        "parameters": [_number(_inner(p)) for p in made.parameters()],
    }
