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

from cgprimer.course.checks.mistakes.differentiated_tape import DifferentiatedTape, Edge
from cgprimer.course.checks.mistakes.reverse_rules import (
    OmitUpstream,
    Overwrite,
    ReverseRules,
    run_reverse_pass,
)
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
from cgprimer.recording.eager_builder import EAGER
from cgprimer.tapes import tape as build_tape
from cgprimer.tapes import values_of

_MAX_NODES = 1_000  # of a graph whose gradients are explained
_MAX_NODES_PER_OPERATION = 100  # of a graph for which mistakes in single operations are tried
_MAX_EDGES_ON_PATHS = 2_500  # followed by a pass along every path

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
    "child before parent": "a value passes on its gradient before all contributions to it have"
    " arrived: process the values in reverse topological order",
    "gradient passed on too often": "a value passes on its whole gradient whenever a contribution"
    " arrives, so some contributions are counted several times",
    "values processed twice": "a value that is used several times is processed several times in the"
    " backward pass, and passes on its gradient each time",
    "= instead of += and child before parent": "gradients are overwritten, and passed on before all"
    " contributions have arrived",
}


# --- the graph as a tape --------------------------------------------------------------------------


@dataclass(frozen=True)
class StudentTape:
    """A student's graph as a tape, with the values at the student's point.

    Attributes:
        tape: the tape, with the leaves of the graph as sources.
        values: the values of the tape, keyed by index.
        indices: the index on the tape of each node.
    """

    tape: DifferentiatedTape
    values: Mapping[int, float]
    indices: Sequence[int]

    @cached_property
    def edges(self) -> list[list[Edge]]:
        """The edges from each node to its operands."""
        first = len(self.tape.tape.leaves)
        return [self.tape.edges_to(index) if index >= first else [] for index in self.indices]

    @cached_property
    def operands(self) -> list[list[int]]:
        """The operands of each node, as node numbers."""
        node_of = {index: node for node, index in enumerate(self.indices)}
        return [[node_of[edge.tail] for edge in edges] for edges in self.edges]

    def visit(self, nodes: Iterable[int], *, reverse_operands: bool = False) -> list[Edge]:
        """Return the edges of a backward pass that visits the nodes in the given order."""
        step = -1 if reverse_operands else 1
        return [edge for node in nodes for edge in self.edges[node][::step]]

    def follow_paths(self, *, reverse_operands: bool = False) -> list[Edge]:
        """Return the edges along every path from the result in the order of a recursion."""
        step = -1 if reverse_operands else 1
        edges_to = dict(zip(self.indices, self.edges, strict=True))
        order: list[Edge] = []
        stack = self.edges[-1][::-step]
        while stack and len(order) < _MAX_EDGES_ON_PATHS:
            edge = stack.pop()
            order.append(edge)
            stack += edges_to[edge.tail][::-step]
        return order

    def run(self, rules: ReverseRules) -> list[float]:
        """Return the gradient of each node after a backward pass under the given rules."""
        rules = replace(rules, starts_at_zero=True)
        adjoints = run_reverse_pass(self.tape, EAGER, self.values, rules)
        return [adjoints[index] for index in self.indices]


def build_student_tape(nodes: Sequence[Node]) -> StudentTape | None:
    """Convert a student's graph to a tape.

    Returns None if the graph cannot be read: it is too large, it has an unknown operation, or data
    that are not finite.
    """
    if len(nodes) > _MAX_NODES or not has_finite_data(nodes):
        return None
    graph = build_student_graph(nodes)
    computed = sum(bool(node["parents"]) for node in nodes)
    try:
        tape = build_tape(graph)
        values = dict(enumerate(values_of(tape, graph.values)))
    except CgprimerError:
        return None
    if not len(graph.definitions) == len(tape) == computed:
        return None
    leaves = [f"v{k}" for k, node in enumerate(nodes) if not node["parents"]]
    differentiated = DifferentiatedTape(tape, f"v{len(nodes) - 1}", leaves)
    return StudentTape(differentiated, values, [tape.index(f"v{k}") for k in range(len(nodes))])


# --- mistakes -------------------------------------------------------------------------------------


class Explanations(NamedTuple):
    """The mistakes that explain a student's gradients, and the mistakes that do not.

    Attributes:
        matching: the explanation of each mistake that predicts the gradients, keyed by mistake; the
            earliest in the ladder first.
        refuted: the mistakes that predict other gradients.
    """

    matching: dict[str, str]
    refuted: frozenset[str] = frozenset()


class _Candidate(NamedTuple):
    """A mistake, its explanation, and the rules of a backward pass with the mistake."""

    mistake: str
    explanation: str
    rules: ReverseRules


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
    tape = build_student_tape(nodes)
    if tape is None:
        return Explanations({})
    seed = nodes[-1]["grad"]
    if not any(gradients.values()) and seed != 1:
        return Explanations({"seed missing": EXPLANATIONS["seed missing"]})
    matching: dict[str, str] = {}
    tried = set()
    for mistake, explanation, rules in _Candidates(nodes, tape, list(order)):
        tried.add(mistake)
        if mistake in matching:
            continue
        predicted = tape.run(rules)
        if all(is_close(gradient, predicted[k]) for k, gradient in gradients.items()):
            matching[mistake] = explanation
    return Explanations(matching, frozenset(tried - {*matching}))


@dataclass(frozen=True)
class _Candidates:
    """All mistakes that may explain a student's gradients, in the order of the stages.

    Attributes:
        nodes: the student's graph.
        tape: the graph as a tape.
        order: the student's topological order; empty if the submission has none.
    """

    nodes: Sequence[Node]
    tape: StudentTape
    order: list[int]

    def __iter__(self) -> Iterator[_Candidate]:
        yield self._propose_mistake("another graph", ReverseRules())
        yield from self._propose_order_mistakes()
        seed = self.nodes[-1]["grad"]
        if isinstance(seed, float) and seed != 1:
            yield self._propose_mistake("wrong seed", ReverseRules(seed=seed))
        yield from self._propose_rule_mistakes()
        if len(self.nodes) <= _MAX_NODES_PER_OPERATION:
            yield from self._propose_operation_mistakes()

    @cached_property
    def _correct_orders(self) -> list[list[int]]:
        """Node orders in which every node comes after all nodes that use it."""
        descending = list(range(len(self.nodes)))[::-1]
        backward = [k for k in reversed(self.order) if k >= 0]
        return [descending, *([backward] if sorted(backward) == sorted(descending) else [])]

    @cached_property
    def _correct_visits(self) -> list[list[Edge]]:
        """The edge orders of correct backward passes, with operands in either order."""
        return _remove_repetitions(
            self.tape.visit(order, reverse_operands=reverse)
            for order in self._correct_orders
            for reverse in (False, True)
        )

    @cached_property
    def _premature_visits(self) -> list[list[Edge]]:
        """The edge orders of passes that may visit a node before a node that uses it."""
        orders = list(iterate_premature_orders(self.tape.operands, self.order))
        return _remove_repetitions(
            self.tape.visit(directed, reverse_operands=reverse)
            for reverse in (False, True)
            for order in orders
            for directed in (order, order[::-1])
        )

    def _propose_mistake(
        self, mistake: str, rules: ReverseRules, explanation: str = ""
    ) -> _Candidate:
        """Create a candidate; its explanation is the one in ``EXPLANATIONS`` by default."""
        return _Candidate(mistake, explanation or EXPLANATIONS[mistake], rules)

    def _propose_order_mistakes(self) -> Iterator[_Candidate]:
        """Yield candidates that visit nodes in the student's topological order if it is wrong."""
        fault = find_order_mistake(self.nodes, self.order) if self.order else None
        if fault:
            mistake, explanation = fault
            backward = [k for k in reversed(self.order) if k >= 0]
            for order in (backward, backward[::-1]):
                rules = ReverseRules(order=self.tape.visit(order))
                yield self._propose_mistake(mistake, rules, explanation)

    def _propose_rule_mistakes(self) -> Iterator[_Candidate]:
        """Yield candidate mistakes with one or two wrong rules that affect all operations."""
        for order in self._correct_orders:
            rules: ReverseRules = OmitUpstream(order=self.tape.visit(order))
            yield self._propose_mistake("upstream gradient left out", rules)
        for visits in self._correct_visits:
            yield self._propose_mistake("= instead of +=", Overwrite(order=visits))
        for visits in self._premature_visits:
            yield self._propose_mistake("child before parent", ReverseRules(order=visits))
        for reverse in (False, True):
            rules = ReverseRules(order=self.tape.follow_paths(reverse_operands=reverse))
            yield self._propose_mistake("gradient passed on too often", rules)
        for reverse in (False, True):
            operands = [one[::-1] if reverse else one for one in self.tape.operands]
            order = list_nodes_per_path(operands)[::-1]
            rules = ReverseRules(order=self.tape.visit(order, reverse_operands=reverse))
            yield self._propose_mistake("values processed twice", rules)
        for visits in self._premature_visits:
            yield self._propose_mistake(
                "= instead of += and child before parent", Overwrite(order=visits)
            )

    def _propose_operation_mistakes(self) -> Iterator[_Candidate]:
        """Yield candidate mistakes with one wrong rule that affects a single kind of operation."""
        for place, nodes in _group_by_operation(self.nodes).items():
            heads = frozenset(self.tape.indices[node] for node in nodes)
            for mistake, rule in (
                ("upstream gradient left out", OmitUpstream(heads=heads)),
                ("= instead of +=", Overwrite(heads=heads)),
            ):
                explanation = f"{EXPLANATIONS[mistake]}: {place}"
                for visits in self._correct_visits:
                    yield self._propose_mistake(mistake, replace(rule, order=visits), explanation)


def _remove_repetitions(orders: Iterable[list[Edge]]) -> list[list[Edge]]:
    """Remove duplicates from a sequence of edge orders."""
    return list({tuple(order): order for order in orders}.values())


def _group_by_operation(nodes: Sequence[Node]) -> dict[str, frozenset[int]]:
    """Group nodes by operation, and add a group of all nodes that have a single operand."""
    groups: dict[str, set[int]] = {}
    for k, node in enumerate(nodes):
        if node["parents"]:
            groups.setdefault(f"in {parse_operation(node['op'])[0]}", set()).add(k)
    for k, node in enumerate(nodes):
        if len(node["parents"]) == 1:
            groups.setdefault("in each function", set()).add(k)
    return {place: frozenset(members) for place, members in groups.items()}
