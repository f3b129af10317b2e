"""Listings of the code of the engine ``cpu``: LLVM IR, or an interpreter program."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np

from cgprimer.backends.code_listing import InterpreterListing, ListingRow, format_table
from cgprimer.backends.cpu.cpu_engine import optimize_for_straight_line
from cgprimer.backends.cpu.interpreter_code import UniformTable, encode_for_interpreter
from cgprimer.backends.cpu.interpreter_handlers import choose_tile_columns
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter
from cgprimer.backends.cpu.straight_line import (
    FLAGS,
    VectorFunctionEmitter,
    choose_lane_count,
    split_outputs,
)
from cgprimer.backends.cpu.vector_ir import Ir
from cgprimer.backends.plans.optimization import extract_constant_factors
from cgprimer.backends.plans.plan_printing import group_output_names, join_abbreviated
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.operations.notation import number_text
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_printing import labels
from cgprimer.support.value_names import format_name

_ARGUMENTS = ("columns", "results", "scalars", "begin", "end", "stride")
_QUOTED = re.compile(r'([%@])"([\w.]+)"')
_VECTOR = re.compile(r"<(double|float) ([^\s,>]+)((?:, \1 \2)+)>")


def build_listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """Return a listing of the straight-line code or the interpreter program of a tape.

    Args:
        tape: the tape.
        sums: sum the outputs over the samples.
        dtype: ``float64`` or ``float32``.
        interpreter: list an interpreter program even if the tape is small.
    """
    small = None if interpreter else optimize_for_straight_line(tape)
    if small is not None:
        return _format_straight_line_code(small, sums=sums, dtype=dtype)
    return _format_interpreter_code(tape, sums=sums, dtype=dtype)


# --- straight-line code --------------------------------------------------------------------------


class _NamingFunctionEmitter(VectorFunctionEmitter):
    """Emitter of straight-line code whose LLVM values have the names of the tape's values."""

    def emit_instructions(self, values: dict[int, Ir], *, varying: bool) -> None:
        """Emit the varying or the uniform instructions of the tape, and name their results."""
        super().emit_instructions(values, varying=varying)
        names = labels(self.tape)
        for index, value in values.items():
            unnamed = getattr(value, "name", "").startswith(".")  # not a constant, not yet named
            if unnamed and names[index] and self.varies[index] == varying:
                value.name = names[index]


def _format_straight_line_code(tape: Tape, *, sums: bool, dtype: str) -> str:
    """Format the straight-line code of a tape as LLVM IR with a header."""
    from llvmlite import ir

    tape, factors = extract_constant_factors(tape) if sums else (tape, {})
    lanes, (varying, uniform) = choose_lane_count(tape, dtype), split_outputs(tape)
    module = ir.Module("straight_line")
    emitter = PrimitiveEmitter(module, dtype, lanes, flags=FLAGS)
    function = _NamingFunctionEmitter(emitter, tape, sums).function
    for argument, name in zip(function.args, _ARGUMENTS, strict=True):
        argument.name = name
    results = group_output_names(tape.outputs)
    vectors = f"vectors of {lanes} elements" if lanes > 1 else "no vectors"
    after = [f"{format_name(n)} times {number_text(f)}" for n, f in factors.items() if f != 1.0]
    lines = [
        f"; straight-line code of the engine cpu for LLVM; {dtype}, {vectors}",
        f"; columns: {join_abbreviated([format_name(n) for n in tape.of_kind('column')])}",
        f"; scalars: {join_abbreviated([format_name(n) for n in tape.of_kind('scalar')])}",
        f"; results: {join_abbreviated([' and '.join(results[i]) for i in varying])}"
        + (" (one partial sum per vector lane)" if sums and lanes > 1 else ""),
    ]
    if uniform:
        lines.append(
            f"; once per call: {join_abbreviated([' and '.join(results[i]) for i in uniform])}"
        )
    if after:
        lines.append(f"; after the sum: {join_abbreviated(after)}")
    lines += ["", *_simplify_ir(str(function)).strip().split("\n")]
    others = [f for f in module.functions if f is not function and not f.is_declaration]
    if others:
        lines += ["", "; not shown: functions of this module"]
        lines += [f";   @{f.name}, {len(str(f).strip().splitlines())} lines" for f in others]
    return "\n".join(lines)


def _simplify_ir(text: str) -> str:
    """Remove redundant quotation marks, whitespace and repetitions from LLVM IR.

    >>> _simplify_ir('%".3" = fadd <2 x double> %"xa",  <double 1.0, double 1.0>')
    '%.3 = fadd <2 x double> %xa, splat (double 1.0)'
    """
    text = _QUOTED.sub(r"\1\2", text)
    # llvmlite leaves blanks for missing flags.
    text = re.sub(r"(?<=\S)  +", " ", text).replace("\n{\n", " {\n")
    return _VECTOR.sub(lambda match: f"splat ({match[1]} {_format_number(match[2])})", text)


def _format_number(text: str) -> str:
    """Format a hexadecimal number of LLVM IR as a decimal fraction, if the fraction is exact.

    >>> _format_number("0x3ff8000000000000"), _format_number("0x3fb999999999999a")
    ('1.5', '0x3fb999999999999a')
    """
    if not text.startswith("0x"):
        return text
    value = float(np.array(int(text, 16), np.uint64).view(np.float64))
    exact = math.isfinite(value) and Decimal(repr(value)) == Decimal(value)
    return repr(value) if exact and "e" not in repr(value) else text


# --- the interpreter's code ----------------------------------------------------------------------


def _format_interpreter_code(tape: Tape, *, sums: bool, dtype: str) -> str:
    """Format the interpreter program of a tape as tables of operations."""
    plan = build_plan(tape, sums=sums)
    program = encode_for_interpreter(plan, choose_tile_columns(get_target_processor().registers))
    table = UniformTable(plan)
    operations = InterpreterListing(plan, program, table.slots)
    names = operations.names
    entries = [
        *[names[value] for value in table.scalars],
        *[number_text(float(number)) for number in table.constants],
        *[names[value] for step in plan.uniform for value in step.results],
    ]
    columns = [i for i, leaf in enumerate(plan.tape.leaves) if leaf.kind == "column"]
    loads = [
        ListingRow("load", f"r{row}", f"column {columns.index(value)}", names[value])
        for row, value in enumerate(program.columns)
    ]
    copies = [ListingRow("splat", f"r{r}", f"u{table.slots[v]}", "") for r, v in program.filled]
    lines = [
        f"code for the interpreter of the engine cpu; {dtype}",
        f"rows of a block: {program.rows}",
        "uniform table: " + join_abbreviated([f"u{k} = {e}" for k, e in enumerate(entries)]),
    ]
    if plan.uniform:
        lines += [
            "",
            "once per call, on the uniform table:",
            *format_table(operations.list_uniform_operations()),
        ]
    if copies:
        lines += ["", "once per thread:", *format_table(copies)]
    main = format_table([*loads, *operations.list_block_operations()])
    lines += ["", "for every block of samples:", *main]
    if program.functions:
        lines += ["", f"functions of Python that are called: {join_abbreviated(program.functions)}"]
    return "\n".join(lines)
