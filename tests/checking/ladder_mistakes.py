"""Mistakes for each stage: what becomes of the right solution, and how they are to be named."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

SOLUTION = Path(__file__).with_name("ladder_solution.py").read_text(encoding="utf-8")
Swaps = tuple[tuple[str, str], ...]
_SWEEP = """        order = topological_order(self)
        for value in order:
            if value.parents:
                value.grad = 0.0
        self.grad = 1.0
        for value in reversed(order):
            data = [parent.data for parent in value.parents]
            for k, parent in enumerate(value.parents):
                local = LOCAL[value.op][k](*data)
                parent.grad += value.grad * local
"""
_RECURSIVE = """        if {first}: self.grad = 1.0
        data = [parent.data for parent in self.parents]
        for k, parent in enumerate(self.parents):
            parent.grad {sign} self.grad * LOCAL[self.op][k](*data)
            parent.backward({inner})
"""
_MICROGRAD = """        topo, visited = [], set()
        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v.parents: build(child)
                topo.append(v)
        build(self)
        self.grad = 1.0
        for value in reversed(topo):
            data = [parent.data for parent in value.parents]
            for k, parent in enumerate(value.parents):
                parent.grad += value.grad * LOCAL[value.op][k](*data)
"""
_BREADTH = """        self.grad = 1.0
        queue, seen = [self], {id(self)}
        for value in queue:
            data = [parent.data for parent in value.parents]
            for k, parent in enumerate(value.parents):
                parent.grad += value.grad * LOCAL[value.op][k](*data)
                if id(parent) not in seen:
                    seen.add(id(parent))
                    queue.append(parent)
"""
_BY_PATH = """        self.send(1.0)
    def send(self, bar):
        self.grad += bar
        data = [parent.data for parent in self.parents]
        for k, parent in enumerate(self.parents):
            parent.send(bar * LOCAL[self.op][k](*data))
"""
_ORDER = SOLUTION[SOLUTION.index("    order, seen, stack = []") : SOLUTION.index("def zero_grad")]
_DEEP = """    order, seen = [], set()
    def visit(one):
        {test}
        seen.add(id(one))
        {before}
        for p in one.parents: visit(p)
        {behind}
    visit(value)
    return order


"""


def _deep(test: str = "if id(one) in seen: return", before: str = "", behind: str = "") -> str:
    return _DEEP.format(test=test, before=before or "pass", behind=behind or "pass")


_RECURSIVE_ORDER = _deep(behind="order.append(one)")

#: Stage, the mistake's name, and the swaps.
MISTAKES: list[tuple[int, str, Swaps]] = [
    (
        5,
        "another graph",
        (
            (
                '    def __rsub__(self, other):\n        return made("sub", other, self)\n',
                '    def __rsub__(self, other):\n        return made("sub", self, other)\n',
            ),
        ),
    ),
    (
        1,
        "divided by h instead of 2h",
        (("(f(x + h) - f(x - h)) / (2 * h)", "(f(x + h) - f(x - h)) / h"),),
    ),
    (
        1,
        "divided by 2h instead of h",
        (("(f(x + h) - f(x - h)) / (2 * h)", "(f(x + h) - f(x)) / (2 * h)"),),
    ),
    (1, "sign", (("(f(x + h) - f(x - h))", "(f(x - h) - f(x + h))"),)),
    (1, "sign", (("(f(x + h) - f(x - h)) / (2 * h)", "(f(x) - f(x + h)) / h"),)),
    (1, "not divided by h", (("(f(x + h) - f(x - h)) / (2 * h)", "f(x + h) - f(x)"),)),
    (1, "h ignored", (("    return (f(x + h)", "    h = 1e-6\n    return (f(x + h)"),)),
    (
        1,
        "all inputs moved at once",
        (
            (
                "high[k], low[k] = x + h, x - h",
                "high, low = [v + h for v in xs], [v - h for v in xs]",
            ),
        ),
    ),
    (
        1,
        "input not put back",
        (
            (
                "    found = []\n    for k, x in enumerate(xs):\n        high, low = list(xs), list(xs)",
                "    found = []\n    high, low = list(xs), list(xs)\n    base = list(xs)\n    for k, x in enumerate(xs):",
            ),
            ("high[k], low[k] = x + h, x - h", "high[k] = x + h"),
            ("(f(high) - f(low)) / (2 * h)", "(f(high) - f(base)) / h"),
        ),
    ),
    (
        1,
        "point changed",
        (
            (
                "high[k], low[k] = x + h, x - h",
                "high[k], low[k] = x + h, x - h; xs[k] = x*(1 + 1e-12)",
            ),
        ),
    ),
    (
        1,
        "divided by h instead of 2h",
        (("(f(high) - f(low)) / (2 * h)", "(f(high) - f(low)) / h"),),
    ),
    (1, "sign", (("f(high) - f(low)", "f(low) - f(high)"),)),
    (
        2,
        "reflected operator missing",
        (('    def __rmul__(self, other):\n        return made("mul", other, self)\n', ""),),
    ),
    (
        2,
        "reflected operator missing",
        (('    def __radd__(self, other):\n        return made("add", other, self)\n', ""),),
    ),
    (
        2,
        "reflected operator missing",
        (('    def __rsub__(self, other):\n        return made("sub", other, self)\n', ""),),
    ),
    (2, "reflected operands swapped", (('made("sub", other, self)', 'made("sub", self, other)'),)),
    (2, "reflected operands swapped", (('made("div", other, self)', 'made("div", self, other)'),)),
    (2, "wrong value", (('"neg": lambda a: -a', '"neg": lambda a: a'),)),
    (2, "wrong value", (("max(a, 0.0)", "a"),)),
    (2, "no parents", (("self.parents = tuple(parents)", "self.parents = ()"),)),
    (
        2,
        "parents missing",
        (("self.parents = tuple(parents)", "self.parents = tuple(parents[:1])"),),
    ),
    (2, "no operation", (("self.op = op", "self.op = ''"),)),
    (2, "parents in a set", (("self.parents = tuple(parents)", "self.parents = set(parents)"),)),
    (
        2,
        "operand dropped",
        (("self.parents = tuple(parents)", "self.parents = tuple(dict.fromkeys(parents))"),),
    ),
    (
        2,
        "no gradient",
        (
            (
                "        self.grad = 0.0\n        self.parents",
                "        self.grad = None\n        self.parents",
            ),
        ),
    ),
    (
        2,
        "data is not a number",
        (
            ("self.data = float(data)", "self.data = data"),
            (
                'made("add", self, other)',
                "Value(Value(self.data + getattr(other, 'data', other)), [self, other], 'add')",
            ),
        ),
    ),
    (
        3,
        "order reversed",
        (("    return order\n\n\ndef zero", "    return order[::-1]\n\n\ndef zero"),),
    ),
    (
        3,
        "values listed twice",
        ((_ORDER, _deep("", behind="order.append(one)").replace("        \n", "")),),
    ),
    (3, "child before parent", ((_ORDER, _deep(before="order.insert(0, one)")),)),
    (3, "values missing", ((_ORDER, _deep(behind="order.append(one) if one.parents else None")),)),
    (
        3,
        "values missing",
        ((_ORDER, _deep(behind="order.append(one) if one is not value else None")),),
    ),
    (3, "recursion too deep", ((_ORDER, _RECURSIVE_ORDER),)),
    (4, "seed missing", (("        self.grad = 1.0\n", ""),)),
    (4, "upstream gradient left out", (("value.grad * local", "local"),)),
    (4, "wrong derivative of tanh", (("1.0 - tanh(a) ** 2", "1.0 - tanh(a)"),)),
    (4, "wrong derivative of tanh", (("1.0 - tanh(a) ** 2", "1.0 - a ** 2"),)),
    (4, "wrong derivative of div", (("-a / (b * b)", "a / (b * b)"),)),
    (4, "wrong derivative of div", (("-a / (b * b)", "-a / b"),)),
    (
        4,
        "wrong derivative of mul",
        (("lambda a, b: b, lambda a, b: a)", "lambda a, b: a, lambda a, b: b)"),),
    ),
    (
        4,
        "wrong derivative of sub",
        (("lambda a, b: 1.0, lambda a, b: -1.0", "lambda a, b: 1.0, lambda a, b: 1.0"),),
    ),
    (4, "wrong derivative of pow", (("b * a ** (b - 1)", "a ** (b - 1)"),)),
    (4, "wrong derivative of pow", (("b * a ** (b - 1)", "b * a ** b"),)),
    (4, "wrong derivative of log", (("1.0 / a,)", "1.0 / log(a),)"),)),
    (
        4,
        "wrong derivative of relu",
        (("1.0 if (a.data if isinstance(a, Value) else a) > 0 else 0.0", "1.0"),),
    ),
    (4, "wrong derivative of neg", (('"neg": (lambda a: -1.0,)', '"neg": (lambda a: 1.0,)'),)),
    (
        4,
        "wrong derivative of exp",
        (('"exp": (lambda a: exp(a),)', '"exp": (lambda a: a * exp(a - 1),)'),),
    ),
    (
        4,
        "wrong derivative of sin",
        (('"sin": (lambda a: cos(a),)', '"sin": (lambda a: -cos(a),)'),),
    ),
    (5, "= instead of +=", (("parent.grad += value", "parent.grad = value"),)),
    (
        5,
        "= instead of +=",
        (
            ("parent.grad += value", "parent.grad = value"),
            (
                "in enumerate(value.parents):\n                local",
                "in reversed(list(enumerate(value.parents))):\n                local",
            ),
        ),
    ),
    (
        5,
        "child before parent",
        (
            (
                "for value in reversed(order):\n            data",
                "for value in order:\n            data",
            ),
        ),
    ),
    (5, "child before parent", ((_SWEEP, _BREADTH),)),
    (
        5,
        "gradient passed on too often",
        (
            (_SWEEP, _RECURSIVE.format(first="seed", sign="+=", inner="False")),
            ("def backward(self):", "def backward(self, seed=True):"),
        ),
    ),
    (5, "recursion too deep", ((_SWEEP, _MICROGRAD),)),
    (
        6,
        "gradients not zeroed",
        (
            (
                "    for value in values:\n        value.grad = 0.0",
                "    for value in values:\n        pass",
            ),
        ),
    ),
    (
        6,
        "gradients not zeroed",
        (
            (
                "    for value in values:\n        value.grad = 0.0",
                "    for value in values[:1]:\n        value.grad = 0.0",
            ),
        ),
    ),
    (
        6,
        "data zeroed",
        (
            (
                "    for value in values:\n        value.grad = 0.0",
                "    for value in values:\n        value.data = value.grad = 0.0",
            ),
        ),
    ),
    (
        6,
        "backward zeroes",
        (
            (
                "            if value.parents:\n                value.grad = 0.0",
                "            value.grad = 0.0",
            ),
        ),
    ),
    (7, "sign", (("p.data -= self.rate * p.grad", "p.data += self.rate * p.grad"),)),
    (7, "rate ignored", (("p.data -= self.rate * p.grad", "p.data -= p.grad"),)),
    (
        7,
        "rate applied twice",
        (("p.data -= self.rate * p.grad", "p.data -= self.rate**2 * p.grad"),),
    ),
    (
        7,
        "parameters never moved",
        (("p.data -= self.rate * p.grad", "p = Value(p.data - self.rate * p.grad)"),),
    ),
    (
        7,
        "gradient instead of a step",
        (("p.data -= self.rate * p.grad", "p.data = self.rate * p.grad"),),
    ),
    (7, "parameter left out", (("for p in self.parameters:", "for p in self.parameters[:-1]:"),)),
    (7, "decay ignored", (("        self.rate *= self.decay\n", ""),)),
    (
        7,
        "decay one step early",
        (
            ("    def step(self):\n", "    def step(self):\n        self.rate *= self.decay\n"),
            ("p.grad\n        self.rate *= self.decay\n", "p.grad\n"),
        ),
    ),
    (8, "= instead of +=", (("bars[i] += bars[k]", "bars[i] = bars[k]"),)),
    (8, "upstream gradient left out", (("bars[i] += bars[k] * LOCAL", "bars[i] += LOCAL"),)),
    (8, "seed missing", (("    bars[-1] = 1.0\n    for k in range", "    for k in range"),)),
    (
        8,
        "child before parent",
        (("for k in range(len(tape) - 1, -1, -1):", "for k in range(len(tape)):"),),
    ),
    (
        8,
        "child before parent",
        (("for v in topological_order(result) if", "for v in topological_order(result)[::-1] if"),),
    ),
    (8, "operands are not rows", (("tuple(place[id(p)] for p in v.parents)", "v.parents"),)),
    (8, "rows do not replay", (("v.op, tuple(", "{'mul': 'add'}.get(v.op, v.op), tuple("),)),
    (
        9,
        "gradients not zeroed",
        (
            (
                "    return [bars.get(id(one), Value(0.0)) for one in wrt]",
                "    for one in wrt:\n        one.sum = getattr(one, 'sum', Value(0.0)) + bars.get(id(one), Value(0.0))\n    return [one.sum for one in wrt]",
            ),
        ),
    ),
    (
        9,
        "second derivative lost",
        (
            (
                "    return [bars.get(id(one), Value(0.0)) for one in wrt]",
                "    return [Value(bars[id(one)].data if id(one) in bars else 0.0) for one in wrt]",
            ),
        ),
    ),
    (
        9,
        "mixed derivatives missing",
        (
            (
                "    return [[entry.data for entry in gradient_values(slope, leaves)] for slope in slopes]",
                "    return [[gradient_values(slope, leaves)[i].data if i == j else 0.0 for j in range(len(xs))] for i, slope in enumerate(slopes)]",
            ),
        ),
    ),
    (
        9,
        "Taylor coefficients",
        (
            (
                "        found.append(result.data)\n    return found",
                "        found.append(result.data)\n    return [d / math.factorial(k + 1) for k, d in enumerate(found)]",
            ),
        ),
    ),
    (
        9,
        "first derivative again",
        (
            (
                "        found.append(result.data)\n    return found",
                "        found.append(result.data)\n    return found[:1] * order",
            ),
        ),
    ),
    (10, "no bias", (("row, xs)), b) for row", "row, xs)), 0.0) for row"),)),
    (10, "no activation", (("xs = [1 / (1 + (-z).exp()) for z in sums]", "xs = sums"),)),
    (10, "tanh instead of sigmoid", (("1 / (1 + (-z).exp())", "z.tanh()"),)),
    (
        10,
        "no activation at the output",
        (
            (
                "xs = [1 / (1 + (-z).exp()) for z in sums]",
                "xs = sums if rows is self.weights[-1] else [1 / (1 + (-z).exp()) for z in sums]",
            ),
        ),
    ),
    (10, "parameters missing", (("for row in (*rows, *self.biases)", "for row in rows"),)),
    (10, "gradients not zeroed", (("            zero_grad(parameters)\n", ""),)),
    (10, "factor 2", (("network(xs), targets)) / 2", "network(xs), targets))"),)),
    (
        10,
        "bias not trained",
        (("optimizer = SGD(parameters, rate)", "optimizer = SGD(parameters[:-1], rate)"),),
    ),
    (10, "parameters never moved", (("            optimizer.step()\n", ""),)),
    (10, "losses missing", (("    return losses\n", ""),)),
]


def planted(swaps: Swaps) -> str:
    """The solution with a mistake in it."""
    text = SOLUTION
    for old, new in swaps:
        assert old in text, old
        text = text.replace(old, new)
    return text
