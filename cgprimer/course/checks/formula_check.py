"""Check derivatives that are written by hand: formulas and numbers for a graph, or stated rules.

Answers are read by the package's own parser and evaluated with thirty digits at points of the
domain; nothing of an answer runs as Python. An answer is called equal at all points tried, and
proven equal only if sympy proves both formulas equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cgprimer.analysis.derivation import count_nodes
from cgprimer.analysis.rules import rules, substitute_all
from cgprimer.core.graph.expression_graph import FrozenDict
from cgprimer.course.checks.check_results import Part, Result
from cgprimer.course.checks.derivative_statements import DerivativeStatement, read_statement
from cgprimer.course.checks.error_tolerances import GOOD
from cgprimer.course.checks.formula_proofs import PROVER
from cgprimer.course.checks.formula_values import evaluate_formula
from cgprimer.course.checks.gradient_check import GradientCheck, compute_relative_errors
from cgprimer.course.checks.gradient_questions import Question, build_question
from cgprimer.course.checks.mistake_search import find_mistakes
from cgprimer.course.checks.mistakes.wrong_rules import PRODUCT, QUOTIENT
from cgprimer.course.checks.question_points import Points, choose_points, select_arguments
from cgprimer.course.checks.written_answers import WrittenAnswer, read_answer, read_answers
from cgprimer.errors import CgprimerError, DifferentiationError, UsageError, join_names
from cgprimer.expressions import ExpressionGraph, Name, parse, unparse
from cgprimer.support.type_checks import check_type

Array = Any
Answers = Mapping[str, WrittenAnswer]  #: for each element its answer
_MAX_NODES_OF_PROOF = 60  # of both formulas together
_FIRST_POINT = (0.7, 1.3, 1.9, 0.4, 2.3)  # at which a statement is tried first
_COINCIDENCES = (  # mistakes that predict a single number by chance
    "constant factor", "difference step too large", "difference step too small",
    "derivative at the wrong point", "weight decay added", "weight updated before its use",
    "updated parameter returned", "wrong factor",
)  # fmt: skip
_VALUE = "value_"  # the variable whose formula is the left-hand side of a statement


def check_formula(
    formula: ExpressionGraph | str,
    answer: str | None = None,
    *,
    of: str | None = None,
    wrt: Sequence[str] | str | None = None,
    loss: str | None = None,
    at: Mapping[str, float] | None = None,
    keep: Sequence[str] | str = (),
    domain: Mapping[str, Any] | None = None,
    points: int = 20,
    seed: int = 0,
) -> Result:
    """Check a hand-computed gradient, or a statement about a derivative.

    Args:
        formula: a graph; or a statement such as ``d(coth(x)) = -csch(x)``.
        answer: for a graph, a formula or a number per component, in the order of `wrt`,
            ``4*x, 6*y``, or by name, ``dx = 4*x``. Numbers are compared at the declared values.
        of: the variable to differentiate; the only output unless given.
        wrt: the names to differentiate by; all parameters, or else all inputs, unless given.
        loss: a loss to add after the outputs; formulas may then contain ``target``.
        at: values that replace declared ones; for a statement, the point around which it is tried.
        keep: inputs that stay at their declared values.
        domain: the values of inputs to sample from, ``{"y": (0, 1)}`` or ``{"y": "one-hot"}``.
        points: the number of points at which formulas are compared.
        seed: the random seed of the points.

    Returns:
        A part for each component, without correct values: the verdict, the likely mistake, and a
        point that refutes the answer. A statement is refuted with the correct slope.

    Raises:
        SourceError: the answer cannot be read; a caret shows the position.
        UsageError: the number of components is wrong, or a name is unknown.

    >>> graph = parse("input x = 4, y = 5; z = 2*x^2 + 3*y^2")
    >>> print(check_formula(graph, "15, 30"))
    15, 30: 1 of 2 points
      x  wrong: not the slope at the declared values
           at x = 4, y = 5
           your value is 15
      y  right
    >>> print(check_formula("d(coth(x)) = -csch(x)"))
    d(coth(x)) = -csch(x): 0 of 1 points
      d(coth(x))  wrong: coth(x) is differentiated as -1/sinh(u) (wrong derivative of a function)
                    at x = 0.7 the slope is -1.7378, but this formula gives -1.3182
    """
    hint = "build a graph with cgprimer.parse(text) or cgprimer.load(path)"
    expected = "an ExpressionGraph or a rule as a string"
    check_type("formula", formula, (ExpressionGraph, str), expected, hint=hint)
    check_type("answer", answer, (str, type(None)), "a string such as '4*x, 6*y'")
    if isinstance(formula, str):
        if answer is not None:
            raise UsageError("`answer` must be None for a rule such as d(coth(x)) = -csch(x)^2")
        return _check_statement(formula, at or {}, points, seed, keep=keep, domain=domain)
    if answer is None:
        raise UsageError("answer must contain a formula or a number for each component, got None")
    point = _check_point(formula, at) if at else formula.declared_values
    graph = replace(formula, declared_values=FrozenDict(point))
    names = wrt or formula.parameters or formula.inputs
    question = build_question(graph, of=of, wrt=names, loss=loss, keep=keep, domain=domain)
    parts = _grade_answers(question, read_answers(answer, question), points, seed)
    return Result("formula", answer, parts, notes=question.notes)


def _check_point(graph: ExpressionGraph, at: Mapping[str, float]) -> dict[str, Any]:
    """Validate a single point, and return the values of its inputs and parameters.

    Raises:
        UsageError: a value is not finite, or a name has several values.
    """
    point = graph.point(at, needed=())
    for name, value in point.items():
        shape = graph.shapes.get(name, ())
        if np.shape(value) != shape:
            raise UsageError(
                f"{name} must be a single value, got {np.size(value)} values",
                hint="pass one point, near which values are tested: at={'x': 0.5} (--at x=0.5)",
            )
        if not np.all(np.isfinite(value)):
            raise UsageError(f"{name} must be finite, got {value}")
    return point


# --- answers for a graph -------------------------------------------------------------------------


def _grade_answers(question: Question, answers: Answers, count: int, seed: int) -> tuple[Part, ...]:
    """Grade formulas at all evaluation points, and numeric answers at the declared values."""
    points = _choose_points_on_both_sides(question, count, seed)
    has_declared_point = len(question.declared_names) == len(question.arguments)
    values = {e: evaluate_formula(question, answers[e].tree, points) for e in answers}
    parts: dict[str, Part] = {}
    numeric, symbolic = [], []
    for name in question.wrt:
        elements = question.list_elements(name)
        if missing := [e for e in elements if e not in answers]:
            message = f"no answer for {join_names(missing)}"
            parts[name] = Part(name, 1.0, 0.0, "not run", message=message)
        elif has_declared_point and all(answers[e].is_number for e in elements):
            numeric.append(name)
        else:
            symbolic.append(name)
    if numeric:
        part_of_question = replace(question, wrt=tuple(numeric))
        first_point = _select_first_point(_select_names(part_of_question, points))
        graded = _grade_numbers(part_of_question, first_point, answers)
        parts |= {part.name: part for part in graded}
    if symbolic:
        part_of_question = replace(question, wrt=tuple(symbolic))
        selected = _select_names(part_of_question, points)
        graded = _grade_formulas(part_of_question, selected, answers, values)
        parts |= {part.name: part for part in graded}
    return tuple(parts[name] for name in question.wrt)


def _grade_formulas(
    question: Question, points: Points, answers: Answers, values: Mapping[str, Array]
) -> tuple[Part, ...]:
    """Grade formulas at all evaluation points; try to prove short, correct formulas with sympy."""
    rows = [select_arguments(question, values, k, question.wrt) for k in range(len(points))]
    parts = []
    for part in GradientCheck(question, points).grade(rows).parts:
        elements = question.list_elements(part.name)
        if part.verdict == "right" and not part.message:
            message = f"equal at all {len(points)} points tried"
            if _is_proven(question, part.name, answers):
                message = "proven equal"
            parts.append(replace(part, message=message))
        elif part.verdict == "suspicious" and not any(answers[e].has_decimals for e in elements):
            parts.append(replace(part, verdict="wrong", points=0.0))
        else:
            parts.append(part)
    return tuple(parts)


def _grade_numbers(question: Question, point: Points, answers: Answers) -> tuple[Part, ...]:
    """Grade numeric answers at the declared values, to the precision of their last digit."""
    for name in question.arguments:
        declared = [float(point.arguments[e][0]) for e in question.list_elements(name)]
        if not np.array_equal(declared, np.ravel(question.graph.values[name])):
            raise UsageError(
                f"{question.of} is not differentiable at the declared values, at which numeric"
                " answers are checked",
                hint="declare other values, or answer with formulas",
            )
    values = {e: evaluate_formula(question, answers[e].tree, point) for e in question.sources}
    wrong = set()
    for element, value in values.items():
        correct = point.gradient[element]
        error = float(compute_relative_errors(value, correct, point.noise[element])[0])
        is_rounded = abs(float(value[0] - correct[0])) <= answers[element].last_digit_unit
        if error > GOOD and not is_rounded:
            wrong.add(element)
    mistakes = find_mistakes(question, point, values, wrong)
    where = "at " + join_names(f"{e} = {v[0]:g}" for e, v in point.arguments.items())
    parts = []
    for name in question.wrt:
        elements = [e for e in question.list_elements(name) if e in wrong]
        if not elements:
            parts.append(Part(name, 1.0, 1.0, "right"))
            continue
        mistake, message = "", "not the slope at the declared values"
        likely = mistakes.get(elements[0])
        if likely and likely.name not in _COINCIDENCES:
            mistake, message = likely.name, likely.message
            others = [m for m in likely.alternatives if m not in _COINCIDENCES]
            message += f" (other possible mistakes: {', '.join(others)})" if others else ""
        evidence = (where, f"your value is {answers[elements[0]].text}")
        parts.append(Part(name, 1.0, 0.0, "wrong", mistake, message, evidence))
    return tuple(parts)


def _is_proven(question: Question, name: str, answers: Answers) -> bool:
    """Return whether sympy proves that an answer equals the derivative; skip long formulas."""
    if question.graph.shapes or question.loss:
        return False
    try:
        definitions = {n: tree for n, tree in question.graph.definitions.items() if n != name}
        if count_nodes(substitute_all(Name(question.of), definitions)) > _MAX_NODES_OF_PROOF:
            return False
        expected = rules(question.graph, name, of=question.of, inner="substitute").derivative
        answer = substitute_all(answers[name].tree, definitions)
        if count_nodes(expected) + count_nodes(answer) > _MAX_NODES_OF_PROOF:
            return False
        names = [*question.graph.variables, *question.graph.parameters]
        return PROVER.prove_equal(unparse(expected), unparse(answer), names)
    except CgprimerError:
        return False  # a function without a rule


# --- points --------------------------------------------------------------------------------------


def _choose_points_on_both_sides(question: Question, count: int, seed: int) -> Points:
    """Return points near the declared values and near the negated declared values.

    Points with both signs refute formulas with a wrong sign.

    Raises:
        DifferentiationError: the gradient is finite and smooth at too few points.
    """
    graph = question.graph
    opposites = {n: (-np.asarray(v, float)).tolist() for n, v in graph.values.items()}
    opposites |= {name: graph.values[name] for name in question.fixed_inputs}
    mirrored = replace(question, graph=replace(graph, declared_values=FrozenDict(opposites)))
    sets: list[Points] = []
    for side, number in ((question, count - count // 2), (mirrored, count // 2)):
        try:
            sets += [choose_points(side, number, seed)] if number else []
        except DifferentiationError as error:
            failure = error
    if not sets:
        raise failure

    def concatenate(attribute: str) -> dict[str, Array]:
        """Concatenate the values of an attribute over all sets of points, keyed by element."""
        values = [getattr(points, attribute) for points in sets]
        return {name: np.concatenate([v[name] for v in values], axis=-1) for name in values[0]}

    return Points(
        concatenate("arguments"),
        np.concatenate([points.value for points in sets]),
        concatenate("gradient"),
        concatenate("noise"),
        np.concatenate([points.smooth for points in sets]),
        is_sequence=False,
    )


def _select_names(question: Question, points: Points) -> Points:
    """Return the points without the derivatives that the question does not ask for."""
    sources = {*question.sources}
    gradient = {e: v for e, v in points.gradient.items() if e in sources}
    noise = {e: v for e, v in points.noise.items() if e in sources or e not in points.gradient}
    return replace(points, gradient=gradient, noise=noise)


def _select_first_point(points: Points) -> Points:
    """Return only the first point, which has the declared values if all of them exist."""

    def select_first(values: Mapping[str, Array]) -> dict[str, Array]:
        """Return each array reduced to the first point."""
        return {name: value[..., :1] for name, value in values.items()}

    return replace(
        points,
        arguments=select_first(points.arguments),
        value=points.value[:1],
        gradient=select_first(points.gradient),
        noise=select_first(points.noise),
        smooth=points.smooth[:1],
    )


# --- statements ----------------------------------------------------------------------------------


def _check_statement(
    text: str, at: Mapping[str, float], count: int, seed: int, **limits: Any
) -> Result:
    """Grade a statement about a derivative, such as ``sin' = cos``."""
    statement = read_statement(text)
    wrt, tree = statement.wrt, statement.function
    names = [wrt, *(name for name in statement.names if name != wrt)]
    defaults = {
        name: _FIRST_POINT[k % len(_FIRST_POINT)] + k // len(_FIRST_POINT)
        for k, name in enumerate(names)
    }
    graph = parse(f"input {', '.join(names)}; {_VALUE} = {unparse(tree)}")
    graph = replace(graph, declared_values=FrozenDict(defaults | _check_point(graph, at)))
    question = build_question(graph, wrt=[wrt], **limits)
    answer = read_answer(
        statement.answer, statement.name, question, function_argument=statement.function_argument
    )
    try:
        points = _choose_points_on_both_sides(question, count, seed)
    except DifferentiationError:
        message = f"found no points at which {unparse(tree)} is differentiable"
        hint = f"pass a point in the domain: at=... (--at {wrt}=21)"
        raise DifferentiationError(message, hint=hint) from None
    values = evaluate_formula(question, answer.tree, points)
    undeclared = replace(question, graph=replace(graph, declared_values=FrozenDict({})))
    (part,) = _grade_formulas(undeclared, points, {wrt: answer}, {wrt: values})
    if part.verdict != "right":
        evidence = _refute_statement(wrt, values, points)
        part = replace(part, points=0.0, evidence=(evidence,))
    part = _describe_statement(statement, part)
    return Result("formula", text.strip(), (part,))


def _refute_statement(wrt: str, values: Array, points: Points) -> str:
    """Return a sentence that compares the correct slope with the stated slope at a wrong point."""
    correct = points.gradient[wrt]
    errors = compute_relative_errors(values, correct, points.noise[wrt])
    index = int(np.argmax(errors > GOOD))
    where = join_names([f"{n} = {v[index]:g}" for n, v in points.arguments.items()])
    stated = "has no value" if np.isnan(values[index]) else f"gives {values[index]:.5g}"
    return f"at {where} the slope is {correct[index]:.5g}, but this formula {stated}"


def _describe_statement(statement: DerivativeStatement, part: Part) -> Part:
    """Return a graded part with the left-hand side of the statement as its name."""
    message = part.message.replace(f" in {_VALUE}", "")
    if statement.examples:
        holds = "holds" if part.verdict == "right" else "does not hold"
        message = f"{holds} for {statement.examples}"
        part = replace(part, mistake=part.mistake if part.mistake in (PRODUCT, QUOTIENT) else "")
    return replace(part, name=statement.name, message=message)
