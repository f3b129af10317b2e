"""Encoding of execution plans as integers, for the interpreters on CPU and GPU.

An operation is five integers: opcode, result and up to three operands. A nonnegative operand is a
row of the block's buffer; a negative operand, ``~value``, is a uniform value of the plan. The
additional operands of an affine group, an outer product or a Python function are stored separately
and referenced by the operation. The backends translate these integers to addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan, PlanStep
from cgprimer.backends.plans.row_allocation import allocate_rows

WORDS = 5  # per operation: opcode, result, three operands
TILE = 4  # outputs of an affine group that are computed together, in registers
CALL = "call"  # operand kinds of a call to a Python function
ANY = "*"  # operands of any kind
_WITHOUT_PATTERN = ("sum", "dot", "sincos")
_ALL_ROWS = ("", "r", "rr", "rrr")
_PADDING = ((0, 0, 0), (0, 0), (0,), ())


class ExtendedOperands(NamedTuple):
    """Operands of an operation that needs more than three operands.

    Attributes:
        name: ``affine``, ``outer`` or ``call``.
        counts: for ``affine``, the number of inputs and of tiles of outputs; for ``outer``, the
            number of tiles of left and of right factors.
        offset: index of the first weight, of the first sum, or of the Python function.
        rows: inputs and outputs, left and right factors, or result and three operands.
    """

    name: str
    counts: tuple[int, ...]
    offset: int
    rows: tuple[int, ...]


class CodeSection(NamedTuple):
    """A sequence of encoded operations, with their extended operands.

    ``code`` has shape (operations, WORDS). The result of an operation with extended operands is an
    index into ``groups``.
    """

    code: Array
    groups: tuple[ExtendedOperands, ...]


class EncodedPlan(NamedTuple):
    """An execution plan encoded as integers, for an interpreter.

    Attributes:
        handlers: opcode -> name of the operation and kinds of its operands: ``r`` for a row, ``s``
            for a uniform scalar; or CALL, ANY, or an empty string if there is only one form.
        main: operations for every block of samples: one per step, then the stores of the outputs.
        uniform: operations that run once per call, if requested. Their rows are the values
            ``uniform_inputs``, followed by the results of the plan's uniform steps.
        uniform_inputs: values that uniform steps read.
        columns: values of the columns that are read; they occupy the first rows.
        filled: pairs of a row and the uniform value that is copied to it.
        rows: number of rows.
        weights: weights of the affine groups, tile by tile: TILE biases, then TILE weights for each
            input; -1 for padding.
        direct_sums: number of sums of ``sum`` and ``dot``; the sums of outer products follow, tile
            by tile.
        sums: total number of sums.
        sum_slots: accumulator of the plan -> index of its sum.
        stored: values that ``store`` writes.
        functions: primitives that are Python functions.
        tile: number of left and of right factors per tile of an outer product.
    """

    handlers: tuple[tuple[str, str], ...]
    main: CodeSection
    uniform: CodeSection
    uniform_inputs: tuple[int, ...]
    columns: tuple[int, ...]
    filled: tuple[tuple[int, int], ...]
    rows: int
    weights: list[int]
    direct_sums: int
    sums: int
    sum_slots: list[int]
    stored: tuple[int, ...]
    functions: tuple[str, ...]
    tile: tuple[int, int]


def encode_plan(
    plan: Plan, *, tile: tuple[int, int], available: Collection[tuple[str, str]] | None = None
) -> EncodedPlan:
    """Encode an execution plan as integers for an interpreter.

    Args:
        plan: the plan.
        tile: number of left and of right factors per tile of an outer product.
        available: the handlers of the interpreter. If there is no handler for a uniform operand,
            the operand is copied to a row; an operation without any handler becomes a call to a
            Python function. With None, every operation and operand kind is available, and uniform
            steps are not encoded.

    >>> import cgprimer
    >>> from cgprimer.backends.plans.planning import build_plan
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k*xa + m"))
    >>> encoded = encode_plan(build_plan(tape, sums=True), tile=(2, 2))
    >>> encoded.handlers, encoded.main.code.tolist()
    ((('fma', '*'), ('sum', '')), [[0, 1, -2, 0, -3], [1, 0, 1, 0, 0]])
    """
    return _PlanEncoder(plan, tile, available).encode()


class _PlanEncoder:
    """Encoder of an execution plan: collects opcodes, buffer rows, weights and sums."""

    def __init__(
        self, plan: Plan, tile: tuple[int, int], available: Collection[tuple[str, str]] | None
    ) -> None:
        self.plan, self.tile, self.available = plan, tile, available
        read = {o for step in plan.varying for o in step.operands} | set(plan.outputs.values())
        leaves = enumerate(plan.tape.leaves)
        self.columns = tuple(i for i, leaf in leaves if leaf.kind == "column" and i in read)
        self.row = {value: row for row, value in enumerate(self.columns)}
        allocation, first = allocate_rows(plan), len(self.columns)
        self.row.update({value: first + row for value, row in allocation.row_of.items()})
        self.rows = first + allocation.count
        self.scratch = -1
        self.handlers: dict[tuple[str, str], int] = {}
        self.filled: dict[int, int] = {}
        self.weights: list[int] = []
        self.functions: dict[str, int] = {}
        self.sum_slots = [0] * len(plan.accumulators)
        self.direct_sums = sum(1 for step in plan.varying if step.name in ("sum", "dot"))
        self.sums = self.direct_sums
        self.next_sum = 0

    def encode(self) -> EncodedPlan:
        """Encode the varying and the uniform steps of the plan."""
        plan, row = self.plan, self.row
        stored: tuple[int, ...] = ()
        if not plan.accumulators:
            stored = tuple(dict.fromkeys(v for v in plan.outputs.values() if v in row))
        main = self._encode_steps(plan.varying, row)
        if stored:
            store = self.handlers.setdefault(("store", ""), len(self.handlers))
            stores = [(store, k, row[value], 0, 0) for k, value in enumerate(stored)]
            main = CodeSection(np.concatenate([main.code, stores]), main.groups)
        computed = {value for step in plan.uniform for value in step.results}
        inputs = sorted({o for step in plan.uniform for o in step.operands} - computed)
        uniform_steps = plan.uniform if self.available is not None else ()
        uniform_row = {value: k for k, value in enumerate([*inputs, *sorted(computed)])}
        return EncodedPlan(
            main=main,
            uniform=self._encode_steps(uniform_steps, uniform_row),
            handlers=tuple(self.handlers),
            uniform_inputs=tuple(inputs),
            columns=self.columns,
            filled=tuple((row, value) for value, row in self.filled.items()),
            rows=self.rows,
            weights=self.weights,
            direct_sums=self.direct_sums,
            sums=self.sums,
            sum_slots=self.sum_slots,
            stored=stored,
            functions=tuple(self.functions),
            tile=self.tile,
        )

    def _allocate_row(self) -> int:
        """Add a row to the block's buffer and return its index."""
        self.rows += 1
        return self.rows - 1

    def _ensure_row(self, operand: int) -> int:
        """Return the row of an operand; allocate a row for a uniform value."""
        if operand >= 0:
            return operand
        if ~operand not in self.filled:
            self.filled[~operand] = self._allocate_row()
        return self.filled[~operand]

    def _encode_steps(self, steps: Iterable[PlanStep], row: Mapping[int, int]) -> CodeSection:
        """Encode plan steps as operations, each consisting of five integers.

        Args:
            steps: the steps.
            row: value -> row.
        """
        words: list[int] = []
        groups: list[ExtendedOperands] = []
        opcodes, available, plan_groups = self.handlers, self.available, self.plan.groups
        for position, (name, operands, results) in enumerate(steps):
            if row is self.row and position in plan_groups:
                group = plan_groups[position]
                extended = (
                    self._encode_affine(group)
                    if isinstance(group, AffineGroup)
                    else self._encode_outer(group)
                )
                words += (opcodes.setdefault((name, ""), len(opcodes)), len(groups), 0, 0, 0)
                groups.append(extended)
                continue
            arguments = [row.get(o, ~o) for o in operands]
            if name in _WITHOUT_PATTERN:
                pattern = ""
                if available is not None:
                    arguments = [self._ensure_row(p) for p in arguments]
                if name == "sincos":
                    target = row[results[0]]
                    arguments.append(row[results[1]])
                else:
                    target = self.sum_slots[results[0]] = self.next_sum
                    self.next_sum += 1
            else:
                target = row[results[0]]
                pattern, arguments = (
                    self._choose_handler(name, arguments)
                    if available is not None
                    else (ANY, arguments)
                )
                if pattern == CALL:
                    function = self.functions.setdefault(name, len(self.functions))
                    rows = (target, *arguments, *arguments[:1] * (3 - len(arguments)))
                    target, arguments = len(groups), []
                    groups.append(ExtendedOperands(CALL, (), function, rows))
            words += (opcodes.setdefault((name, pattern), len(opcodes)), target)
            words += arguments
            words += _PADDING[len(arguments)]
        return CodeSection(np.array(words, np.int64).reshape(-1, WORDS), tuple(groups))

    def _choose_handler(self, name: str, arguments: list[int]) -> tuple[str, list[int]]:
        """Choose the best available handler for the kinds of the operands.

        Returns:
            The operand kinds of the handler, and the operands, reordered or copied to rows.
        """
        assert self.available is not None
        pattern = _ALL_ROWS[len(arguments)]
        if min(arguments) < 0:
            mixed = "".join(["r" if p >= 0 else "s" for p in arguments])
            if mixed.startswith("sr") and name in ("fma", "fms", "fnma"):
                arguments, mixed = [arguments[1], arguments[0], arguments[2]], "rs" + mixed[2]
            if (name, mixed) in self.available:
                return mixed, arguments
            arguments = [self._ensure_row(p) for p in arguments]
        return (pattern if (name, pattern) in self.available else CALL), arguments

    def _encode_affine(self, group: AffineGroup) -> ExtendedOperands:
        """Encode the operands of an affine group, padded to full tiles of outputs."""
        missing = -len(group.outputs) % TILE
        if missing and self.scratch < 0:
            self.scratch = self._allocate_row()  # results of padding, never read
        inputs = [self.row[value] for value in group.inputs]
        targets = [self.row[value] for value in group.outputs] + [self.scratch] * missing
        matrix = [*group.weights, *[(-1,) * len(inputs)] * missing]
        biases = [*group.biases, *[-1] * missing]
        begin = len(self.weights)
        for first in range(0, len(targets), TILE):
            self.weights += biases[first : first + TILE]
            for column in zip(*matrix[first : first + TILE], strict=True):
                self.weights += column
        counts = (len(inputs), len(targets) // TILE)
        return ExtendedOperands("affine", counts, begin, (*inputs, *targets))

    def _encode_outer(self, group: OuterProduct) -> ExtendedOperands:
        """Encode the factors of an outer product, padded to full tiles."""
        high, wide = self.tile
        left = [self._ensure_row(self.row.get(v, ~v)) for v in group.left]
        right = [self._ensure_row(self.row.get(v, ~v)) for v in group.right]
        left += [left[-1]] * (-len(left) % high)
        right += [right[-1]] * (-len(right) % wide)
        columns, begin = len(right) // wide, self.sums
        self.sums += len(left) * len(right)
        for i, line in enumerate(group.accumulators):
            for j, accumulator in enumerate(line):
                if accumulator >= 0:  # tiles in order, row-major in each tile
                    inside = i % high * wide + j % wide
                    block = i // high * columns + j // wide
                    self.sum_slots[accumulator] = begin + block * high * wide + inside
        return ExtendedOperands("outer", (len(left) // high, columns), begin, (*left, *right))
