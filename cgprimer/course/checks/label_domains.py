"""Domains of labels: the targets of a loss, and inputs that are labels of a written-out loss.

An input is recognized as a label if all its uses belong to one of two losses, and if the gradient
does not contain the derivative with respect to it. In cross-entropy, y and 1 - y multiply
logarithms and the products are added up; in the hinge loss, t multiplies the score in
``max(0, 1 - t*score)``. The declared value must be in the domain: ``y = 0.3`` is not a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.input_domains import ONE_HOT, Domain, domain_contains
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.loss_expressions import (
    SOFTMAX,
    check_class_indices,
    check_target,
    parse_loss_name,
)
from cgprimer.core.operations.notation import format_domain
from cgprimer.course.checks.point_sampling import (
    check_disjoint,
    resolve_input_domains,
    resolve_kept_inputs,
)
from cgprimer.errors import join_names
from cgprimer.expressions import ExpressionGraph, Shape
from cgprimer.tapes import Tape, tape

ZERO_ONE, SIGNS = (0.0, 1.0), (-1.0, 1.0)
_TARGET_DOMAINS: dict[str, Domain] = {
    "cross-entropy": ZERO_ONE, "cross-entropy-logit": ZERO_ONE, "hinge": SIGNS,
}  # fmt: skip
_LOGARITHMS = {"log", "log1p", "log2", "log10", "softplus", "logaddexp"}
_REARRANGEMENTS = {"reshape", "broadcast", "index", "take", "transpose"}
_SUMS = {"add", "sub", "neg", "sum", "copy", *_REARRANGEMENTS}


class Inference(NamedTuple):
    """The domain that is inferred for an input from a loss formula in the graph.

    Attributes:
        domain: the domain of the labels; None if the declared value is not in it.
        note: a sentence for the user.
    """

    domain: Domain | None
    note: str


def find_target_domains(
    graph: ExpressionGraph, with_loss: ExpressionGraph, loss: str | None
) -> dict[str, Domain]:
    """Return the domains of the target inputs that a predefined loss adds to a graph.

    >>> import cgprimer
    >>> from cgprimer.core.loss_attachment import graph_with_loss
    >>> graph = cgprimer.parse("s = w*x + b")
    >>> find_target_domains(graph, graph_with_loss(graph, "hinge"), "hinge")
    {'target': (-1.0, 1.0)}
    """
    name = parse_loss_name(loss) if loss else ""
    targets = [one for one in with_loss.inputs if one not in graph.inputs]
    if name == SOFTMAX:
        shapes = _list_output_shapes(graph)
        classes = shapes[0][0] if shapes[0] else len(shapes)
        numbers = tuple(float(k) for k in range(classes))
        return {one: ONE_HOT if one in with_loss.shapes else numbers for one in targets}
    return {one: _TARGET_DOMAINS[name] for one in targets if name in _TARGET_DOMAINS}


def _list_output_shapes(graph: ExpressionGraph) -> list[Shape]:
    """Return the shapes of the outputs of a graph."""
    primal = tape(graph)
    return [primal.shapes[primal.index(output)] for output in graph.outputs]


def create_example_targets(
    graph: ExpressionGraph, loss: str | None, domain: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return an example target for a loss if `domain` determines its shape, otherwise None.

    A one-hot target of softmax cross-entropy has an element per class; without this domain the
    target is the index of a class.
    """
    if not loss or parse_loss_name(loss) != SOFTMAX or not isinstance(domain, Mapping):
        return None
    shapes = _list_output_shapes(graph)
    targets = [name for name in domain if name not in graph.inputs and domain[name] == ONE_HOT]
    if len(targets) != 1 or len(shapes) != 1 or not shapes[0]:
        return None
    return {targets[0]: np.eye(shapes[0][-1])[0]}


def check_target_domains(
    loss: str | None, targets: Mapping[str, Domain], domains: Mapping[str, Domain]
) -> None:
    """Raise DataError if the domain of a target contains a value that the loss does not accept."""
    for name, classes in targets.items():
        for value in domains.get(name, ()) if domains.get(name) != ONE_HOT else ():
            what = f"a value of the domain of {name!r}"
            if loss and parse_loss_name(loss) == SOFTMAX:
                check_class_indices(value, len(classes), what, sample=False)
            elif loss:
                check_target(loss, value, what, sample=False)


def infer_domains(graph: ExpressionGraph, exclude: Collection[str]) -> dict[str, Inference]:
    """Infer which inputs of a graph are labels of a loss formula, and infer their domains.

    Args:
        graph: the graph.
        exclude: inputs in the gradient, and inputs with a domain or a fixed value.

    >>> import cgprimer
    >>> text = "input x, y = 1; p = sigmoid(w*x); l = -(y*log(p) + (1 - y)*log(1 - p))"
    >>> {name: one.domain for name, one in infer_domains(cgprimer.parse(text), ()).items()}
    {'y': (0.0, 1.0)}
    """
    primal = tape(graph)
    users: dict[int, list[int]] = {}
    for index, (_, operands) in enumerate(primal.instructions, len(primal.leaves)):
        for operand in operands:
            users.setdefault(operand, []).append(index)
    inferences = {}
    scalars = []
    for name in graph.inputs:
        if name not in exclude:
            uses = _InputUses(primal, users, primal.index(name))
            if candidate := uses.infer_domain(declared=name in graph.values):
                inferences[name] = _describe_inference(graph, name, *candidate)
            elif uses.is_scalar_label:
                scalars.append(name)
    if len(scalars) > 1 and domain_contains(
        ONE_HOT, [graph.values.get(name) or 0.0 for name in scalars]
    ):
        names = ",".join(scalars)
        note = f"{join_names(scalars)} are sampled as real numbers; if they form a one-hot vector"
        keep = f"make them one array, or keep them (--keep {names})"
        inferences[scalars[0]] = Inference(None, f"{note}, {keep}")
    return inferences


def _describe_inference(graph: ExpressionGraph, name: str, domain: Domain, loss: str) -> Inference:
    """Return an inferred domain (None if it excludes the declared value) with a user note."""
    text = "one-hot vectors" if domain == ONE_HOT else format_domain(domain)
    if name in graph.values and not domain_contains(
        domain, np.asarray(graph.values[name]).tolist()
    ):
        why = (
            f"its declared value is not in {text}"
            if domain != ONE_HOT
            else "its declared value is not one-hot"
        )
        note = f"{name} is sampled as real numbers, because {why}; --domain (domain=) changes this"
        return Inference(None, note)
    override = "--domain or --keep (domain=, keep=) overrides this"
    return Inference(domain, f"{name} is sampled from {text}, inferred from the {loss}; {override}")


@dataclass
class _InputUses:
    """The instructions on a tape that use an input, which show whether the input is a label.

    Attributes:
        primal: the tape.
        users: the results of the instructions that use each value.
        source: the index of the input.
        factors: the kinds of values that multiply logarithms: ``label`` or ``complement``.
        logarithms: the logarithms that are multiplied by the label or its complement.
        kinds: the kind of each value that depends on the input: the ``label``, its ``complement``
            1 - y, a ``margin`` t*score, a ``slack`` 1 - t*score, or part of the ``loss``.
        is_scalar_label: whether the input is a scalar that multiplies logarithms, such as the label
            of one of several classes.
    """

    primal: Tape
    users: Mapping[int, list[int]]
    source: int
    factors: set[str] = field(default_factory=set)
    logarithms: list[int] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)
    is_scalar_label: bool = False

    def infer_domain(self, *, declared: bool) -> tuple[Domain, str] | None:
        """Infer the domain and the loss name of a label; None if the input is not a label."""
        self.kinds[self.source] = "label"
        pending = list(self.users.get(self.source, ()))  # sorted, as a heap is
        used = set[str]()
        while pending:
            index = heappop(pending)
            if index in self.kinds:
                continue
            primitive, operands = self.primal.instructions[index - len(self.primal.leaves)]
            kind = self._classify_instruction(operator_name(primitive), operands)
            if not kind:
                return None
            self.kinds[index] = kind
            used.add(kind)
            for user in self.users.get(index, ()):
                heappush(pending, user)
        if "loss" not in used or any(
            self.kinds.get(output, "loss") != "loss" for output in self.primal.outputs.values()
        ):
            return None
        if not self.factors:
            return (SIGNS, "hinge loss") if declared else None
        if "slack" in used or "margin" in used:
            return None
        if self.factors == {"label", "complement"}:
            return ZERO_ONE, "cross-entropy"
        classes = (self.primal.shapes[self.source] or (1,))[-1]
        certain = declared or any(map(self._is_softmax, self.logarithms))
        if self.factors == {"label"} and classes > 1 and certain:
            return ONE_HOT, "cross-entropy"
        self.is_scalar_label = self.factors == {"label"} and classes == 1
        return None

    def _classify_instruction(self, primitive: str, operands: tuple[int, ...]) -> str:
        """Return the role of an instruction in a loss formula, such as ``slack``, or ``""``."""
        kinds = [self.kinds.get(operand, "") for operand in operands]
        kind = max(kinds, key=len) if len({*kinds} - {""}) == 1 else ""
        others = [o for o, kind in zip(operands, kinds, strict=True) if not kind]
        scaled = primitive in ("mul", "div") and all(map(self._is_constant, others))
        if kind == "loss":
            return "loss" if primitive in _SUMS or scaled else ""
        if primitive == "neg" or primitive in _REARRANGEMENTS:
            return kind
        if primitive == "sub" and kind == "label" and self._is_constant(operands[0], 1.0):
            return "complement"
        if kind in ("label", "complement") and len(others) == 1:
            return self._classify_product(primitive, kind, kinds, others[0], scaled=scaled)
        if kind == "margin":
            is_slack = primitive == "add" or (primitive == "sub" and kinds[1] == kind)
            return "slack" if is_slack and any(self._is_constant(o, 1.0) for o in others) else ""
        hinge = primitive == "relu" or (
            primitive == "max" and any(self._is_constant(o, 0.0) for o in others)
        )
        return "loss" if kind == "slack" and hinge else ""

    def _classify_product(
        self, primitive: str, kind: str, kinds: list[str], other: int, *, scaled: bool
    ) -> str:
        """Return the role of a product of a label (or its complement) and another value."""
        logarithm = primitive == "xlogy" and bool(kinds[0])
        if primitive in ("mul", "matmul") and self._is_logarithm(other):
            logarithm = True
        if logarithm:
            self.factors.add(kind)
            self.logarithms.append(other)
            return "loss"
        if scaled:
            return kind
        is_score = primitive == "mul" and kind == "label" and self._is_score(other)
        return "margin" if is_score else ""

    def _is_constant(self, index: int, value: float | None = None) -> bool:
        """Return whether a value on the tape is a constant, equal to ``value`` if requested."""
        instruction = self.primal.instruction(index)
        if instruction is not None:
            kind = operator_name(instruction.primitive)
            return kind in _REARRANGEMENTS and self._is_constant(instruction.operands[0], value)
        leaf = self.primal.leaves[index]
        return leaf.kind == "constant" and value in (None, leaf.value)

    def _iterate_ancestors(
        self, index: int, through: Collection[str] | None = None
    ) -> Iterator[int]:
        """Yield a value and its ancestors on the tape, following only primitives in ``through``."""
        pending, seen = [index], {index}
        while pending:
            current = pending.pop()
            yield current
            instruction = self.primal.instruction(current)
            kind = operator_name(instruction.primitive) if instruction else ""
            if instruction and (through is None or kind in through):
                pending += [o for o in instruction.operands if o not in seen]
                seen.update(instruction.operands)

    def _list_primitives(self, index: int, through: Collection[str] | None = None) -> set[str]:
        """Return the names of the primitives that compute a value and its ancestors."""
        instructions = map(self.primal.instruction, self._iterate_ancestors(index, through))
        return {operator_name(i.primitive) for i in instructions if i}

    def _is_logarithm(self, index: int) -> bool:
        """Return whether a value on the tape is a logarithm or a sum of logarithms."""
        return not _LOGARITHMS.isdisjoint(self._list_primitives(index, _SUMS))

    def _is_softmax(self, index: int) -> bool:
        """Return whether a value on the tape is computed from exponentials and a sum."""
        return {"exp", "sum"} <= self._list_primitives(index)

    def _is_score(self, index: int) -> bool:
        """Return whether a value on the tape depends on both inputs and parameters."""
        leaves = [i for i in self._iterate_ancestors(index) if i < len(self.primal.leaves)]
        return {"column", "scalar"} <= {self.primal.leaves[i].kind for i in leaves}


# --- restrictions --------------------------------------------------------------------------------


class Restrictions(NamedTuple):
    """The domains and fixed inputs that restrict how the inputs of a graph are sampled.

    Attributes:
        domains: the domains of the inputs that are sampled from a set of values.
        fixed_inputs: inputs that stay at their declared values.
        notes: a sentence for each input whose domain was inferred.
    """

    domains: dict[str, Domain]
    fixed_inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def resolve_restrictions(
    graph: ExpressionGraph,
    keep: Sequence[str] | str = (),
    domain: Mapping[str, Any] | None = None,
    *,
    targets: Mapping[str, Domain] = MappingProxyType({}),
    wrt: Collection[str] = (),
) -> Restrictions:
    """Resolve the domains and fixed inputs that restrict how the inputs of a graph are sampled.

    Arguments take precedence over declarations, declarations over the targets of a named loss, and
    targets over domains inferred from a loss formula in the graph.

    Args:
        graph: the graph, with its loss.
        keep: inputs that stay at their declared values.
        domain: for each name a set of numbers, or ``"one-hot"``.
        targets: domains of the targets of the loss.
        wrt: the names in the gradient, whose domains are not inferred.

    Raises:
        UsageError: a name is not an input, a kept input has no declared value, or a domain is not
            valid.
    """
    fixed = resolve_kept_inputs(graph, keep)
    check_disjoint(fixed, domain or ())
    domains = {**targets, **resolve_input_domains(graph, domain)}
    inferred = infer_domains(graph, {*domains, *fixed, *wrt})
    domains |= {
        name: inference.domain
        for name, inference in inferred.items()
        if inference.domain is not None
    }
    domains = {name: values for name, values in domains.items() if name not in fixed}
    return Restrictions(domains, fixed, tuple(inference.note for inference in inferred.values()))
