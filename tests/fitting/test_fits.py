"""Least-squares fits: iterates of the lecture, certified values of NIST, linear regression."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cgprimer
from cgprimer.errors import CgprimerError, DataError, TrainingError, UsageError
from tests.approval import approved, refused
from tests.fitting import nist
from tests.training.training_graphs import table

LECTURE = cgprimer.load("lecture")
LINE = cgprimer.parse("y = a + b*x")
DECAY = cgprimer.parse("y = a*exp(-b*x)")
X = np.arange(1.0, 11.0)


def dataset(y: Any, **inputs: Any) -> cgprimer.Dataset:
    targets = y if isinstance(y, dict) else {"y": y}
    return cgprimer.Dataset.from_arrays(inputs or {"x": X}, targets)


HALF = dataset(np.exp([0.0, 0.5, 1.0]), x=[0.0, 1.0, 2.0])
NOISY = dataset(3 * np.exp(-0.5 * X) + 0.1 * np.cos(7 * X))
NEAR = {"a": 1, "b": 1}


@pytest.mark.parametrize("method", ["forward", "reverse", "symbolic"])
@pytest.mark.parametrize(("algorithm", "iterates", "damping"), table("fits of the lecture"))
def test_iterates_of_the_lecture(
    algorithm: str, iterates: list[float], damping: list[float], method: str
) -> None:
    graph = cgprimer.parse("y = exp(k*x)")
    found = cgprimer.fit(graph, HALF, start={"k": 1}, algorithm=algorithm, method=method)
    assert [round(float(t.values[0]), 10) for t in found.history[:5]] == [1.0, *iterates]
    assert [t.damping for t in found.history[1:5]] == pytest.approx(damping)
    assert [t.step for t in found.history] == list(range(found.iterations + 1))
    assert all(t.accepted for t in found.history)
    assert found.converged
    assert found.parameters["k"] == pytest.approx(0.5, abs=1e-15)


def test_damping_strategies_choose_lambda_as_in_the_literature() -> None:
    """Compute the first step of each strategy from J'J and J'r."""
    jacobian = np.stack([np.exp(-X), -X * np.exp(-X)], axis=1)
    residuals = np.exp(-X) - NOISY.targets["y"]
    matrix, slope = jacobian.T @ jacobian, jacobian.T @ residuals
    diagonal = np.diag(matrix)
    for name, first, scaling in (
        ("tens", 1.0, np.eye(2)),
        ("marquardt", 1e-2, np.diag(diagonal)),
        ("nielsen", 1e-3 * diagonal.max(), np.eye(2)),
    ):
        for factor in (1.0, 3.0):
            given = None if factor == 1.0 else factor * first
            found = cgprimer.fit(DECAY, NOISY, start=NEAR, damping=name, first_damping=given)
            step = found.history[1]
            assert step.damping == pytest.approx(factor * first)
            expected = 1.0 - np.linalg.solve(matrix + factor * first * scaling, slope)
            np.testing.assert_allclose(step.values, expected, rtol=1e-10)
            assert found.converged
    far = cgprimer.fit(DECAY, NOISY, start={"a": 30, "b": 4}, damping="nielsen").history
    rejections = 0
    for trial, following in pairwise(far[1:]):
        rejections = 0 if trial.accepted else rejections + 1
        if rejections:
            assert following.damping == pytest.approx(2**rejections * trial.damping)
        else:
            assert following.damping >= trial.damping / 3 * (1 - 1e-12)
    assert not all(trial.accepted for trial in far)


@pytest.mark.parametrize("damping", ["tens", "marquardt", "nielsen"])
def test_lecture_graph_determines_only_a_sum(damping: str) -> None:
    data = cgprimer.make_dataset(LECTURE, samples=200, seed=1)
    found = cgprimer.fit(LECTURE, data, seed=1, damping=damping)
    assert found.converged
    assert found.residual_sum_of_squares < 1e-20
    assert found.iterations < 50
    assert (found.rank, found.degrees_of_freedom) == (3, 197)
    assert found.parameters["ab"] + found.parameters["bc"] == pytest.approx(3, abs=1e-10)
    assert found.parameters["cd"] == pytest.approx(3, abs=1e-10)
    assert found.standard_errors["cd"] < 1e-10
    assert np.isinf([*found.standard_errors.values()]).tolist() == [True, True, False, False]
    assert np.isinf(np.diag(found.covariance)).tolist() == [True, True, False, False]
    assert np.isnan(found.covariance[0, 1:]).all()
    assert "increasing ab by 1 and decreasing bc by 1 leaves xw unchanged" in found.sentences[1]
    singular = cgprimer.fit(LECTURE, data, algorithm="gauss-newton")
    assert not singular.converged
    approved(singular.reason, "J'J ... 3 ... 4")


@pytest.mark.parametrize("count", [10, 4])
def test_linear_regression(count: int) -> None:
    """Compare covariance, intervals and bands of a model with three terms with numpy's."""
    graph = cgprimer.parse("y = a + b*x + c*sin(x)*x^2")
    x = X[:count]
    y = 1 + 2 * x + 0.1 * np.cos(11 * x)
    found = cgprimer.fit(graph, dataset(y, x=x))
    assert (found.iterations, found.algorithm, found.converged) == (1, "gauss-newton", True)
    design = np.stack([np.ones_like(x), x, np.sin(x) * x**2], axis=1)
    expected, (total,), *_ = np.linalg.lstsq(design, y)
    variance = total / (count - 3)
    covariance = variance * np.linalg.inv(design.T @ design)
    errors = np.sqrt(np.diag(covariance))
    assert [*found.parameters.values()] == pytest.approx(expected)
    assert [*found.standard_errors.values()] == pytest.approx(errors)
    assert found.residual_sum_of_squares == pytest.approx(total)
    assert found.residual_standard_deviation == pytest.approx(math.sqrt(variance))
    np.testing.assert_allclose(found.covariance, covariance)
    np.testing.assert_allclose(found.normal_matrix, design.T @ design)
    np.testing.assert_allclose(found.correlation, covariance / np.outer(errors, errors))
    for level in (0.95, 0.5):
        t = stats.t.ppf((1 + level) / 2, count - 3)
        ends = [*zip(expected - t * errors, expected + t * errors, strict=True)]
        assert [*found.intervals(level).values()] == [pytest.approx(end) for end in ends]
        at = np.array([0.0, 4.0, 20.0])
        rows = np.stack([np.ones_like(at), at, np.sin(at) * at**2], axis=1)
        error = np.sqrt(np.einsum("ni,ij,nj->n", rows, covariance, rows))
        band = found.band({"x": at}, level=level)
        np.testing.assert_allclose(band.value, rows @ expected)
        np.testing.assert_allclose(band.standard_error, error)
        np.testing.assert_allclose(band.high - band.value, t * error)
        new = found.band({"x": 4.0}, level=level, prediction=True)
        assert new.value - new.low == pytest.approx(t * math.hypot(error[1], math.sqrt(variance)))
    assert found.band().value.shape == (count,)


@pytest.mark.parametrize("start", ["start1", "start2"])
@pytest.mark.parametrize("name", nist.NAMES)
def test_certified_values(name: str, start: str) -> None:
    certified, graph, observed = nist.problem(name)
    found = cgprimer.fit(graph, observed, start=certified[start])
    assert found.converged, found.reason
    assert found.parameters == pytest.approx(certified["certified"], rel=1e-8)
    assert found.standard_errors == pytest.approx(certified["sd"], rel=1e-7)
    assert found.residual_sum_of_squares == pytest.approx(certified["rss"], rel=1e-9)
    assert found.residual_standard_deviation == pytest.approx(certified["rsd"], rel=1e-9)


@pytest.mark.parametrize(
    "algorithm", ["gauss-newton", "trust-region", "dogleg", "minpack", "l-bfgs"]
)
def test_other_algorithms_reach_certified_values(algorithm: str) -> None:
    certified, graph, observed = nist.problem("Chwirut2")
    found = cgprimer.fit(graph, observed, start=certified["start2"], algorithm=algorithm)
    assert found.converged, found.reason
    assert (found.algorithm, found.damping) == (algorithm, "")
    assert found.parameters == pytest.approx(certified["certified"], rel=1e-6)
    assert found.standard_errors == pytest.approx(certified["sd"], rel=1e-5)


@pytest.mark.parametrize("name", ["MGH09", "Rat43", "Eckerle4"])
def test_an_algorithm_that_fails_is_not_converged(name: str) -> None:
    certified, graph, data = nist.problem(name)
    rules: dict[str, Any] = {"algorithm": "gauss-newton", "iterations": 100}
    found = cgprimer.fit(graph, data, start=certified["start1"], **rules)
    assert found.parameters != pytest.approx(certified["certified"], rel=1e-3)
    assert not found.converged
    assert found.reason


def test_weights_are_multiplicities_of_samples() -> None:
    twice = dataset(np.repeat(NOISY.targets["y"], 2), x=np.repeat(X, 2))
    weighted = cgprimer.fit(DECAY, NOISY, start=NEAR, weights=np.full(10, 2.0))
    repeated = cgprimer.fit(DECAY, twice, start=NEAR)
    assert weighted.parameters == pytest.approx(repeated.parameters)
    assert weighted.residual_sum_of_squares == pytest.approx(repeated.residual_sum_of_squares)
    without = cgprimer.fit(DECAY, NOISY, start=NEAR, weights=[1.0] * 9 + [0.0])
    shorter = cgprimer.fit(DECAY, NOISY.where(np.arange(9)), start=NEAR)
    assert without.standard_errors == pytest.approx(shorter.standard_errors)
    both = cgprimer.parse("y = a*x; z = a*x^2")
    pair = dataset({"y": 2 * X, "z": 3 * X**2})
    found = cgprimer.fit(both, pair, weights={"z": 4.0})
    expected = (2 * (X**2).sum() + 12 * (X**4).sum()) / ((X**2).sum() + 4 * (X**4).sum())
    assert found.parameters["a"] == pytest.approx(expected)


def test_bootstrap_agrees_with_theory() -> None:
    random = np.random.default_rng(3)
    x = np.linspace(0, 4, 80)
    y = 3 * np.exp(-0.5 * x) + random.normal(0, 0.05, 80)
    found = cgprimer.fit(DECAY, dataset(y, x=x), start=NEAR)
    slopes, residuals = found.end.jacobian, found.end.residuals
    inverse = np.linalg.inv(found.normal_matrix)
    # White 1980, "A heteroskedasticity-consistent covariance matrix estimator", Econometrica 48.
    sandwich = inverse @ (slopes.T * residuals**2) @ slopes @ inverse
    expected = {False: [*found.standard_errors.values()], True: np.sqrt(np.diag(sandwich))}
    for pairs in (False, True):
        again = found.bootstrap(120, seed=1, pairs=pairs)
        assert again.failed == 0
        assert [*again.standard_errors.values()] == pytest.approx(expected[pairs], rel=0.15)
        low, high = again.intervals(0.8)["b"]
        inside = (low < again.parameters[:, 1]) & (again.parameters[:, 1] < high)
        assert inside.mean() == pytest.approx(0.8, abs=0.02)
    first, second = (found.bootstrap(4, seed=1).parameters.tolist() for _ in range(2))
    assert first == second


def test_bootstrap_inflates_residuals_and_keeps_weights() -> None:
    """Residuals of six data and three parameters are smaller than the errors by sqrt(1/2).

    Samples with weight 1/100 are ten times as noisy, and a weight of 0 leaves a sample out.
    """
    graph = cgprimer.parse("y = a + b*x + c*x^2")
    data = dataset([1.2, 0.7, 1.9, 2.8, 5.5, 7.1], x=np.arange(6.0))
    few = cgprimer.fit(graph, data, start=dict.fromkeys("abc", 1))
    x, sigma = np.linspace(0, 1, 60), np.repeat([0.1, 1.0, 50.0], 20)
    noisy = dataset(2 * x + sigma * np.random.default_rng(4).normal(size=60), x=x)
    weighted = cgprimer.fit(LINE, noisy, weights=np.where(sigma > 1, 0.0, 1 / sigma**2))
    for found, near in ((few, 0.15), (weighted, 0.3)):
        again = found.bootstrap(200, seed=1)
        assert again.standard_errors == pytest.approx(found.standard_errors, rel=near)


def test_arrays_and_several_outputs() -> None:
    graph = cgprimer.parse(
        "input x[2]; parameter W[2,2], b; xh = tanh(W @ x); y = sum(xh) + b; z = W[0,1]*b"
    )
    truth = {"W": [[0.5, -1.0], [0.2, 0.3]], "b": 0.5}
    made = cgprimer.make_dataset(graph, truth=truth, samples=40)
    start = {"W": [[0.4, -0.8], [0.1, 0.2]], "b": 0.1}
    found = cgprimer.fit(graph, made, start=start, freeze=["W[1,1]"])
    assert found.problem.sizes == (1, 1)
    assert found.start["W[1,1]"] == found.parameters["W[1,1]"] == 0.2
    assert found.estimated == ("W[0,0]", "W[0,1]", "W[1,0]", "b")
    assert found.band({"x": [[0.1, 0.2]] * 3}, of="y").value.shape == (3,)
    free = cgprimer.fit(graph, made, start={**start, "W[0,1]": -0.9})
    assert free.start["W[0,1]"] == -0.9
    assert free.converged
    assert free.point["W"] == pytest.approx(np.array(truth["W"]), abs=1e-8)
    assert graph.evaluate({"x": [0.1, 0.2], **free.point})["z"] == pytest.approx(-0.5)


@pytest.mark.parametrize(("name", "bound"), [("b", 0.7), ("a", 5.0)])
@pytest.mark.parametrize("algorithm", ["levenberg-marquardt", "trust-region", "dogleg", "l-bfgs"])
def test_a_parameter_at_its_bound_is_fixed_there(algorithm: str, name: str, bound: float) -> None:
    start, bounds = {"a": 6.0, "b": 0.9}, {name: (bound, math.inf)}
    bounded = cgprimer.fit(DECAY, NOISY, start=start, bounds=bounds, algorithm=algorithm)
    fixed = cgprimer.fit(DECAY, NOISY, start={**start, name: bound}, freeze=name)
    assert bounded.converged, bounded.reason
    assert bounded.parameters == pytest.approx(fixed.parameters, rel=1e-6)
    assert bounded.standard_errors == pytest.approx(fixed.standard_errors, rel=1e-6)
    assert bounded.held_at_bounds == (name,)
    assert any(f"{name} is at its bound {bound:g}" in s for s in bounded.sentences)
    assert all(t.values[[*start].index(name)] >= bound for t in bounded.history)


def test_a_bound_on_the_path_is_left_again() -> None:
    start, bounds = {"a": 0.1, "b": 3.0}, {"a": (0.0, 10.0), "b": (0.1, 3.0)}
    found = cgprimer.fit(DECAY, NOISY, start=start, bounds=bounds)
    free = cgprimer.fit(DECAY, NOISY, start={"a": 3, "b": 0.5})
    assert (found.converged, found.held_at_bounds) == (True, ())
    assert found.parameters == pytest.approx(free.parameters, rel=1e-7)


@pytest.mark.parametrize(("text", "start"), table("fits that end at no minimum"))
def test_ends_that_are_no_minimum(text: str, start: dict[str, float]) -> None:
    y = 2 * X if "1 -" in text else 0.1 - X
    found = cgprimer.fit(cgprimer.parse(text), dataset(y), start=start, iterations=100)
    assert not found.converged, found.parameters
    approved(found.reason)
    assert "not converged" in repr(found)


def test_accepted_steps_are_finite_and_decrease_the_sum_of_squares() -> None:
    graph, data = cgprimer.parse("y = log(a*x)/b"), dataset(np.log(0.01 * X) / 2)
    domain = cgprimer.fit(graph, data, start={"a": 5, "b": 1})
    assert domain.parameters == pytest.approx({"a": 0.01, "b": 2.0})
    assert any(math.isnan(t.residual_sum_of_squares) for t in domain.history)
    for found in (domain, cgprimer.fit(DECAY, NOISY, start={"a": 30, "b": 4})):
        assert found.converged
        sums = [t.residual_sum_of_squares for t in found.history if t.accepted]
        assert all(later <= before * (1 + 1e-12) for before, later in pairwise(sums))
        assert sums[-1] == found.residual_sum_of_squares


@pytest.mark.parametrize(("text", "start", "truth"), table("fits without noise"))
def test_data_without_noise_determine_their_parameters(
    text: str, start: dict[str, float], truth: dict[str, float]
) -> None:
    graph = cgprimer.parse(text)
    found = cgprimer.fit(graph, dataset(graph.evaluate({"x": X, **truth})["y"]), start=start)
    assert found.converged, found.reason
    assert found.parameters == pytest.approx(truth, rel=1e-9)


def test_parameters_that_the_data_do_not_determine() -> None:
    graph = cgprimer.parse("y = a*x; z = k*x; output y")
    unused = cgprimer.fit(graph, dataset(2 * X + np.cos(9 * X)))
    assert unused.converged
    assert np.isinf([unused.standard_errors[n] for n in "ak"]).tolist() == [False, True]
    assert any("k has no effect on y" in s for s in unused.sentences)
    collinear = dataset([1.0, 2.1, 2.9], xa=[1.0, 2.0, 3.0], xb=[1.0, 2.0, 3.0])
    found = cgprimer.fit(cgprimer.parse("y = a*xa + b*xb"), collinear)
    band = found.band({"xa": [1.0, 1.0], "xb": [1.0, 0.0]})
    assert np.isfinite(band.standard_error).tolist() == [True, False]
    zero = cgprimer.fit(cgprimer.parse("y = a*b*x"), dataset(0 * X), start={"a": 0, "b": 0})
    assert (zero.converged, zero.residual_sum_of_squares) == (True, 0)  # nothing to improve
    exact = cgprimer.fit(LINE, dataset([1.0, 3.0], x=[0.0, 1.0]))
    assert (exact.converged, exact.degrees_of_freedom) == (True, 0)
    assert np.isnan([*exact.standard_errors.values()]).all()


def test_an_interrupted_fit_keeps_the_best_point() -> None:
    def stop(trial: Any) -> None:
        if trial.step == 3:
            raise KeyboardInterrupt

    found = cgprimer.fit(DECAY, NOISY, start={"a": 30, "b": 4}, on_step=stop, engine="numpy")
    assert (found.converged, found.reason) == (False, "interrupted")
    assert found.residual_sum_of_squares < found.history[0].residual_sum_of_squares
    assert found.residual_sum_of_squares == min(t.residual_sum_of_squares for t in found.history)
    again = pickle.loads(pickle.dumps(found))
    assert str(again.as_dict()) == str(found.as_dict())
    assert str(again.bootstrap(2)) == str(found.bootstrap(2))


@pytest.mark.parametrize("arguments", table("fit, refused"), ids=str)
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    with refused(CgprimerError):
        cgprimer.fit(DECAY, NOISY, **arguments)


def test_fewer_data_and_fits_that_fail_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, two = cgprimer.parse("y = a + b*x + c*x^2"), dataset([1.0, 2.0], x=[0.0, 1.0])
    with refused(DataError, "2 data ... 3"):
        cgprimer.fit(graph, two)
    assert cgprimer.fit(graph, two, freeze="c", start={"c": 0}).converged
    found = cgprimer.fit(DECAY, NOISY, start=NEAR)
    with refused(UsageError, "2"):
        found.bootstrap(1)
    assert found.bootstrap(2).parameters.shape == (2, 2)
    flat = cgprimer.fit(cgprimer.parse("y = a*b*x"), NOISY, start=NEAR)
    assert flat.bootstrap(5).failed == 0
    monkeypatch.setattr("cgprimer.training.fitting.bootstrap._MAX_STEPS", 0)
    with refused(TrainingError, "0 ... 5"):
        found.bootstrap(5)
