"""What a check of gradients asks for: a graph, the points, the right numbers and their noise.

The right numbers come from the program of reverse mode. Difference quotients of the graph itself,
which know nothing of the table of derivatives, must agree with them at every point that is asked;
where they do not, near a kink or an edge of the domain, there is no good question.

Honest arithmetic is not exact. How far off it may be is computed with the gradient, by a running
error bound: every operation of the program adds a rounding error of its own, and hands on those of
its operands, multiplied by its partial derivatives. Source: Higham 2002, "Accuracy and Stability
of Numerical Algorithms", section 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from random import Random
from typing import Any

import numpy as np

from cgprimer.core.derivatives import resolve_output, resolve_wrt
from cgprimer.core.language.input_domains import Domain
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.operations.primitive_registry import find_operation
from cgprimer.core.tape.scalarization import estimate_scalar_cost, split_arrays
from cgprimer.course.checks.branch_coverage import Branches, choose, cover, without_kinks
from cgprimer.course.checks.label_domains import (
    check_target_domains,
    example_targets,
    restrictions,
    target_domains,
)
from cgprimer.course.checks.point_sampling import is_possible, sample_values
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.expressions import ExpressionGraph, Shape, parse_element
from cgprimer.support.validation import check_choice
from cgprimer.tapes import (
    Builder,
    Tape,
    differentiate,
    elements,
    reachable,
    scalarize,
    tape,
    values_of,
)

Array = Any
VALUE, RIGHT, NOISE = "value.", "right.", "noise."  # outputs of the tape that answers
_ROUNDING = 16 * 2.0**-52  # an honest program may take some more steps than ours
_OF_USUAL = 1e8  # times the usual derivative: the largest beside which others are nothing
_EXPONENTIALS = {"softplus", "sigmoid", "tanh", "logaddexp", "log_sigmoid", "sech", "csch", "coth"}
_LARGEST_EXPONENT = 300.0  # of which textbook formulas with exp do not overflow, nor their squares
_NOTHING = 1e-28  # of the largest number: where factors vanish, bounds of first order do
_AT_MOST_ONE = {"relu", "abs", "max", "min", "clamp"}  # their slopes, which jump
_STEP = 1e-4  # of the difference quotients, relative: a kink is not so near
_MOST_NUMBERS = 30_000  # operations of a graph written out in numbers
_FEWEST = 4  # points to ask at
_TRIES = 24  # points drawn for each that is wanted, for every width
_WIDTHS = (1.0, 0.3, 0.1, 0.03)  # how far from the file's values they may be
_FAR_WIDTHS = (3.0, 10.0, 30.0, 100.0)  # where branches are searched that no other point is on
_MOST_OVERLOOKED = 5_000  # piecewise functions times operations
_REFUTED = 1e-3  # relative error that refutes a wrong gradient
_MOST_TIMES = 4  # as many points as asked for, if all branches need so many


@dataclass(frozen=True, eq=False)
class Question:
    """A gradient that students are asked for.

    Attributes:
        graph: with its loss, if there is one.
        of: what is differentiated.
        wrt: with respect to which names.
        output: the variable that the loss is about; empty without a loss.
        batch: samples of a batch; 0 where a point is one sample.
        reduction: of a batch: ``mean`` or ``sum`` over its samples.
        domains: the domains from which inputs are sampled; other inputs are any numbers.
        kept: inputs that stay at their declared values.
        notes: a sentence for each input whose domain was inferred from a loss in the graph.
    """

    graph: ExpressionGraph
    of: str
    wrt: tuple[str, ...]
    loss: str = ""
    output: str = ""
    batch: int = 0
    reduction: str = "mean"
    domains: Mapping[str, Domain] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def declared(self) -> tuple[str, ...]:
        """The names whose declared values may be asked about: those that lie in their domains."""
        return tuple(n for n in self.arguments if is_possible(self.graph, n, self.domains))

    @cached_property
    def restricted(self) -> frozenset[str]:
        """The elements of inputs with a domain; those of a one-hot vector belong together."""
        return frozenset(e for name in self.domains for e in self.elements(name))

    @cached_property
    def primal(self) -> Tape:
        """The graph's tape in numbers, with one output."""
        whole = scalarize(tape(self.graph))
        return replace(whole, outputs={self.of: whole.index(self.of)})

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a student's function is given, in this order."""
        return (*self.graph.inputs, *self.graph.parameters)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each argument and of each name that is asked for."""
        whole = tape(self.graph)
        return {n: whole.shapes[whole.index(n)] for n in {*self.arguments, *self.wrt}}

    def elements(self, name: str) -> list[str]:
        """The numbers of a name: ``W[0,0]``, ``W[0,1]``; itself where it is one."""
        return list(elements(name, self.shapes[name]))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The numbers that the gradient is taken by."""
        return tuple(e for name in self.wrt for e in self.elements(name))

    @cached_property
    def has_kinks(self) -> bool:
        """Whether there is a function that may have a kink."""
        needed = reachable(self.primal, self.primal.outputs.values())[len(self.primal.leaves) :]
        steps = zip(self.primal.instructions, needed, strict=True)
        return any(wanted and not find_operation(name).analytic for (name, _), wanted in steps)

    @cached_property
    def branches(self) -> Branches:
        """The branches of the graph's piecewise functions."""
        return Branches(self.primal, {n: self.elements(n) for n in self.wrt})

    @cached_property
    def answering(self) -> Tape:
        """The tape with the value, the gradient, and the bound of its noise."""
        program = differentiate(self.primal, self.of, self.sources, method="reverse")
        made = program.executed
        reads = {read.wrt: made.outputs[read.output] for read in program.passes[0].reads}
        builder = Builder()
        value = builder.extend(made)
        noise = _errors(builder, made, value)
        zero = builder.constant(0.0)
        target = made.outputs[self.of]
        outputs = {VALUE: value[target], NOISE + VALUE: noise.get(target, zero)}
        for name, index in reads.items():
            outputs |= {RIGHT + name: value[index], NOISE + name: noise.get(index, zero)}
        return builder.finish(outputs, prune=True)

    @cached_property
    def exponents(self) -> Tape | None:
        """The tape of what a textbook formula, as log(1 + exp(u)), takes the exponential of."""
        steps = self.primal.instructions
        operands = {o for name, of in steps if name in _EXPONENTIALS for o in of}
        outputs = {str(index): index for index in operands}
        return replace(self.primal, outputs=outputs) if outputs else None

    @cached_property
    def overlooking(self) -> list[Tape]:
        """The gradients of a graph in which one piecewise function is overlooked."""
        decisions = self.branches.decisions
        if len(decisions) * len(self.primal) > _MOST_OVERLOOKED:
            return []
        tapes = []
        for primal in without_kinks(self.primal, decisions):
            program = differentiate(primal, self.of, self.sources, method="reverse")
            outputs = program.executed.outputs
            reads = {RIGHT + r.wrt: outputs[r.output] for r in program.passes[0].reads}
            tapes.append(replace(program.executed, outputs=reads))
        return tapes

    def run(self, wanted: Tape, given: Mapping[str, Array], *, reduce: bool = True) -> Any:
        """The outputs of a tape at points, reduced over the samples of a batch.

        Args:
            wanted: a tape with the primal's leaves.
            given: for each number of a parameter an array of shape (points,), of an input of
                shape (points,), or (samples, points) of a batch.
            reduce: else the outputs are those of each sample.
        """
        values = values_of(wanted, given, roots=wanted.outputs.values())
        shape = max((np.shape(v) for v in given.values()), key=len)
        whole = {n: np.broadcast_to(values[i], shape) for n, i in wanted.outputs.items()}
        return {n: self.reduced(v) for n, v in whole.items()} if reduce else whole

    def read(self, found: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The gradient, and how far honest arithmetic may be off, from what was answered."""
        right = {e: found[RIGHT + e] for e in self.sources}
        return right, {e: _ROUNDING * found[NOISE + e] for e in self.sources}

    def reduced(self, values: Array) -> Array:
        """Values of samples, put together as the loss of the batch is."""
        if not self.batch:
            return values
        with np.errstate(all="ignore"):
            return values.mean(axis=0) if self.reduction == "mean" else values.sum(axis=0)


def ask(
    graph: ExpressionGraph,
    *,
    of: str | None = None,
    wrt: Sequence[str] | str | None = None,
    loss: str | None = None,
    batch: int = 0,
    reduction: str = "mean",
    keep: Sequence[str] | str = (),
    domain: Mapping[str, Any] | None = None,
) -> Question:
    """The question about a gradient; arguments as :func:`cgprimer.check_gradient` has them.

    Raises:
        UsageError: an unknown name, no output or several, or a graph that cannot be asked about.
    """
    check_choice("reduction", reduction, ("mean", "sum"))
    primal = tape(graph)
    if graph.layered or primal.custom or primal.combines_samples:
        raise UsageError(
            "dropout, batchnorm, batch_mean and functions with a backward pass of their own"
            " cannot be asked about"
        )
    if of is not None and loss is not None:
        raise UsageError("a loss is about the graph's outputs: give either of or loss")
    output = ",".join(graph.outputs) if loss else ""
    names = resolve_wrt(graph, wrt)
    whole = graph_with_loss(graph, loss, example_targets(graph, loss, domain))
    target = resolve_output(whole, of)
    primal = tape(whole)
    if primal.shapes[primal.index(target)]:
        raise UsageError(
            f"{target} is an array: the gradient of one number can be asked for",
            hint="a loss (loss='squared-error', --loss squared-error), or another variable (--of)",
        )
    if batch and (moved := [n for n in names if n not in whole.parameters]):
        raise UsageError(f"{moved[0]} has a value for each sample: ask without a batch")
    if batch and not whole.inputs:
        raise UsageError("the graph has no input: all samples of a batch are the same")
    if strange := [n for n in names if parse_element(n)[1]]:
        raise UsageError(f"ask for the whole array, not for {strange[0]}")
    cost = estimate_scalar_cost(primal)[0] if primal.has_arrays else len(primal)
    if cost > _MOST_NUMBERS:
        raise UsageError(
            f"the graph has {cost:,} operations, more than {_MOST_NUMBERS:,}",
            hint="ask about a smaller one of its kind: students' functions do not know the sizes",
        )
    needed = reachable(primal, [primal.index(target)])
    if not any(needed[primal.index(name)] for name in names):
        raise UsageError(f"{target} does not depend on {', '.join(names)}")
    targets = target_domains(graph, whole, loss)
    limits = restrictions(whole, keep, domain, targets=targets, wrt=names)
    check_target_domains(loss, targets, limits.domains)
    return Question(whole, target, names, loss or "", output, batch, reduction, *limits)


def _errors(builder: Builder, tape: Tape, value: Mapping[int, int]) -> dict[int, int]:
    """For each value of a tape the bound of its rounding error, in units of the last place."""
    found: dict[int, int] = {}
    for index, leaf in enumerate(tape.leaves):
        if leaf.kind != "constant":
            found[index] = builder.emit("abs", value[index])
    for index, (name, operands) in enumerate(tape.instructions, len(tape.leaves)):
        values, total = tuple([value[o] for o in operands]), builder.emit("abs", value[index])
        own = [found[o] for o in operands if o in found]
        if name == "mul" and len(own) == 2:  # of two factors near 0 only the product tells
            both = builder.emit("mul", builder.constant(_ROUNDING), builder.emit("mul", *own))
            total = builder.emit("add", total, both)
        for which, operand in enumerate(operands):
            if operand in found and name in _AT_MOST_ONE:
                total = builder.emit("add", total, found[operand])
            elif operand in found:
                flow = find_operation(name).jvp(
                    builder, which, found[operand], values, value[index]
                )
                if flow is not None:
                    total = builder.emit("add", total, builder.emit("abs", flow[0]))
        found[index] = total
    return found


# --- points --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Points:
    """Points, and what is right there.

    Attributes:
        given: for each number of an argument its values, as :meth:`Question.run` takes them.
        value: of what is differentiated, of shape (points,).
        right: for each number that is asked for its derivative, of shape (points,).
        noise: how far honest arithmetic may be off, likewise, and of the value under VALUE.
        smooth: whether there is a derivative: no kink is near.
        called: whether a function is called at one point after the other.
    """

    given: dict[str, Array]
    value: Array
    right: dict[str, Array]
    noise: dict[str, Array]
    smooth: Array
    called: bool = True

    def __len__(self) -> int:
        return len(self.value)


def points(question: Question, count: int = 20, seed: int = 0) -> Points:
    """Return neat points that cover every branch of every piecewise function.

    The values in the file come first if every parameter has one. There are more points than
    `count` if so many are needed to cover every branch once.

    Raises:
        DifferentiationError: there are too few points where the gradient is finite and smooth.
    """
    graph, centre, draw = question.graph, _own_values(question), Random(seed)
    chosen: list[dict[str, Array]] = []
    total = 0
    if all(n in graph.values for n in graph.parameters):
        first = _drawn(question, draw, 1, centre, 0.0, keep=question.declared)
        if np.isfinite(question.run(question.answering, first)[VALUE]).all():
            chosen, total = [first], 1
    for width in _WIDTHS:
        if total < count:
            candidates = _drawn(question, draw, _TRIES * count, centre, width)
            indices = _selected(question, _measured(question, candidates), count - total)
            chosen.append({n: v[..., indices] for n, v in candidates.items()})
            total += len(indices)
    if total < min(count, _FEWEST):
        raise DifferentiationError(
            f"too few points were found where the derivatives of {question.of} are finite and agree"
            " with difference quotients",
            hint="declare values in the file around which there are such points",
        )
    if question.branches.decisions:
        chosen += _far_away(question, draw, centre, _joined(chosen), 2 * count)
    return _measured(question, _joined(chosen))


def _joined(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    return {n: np.concatenate([part[n] for part in parts], axis=-1) for n in parts[0]}


def _selected(question: Question, candidates: Points, count: int) -> list[int]:
    """Return the best candidates, on as many branches as possible."""
    smooth, badness = np.flatnonzero(candidates.smooth), _badness(question, candidates)
    if not question.branches.decisions or not len(smooth):
        order = np.argsort(badness[smooth], kind="stable")
        return [int(k) for k in smooth[order][:count]]
    given = {n: v[..., smooth] for n, v in candidates.given.items()}
    required, more = question.branches.features(partial(question.run, given=given, reduce=False))
    right = {e: v[smooth] for e, v in candidates.right.items()}
    required = np.concatenate([required, *_refutations(question, given, right)])
    picked = choose((required, more), badness[smooth], count, _MOST_TIMES * count)
    return [int(smooth[k]) for k in picked]


def _refutations(
    question: Question, given: Mapping[str, Array], right: Mapping[str, Array]
) -> Iterator[Array]:
    """Yield which points refute a gradient that overlooks a piecewise function, name by name."""
    for gradient in question.overlooking:
        wrong = question.run(gradient, given)
        with np.errstate(all="ignore"):
            differs = {
                e: np.abs(wrong[RIGHT + e] - v)
                > _REFUTED * np.maximum(np.abs(wrong[RIGHT + e]), np.abs(v))
                for e, v in right.items()
            }
        names = [[differs[e] for e in question.elements(name)] for name in question.wrt]
        yield np.stack([np.any(rows, axis=0) for rows in names])


def _badness(question: Question, candidates: Points) -> Array:
    """Return how unsuitable each candidate is: 0, 1, or 2.

    It is 2 where a derivative has too few digits to tell a mistake from noise, and 1 where it is
    too small compared with the value for the difference quotients of students. It is also 2 where
    the exponentials of textbook formulas overflow. A derivative of exactly 0 on a flat branch is as
    good as any.
    """
    badness = np.zeros(len(candidates), int)
    if question.exponents is not None:
        exponents = question.run(question.exponents, candidates.given, reduce=False)
        for exponent in exponents.values():
            large = ~(np.abs(exponent) <= _LARGEST_EXPONENT)
            overflows = large.reshape(-1, len(candidates)).any(axis=0)
            badness = np.maximum(badness, 2 * overflows)
    value = np.abs(candidates.value)
    for name, derivative in candidates.right.items():
        size = np.abs(derivative)
        regular = size[candidates.smooth]
        usual = np.quantile(regular, 0.9) if regular.size else 0.0
        saturated = (size < 1e-6 * usual) & (size > 0)
        scale = np.where(size > 0, size, usual)
        noisy = candidates.noise[name] > 1e-9 * scale + 1e-12 * value
        steep = (value / 1e4 > size) & (size > 0)
        badness = np.maximum(badness, np.maximum(2 * (saturated | noisy), steep))
    return badness


def _far_away(
    question: Question,
    draw: Random,
    centre: Mapping[str, float],
    chosen: Mapping[str, Array],
    most: int,
) -> list[dict[str, Array]]:
    """Return points on the branches that no chosen point is on, from further and further away."""
    branches, found = question.branches, list[dict[str, Array]]()
    sides = 2 * len(branches.decisions)

    def visible(given: Mapping[str, Array]) -> Array:
        return branches.features(partial(question.run, given=given, reduce=False))[0][:sides]

    covered = visible(chosen).any(axis=1)
    for width in _FAR_WIDTHS:
        if covered.all():
            break
        near, far = (_drawn(question, draw, 4 * _TRIES, centre, w) for w in (1.0, width))
        tried: dict[str, Array] = {
            n: np.where([draw.random() < 0.5 for _ in range(v.shape[-1])], far[n], v)
            for n, v in near.items()
        }
        new = np.flatnonzero((visible(tried) & ~covered[:, None]).any(axis=0))
        if not len(new):
            continue
        measured = _measured(question, {n: v[..., new] for n, v in tried.items()})
        features = visible(measured.given)
        picked: list[int] = []
        cover(
            features & ~covered[:, None],
            measured.smooth & (_badness(question, measured) < 2),
            picked,
            1,
            most,
        )
        if picked:
            found.append({n: v[..., picked] for n, v in measured.given.items()})
            covered = covered | features[:, picked].any(axis=1)
    return found


def _own_values(question: Question) -> dict[str, float]:
    """The file's values, number by number; 0 for what has none."""
    shapes = {n: question.shapes[n] for n in question.arguments}
    given = {n: question.graph.values.get(n, 0.0) for n in question.arguments}
    filled = {n: np.broadcast_to(np.array(v, float), shapes[n]) for n, v in given.items()}
    return {n: float(v) for n, v in split_arrays(filled, shapes).items()}


def _drawn(
    question: Question,
    draw: Random,
    count: int,
    centre: Mapping[str, float],
    width: float,
    keep: Collection[str] = (),
) -> dict[str, Array]:
    """Points around a centre, each number with two or three digits; some names stay there."""
    found: dict[str, Array] = {}
    for name in question.arguments:
        elements, shape = question.elements(name), question.shapes[name]
        many = question.batch * (name in question.graph.inputs)
        stays = name in question.kept or (name in keep and not many)

        def number(index: int, elements: Sequence[str] = elements, stays: bool = stays) -> float:
            middle = centre[elements[index]]
            if stays:
                return middle
            radius = 2.0 * max(1.0, abs(middle)) * width
            digits = 2 - math.floor(math.log10(radius or 2.0))
            return round(middle + draw.uniform(-radius or -2.0, radius or 2.0), digits) + 0.0

        domain = None if stays else question.domains.get(name)
        values = sample_values(draw, shape, max(many, 1) * count, domain, number)
        columns = values.reshape(*((many,) if many else ()), count, len(elements))
        found |= {element: columns[..., k] for k, element in enumerate(elements)}
    return found


def _measured(question: Question, given: dict[str, Array]) -> Points:
    """What is right at points, and whether difference quotients say the same."""
    found = question.run(question.answering, given)
    right, noise = question.read(found)
    sizes = [np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in (found[VALUE], *right.values())]
    noise = {e: v + _NOTHING * max(sizes) + _saturated(right[e]) for e, v in noise.items()}
    fine = np.isfinite(found[VALUE])
    for element in question.sources:
        fine &= np.isfinite(right[element]) & np.isfinite(noise[element])
    noise[VALUE] = _ROUNDING * found[NOISE + VALUE]
    smooth = fine & _smooth_at_labels(question, given, found[VALUE], right)
    return Points(given, found[VALUE], right, noise, smooth)


def _saturated(right: Array) -> float:
    """What is nothing beside the largest derivative: in ``f*(1 - f)``, for one, 1 - f cancels."""
    sizes = np.abs(right[np.isfinite(right)])
    if not sizes.any():
        return 0.0
    usual = float(np.median(sizes[sizes > 0]))  # exp(u^2) is 1e24 at a single point
    return _ROUNDING * min(float(sizes.max()), _OF_USUAL * usual)


def _smooth_at_labels(
    question: Question, given: Mapping[str, Array], value: Array, right: Mapping[str, Array]
) -> Array:
    """Whether there is a derivative; a jump of the graph next to a label does not count.

    A step from a label leads to no label. A graph such as ``where(equal(y, 1), a, b)`` jumps
    there, which says nothing about the derivatives at labels.
    """
    smooth = _smooth(question, given, value, right)
    stepped = [e for e in question.sources if e in question.restricted]
    if not stepped or smooth.all():
        return smooth
    jumps = np.zeros(value.shape, bool)
    for element in stepped:
        for step in (_STEP, -_STEP):
            near, nearer = (
                question.run(question.primal, {**given, element: given[element] + size})
                for size in (step, step / 10)
            )
            with np.errstate(all="ignore"):
                far, close = (np.abs(at[question.of] - value) for at in (near, nearer))
                jumps |= ~(close <= 0.5 * far)  # a continuous change shrinks with the step
    return smooth | (jumps & _smooth(question, given, value, right, fixed=stepped))


def _smooth(
    question: Question,
    given: Mapping[str, Array],
    value: Array,
    right: Mapping[str, Array],
    fixed: Collection[str] = (),
) -> Array:
    """Whether difference quotients agree with the gradient, at kinks those of both sides."""
    free = [e for e in question.sources if e in given and e not in fixed]
    found, draw = np.ones(value.shape, bool), Random(len(free))
    for _ in range(2):
        way = {e: draw.choice((-1.0, 1.0)) * np.maximum(1.0, np.abs(given[e])) for e in free}

        def ends(step: float, way: Mapping[str, Array] = way) -> tuple[Array, Array]:
            moved = (
                {**given, **{e: given[e] + sign * step * way[e] for e in free}} for sign in (1, -1)
            )
            after, before = (question.run(question.primal, p)[question.of] for p in moved)
            return (after - before) / (2 * step), np.abs(after - 2 * value + before) / step

        with np.errstate(all="ignore"):
            slope = sum(right[e] * way[e] for e in free)
            size = sum(np.abs(right[e] * way[e]) for e in free) + 1e-300
            quotient, jump = ends(_STEP)
            found &= np.abs(quotient - slope) <= 1e-4 * size + 1e-10 * np.abs(value)
            if question.has_kinks:  # a smooth function's jump shrinks with the step
                found &= (jump <= 1e-3 * size) | (ends(_STEP / 10)[1] <= 0.5 * jump)
    return found


def arguments_at(
    question: Question, given: Mapping[str, Array], place: int, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Arguments of a student's function, or others: numbers, nested lists, lists of samples."""
    found: dict[str, Any] = {}
    for name in names or question.arguments:
        parts = [given[e][..., place] for e in question.elements(name)]
        whole = np.stack(np.broadcast_arrays(*parts), axis=-1)  # the samples lead
        found[name] = whole.reshape(whole.shape[:-1] + question.shapes[name]).tolist()
    return found
