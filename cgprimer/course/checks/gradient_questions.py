"""The gradient that a check asks for, and its correct values with bounds of rounding errors.

The correct values come from the program of reverse mode. Correct floating-point arithmetic is not
exact: a running error bound, computed along with the gradient, limits the rounding errors of a
correct answer. Every operation adds a rounding error and propagates those of its operands,
multiplied by its partial derivatives. Source: Higham 2002, "Accuracy and Stability of Numerical
Algorithms", section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cgprimer.core.derivatives import resolve_output, resolve_wrt
from cgprimer.core.language.input_domains import Domain
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.operations.primitive_registry import find_operation
from cgprimer.core.tape.scalarization import estimate_scalar_cost
from cgprimer.course.checks.branch_coverage import Branches, remove_kinks
from cgprimer.course.checks.label_domains import (
    check_target_domains,
    create_example_targets,
    find_target_domains,
    resolve_restrictions,
)
from cgprimer.course.checks.point_sampling import is_declared_in_domain
from cgprimer.errors import UsageError
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
VALUE, RIGHT, NOISE = "value.", "right.", "noise."  # outputs of the gradient tape
ROUNDING = 16 * 2.0**-52  # a correct program may have more instructions than the gradient tape
_EXPONENTIALS = {"softplus", "sigmoid", "tanh", "logaddexp", "log_sigmoid", "sech", "csch", "coth"}
_SLOPES_UP_TO_1 = {"relu", "abs", "max", "min", "clamp"}  # piecewise linear functions
_MAX_OPERATIONS = 30_000  # of a graph after all arrays are expanded into scalars
_MAX_SIMPLIFIED = 5_000  # piecewise functions times operations


@dataclass(frozen=True, eq=False)
class Question:
    """The question of a gradient check: a graph, and the gradient that students compute.

    Attributes:
        graph: the graph, with its loss if there is one.
        of: the name that is differentiated.
        wrt: the names with respect to which it is differentiated.
        loss: the name of the loss; empty without a loss.
        output: the outputs of the graph that the loss compares with targets; empty without a loss.
        batch: the number of samples of a batch; 0 if a point is one sample.
        reduction: the reduction over a batch, ``mean`` or ``sum``.
        domains: the domains from which inputs are sampled; other inputs are real numbers.
        fixed_inputs: the inputs that stay at their declared values.
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
    fixed_inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def declared_names(self) -> tuple[str, ...]:
        """The names of the arguments that have a declared value in their domain."""
        return tuple(
            n for n in self.arguments if is_declared_in_domain(self.graph, n, self.domains)
        )

    @cached_property
    def domain_elements(self) -> frozenset[str]:
        """The names of the elements of all inputs that have a domain."""
        return frozenset(e for name in self.domains for e in self.list_elements(name))

    @cached_property
    def primal(self) -> Tape:
        """The tape of the graph, expanded into scalar instructions, with a single output."""
        scalar_tape = scalarize(tape(self.graph))
        return replace(scalar_tape, outputs={self.of: scalar_tape.index(self.of)})

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of a student's function: first the inputs, then the parameters."""
        return (*self.graph.inputs, *self.graph.parameters)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the arguments and of the names in ``wrt``."""
        array_tape = tape(self.graph)
        names = {*self.arguments, *self.wrt}
        return {name: array_tape.shapes[array_tape.index(name)] for name in names}

    def list_elements(self, name: str) -> list[str]:
        """Return the names of an array's elements, such as ``W[0,0]``, or the name of a scalar."""
        return list(elements(name, self.shapes[name]))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of the elements with respect to which the gradient is computed."""
        return tuple(e for name in self.wrt for e in self.list_elements(name))

    @cached_property
    def has_kinks(self) -> bool:
        """True if the output depends on a function with a kink, such as ``relu`` or ``abs``."""
        needed = reachable(self.primal, self.primal.outputs.values())[len(self.primal.leaves) :]
        instructions = zip(self.primal.instructions, needed, strict=True)
        return any(
            is_needed and not find_operation(primitive).analytic
            for (primitive, _), is_needed in instructions
        )

    @cached_property
    def branches(self) -> Branches:
        """The branches of the graph's piecewise functions."""
        return Branches(self.primal, {name: self.list_elements(name) for name in self.wrt})

    @cached_property
    def gradient_tape(self) -> Tape:
        """The tape that computes the value, the gradient, and the bounds of rounding errors."""
        program = differentiate(self.primal, self.of, self.sources, method="reverse")
        derivative_tape = program.executed
        outputs = derivative_tape.outputs
        builder = Builder()
        values = builder.extend(derivative_tape)
        noise = _emit_error_bounds(builder, derivative_tape, values)
        zero = builder.constant(0.0)
        root = outputs[self.of]
        result = {VALUE: values[root], NOISE + VALUE: noise.get(root, zero)}
        for read in program.passes[0].reads:
            index = outputs[read.output]
            result[RIGHT + read.wrt] = values[index]
            result[NOISE + read.wrt] = noise.get(index, zero)
        return builder.finish(result, prune=True)

    @cached_property
    def exponent_tape(self) -> Tape | None:
        """The tape that computes the arguments of exp, such as u in the formula log(1 + exp(u))."""
        instructions = self.primal.instructions
        operands = {
            o for primitive, used in instructions if primitive in _EXPONENTIALS for o in used
        }
        outputs = {str(index): index for index in operands}
        return replace(self.primal, outputs=outputs) if outputs else None

    @cached_property
    def kinkless_gradient_tapes(self) -> list[Tape]:
        """The tapes that compute wrong gradients, each of which ignores one piecewise function."""
        decisions = self.branches.decisions
        if len(decisions) * len(self.primal) > _MAX_SIMPLIFIED:
            return []
        tapes = []
        for primal in remove_kinks(self.primal, decisions):
            program = differentiate(primal, self.of, self.sources, method="reverse")
            outputs = program.executed.outputs
            reads = {RIGHT + r.wrt: outputs[r.output] for r in program.passes[0].reads}
            tapes.append(replace(program.executed, outputs=reads))
        return tapes

    def evaluate(
        self, wanted: Tape, arguments: Mapping[str, Array], *, reduce: bool = True
    ) -> dict[str, Array]:
        """Evaluate a tape at several points, and reduce its outputs over the samples of each batch.

        Args:
            wanted: a tape with the leaves of ``primal``.
            arguments: for each element of a parameter an array of shape (points,); for each element
                of an input an array of shape (points,), or (samples, points) for a batch.
            reduce: whether outputs are reduced over the samples of a batch.
        """
        values = values_of(wanted, arguments, roots=wanted.outputs.values())
        shape = max((np.shape(v) for v in arguments.values()), key=len)
        outputs = {n: np.broadcast_to(values[i], shape) for n, i in wanted.outputs.items()}
        return {n: self.reduce_samples(v) for n, v in outputs.items()} if reduce else outputs

    def evaluate_gradient(
        self, arguments: Mapping[str, Array]
    ) -> tuple[Array, dict[str, Array], dict[str, Array]]:
        """Return the values and gradients at several points, with bounds on rounding errors.

        The rounding error of the value has the key ``VALUE``.
        """
        outputs = self.evaluate(self.gradient_tape, arguments)
        gradient = {e: outputs[RIGHT + e] for e in self.sources}
        noise = {e: ROUNDING * outputs[NOISE + e] for e in (*self.sources, VALUE)}
        return outputs[VALUE], gradient, noise

    def reduce_samples(self, values: Array) -> Array:
        """Reduce values over the samples of a batch; without a batch, keep the values unchanged."""
        if not self.batch:
            return values
        with np.errstate(all="ignore"):
            return values.mean(axis=0) if self.reduction == "mean" else values.sum(axis=0)


def build_question(
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
    """Build the question of a gradient check; see :func:`cgprimer.check_gradient`.

    Raises:
        UsageError: a name is unknown, the output is missing or ambiguous, or checks do not support
            the graph.
    """
    check_choice("reduction", reduction, ("mean", "sum"))
    primal = tape(graph)
    if graph.layered or primal.custom or primal.combines_samples:
        raise UsageError(
            "gradient checks do not support dropout, batchnorm, batch_mean or functions with a"
            " custom backward pass"
        )
    if of is not None and loss is not None:
        raise UsageError(
            "pass either of= (--of) or loss= (--loss), not both: the loss is computed from the"
            " outputs of the graph"
        )
    output = ",".join(graph.outputs) if loss else ""
    names = resolve_wrt(graph, wrt)
    graph_of_loss = graph_with_loss(graph, loss, create_example_targets(graph, loss, domain))
    target = resolve_output(graph_of_loss, of)
    _check_question(graph_of_loss, target, names, batch)
    targets = find_target_domains(graph, graph_of_loss, loss)
    limits = resolve_restrictions(graph_of_loss, keep, domain, targets=targets, wrt=names)
    check_target_domains(loss, targets, limits.domains)
    return Question(graph_of_loss, target, names, loss or "", output, batch, reduction, *limits)


def _check_question(graph: ExpressionGraph, of: str, wrt: Sequence[str], batch: int) -> None:
    """Raise UsageError if a gradient of a graph cannot be checked."""
    primal = tape(graph)
    if primal.shapes[primal.index(of)]:
        raise UsageError(
            f"gradient checks require a scalar output; {of} is an array",
            hint="add a loss (loss='squared-error', --loss squared-error), or choose another"
            " variable (of=, --of)",
        )
    if batch and (computed := [name for name in wrt if name not in graph.parameters]):
        raise UsageError(
            f"cannot differentiate a batch with respect to {computed[0]}: its value differs"
            " between samples",
            hint="check this gradient without a batch",
        )
    if batch and not graph.inputs:
        raise UsageError("the graph has no inputs: all samples of a batch would be equal")
    if single := [name for name in wrt if parse_element(name)[1]]:
        raise UsageError(f"wrt must name whole arrays, got the element {single[0]}")
    cost = estimate_scalar_cost(primal)[0] if primal.has_arrays else len(primal)
    if cost > _MAX_OPERATIONS:
        raise UsageError(
            f"gradient checks support at most {_MAX_OPERATIONS:,} operations, but the graph has"
            f" {cost:,}",
            hint="check the same architecture with smaller sizes: students' functions do not"
            " depend on the sizes",
        )
    needed = reachable(primal, [primal.index(of)])
    if not any(needed[primal.index(name)] for name in wrt):
        raise UsageError(f"{of} does not depend on {', '.join(wrt)}")


def _emit_error_bounds(builder: Builder, tape: Tape, values: Mapping[int, int]) -> dict[int, int]:
    """Emit bounds on the rounding errors of all values, in units of the machine precision."""
    bounds: dict[int, int] = {}
    for index, leaf in enumerate(tape.leaves):
        if leaf.kind != "constant":
            bounds[index] = builder.emit("abs", values[index])
    for index, (primitive, operands) in enumerate(tape.instructions, len(tape.leaves)):
        arguments, bound = tuple([values[o] for o in operands]), builder.emit("abs", values[index])
        inexact = [bounds[o] for o in operands if o in bounds]
        if (
            primitive == "mul" and len(inexact) == 2
        ):  # the error of second order, for factors near 0
            square = builder.emit("mul", *inexact)
            second_order = builder.emit("mul", builder.constant(ROUNDING), square)
            bound = builder.emit("add", bound, second_order)
        for position, operand in enumerate(operands):
            if operand in bounds and primitive in _SLOPES_UP_TO_1:
                bound = builder.emit("add", bound, bounds[operand])
            elif operand in bounds:
                contribution = find_operation(primitive).jvp(
                    builder, position, bounds[operand], arguments, values[index]
                )
                if contribution is not None:
                    bound = builder.emit("add", bound, builder.emit("abs", contribution[0]))
        bounds[index] = bound
    return bounds
