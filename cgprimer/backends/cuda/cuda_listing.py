"""Listings of the kernels of the engine ``cuda``. They need neither a GPU nor numba."""

from __future__ import annotations

from cgprimer.backends.code_listing import InterpreterListing, operation_table
from cgprimer.backends.cuda.device import LaunchSettings
from cgprimer.backends.cuda.kernel_source import encode_for_device, reduction_source
from cgprimer.backends.plans.plan_printing import output_names, several
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.tape.tape import Tape


def listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """Return the kernel of a small tape, or the interpreter's code and kernel."""
    settings = LaunchSettings()
    plan = build_plan(tape, sums=sums)
    kernel = encode_for_device(plan, -1 if interpreter else settings.straight_line)
    if not kernel.outputs:
        return "# nothing varies with the sample: no kernel is made"
    program = kernel.program
    listed = InterpreterListing(plan, program, {v: k for k, v in enumerate(kernel.operands)})
    operations, names = listed.main(), listed.names
    columns = [f"r{row} = {names[value]}" for row, value in enumerate(program.columns)]
    uniforms = [f"u{k} = {names[value]}" for k, value in enumerate(kernel.operands)]
    lines = [
        f"# rows: {program.rows}; the first are the columns: {several(columns)}",
        f"# uniform values: {several(uniforms)}",
        *[f"# once a call, with numpy: {names.step(step)}" for step in plan.uniform],
    ]
    if kernel.straight_line:
        title = f"# kernel of the engine cuda; {dtype}, {settings.threads} threads in a block"
        results = [" and ".join(n) for _, n in sorted(output_names(kernel.outputs).items())]
        lines += [f"# results: {several(results)}", ""]
    else:
        title = f"# code for the interpreter of the engine cuda; {dtype}"
        opcodes = ", ".join(f"{k} {name}" for k, (name, _) in enumerate(program.handlers))
        lines += ["#", *[f"# {line}" for line in operation_table(operations)]]
        lines += ["", f"# kernel for such code, with a sample a thread; op: {opcodes}"]
    lines.append(kernel.text([operation.step for operation in operations]))
    if sums:
        lines += ["", reduction_source(settings.threads)]
    return "\n".join([title, *lines])
