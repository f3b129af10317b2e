"""Evaluate graphs without the package's engines, and call submissions as the documentation says.

The package only parses the text. Expressions are evaluated by Python itself, with the functions of
a namespace: those of math, numpy, mpmath, sympy or torch.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import cgprimer
from tests.trial.grading.submission_files import Submission

Values = dict[str, Any]
_GLOBALS: Values = {"__builtins__": {"__import__": __import__}}  # torch imports when it indexes
DECLARATION = re.compile(r"^\s*(input|parameter|output)\s")


def definitions(graph: Any) -> list[tuple[str, Any]]:
    """Return each defined variable with its expression, compiled for Python."""
    names = [n for n in graph.variables if n not in graph.inputs]
    texts = [(name, graph.expression(name).replace("^", "**")) for name in names]
    return [(name, compile(text, f"<{name}>", "eval")) for name, text in texts]


def evaluate(
    program: list[tuple[str, Any]], values: Mapping[str, Any], functions: Values
) -> Values:
    """Return all variables of a graph at `values`."""
    scope = {**functions, **values}
    for name, code in program:
        scope[name] = eval(code, _GLOBALS, scope)  # noqa: S307 - texts of this folder
    return scope


def _axis(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *axes: function(a, axis=axes or None)


def _softmax(a: Any) -> Any:
    e = np.exp(a - a.max())
    return e / e.sum()


NUMPY: Values = {
    **{
        n: getattr(np, n)
        for n in ["exp", "expm1", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
    },
    **{n: getattr(np, f"arc{n[1:]}") for n in ("asin", "acos", "atan", "asinh")},
    "log": lambda a, *b: np.log(a) / np.log(b[0]) if b else np.log(a),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "softplus": lambda a: (
        np.where(np.real(a) > 0, a, 0 * a) + np.log1p(np.exp(-np.where(np.real(a) > 0, a, -a)))
    ),
    "relu": lambda a: np.where(np.real(a) > 0, a, 0 * a),
    "abs": lambda a: np.where(np.real(a) < 0, -a, a),
    "leaky_relu": lambda a, s=0.01: np.where(np.real(a) < 0, s * a, a),
    "max": lambda a, *b: np.where(np.real(a) >= np.real(b[0]), a, b[0]) if b else a.max(),
    "min": lambda a, *b: np.where(np.real(a) <= np.real(b[0]), a, b[0]) if b else a.min(),
    "where": np.where,
    "less": lambda a, b: np.real(a) < np.real(b),
    "equal": lambda a, b: a == b,
    "clamp": lambda a, low, high: np.where(
        np.real(a) < np.real(low), low, np.where(np.real(a) > np.real(high), high, a)
    ),
    "sum": _axis(np.sum),
    "mean": _axis(np.mean),
    "dot": lambda a, b: (a * b).sum(),
    "norm": lambda a: np.sqrt((a * a).sum()),
    "softmax": _softmax,
    "log_softmax": lambda a: np.log(_softmax(a)),
    "transpose": np.transpose,
    "reshape": lambda a, *s: np.reshape(a, s),
    "concatenate": lambda *a: np.concatenate(a),
    "logaddexp": np.logaddexp,
    "xlogy": lambda a, b: a * np.log(b),
}

LOSSES: dict[str, Callable[[Values], Callable[[Any, Any], Any]]] = {
    "squared-error": lambda f: lambda o, t: (o - t) ** 2,
    "half-squared-error": lambda f: lambda o, t: (o - t) ** 2 / 2,
    "absolute-error": lambda f: lambda o, t: f["abs"](o - t),
    "cross-entropy": lambda f: lambda o, t: -t * f["log"](o) - (1 - t) * f["log"](1 - o),
    "cross-entropy-logit": lambda f: lambda o, t: f["log"](1 + f["exp"](o)) - t * o,
    "softmax-cross-entropy": lambda f: lambda o, t: -t * f["log_softmax"](o),
    "hinge": lambda f: lambda o, t: f["relu"](1 - o * t),
    "(out - target)^4": lambda f: lambda o, t: (o - t) ** 4,
}


class Question:
    """What a check asks: a scalar function of named values, built from the text of a graph."""

    def __init__(
        self,
        graph: Any,
        *,
        of: str | None = None,
        wrt: str | None = None,
        loss: str | None = None,
        batch: int = 0,
        reduction: str = "mean",
        **_: Any,
    ) -> None:
        self.graph = graph
        self.program = definitions(graph)
        self.of = of or graph.outputs[0]
        self.wrt = wrt.split(",") if wrt else list(graph.parameters)
        self.loss, self.batch, self.reduction = loss, batch, reduction
        self.outputs = [of] if of else list(graph.outputs)

    def names(self) -> list[str]:
        """Return the names that a submission is given."""
        targets = ["target"] if self.loss else []
        return [*self.graph.inputs, *self.graph.parameters, *targets]

    def value(self, at: Mapping[str, Any], functions: Values = NUMPY) -> Any:
        """Return the loss, or the output, at a point; inputs and targets have samples in front."""
        if not self.batch:
            return self._sample(at, functions)
        sampled = {*self.graph.inputs, "target"}
        total = 0
        for index in range(self.batch):
            one = {n: (v[index] if n in sampled else v) for n, v in at.items()}
            total = total + self._sample(one, functions)
        return total / self.batch if self.reduction == "mean" else total

    def _sample(self, at: Mapping[str, Any], functions: Values) -> Any:
        out = evaluate(self.program, at, functions)[self.of]
        if self.loss is None:
            return out
        loss = LOSSES[self.loss](functions)(out, at["target"])
        return loss.sum() if getattr(loss, "shape", ()) else loss

    def point(self, generator: np.random.Generator, *, spread: float = 0.3) -> Values:
        """Return values near the declared ones (with some signs changed if the spread is large)."""
        at: Values = {}
        shapes, samples = self.graph.shapes, (self.batch,) if self.batch else ()
        for name in (*self.graph.inputs, *self.graph.parameters):
            base = np.asarray(self.graph.values.get(name, 1.0), dtype=float)
            base = np.broadcast_to(base, shapes.get(name, ()) or ())
            shape = (*(samples if name in self.graph.inputs else ()), *base.shape)
            scale = 1 + spread * generator.uniform(-1, 1, shape)
            signs = np.where(generator.uniform(size=shape) < 0.5 * (spread > 0.5), -1, 1)
            at[name] = base * scale * signs + 0.05 * generator.uniform(-1, 1, shape)
        if self.loss:
            out = evaluate(
                self.program,
                {n: (v[0] if samples and n in self.graph.inputs else v) for n, v in at.items()},
                NUMPY,
            )[self.of]
            at["target"] = self._target((*samples, *np.shape(out)), generator)
        return at

    def _target(self, shape: tuple[int, ...], generator: np.random.Generator) -> Any:
        if self.loss == "hinge":
            return generator.choice([-1.0, 1.0], shape)
        if self.loss == "softmax-cross-entropy":
            return np.eye(shape[-1])[generator.integers(shape[-1], size=shape[:-1])]
        if "cross-entropy" in (self.loss or ""):
            return generator.choice([0.0, 1.0], shape)
        return generator.normal(size=shape)

    def differences(self, at: Values, step: float = 1e-5) -> list[np.ndarray]:
        """Return the gradient by central differences of Python's own evaluation."""
        gradients = []
        for name in self.wrt:
            base = np.array(at[name], dtype=float)
            slope = np.empty_like(base)
            for index in np.ndindex(base.shape):
                up, down = base.copy(), base.copy()
                up[index] += step
                down[index] -= step
                rise = self.value({**at, name: up}) - self.value({**at, name: down})
                slope[index] = rise / (2 * step)
            gradients.append(slope)
        return gradients


def call(
    function: Callable[..., Any], question: Question, at: Values, numpy: bool
) -> list[np.ndarray]:
    """Call a submission at a point and return its gradients as arrays in the order of `wrt`."""
    converted = {
        n: _argument(v, numpy, bool(question.batch and n in (*question.graph.inputs, "target")))
        for n, v in at.items()
    }
    parameters = inspect.signature(function).parameters
    known = [n for n in parameters if n in converted]
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        answer = function(**converted)
    elif known:
        answer = function(**{n: converted[n] for n in known})
    else:
        answer = function(converted) if parameters else function()
    shapes = [np.shape(at[n]) for n in question.wrt]
    return _arrays(answer, question.wrt, shapes)


def _argument(value: Any, numpy: bool, batch: bool) -> Any:
    if np.ndim(value) == 0:
        return float(value)
    if batch and np.ndim(value) == 1:
        return [float(v) for v in value]
    return np.array(value) if numpy else np.asarray(value).tolist()


def _arrays(answer: Any, wrt: list[str], shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    if isinstance(answer, dict):
        rows = [answer[name] for name in wrt]
    elif len(wrt) == 1 and np.shape(answer) == shapes[0]:
        rows = [answer]
    elif isinstance(answer, np.ndarray) and answer.ndim == 1 and len(answer) != len(wrt):
        ends = np.cumsum([int(np.prod(s)) for s in shapes])
        rows = np.split(answer, ends[:-1])
    else:
        rows = list(answer)
    return [np.asarray(r, dtype=float).reshape(s) for r, s in zip(rows, shapes, strict=True)]


def namespace(code: str) -> Values:
    """Run the source of a submission and return its names."""
    names: Values = {"__name__": "submission"}
    exec(compile(code, "<submission>", "exec"), names)  # noqa: S102 - texts of this folder
    return names


def largest_error(record: Submission, *, calls: int = 12, seed: int = 5) -> float:
    """Return the largest relative error of a wrong submission over random points."""
    question = Question(cgprimer.parse(record.graph), **record.options)
    names = namespace(record.code)
    generator = np.random.default_rng(seed)
    numpy, worst = "np" in names, 0.0
    for index in range(calls):
        at = question.point(generator, spread=0.3 if index < calls // 2 else 0.9)
        with np.errstate(all="ignore"):
            expected = question.differences(at)
            if not all(np.isfinite(e).all() for e in expected):
                continue
            answers = call(names["gradient"], question, at, numpy)
        for e, a in zip(expected, answers, strict=True):
            scale = np.maximum(np.abs(e), np.abs(a)).max()
            if scale > 1e-6:
                worst = max(worst, float(np.abs(e - a).max() / scale))
    return worst
