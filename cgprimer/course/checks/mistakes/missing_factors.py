"""Mistakes in the factors of the chain rule: a derivative that is missing or occurs twice."""

from __future__ import annotations

from collections.abc import Iterator

from cgprimer.core.loss_expressions import SOFTMAX, parse_loss_name
from cgprimer.course.checks.mistakes.differentiated_tape import Edge, group_values
from cgprimer.course.checks.mistakes.gradient_passes import GradientPasses, PassPrediction
from cgprimer.course.checks.mistakes.reverse_rules import (
    MultiplyProducts,
    OmitPartials,
    RepeatPartials,
    ReverseRules,
    SkipFormulas,
)
from cgprimer.errors import join_names
from cgprimer.expressions import parse_element

_PIECEWISE = {"max", "min", "where", "clamp", "leaky_relu"}
_NOT_FUNCTIONS = {"neg", "copy", "stop_gradient", "sign", "heaviside", "step"}
_ACTIVATIONS = {"sigmoid", "tanh", "sin", "cos", "softplus", "erf"}


def is_function(primitive: object) -> bool:
    """Return whether a unary primitive is a function such as ``sin``, not a negation or step."""
    return isinstance(primitive, str) and primitive not in _NOT_FUNCTIONS


# --- the loss ------------------------------------------------------------------------------------


def omit_loss_derivative(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the derivative of the loss, or one of its factors, is omitted."""
    outputs = passes.question.output.split(",")
    variables = passes.list_variables()
    outputs_of_graph = [v for v in variables if parse_element(passes.tape.labels[v])[0] in outputs]
    message = "the derivative of the loss with respect to {} is missing"
    if outputs_of_graph:
        names = join_names(map(passes.format_value, outputs_of_graph))
        rules = ReverseRules(roots=tuple(outputs_of_graph))
        yield message.format(names), passes.gradient(rules)
    squares = _find_squared_errors(passes, outputs_of_graph)
    for heads in dict.fromkeys((*((h,) for h in squares), tuple(squares))) if squares else ():
        errors = join_names(passes.format_value(squares[h]) for h in heads)
        edges = {edge for h in heads for edge in passes.edges_to(h) if edge.position == 0}
        yield (
            f"the error {errors} is missing in the derivative of its square",
            passes.gradient(OmitPartials(edges)),
        )
    operands = [v for inner in squares.values() for v in passes.instruction(inner).operands]
    predicted = [v for v in operands if v in variables]
    if not outputs_of_graph and len(predicted) == 1:
        names = passes.format_value(predicted[0])
        yield message.format(names), passes.gradient(ReverseRules(roots=(predicted[0],)))


def _find_squared_errors(passes: GradientPasses, outputs: list[int]) -> dict[int, int]:
    """Map the index of each squared error ``(p - y)^2`` in the loss to the index of ``p - y``."""
    tape = passes.tape
    squares = {}
    for head in passes.region:
        is_in_loss = head > max(outputs) if outputs else passes.owner[head] == passes.root
        primitive, operands = passes.instruction(head)
        if is_in_loss and primitive == "pow":
            inner = tape.instruction(operands[0])
            if inner is not None and inner.primitive == "sub":
                squares[head] = operands[0]
    return squares


# --- functions and powers ------------------------------------------------------------------------


def omit_function_derivatives(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the derivatives of one, several or all functions are omitted."""
    for heads, description in _group_functions(passes).items():
        edges = {edge for head in heads for edge in passes.edges_to(head)}
        yield (
            f"the derivative of a function is missing: {description}",
            passes.gradient(OmitPartials(edges)),
        )
    formulas = _find_one_operand_formulas(passes)
    groups = [{v: u} for v, u in formulas.items()]
    for group in [*groups, *([formulas] if len(formulas) > 1 else [])]:
        names = join_names(
            f"{passes.format_value(v)} with respect to {passes.format_value(u)}"
            for v, u in group.items()
        )
        skipped = {v: Edge(v, 0, u) for v, u in group.items()}
        order = []
        for edge in passes.backward_edges:
            if edge.head not in skipped:
                order.append(edge)
            elif edge == passes.edges_to(edge.head)[0]:
                order.append(skipped[edge.head])
        rules = SkipFormulas(frozenset(skipped.values()), order=order)
        yield f"the derivative of {names} is missing", passes.gradient(rules)


def _group_functions(passes: GradientPasses) -> dict[frozenset[int], str]:
    """Group function calls by variable, layer and primitive, and describe each group."""
    functions: dict[int, str] = {}
    for head in passes.region:
        primitive, operands = passes.instruction(head)
        if is_function(primitive) and (len(operands) == 1 or primitive in _PIECEWISE):
            functions[head] = str(primitive)
    groups = {frozenset({head}): f"that of {passes.format_instruction(head)}" for head in functions}
    for variable, heads in passes.group_by_variable(functions):
        names = join_names(dict.fromkeys(functions[h] for h in sorted(heads)))
        groups.setdefault(heads, f"that of {names} in {variable}")
    layers = _count_functions_below(passes, functions)
    for layer, heads in group_values(functions, lambda h: f"{functions[h]} of layer {layers[h]}"):
        names = join_names(passes.find_owner_name(h) for h in sorted(heads))
        groups.setdefault(heads, f"that of each {layer}: {names}")
    for primitive, heads in group_values(functions, functions.__getitem__):
        groups.setdefault(heads, f"that of each {primitive}")
    if functions:
        groups.setdefault(frozenset(functions), "that of each function")
    return groups


def _count_functions_below(passes: GradientPasses, functions: dict[int, str]) -> list[int]:
    """Return, for each value, the maximum number of functions on a path from a leaf to it."""
    counts = [0] * passes.tape.size
    for index in range(passes.tape.size):
        instruction = passes.tape.instruction(index)
        below = max((counts[o] for o in instruction.operands), default=0) if instruction else 0
        counts[index] = below + (index in functions)
    return counts


def _find_one_operand_formulas(passes: GradientPasses) -> dict[int, int]:
    """Map each variable that several operations compute from one operand to this operand."""
    operands: dict[int, int] = {}
    for variable in passes.list_variables():
        edges = [edge for edge in passes.edges if passes.owner[edge.head] == variable]
        tails = {edge.tail for edge in edges if passes.owner[edge.tail] != variable}
        several = len({edge.head for edge in edges}) > 1
        if variable != passes.root and len(tails) == 1 and several:
            operands[variable] = tails.pop()
    return operands


def omit_inner_derivatives(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the derivative of an inner product or power is omitted."""
    for edge in passes.edges:
        if passes.instruction(edge.head).primitive == "mul":
            head, tail = passes.format_value(edge.head), passes.format_value(edge.tail)
            yield (
                f"the derivative of {head} with respect to {tail} is missing",
                passes.gradient(OmitPartials({edge})),
            )
    yield from _omit_powers(passes, inner=True)


def omit_outer_derivatives(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if one or all outer derivatives of the chain rule are omitted."""
    yield from _omit_powers(passes, inner=False)
    for variable in passes.list_variables():
        if variable != passes.root:
            name = passes.tape.labels[variable]
            yield (
                f"this is the derivative of {name}: the factors after it are missing",
                passes.gradient(ReverseRules(roots=(variable,))),
            )


def _omit_powers(passes: GradientPasses, *, inner: bool) -> Iterator[PassPrediction]:
    """Predict the gradients if the derivative of an inner or outer power is omitted."""
    for edge in passes.edges:
        primitive, operands = passes.instruction(edge.head)
        if primitive != "pow" or edge.position != 0 or passes.active[operands[1]]:
            continue
        is_inner = edge.head != passes.root and edge.tail < len(passes.tape.leaves)
        if is_inner == inner:
            power = passes.format_operation(edge.head)
            yield (
                f"the derivative of the power {power} is missing",
                passes.gradient(OmitPartials({edge})),
            )


# --- a factor twice ------------------------------------------------------------------------------


def repeat_activation_derivatives(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if they are multiplied twice by the derivative of an activation."""
    yield from _multiply_logit_derivatives(passes)
    activations: dict[str, list[int]] = {}
    for head in passes.region:
        primitive = passes.instruction(head).primitive
        if primitive in _ACTIVATIONS:
            activations.setdefault(str(primitive), []).append(head)
    for primitive, group in activations.items():
        for heads, description in passes.group_instructions(group).items():
            message = f"the derivative of {description} occurs twice as a factor"
            if primitive == "sigmoid" and any(_is_in_logarithm(passes, head) for head in heads):
                message += (
                    "; p - y is already the derivative of the cross-entropy with respect to the"
                    " operand of the sigmoid"
                )
            edges = {edge for head in heads for edge in passes.edges_to(head)}
            yield message, passes.gradient(RepeatPartials(edges))


def _is_in_logarithm(passes: GradientPasses, value: int) -> bool:
    """Return whether a value, or 1 minus the value, is the operand of a logarithm."""
    users = [edge.head for edge in passes.edges if edge.tail == value]
    users += [edge.head for edge in passes.edges if edge.tail in users]
    return any(passes.instruction(head).primitive in ("log", "xlogy") for head in users)


def _multiply_logit_derivatives(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients with the wrong derivative ``(p - y)*p*(1 - p)`` of a loss of logits."""
    builder, one = passes.builder, passes.builder.constant(1.0)
    factors = {
        logit: builder.emit("mul", probability, builder.emit("sub", one, probability))
        for logit, probability in _emit_probabilities(passes).items()
    }
    products = {edge: factors[edge.tail] for edge in passes.edges if edge.tail in factors}
    if products:
        message = (
            "p - y is already the derivative of the loss with respect to the logits: the factor"
            " p*(1 - p) is wrong"
        )
        yield message, passes.gradient(MultiplyProducts(products))


def _emit_probabilities(passes: GradientPasses) -> dict[int, int]:
    """Emit the softmax or sigmoid of each logit of the loss; return the results, keyed by logit."""
    builder, values = passes.builder, passes.values
    if parse_loss_name(passes.question.loss) == SOFTMAX:
        outputs = passes.question.output.split(",")
        labels = passes.tape.labels
        logits = [v for v in passes.region if parse_element(labels.get(v, ""))[0] in outputs]
        powers = [builder.emit("exp", values[v]) for v in logits]
        total = powers[0] if powers else builder.constant(1.0)
        for power in powers[1:]:
            total = builder.emit("add", total, power)
        quotients = [builder.emit("div", power, total) for power in powers]
        return dict(zip(logits, quotients, strict=True))
    probabilities = {}
    for head in passes.region:
        primitive, operands = passes.instruction(head)
        if primitive == "softplus" and operands[0] in passes.tape.labels:
            probabilities[operands[0]] = builder.emit("sigmoid", values[operands[0]])
    return probabilities
