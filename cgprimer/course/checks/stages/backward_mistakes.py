"""Mistakes of backward passes that explain the gradients of a student's engine.

Each known mistake is a backward pass in which one rule is changed: the order in which nodes are
visited, how contributions are accumulated, or the factors of a product. Core's reverse sweep runs
over the student's own graph with that rule, and a mistake explains the gradients that it predicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from cgprimer.core.methods.reverse import SweepInstruction, iterate_backwards, sweep
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.course.checks.stages.stage import is_close
from cgprimer.course.checks.stages.student_graphs import (
    Node,
    build_student_graph,
    has_finite_data,
    parse_operation,
)
from cgprimer.course.checks.stages.visiting_orders import (
    find_order_mistake,
    iterate_premature_orders,
    list_nodes_per_path,
)
from cgprimer.errors import CgprimerError
from cgprimer.tapes import tape as tape_of
from cgprimer.tapes import values_of

_MAX_NODES = 1_000  # of a graph whose gradients are explained
_MAX_NODES_PER_OPERATION = 100  # of a graph for which mistakes in single operations are tried
_MAX_EDGES_PER_PATH = 2_500  # along which gradients are sent when every path is followed
#: for each computed node, a sweep instruction for each operand that is not a constant
Edges = Mapping[int, Sequence[SweepInstruction]]

EXPLANATIONS = {
    "another graph": "the backward pass is correct, but the graph of the values differs from that"
    " of the expression: an operator swaps or drops an operand, or changes data",
    "seed missing": "all gradients are 0: start with 1, the gradient of the result with respect to"
    " itself",
    "wrong seed": "backward starts with the wrong number: the gradient of the result with respect"
    " to itself is 1, and every other gradient is multiplied by it",
    "upstream gradient left out": "multiply each local derivative by the gradient of the result",
    "= instead of +=": "add up the contributions from all uses of a value instead of overwriting"
    " them",
    "child before parent": "a value passes its gradient on before all contributions to it have"
    " arrived: process the values in reverse topological order",
    "sent on again and again": "a value passes its whole gradient on whenever a contribution"
    " arrives, so some contributions are counted several times",
    "values processed twice": "a value that is used several times is processed several times in the"
    " backward pass, and passes its gradient on each time",
    "= instead of += and child before parent": "gradients are overwritten, and passed on before all"
    " contributions have arrived",
}


# --- backward passes with one rule changed --------------------------------------------------------


@dataclass(frozen=True)
class PassRules:
    """The rules of a backward pass; by default those of reverse mode.

    Attributes:
        seed: the gradient of the result with respect to itself.
        overwrites: assign contributions with ``=`` instead of adding them with ``+=``.
        omits_upstream: use the local derivative without the upstream gradient.
        nodes: the nodes whose contributions break a rule; None for all nodes.
        reverses_operands: visit the operands of each node from the last to the first.
        follows_paths: pass the gradient of a node on whenever a contribution arrives.
    """

    seed: float = 1.0
    overwrites: bool = False
    omits_upstream: bool = False
    nodes: frozenset[int] | None = None
    reverses_operands: bool = False
    follows_paths: bool = False


@dataclass
class _PassBuilder:
    """A builder for core's reverse sweep that computes floats and breaks a rule.

    Attributes:
        rules: the rules of the pass.
        node: the node whose contributions are being computed.
    """

    rules: PassRules
    node: int = 0
    constant = staticmethod(float)

    def emit(self, primitive: Applied, *operands: float) -> float:
        """Compute a primitive on floats."""
        return float(float_function(primitive)(*operands))

    def product(self, upstream: float, partial: float) -> float:
        """Multiply an upstream gradient by a local derivative, unless a rule omits it."""
        omitted = self.rules.omits_upstream and self._breaks_rules()
        return partial if omitted else self.emit("mul", upstream, partial)

    def add_contribution(
        self, totals: dict[int, float], to: int, product: float, *_contribution: float
    ) -> None:
        """Add a contribution to the gradient of a node, or overwrite the gradient."""
        overwritten = self.rules.overwrites and self._breaks_rules()
        totals[to] = product if overwritten else self.emit("add", totals[to], product)

    def _breaks_rules(self) -> bool:
        """Return whether the current node breaks the rules."""
        return self.rules.nodes is None or self.node in self.rules.nodes


def run_pass(
    edges: Edges, size: int, order: Iterable[int], rules: PassRules | None = None
) -> list[float]:
    """Return the gradient of each node after a backward pass.

    Args:
        edges: the edges to the operands of each computed node.
        size: the number of nodes; the last node is the result.
        order: the nodes in the order in which the pass visits them.
        rules: the rules of the pass; reverse mode by default.

    >>> left, right = (SweepInstruction(1, "mul", t, (3.0, 3.0), 9.0) for t in ((0,), (None, 0)))
    >>> square = {1: [left, right]}
    >>> run_pass(square, 2, [1, 0]), run_pass(square, 2, [1, 0], PassRules(overwrites=True))
    ([6.0, 1.0], [3.0, 1.0])
    """
    rules = rules or PassRules()
    builder = _PassBuilder(rules)
    step = -1 if rules.reverses_operands else 1

    def iterate_edges() -> Iterator[SweepInstruction]:
        """Yield the edges in the order of the pass."""
        if rules.follows_paths:
            visits = _follow_paths(edges, size - 1, step)
        else:
            visits = (edge for node in order for edge in edges.get(node, ())[::step])
        for edge in visits:
            builder.node = edge.head
            yield edge

    gradients = dict.fromkeys(range(size), 0.0)
    gradients[size - 1] = rules.seed
    sweep(builder, iterate_edges(), gradients)
    return list(gradients.values())


def _follow_paths(edges: Edges, root: int, step: int) -> Iterator[SweepInstruction]:
    """Yield edges in depth-first order along every path from the result, as a recursion does.

    Args:
        edges: the edges to the operands of each computed node.
        root: the result.
        step: 1 to follow the first operand of a node first, -1 for the last.
    """
    stack = list(edges.get(root, ())[::-step])
    for _ in range(_MAX_EDGES_PER_PATH):
        if not stack:
            return
        edge = stack.pop()
        yield edge
        stack += edges.get(edge.tails[-1], ())[::-step]


def build_edges(nodes: Sequence[Node]) -> Edges | None:
    """Return the edges to the operands of each computed node of a student's graph.

    Returns None if the graph cannot be read: it is too large, it has an unknown operation, or data
    that are not finite.
    """
    if len(nodes) > _MAX_NODES or not has_finite_data(nodes):
        return None
    graph = build_student_graph(nodes)
    computed = sum(bool(node["parents"]) for node in nodes)
    try:
        tape = tape_of(graph)
        values = dict(enumerate(values_of(tape, graph.values)))
    except CgprimerError:
        return None
    if not len(graph.definitions) == len(tape) == computed:
        return None
    node_of = {index: int(name[1:]) for name, index in tape.names.items() if name[0] == "v"}
    varies = [index in node_of for index in range(tape.size)]
    region = range(len(tape.leaves), tape.size)
    return {
        node_of[head]: [
            SweepInstruction(
                node_of[head], primitive, (None,) * position + (node_of[tail],), operands, out
            )
            for position, tail in enumerate(tails)
            if tail is not None
        ]
        for head, primitive, tails, operands, out in iterate_backwards(tape, values, region, varies)
    }


# --- mistakes -------------------------------------------------------------------------------------


class Explanations(NamedTuple):
    """Mistakes that predict a student's gradients, and mistakes that predict other gradients.

    Attributes:
        matching: the explanation of each mistake that predicts the gradients, keyed by mistake; the
            earliest in the ladder first.
        refuted: the mistakes that predict other gradients.
    """

    matching: dict[str, str]
    refuted: frozenset[str] = frozenset()


class _Prediction(NamedTuple):
    """A mistake, its explanation, and the gradients of all nodes that it predicts."""

    mistake: str
    explanation: str
    gradients: list[float]


def explain_gradients(
    nodes: Sequence[Node], gradients: Mapping[int, float], order: Sequence[int] = ()
) -> Explanations:
    """Compare a student's gradients with those that each mistake predicts.

    Args:
        nodes: the student's graph, the result last.
        gradients: the gradients of the leaves, keyed by node.
        order: the student's topological order, if the submission has one.

    Returns:
        The mistakes that predict the gradients, and those that do not; both empty for a graph that
        cannot be read.
    """
    edges = build_edges(nodes)
    if edges is None:
        return Explanations({})
    seed = nodes[-1]["grad"]
    if not any(gradients.values()) and seed != 1:
        return Explanations({"seed missing": EXPLANATIONS["seed missing"]})
    matching: dict[str, str] = {}
    tried = set()
    for mistake, explanation, predicted in _Predictions(nodes, edges, list(order)):
        tried.add(mistake)
        if all(is_close(gradient, predicted[k]) for k, gradient in gradients.items()):
            matching.setdefault(mistake, explanation)
    return Explanations(matching, frozenset(tried - {*matching}))


@dataclass(frozen=True)
class _Predictions:
    """The gradients that each mistake predicts, in the order of the ladder.

    Attributes:
        nodes: the student's graph.
        edges: the edges to the operands of each computed node.
        order: the student's topological order; empty if the submission has none.
    """

    nodes: Sequence[Node]
    edges: Edges
    order: list[int]

    def __iter__(self) -> Iterator[_Prediction]:
        yield self._predict("another graph", self._correct_orders[0])
        yield from self._predict_order_mistakes()
        seed = self.nodes[-1]["grad"]
        if isinstance(seed, float) and seed != 1:
            yield self._predict("wrong seed", self._correct_orders[0], PassRules(seed=seed))
        yield from self._predict_rule_mistakes()
        yield from self._predict_combined_mistakes()
        if len(self.nodes) <= _MAX_NODES_PER_OPERATION:
            yield from self._predict_operation_mistakes()

    @cached_property
    def _operands(self) -> list[list[int]]:
        """The operands of each node."""
        every = range(len(self.nodes))
        return [[edge.tails[-1] for edge in self.edges.get(k, ())] for k in every]

    @cached_property
    def _correct_orders(self) -> list[list[int]]:
        """Orders in which every node comes after all nodes that use it."""
        descending = list(range(len(self.nodes)))[::-1]
        backward = [k for k in reversed(self.order) if k >= 0]
        return [descending, *([backward] if sorted(backward) == sorted(descending) else [])]

    @cached_property
    def _premature_orders(self) -> list[list[int]]:
        """Orders in which a node may come before a node that uses it."""
        orders = iterate_premature_orders(self._operands, self.order)
        return [one for order in orders for one in (order, order[::-1])]

    def _predict(
        self,
        mistake: str,
        order: Sequence[int],
        rules: PassRules | None = None,
        explanation: str = "",
    ) -> _Prediction:
        """Run a backward pass with a mistake."""
        gradients = run_pass(self.edges, len(self.nodes), order, rules)
        return _Prediction(mistake, explanation or EXPLANATIONS[mistake], gradients)

    def _predict_order_mistakes(self) -> Iterator[_Prediction]:
        """Yield predictions for a student's topological order that is wrong."""
        fault = find_order_mistake(self.nodes, self.order) if self.order else None
        if fault:
            backward = [k for k in reversed(self.order) if k >= 0]
            for order in (backward, backward[::-1]):
                yield self._predict(fault[0], order, explanation=fault[1])

    def _predict_rule_mistakes(self) -> Iterator[_Prediction]:
        """Yield predictions for one changed rule in all operations."""
        for order in self._correct_orders:
            yield self._predict("upstream gradient left out", order, PassRules(omits_upstream=True))
        for order in self._correct_orders:
            for flip in (False, True):
                rules = PassRules(overwrites=True, reverses_operands=flip)
                yield self._predict("= instead of +=", order, rules)
        for flip in (False, True):
            for order in self._premature_orders:
                yield self._predict("child before parent", order, PassRules(reverses_operands=flip))
        for flip in (False, True):
            rules = PassRules(follows_paths=True, reverses_operands=flip)
            yield self._predict("sent on again and again", (), rules)
        for flip in (False, True):
            operands = [one[::-1] for one in self._operands] if flip else self._operands
            order = list_nodes_per_path(operands)[::-1]
            rules = PassRules(reverses_operands=flip)
            yield self._predict("values processed twice", order, rules)

    def _predict_combined_mistakes(self) -> Iterator[_Prediction]:
        """Yield predictions for overwritten gradients in a premature order."""
        for flip in (False, True):
            rules = PassRules(overwrites=True, reverses_operands=flip)
            for order in self._premature_orders:
                yield self._predict("= instead of += and child before parent", order, rules)

    def _predict_operation_mistakes(self) -> Iterator[_Prediction]:
        """Yield predictions for one changed rule in a single operation."""
        for place, nodes in _group_by_operation(self.nodes).items():
            for mistake, rules in (
                ("upstream gradient left out", PassRules(omits_upstream=True, nodes=nodes)),
                ("= instead of +=", PassRules(overwrites=True, nodes=nodes)),
            ):
                explanation = f"{EXPLANATIONS[mistake]}: {place}"
                for order in self._correct_orders:
                    for flip in (False, True):
                        changed = replace(rules, reverses_operands=flip)
                        yield self._predict(mistake, order, changed, explanation)


def _group_by_operation(nodes: Sequence[Node]) -> dict[str, frozenset[int]]:
    """Return the nodes of each operation, and of all operations with one operand."""
    groups: dict[str, set[int]] = {}
    for k, node in enumerate(nodes):
        if node["parents"]:
            groups.setdefault(f"in {parse_operation(node['op'])[0]}", set()).add(k)
    for k, node in enumerate(nodes):
        if len(node["parents"]) == 1:
            groups.setdefault("in each function", set()).add(k)
    return {place: frozenset(members) for place, members in groups.items()}
