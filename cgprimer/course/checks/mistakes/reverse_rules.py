"""Reverse mode with one rule changed.

A reverse pass follows each edge from a result to an operand. It multiplies the adjoint of the
result by the partial derivative, and adds the product to the adjoint of the operand. Each of these
rules is a method of :class:`ReverseRules`. A mistake is a subclass that overrides one method;
:func:`run_reverse_pass` computes the adjoints with core's own sweep.

The pass runs on any builder: on a :class:`~cgprimer.tapes.Builder` it emits instructions, on the
eager builder of :mod:`cgprimer.recording` it computes floats.

>>> import cgprimer
>>> from cgprimer.recording.eager_builder import EAGER
>>> from cgprimer.tapes import tape, values_of
>>> primal = tape(cgprimer.parse("xb = xa^2; xw = xb*xa"))
>>> region = DifferentiatedTape(primal, "xw", ["xa"])
>>> values = dict(enumerate(values_of(primal, {"xa": 3.0})))
>>> source = region.sources["xa"]
>>> run_reverse_pass(region, EAGER, values, ReverseRules())[source]
27.0
>>> run_reverse_pass(region, EAGER, values, Overwrite())[source]
18.0
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cgprimer.core.methods.reverse import SweepInstruction, sweep
from cgprimer.core.operations.batch_operations import BatchMean
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.course.checks.mistakes.differentiated_tape import DifferentiatedTape, Edge

MEAN = BatchMean(1)  # the samples are the first axis, points the second
Combination = Literal["add", "overwrite", "ignore"]


# Without generated comparisons: they would take 6 ms of the import, in every check of a mistake.
@dataclass(eq=False, repr=False, kw_only=True)
class ReverseRules:
    """The rules of a reverse pass: correct by default, with a mistake in each subclass.

    Values are those of the builder: indices, or floats on an eager builder.

    Attributes:
        order: the edges in the order in which the pass visits them; from the last instruction to
            the first unless given. An edge may occur more than once.
        roots: the values whose adjoint is 1 at the start; the output unless given.
        seed: the adjoint at the start as a value of the builder; 1 unless given.
        starts_at_zero: whether all other adjoints are 0 at the start, as in an engine whose values
            store a gradient. Otherwise a pass skips values without an adjoint.
        forward: the values of a wrong forward pass, keyed by index on the tape; the correct values
            unless given.
    """

    order: Sequence[Edge] | None = None
    roots: tuple[int, ...] = ()
    seed: Any = None
    starts_at_zero: bool = False
    forward: Mapping[int, Any] | None = None

    def is_propagated(self, edge: Edge) -> bool:
        """Return whether an adjoint is propagated along an edge."""
        return True

    def choose_operation(
        self, run: ReversePass, edge: Edge, primitive: Applied, values: Sequence[Any], out: Any
    ) -> tuple[Applied, Sequence[Any], Any]:
        """Return the primitive, operands and result that determine an edge's partial derivative."""
        return primitive, values, out

    def compute_upstream(self, run: ReversePass, edge: Edge, adjoint: Any) -> Any:
        """Return the upstream gradient of an edge: the adjoint of its head."""
        return adjoint

    def compute_product(self, run: ReversePass, edge: Edge, adjoint: Any, partial: Any) -> Any:
        """Return the upstream gradient times the partial derivative."""
        return run.builder.product(adjoint, partial)

    def choose_combination(self, run: ReversePass, edge: Edge) -> Combination:
        """Return whether to add a contribution to an existing adjoint, overwrite it, or neither."""
        return "add"


class ReversePass:
    """A reverse pass over a tape that follows given rules, which may be wrong.

    Attributes:
        tape: the tape with the names of the gradient.
        builder: the builder that emits or computes the adjoints.
        values: for each value of the tape its value on the builder.
        rules: the rules that the pass follows.
        adjoints: the adjoints so far, keyed by index on the tape.
        latest: the last edge that contributed to each adjoint, keyed by index on the tape.
    """

    def __init__(
        self,
        tape: DifferentiatedTape,
        builder: Any,
        values: Mapping[int, Any],
        rules: ReverseRules,
    ) -> None:
        self.tape, self.builder, self.rules = tape, builder, rules
        self.values = values if rules.forward is None else rules.forward
        self.emit, self.constant = builder.emit, builder.constant
        seed = builder.constant(1.0) if rules.seed is None else rules.seed
        self.adjoints: dict[int, Any] = {}
        if rules.starts_at_zero:
            self.adjoints = dict.fromkeys(range(tape.tape.size), builder.constant(0.0))
        self.adjoints |= dict.fromkeys(rules.roots or (tape.root,), seed)
        self.latest: dict[int, Edge] = {}
        self._edge = Edge(0, 0, 0)

    def run(self) -> dict[int, Any]:
        """Run the reverse pass and return the adjoints, keyed by index on the tape."""
        sweep(self, self._visit_edges(), self.adjoints)
        return self.adjoints

    def _visit_edges(self) -> Iterator[SweepInstruction | tuple[Any, ...]]:
        """Yield one sweep instruction per propagated edge, with only the edge's tail as operand."""
        tape, rules, values, adjoints = self.tape, self.rules, self.values, self.adjoints
        for edge in tape.backward_edges if rules.order is None else rules.order:
            head, position, tail = edge
            adjoint = adjoints.get(head)
            if adjoint is None or not rules.is_propagated(edge):
                continue
            self._edge = edge
            instruction, operands = tape.instruction(head)
            primitive, local_values, out = rules.choose_operation(
                self, edge, instruction, tuple([values[o] for o in operands]), values[head]
            )
            adjoints[head] = rules.compute_upstream(self, edge, adjoint)
            yield head, primitive, (None,) * position + (tail,), local_values, out
            adjoints[head] = adjoint

    def product(self, adjoint: Any, partial: Any) -> Any:
        """Multiply an adjoint by a partial derivative according to the rules of the pass."""
        return self.rules.compute_product(self, self._edge, adjoint, partial)

    def add_contribution(
        self, totals: dict[int, Any], to: int, product: Any, *contribution: Any
    ) -> None:
        """Combine a contribution with the adjoint of the value ``to`` according to the rules."""
        combination = (
            self.rules.choose_combination(self, self._edge) if to in totals else "overwrite"
        )
        if combination == "add":
            totals[to] = self.emit("add", totals[to], product)
        elif combination == "overwrite":
            totals[to] = product
        if combination != "ignore":
            self.latest[to] = self._edge


def run_reverse_pass(
    tape: DifferentiatedTape, builder: Any, values: Mapping[int, Any], rules: ReverseRules
) -> dict[int, Any]:
    """Run a reverse pass under the given rules and return the adjoints.

    Args:
        tape: the tape with the names of the gradient.
        builder: the builder that emits or computes the adjoints.
        values: for each needed value of the tape its value on the builder.
        rules: the rules, with a mistake or without.

    Returns:
        The adjoints as values of the builder, keyed by index on the tape. Values that the pass
        does not reach have none.
    """
    return ReversePass(tape, builder, values, rules).run()


# --- rules with a mistake ------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class OmitEdges(ReverseRules):
    """Rules of a reverse pass that omits the contributions along some edges."""

    edges: Collection[Edge] = frozenset()

    def is_propagated(self, edge: Edge) -> bool:
        """Return False for an omitted edge, along which no adjoint is propagated."""
        return edge not in self.edges


@dataclass(eq=False, repr=False)
class OmitPartials(ReverseRules):
    """Rules of a reverse pass that does not multiply by the partials of some edges."""

    edges: Collection[Edge] = frozenset()

    def compute_product(self, run: ReversePass, edge: Edge, adjoint: Any, partial: Any) -> Any:
        """Return the upstream gradient times the partial, which is omitted on an affected edge."""
        return adjoint if edge in self.edges else run.builder.product(adjoint, partial)


@dataclass(eq=False, repr=False)
class OmitUpstream(ReverseRules):
    """Rules of a reverse pass that uses 1 instead of the upstream gradients of some results.

    Attributes:
        heads: the results whose adjoint is not used; all of them unless given.
    """

    heads: Collection[int] | None = None

    def compute_upstream(self, run: ReversePass, edge: Edge, adjoint: Any) -> Any:
        """Return 1 if the upstream gradient is omitted, else the adjoint of the edge's head."""
        is_omitted = self.heads is None or edge.head in self.heads
        return run.constant(1.0) if is_omitted else adjoint


@dataclass(eq=False, repr=False)
class AverageUpstream(ReverseRules):
    """Rules of a reverse pass that averages some upstream gradients over the batch."""

    edges: Collection[Edge] = frozenset()

    def compute_upstream(self, run: ReversePass, edge: Edge, adjoint: Any) -> Any:
        """Return the adjoint of the edge's head, averaged over the batch on an affected edge."""
        return run.emit(MEAN, adjoint) if edge in self.edges else adjoint


@dataclass(eq=False, repr=False)
class NegateProducts(ReverseRules):
    """Rules of a reverse pass in which contributions along some edges have the wrong sign."""

    edges: Collection[Edge] = frozenset()

    def compute_product(self, run: ReversePass, edge: Edge, adjoint: Any, partial: Any) -> Any:
        """Return the upstream gradient times the partial, negated on an affected edge."""
        product = run.builder.product(adjoint, partial)
        return run.emit("neg", product) if edge in self.edges else product


@dataclass(eq=False, repr=False)
class RepeatPartials(ReverseRules):
    """Rules of a reverse pass that multiplies twice by the partials of some edges."""

    edges: Collection[Edge] = frozenset()

    def compute_product(self, run: ReversePass, edge: Edge, adjoint: Any, partial: Any) -> Any:
        """Return the upstream gradient times the partial, which is squared on an affected edge."""
        product = run.builder.product(adjoint, partial)
        return run.builder.product(product, partial) if edge in self.edges else product


@dataclass(eq=False, repr=False)
class MultiplyProducts(ReverseRules):
    """Rules of a reverse pass with an additional factor in some edges' contributions.

    Attributes:
        factors: the factors as values of the builder, keyed by edge.
    """

    factors: Mapping[Edge, Any] = field(default_factory=dict)

    def compute_product(self, run: ReversePass, edge: Edge, adjoint: Any, partial: Any) -> Any:
        """Return the upstream gradient times the partial, times the edge's extra factor if any."""
        product = run.builder.product(adjoint, partial)
        return run.emit("mul", product, self.factors[edge]) if edge in self.factors else product


@dataclass(eq=False, repr=False)
class ReplacePartials(ReverseRules):
    """Rules of a reverse pass in which some edges have wrong partial derivatives.

    Attributes:
        partials: the wrong partial derivatives as values of the builder, keyed by edge.
    """

    partials: Mapping[Edge, Any] = field(default_factory=dict)

    def compute_product(self, run: ReversePass, edge: Edge, adjoint: Any, partial: Any) -> Any:
        """Return the upstream gradient times the partial, which is wrong on an affected edge."""
        return run.builder.product(adjoint, self.partials.get(edge, partial))


@dataclass(eq=False, repr=False)
class MovePartials(ReverseRules):
    """Rules of a reverse pass that evaluates some partial derivatives at wrong operands.

    Attributes:
        operands: the wrong operands and the wrong result of an instruction, as values of the
            builder, keyed by the index of its result.
    """

    operands: Mapping[int, tuple[Sequence[Any], Any]] = field(default_factory=dict)

    def choose_operation(
        self, run: ReversePass, edge: Edge, primitive: Applied, values: Sequence[Any], out: Any
    ) -> tuple[Applied, Sequence[Any], Any]:
        """Return the primitive, with wrong operands and result for an affected instruction."""
        values, out = self.operands.get(edge.head, (values, out))
        return primitive, values, out


@dataclass(eq=False, repr=False)
class SkipFormulas(ReverseRules):
    """Rules of a reverse pass that propagates adjoints unchanged through some formulas.

    Attributes:
        edges: for each such variable the edge to it from the other variable, at position 0.
    """

    edges: Collection[Edge] = frozenset()

    def choose_operation(
        self, run: ReversePass, edge: Edge, primitive: Applied, values: Sequence[Any], out: Any
    ) -> tuple[Applied, Sequence[Any], Any]:
        """Return a copy operation for a skipped formula, else the unchanged operation."""
        if edge in self.edges:
            return "copy", (run.values[edge.tail],), out
        return primitive, values, out


@dataclass(eq=False, repr=False)
class Overwrite(ReverseRules):
    """Rules of a reverse pass with ``=`` instead of ``+=``: adjoints keep one contribution.

    Attributes:
        keep: the contribution that remains, ``last`` or ``first``.
        heads: the results whose contributions are assigned; all of them unless given.
        tails: the operands that keep one contribution; all of them unless given.
        adds_in_formula: whether contributions from the formula of one variable are added.
    """

    keep: Literal["last", "first"] = "last"
    heads: Collection[int] | None = None
    tails: Collection[int] | None = None
    adds_in_formula: bool = False

    def choose_combination(self, run: ReversePass, edge: Edge) -> Combination:
        """Return whether a contribution is added, overwrites the adjoint, or is ignored."""
        if self.heads is not None and edge.head not in self.heads:
            return "add"
        if self.tails is not None and edge.tail not in self.tails:
            return "add"
        if self.keep == "first":
            return "ignore"
        owner, latest = run.tape.owner, run.latest.get(edge.tail)
        is_same_formula = latest is not None and owner[latest.head] == owner[edge.head]
        return "add" if self.adds_in_formula and is_same_formula else "overwrite"
