"""The graph that a student's values make: as an expression graph, and how gradients go wrong on it.

Sweeps here read shares: the partial on every edge of the student's own graph. What a mistake would
give is what the sweep gives when it overwrites, takes values in another order, or leaves something
out; the one that gives the student's numbers is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from cgprimer.checking.stages.stage import close
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.language.syntax import Apply, Name, Number
from cgprimer.core.methods import differentiate
from cgprimer.core.primitives import floats, primitive
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.run import values_of
from cgprimer.errors import CgprimerError

Node = Mapping[str, Any]
Edges = list[list[tuple[int, float]]]
_NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "^": "pow", "truediv": "div",
    "power": "pow", "plus": "add", "minus": "sub", "times": "mul", "multiply": "mul",
    "subtract": "sub", "divide": "div", "negative": "neg", "ln": "log",
}  # fmt: skip
OPERATIONS = ("add", "sub", "mul", "div", "pow", "neg", "exp", "log", "sin", "tanh", "relu")


SAYS = {
    "another graph": "the sweep is right, but the values have made another graph than that of the"
    " expression: an operator has its operands the wrong way round, or loses one, or data change",
    "seed missing": "nothing flows: the gradient of the result by itself is 1",
    "upstream gradient left out": "each local derivative is to be multiplied by the gradient of the"
    " result",
    "= instead of +=": "what comes from several places is to be added up, not overwritten",
    "child before parent": "a value passes its gradient on before all of it has arrived: reverse"
    " topological order",
    "sent on again and again": "a value passes on all it has whenever something arrives, so parts"
    " are counted several times",
    "= instead of += and child before parent": "gradients are overwritten, and passed on before all"
    " has arrived",
}


def operation(text: str) -> tuple[str, float | None]:
    """The operation that a student's name for it means, and the exponent in it, if there is one.

    >>> operation("+"), operation("**2"), operation("ReLU")
    (('add', None), ('pow', 2.0), ('relu', None))
    """
    plain = text.strip().strip("_").casefold()
    power = re.fullmatch(r"(?:\*\*|\^|pow) *\(?(-?[0-9.]+)\)?", plain)
    if power:
        return "pow", float(power[1])
    return _NAMES.get(plain, plain), None


def _expression(nodes: Sequence[Node], node: Node, names: Mapping[int, str]) -> str | None:
    """What gives a node's number from its parents', as the operation's name says if it does."""
    said, exponent = operation(node["op"])
    parents = list(node["parents"])
    if node["set"] and len(parents) == 1 and exponent is None and _arity(said) == 2:
        parents *= 2  # a set has a*a's operand once
    orders = permutations(parents) if node["set"] else [tuple(parents)]
    for order, name in product(orders, (said, *(o for o in OPERATIONS if o != said))):
        operands: list[Name | Number] = [Name(names[k]) for k in order]
        numbers = [nodes[k]["data"] for k in order]
        if not all(isinstance(number, float) for number in numbers):
            return None
        if name == "pow" and exponent is not None:
            operands, numbers = [*operands, Number(exponent)], [*numbers, exponent]
        fits = len(numbers) == _arity(name)
        if fits and close(node["data"], floats.function(name)(*numbers)):
            return unparse(Apply(name, tuple(operands)))
    return None


def _arity(name: str) -> int:
    """The number of operands; 0 of what is no operation of the ladder."""
    row = primitive(name) if name in OPERATIONS else None
    return row.arity if row else 0


def student_graph(nodes: Sequence[Node], names: Mapping[int, str] | None = None) -> ExpressionGraph:
    """What a student's values make, as a graph that cgprimer draws and traces.

    Args:
        nodes: from the driver: ``data``, ``op``, ``parents``; parents before children.
        names: of some nodes; the others are called ``v0``, ``v1`` and so on.

    Raises:
        SourceError: there is nothing that was computed.

    >>> leaf = {"data": 3.0, "op": "", "parents": [], "set": False}
    >>> print(student_graph([leaf, {"data": 9.0, "op": "*", "parents": [0, 0], "set": False}]))
    input v0 = 3
    v1 = v0*v0
    output v1
    """
    known = {k: f"v{k}" for k in range(len(nodes))} | dict(names or {})
    lines = []
    for k, node in enumerate(nodes):
        made = _expression(nodes, node, known) if node["parents"] else None
        data = node["data"]  # what cannot be told is an input
        number = f" = {data!r}" if isinstance(data, float) and abs(data) < 1e300 else ""
        lines.append(f"{known[k]} = {made}" if made else f"input {known[k]}{number}")
    computed = not lines[-1].startswith("input ")
    return parse("\n".join([*lines, *([f"output {known[len(nodes) - 1]}"] if computed else [])]))


def edges_of(nodes: Sequence[Node]) -> Edges | None:
    """For each node its parents, with the partial on the edge; None where it has no text."""
    graph = student_graph(nodes)
    if len(graph.definitions) != sum(bool(node["parents"]) for node in nodes):
        return None
    leaves = [f"v{k}" for k, node in enumerate(nodes) if not node["parents"]]
    try:
        program = differentiate(tape_of(graph), wrt=leaves, method="reverse")
    except CgprimerError:
        return None
    numbers = values_of(program.tape, graph.values)
    place = {value: int(name[1:]) for value, name in program.tape.labels.items() if name[0] == "v"}
    numbered = enumerate(program.tape.leaves)
    place |= {k: int(leaf.name[1:]) for k, leaf in numbered if leaf.name.startswith("v")}
    edges: Edges = [[] for _ in nodes]
    for share in program.shares:
        if share.tail in place and share.head in place:
            edges[place[share.head]].append((place[share.tail], numbers[share.partial]))
    return edges


def swept(
    edges: Edges, order: Sequence[int], *, assign: bool = False, upstream: bool = True
) -> list[float]:
    """What backward passes leave at each node when nodes are done in an order.

    >>> square = [[], [(0, 3.0), (0, 3.0)]]
    >>> swept(square, [1, 0]), swept(square, [1, 0], assign=True)
    ([6.0, 1.0], [3.0, 1.0])
    """
    bars = [0.0] * len(edges)
    bars[-1] = 1.0
    for node in order:
        for parent, partial in edges[node]:
            product = partial * bars[node] if upstream else partial
            bars[parent] = product if assign else bars[parent] + product
    return bars


def by_path(edges: Edges, most: int = 5_000) -> list[float]:
    """Each node sends on all that it has whenever something reaches it, as a recursion does."""
    bars = [0.0] * len(edges)
    bars[-1] = 1.0
    stack = [(len(edges) - 1, 0)]
    while stack and most:
        most -= 1
        node, done = stack.pop()
        if done < len(edges[node]):
            parent, partial = edges[node][done]
            stack.append((node, done + 1))
            bars[parent] += partial * bars[node]
            stack.append((parent, 0))
    return bars


def _orders(edges: Edges, order: Sequence[int]) -> Iterator[list[int]]:
    """Orders in which a child does not wait for all that comes from above."""
    yield list(range(len(edges)))
    if sorted(order) == list(range(len(edges))):
        yield list(order)
    seen, queue = {len(edges) - 1}, [len(edges) - 1]
    for node in queue:  # by breadth
        for parent, _ in edges[node]:
            if parent not in seen:
                seen.add(parent)
                queue.append(parent)
    yield queue
    for flip in (False, True):  # by depth
        deep: list[int] = []
        stack = [len(edges) - 1]
        while stack:
            node = stack.pop()
            if node not in deep:
                deep.append(node)
                below = [parent for parent, _ in edges[node]]
                stack += below if flip else below[::-1]
        yield deep


def explained(
    nodes: Sequence[Node], grads: Mapping[int, float], order: Sequence[int] = ()
) -> dict[str, str]:
    """The mistakes that give a student's gradients, likeliest first, each with a sentence.

    Args:
        nodes: the student's graph, the result last.
        grads: by node, those of the leaves.
        order: of the student's own topological order, if there is one.
    """
    edges = edges_of(nodes)
    if edges is None:
        return {}
    back = [k for k in reversed(order) if k >= 0]
    down = list(range(len(edges)))[::-1]
    good = [down, *([back] if sorted(back) == sorted(down) else [])]
    others = [way for one in _orders(edges, list(order)) for way in (one, one[::-1])]

    if not any(grads.values()) and nodes[-1]["grad"] != 1:
        return {"seed missing": SAYS["seed missing"]}
    both = (edges, [one[::-1] for one in edges])
    candidates = (
        ("another graph", swept(edges, down)),
        *(("upstream gradient left out", swept(edges, way, upstream=False)) for way in good),
        *(("= instead of +=", swept(these, way, assign=True)) for way in good for these in both),
        *(("child before parent", swept(these, way)) for these in both for way in others),
        *(("sent on again and again", by_path(these)) for these in both),
        *(
            ("= instead of += and child before parent", swept(these, way, assign=True))
            for these in both
            for way in others
        ),
    )
    return {
        name: SAYS[name]
        for name, bars in candidates
        if all(close(value, bars[k]) for k, value in grads.items())
    }
