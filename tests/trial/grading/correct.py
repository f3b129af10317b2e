"""Correct submissions by kind: at least 1,000 of them, none of which may be accused."""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy

import cgprimer
from cgprimer.errors import CgprimerError
from tests.trial.grading.correct_graphs import lecture_graphs, network, random_graph
from tests.trial.grading.evaluation import NUMPY, Question, Values, namespace
from tests.trial.grading.formulas import CORRECT_FORMULAS
from tests.trial.grading.hand_written import HAND_WRITTEN
from tests.trial.grading.label_submissions import LABELS
from tests.trial.grading.ladder import ENGINE
from tests.trial.grading.optimizers import CORRECT_OPTIMIZERS
from tests.trial.grading.traces import GRAPHS, correct_answers, make_sheet

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


class Trial(NamedTuple):
    """A correct submission: its kind, a description, and a check that returns a result."""

    kind: str
    text: str
    check: Callable[[], Any]
    submission: Callable[[Values], Any] | None = None
    question: Question | None = None


# --- gradients of a question, computed in different ways ---------------------------------------

MPMATH: Values = {
    **{
        n: getattr(mpmath, n)
        for n in (
            "exp",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "tanh",
            "sinh",
            "cosh",
            "log",
            "atan",
            "asin",
            "acos",
        )
    },
    "sigmoid": lambda a: 1 / (1 + mpmath.exp(-a)),
    "softplus": lambda a: mpmath.log(1 + mpmath.exp(a)),
    "relu": lambda a: a if a > 0 else 0 * a,
    "leaky_relu": lambda a, s=0.01: mpmath.mpf(s) * a if a < 0 else a,
    "abs": abs,
    "max": max,
    "min": min,
    "less": lambda a, b: a < b,
    "where": lambda c, a, b: a if c else b,
    "clamp": lambda a, low, high: min(max(a, low), high),
}
SYMPY: Values = {
    **{
        n: getattr(sympy, n)
        for n in (
            "exp",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "tanh",
            "sinh",
            "cosh",
            "log",
            "atan",
            "asin",
            "acos",
        )
    },
    "sigmoid": lambda a: 1 / (1 + sympy.exp(-a)),
    "softplus": lambda a: sympy.log(1 + sympy.exp(a)),
    "relu": lambda a: sympy.Piecewise((a, a > 0), (0, True)),
    "leaky_relu": lambda a, s=0.01: sympy.Piecewise((s * a, a < 0), (a, True)),
    "abs": lambda a: sympy.Piecewise((-a, a < 0), (a, True)),
    "max": lambda a, b: sympy.Piecewise((a, a > b), (b, True)),
    "min": lambda a, b: sympy.Piecewise((a, a < b), (b, True)),
    "less": lambda a, b: a < b,
    "where": lambda c, a, b: sympy.Piecewise((a, c), (b, True)),
    "clamp": lambda a, low, high: sympy.Piecewise((low, a < low), (high, a > high), (a, True)),
}


def by_mpmath(question: Question) -> Callable[[Values], Any]:
    """Return derivatives from differences with forty digits, rounded to floats."""

    def gradient(values: Values) -> Values:
        with mpmath.workdps(60):
            at = {n: mpmath.mpf(v) for n, v in values.items()}
            h, out = mpmath.mpf(10) ** -25, {}
            for name in question.wrt:
                up, down = {**at, name: at[name] + h}, {**at, name: at[name] - h}
                rise = question.value(up, MPMATH) - question.value(down, MPMATH)
                out[name] = float(rise / (2 * h))
        return out

    return gradient


def by_sympy(question: Question) -> Callable[[Values], Any]:
    """Return derivatives of the symbolic expression, compiled for math."""
    symbols = {n: sympy.Symbol(n, real=True) for n in question.names()}
    formula = question.value(symbols, SYMPY)
    slopes = [sympy.diff(formula, symbols[n]) for n in question.wrt]
    function = sympy.lambdify(list(symbols.values()), slopes, "math", cse=True)
    return lambda values: [float(s) for s in function(*(float(values[n]) for n in symbols))]


def by_complex_step(question: Question) -> Callable[[Values], Any]:
    """Return the imaginary part of a complex step of 1e-30, without cancellation."""

    def gradient(values: Values) -> list[Any]:
        return _slopes(question, values, complex, _complex_slope)

    return gradient


def _complex_slope(f: Callable[[Any], Any], base: Any, index: Any) -> float:
    moved = base.copy()
    moved[index] += 1e-30j
    return float(np.imag(f(moved)) / 1e-30)


def by_differences(
    question: Question, step: float, relative: bool = False
) -> Callable[[Values], Any]:
    """Return central differences with a fixed step, or one that grows with the number."""

    def slope(f: Callable[[Any], Any], base: Any, index: Any) -> float:
        h = step * max(1.0, abs(float(base[index]))) if relative else step
        up, down = base.copy(), base.copy()
        up[index] += h
        down[index] -= h
        return float((f(up) - f(down)) / (up[index] - down[index] if relative else 2 * h))

    return lambda values: _slopes(question, values, float, slope)


def _slopes(
    question: Question, values: Values, dtype: Any, slope: Callable[..., float]
) -> list[Any]:
    at = {n: np.asarray(v, dtype=float) for n, v in values.items()}
    result = []
    for name in question.wrt:
        base = at[name].astype(dtype)
        f = lambda moved, name=name: question.value({**at, name: moved}, NUMPY)  # noqa: E731
        out = np.empty(base.shape)
        for index in np.ndindex(base.shape):
            out[index] = slope(f, base, index)
        result.append(out if base.shape else float(out))
    return result


def by_torch(question: Question, dtype: Any) -> Callable[[Values], Any]:
    """Return torch's gradient in float64 or in its default, float32."""
    functions: Values = {
        **{
            n: getattr(torch, n)
            for n in (
                "exp",
                "sqrt",
                "sin",
                "cos",
                "tan",
                "tanh",
                "sinh",
                "cosh",
                "log",
                "sigmoid",
                "abs",
                "atan",
                "asin",
                "acos",
                "softmax",
                "relu",
            )
        },
        "softplus": torch.nn.functional.softplus,
        "leaky_relu": torch.nn.functional.leaky_relu,
        "max": lambda a, *b: torch.maximum(a, torch.as_tensor(b[0], dtype=dtype)) if b else a.max(),
        "min": lambda a, *b: torch.minimum(a, torch.as_tensor(b[0], dtype=dtype)) if b else a.min(),
        "less": lambda a, b: a < b,
        "clamp": torch.clamp,
        "where": torch.where,
        "sum": lambda a, *k: a.sum(*k),
        "mean": lambda a, *k: a.mean(*k),
        "dot": lambda a, b: (a * b).sum(),
        "reshape": lambda a, *s: a.reshape(s),
        "softmax": lambda a: torch.softmax(a, -1),
        "log_softmax": lambda a: torch.log_softmax(a, -1),
    }

    def gradient(values: Values) -> list[Any]:
        at = {
            n: torch.tensor(np.asarray(v), dtype=dtype, requires_grad=n in question.wrt)
            for n, v in values.items()
        }
        loss = question.value(at, functions)
        leaves = [at[n] for n in question.wrt]
        slopes = torch.autograd.grad(loss, leaves, allow_unused=True)
        zeros = [
            torch.zeros_like(leaf) if s is None else s
            for s, leaf in zip(slopes, leaves, strict=True)
        ]
        return [z.item() if z.ndim == 0 else z.numpy() for z in zeros]

    return gradient


# --- the trials ----------------------------------------------------------------------------------


def gradient_trial(
    kind: str, text: str, graph_text: str, way: Callable[[Question], Any], seed: int, **options: Any
) -> Trial:
    """Return the trial of one way to compute the gradient of one graph."""
    graph = cgprimer.parse(graph_text)
    if not graph.parameters:
        options = {"wrt": ",".join(graph.inputs), **options}
    question = Question(graph, **options)
    submission = cache(lambda: way(question))  # symbolic ones take a while to build

    def gradient(values: Values) -> Any:
        return submission()(values)

    options = {**options, "wrt": options["wrt"].split(",")} if "wrt" in options else options
    return Trial(
        kind,
        text,
        lambda: cgprimer.check_gradient(graph, gradient, seed=seed, **options),
        gradient,
        question,
    )


SCALAR_WAYS: tuple[tuple[str, Callable[[Question], Any]], ...] = (
    ("mpmath", by_mpmath),
    ("sympy", by_sympy),
    ("complex step", by_complex_step),
    ("central differences 1e-5", lambda q: by_differences(q, 1e-5)),
    ("central differences 1e-6", lambda q: by_differences(q, 1e-6)),
    ("central differences 6e-6 relative", lambda q: by_differences(q, 6e-6, relative=True)),
)
TORCH_WAYS: tuple[tuple[str, Callable[[Question], Any]], ...] = (
    ("torch float64", lambda q: by_torch(q, torch.float64)),
    ("torch float32", lambda q: by_torch(q, torch.float32)),
)


def trials(seed: int) -> Iterator[Trial]:
    """Yield all correct submissions of the trial."""
    more = TORCH_WAYS if torch else ()
    for name, text in lecture_graphs():
        arrays = bool(cgprimer.parse(text).shapes and any(cgprimer.parse(text).shapes.values()))
        ways = SCALAR_WAYS[2:] if arrays else SCALAR_WAYS
        for way, build in (*ways, *more):
            yield gradient_trial(f"lecture graphs, {way}", name, text, build, seed)
    for piecewise in (False, True):
        for k in range(70):
            number = 1000 * seed + 2 * k + piecewise
            for way, build in (*SCALAR_WAYS, *more):
                if way == "sympy" and k > 25:
                    continue
                exact = "differences" not in way
                text = random_graph(number, piecewise=piecewise, steep=exact)
                kind = f"random {'piecewise' if piecewise else 'smooth'}, {way}"
                yield gradient_trial(kind, text, text, build, seed)
    yield from network_trials(seed, more)
    yield from label_trials(seed)
    for graph_text, code, options in HAND_WRITTEN:
        names = namespace(code)
        yield Trial(
            "hand-written",
            f"{graph_text}\n{code}",
            lambda g=graph_text, n=names, o=options: cgprimer.check_gradient(
                cgprimer.parse(g), n, seed=seed, **o
            ),
        )
    for optimizer, code in CORRECT_OPTIMIZERS:
        yield Trial(
            "optimizers",
            f"{optimizer}\n{code}",
            lambda c=code, o=optimizer: cgprimer.check_optimizer(namespace(c), o, seed=seed),
        )
    for graph, answer in CORRECT_FORMULAS:
        yield Trial(
            "formulas",
            f"{graph} | {answer}",
            lambda g=graph, a=answer: (
                cgprimer.check_formula(cgprimer.parse(g), a) if a else cgprimer.check_formula(g)
            ),
        )
    for name, kind, sheet_seed in product(
        GRAPHS, ("trace", "tangent", "adjoint", "gradient"), range(1, 6)
    ):
        sheet = make_sheet(name, kind, sheet_seed)
        yield Trial(
            "sheets",
            f"{name} {kind} {sheet_seed}",
            lambda s=sheet: cgprimer.check_trace(s, correct_answers(s)),
        )
    for stage in range(1, 11):
        if stage not in (8, 9):
            yield Trial(
                "engine",
                f"stage {stage}",
                lambda s=stage: cgprimer.check_engine(namespace(ENGINE), s),
            )


def network_trials(seed: int, more: Any) -> Iterator[Trial]:
    """Yield networks of 10 to 300 parameters, alone, with losses and in batches."""
    shapes = ((2, 3), (3, 4), (4, 8, 2), (3, 10, 5), (5, 12, 8), (8, 16, 8))
    activations = ("tanh", "sigmoid", "relu", "leaky_relu", "abs")
    for k, (sizes, activation) in enumerate((s, a) for s in shapes for a in activations):
        text = network(seed + k, sizes, activation)
        small = sizes in shapes[:3]
        settings: tuple[dict[str, Any], ...] = ({}, {"loss": "squared-error"}) + (
            (
                {"loss": "squared-error", "batch": 4},
                {"loss": "half-squared-error", "batch": 3, "reduction": "sum"},
                {"loss": "absolute-error", "batch": 2},
            )
            if small
            else ()
        )
        for options in settings:
            title = f"{sizes} {activation} {options}"
            for way, build in (*SCALAR_WAYS[2:], *more):
                if len(options) > 1 and "1e-6" in way:
                    continue
                yield gradient_trial(f"networks, {way}", title, text, build, seed, **options)


def label_trials(seed: int) -> Iterator[Trial]:
    """Yield the submissions for graphs with labels."""
    for (kind, graph, code, options), shift in product(LABELS, range(3)):
        names = namespace(code)
        way = (
            "in the text"
            if " in " in graph
            else next((w for w in ("domain", "keep", "loss") if w in options), "alone")
        )
        yield Trial(
            f"labels: {kind}, {way}",
            f"{graph}\n{code}\n{options}",
            lambda g=graph, n=names, o=options, s=shift: cgprimer.check_gradient(
                cgprimer.parse(g), n, seed=seed + s, **o
            ),
        )


def outcome(trial: Trial) -> tuple[str, str]:
    """Return 'right', 'accused' or 'refused', and what was said."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = trial.check()
    except CgprimerError as error:
        return "refused", f"{type(error).__name__}: {error}".splitlines()[0]
    except TypeError as error:
        return "refused", f"TypeError: {error}"
    if result.points >= result.possible and all(p.verdict == "right" for p in result.parts):
        return "right", ""
    return "accused", "; ".join(
        f"{p.name} {p.verdict} ({p.mistake or '-'})" for p in result.parts if p.verdict != "right"
    )


def correct_tables(seed: int, *, fast: bool = False, verbose: bool = False) -> int:
    """Run the correct submissions, print their table, and return how many were not right."""
    rows: dict[str, list[tuple[Trial, str, str]]] = defaultdict(list)
    start = time.perf_counter()
    for index, trial in enumerate(trials(seed)):
        if fast and index % 17:
            continue
        rows[trial.kind].append((trial, *outcome(trial)))
    print(f"\n{'correct submissions':58} {'n':>5} {'accused':>8} {'refused':>8}")
    total = [0, 0, 0]
    for kind in sorted(rows):
        group = rows[kind]
        counts = [
            len(group),
            *(sum(o == name for _, o, _ in group) for name in ("accused", "refused")),
        ]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        print(f"{kind:58} {counts[0]:5} {counts[1]:8} {counts[2]:8}")
    seconds = time.perf_counter() - start
    print(f"{'total':58} {total[0]:5} {total[1]:8} {total[2]:8}   ({seconds:.0f} s)")
    if verbose:
        for kind in sorted(rows):
            for trial, what, detail in rows[kind]:
                if what != "right":
                    text = " ".join(trial.text.split())[:300]
                    print(f"  [{kind}] {what}: {text}\n      {detail[:300]}")
    sys.stdout.flush()
    return total[1] + total[2]
