"""A formula or a number worked out by hand, against the gradient of a graph; rules as statements.

Nothing of an answer is run: it is read by the package's own parser, and computed with thirty digits
at points of the domain. Equal at all of them is what is said then, and proven only where sympy
finds both formulas equal as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cgprimer.analysis.derivation import size
from cgprimer.analysis.rules import rules, substituted
from cgprimer.core.graph.expression_graph import FrozenDict
from cgprimer.course.checks.check_results import Part, Result
from cgprimer.course.checks.error_tolerances import GOOD
from cgprimer.course.checks.formula_proofs import PROVER
from cgprimer.course.checks.function_statements import is_about_any, with_formulas
from cgprimer.course.checks.gradient_check import GradientCheck, relative_errors
from cgprimer.course.checks.gradient_questions import Points, Question, arguments_at, ask, points
from cgprimer.course.checks.mistake_search import find_mistakes
from cgprimer.course.checks.mistakes.wrong_rules import PRODUCT, QUOTIENT
from cgprimer.course.checks.notation_reader import letters_in, read_formula
from cgprimer.course.checks.written_answers import components, tree_of, values_at
from cgprimer.errors import CgprimerError, DifferentiationError, UsageError, join_names
from cgprimer.expressions import (
    Expression,
    ExpressionGraph,
    Name,
    names_in,
    parse,
    parse_expression,
    substitute,
    unparse,
)

Array = Any
_LARGEST_PROOF = 60  # nodes of both formulas together, for which sympy is asked
_FEW_DIGITS = 3  # of a number: with fewer it may be right by chance
_AT = (0.7, 1.3, 1.9, 0.4, 2.3)  # where a statement is tried first
_COINCIDENCES = (  # that one number may have by chance
    "constant factor", "difference step too large", "difference step too small",
    "derivative at the wrong point", "weight decay added", "weight updated before its use",
    "updated parameter returned", "wrong factor",
)  # fmt: skip
_CONSTANTS = {"e": parse_expression("exp(1)"), "pi": parse_expression("acos(-1)")}
_VALUE = "value_"  # what the formula of a statement is called
_NUMBER = re.compile(r"[+-]?\d*\.?\d*(?:[eE][+-]?\d+)?")
_STATEMENT = re.compile(
    r"\s*(?:d/d(?P<before>\w+)\s*(?P<of>.+)|d\s*(?P<inside>\(.+\))(?:\s*/\s*d(?P<after>\w+))?"
    r"|(?P<dashed>.+)'(?P<behind>\(\s*\w+\s*\))?)\s*"
)


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
    """Check a gradient that was worked out by hand, or a rule that somebody states.

    Args:
        formula: a graph; or a statement such as ``d(coth(x)) = -csch(x)``.
        answer: of a graph, a formula or a number for each component, in the order of `wrt`,
            ``4*x, 6*y``, or by name, ``dx = 4*x, dy = 6*y``. A number is compared at the
            declared values, to the digits that are given.
        of: the variable to differentiate; the only output unless given.
        wrt: with respect to which names; all parameters, or else all inputs, unless given.
        loss: a loss behind the outputs: formulas may use ``target``.
        at: values in the place of declared ones; of a statement, around which to try it.
        keep: inputs that stay at their declared values.
        domain: for inputs the values from which they are sampled, ``{"y": (0, 1)}`` or
            ``{"y": "one-hot"}``, in the place of domains that the graph declares.
        points: at how many points formulas are compared.
        seed: of the points.

    Returns:
        A part for each component: the verdict, the likely mistake, and a point that refutes it.
        Of a graph no right value is said; a statement is refuted with the slope.

    Raises:
        SourceError: the answer cannot be read; a caret shows where.
        UsageError: another number of components, an unknown name.

    >>> graph = parse("input x = 4, y = 5; z = 2*x^2 + 3*y^2")
    >>> print(check_formula(graph, "15, 30"))
    15, 30: 1 of 2 points
      x  wrong: not the slope at the declared values
           at x = 4, y = 5
           yours is 15
      y  right
    >>> print(check_formula("d(coth(x)) = -csch(x)"))
    d(coth(x)) = -csch(x): 0 of 1 points
      d(coth(x))  wrong: coth(x) is differentiated as -1/sinh(u) (wrong derivative of a function)
                    at x = 0.7 the slope is -1.7378, and this formula gives -1.3182
    """
    if isinstance(formula, str):
        if answer is not None:
            raise UsageError("a statement has its answer: d(coth(x)) = -csch(x)^2")
        return _check_statement(formula, at or {}, points, seed, keep=keep, domain=domain)
    if answer is None:
        raise UsageError("what is the answer? A formula or a number for each component")
    if at:
        formula = replace(formula, declared_values=FrozenDict(_point(formula, at)))
    names = wrt or formula.parameters or formula.inputs
    question = ask(formula, of=of, wrt=names, loss=loss, keep=keep, domain=domain)
    trees = components(answer, question)
    result = _checked(question, trees, points, seed)
    return replace(result, submission=answer, notes=question.notes)


def _point(graph: ExpressionGraph, at: Mapping[str, float]) -> dict[str, Any]:
    """Return the values of one point.

    Raises:
        UsageError: a value is not finite, or there are several for one name.
    """
    point = graph.point(at, needed=())
    for name, value in point.items():
        shape = graph.shapes.get(name, ())
        if np.shape(value) != shape:
            raise UsageError(
                f"{name} must have one value, got {np.size(value)}",
                hint="a formula is checked around one point: at={'x': 0.5} (--at x=0.5)",
            )
        if not np.all(np.isfinite(value)):
            raise UsageError(f"{name} must be finite, got {value}")
    return point


def _checked(
    question: Question, trees: Mapping[str, tuple[str, Expression]], count: int, seed: int
) -> Result:
    """The parts of an answer: formulas at all points, numbers at the declared values."""
    drawn = _on_both_sides(question, count, seed)
    declared = len(question.declared) == len(question.arguments)
    own = {e for e, (_, tree) in trees.items() if declared and not names_in(tree)}
    values = {e: values_at(question, tree, drawn) for e, (_, tree) in trees.items()}
    parts: dict[str, Part] = {}
    for one in question.wrt:
        if missing := [e for e in question.elements(one) if e not in trees]:
            parts[one] = Part(
                one, 1.0, 0.0, "not run", message=f"no answer for {join_names(missing)}"
            )
    answered = [n for n in question.wrt if n not in parts]
    for alone in (True, False):
        names = tuple(n for n in answered if alone == ({*question.elements(n)} <= own))
        if names:
            asked = replace(question, wrt=names)
            here = _about(asked, drawn)
            found = _numbers(asked, _first(here), trees) if alone else ()
            parts |= {p.name: p for p in found or _formulas(asked, here, trees, values)}
    return Result("formula", "", tuple(parts[name] for name in question.wrt))


def _formulas(
    question: Question,
    drawn: Points,
    trees: Mapping[str, tuple[str, Expression]],
    values: Mapping[str, Array],
) -> tuple[Part, ...]:
    """The verdicts on formulas; what is right is proven where that is quick."""
    rows = [arguments_at(question, values, k, question.wrt) for k in range(len(drawn))]
    found = []
    for part in GradientCheck(question, drawn).verdict(rows).parts:
        made = part
        if part.verdict == "right" and not part.message:
            equal = f"equal at all {len(drawn)} points tried"
            said = "proven equal" if _proven(question, part.name, trees) else equal
            made = replace(part, message=said)
        elif part.verdict == "suspicious" and not _has_decimals(question, part.name, trees):
            made = replace(part, verdict="wrong", points=0.0)
        found.append(made)
    return tuple(found)


def _has_decimals(
    question: Question, name: str, trees: Mapping[str, tuple[str, Expression]]
) -> bool:
    """Return whether an answer has a decimal number, which may have been rounded."""
    texts = [trees[element][0] for element in question.elements(name)]
    return any(re.search(r"\.\d", text) for text in texts)


def _numbers(
    question: Question, here: Points, trees: Mapping[str, tuple[str, Expression]]
) -> tuple[Part, ...]:
    """The verdicts on numbers at the declared values, to the digits that are given."""
    for name in question.arguments:
        own = [float(here.given[e][0]) for e in question.elements(name)]
        if not np.array_equal(own, np.ravel(question.graph.values[name])):
            what = f"at the declared values {question.of} has no slope"
            raise UsageError(what, hint="numbers are compared there: other values, or formulas")
    theirs = {e: values_at(question, trees[e][1], here) for e in question.sources}
    bad = {}
    for element, value in theirs.items():
        error = float(relative_errors(value, here.right[element], here.noise[element])[0])
        near = abs(float(value[0] - here.right[element][0])) <= _last_place(trees[element][0])
        if error > GOOD and not near:
            bad[element] = error
    known = find_mistakes(question, here, theirs, bad)
    where = "at " + join_names(f"{element} = {v[0]:g}" for element, v in here.given.items())
    found = []
    for name in question.wrt:
        wrong = [e for e in question.elements(name) if e in bad]
        if not wrong:
            found.append(Part(name, 1.0, 1.0, "right"))
            continue
        named = known.get(wrong[0])
        if named and named.name in _COINCIDENCES:
            named = None
        said = "not the slope at the declared values"
        if named:
            others = [name for name in named.alternatives if name not in _COINCIDENCES]
            said = named.message + (f" (it may as well be: {', '.join(others)})" if others else "")
        evidence = (where, f"yours is {trees[wrong[0]][0]}")
        mistake = named.name if named else ""
        found.append(Part(name, 1.0, 0.0, "wrong", mistake, said, evidence))
    return tuple(found)


def _last_place(text: str) -> float:
    """One unit in the last digit of a decimal number; 0 where it has too few to tell."""
    if not _NUMBER.fullmatch(text.strip()) or "." not in text:
        return 0.0
    mantissa, _, power = text.lower().strip().partition("e")
    digits = mantissa.lstrip("+-0.").replace(".", "")
    if len(digits) < _FEW_DIGITS:
        return 0.0
    return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def _on_both_sides(question: Question, count: int, seed: int) -> Points:
    """Points around the declared values and around their opposites: signs show what is missing.

    Raises:
        DifferentiationError: there are none.
    """
    graph = question.graph
    opposite = {n: (-np.asarray(v, float)).tolist() for n, v in graph.values.items()}
    opposite |= {name: graph.values[name] for name in question.kept}
    other = replace(question, graph=replace(graph, declared_values=FrozenDict(opposite)))
    found = []
    for side, many in ((question, count - count // 2), (other, count // 2)):
        try:
            found += [points(side, many, seed)] if many else []
        except DifferentiationError as error:
            refused = error
    if not found:
        raise refused

    def joined(what: str) -> dict[str, Array]:
        of = [getattr(one, what) for one in found]
        return {name: np.concatenate([one[name] for one in of], axis=-1) for name in of[0]}

    return Points(
        joined("given"), np.concatenate([one.value for one in found]), joined("right"),
        joined("noise"), np.concatenate([one.smooth for one in found]),
        called=False,
    )  # fmt: skip


def _about(question: Question, drawn: Points) -> Points:
    """What is right at the points, of the names that a question has."""
    wanted = {*question.sources}
    right = {e: v for e, v in drawn.right.items() if e in wanted}
    noise = {e: v for e, v in drawn.noise.items() if e in wanted or e not in drawn.right}
    return replace(drawn, right=right, noise=noise)


def _first(drawn: Points) -> Points:
    """The first point alone: the declared values, where there are."""

    def first(of: Mapping[str, Array]) -> dict[str, Array]:
        return {name: value[..., :1] for name, value in of.items()}

    return replace(
        drawn, given=first(drawn.given), value=drawn.value[:1], right=first(drawn.right),
        noise=first(drawn.noise), smooth=drawn.smooth[:1],
    )  # fmt: skip


def _proven(question: Question, name: str, trees: Mapping[str, tuple[str, Expression]]) -> bool:
    """Whether sympy finds a formula equal to the derivative; False where that might take long."""
    if question.graph.shapes or question.loss:
        return False
    try:
        inner = {n: tree for n, tree in question.graph.definitions.items() if n != name}
        if size(substituted(Name(question.of), inner)) > _LARGEST_PROOF:
            return False
        ours = rules(question.graph, name, of=question.of, inner="substitute").derivative
        theirs = substituted(trees[name][1], inner)
        if size(ours) + size(theirs) > _LARGEST_PROOF:
            return False
        names = [*question.graph.variables, *question.graph.parameters]
        return PROVER.equal(unparse(ours), unparse(theirs), names)
    except CgprimerError:
        return False  # no rule for it


# --- statements ----------------------------------------------------------------------------------


def _check_statement(
    text: str, at: Mapping[str, float], count: int, seed: int, **limits: Any
) -> Result:
    """A derivative that somebody states for a formula."""
    left, equals, right = text.partition("=")
    read = _STATEMENT.fullmatch(left)
    if not equals or not right.strip() or not read:
        raise UsageError(
            f"{text!r} is no statement about a derivative",
            hint="write d(coth(x)) = -csch(x)^2, or d/dx(x*y) = y, or sin' = cos",
        )
    body = read["of"] or read["inside"] or read["dashed"] + (read["behind"] or "")
    wrt = read["before"] or read["after"]
    functions, variable = "", ""
    if is_about_any(body, right):
        body, right, functions = with_formulas(body, right)
        wrt = wrt or "x"
    elif read["dashed"] and (wrt or "x") not in letters_in(body):
        variable = wrt or "x"
    tree = _left_side(body, right, wrt, variable)
    tree = substitute(tree, {n: v for n, v in _CONSTANTS.items() if n != wrt})
    names = [*names_in(tree)]
    if wrt is None:
        wrt = "x" if "x" in names else names[0] if len(names) == 1 else None
    if wrt not in names:
        hint = "write d/dx(...), with one of: " + ", ".join(names) if names else "there is no name"
        raise UsageError(f"the derivative of {unparse(tree)} by what?", hint=hint)
    ordered = [wrt, *(n for n in names if n != wrt)]
    usual = {name: _AT[k % len(_AT)] + k // len(_AT) for k, name in enumerate(ordered)}
    graph = parse(f"input {', '.join(ordered)}; {_VALUE} = {unparse(tree)}")
    graph = replace(graph, declared_values=FrozenDict(usual | _point(graph, at)))
    question = ask(graph, wrt=[wrt], **limits)
    name, said = left.strip(), right.strip()
    trees = {wrt: (said, tree_of(said, name, question, variable))}
    try:
        drawn = _on_both_sides(question, count, seed)
    except DifferentiationError:
        what = f"no points were found where {unparse(tree)} has a slope"
        raise DifferentiationError(what, hint=f"say where: at=... (--at {wrt}=21)") from None
    theirs = values_at(question, trees[wrt][1], drawn)
    unfiled = replace(question, graph=replace(graph, declared_values=FrozenDict({})))
    (part,) = _formulas(unfiled, drawn, trees, {wrt: theirs})
    if part.verdict != "right":
        errors = relative_errors(theirs, drawn.right[wrt], drawn.noise[wrt])
        place = int(np.argmax(errors > GOOD))
        where = join_names([f"{n} = {v[place]:g}" for n, v in drawn.given.items()])
        gives = "has no value" if np.isnan(theirs[place]) else f"gives {theirs[place]:.5g}"
        slope = f"the slope is {drawn.right[wrt][place]:.5g}, and this formula {gives}"
        part = replace(part, points=0.0, evidence=(f"at {where} {slope}",))
    message = part.message.replace(f" in {_VALUE}", "")
    if functions:
        proven = part.verdict == "right"
        message = f"{'holds' if proven else 'does not hold'} for {functions}"
        part = replace(part, mistake=part.mistake if part.mistake in (PRODUCT, QUOTIENT) else "")
    return Result("formula", text.strip(), (replace(part, name=name, message=message),))


def _left_side(body: str, right: str, wrt: str | None, variable: str) -> Expression:
    """Return the tree of the function that a statement differentiates.

    Names of several letters are products if all their letters stand alone somewhere in the
    statement, as in ``d(xy)/dx = y``; where nothing else contains ``wrt``, all of them are.
    """
    letters = letters_in(body) | letters_in(right) | {wrt or "x", "e", "pi"}
    tree = read_formula(body, letters, "<left side>", variable=variable)
    if wrt and wrt not in names_in(tree):
        every = letters | {*re.findall(r"[^\W\d_]", body)}
        products = read_formula(body, every, "<left side>", variable=variable)
        tree = products if wrt in names_in(products) else tree
    return tree
