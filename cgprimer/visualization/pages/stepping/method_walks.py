"""Each method as a walk: its derivative program, every instruction a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from cgprimer.core.methods.edge_tape import edge_tape, emit_edge_partials
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.core.tape.tape_passes import substitute_seeds
from cgprimer.errors import DifferentiationError, PathLimitError, format_count
from cgprimer.support.value_names import format_name, internal_name, parse_internal
from cgprimer.tapes import Builder, DerivativeProgram, differentiate, reachable
from cgprimer.visualization.pages.stepping.program_lines import (
    Mark,
    Program,
    Summands,
    read_program,
    summands,
)
from cgprimer.visualization.pages.stepping.scene import Scene
from cgprimer.visualization.pages.stepping.step_values import (
    Phase,
    Show,
    Step,
    Walk,
    copied,
    finished,
    listed,
)

METHODS = ("forward", "reverse", "path-sum", "finite-difference")
DEFAULT_METHOD = "reverse"
SCHEMES = ("central", "forward")  #: of finite differences; the page has no complex numbers
NUMBERS = "step through the numbers of its arrays: --scalars (in Python scalars=True)"
MOST_STEPS = 5000  #: beyond which nobody steps and the page grows too large
MOST_PATHS = 200  #: paths that a class would sit through
_FEW_SEEDS = 8  # written one by one
_SIDES = {"central": ("+", "-"), "forward": ("+",)}
_QUOTIENT = {"central": "(f+ - f-) / (2*h)", "forward": "(f+ - f) / h"}


def check_steps(steps: int) -> None:
    """Raise DifferentiationError where nobody would look at all of them."""
    if steps > MOST_STEPS:
        raise DifferentiationError(
            f"there are {steps:,} steps, more than the {MOST_STEPS:,} that one would look at",
            hint="choose fewer names: --wrt NAME (in Python wrt=...), or a part of the "
            "graph: --of NAME (in Python of=...)",
        )


def walk_of(scene: Scene, method: str, scheme: str = SCHEMES[0], h: float | None = None) -> Walk:
    """The walk of a method over a scene; ``scheme`` and ``h`` are those of finite differences.

    Raises:
        PathLimitError: more paths than anybody would look at.
        DifferentiationError: the method cannot do it.
        UsageError: an unknown scheme, or a step that is not positive and finite.

    >>> import cgprimer
    >>> from cgprimer.visualization.pages.stepping.scene import scene
    >>> shown = scene(cgprimer.tape(cgprimer.parse("xw = cd*xa")), "xw", ["cd"])
    >>> walk_of(shown, "finite-difference", "forward").lines
    ('f = xw', 'move one variable by h', 'xw = cd*xa', 'f+ = xw', 'derivative = (f+ - f) / h')
    """
    if scene.tape.has_arrays and method != "reverse":
        raise DifferentiationError(
            f"the graph has arrays, and {method} steps through numbers", hint=NUMBERS
        )
    if method == "finite-difference":
        return _differences(scene, scheme, h)
    return {"forward": _forward, "reverse": _reverse, "path-sum": _path_sum}[method](scene)


def _reverse(scene: Scene) -> Walk:
    program, found, read = _summed(scene, "reverse", "bar")
    builder, rows, number = Builder(simplify=False), scene.row_of, scene.edge_of
    place = copied(builder, found.tape)
    steps = [step.at(place) for step in (read.start, *read.steps)]
    # Each edge shows what of the adjoint flows along it, once that is complete.
    edges = edge_tape(scene.plain, of=scene.target)
    on_edge = copied(builder, edges.tape)
    names = {edges.vertices[i]: n for i, n in scene.plain.labels.items() if i in edges.vertices}
    steps_of: dict[int, list[int]] = {}
    for k, step in enumerate(steps):
        if step.column == "derivative":
            steps_of.setdefault(step.row, []).append(k)
    for share in edges.tape.shares:
        row, which = rows[names[share.tail]], number[names[share.tail], names[share.head]]
        here = steps_of.get(row, [])
        if here and which in found.edges(row):
            at = max((k for k in here if which in steps[k].edges), default=here[-1])
            steps[at] = steps[at].showing(Show("edge", which, on_edge[share.product]))
    shown_at = {show[:2]: k for k, step in enumerate(steps) for show in step.shows}
    for count, entry in enumerate(program.passes[0].reads):
        at = shown_at.get(("derivative", rows[entry.wrt]), -1)
        result = place[found.tape.index(entry.output)]
        steps[at] = steps[at].showing(Show("result", count, result))
    phases = (Phase("forward sweep: values"), Phase("backward sweep: adjoints"))
    kept = phases[: 1 + any(step.phase for step in steps)]
    title, flow = f"adjoint d{scene.target}/d(name)", "terms of the adjoints"
    walk = Walk("reverse", title, "bar", read.lines, kept, tuple(steps), flow=flow)
    return finished(builder, walk)


def _forward(scene: Scene) -> Walk:
    program, found, read = _summed(scene, "forward", "dot")
    builder, rows, tape = Builder(simplify=False), scene.row_of, found.tape
    # Of each pass everything is wanted, so that it can be found again once the seeds are set.
    wanted = replace(tape, outputs={str(i): i for i in range(tape.size)}, shares=())
    steps: list[Step] = []
    phases = []
    several = len(scene.wrt) > 1
    check_steps(len(scene.wrt) * (1 + len(read.steps)))  # before the work of all passes
    for number, (name, run) in enumerate(zip(scene.wrt, program.passes, strict=True)):
        seeded = substitute_seeds(wanted, run.seeds)
        copy = copied(builder, seeded)
        place = [copy[seeded.outputs[str(i)]] for i in range(tape.size)]
        seeds = {seed: tape.index(seed) for seed in run.seeds}
        shows = (
            Show("derivative", rows[wrt], value)
            for wrt, (seed, value) in zip(scene.wrt, seeds.items(), strict=True)
            if parse_internal(seed).kind == "dot"
        )
        seeding = replace(
            read.start.showing(*shows),
            text=_seeding(run.seeds),
            line=0,
            row=rows[name],
            column="derivative",
            operands=(),
            vertices=(name,),
            result=next(seeds[seed] for seed, value in run.seeds.items() if value),
        )
        told = [seeding, *(replace(s, line=s.line + 1) for s in read.steps)]
        told[-1] = told[-1].showing(Show("result", number, tape.index(run.reads[0].output)))
        steps += [replace(s.at(place), phase=number) for s in told]
        counted = f"pass {number + 1} of {len(scene.wrt)}: " if several else ""
        phases.append(Phase(f"{counted}seed {name}", ("result",)))
    lines = ("set the seeds" if several else f"dot_{scene.wrt[0]} = 1", *read.lines)
    walk = Walk("forward", "tangent", "dot", lines, tuple(phases), tuple(steps))
    return finished(builder, walk)


def _summed(scene: Scene, method: str, mark: Mark) -> tuple[DerivativeProgram, Summands, Program]:
    """The program of a sweep, its shares and its lines."""
    program = differentiate(scene.tape, scene.target, scene.wrt, method=method)
    found = summands(program.tape, scene, mark)
    return program, found, read_program(found.tape, scene, found)


def _seeding(seeds: Mapping[str, float]) -> str:
    """Which tangent is 1, and that the others are 0."""
    texts = {seed: f"{format_name(seed)} = {value:g}" for seed, value in seeds.items()}
    if len(texts) <= _FEW_SEEDS:
        return "; ".join(texts.values())
    ones = [texts[seed] for seed, value in seeds.items() if value]
    return f"{'; '.join(ones)}; the other {len(texts) - len(ones)} seeds = 0"


def _path_sum(scene: Scene) -> Walk:
    plain = scene.plain
    root, sources = plain.index(scene.target), [plain.index(name) for name in scene.wrt]
    needed = reachable(plain, [root])
    builder = Builder()
    value = builder.extend(scene.tape, keep=needed)
    partials = emit_edge_partials(builder, plain, value, needed, extra={root, *sources})
    heads: dict[int, list[int]] = {}
    for tail, head in partials:
        heads.setdefault(tail, []).append(head)
    leading = count_paths(heads, root)
    paths = sum(leading.get(source, 0) for source in sources)
    if paths > MOST_PATHS:
        raise PathLimitError(
            f"there are {format_count(paths)} paths, more than the {MOST_PATHS} that one would step"
            " through",
            hint="choose fewer names: --wrt NAME (in Python wrt=...)",
        )
    labels, numbers = plain.labels, scene.edge_of
    keys = {edge: internal_name("partial", labels[edge[1]], labels[edge[0]]) for edge in partials}
    outputs = {scene.target: value[root]} | {key: builder.names[key] for key in keys.values()}
    tape = builder.finish(outputs, prune=True)
    read, run = read_program(tape, scene), Builder(simplify=False)
    place = copied(run, tape)
    steps = [step.at(place) for step in (read.start, *read.steps)]
    for number, (name, source) in enumerate(zip(scene.wrt, sources, strict=True)):
        total, products = run.constant(0.0), dict[str, int]()
        for count, path in enumerate(list_paths(heads, source, root, leading), start=1):
            edges, vertices = list(pairwise(path)), tuple(labels[i] for i in path)
            along = {format_name(keys[edge]): place[tape.index(keys[edge])] for edge in edges}
            factors = along.values() or [run.constant(1.0)]
            product = products[f"path {count}"] = reduce(partial(run.emit, "mul"), factors)
            total = run.emit("add", total, product) if count > 1 else product
            step = Step(
                f"path {count}: {' → '.join(vertices)}",
                operands=tuple(reversed(along.items())),
                vertices=vertices,
                edges=tuple(numbers[labels[a], labels[b]] for a, b in edges),
                result=product,
            )
            steps.append(replace(step, row=scene.row_of[name], column="derivative"))
        text = listed(list(products), " + ") or "0, no path"
        step = _result(scene, number, text, total, operands=tuple(products.items()))
        steps.append(replace(step, vertices=(name, scene.target)))
    told = len(read.steps) + 1
    steps[told:] = [replace(s, phase=2, line=k) for k, s in enumerate(steps[told:], told - 1)]
    lines = tuple(step.text for step in steps[1:])
    phases = (Phase("values"), Phase("local partials on the edges"), Phase("sums over the paths"))
    title, flow = f"d{scene.target}/d(name)", "local partial derivatives"
    return finished(run, Walk("path-sum", title, "d", lines, phases, tuple(steps), flow=flow))


def _result(scene: Scene, number: int, text: str, value: int, **more: Any) -> Step:
    """The step that finds a derivative."""
    name = scene.wrt[number]
    row = scene.row_of[name]
    shows = (Show("derivative", row, value), Show("result", number, value))
    text = f"d{scene.target}/d{name} = {text}"
    made = Step(text, row=row, column="derivative", shows=shows, vertices=(name,), result=value)
    return replace(made, **more)


def _differences(scene: Scene, scheme: str, h: float | None) -> Walk:
    """Finite differences: the graph is run again with one variable moved."""
    options: dict[str, Any] = {"scheme": scheme, "step": h}
    program = differentiate(
        scene.tape, scene.target, scene.wrt, method="finite-difference", **options
    )
    tape, rows, sides = program.tape, scene.row_of, _SIDES[scheme]
    leaves = {one.shift.name: one.shift.leaf for one in program.passes if one.shift is not None}
    read, base, output = read_program(tape, scene), int(scheme == "forward"), scene.target
    lines = (
        *[f"f = {output}"] * base,
        "move one variable by h",
        *read.lines,
        *(f"f{side} = {output}" for side in sides),
        f"derivative = {_QUOTIENT[scheme]}",
    )
    run = Builder(simplify=False)
    unmoved = {tape.index(leaf): run.constant(0.0) for name, leaf in leaves.items() if leaf != name}
    first = copied(run, tape, unmoved)
    told = [replace(s, line=s.line + 1 + base, phase=0) for s in read.steps]
    steps = [s.at(first) for s in (read.start, *told)]
    phases = [Phase("the point itself")]
    found = tape.index(output)
    measured = Step(f"f = {output}", line=0, row=rows[output], vertices=(output,), result=found)
    measured = replace(measured, operands=((output, found),))
    steps += [measured.at(first)] * base
    leading = [name for name in scene.wrt if name in tape.names]  # the rest is left out of the tape
    check_steps(len(steps) + len(scene.wrt) + len(leading) * len(sides) * (len(told) + 2))
    moved: dict[str, int] = {}  # by the leaf that is its step, what is moved
    for number, name in enumerate(scene.wrt):
        f = first[found]
        if name not in leading:  # no run of the graph needs it: it moves nothing
            zero = run.emit("sub", f, f)  # nan where it is not finite
            note = f"{name} does not lead to {output}"
            step = _result(scene, number, f"{output} - {output}", zero, note=note)
            steps.append(replace(step, phase=len(phases) - 1, operands=((output, f),)))
            continue
        leaf, h_used = tape.index(leaves[name]), run.scalar(f".step{number}")
        moved[f".step{number}"] = first[tape.index(name)]
        ends: list[int] = []
        for which, side in enumerate(sides):
            there = run.emit("sub" if which else "add", first[leaf], h_used)
            place = copied(run, tape, {**unmoved, leaf: there})
            start = replace(
                read.start.at(place),
                text=f"{name} {side} h",
                line=base,
                row=rows[name],
                operands=((name, first[leaf]), ("h", h_used)),
                vertices=(name,),
                result=there,
            )
            line = base + len(read.lines) + 1
            end = replace(measured.at(place), text=f"f{side} = {output}", line=line + which)
            if which:  # what the other side came to goes into the quotient, so it stays in view
                end = end.showing(Show("line", line, ends[0]))
            ends.append(place[found])
            again = (s.at(place) for s in told)
            steps += [replace(s, phase=len(phases)) for s in (start, *again, end)]
            counted = f"pass {len(phases) + base} of {base + len(sides) * len(leading)}"
            phases.append(Phase(f"{counted}: {name} {side} h", ("derivative", "result")))
        plus, minus = (*ends, f)[:2]
        weight = 1.0 if base else 0.5
        right = run.emit("mul", run.constant(weight), plus)
        left = run.emit("mul", run.constant(-weight), minus)
        # In the order in which the engines add: the first run of the graph comes first.
        quotient = run.emit("add", *((left, right) if base else (right, left)))
        quotient = run.emit("div", quotient, h_used)
        operands = (("f+", plus), ("f" if base else "f-", minus), ("h", h_used))
        step = _result(scene, number, _QUOTIENT[scheme], quotient, operands=operands)
        steps.append(replace(step, phase=len(phases) - 1, line=len(lines) - 1))
    walk = Walk("finite-difference", f"d{output}/d(name)", "d", lines, tuple(phases), tuple(steps))
    return finished(run, replace(walk, moved=moved, scheme=scheme, rule=program.step_rule))
