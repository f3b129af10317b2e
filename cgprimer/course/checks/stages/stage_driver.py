"""The driver of the ladder: runs in the process of a submission, and reports its values as data.

It imports only the standard library, contains no expected value and judges nothing. Each public
function receives the submission's module before its other arguments. A *program* is plain data:
``leaves``, each ``["input", number]`` or ``["constant", number]``, then ``steps``, each
``[operation, operands]``. The last value is the result.
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
_MAX_VALUES = 20_000  # in a graph


# --- running a program ---------------------------------------------------------------------------


def _apply_operation(module: Any, name: str, operands: list[Any]) -> Any:
    """Apply an operation to numbers, or to the student's values."""
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
        message = f"{kind} has no method {name!r}, and the submission has no function {name!r}"
        raise AttributeError(message)
    return function(operand)


def _run_program(module: Any, program: dict[str, Any], inputs: list[Any]) -> list[Any]:
    """Run a program and return the values of all leaves and operations."""
    remaining = iter(inputs)
    values = [next(remaining) if kind == "input" else number for kind, number in program["leaves"]]
    for name, operands in program["steps"]:
        values.append(_apply_operation(module, name, [values[k] for k in operands]))
    return values


def _convert_to_function(module: Any, program: dict[str, Any]) -> Callable[..., Any]:
    """Convert a program to a Python function of a list of inputs."""
    return lambda xs: _run_program(module, program, list(xs))[-1]


def _list_inputs(program: dict[str, Any]) -> list[float]:
    """Return the input values of a program."""
    return [number for kind, number in program["leaves"] if kind == "input"]


# --- reading the student's values ----------------------------------------------------------------


def _get_first_attribute(value: Any, names: tuple[str, ...]) -> Any:
    """Return the first of the named attributes that an object has, or None."""
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def _report_number(value: Any) -> Any:
    """Convert a number to a float, and any other object to a short description."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    data = _get_first_attribute(value, _DATA)
    return repr(value)[:60] if not isinstance(data, int | float) else f"a {type(value).__name__}"


def _report_gradient(value: Any) -> Any:
    """Report the gradient of a value, stored as a number or as a value with data."""
    grad = getattr(value, "grad", None)
    data = _get_first_attribute(grad, _DATA)
    return _report_number(grad if data is None or isinstance(grad, float) else data)


def _get_data(value: Any) -> Any:
    """Return the data of a student's value, or a number unchanged."""
    data = _get_first_attribute(value, _DATA)
    return value if data is None or isinstance(value, int | float) else data


def _list_parents(value: Any) -> list[Any]:
    """Return the parents of a student's value."""
    parents = _get_first_attribute(value, _PARENTS)
    return list(parents) if isinstance(parents, list | tuple | set | frozenset) else []


class CyclicGraph(Exception):
    """Raised if a value in a graph is its own parent or ancestor."""


class GraphTooLarge(Exception):
    """Raised if a graph has more values than the expression can need."""


def _sort_graph(root: Any) -> list[Any]:
    """Return all values that lead to the root, parents before children.

    Raises:
        CyclicGraph: a value is its own ancestor.
        GraphTooLarge: the graph has too many values.
    """
    order: list[Any] = []
    finished: set[int] = set()
    entered: dict[int, Any] = {}  # keeps the values alive, so that no two have the same id
    stack = [(root, False)]
    while stack:
        value, parents_done = stack.pop()
        if id(value) in finished:
            continue
        if parents_done:
            finished.add(id(value))
            order.append(value)
            continue
        if id(value) in entered:
            raise CyclicGraph("a value is its own parent or its own ancestor")
        entered[id(value)] = value
        parents = _list_parents(value)
        if len(entered) > _MAX_VALUES or len(stack) + len(parents) > 4 * _MAX_VALUES:
            raise GraphTooLarge(f"more than {_MAX_VALUES:,} values lead to the result")
        stack.append((value, True))
        stack += [(p, False) for p in reversed(parents) if id(p) not in finished]
    return order


def _describe_graph(order: list[Any]) -> list[dict[str, Any]]:
    """Describe the values of a student's graph as plain data.

    Args:
        order: the values, parents before children.
    """
    index = {id(value): k for k, value in enumerate(order)}
    return [
        {
            "data": _report_number(
                value if isinstance(value, int | float) else _get_first_attribute(value, _DATA)
            ),
            "grad": _report_gradient(value),
            "op": str(_get_first_attribute(value, _OPERATION) or "")[:20],
            "parents": [index[id(p)] for p in _list_parents(value) if id(p) in index],
            "set": isinstance(_get_first_attribute(value, _PARENTS), set | frozenset),
        }
        for value in order
    ]


# --- calls of the checks -------------------------------------------------------------------------


def list_names(module: Any) -> list[str]:
    """Return the public names that the submission defines."""
    return [name for name in vars(module) if not name.startswith("_")]


def compute_quotient(module: Any, program: dict[str, Any], h: float) -> dict[str, Any]:
    """Report the student's difference quotient for a program with one input."""
    f = _convert_to_function(module, program)
    quotient = module.difference_quotient(lambda x: f([x]), *_list_inputs(program), h)
    return {"value": _report_number(quotient)}


def compute_gradient(module: Any, program: dict[str, Any], h: float) -> dict[str, Any]:
    """Report the student's numerical gradient of a program, and the inputs after the call."""
    point = _list_inputs(program)
    gradient = module.numerical_gradient(_convert_to_function(module, program), point, h)
    return {"value": [_report_number(value) for value in gradient], "point": point}


def build_values(module: Any, program: dict[str, Any], action: str = "") -> dict[str, Any]:
    """Run a program on the student's ``Value`` objects, and report the resulting graph.

    Args:
        module: the submission.
        program: the program.
        action: ``backward`` to run a backward pass, ``order`` to sort the values, or empty.
    """
    leaves = [module.Value(number) for number in _list_inputs(program)]
    values = _run_program(module, program, leaves)
    root = values[-1]
    report: dict[str, Any] = {}
    before = _sort_graph(root)  # keeps the values alive, so that no two have the same id
    if action == "backward":
        root.backward()
    ordered = None
    if action == "order" or (action and "topological_order" in vars(module)):
        ordered = list(module.topological_order(root))[: _MAX_VALUES * 4]
    order = _sort_graph(root)
    report["nodes"] = _describe_graph(order)
    index = {id(value): k for k, value in enumerate(order)}
    if ordered is not None:
        report["order"] = [index.get(id(value), -1) for value in ordered]
    del before
    report["at"] = [index.get(id(value), -1) for value in values]
    report["inputs"] = [_report_number(_get_first_attribute(leaf, _DATA)) for leaf in leaves]
    report["grads"] = [_report_gradient(leaf) for leaf in leaves]
    return report


def run_chain(module: Any, length: int, action: str) -> dict[str, Any]:
    """Report whether the submission sorts or differentiates a long sum without a RecursionError."""
    x = module.Value(1.0)
    try:
        for _ in range(length):
            x = x + 1.0
        if action == "order":
            module.topological_order(x)
        else:
            x.backward()
        return {"error": ""}
    except RecursionError:
        return {"error": "RecursionError"}


def zero_gradients(module: Any, program: dict[str, Any]) -> dict[str, Any]:
    """Report the gradients of leaves after backward passes with and without ``zero_grad``.

    Returns:
        ``first``: the report on a first pass, on separate leaves; ``zeroed`` and ``data``: after
        zeroing; ``second``: after another pass; ``unzeroed``: after a pass without zeroing;
        ``again``: after two passes over the same graph.
    """
    first = build_values(module, program, "backward")
    leaves = [module.Value(number) for number in _list_inputs(program)]

    def run_backward() -> list[Any]:
        """Run the program and a backward pass; return the gradients of the leaves."""
        _run_program(module, program, leaves)[-1].backward()
        return [_report_gradient(leaf) for leaf in leaves]

    run_backward()
    module.zero_grad(leaves)
    report = {"zeroed": [_report_gradient(leaf) for leaf in leaves]}
    report["data"] = [_report_number(_get_first_attribute(leaf, _DATA)) for leaf in leaves]
    report["second"] = run_backward()
    report["unzeroed"] = run_backward()
    leaves = [module.Value(number) for number in _list_inputs(program)]
    root = _run_program(module, program, leaves)[-1]
    root.backward()
    root.backward()
    return report | {"again": [_report_gradient(leaf) for leaf in leaves], "first": first}


def run_optimizer(
    module: Any, program: dict[str, Any], rate: float, steps: int, decay: float | None = None
) -> dict[str, Any]:
    """Report the parameters after each update of the student's SGD, and the gradients.

    Gradients are zeroed before each backward pass.
    """
    leaves = [module.Value(number) for number in _list_inputs(program)]
    optimizer = module.SGD(leaves, rate, *([] if decay is None else [decay]))
    rows, grads = [], []
    for _ in range(steps):
        for leaf in leaves:
            leaf.grad = 0.0
        _run_program(module, program, leaves)[-1].backward()
        grads.append([_report_gradient(leaf) for leaf in leaves])
        optimizer.step()
        rows.append([_report_number(_get_first_attribute(leaf, _DATA)) for leaf in leaves])
    return {"rows": rows, "grads": grads}


def record_tape(module: Any, program: dict[str, Any], with_adjoints: bool) -> dict[str, Any]:
    """Report the student's tape of a program, and its adjoints if requested."""
    tape = module.record(_convert_to_function(module, program), _list_inputs(program))
    rows = []
    for row in tape:
        name, operands, value = row
        valid = all(isinstance(k, int) for k in operands) and isinstance(name, str)
        indices = [int(k) for k in operands] if valid else None
        rows.append([str(name)[:20], indices, _report_number(value)])
    report: dict[str, Any] = {"tape": rows, "adjoints": None}
    if with_adjoints:
        report["adjoints"] = [_report_number(_get_data(value)) for value in module.adjoints(tape)]
    return report


def sweep_long_tape(module: Any, length: int) -> dict[str, Any]:
    """Report the first adjoint that the student computes on a long tape of additions."""
    tape: list[tuple[str, tuple[int, ...], float]] = [("input", (), 1.0)]
    tape += [("add", (k, 0), k + 2.0) for k in range(length)]
    try:
        return {"first": _report_number(_get_data(module.adjoints(tape)[0])), "error": ""}
    except RecursionError:
        return {"error": "RecursionError"}


def compute_derivatives(module: Any, program: dict[str, Any], order: int) -> dict[str, Any]:
    """Report the student's derivatives of orders 1 to ``order`` of a program with one input."""
    f = _convert_to_function(module, program)
    derivatives = module.derivatives(lambda x: f([x]), *_list_inputs(program), order)
    return {"value": [_report_number(_get_data(value)) for value in derivatives]}


def compute_hessian(module: Any, program: dict[str, Any]) -> dict[str, Any]:
    """Report the student's Hessian of a program."""
    matrix = module.hessian(_convert_to_function(module, program), _list_inputs(program))
    return {"value": [[_report_number(_get_data(value)) for value in row] for row in matrix]}


def run_network(
    module: Any, weights: list[Any], biases: list[Any], inputs: list[list[float]]
) -> dict[str, Any]:
    """Report the outputs, parameters and gradients of the student's network.

    The gradients are those of the first output of the first sample.
    """
    network = module.Network(weights, biases)
    outputs = [network(list(row)) for row in inputs]
    outputs = [list(o) if isinstance(o, list | tuple) else [o] for o in outputs]
    parameters = list(network.parameters())
    report = {
        "outputs": [[_report_number(_get_data(o)) for o in row] for row in outputs],
        "parameters": [_report_number(_get_data(p)) for p in parameters],
    }
    outputs[0][0].backward()
    return report | {"grads": [_report_gradient(p) for p in parameters]}


def train_network(
    module: Any, weights: list[Any], biases: list[Any], data: list[Any], rate: float, epochs: int
) -> dict[str, Any]:
    """Report the losses of the student's training, and the first output and parameters after it."""
    network = module.Network(weights, biases)
    losses = module.train(network, [(list(x), list(y)) for x, y in data], rate, epochs)
    outputs = network(list(data[0][0]))
    first = outputs[0] if isinstance(outputs, list | tuple) else outputs
    return {
        "losses": [_report_number(_get_data(loss)) for loss in losses or []][:10_000],
        "output": _report_number(_get_data(first)),
        "parameters": [_report_number(_get_data(p)) for p in network.parameters()],
    }
