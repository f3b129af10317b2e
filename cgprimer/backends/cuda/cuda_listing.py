"""Listings of the kernels of the engine ``cuda``, without a GPU and without numba."""

from __future__ import annotations

from cgprimer.backends.code_listing import InterpreterListing, format_table
from cgprimer.backends.cuda.device import LaunchSettings
from cgprimer.backends.cuda.kernel_source import encode_for_device, generate_reduction_kernel
from cgprimer.backends.plans.plan_printing import group_output_names, join_abbreviated
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.tape.tape import Tape


def build_listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """List the source code of the CUDA kernels that compute a tape."""
    settings = LaunchSettings()
    plan = build_plan(tape, sums=sums)
    kernel = encode_for_device(plan, -1 if interpreter else settings.straight_line)
    if not kernel.outputs:
        return "# no kernel: no output varies with the sample"
    program = kernel.program
    listing = InterpreterListing(plan, program, {v: k for k, v in enumerate(kernel.operands)})
    operations, names = listing.list_block_operations(), listing.names
    columns = [f"r{row} = {names[value]}" for row, value in enumerate(program.columns)]
    uniforms = [f"u{k} = {names[value]}" for k, value in enumerate(kernel.operands)]
    lines = [
        f"# rows: {program.rows}; the first are the columns: {join_abbreviated(columns)}",
        f"# uniform values: {join_abbreviated(uniforms)}",
        *[f"# once per call, with numpy: {names.format_step(step)}" for step in plan.uniform],
    ]
    if kernel.straight_line:
        title = f"# kernel of the engine cuda; {dtype}, {settings.threads} threads per block"
        results = [" and ".join(n) for _, n in sorted(group_output_names(kernel.outputs).items())]
        lines += [f"# results: {join_abbreviated(results)}", ""]
    else:
        title = f"# code for the interpreter of the engine cuda; {dtype}"
        opcodes = ", ".join(f"{k} {name}" for k, (name, _) in enumerate(program.handlers))
        lines += ["#", *[f"# {line}" for line in format_table(operations)]]
        lines += ["", f"# kernel of the interpreter, one sample per thread; op: {opcodes}"]
    lines.append(kernel.generate_source([operation.step for operation in operations]))
    if sums:
        lines += ["", generate_reduction_kernel(settings.threads)]
    return "\n".join([title, *lines])
