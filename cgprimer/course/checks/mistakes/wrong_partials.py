"""Mistakes in partial derivatives: wrong rules, rules for two operands, wrong points, constants.

The wrong rules of functions are the rows of :mod:`~.wrong_rules`. The functions in this module
apply these rows to the instructions of a graph, and predict what a row cannot state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from cgprimer.core.operations import RESULT, find_primitive
from cgprimer.core.operations.primitive_registry import parse_partial
from cgprimer.course.checks.mistakes.differentiated_tape import Edge
from cgprimer.course.checks.mistakes.gradient_passes import (
    GradientPasses,
    PassPrediction,
    PredictByPasses,
)
from cgprimer.course.checks.mistakes.missing_factors import is_function
from cgprimer.course.checks.mistakes.reverse_rules import (
    MovePartials,
    OmitEdges,
    ReplacePartials,
    ReverseRules,
)
from cgprimer.course.checks.mistakes.wrong_rules import (
    DEGREES,
    EXPONENT,
    PRODUCT,
    QUOTIENT,
    WRONG_RULES,
    WrongRule,
)
from cgprimer.errors import join_names
from cgprimer.expressions import unparse

_LINEAR = {"add", "sub", "mul", "div", "neg", "copy", "exp", "relu", "max", "min", "where",
           "clamp", "stop_gradient", "sign", "heaviside", "step", "less", "equal"}  # fmt: skip
_MAX_PRODUCTS = 40  # instructions with two operands that depend on the same name
_MAX_FACTORS = 30  # parameters, and values that may replace their factors


# --- the table of wrong rules --------------------------------------------------------------------


def apply_wrong_rules(mistake: str) -> PredictByPasses:
    """Return a function that predicts the gradients for each wrong derivative rule of a mistake."""

    def predict(passes: GradientPasses) -> Iterator[PassPrediction]:
        """Predict the gradients for each wrong rule, with a message for the student."""
        if mistake == DEGREES:
            yield from _convert_all_angles(passes)
        if mistake == EXPONENT:
            yield from _omit_terms(passes, "pow")
        elif mistake in (PRODUCT, QUOTIENT):
            yield from _apply_wrong_product_rule(passes, "mul" if mistake == PRODUCT else "div")
        for primitive, heads in _group_by_primitive(passes).items():
            for rule in WRONG_RULES:
                if (rule.primitive, rule.mistake) == (primitive, mistake):
                    yield from _apply_rule(passes, rule, heads)

    return predict


def _group_by_primitive(passes: GradientPasses) -> dict[str, list[int]]:
    """Group the instructions that have an adjoint by primitive."""
    groups: dict[str, list[int]] = {}
    for head in passes.region:
        primitive = passes.instruction(head).primitive
        if isinstance(primitive, str):
            groups.setdefault(primitive, []).append(head)
    return groups


def _apply_rule(
    passes: GradientPasses, rule: WrongRule, heads: Iterable[int]
) -> Iterator[PassPrediction]:
    """Predict the gradients if a wrong rule is applied to one, several or all instructions."""
    matching = [head for head in heads if _is_applicable(passes, head, rule.positions)]
    for group, description in passes.group_instructions(matching).items():
        rules = _replace_partials(passes, [(rule, group)])
        yield f"{description} is differentiated as {rule.message}", passes.gradient(rules)


def _replace_partials(
    passes: GradientPasses, choices: Iterable[tuple[WrongRule, Collection[int]]]
) -> ReverseRules:
    """Return reverse-mode rules with wrong partial derivatives for some instructions.

    Args:
        passes: the reverse passes of a question.
        choices: wrong rules, each with the instructions that it applies to.
    """
    choices = [*choices]
    values, forward = passes.values, None
    if choices[0][0].value:
        changes = {
            head: partial(passes.emit_formula, rule.value)
            for rule, heads in choices
            for head in heads
        }
        values = forward = passes.recompute(changes)
    partials = {}
    for rule, heads in choices:
        for head in heads:
            operands = tuple([values[o] for o in passes.instruction(head).operands])
            for edge in passes.edges_to(head):
                if edge.position in rule.positions:
                    text = rule.partials[edge.position]
                    partials[edge] = passes.emit_formula(text, operands, values[head])
    return ReplacePartials(partials, forward=forward)


def _convert_all_angles(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the arguments of sin, cos and tan are taken to be in degrees."""
    rules = {}
    heads = _group_by_primitive(passes)
    for primitive in heads:
        matching = [r for r in WRONG_RULES if (r.primitive, r.mistake) == (primitive, DEGREES)]
        if matching:
            rules[primitive] = matching
    for choice in zip(*rules.values(), strict=True) if len(rules) > 1 else ():
        changed = _replace_partials(passes, [(rule, heads[rule.primitive]) for rule in choice])
        message = f"{join_names(rules)} are differentiated as {choice[0].message}"
        yield message, passes.gradient(changed)


def _is_applicable(passes: GradientPasses, head: int, positions: Collection[int]) -> bool:
    """Return whether a wrong rule for operands at the given positions applies to an instruction.

    A rule for one operand of a power requires a constant as the other operand.
    """
    primitive = passes.instruction(head).primitive
    active = [edge.position for edge in passes.edges_to(head)]
    if primitive == "pow":
        return active == [*positions] or (1 in positions and 1 in active)
    if primitive == "div" and len(positions) == 2:
        return len(active) == 2  # a constant needs no quotient rule
    return any(position in active for position in positions)


# --- products, quotients and powers of two active operands ---------------------------------------


def _find_products(passes: GradientPasses) -> list[int]:
    """Find products, quotients and powers in which both operands depend on the same variable."""
    return [
        head
        for head in passes.region
        for primitive, operands in [passes.instruction(head)]
        if primitive in ("mul", "div", "pow") and passes.find_common_sources(operands)
    ]


def _apply_wrong_product_rule(passes: GradientPasses, primitive: str) -> Iterator[PassPrediction]:
    """Predict the gradients for a wrong product or quotient rule, such as ``(f*g)' = f'*g'``."""
    products = [h for h in _find_products(passes) if passes.instruction(h).primitive == primitive]
    if primitive == "mul" and len(products) > 1:
        for position in (0, 1):
            edges = {e for h in products for e in passes.edges_to(h) if e.position == position}
            message = "one of the two terms is missing in the derivative of each product"
            yield message, passes.gradient(OmitEdges(edges))
    for head in _find_products(passes)[:_MAX_PRODUCTS]:
        if passes.instruction(head).primitive == primitive:
            yield from _omit_terms(passes, primitive, [head])
            yield from _combine_derivatives(passes, head)


def _omit_terms(
    passes: GradientPasses, primitive: str, heads: Iterable[int] | None = None
) -> Iterator[PassPrediction]:
    """Predict the gradients if a term of a product, quotient or power rule is omitted."""
    for head in _find_products(passes)[:_MAX_PRODUCTS] if heads is None else heads:
        name, operands = passes.instruction(head)
        if name != primitive:
            continue
        names = passes.find_common_sources(operands)
        for edge in reversed(passes.edges_to(head)):
            gradient = passes.gradient(OmitEdges({edge}))
            yield _describe_missing_term(passes, edge), {n: gradient[n] for n in names}


def _describe_missing_term(passes: GradientPasses, edge: Edge) -> str:
    """Describe to the student which term of a product, quotient or power rule is missing."""
    operation = passes.format_operation(edge.head)
    if passes.instruction(edge.head).primitive == "pow":
        constant = ("base", "exponent")[edge.position]
        return f"{operation} is differentiated as if its {constant} were constant"
    operand = passes.format_value(edge.tail)
    return f"in the derivative of {operation} the term with the derivative of {operand} is missing"


def _combine_derivatives(passes: GradientPasses, head: int) -> Iterator[PassPrediction]:
    """Predict the gradients for the wrong rules ``(f*g)' = f'*g'`` and ``(f/g)' = f'/g'``."""
    adjoint = passes.adjoints.get(head)
    if adjoint is None:
        return
    primitive, operands = passes.instruction(head)
    remaining = passes.gradient(OmitEdges({*passes.edges_to(head)}))
    first, second = (passes.gradient(ReverseRules(roots=(operand,))) for operand in operands)
    gradient, emit = {}, passes.builder.emit
    for name in passes.find_common_sources(operands):
        term = emit(primitive, first[name], second[name])
        gradient[name] = emit("add", remaining[name], emit("mul", adjoint, term))
    kind = "product" if primitive == "mul" else "quotient"
    operation = passes.format_operation(head)
    yield f"{operation} is differentiated as the {kind} of the derivatives", gradient


# --- functions and constants that are not differentiated -----------------------------------------


def keep_functions(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if a function or a constant multiple is not differentiated."""
    for primitive, group in _group_by_primitive(passes).items():
        if primitive in _LINEAR:
            continue
        for heads, description in passes.group_instructions(group).items():
            partials = {e: passes.values[head] for head in heads for e in passes.edges_to(head)}
            message = f"{description} is used instead of its derivative"
            yield message, passes.gradient(ReplacePartials(partials))
    for edge, _ in _find_constant_operands(passes):
        is_multiple = passes.instruction(edge.head).primitive == "mul"
        if is_multiple and edge.tail < len(passes.tape.leaves):
            message = f"{passes.format_operation(edge.head)} is used instead of its derivative"
            rules = ReplacePartials({edge: passes.values[edge.head]})
            yield message, passes.gradient(rules)


def keep_constant_terms(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the derivative of a sum still contains its constant term."""
    for edge, constant in _find_constant_operands(passes):
        primitive = passes.instruction(edge.head).primitive
        if primitive == "mul":
            continue
        adjoint, emit = passes.adjoints[edge.head], passes.builder.emit
        term = emit("mul", adjoint, passes.values[constant])
        operation = "sub" if primitive == "sub" and edge.position == 0 else "add"
        correct = passes.correct_gradient
        names = passes.find_common_sources([edge.head])
        operation_text = passes.format_operation(edge.head)
        message = f"the constant term of {operation_text} is kept in the derivative"
        yield message, {name: emit(operation, correct[name], term) for name in names}


def _find_constant_operands(passes: GradientPasses) -> Iterator[tuple[Edge, int]]:
    """Find sums and products of a value and a constant; yield the value's edge and the constant."""
    first = len(passes.tape.leaves)
    for head in passes.region:
        primitive, operands = passes.instruction(head)
        if head not in passes.adjoints or primitive not in ("add", "sub", "mul"):
            continue
        constants = [o for o in operands if o < first and passes.tape.leaves[o].kind == "constant"]
        if len(constants) == 1:
            yield passes.edges_to(head)[0], constants[0]


# --- partial derivatives at wrong points ---------------------------------------------------------


def differentiate_at_inner_operands(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if ``f'(x)`` is used instead of ``f'(g(x))``."""
    values = passes.values
    for head, primitive in _find_outer_functions(passes):
        operands = passes.instruction(head).operands
        description = passes.format_instruction(head)
        inner = passes.format_value(operands[0])
        for operand in passes.list_operands_below(operands[0]):
            wrong = (values[operand], *(values[o] for o in operands[1:]))
            rules = MovePartials({head: (wrong, passes.builder.emit(primitive, *wrong))})
            yield (
                f"the derivative of {description} is taken at {passes.format_value(operand)}"
                f" instead of {inner}",
                passes.gradient(rules),
            )
        if len(operands) == 1 and _uses_result(primitive):
            value = values[operands[0]]
            yield (
                f"the derivative of {description} uses {inner} instead of"
                f" {passes.format_value(head)}",
                passes.gradient(MovePartials({head: ((value,), value)})),
            )


def differentiate_at_results(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if ``f'(f(x))`` is used instead of ``f'(x)``."""
    moved: dict[str, dict[int, tuple[tuple[int, ...], int]]] = {}
    for head, primitive in _find_outer_functions(passes):
        operands = passes.instruction(head).operands
        if len(operands) > 1:
            continue
        out = passes.values[head]
        wrong = (out,), passes.builder.emit(primitive, out)
        moved.setdefault(primitive, {})[head] = wrong
        yield (
            f"the derivative of {passes.format_instruction(head)} is taken at"
            f" {passes.format_value(head)}, its value, instead of"
            f" {passes.format_value(operands[0])}",
            passes.gradient(MovePartials({head: wrong})),
        )
    for primitive, heads in moved.items():
        if len(heads) > 1:
            message = f"the derivative of each {primitive} is taken at its value"
            yield message, passes.gradient(MovePartials(heads))


def _find_outer_functions(passes: GradientPasses) -> Iterator[tuple[int, str]]:
    """Yield the index and name of each unary function and of each power with constant exponent."""
    for head in passes.region:
        primitive, operands = passes.instruction(head)
        if not is_function(primitive) or primitive in ("add", "sub", "mul"):
            continue
        if len(operands) == 1 or (primitive == "pow" and not passes.active[operands[1]]):
            yield head, str(primitive)


def _uses_result(primitive: str) -> bool:
    """Return whether the formula for a function's derivative contains the function's result."""
    return RESULT in unparse(parse_partial(find_primitive(primitive).partials[0]))


# --- products with a wrong factor ----------------------------------------------------------------


def replace_factors(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if the derivative of a product is computed with a wrong factor."""
    edges: dict[int, list[Edge]] = {}
    for edge in passes.edges:
        edges.setdefault(edge.tail, []).append(edge)
    values = _list_inputs_and_variables(passes)
    if max(len(passes.sources), len(values)) > _MAX_FACTORS:
        return
    for name, source in passes.sources.items():
        uses = edges.get(source, [])
        if len(uses) != 1 or passes.instruction(uses[0].head).primitive != "mul":
            continue
        head, position, _ = uses[0]
        adjoint = passes.adjoints.get(head)
        if adjoint is None:
            continue
        factor = passes.instruction(head).operands[1 - position]
        operation = passes.format_operation(head)
        for value in values:
            if value != factor:
                message = (
                    f"the derivative of {operation} with respect to {name} is computed as"
                    f" {passes.format_value(value)}"
                )
                yield message, {name: passes.builder.emit("mul", adjoint, passes.values[value])}


def _list_inputs_and_variables(passes: GradientPasses) -> list[int]:
    """Return the indices of the used input elements and of all variables except the output."""
    question, labels = passes.question, passes.tape.labels
    inputs = {n for name in question.graph.inputs for n in question.list_elements(name)}
    elements = [i for i in passes.values if labels.get(i) in inputs]
    return elements + [v for v in passes.list_variables() if v != passes.root]
