"""The error of finite differences against their step: the V-shaped curve.

A large step is wrong because the curve is not its tangent (error of order h, or h² for central
differences); a small one because the difference of two nearly equal numbers has few digits left
(error of order 1/h). The complex step subtracts nothing, so it has only the first half of the V.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.analysis.element_graph import numbers_of
from cgprimer.analysis.reference import is_known, reference_derivatives
from cgprimer.analysis.scalar_points import point_values, single_name
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
_ORDER = {"forward": 1, "central": 2, "complex-step": 2}  # of the error in the step
_JUMP = 1e20  # times the slope that the rules give: no rounding, but a jump
_NEIGHBOURS = 4  # steps to either side whose errors are looked at together: rounding is a lottery
_GUIDES = {  # by slope: times the error, words, and where they stand beside the middle
    -1: (12.0, "rounding: error ~ 1/h", (8, 2), "left", "bottom"),
    1: (12.0, "error ~ h", (-8, 2), "right", "bottom"),
    2: (1 / 12, "error ~ h²", (8, -2), "left", "top"),
}
_SHORT = 30  # characters of a formula that fits into the title
_DECADES = 1.5  # the least length of a guide
_MOST = 9  # numbers on the axis of errors
_EXACT = "0 (exact)"
_STARS = (22.0, 36.0, 50.0)  # points: stars at one place lie within one another


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
    """The error of finite differences against their step: the V.

    Errors are against a derivative of fifty digits. A star marks the best step of each scheme.
    Beside the curves run straight lines of the slopes that theory gives: 1 for forward, 2 for
    central differences, -1 where rounding rules. Errors of exactly 0 lie on a line of their own.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: with respect to what, of an array to one of its numbers, `W[0,1]`; the only input, or
            else the only parameter, unless given.
        loss: a loss of which it is shown instead; the point then has its targets, too.
        schemes: only this scheme, or these.
        steps: the step or steps, in the unit of the variable; ten for every power of ten from
            1e-16 to 1 unless given.
        title: above the picture; the derivative unless given.

    Raises:
        UsageError: an unknown name or scheme, or a step that is not positive.
        MissingValueError: a value is missing.
        DifferentiationError: there is no exact derivative here to compare with.

    Command line:
        cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
        cgprimer plot error lecture --wrt ab -o lecture-error.svg --dark

    >>> import cgprimer
    >>> figure = error(cgprimer.parse("xw = sin(xa)"), {"xa": 1}, schemes=["forward", "central"])
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_xscale()
    ('step h', 'log')
    """
    found = step_errors(graph, at, of=of, wrt=wrt, loss=loss, schemes=schemes, steps=steps)
    words = {"x": "step h", "y": "absolute error of the derivative"}
    figure, axes, look = slide.framed(dark, title, _usual_title(found), **words)
    axes.set_xlim(float(found.steps[0]) / 2, float(found.steps[-1]) * 2)
    every = np.concatenate(list(found.errors.values()))
    least = min(every[every > 0], default=2.0**-52)
    floor = 10.0 ** float(np.floor(np.log10(least)) - 1)  # where errors of 0 lie
    stars: list[tuple[float, float]] = []
    for order, (scheme, errors) in enumerate(found.errors.items()):
        shown = np.where(errors == 0, floor, errors)
        style = slide.curve_style(order, look)
        axes.plot(found.steps, shown, **style, linewidth=2.0, markersize=5, markevery=(order, 3),
                  label=_label(found, scheme))  # fmt: skip
        if (place := _best_place(found, scheme, shown)) is not None:
            below = stars.count(place)
            stars.append(place)
            axes.plot(*place, color=style["color"], marker="*", clip_on=False,
                      markersize=_STARS[min(below, len(_STARS) - 1)], label=f"_best {scheme}",
                      markeredgecolor=look.background,
                      zorder=5 - 0.1 * below)  # fmt: skip  # the smaller on the larger
    for scheme in found.refused:
        axes.plot([], [], linestyle="", label=f"{scheme}: not analytic")
    axes.set_yscale("log")
    _guides(axes, found, look)
    slide.log_axis(axes, "x")
    slide.log_axis(axes, "y", most=_MOST)
    if (every == 0).any():
        axes.axhline(floor, color=look.edge, linewidth=1.0, zorder=1)
        high = max(axes.get_ylim()[1], 1e4 * floor)
        axes.set_ylim(floor / 3, high)
        axes.set_yticks([floor, *slide.log_places(10 * floor, high, most=_MOST)])
        axes.yaxis.set_major_formatter(
            lambda value, _: _EXACT if value < 2 * floor else slide.grouped(value)
        )
    slide.legend_below(figure, axes, look)
    return figure


@dataclass(frozen=True, eq=False)
class StepErrors:
    """Errors of finite differences over a range of steps."""

    of: str
    wrt: str
    formula: str  # the expression of ``of``
    at: dict[str, float]
    derivative: float  # the exact one, rounded to a double
    steps: Array  # ascending; shape (steps,); unit: that of ``wrt``
    errors: dict[str, Array]  # by scheme, absolute; shape (steps,); nan outside the domain
    refused: dict[str, str]  # schemes that cannot be used here, and why

    def as_good(self, scheme: str) -> Array:
        """At which steps no other step has an error to be expected that is less."""
        # What one may expect at a step is the largest error of its neighbourhood.
        padded = np.pad(self.errors[scheme], _NEIGHBOURS, constant_values=math.nan)
        near = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1)
        expected = np.fmax.reduce(near, axis=1)
        if not np.isfinite(expected).any():
            raise UsageError(f"the scheme {scheme!r} gave no number at any of the steps")
        # Nothing is better than the last digit of the derivative itself; and where no two numbers
        # are subtracted, the errors of all small steps are alike up to the luck of rounding.
        luck = 10.0 if scheme == "complex-step" else 1.0
        least = max(2.0**-52 * abs(self.derivative), luck * float(np.nanmin(expected)))
        return expected <= least

    def best(self, scheme: str) -> float:
        """The step with the least error to be expected; the largest such where many are as good."""
        return float(self.steps[np.flatnonzero(self.as_good(scheme))[-1]])

    def slope(self, scheme: str, low: float, high: float) -> float:
        """The slope of the error in the log-log picture between two steps, by least squares."""
        errors = self.errors[scheme]
        inside = (self.steps >= low) & (self.steps <= high) & (errors > 0)
        if inside.sum() < 2:
            raise UsageError(
                f"fewer than two errors of {scheme!r} lie between {low:g} and {high:g}"
            )
        return float(np.polyfit(np.log(self.steps[inside]), np.log(errors[inside]), 1)[0])


def step_errors(
    graph: ExpressionGraph, at: Mapping[str, float] | None = None, *, of: str | None = None,
    wrt: str | None = None, loss: str | None = None, schemes: Names = (),
    steps: float | Sequence[float] | None = None,
) -> StepErrors:  # fmt: skip
    """The error of each scheme at each step: what :func:`error` draws, with its arguments.

    >>> from cgprimer.core.graph import parse
    >>> found = step_errors(parse("xw = sin(xa)"), {"xa": 1}, steps=[1e-12, 1e-8, 1e-4, 1e-1])
    >>> [f"{error:.1e}" for error in found.errors["forward"]]
    ['4.3e-05', '3.0e-09', '4.2e-05', '4.3e-02']
    """
    for name, value in {"of": of, "wrt": wrt}.items():
        check_type(name, value, (str, type(None)), "a name")
    graph, at = numbers_of(graph_with_loss(graph, loss, at), at, (of, wrt))
    target = resolve_output(graph, of)
    name = single_name(graph, wrt)
    primal = tape_of(graph)
    point = point_values(graph, at, of=target)
    if steps is None:
        steps = np.logspace(-16, 0, 161).tolist()
    several = steps if isinstance(steps, Iterable) and not isinstance(steps, str) else [steps]
    sizes = np.sort([check_real_number("a step", step, above=0) for step in several])
    if not sizes.size:
        raise UsageError("there must be a step at least")
    columns = {n: np.array([point[n]]) for n in graph.inputs}
    scalars = {n: point[n] for n in graph.parameters}

    def derivative(method: str, **options: Any) -> float:
        run = Runner(differentiate(primal, target, name, method=method, **options))
        return float(np.ravel(run(columns, scalars, 1).derivatives[target, name])[0])

    known = reference_derivatives(primal, target, (name,), point)
    slope = derivative("reverse")
    # At a jump whose value is the middle, both sides have one slope, which is enormous.
    exact = (known or {name: math.nan})[name]
    if not is_known(exact) or abs(exact) > _JUMP * max(1.0, abs(slope)):
        raise DifferentiationError(
            f"there is no exact derivative of {target} with respect to {name} to compare with",
            hint="a kink, a pole, an edge of the domain, or a function without a formula"
            " of its own; choose another point (--at)",
        )
    errors: dict[str, Array] = {}
    refused: dict[str, str] = {}
    for scheme in normalize_names(schemes or SCHEMES, "schemes"):
        try:
            found = [derivative("finite-difference", scheme=scheme, step=h) for h in sizes]
        except DifferentiationError as error:
            refused[scheme] = error.message
        else:
            errors[scheme] = np.array([_error(value, exact) for value in found])
    if not errors:
        raise DifferentiationError(next(iter(refused.values())))
    formula = str(graph.expression(target)) if target in graph.definitions else target
    return StepErrors(target, name, formula, point, float(exact), sizes, errors, refused)


def _error(value: float, exact: Any) -> float:
    """The distance from the exact derivative, taken in many digits."""
    import mpmath

    if not math.isfinite(value):
        return math.nan
    with mpmath.workdps(60):
        difference = abs(mpmath.mpf(value) - exact)
        # The reference is good to about fifty digits: anything smaller is zero.
        return float(difference) if difference > mpmath.mpf("1e-45") * abs(exact) else 0.0


def _usual_title(found: StepErrors) -> str:
    formula = f"{found.of} = {found.formula}: " if len(found.formula) <= _SHORT else ""
    value = found.at.get(found.wrt)  # none of a variable inside
    place = (
        ""
        if value is None
        else f" at {found.wrt} {choose_equality_sign(value, digits=6)} {format_number(value, 6)}"
    )
    return f"{formula}d {found.of} / d {found.wrt}{place}"


def _label(found: StepErrors, scheme: str) -> str:
    errors = found.errors[scheme]
    if not np.nanmax(errors, initial=0) > 0:
        what = "error" if np.isfinite(errors).any() else "number"
        return f"{scheme}: no {what} at any step"
    best = found.best(scheme)
    smaller = found.as_good(scheme)[found.steps <= best]
    which = "every h up to" if len(smaller) > 2 * _NEIGHBOURS + 1 and smaller.all() else "best h"
    return f"{scheme}: {which} about {format_number(best, 1)}"


def _best_place(found: StepErrors, scheme: str, shown: Array) -> tuple[float, float] | None:
    """The best step, on the curve."""
    if not np.nanmax(found.errors[scheme], initial=0) > 0:
        return None
    apart = np.abs(np.log(found.steps / found.best(scheme)))
    best = int(np.argmin(np.where(np.isfinite(shown), apart, np.inf)))
    return found.steps[best], shown[best]


def _guides(axes: slide.Axes, found: StepErrors, look: Theme) -> None:
    """Straight lines of the known slopes beside the curves: above, but below central."""
    drawn: set[int] = set()
    for scheme, errors in found.errors.items():
        if not np.isfinite(errors).any():
            continue
        best, order = found.best(scheme), _ORDER[scheme]
        parts = {order: (best * 20, found.steps[-1] / 10)}
        if scheme != "complex-step":
            parts[-1] = (_rounding_begins(found, scheme, best), best / 30)
        for slope, (low, high) in parts.items():
            inside = (found.steps >= low) & (found.steps <= high) & (errors > 0)
            if slope in drawn or inside.sum() < 4:
                continue
            ends = found.steps[inside][[0, -1]]  # not beyond the curve that it is to explain
            if ends[1] < ends[0] * 10**_DECADES or abs(found.slope(scheme, *ends) - slope) > 0.35:
                continue
            drawn.add(slope)
            apart, words, aside, ha, va = _GUIDES[slope]
            factor = apart * float(np.median(errors[inside] / found.steps[inside] ** slope))
            axes.plot(ends, factor * ends**slope, color=look.edge, linewidth=1.6,
                      linestyle=(0, (1, 2)), scalex=False)  # fmt: skip
            middle = float(np.sqrt(ends[0] * ends[1]))
            slide.beside(axes, words, (middle, factor * middle**slope), aside, look, ha=ha, va=va)


def _rounding_begins(found: StepErrors, scheme: str, best: float) -> float:
    """The step above which the difference is not simply 0, and so all of the derivative missing."""
    missing = (found.errors[scheme] > 0.3 * abs(found.derivative)) & (found.steps < best)
    lost = found.steps[missing] if found.derivative else []
    return float(max(3 * max(lost, default=0.0), 30 * found.steps[0]))
