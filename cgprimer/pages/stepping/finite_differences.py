"""Finite differences as a walk: the graph is run again with one variable moved."""

from __future__ import annotations

from dataclasses import replace

from cgprimer.core.methods import differentiate
from cgprimer.core.methods.finite_difference import DifferenceProgram
from cgprimer.core.tape.builder import Builder
from cgprimer.pages.stepping.program_lines import read_program
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.steps import Phase, Show, Step, Walk, copied, finished

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
    output = tape.index(scene.target)
    count, base = len(read.lines), int(scheme == "forward")
    lines = (
        *["f = " + scene.target] * base,
        "move one variable by h",
        *read.lines,
        *(f"f{side} = {scene.target}" for side in sides),
        f"derivative = {_QUOTIENT[scheme]}",
    )
    run = Builder(simplify=False)
    unmoved = {tape.index(shift): run.constant(0.0) for shift in program.shifts.values()}
    first = copied(run, tape, unmoved)
    told = [replace(s, line=s.line + 1 + base, phase=0) for s in read.steps]
    steps = [s.at(first) for s in (read.start, *told)]
    phases = [Phase("the point itself")]
    measured = Step(
        "", row=rows[scene.target], vertices=(scene.target,), operands=((scene.target, output),),
        result=output,
    )  # fmt: skip
    if base:
        steps.append(replace(measured.at(first), text=f"f = {scene.target}", line=0))
    leading = [name for name in scene.wrt if name in tape.names]  # the rest is left out of the tape
    moved: dict[str, int] = {}  # by the leaf that is its step, what is moved
    for number, name in enumerate(scene.wrt):
        at = Step("", line=base, row=rows[name], vertices=(name,))
        if name not in leading:
            zero = run.emit("sub", first[output], first[output])  # nan where it is not finite
            at = replace(at, phase=len(phases) - 1)
            steps.append(_unmoved(at, scene, number, (first[output], zero)))
            continue
        leaf, h = tape.index(program.shifts.get(name, name)), run.scalar(f".step{number}")
        moved[f".step{number}"] = first[tape.index(name)]
        ends: list[int] = []
        for which, side in enumerate(sides):
            there = run.emit("sub" if which else "add", first[leaf], h)
            place = copied(run, tape, {**unmoved, leaf: there})
            start = replace(
                at,
                text=f"{name} {side} h",
                shows=read.start.at(place).shows,
                operands=((name, first[leaf]), ("h", h)),
                result=there,
            )
            line = base + count + 1
            end = measured.at(place)
            end = replace(end, text=f"f{side} = {scene.target}", line=line + which)
            if which:  # what the other side came to goes into the quotient, so it stays in view
                end = replace(end, shows=(Show("line", line, ends[0]),))
            ends.append(place[output])
            again = (s.at(place) for s in told)
            steps += [replace(s, phase=len(phases)) for s in (start, *again, end)]
            counted = f"pass {len(phases) + base} of {base + len(sides) * len(leading)}"
            phases.append(Phase(f"{counted}: {name} {side} h", ("derivative", "result")))
        plus, minus = (*ends, first[output])[:2]
        weight = 1.0 if base else 0.5
        right = run.emit("mul", run.constant(weight), plus)
        left = run.emit("mul", run.constant(-weight), minus)
        # In the order in which the engines add: the first run of the graph comes first.
        quotient = run.emit("div", run.emit("add", *((left, right) if base else (right, left))), h)
        steps.append(
            replace(
                at,
                text=f"d{scene.target}/d{name} = {_QUOTIENT[scheme]}",
                phase=len(phases) - 1,
                line=len(lines) - 1,
                column="derivative",
                shows=_found(at, number, quotient),
                operands=(("f+", plus), ("f" if base else "f-", minus), ("h", h)),
                result=quotient,
            )
        )
    whole, made = finished(run, steps)
    return Walk(
        "finite-difference",
        f"d{scene.target}/d(name)",
        "d",
        lines,
        tuple(phases),
        made,
        whole,
        moved={leaf: run.moved[value] for leaf, value in moved.items()},
        scheme=scheme,
        rule=program.rule,
    )


def _unmoved(at: Step, scene: Scene, number: int, values: tuple[int, int]) -> Step:
    """The step for a variable that no run of the graph needs: it moves nothing."""
    target, name = scene.target, scene.wrt[number]
    return replace(
        at,
        text=f"d{target}/d{name} = {target} - {target}",
        line=-1,
        column="derivative",
        shows=_found(at, number, values[1]),
        operands=((target, values[0]),),
        result=values[1],
        note=f"{name} does not lead to {target}",
    )


def _found(at: Step, number: int, value: int) -> tuple[Show, ...]:
    return (Show("derivative", at.row, value), Show("result", number, value))
