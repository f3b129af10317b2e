"""Orders in which a backward pass visits the values of a student's graph, and mistakes in them.

Nodes are numbered in topological order: operands before the results that use them, the result of
the graph last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgprimer.course.checks.stages.student_graphs import Node


def find_order_mistake(nodes: Sequence[Node], order: Sequence[int]) -> tuple[str, str] | None:
    """Return the mistake in a student's topological order and its explanation.

    Returns None if the order is correct.

    >>> leaf, top = {"parents": []}, {"parents": [0, 0]}
    >>> find_order_mistake([leaf, top], [0, 0, 1])[0], find_order_mistake([leaf, top], [0, 1])
    ('values listed twice', None)
    """
    if any(not 0 <= k < len(nodes) for k in order):
        return "foreign entries", "the list has entries that are not values of this graph"
    reverse = order[::-1]
    if len(order) > 1 and order[0] == len(nodes) - 1 and _lists_parents_first(nodes, reverse):
        return "order reversed", "children are listed before their parents: the order is reversed"
    if len(set(order)) < len(order):
        message = "a value that is used several times is listed several times"
        return "values listed twice", message
    missing = set(range(len(nodes))) - set(order)
    if missing:
        leaves = {k for k, node in enumerate(nodes) if not node["parents"]}
        which = "the leaves" if missing == leaves else "some values"
        return "values missing", f"{which} that lead to the result are not in the list"
    if not _lists_parents_first(nodes, order):
        return "child before parent", "a value is listed before one of its parents"
    return None


def _lists_parents_first(nodes: Sequence[Node], order: Sequence[int]) -> bool:
    """Return whether an order lists the parents of each node before the node."""
    position = {node: k for k, node in enumerate(order)}
    return all(
        parent in position and position[parent] < position[node]
        for node in order
        for parent in nodes[node]["parents"]
    )


def iterate_premature_orders(
    operands: Sequence[Sequence[int]], order: Sequence[int]
) -> Iterator[list[int]]:
    """Yield orders that may visit a node before it has received all gradient contributions.

    Args:
        operands: the operands of each node.
        order: the student's topological order.
    """
    size = len(operands)
    yield list(range(size))
    if sorted(order) == list(range(size)):
        yield list(order)
    visited, queue = {size - 1}, [size - 1]
    for node in queue:  # breadth first
        for operand in operands[node]:
            if operand not in visited:
                visited.add(operand)
                queue.append(operand)
    yield queue
    yield _list_depth_first(operands)
    yield _list_depth_first([one[::-1] for one in operands])


def _list_depth_first(operands: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes in depth-first preorder from the result, the first operand first."""
    order: dict[int, None] = {}
    stack = [len(operands) - 1]
    while stack:
        node = stack.pop()
        if node not in order:
            order[node] = None
            stack += operands[node][::-1]
    return list(order)


def list_nodes_per_path(operands: Sequence[Sequence[int]], limit: int = 5_000) -> list[int]:
    """Return the nodes in depth-first postorder, each node once per path from the result.

    A search that does not mark visited nodes lists them like this.

    Args:
        operands: the operands of each node.
        limit: the maximum length; the list is empty if it would be longer.
    """
    order: list[int] = []
    stack = [(len(operands) - 1, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            order.append(node)
            continue
        stack.append((node, True))
        stack += [(operand, False) for operand in reversed(operands[node])]
        if len(order) + len(stack) > limit:
            return []
    return order
