"""What the engine ``cuda`` makes of a tape, as text. Neither a GPU nor numba is needed for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.core.language.unparse import number_text
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.passes import optimize, variance
from cgprimer.core.tape.printing import shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda.device import Settings
from cgprimer.native.cuda.interpreter_source import Layout, reduce_text
from cgprimer.native.cuda.interpreter_source import kernel_text as interpreter_text
from cgprimer.native.cuda.program import AFFINE, DOT, OUTER, STORE, SUM, Program, encoded
from cgprimer.native.cuda.source import TREE, Body, body, kernel_text, unrolling
from cgprimer.native.cuda.straight import fits
from cgprimer.native.cuda.uniform import uniform_steps
from cgprimer.native.listing import Operation, ranges, several, table
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.plan import Affine, Outer
from cgprimer.native.plans.printing import PlanNames, step_line

_LANES = 64  # threads of a block of the interpreter


def listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """The kernel of a small tape, else, or if wanted, the interpreter's code and kernel."""
    lean = optimize(tape)
    if "column" not in variance(lean)[len(lean.leaves) :]:
        return "# nothing varies with the sample: no kernel is made"
    settings = Settings()
    found = None if interpreter or len(lean) > 4 * settings.straight else body(lean)
    if found is not None and fits(found, "sum" if sums else "none", settings):
        return "\n".join(_straight(lean, found, sums, dtype, settings))
    return "\n".join(_interpreter(lean, sums, dtype, settings))


def _straight(tape: Tape, found: Body, sums: bool, dtype: str, settings: Settings) -> list[str]:
    names = PlanNames(tape, tape.size)
    results: dict[int, list[str]] = {}
    for output, index in tape.outputs.items():
        results.setdefault(index, []).append(shown_name(output))
    returned = [" and ".join(results[v]) for v in found.results]
    lines = [
        f"# kernel of the engine cuda; {dtype}, {settings.threads} threads in a block",
        f"# columns: {several([f'v{v} = {shown_name(n)}' for n, v in found.columns])}",
        f"# given to every sample: {several([f'v{v} = {names[v]}' for v in found.uniforms])}",
    ]
    if found.constants:
        constants = [f"{name} = {number_text(value)}" for name, value in found.constants.items()]
        lines.append(f"# constants: {several(constants)}")
    once = [f"v{s.results[0]}: {step_line(s, names)}" for s in uniform_steps(tape)]
    lines += [f"# once a call, with numpy: {step}" for step in once]
    lines.append(f"# results: {several(returned)}")
    text = kernel_text(
        found,
        reduction="sum" if sums else "none",
        unroll=unrolling(found, np.dtype(dtype).itemsize),
        threads=settings.threads,
    )
    if sums:
        lines += ["", *_device(TREE)]
    lines += ["", *_device(_with_names(found, tape)), "", *text.strip().split("\n")]
    return lines


def _device(text: str) -> list[str]:
    return ["@device", *text.strip().split("\n")]


def _with_names(found: Body, tape: Tape) -> str:
    """The function of one sample, with the values' names as comments."""
    lines = []
    for line in found.text().split("\n"):
        value, equals, _ = line.strip().partition(" = ")
        name = tape.labels.get(int(value[1:])) if equals else None
        lines.append(f"{line}  # {shown_name(name)}" if name else line)
    return "\n".join(lines)


def _interpreter(tape: Tape, sums: bool, dtype: str, settings: Settings) -> list[str]:
    found = plan(tape, sums=sums)
    program = encoded(found, sums=sums)
    names = PlanNames(found.tape, found.size)
    layout = Layout(
        lanes=_LANES,
        each=1,
        shared=True,
        rows=program.rows,
        columns=len(program.columns),
        sums=len(program.sums),
        shared_sums=len(program.shared_sums),
        uniforms=program.operands,
    )
    known = [names[int(v)] if v >= 0 else "0" for v in program.uniforms[: program.operands]]
    lines = [
        f"# code for the interpreter of the engine cuda; {dtype}",
        f"# rows: {program.rows}; the first are the columns: "
        + several([f"r{k} = {shown_name(n)}" for k, n in enumerate(program.columns)]),
        f"# uniform values: {several([f'u{k} = {name}' for k, name in enumerate(known)])}",
    ]
    lines += [f"# once a call, with numpy: {step_line(s, names)}" for s in found.uniform]
    steps = [
        (step_line(step, names, found.groups.get(position)), found.groups.get(position))
        for position, step in enumerate(found.varying)
    ]
    steps += [(names[value], None) for value in program.stored]
    codes = program.code[:-1].tolist()
    operations = [_operation(program, w, *s) for w, s in zip(codes, steps, strict=True)]
    lines += ["#", *(f"# {line}" for line in table(operations))]
    text = interpreter_text(program.names, layout)
    numbers = ", ".join(f"{k} {name}" for k, name in enumerate(program.names))
    lines += [
        "",
        f"# kernel for such code, with one sample a thread; op: {numbers}",
        *text.strip().split("\n"),
    ]
    if sums:
        lines += ["", *_device(TREE), "", *reduce_text(settings.threads).strip().split("\n")]
    return lines


def _operation(program: Program, words: Any, step: str, group: Affine | Outer | None) -> Operation:
    """A line of the code."""
    number, target, *places = words
    name = program.names[number]

    def place(word: int) -> str:
        return f"r{word}" if word >= 0 else f"u{-1 - word}"

    if name == AFFINE:
        assert isinstance(group, Affine)
        rows = program.table[target + 3 :][: len(group.inputs) + len(group.outputs)].tolist()
        count = len(group.inputs)
        return Operation(name, ranges(rows[count:]), ranges(rows[:count]), step)
    if name == OUTER:
        assert isinstance(group, Outer)
        rows = program.table[target + 2 :][: len(group.left) + len(group.right)].tolist()
        count = len(group.left)
        return Operation(name, "sums", f"{ranges(rows[:count])} x {ranges(rows[count:])}", step)
    if name == SUM:
        return Operation(name, f"sum {target}", place(places[0]), step)
    if name == DOT:
        return Operation(name, f"sum {target}", " ".join(map(place, places[:2])), step)
    if name == STORE:
        return Operation(name, f"result {target}", place(places[0]), step)
    if name == "sincos":
        return Operation(name, f"r{target} r{places[1]}", place(places[0]), step)
    return Operation(name, f"r{target}", " ".join(map(place, places[: _arity(name)])), step)


def _arity(name: str) -> int:
    """Operands of a step on single values."""
    return 3 if name in ("fma", "fms", "fnma") else primitive(name).arity
