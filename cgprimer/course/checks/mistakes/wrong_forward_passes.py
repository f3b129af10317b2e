"""Mistakes in the forward pass, and in the weight matrices of the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cgprimer.course.checks.mistakes.gradient_passes import GradientPasses, PassPrediction
from cgprimer.course.checks.mistakes.reverse_rules import ReplacePartials, ReverseRules
from cgprimer.expressions import parse_element
from cgprimer.support.value_names import Element


def omit_biases(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the forward pass omits one bias, or all biases."""
    biases = _find_biases(passes)
    groups: dict[tuple[str, ...], dict[int, str]] = {(name,): biases[name] for name in biases}
    if len(groups) > 1:
        groups[tuple(biases)] = {h: rest for sums in biases.values() for h, rest in sums.items()}
    for names, sums in groups.items():
        changes = {head: partial(passes.emit_formula, rest) for head, rest in sums.items()}
        message = f"the forward pass is computed without {', '.join(names)}"
        yield message, passes.gradient(ReverseRules(forward=passes.recompute(changes)))


def _find_biases(passes: GradientPasses) -> dict[str, dict[int, str]]:
    """Find the sums in which a bias is added, keyed by the name of the bias.

    Returns:
        For each parameter that is added to computed values: the formula of the sum without the
        parameter, keyed by the index of the sum.
    """
    parameters = {*passes.question.graph.parameters}
    first = len(passes.tape.leaves)
    biases: dict[str, dict[int, str]] = {}
    for head in passes.region:
        primitive, operands = passes.instruction(head)
        if primitive not in ("add", "sub"):
            continue
        for position, leaf in enumerate(operands):
            name = parse_element(passes.tape.labels.get(leaf, ""))[0]
            is_bias = leaf < first and name in parameters
            if is_bias and operands[1 - position] >= first:
                rest = "ab"[1 - position]
                is_negative = primitive == "sub" and position == 0
                biases.setdefault(name, {})[head] = f"-{rest}" if is_negative else rest
    return biases


def transpose_weights(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if a weight matrix is transposed by mistake in one of the passes."""
    matrices = _find_square_matrices(passes)
    groups = [(name,) for name in matrices] + ([tuple(matrices)] if len(matrices) > 1 else [])
    for names in groups:
        transposed = {k: v for name in names for k, v in matrices[name].items()}
        partials = {}
        for edge in passes.edges:
            primitive, operands = passes.instruction(edge.head)
            factor = operands[1 - edge.position] if primitive == "mul" else -1
            if factor in transposed:
                partials[edge] = passes.values[transposed[factor]]
        if partials:
            message = f"the backward pass uses {', '.join(names)} instead of its transpose"
            yield message, passes.gradient(ReplacePartials(partials))
    for name, transposed in matrices.items():
        if all(index in passes.values for index in transposed):
            yield from _transpose_in_forward_pass(passes, name, transposed)


def _transpose_in_forward_pass(
    passes: GradientPasses, name: str, transposed: dict[int, int]
) -> Iterator[PassPrediction]:
    """Predict the gradients if the forward pass uses the transpose of a weight matrix.

    The gradient with respect to the matrix may be transposed or not.
    """

    def emit_entry(index: int, operands: tuple[int, ...]) -> int:
        """Return the value of the matrix entry at the transposed position."""
        return passes.values[index]

    forward = passes.recompute({k: partial(emit_entry, v) for k, v in transposed.items()})
    message = f"{name} is transposed in the forward pass"
    gradient = passes.gradient(ReverseRules(forward=forward))
    yield message, gradient
    names = {index: element for element, index in passes.sources.items()}
    exchanged = {
        names[index]: gradient[names[other]]
        for index, other in transposed.items()
        if index in names
    }
    yield message, {**gradient, **exchanged}


def _find_square_matrices(passes: GradientPasses) -> dict[str, dict[int, int]]:
    """Map each entry of a square parameter matrix to the entry at the transposed position.

    Returns:
        For each matrix: the index of entry ``[j,i]``, keyed by the index of entry ``[i,j]``.
    """
    matrices = {}
    for name in passes.question.graph.parameters:
        shape = passes.question.shapes[name]
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            continue
        entries = [(i, j) for i in range(shape[0]) for j in range(shape[0])]
        index = {entry: passes.tape.index(str(Element(name, entry))) for entry in entries}
        matrices[name] = {index[i, j]: index[j, i] for i, j in entries if i != j}
    return matrices
