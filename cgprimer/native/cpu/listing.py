"""What the engine ``cpu`` makes of a tape, as text."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np

from cgprimer.core.primitives.notation import number_text
from cgprimer.core.tape.passes import varying
from cgprimer.core.tape.printing import labels, shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cpu.code import UniformTable, program_of
from cgprimer.native.cpu.engine import straight_line_form
from cgprimer.native.cpu.handlers import tile_width
from cgprimer.native.cpu.library import processor
from cgprimer.native.cpu.operations import Emitter
from cgprimer.native.cpu.straight_line import FLAGS, Vectors, lanes_for, order_of
from cgprimer.native.listing import InterpreterListing, Operation, several, table
from cgprimer.native.plans.constant_factors import constant_factors
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.printing import output_names

_ARGUMENTS = ("columns", "results", "scalars", "begin", "end", "stride")
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
        first, varies = len(tape.leaves), varying(tape)
        # What does not vary is written first.
        self.order = iter(sorted(range(first, first + len(tape)), key=varies.__getitem__))
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


def _straight_line(tape: Tape, *, sums: bool, dtype: str) -> str:
    from llvmlite import ir

    tape, factors = constant_factors(tape) if sums else (tape, {})
    lanes, (varied, unvaried) = lanes_for(tape, dtype), order_of(tape)
    module = ir.Module("straight_line")
    emitter = _Named(tape, module, dtype, lanes, flags=FLAGS)
    function = Vectors(emitter, tape, sums).function
    names = dict(zip((a.name for a in function.args), _ARGUMENTS, strict=True))
    # A variable may be called as an argument is; none has a dot in its name.
    taken = set(emitter.names.values())
    names = {own: f".{name}" if name in taken else name for own, name in names.items()}
    names |= emitter.names
    results = output_names(tape.outputs)
    after = [f"{shown_name(n)} times {number_text(f)}" for n, f in factors.items() if f != 1.0]
    vectors = f"vectors of {lanes} numbers" if lanes > 1 else "no vectors"
    lines = [
        f"; straight-line code of the engine cpu for LLVM; {dtype}, {vectors}",
        f"; columns: {several([shown_name(n) for n in tape.of_kind('column')])}",
        f"; scalars: {several([shown_name(n) for n in tape.of_kind('scalar')])}",
        f"; results: {several([' and '.join(results[i]) for i in varied])}"
        + (" (a sum for each number of a vector)" if sums and lanes > 1 else ""),
    ]
    if unvaried:
        lines.append(f"; once a call: {several([' and '.join(results[i]) for i in unvaried])}")
    if after:
        lines.append(f"; after the sum: {several(after)}")
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
    found = plan(tape, sums=sums)
    program, shared = program_of(found, tile_width(processor().registers)), UniformTable(found)
    listed = InterpreterListing(found, program, shared.place)
    names = listed.names
    entries = [
        *(names[value] for value in shared.scalars),
        *(number_text(float(number)) for number in shared.constants),
        *(names[value] for step in found.uniform for value in step.results),
    ]
    columns = found.tape.of_kind("column")
    leaves = found.tape.leaves
    loads = [
        Operation("load", f"r{row}", f"column {columns.index(leaves[value].name)}", names[value])
        for row, value in enumerate(program.columns)
    ]
    filled = [
        Operation("splat", f"r{row}", f"u{shared.place[value]}", "")
        for row, value in program.filled
    ]
    lines = [
        f"code for the interpreter of the engine cpu; {dtype}",
        f"rows of a block: {program.rows}",
        f"uniform table: {several([f'u{k} = {entry}' for k, entry in enumerate(entries)])}",
    ]
    if found.uniform:
        lines += ["", "once a call, on the uniform table:", *table(listed.once())]
    if filled:
        lines += ["", "once a thread:", *table(filled)]
    lines += ["", "for every block of samples:", *table([*loads, *listed.main()])]
    if program.functions:
        lines += ["", f"functions of Python that are called: {several(program.functions)}"]
    return "\n".join(lines)
