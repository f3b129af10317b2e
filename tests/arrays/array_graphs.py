"""Hypothesis strategies for random array graphs, as text and as numpy functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.graph import ExpressionGraph

Array = Any
ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "sin({0})": np.sin,
    "tanh({0})": np.tanh,
    "exp(0.3*{0})": lambda a: np.exp(0.3 * a),
    "sqrt(1 + {0}^2)": lambda a: np.sqrt(1 + a**2),
    "-{0}": np.negative,
    "{0}^3": lambda a: a**3,
    "sigmoid({0})": lambda a: 1 / (1 + np.exp(-a)),
}
TWO: dict[str, Callable[..., Array]] = {
    "{0} + {1}": np.add,
    "{0} - {1}": np.subtract,
    "{0}*{1}": np.multiply,
    "{0}/(2 + {1}^2)": lambda a, b: a / (2 + b**2),
}


def _softmax(a: Array, axis: int) -> Array:
    powers = np.exp(a - a.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@dataclass
class Case:
    """A graph, a point, and the values that numpy computes at that point.

    Attributes:
        lines: statements of the graph.
        values: value of each name at the point.
        functions: numpy function and operands of each name, in the order of the statements.
    """

    lines: list[str] = field(default_factory=list)
    values: dict[str, Array] = field(default_factory=dict)
    functions: dict[str, tuple[Callable[..., Array], tuple[str, ...]]] = field(default_factory=dict)

    @property
    def graph(self) -> ExpressionGraph:
        return cgprimer.parse("\n".join(self.lines))

    @property
    def leaves(self) -> tuple[str, ...]:
        return tuple(name for name in self.values if name not in self.functions)

    @property
    def at(self) -> dict[str, Array]:
        return {name: self.values[name] for name in self.leaves}

    def compute(self, at: dict[str, Array]) -> dict[str, Array]:
        """Return the values of all names for other values of the leaves."""
        known = dict(at)
        for name, (function, names) in self.functions.items():
            known[name] = function(*[known[n] for n in names])
        return known

    def add(self, text: str, function: Callable[..., Array], *names: str) -> str:
        """Add a variable and return its name."""
        made = f"xv{len(self.functions)}"
        self.lines.append(f"{made} = {text.format(*names)}")
        self.functions[made] = (function, names)
        self.values[made] = np.asarray(function(*[self.values[n] for n in names]))
        return made


@st.composite
def array_cases(draw: Any, steps: int = 4, scalar: bool = True) -> Case:
    """Generate a graph of a few steps; its last value is a scalar if ``scalar``."""
    case, rng = Case(), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = st.integers(1, 3)
    for role, names in (("input", ("x", "xb")), ("parameter", ("w", "k"))):
        for name in names:
            shape = tuple(draw(st.lists(sizes, max_size=3 if name == "w" else 2)))
            sized = f"[{','.join(map(str, shape))}]" if shape else ""
            case.lines.append(f"{role} {name}{sized}")
            case.values[name] = rng.uniform(-1.5, 1.5, shape)
    for _ in range(steps):
        _add_random_step(draw, case)
    used = [names for _, names in case.functions.values()]
    last = [name for name in case.functions if not any(name in names for names in used)]
    if scalar:  # all unused values contribute, each with a separate weight
        weights = rng.uniform(0.5, 1.5, len(last)).round(3).tolist()

        def total(*values: Array) -> Array:
            return sum(w * (v**2 + v).sum() for v, w in zip(values, weights, strict=True))

        terms = [f"{w}*sum({name}^2 + {name})" for name, w in zip(last, weights, strict=True)]
        case.lines.append("xo = " + " + ".join(terms))
        case.functions["xo"] = (total, tuple(last))
        case.values["xo"] = np.asarray(total(*[case.values[n] for n in last]))
    return case


def _add_random_step(draw: Any, case: Case) -> None:
    """Add a variable computed by a random operation that fits the shapes."""
    names = st.sampled_from(list(case.values))
    one, other = draw(names), draw(names)
    a, b = case.values[one], case.values[other]
    kinds = ["elementwise", "two", "sum", "largest"] if a.ndim else ["elementwise", "two"]
    kinds += ["take", "softmax", "turn", "reshape", "join", "norm"] if a.ndim else []
    kinds += ["matmul"] * 3 if _accepts(np.matmul, a, b) else []
    kind = draw(st.sampled_from(kinds))
    axis = draw(st.integers(-a.ndim, a.ndim - 1)) if a.ndim else 0
    if kind == "two" and not _accepts(np.add, a, b):
        kind = "elementwise"
    if kind in ("elementwise", "two"):
        table = ELEMENTWISE if kind == "elementwise" else TWO
        text = draw(st.sampled_from(list(table)))
        case.add(text, table[text], *[one, other][: 1 + (kind == "two")])
    elif kind == "matmul":
        case.add("{0} @ {1}", np.matmul, one, other)
    elif kind == "sum":
        name, function = draw(st.sampled_from([("sum", np.sum), ("mean", np.mean)]))
        axes = draw(st.sampled_from([None, (axis,), tuple(range(a.ndim))]))
        listed = "" if axes is None else "".join(f", {i}" for i in axes)
        case.add(f"{name}({{0}}{listed})", lambda v: function(v, axis=axes), one)
    elif kind == "largest":
        name, function = draw(st.sampled_from([("max", np.max), ("min", np.min)]))
        case.add(f"{name}({{0}})", function, one)
    elif kind == "take":
        parts = [draw(_random_index(n)) for n in a.shape[: draw(st.integers(1, a.ndim))]]
        lists = sum(isinstance(k, list) for _, k in parts)
        if lists and (lists > 1 or any(isinstance(k, int) for _, k in parts)):
            parts = parts[:1]
        texts, key = zip(*parts, strict=True)
        case.add(f"{{0}}[{','.join(texts)}]", lambda v: v[tuple(key)], one)
    elif kind == "softmax":
        log = draw(st.booleans())

        def rows(v: Array) -> Array:
            return np.log(_softmax(v, axis)) if log else _softmax(v, axis)

        case.add(f"{'log_' * log}softmax({{0}}, {axis})", rows, one)
    elif kind == "turn":
        order = draw(st.sampled_from([None, draw(st.permutations(range(a.ndim)))]))
        listed = "" if order is None else "".join(f", {i}" for i in order)
        case.add(f"transpose({{0}}{listed})", lambda v: np.transpose(v, order), one)
    elif kind == "reshape":
        shape = draw(st.sampled_from([(-1,), (a.size, 1), (1, *a.shape)]))
        listed = "".join(f", {n}" for n in shape)
        case.add(f"reshape({{0}}{listed})", lambda v: v.reshape(shape), one)
    elif kind == "norm":
        if draw(st.booleans()) or a.shape != b.shape:
            case.add("norm(1 + {0}^2)", lambda v: np.sqrt(((1 + v**2) ** 2).sum()), one)
        else:
            case.add("dot({0}, {1})", lambda v, w: (v * w).sum(), one, other)
    else:
        second = other if a.shape == b.shape else one
        case.add("concatenate({0}, {1})", lambda v, w: np.concatenate([v, w]), one, second)


@st.composite
def _random_index(draw: Any, size: int) -> tuple[str, Any]:
    """Generate one part of an index, as text and for numpy."""
    kind = draw(st.sampled_from(["number", "all", "back", "part", "list"]))
    place = draw(st.integers(-size, size - 1))
    if kind == "number":
        return str(place), place
    if kind == "list":
        more = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=3))
        return f"[{','.join(map(str, more))}]", more
    if kind == "part":
        first = draw(st.integers(0, size - 1))
        return f"{first}:", slice(first, None)
    return (":", slice(None)) if kind == "all" else ("::-1", slice(None, None, -1))


def _accepts(function: Callable[..., Array], a: Array, b: Array) -> bool:
    """Return whether a numpy function accepts two arrays."""
    try:
        function(a, b)
    except ValueError:
        return False
    return True


def difference_jacobians(case: Case, of: str, wrt: tuple[str, ...]) -> dict[str, Array]:
    """Return central differences of numpy's values, of shape ``of`` + ``wrt``."""
    return {
        name: difference_quotients(
            lambda moved, name=name: case.compute({**case.at, name: moved})[of], case.values[name]
        )
        for name in wrt
    }


def difference_quotients(function: Callable[..., Array], value: Array, step: float = 1e-5) -> Array:
    """Return central differences of a function, of shape output + ``value``."""
    columns = []
    for index in np.ndindex(value.shape):
        moved = np.zeros(value.shape)
        moved[index] = step
        columns.append((function(value + moved) - function(value - moved)) / (2 * step))
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + value.shape)
