"""What a user of Python gives too early, or of another kind than is taken: said, not Python's."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cgprimer

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
DATA = cgprimer.make_dataset(LINE, samples=8)
X, Y = np.linspace(-1, 1, 8).reshape(-1, 1), np.linspace(-4, 2, 8)
AT = {"xa": 1.0}
FITTED = cgprimer.Estimator("xw = k*xa + b", epochs=1).fit(X, Y)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cgprimer.Estimator("xw = k*xa").predict(X), r"(?s)not fitted.*hint: fit\(X, y\)"),
        (lambda: cgprimer.Estimator("xw = k*xa").score(X, Y), "not fitted"),
        (lambda: cgprimer.Estimator(None).fit(X, Y), "expressions cannot be None"),
        (lambda: FITTED.fit([["a"]], [1]), "X is no table of numbers"),
        (lambda: FITTED.predict([]), "X is no table of numbers"),
        (lambda: FITTED.predict(3), "X is no table of numbers"),
        (lambda: FITTED.score(X, Y[:3]), "X has 8 rows, and y has the shape"),
        (lambda: FITTED.score(X, 2.0), "X has 8 rows, and y has the shape"),
        (lambda: cgprimer.load(None), r"(?s)load: path cannot be None.*it takes str \| Path"),
        (lambda: cgprimer.gradient("xw = a", AT), "(?s)graph cannot be.*cgprimer.parse"),
        (lambda: cgprimer.gradient(LINE, np.ones(3)), "gradient: at cannot be array"),
        (lambda: cgprimer.gradient(LINE, AT, method=["forward"]), "method cannot be"),
        (lambda: cgprimer.gradient(LINE, AT, engine=3), "engine cannot be 3"),
        (lambda: cgprimer.jacobian(LINE, AT, engine=3), "engine cannot be 3"),
        (lambda: cgprimer.parse(nme="a"), "missing a required argument"),
        (lambda: cgprimer.train(LINE, DATA, epochs=np.ones(2)), "epochs"),
        (lambda: cgprimer.train(LINE, DATA, metrics=3), "metrics cannot be 3"),
        (lambda: cgprimer.train(LINE, DATA, loss=np.ones(2)), "loss cannot be array"),
        (lambda: cgprimer.train(LINE, DATA, on_epoch=3), "on_epoch cannot be 3"),
        (lambda: cgprimer.loss_and_gradient(LINE, DATA)(3), "given by name"),
        (lambda: cgprimer.identifiability(LINE, DATA, LINE.values, wrt=("z",)), "parameter 'z'"),
        (lambda: cgprimer.stable_learning_rate(LINE, DATA, {}), "no value for the parameter"),
        (lambda: cgprimer.flat_objective(LINE, DATA, seed=-1), "the seed must be"),
        (lambda: DATA.save(3), "Dataset.save: path cannot be 3"),
        (lambda: DATA.split(0.5, seed=-1), "the seed must be"),
        (lambda: cgprimer.fit(LINE, DATA).save(None), "Fit.save: path cannot be"),
        (lambda: FITTED.run_.save(3), "TrainingRun.save: path cannot be 3"),
        (lambda: cgprimer.Objective(LINE, engine=3), "Objective: engine cannot be 3"),
        (lambda: cgprimer.make_classes("moons", samples=np.ones(2)), "samples must be a whole"),
        (lambda: cgprimer.fit(LINE, DATA, sigma=1), "no argument 'sigma', and"),
        (lambda: cgprimer.train(LINE, DATA, loss=min), "a name .register_loss., not"),
        (lambda: cgprimer.train(LINE, DATA, schedule=min), "a text .rate.0.9.t., not"),
        (lambda: cgprimer.train(LINE, DATA, resume="r.json"), "TrainingRun .from load_run., not"),
        (lambda: FITTED.run_.predict({"xa": 2.0}), "per sample, as in"),
        (lambda: cgprimer.plot.error(3), "error: graph cannot be 3"),
        (lambda: cgprimer.draw(LINE, path=3), "draw: path cannot be 3"),
        (lambda: cgprimer.draw(LINE, file="a.png"), "'file'\n  hint: did you mean 'title'"),
        (lambda: cgprimer.differentiate(LINE), "takes Tape; cgprimer.tape.graph. makes one"),
        (lambda: cgprimer.train(LINE, DATA, lr=0.1), "'lr'\n  hint: did you mean 'learning_rate'"),
        (lambda: cgprimer.train(LINE, DATA, beta=0.1), "'beta'\n  hint: an optimizer's own"),
        (lambda: cgprimer.networks.neuron(3, bias=np.ones(2)), "neuron: bias cannot be array"),
        (lambda: cgprimer.register_engine(3), "engine cannot be 3"),
        (lambda: cgprimer.rules("x^2", functions=3), "functions cannot be 3"),
        (lambda: LINE.expression([]), r"nothing defines \[\]"),
        (lambda: LINE.role([]), r"there is no \[\]"),
        (lambda: LINE.role("kk"), "(?s)there is no 'kk'.*did you mean 'k'"),
        (lambda: cgprimer.trace(LINE, AT).row(np.ones(2)), "no row array"),
        (lambda: cgprimer.compare(LINE, AT).result("revers"), "(?s)no method.*'reverse'"),
        (lambda: DATA.where("a"), "a list of numbers or a mask"),
        (lambda: DATA.where(3), "a list of numbers or a mask, not by 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(cgprimer.CgprimerError, match=said):
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
