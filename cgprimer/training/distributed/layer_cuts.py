"""A tape cut by layers: what each of several workers computes, forward and backward.

The tape of a stage has the values of earlier stages as columns, and its outputs are the values that
later stages need. Its derivative is that of ``sum(adjoint*output)``, a scalar, with the adjoints as
further columns: adjoints pass backward over the cuts, without another rule of differentiation.

Source: Huang et al. 2019, "GPipe: efficient training of giant neural networks"; as in GPipe, a
stage stores only its inputs and recomputes its other values on the way backward.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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

FLOW = internal_name("cut", "flow")  # the scalar that a stage's derivative differentiates


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage of a divided graph: the part of the tape that a single worker evaluates.

    Attributes:
        tape: the tape of the stage; the only output of the last stage is that of the whole tape.
        inputs: the names and shapes of the values from earlier stages.
        outputs: the names and shapes of the values for later stages, which have the same names
            there.
        back: the derivatives of ``cut.flow`` with respect to the inputs and the parameters; None if
            the stage has neither.
        work: the fraction of all operations.
    """

    tape: Tape
    inputs: dict[str, Shape]
    outputs: dict[str, Shape]
    back: DerivativeProgram | None
    work: float

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters and other scalars that the stage uses."""
        return self.tape.of_kind("scalar")


def cut_name(name: str) -> str:
    """Return the internal name for a value that is passed from one stage to another.

    >>> cut_name("xz")
    'cut.xz'
    """
    return internal_name("cut", name)


def adjoint_name(name: str) -> str:
    """Return the column name for the adjoint of a value that is passed between stages.

    >>> adjoint_name("cut.xz")
    'cut.bar.xz'
    """
    return internal_name("cut", "bar", parse_internal(name).variable)


def cut(tape: Tape, count: int, vertices: Collection[str], wrt: Collection[str]) -> list[Stage]:
    """Cut a tape with one output into stages of consecutive layers.

    Args:
        tape: the tape to cut.
        count: the number of stages.
        vertices: the names of the graph's variables: a layer has one of them on each path.
        wrt: the scalars with respect to which the stages will be differentiated.

    Raises:
        UsageError: the tape has fewer layers than stages.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xb = k*xa; xc = exp(xb); xd = m*xc + xa")
    >>> for stage in cut(cgprimer.tape(graph), 2, graph.definitions, ("k", "m")):
    ...     print([*stage.inputs], stage.parameters, [*stage.outputs])
    [] ('k',) ['cut.xc']
    ['cut.xc'] ('m',) []
    """
    (output,) = tape.outputs.values()
    needed, per_sample = reachable(tape, [output]), find_varying_values(tape)
    varying = [i for i in range(len(tape.leaves), tape.size) if needed[i] and per_sample[i]]
    if not varying or not per_sample[output]:
        raise UsageError("cannot divide the graph: its loss does not depend on the samples")
    stage_of = _assign_stages(tape, count, varying, vertices)
    cuts = _find_cuts(tape, varying, stage_of)
    total = sum(_estimate_cost(tape, i) for i in varying)
    stages = []
    for stage in range(count):
        part, inputs = _extract_stage(tape, stage, stage_of, per_sample, cuts, output)
        outputs = {cuts[i]: tape.shapes[i] for i in cuts if stage_of[i] == stage}
        names = [*inputs, *(name for name in part.of_kind("scalar") if name in wrt)]
        back = _differentiate_stage(part, outputs, names)
        work = sum(_estimate_cost(tape, i) for i in varying if stage_of[i] == stage)
        stages.append(Stage(part, inputs, outputs, back, work / total))
    return stages


def _assign_stages(
    tape: Tape, count: int, varying: Sequence[int], vertices: Collection[str]
) -> dict[int, int]:
    """Assign values of a tape to stages; return the stage of each value, keyed by index.

    Raises:
        UsageError: the tape has fewer layers than stages.
    """
    layers = _number_layers(tape, vertices)
    work = [0.0] * (max(layers[i] for i in varying) + 1)
    for i in varying:
        work[layers[i]] += _estimate_cost(tape, i)
    first = next(k for k, cost in enumerate(work) if cost)
    if len(work) - first < count:
        what = f"cannot divide {len(work) - first} layers into {count} parts"
        raise UsageError(what, hint="choose fewer parts, such as layers:2")
    sizes = _balance_layers(work[first:], count)
    stage_of_layer = [0] * first + [k for k, size in enumerate(sizes) for _ in range(size)]
    return {i: stage_of_layer[layers[i]] for i in varying}


def _find_cuts(tape: Tape, varying: Iterable[int], stage_of: dict[int, int]) -> dict[int, str]:
    """Return the names of the values that a later stage uses, keyed by index."""
    last_stage: dict[int, int] = {}
    for i in varying:
        for operand in tape.instructions[i - len(tape.leaves)].operands:
            last_stage[operand] = max(last_stage.get(operand, 0), stage_of[i])
    return {
        i: cut_name(tape.labels.get(i, f"v{i}"))
        for i in varying
        if last_stage.get(i, -1) > stage_of[i]
    }


def _number_layers(tape: Tape, vertices: Collection[str]) -> list[int]:
    """Return the layer of each value: the number of variables on the longest path to it."""
    variables = {i for name, i in tape.names.items() if parse_element(name).array in vertices}
    layers, first = [0] * len(tape.leaves), len(tape.leaves)
    for _, operands in tape.instructions:
        layers.append(max(layers[o] + (o in variables) for o in operands))
    user_layers: dict[int, int] = {}
    for index in range(tape.size - 1, first - 1, -1):
        if index not in variables:  # belongs to the variable that uses it first
            layers[index] = user_layers.get(index, layers[index])
        for operand in tape.instructions[index - first].operands:
            user_layers[operand] = min(user_layers.get(operand, layers[index]), layers[index])
    return layers


def _estimate_cost(tape: Tape, index: int) -> float:
    """Estimate the number of scalar operations of an instruction."""
    name, operands = tape.instructions[index - len(tape.leaves)]
    products = not isinstance(name, str) and name.sums_products
    return prod(tape.shapes[index]) * (tape.shapes[operands[0]][-1] if products else 1)


def _balance_layers(work: Sequence[float], count: int) -> list[int]:
    """Return the number of layers per stage for which the maximum work per stage is minimal."""
    best: list[tuple[float, list[int]]] = [(0.0, [])]  # for each number of leading layers
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


def _extract_stage(
    tape: Tape,
    stage: int,
    stage_of: dict[int, int],
    per_sample: Sequence[bool],
    cuts: dict[int, str],
    output: int,
) -> tuple[Tape, dict[str, Shape]]:
    """Return the tape of a stage, and the names and shapes of its inputs.

    Args:
        tape: the whole tape.
        stage: the index of the stage.
        stage_of: the stage of each value that depends on the sample.
        per_sample: for each value whether it depends on the sample; other values are computed by
            every stage that needs them.
        cuts: the names of the values that cross cuts.
        output: the index of the output of the whole tape.
    """
    members = [i for i, index in stage_of.items() if index == stage]
    needed = {o for i in members for o in tape.instructions[i - len(tape.leaves)].operands}
    needed |= {*members}
    for i in range(tape.size - 1, len(tape.leaves) - 1, -1):
        if i in needed and not per_sample[i]:
            needed |= {*tape.instructions[i - len(tape.leaves)].operands}
    builder, new, inputs = Builder(share=False, simplify=False), dict[int, int](), {}
    for i in sorted(needed):
        if i < len(tape.leaves):
            new[i] = builder.leaf(*tape.leaves[i])
        elif per_sample[i] and stage_of[i] < stage:
            inputs[cuts[i]] = tape.shapes[i]
            new[i] = builder.leaf("column", cuts[i], shape=inputs[cuts[i]])
        else:
            name, operands = tape.instructions[i - len(tape.leaves)]
            new[i] = builder.emit(name, *(new[o] for o in operands))
            if i in tape.labels:
                builder.name(new[i], tape.labels[i])
    outputs = {cuts[i]: new[i] for i in members if i in cuts}
    if output in members:
        outputs[next(iter(tape.outputs))] = new[output]
    return verify(builder.finish(outputs)), inputs


def _differentiate_stage(
    tape: Tape, outputs: dict[str, Shape], wrt: Sequence[str]
) -> DerivativeProgram | None:
    """Differentiate the sum of a stage's outputs, each multiplied by its adjoint."""
    if not wrt:
        return None
    builder = Builder(simplify=False)
    new = builder.extend(tape)
    terms = [new[i] for name, i in tape.outputs.items() if name not in outputs]
    for name, shape in outputs.items():
        seed = builder.leaf("column", adjoint_name(name), shape=shape)
        terms.append(sum_over_axes(builder, builder.emit("mul", new[tape.outputs[name]], seed)))
    flow = reduce(lambda a, b: builder.emit("add", a, b), terms)
    if flow in builder.names.values():  # a named value cannot have a second name
        flow = builder.emit("mul", flow, builder.constant(1.0), pinned=True)
    flow_tape = verify(builder.finish({FLOW: builder.name(flow, FLOW)}))
    return differentiate(flow_tape, of=FLOW, wrt=tuple(wrt))
