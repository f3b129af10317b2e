"""Random graphs of many operations with moderate values and derivatives."""

from __future__ import annotations

import math
import random
from collections import deque

KINDS = ("add", "mul", "div", "pow", "sin", "exp", "tanh")
LARGEST = 3.0  # bound of the absolute values


def random_expressions(operations: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Return expressions with an exact number of operations, about as many of each kind.

    Every expression has a bound of its absolute values, so that nothing overflows. Denominators
    are at least 0.5.

    Returns:
        The expressions (all of them are used by the last one, the only output), the names of the
        inputs, and the names of the parameters (one for 20 operations, at least 4).
    """
    rng = random.Random(seed)
    inputs = [f"xin{i}" for i in range(4)]
    parameters = [f"p{i}" for i in range(max(4, operations // 20))]
    bounds = dict.fromkeys([*inputs, *parameters], 1.0)
    names = list(bounds)
    unused = deque(rng.sample(names, len(names)))
    width = max(4, operations // 60)  # the number of unused values, so the graph is 60 deep
    lines: list[str] = []
    counts = dict.fromkeys(KINDS, 0)
    tiny: set[str] = set()  # possible powers of powers, which could underflow
    sines: set[str] = set()  # a second sine of the same value would be shared, and not be counted

    def add(text: str, bound: float, *kinds: str) -> str:
        """Append an expression that applies the operations ``kinds``."""
        name = f"x{len(lines)}"
        lines.append(f"{name} = {text}")
        bounds[name] = bound
        names.append(name)
        unused.append(name)
        for kind in kinds:
            counts[kind] += 1
        return name

    # The sums at the end need one operation less than there are unused values.
    while (remaining := operations - sum(counts.values()) - len(unused) + 1) > 0:
        a = unused.popleft()
        b = unused[0] if len(unused) > width else rng.choice(names[-200:])
        size, other = bounds[a], bounds[b]
        candidates = {
            "tanh": (f"tanh({a})", 1.0),
            "sin": (f"sin({a})", 1.0),
            "exp": (f"exp({a})", math.exp(size)),
            "pow": (f"{a}^2", size**2),
            "add": (f"{a} + {b}", size + other),
            "mul": (f"{a}*{b}", size * other),
            "div": (f"{a}/(1.5 + sin({b}))", 2 * size),
        }
        possible = [
            kind
            for kind, (_, bound) in candidates.items()
            if bound <= LARGEST
            and not (kind == "pow" and a in tiny)
            and not (kind == "sin" and a in sines)
            and not (kind == "div" and (b in sines or remaining < 3))
        ]
        # The rarest kind is the most likely one.
        kind = min(possible, key=lambda kind: counts[kind] + 3 * rng.random())
        kinds = ("sin", "add", "div") if kind == "div" else (kind,)
        binary = kind in ("add", "mul", "div")
        if binary and unused and b == unused[0]:
            unused.popleft()
        if kind in ("sin", "div"):
            sines.add(a if kind == "sin" else b)
        name = add(*candidates[kind], *kinds)
        if kind == "pow" or (kind not in ("add", "exp") and tiny & ({a, b} if binary else {a})):
            tiny.add(name)
    while len(unused) > 1:
        a, b = unused.popleft(), unused.popleft()
        add(f"{a} + {b}", bounds[a] + bounds[b], "add")
    return lines, inputs, parameters
