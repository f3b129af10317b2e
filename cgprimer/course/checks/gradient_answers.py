"""Read the values that a student's gradient function returned at one point.

A function may return a dictionary of derivatives, the derivatives in the order of ``wrt``, or all
their elements in one list; each format has a small reader. Values arrive as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.course.checks.check_results import Failure
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.verdicts import rename_hint
from cgprimer.errors import join_names, pluralize
from cgprimer.expressions import Shape

Array = Any
VALUE_PART = "value"  #: the part of the value that is returned with the gradient
Answer = Array | Failure  #: the derivatives by one name, or the reason why there are none
PointAnswers = dict[str, Answer]  #: for each part its answer


@dataclass(frozen=True)
class GradientReader:
    """A reader for the values that a student's gradient function returns.

    Attributes:
        question: the question.
        function: the name of the function.
        with_value: whether the function returns ``(value, gradient)``.
    """

    question: Question
    function: str
    with_value: bool

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the derivatives, keyed by name."""
        return {name: self.question.shapes[name] for name in self.question.wrt}

    def read(self, value: Any) -> PointAnswers | Failure:
        """Return the answers for all parts of the check, or a failure if the value is invalid."""
        if isinstance(value, Failure):
            return value
        if isinstance(value, dict) and "no call" in value:
            return self._explain_call_error(value)
        if not self.with_value:
            return self._read_gradient(value)
        if not isinstance(value, list) or len(value) != 2:
            message = "expected the value and the gradient: return value, gradient"
            return Failure("shape", message)
        gradient = self._read_gradient(value[1])
        if isinstance(gradient, Failure):
            return gradient
        return {VALUE_PART: read_array(value[0], ()), **gradient}

    def _read_gradient(self, value: Any) -> PointAnswers | Failure:
        """Read a gradient from a dictionary, a list of derivatives, or a flat list of elements."""
        if isinstance(value, dict):
            return self._read_dictionary(value)
        if not isinstance(value, list | int | float) or isinstance(value, bool):
            return Failure("value", f"expected {self._expected_format}, got {value!r:.40}")
        shapes = self.shapes
        if len(shapes) == 1:
            (shape,) = shapes.values()
            if not isinstance(read_array(value, shape), Failure):
                value = [value]
        if isinstance(value, list) and len(value) == len(shapes):
            pairs = zip(shapes.items(), value, strict=True)
            return {name: read_array(entry, shape) for (name, shape), entry in pairs}
        return self._read_flat_list(value)

    def _read_dictionary(self, value: Mapping[str, Any]) -> PointAnswers:
        """Read the derivatives from a dictionary that is keyed by name."""
        answers: PointAnswers = {}
        for name, shape in self.shapes.items():
            if name in value:
                answers[name] = read_array(value[name], shape)
            else:
                unknown = [key for key in value if key not in self.shapes]
                hint = rename_hint(name, unknown, "'{}'")
                message = f"the dictionary has no key {name!r}"
                answers[name] = Failure("shape", f"{message}; {hint}" if hint else message)
        return answers

    def _read_flat_list(self, value: Any) -> PointAnswers | Failure:
        """Read the derivatives from one flat list of all array elements, in the order of `wrt`."""
        elements = read_array(value, (len(self.question.sources),))
        if isinstance(elements, Failure):
            count = len(value) if isinstance(value, list) else 1
            actual = f"got {pluralize(count, 'value')} instead of {len(self.shapes)}"
            message = f"expected {self._expected_format}, {actual}"
            return Failure("shape", message)
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])
        arrays = zip(self.shapes.items(), np.split(elements, ends[:-1]), strict=True)
        return {name: array.reshape(shape) for (name, shape), array in arrays}

    @property
    def _expected_format(self) -> str:
        """A description of the accepted gradient formats, for messages."""
        return f"a dictionary with {join_names(self.shapes)}, or their derivatives in this order"

    def _explain_call_error(self, report: Mapping[str, Any]) -> Failure:
        """Return a failure that explains why the student's function could not be called."""
        expected = f"{self.function}({', '.join(self.question.arguments)})"
        if report["no call"] == "missing":
            hint = rename_hint(self.function, report["said"])
            return Failure(
                "missing", f"the submission does not define {expected}" + (hint and f"; {hint}")
            )
        return Failure(
            "signature",
            f"expected {expected}, with the arguments in any order, or {self.function}(point) with"
            f" a dictionary; got {report['said']}",
        )


def read_array(value: Any, shape: Shape) -> Answer:
    """Convert a value to an array; return a failure if its shape differs from the given shape."""
    kind = "a number" if not shape else "numbers"
    if isinstance(value, bool | str) or value is None:
        return Failure("value", f"expected {kind}, got {value!r:.40}")
    try:
        array = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        return Failure("value", f"expected {kind}, got {value!r:.40}")
    if array.shape == shape or (array.size == 1 and not shape):
        return array.reshape(shape)
    return Failure(
        "shape", f"expected {_describe_shape(shape)}, got {_describe_shape(array.shape)}"
    )


def _describe_shape(shape: Shape) -> str:
    """Describe a shape in words: ``a scalar``, or ``an array of shape [3,2]``."""
    return f"an array of shape {format_shape(shape)}" if shape else "a scalar"
