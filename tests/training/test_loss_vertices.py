"""The loss as a vertex: PyTorch's numbers, the lecture's, texts by name, classes, functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.loss_expressions import LOSSES, parse_loss
from cgprimer.core.operations.notation import unparse
from cgprimer.errors import CgprimerError, DataError, NonFiniteError, UsageError
from cgprimer.training.data import Dataset
from tests.approval import refused, warned

Array = Any
ONE = cgprimer.parse("xo = k*x")
THREE = cgprimer.parse("xa = a*x; xb = b*x; xc = c*x")
ROW = cgprimer.parse("input x[2]; parameter W[3,2]; xo = W @ x")
NEURON = cgprimer.parse(
    "input x = 2; parameter w = .5, b = -1; z = w*x + b; yhat = 1/(1 + exp(-z))"
)

# torch 2, float64, reduction="none": output, target, loss, slope
HUBER = (
    ("huber", -2.5, 0.0, 2.0, -1.0), ("huber", -0.4, -0.1, 0.045, -0.3),
    ("huber", 0.3, 1.0, 0.245, -0.7), ("huber(0.5)", -2.5, 0.0, 1.125, -0.5),
    ("huber(delta=0.5)", 0.3, 1.0, 0.225, -0.5), ("huber(0.5)", 1.7, 1.5, 0.02, 0.2),
)  # fmt: skip
BINARY = (
    ("cross-entropy", 0.1, 0.0, 0.10536051565782631, 1.111111111111111),
    ("cross-entropy", 0.5, 1.0, 0.6931471805599453, -2.0),
    ("cross-entropy", 0.9, 0.75, 0.6546666599918812, 1.6666666666666672),
    ("cross-entropy", 0.25, 0.5, 0.8369882167858358, -1.3333333333333333),
    ("cross-entropy-logit", -1000.0, 0.0, 0.0, 0.0), ("cross-entropy-logit", 1000.0, 1.0, 0.0, 0.0),
    ("cross-entropy-logit", 1000.0, 0.0, 1000.0, 1.0),
    ("cross-entropy-logit", -1000.0, 1.0, 1000.0, -1.0),
    ("cross-entropy-logit", 0.5, 0.25, 0.8490769841801067, 0.3724593312018546),
    ("cross-entropy-logit", -2.0, 1.0, 2.1269280110429727, -0.8807970779778824),
)  # fmt: skip
HINGE = (
    ("hinge", 0.25, 1.0, 0.75, -1.0), ("hinge", -2.0, 1.0, 3.0, -1.0),
    ("hinge", 3.0, 1.0, 0.0, 0.0), ("hinge", 0.5, -1.0, 1.5, 1.0),
)  # fmt: skip
# Not torch's: it clips the logarithm at -100 and the slope with it.
EXACT = (
    ("cross-entropy", 1.0, 1.0, 0.0, -1.0), ("cross-entropy", 0.0, 0.0, 0.0, 1.0),
    ("cross-entropy", 0.0, 1.0, math.inf, -math.inf),
    ("cross-entropy", 1.0, 0.0, math.inf, math.inf),
)  # fmt: skip


@pytest.mark.parametrize("engine", ["plain", "numpy", "cpu"])
@pytest.mark.parametrize(
    ("loss", "out", "target", "value", "slope"), [*HUBER, *BINARY, *HINGE, *EXACT]
)
def test_as_torch(
    loss: str, out: float, target: float, value: float, slope: float, engine: str
) -> None:
    data = Dataset.from_arrays({"x": [1.0]}, {"xo": [target]})
    near = {"rel": 1e-14, "abs": 1e-15}
    found = cgprimer.loss_and_gradient(ONE, data, loss=loss, engine=engine)({"k": out})
    assert found[0] == pytest.approx(value, **near)
    assert found[1]["k"] == pytest.approx(slope, **near)
    at = {"k": out, "x": 1.0, "target": target}
    assert graph_with_loss(ONE, loss).evaluate(at)["loss"] == pytest.approx(
        value, rel=1e-14, abs=1e-15
    )
    point = cgprimer.gradient(ONE, at, loss=loss, engine="plain")
    assert point["k"] == pytest.approx(slope, rel=1e-14, abs=1e-15)


SOFTMAX = (  # logits, class or probabilities, loss, slopes
    ([1.0, 2.0, 3.0], 0, 2.4076059644443806,
     [-0.9099694268296196, 0.24472847105479764, 0.6652409557748218]),
    ([0.5, -0.5, 0.0], 1, 1.6802696706417346,
     [0.506480391055654, -0.8136762767741524, 0.3071958857184984]),
    ([-1000.0, 0.0, 1000.0], 2, 0.0, [0.0, 0.0, 0.0]),
    ([-1000.0, 0.0, 1000.0], 0, 2000.0, [-1.0, 0.0, 1.0]),
    ([1.0, 2.0, 3.0], [0.2, 0.3, 0.5], 1.1076059644443805,
     [-0.10996942682961958, -0.05527152894520235, 0.16524095577482178]),
)  # fmt: skip


@pytest.mark.parametrize(("logits", "target", "value", "slopes"), SOFTMAX)
def test_softmax_as_torch_in_numbers_and_in_arrays(
    logits: list[float], target: Any, value: float, slopes: list[float]
) -> None:
    known, near = dict(zip("abc", slopes, strict=True)), {"rel": 1e-13, "abs": 1e-15}
    of_classes = {"target": target} if target in (0, 1, 2) else {
        f"target_x{n}": p for n, p in zip("abc", target, strict=True)
    }  # fmt: skip
    at = {"x": 1.0, **dict(zip("abc", logits, strict=True))}
    loss = "softmax-cross-entropy"
    found = cgprimer.gradient(THREE, {**at, **of_classes}, loss=loss)
    assert found == pytest.approx(known, **near)
    if target in (0, 1, 2):  # a column of another name than the outputs has the classes
        data = Dataset.from_arrays({"x": [1.0]}, {"label": [target]})
    else:
        data = Dataset.from_arrays(
            {"x": [1.0]}, {f"x{n}": [p] for n, p in zip("abc", target, strict=True)}
        )
    total, gradient = cgprimer.loss_and_gradient(THREE, data, loss=loss)(at)
    assert total == pytest.approx(value, **near)
    assert gradient == pytest.approx(known, **near)
    point = {"x": [1.0, 0.0], "W": [[n, 0.0] for n in logits], "target": target}
    slope = cgprimer.gradient(ROW, point, loss=loss)["W"]
    assert slope[:, 0] == pytest.approx(slopes, **near)
    data = Dataset.from_arrays({"x": [[1.0, 0.0]]}, {"xo": [target]})
    for engine in ("plain", "cpu"):
        call = cgprimer.loss_and_gradient(ROW, data, loss=loss, engine=engine)
        total, gradient = call({"W": point["W"]})
        assert total == pytest.approx(value, **near)
        assert gradient["W"][:, 0] == pytest.approx(slopes, **near)


# --- a vertex of the graph -----------------------------------------------------------------------

B2 = {"w": -0.25, "b": -0.125, "x": -0.0625}


def test_the_lectures_neuron_with_a_loss_by_name() -> None:
    """Case B2."""
    loss, at = "(yhat - y)^2/2", {"y": 1.0}
    assert graph_with_loss(NEURON, loss).evaluate(at)["loss"] == 0.125
    for method in cgprimer.methods()[1:]:
        assert cgprimer.gradient(NEURON, at, loss=loss, wrt=list(B2), method=method) == B2
    rows = cgprimer.trace(NEURON, at, loss=loss, method="reverse")
    assert {name: rows.row(name).derivative for name in B2} == B2
    assert rows.of == "loss"
    assert "loss" in cgprimer.step(NEURON, at, loss=loss, methods=["reverse"], method="reverse")
    side_by_side = cgprimer.compare(NEURON, at, loss=loss, wrt=list(B2))
    assert all(r.worst_error is None or r.worst_error < 1e-7 for r in side_by_side.results)
    assert {r.method for r in side_by_side.results if not r.refused} == set(cgprimer.methods())


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "softmax-cross-entropy"])
def test_all_methods_agree_on_every_loss(loss: str) -> None:
    at = {"target": -1.0 if loss == "hinge" else 0.3, "x": 2.5}
    found = cgprimer.compare(NEURON, at, loss=loss, wrt=["w", "x", "target"])
    for result in found.results:
        assert not result.refused
        assert result.worst_error is not None
        assert result.worst_error < 1e-7, result.method


@pytest.mark.parametrize(
    ("text", "loss", "inputs"),
    [
        ("xw = k*xa", "squared-error", ("xa", "target")),
        ("xw = k*xa; xv = b*xa; output xv, xw", "huber", ("xa", "target_xw", "target_xv")),
        ("target = k*xa; loss = target^2", "hinge", ("xa", "target_")),
        ("out = k*xa", "(out - target)^2", ("xa", "target")),
        ("out = k*xa", "out^2 + k", ("xa",)),
        ("input x[2]; xo = W*x; parameter W[2]", "squared-error", ("x", "target")),
        ("xa = a*x; xb = b*x", "softmax-cross-entropy", ("x", "target")),
        ("xw = k*xa  # no end of line", "(xw - y)^2 + 0.1*k^2", ("xa", "y")),
    ],
)
def test_the_graph_with_its_loss_is_a_text_like_any_other(
    text: str, loss: str, inputs: tuple[str, ...]
) -> None:
    graph = cgprimer.parse(text)
    made = graph_with_loss(graph, loss)
    assert made.inputs == inputs
    assert len(made.outputs) == 1
    again = cgprimer.parse(made.text)
    assert (again.text, again.outputs, again.depends_on) == (
        made.text,
        made.outputs,
        made.depends_on,
    )
    assert graph_with_loss(graph, loss) is made  # kept, so that a second gradient is quick
    assert graph_with_loss(graph, None) is graph


def test_a_mistake_in_a_graph_with_its_loss_is_placed_in_the_text() -> None:
    graph = graph_with_loss(cgprimer.parse("input x[2]\nxh = 2*x\nxo = sum(xh)"), "squared-error")
    place = next(s for s in graph.program.statements if s.name == "loss")
    assert graph.program.name_span(place).location().endswith(":5:1")


@pytest.mark.parametrize(
    ("loss", "at", "said"),
    [
        ("(xoo - y)^2", {"k": 1, "x": 1, "y": 1}, "'xo'"),
        ("(xo - y)^2", {"k": 1, "x": 1, "yy": 1}, "'yy'"),
        ("(xo - y)^2", {"k": 1, "x": 1}, "at={NAME: VALUE}"),
        ("cross-entropy", {"k": 1, "x": 1, "target": 1.5}, "1.5"),
        ("hinge", {"k": 1, "x": 1, "target": [1, -1, 0]}, "0 ... 2"),
        ("softmax-cross-entropy", None, "cross-entropy-logit"),
        ("crossentropy", None, "'cross-entropy'"),
        ("huber(0)", None, "positive"),
        ("huber(gamma=2)", None, "delta"),
        ("huber(x)", None, "delta"),
        ("log(xo", None, ""),
        (7, None, "int"),
    ],
)  # fmt: skip
def test_wrong_losses_and_targets(loss: Any, at: Any, said: str) -> None:
    with refused(CgprimerError, said) as caught:
        cgprimer.gradient(ONE, at, loss=loss)
    assert caught.value.exit_code == 2


def test_what_a_loss_does_not_fit() -> None:
    with refused(UsageError, "k ... 3"):
        graph_with_loss(cgprimer.parse("xa = k*x; xb = 2*x; xc = x"), "(out - target)^2 + k^2")
    with refused(UsageError, "3 ... xa ... xb ... xc"):
        graph_with_loss(THREE, "output")
    with refused(DataError, "0 ... 2"):
        cgprimer.gradient(THREE, {"x": 1, "a": 1, "b": 1, "c": 1, "target": 3},
                          loss="softmax-cross-entropy")  # fmt: skip
    two = cgprimer.parse("input x[2] = 1; y = 2*x")
    with refused(cgprimer.UsageError, "sum(y[5])"):
        cgprimer.gradient(two, {"target": 1}, loss="sum(out[5])", wrt="x")


# --- training ------------------------------------------------------------------------------------


def line_data() -> Dataset:
    return Dataset.from_arrays({"x": [0.0, 1.0, 2.0]}, {"y": [0.5, 2.0, 4.5]})


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_a_loss_by_name_with_a_penalty_has_the_minimum_of_ridge_regression(engine: str) -> None:
    graph = cgprimer.parse("xo = k*x + b")
    run = cgprimer.train(
        graph, line_data(), loss="(xo - y)^2/2 + 0.1*k^2", batch_size=None, optimizer="sgd",
        learning_rate=0.4, schedule="constant", epochs=2000, engine=engine,
    )  # fmt: skip
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.5, 2.0, 4.5])
    matrix = np.array([[(x * x).mean() + 0.2, x.mean()], [x.mean(), 1.0]])
    expected = np.linalg.solve(matrix, [(x * y).mean(), y.mean()])
    assert [run.parameters[n] for n in "kb"] == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("batch", [1, 2, None])
def test_the_sum_over_a_batch_is_its_size_times_the_mean(engine: str, batch: int | None) -> None:
    """Three samples in batches of two: the last one is short."""
    graph, data = (
        cgprimer.parse("xo = k*x"),
        Dataset.from_arrays({"x": [1, 2, 3]}, {"xo": [2, 3, 5]}),
    )
    run = cgprimer.train(
        graph, data, reduction="sum", batch_size=batch, optimizer="sgd", learning_rate=0.01,
        schedule="constant", epochs=2, shuffle=False, start={"k": 0.0}, engine=engine,
    )  # fmt: skip
    k, losses = 0.0, []
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 5.0])
    for part in [slice(i, i + (batch or 3)) for i in range(0, 3, batch or 3)] * 2:
        error = k * x[part] - y[part]
        losses.append((error**2).mean())
        k -= 0.01 * (2 * error * x[part]).sum()
    assert run.parameters["k"] == pytest.approx(k, rel=1e-13)
    assert run.step_losses == pytest.approx(losses, rel=1e-13)  # told as means


def test_a_graph_whose_output_is_the_loss_needs_no_target() -> None:
    graph = cgprimer.parse("input x, y; yhat = k*x; l = (yhat - y)^2/2")
    columns = {"x": [1.0, 2.0], "y": [3.0, 6.0]}
    with warned(UserWarning, "'l'"):
        run = cgprimer.train(graph, Dataset.from_arrays(columns), epochs=300)
    assert run.parameters["k"] == pytest.approx(3.0, abs=1e-3)
    assert run.settings["loss"] == "output"
    explicit = cgprimer.train(graph, Dataset.from_arrays(columns), loss="output", epochs=300)
    assert explicit.parameters == run.parameters


def test_without_inputs_a_function_is_minimised() -> None:
    graph = cgprimer.parse("l = 2*p^2 + 3*q^2")
    data = cgprimer.make_dataset(graph, samples=4, targets=False)
    rules: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant"}
    start = {"p": 4.0, "q": 5.0}
    for engine in ("plain", "numpy", "cpu"):
        run = cgprimer.train(
            graph, data, loss="output", start=start, engine=engine, epochs=1, **rules
        )
        assert run.parameters == pytest.approx({"p": 4 * 0.6, "q": 5 * 0.4}, rel=1e-14)


@pytest.mark.parametrize(
    ("loss", "targets", "said"),
    [
        ("cross-entropy", [0.5, 1.25], "'xo' ... 1.25"),
        ("cross-entropy-logit", [0.5, -0.25], "-0.25 ... 1"),
        ("hinge", [1.0, 0.5], "0.5 ... -1"),
    ],
)
def test_targets_are_checked_before_any_work(loss: str, targets: list[float], said: str) -> None:
    data = Dataset.from_arrays({"x": [1.0, 2.0]}, {"xo": targets})
    for call in (cgprimer.train, cgprimer.loss_and_gradient):
        with refused(DataError, said):
            call(ONE, data, loss=loss)
    good = Dataset.from_arrays({"x": [1.0, 2.0]}, {"xo": [1.0, 1.0]})
    with refused(DataError, said):
        cgprimer.train(ONE, good, loss=loss, validation=data)


def test_classes_are_checked() -> None:
    for classes, said in (([0, 3], "3 ... 1"), ([0.5, 1], "0.5")):
        data = Dataset.from_arrays({"x": [1.0, 2.0]}, {"label": classes})
        with refused(DataError, said):
            cgprimer.train(THREE, data, loss="softmax-cross-entropy")
    data = Dataset.from_arrays({"x": [[1.0, 0.0]] * 2}, {"xo": [[1, 0, 0], [0.5, 0.25, 0]]})
    with refused(DataError, "0.75 ... 1"):
        cgprimer.train(ROW, data, loss="softmax-cross-entropy")


def test_a_loss_that_is_not_finite_is_called_by_its_name() -> None:
    data = Dataset.from_arrays({"x": [1.0]}, {"xo": [1.0]})
    with refused(NonFiniteError, "inf ... 0") as caught:
        cgprimer.train(ONE, data, loss="cross-entropy", start={"k": 0.0})
    assert "cross-entropy-logit" in caught.value.hint


# --- functions -----------------------------------------------------------------------------------


def test_a_function_that_can_be_recorded_is_a_text() -> None:
    cgprimer.register_loss("smooth", lambda out, target: np.sqrt((out - target) ** 2 + 1) - 1)
    try:
        assert unparse(parse_loss("smooth")) == "sqrt((out - target)^2 + 1) - 1"  # type: ignore[arg-type]
        found = cgprimer.gradient(ONE, {"k": 2.0, "x": 1.0, "target": 1.0}, loss="smooth")
        assert found["k"] == pytest.approx(1 / math.sqrt(2))
    finally:
        cgprimer.unregister_loss("smooth")


def uneven(out: Any, target: Any) -> Any:
    """Three times as bad above as below."""
    error = out - target
    return 3 * error**2 if error > 0 else error**2


@pytest.mark.parametrize("batch", [1, 2, None])
def test_a_function_with_an_if_runs_in_python_and_says_so(batch: int | None) -> None:
    data = Dataset.from_arrays({"x": [1.0, 2.0, 3.0]}, {"xo": [1.0, 5.0, 5.5]})
    same = "where(less(target, out), 3*(out - target)^2, (out - target)^2)"
    cgprimer.register_loss("uneven", uneven)
    rules: dict[str, Any] = {"batch_size": batch, "epochs": 3, "start": {"k": 2.0}}
    try:
        with warned(UserWarning, "'uneven'") as said:
            run = cgprimer.train(ONE, data, loss="uneven", **rules)
        assert len(said) == 1
        with warned(UserWarning):
            call = cgprimer.loss_and_gradient(ONE, data, loss="uneven")
        with refused(UsageError):
            graph_with_loss(ONE, "uneven")
    finally:
        cgprimer.unregister_loss("uneven")
    known = cgprimer.loss_and_gradient(ONE, data, loss=same)({"k": 2.0})
    assert call({"k": 2.0})[0] == pytest.approx(known[0], rel=1e-14)
    assert call({"k": 2.0})[1] == pytest.approx(known[1], rel=1e-14)
    expected = cgprimer.train(ONE, data, loss=same, **rules)
    assert run.parameters == pytest.approx(expected.parameters, rel=1e-12)
    assert run.step_losses == pytest.approx(expected.step_losses, rel=1e-12)


def test_a_function_of_arrays_and_of_several_outputs() -> None:
    def farthest(out: Any, target: Any) -> Any:
        error = (out - target) ** 2
        return error.sum() if out.ndim and float(error.data.max()) < 4 else 2 * error.sum()

    def by_python(out: Any, target: Any) -> Any:
        return uneven(out, target) if out.ndim == 0 else farthest(out, target)

    cgprimer.register_loss("far", lambda out, target: by_python(out, target) if hasattr(out, "ndim")
                           else uneven(out, target))  # fmt: skip
    try:
        data = Dataset.from_arrays({"x": [[1.0, 0.5], [3.0, 1.0]]}, {"xo": [[0, 1, 0], [1, 0, 0]]})
        at = np.arange(6.0).reshape(3, 2) / 4
        with warned(UserWarning):
            total, gradient = cgprimer.loss_and_gradient(ROW, data, loss="far")({"W": at})
        error = data.inputs["x"] @ at.T - data.targets["xo"]
        weight = np.where((error**2).max(axis=1) < 4, 1.0, 2.0)
        assert total == pytest.approx((weight * (error**2).sum(axis=1)).sum(), rel=1e-13)
        expected = (2 * weight[:, None] * error).T @ data.inputs["x"]
        np.testing.assert_allclose(gradient["W"], expected, rtol=1e-13)
        data = Dataset.from_arrays({"x": [1.0]}, {"xa": [0.0], "xb": [3.0], "xc": [1.0]})
        with warned(UserWarning):
            total, gradient = cgprimer.loss_and_gradient(THREE, data, loss="far")(
                {"a": 1.0, "b": 1.0, "c": 2.0}
            )
        assert total == 3 + 4 + 3
        assert gradient == {"a": 6.0, "b": -4.0, "c": 6.0}
    finally:
        cgprimer.unregister_loss("far")


def test_a_function_that_does_not_work_is_refused_at_once() -> None:
    for wrong in (lambda out: out, lambda out, target: None, lambda out, target: out.nothing):
        with refused(UsageError):
            cgprimer.register_loss("wrong", wrong)
    assert "wrong" not in LOSSES
