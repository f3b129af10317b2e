"""A right solution of all ten stages. It is not packaged: students are not to find it."""

# ruff: noqa: B905, PLW0108
import math


def difference_quotient(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


def numerical_gradient(f, xs, h=1e-5):
    found = []
    for k, x in enumerate(xs):
        high, low = list(xs), list(xs)
        high[k], low[k] = x + h, x - h
        found.append((f(high) - f(low)) / (2 * h))
    return found


class Value:
    def __init__(self, data, parents=(), op="", locals=()):
        self.data = float(data)
        self.grad = 0.0
        self.parents = tuple(parents)
        self.op = op
        self.locals = locals  # functions of the operands and the result: local derivatives

    def __add__(self, other):
        return made("add", self, other)

    def __radd__(self, other):
        return made("add", other, self)

    def __sub__(self, other):
        return made("sub", self, other)

    def __rsub__(self, other):
        return made("sub", other, self)

    def __mul__(self, other):
        return made("mul", self, other)

    def __rmul__(self, other):
        return made("mul", other, self)

    def __truediv__(self, other):
        return made("div", self, other)

    def __rtruediv__(self, other):
        return made("div", other, self)

    def __pow__(self, other):
        return made("pow", self, other)

    def __neg__(self):
        return made("neg", self)

    def exp(self):
        return made("exp", self)

    def log(self):
        return made("log", self)

    def sin(self):
        return made("sin", self)

    def cos(self):
        return made("cos", self)

    def tanh(self):
        return made("tanh", self)

    def relu(self):
        return made("relu", self)

    def backward(self):
        order = topological_order(self)
        for value in order:
            if value.parents:
                value.grad = 0.0
        self.grad = 1.0
        for value in reversed(order):
            data = [parent.data for parent in value.parents]
            for k, parent in enumerate(value.parents):
                local = LOCAL[value.op][k](*data)
                parent.grad += value.grad * local


FORWARD = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "relu": lambda a: max(a, 0.0),
}


def f_(name):
    """A function on numbers and on values alike."""
    return lambda a: getattr(a, name)() if isinstance(a, Value) else FORWARD[name](a)


exp, log, sin, cos, tanh = map(f_, ("exp", "log", "sin", "cos", "tanh"))
LOCAL = {
    "add": (lambda a, b: 1.0, lambda a, b: 1.0),
    "sub": (lambda a, b: 1.0, lambda a, b: -1.0),
    "mul": (lambda a, b: b, lambda a, b: a),
    "div": (lambda a, b: 1.0 / b, lambda a, b: -a / (b * b)),
    "pow": (lambda a, b: b * a ** (b - 1), lambda a, b: 0.0),
    "neg": (lambda a: -1.0,),
    "exp": (lambda a: exp(a),),
    "log": (lambda a: 1.0 / a,),
    "sin": (lambda a: cos(a),),
    "cos": (lambda a: -sin(a),),
    "tanh": (lambda a: 1.0 - tanh(a) ** 2,),
    "relu": (lambda a: 1.0 if (a.data if isinstance(a, Value) else a) > 0 else 0.0,),
}


def made(op, *operands):
    parents = [o if isinstance(o, Value) else Value(o, op="constant") for o in operands]
    return Value(FORWARD[op](*(p.data for p in parents)), parents, op)


def topological_order(value):
    order, seen, stack = [], set(), [(value, False)]
    while stack:
        one, done = stack.pop()
        if done:
            order.append(one)
        elif id(one) not in seen:
            seen.add(id(one))
            stack.append((one, True))
            stack += [(p, False) for p in reversed(one.parents)]
    return order


def zero_grad(values):
    for value in values:
        value.grad = 0.0


class SGD:
    def __init__(self, parameters, rate, decay=1.0):
        self.parameters = list(parameters)
        self.rate, self.decay = rate, decay

    def step(self):
        for p in self.parameters:
            p.data -= self.rate * p.grad
        self.rate *= self.decay


def record(f, inputs):
    leaves = [Value(number, op="input") for number in inputs]
    result = f(leaves)
    order = [*leaves, *(v for v in topological_order(result) if v.op != "input")]
    place = {id(value): k for k, value in enumerate(order)}
    return [(v.op, tuple(place[id(p)] for p in v.parents), v.data) for v in order]


def adjoints(tape):
    bars = [0.0] * len(tape)
    bars[-1] = 1.0
    for k in range(len(tape) - 1, -1, -1):
        op, operands, _ = tape[k]
        data = [tape[i][2] for i in operands]
        for place, i in enumerate(operands):
            bars[i] += bars[k] * LOCAL[op][place](*data)
    return bars


def gradient_values(result, wrt):
    """Gradients as values that were computed, so that they can be differentiated."""
    bars = {id(result): Value(1.0)}
    for value in reversed(topological_order(result)):
        bar = bars.get(id(value))
        if bar is None:
            continue
        for k, parent in enumerate(value.parents):
            share = bar * LOCAL[value.op][k](*value.parents)
            bars[id(parent)] = bars[id(parent)] + share if id(parent) in bars else share
    return [bars.get(id(one), Value(0.0)) for one in wrt]


def derivatives(f, x, order):
    leaf = Value(x)
    result, found = f(leaf), []
    for _ in range(order):
        (result,) = gradient_values(result, [leaf])
        found.append(result.data)
    return found


def hessian(f, xs):
    leaves = [Value(x) for x in xs]
    slopes = gradient_values(f(leaves), leaves)
    return [[entry.data for entry in gradient_values(slope, leaves)] for slope in slopes]


class Network:
    def __init__(self, weights, biases):
        self.weights = [[[Value(w) for w in row] for row in layer] for layer in weights]
        self.biases = [[Value(b) for b in layer] for layer in biases]

    def __call__(self, xs):
        for rows, offsets in zip(self.weights, self.biases):
            sums = [sum((w * x for w, x in zip(row, xs)), b) for row, b in zip(rows, offsets)]
            xs = [1 / (1 + (-z).exp()) for z in sums]
        return xs

    def parameters(self):
        rows = [row for layer in self.weights for row in layer]
        return [p for row in (*rows, *self.biases) for p in row]


def train(network, data, rate, epochs):
    parameters = network.parameters()
    optimizer = SGD(parameters, rate)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for xs, targets in data:
            zero_grad(parameters)
            loss = sum((o - t) ** 2 for o, t in zip(network(xs), targets)) / 2
            loss.backward()
            optimizer.step()
            total += loss.data
        losses.append(total)
    return losses
