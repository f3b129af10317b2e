"""What the engine ``cuda`` makes of a tape, as text. Neither a GPU nor numba is needed for it."""

from __future__ import annotations

import numpy as np

from cgprimer.core.language.unparse import number_text
from cgprimer.core.tape.optimization import optimize
from cgprimer.core.tape.printing import shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda.device import Settings
from cgprimer.native.cuda.interpreter_source import Layout, reduce_text
from cgprimer.native.cuda.interpreter_source import kernel_text as interpreter_text
from cgprimer.native.cuda.program import device_program
from cgprimer.native.cuda.source import TREE, Body, body, kernel_text, unrolling
from cgprimer.native.cuda.straight import fits
from cgprimer.native.listing import InterpreterListing, several, table
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.plan import uniform_steps, varying
from cgprimer.native.plans.printing import PlanNames, output_names, step_line

_LANES = 64  # threads of a block of the interpreter


def listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """The kernel of a small tape, else, or if wanted, the interpreter's code and kernel."""
    lean = optimize(tape)
    if not any(varying(lean)[len(lean.leaves) :]):
        return "# nothing varies with the sample: no kernel is made"
    settings = Settings()
    found = None if interpreter or len(lean) > 4 * settings.straight else body(lean)
    if found is not None and fits(found, "sum" if sums else "none", settings):
        return "\n".join(_straight(lean, found, sums, dtype, settings))
    return "\n".join(_interpreter(lean, sums, dtype, settings))


def _straight(tape: Tape, found: Body, sums: bool, dtype: str, settings: Settings) -> list[str]:
    names = PlanNames(tape, tape.size)
    results = output_names(tape.outputs)
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
    given = device_program(found)
    program = given.program
    listed = InterpreterListing(found, program, {v: k for k, v in enumerate(given.operands)})
    names = listed.names
    layout = Layout(
        lanes=_LANES,
        shared=True,
        rows=program.rows,
        columns=len(given.columns),
        sums=program.own_sums,
        shared_sums=program.sums - program.own_sums,
        uniforms=len(given.operands),
    )
    lines = [
        f"# code for the interpreter of the engine cuda; {dtype}",
        f"# rows: {program.rows}; the first are the columns: "
        + several([f"r{k} = {shown_name(n)}" for k, n in enumerate(given.columns)]),
        "# uniform values: "
        + several([f"u{k} = {names[value]}" for k, value in enumerate(given.operands)]),
    ]
    lines += [f"# once a call, with numpy: {step_line(s, names)}" for s in found.uniform]
    lines += ["#", *(f"# {line}" for line in table(listed.main()))]
    text = interpreter_text(program.handlers, layout)
    numbers = ", ".join(f"{k} {name}" for k, (name, _) in enumerate(program.handlers))
    lines += [
        "",
        f"# kernel for such code, with a sample a thread; op: {numbers}",
        *text.strip().split("\n"),
    ]
    if sums:
        lines += ["", *_device(TREE), "", *reduce_text(settings.threads).strip().split("\n")]
    return lines
