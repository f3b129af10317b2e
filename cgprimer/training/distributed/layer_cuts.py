"""A tape cut by layers: what each of several workers computes, forward and back.

A stage's tape takes what earlier stages give as columns, and gives what later ones need. Its
derivative is that of ``sum(adjoint*given)``, an ordinary scalar, whose adjoints are columns too: so
adjoints go back over the cuts, and there is no second rule of differentiation.

Source: Huang et al. 2019, "GPipe: efficient training of giant neural networks"; as there, a stage
keeps what it was given and computes its inside anew on the way back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from cgprimer.core.operations.shape_operations import sum_over_axes
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.core.tape.verifier import verify
from cgprimer.errors import UsageError
from cgprimer.expressions import Shape, parse_element
from cgprimer.support.value_names import internal_name, parse_internal
from cgprimer.tapes import Builder, DerivativeProgram, Tape, differentiate, reachable

FLOW = internal_name("cut", "flow")  # what a stage's derivative is taken of


@dataclass(frozen=True, eq=False)
class Stage:
    """What one worker has of a tape.

    Attributes:
        tape: from its columns, parameters and what it takes to what it gives; the last one's only
            output is the tape's own.
        takes, gives: values that cross the cuts, with their shapes; both are named alike in all
            stages.
        back: the derivatives of ``cut.flow`` by what it takes and by its parameters; None where
            there is neither.
        work: its share of all operations.
    """

    tape: Tape
    takes: dict[str, Shape]
    gives: dict[str, Shape]
    back: DerivativeProgram | None
    work: float

    @property
    def parameters(self) -> tuple[str, ...]:
        """The scalars that it needs."""
        return self.tape.of_kind("scalar")


def cut_name(name: str) -> str:
    """Return the name of a value that crosses a cut.

    >>> cut_name("xz")
    'cut.xz'
    """
    return internal_name("cut", name)


def adjoint(name: str) -> str:
    """The column in which the adjoint of a value comes that a stage gives.

    >>> adjoint("cut.xz")
    'cut.bar.xz'
    """
    return internal_name("cut", "bar", parse_internal(name).variable)


def cut(tape: Tape, count: int, vertices: Collection[str], wrt: Collection[str]) -> list[Stage]:
    """A tape with one output in so many stages, whose layers are consecutive.

    Args:
        tape: what is cut.
        count: how many stages.
        vertices: names of the graph's variables: on each path a layer has one of them.
        wrt: the scalars by which it will be differentiated.

    Raises:
        UsageError: there are fewer layers.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xb = k*xa; xc = exp(xb); xd = m*xc + xa")
    >>> for stage in cut(cgprimer.tape(graph), 2, graph.definitions, ("k", "m")):
    ...     print([*stage.takes], stage.parameters, [*stage.gives])
    [] ('k',) ['cut.xc']
    ['cut.xc'] ('m',) []
    """
    (output,) = tape.outputs.values()
    needed, per_sample = reachable(tape, [output]), find_varying_values(tape)
    layer = _layers(tape, vertices)
    inside = [i for i in range(len(tape.leaves), tape.size) if needed[i] and per_sample[i]]
    if not inside or not per_sample[output]:
        raise UsageError("the loss is the same for all samples: there is nothing to cut")
    work = [0.0] * (max(layer[i] for i in inside) + 1)
    for i in inside:
        work[layer[i]] += _cost(tape, i)
    first = next(k for k, one in enumerate(work) if one)
    if len(work) - first < count:
        what = f"the graph has {len(work) - first} layers, which do not make {count} parts"
        raise UsageError(what, hint="fewer: layers:2")
    ends = _ends(work[first:], count)
    of_layer = [0] * first + [k for k, end in enumerate(ends) for _ in range(end)]
    stage_of = {i: of_layer[layer[i]] for i in inside}
    last: dict[int, int] = {}  # value -> the last stage that uses it
    for i in inside:
        for operand in tape.instructions[i - len(tape.leaves)].operands:
            last[operand] = max(last.get(operand, 0), stage_of[i])
    cuts = {
        i: cut_name(tape.labels.get(i, f"v{i}")) for i in inside if last.get(i, -1) > stage_of[i]
    }
    whole = sum(work)
    made = []
    for stage in range(count):
        part, takes = _part(tape, stage, stage_of, per_sample, cuts, output)
        gives = {cuts[i]: tape.shapes[i] for i in cuts if stage_of[i] == stage}
        back = _back(part, gives, [*takes, *(n for n in part.of_kind("scalar") if n in wrt)])
        own = sum(_cost(tape, i) for i in inside if stage_of[i] == stage)
        made.append(Stage(part, takes, gives, back, own / whole))
    return made


def _layers(tape: Tape, vertices: Collection[str]) -> list[int]:
    """For each value the number of variables on the longest path to it, its own included."""
    named = {i for name, i in tape.names.items() if parse_element(name).array in vertices}
    found, first = [0] * len(tape.leaves), len(tape.leaves)
    for _, operands in tape.instructions:
        found.append(max(found[o] + (o in named) for o in operands))
    users: dict[int, int] = {}
    for index in range(tape.size - 1, first - 1, -1):
        if index not in named:  # a part of the variable that uses it first
            found[index] = users.get(index, found[index])
        for operand in tape.instructions[index - first].operands:
            users[operand] = min(users.get(operand, found[index]), found[index])
    return found


def _cost(tape: Tape, index: int) -> float:
    """About how many operations a value takes."""
    name, operands = tape.instructions[index - len(tape.leaves)]
    products = not isinstance(name, str) and name.sums_products
    return prod(tape.shapes[index]) * (tape.shapes[operands[0]][-1] if products else 1)


def _ends(work: Sequence[float], count: int) -> list[int]:
    """How many layers each stage has, so that the one with most work has as little as can be."""
    best: list[tuple[float, list[int]]] = [(0.0, [])]  # of the first layers, for each number
    for n in range(1, len(work) + 1):
        best.append((sum(work[:n]), [n]))
    for stages in range(2, count + 1):
        best = [
            min(
                (
                    (max(best[k][0], sum(work[k:n])), [*best[k][1], n - k])
                    for k in range(stages - 1, n)
                ),
                default=(float("inf"), []),
            )
            for n in range(len(work) + 1)
        ]
    return best[-1][1]


def _part(
    tape: Tape,
    stage: int,
    stage_of: dict[int, int],
    per_sample: Sequence[bool],
    cuts: dict[int, str],
    output: int,
) -> tuple[Tape, dict[str, Shape]]:
    """The tape of a stage, and what it takes."""
    own = [i for i, where in stage_of.items() if where == stage]
    wanted = {o for i in own for o in tape.instructions[i - len(tape.leaves)].operands} | {*own}
    for i in range(tape.size - 1, len(tape.leaves) - 1, -1):  # what no sample changes is anybody's
        if i in wanted and not per_sample[i]:
            wanted |= {*tape.instructions[i - len(tape.leaves)].operands}
    builder, new, takes = Builder(share=False, simplify=False), dict[int, int](), dict[str, Shape]()
    for i in sorted(wanted):
        if i < len(tape.leaves):
            new[i] = builder.leaf(*tape.leaves[i])
        elif per_sample[i] and stage_of[i] < stage:
            takes[cuts[i]] = tape.shapes[i]
            new[i] = builder.leaf("column", cuts[i], shape=takes[cuts[i]])
        else:
            name, operands = tape.instructions[i - len(tape.leaves)]
            new[i] = builder.emit(name, *(new[o] for o in operands))
            if i in tape.labels:
                builder.name(new[i], tape.labels[i])
    outputs = {cuts[i]: new[i] for i in own if i in cuts}
    if output in own:
        outputs[next(iter(tape.outputs))] = new[output]
    return verify(builder.finish(outputs)), takes


def _back(tape: Tape, gives: dict[str, Shape], wrt: Sequence[str]) -> DerivativeProgram | None:
    """The derivatives of what a stage gives, each times its adjoint, and of the output."""
    if not wrt:
        return None
    builder = Builder(simplify=False)
    new = builder.extend(tape)
    terms = [new[i] for name, i in tape.outputs.items() if name not in gives]
    for name, shape in gives.items():
        seed = builder.leaf("column", adjoint(name), shape=shape)
        terms.append(sum_over_axes(builder, builder.emit("mul", new[tape.outputs[name]], seed)))
    flow = reduce(lambda a, b: builder.emit("add", a, b), terms)
    if flow in builder.names.values():  # a vertex stays its own
        flow = builder.emit("mul", flow, builder.constant(1.0), pinned=True)
    made = verify(builder.finish({FLOW: builder.name(flow, FLOW)}))
    return differentiate(made, of=FLOW, wrt=tuple(wrt))
