"""Graphs for correct submissions: the lectures', and random smooth and piecewise ones."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np

from tests.trial.grading.submission_files import read

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LEFT_OUT = {"batch_normalization", "dropout", "softmax", "two_layers"}  # no scalar, or `as` in it

EXPRESSIONS = read("random_expressions")


def lecture_graphs() -> list[str]:
    """Return the texts of the examples whose output is a number."""
    return [p.read_text() for p in sorted(EXAMPLES.glob("*.cg")) if p.stem not in LEFT_OUT]


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
