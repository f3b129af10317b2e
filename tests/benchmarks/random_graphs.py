"""Random graphs of many operations whose values and derivatives stay tame.

Every value carries an interval that it cannot leave, so nothing overflows and no denominator
comes near zero: operands are picked so that the interval of the result stays small.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

KINDS = ("add", "multiply", "divide", "power", "sin", "exp", "tanh")
INPUTS = 4
LARGEST = 3.0  # no value is beyond it
RECENT = 200  # operands that are used once more are among so many of the latest values


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    low: float
    high: float
    tiny: bool = False  # it may be, being made of a power with no sum or exponential after it

    @property
    def size(self) -> float:
        return max(abs(self.low), abs(self.high))


@dataclass
class _Maker:
    """Emits expressions until there are enough operations; ``waiting`` are values not used yet."""

    operations: int
    rng: random.Random
    lines: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    waiting: list[Value] = field(default_factory=list)
    recent: list[Value] = field(default_factory=list)
    sines: set[str] = field(default_factory=set)  # what a sine has been taken of
    raised: set[str] = field(default_factory=set)  # what has been raised to a power
    spent: int = 0

    def emit(self, text: str, low: float, high: float, *kinds: str, tiny: bool = False) -> None:
        value = Value(f"x{len(self.lines)}", low, high, tiny)
        self.lines.append(f"{value.name} = {text}")
        for kind in kinds:
            self.counts[kind] += 1
        self.spent += len(kinds)
        self.waiting.append(value)
        self.recent.append(value)

    def take(self, largest: float = math.inf, *, tiny: bool = True) -> Value | None:
        """A value within bounds that waits for a use; None if the few looked at are not."""
        for _ in range(8):
            place = self.rng.randrange(len(self.waiting))
            value = self.waiting[place]
            if value.size <= largest and (tiny or not value.tiny):
                self.waiting[place] = self.waiting[-1]
                self.waiting.pop()
                return value
        return None

    def again(self, largest: float) -> Value | None:
        """One of the latest values, within bounds and far from zero, to be raised to a power."""
        for _ in range(8):
            value = self.rng.choice(self.recent[-RECENT:])
            if value.size <= largest and not value.tiny and value.name not in self.raised:
                return value
        return None

    def second(self, crowd: int) -> tuple[Value, bool]:
        """The other operand: one that waits if there is a crowd (True), else one of the latest."""
        if len(self.waiting) > crowd:
            found = self.take()
            if found is not None:
                return found, True
        return self.rng.choice(self.recent[-RECENT:]), False


def random_expressions(operations: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Expressions with exactly so many operations, about as many of each kind.

    Returns:
        The expressions (every one of them reaches the last, which is the only output), the names
        of the inputs, and those of the parameters (one for 20 operations, at least 4).
    """
    make = _Maker(operations, random.Random(seed))
    rng = make.rng
    inputs = [f"xin{i}" for i in range(INPUTS)]
    parameters = [f"p{i}" for i in range(max(4, operations // 20))]
    make.waiting = [Value(name, -1.0, 1.0) for name in inputs]
    make.recent = list(make.waiting)
    fresh = [Value(name, -1.0, 1.0) for name in reversed(parameters)]
    every = max(2, operations // (len(parameters) + 1) - 1)  # operations between new parameters
    crowd = max(6, operations // 40)  # keeps the graph about 60 deep, whatever its size
    while operations - make.spent - (len(make.waiting) + len(fresh) - 1) > 3:
        if fresh and make.spent >= (len(parameters) - len(fresh)) * every * 0.8:
            make.waiting.append(fresh.pop())
        # The rarest kind first; where no value that waits is fit for it, the next.
        order = sorted(KINDS, key=lambda k: make.counts[k] + 3 * rng.random())
        any(_step(make, kind, crowd) for kind in order)
    make.waiting.extend(fresh)
    # What is left is added up in pairs; a few sines make the count exact.
    sines = operations - make.spent - (len(make.waiting) - 1)
    waiting = deque(make.waiting)
    while len(waiting) > 1:
        a, b = waiting.popleft(), waiting.popleft()
        if sines > 0:
            make.emit(f"sin({a.name} + {b.name})", -1.0, 1.0, "add", "sin")
            sines -= 1
        else:
            make.emit(f"{a.name} + {b.name}", a.low + b.low, a.high + b.high, "add")
        waiting.append(make.waiting.pop())
    return make.lines, inputs, parameters


def _step(make: _Maker, kind: str, crowd: int) -> bool:
    """One more expression of a kind; False if no operands for it were found."""
    limit = {"exp": 1.0, "power": 1.4, "divide": 1.5}.get(kind, math.inf)
    # Powers of powers of powers would underflow.
    a = make.take(limit, tiny=kind != "power")
    if a is None and kind == "power":
        a = make.again(limit)
    if a is None:
        return False
    if a.name in {"sin": make.sines, "power": make.raised}.get(kind, ()):
        # The same operation again would be shared, not counted.
        make.waiting.append(a)
        return False
    if kind in ("sin", "tanh"):
        if kind == "sin":
            make.sines.add(a.name)
        make.emit(f"{kind}({a.name})", -1.0, 1.0, kind, tiny=a.tiny)
    elif kind == "exp":
        make.emit(f"exp({a.name})", math.exp(a.low), math.exp(a.high), kind)
    elif kind == "power":
        make.raised.add(a.name)
        exponent = make.rng.choice((2, 3))
        low = a.low**3 if exponent == 3 else 0.0
        make.emit(f"{a.name}^{exponent}", low, a.size**exponent, kind, tiny=True)
    else:
        b, waited = make.second(crowd)
        products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        if kind == "add" and a.size + b.size <= LARGEST:
            make.emit(f"{a.name} + {b.name}", a.low + b.low, a.high + b.high, kind)
        elif kind == "multiply" and max(map(abs, products)) <= LARGEST:
            make.emit(
                f"{a.name}*{b.name}", min(products), max(products), kind, tiny=a.tiny or b.tiny
            )
        elif kind == "divide" and b.low >= 0.35 and a.size / b.low <= LARGEST:
            ratios = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
            make.emit(f"{a.name}/{b.name}", min(ratios), max(ratios), kind, tiny=a.tiny)
        elif kind == "divide" and b.name not in make.sines:
            make.sines.add(b.name)
            text = f"{a.name}/(1.5 + sin({b.name}))"
            make.emit(text, -2 * a.size, 2 * a.size, "sin", "add", "divide", tiny=a.tiny)
        else:
            make.waiting.extend((a, b) if waited else (a,))
            return False
    return True
