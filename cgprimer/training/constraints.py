"""Regularizers and constraints of an update: penalties, norms, bounds and frozen parameters.

They are applied in this order. All except the norm are elementwise, so engines record them together
with the update rule.

- ``scale``: a factor of the learning rate for each parameter.
- ``l2``: the gradient of ``lambda*W^2`` is added, so that plain descent is
  ``W = (1 - 2*rate*lambda)*W - rate*gradient``.
- ``l1``: a proximal step after the update moves W toward 0 by at most ``2*rate*lambda``.
- ``max_norm``: arrays, or groups of named parameters, are projected to the ball whose radius is
  ``max_norm``; frozen parameters are not counted.
- ``bounds``: values outside the bounds are set to the nearest bound.
- ``freeze``: frozen parameters keep their values and are not differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cgprimer.errors import UsageError, name_hint
from cgprimer.expressions import ExpressionGraph, parse_element
from cgprimer.support.number_format import format_array
from cgprimer.support.validation import check_real_number
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.update_rules import Array, Optimizer
from cgprimer.training.written_rules import State

_INFINITE = (-math.inf, math.inf, "-inf", "inf", "-Infinity", "Infinity")


def shrink_towards_zero(values: Array, threshold: Array) -> Array:
    """Move each value toward 0 by a threshold, not past 0: the proximal operator of l1.

    Source: Parikh and Boyd 2014, "Proximal algorithms", section 6.5.2 (soft thresholding).

    >>> shrink_towards_zero(np.array([0.4, -0.01]), 0.02).tolist()
    [0.38, -0.0]
    """
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)


def project_to_norm_ball(values: Array, radius: float, p: float) -> Array:
    """Project values onto the ball of a p-norm, for p = 1, 2 and infinity.

    For other p, the values are scaled to the surface of the ball, which is not the nearest point.

    Args:
        values: the values.
        radius: radius of the ball.
        p: order of the norm.

    Source: Duchi et al. 2008, "Efficient projections onto the l1-ball", figure 1.

    >>> project_to_norm_ball(np.array([3.0, 4.0]), 1.0, 2.0).tolist()
    [0.6, 0.8]
    >>> project_to_norm_ball(np.array([3.0, 1.0]), 2.5, 1.0).tolist()
    [2.25, 0.25]
    >>> project_to_norm_ball(np.array([3.0, -1.0]), 2.0, math.inf).tolist()
    [2.0, -1.0]
    """
    if p == math.inf:
        return np.clip(values, -radius, radius)
    size = np.linalg.norm(values, p)
    if size <= radius:
        return values
    if p != 1.0:
        return values * radius / size
    falling = np.sort(np.abs(values))[::-1]
    off = (np.cumsum(falling) - radius) / np.arange(1, len(values) + 1)
    return shrink_towards_zero(values, off[np.flatnonzero(falling > off)[-1]])


@dataclass(frozen=True, eq=False)
class Constraints:
    """Regularizers and constraints for the elements of a parameter vector.

    Attributes:
        columns: values for each element, keyed by ``scale``, ``l2``, ``l1``, ``low``, ``high`` or
            ``free`` (1 or 0); shape (elements,). Absent constraints do nothing.
        norms: the indices of each group of elements, and the maximum norm of the group.
        p: order of the norm.
    """

    columns: Mapping[str, Array] = field(default_factory=dict)
    norms: tuple[tuple[Array, float], ...] = ()
    p: float = 2.0

    def penalty(self, values: Array) -> float:
        """Return the sum of the l2 and l1 penalties, ``lambda*W^2`` and ``2*lambda*|W|``."""
        total = 0.0
        if "l2" in self.columns:
            total += float(np.sum(self.columns["l2"] * values**2))
        if "l1" in self.columns:
            total += float(2 * np.sum(self.columns["l1"] * np.abs(values)))
        return total

    def project(self, values: Array) -> Array:
        """Project values onto the norm balls and the bounds."""
        if self.norms:
            values = np.array(values)
            for indices, radius in self.norms:
                values[indices] = project_to_norm_ball(values[indices], radius, self.p)
        if "low" in self.columns:
            values = np.minimum(np.maximum(values, self.columns["low"]), self.columns["high"])
        return values

    def choose_start(
        self,
        vectors: ParameterVectors,
        random_start: Array,
        start_values: Mapping[str, Any],
        declared_values: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Choose the start values of all parameters, and check them against the constraints.

        Args:
            vectors: converts between names and the vector.
            random_start: random start values, which are projected to norms and bounds.
            start_values: start values of the user.
            declared_values: values in the graph, at which frozen parameters start.

        Raises:
            UsageError: a value is outside norms or bounds, or a frozen parameter has no value.
        """
        values, free_column = vectors.values(self.project(random_start)), self.columns.get("free")
        if free_column is not None:
            for name, free in vectors.parts(free_column).items():
                if name in start_values or free.all():
                    continue
                if name not in declared_values:
                    hint = f"pass --start {name}=... (start={{{name!r}: ...}})"
                    raise UsageError(f"frozen parameter {name} has no value", hint=hint)
                positions = np.where(free, values[name], declared_values[name])
                values[name] = positions if free.ndim else float(positions)
        values = vectors.values(set_start_values(vectors.vector(values), vectors, start_values))
        parts = vectors.parts(vectors.vector(values))
        within = vectors.parts(self.project(vectors.vector(values)))
        for name in values:
            if not np.allclose(parts[name], within[name], rtol=1e-9, atol=0):
                hint = f"pass another start value: --start {name}=... (start={{{name!r}: ...}})"
                value = format_array(values[name])
                raise UsageError(
                    f"start value {value} of {name} violates its bounds or max_norm", hint=hint
                )
        return values

    def constrain_rule(self, rule: Optimizer) -> Optimizer:
        """Return the optimizer, extended so that each update applies the constraints."""
        if not (self.columns or self.norms):
            return rule
        names, norms, p = tuple(self.columns), self.norms, self.p

        def update(
            parameters: Array, gradient: Array, state: State, rate: Any
        ) -> tuple[Array, State]:
            """Run one update with regularizers and constraints."""
            count = len(state) - len(names)
            inner_state, column_values = state[:count], dict(zip(names, state[count:], strict=True))
            rate = rate * column_values["scale"] if "scale" in column_values else rate
            if "l2" in column_values:
                gradient = gradient + 2 * column_values["l2"] * parameters
            moved, inner_state = rule.update(parameters, gradient, inner_state, rate)
            if "l1" in column_values:
                moved = shrink_towards_zero(moved, 2 * rate * column_values["l1"])
            if norms:
                moved = Constraints(norms=norms, p=p).project(moved)
            if "low" in column_values:
                moved = np.minimum(np.maximum(moved, column_values["low"]), column_values["high"])
            if "free" in column_values:
                moved = np.where(column_values["free"], moved, parameters)
            return moved, (*inner_state, *state[count:])

        def start(parameters: Array) -> State:
            """Return the initial optimizer state, followed by the arrays of the constraints."""
            repeated = (np.resize(part, np.shape(parameters)) for part in self.columns.values())
            return (*rule.start(parameters), *repeated)

        return Optimizer(rule.name, update, start, rule.rate, kind=rule.kind)


def create_constraints(settings: Any, graph: ExpressionGraph) -> Constraints:
    """Create the constraints of a run from its settings."""
    names = ("scale", "l2", "l1", "max_norm", "norm", "bounds", "freeze")
    arguments = {name: getattr(settings, name) for name in names}
    if settings.norm != 2.0 and not settings.max_norm:
        message = f"norm={settings.norm:g} requires max_norm"
        raise UsageError(message, hint="pass --max-norm, such as --max-norm 1 (max_norm=1)")
    is_constrained = any(arguments[name] not in (None, (), {}) for name in names if name != "norm")
    return constraints(ParameterVectors(graph), **arguments) if is_constrained else Constraints()


def constraints(
    vectors: ParameterVectors,
    *,
    scale: Mapping[str, Any] | None = None,
    l2: Any = None,
    l1: Any = None,
    max_norm: Any = None,
    norm: float = 2.0,
    bounds: Mapping[str, Any] | None = None,
    freeze: Iterable[str] | None = (),
) -> Constraints:
    """Create constraints from the arguments of :func:`cgprimer.train`.

    Names are names of parameters or of their elements: ``W``, ``W[0,1]``.

    Raises:
        UsageError: a name is unknown, a value is out of range, or all parameters are frozen.

    >>> import cgprimer
    >>> vectors = ParameterVectors(cgprimer.parse("xw = a*xa + b"))
    >>> constraints(vectors, l2={"a": 0.5}, freeze=["b"]).columns
    {'l2': array([0.5, 0. ]), 'free': array([1., 0.])}
    """
    count, columns = len(vectors), dict[str, Array]()
    for setting, values in ("scale", scale), ("l2", l2), ("l1", l1):
        if values is None:
            continue
        column = np.full(count, 1.0 if setting == "scale" else 0.0)
        for name, value in _list_named_values(values, vectors):
            column[find_indices(vectors, setting, name)] = check_real_number(
                setting, value, minimum=0
            )
        if (column != (setting == "scale")).any():
            columns[setting] = column
    if bounds:
        low, high = np.full(count, -np.inf), np.full(count, np.inf)
        for name, value in _list_named_values(bounds, vectors):
            indices = find_indices(vectors, "bounds", name)
            low[indices], high[indices] = _read_bounds(name, value)
        columns |= {"low": low, "high": high}
    names = [freeze] if isinstance(freeze, str) else list(freeze or ())
    if names:
        columns["free"] = np.ones(count)
        for name in names:
            columns["free"][find_indices(vectors, "freeze", name)] = 0.0
        if not columns["free"].any():
            raise UsageError("cannot train: all parameters are frozen")
    norms = [] if max_norm is None else _list_norm_groups(vectors, max_norm)
    if "free" in columns:
        norms = [(indices[columns["free"][indices] != 0], radius) for indices, radius in norms]
        norms = [(indices, radius) for indices, radius in norms if len(indices)]
    if bounds:
        for indices, radius in norms:
            least = float(np.linalg.norm(np.clip(0.0, low[indices], high[indices]), norm))
            if least > radius:
                names_of_group = vectors.elements[indices[0]] + ", ..." * (len(indices) > 1)
                raise UsageError(
                    f"max_norm of {names_of_group} must be at least {least:g} to satisfy the"
                    f" bounds, got {radius:g}"
                )
    if norm == math.inf and norms:  # the maximum norm bounds each element separately
        for indices, radius in norms:
            columns.setdefault("low", np.full(count, -np.inf))
            columns.setdefault("high", np.full(count, np.inf))
            columns["low"][indices] = np.maximum(columns["low"][indices], -radius)
            columns["high"][indices] = np.minimum(columns["high"][indices], radius)
        norms = []
    return Constraints(columns, tuple(norms), norm)


def _list_named_values(values: Any, vectors: ParameterVectors) -> list[tuple[str, Any]]:
    """Return (name, value) pairs from a mapping, or from a single value for all parameters."""
    if isinstance(values, Mapping):
        return list(values.items())
    return [(name, values) for name in vectors.shapes]


def find_indices(vectors: ParameterVectors, setting: str, name: str) -> Array:
    """Return the indices of a parameter, or of one of its elements, in the parameter vector."""
    parameter, at = parse_element(name) if isinstance(name, str) else (name, ())
    if parameter not in vectors.shapes:
        hint = name_hint(str(parameter), vectors.shapes)
        raise UsageError(f"{setting}: unknown parameter {parameter!r}", hint=hint)
    positions = vectors.parts(np.arange(len(vectors)))[parameter]
    try:
        return np.ravel(positions[at])
    except IndexError:
        shape = list(positions.shape)
        message = f"{setting}: index {name} is out of range for {parameter} with shape {shape}"
        raise UsageError(message) from None


def set_start_values(values: Array, vectors: ParameterVectors, start: Mapping[str, Any]) -> Array:
    """Set start values in a parameter vector: whole arrays first, then rows, then elements."""
    for name in sorted(start, key=lambda n: len(parse_element(n)[1])):
        indices, value = find_indices(vectors, "start", name), np.ravel(start[name])
        if len(value) not in (1, len(indices)):
            raise UsageError(
                f"the start value of {name} must have {len(indices)} elements, got {len(value)}"
            )
        values[indices] = value
    return values


def _read_bounds(name: str, value: Any) -> tuple[float, float]:
    """Return the lower and the upper bound of a parameter after checking them."""
    if np.shape(value) != (2,):
        hint = "pass a lower and an upper bound, as in k=0:1"
        raise UsageError(f"bounds of {name} must be two numbers", hint=hint)
    low, high = (
        float(end) if end in _INFINITE else check_real_number(f"a bound of {name}", end)
        for end in value
    )
    if not low <= high:
        raise UsageError(f"bounds of {name} must be in ascending order, got {low:g} and {high:g}")
    return low, high


def _list_norm_groups(vectors: ParameterVectors, max_norm: Any) -> list[tuple[Array, float]]:
    """Return the element indices and the maximum norm of each group limited by ``max_norm``."""
    if isinstance(max_norm, Mapping):
        wanted = dict(max_norm)
    else:
        single = "+".join(name for name, shape in vectors.shapes.items() if not shape)
        arrays = [name for name, shape in vectors.shapes.items() if shape]
        wanted = dict.fromkeys([*([single] if single else []), *arrays], max_norm)
    positions = []
    for names, radius in wanted.items():
        parts = [find_indices(vectors, "max_norm", name.strip()) for name in str(names).split("+")]
        positions.append((np.concatenate(parts), check_real_number("max_norm", radius, above=0)))
    return positions
