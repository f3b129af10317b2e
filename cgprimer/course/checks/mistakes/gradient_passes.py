"""Reverse passes over the graph of a question, each with one mistake, emitted on one builder.

All gradients are outputs of one tape, which runs once for all points. The builder computes equal
instructions once, so that passes share most of their work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from cgprimer.core.operations import OPERANDS, RESULT
from cgprimer.core.operations.primitive_registry import parse_partial
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.mistakes.differentiated_tape import DifferentiatedTape
from cgprimer.course.checks.mistakes.reverse_rules import ReverseRules, run_reverse_pass
from cgprimer.expressions import Name, Number, fold
from cgprimer.tapes import Builder, Instruction

#: Emits the value of an instruction, from the values of its operands.
EmitValue = Callable[[tuple[int, ...]], int]
#: A message, and for each name the value of the predicted derivative on the builder.
PassPrediction = tuple[str, Mapping[str, int]]
#: Yields the gradients that a mistake predicts.
PredictByPasses = Callable[["GradientPasses"], Iterator[PassPrediction]]


class GradientPasses(DifferentiatedTape):
    """Correct and wrong reverse passes over the tape of one question, emitted on one builder.

    Attributes:
        question: the question.
        builder: the builder of all passes.
        values: for each needed value of the question's tape its value on the builder.
        work: an estimate of the number of instructions of all passes.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question.primal, question.of, question.sources)
        self.question = question
        self.builder = Builder()
        self.values = self.builder.extend(self.tape, keep=self.needed)
        self.work = 0

    def run(self, rules: ReverseRules) -> dict[int, int]:
        """Run a reverse pass by the given rules; return the adjoints, keyed by tape index."""
        adjoints = run_reverse_pass(self, self.builder, self.values, rules)
        self.work += len(adjoints) + len(self.region) // 4
        return adjoints

    def gradient(self, rules: ReverseRules) -> dict[str, int]:
        """Run a reverse pass by the given rules; return the gradient, keyed by variable name."""
        adjoints, zero = self.run(rules), self.builder.constant(0.0)
        return {name: adjoints.get(index, zero) for name, index in self.sources.items()}

    @cached_property
    def adjoints(self) -> dict[int, int]:
        """The correct adjoints, keyed by index on the question's tape."""
        return self.run(ReverseRules())

    @cached_property
    def correct_gradient(self) -> dict[str, int]:
        """The correct gradient, keyed by variable name."""
        return self.gradient(ReverseRules())

    def recompute(self, changes: Mapping[int, EmitValue]) -> dict[int, int]:
        """Emit a forward pass in which the functions in ``changes`` replace some operations.

        Args:
            changes: for each changed value a function that emits it.

        Returns:
            For each needed value of the question's tape its value on the builder.
        """
        values = dict(self.values)
        for index in sorted(values):
            instruction = self.tape.instruction(index)
            operands = instruction.operands if instruction else ()
            if index in changes:
                values[index] = changes[index](tuple([values[o] for o in operands]))
            elif any(values[o] != self.values[o] for o in operands):
                assert isinstance(instruction, Instruction)
                values[index] = self.builder.emit(
                    instruction.primitive, *[values[o] for o in operands]
                )
        return values

    def emit_formula(self, formula: str, operands: tuple[int, ...], out: int = 0) -> int:
        """Emit a formula in ``a``, ``b``, ``c``, ``out``, and return the index of its result.

        Args:
            formula: the formula in the package's language.
            operands: the values that ``a``, ``b`` and ``c`` stand for.
            out: the value that ``out`` stands for.
        """
        slots = dict(zip(OPERANDS, operands, strict=False)) | {RESULT: out}

        def emit_leaf(node: Name | Number) -> int:
            """Return the index of the value that a leaf of the formula stands for."""
            if isinstance(node, Name):
                return slots[node.name]
            return self.builder.constant(node.value)

        return fold(
            parse_partial(formula), emit_leaf, lambda name, parts: self.builder.emit(name, *parts)
        )

    def group_instructions(self, heads: Iterable[int]) -> dict[frozenset[int], str]:
        """Group instructions of the same primitive into sets, and describe each set.

        The sets are all of the instructions, those of one variable or array, and single ones.
        """
        heads = [*heads]
        primitives = [self.instruction(head).primitive for head in heads[:1]]
        groups = {frozenset(heads): f"each {primitives[0]}"} if len(heads) > 1 else {}
        for variable, members in self.group_by_variable(heads):
            if len(members) > 1:
                groups.setdefault(members, f"each {primitives[0]} in {variable}")
        for head in heads:
            groups.setdefault(frozenset({head}), self.format_operation(head))
        return groups
