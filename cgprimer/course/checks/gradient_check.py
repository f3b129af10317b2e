"""Compare a student's gradient function with the correct gradient, and name the likely mistake.

The errors of rounding, of single precision, and of central differences with a good step are
accepted. The bounds of rounding errors are computed along with the gradient; the errors of
difference quotients must be small compared with the derivative's median size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.language.input_domains import ONE_HOT
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.operations.notation import format_domain
from cgprimer.course.checks.answer_validation import GRADIENT
from cgprimer.course.checks.check_results import (
    Failure,
    Part,
    Result,
    Verdict,
    create_failed_result,
)
from cgprimer.course.checks.error_tolerances import (
    FINE,
    GOOD,
    SUSPICIOUS,
    compute_tolerances,
    is_float32,
)
from cgprimer.course.checks.gradient_answers import VALUE_PART, GradientReader, PointAnswers
from cgprimer.course.checks.gradient_questions import VALUE, Question, build_question
from cgprimer.course.checks.mistake_search import Mistake, find_mistakes
from cgprimer.course.checks.mistakes.difference_errors import is_central_difference
from cgprimer.course.checks.question_points import Points, choose_points, select_arguments
from cgprimer.course.checks.sandbox import (
    Limits,
    Request,
    Submission,
    convert_submission,
    run_submission,
)
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_real_number

_CREDIT: dict[Verdict, float] = {"right": 1.0, "suspicious": 0.5}
_CENTRAL = "computed by central differences"
_FLOAT32 = "computed in single precision (float32)"
_AT_A_KINK = "right except at kinks, where any slope between the one-sided slopes is accepted"
_MAX_NAMES = 8  # of a point in a message
DRIVER = Path(__file__).with_name("gradient_driver.py")
Array = Any


@dataclass(frozen=True, eq=False)
class GradientCheck:
    """A gradient check: its question, its evaluation points, and the name of the checked function.

    Attributes:
        question: the question.
        points: the points at which the function is called.
        function: the name of the function.
        value: whether the function returns ``(value, gradient)``.
        tolerance: the largest relative error that is right; None for the default bands.
    """

    question: Question
    points: Points
    function: str = "gradient"
    value: bool = False
    tolerance: float | None = None

    @property
    def possible(self) -> dict[str, float]:
        """The maximum points of each part, keyed by name."""
        return dict.fromkeys(self._elements, 1.0)

    @property
    def _elements(self) -> dict[str, list[str]]:
        """The elements that belong to each part, including the value if students return it."""
        elements = {VALUE_PART: [VALUE]} if self.value else {}
        return elements | {name: self.question.list_elements(name) for name in self.question.wrt}

    def run(self, submission: Submission, limits: Limits | None = None) -> Result:
        """Run a submission and grade its answers."""
        name = "notebook" if isinstance(submission, Mapping) else Path(submission).name
        requests: list[Request] = [
            {
                "call": "call",
                "arguments": [
                    self.function,
                    select_arguments(self.question, self.points.arguments, k),
                ],
            }
            for k in range(len(self.points))
        ]
        answers = run_submission(submission, requests, limits, driver=DRIVER, forms=GRADIENT)
        result = answers.add_run_to(self.grade(answers.values, name))
        return replace(result, notes=(*self.question.notes, *result.notes))

    def grade(self, values: Sequence[Any], submission: str = "") -> Result:
        """Grade the values that a student's function returned at all evaluation points.

        Args:
            values: for each point a value as JSON, or a :class:`Failure`.
            submission: the name of the submission.
        """
        reader = GradientReader(self.question, self.function, self.value)
        answers = [reader.read(value) for value in values]
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        if len(failures) == len(answers):
            return create_failed_result("gradient", submission, self.possible, failures[0])
        parts = self._grade_parts(answers)
        return Result("gradient", submission, parts, failure=failures[0] if failures else None)

    # --- all parts ---------------------------------------------------------------------------

    def _grade_parts(self, answers: Sequence[PointAnswers | Failure]) -> tuple[Part, ...]:
        """Return the verdicts on all parts."""
        question, points = self.question, self.points
        values, failures = self._collect_values(answers)
        tolerances = compute_tolerances(points)
        correct = {**points.gradient, VALUE: points.value}
        errors = {
            e: compute_relative_errors(v, correct[e], tolerances[e]) for e, v in values.items()
        }
        good = self.tolerance or (FINE if question.has_kinks else GOOD)
        bad = [
            e for e, v in values.items() if np.any(errors[e][points.smooth & ~np.isnan(v)] > good)
        ]
        notes: dict[str, str] = {}
        if self.tolerance is None:  # otherwise only the tolerance decides
            notes = self._find_accepted_errors(values, errors, tolerances, bad, good)
        wrong = [e for e in bad if e not in notes and e != VALUE]
        mistakes = find_mistakes(question, points, values, wrong)
        errors |= {e: np.where(points.smooth, 0.0, errors[e]) for e in notes}
        return tuple(
            self._grade_part(
                name,
                {e: values[e] for e in elements},
                errors,
                mistakes,
                failures.get(name),
                next((notes[e] for e in elements if e in notes), ""),
            )
            for name, elements in self._elements.items()
        )

    def _collect_values(
        self, answers: Sequence[PointAnswers | Failure]
    ) -> tuple[dict[str, Array], dict[str, Failure]]:
        """Return the values of each element at all points, and the first failure of each part.

        A missing value is nan.
        """
        values: dict[str, Array] = {}
        failures: dict[str, Failure] = {}
        for name, elements in self._elements.items():
            rows = []
            for answer in answers:
                array = answer if isinstance(answer, Failure) else answer[name]
                if isinstance(array, Failure):
                    failures.setdefault(name, array)
                    array = np.full(len(elements), np.nan)
                rows.append(np.ravel(array))
            values |= dict(zip(elements, np.stack(rows, axis=-1), strict=True))
        return values, failures

    def _find_accepted_errors(
        self,
        values: Mapping[str, Array],
        errors: Mapping[str, Array],
        tolerances: Mapping[str, Array],
        bad: Iterable[str],
        good: float,
    ) -> dict[str, str]:
        """Find the elements whose errors are explained by float32 or central differences.

        Returns:
            A note for each of these elements.
        """
        smooth, notes = self.points.smooth, {}
        for element in bad:
            answers, rounded = values[element], self._gradient_at_float32_points[element]
            float32_errors = compute_relative_errors(answers, rounded, tolerances[element])
            if is_float32(self.points, answers, element) or np.all(float32_errors[smooth] <= good):
                notes[element] = _FLOAT32
            elif (
                element in self.points.arguments
                and np.all(errors[element][smooth] <= SUSPICIOUS)
                and is_central_difference(self.question, self.points, answers, element)
            ):
                notes[element] = _CENTRAL
        return notes

    @cached_property
    def _gradient_at_float32_points(self) -> dict[str, Array]:
        """The correct value and gradient at the points after rounding to single precision."""
        arguments = {
            n: v.astype(np.float32).astype(float) for n, v in self.points.arguments.items()
        }
        value, gradient, _ = self.question.evaluate_gradient(arguments)
        return {**gradient, VALUE: value}

    # --- one part ----------------------------------------------------------------------------

    def _grade_part(
        self,
        name: str,
        values: Mapping[str, Array],
        errors: Mapping[str, Array],
        mistakes: Mapping[str, Mistake],
        failure: Failure | None,
        note: str,
    ) -> Part:
        """Return the verdict on one part; ``note`` is the message for a correct part."""
        smooth = self.points.smooth
        max_errors = {e: float(np.max(errors[e], where=smooth, initial=0.0)) for e in values}
        is_missing = np.all(np.isnan([*values.values()]), axis=0)
        verdict = classify_error(max(max_errors.values()), self.question.has_kinks, self.tolerance)
        if failure and is_missing.all():
            return Part(name, 1.0, 0.0, "wrong", message=str(failure).splitlines()[0])
        if verdict == "right":
            at_kinks = np.max([errors[e] for e in values], axis=0)[~smooth]
            message = _AT_A_KINK if np.any(at_kinks > SUSPICIOUS) else note
            return Part(name, 1.0, 1.0, verdict, message=message)
        explaining = [mistakes[e] for e in values if e in mistakes]
        message = self._describe_errors(explaining, {e: errors[e] for e in values}, max_errors)
        if is_missing.any():
            if len(values) == 1 and not explaining:
                message = ""
            missing = f"value missing or nan at {np.sum(is_missing)} of {len(is_missing)} points"
            message = f"{missing}; {message}" if message else missing
        mistake = explaining[0].name if explaining else ""
        evidence = self._collect_evidence(name, verdict, values, errors, max_errors)
        return Part(name, 1.0, _CREDIT.get(verdict, 0.0), verdict, mistake, message, evidence)

    def _describe_errors(
        self,
        mistakes: Sequence[Mistake],
        errors: Mapping[str, Array],
        max_errors: Mapping[str, float],
    ) -> str:
        """Return a message that names the mistakes, or else counts the correct values."""
        good = self.tolerance or GOOD
        message = "; ".join(dict.fromkeys(mistake.message for mistake in mistakes))
        if mistakes and mistakes[0].alternatives:
            message += f" (other possible mistakes: {', '.join(mistakes[0].alternatives)})"
        if len(errors) > 1:
            wrong = sum(error > good for error in max_errors.values())
            return f"{wrong} of {len(errors)} elements are wrong" + (message and f": {message}")
        if message:
            return message
        (errors_at_points,) = errors.values()
        right = int(np.sum(errors_at_points <= good))
        count = f"right at {right} of {len(errors_at_points)} points"
        return f"{count}; no known mistake explains the errors"

    def _collect_evidence(
        self,
        name: str,
        verdict: Verdict,
        values: Mapping[str, Array],
        errors: Mapping[str, Array],
        max_errors: Mapping[str, float],
    ) -> tuple[str, str]:
        """Return two lines of evidence: the point of the largest error, and the student's value."""
        element = max(max_errors, key=max_errors.__getitem__)
        index = int(np.argmax(np.where(self.points.smooth, errors[element], -1.0)))
        arguments = select_arguments(self.question, self.points.arguments, index)
        point = join_names([f"{n} = {_format_value(v)}" for n, v in arguments.items()], _MAX_NAMES)
        label = "your value" if element in (name, VALUE) else f"your {element}"
        return (
            f"{self._describe_band(verdict)}, at {point}",
            f"{label} is {values[element][index]:.6g}",
        )

    def _describe_band(self, verdict: Verdict) -> str:
        """Describe the range of relative errors that leads to a verdict."""
        good = self.tolerance or GOOD
        if verdict == "suspicious":
            bounds = f"{_format_bound(good)} and {_format_bound(SUSPICIOUS)}"
            return f"the relative error is between {bounds}"
        return f"the relative error is above {_format_bound(max(good, SUSPICIOUS))}"


def classify_error(error: float, kinks: bool = False, tolerance: float | None = None) -> Verdict:
    """Classify a relative error as right, suspicious or wrong.

    An error up to 1e-7 is right, or up to 1e-4 if there are kinks; an error up to 1e-2 is
    suspicious. A tolerance replaces the bound for right. Source: the notes of CS231n, "Gradient
    checks".

    >>> classify_error(1e-8), classify_error(1e-5), classify_error(1e-5, kinks=True)
    ('right', 'suspicious', 'right')
    """
    if error <= (tolerance or (FINE if kinks else GOOD)):
        return "right"
    return "suspicious" if error <= SUSPICIOUS else "wrong"


def compute_relative_errors(answers: Array, correct: Array, noise: Array) -> Array:
    """Compute relative errors ``max(|a - n| - noise, 0)/max(|a|, |n|)`` of answers.

    The error of nan is infinite.

    >>> answers, correct = np.array([1.5, np.nan, 1e-17]), np.array([1.0, 1.0, 0.0])
    >>> compute_relative_errors(answers, correct, 1e-16).round(3)
    array([0.333,   inf, 0.   ])
    """
    with np.errstate(all="ignore"):
        difference = np.maximum(np.abs(answers - correct) - noise, 0.0)
        size = np.maximum(np.abs(answers), np.abs(correct))
        errors = np.where(difference == 0.0, 0.0, difference / size)
    return np.where(np.isfinite(errors) & np.isfinite(answers), errors, np.inf)


def _format_bound(value: float) -> str:
    """Format an upper bound on relative errors, such as ``1e-2``."""
    mantissa, _, exponent = f"{value:e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def _format_value(value: Any) -> str:
    """Format an argument of a student's function as a string of limited length."""
    if isinstance(value, list):
        text = str(np.array(value).tolist())
        return text if len(text) <= 40 else f"{text[:36]}...]"
    return f"{value:g}"


def build_gradient_check(
    graph: ExpressionGraph,
    *,
    count: int = 20,
    seed: int = 0,
    name: str = "gradient",
    value: bool = False,
    tolerance: float | None = None,
    **settings: Any,
) -> GradientCheck:
    """Build a gradient check; the arguments and errors are those of :func:`check_gradient`."""
    if tolerance is not None and not 0 < check_real_number("tolerance", tolerance) < 1:
        raise UsageError(f"tolerance must be between 0 and 1, got {float(tolerance):g}")
    if not name.isidentifier():
        raise UsageError(f"name must be a Python identifier, got {name!r}")
    question = build_question(graph, **settings)
    if value and VALUE_PART in question.wrt:
        raise UsageError(
            "value=True (--value) is ambiguous for a graph with a parameter named 'value'",
            hint="check the gradient without the value",
        )
    points = choose_points(question, count, seed)
    return GradientCheck(question, points, name, value, tolerance)


def check_gradient(
    graph: ExpressionGraph,
    function: Callable[..., Any] | Submission,
    *,
    of: str | None = None,
    wrt: Sequence[str] | str | None = None,
    loss: str | None = None,
    batch: int = 0,
    reduction: str = "mean",
    keep: Sequence[str] | str = (),
    domain: Mapping[str, Any] | None = None,
    points: int = 20,
    seed: int = 0,
    name: str = "gradient",
    value: bool = False,
    tolerance: float | None = None,
    limits: Limits | None = None,
) -> Result:
    """Check a student's gradient function and name the likely mistake.

    The function takes the graph's inputs and parameters as keyword arguments or as one dictionary.
    It returns the derivatives as a dictionary or in the order of `wrt`, with the parameter's shape.

    Args:
        graph: the graph to differentiate.
        function: a function, or the file or ``globals()`` of a notebook that define it.
        of: the variable to differentiate; the only output unless given.
        wrt: the names to differentiate by; all parameters, or else all inputs, unless given.
        loss: a loss to add after the outputs; the function then also takes ``target``.
        batch: the number of samples of a batch; inputs are then lists with one value per sample.
        reduction: the reduction over the batch, ``mean`` or ``sum``.
        keep: inputs that stay at their declared values.
        domain: the values of inputs to sample from, ``{"y": (0, 1)}`` or ``{"y": "one-hot"}``.
        points: the number of points; more if covering all branches of the graph requires them.
        seed: the random seed of the points.
        name: the name of the function in a file.
        value: whether the function returns ``(value, gradient)``.
        tolerance: the largest relative error that is right; 1e-7, or 1e-4 with kinks, unless given.
        limits: the resource limits of a submission.

    Returns:
        A part for each name, without expected values: right up to a relative error of 1e-7,
        suspicious up to 1e-2.

    Raises:
        UsageError: an argument is invalid, or the graph is not supported.
        DifferentiationError: the gradient is finite and smooth at too few points.

    >>> import cgprimer
    >>> gradient = lambda xa, a, b: {"a": -xa**2, "b": 1}
    >>> result = cgprimer.check_gradient(cgprimer.parse("xw = a*xa^2 + b"), gradient)
    >>> [(part.name, part.verdict, part.mistake) for part in result.parts]
    [('a', 'wrong', 'sign'), ('b', 'right', '')]
    """
    is_function = callable(function) and not isinstance(function, Mapping)
    submission = {name: function} if is_function else convert_submission(function, "function")
    check = build_gradient_check(
        graph, of=of, wrt=wrt, loss=loss, batch=batch, reduction=reduction, keep=keep,
        domain=domain, count=points, seed=seed, name=name, value=value, tolerance=tolerance,
    )  # fmt: skip
    return check.run(submission, limits)


def format_gradient_skeleton(check: GradientCheck) -> str:
    """Return the skeleton of a gradient function, a Python file that students complete.

    >>> import cgprimer
    >>> print(format_gradient_skeleton(build_gradient_check(cgprimer.parse("xw = k*xa"))))
    # The gradient of xw with respect to k.
    #
    #     xw = k*xa
    <BLANKLINE>
    <BLANKLINE>
    def gradient(xa, k):
        # xa, k: each a number
        return {
            "k": ...,
        }
    <BLANKLINE>
    """
    question = check.question
    batch = f", the {question.reduction} over a batch," if question.batch else ""
    lines = [
        f"# The gradient of {question.of}{batch} with respect to {join_names(question.wrt)}.",
        "#",
    ]
    lines += [f"#     {line}" for line in str(question.graph).splitlines()]
    lines += ["", "", f"def {check.function}({', '.join(question.arguments)}):"]
    kinds: dict[str, list[str]] = {}
    for name in question.arguments:
        kinds.setdefault(_describe_argument(question, name), []).append(name)
    for kind, names in kinds.items():
        article = "" if kind.startswith("a list") else "an " if kind[0] == "a" else "a "
        lines.append(f"    # {', '.join(names)}: {'each ' * (len(names) > 1)}{article}{kind}")
    entries = [f'        "{name}": ...,' for name in question.wrt]
    start = "    return ..., {  # the value, and" if check.value else "    return {"
    return "\n".join([*lines, start, *entries, "    }", ""])


def _describe_argument(question: Question, name: str) -> str:
    """Describe the type of a function argument, such as ``number in {0, 1}``."""
    shape = question.shapes[name]
    is_batch = bool(question.batch) and name in question.graph.inputs
    kind = f"array{'s' * is_batch} of shape {format_shape(shape)}" if shape else "number"
    kind = f"a list of {kind}{'' if shape else 's'}" if is_batch else kind
    if name in question.domains:
        domain = question.domains[name]
        kind += ", one-hot" if domain == ONE_HOT else f" in {format_domain(domain)}"
    return f"{kind}, one per sample" if is_batch else kind
