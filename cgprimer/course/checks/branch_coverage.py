"""Which branch of every piecewise function a point is on, and which points cover all branches.

A gradient that ignores a kink is right on one of its sides. A point refutes it only if it lies on
the other side and the output depends on the unit there: a later unit that is inactive hides the
mistake. So the branches of a point are recorded together with the names whose derivatives depend
on them, and points are chosen greedily until every branch that any candidate reaches is covered.
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
Evaluate = Callable[[Tape], Mapping[str, Array]]  #: the outputs of a tape at some candidates
_SIGNS = {"sign", "abs", "heaviside", "step"}  # piecewise by the sign of their operand
_SMALL = 1e-6  # a smaller partial derivative hides what lies behind it
_MOST_NAMES = 64  # bits of a set of names; more names share bits
_MOST_FEATURES = 2_000  # decisions times names
_MOST_PAIRS = 16  # branching values of which all combinations of two are wanted
_TRUTH = "truth"
_CLOSE = 0.05  # fraction of the points on a side that count as close to the kink


@dataclass(frozen=True)
class _Decision:
    """A quantity whose sign (or truth, of a condition) decides which branch is taken."""

    instruction: int  # on the primal tape
    output: str  # on the tape of decisions
    kind: str


class Branches:
    """The piecewise functions of a tape of scalars.

    Args:
        primal: the tape that is differentiated, with one output.
        sources: for each name that is asked for, the labels of its elements.
    """

    def __init__(self, primal: Tape, sources: Mapping[str, Sequence[str]]) -> None:
        self.primal = primal
        self.root = next(iter(primal.outputs.values()))
        self.needed = reachable(primal, [self.root])
        self._builder = Builder()
        self._value = self._builder.extend(primal, keep=self.needed)
        self._outputs: dict[str, int] = {}
        self.decisions: list[_Decision] = []
        self.partials: dict[tuple[int, int], str | bool] = {}
        for index, name, operands in self._instructions():
            values = tuple([self._value[o] for o in operands])
            if not find_primitive(name).analytic:
                self._decide(index, name, values)
        if self.decisions:
            self._add_partials()
        self.names = max(
            1, min(len(sources), _MOST_NAMES, _MOST_FEATURES // max(len(self.decisions), 1))
        )
        self.bits = {
            primal.index(element): np.uint64(1 << (number % self.names))
            for number, name in enumerate(sources)
            for element in sources[name]
        }
        self.tape = self._builder.finish(self._outputs, prune=True)

    def _instructions(self) -> Iterator[tuple[int, str, tuple[int, ...]]]:
        first = len(self.primal.leaves)
        for index, (name, operands) in enumerate(self.primal.instructions, first):
            if self.needed[index]:
                yield index, operator_name(name), operands

    # --- what decides ------------------------------------------------------------------------

    def _decide(self, index: int, name: str, values: tuple[int, ...]) -> None:
        """Record what an instruction's branch depends on."""
        if name == "where":
            self._add(index, values[0], _TRUTH)
        elif name == "equal":
            self._add(index, self._value[index], _TRUTH)
        elif not self._gap(index, name, values):
            known = dict(zip((*OPERANDS, RESULT), (*values, self._value[index]), strict=False))
            known[RESULT] = self._value[index]
            for text in find_primitive(name).partials:
                self._decide_by_partial(index, text, known)

    def _decide_by_partial(self, index: int, text: str, known: Mapping[str, int]) -> None:
        """Record the comparisons in the text of a partial derivative.

        Tests for equality are left out: ties have no width.
        """

        def leaf(node: Any) -> int:
            return (
                known[node.name] if isinstance(node, Name) else self._builder.constant(node.value)
            )

        def apply(name: str, arguments: list[int]) -> int:
            self._gap(index, name, tuple(arguments))
            return self._builder.emit(name, *arguments)

        tree = parse_partial(text)
        if isinstance(tree, Apply):
            fold(tree, leaf, apply)

    def _gap(self, index: int, name: str, values: tuple[int, ...]) -> bool:
        """Record the quantity whose sign a comparison depends on; False for another function."""
        if name == "less":
            self._add(index, self._builder.emit("sub", values[1], values[0]), "gap")
        elif name in _SIGNS:
            self._add(index, values[0], "gap")
        return name == "less" or name in _SIGNS

    def _add(self, index: int, value: int, kind: str) -> None:
        if self._builder.value_of(value) is not None:
            return
        output = internal_name("decision", str(value))
        if not any(d.instruction == index and d.output == output for d in self.decisions):
            self.decisions.append(_Decision(index, output, kind))
            self._outputs[output] = value

    def _add_partials(self) -> None:
        """Add the partial derivatives of all instructions; a constant is known to be 0 or not."""
        for index, name, operands in self._instructions():
            values = tuple([self._value[o] for o in operands])
            for which in range(len(operands)):
                partial = emit_partial(self._builder, name, which, values, self._value[index])
                number = 0.0 if partial is None else self._builder.value_of(partial)
                if number is not None:
                    self.partials[index, which] = number != 0
                else:
                    output = internal_name("partial", str(partial))
                    self.partials[index, which] = output
                    self._outputs[output] = int(partial or 0)

    # --- points ------------------------------------------------------------------------------

    def features(self, evaluate: Evaluate) -> tuple[Array, Array]:
        """Return what each candidate shows: boolean arrays of shape (features, candidates).

        The features of the first array must be covered: each side of a decision where the output
        depends on it, then the same for each name that the operands depend on, everywhere and
        close to the kink. Those of the second, combinations of two sides, are covered as far as
        the number of points allows.
        """
        values = evaluate(self.tape)
        shape = np.shape(values[self.decisions[0].output])
        passes = {
            edge: np.full(shape, known)
            if isinstance(known, bool)
            else np.abs(values[known]) > _SMALL
            for edge, known in self.partials.items()
        }
        visible, reached = self._visible(passes, shape), self._reached_by(passes, shape)
        single, by_name = list[Array](), list[Array]()
        for decision in self.decisions:
            at = decision.instruction - len(self.primal.leaves)
            operands = self.primal.instructions[at].operands
            names = np.bitwise_or.reduce([reached[o] for o in operands])
            size = np.abs(values[decision.output])
            for side in _both(values[decision.output], decision.kind):
                shown = side & visible[decision.instruction]
                single.append(shown)
                near = shown
                if decision.kind != _TRUTH and shown.any():
                    near = shown & (size <= np.quantile(size[shown], _CLOSE))
                for bit in range(self.names):
                    has_name = ((names >> np.uint64(bit)) & np.uint64(1)).astype(bool)
                    by_name += [shown & has_name, near & has_name]
        few = len(self.decisions) <= _MOST_PAIRS
        pairs = [one & other for one, other in combinations(single, 2)] if few else single
        return _over_samples([*single, *by_name]), _over_samples(pairs)

    def _visible(self, passes: Mapping[tuple[int, int], Array], shape: Any) -> dict[int, Array]:
        """Return where the output depends on each instruction with a decision.

        The derivative by a condition is 0 everywhere; it counts as visible at every point.
        """
        visible = {self.root: np.ones(shape, bool)}
        for index, _, operands in reversed([*self._instructions()]):
            here = visible.get(index)
            if here is None:
                continue
            for which, operand in enumerate(operands):
                if self.partials[index, which] is not False:
                    there = here & passes[index, which]
                    visible[operand] = visible[operand] | there if operand in visible else there
        everywhere = np.ones(shape, bool)
        return {d.instruction: visible.get(d.instruction, everywhere) for d in self.decisions}

    def _reached_by(self, passes: Mapping[tuple[int, int], Array], shape: Any) -> dict[int, Array]:
        """For each value the set of names that it depends on, as bits."""
        nothing = np.zeros(shape, np.uint64)
        reached = {
            leaf: np.full(shape, self.bits[leaf]) if leaf in self.bits else nothing
            for leaf in range(len(self.primal.leaves))
        }
        for index, _, operands in self._instructions():
            total = np.full(shape, self.bits[index]) if index in self.bits else nothing
            for which, operand in enumerate(operands):
                total = total | np.where(passes[index, which], reached[operand], nothing)
            reached[index] = total
        return reached


def _both(value: Array, kind: str) -> tuple[Array, Array]:
    """Where a decision falls on either side."""
    return (value != 0, value == 0) if kind == _TRUTH else (value > 0, value < 0)


def _over_samples(rows: Sequence[Array]) -> Array:
    """Features of a batch: those of any of its samples."""
    whole = np.stack(rows)
    return whole.any(axis=1) if whole.ndim == 3 else whole


def remove_kinks(primal: Tape, decisions: Sequence[_Decision]) -> Iterator[Tape]:
    """Yield the tapes in which one piecewise function is replaced by one of its operands.

    That is what a program computes which overlooks the function. A function whose derivative is 0
    everywhere is replaced by 1.
    """
    first = len(primal.leaves)
    for index in dict.fromkeys(d.instruction for d in decisions):
        name, operands = primal.instructions[index - first]
        flat = all(text == "0" for text in find_primitive(operator_name(name)).partials)
        if flat:
            changes = [Instruction("equal", (operands[0], operands[0]))]
        else:
            kept = operands[1:] if name == "where" else operands
            changes = [Instruction("copy", (o,)) for o in dict.fromkeys(kept)]
        for change in changes:
            instructions = [*primal.instructions]
            instructions[index - first] = change
            yield replace(primal, instructions=tuple(instructions))


def choose_candidates(
    features: tuple[Array, Array], badness: Array, count: int, most: int
) -> list[int]:
    """Choose candidates that cover every feature, again and again until there are enough.

    Args:
        features: those that must be covered, and more that may be; see :meth:`Branches.features`.
        badness: of each candidate; worse ones are chosen only for what no better one covers.
        count: how many are wanted.
        most: how many may be chosen if so many are needed to cover the first features once.
    """
    required, all_features = features[0], np.concatenate(features)
    chosen: list[int] = []
    for level in np.unique(badness):
        cover_features(required, badness <= level, chosen, 1, most)
    order = np.argsort(badness, kind="stable")
    good = badness <= badness[order[min(count, len(order)) - 1]]
    for times in range(1, count):
        if len(chosen) >= count:
            break
        cover_features(all_features, good, chosen, times, count)
    taken = {*chosen}
    rest = [int(k) for k in order if int(k) not in taken]
    return chosen + rest[: max(count - len(chosen), 0)]


def cover_features(features: Array, good: Array, chosen: list[int], times: int, most: int) -> None:
    """Add candidates greedily until each feature is covered so many times, as far as possible."""
    covered = features[:, chosen].sum(axis=1)
    free = good.copy()
    free[chosen] = False
    while len(chosen) < most and free.any():
        gain = features[covered < times].sum(axis=0) * free
        best = int(gain.argmax())
        if not gain[best]:
            return
        free[best] = False
        chosen.append(best)
        covered = covered + features[:, best]
