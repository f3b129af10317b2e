"""Finite differences as a walk: the graph is run again with one variable moved."""

from __future__ import annotations

from dataclasses import replace

from cgprimer.core.methods import differentiate
from cgprimer.core.methods.finite_difference import DifferenceProgram
from cgprimer.pages.stepping.program_lines import Program, read_program
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.steps import CONSTANT, STEP, Phase, Show, Step, Walk, Write

SCHEMES = ("central", "forward")  #: the page has no complex numbers
_SIDES = {"central": ("+", "-"), "forward": ("+",)}
_QUOTIENT = {"central": "(f+ - f-) / (2*h)", "forward": "(f+ - f) / h"}


def differences(scene: Scene, scheme: str = "central", h: float | None = None) -> Walk:
    """The walk of a scheme; ``h`` is chosen from the size of each variable if None.

    Raises:
        UsageError: an unknown scheme, or a step that is not positive and finite.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xw = cd*xa")), "xw", ["cd"])
    >>> differences(shown, "forward").lines
    ('f = xw', 'move one variable by h', 'xw = cd*xa', 'f+ = xw', 'derivative = (f+ - f) / h')
    """
    options = {"scheme": scheme, "step": h}
    program = differentiate(
        scene.tape, scene.target, scene.wrt, method="finite-difference", **options
    )
    tape, rows, sides = program.tape, scene.row_of(), _SIDES[scheme]
    assert isinstance(program, DifferenceProgram)
    read = read_program(tape, scene, backwards=False)
    output, relative = tape.index(scene.target), program.rule.relative(52)
    count, base = len(read.lines), int(scheme == "forward")
    lines = (
        *["f = " + scene.target] * base,
        "move one variable by h",
        *read.lines,
        *(f"f{side} = {scene.target}" for side in sides),
        f"derivative = {_QUOTIENT[scheme]}",
    )
    size = tape.size
    steps = list(_first_run(read, base))
    # The steps are chosen at the point itself, before anything is moved.
    first = [Write(tape.index(shift), CONSTANT, (0.0,)) for shift in program.shifts.values()]
    steps[0] = replace(steps[0], writes=(*steps[0].writes, *first))
    leading = [name for name in scene.wrt if name in tape.names]  # the rest is left out of the tape
    sizes = [Write(size + k, STEP, (tape.index(w), relative)) for k, w in enumerate(leading)]
    kept, plus, minus, total, quotient, half, less, right, left, unmoved = range(
        size + len(sizes), size + len(sizes) + 10
    )
    size += len(sizes) + 10
    sizes_and_output = (*sizes, Write(unmoved, "copy", (output,)))
    steps[-1] = replace(steps[-1], writes=(*steps[-1].writes, *sizes_and_output))
    phases = [Phase("the point itself")]
    if base:
        steps.append(_measured(scene, rows[scene.target], "f", 0, output, minus))
    for number, name in enumerate(scene.wrt):
        at = Step("", line=base, row=rows[name], vertices=(name,))
        if name not in leading:
            last = len(phases) - 1
            steps.append(_unmoved(replace(at, phase=last), scene, number, unmoved, quotient))
            continue
        moved = tape.index(program.shifts.get(name, name))
        h_slot = sizes[leading.index(name)].slot
        for which, side in enumerate(sides):
            start = replace(
                at,
                text=f"{name} {side} h",
                writes=(
                    *([] if which else [Write(kept, "copy", (moved,))]),
                    Write(moved, "sub" if which else "add", (kept, h_slot)),
                ),
                shows=read.start.shows,
                operands=((name, kept), ("h", h_slot)),
                result=moved,
            )
            end = _measured(
                scene, rows[scene.target], f"f{side}", base + count + 1 + which, output,
                minus if which else plus,
            )  # fmt: skip
            if which:  # what the other side came to goes into the quotient, so it stays in view
                end = replace(end, shows=(Show("line", base + count + 1, plus),))
            again = (replace(s, line=s.line + 1 + base) for s in read.steps)
            steps += [replace(s, phase=len(phases)) for s in (start, *again, end)]
            counted = f"pass {len(phases) + base} of {base + len(sides) * len(leading)}"
            phases.append(Phase(f"{counted}: {name} {side} h", ("derivative", "result")))
        weights = (0.5, -0.5) if scheme == "central" else (1.0, -1.0)
        # In the order in which the engines add: the first run of the graph comes first.
        ends = (left, right) if base else (right, left)
        steps.append(
            replace(
                at,
                text=f"d{scene.target}/d{name} = {_QUOTIENT[scheme]}",
                phase=len(phases) - 1,
                line=len(lines) - 1,
                column="derivative",
                writes=(
                    Write(half, CONSTANT, (weights[0],)),
                    Write(right, "mul", (half, plus)),
                    Write(less, CONSTANT, (weights[1],)),
                    Write(left, "mul", (less, minus)),
                    Write(total, "add", ends),
                    Write(quotient, "div", (total, h_slot)),
                    Write(moved, "copy", (kept,)),
                ),
                shows=(
                    Show("derivative", rows[name], quotient),
                    Show("result", number, quotient),
                ),
                operands=(("f+", plus), ("f" if base else "f-", minus), ("h", h_slot)),
                result=quotient,
            )
        )
    return Walk(
        "finite-difference",
        f"d{scene.target}/d(name)",
        "d",
        lines,
        tuple(phases),
        tuple(steps),
        size,
        read.given,
        scheme=scheme,
        rule=program.rule,
    )


def _unmoved(at: Step, scene: Scene, number: int, output: int, into: int) -> Step:
    """The step for a variable that no run of the graph needs: it moves nothing."""
    target, name = scene.target, scene.wrt[number]
    return replace(
        at,
        text=f"d{target}/d{name} = {target} - {target}",
        line=-1,
        column="derivative",
        writes=(Write(into, "sub", (output, output)),),  # nan where the output is not finite
        shows=(Show("derivative", at.row, into), Show("result", number, into)),
        operands=((target, output),),
        result=into,
        note=f"{name} does not lead to {target}",
    )


def _first_run(read: Program, base: int) -> list[Step]:
    """The values at the point itself."""
    return [
        replace(s, line=s.line + 1 + base if s.line >= 0 else -1) for s in (read.start, *read.steps)
    ]


def _measured(scene: Scene, row: int, name: str, line: int, output: int, into: int) -> Step:
    """The step that keeps what a run of the graph came to."""
    return Step(
        f"{name} = {scene.target}",
        line=line,
        row=row,
        writes=(Write(into, "copy", (output,)),),
        operands=((scene.target, output),),
        vertices=(scene.target,),
        result=into,
    )
