"""What the engine ``cpu`` makes of a tape, as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.unparse import number_text
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.passes import variance
from cgprimer.core.tape.printing import labels, shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cpu.code import Code, encoded
from cgprimer.native.cpu.engine import straight_line_form
from cgprimer.native.cpu.fused import Fused
from cgprimer.native.cpu.handlers import TILE, opcodes, tile_width
from cgprimer.native.cpu.library import processor
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import FLAGS, write_run
from cgprimer.native.listing import Operation, ranges, several, table
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.plan import Affine, Outer, Plan
from cgprimer.native.plans.printing import PlanNames, step_line

_ARGUMENTS = ("columns", "results", "scalars", "begin", "end")
_QUOTED = re.compile(r'([%@])"([\w.]+)"')
_VECTOR = re.compile(r"<(double|float) ([^\s,>]+)((?:, \1 \2)+)>")


def listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """Straight-line code for a small tape, else, or if wanted, code for the interpreter."""
    small = None if interpreter else straight_line_form(tape)
    if small is not None:
        return _straight_line(small, sums=sums, dtype=dtype)
    return _interpreter(tape, sums=sums, dtype=dtype)


# --- straight-line code --------------------------------------------------------------------------


class _Named(Emitter):
    """Writes what the engine's emitter writes, and remembers which value is which."""

    def __init__(self, tape: Tape, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        first = len(tape.leaves)
        kinds = _fixed_first(tape)
        self.order = iter(first + position for position in kinds)
        self.tape = tape
        self.labels = labels(tape)
        self.names: dict[str, str] = {}

    def apply(self, builder: Any, primitive_name: str, *operands: Any) -> Any:
        made = super().apply(builder, primitive_name, *operands)
        index = next(self.order)
        instruction = self.tape.instruction(index)
        assert instruction is not None
        for value, place in zip((*operands, made), (*instruction.operands, index), strict=True):
            name = getattr(value, "name", "")
            if name and self.labels[place]:
                self.names.setdefault(name, self.labels[place])
        return made


def _fixed_first(tape: Tape) -> list[int]:
    """Positions of the instructions in the order in which they are written."""
    varies = [kind == "column" for kind in variance(tape)[len(tape.leaves) :]]
    return sorted(range(len(tape)), key=varies.__getitem__)


def _straight_line(tape: Tape, *, sums: bool, dtype: str) -> str:
    from llvmlite import ir

    engine = Fused(tape, reduction="sum" if sums else "none", dtype=dtype)
    tape, lanes = engine.tape, engine.lanes
    module = ir.Module("straight_line")
    emitter = _Named(tape, module, dtype, lanes, flags=FLAGS)
    function = write_run(module, "run", tape, sums=sums, dtype=dtype, lanes=lanes, emitter=emitter)
    names = dict(zip((a.name for a in function.args), _ARGUMENTS, strict=True))
    # A variable may be called as an argument is; none has a dot in its name.
    taken = set(emitter.names.values())
    names = {own: f".{name}" if name in taken else name for own, name in names.items()}
    names |= emitter.names
    results: dict[int, list[str]] = {}
    for output, index in tape.outputs.items():
        results.setdefault(index, []).append(shown_name(output))
    factors = [
        f"{shown_name(output)} times {number_text(float(factor))}"
        for output, factor in zip(tape.outputs, engine.factors, strict=True)
        if factor != 1.0
    ]
    vectors = f"vectors of {lanes} numbers" if lanes > 1 else "no vectors"
    lines = [
        f"; straight-line code of the engine cpu for LLVM; {dtype}, {vectors}",
        f"; columns: {several([shown_name(n) for n in engine.columns])}",
        f"; scalars: {several([shown_name(n) for n in engine.scalars])}",
        f"; results: {several([' and '.join(results[i]) for i in engine.varying])}"
        + (" (a sum for each number of a vector)" if sums and lanes > 1 else ""),
    ]
    if engine.fixed:
        lines.append(f"; once a call: {several([' and '.join(results[i]) for i in engine.fixed])}")
    if factors:
        lines.append(f"; after the sum: {several(factors)}")
    lines += ["", *_readable(str(function), names).strip().split("\n")]
    others = [f for f in module.functions if f is not function and not f.is_declaration]
    if others:
        lines += ["", "; not shown: functions of this module"]
        lines += [f";   @{f.name}, {len(str(f).strip().splitlines())} lines" for f in others]
    return "\n".join(lines)


def _readable(text: str, names: dict[str, str]) -> str:
    """LLVM's text with the values' names; what has none keeps its number.

    >>> _readable('%".3" = fadd <2 x double> %".2",  <double 1.0, double 1.0>', {".2": "xa"})
    '%.3 = fadd <2 x double> %xa, splat (double 1.0)'
    """
    # Names without blanks need no quotation marks; llvmlite leaves blanks where flags could be.
    text = _QUOTED.sub(lambda found: f"{found[1]}{names.get(found[2], found[2])}", text)
    text = re.sub(r"(?<=\S)  +", " ", text).replace("\n{\n", " {\n")
    return _VECTOR.sub(lambda found: f"splat ({found[1]} {_number(found[2])})", text)


def _number(text: str) -> str:
    """A number that LLVM has as sixteen digits of its bits, if a decimal fraction is exact.

    >>> _number("0x3ff8000000000000"), _number("0x3fb999999999999a")
    ('1.5', '0x3fb999999999999a')
    """
    if not text.startswith("0x"):
        return text
    value = float(np.array(int(text, 16), np.uint64).view(np.float64))
    exact = math.isfinite(value) and Decimal(repr(value)) == Decimal(value)
    return repr(value) if exact and "e" not in repr(value) else text


# --- the interpreter's code ----------------------------------------------------------------------


def _interpreter(tape: Tape, *, sums: bool, dtype: str) -> str:
    chosen = processor()
    found = plan(tape, sums=sums)
    itemsize, lanes = (8 if dtype == "float64" else 4), chosen.lanes(dtype)
    code = encoded(found, itemsize=itemsize, lanes=lanes, tile=tile_width(chosen.registers))
    return "\n".join(_Table(found, code, itemsize, lanes).lines(dtype))


class _Note(NamedTuple):
    """What the plan knows of an operation."""

    step: str
    group: Affine | Outer | None = None


class _Table:
    """The code of a plan, word by word, with the names that the plan knows."""

    def __init__(self, plan: Plan, code: Code, itemsize: int, lanes: int) -> None:
        self.plan, self.code, self.itemsize, self.lanes = plan, code, itemsize, lanes
        self.names = PlanNames(plan.tape, plan.size)
        self.handlers = {number: operation for operation, number in opcodes().items()}

    def lines(self, dtype: str) -> list[str]:
        code = self.code
        main = [tuple(map(int, words)) for words in code.main[:-2]]  # two ends: a handler looks
        uniform = [tuple(map(int, words)) for words in code.uniform[:-2]]  # two ahead
        preamble = [tuple(map(int, words)) for words in code.preamble[:-2]]
        loads = sum(1 for words in main if self.handlers[words[0]] == ("load", ""))
        stores = len(main) - loads - len(self.plan.varying)
        groups = map(self.plan.groups.get, range(len(self.plan.varying)))
        notes = [
            *[_Note("")] * loads,
            *(
                _Note(step_line(step, self.names, group), group)
                for step, group in zip(self.plan.varying, groups, strict=True)
            ),
            *[_Note("")] * stores,
        ]
        lines = [
            f"code for the interpreter of the engine cpu; {dtype}",
            f"rows of a block: {code.buffer // code.stride}",
            f"uniform table: {several(self._uniform_table())}",
        ]
        if uniform:
            lines += ["", "once a call, on the uniform table:"]
            steps = [step_line(step, self.names) for step in self.plan.uniform]
            lines += table([self._once(w, s) for w, s in zip(uniform, steps, strict=True)])
        if preamble:
            lines += ["", "once a thread:"]
            lines += table([self._operation(words, _Note("")) for words in preamble])
        lines += ["", "for every block of samples:"]
        lines += table([self._operation(w, n) for w, n in zip(main, notes, strict=True)])
        if code.functions:
            lines += ["", f"functions of Python that are called: {several(code.functions)}"]
        return lines

    def _uniform_table(self) -> list[str]:
        leaves = self.plan.tape.leaves
        scalars = [i for i, leaf in enumerate(leaves) if leaf.kind == "scalar"]
        computed = [value for step in self.plan.uniform for value in step.results]
        entries = [self.names[i] for i in scalars]
        entries += [number_text(float(number)) for number in self.code.constants]
        entries += [self.names[value] for value in computed]
        return [f"u{k} = {entry}" for k, entry in enumerate(entries)]

    def _row(self, place: int) -> str:
        return f"r{place // self.code.stride}"

    def _place(self, letter: str, place: int) -> str:
        return self._row(place) if letter == "r" else f"u{place // self.itemsize}"

    def _sum(self, place: int) -> str:
        return f"sum {place // (self.lanes * 8)}"

    def _operation(self, words: tuple[int, ...], note: _Note) -> Operation:
        name, pattern = self.handlers[words[0]]
        _, result, *operands = words
        row, step = self._row, note.step
        if pattern:
            given = map(self._place, pattern, operands)
            shown = name if len(pattern) == 1 else f"{name} {pattern}"
            return Operation(shown, row(result), " ".join(given), step)
        match name:
            case "load":
                column = shown_name(self.code.columns[operands[0]])
                return Operation(name, row(result), f"column {operands[0]}", column)
            case "store":
                output = shown_name(self.code.results[result])
                return Operation(name, f"result {result}", row(operands[0]), output)
            case "splat":
                return Operation(name, row(result), self._place("s", operands[0]), step)
            case "sum":
                return Operation(name, self._sum(result), row(operands[0]), step)
            case "dot":
                return Operation(name, self._sum(result), self._rows(operands[:2]), step)
            case "sincos":
                return Operation(name, self._rows([result, operands[1]]), row(operands[0]), step)
            case "call":
                _, target, *given_rows = self._side(result, 5)
                function = self._function(result)
                rows = self._rows(given_rows[: primitive(function).arity])
                return Operation(f"call {function}", row(target), rows, step)
        return self._matrix(name, result, note)

    def _matrix(self, name: str, place: int, note: _Note) -> Operation:
        """A matrix at work, or a block of products: its rows stand in the side table."""
        group = note.group
        if isinstance(group, Affine):
            count = len(group.inputs)
            words = self._side(place, 3 + count + len(group.outputs))[3:]
            return Operation(name, self._rows(words[count:]), self._rows(words[:count]), note.step)
        assert group is not None
        blocks, _, sums = self._side(place, 3)
        count = len(group.left)
        words = self._side(place, 3 + blocks * TILE + len(group.right))[3:]
        rows = f"{self._rows(words[:count])} x {self._rows(words[blocks * TILE :])}"
        return Operation(name, f"{self._sum(sums)} ...", rows, note.step)

    def _side(self, place: int, count: int) -> list[int]:
        return [int(word) for word in self.code.side[place // 4 :][:count]]

    def _function(self, place: int) -> str:
        return self.code.functions[self._side(place, 1)[0]]

    def _rows(self, places: Sequence[int]) -> str:
        return ranges([place // self.code.stride for place in places])

    def _once(self, words: tuple[int, ...], step: str) -> Operation:
        """An operation of the uniform part: its rows stand for places of the uniform table."""
        code = self.code
        base, start = len(code.given), code.table - len(code.computed)
        computed = {int(row): start + k for k, row in enumerate(code.computed)}

        def places(*rows: int) -> str:
            numbers = [row // code.unit for row in rows]
            return " ".join(f"u{code.given[n] if n < base else computed[n]}" for n in numbers)

        name, pattern = self.handlers[words[0]]
        _, result, *operands = words
        if name == "sincos":
            return Operation(name, places(result, operands[1]), places(operands[0]), step)
        if name == "call":
            function = self._function(result)
            _, target, *given = self._side(result, 5)
            given = given[: primitive(function).arity]
            return Operation(f"call {function}", places(target), places(*given), step)
        return Operation(name, places(result), places(*operands[: len(pattern)]), step)
