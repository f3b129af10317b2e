"""The graph that a student's values make: as an expression graph, and how gradients go wrong on it.

Sweeps here read shares: the partial on every edge of the student's own graph. What a mistake would
give is what the sweep gives when it overwrites, takes values in another order, or leaves something
out; the one that gives the student's numbers is named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import permutations, product
from math import isfinite
from typing import Any, NamedTuple

from cgprimer.core.operations import find_primitive, float_arithmetic
from cgprimer.course.checks.stages.stage import close
from cgprimer.errors import CgprimerError
from cgprimer.expressions import Apply, ExpressionGraph, Name, Number, parse, unparse
from cgprimer.tapes import differentiate, values_of
from cgprimer.tapes import tape as tape_of

_EXPONENT = r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_SMALL = 100  # values of a graph in which single operations are looked at
_LARGEST = 1_000  # values of a graph whose gradients are explained
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
    "wrong seed": "backward starts with the wrong number: the gradient of the result by itself is"
    " 1, and every other gradient is multiplied by it",
    "upstream gradient left out": "each local derivative is to be multiplied by the gradient of the"
    " result",
    "= instead of +=": "what comes from several places is to be added up, not overwritten",
    "child before parent": "a value passes its gradient on before all of it has arrived: reverse"
    " topological order",
    "sent on again and again": "a value passes on all it has whenever something arrives, so parts"
    " are counted several times",
    "values processed twice": "a value that is used several times stands several times in the order"
    " of the backward pass, and passes its gradient on each time",
    "= instead of += and child before parent": "gradients are overwritten, and passed on before all"
    " has arrived",
}


def operation(text: str) -> tuple[str, float | None]:
    """The operation that a student's name for it means, and the exponent in it, if there is one.

    >>> operation("+"), operation("**2"), operation("ReLU")
    (('add', None), ('pow', 2.0), ('relu', None))
    """
    plain = text.strip().strip("_").casefold()
    power = re.fullmatch(rf"(?:\*\*|\^|pow) *\(?({_EXPONENT})\)?", plain)
    if power:
        return "pow", float(power[1])
    return _NAMES.get(plain, plain), None


def _expression(nodes: Sequence[Node], node: Node, names: Mapping[int, str]) -> str | None:
    """What gives a node's number from its parents', as the operation's name says if it does."""
    said, exponent = operation(node["op"])
    parents = list(node["parents"])
    if node["set"] and len(parents) == 1 and exponent is None and _arity(said) == 2:
        parents *= 2  # a set has a*a's operand once
    if len(parents) > 2:  # more operands than any operation has
        return None
    orders = permutations(parents) if node["set"] else [tuple(parents)]
    for order, name in product(orders, (said, *(o for o in OPERATIONS if o != said))):
        operands: list[Name | Number] = [Name(names[k]) for k in order]
        numbers = [nodes[k]["data"] for k in order]
        if not all(isinstance(number, float) for number in numbers):
            return None
        if name == "pow" and exponent is not None:
            operands, numbers = [*operands, Number(exponent)], [*numbers, exponent]
        fits = len(numbers) == _arity(name)
        if fits and close(node["data"], float_arithmetic.float_function(name)(*numbers)):
            return unparse(Apply(name, tuple(operands)))
    return None


def _arity(name: str) -> int:
    """The number of operands; 0 of what is no operation of the ladder."""
    row = find_primitive(name) if name in OPERATIONS else None
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
    """Return the parents of each node with the partial on the edge.

    None if the graph cannot be read: it is too large, it has an unknown operation, or numbers that
    are not finite.
    """
    if len(nodes) > _LARGEST or not all(
        isinstance(node["data"], float) and isfinite(node["data"]) for node in nodes
    ):
        return None
    graph = student_graph(nodes)
    if len(graph.definitions) != sum(bool(node["parents"]) for node in nodes):
        return None
    leaves = [f"v{k}" for k, node in enumerate(nodes) if not node["parents"]]
    try:
        program = differentiate(tape_of(graph), wrt=leaves, method="reverse")
    except CgprimerError:
        return None
    partials = values_of(program.tape, graph.values)
    place = {value: int(name[1:]) for value, name in program.tape.labels.items() if name[0] == "v"}
    numbered = enumerate(program.tape.leaves)
    place |= {k: int(leaf.name[1:]) for k, leaf in numbered if leaf.name.startswith("v")}
    edges: Edges = [[] for _ in nodes]
    for share in program.shares:
        if share.tail in place and share.head in place:
            edges[place[share.head]].append((place[share.tail], partials[share.partial]))
    return edges


def swept(
    edges: Edges,
    order: Sequence[int],
    *,
    assign: bool = False,
    upstream: bool = True,
    seed: float = 1.0,
    of: Collection[int] | None = None,
) -> list[float]:
    """Return what a backward pass leaves at each node if it visits the nodes in an order.

    With ``of`` only these nodes assign, or leave out the upstream gradient.

    >>> square = [[], [(0, 3.0), (0, 3.0)]]
    >>> swept(square, [1, 0]), swept(square, [1, 0], assign=True)
    ([6.0, 1.0], [3.0, 1.0])
    """
    bars = [0.0] * len(edges)
    bars[-1] = seed
    for node in order:
        wrong = of is None or node in of
        for parent, partial in edges[node]:
            product = partial if wrong and not upstream else partial * bars[node]
            bars[parent] = product if wrong and assign else bars[parent] + product
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
        deep: dict[int, None] = {}
        stack = [len(edges) - 1]
        while stack:
            node = stack.pop()
            if node not in deep:
                deep[node] = None
                below = [parent for parent, _ in edges[node]]
                stack += below if flip else below[::-1]
        yield list(deep)


def order_fault(nodes: Sequence[Node], order: Sequence[int]) -> tuple[str, str] | None:
    """Return what is wrong with a topological order of a graph: a mistake and a sentence.

    >>> leaf, top = {"parents": []}, {"parents": [0, 0]}
    >>> order_fault([leaf, top], [0, 0, 1])[0], order_fault([leaf, top], [0, 1])
    ('values listed twice', None)
    """
    if any(not 0 <= k < len(nodes) for k in order):
        return "foreign entries", "the list has entries that are not values of this graph"
    back = order[::-1]
    if len(order) > 1 and order[0] == len(nodes) - 1 and _parents_first(nodes, back):
        return "order reversed", "children are listed before their parents: the order is reversed"
    if len(set(order)) < len(order):
        says = "a value that is used several times is listed several times"
        return "values listed twice", says
    missing = set(range(len(nodes))) - set(order)
    if missing:
        leaves = {k for k, node in enumerate(nodes) if not node["parents"]}
        which = "the leaves" if missing == leaves else "some values"
        return "values missing", f"{which} that lead to the result are not in the list"
    if not _parents_first(nodes, order):
        return "child before parent", "a value is listed before one of its parents"
    return None


def _parents_first(nodes: Sequence[Node], order: Sequence[int]) -> bool:
    position = {node: k for k, node in enumerate(order)}
    return all(
        parent in position and position[parent] < position[node]
        for node in order
        for parent in nodes[node]["parents"]
    )


def _with_repetitions(edges: Edges, most: int = 5_000) -> list[int]:
    """Return the nodes by depth, parents first, as a search that marks nothing as visited does.

    The list is empty if it would have more than ``most`` entries.
    """
    order: list[int] = []
    stack = [(len(edges) - 1, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        stack.append((node, True))
        stack += [(parent, False) for parent, _ in reversed(edges[node])]
        if len(order) + len(stack) > most:
            return []
    return order


class Explanations(NamedTuple):
    """Mistakes that predict a student's gradients, with a sentence, and those that are refuted."""

    fitting: dict[str, str]
    refuted: frozenset[str] = frozenset()


def explanations(
    nodes: Sequence[Node], grads: Mapping[int, float], order: Sequence[int] = ()
) -> Explanations:
    """Compare a student's gradients with those that each mistake would give.

    Args:
        nodes: the student's graph, the result last.
        grads: by node, those of the leaves.
        order: of the student's own topological order, if there is one.

    Returns:
        The mistakes that fit, the earliest cause first, and those that would give other numbers;
        nothing for a graph that cannot be read.
    """
    edges = edges_of(nodes)
    if edges is None:
        return Explanations({})
    top = nodes[-1]["grad"]
    if not any(grads.values()) and top != 1:
        return Explanations({"seed missing": SAYS["seed missing"]})
    fitting: dict[str, str] = {}
    every = set()
    for name, says, bars in _predictions(nodes, edges, list(order), top):
        every.add(name)
        if all(close(value, bars[k]) for k, value in grads.items()):
            fitting.setdefault(name, says)
    return Explanations(fitting, frozenset(every - {*fitting}))


def _predictions(
    nodes: Sequence[Node], edges: Edges, order: list[int], top: Any
) -> Iterator[tuple[str, str, list[float]]]:
    """Yield mistakes in the order of the ladder, with a sentence and the gradients they give."""
    down = list(range(len(edges)))[::-1]
    back = [k for k in reversed(order) if k >= 0]
    good = [down, *([back] if sorted(back) == sorted(down) else [])]
    others = [way for one in _orders(edges, order) for way in (one, one[::-1])]
    both = (edges, [one[::-1] for one in edges])

    def named(name: str, bars: list[float]) -> tuple[str, str, list[float]]:
        return name, SAYS[name], bars

    yield named("another graph", swept(edges, down))
    fault = order_fault(nodes, order) if order else None
    if fault:
        yield *fault, swept(edges, back)
        yield *fault, swept(edges, back[::-1])
    if isinstance(top, float) and top != 1:
        yield named("wrong seed", swept(edges, down, seed=top))
    for way in good:
        yield named("upstream gradient left out", swept(edges, way, upstream=False))
    for way in good:
        for these in both:
            yield named("= instead of +=", swept(these, way, assign=True))
    for these in both:
        for way in others:
            yield named("child before parent", swept(these, way))
    for these in both:
        yield named("sent on again and again", by_path(these))
    for these in both:
        yield named("values processed twice", swept(these, _with_repetitions(these)[::-1]))
    for these in both:
        for way in others:
            bars = swept(these, way, assign=True)
            yield named("= instead of += and child before parent", bars)
    for text, own in _by_operation(nodes).items() if len(nodes) <= _SMALL else ():
        for name, settings in _IN_OPERATIONS.items():
            for way in good:
                for these in both:
                    yield name, f"{SAYS[name]}: {text}", swept(these, way, of=own, **settings)


_IN_OPERATIONS: dict[str, dict[str, bool]] = {
    "upstream gradient left out": {"upstream": False},
    "= instead of +=": {"assign": True},
}


def _by_operation(nodes: Sequence[Node]) -> dict[str, frozenset[int]]:
    """Return the nodes of each operation, and of all operations with one operand."""
    groups: dict[str, set[int]] = {}
    for k, node in enumerate(nodes):
        if node["parents"]:
            groups.setdefault(f"in {operation(node['op'])[0]}", set()).add(k)
    for k, node in enumerate(nodes):
        if len(node["parents"]) == 1:
            groups.setdefault("in each function", set()).add(k)
    return {text: frozenset(own) for text, own in groups.items()}
