"""Arguments of the wrong type, unknown options and missing steps raise errors of the package."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cgprimer
from tests.approval import refused

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
DATA = cgprimer.make_dataset(LINE, samples=8)
X, Y = np.linspace(-1, 1, 8).reshape(-1, 1), np.linspace(-4, 2, 8)
AT = {"xa": 1.0}
FITTED = cgprimer.Estimator("xw = k*xa + b", epochs=1).fit(X, Y)


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda: cgprimer.Estimator("xw = k*xa").predict(X), "fit(X, y)"),
        (lambda: cgprimer.Estimator(None).fit(X, Y), "`expressions` ... None"),
        (lambda: FITTED.fit([["a"]], [1]), "X"),
        (lambda: FITTED.predict([]), "X"),
        (lambda: FITTED.score(X, Y[:3]), "X ... 8 ... y"),
        (lambda: cgprimer.load(None), "`path`"),
        (lambda: cgprimer.gradient("xw = a", AT), "`graph` ... 'xw = a' ... cgprimer.parse"),
        (lambda: cgprimer.gradient(LINE, np.ones(3)), "`at`"),
        (lambda: cgprimer.gradient(LINE, AT, method=["forward"]), "`method` ... forward"),
        (lambda: cgprimer.gradient(LINE, AT, engine=3), "`engine` ... 3"),
        (lambda: cgprimer.train(LINE, DATA, epochs=np.ones(2)), "epochs"),
        (lambda: cgprimer.train(LINE, DATA, metrics=3), "metrics ... 3"),
        (lambda: cgprimer.train(LINE, DATA, on_epoch=3), "`on_epoch` ... 3"),
        (lambda: cgprimer.identifiability(LINE, DATA, LINE.values, wrt=("z",)), "parameter 'z'"),
        (lambda: cgprimer.flat_objective(LINE, DATA, seed=-1), "seed"),
        (lambda: DATA.save(3), "`path` ... 3"),
        (lambda: cgprimer.make_classes("moons", samples=np.ones(2)), "samples"),
        (lambda: cgprimer.fit(LINE, DATA, sigma=1), "'sigma'"),
        (lambda: cgprimer.train(LINE, DATA, loss=min), "register_loss"),
        (lambda: cgprimer.train(LINE, DATA, schedule=min), "rate"),
        (lambda: cgprimer.train(LINE, DATA, resume="r.json"), "TrainingRun ... load_run"),
        (lambda: cgprimer.draw(LINE, path=3), "`path` ... 3"),
        (lambda: cgprimer.draw(LINE, file="a.png"), "'file' ... 'title'"),
        (lambda: cgprimer.differentiate(LINE), "`tape` ... cgprimer.tape(graph)"),
        (lambda: cgprimer.train(LINE, DATA, lr=0.1), "'lr' ... 'learning_rate'"),
        (lambda: cgprimer.networks.neuron(3, bias=np.ones(2)), "`bias` ... array"),
        (lambda: cgprimer.register_engine(3), "`engine` ... 3"),
        (lambda: cgprimer.rules("x^2", functions=3), "`functions` ... 3"),
        (lambda: LINE.expression([]), "[]"),
        (lambda: LINE.role("kk"), "'kk' ... 'k'"),
        (lambda: cgprimer.trace(LINE, AT).row(np.ones(2)), ""),
        (lambda: cgprimer.compare(LINE, AT).result("revers"), "'reverse'"),
        (lambda: DATA.where("a"), ""),
        (lambda: cgprimer.check_optimizer(3, "adam"), "`submission` ... 3"),
        (lambda: cgprimer.check_engine(None, 2), "`submission` ... None"),
        (lambda: cgprimer.check_gradient(LINE, [1]), "`function` ... [1]"),
        (lambda: cgprimer.check_formula(3, "1"), "`formula` ... 3"),
        (lambda: cgprimer.check_trace(3, {}), "`sheet` ... 3"),
        (lambda: cgprimer.check_trace(cgprimer.exercise(kinds="trace"), {1: 2}), "row, column"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(call: Callable[[], Any], values: str) -> None:
    with refused(cgprimer.CgprimerError, values):
        call()


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
