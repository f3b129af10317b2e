"""Each method as a walk: its derivative program, every instruction a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from cgprimer.core.methods import differentiate
from cgprimer.core.methods.edges import edge_partials
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.core.methods.reverse import signature_and
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.printing import shown_name
from cgprimer.errors import PathLimitError
from cgprimer.pages.stepping.finite_differences import SCHEMES, differences
from cgprimer.pages.stepping.program_lines import read_program
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.shares import summands, with_numbers_on_edges, with_sums
from cgprimer.pages.stepping.steps import CONSTANT, Phase, Show, Step, Walk, Write, listed

METHODS = ("forward", "reverse", "path-sum", "finite-difference")
_FEW_SEEDS = 8  # written one by one
MOST_PATHS = 200  #: paths that a class would sit through


def walk_of(scene: Scene, method: str, scheme: str = SCHEMES[0], h: float | None = None) -> Walk:
    """The walk of a method over a scene; ``scheme`` and ``h`` are those of finite differences.

    Raises:
        PathLimitError: more paths than anybody would look at.
        DifferentiationError: the method cannot do it.
        UsageError: an unknown scheme, or a step that is not positive and finite.
    """
    if method == "finite-difference":
        return differences(scene, scheme, h)
    return {"forward": _forward, "reverse": _reverse, "path-sum": _path_sum}[method](scene)


def _reverse(scene: Scene) -> Walk:
    program = differentiate(scene.tape, scene.target, scene.wrt, method="reverse")
    found, rows = summands(program.tape, scene, backwards=True), scene.row_of()
    tape = found.tape
    read = read_program(tape, scene, found, backwards=True)
    told = with_sums(read.steps, found, scene, "bar")
    start, told, size = with_numbers_on_edges(read.start, told, found, scene, tape.size)
    steps = [start]
    for step, primal in zip(told, read.primal, strict=True):
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
        size,
        read.given,
        flow="shares of the adjoints",
    )


def _forward(scene: Scene) -> Walk:
    program = differentiate(scene.tape, scene.target, scene.wrt, method="forward")
    found, rows = summands(program.tape, scene, backwards=False), scene.row_of()
    tape = found.tape
    read = read_program(tape, scene, found, backwards=False)
    told = with_sums(read.steps, found, scene, "dot")
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
            text=_seeding(run.seeds),
            line=0,
            row=rows[name],
            column="derivative",
            writes=read.start.writes
            + tuple(Write(seeds[seed], CONSTANT, (value,)) for seed, value in run.seeds.items()),
            shows=read.start.shows + shows,
            operands=(),
            vertices=(name,),
            result=next(seeds[seed] for seed, value in run.seeds.items() if value),
        )
        zeros = {seeds[seed] for seed, value in run.seeds.items() if not value}
        moved = (replace(s, line=s.line + 1) for s in told)
        run_steps = [seeding, *(replace(s, writes=_unseeded(s.writes, zeros)) for s in moved)]
        result = Show("result", number, tape.index(run.reads[0].output))
        steps += [replace(s, phase=number) for s in _shown_also(run_steps, result, -1)]
        counted = f"pass {number + 1} of {len(scene.wrt)}: " if len(scene.wrt) > 1 else ""
        phases.append(Phase(f"{counted}seed {name}", ("result",)))
    seed_line = "set the seeds" if len(scene.wrt) > 1 else f"dot_{scene.wrt[0]} = 1"
    lines = (seed_line, *read.lines)
    return Walk(
        "forward",
        "tangent",
        "dot",
        lines,
        tuple(phases),
        tuple(steps),
        tape.size,
        read.given,
    )


def _seeding(seeds: Mapping[str, float]) -> str:
    """Which tangent is 1, and that the others are 0."""
    texts = [f"{shown_name(seed)} = {value:g}" for seed, value in seeds.items()]
    ones = [text for text, value in zip(texts, seeds.values(), strict=True) if value]
    if len(texts) <= _FEW_SEEDS:
        return "; ".join(texts)
    return f"{'; '.join(ones)}; the other {len(texts) - len(ones)} seeds = 0"


def _unseeded(writes: Iterable[Write], zeros: set[int]) -> tuple[Write, ...]:
    """What is left of linear operations when some tangents are 0 because their seeds are.

    As in the engines, such a 0 is not multiplied: 0 times infinity would be nan. ``zeros`` grows
    by the slots that are 0 for the same reason.
    """
    found: list[Write] = []
    for write in writes:
        slot, operation, operands = write
        left = [o for o in operands if o not in zeros]
        none = operation in ("add", "sub", "mul", "neg", "copy") and (
            not left or (operation == "mul" and len(left) == 1)
        )
        if operation == CONSTANT:
            found.append(write)
        elif none or (operation == "div" and operands[0] in zeros):
            zeros.add(slot)
            found.append(Write(slot, CONSTANT, (0.0,)))
        elif operation in ("add", "sub") and len(left) == 1:
            negative = operation == "sub" and operands[0] in zeros
            found.append(Write(slot, "neg" if negative else "copy", tuple(left)))
        else:
            found.append(write)
    return tuple(found)


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
            hint="choose fewer names: --wrt NAME (in Python wrt=...)",
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
    numbers = scene.edge_of()
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
                    f"path {count}: {' → '.join(labels[i] for i in path)}",
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
        summed = listed([p for p, _ in products], " + ") or "0, no path"
        total = f"d{scene.target}/d{name} = {summed}"
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
    given = (tuple(lines), phases, tuple(steps), size, read.given)
    return Walk("path-sum", title, "d", *given, flow="local partial derivatives")


def _folded(operation: str, slots: list[int], into: int) -> tuple[Write, ...]:
    """A product of partials or a sum of paths; the sum of no path is 0."""
    if not slots:
        return (Write(into, CONSTANT, (1.0 if operation == "mul" else 0.0,)),)
    first = Write(into, "copy", (slots[0],))
    return (first, *(Write(into, operation, (into, slot)) for slot in slots[1:]))


def _shown_also(steps: Iterable[Step], show: Show, place: int) -> list[Step]:
    """The same steps; one of them shows something more."""
    found = list(steps)
    found[place] = replace(found[place], shows=(*found[place].shows, show))
    return found
