"""Arguments of the wrong type, unknown options and missing steps raise errors of the package."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from tests.approval import lines_with_values, refused

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
DATA = cgprimer.make_dataset(LINE, samples=8)
X, Y = np.linspace(-1, 1, 8).reshape(-1, 1), np.linspace(-4, 2, 8)
AT = {"xa": 1.0}
FITTED = cgprimer.Estimator("xw = k*xa + b", epochs=1).fit(X, Y)


# Expressions, each followed by the values in the message of its error.
WRONG_CALLS = lines_with_values(Path(__file__).with_name("wrong_calls.txt"))


@pytest.mark.parametrize(("call", "values"), WRONG_CALLS, ids=[call for call, _ in WRONG_CALLS])
def test_wrong_arguments_are_named(call: str, values: str) -> None:
    with refused(cgprimer.CgprimerError, values):
        eval(call, globals())  # noqa: S307


GRAPH_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # and their further arguments
    "compare": (), "draw": (), "ensemble": (DATA,), "export": (), "fit": (DATA,), "gradient": (),
    "graph_with_loss": ("squared-error",), "hessian": (),
    "hessian_vector_product": (AT, {"k": 1.0}), "jacobian": (), "loss_and_gradient": (DATA,),
    "make_dataset": (), "partials": (), "step": (), "sweep": (DATA, {"epochs": [1]}), "tape": (),
    "trace": (), "train": (DATA,), "why": (),
}  # fmt: skip


@pytest.mark.parametrize("function", GRAPH_FUNCTIONS)
def test_a_graph_is_neither_a_text_nor_a_number(function: str) -> None:
    for value in ("xw = a", None, [LINE]):
        with refused(cgprimer.UsageError, "`graph` ... ExpressionGraph"):
            getattr(cgprimer, function)(value, *GRAPH_FUNCTIONS[function])


def test_errors_of_callbacks_are_not_changed() -> None:
    def broken(_: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cgprimer.train(LINE, DATA, epochs=np.int64(1), on_epoch=broken)
    bounds: Any = []  # not a mapping, but empty
    with pytest.raises(KeyError, match="mine"):
        cgprimer.fit(LINE, DATA, on_step=broken, bounds=bounds)
    with pytest.raises(TypeError, match="argument"):
        cgprimer.train(LINE)


@pytest.mark.parametrize("text", ["xw = 2xa", "xa = xb; xb = xa", "xw = a; xw = b", "xw = f(a)"])
def test_errors_of_expressions_can_be_pickled(text: str) -> None:
    with pytest.raises(cgprimer.CgprimerError) as error:
        cgprimer.parse(text)
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is type(error.value)
    assert (str(again), vars(again)) == (str(error.value), vars(error.value))


def test_public_functions_can_be_pickled_and_warn_at_the_callers_line() -> None:
    for name in ("gradient", "unregister_engine", "unregister_loss"):
        assert pickle.loads(pickle.dumps(getattr(cgprimer, name))) is getattr(cgprimer, name)
    bare = cgprimer.Dataset(DATA.inputs, {})
    graph = cgprimer.parse("xw = dropout(k*xa, 0.2)")
    for model, data in ((LINE, bare), (graph, DATA)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cgprimer.train(model, data, epochs=1)
        assert [w.filename for w in caught] == [__file__]
