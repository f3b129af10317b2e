"""Engines of the ladder: a correct one, and wrong ones made by one change of it each."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from tests.trial.grading.records import ACCEPTABLE_NAMES, Collection

WRONG_ENGINES = Collection()
ACCEPTABLE_NAMES |= {
    "engine: wrong seed": ("seed",),
    "engine: duplicates in the order": ("twice", "duplicate", "several times"),
    "engine: overwrites": ("= instead of +=",),
    "engine: wrong rule": ("wrong derivative", "derivative of"),
    "engine: upstream missing": ("upstream",),
    "engine: not zeroed": ("not zeroed", "stay"),
    "engine: loss of the last sample": ("loss", "last sample"),
    "engine: order": ("order", "child"),
}

ENGINE = """
import math

def difference_quotient(f, x, h=1e-5):
    return (f(x + h) - f(x - h))/(2*h)

def numerical_gradient(f, xs, h=1e-5):
    result = []
    for k in range(len(xs)):
        up = list(xs); down = list(xs)
        up[k] += h; down[k] -= h
        result.append((f(up) - f(down))/(2*h))
    return result

class Value:
    def __init__(self, data, parents=(), op=""):
        self.data = float(data)
        self.grad = 0.0
        self.parents = tuple(parents)
        self.op = op
        self._pull = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        def pull():
            self.grad += out.grad
            other.grad += out.grad
        out._pull = pull
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data*other.data, (self, other), "*")
        def pull():
            self.grad += other.data*out.grad
            other.grad += self.data*out.grad
        out._pull = pull
        return out

    def __pow__(self, n):
        out = Value(self.data**n, (self,), f"**{n}")
        def pull():
            self.grad += n*self.data**(n - 1)*out.grad
        out._pull = pull
        return out

    def _unary(self, data, slope, op):
        out = Value(data, (self,), op)
        def pull():
            self.grad += slope*out.grad
        out._pull = pull
        return out

    def exp(self):
        e = math.exp(self.data)
        return self._unary(e, e, "exp")

    def log(self):
        return self._unary(math.log(self.data), 1/self.data, "log")

    def sin(self):
        return self._unary(math.sin(self.data), math.cos(self.data), "sin")

    def tanh(self):
        t = math.tanh(self.data)
        return self._unary(t, 1 - t*t, "tanh")

    def relu(self):
        return self._unary(max(0.0, self.data), float(self.data > 0), "relu")

    def __neg__(self): return self*-1
    def __radd__(self, other): return self + other
    def __sub__(self, other): return self + (-other)
    def __rsub__(self, other): return Value(other) + (-self)
    def __rmul__(self, other): return self*other
    def __truediv__(self, other): return self*(other if isinstance(other, Value) else Value(other))**-1
    def __rtruediv__(self, other): return Value(other)*self**-1

    def backward(self):
        order = topological_order(self)
        for node in order:
            if node.parents:
                node.grad = 0.0
        self.grad += 1.0
        for node in reversed(order):
            node._pull()

def topological_order(value):
    order, seen, stack = [], set(), [(value, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((p, False) for p in node.parents)
    return order

def zero_grad(values):
    for value in values:
        value.grad = 0.0

class SGD:
    def __init__(self, parameters, rate, decay=1.0):
        self.parameters, self.rate, self.decay = list(parameters), rate, decay
    def step(self):
        for p in self.parameters:
            p.data -= self.rate*p.grad
        self.rate *= self.decay

class Network:
    def __init__(self, weights, biases):
        self.layers = [
            [([Value(w) for w in neuron], Value(b)) for neuron, b in zip(layer, row)]
            for layer, row in zip(weights, biases)
        ]

    def __call__(self, xs):
        xs = [x if isinstance(x, Value) else Value(x) for x in xs]
        for layer in self.layers:
            outs = []
            for weights, bias in layer:
                z = bias
                for w, x in zip(weights, xs):
                    z = z + w*x
                outs.append(Value(1)/(1 + (-z).exp()))
            xs = outs
        return xs

    def parameters(self):
        return [p for layer in self.layers for ws, b in layer for p in (*ws, b)]


def train(network, data, rate, epochs):
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for xs, targets in data:
            loss = Value(0)
            for out, target in zip(network(xs), targets):
                loss = loss + (out - target)**2*0.5
            zero_grad(network.parameters())
            loss.backward()
            for p in network.parameters():
                p.data -= rate*p.grad
            total += loss.data
        losses.append(total)
    return losses
"""


def change(kind: str, old: str, new: str, stage: int) -> None:
    """Add the engine with one text replaced; the text must occur in it."""
    if old not in ENGINE:
        raise ValueError(f"{old!r} is not in the engine")
    WRONG_ENGINES.add(kind, "", ENGINE.replace(old, new), stage=stage)


for seed in (
    "self.grad = self.data",
    "self.grad += self.data",
    "pass",
    "self.grad = 2.0",
    "self.grad = -1.0",
):
    change("engine: wrong seed", "self.grad += 1.0", seed, 4)
for old, new in (
    ("elif id(node) not in seen:", "else:"),
    ("            seen.add(id(node))\n", ""),
    ("    return order\n\ndef zero", "    return order + order[:1]\n\ndef zero"),
    ("            order.append(node)", "            order += [node, node]"),
    (
        "    return order\n\ndef zero",
        "    return [n for n in order for _ in range(1 + bool(n.parents))]\n\ndef zero",
    ),
):
    change("engine: duplicates in the order", old, new, 3)
change(
    "engine: duplicates in the order",
    "    return order\n\ndef zero",
    "    return [n for n in order for _ in range(1 + bool(n.parents))]\n\ndef zero",
    5,
)
for old, new in (
    (
        "self.grad += out.grad\n            other.grad += out.grad",
        "self.grad = out.grad\n            other.grad = out.grad",
    ),
    (
        "self.grad += other.data*out.grad\n            other.grad += self.data*out.grad",
        "self.grad = other.data*out.grad\n            other.grad = self.data*out.grad",
    ),
    ("self.grad += slope*out.grad", "self.grad = slope*out.grad"),
    ("self.grad += n*self.data", "self.grad = n*self.data"),
):
    change("engine: overwrites", old, new, 5)
WRONG_ENGINES.add(
    "engine: overwrites",
    "",
    ENGINE.replace("self.grad +=", "self.grad =").replace("other.grad +=", "other.grad ="),
    stage=5,
)
for old, new in (
    ("1 - t*t", "1 + t*t"),
    ("1 - t*t", "1 - t"),
    ('math.cos(self.data), "sin"', 'math.sin(self.data), "sin"'),
    ("1/self.data", "math.log(self.data)"),
    ("float(self.data > 0)", "max(0.0, self.data)"),
    ("n*self.data**(n - 1)", "n*self.data**n"),
    ("float(self.data > 0)", "1.0"),
    (
        "self.grad += other.data*out.grad\n            other.grad += self.data*out.grad",
        "self.grad += self.data*out.grad\n            other.grad += other.data*out.grad",
    ),
):
    change("engine: wrong rule", old, new, 4)
for old, new in (
    ("self.grad += slope*out.grad", "self.grad += slope"),
    (
        "self.grad += other.data*out.grad\n            other.grad += self.data*out.grad",
        "self.grad += other.data\n            other.grad += self.data",
    ),
    ("n*self.data**(n - 1)*out.grad", "n*self.data**(n - 1)"),
):
    change("engine: upstream missing", old, new, 4)
change("engine: not zeroed", "        value.grad = 0.0", "        value = Value(value.data)", 6)
change(
    "engine: not zeroed",
    "    for value in values:\n        value.grad = 0.0",
    "    for value in list(values)[1:]:\n        value.grad = 0.0",
    6,
)
change("engine: not zeroed", "            zero_grad(network.parameters())\n", "", 10)
change("engine: order", "for node in reversed(order):", "for node in order:", 5)
change("engine: order", "    return order\n\ndef zero", "    return order[::-1]\n\ndef zero", 3)
change(
    "engine: loss of the last sample",
    "            total += loss.data",
    "            total = loss.data",
    10,
)
change(
    "engine: loss of the last sample",
    "        losses.append(total)",
    "        losses.append(loss.data)",
    10,
)
