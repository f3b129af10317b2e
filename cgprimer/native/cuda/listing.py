"""What the engine ``cuda`` makes of a tape, as text. Neither a GPU nor numba is needed for it."""

from __future__ import annotations

from cgprimer.core.tape.printing import shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda.device import Settings
from cgprimer.native.cuda.kernels import device_program, reduce_text
from cgprimer.native.listing import InterpreterListing, several, table
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.printing import output_names, step_line


def listing(tape: Tape, *, sums: bool, dtype: str, interpreter: bool) -> str:
    """The kernel of a small tape, else, or if wanted, the interpreter's code and kernel."""
    settings = Settings()
    found = plan(tape, sums=sums)
    given = device_program(found, -1 if interpreter else settings.straight)
    if not given.outputs:
        return "# nothing varies with the sample: no kernel is made"
    operands, program = given.operands, given.program
    listed = InterpreterListing(found, program, {v: k for k, v in enumerate(operands)})
    operations, names = listed.main(), listed.names
    if given.straight:
        head = f"# kernel of the engine cuda; {dtype}, {settings.threads} threads in a block"
        results = [" and ".join(found) for _, found in sorted(output_names(given.outputs).items())]
        after = [f"# results: {several(results)}", ""]
    else:
        head = f"# code for the interpreter of the engine cuda; {dtype}"
        numbers = ", ".join(f"{k} {name}" for k, (name, _) in enumerate(program.handlers))
        after = ["#", *(f"# {line}" for line in table(operations))]
        after += ["", f"# kernel for such code, with a sample a thread; op: {numbers}"]
    columns = [f"r{k} = {shown_name(n)}" for k, n in enumerate(given.columns)]
    uniforms = [f"u{k} = {names[value]}" for k, value in enumerate(operands)]
    lines = [
        head,
        f"# rows: {program.rows}; the first are the columns: {several(columns)}",
        f"# uniform values: {several(uniforms)}",
        *(f"# once a call, with numpy: {step_line(s, names)}" for s in found.uniform),
        *after,
        given.text([operation.step for operation in operations]),
    ]
    if sums:
        lines += ["", reduce_text(settings.threads)]
    return "\n".join(lines)
