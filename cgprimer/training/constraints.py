"""What a step does to parameters besides the optimizer's rule: regularizers, bounds, frozen ones.

A step goes through these in the order in which they stand here. All but the norm look at one number
at a time, so that they are recorded with the rule, and engines run both in their own code.

- ``scale``: each parameter has its own factor of the learning rate.
- ``l2``: the gradient of ``lambda*W^2`` is added, so that plain descent is
  ``W = (1 - 2*rate*lambda)*W - rate*gradient``.
- ``l1``: after the step, a proximal one: W goes towards 0 by ``2*rate*lambda``, and not across.
- ``max_norm``: arrays, or named parameters together, are pulled back to where their norm is
  ``max_norm``; frozen ones are not counted.
- ``bounds``: what lies outside is put onto the bound.
- ``freeze``: such parameters keep their values, and are not differentiated.
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


def shrink_towards_zero(values: Array, by: Array) -> Array:
    """Values moved towards 0, and not across: the proximal step of l1.

    Source: Parikh and Boyd 2014, "Proximal algorithms", section 6.5.2 (soft thresholding).

    >>> shrink_towards_zero(np.array([0.4, -0.01]), 0.02).tolist()
    [0.38, -0.0]
    """
    return np.sign(values) * np.maximum(np.abs(values) - by, 0.0)


def project_to_norm_ball(values: Array, most: float, p: float) -> Array:
    """The nearest values whose p-norm is at most so much, for p = 1, 2 and infinity.

    For other p, values times the factor that brings the norm down: in the ball, on the same ray,
    but not the nearest.

    Source: Duchi et al. 2008, "Efficient projections onto the l1-ball", figure 1.

    >>> project_to_norm_ball(np.array([3.0, 4.0]), 1.0, 2.0).tolist()
    [0.6, 0.8]
    >>> project_to_norm_ball(np.array([3.0, 1.0]), 2.5, 1.0).tolist()
    [2.25, 0.25]
    >>> project_to_norm_ball(np.array([3.0, -1.0]), 2.0, math.inf).tolist()
    [2.0, -1.0]
    """
    if p == math.inf:
        return np.clip(values, -most, most)
    size = np.linalg.norm(values, p)
    if size <= most:
        return values
    if p != 1.0:
        return values * most / size
    falling = np.sort(np.abs(values))[::-1]
    off = (np.cumsum(falling) - most) / np.arange(1, len(values) + 1)
    return shrink_towards_zero(values, off[np.flatnonzero(falling > off)[-1]])


@dataclass(frozen=True, eq=False)
class Constraints:
    """What holds for each number of a parameters' vector; what is not there does nothing.

    Attributes:
        columns: by name (``scale``, ``l2``, ``l1``, ``low``, ``high``, ``free``), one for each
            number; shape (numbers,).
        norms: for each group its places in the vector, and the largest norm.
        p: of the norm.
    """

    columns: Mapping[str, Array] = field(default_factory=dict)
    norms: tuple[tuple[Array, float], ...] = ()
    p: float = 2.0

    def penalty(self, values: Array) -> float:
        """What l2 and l1 add to the loss: the sums of ``lambda*W^2`` and ``2*lambda*|W|``."""
        total = 0.0
        if "l2" in self.columns:
            total += float(np.sum(self.columns["l2"] * values**2))
        if "l1" in self.columns:
            total += float(2 * np.sum(self.columns["l1"] * np.abs(values)))
        return total

    def project(self, values: Array) -> Array:
        """Values as they are after norms and bounds."""
        if self.norms:
            values = np.array(values)
            for places, most in self.norms:
                values[places] = project_to_norm_ball(values[places], most, self.p)
        if "low" in self.columns:
            values = np.minimum(np.maximum(values, self.columns["low"]), self.columns["high"])
        return values

    def choose_start(
        self,
        vectors: ParameterVectors,
        drawn: Array,
        given: Mapping[str, Any],
        declared: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Where a run begins: at what is given; frozen parameters at what the graph declares.

        What is drawn at random is put within norms and bounds.

        Raises:
            UsageError: what is given lies outside of them, or a frozen parameter has no value.
        """
        values, own = vectors.values(self.project(drawn)), self.columns.get("free")
        if own is not None:
            for name, free in vectors.parts(own).items():
                if name in given or free.all():
                    continue
                if name not in declared:
                    hint = f"give it one: --start {name}=... (start={{{name!r}: ...}})"
                    raise UsageError(f"{name} is frozen, and has no value", hint=hint)
                found = np.where(free, values[name], declared[name])
                values[name] = found if free.ndim else float(found)
        values = vectors.values(set_start_values(vectors.vector(values), vectors, given))
        parts = vectors.parts(vectors.vector(values))
        within = vectors.parts(self.project(vectors.vector(values)))
        for name in values:
            if not np.allclose(parts[name], within[name], rtol=1e-9, atol=0):
                hint = f"another start: --start {name}=... (start={{{name!r}: ...}})"
                value = format_array(values[name])
                raise UsageError(
                    f"the start of {name}, {value}, lies outside of its bounds or norm", hint=hint
                )
        return values

    def constrain_rule(self, rule: Optimizer) -> Optimizer:
        """A rule whose steps end with this; its own state is followed by the columns."""
        if not (self.columns or self.norms):
            return rule
        names, norms, p = tuple(self.columns), self.norms, self.p

        def update(
            parameters: Array, gradient: Array, state: State, rate: Any
        ) -> tuple[Array, State]:
            count = len(state) - len(names)
            own, held = state[:count], dict(zip(names, state[count:], strict=True))
            rate = rate * held["scale"] if "scale" in held else rate
            if "l2" in held:
                gradient = gradient + 2 * held["l2"] * parameters
            moved, own = rule.update(parameters, gradient, own, rate)
            if "l1" in held:
                moved = shrink_towards_zero(moved, 2 * rate * held["l1"])
            if norms:
                moved = Constraints(norms=norms, p=p).project(moved)
            if "low" in held:
                moved = np.minimum(np.maximum(moved, held["low"]), held["high"])
            if "free" in held:
                moved = np.where(held["free"], moved, parameters)
            return moved, (*own, *state[count:])

        def start(parameters: Array) -> State:
            kept = (np.resize(part, np.shape(parameters)) for part in self.columns.values())
            return (*rule.start(parameters), *kept)

        return Optimizer(rule.name, update, start, rule.rate, kind=rule.kind)


def create_constraints(settings: Any, graph: ExpressionGraph) -> Constraints:
    """What the settings of a run ask for."""
    names = ("scale", "l2", "l1", "max_norm", "norm", "bounds", "freeze")
    given = {name: getattr(settings, name) for name in names}
    if settings.norm != 2.0 and not settings.max_norm:
        what = f"norm {settings.norm:g} is p of max_norm, and there is none"
        raise UsageError(what, hint="--max-norm 1 (max_norm=1)")
    asked = any(given[name] not in (None, (), {}) for name in names if name != "norm")
    return constraints(ParameterVectors(graph), **given) if asked else Constraints()


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
    """What a user asked for, for the parameters' vector.

    Arguments are those of :func:`cgprimer.train`; names are those of parameters, or of their
    elements: ``W``, ``W[0,1]``.

    Raises:
        UsageError: an unknown name, a number out of its range, nothing left to learn.

    >>> import cgprimer
    >>> vectors = ParameterVectors(cgprimer.parse("xw = a*xa + b"))
    >>> constraints(vectors, l2={"a": 0.5}, freeze=["b"]).columns
    {'l2': array([0.5, 0. ]), 'free': array([1., 0.])}
    """
    count, columns = len(vectors), dict[str, Array]()
    for what, given in ("scale", scale), ("l2", l2), ("l1", l1):
        if given is None:
            continue
        column = np.full(count, 1.0 if what == "scale" else 0.0)
        for name, value in _list_named_values(what, given, vectors):
            column[find_indices(vectors, what, name)] = check_real_number(what, value, minimum=0)
        if (column != (what == "scale")).any():
            columns[what] = column
    if bounds:
        low, high = np.full(count, -np.inf), np.full(count, np.inf)
        for name, value in _list_named_values("bounds", bounds, vectors):
            places = find_indices(vectors, "bounds", name)
            low[places], high[places] = _read_bounds(name, value)
        columns |= {"low": low, "high": high}
    names = [freeze] if isinstance(freeze, str) else list(freeze or ())
    if names:
        columns["free"] = np.ones(count)
        for name in names:
            columns["free"][find_indices(vectors, "freeze", name)] = 0.0
        if not columns["free"].any():
            raise UsageError("all parameters are frozen: there is nothing to learn")
    norms = [] if max_norm is None else _group_norms(vectors, max_norm)
    if "free" in columns:
        norms = [(places[columns["free"][places] != 0], most) for places, most in norms]
        norms = [(places, most) for places, most in norms if len(places)]
    if bounds:
        for places, most in norms:
            least = float(np.linalg.norm(np.clip(0.0, low[places], high[places]), norm))
            if least > most:
                what = f"the bounds of {vectors.elements[places[0]]}"
                what += f"{', ...' if len(places) > 1 else ''} leave a norm of {least:g} at least"
                raise UsageError(f"{what}, and max_norm is {most:g}")
    if norm == math.inf and norms:  # the largest number: a bound of each by itself
        for places, most in norms:
            columns.setdefault("low", np.full(count, -np.inf))
            columns.setdefault("high", np.full(count, np.inf))
            columns["low"][places] = np.maximum(columns["low"][places], -most)
            columns["high"][places] = np.minimum(columns["high"][places], most)
        norms = []
    return Constraints(columns, tuple(norms), norm)


def _list_named_values(what: str, given: Any, vectors: ParameterVectors) -> list[tuple[str, Any]]:
    """A number for all, or values by name."""
    if isinstance(given, Mapping):
        return list(given.items())
    return [(name, given) for name in vectors.shapes]


def find_indices(vectors: ParameterVectors, what: str, name: str) -> Array:
    """Where a parameter, or an element of one, stands in the vector."""
    own, at = parse_element(name) if isinstance(name, str) else (name, ())
    if own not in vectors.shapes:
        hint = name_hint(str(own), vectors.shapes)
        raise UsageError(f"{what}: there is no parameter {own!r}", hint=hint)
    found = vectors.parts(np.arange(len(vectors)))[own]
    try:
        return np.ravel(found[at])
    except IndexError:
        raise UsageError(f"{what}: {own} has the shape {list(found.shape)}, no {name}") from None


def set_start_values(values: Array, vectors: ParameterVectors, start: Mapping[str, Any]) -> Array:
    """Start values, of which whole arrays come first, then rows, then elements."""
    for name in sorted(start, key=lambda n: len(parse_element(n)[1])):
        places, value = find_indices(vectors, "start", name), np.ravel(start[name])
        if len(value) not in (1, len(places)):
            raise UsageError(f"start: {name} has {len(places)} numbers, not {len(value)}")
        values[places] = value
    return values


def _read_bounds(name: str, value: Any) -> tuple[float, float]:
    if np.shape(value) != (2,):
        raise UsageError(f"bounds of {name}: two numbers are needed", hint="as in k=0:1")
    low, high = (
        float(end) if end in _INFINITE else check_real_number(f"a bound of {name}", end)
        for end in value
    )
    if not low <= high:
        raise UsageError(f"the bounds of {name} must ascend, not go from {low:g} to {high:g}")
    return low, high


def _group_norms(vectors: ParameterVectors, max_norm: Any) -> list[tuple[Array, float]]:
    """Which numbers of the vector have a norm together, and its largest value."""
    if isinstance(max_norm, Mapping):
        wanted = dict(max_norm)
    else:
        single = "+".join(name for name, shape in vectors.shapes.items() if not shape)
        arrays = [name for name, shape in vectors.shapes.items() if shape]
        wanted = dict.fromkeys([*([single] if single else []), *arrays], max_norm)
    found = []
    for names, most in wanted.items():
        parts = [find_indices(vectors, "max_norm", name.strip()) for name in str(names).split("+")]
        found.append((np.concatenate(parts), check_real_number("max_norm", most, above=0)))
    return found
