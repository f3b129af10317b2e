"""Correct submissions by kind: at least 1,000 of them, none of which may be accused."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

import cgprimer
from cgprimer.errors import CgprimerError
from tests.cli.cli_tools import EXAMPLES
from tests.trial.grading.correct_gradients import WAYS, Gradient, Question
from tests.trial.grading.evaluation import namespace
from tests.trial.grading.submission_files import Submission, read, read_formulas, read_submissions

LEFT_OUT = {"batch_normalization", "dropout", "softmax", "two_layers"}  # no scalar, or `as` in it

EXPRESSIONS = read("random_expressions")
LARGE_WAYS = ("complex step", "central differences 1e-5")  # two calls for each of 184 parameters


def random_graph(seed: int, *, piecewise: bool, steep: bool = True) -> str:
    """Return the text of a random graph in which every parameter is used."""
    generator = random.Random(seed)
    inputs = [f"x{k}" for k in range(generator.randint(1, 2))]
    parameters = [f"p{k}" for k in range(generator.randint(2, 5))]
    lines, pool = [], [*inputs, *parameters]
    unused = list(parameters)
    for step in range(generator.randint(len(parameters), 8)):
        kind = "piecewise" if piecewise and generator.random() < 0.5 else "smooth"
        excluded = () if steep else EXPRESSIONS["steep"]
        table = [text for text in EXPRESSIONS[kind] if text not in excluded]
        a = unused.pop() if unused else generator.choice(pool)
        b = generator.choice([name for name in pool if name != a])
        text = generator.choice(table).format(a=f"({a}*{generator.choice(inputs)} + {b})", b=b)
        lines.append(f"v{step} = {text}")
        pool.append(f"v{step}")
    used = " + ".join(
        f"v{k}" for k in range(len(lines) - 1) if f"v{k}" not in " ".join(lines[k + 1 :])
    )
    lines.append(f"y = v{len(lines) - 1}" + (f" + {used}" if used else ""))
    number = lambda: round(generator.uniform(0.2, 1.5) * generator.choice((-1, 1)), 2)  # noqa: E731
    declared = ", ".join(f"{n} = {number()}" for n in inputs)
    learned = ", ".join(f"{n} = {number()}" for n in parameters)
    return "\n".join([f"input {declared}", f"parameter {learned}", *lines, "output y"])


def network(seed: int, sizes: tuple[int, ...], activation: str) -> str:
    """Return the text of a network with arrays, one output."""
    generator = np.random.default_rng(seed)

    def declare(name: str, *shape: int) -> str:
        return f"{name}{list(shape)} = {generator.uniform(-1, 1, shape).round(2).tolist()}"

    lines, last = [f"input {declare('x', sizes[0])}"], "x"
    for k, (n, m) in enumerate(pairwise(sizes)):
        lines.append(f"parameter {declare(f'W{k}', m, n)}, {declare(f'b{k}', m)}")
        lines.append(f"h{k} = {activation}(W{k} @ {last} + b{k})")
        last = f"h{k}"
    return "\n".join([*lines, f"parameter {declare('u', m)}", f"y = u @ {last}", "output y"])


class Trial(NamedTuple):
    """A correct submission: its kind, a description, and a check that returns a result."""

    kind: str
    text: str
    check: Callable[[], Any]


def check_way(text: str, way: Callable[[Question], Gradient], **options: Any) -> Any:
    """Check one way to compute the gradient of one graph."""
    graph = cgprimer.parse(text)
    wrt = list(graph.parameters or graph.inputs)
    return cgprimer.check_gradient(graph, way(Question(graph, wrt, **options)), wrt=wrt, **options)


def check_program(submission: Submission, seed: int = 0) -> Any:
    """Check a program in the files of submissions."""
    graph, names = cgprimer.parse(submission.graph), namespace(submission.code)
    return cgprimer.check_gradient(graph, names, seed=seed, **submission.options)


def check_formula(submission: Submission) -> Any:
    """Check an answer about a graph, or a statement about any function."""
    if not submission.code:
        return cgprimer.check_formula(submission.graph)
    return cgprimer.check_formula(cgprimer.parse(submission.graph), submission.code)


def trials() -> Iterator[Trial]:
    """Yield all correct submissions of the trial."""
    lectures = [p.read_text() for p in sorted(EXAMPLES.glob("*.cg")) if p.stem not in LEFT_OUT]
    for text, (way, build) in product(lectures, WAYS.items()):
        yield Trial(f"lecture graphs, {way}", text, partial(check_way, text, build))
    for k, (way, build) in product(range(100), WAYS.items()):
        text = random_graph(k, piecewise=bool(k % 2), steep="differences" not in way)
        yield Trial(f"random graphs, {way}", text, partial(check_way, text, build))
    yield from network_trials()
    for submission, seed in product(read_submissions("labels"), range(3)):
        yield Trial("labels", str(submission), partial(check_program, submission, seed))
    for submission in read_submissions("gradients"):
        if not submission.mistake:
            yield Trial("hand-written", str(submission), partial(check_program, submission))
    for submission in read_submissions("optimizers"):
        if not submission.mistake:
            asked = namespace(submission.code), submission.options["optimizer"]
            yield Trial("optimizer", str(submission), partial(cgprimer.check_optimizer, *asked))
    engine = next(s for s in read_submissions("engines") if not s.mistake)
    for stage in (1, 2, 3, 4, 5, 6, 7, 10):
        check = partial(cgprimer.check_engine, namespace(engine.code), stage)
        yield Trial("engine", f"stage {stage}", check)
    for submission in read_formulas():
        if not submission.mistake:
            yield Trial("formulas", str(submission), partial(check_formula, submission))


def network_trials() -> Iterator[Trial]:
    """Yield networks of 12 to 184 parameters, alone, with losses and in batches."""
    shapes = ((2, 3), (4, 8, 2), (5, 12, 8))
    activations = ("tanh", "relu", "abs")
    single: list[dict[str, Any]] = [{}, {"loss": "squared-error"}]
    batches: list[dict[str, Any]] = [
        {"loss": "squared-error", "batch": 4},
        {"loss": "half-squared-error", "batch": 3, "reduction": "sum"},
        {"loss": "absolute-error", "batch": 2},
    ]
    for k, (sizes, activation) in enumerate(product(shapes, activations)):
        text = network(k, sizes, activation)
        small = sizes in shapes[:2]
        for options in [*single, *(batches if small else ())]:
            for way, build in WAYS.items():
                if (len(options) < 2 or "1e-6" not in way) and (small or way in LARGE_WAYS):
                    check = partial(check_way, text, build, **options)
                    yield Trial(f"networks, {way}", f"{text}\n{options}", check)


def outcome(trial: Trial) -> tuple[str, str]:
    """Return 'right', 'accused' or 'refused', and the verdicts or the error."""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            result = trial.check()
    except (CgprimerError, TypeError) as error:
        return "refused", f"{type(error).__name__}: {error}".splitlines()[0]
    wrong = [p for p in result.parts if p.verdict != "right"]
    if result.points >= result.possible and not wrong:
        return "right", ""
    return "accused", "; ".join(f"{p.name} {p.verdict} ({p.mistake or '-'})" for p in wrong)
