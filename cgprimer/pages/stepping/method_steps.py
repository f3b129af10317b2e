"""Each method as a walk: its derivative program, every instruction a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise

from cgprimer.core.methods import differentiate
from cgprimer.core.methods.contract import DerivativeProgram
from cgprimer.core.methods.edges import edge_partials
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.core.methods.reverse import signature_and
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.optimization import with_seeds
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.printing import shown_name
from cgprimer.errors import PathLimitError
from cgprimer.pages.stepping.finite_differences import SCHEMES, differences
from cgprimer.pages.stepping.program_lines import Program, read_program
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.shares import Summands, summands, with_numbers_on_edges, with_sums
from cgprimer.pages.stepping.steps import Phase, Show, Step, Walk, copied, finished, listed

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
    program, read, found, told = _summed(scene, "reverse", "bar")
    builder, rows = Builder(simplify=False), scene.row_of()
    place = copied(builder, found.tape)
    told = with_numbers_on_edges([step.at(place) for step in told], found, scene, builder)
    steps = [read.start.at(place), *told]
    for number, entry in enumerate(program.passes[0].reads):
        result = Show("result", number, place[found.tape.index(entry.output)])
        shown_at = ("derivative", rows[entry.wrt])
        places = [k for k, s in enumerate(steps) if shown_at in [show[:2] for show in s.shows]]
        steps = _shown_also(steps, result, places[-1] if places else len(steps) - 1)
    tape, made = finished(builder, steps)
    phases = (Phase("forward sweep: values"), Phase("backward sweep: adjoints"))
    return Walk(
        "reverse",
        f"adjoint d{scene.target}/d(name)",
        "bar",
        read.lines,
        phases[: 1 + any(step.phase for step in steps)],
        made,
        tape,
        flow="shares of the adjoints",
    )


def _forward(scene: Scene) -> Walk:
    program, read, found, told = _summed(scene, "forward", "dot")
    builder, rows, tape = Builder(simplify=False), scene.row_of(), found.tape
    # Of each pass everything is wanted, so that it can be found again once the seeds are set.
    wanted = replace(tape, outputs={str(i): i for i in range(tape.size)}, shares=())
    steps: list[Step] = []
    phases = []
    for number, (name, run) in enumerate(zip(scene.wrt, program.passes, strict=True)):
        seeded = with_seeds(wanted, run.seeds)
        copy = copied(builder, seeded)
        place = [copy[seeded.outputs[str(i)]] for i in range(tape.size)]
        seeds = {seed: tape.index(seed) for seed in run.seeds}
        shows = tuple(
            Show("derivative", rows[wrt], value)
            for wrt, (seed, value) in zip(scene.wrt, seeds.items(), strict=True)
            if seed.startswith("dot.")
        )
        seeding = replace(
            read.start,
            text=_seeding(run.seeds),
            line=0,
            row=rows[name],
            column="derivative",
            shows=read.start.shows + shows,
            operands=(),
            vertices=(name,),
            result=next(seeds[seed] for seed, value in run.seeds.items() if value),
        )
        run_steps = [seeding, *(replace(s, line=s.line + 1) for s in told)]
        result = Show("result", number, tape.index(run.reads[0].output))
        shown = _shown_also(run_steps, result, -1)
        steps += [replace(s.at(place), phase=number) for s in shown]
        counted = f"pass {number + 1} of {len(scene.wrt)}: " if len(scene.wrt) > 1 else ""
        phases.append(Phase(f"{counted}seed {name}", ("result",)))
    seed_line = "set the seeds" if len(scene.wrt) > 1 else f"dot_{scene.wrt[0]} = 1"
    whole, made = finished(builder, steps)
    return Walk("forward", "tangent", "dot", (seed_line, *read.lines), tuple(phases), made, whole)


def _summed(
    scene: Scene, method: str, mark: str
) -> tuple[DerivativeProgram, Program, Summands, list[Step]]:
    """The program of a sweep, its lines, its shares, and steps that tell of them."""
    program = differentiate(scene.tape, scene.target, scene.wrt, method=method)
    backwards = method == "reverse"
    found = summands(program.tape, scene, backwards=backwards)
    read = read_program(found.tape, scene, found, backwards=backwards)
    return program, read, found, with_sums(read.steps, found, scene, mark)


def _seeding(seeds: Mapping[str, float]) -> str:
    """Which tangent is 1, and that the others are 0."""
    texts = [f"{shown_name(seed)} = {value:g}" for seed, value in seeds.items()]
    ones = [text for text, value in zip(texts, seeds.values(), strict=True) if value]
    if len(texts) <= _FEW_SEEDS:
        return "; ".join(texts)
    return f"{'; '.join(ones)}; the other {len(texts) - len(ones)} seeds = 0"


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
    read, run = read_program(tape, scene, backwards=False), Builder(simplify=False)
    place = copied(run, tape)
    steps = [step.at(place) for step in (read.start, *read.steps)]
    lines, numbers = list(read.lines), scene.edge_of()
    for number, (name, source) in enumerate(zip(scene.wrt, sources, strict=True)):
        total, products = run.constant(0.0), list[tuple[str, int]]()
        for count, path in enumerate(list_paths(heads, source, root, leading), start=1):
            edges = list(pairwise(path))
            along = [place[tape.index(keys[edge])] for edge in edges]
            factors = [shown_name(keys[edge]) for edge in edges]
            product = reduce(partial(run.emit, "mul"), along) if along else run.constant(1.0)
            total = run.emit("add", total, product) if products else product
            products.append((f"path {count}", product))
            steps.append(
                Step(
                    f"path {count}: {' → '.join(labels[i] for i in path)}",
                    2,
                    len(lines),
                    rows[name],
                    "derivative",
                    operands=tuple(zip(reversed(factors), reversed(along), strict=True)),
                    vertices=tuple(labels[i] for i in path),
                    edges=tuple(numbers[labels[a], labels[b]] for a, b in edges),
                    result=product,
                )
            )
            lines.append(steps[-1].text)
        summed = listed([p for p, _ in products], " + ") or "0, no path"
        steps.append(
            Step(
                f"d{scene.target}/d{name} = {summed}",
                2,
                len(lines),
                rows[name],
                "derivative",
                shows=(Show("derivative", rows[name], total), Show("result", number, total)),
                operands=tuple(products),
                vertices=(name, scene.target),
                result=total,
            )
        )
        lines.append(steps[-1].text)
    phases = (Phase("values"), Phase("local partials on the edges"), Phase("sums over the paths"))
    whole, made = finished(run, steps)
    return Walk(
        "path-sum",
        f"d{scene.target}/d(name)",
        "d",
        tuple(lines),
        phases,
        made,
        whole,
        flow="local partial derivatives",
    )


def _shown_also(steps: Iterable[Step], show: Show, place: int) -> list[Step]:
    """The same steps; one of them shows something more."""
    found = list(steps)
    found[place] = replace(found[place], shows=(*found[place].shows, show))
    return found
