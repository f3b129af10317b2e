"""A student's gradient function against the right numbers, and the likely mistake by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from cgprimer.course.checks.gradient_questions import (
    VALUE,
    Points,
    Question,
    arguments_at,
    ask,
    points,
)
from cgprimer.course.checks.mistake_search import Mistake, find_mistakes
from cgprimer.course.checks.mistakes.difference_errors import is_central_difference
from cgprimer.course.checks.sandbox import Limits, Request, Submission, run_submission
from cgprimer.course.checks.verdicts import rename_hint
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph, Shape
from cgprimer.support.validation import check_real_number

_CREDIT: dict[Verdict, float] = {"right": 1.0, "suspicious": 0.5}
_CENTRAL = "computed by central differences"
_FLOAT32 = "computed in single precision (float32)"
_AT_A_KINK = "right but for a kink, where any slope between is a choice"
_SHOWN = 8  # names of a point in a message
DRIVER = Path(__file__).with_name("gradient_driver.py")
Array = Any


@dataclass(frozen=True, eq=False)
class GradientCheck:
    """A question, its points, and how it is put to students.

    Attributes:
        question: what is asked.
        points: where.
        function: the name of the function that students write.
        value: whether it returns the value, too: ``(value, gradient)``.
        tolerance: the largest relative error that is right; None for the usual bands.
    """

    question: Question
    points: Points
    function: str = "gradient"
    value: bool = False
    tolerance: float | None = None

    @property
    def possible(self) -> dict[str, float]:
        """The points that each part can bring."""
        return dict.fromkeys((*(["value"] if self.value else []), *self.question.wrt), 1.0)

    def run(self, submission: Submission, limits: Limits | None = None) -> Result:
        """The result of one submission."""
        name = "notebook" if isinstance(submission, Mapping) else Path(submission).name
        requests: list[Request] = [
            {
                "call": "call",
                "arguments": [self.function, arguments_at(self.question, self.points.given, k)],
            }
            for k in range(len(self.points))
        ]
        answers = run_submission(submission, requests, limits, driver=DRIVER, forms=GRADIENT)
        result = answers.add_run_to(self.verdict(answers.values, name))
        return replace(result, notes=(*self.question.notes, *result.notes))

    def verdict(self, values: Sequence[Any], submission: str = "") -> Result:
        """The result of what a function returned at the points, one after the other.

        Args:
            values: as JSON has them, or a :class:`Failure` each.
            submission: what to call it.
        """
        read = [self._read(value) for value in values]
        failures = [one for one in read if isinstance(one, Failure)]
        if len(failures) == len(read):
            return create_failed_result("gradient", submission, self.possible, failures[0])
        parts = self._parts(read)
        return Result("gradient", submission, parts, failure=failures[0] if failures else None)

    def _read(self, value: Any) -> dict[str, Array | Failure] | Failure:
        """For each part its numbers."""
        question = self.question
        if isinstance(value, Failure):
            return value
        if isinstance(value, dict) and "no call" in value:
            return self._problem(value)
        found: dict[str, Array | Failure] = {}
        if self.value:
            if not isinstance(value, list) or len(value) != 2:
                return Failure(
                    "shape", "expected the value and the gradient: return value, gradient"
                )
            found["value"], value = _numbers(value[0], ()), value[1]
        shapes = {n: question.shapes[n] for n in question.wrt}
        if isinstance(value, dict):
            for name, shape in shapes.items():
                if name in value:
                    found[name] = _numbers(value[name], shape)
                else:
                    hint = rename_hint(name, [key for key in value if key not in shapes], "'{}'")
                    there = f"the dictionary has no {name!r}"
                    found[name] = Failure("shape", f"{there}; {hint}" if hint else there)
            return found
        expected = f"a dictionary with {join_names(shapes)}, or their derivatives in this order"
        if not isinstance(value, list | int | float) or isinstance(value, bool):
            return Failure("value", f"returned {value!r:.40}, expected {expected}")
        if len(shapes) == 1:
            ((name, shape),) = shapes.items()
            if not isinstance(_numbers(value, shape), Failure):
                value = [value]
        if isinstance(value, list) and len(value) == len(shapes):
            return found | {
                n: _numbers(v, s) for (n, s), v in zip(shapes.items(), value, strict=True)
            }
        flat = _numbers(value, (len(question.sources),))
        if isinstance(flat, Failure):
            many = len(value) if isinstance(value, list) else 1
            return Failure(
                "shape", f"returned {many} of {len(shapes)} entries: expected {expected}"
            )
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        parts = zip(shapes.items(), np.split(flat, ends[:-1]), strict=True)
        return found | {name: part.reshape(shape) for (name, shape), part in parts}

    def _problem(self, value: Mapping[str, Any]) -> Failure:
        """What is wrong with the function itself."""
        expected = f"{self.function}({', '.join(self.question.arguments)})"
        if value["no call"] == "missing":
            hint = rename_hint(self.function, value["said"])
            return Failure("missing", f"there is no function {expected}" + (hint and f"; {hint}"))
        return Failure("signature", f"expected {expected}, in any order, or {self.function}(point)"
                       f" with a dictionary; found {value['said']}")  # fmt: skip

    @cached_property
    def _right_in_float32(self) -> dict[str, Array]:
        """The numbers that are right at the points rounded to single precision."""
        given = {n: v.astype(np.float32).astype(float) for n, v in self.points.given.items()}
        found = self.question.run(self.question.answering, given)
        return {**self.question.read(found)[0], VALUE: found[VALUE]}

    # --- verdicts ----------------------------------------------------------------------------

    def _parts(self, read: Sequence[dict[str, Array | Failure] | Failure]) -> tuple[Part, ...]:
        question, points = self.question, self.points
        own = {"value": [VALUE]} if self.value else {}
        own |= {name: question.elements(name) for name in question.wrt}
        theirs: dict[str, Array] = {}
        broken: dict[str, Failure] = {}
        for name, elements in own.items():
            rows = []
            for one in read:
                numbers = one if isinstance(one, Failure) else one[name]
                if isinstance(numbers, Failure):
                    broken.setdefault(name, numbers)
                    numbers = np.full(len(elements), np.nan)
                rows.append(np.ravel(numbers))
            theirs |= dict(zip(elements, np.stack(rows, axis=-1), strict=True))
        right = {**points.right, VALUE: points.value}
        allowed = compute_tolerances(points)
        errors = {e: relative_errors(v, right[e], allowed[e]) for e, v in theirs.items()}
        good = self.tolerance or (FINE if question.has_kinks else GOOD)
        there = {e: points.smooth & ~np.isnan(v) for e, v in theirs.items()}
        bad = [e for e in theirs if np.any(errors[e][there[e]] > good)]
        lenient = bad if self.tolerance is None else []  # else the tolerance alone decides
        rounded = self._right_in_float32 if lenient else {}
        single = {
            e
            for e in lenient
            if is_float32(points, theirs[e], e)
            or np.all(relative_errors(theirs[e], rounded[e], allowed[e])[points.smooth] <= good)
        }
        central = {
            e
            for e in lenient
            if e not in single
            and e in points.given
            and np.all(errors[e][points.smooth] <= SUSPICIOUS)
            and is_central_difference(question, points, theirs[e], e)
        }
        notes = dict.fromkeys(single, _FLOAT32) | dict.fromkeys(central, _CENTRAL)
        unknown = [e for e in bad if e not in notes and e != VALUE]
        known = find_mistakes(question, points, theirs, unknown)
        errors |= {e: np.where(points.smooth, 0.0, errors[e]) for e in notes}
        return tuple(
            self._part(
                name,
                {e: theirs[e] for e in elements},
                errors,
                known,
                broken.get(name),
                next((notes[e] for e in elements if e in notes), ""),
            )
            for name, elements in own.items()
        )

    def _part(
        self,
        name: str,
        theirs: Mapping[str, Array],
        errors: Mapping[str, Array],
        known: Mapping[str, Mistake],
        broken: Failure | None,
        note: str,
    ) -> Part:
        """Return the verdict on one name; the note is added to a part that is right."""
        own, smooth = [*theirs], self.points.smooth
        worst = {e: float(np.max(errors[e], where=smooth, initial=0.0)) for e in own}
        errored = np.max([errors[e] for e in own], axis=0)
        silent = np.all(np.isnan([*theirs.values()]), axis=0)
        verdict = band(max(worst.values()), self.question.has_kinks, self.tolerance)
        if broken and silent.all():
            return Part(name, 1.0, 0.0, "wrong", message=str(broken).splitlines()[0])
        if verdict == "right":
            rough = np.any(errored[~smooth] > SUSPICIOUS)
            return Part(name, 1.0, 1.0, verdict, message=_AT_A_KINK if rough else note)
        named = [known[e] for e in own if e in known]
        mistake = named[0].name if named else ""
        message = "; ".join(dict.fromkeys(one.message for one in named))
        if named and named[0].alternatives:
            message += f" (it may as well be: {', '.join(named[0].alternatives)})"
        if len(own) > 1:
            wrong = sum(error > (self.tolerance or GOOD) for error in worst.values())
            message = f"{wrong} of {len(own)} numbers are wrong" + (message and f": {message}")
        elif not named and not silent.any():
            good = int(np.sum(errored <= (self.tolerance or GOOD)))
            message = f"right at {good} of {len(errored)} points; no mistake that is known here"
        if silent.any():
            lost = f"there is no number at {np.sum(silent)} of {len(silent)} points"
            message = f"{lost}; {message}" if message else lost
        first = max(worst, key=worst.__getitem__)
        place = int(np.argmax(np.where(smooth, errors[first], -1.0)))
        yours = "yours is" if first in (name, VALUE) else f"your {first} is"
        evidence = (f"{self._band_text(verdict)}, at {self._point(place)}",
                    f"{yours} {theirs[first][place]:.6g}")  # fmt: skip
        credit = _CREDIT.get(verdict, 0.0)
        return Part(name, 1.0, credit, verdict, mistake, message, evidence)

    def _band_text(self, verdict: Verdict) -> str:
        """Return the range of the relative error of a verdict that is not right."""
        good = self.tolerance or GOOD
        if verdict == "suspicious":
            return f"the relative error is between {_power(good)} and {_power(SUSPICIOUS)}"
        return f"the relative error is above {_power(max(good, SUSPICIOUS))}"

    def _point(self, place: int) -> str:
        """The arguments at a point, as many as can be read."""
        given = arguments_at(self.question, self.points.given, place)
        texts = [f"{n} = {_short(v)}" for n, v in given.items()]
        return join_names(texts, _SHOWN)


def band(error: float, kinks: bool = False, tolerance: float | None = None) -> Verdict:
    """The verdict on a relative error.

    Up to 1e-7 is right; up to 1e-4 where there are kinks, up to 1e-2 suspicious. A tolerance takes
    the place of the first two bounds. Source: the notes of CS231n, "Gradient checks".

    >>> band(1e-8), band(1e-5), band(1e-5, kinks=True), band(0.5)
    ('right', 'suspicious', 'right', 'wrong')
    """
    if error <= (tolerance or (FINE if kinks else GOOD)):
        return "right"
    return "suspicious" if error <= SUSPICIOUS else "wrong"


def relative_errors(theirs: Array, right: Array, noise: Array) -> Array:
    """``|a - n|/max(|a|, |n|)``, what honest arithmetic may be off taken off; infinite for nan.

    >>> relative_errors(np.array([1.5, np.nan, 1e-17]), np.array([1.0, 1.0, 0.0]), 1e-16).round(3)
    array([0.333,   inf, 0.   ])
    """
    with np.errstate(all="ignore"):
        apart = np.maximum(np.abs(theirs - right) - noise, 0.0)
        found = np.where(apart == 0.0, 0.0, apart / np.maximum(np.abs(theirs), np.abs(right)))
    return np.where(np.isfinite(found) & np.isfinite(theirs), found, np.inf)


def _numbers(value: Any, shape: Shape) -> Array | Failure:
    """A value as an array of a shape; lists of one number are that number."""
    try:
        made = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        return Failure(
            "value", f"{value!r:.40} is no number" if not shape else "these are no numbers"
        )
    if isinstance(value, bool | str) or value is None:
        return Failure("value", f"{value!r:.40} is no number")
    if made.shape == shape or (made.size == 1 and not shape):
        return made.reshape(shape)
    return Failure(
        "shape", f"the shape is {format_shape(made.shape)}, expected {format_shape(shape)}"
    )


def _power(value: float) -> str:
    """Return a bound as text, such as ``1e-2``."""
    mantissa, _, exponent = f"{value:e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        text = str(np.array(value).tolist())
        return text if len(text) <= 40 else f"{text[:36]}...]"
    return f"{value:g}"


def gradient_check(
    graph: ExpressionGraph,
    *,
    count: int = 20,
    seed: int = 0,
    name: str = "gradient",
    value: bool = False,
    tolerance: float | None = None,
    **asked: Any,
) -> GradientCheck:
    """Return a check for submissions; arguments and errors as in :func:`check_gradient`."""
    if tolerance is not None and not 0 < check_real_number("tolerance", tolerance) < 1:
        raise UsageError(f"tolerance must be between 0 and 1, got {float(tolerance):g}")
    if not name.isidentifier():
        raise UsageError(f"{name!r} cannot be the name of a function")
    question = ask(graph, **asked)
    if value and "value" in question.wrt:
        raise UsageError("a derivative by 'value' cannot be told from the value: ask without it")
    return GradientCheck(question, points(question, count, seed), name, value, tolerance)


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
    """Check a gradient function, and name the likely mistake.

    The function is called at many points. It takes the graph's inputs and parameters by their
    names, as keywords or as one dictionary, and returns the derivatives as a dictionary or in the
    order of `wrt`: numbers, or lists or arrays in the parameter's shape.

    Args:
        graph: what is differentiated.
        function: a function, which is called here; or a file, or ``globals()`` of a notebook,
            in which it has the name `name`: a file runs apart, with limits.
        of: the variable to differentiate; the only output unless given.
        wrt: with respect to which names; by default all parameters (all inputs of a graph
            without parameters).
        loss: a loss behind the outputs: the function is given ``target``, too.
        batch: samples of a batch: inputs are then lists with a value for each.
        reduction: of a batch: ``mean`` or ``sum`` over its samples.
        keep: inputs that stay at their declared values.
        domain: for inputs the values from which they are sampled, ``{"y": (0, 1)}`` or
            ``{"y": "one-hot"}``, in the place of domains that the graph declares.
        points: the number of points; more are used if every branch of piecewise functions needs
            them.
        seed: of the points.
        name: of the function in a file.
        value: whether it returns ``(value, gradient)``.
        tolerance: the largest relative error that is right, between 0 and 1; 1e-7 unless given,
            or 1e-4 for graphs with kinks.
        limits: of a submission.

    Returns:
        A part for each name: right up to a relative error of 1e-7, suspicious up to 1e-2. It holds
        no expected value. Rounding errors are not counted: they are bounded along with the
        gradient. Neither are the errors of central differences with a good step, as long as they
        are small compared with the derivative's usual size, nor those of single precision.

    Raises:
        UsageError: the graph cannot be asked about, or an argument is none.
        DifferentiationError: there is no point where the gradient can be asked for.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = a*xa^2 + b")
    >>> def gradient(xa, a, b):
    ...     return {"a": -xa**2, "b": 1}
    >>> for part in cgprimer.check_gradient(graph, gradient).parts:
    ...     print(part.name, part.verdict, part.mistake)
    a wrong sign
    b right
    """
    submission: Any = {name: function} if callable(function) else function
    check = gradient_check(
        graph, of=of, wrt=wrt, loss=loss, batch=batch, reduction=reduction, keep=keep,
        domain=domain, count=points, seed=seed, name=name, value=value,
        tolerance=tolerance,
    )  # fmt: skip
    return check.run(submission, limits)


def skeleton(check: GradientCheck) -> str:
    """The file that students start from.

    >>> import cgprimer
    >>> print(skeleton(gradient_check(cgprimer.parse("xw = k*xa"))))
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
    over = f", the {question.reduction} over a batch," if question.batch else ""
    lines = [
        f"# The gradient of {question.of}{over} with respect to {join_names(question.wrt)}.",
        "#",
    ]
    lines += [f"#     {line}" for line in str(question.graph).splitlines()]
    lines += ["", "", f"def {check.function}({', '.join(question.arguments)}):"]
    kinds: dict[str, list[str]] = {}
    for name in question.arguments:
        shape = question.shapes[name]
        each = question.batch and name in question.graph.inputs
        kind = f"array{'s' * bool(each)} of shape {format_shape(shape)}" if shape else "number"
        kind = f"a list of {kind}{'' if shape else 's'}" if each else kind
        if name in question.domains:
            domain = question.domains[name]
            kind += ", one-hot" if domain == ONE_HOT else f" in {format_domain(domain)}"
        kinds.setdefault(f"{kind}, one of each sample" if each else kind, []).append(name)
    for kind, names in kinds.items():
        article = "" if kind.startswith("a list") else "an " if kind[0] == "a" else "a "
        lines.append(f"    # {', '.join(names)}: {'each ' * (len(names) > 1)}{article}{kind}")
    made = [f'        "{name}": ...,' for name in question.wrt]
    start = "    return ..., {  # the value, and" if check.value else "    return {"
    return "\n".join([*lines, start, *made, "    }", ""])
