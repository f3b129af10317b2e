"""The steps of each method: one step per instruction of its derivative program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from cgprimer.core.methods.edge_tape import edge_tape, emit_edge_partials
from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.core.tape.tape_passes import substitute_seeds
from cgprimer.errors import DifferentiationError, PathLimitError, format_count
from cgprimer.support.value_names import format_name, internal_name, parse_internal
from cgprimer.tapes import Builder, DerivativeProgram, Tape, differentiate, reachable
from cgprimer.visualization.pages.stepping.program_lines import (
    Mark,
    ProgramSteps,
    RowContributions,
    collect_contributions,
    read_program,
)
from cgprimer.visualization.pages.stepping.scene import Scene
from cgprimer.visualization.pages.stepping.step_values import (
    Phase,
    Reveal,
    Step,
    Walk,
    copy_tape,
    finish_walk,
    join_parts,
)

METHODS = ("forward", "reverse", "path-sum", "finite-difference")
DEFAULT_METHOD = "reverse"
SCHEMES = ("central", "forward")  #: of finite differences; the page has no complex numbers
SCALARS_HINT = "step through the elements of the arrays: `--scalars` (in Python scalars=True)"
MAX_STEPS = 5000  #: larger pages are slow, and nobody steps through them
MAX_PATHS = 200  #: the maximum that a class would follow
_MAX_SEEDS = 8  # longer lists of seeds are shortened
_FEWER_NAMES = "select fewer names with --wrt NAME (in Python, wrt=...)"
_SIDES = {"central": ("+", "-"), "forward": ("+",)}
_QUOTIENTS = {"central": "(f+ - f-) / (2*h)", "forward": "(f+ - f) / h"}


def check_step_count(steps: int) -> None:
    """Raise DifferentiationError if a method has more steps than fit on a page."""
    if steps > MAX_STEPS:
        raise DifferentiationError(
            f"the method takes {steps:,} steps, but a page can show at most {MAX_STEPS:,}",
            hint=f"{_FEWER_NAMES}, or part of the graph with --of NAME (in Python, of=...)",
        )


def build_walk(scene: Scene, method: str, scheme: str = SCHEMES[0], h: float | None = None) -> Walk:
    """Build all steps of a differentiation method; ``scheme`` and ``h`` set finite differences.

    Raises:
        PathLimitError: the graph has too many paths.
        DifferentiationError: the method cannot differentiate the graph.
        UsageError: an unknown scheme, or a step size that is not positive and finite.

    >>> import cgprimer
    >>> from cgprimer.visualization.pages.stepping.scene import build_scene
    >>> scene = build_scene(cgprimer.tape(cgprimer.parse("xw = cd*xa")), "xw", ["cd"])
    >>> build_walk(scene, "finite-difference", "forward").lines
    ('f = xw', 'shift a variable by h', 'xw = cd*xa', 'f+ = xw', 'derivative = (f+ - f) / h')
    """
    if scene.tape.has_arrays and method != "reverse":
        raise DifferentiationError(
            f"the graph has arrays, but {method} can show the steps of scalars only",
            hint=SCALARS_HINT,
        )
    if method == "finite-difference":
        return _build_difference_walk(scene, scheme, h)
    builders = {
        "forward": _build_forward_walk,
        "reverse": _build_reverse_walk,
        "path-sum": _build_path_sum_walk,
    }
    return builders[method](scene)


def _build_reverse_walk(scene: Scene) -> Walk:
    """Build the steps of reverse mode: a forward sweep, then a backward sweep."""
    program, contributions, program_steps = _differentiate_by_sweep(scene, "reverse", "bar")
    builder = Builder(simplify=False)
    indices = copy_tape(builder, contributions.tape)
    steps = [step.renumber(indices) for step in (program_steps.start, *program_steps.steps)]
    _reveal_edge_contributions(scene, contributions, builder, steps)
    revealed_at = {reveal[:2]: k for k, step in enumerate(steps) for reveal in step.reveals}
    for count, read in enumerate(program.passes[0].reads):
        step_index = revealed_at.get(("derivative", scene.row_indices[read.wrt]), -1)
        result = indices[contributions.tape.index(read.output)]
        steps[step_index] = steps[step_index].add_reveals(Reveal("result", count, result))
    phases = (Phase("forward sweep: values"), Phase("backward sweep: adjoints"))
    walk = Walk(
        "reverse",
        f"adjoint d{scene.target}/d(name)",
        "bar",
        program_steps.lines,
        phases[: 1 + any(step.phase for step in steps)],
        tuple(steps),
        edge_numbers="terms of the adjoints",
    )
    return finish_walk(builder, walk)


def _reveal_edge_contributions(
    scene: Scene, contributions: RowContributions, builder: Builder, steps: list[Step]
) -> None:
    """Add each edge's contribution in the picture to the step that finishes computing it."""
    edges = edge_tape(scene.vertex_tape, of=scene.target)
    flows = copy_tape(builder, edges.tape)
    names = {
        edges.vertices[index]: name
        for index, name in scene.vertex_tape.labels.items()
        if index in edges.vertices
    }
    steps_of_row: dict[int, list[int]] = {}
    for k, step in enumerate(steps):
        if step.column == "derivative":
            steps_of_row.setdefault(step.row, []).append(k)
    for share in edges.tape.shares:
        row = scene.row_indices[names[share.tail]]
        edge = scene.edge_indices[names[share.tail], names[share.head]]
        candidates = steps_of_row.get(row, [])
        if candidates and edge in contributions.edges(row):
            last = max((k for k in candidates if edge in steps[k].edges), default=candidates[-1])
            steps[last] = steps[last].add_reveals(Reveal("edge", edge, flows[share.product]))


def _build_forward_walk(scene: Scene) -> Walk:
    """Build the steps of forward mode: one pass for each name in ``scene.wrt``."""
    program, contributions, program_steps = _differentiate_by_sweep(scene, "forward", "dot")
    builder, tape = Builder(simplify=False), contributions.tape
    # All values are outputs, so that their indices are known after the seeds are substituted.
    full_tape = replace(tape, outputs={str(i): i for i in range(tape.size)}, shares=())
    steps: list[Step] = []
    phases = []
    has_passes = len(scene.wrt) > 1
    check_step_count(len(scene.wrt) * (1 + len(program_steps.steps)))  # before the work
    for wrt_index, (name, run) in enumerate(zip(scene.wrt, program.passes, strict=True)):
        seeded_tape = substitute_seeds(full_tape, run.seeds)
        copies = copy_tape(builder, seeded_tape)
        indices = [copies[seeded_tape.outputs[str(i)]] for i in range(tape.size)]
        seed_step = _build_seed_step(scene, tape, program_steps.start, name, run.seeds)
        pass_steps = [seed_step, *(replace(s, line=s.line + 1) for s in program_steps.steps)]
        result = Reveal("result", wrt_index, tape.index(run.reads[0].output))
        pass_steps[-1] = pass_steps[-1].add_reveals(result)
        steps += [replace(step.renumber(indices), phase=wrt_index) for step in pass_steps]
        position = f"pass {wrt_index + 1} of {len(scene.wrt)}: " if has_passes else ""
        phases.append(Phase(f"{position}seed {name}", ("result",)))
    first_line = "set the seeds" if has_passes else f"dot_{scene.wrt[0]} = 1"
    lines = (first_line, *program_steps.lines)
    walk = Walk("forward", "tangent", "dot", lines, tuple(phases), tuple(steps))
    return finish_walk(builder, walk)


def _build_seed_step(
    scene: Scene, tape: Tape, start: Step, name: str, seeds: Mapping[str, float]
) -> Step:
    """Build the step that sets the seed tangents at the start of a forward-mode pass."""
    seed_indices = {seed: tape.index(seed) for seed in seeds}
    reveals = (
        Reveal("derivative", scene.row_indices[wrt], index)
        for wrt, (seed, index) in zip(scene.wrt, seed_indices.items(), strict=True)
        if parse_internal(seed).kind == "dot"
    )
    return replace(
        start.add_reveals(*reveals),
        text=_format_seeds(seeds),
        line=0,
        row=scene.row_indices[name],
        column="derivative",
        operands=(),
        vertices=(name,),
        result=next(seed_indices[seed] for seed, value in seeds.items() if value),
    )


def _differentiate_by_sweep(
    scene: Scene, method: str, mark: Mark
) -> tuple[DerivativeProgram, RowContributions, ProgramSteps]:
    """Differentiate in forward or reverse mode; return the program, contributions and steps."""
    program = differentiate(scene.tape, scene.target, scene.wrt, method=method)
    contributions = collect_contributions(program.tape, scene, mark)
    return program, contributions, read_program(contributions.tape, scene, contributions)


def _format_seeds(seeds: Mapping[str, float]) -> str:
    """Format the seeds with their values; if there are many, list only the nonzero seeds."""
    texts = {seed: f"{format_name(seed)} = {value:g}" for seed, value in seeds.items()}
    if len(texts) <= _MAX_SEEDS:
        return "; ".join(texts.values())
    ones = [texts[seed] for seed, value in seeds.items() if value]
    return f"{'; '.join(ones)}; the other {len(texts) - len(ones)} seeds = 0"


def _build_path_sum_walk(scene: Scene) -> Walk:
    """Build the steps of path-sum: the values, partials, products along paths, and their sums."""
    tape = scene.vertex_tape
    root, sources = tape.index(scene.target), [tape.index(name) for name in scene.wrt]
    needed = reachable(tape, [root])
    builder = Builder()
    values = builder.extend(scene.tape, keep=needed)
    partials = emit_edge_partials(builder, tape, values, needed, extra={root, *sources})
    heads: dict[int, list[int]] = {}
    for tail, head in partials:
        heads.setdefault(tail, []).append(head)
    path_counts = count_paths(heads, root)
    n_paths = sum(path_counts.get(source, 0) for source in sources)
    if n_paths > MAX_PATHS:
        raise PathLimitError(
            f"the graph has {format_count(n_paths)} paths, but a page can show at most {MAX_PATHS}",
            hint=_FEWER_NAMES,
        )
    labels = tape.labels
    partial_names = {
        (tail, head): internal_name("partial", labels[head], labels[tail])
        for tail, head in partials
    }
    outputs = {scene.target: values[root]}
    outputs |= {name: builder.names[name] for name in partial_names.values()}
    partial_tape = builder.finish(outputs, prune=True)
    program_steps, walk_builder = read_program(partial_tape, scene), Builder(simplify=False)
    indices = copy_tape(walk_builder, partial_tape)
    steps = [step.renumber(indices) for step in (program_steps.start, *program_steps.steps)]
    for wrt_index, source in enumerate(sources):
        paths = list_paths(heads, source, root, path_counts)
        steps += _build_path_steps(
            scene, wrt_index, paths, walk_builder,
            {edge: indices[partial_tape.index(name)] for edge, name in partial_names.items()},
            {edge: format_name(name) for edge, name in partial_names.items()},
        )  # fmt: skip
    first = len(program_steps.steps) + 1
    steps[first:] = [replace(s, phase=2, line=k) for k, s in enumerate(steps[first:], first - 1)]
    walk = Walk(
        "path-sum",
        f"d{scene.target}/d(name)",
        "d",
        tuple(step.text for step in steps[1:]),
        (Phase("values"), Phase("local partials on the edges"), Phase("sums over the paths")),
        tuple(steps),
        edge_numbers="local partial derivatives",
    )
    return finish_walk(walk_builder, walk)


def _build_path_steps(
    scene: Scene,
    wrt_index: int,
    paths: Any,
    builder: Builder,
    partials: Mapping[tuple[int, int], int],
    names: Mapping[tuple[int, int], str],
) -> list[Step]:
    """Build a step for the product of partials along each path, and a step for the sum over paths.

    Args:
        scene: the rows, vertices and edges.
        wrt_index: the index of the name in ``scene.wrt``.
        paths: the paths, each a sequence of vertices.
        builder: the builder that computes products and sums.
        partials: the index of each edge's local partial on the tape of the builder.
        names: the name of each edge's local partial.
    """
    name, labels = scene.wrt[wrt_index], scene.vertex_tape.labels
    steps: list[Step] = []
    total, products = builder.constant(0.0), dict[str, int]()
    for count, path in enumerate(paths, start=1):
        edges, vertices = list(pairwise(path)), tuple(labels[i] for i in path)
        factors = {names[edge]: partials[edge] for edge in edges}
        values: Any = factors.values() or [builder.constant(1.0)]
        product = reduce(partial(builder.emit, "mul"), values)
        products[f"path {count}"] = product
        total = builder.emit("add", total, product) if count > 1 else product
        steps.append(
            Step(
                f"path {count}: {' → '.join(vertices)}",
                row=scene.row_indices[name],
                column="derivative",
                operands=tuple(reversed(factors.items())),
                vertices=vertices,
                edges=tuple(scene.edge_indices[labels[a], labels[b]] for a, b in edges),
                result=product,
            )
        )
    text = join_parts(list(products), " + ") or "0, no path"
    step = _build_result_step(scene, wrt_index, text, total, operands=tuple(products.items()))
    return [*steps, replace(step, vertices=(name, scene.target))]


def _build_result_step(scene: Scene, wrt_index: int, text: str, value: int, **changes: Any) -> Step:
    """Build the step that computes the derivative with respect to one name of ``scene.wrt``."""
    name = scene.wrt[wrt_index]
    row = scene.row_indices[name]
    step = Step(
        f"d{scene.target}/d{name} = {text}",
        row=row,
        column="derivative",
        reveals=(Reveal("derivative", row, value), Reveal("result", wrt_index, value)),
        vertices=(name,),
        result=value,
    )
    return replace(step, **changes)


@dataclass
class _DifferenceSteps:
    """The steps of finite differences, whose evaluations of the graph are stored on one tape.

    Attributes:
        scene: the rows, vertices and edges.
        scheme: ``central`` or ``forward``.
        tape: the program, whose leaves for shifted variables differ from the variables.
        program_steps: the steps of one evaluation of the graph.
        shift_leaves: the leaf that is shifted, keyed by the name of the variable.
        builder: the builder that repeats the program.
        steps: the steps so far.
        phases: the phases so far.
        shifted_values: the value that each step size belongs to, keyed by the name of the step
            size.
        point_indices: the index of each value of the program at the point.
        zero_shifts: the index of zero, keyed by the index of each leaf that holds a shift.
    """

    scene: Scene
    scheme: str
    tape: Tape
    program_steps: ProgramSteps
    shift_leaves: Mapping[str, str]
    builder: Builder = field(default_factory=lambda: Builder(simplify=False))
    steps: list[Step] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=lambda: [Phase("values at the point")])
    shifted_values: dict[str, int] = field(default_factory=dict)
    point_indices: list[int] = field(default_factory=list)
    zero_shifts: dict[int, int] = field(default_factory=dict)

    @property
    def n_point_lines(self) -> int:
        """The number of lines that store the unshifted output: 1 for forward differences, or 0."""
        return int(self.scheme == "forward")

    @property
    def sides(self) -> Sequence[str]:
        """The signs of the shifts: ``+``, and also ``-`` for central differences."""
        return _SIDES[self.scheme]

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the finite-difference program that are shown on the page."""
        return (
            *[f"f = {self.scene.target}"] * self.n_point_lines,
            "shift a variable by h",
            *self.program_steps.lines,
            *(f"f{side} = {self.scene.target}" for side in self.sides),
            f"derivative = {_QUOTIENTS[self.scheme]}",
        )

    @property
    def differentiable_names(self) -> list[str]:
        """The names in ``scene.wrt`` that affect the output."""
        return [name for name in self.scene.wrt if name in self.tape.names]

    @property
    def evaluation_steps(self) -> list[Step]:
        """The steps of one evaluation of the graph, each with its line in the program."""
        first = 1 + self.n_point_lines
        return [replace(s, line=s.line + first, phase=0) for s in self.program_steps.steps]

    @property
    def output_step(self) -> Step:
        """The step that stores the result of one evaluation of the graph as ``f``."""
        target = self.scene.target
        index = self.tape.index(target)
        return Step(
            f"f = {target}",
            line=0,
            row=self.scene.row_indices[target],
            operands=((target, index),),
            vertices=(target,),
            result=index,
        )

    def evaluate_point(self) -> None:
        """Add the steps that evaluate the graph at the point, before any input is shifted."""
        self.zero_shifts = {
            self.tape.index(leaf): self.builder.constant(0.0)
            for name, leaf in self.shift_leaves.items()
            if leaf != name
        }
        self.point_indices = copy_tape(self.builder, self.tape, self.zero_shifts)
        steps = (self.program_steps.start, *self.evaluation_steps)
        self.steps += [step.renumber(self.point_indices) for step in steps]
        self.steps += [self.output_step.renumber(self.point_indices)] * self.n_point_lines

    def evaluate_shifted(self, name: str, side_index: int, step_size: int) -> int:
        """Add the steps that evaluate the graph with one variable shifted by the step size.

        Returns the index of the output.

        Args:
            name: the variable.
            side_index: 0 to add the step size, 1 to subtract it.
            step_size: the index of the step size.
        """
        side, leaf = self.sides[side_index], self.tape.index(self.shift_leaves[name])
        unshifted = self.point_indices[leaf]
        shifted = self.builder.emit("sub" if side_index else "add", unshifted, step_size)
        leaves = {**self.zero_shifts, leaf: shifted}
        indices = copy_tape(self.builder, self.tape, leaves)
        start = replace(
            self.program_steps.start.renumber(indices),
            text=f"{name} {side} h",
            line=self.n_point_lines,
            row=self.scene.row_indices[name],
            operands=((name, unshifted), ("h", step_size)),
            vertices=(name,),
            result=shifted,
        )
        target = self.scene.target
        line = self.n_point_lines + len(self.program_steps.lines) + 1 + side_index
        output_step = self.output_step.renumber(indices)
        output_step = replace(output_step, text=f"f{side} = {target}", line=line)
        if side_index:  # the quotient needs the output of the other side, which stays visible
            output_step = output_step.add_reveals(Reveal("line", line - 1, self.steps[-1].result))
        evaluation = (step.renumber(indices) for step in self.evaluation_steps)
        phase = len(self.phases)
        self.steps += [replace(step, phase=phase) for step in (start, *evaluation, output_step)]
        n_passes = self.n_point_lines + len(self.sides) * len(self.differentiable_names)
        position = f"pass {phase + self.n_point_lines} of {n_passes}"
        self.phases.append(Phase(f"{position}: {name} {side} h", ("derivative", "result")))
        return indices[self.tape.index(target)]

    def add_quotient(self, wrt_index: int, outputs: Sequence[int], step_size: int) -> None:
        """Add the step that computes the difference quotient for one name of ``scene.wrt``."""
        point_output = self.point_indices[self.tape.index(self.scene.target)]
        plus, minus = (*outputs, point_output)[:2]
        is_forward = self.scheme == "forward"
        builder, weight = self.builder, 1.0 if is_forward else 0.5
        right = builder.emit("mul", builder.constant(weight), plus)
        left = builder.emit("mul", builder.constant(-weight), minus)
        # Engines add in this order: the first evaluation of the graph comes first.
        difference = builder.emit("add", *((left, right) if is_forward else (right, left)))
        quotient = builder.emit("div", difference, step_size)
        operands = (("f+", plus), ("f" if is_forward else "f-", minus), ("h", step_size))
        text = _QUOTIENTS[self.scheme]
        step = _build_result_step(self.scene, wrt_index, text, quotient, operands=operands)
        self.steps.append(replace(step, phase=len(self.phases) - 1, line=len(self.lines) - 1))

    def add_zero(self, wrt_index: int) -> None:
        """Add a step that sets the derivative to zero for a name without effect on the output."""
        target, name = self.scene.target, self.scene.wrt[wrt_index]
        output = self.point_indices[self.tape.index(target)]
        zero = self.builder.emit("sub", output, output)  # nan if the output is not finite
        note = f"{target} does not depend on {name}"
        step = _build_result_step(self.scene, wrt_index, f"{target} - {target}", zero, note=note)
        operands = ((target, output),)
        self.steps.append(replace(step, phase=len(self.phases) - 1, operands=operands))


def _build_difference_walk(scene: Scene, scheme: str, h: float | None) -> Walk:
    """Build the steps of finite differences, which evaluate the graph with one variable shifted."""
    options: dict[str, Any] = {"scheme": scheme, "step": h}
    program = differentiate(
        scene.tape, scene.target, scene.wrt, method="finite-difference", **options
    )
    shift_leaves = {
        run.shift.name: run.shift.leaf for run in program.passes if run.shift is not None
    }
    program_steps = read_program(program.tape, scene)
    differences = _DifferenceSteps(scene, scheme, program.tape, program_steps, shift_leaves)
    differences.evaluate_point()
    n_evaluations = len(differences.differentiable_names) * len(differences.sides)
    n_steps = n_evaluations * (len(program_steps.steps) + 2)
    check_step_count(len(differences.steps) + len(scene.wrt) + n_steps)
    for wrt_index, name in enumerate(scene.wrt):
        if name not in differences.differentiable_names:
            differences.add_zero(wrt_index)
            continue
        step_name = f".step{wrt_index}"
        step_size = differences.builder.scalar(step_name)
        variable = differences.point_indices[program.tape.index(name)]
        differences.shifted_values[step_name] = variable
        outputs = [
            differences.evaluate_shifted(name, side_index, step_size)
            for side_index in range(len(differences.sides))
        ]
        differences.add_quotient(wrt_index, outputs, step_size)
    walk = Walk(
        "finite-difference",
        f"d{scene.target}/d(name)",
        "d",
        differences.lines,
        tuple(differences.phases),
        tuple(differences.steps),
        shifted_values=differences.shifted_values,
        scheme=scheme,
        step_rule=program.step_rule,
    )
    return finish_walk(differences.builder, walk)
