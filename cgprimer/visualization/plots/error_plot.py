"""The error of finite differences as a function of the step: the V-shaped curve.

With a large step, truncation dominates (an error of order h, or h² for central differences); with a
small step, the difference of two nearly equal numbers has few correct digits (an error of order
1/h). The complex step has no subtraction, so it has only the first half of the V.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.analysis.element_graph import expand_with_point
from cgprimer.analysis.reference import compute_reference_derivatives, is_defined
from cgprimer.analysis.scalar_points import choose_variable, complete_point
from cgprimer.core.derivatives import resolve_output
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import choose_equality_sign, format_number
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_real_number
from cgprimer.tapes import differentiate
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide

Array = Any
SCHEMES = ("forward", "central", "complex-step")
_ORDER = {"forward": 1, "central": 2, "complex-step": 2}  # order of the truncation error
_JUMP = 1e20  # ratio of the exact slope and the slope of reverse mode that indicates a jump
_NEIGHBORS = 4  # steps to either side whose maximum error counts, because rounding is random
_GUIDES = {  # keyed by slope: factor of the error, text, offset in points, and alignment
    -1: (12.0, "rounding: error ~ 1/h", (8, 2), "left", "bottom"),
    1: (12.0, "error ~ h", (-8, 2), "right", "bottom"),
    2: (1 / 12, "error ~ h²", (8, -2), "left", "top"),
}
_MAX_FORMULA_LENGTH = 30  # characters of a formula in the title
_MIN_DECADES = 1.5  # minimum length of a guide
_MAX_TICKS = 9
_EXACT = "0 (exact)"
_STAR_SIZES = (22.0, 36.0, 50.0)  # points; stars at one point are nested


def error(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: str | None = None,
    loss: str | None = None,
    schemes: Names = (),
    steps: float | Sequence[float] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Plot the error of finite differences against the step size, which is a V-shaped curve.

    The reference is a derivative with fifty digits. A star marks the best step of each scheme.
    Straight lines show the slopes of the theory: 1 for forward differences, 2 for central
    differences, -1 if rounding dominates. Errors of exactly 0 are drawn on a separate line.

    Args:
        graph: the graph.
        at: scalars for inputs and parameters; other names keep their declared values.
        of: variable to differentiate. Default: the only output.
        wrt: variable or array element, `W[0,1]`, to differentiate with respect to. Default: the
            only input, or else the only parameter.
        loss: loss to differentiate instead; `at` then has its targets as well.
        schemes: schemes to draw. Default: all.
        steps: one or several steps, in the unit of the variable. Default: ten per decade from
            1e-16 to 1.
        title: title above the plot. Default: the derivative.

    Raises:
        UsageError: an unknown name or scheme, or a step that is not positive.
        MissingValueError: a value is missing.
        DifferentiationError: the exact derivative is not available.

    >>> import cgprimer
    >>> figure = error(cgprimer.parse("xw = sin(xa)"), {"xa": 1}, schemes=["forward", "central"])
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_xscale()
    ('step h', 'log')
    """
    errors = step_errors(graph, at, of=of, wrt=wrt, loss=loss, schemes=schemes, steps=steps)
    labels = {"x": "step h", "y": "absolute error of the derivative"}
    figure, axes, look = slide.create_plot(dark, title, _format_default_title(errors), **labels)
    axes.set_xlim(float(errors.steps[0]) / 2, float(errors.steps[-1]) * 2)
    every = np.concatenate(list(errors.errors.values()))
    least = min(every[every > 0], default=2.0**-52)
    floor = 10.0 ** float(np.floor(np.log10(least)) - 1)  # where errors of 0 are drawn
    _draw_curves(axes, errors, floor, look)
    for scheme in errors.refused:
        axes.plot([], [], linestyle="", label=f"{scheme}: not analytic")
    axes.set_yscale("log")
    _draw_guides(axes, errors, look)
    slide.use_log_axis(axes, "x")
    slide.use_log_axis(axes, "y", max_ticks=_MAX_TICKS)
    if (every == 0).any():
        _draw_floor(axes, floor, look)
    slide.draw_legend_below(figure, axes, look)
    return figure


def _draw_curves(axes: slide.Axes, errors: StepErrors, floor: float, look: Theme) -> None:
    """Draw the error of each difference scheme, with a star at its best step size."""
    stars: list[tuple[float, float]] = []
    for order, (scheme, values) in enumerate(errors.errors.items()):
        shown = np.where(values == 0, floor, values)
        style = slide.choose_curve_style(order, look)
        axes.plot(errors.steps, shown, **style, linewidth=2.0, markersize=5, markevery=(order, 3),
                  label=_format_curve_label(errors, scheme))  # fmt: skip
        if (point := _find_best_point(errors, scheme, shown)) is not None:
            below = stars.count(point)
            stars.append(point)
            # Of several stars at one point, a smaller star lies on a larger one.
            axes.plot(*point, color=style["color"], marker="*", clip_on=False,
                      markersize=_STAR_SIZES[min(below, len(_STAR_SIZES) - 1)],
                      label=f"_best {scheme}", markeredgecolor=look.background,
                      zorder=5 - 0.1 * below)  # fmt: skip


def _draw_floor(axes: slide.Axes, floor: float, look: Theme) -> None:
    """Draw a horizontal line, with a tick, for errors that are exactly 0."""
    axes.axhline(floor, color=look.edge, linewidth=1.0, zorder=1)
    high = max(axes.get_ylim()[1], 1e4 * floor)
    axes.set_ylim(floor / 3, high)
    axes.set_yticks([floor, *slide.choose_log_ticks(10 * floor, high, max_ticks=_MAX_TICKS)])
    axes.yaxis.set_major_formatter(
        lambda value, _: _EXACT if value < 2 * floor else slide.format_log_tick(value)
    )


@dataclass(frozen=True, eq=False)
class StepErrors:
    """Errors of finite differences over a range of step sizes.

    Attributes:
        of: the variable that is differentiated.
        wrt: the variable or element with respect to which it is differentiated.
        formula: the expression of ``of``.
        at: the point.
        derivative: the exact derivative, rounded to a double.
        steps: the steps, ascending, in the unit of ``wrt``; shape (steps,).
        errors: absolute errors keyed by scheme; shape (steps,); nan outside the domain.
        refused: reasons why schemes are not available, keyed by scheme.
    """

    of: str
    wrt: str
    formula: str
    at: dict[str, float]
    derivative: float
    steps: Array
    errors: dict[str, Array]
    refused: dict[str, str]

    def find_best_steps(self, scheme: str) -> Array:
        """Return a mask of the step sizes at which a scheme's expected error is minimal."""
        # The expected error of a step is the maximum error of its neighborhood.
        padded = np.pad(self.errors[scheme], _NEIGHBORS, constant_values=math.nan)
        near = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBORS + 1)
        expected = np.fmax.reduce(near, axis=1)
        if not np.isfinite(expected).any():
            raise UsageError(f"the error of scheme {scheme!r} is nan at every step size")
        # No error is better than the last digit of the derivative. Without a subtraction, the
        # errors of all small steps are equal except for random rounding.
        tolerance = 10.0 if scheme == "complex-step" else 1.0
        least = max(2.0**-52 * abs(self.derivative), tolerance * float(np.nanmin(expected)))
        return expected <= least

    def best(self, scheme: str) -> float:
        """Return the largest step size at which a scheme's expected error is minimal."""
        return float(self.steps[np.flatnonzero(self.find_best_steps(scheme))[-1]])

    def slope(self, scheme: str, low: float, high: float) -> float:
        """Fit the slope of the log error over the log step size between two step sizes."""
        errors = self.errors[scheme]
        inside = (self.steps >= low) & (self.steps <= high) & (errors > 0)
        if inside.sum() < 2:
            raise UsageError(
                f"a slope requires at least two errors of {scheme!r} between {low:g} and {high:g}"
            )
        return float(np.polyfit(np.log(self.steps[inside]), np.log(errors[inside]), 1)[0])


def step_errors(
    graph: ExpressionGraph, at: Mapping[str, float] | None = None, *, of: str | None = None,
    wrt: str | None = None, loss: str | None = None, schemes: Names = (),
    steps: float | Sequence[float] | None = None,
) -> StepErrors:  # fmt: skip
    """Compute the error of each difference scheme at each step size, which :func:`error` draws.

    >>> from cgprimer.core.graph import parse
    >>> result = step_errors(parse("xw = sin(xa)"), {"xa": 1}, steps=[1e-12, 1e-8, 1e-4, 1e-1])
    >>> [f"{error:.1e}" for error in result.errors["forward"]]
    ['4.3e-05', '3.0e-09', '4.2e-05', '4.3e-02']
    """
    for name, value in {"of": of, "wrt": wrt}.items():
        check_type(name, value, (str, type(None)), "a name")
    graph, at = expand_with_point(graph_with_loss(graph, loss, at), at, (of, wrt))
    target = resolve_output(graph, of)
    name = choose_variable(graph, wrt)
    primal = tape_of(graph)
    point = complete_point(graph, at, of=target)
    if steps is None:
        steps = np.logspace(-16, 0, 161).tolist()
    several = steps if isinstance(steps, Iterable) and not isinstance(steps, str) else [steps]
    sizes = np.sort([check_real_number("a step", step, above=0) for step in several])
    if not sizes.size:
        raise UsageError("`steps` must not be empty")
    columns = {n: np.array([point[n]]) for n in graph.inputs}
    scalars = {n: point[n] for n in graph.parameters}

    def derivative(method: str, **options: Any) -> float:
        """Compute the derivative at the point with the given method."""
        run = Runner(differentiate(primal, target, name, method=method, **options))
        return float(np.ravel(run(columns, scalars, 1).derivatives[target, name])[0])

    references = compute_reference_derivatives(primal, target, (name,), point)
    slope = derivative("reverse")
    # At a jump whose value is the middle of the limits, both sides have the same huge slope.
    exact = (references or {name: math.nan})[name]
    if not is_defined(exact) or abs(exact) > _JUMP * max(1.0, abs(slope)):
        raise DifferentiationError(
            f"the exact derivative of {target} with respect to {name} is not available",
            hint="choose another point (--at): this may be a kink, a pole, the boundary of the"
            " domain, or a function without a formula",
        )
    errors: dict[str, Array] = {}
    refused: dict[str, str] = {}
    for scheme in normalize_names(schemes or SCHEMES, "schemes"):
        try:
            values = [derivative("finite-difference", scheme=scheme, step=h) for h in sizes]
        except DifferentiationError as error:
            refused[scheme] = error.message
        else:
            errors[scheme] = np.array([_compute_absolute_error(value, exact) for value in values])
    if not errors:
        raise DifferentiationError(next(iter(refused.values())))
    formula = str(graph.expression(target)) if target in graph.definitions else target
    return StepErrors(target, name, formula, point, float(exact), sizes, errors, refused)


def _compute_absolute_error(value: float, exact: Any) -> float:
    """Return the absolute difference from the exact derivative, computed with extra precision."""
    import mpmath

    if not math.isfinite(value):
        return math.nan
    with mpmath.workdps(60):
        difference = abs(mpmath.mpf(value) - exact)
        # The reference has about fifty digits: a smaller difference is zero.
        return float(difference) if difference > mpmath.mpf("1e-45") * abs(exact) else 0.0


def _format_default_title(errors: StepErrors) -> str:
    """Format the default title of the plot from the formula, the derivative and the point."""
    formula = f"{errors.of} = {errors.formula}: "
    if len(errors.formula) > _MAX_FORMULA_LENGTH:
        formula = ""
    value = errors.at.get(errors.wrt)  # inner variables have no value in the point
    point = ""
    if value is not None:
        sign = choose_equality_sign(value, digits=6)
        point = f" at {errors.wrt} {sign} {format_number(value, 6)}"
    return f"{formula}d {errors.of} / d {errors.wrt}{point}"


def _format_curve_label(errors: StepErrors, scheme: str) -> str:
    """Format the legend label of a difference scheme, with its best step size."""
    values = errors.errors[scheme]
    if not np.nanmax(values, initial=0) > 0:
        ending = "exact" if np.isfinite(values).any() else "nan"
        return f"{scheme}: {ending} at every step"
    best = errors.best(scheme)
    smaller = errors.find_best_steps(scheme)[errors.steps <= best]
    which = "every h up to" if len(smaller) > 2 * _NEIGHBORS + 1 and smaller.all() else "best h"
    return f"{scheme}: {which} about {format_number(best, 1)}"


def _find_best_point(errors: StepErrors, scheme: str, shown: Array) -> tuple[float, float] | None:
    """Return the point of an error curve at its best step size; None if no error is positive."""
    if not np.nanmax(errors.errors[scheme], initial=0) > 0:
        return None
    distances = np.abs(np.log(errors.steps / errors.best(scheme)))
    best = int(np.argmin(np.where(np.isfinite(shown), distances, np.inf)))
    return errors.steps[best], shown[best]


def _draw_guides(axes: slide.Axes, errors: StepErrors, look: Theme) -> None:
    """Draw straight lines with the theoretical slopes of the error next to the curves."""
    drawn: set[int] = set()
    for scheme, values in errors.errors.items():
        if not np.isfinite(values).any():
            continue
        best, order = errors.best(scheme), _ORDER[scheme]
        parts = {order: (best * 20, errors.steps[-1] / 10)}
        if scheme != "complex-step":
            parts[-1] = (_find_rounding_start(errors, scheme, best), best / 30)
        for slope, (low, high) in parts.items():
            inside = (errors.steps >= low) & (errors.steps <= high) & (values > 0)
            if slope in drawn or inside.sum() < 4:
                continue
            ends = errors.steps[inside][[0, -1]]  # not beyond the curve that the guide explains
            is_short = ends[1] < ends[0] * 10**_MIN_DECADES
            if is_short or abs(errors.slope(scheme, *ends) - slope) > 0.35:
                continue
            drawn.add(slope)
            distance, text, offset, ha, va = _GUIDES[slope]
            factor = distance * float(np.median(values[inside] / errors.steps[inside] ** slope))
            axes.plot(ends, factor * ends**slope, color=look.edge, linewidth=1.6,
                      linestyle=(0, (1, 2)), scalex=False)  # fmt: skip
            x = float(np.sqrt(ends[0] * ends[1]))
            middle = (x, factor * x**slope)
            slide.annotate_point(axes, text, middle, offset, look, ha=ha, va=va)


def _find_rounding_start(errors: StepErrors, scheme: str, best: float) -> float:
    """Return the smallest step size for which the difference is not rounded to 0."""
    is_lost = (errors.errors[scheme] > 0.3 * abs(errors.derivative)) & (errors.steps < best)
    lost = errors.steps[is_lost] if errors.derivative else []
    return float(max(3 * max(lost, default=0.0), 30 * errors.steps[0]))
