"""Plots of functions and derivatives, of the errors of finite differences, and of costs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from cgprimer import load, parse, plot
from cgprimer.visualization.plots import cost_plot as costs
from cgprimer.visualization.plots.cost_plot import FAMILIES, cost_growth
from cgprimer.visualization.plots.error_plot import SCHEMES, StepErrors, step_errors
from cgprimer.visualization.plots.function_plot import function_curves
from cgprimer.visualization.plots.swell_plot import FAMILIES as NESTINGS
from cgprimer.visualization.plots.swell_plot import swell_counts
from tests.pictures.diagram_tools import F1
from tests.plots.plot_tools import drawn, entries, numbers

SINE, LECTURE = parse("xw = sin(xa)"), load("lecture")


def test_derivatives_of_scalars_and_of_elements_of_arrays() -> None:
    cubic = parse("xw = xa^3 + 2*xa^2 - 3*xa + 1")
    found = function_curves(cubic, 0, 2, order=4, points=3, tangent=1.0)
    assert [values[1] for values in found.orders] == [1.0, 4.0, 10.0, 6.0, 0.0]
    assert found.tangent == (1.0, 1.0, 4.0)
    found = function_curves(LECTURE, 0, 2, wrt="ab", order=0, tangent=1.0)
    assert found.tangent == (1.0, 21.546875, 5.671875)
    found = function_curves(parse(F1), 0, 2, wrt="w1[1,0]", order=2, points=5)
    w = found.places  # the loss is (1 + 2 w - 1)^2 while the unit is on
    np.testing.assert_allclose(found.orders, [(2 * w) ** 2, 8 * w, np.full(5, 8.0)], atol=1e-12)
    moved = function_curves(parse(F1), 1, 2, at={"x": [1, 0], "w1[0,0]": 3}, wrt="y", points=2)
    np.testing.assert_allclose(moved.orders[0], [4.0, 1.0])
    undefined = function_curves(parse("xw = log(xa)"), -2, 2, order=2, points=5)
    for values in undefined.orders:
        assert np.isfinite(values).tolist() == [False, False, False, True, True]
    assert function_curves(parse("xw = abs(xa)*xa"), tangent=0.0).tangent == (0.0, 0.0, 0.0)
    hiding = parse("xw = xa^2 + 0*stop_gradient(xa)")
    assert function_curves(hiding, tangent=1.0).tangent == (1.0, 1.0, 2.0)


def test_jumps_and_poles_are_found_but_not_steep_slopes() -> None:
    found = function_curves(parse("xw = abs(xa - 0.3)"), -1, 1, order=1)
    assert found.jumps[0] == ()
    (jump,) = found.jumps[1]
    assert (jump.left, jump.right) == (-1, 1)
    assert jump.place == pytest.approx(0.3, abs=1e-9)
    assert found.places[jump.after] < 0.3 < found.places[jump.after + 1]
    (pole,) = function_curves(parse("xw = 1/(xa - 0.3001)"), -1, 1, order=0).jumps[0]
    assert pole.left < -1e6 < 1e6 < pole.right
    for text in ("xw = tanh(900*xa)", "xw = sin(1/xa)", "xw = exp(30*xa)", "xw = xa"):
        assert function_curves(parse(text), -1.003, 1, order=0).jumps == ((),)
    for text in ("xw = tanh(400*xa)", "xw = exp(9*xa)"):
        assert np.isfinite(drawn(plot.function(parse(text), order=0), "xw")[1]).all()


def test_no_line_joins_the_sides_of_a_jump() -> None:
    for text, label, levels in (
        ("xw = step(xa)", "xw", (0, 1)), ("xw = abs(xa)", "d xw / d xa", (-1, 1)),
    ):  # fmt: skip
        places, values = drawn(plot.function(parse(text)), label)
        with np.errstate(invalid="ignore"):
            assert not (np.abs(np.diff(values)) > 0.5).any()
        for level in levels:  # each side goes up to the jump
            assert np.abs(places[values == level]).min() < 1e-9


@pytest.mark.parametrize("text", ["tan(xa)", "1000*tan(xa)", "1/(xa-1.5)", "1/sin(xa)"])
def test_no_line_joins_the_sides_of_a_pole(text: str) -> None:
    axes = plot.function(parse(f"xw = {text}"), -3, 3, order=0).axes[0]
    low, high = axes.get_ylim()
    line = next(line for line in axes.lines if len(line.get_xdata()) > 100)
    values = np.asarray(line.get_ydata(), dtype=float)
    side = 1 * (values > high) - (values < low)
    assert {*side.tolist()} == {-1, 0, 1}
    assert np.abs(np.diff(side)).max() == 1


def test_what_is_cut_off_or_undefined_is_marked() -> None:
    assert "cut off at the top" in entries(plot.function(parse("xw = 1/xa^2"), order=0))
    figure = plot.function(parse("xw = exp(xa)"), 0, 800)
    assert "too large for a double above xa = 709" in entries(figure)
    assert not any("cut" in text for text in entries(plot.function(SINE, tangent=1.0)))
    low, high = plot.function(parse("xw = 1/xa"), order=0).axes[0].get_ylim()
    assert -60 < low < high < 60


def test_a_tangent_can_be_told_from_its_curve() -> None:
    axes = plot.function(load("cubic"), tangent=2).axes[0]
    curve, line = (
        next(one for one in axes.lines if str(one.get_label()).startswith(name))
        for name in ("f", "tangent")
    )
    assert sum(axes.get_xlim()) / 2 == pytest.approx(2.0)  # the point is in the middle
    straight = np.interp(curve.get_xdata(), line.get_xdata(), line.get_ydata())
    bends = np.abs(np.asarray(curve.get_ydata()) - straight) / np.ptp(axes.get_ylim())
    assert bends[[0, -1]].min() > 0.1  # of the height of the picture
    assert plot.function(load("cubic"), -3, 3, tangent=2).axes[0].get_xlim() == (-3.0, 3.0)


@pytest.fixture(scope="module")
def sine() -> StepErrors:
    return step_errors(SINE, {"xa": 1})


def test_the_numbers_of_case_d6() -> None:
    found = step_errors(SINE, {"xa": 1}, steps=[1e-1, 1e-4, 1e-8, 1e-12])
    assert found.steps.tolist() == [1e-12, 1e-8, 1e-4, 1e-1]
    assert found.errors["forward"] == pytest.approx([4.3e-5, 3.0e-9, 4.2e-5, 4.3e-2], rel=0.02)
    assert found.errors["central"][2:] == pytest.approx([9.0e-10, 9.0e-4], rel=0.01)
    assert found.errors["central"][:2] == pytest.approx([1.2e-5, 2.6e-9], rel=0.05)
    array = step_errors(parse("input x[2] = [1, 2]; xw = sin(x) @ x"), wrt="x[1]", steps=[1e-4])
    single = step_errors(parse("input xb = 2; xw = sin(xb)*xb"), steps=1e-4)
    assert array.errors["central"] == pytest.approx(single.errors["central"], rel=1e-2)


def test_slopes_and_best_steps(sine: StepErrors) -> None:
    assert sine.slope("forward", 1e-6, 1e-2) == pytest.approx(1, abs=0.02)
    assert sine.slope("central", 1e-3, 1e-1) == pytest.approx(2, abs=0.02)
    assert sine.slope("complex-step", 1e-5, 1e-1) == pytest.approx(2, abs=0.02)
    for scheme in ("forward", "central"):
        assert sine.slope(scheme, 1e-15, 1e-10) == pytest.approx(-1, abs=0.2)
    assert 1e-9 < sine.best("forward") < 1e-7
    assert 1e-6 < sine.best("central") < 1e-4
    small = sine.errors["complex-step"][sine.steps <= sine.best("complex-step")]
    assert small.max() < 2.0**-52
    lecture = step_errors(LECTURE, wrt="ab")
    assert lecture.derivative == 5.671875
    assert lecture.slope("central", 1e-3, 1e-1) == pytest.approx(2, abs=0.05)


def test_schemes_that_do_not_apply_and_steps_outside_the_domain() -> None:
    found = step_errors(parse("xw = abs(xa)*xa^2"), {"xa": 1})
    assert set(found.errors) == {"forward", "central"}
    assert "analytic" in found.refused["complex-step"]
    found = step_errors(parse("xw = log(xa)"), {"xa": 0.01}, schemes=["central"])
    assert np.isfinite(found.errors["central"]).tolist()[:: len(found.steps) - 1] == [True, False]


def test_curves_of_errors_have_guides_and_stars_at_the_best_steps(sine: StepErrors) -> None:
    (axes,) = plot.error(SINE, {"xa": 1}).axes
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "log", "step h")
    assert axes.get_title() == "xw = sin(xa): d xw / d xa at xa = 1"
    lines = {str(line.get_label()).partition(":")[0]: line.get_xydata() for line in axes.lines}
    for scheme in SCHEMES:
        x, y = lines[scheme].T
        positive = sine.errors[scheme] > 0
        assert x == pytest.approx(sine.steps)
        assert y[positive] == pytest.approx(sine.errors[scheme][positive])
        (star,) = lines[f"_best {scheme}"].tolist()
        assert star[0] == sine.best(scheme)
        assert star in lines[scheme].tolist()
    guides = [np.log(line.get_xydata()) for line in axes.lines if len(line.get_xdata()) == 2]
    slopes = {round((y1 - y0) / (x1 - x0)) for (x0, y0), (x1, y1) in guides}
    assert slopes == {1, 2, -1}


def test_errors_of_zero_are_drawn_below_all_others() -> None:
    found, (axes,) = step_errors(LECTURE, wrt="ab"), plot.error(LECTURE, wrt="ab").axes
    (curve,) = [x for x in axes.lines if str(x.get_label()).startswith("complex-step")]
    zero, floor = found.errors["complex-step"] == 0, axes.get_yticks()[0]
    assert set(np.asarray(curve.get_ydata())[zero]) == {floor}
    assert min(errors[errors > 0].min() for errors in found.errors.values()) > floor
    assert numbers(axes.yaxis)[0] == "0 (exact)"
    assert "0 (exact)" not in numbers(plot.error(SINE, {"xa": 1}).axes[0].yaxis)
    plot.error(parse("xw = 2*xa"), {"xa": 0})  # every error is zero


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cheap_gradient_bound_holds_and_forward_mode_breaks_it(family: str) -> None:
    growth = cost_growth(family, [1, 8, 32], methods=["forward", "reverse", "finite-difference"])
    for own, reverse in zip(growth.primal, growth.methods["reverse"], strict=True):
        assert reverse.operations <= 3 * own.operations
        assert reverse.parameters == own.parameters
    for method in ("forward", "finite-difference"):
        last, first = growth.methods[method][-1], growth.methods[method][0]
        assert last.operations > 4 * growth.primal[-1].operations
        # A pass per parameter, each of a length that grows with them: the square of their number.
        ratio = last.parameters / first.parameters
        order = math.log(last.operations / first.operations) / math.log(ratio)
        assert order == pytest.approx(2, abs=0.4)
    assert math.isnan(growth.primal[0].seconds)


def test_times_and_the_limit_of_the_symbolic_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_MAX_SYMBOLIC", 8)
    growth = cost_growth("neuron", [1, 9])
    assert [cost.parameters for cost in growth.methods["symbolic"]] == [1]
    assert growth.refused == {"symbolic": "then slow"}
    growth = cost_growth("neuron", [1, 9], methods=["symbolic", "path-sum"], timed=True)
    assert [cost.parameters for cost in growth.methods["symbolic"]] == [1, 9]  # as requested
    assert all(cost.seconds > 0 for cost in (growth.primal[0], *growth.methods["path-sum"]))


@pytest.mark.parametrize("family", NESTINGS)
def test_formulas_swell_and_reverse_mode_does_not(family: str) -> None:
    rows = swell_counts(family, range(1, 4))
    assert all(b.formula > 2 * a.formula for a, b in pairwise(rows))  # type: ignore[operator]
    steps = [b.reverse - a.reverse for a, b in pairwise(rows)]
    assert max(steps) - min(steps) <= 5  # a constant number of operations for each level
    assert all(row.reverse <= 5 * row.expression for row in rows)
    assert all(row.expression < row.written_out for row in rows[1:])


def test_the_counts_of_case_d8_and_the_limit_of_formulas() -> None:
    rows = swell_counts("product", [1, 4, 6])
    assert [(r.expression, r.written_out, r.reverse, r.formula) for r in rows] == [
        (2, 2, 5, 6), (8, 30, 26, 280), (12, 126, 40, 2060),
    ]  # fmt: skip
    rows = swell_counts("logistic", [2, 6, 30], limit=500)
    assert [row.formula is None for row in rows] == [False, True, True]
    assert rows[-1].written_out > 10**9
    assert rows[-1].reverse < 300
