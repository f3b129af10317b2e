"""A step page as a notebook widget: Python and the page share its state.

This module requires the package `anywidget`; :meth:`cgprimer.Page.widget` imports it.

Source: https://anywidget.dev.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import anywidget
import traitlets

from cgprimer.core.operations import find_primitive
from cgprimer.errors import UsageError
from cgprimer.support.files import format_json
from cgprimer.support.templates import render_template
from cgprimer.support.validation import (
    check_choice,
    check_integer,
    check_named_values,
    check_real_number,
)
from cgprimer.visualization.pages.page_rendering import render_frame
from cgprimer.visualization.pages.stepping.step_frames import Stepping
from cgprimer.visualization.pages.stepping.step_values import Walk, compute_numbers


class WidgetStateError(UsageError, traitlets.TraitError):
    """An invalid value; traitlets undoes all changes of a group after a TraitError."""


class _State(traitlets.Any):
    """An attribute whose values the widget checks before the page and observers see them."""

    def set(self, obj: Any, value: Any) -> None:
        """Set a value that the widget's method for this attribute accepts, also None."""
        try:
            checked = getattr(obj, f"check_{self.name}")(value)
        except UsageError as error:
            raise WidgetStateError(error.message, hint=error.hint) from None
        super().set(obj, checked)


def _encode_point(point: Mapping[str, Any], _: StepWidget) -> Any:
    """Encode a point as JSON, in which nan and infinities are strings."""
    return json.loads(format_json(dict(point)))


def _decode_point(point: Any, _: StepWidget) -> Any:
    """Decode the strings that represent nan and infinities."""
    if not isinstance(point, Mapping):
        return point
    return {n: float(v) if v in ("nan", "inf", "-inf") else v for n, v in point.items()}


def _is_same(value: Any, other: Any) -> bool:
    """Return whether two scalars are equal or both nan."""
    if not isinstance(value, float) or not isinstance(other, float):
        return value is other
    return value == other or (math.isnan(value) and math.isnan(other))


class StepWidget(anywidget.AnyWidget):
    """A step page in a notebook; :meth:`cgprimer.Page.widget` describes the attributes."""

    _esm = render_template("visualization/pages/stepping/step_widget.js")
    _frame = traitlets.Unicode().tag(sync=True)
    method = _State().tag(sync=True)
    step = _State().tag(sync=True)
    point = _State().tag(sync=True, to_json=_encode_point, from_json=_decode_point)
    h = _State().tag(sync=True)
    scheme = _State().tag(sync=True)

    def __init__(self, page: str, shown: Stepping, method: str) -> None:
        self._shown = shown
        self._differences = {w.scheme: w for w in (*shown.walks, *shown.others) if w.scheme}
        scheme = next(iter(self._differences), None)
        super().__init__(
            _frame=render_frame(page),
            method=method,
            step=0,
            point=shown.point,
            h=self._differences[scheme].h if scheme else None,
            scheme=scheme,
        )

    @property
    def gradient(self) -> dict[str, Any]:
        """The derivatives at the point by the method, keyed by name; empty after a refusal."""
        walk, numbers = self._compute_numbers()
        reveals = [r for step in walk.steps for r in step.reveals if r.column == "result"]
        derivatives = {reveal.position: numbers[reveal.value] for reveal in reveals}
        return {self._shown.scene.wrt[k]: derivatives[k] for k in sorted(derivatives)}

    @property
    def result(self) -> Any:
        """The number that the current step computes; None if it computes none."""
        walk, numbers = self._compute_numbers()
        index = walk.steps[self.step].result if walk.steps else -1
        return numbers[index] if index >= 0 else None

    def _compute_numbers(self) -> tuple[Walk, list[Any]]:
        """Return the steps of the current method, and all their values at the current point."""
        walk = self._find_walk()
        if walk.step_rule is not None:
            walk = replace(walk, step_rule=replace(walk.step_rule, size=self.h))
        return walk, compute_numbers(walk, self.point)

    def _find_walk(self) -> Walk:
        """Return the steps of the current method and scheme."""
        walk = self._shown.walk(self.method)
        return self._differences[self.scheme] if walk.scheme else walk

    def _find_last_step(self) -> int:
        """Return the index of the last step of the current method."""
        return max(0, len(self._find_walk().steps) - 1)

    def check_method(self, method: Any) -> Any:
        """Check the name of a tab."""
        return check_choice("method of this page", method, [w.method for w in self._shown.walks])

    def check_step(self, step: Any) -> int:
        """Check the type of a step's index."""
        return check_integer("`step`", step)

    @traitlets.validate("step")
    def _check_last_step(self, proposal: Any) -> Any:
        """Check the index of a step after all changes of a group, which may change the method."""
        index, last = proposal["value"], self._find_last_step()
        if index > last:
            raise WidgetStateError(f"`step` must be at most {last} for {self.method}, got {index}")
        return index

    def check_point(self, values: Any) -> Mapping[str, Any]:
        """Check new values of the point; names that are missing keep their values."""
        initial = self._shown.point
        reset = [  # initial values may be nan or infinite
            name
            for name in (values if isinstance(values, Mapping) else ())
            if name in initial and _is_same(values[name], initial[name])
        ]
        changed = {n: v for n, v in values.items() if n not in reset} if reset else values
        checked = check_named_values("`point`", changed, "name", initial)
        if checked:
            self._check_sliders()
        now = {**initial, **(self.point or {})}
        return MappingProxyType({**now, **checked, **{name: initial[name] for name in reset}})

    def _check_sliders(self) -> None:
        """Raise UsageError if the page has no sliders because it cannot compute the values."""
        if self._shown.scene.tape.has_arrays:
            raise UsageError(
                "the values on a page with arrays are fixed",
                hint="pass scalars=True to `step` to get a page with scalars and sliders",
            )
        names = {str(name) for w in self._shown.walks for name, _ in w.tape.instructions}
        if registered := sorted(name for name in names if not find_primitive(name).built_in):
            raise UsageError(
                "the values on this page are fixed: the page cannot compute the registered"
                f" primitives {', '.join(registered)}"
            )

    def check_h(self, h: Any) -> Any:
        """Check the step size of finite differences."""
        if h is not None:
            self._check_differences("h")
            h = check_real_number("`h`", h, above=0)
        return h

    def check_scheme(self, scheme: Any) -> Any:
        """Check the scheme of finite differences."""
        if scheme is not None or self._differences:
            self._check_differences("scheme")
            check_choice("scheme of steps", scheme, self._differences)
        return scheme

    def _check_differences(self, name: str) -> None:
        """Raise UsageError if the page has no finite differences."""
        if not self._differences:
            raise UsageError(
                f"`{name}` is an option of the method finite-difference, which this page lacks"
            )

    @traitlets.observe("method", "scheme")
    def _limit_step(self, _: Any) -> None:
        """Keep the step, or choose the last step of a method with fewer steps."""
        self.step = min(self.step, self._find_last_step())
