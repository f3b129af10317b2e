"""Mistakes of users raise errors of the package with a message and a location."""

from __future__ import annotations

import ast
import contextlib
import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import Function, UsageError, Value, errors, grad, no_grad
from tests.approval import approved, refused, warned

X, W = Value(np.ones((8, 4)), name="x"), Value(np.ones((3, 4)), name="w")
MISTAKES = Path(__file__).with_name("mistakes.txt")


class Two(Function):
    """Return two results, which is not supported."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x, x


def deep_graph() -> Value:
    value = Value(1.0)
    for _ in range(5_000):
        value = value * 1.0
    return value


NAMES = {
    **{name: getattr(cgprimer, name) for name in cgprimer.__all__},
    "np": np, "math": math, "copy": copy, "pickle": pickle, "cgprimer": cgprimer,
    "X": X, "W": W, "Two": Two, "deep": deep_graph,
}  # fmt: skip


def read_mistakes() -> list[Any]:
    """Return exception types, the lines that raise them, and their line numbers."""
    return [
        pytest.param(*line.split(": ", 1), number, id=line.partition(": ")[2])
        for number, line in enumerate(MISTAKES.read_text("utf-8").splitlines(), 1)
        if not line.startswith("#")
    ]


@pytest.mark.parametrize(("kind", "mistake", "line"), read_mistakes())
def test_error_messages_and_locations(kind: str, mistake: str, line: int) -> None:
    tree = ast.increment_lineno(ast.parse(mistake, mode="eval"), line - 1)
    with pytest.raises(getattr(errors, kind)) as caught:
        eval(compile(tree, str(MISTAKES), "eval"), dict(NAMES))  # noqa: S307 - of the file
    place = f"{MISTAKES}:{line}"
    assert kind == "CgprimerError" or str(caught.value).count(place) == 1
    approved(str(caught.value).replace(place, "mistakes.txt:<line>"))


def test_error_reports_file_line_and_code() -> None:
    with pytest.raises(errors.ShapeError) as caught:
        X @ W
    line = test_error_reports_file_line_and_code.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}: X @ W" in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [[[1, 2], [3]], "abc", ["a"], None, {"a": 1}, np.array([object()]), 1j, np.array([1 + 2j])],
)
def test_non_real_data_raises(data: Any) -> None:
    wrong = [lambda: Value(data), lambda: X + data, lambda: grad(lambda v: v)(data)]
    for mistake in wrong[
        : 2 if isinstance(data, dict | list) else 3
    ]:  # grad accepts these as pytrees
        with refused(UsageError) as caught:
            mistake()
        assert f"{__file__}:{mistake.__code__.co_firstlineno}: wrong = [" in str(caught.value)


def test_assigning_a_value_into_a_numpy_array_raises() -> None:
    def squares(x: Any) -> Any:
        out = np.zeros(2)
        out[0] = x[0] ** 2
        return out.sum()

    for run in (grad(squares), lambda x: cgprimer.record(squares, x)):
        with refused(UsageError, "out[0] = ... np.stack"):
            run(np.ones(2))
    with pytest.raises(ValueError, match="array element") as caught:  # outside of grad and record
        squares(Value(np.ones(2)))
    assert isinstance(caught.value.__cause__, UsageError)


def replace_parameter(context: contextlib.AbstractContextManager[Any]) -> None:
    w = Value([1.0, 2.0])
    for _ in range(2):
        (w * w).sum().backward()
        with context:
            w = w - 0.1 * w.grad


def test_replacing_a_parameter_suggests_an_in_place_update() -> None:
    with warned(UserWarning, "w -="), pytest.raises(TypeError, match="NoneType"):
        replace_parameter(contextlib.nullcontext())
    with refused(errors.DifferentiationError, "w -= ... w = w -"):
        replace_parameter(no_grad())


def test_leaf_values_can_be_copied_and_pickled() -> None:
    w = Value(np.ones(3, np.float32), name="w")
    (w * w).sum().backward()
    for made in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert (made.name, made.dtype, made.grad.tolist()) == ("w", np.float32, [2.0] * 3)
        made.data[0] = 5.0
        assert w.data[0] == 1.0


def test_updates_preserve_float32() -> None:
    w, step = Value(np.ones(3, np.float32)), np.full(3, 0.1)  # float64
    (w * w).sum().backward()
    w.data = w.data - step
    assert w.dtype == w.grad.dtype == np.float32
    with no_grad():
        w -= step
    assert w.dtype == np.float32
    np.testing.assert_allclose(w.data, 0.8, rtol=1e-6)
