"""What a user of Python gives too early, or of another kind than is taken: said, not Python's."""

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
    ("call", "said"),
    [
        (lambda: cgprimer.Estimator("xw = k*xa").predict(X), "fit(X, y)"),
        (lambda: cgprimer.Estimator("xw = k*xa").score(X, Y), ""),
        (lambda: cgprimer.Estimator(None).fit(X, Y), "`expressions` ... None"),
        (lambda: FITTED.fit([["a"]], [1]), "X"),
        (lambda: FITTED.predict([]), "X"),
        (lambda: FITTED.predict(3), "X"),
        (lambda: FITTED.score(X, Y[:3]), "X ... 8 ... y"),
        (lambda: FITTED.score(X, 2.0), "X ... 8 ... y"),
        (lambda: cgprimer.load(None), "`path`"),
        (lambda: cgprimer.gradient("xw = a", AT), "`graph` ... 'xw = a' ... cgprimer.parse"),
        (lambda: cgprimer.gradient(LINE, np.ones(3)), "`at`"),
        (lambda: cgprimer.gradient(LINE, AT, method=["forward"]), "`method` ... forward"),
        (lambda: cgprimer.gradient(LINE, AT, engine=3), "`engine` ... 3"),
        (lambda: cgprimer.jacobian(LINE, AT, engine=3), "`engine` ... 3"),
        (lambda: cgprimer.train(LINE, DATA, epochs=np.ones(2)), "epochs"),
        (lambda: cgprimer.train(LINE, DATA, metrics=3), "metrics ... 3"),
        (lambda: cgprimer.train(LINE, DATA, loss=np.ones(2)), "loss"),
        (lambda: cgprimer.train(LINE, DATA, on_epoch=3), "`on_epoch` ... 3"),
        (lambda: cgprimer.loss_and_gradient(LINE, DATA)(3), ""),
        (lambda: cgprimer.identifiability(LINE, DATA, LINE.values, wrt=("z",)), "parameter 'z'"),
        (lambda: cgprimer.stable_learning_rate(LINE, DATA, {}), ""),
        (lambda: cgprimer.flat_objective(LINE, DATA, seed=-1), "seed"),
        (lambda: DATA.save(3), "`path` ... 3"),
        (lambda: DATA.split(0.5, seed=-1), "seed"),
        (lambda: cgprimer.fit(LINE, DATA).save(None), "`path` ... None"),
        (lambda: FITTED.run_.save(3), "`path` ... 3"),
        (lambda: cgprimer.Objective(LINE, engine=3), "`engine` ... 3"),
        (lambda: cgprimer.make_classes("moons", samples=np.ones(2)), "samples"),
        (lambda: cgprimer.fit(LINE, DATA, sigma=1), "'sigma'"),
        (lambda: cgprimer.train(LINE, DATA, loss=min), "register_loss"),
        (lambda: cgprimer.train(LINE, DATA, schedule=min), "rate"),
        (lambda: cgprimer.train(LINE, DATA, resume="r.json"), "TrainingRun ... load_run"),
        (lambda: FITTED.run_.predict({"xa": 2.0}), ""),
        (lambda: cgprimer.plot.error(3), "`graph` ... 3"),
        (lambda: cgprimer.draw(LINE, path=3), "`path` ... 3"),
        (lambda: cgprimer.draw(LINE, file="a.png"), "'file' ... 'title'"),
        (lambda: cgprimer.differentiate(LINE), "`tape` ... cgprimer.tape(graph)"),
        (lambda: cgprimer.train(LINE, DATA, lr=0.1), "'lr' ... 'learning_rate'"),
        (lambda: cgprimer.train(LINE, DATA, beta=0.1), "'beta'"),
        (lambda: cgprimer.networks.neuron(3, bias=np.ones(2)), "`bias` ... array"),
        (lambda: cgprimer.register_engine(3), "`engine` ... 3"),
        (lambda: cgprimer.rules("x^2", functions=3), "`functions` ... 3"),
        (lambda: LINE.expression([]), "[]"),
        (lambda: LINE.role([]), "[]"),
        (lambda: LINE.role("kk"), "'kk' ... 'k'"),
        (lambda: cgprimer.trace(LINE, AT).row(np.ones(2)), ""),
        (lambda: cgprimer.compare(LINE, AT).result("revers"), "'reverse'"),
        (lambda: DATA.where("a"), ""),
        (lambda: DATA.where(3), "3"),
        (lambda: cgprimer.check_optimizer(3, "adam"), "`submission` ... 3"),
        (lambda: cgprimer.check_optimizer({}, int), "`optimizer` ... int"),
        (lambda: cgprimer.check_engine(None, 2), "`submission` ... None"),
        (lambda: cgprimer.check_gradient(LINE, [1]), "`function` ... [1]"),
        (lambda: cgprimer.check_formula(3, "1"), "`formula` ... 3"),
        (lambda: cgprimer.check_formula(LINE, [1]), "`answer` ... [1]"),
        (lambda: cgprimer.check_trace(3, {}), "`sheet` ... 3"),
        (lambda: cgprimer.check_trace(cgprimer.exercise(kinds="trace"), [1]), "`answers` ... [1]"),
        (lambda: cgprimer.check_trace(cgprimer.exercise(kinds="trace"), {1: 2}), "row, column"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call: Callable[[], Any], said: str) -> None:
    with refused(cgprimer.CgprimerError, said):
        call()


@pytest.mark.parametrize(
    "function",
    [
        "compare", "draw", "ensemble", "export", "fit", "gradient", "graph_with_loss", "hessian",
        "hessian_vector_product", "jacobian", "loss_and_gradient", "make_dataset", "partials",
        "step", "sweep", "tape", "trace", "train", "why",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["xw = a", None, 3, [LINE]])
def test_a_text_or_a_number_in_the_place_of_a_graph(function: str, value: Any) -> None:
    more: dict[str, tuple[Any, ...]] = {
        "ensemble": (DATA,),
        "fit": (DATA,),
        "graph_with_loss": ("squared-error",),
        "hessian_vector_product": (AT, {"k": 1.0}),
        "loss_and_gradient": (DATA,),
        "sweep": (DATA, {"epochs": [1]}),
        "train": (DATA,),
    }
    with refused(cgprimer.UsageError, "`graph` ... ExpressionGraph"):
        getattr(cgprimer, function)(value, *more.get(function, ()))


def test_missing_and_unknown_arguments_of_functions_without_options_are_pythons() -> None:
    for call in (lambda: cgprimer.parse(nme="a"), lambda: cgprimer.train(LINE)):
        with pytest.raises(TypeError, match="argument"):
            call()


def test_errors_that_are_not_about_the_arguments_stay_what_they_are() -> None:
    def broken(_: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cgprimer.train(LINE, DATA, epochs=np.int64(1), on_epoch=broken)
    none: Any = []  # which is no mapping, and does no harm
    with pytest.raises(KeyError, match="mine"):
        cgprimer.fit(LINE, DATA, on_step=broken, bounds=none)


@pytest.mark.parametrize("text", ["xw = 2xa", "xa = xb; xb = xa", "xw = a; xw = b", "xw = f(a)"])
def test_errors_of_texts_go_from_one_process_to_another(text: str) -> None:
    """Other processes' errors are read by pickle: concurrent.futures gave up its pool for one."""
    with pytest.raises(cgprimer.CgprimerError) as error:
        cgprimer.parse(text)
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is type(error.value)
    assert (str(again), vars(again)) == (str(error.value), vars(error.value))


def test_pickle_finds_public_functions_and_their_warnings_point_at_the_caller() -> None:
    for name in ("gradient", "unregister_engine", "unregister_loss"):
        assert pickle.loads(pickle.dumps(getattr(cgprimer, name))) is getattr(cgprimer, name)
    bare = cgprimer.Dataset(DATA.inputs, {})
    graph = cgprimer.parse("xw = dropout(k*xa, 0.2)")
    for given, data in ((LINE, bare), (graph, DATA)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            cgprimer.train(given, data, epochs=1)
        assert [w.filename for w in said] == [__file__]
