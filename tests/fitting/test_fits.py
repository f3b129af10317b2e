"""Fits with known answers: the lecture's iterates, NIST's digits, linear regression."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, NonFiniteError, TrainingError, UsageError
from tests.approval import approved, refused
from tests.fitting import nist

EXPONENTIAL = cgprimer.parse("y = exp(k*x)")
X = np.arange(1.0, 11.0)
DECAY = cgprimer.parse("y = a*exp(-b*x)")


def data(y: Any, **inputs: Any) -> cgprimer.Dataset:
    targets = y if isinstance(y, dict) else {"y": y}
    return cgprimer.Dataset.from_arrays(inputs or {"x": X}, targets)


HALF = data(np.exp([0.0, 0.5, 1.0]), x=[0.0, 1.0, 2.0])
NOISY = data(3 * np.exp(-0.5 * X) + 0.1 * np.cos(7 * X))


# --- the lecture ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["forward", "reverse", "symbolic"])
@pytest.mark.parametrize(
    ("algorithm", "iterates", "damping"),
    [
        ("gauss-newton", (0.6814063886, 0.5284371186, 0.5007621362, 0.5000005561), (0,) * 4),
        (
            "levenberg-marquardt",
            (0.6828112360, 0.5290917629, 0.5008051709, 0.5000006456),
            (1, 0.1, 0.01, 0.001),
        ),
    ],
)
def test_the_iterates_of_the_lecture(
    algorithm: str, iterates: tuple[float, ...], damping: tuple[float, ...], method: str
) -> None:
    found = cgprimer.fit(EXPONENTIAL, HALF, start={"k": 1}, algorithm=algorithm, method=method)
    assert [round(float(t.values[0]), 10) for t in found.history[:5]] == [1.0, *iterates]
    assert [t.damping for t in found.history[1:5]] == pytest.approx(damping)
    assert all(t.accepted for t in found.history)
    assert found.converged
    assert found.parameters["k"] == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("damping", ["tens", "marquardt", "nielsen"])
def test_the_lecture_graph_is_fitted_in_under_fifty_steps(seed: int, damping: str) -> None:
    graph = cgprimer.load("lecture")
    made = cgprimer.make_dataset(graph, samples=200, seed=seed)
    found = cgprimer.fit(graph, made, seed=seed, damping=damping)
    assert found.converged
    assert found.residual_sum_of_squares < 1e-20
    assert found.iterations < 50
    assert found.rank == 3
    assert found.parameters["ab"] + found.parameters["bc"] == pytest.approx(3, abs=1e-10)
    assert found.parameters["cd"] == pytest.approx(3, abs=1e-10)
    assert math.isinf(found.standard_errors["ab"])
    assert found.standard_errors["cd"] < 1e-10
    assert "increasing ab by 1 and decreasing bc by 1 leaves xw unchanged" in " ".join(
        found.sentences
    )


def test_gauss_newton_says_that_the_normal_equations_are_singular() -> None:
    graph = cgprimer.load("lecture")
    found = cgprimer.fit(graph, cgprimer.make_dataset(graph), algorithm="gauss-newton")
    assert not found.converged
    approved(found.reason, "J'J ... 3 ... 4")


def test_what_is_linear_in_its_parameters_takes_one_step() -> None:
    graph = cgprimer.parse("y = a + b*x + c*sin(x)*x^2")
    y = 1 + 2 * X + 0.1 * np.cos(11 * X)
    found = cgprimer.fit(graph, data(y))
    assert (found.iterations, found.algorithm, found.converged) == (1, "gauss-newton", True)
    design = np.stack([np.ones_like(X), X, np.sin(X) * X**2], axis=1)
    expected, total, *_ = np.linalg.lstsq(design, y)
    spread = total[0] / (len(X) - 3) * np.linalg.inv(design.T @ design)
    assert list(found.parameters.values()) == pytest.approx(expected)
    assert list(found.standard_errors.values()) == pytest.approx(np.sqrt(np.diag(spread)))
    assert found.covariance == pytest.approx(spread)
    assert found.normal_matrix == pytest.approx(design.T @ design)
    assert found.correlation[0, 1] == pytest.approx(
        spread[0, 1] / math.sqrt(spread[0, 0] * spread[1, 1])
    )


# --- certified values ----------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["start1", "start2"])
@pytest.mark.parametrize("name", nist.NAMES)
def test_certified_digits(name: str, start: str) -> None:
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
@pytest.mark.parametrize("name", ["Misra1a", "Chwirut2"])
def test_the_other_algorithms_agree(name: str, algorithm: str) -> None:
    certified, graph, observed = nist.problem(name)
    found = cgprimer.fit(graph, observed, start=certified["start2"], algorithm=algorithm)
    assert found.converged, found.reason
    assert found.parameters == pytest.approx(certified["certified"], rel=1e-6)
    assert found.standard_errors == pytest.approx(certified["sd"], rel=1e-5)


@pytest.mark.parametrize("name", ["MGH09", "Rat43", "Eckerle4"])
def test_an_algorithm_that_fails_does_not_say_that_it_has_converged(name: str) -> None:
    certified, graph, observed = nist.problem(name)
    found = cgprimer.fit(
        graph, observed, start=certified["start1"], algorithm="gauss-newton", iterations=200
    )
    assert found.parameters != pytest.approx(certified["certified"], rel=1e-3)
    assert not found.converged
    assert found.reason


# --- what is asked of a result -------------------------------------------------------------------


def test_intervals_and_bands_are_students() -> None:
    """Of a straight line they stand in every textbook."""
    graph = cgprimer.parse("y = a + b*x")
    y = 1 + 2 * X + 0.3 * np.cos(5 * X)
    found = cgprimer.fit(graph, data(y))
    slope, begin = np.polyfit(X, y, 1)
    spread = math.sqrt(((y - begin - slope * X) ** 2).sum() / 8)
    t = 2.306004135204166  # of 8 degrees of freedom
    mean, square = X.mean(), ((X - X.mean()) ** 2).sum()
    low, high = found.intervals()["b"]
    assert (low, high) == pytest.approx(
        (slope - t * spread / math.sqrt(square), slope + t * spread / math.sqrt(square))
    )
    at = np.array([0.0, 4.0, 20.0])
    error = spread * np.sqrt(1 / 10 + (at - mean) ** 2 / square)
    band = found.band({"x": at})
    assert band.value == pytest.approx(begin + slope * at)
    assert band.high - band.value == pytest.approx(t * error)
    new = found.band({"x": 4.0}, prediction=True)
    assert new.value - new.low == pytest.approx(t * math.hypot(error[1], spread))
    assert found.band().value.shape == (10,)


def test_a_band_is_infinite_where_the_data_leave_the_output_open() -> None:
    graph = cgprimer.parse("y = a*xa + b*xb")
    observed = data([1.0, 2.1, 2.9], xa=[1.0, 2.0, 3.0], xb=[1.0, 2.0, 3.0])
    found = cgprimer.fit(graph, observed)
    assert found.rank == 1
    band = found.band({"xa": [1.0, 1.0], "xb": [1.0, 0.0]})
    assert np.isfinite(band.standard_error).tolist() == [True, False]


def test_weights_count_a_sample_as_often_as_they_say() -> None:
    twice = data(*(np.repeat(c, 2) for c in NOISY.targets.values()), x=np.repeat(X, 2))
    weighed = cgprimer.fit(DECAY, NOISY, start={"a": 1, "b": 1}, weights=np.full(10, 2.0))
    repeated = cgprimer.fit(DECAY, twice, start={"a": 1, "b": 1})
    assert weighed.parameters == pytest.approx(repeated.parameters)
    assert weighed.residual_sum_of_squares == pytest.approx(repeated.residual_sum_of_squares)
    without = cgprimer.fit(DECAY, NOISY, start={"a": 1, "b": 1}, weights=[1.0] * 9 + [0.0])
    shorter = cgprimer.fit(DECAY, NOISY.where(np.arange(9)), start={"a": 1, "b": 1})
    assert without.standard_errors == pytest.approx(shorter.standard_errors)


def test_the_bootstrap_agrees_with_theory() -> None:
    random = np.random.default_rng(3)
    x = np.linspace(0, 4, 80)
    y = 3 * np.exp(-0.5 * x) + random.normal(0, 0.05, 80)
    found = cgprimer.fit(DECAY, data(y, x=x), start={"a": 1, "b": 1})
    slopes, residuals = found.end.jacobian, found.end.residuals
    inverse = np.linalg.inv(found.normal_matrix)
    # White 1980, "A heteroskedasticity-consistent covariance matrix estimator", Econometrica 48.
    sandwich = inverse @ (slopes.T * residuals**2) @ slopes @ inverse
    for pairs, expected in (
        (False, list(found.standard_errors.values())),
        (True, np.sqrt(np.diag(sandwich))),
    ):
        again = found.bootstrap(300, seed=1, pairs=pairs)
        assert again.failed == 0
        assert list(again.standard_errors.values()) == pytest.approx(expected, rel=0.12)
        low, high = again.intervals()["b"]
        assert low < found.parameters["b"] < high
    same = found.bootstrap(10, seed=1).parameters
    assert same.tolist() == found.bootstrap(10, seed=1).parameters.tolist()


def test_the_bootstrap_makes_up_for_few_degrees_of_freedom() -> None:
    """Six residuals of three parameters are smaller than the errors by sqrt(1/2)."""
    graph = cgprimer.parse("y = a + b*x + c*x^2")
    y = [1.2, 0.7, 1.9, 2.8, 5.5, 7.1]
    found = cgprimer.fit(graph, data(y, x=np.arange(6.0)), start={"a": 1, "b": 1, "c": 1})
    assert found.bootstrap(400).standard_errors == pytest.approx(found.standard_errors, rel=0.15)


def test_several_outputs_and_arrays() -> None:
    graph = cgprimer.parse(
        "input x[2]; parameter W[2,2], b; xh = tanh(W @ x); y = sum(xh) + b; z = W[0,1]*b"
    )
    truth = {"W": [[0.5, -1.0], [0.2, 0.3]], "b": 0.5}
    made = cgprimer.make_dataset(graph, truth=truth, samples=40)
    start = {"W": [[0.4, -0.8], [0.1, 0.2]], "b": 0.1}
    found = cgprimer.fit(graph, made, start=start, freeze=["W[1,1]"])
    assert found.problem.sizes == (1, 1)
    assert found.start["W[1,1]"] == found.parameters["W[1,1]"] == 0.2
    assert "W[1,1]" not in found.standard_errors
    assert found.estimated == ("W[0,0]", "W[0,1]", "W[1,0]", "b")
    free = cgprimer.fit(graph, made, start=start)
    assert free.converged
    assert free.point["W"] == pytest.approx(np.array(truth["W"]), abs=1e-8)
    assert graph.evaluate({"x": [0.1, 0.2], **free.point})["z"] == pytest.approx(-0.5)
    assert cgprimer.fit(graph, made, start={"W[0,1]": -1, "b": 0.5}).start["W[0,1]"] == -1


def test_samples_that_depend_on_each_other() -> None:
    graph = cgprimer.parse("xc = x - batch_mean(x*k); y = a*xc")
    y = 2 * (X - 0.5 * X.mean())
    found = cgprimer.fit(graph, data(y), start={"a": 1, "k": 1})
    assert found.converged
    assert found.parameters == pytest.approx({"k": 0.5, "a": 2.0})


# --- bounds and what is fixed --------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["levenberg-marquardt", "trust-region", "dogleg", "l-bfgs"])
def test_bounds_hold_and_the_rest_is_fitted_as_if_fixed_there(algorithm: str) -> None:
    bounded = cgprimer.fit(
        DECAY, NOISY, start={"a": 1, "b": 0.9}, bounds={"b": (0.7, math.inf)}, algorithm=algorithm
    )
    fixed = cgprimer.fit(DECAY, NOISY, start={"a": 1, "b": 0.7}, freeze="b")
    assert bounded.converged, bounded.reason
    assert bounded.parameters == pytest.approx(fixed.parameters, rel=1e-6)
    assert bounded.standard_errors == pytest.approx(fixed.standard_errors, rel=1e-6)
    assert any("b is at its bound 0.7" in s for s in bounded.sentences)
    assert all(t.values[1] >= 0.7 for t in bounded.history)


def test_a_bound_on_the_way_is_left_again() -> None:
    start, bounds = {"a": 0.1, "b": 3.0}, {"a": (0.0, 10.0), "b": (0.1, 3.0)}
    found = cgprimer.fit(DECAY, NOISY, start=start, bounds=bounds)
    free = cgprimer.fit(DECAY, NOISY, start={"a": 3, "b": 0.5})
    assert found.converged
    assert found.parameters == pytest.approx(free.parameters, rel=1e-7)


# --- what cannot be solved is not called solved --------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start", "reason"),
    [
        ("y = a*exp(-b*x)", {"a": 1.0, "b": 1e5}, ""),  # nothing moves the output
        ("y = a*b*x", {"a": 0.0, "b": 0.0}, ""),  # a saddle
        ("y = relu(a)*x", {"a": -1.0}, ""),
        ("y = cos(a)*x", {"a": 0.0}, ""),  # a maximum
        ("y = sqrt(a)*x + 10", {"a": 1.0}, "y = sqrt(a)*x + 10 ... nan"),  # an edge
        ("y = a*(1 - exp(-b*x))", {"a": 1.0, "b": 1.0}, ""),  # of a line
    ],
)
def test_ends_that_are_no_minimum(text: str, start: dict[str, float], reason: str) -> None:
    y = 2 * X if "1 -" in text else 0.1 - X
    found = cgprimer.fit(cgprimer.parse(text), data(y), start=start, iterations=150)
    assert not found.converged, found.parameters
    approved(found.reason, reason)
    assert "not converged" in repr(found)


def test_a_step_outside_of_the_domain_is_not_accepted() -> None:
    graph = cgprimer.parse("y = log(a*x)/b")
    found = cgprimer.fit(graph, data(np.log(0.01 * X) / 2), start={"a": 5, "b": 1})
    assert found.converged
    assert found.parameters == pytest.approx({"a": 0.01, "b": 2.0})
    assert [t.accepted for t in found.history if math.isnan(t.residual_sum_of_squares)].count(
        True
    ) == 0
    assert any(math.isnan(t.residual_sum_of_squares) for t in found.history)


def test_the_sum_of_squares_falls_at_every_step_that_was_accepted() -> None:
    found = cgprimer.fit(DECAY, NOISY, start={"a": 30, "b": 4})
    sums = [t.residual_sum_of_squares for t in found.history if t.accepted]
    assert all(later <= before * (1 + 1e-12) for before, later in pairwise(sums))


def test_constants_of_very_different_size() -> None:
    graph = cgprimer.parse("y = p*(1 - exp(-q*x*1e9))*1e-6")
    truth = {"p": 3e12, "q": 2e-10}
    made = data(graph.evaluate({"x": X, **truth})["y"])
    found = cgprimer.fit(graph, made, start={"p": 1e12, "q": 1e-10})
    assert found.converged, found.reason
    assert found.parameters == pytest.approx(truth, rel=1e-9)


def test_a_parameter_that_nothing_depends_on_is_named() -> None:
    graph = cgprimer.parse("y = a*x; z = k*x; output y")
    found = cgprimer.fit(graph, data(2 * X + np.cos(9 * X)))
    assert found.converged
    assert math.isinf(found.standard_errors["k"])
    assert math.isfinite(found.standard_errors["a"])
    assert any("k has no effect on y" in s for s in found.sentences)


def test_as_many_data_as_parameters_leave_no_standard_error() -> None:
    found = cgprimer.fit(cgprimer.parse("y = a + b*x"), data([1.0, 3.0], x=[0.0, 1.0]))
    assert found.converged
    assert found.degrees_of_freedom == 0
    assert all(math.isnan(error) for error in found.standard_errors.values())


def test_interrupted_it_keeps_the_best() -> None:
    def stop(trial: Any) -> None:
        if trial.step == 3:
            raise KeyboardInterrupt

    found = cgprimer.fit(DECAY, NOISY, start={"a": 30, "b": 4}, on_step=stop)
    assert (found.converged, found.reason) == (False, "interrupted")
    assert found.residual_sum_of_squares < found.history[0].residual_sum_of_squares


def test_a_fit_comes_back_from_another_process() -> None:
    found = cgprimer.fit(DECAY, NOISY, start={"a": 30, "b": 4}, engine="numpy")
    back = pickle.loads(pickle.dumps(found))
    assert str(back.as_dict()) == str(found.as_dict())
    assert str(back.bootstrap(2)) == str(found.bootstrap(2))


# --- refused before any work ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "message", "given"),
    [
        (UsageError, "'newton'", {"algorithm": "newton"}),
        (UsageError, "", {"damping": "ten"}),
        (UsageError, "", {"damping": "tens", "algorithm": "l-bfgs"}),
        (UsageError, "", {"algorithm": "minpack", "bounds": {"a": (0, 1)}}),
        (UsageError, "bounds ... 'c'", {"bounds": {"c": (0, 1)}}),
        (UsageError, "", {"bounds": {"a": (2, 1)}}),
        (UsageError, "", {"bounds": {"a": 2}}),
        (UsageError, "", {"bounds": {"a": (5, 6)}, "start": {"a": 1}}),
        (UsageError, "freeze ... 'x'", {"freeze": ["x"]}),
        (UsageError, "", {"freeze": ["a", "b"]}),
        (UsageError, "start ... 'aa'", {"start": {"aa": 1}}),
        (UsageError, "iterations", {"iterations": 0}),
        (DataError, "10", {"weights": [1.0, 2.0]}),
        (DataError, "0", {"weights": [-1.0] * 10}),
        (NonFiniteError, "y =", {"start": {"b": -1e3}}),
        (UsageError, "option", {"scheme": "central"}),
    ],
)
def test_wrong_arguments(error: type[Exception], message: str, given: dict[str, Any]) -> None:
    with refused(error, message):
        cgprimer.fit(DECAY, NOISY, **given)


def test_fewer_data_than_parameters() -> None:
    graph = cgprimer.parse("y = a + b*x + c*x^2")
    two = data([1.0, 2.0], x=[0.0, 1.0])
    with refused(DataError, "2 data ... 3"):
        cgprimer.fit(graph, two)
    assert cgprimer.fit(graph, two, freeze="c", start={"c": 0}).converged


def test_a_bootstrap_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cgprimer.fit(DECAY, NOISY, start={"a": 1, "b": 1})
    with refused(UsageError, "2"):
        found.bootstrap(1)
    flat = cgprimer.fit(cgprimer.parse("y = a*b*x"), NOISY, start={"a": 1, "b": 1})
    assert flat.bootstrap(5).failed == 0
    monkeypatch.setattr("cgprimer.training.fitting.bootstrap._MAX_STEPS", 0)
    with refused(TrainingError, "0 ... 5"):
        found.bootstrap(5)


def test_a_fit_loads_numpy_alone(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{x},{2 * x}\n" for x in X))
    program = (
        "import sys; from cgprimer.cli import main\n"
        "sys.argv = ['cgprimer', 'fit', '-e', 'y = k*x', '--data', 'd.csv', '--start', 'k=1']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({'scipy', 'sympy', 'matplotlib', 'llvmlite', 'networkx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("rounding", [0.0, -1e-12, 1e-12])
def test_rounding_does_not_choose_between_equal_ends(
    rounding: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a flat region all algorithms end at one sum of squares: the first of them is reported."""
    from cgprimer.training.fitting import fit as module

    minimize = module.minimize_with_scipy

    def lower(problem, descent, algorithm):
        minimize(problem, descent, algorithm)
        descent.current.sum_of_squares *= 1 + rounding

    monkeypatch.setattr(module, "minimize_with_scipy", lower)
    graph = cgprimer.load("saturation")
    data = cgprimer.make_dataset(graph, samples=20, low=0, high=3)
    found = cgprimer.fit(graph, data, start={"b1": 1, "b2": 1e6})
    assert (found.algorithm, found.damping, found.converged) == (
        "levenberg-marquardt",
        "tens",
        False,
    )
