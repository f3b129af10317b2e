"""Choose points that cover all branches of the piecewise functions of a graph.

A gradient that ignores a kink is correct on one side of the kink. A point on the other side refutes
the gradient only if the output depends on the piecewise function there: an inactive unit behind it
hides the mistake. So each branch is recorded together with the names whose derivatives depend on
it, and points are chosen greedily until every branch that a candidate reaches is covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.primitive_registry import OPERANDS, RESULT, parse_partial
from cgprimer.core.tape.lowering import emit_partial
from cgprimer.expressions import Apply, Name, fold
from cgprimer.support.value_names import internal_name
from cgprimer.tapes import Builder, Instruction, Tape, reachable

Array = Any
Evaluate = Callable[[Tape], Mapping[str, Array]]  #: computes the outputs of a tape at candidates
_SIGNS = {"sign", "abs", "heaviside", "step"}  # their branch depends on the operand's sign
_SMALL = 1e-6  # a smaller partial derivative hides the branches of its operand
_MAX_BITS = 64  # of a set of names; several names may share a bit
_MAX_FEATURES = 2_000  # decisions times names
_MAX_DECISIONS_OF_PAIRS = 16  # if there are more, pairs of branches are not covered
_TRUTH = "truth"
_CLOSE = 0.05  # fraction of the points on a side that are close to the kink
_NEAR = 0.5  # largest distance from the kink of a point that is close to it


@dataclass(frozen=True)
class _Decision:
    """A value on a tape that determines which branch of a piecewise function is evaluated.

    Attributes:
        instruction: the index of the function's result on the primal tape.
        output: the name of the quantity on the tape of decisions.
        kind: ``truth`` if the branch depends on whether the quantity is 0, ``gap`` if it depends on
            the sign.
    """

    instruction: int
    output: str
    kind: str


class Branches:
    """The branches of all piecewise functions, such as ``relu``, on a tape.

    Args:
        primal: the tape that is differentiated, with one output.
        sources: the elements of each name in the gradient.
    """

    def __init__(self, primal: Tape, sources: Mapping[str, Sequence[str]]) -> None:
        self.primal = primal
        self.root = next(iter(primal.outputs.values()))
        self.needed = reachable(primal, [self.root])
        self._builder = Builder()
        self._values = self._builder.extend(primal, keep=self.needed)
        self._outputs: dict[str, int] = {}
        self.decisions: list[_Decision] = []
        self.partials: dict[tuple[int, int], str | bool] = {}
        for index, name, operands in self._iterate_instructions():
            values = tuple([self._values[o] for o in operands])
            if not find_primitive(name).analytic:
                self._record_decisions(index, name, values)
        if self.decisions:
            self._emit_partials()
        self.bit_count = max(
            1, min(len(sources), _MAX_BITS, _MAX_FEATURES // max(len(self.decisions), 1))
        )
        self.bits = {
            primal.index(element): np.uint64(1 << (number % self.bit_count))
            for number, name in enumerate(sources)
            for element in sources[name]
        }
        self.tape = self._builder.finish(self._outputs, prune=True)

    def _iterate_instructions(self) -> Iterator[tuple[int, str, tuple[int, ...]]]:
        """Yield the index, name and operands of each instruction that affects the output."""
        first = len(self.primal.leaves)
        for index, (name, operands) in enumerate(self.primal.instructions, first):
            if self.needed[index]:
                yield index, operator_name(name), operands

    # --- decisions ---------------------------------------------------------------------------

    def _record_decisions(self, index: int, name: str, values: tuple[int, ...]) -> None:
        """Record the values that determine the branch of a piecewise instruction."""
        if name == "where":
            self._add_decision(index, values[0], _TRUTH)
        elif name == "equal":
            self._add_decision(index, self._values[index], _TRUTH)
        elif not self._record_gap(index, name, values):
            slots = dict(zip(OPERANDS, values, strict=False)) | {RESULT: self._values[index]}
            for text in find_primitive(name).partials:
                self._record_comparisons(index, text, slots)

    def _record_comparisons(self, index: int, text: str, slots: Mapping[str, int]) -> None:
        """Record the comparisons in the formula for a partial derivative of an instruction.

        Tests for equality are not recorded: the probability of a tie is 0.
        """

        def emit_leaf(node: Any) -> int:
            """Return the tape index of a leaf: an operand, the result or a constant."""
            if isinstance(node, Name):
                return slots[node.name]
            return self._builder.constant(node.value)

        def emit_call(name: str, arguments: list[int]) -> int:
            """Emit a function call; if the function is a comparison, record it as a decision."""
            self._record_gap(index, name, tuple(arguments))
            return self._builder.emit(name, *arguments)

        tree = parse_partial(text)
        if isinstance(tree, Apply):
            fold(tree, emit_leaf, emit_call)

    def _record_gap(self, index: int, name: str, values: tuple[int, ...]) -> bool:
        """Record the value whose sign determines a branch; return False if no sign does."""
        if name == "less":
            self._add_decision(index, self._builder.emit("sub", values[1], values[0]), "gap")
        elif name in _SIGNS:
            self._add_decision(index, values[0], "gap")
        return name == "less" or name in _SIGNS

    def _add_decision(self, index: int, value: int, kind: str) -> None:
        """Add a decision unless its value is constant or the decision is already recorded."""
        if self._builder.value_of(value) is not None:
            return
        output = internal_name("decision", str(value))
        if not any(d.instruction == index and d.output == output for d in self.decisions):
            self.decisions.append(_Decision(index, output, kind))
            self._outputs[output] = value

    def _emit_partials(self) -> None:
        """Emit all partial derivatives that are not constant; record which constants are 0."""
        for index, name, operands in self._iterate_instructions():
            values = tuple([self._values[o] for o in operands])
            for which in range(len(operands)):
                partial = emit_partial(self._builder, name, which, values, self._values[index])
                number = 0.0 if partial is None else self._builder.value_of(partial)
                if number is not None:
                    self.partials[index, which] = number != 0
                else:
                    output = internal_name("partial", str(partial))
                    self.partials[index, which] = output
                    self._outputs[output] = int(partial or 0)

    # --- points ------------------------------------------------------------------------------

    def compute_features(self, evaluate: Evaluate) -> tuple[Array, Array]:
        """Return boolean arrays of shape (features, candidates) for the branches that points cover.

        Args:
            evaluate: computes the outputs of a tape at the candidates.

        Returns:
            Two arrays. The features of the first array must be covered: each side of a decision
            on which the output depends; then each side with a name on which the operands depend,
            everywhere and close to the kink. The features of the second array, pairs of sides, are
            covered as far as the number of points allows.
        """
        values = evaluate(self.tape)
        passes, shape = self._find_passes(values)
        visible, reached = self._find_visible(passes, shape), self._spread(self.bits, passes, shape)
        single: list[Array] = []
        by_name: list[Array] = []
        for decision in self.decisions:
            operands = self._list_operands(decision)
            names = np.bitwise_or.reduce([reached[o] for o in operands])
            size = np.abs(values[decision.output])
            for side in _split_sides(values[decision.output], decision.kind):
                shown = side & visible[decision.instruction]
                single.append(shown)
                close = shown
                if decision.kind != _TRUTH and shown.any():
                    close = shown & (size <= np.quantile(size[shown], _CLOSE))
                by_name += [*self._split_bits(names, shown), *self._split_bits(names, close)]
        pairs = single
        if len(self.decisions) <= _MAX_DECISIONS_OF_PAIRS:
            pairs = [first & second for first, second in combinations(single, 2)]
        return _combine_samples([*single, *by_name]), _combine_samples(pairs)

    def compute_search_features(self, evaluate: Evaluate) -> tuple[Array, Array]:
        """Return boolean arrays of shape (features, candidates) for a search of further points.

        In a chain of piecewise functions, few points show both sides of an early function, since
        every later function must pass on its derivative. A search needs intermediate steps.

        Args:
            evaluate: computes the outputs of a tape at the candidates.

        Returns:
            Two arrays. The features of the first array are to be covered: each side of a decision
            on which the output depends, and each such side with a name on which the operands
            depend. The features of the second array are steps toward them: each side of a decision
            with a later decision whose operands depend on the result.
        """
        values = evaluate(self.tape)
        passes, shape = self._find_passes(values)
        visible, reached = self._find_visible(passes, shape), self._spread(self.bits, passes, shape)
        marks = {
            d.instruction: np.uint64(1 << (number % self.bit_count))
            for number, d in enumerate(self.decisions)
        }
        later = self._spread(marks, passes, shape)
        sides = [_split_sides(values[d.output], d.kind) for d in self.decisions]
        shown, steps = list[Array](), list[Array]()
        for decision, pair in zip(self.decisions, sides, strict=True):
            operands = self._list_operands(decision)
            names = np.bitwise_or.reduce([reached[o] for o in operands])
            size = np.abs(values[decision.output])
            is_close = size <= min(float(np.quantile(size, _CLOSE)), _NEAR)
            for side in pair:
                visible_side = side & visible[decision.instruction]
                shown += [visible_side, visible_side & is_close]
                shown += self._split_bits(names, visible_side)
        for target in self.decisions:
            sources = np.bitwise_or.reduce([later[o] for o in self._list_operands(target)])
            for decision, pair in zip(self.decisions, sides, strict=True):
                if decision.instruction < target.instruction:
                    depends = (sources & marks[decision.instruction]) != 0
                    steps += [side & depends for side in pair]
        return _combine_samples(shown), _combine_samples(steps or shown)

    def _list_operands(self, decision: _Decision) -> tuple[int, ...]:
        """Return the operands of the instruction of a decision."""
        at = decision.instruction - len(self.primal.leaves)
        return tuple(self.primal.instructions[at].operands)

    def _split_bits(self, names: Array, side: Array) -> Iterator[Array]:
        """Yield, for each bit, the candidates on a side whose set of names has the bit."""
        for bit in range(self.bit_count):
            yield side & ((names >> np.uint64(bit)) & np.uint64(1)).astype(bool)

    def _find_passes(
        self, values: Mapping[str, Array]
    ) -> tuple[dict[tuple[int, int], Array], tuple[int, ...]]:
        """Return a mask of the candidates at which each partial is not 0, and the masks' shape."""
        shape = np.shape(values[self.decisions[0].output])
        passes = {
            edge: np.full(shape, partial)
            if isinstance(partial, bool)
            else np.abs(values[partial]) > _SMALL
            for edge, partial in self.partials.items()
        }
        return passes, shape

    def _find_visible(
        self, passes: Mapping[tuple[int, int], Array], shape: Any
    ) -> dict[int, Array]:
        """Return, for each decision, a mask of the candidate points at which it affects the output.

        A condition, whose partial derivative is 0, counts as visible at every point.
        """
        visible = {self.root: np.ones(shape, bool)}
        for index, _, operands in reversed([*self._iterate_instructions()]):
            is_visible = visible.get(index)
            if is_visible is None:
                continue
            for which, operand in enumerate(operands):
                if self.partials[index, which] is not False:
                    reaches = is_visible & passes[index, which]
                    visible[operand] = visible.get(operand, False) | reaches
        everywhere = np.ones(shape, bool)
        return {d.instruction: visible.get(d.instruction, everywhere) for d in self.decisions}

    def _spread(
        self, bits: Mapping[int, Any], passes: Mapping[tuple[int, int], Array], shape: Any
    ) -> dict[int, Array]:
        """Return the marked values on which each value depends, as one bit set per candidate.

        Args:
            bits: the bit of each marked value, keyed by index on the primal tape.
            passes: the candidates at which each partial derivative is not 0.
            shape: the shape of the masks.
        """
        nothing = np.zeros(shape, np.uint64)
        reached = {
            leaf: np.full(shape, bits[leaf]) if leaf in bits else nothing
            for leaf in range(len(self.primal.leaves))
        }
        for index, _, operands in self._iterate_instructions():
            total = np.full(shape, bits[index]) if index in bits else nothing
            for which, operand in enumerate(operands):
                total = total | np.where(passes[index, which], reached[operand], nothing)
            reached[index] = total
        return reached


def _split_sides(value: Array, kind: str) -> tuple[Array, Array]:
    """Return two masks of the candidate points, one for each of the two branches of a decision."""
    return (value != 0, value == 0) if kind == _TRUTH else (value > 0, value < 0)


def _combine_samples(rows: Sequence[Array]) -> Array:
    """Stack boolean features; a batch has each feature that at least one of its samples has."""
    features = np.stack(rows)
    return features.any(axis=1) if features.ndim == 3 else features


def remove_kinks(primal: Tape, decisions: Sequence[_Decision]) -> Iterator[Tape]:
    """Yield copies of a tape, each with one piecewise function replaced by one of its operands.

    A student who ignores the function differentiates such a tape. A function whose derivative is 0
    everywhere is replaced by 1.
    """
    first = len(primal.leaves)
    for index in dict.fromkeys(d.instruction for d in decisions):
        name, operands = primal.instructions[index - first]
        is_flat = all(text == "0" for text in find_primitive(operator_name(name)).partials)
        if is_flat:
            changes = [Instruction("equal", (operands[0], operands[0]))]
        else:
            branches = operands[1:] if name == "where" else operands
            changes = [Instruction("copy", (o,)) for o in dict.fromkeys(branches)]
        for change in changes:
            instructions = [*primal.instructions]
            instructions[index - first] = change
            yield replace(primal, instructions=tuple(instructions))


def choose_candidates(
    features: tuple[Array, Array], badness: Array, count: int, max_count: int
) -> list[int]:
    """Choose candidate points that together cover every feature; return the indices of the points.

    Args:
        features: the required and the optional features; see :meth:`Branches.compute_features`.
        badness: the badness of each candidate; a worse candidate is chosen only for features that
            no better candidate covers.
        count: the number of candidates.
        max_count: the maximum number of candidates if covering the required features once needs
            more than `count`.
    """
    required, all_features = features[0], np.concatenate(features)
    chosen: list[int] = []
    for level in np.unique(badness):
        cover_features(required, badness <= level, chosen, 1, max_count)
    order = np.argsort(badness, kind="stable")
    good = badness <= badness[order[min(count, len(order)) - 1]]
    for times in range(1, count):
        if len(chosen) >= count:
            break
        cover_features(all_features, good, chosen, times, count)
    others = [int(k) for k in order if int(k) not in {*chosen}]
    return chosen + others[: max(count - len(chosen), 0)]


def cover_features(
    features: Array, good: Array, chosen: list[int], times: int, max_count: int
) -> None:
    """Extend the chosen points greedily until each feature occurs ``times`` times, if possible.

    Args:
        features: booleans of shape (features, candidates).
        good: the candidates that may be added.
        chosen: the chosen candidates; updated.
        times: how many candidates should have each feature.
        max_count: the maximum number of chosen candidates.
    """
    covered = features[:, chosen].sum(axis=1)
    free = good.copy()
    free[chosen] = False
    while len(chosen) < max_count and free.any():
        gain = features[covered < times].sum(axis=0) * free
        best = int(gain.argmax())
        if not gain[best]:
            return
        free[best] = False
        chosen.append(best)
        covered = covered + features[:, best]
