"""Gradients of sweeps that go wrong, collected as outputs of one tape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from cgprimer.core.methods.reverse import iterate_backwards, sweep
from cgprimer.core.operations.batch_operations import BatchMean
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.tape_places import Places
from cgprimer.course.checks.wrong_sweeps import Hands, Slip
from cgprimer.tapes import Builder, Instruction

MEAN = BatchMean(1)  # the samples are the first axis, points the second
Recompute = Callable[[tuple[int, ...]], int]  #: emits a value from those of its operands


class Candidate(NamedTuple):
    """A mistake, and the outputs of a tape that have the numbers it leads to, by name."""

    mistake: str
    said: str
    outputs: dict[str, str]


class Sweeps(Places):
    """Reverse sweeps over a question's graph, with one slip each, on one builder.

    Attributes:
        value: for each value of the question's tape its index on the builder.
        found: the candidates so far.
        outputs: the outputs of the tape that computes them.
        work: roughly, the number of adjoints of all sweeps together.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question.primal, question.of, question.sources)
        self.question = question
        self.builder = Builder()
        self.value = self.builder.extend(self.tape, keep=self.needed)
        self.found: list[Candidate] = []
        self.outputs: dict[str, int] = {}
        self.work = 0

    def sweep(self, slip: Slip) -> dict[str, int]:
        """Return the gradient that a sweep with a slip computes."""
        adjoints, zero = self.adjoints(slip), self.builder.constant(0.0)
        return {e: adjoints.get(i, zero) for e, i in self.sources.items()}

    def adjoints(self, slip: Slip) -> dict[int, int]:
        """Return the adjoints that a sweep with a slip computes, by values of the tape."""
        hands = Hands(self.builder, slip, self.owner)
        adjoints = dict.fromkeys(slip.roots or (self.root,), self.builder.constant(1.0))
        sweep(hands, self._steps(slip, hands, adjoints), adjoints)
        self.builder.shares.clear()
        self.work += len(adjoints) + len(self.region) // 4
        return adjoints

    def note(self, mistake: str, said: str, gradient: Mapping[str, int]) -> None:
        """Add a candidate with the values of its gradient on the builder."""
        names = {}
        for element, index in gradient.items():
            names[element] = f"{len(self.found)}.{element}"
            self.outputs[names[element]] = index
        self.found.append(Candidate(mistake, said, names))

    def recomputed(self, changed: Mapping[int, Recompute]) -> dict[int, int]:
        """Return the values of a forward pass in which some are computed in another way."""
        values = dict(self.value)
        for index in sorted(values):
            instruction = self.tape.instruction(index)
            operands = instruction.operands if instruction else ()
            if index in changed:
                values[index] = changed[index](tuple([values[o] for o in operands]))
            elif any(values[o] != self.value[o] for o in operands):
                assert isinstance(instruction, Instruction)
                values[index] = self.builder.emit(
                    instruction.primitive, *[values[o] for o in operands]
                )
        return values

    @cached_property
    def right(self) -> dict[int, int]:
        """The right adjoints."""
        return self.adjoints(Slip("", ""))

    @cached_property
    def dependencies(self) -> list[int]:
        """For each value of the tape a bit mask of the sources that it depends on."""
        masks = [0] * self.tape.size
        for bit, index in enumerate(self.sources.values()):
            masks[index] = 1 << bit
        for index in range(len(self.tape.leaves), self.tape.size):
            for operand in self.step(index).operands:
                masks[index] |= masks[operand]
        return masks

    def common_sources(self, values: Iterable[int]) -> list[str]:
        """Return the names that each of these values depends on."""
        shared = -1
        for index in values:
            shared &= self.dependencies[index]
        return [name for bit, name in enumerate(self.sources) if shared >> bit & 1]

    # --- steps -------------------------------------------------------------------------------

    def _steps(
        self, slip: Slip, hands: Hands, adjoints: dict[int, int]
    ) -> Iterator[tuple[Any, ...]]:
        """The steps of reverse mode, share by share, as the slip has them."""
        forward = self.value if slip.forward is None else slip.forward
        region = self.deep if slip.deep else self.region
        for head, name, tails, values, out in iterate_backwards(
            self.tape, forward, region, self.active
        ):
            bar = adjoints.get(head)
            if bar is None:
                continue
            if to := slip.passed.get(head):
                adjoints[to] = (
                    self.builder.emit("add", adjoints[to], bar) if to in adjoints else bar
                )
                continue
            at, result = slip.elsewhere.get(head, (values, out))
            order = [*range(len(tails))]
            if slip.rate is not None and name == "mul":  # the parameter's share comes first
                order.sort(key=lambda which: tails[which] not in self._parameters)
            for which in order:
                tail = tails[which]
                if tail is None or (head, which) in slip.lost:
                    continue
                if slip.rate is not None and name == "mul":
                    at = self._updated(values, tails, which, adjoints, slip.rate)
                hands.here = head, which
                if hands.here in slip.averaged:
                    adjoints[head] = self.builder.emit(MEAN, bar)
                yield head, name, (None,) * which + (tail,), at, result
                adjoints[head] = bar

    @cached_property
    def _parameters(self) -> set[int]:
        """The sources that are used only once, so that their adjoint is complete then."""
        uses = [tail for _, _, tail in self.shares]
        return {index for index in self.sources.values() if uses.count(index) == 1}

    def _updated(
        self,
        values: tuple[int, ...],
        tails: tuple[int | None, ...],
        which: int,
        adjoints: Mapping[int, int],
        rate: int,
    ) -> tuple[int, ...]:
        """Return a product's operands, the parameter among them after a gradient step."""
        other = tails[1 - which]
        if other not in self._parameters or other not in adjoints:
            return values
        gradient = adjoints[other]
        if self.question.batch:
            gradient = self.builder.emit(MEAN, gradient)
            if self.question.reduction == "sum":
                size = self.builder.constant(float(self.question.batch))
                gradient = self.builder.emit("mul", size, gradient)
        moved = self.builder.emit(
            "sub", values[1 - which], self.builder.emit("mul", rate, gradient)
        )
        return (moved, values[1]) if which == 1 else (values[0], moved)
