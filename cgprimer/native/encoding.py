"""A plan as numbers: what interpreters read, on a processor and on a GPU.

An operation is five numbers: what to do, where to, and up to three places where from. A place that
is not negative is a row of the block's buffer; a negative one, ``~value``, is a value of the plan
that no sample changes. What a matrix, a block of products or a function of Python needs besides
stands apart, and its operation says where. Machines put addresses in place of these numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.storage import storage_of

Array = Any
WORDS = 5  # of one operation: handler, result, three operands
TILE = 4  # outputs of a matrix that a machine keeps in registers at a time
CALL = "call"  # the pattern of functions that run in Python
ANY = "*"  # the pattern of operands of all kinds
_SPECIAL = ("sum", "dot", "sincos")
_ROWS = ("", "r", "rr", "rrr")
_REST = ((0, 0, 0), (0, 0), (0,), ())


class Group(NamedTuple):
    """What an operation needs that five numbers cannot hold.

    Attributes:
        name: ``affine``, ``outer`` or ``call``.
        counts: ``affine``: inputs, tiles of outputs; ``outer``: tiles of left and of right values.
        begin: its first weight; its first sum; the number of the function.
        rows: inputs, then outputs; left, then right values; result, then three operands.
    """

    name: str
    counts: tuple[int, ...]
    begin: int
    rows: tuple[int, ...]


class Part(NamedTuple):
    """Operations, shape (operations, WORDS), and their groups.

    The result of an operation with a group is the group's number.
    """

    code: Array
    groups: tuple[Group, ...]


class Program(NamedTuple):
    """What an interpreter runs.

    Attributes:
        handlers: for each number of an operation its name and the pattern of its operands: ``r`` a
            row, ``s`` a number that all samples share; or CALL, ANY, or nothing where there is a
            single form.
        main: for every block of samples: an operation per step of the plan, then what is stored.
        uniform: once a call, if wanted: on rows of which the first hold the values ``given``, the
            others one after the other the results of the plan's uniform steps.
        given: values.
        columns: the values of the columns that are read; their rows are the first ones.
        filled: rows that hold a value that no sample changes, with the value.
        rows: how many there are.
        weights: of the matrices, tile by tile: TILE biases, then TILE weights for each input; -1
            for a zero that changes no sum.
        own_sums: sums that ``sum`` and ``dot`` add to; those of the groups follow, tile by tile.
        sums: how many there are in all.
        places: for each accumulator of the plan the number of its sum.
        stored: the values that ``store`` gives back.
        functions: primitives that run in Python.
        tile: left and right values of a tile of a block of products.
    """

    handlers: tuple[tuple[str, str], ...]
    main: Part
    uniform: Part
    given: tuple[int, ...]
    columns: tuple[int, ...]
    filled: tuple[tuple[int, int], ...]
    rows: int
    weights: list[int]
    own_sums: int
    sums: int
    places: list[int]
    stored: tuple[int, ...]
    functions: tuple[str, ...]
    tile: tuple[int, int]


def encoded(
    plan: Plan, *, tile: tuple[int, int], known: Collection[tuple[str, str]] | None = None
) -> Program:
    """The numbers for a plan.

    Args:
        plan: what to run.
        tile: left and right values of a block of products that are taken at a time.
        known: the handlers that there are. Where a shared number has none, it gets a row; what has
            none at all is a function of Python. None: for everything and all kinds of operands,
            and what is uniform is left to others.

    >>> import cgprimer
    >>> from cgprimer.native.plans.making import plan
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k*xa + m"))
    >>> found = encoded(plan(tape, sums=True), tile=(2, 2))
    >>> found.handlers, found.main.code.tolist()
    ((('fma', '*'), ('sum', '')), [[0, 1, -2, 0, -3], [1, 0, 1, 0, 0]])
    """
    return _Encoder(plan, tile, known).program()


class _Encoder:
    def __init__(
        self, plan: Plan, tile: tuple[int, int], known: Collection[tuple[str, str]] | None
    ) -> None:
        self.plan, self.tile, self.known = plan, tile, known
        read = {o for step in plan.varying for o in step.operands} | set(plan.outputs.values())
        leaves = enumerate(plan.tape.leaves)
        self.columns = tuple(i for i, leaf in leaves if leaf.kind == "column" and i in read)
        self.row = {value: row for row, value in enumerate(self.columns)}
        placed, first = storage_of(plan), len(self.columns)
        self.row.update({value: first + row for value, row in placed.row_of.items()})
        self.rows = first + placed.count
        self.scratch = -1
        self.handlers: dict[tuple[str, str], int] = {}
        self.filled: dict[int, int] = {}
        self.weights: list[int] = []
        self.functions: dict[str, int] = {}
        self.places = [0] * len(plan.accumulators)
        self.own_sums = sum(1 for step in plan.varying if step.name in ("sum", "dot"))
        self.sums = self.own_sums
        self.added = 0

    def program(self) -> Program:
        plan, row = self.plan, self.row
        stored: tuple[int, ...] = ()
        if not plan.accumulators:
            stored = tuple(dict.fromkeys(v for v in plan.outputs.values() if v in row))
        main = self._part(plan.varying, row)
        if stored:
            store = self.handlers.setdefault(("store", ""), len(self.handlers))
            stores = [(store, number, row[value], 0, 0) for number, value in enumerate(stored)]
            main = Part(np.concatenate([main.code, stores]), main.groups)
        made = {value for step in plan.uniform for value in step.results}
        given = sorted({o for step in plan.uniform for o in step.operands} - made)
        once = plan.uniform if self.known is not None else ()
        place = {value: k for k, value in enumerate([*given, *sorted(made)])}
        return Program(
            main=main,
            uniform=self._part(once, place),
            handlers=tuple(self.handlers),
            given=tuple(given),
            columns=self.columns,
            filled=tuple((row, value) for value, row in self.filled.items()),
            rows=self.rows,
            weights=self.weights,
            own_sums=self.own_sums,
            sums=self.sums,
            places=self.places,
            stored=stored,
            functions=tuple(self.functions),
            tile=self.tile,
        )

    def _new_row(self) -> int:
        self.rows += 1
        return self.rows - 1

    def _row_of(self, place: int) -> int:
        """A row for a place; a value that does not vary gets one that is filled beforehand."""
        if place >= 0:
            return place
        if ~place not in self.filled:
            self.filled[~place] = self._new_row()
        return self.filled[~place]

    def _part(self, steps: Iterable[Step], row: Mapping[int, int]) -> Part:
        words: list[int] = []
        groups: list[Group] = []
        number, known, plan_groups = self.handlers, self.known, self.plan.groups
        for position, (name, operands, results) in enumerate(steps):
            if row is self.row and position in plan_groups:
                group = plan_groups[position]
                made = self._affine(group) if isinstance(group, Affine) else self._outer(group)
                words += (number.setdefault((name, ""), len(number)), len(groups), 0, 0, 0)
                groups.append(made)
                continue
            places = [row.get(o, ~o) for o in operands]
            if name in _SPECIAL:
                pattern = ""
                if known is not None:
                    places = [self._row_of(p) for p in places]
                if name == "sincos":
                    target = row[results[0]]
                    places.append(row[results[1]])
                else:
                    target = self.places[results[0]] = self.added
                    self.added += 1
            else:
                target = row[results[0]]
                pattern, places = (
                    self._pattern(name, places) if known is not None else (ANY, places)
                )
                if pattern == CALL:
                    function = self.functions.setdefault(name, len(self.functions))
                    rows = (target, *places, *places[:1] * (3 - len(places)))
                    target, places = len(groups), []
                    groups.append(Group(CALL, (), function, rows))
            words += (number.setdefault((name, pattern), len(number)), target)
            words += places
            words += _REST[len(places)]
        return Part(np.array(words, np.int64).reshape(-1, WORDS), tuple(groups))

    def _pattern(self, name: str, places: list[int]) -> tuple[str, list[int]]:
        """Which operands are rows and which are shared numbers, as there is a handler for it."""
        assert self.known is not None
        pattern = _ROWS[len(places)]
        if min(places) < 0:
            mixed = "".join(["r" if p >= 0 else "s" for p in places])
            if mixed.startswith("sr") and name in ("fma", "fms", "fnma"):
                places, mixed = [places[1], places[0], places[2]], "rs" + mixed[2]
            if (name, mixed) in self.known:
                return mixed, places
            places = [self._row_of(p) for p in places]
        return (pattern if (name, pattern) in self.known else CALL), places

    def _affine(self, group: Affine) -> Group:
        missing = -len(group.outputs) % TILE
        if missing and self.scratch < 0:
            self.scratch = self._new_row()  # results that nobody reads
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
        return Group("affine", counts, begin, (*inputs, *targets))

    def _outer(self, group: Outer) -> Group:
        high, wide = self.tile
        left = [self._row_of(self.row.get(v, ~v)) for v in group.left]
        right = [self._row_of(self.row.get(v, ~v)) for v in group.right]
        left += [left[-1]] * (-len(left) % high)
        right += [right[-1]] * (-len(right) % wide)
        columns, begin = len(right) // wide, self.sums
        self.sums += len(left) * len(right)
        for i, line in enumerate(group.numbers):
            for j, number in enumerate(line):
                if number >= 0:  # tile after tile, row after row in each
                    inside = i % high * wide + j % wide
                    block = i // high * columns + j // wide
                    self.places[number] = begin + block * high * wide + inside
        return Group("outer", (len(left) // high, columns), begin, (*left, *right))
