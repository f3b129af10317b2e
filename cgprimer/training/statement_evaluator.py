"""Evaluation of statements on floats, arrays and recorded values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from cgprimer.core.evaluation.evaluator import PreparedInstruction, run_instructions
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.core.operations.numpy_arithmetic import numpy_function
from cgprimer.tapes import Tape
from cgprimer.training.recorded_values import RecordedValue, apply_primitive
from cgprimer.training.statement_tapes import Statement, build_statement_tape


@lru_cache(maxsize=64)  # each run needs the tapes of its schedule and its optimizer
def _build_cached_tape(
    statements: tuple[Statement, ...],
    constants: tuple[tuple[str, float], ...],
    inputs: tuple[str, ...],
) -> Tape:
    """Call :func:`build_statement_tape` and cache its result; arguments must be hashable."""
    return build_statement_tape(statements, dict(constants), inputs=inputs)


class StatementEvaluator:
    """A sequence of elementwise statements, prepared for repeated evaluation.

    Args:
        statements, constants, inputs: as in :func:`build_statement_tape`.

    Attributes:
        tape: the tape of the statements.
        inputs: names of the values that a call needs, in order.

    >>> from cgprimer.training.statement_tapes import parse_statements
    >>> statements = parse_statements("v = 0.5*v + g; p = p - rate*v")
    >>> evaluate = StatementEvaluator(statements, inputs=("p", "g", "rate", "v"))
    >>> values = evaluate([np.array([3.0]), np.array([1.0]), 0.25, np.array([2.0])])
    >>> values[evaluate.tape.outputs["p"]]
    array([2.5])
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        constants: Mapping[str, float] | None = None,
        inputs: Iterable[str] = (),
    ) -> None:
        self.tape = _build_cached_tape(
            tuple(statements), tuple((constants or {}).items()), tuple(inputs)
        )
        self.inputs = tuple(leaf.name for leaf in self.tape.leaves if leaf.kind != "constant")
        self._constants = [leaf.value for leaf in self.tape.leaves if leaf.kind == "constant"]
        self._results: list[Any] = [None] * len(self.tape.instructions)
        self._prepared: dict[tuple[type, ...], list[PreparedInstruction]] = {}

    def __call__(self, values: Iterable[Any]) -> list[Any]:
        """Run the statements; return the values of all leaves and instructions of the tape.

        Args:
            values: a float, an array or a recorded value for each input.
        """
        computed = [*values]
        types = tuple(map(type, computed))
        instructions = self._prepared.get(types)
        if instructions is None:
            instructions = self._prepared[types] = self._prepare_instructions(types)
        computed += self._constants
        computed += self._results
        with np.errstate(all="ignore"):
            run_instructions(instructions, computed)
        return computed

    def _prepare_instructions(self, types: tuple[type, ...]) -> list[PreparedInstruction]:
        """Choose the Python function of each instruction for inputs of the given types.

        Floats are computed as floats, because numpy's scalars would turn float32 arrays into
        float64 arrays.
        """
        is_float = [kind is float for kind in types] + [True] * len(self._constants)
        is_recorded = RecordedValue in types
        prepared: list[PreparedInstruction] = []
        for index, (name, operands) in enumerate(self.tape.instructions, len(is_float)):
            is_float.append(all(is_float[operand] for operand in operands))
            function: Callable[..., Any]
            if is_float[-1]:
                function = float_function(name)
            elif is_recorded:
                function = partial(apply_primitive, str(name))
            else:
                function = numpy_function(name)
            prepared.append((index, function, operands, ()))
        return prepared

    def prepare_for_arrays(
        self, scalars: Collection[str]
    ) -> tuple[list[Any], list[PreparedInstruction], list[PreparedInstruction]]:
        """Prepare the instructions for float64 arrays of one shape, without type checks.

        The instructions run on a list with the inputs and the rest that this method returns. For a
        few parameters, they take half the time of a call: types are not checked, and constants are
        arrays.

        Args:
            scalars: inputs that are floats.

        Returns:
            The rest of the values, the instructions, and the instructions for large arrays, which
            store results in memory that is not needed any more.
        """
        types = tuple(float if name in scalars else np.ndarray for name in self.inputs)
        first, size = len(types), self.tape.size
        end = first + len(self._constants)
        instructions: list[PreparedInstruction] = []
        for index, function, operands, _ in self._prepare_instructions(types):
            moved = operands
            if not isinstance(function, np.ufunc):  # a function of floats needs floats
                moved = tuple(o - first + size if first <= o < end else o for o in operands)
            instructions.append((index, function, moved, ()))
        rest = [*map(np.array, self._constants), *self._results, *self._constants]
        return rest, instructions, self._reuse_memory(instructions)

    def _reuse_memory(self, instructions: list[PreparedInstruction]) -> list[PreparedInstruction]:
        """Return instructions that write results into memory whose values are not used later.

        Only functions of numpy do so, because other functions may return an operand.
        """
        last_use = {o: index for index, _, operands, _ in instructions for o in operands}
        last_use |= dict.fromkeys(self.tape.outputs.values(), self.tape.size)
        owned: set[int] = set()
        unused: list[int] = []
        reusing: list[PreparedInstruction] = []
        for index, function, operands, _ in instructions:
            arguments = operands
            unused += [o for o in {*operands} & owned if last_use[o] == index]
            if isinstance(function, np.ufunc):
                owned.add(index)
                if unused:
                    arguments = (*operands, unused.pop())
            reusing.append((index, function, arguments, ()))
        return reusing
