"""Mistakes in what is differentiated: other points, other samples, other variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cgprimer.course.checks.gradient_questions import RIGHT, Question
from cgprimer.course.checks.mistakes.mistake_rule import Array, Gradient, Prediction
from cgprimer.course.checks.question_points import Points
from cgprimer.tapes import differentiate

_MAX_VARIABLES = 50  # with respect to which the output may be differentiated by mistake
_MAX_PAIRS = 45  # of arguments that may be confused


# --- samples of a batch --------------------------------------------------------------------------


def keep_one_sample(question: Question, points: Points) -> Iterator[Prediction]:
    """Predict the gradients if only the last, or only the first, sample of a batch is used."""
    if question.batch < 2:
        return
    samples = _evaluate_samples(question, points.arguments)
    for index, name in ((-1, "last"), (0, "first")):
        for scale in (1.0, 1.0 / question.batch):
            values = {source: v[index] * scale for source, v in samples.items()}
            yield Prediction(f"only the {name} sample of a batch is used", values)


def omit_one_sample(question: Question, points: Points) -> Iterator[Prediction]:
    """Predict the gradients if the last, or the first, sample of a batch is omitted."""
    size = question.batch
    if size < 2:
        return
    samples = _evaluate_samples(question, points.arguments)
    correct_divisor = size if question.reduction == "mean" else 1
    for others, name in ((slice(None, -1), "last"), (slice(1, None), "first")):
        for divisor in dict.fromkeys((correct_divisor, size - 1, 1)):
            values = {source: v[others].sum(axis=0) / divisor for source, v in samples.items()}
            yield Prediction(f"the {name} sample of a batch is missing", values)


def average_samples(question: Question, points: Points) -> Iterator[Prediction]:
    """Predict the gradients if they are evaluated at the mean of the samples in a batch."""
    if question.batch > 1:
        means = {
            name: np.broadcast_to(v.mean(axis=0), v.shape) if v.ndim > 1 else v
            for name, v in points.arguments.items()
        }
        message = "the gradient is evaluated at the mean of the batch"
        yield Prediction(message, question.evaluate_gradient(means)[1])


# --- other points --------------------------------------------------------------------------------


def accumulate_calls(question: Question, points: Points) -> Iterator[Prediction]:
    """Predict the gradients if the gradients of all previous calls are mistakenly added."""
    if points.is_sequence:
        values, noise = (
            {name: np.cumsum(v) for name, v in gradient.items()}
            for gradient in (points.gradient, points.noise)
        )
        yield Prediction("the gradients of all previous calls are added", values, noise=noise)


def differentiate_at_other_points(question: Question, points: Points) -> Iterator[Prediction]:
    """Predict the gradients if they are evaluated at previous, swapped or fixed arguments."""
    count = len(points)
    calls = {
        "it is the gradient at the point of the previous call": [0, *range(count - 1)],
        "it is always the gradient at the first point": [0] * count,
    }
    for message, order in calls.items() if points.is_sequence else ():
        values, noise = (
            {name: v[order] for name, v in gradient.items()}
            for gradient in (points.gradient, points.noise)
        )
        yield Prediction(message, values, noise=noise)
    for message, changes in (*_fix_arguments(question, points), *_swap_arguments(question, points)):
        if any(not np.array_equal(points.arguments[name], v) for name, v in changes.items()):
            _, values, noise = question.evaluate_gradient({**points.arguments, **changes})
            yield Prediction(message, values, noise=noise)


def _fix_arguments(question: Question, points: Points) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield a message and fixed values that replace arguments, such as declared values."""
    arguments = points.arguments
    declared = {n: _get_declared_values(question, points, n) for n in question.arguments
                if n in question.graph.values}  # fmt: skip
    values = {e: v for elements in declared.values() for e, v in elements.items()}
    inputs = {e for name in question.graph.inputs for e in question.list_elements(name)}
    parameters = {e: v for e, v in arguments.items() if e not in inputs}
    choices: dict[str, dict[str, Array]] = {
        "the values in the file": values,
        "the parameters' values in the file": {e: values[e] for e in values if e not in inputs},
        "the inputs' values in the file": {e: values[e] for e in values if e in inputs},
        **{f"the value of {name} in the file": declared[name] for name in declared},
        "parameters equal to 1": {e: np.ones_like(v) for e, v in parameters.items()},
        "parameters equal to 0": {e: np.zeros_like(v) for e, v in parameters.items()},
        "the values rounded toward zero": {e: np.trunc(v) for e, v in arguments.items()},
    }
    for description, changes in choices.items():
        yield f"it is evaluated at {description} instead of the arguments of the call", changes


def _get_declared_values(question: Question, points: Points, name: str) -> dict[str, Array]:
    """Return the declared value of each element of an argument, repeated for all points."""
    value = np.broadcast_to(np.array(question.graph.values[name], float), question.shapes[name])
    return {
        element: np.broadcast_to(scalar, points.arguments[element].shape)
        for element, scalar in zip(question.list_elements(name), value.ravel(), strict=True)
    }


def _swap_arguments(question: Question, points: Points) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield, for each pair of arguments, a message and the values after swapping the pair."""
    arguments, names, pairs = points.arguments, [*question.arguments], 0
    for k, name in enumerate(names):
        for other in names[k + 1 :]:
            elements, others = question.list_elements(name), question.list_elements(other)
            if len(elements) != len(others):
                continue
            if arguments[elements[0]].shape == arguments[others[0]].shape and pairs < _MAX_PAIRS:
                pairs += 1
                exchanged = zip(elements + others, others + elements, strict=True)
                yield (
                    f"the arguments {name} and {other} are swapped",
                    {e: arguments[o] for e, o in exchanged},
                )


# --- other variables -----------------------------------------------------------------------------


def differentiate_with_respect_to_others(
    question: Question, points: Points
) -> Iterator[Prediction]:
    """Predict derivatives with respect to inputs or parameters that the question omits."""
    others = [name for name in question.arguments if name not in question.wrt]
    elements = [e for name in others for e in question.list_elements(name)][:_MAX_VARIABLES]
    if not elements:
        return
    program = differentiate(question.primal, question.of, elements, method="reverse")
    reads = {read.wrt: read.output for read in program.passes[0].reads}
    result = question.evaluate(program.executed, points.arguments)
    for name in others:
        entries = question.list_elements(name)
        if len(entries) < 2 or not {*entries} <= {*elements}:
            continue
        for wrt in question.wrt:
            if question.shapes[wrt] == question.shapes[name]:
                pairs = zip(question.list_elements(wrt), entries, strict=True)
                values = {e: result[reads[entry]] for e, entry in pairs}
                yield Prediction(f"this is the derivative with respect to {name}", values)
    for element in elements:
        values = dict.fromkeys(question.sources, result[reads[element]])
        message = f"this is the derivative with respect to {element}"
        yield Prediction(message, values, individual=True)


def _evaluate_samples(question: Question, arguments: Mapping[str, Array]) -> Gradient:
    """Return the correct gradient of each sample of a batch."""
    results = question.evaluate(question.gradient_tape, arguments, reduce=False)
    return {name: results[RIGHT + name] for name in question.sources}
