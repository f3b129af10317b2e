"""Random graphs to step through: all primitives, repeated operands, shared subexpressions."""

from __future__ import annotations

import random
from typing import NamedTuple

from cgprimer.core.operations import Primitive, primitives

WRITTEN = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^", "neg": "-", "copy": ""}
TAME = ("sin", "cos", "tanh", "sigmoid", "atan", "softplus", "max", "min")  # finite everywhere

# A later contribution of an edge is computed first; a tail is used twice inside of one vertex.
LATE = "xw = (xa-k)/xa; input xa=2; parameter k=1"
LATER = "x0 = ((min(m,xb)+(xb-k))/xb)\nxw = x0*xb+x0\ninput xb=-0.3; parameter m=0,k=1.3"
# Two variables use sin(xa), and only one can be its neighbour in the program.
SHARED = "x0 = sin(xa)*k; xw = x0 + sin(xa)\ninput xa=1; parameter k=2"


class Problem(NamedTuple):
    """The arguments of ``stepping``: the text of a graph, output, names and level."""

    text: str
    of: str
    wrt: tuple[str, ...]
    level: str


def problem(seed: int) -> Problem:
    """Return a graph determined by the seed; output and names can be inner variables."""
    rng = random.Random(seed)
    rows = [row for row in primitives() if row.built_in and row.name not in WRITTEN]
    inputs = [f"xa{k}" for k in range(rng.randint(1, 2))]
    parameters = [f"k{k}" for k in range(rng.randint(1, 3))]
    known, shared, lines = [*inputs, *parameters], list[str](), list[str]()
    variables = [f"y{k}" for k in range(rng.randint(1, 6))]
    for name in variables:
        lines.append(f"{name} = {_expression(rng, rows, known, shared, rng.randint(1, 4))}")
        known += [name] * 3  # more likely than an input, so the graph is deep
    for role, names in (("input", inputs), ("parameter", parameters)):
        values = (f"{name}={rng.uniform(-2, 2):.2f}" for name in names)
        lines.append(f"{role} {', '.join(values)}")
    every = [*inputs, *parameters, *variables]
    wrt = tuple(rng.sample(every, rng.randint(1, min(4, len(every)))))
    of = rng.choice([*variables, *[variables[-1]] * 9])
    level = rng.choice(["variables", "variables", "operations"])
    return Problem("\n".join(lines), of, wrt, level)


def _expression(
    rng: random.Random, rows: list[Primitive], known: list[str], shared: list[str], depth: int
) -> str:
    if shared and rng.random() < 0.3:
        return rng.choice(shared)
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(known) if rng.random() < 0.85 else rng.choice(["2", "3", "0.5", "-1"])
    operation = rng.choice("++--***/^")
    tame = [row for row in rows if row.name in TAME]
    row = rng.choice(tame if rng.random() < 0.6 else rows)
    written = rng.random() < 0.65
    operands = [_expression(rng, rows, known, shared, depth - 1)]
    while len(operands) < (2 if written else row.arity):
        again = rng.random() < 0.2
        operands.append(operands[0] if again else _expression(rng, rows, known, shared, depth - 1))
    if written:
        second = rng.choice(["2", "3", "0.5", "-1"]) if operation == "^" else operands[1]
        made = f"({operands[0]} {operation} {second})"
    else:
        made = f"{row.name}({', '.join(operands)})"
    if rng.random() < 0.5:
        shared.append(made)
    return made
