"""All passes of a program in one tape: what engines need that train by themselves."""

from __future__ import annotations

from dataclasses import replace

from cgprimer.core.methods.contract import DerivativeProgram
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.optimization import with_seeds
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused

LARGEST = 200_000  # instructions of all passes together; beyond, passes are run one by one


@collector_paused()
def joined_passes(program: DerivativeProgram) -> Tape | None:
    """A tape whose outputs are the value and the derivatives, in the order of ``program.wrt``.

    What passes have in common, the primal above all, is in it once. None for finite differences
    (their quotients are not part of any tape) and for programs too large to be put together.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = a*xa + b*xa^2"))
    >>> program = cgprimer.differentiate(tape, method="forward")
    >>> program.pass_count, list(joined_passes(program).outputs)
    (2, ['xw', 'd.xw.d.a', 'd.xw.d.b'])
    """
    of = program.of[0]
    if not program.seeds_only or len(program.of) > 1 or program.operation_count > LARGEST:
        return None
    builder = Builder()
    totals: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for run in program.passes:
        tape = with_seeds(program.tape, run.seeds) if run.seeds else program.tape
        # Without names nothing is pinned, so that the passes share what is equal.
        value = builder.extend(replace(tape, names={}))
        outputs.setdefault(of, value[tape.outputs[of]])
        for read in run.reads:
            share = value[tape.outputs[read.output]]
            if read.weight != 1.0:
                share = builder.emit("mul", builder.constant(read.weight), share)
            known = totals.get(read.wrt)
            totals[read.wrt] = share if known is None else builder.emit("add", known, share)
    for name in program.wrt:
        outputs[f"d.{of}.d.{name}"] = totals[name]
    return builder.finish(outputs, prune=True)
