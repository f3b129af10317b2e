"""Each method as a walk: its derivative program, every instruction a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from cgprimer.differentiators import differentiate
from cgprimer.differentiators.path_sum import count_paths, edge_partials, list_paths
from cgprimer.differentiators.reverse import signature_and
from cgprimer.errors import PathLimitError
from cgprimer.stepping.reading import read_program
from cgprimer.stepping.scene import Scene
from cgprimer.stepping.steps import Phase, Show, Step, Walk, Write
from cgprimer.tapes.builder import Builder
from cgprimer.tapes.passes import reachable
from cgprimer.tapes.show import shown_name

METHODS = ("forward", "reverse", "path-sum", "finite-difference")
MOST_PATHS = 200  #: paths that a class would sit through


def walk_of(scene: Scene, method: str) -> Walk:
    """The walk of a method over a scene.

    Raises:
        PathLimitError: more paths than anybody would look at.
        DifferentiationError: the method cannot do it.
    """
    make = {
        "forward": _forward,
        "reverse": _reverse,
        "path-sum": _path_sum,
        "finite-difference": _finite_difference,
    }
    return make[method](scene)


def _reverse(scene: Scene) -> Walk:
    program = differentiate(scene.tape, scene.target, scene.wrt, method="reverse")
    tape, rows = program.tape, scene.row_of()
    read = read_program(tape, scene, backwards=True)
    steps = [read.start]
    for step, primal in zip(read.steps, read.primal, strict=True):
        steps.append(replace(step, phase=0 if primal else 1))
    for number, entry in enumerate(program.passes[0].reads):
        result = Show("result", number, tape.index(entry.output))
        shown_at = ("derivative", rows[entry.wrt])
        places = [k for k, s in enumerate(steps) if shown_at in [show[:2] for show in s.shows]]
        steps = _shown_also(steps, result, places[-1] if places else len(steps) - 1)
    phases = [Phase("forward sweep: values"), Phase("backward sweep: adjoints")]
    return Walk(
        "reverse",
        f"adjoint d{scene.target}/d(name)",
        "bar",
        read.lines,
        tuple(phases[: 1 + any(step.phase for step in steps)]),
        tuple(steps),
        tape.size,
        read.given,
    )


def _forward(scene: Scene) -> Walk:
    program = differentiate(scene.tape, scene.target, scene.wrt, method="forward")
    tape, rows = program.tape, scene.row_of()
    read = read_program(tape, scene, backwards=False)
    steps: list[Step] = []
    phases = []
    for number, (name, run) in enumerate(zip(scene.wrt, program.passes, strict=True)):
        seeds = {seed: tape.index(seed) for seed in run.seeds}
        shows = tuple(
            Show("derivative", rows[wrt], slot)
            for wrt, (seed, slot) in zip(scene.wrt, seeds.items(), strict=True)
            if seed.startswith("dot.")
        )
        seeding = replace(
            read.start,
            text="; ".join(f"{shown_name(seed)} = {value:g}" for seed, value in run.seeds.items()),
            line=0,
            row=rows[name],
            column="derivative",
            writes=read.start.writes
            + tuple(Write(seeds[seed], "const", (value,)) for seed, value in run.seeds.items()),
            shows=read.start.shows + shows,
            operands=(),
            vertices=(scene.rows[rows[name]].vertex,),
            result=next(seeds[seed] for seed, value in run.seeds.items() if value),
        )
        run_steps = [seeding, *(replace(s, line=s.line + 1) for s in read.steps)]
        result = Show("result", number, tape.index(run.reads[0].output))
        steps += [replace(s, phase=number) for s in _shown_also(run_steps, result, -1)]
        counted = f"pass {number + 1} of {len(scene.wrt)}: " if len(scene.wrt) > 1 else ""
        phases.append(Phase(f"{counted}seed {name}", ("result",)))
    seed_line = "set the seeds" if len(scene.wrt) > 1 else f"dot_{scene.wrt[0]} = 1"
    lines = (seed_line, *read.lines)
    return Walk(
        "forward", "tangent", "dot", lines, tuple(phases), tuple(steps), tape.size, read.given
    )


def _finite_difference(scene: Scene) -> Walk:
    program = differentiate(scene.tape, scene.target, scene.wrt, method="finite-difference")
    tape, rows = program.tape, scene.row_of()
    assert program.step is not None
    read = read_program(tape, scene, backwards=False)
    output, relative = tape.index(scene.target), program.step.relative(52)
    size = tape.size
    steps = [replace(s, line=s.line + 1 if s.line >= 0 else -1) for s in (read.start, *read.steps)]
    phases = [Phase("the point itself")]
    count = len(read.lines)
    # The steps are chosen at the point itself, before anything is moved.
    first = [Write(tape.index(shift), "const", (0.0,)) for shift in program.shifts.values()]
    steps[0] = replace(steps[0], writes=(*steps[0].writes, *first))
    sizes = [Write(size + k, "step", (tape.index(w), relative)) for k, w in enumerate(scene.wrt)]
    steps[-1] = replace(steps[-1], writes=(*steps[-1].writes, *sizes))
    size += len(sizes)
    for number, name in enumerate(scene.wrt):
        moved = tape.index(program.shifts.get(name, name))
        h = sizes[number].slot
        kept, plus, minus, total, quotient, half, less, right, left = range(size, size + 9)
        size += 9
        at = Step("", line=0, row=rows[name], vertices=(scene.rows[rows[name]].vertex,))
        for side, sign, operation in ((plus, "+", "add"), (minus, "-", "sub")):
            keep = (Write(kept, "copy", (moved,)),) if sign == "+" else ()
            start = replace(
                at,
                text=f"{name} {sign} h",
                writes=(*keep, Write(moved, operation, (kept, h))),
                shows=read.start.shows,
                operands=((name, kept), ("h", h)),
                result=moved,
            )
            end = Step(
                f"f{sign} = {scene.target}",
                line=count + 1 + (sign == "-"),
                row=rows[scene.target],
                writes=(Write(side, "copy", (output,)),),
                operands=((scene.target, output),),
                vertices=(scene.target,),
                result=side,
            )
            run = [start, *(replace(s, line=s.line + 1) for s in read.steps), end]
            steps += [replace(s, phase=len(phases)) for s in run]
            counted = f"pass {len(phases)} of {2 * len(scene.wrt)}"
            phases.append(Phase(f"{counted}: {name} {sign} h", ("derivative", "result")))
        steps.append(
            replace(
                at,
                text=f"d{scene.target}/d{name} = (f+ - f-) / (2*h)",
                phase=len(phases) - 1,
                line=count + 3,
                column="derivative",
                writes=(
                    Write(half, "const", (0.5,)),
                    Write(right, "mul", (half, plus)),
                    Write(less, "const", (-0.5,)),
                    Write(left, "mul", (less, minus)),
                    Write(total, "add", (right, left)),
                    Write(quotient, "div", (total, h)),
                    Write(moved, "copy", (kept,)),
                ),
                shows=(
                    Show("derivative", rows[name], quotient),
                    Show("result", number, quotient),
                ),
                operands=(("f+", plus), ("f-", minus), ("h", h)),
                result=quotient,
            )
        )
    lines = (
        "move one variable by h",
        *read.lines,
        f"f+ = {scene.target}",
        f"f- = {scene.target}",
        "derivative = (f+ - f-) / (2*h)",
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
    )


def _path_sum(scene: Scene) -> Walk:
    plain, rows = scene.plain, scene.row_of()
    root, sources = plain.index(scene.target), [plain.index(name) for name in scene.wrt]
    needed = reachable(plain, [root])
    builder = Builder()
    value = builder.extend(scene.tape, keep=signature_and(plain, needed))
    partials = edge_partials(builder, plain, value, needed, extra={root, *sources})
    heads: dict[int, list[int]] = {}
    for tail, head in partials:
        heads.setdefault(tail, []).append(head)
    leading = count_paths(heads, root)
    paths = sum(leading.get(source, 0) for source in sources)
    if paths > MOST_PATHS:
        raise PathLimitError(
            f"there are {paths:,} paths, more than the {MOST_PATHS} that one would step through",
            hint="fewer names in wrt=... (--wrt NAME)",
        )
    labels = plain.labels
    keys = {edge: f"partial.{labels[edge[1]]}.{labels[edge[0]]}" for edge in partials}
    tape = builder.finish(
        {scene.target: value[root]} | {keys[e]: builder.names[keys[e]] for e in partials},
        prune=True,
    )
    read = read_program(tape, scene, backwards=False)
    steps = [read.start]
    for step, primal in zip(read.steps, read.primal, strict=True):
        steps.append(replace(step, phase=0 if primal else 1))
    lines, size = list(read.lines), tape.size
    numbers = {edge: k for k, edge in enumerate(scene.edges)}
    for number, (name, source) in enumerate(zip(scene.wrt, sources, strict=True)):
        found = list_paths(heads, source, root, leading)
        products: list[tuple[str, int]] = []
        for count, path in enumerate(found, start=1):
            walked = [(labels[a], labels[b]) for a, b in pairwise(path)]
            along = [tape.index(keys[edge]) for edge in pairwise(path)]
            factors = [shown_name(keys[edge]) for edge in reversed(list(pairwise(path)))]
            products.append((f"path {count}", size))
            steps.append(
                Step(
                    f"path {count}: {' -> '.join(labels[i] for i in path)}",
                    2,
                    len(lines),
                    rows[name],
                    "derivative",
                    writes=_folded("mul", along, size),
                    operands=tuple(zip(factors, reversed(along), strict=True)),
                    vertices=tuple(labels[i] for i in path),
                    edges=tuple(numbers[edge] for edge in walked),
                    result=size,
                )
            )
            lines.append(steps[-1].text)
            size += 1
        total = f"d{scene.target}/d{name} = {' + '.join(p for p, _ in products) or '0, no path'}"
        steps.append(
            Step(
                total,
                2,
                len(lines),
                rows[name],
                "derivative",
                writes=_folded("add", [slot for _, slot in products], size),
                shows=(Show("derivative", rows[name], size), Show("result", number, size)),
                operands=tuple(products),
                vertices=(name, scene.target),
                result=size,
            )
        )
        lines.append(total)
        size += 1
    phases = (Phase("values"), Phase("local partials on the edges"), Phase("sums over the paths"))
    title = f"d{scene.target}/d(name)"
    return Walk("path-sum", title, "d", tuple(lines), phases, tuple(steps), size, read.given)


def _folded(operation: str, slots: list[int], into: int) -> tuple[Write, ...]:
    """A product of partials or a sum of paths; the sum of no path is 0."""
    if not slots:
        return (Write(into, "const", (1.0 if operation == "mul" else 0.0,)),)
    first = Write(into, "copy", (slots[0],))
    return (first, *(Write(into, operation, (into, slot)) for slot in slots[1:]))


def _shown_also(steps: Iterable[Step], show: Show, place: int) -> list[Step]:
    """The same steps; one of them shows something more."""
    found = list(steps)
    found[place] = replace(found[place], shows=(*found[place].shows, show))
    return found
