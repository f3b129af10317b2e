"""Wrong gradients: the chain rule, paths, state between calls, points and table derivatives."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from tests.trial.grading.records import Collection

CHAIN = Collection()
add = CHAIN.add

LECTURE = "input xa = 0.5; parameter ab = 1, bc = 2, cd = 3, ac = 4; xx = xa^2; xy = ab*xx + ac*xa; xz = bc*xx + xy; xw = cd*xx + xz^3"
LOGISTIC = "input x = 2, y = 1; parameter w = 0.5, b = -1; z = w*x + b; yhat = 1/(1 + exp(-z)); l = (yhat - y)^2/2"
NEURON = "input x = 1.5; parameter w = 0.6, b = -0.3, v = 1.2; h = tanh(w*x + b); o = v*h"
FIT = "input x = 2; parameter w = 0.5, b = 1; o = w*x + b"
DEEP = (
    "input x = 0.8; parameter a = 0.9, b = 1.4, c = -0.7; p = sigmoid(a*x); q = tanh(b*p); o = c*q"
)
TWO_PATHS = "input a = 2; parameter w1 = 3, w2 = -1, w3 = 0.5, w4 = 4; b = w1*a; c = w2*a; d = w3*b + w4*c; L = 10 - d"
SHARED = "parameter a = 0.7, b = 1.3; c = a*b; d = sin(c) + c^2; e = d*a"
RESIDUAL = "input x = 0.6; parameter w = 0.8, u = -1.1; h = tanh(w*x); o = h + u*h*w"
RECURRENT = "input x1 = 1, x2 = 2, x3 = 3; parameter w = 0.5, u = 0.4; h1 = tanh(u*x1); h2 = tanh(w*h1 + u*x2); h3 = tanh(w*h2 + u*x3)"
SOFT = "input x = 0.7; parameter a = 0.4, b = -0.6; p = exp(a*x); q = exp(b*x); s = p/(p + q)"
LAYER = """
input x[3] = [0.5, -1, 2]
parameter W[2,3] = [[0.4, -0.3, 0.2], [0.1, 0.6, -0.5]], b[2] = [0.1, -0.2], v[2] = [1.1, -0.7]
o = v @ tanh(W @ x + b)
"""

# loss factor
add(
    "loss factor missing",
    LOGISTIC,
    """
    from math import exp
    def gradient(x, y, w, b):
        p = 1/(1 + exp(-w*x - b))
        return {"w": p*(1 - p)*x, "b": p*(1 - p)}
    """,
)
add(
    "loss factor missing",
    FIT,
    "def gradient(x, target, w, b):\n    return [x, 1]\n",
    loss="squared-error",
)
add(
    "loss factor missing",
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        J = np.stack([x, np.ones(len(x))])
        return J.mean(axis=1)
    """,
    loss="squared-error",
    batch=4,
)
add(
    "loss factor missing",
    NEURON,
    """
    from math import tanh
    def gradient(values):
        h = tanh(values["w"]*values["x"] + values["b"])
        back = values["v"]*(1 - h*h)
        return {"w": back*values["x"], "b": back, "v": h}
    """,
    loss="half-squared-error",
)
add(
    "loss factor missing",
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        W_grad, b_grad, v_grad = 0*W, 0*b, 0*v
        for row in x:
            h = np.tanh(W @ row + b)
            d = v*(1 - h*h)
            W_grad = W_grad + np.outer(d, row)/len(x)
            b_grad = b_grad + d/len(x)
            v_grad = v_grad + h/len(x)
        return [W_grad, b_grad, v_grad]
    """,
    loss="half-squared-error",
    batch=3,
)

# activation derivative
add(
    "activation derivative missing",
    NEURON,
    "def gradient(x, w, b, v):\n    from math import tanh\n    return [v*x, v, tanh(w*x + b)]\n",
)
add(
    "activation derivative missing",
    LOGISTIC,
    """
    import numpy as np
    def gradient(x, y, w, b):
        yhat = 1/(1 + np.exp(-(w*x + b)))
        return {"w": (yhat - y)*x, "b": yhat - y}
    """,
)
add(
    "activation derivative missing",
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        h = np.tanh(x @ W.T + b)
        e = 2*(h @ v - target)/len(x)
        delta = np.outer(e, v)
        return {"W": delta.T @ x, "b": delta.sum(axis=0), "v": e @ h}
    """,
    loss="squared-error",
    batch=4,
)
add(
    "activation derivative missing",
    DEEP,
    """
    from math import exp, tanh
    def gradient(x, a, b, c):
        p = 1/(1 + exp(-a*x))
        q = tanh(b*p)
        dq = c
        dp = dq*(1 - q**2)*b
        return {"a": dp*x, "b": dq*(1 - q**2)*p, "c": q}
    """,
)
add(
    "activation derivative missing",
    "input x1 = 0.5, x2 = -1.5; parameter u1 = 0.4, u2 = -0.7, c = 0.3; o = sigmoid(u1*x1 + u2*x2 + c)",
    """
    def sigmoid(z):
        import math
        return 1/(1 + math.exp(-z))
    def gradient(x1, x2, target, u1, u2, c):
        total = [0.0, 0.0, 0.0]
        for p, q, t in zip(x1, x2, target):
            delta = 2*(sigmoid(u1*p + u2*q + c) - t)
            total = [s + delta*f/len(x1) for s, f in zip(total, (p, q, 1.0))]
        return total
    """,
    loss="squared-error",
    batch=4,
)

# product of averages
add(
    "product of averages",
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        x, t = np.array(x), np.array(target)
        e = np.mean(w*x + b - t)
        return 2*e*np.mean(x), 2*e
    """,
    loss="squared-error",
    batch=4,
)
add(
    "product of averages",
    FIT,
    """
    def average(values):
        return sum(values)/len(values)
    def gradient(x, target, w, b):
        error = average([w*p + b - q for p, q in zip(x, target)])
        return {"w": error*average(x), "b": error}
    """,
    loss="half-squared-error",
    batch=8,
)
add(
    "product of averages",
    "input x1 = 0.5, x2 = -1.5; parameter u1 = 0.4, u2 = -0.7, c = 0.3; o = sigmoid(u1*x1 + u2*x2 + c)",
    """
    import numpy as np
    def gradient(x1, x2, target, u1, u2, c):
        p = 1/(1 + np.exp(-(u1*np.array(x1) + u2*np.array(x2) + c)))
        d = (p - np.array(target)).mean()
        return [d*np.mean(x1), d*np.mean(x2), d]
    """,
    loss="cross-entropy",
    batch=4,
)
add(
    "product of averages",
    NEURON,
    """
    import numpy as np
    def gradient(x, target, w, b, v):
        h = np.tanh(w*np.array(x) + b)
        e = np.mean(2*(v*h - np.array(target)))
        return {"w": e*v*np.mean((1 - h**2)*x), "b": e*v*np.mean(1 - h**2), "v": e*np.mean(h)}
    """,
    loss="squared-error",
    batch=4,
)
add(
    "product of averages",
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        h = np.tanh(x @ W.T + b)
        error = (2*(h @ v - target)).mean()
        d = error*v*(1 - h*h).mean(0)
        return np.outer(d, x.mean(0)), d, error*h.mean(0)
    """,
    loss="squared-error",
    batch=3,
)

# one path of several
add(
    "one path of several",
    TWO_PATHS,
    """
    def gradient(a, w1, w2, w3, w4):
        return {"a": -w3*w1}
    """,
    wrt="a",
)
add(
    "one path of several",
    SHARED,
    """
    from math import sin, cos
    def gradient(a, b):
        c = a*b
        return [a*(cos(c) + 2*c)*b, a*(cos(c) + 2*c)*a]
    """,
    also=("product rule",),  # the path is one of its two terms
)
add(
    "one path of several",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        xx = xa*xa
        xz = (ab + bc)*xx + ac*xa
        return cd*2*xa
    """,
    wrt="xa",
)
add(
    "one path of several",
    RECURRENT,
    """
    import numpy as np
    def gradient(x1, x2, x3, w, u):
        h1 = np.tanh(u*x1); h2 = np.tanh(w*h1 + u*x2); h3 = np.tanh(w*h2 + u*x3)
        return [(1 - h3**2)*h2, (1 - h3**2)*x3]
    """,
)
add(
    "one path of several",
    SOFT,
    """
    from math import exp
    def gradient(x, a, b):
        p, q = exp(a*x), exp(b*x)
        return {"a": p*x/(p + q), "b": -p*q*x/(p + q)**2}
    """,
    also=("quotient rule",),  # the path is one of its two terms
)
add(
    "one path of several",
    "input i1 = 0.5, i2 = 0.1; parameter w1 = 0.3, w2 = -0.2, u1 = 0.7, u2 = 0.9; h = sigmoid(w1*i1 + w2*i2); o1 = u1*h; o2 = u2*h; E = (o1 - 1)^2 + (o2 + 1)^2",
    """
    from math import exp
    def gradient(i1, i2, w1, w2, u1, u2):
        h = 1/(1 + exp(-(w1*i1 + w2*i2)))
        e1, e2 = 2*(u1*h - 1), 2*(u2*h + 1)
        dh = e1*u1
        return [dh*h*(1 - h)*i1, dh*h*(1 - h)*i2, e1*h, e2*h]
    """,
)

# = instead of +=
ENGINE = """
    import math
    class Value:
        def __init__(self, data, parents=(), local=()):
            self.data, self.parents, self.local, self.grad = data, parents, local, 0.0
        def __add__(self, other):
            other = other if isinstance(other, Value) else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))
        def __mul__(self, other):
            other = other if isinstance(other, Value) else Value(other)
            return Value(self.data*other.data, (self, other), (other.data, self.data))
        def tanh(self):
            t = math.tanh(self.data)
            return Value(t, (self,), (1 - t*t,))
        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))
        def backward(self):
            order, seen = [], set()
            def visit(node):
                if id(node) not in seen:
                    seen.add(id(node))
                    for parent in node.parents:
                        visit(parent)
                    order.append(node)
            visit(self)
            self.grad = 1.0
            for node in reversed(order):
                for parent, local in zip(node.parents, node.local):
                    parent.grad = node.grad*local
"""
add(
    "= instead of +=",
    SHARED,
    ENGINE
    + """
    def gradient(a, b):
        a, b = Value(a), Value(b)
        c = a*b
        e = (c.sin() + c*c)*a
        e.backward()
        return [a.grad, b.grad]
    """,
)
add(
    "= instead of +=",
    RESIDUAL,
    ENGINE
    + """
    def gradient(x, w, u):
        w, u = Value(w), Value(u)
        h = (w*x).tanh()
        (h + u*h*w).backward()
        return {"w": w.grad, "u": u.grad}
    """,
)
add(
    "= instead of +=",
    RECURRENT,
    """
    from math import tanh
    def gradient(x1, x2, x3, w, u):
        h = [0]
        for x in (x1, x2, x3):
            h.append(tanh(w*h[-1] + u*x))
        back = 1
        for t, x in zip((3, 2, 1), (x3, x2, x1)):
            dz = back*(1 - h[t]**2)
            grads = {"w": dz*h[t - 1], "u": dz*x}
            back = dz*w
        return grads
    """,
    also=("zero",),
)
add(
    "= instead of +=",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        xx = xa**2; xy = ab*xx + ac*xa; xz = bc*xx + xy
        d = {"xz": 3*xz**2}
        d["xy"] = d["xz"]
        d["xx"] = cd
        d["xx"] = d["xz"]*bc
        d["xx"] = d["xy"]*ab
        d["xa"] = d["xy"]*ac
        d["xa"] = d["xx"]*2*xa
        return d["xa"]
    """,
    wrt="xa",
)
add(
    "= instead of +=",
    "parameter a = 3; b = a + a; c = b*b + a",
    ENGINE
    + """
    def gradient(a):
        a = Value(a)
        b = a + a
        (b*b + a).backward()
        return {"a": a.grad}
    """,
)
add(
    "= instead of +=",
    FIT,
    """
    def gradient(x, target, w, b):
        for p, q in zip(x, target):
            dw = 2*(w*p + b - q)*p/len(x)
            db = 2*(w*p + b - q)/len(x)
        return dw, db
    """,
    also=("sample",),
    loss="squared-error",
    batch=4,
)

# not zeroed
add(
    "not zeroed",
    NEURON,
    """
    from math import tanh
    grads = {"w": 0.0, "b": 0.0, "v": 0.0}
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        grads["w"] += v*(1 - h*h)*x
        grads["b"] += v*(1 - h*h)
        grads["v"] += h
        return grads
    """,
)
add(
    "not zeroed",
    LAYER,
    """
    import numpy as np
    class Layer:
        def __init__(self):
            self.gW = np.zeros((2, 3)); self.gb = np.zeros(2); self.gv = np.zeros(2)
        def backward(self, x, W, b, v):
            h = np.tanh(W @ x + b)
            d = v*(1 - h**2)
            self.gW += np.outer(d, x); self.gb += d; self.gv += h
    layer = Layer()
    def gradient(x, W, b, v):
        layer.backward(x, W, b, v)
        return layer.gW.copy(), layer.gb.copy(), layer.gv.copy()
    """,
)
add(
    "not zeroed",
    FIT,
    """
    def gradient(x, target, w, b, total=[0.0, 0.0]):
        for p, q in zip(x, target):
            total[0] += 2*(w*p + b - q)*p/len(x)
            total[1] += 2*(w*p + b - q)/len(x)
        return list(total)
    """,
    loss="squared-error",
    batch=4,
)
add(
    "not zeroed",
    TWO_PATHS,
    """
    dw1 = dw2 = dw3 = dw4 = 0
    def gradient(a, w1, w2, w3, w4):
        global dw1, dw2, dw3, dw4
        dw1 -= w3*a
        dw2 -= w4*a
        dw3 -= w1*a
        dw4 -= w2*a
        return [dw1, dw2, dw3, dw4]
    """,
)
add(
    "not zeroed",
    LOGISTIC,
    """
    from collections import defaultdict
    from math import exp
    adjoint = defaultdict(float)
    def gradient(x, y, w, b):
        p = 1/(1 + exp(-w*x - b))
        dz = (p - y)*p*(1 - p)
        adjoint["w"] += dz*x
        adjoint["b"] += dz
        return {"w": adjoint["w"], "b": adjoint["b"]}
    """,
)

# inner function not evaluated: f'(x) instead of f'(g(x))
add(
    "inner function not evaluated",
    "parameter x = 1.5; u = x^2; f = cos(u)",
    "from math import sin\ndef gradient(x):\n    return -sin(x)*2*x\n",
)
add(
    "inner function not evaluated",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        xx = xa**2
        up = 3*xx**2
        return [up*xx, up*xx, xx, up*xa]
    """,
)
add(
    "inner function not evaluated",
    "parameter x = 0.8, k = 1.7; y = log(k*x^2 + 1)",
    "def gradient(x, k):\n    return [2*k*x/x, x**2/x]\n",
)
add(
    "inner function not evaluated",
    "parameter a = 0.4, b = 0.9; u = a*b + 1; y = exp(u^2)",
    """
    import math
    def gradient(a, b):
        u = a*b + 1
        return {"a": math.exp(u)*2*u*b, "b": math.exp(u)*2*u*a}
    """,
)
add(
    "inner function not evaluated",
    "input x = 0.7; parameter w = 0.9, b = 0.2; z = w*x + b; o = sin(z)",
    """
    import numpy as np
    def gradient(x, w, b):
        return np.array([np.cos(x)*x, np.cos(x)])
    """,
)
add(
    "inner function not evaluated",
    LOGISTIC,
    """
    from math import exp
    def gradient(x, y, w, b):
        z = w*x + b
        p = 1/(1 + exp(-z))
        return [(p - y)*z*(1 - z)*x, (p - y)*z*(1 - z)]
    """,
)
add(
    "inner function not evaluated",
    "parameter x = 0.6, y = 1.1; p = x*y + 0.5; q = atan(p^2)",
    "def gradient(x, y):\n    p = x*y + 0.5\n    d = 2*p/(1 + p*p)\n    return [d*y, d*x]\n",
)

# wrong point
add(
    "derivative at the wrong point",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        x, w, b, v = 1.5, 0.6, -0.3, 1.2
        h = tanh(w*x + b)
        return [v*(1 - h*h)*x, v*(1 - h*h), h]
    """,
)
add(
    "derivative at the wrong point",
    LOGISTIC,
    """
    from math import exp
    last = {}
    def gradient(x, y, w, b):
        if not last:
            last.update(x=x, y=y, w=w, b=b)
        x, y, w, b = last["x"], last["y"], last["w"], last["b"]
        p = 1/(1 + exp(-w*x - b))
        return [(p - y)*p*(1 - p)*x, (p - y)*p*(1 - p)]
    """,
)
add(
    "derivative at the wrong point",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        d = 1 - tanh(h)**2
        return {"w": v*d*x, "b": v*d, "v": h}
    """,
)
add(
    "derivative at the wrong point",
    "parameter a = 0.8, b = 0.3; u = sin(a); y = u^2*b + exp(b)",
    """
    from math import sin, cos, exp
    def gradient(a, b):
        u = sin(a)
        return [2*u*b*cos(u), u*u + exp(b)]
    """,
)
add(
    "derivative at the wrong point",
    "parameter a = 1.8, b = 0.7; y = a^3*b + b^2*a",
    "def gradient(a, b):\n    a, b = b, a\n    return [3*a*a*b + b*b, a**3 + 2*a*b]\n",
)
add(
    "derivative at the wrong point",
    "input x = 0.4; parameter k = 1.5, c = 0.8; o = exp(k*x)*c",
    """
    import numpy as np
    before = []
    def gradient(x, k, c):
        before.append((x, k, c))
        x, k, c = before[-2] if len(before) > 1 else before[-1]
        return np.exp(k*x)*np.array([x*c, 1])
    """,
)

# outer derivative missing
add(
    "outer derivative missing",
    "parameter x = 1.5; u = x^2; f = cos(u)",
    "def gradient(x):\n    return 2*x\n",
)
add(
    "outer derivative missing",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        return {"ab": xa**2, "bc": xa**2, "cd": xa**2, "ac": xa}
    """,
)
add(
    "outer derivative missing",
    "parameter x = 0.8, k = 1.7; y = log(k*x^2 + 1)",
    "gradient = lambda x, k: (2*k*x, x*x)\n",
)
add(
    "outer derivative missing",
    "parameter a = 0.4, b = 0.9; u = a*b + a^2; y = exp(u)",
    "def gradient(a, b):\n    return {'a': b + 2*a, 'b': a}\n",
)
add(
    "outer derivative missing",
    "input x = 0.7; parameter w = 0.9, b = 0.2; y = (w*x + b)^4",
    "def gradient(x, w, b):\n    import numpy as np\n    return np.array([x, 1.0])\n",
    also=("power rule",),
)
add(
    "outer derivative missing",
    "parameter x = 0.6, y = 1.1; p = x*y + x; q = sqrt(p)",
    "def gradient(d):\n    x, y = d['x'], d['y']\n    return [y + 1, x]\n",
)

# inner derivative missing
add(
    "inner derivative missing",
    "parameter x = 1.5; u = x^2; f = cos(u)",
    "from math import sin\ndef gradient(x):\n    return -sin(x*x)\n",
)
add(
    "inner derivative missing",
    "input x = 1; parameter k = 0.5; y = exp(k*x)",
    "from math import exp\ndef gradient(x, k):\n    return exp(k*x)\n",
    wrt="k",
)
add(
    "inner derivative missing",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        xz = (ab + bc)*xa**2 + ac*xa
        return [3*xz**2, 3*xz**2, xa**2, 3*xz**2]
    """,
)
add(
    "inner derivative missing",
    "input x = 1.3; parameter k = 0.5, m = 1.5; y = sin(k*x) + cos(m*x)",
    """
    import numpy as np
    def gradient(x, k, m):
        return {"k": np.cos(k*x), "m": -np.sin(m*x)}
    """,
)
add(
    "inner derivative missing",
    "parameter a = 0.8, b = 0.7; y = log(a^3 + b)",
    "def gradient(a, b):\n    return [1/(a**3 + b), 1/(a**3 + b)]\n",
)
add(
    "inner derivative missing",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        return {"w": v*(1 - h*h), "b": v*(1 - h*h), "v": h}
    """,
)
add(
    "inner derivative missing",
    "input x = 0.7; parameter w = 0.9, b = 0.2; y = (w*x^2 + b*x)^3",
    "def gradient(x, w, b):\n    u = 3*(w*x*x + b*x)**2\n    return u, u\n",
)

# power rule
add(
    "power rule: exponent stays",
    "parameter x = 3; y = x^3",
    "def gradient(x):\n    return 3*x**3\n",
)
add(
    "power rule: exponent stays",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        xx = xa**2; xz = (ab + bc)*xx + ac*xa
        return [3*xz**3*xx, 3*xz**3*xx, xx, 3*xz**3*xa]
    """,
)
add(
    "power rule: exponent stays",
    "parameter x = 4, y = 5; f = 2*x^2 + 3*y^2",
    "def gradient(x, y):\n    return [4*x**2, 6*y**2]\n",
)
add(
    "power rule: exponent stays",
    "input t = 1.3; parameter a = 0.6, b = 2; y = b*(a + t)^4",
    """
    import numpy as np
    def gradient(t, a, b):
        return np.array([b*4*(a + t)**4, (a + t)**4])
    """,
)
add(
    "power rule: exponent stays",
    "parameter a = 0.7, c = 1.2; u = sin(a) + c; y = u^5",
    """
    from math import sin, cos
    def gradient(values):
        u = sin(values["a"]) + values["c"]
        return {"a": 5*u**5*cos(values["a"]), "c": 5*u**5}
    """,
)
add("power rule: n*x", "parameter x = 3; y = x^3", "def gradient(x):\n    return 3*x\n")
add(
    "power rule: n*x",
    LECTURE,
    """
    def gradient(xa, ab, bc, cd, ac):
        xx = xa**2; xz = (ab + bc)*xx + ac*xa
        up = 3*xz
        return {"ab": up*xx, "bc": up*xx, "cd": xx, "ac": up*xa}
    """,
)
add(
    "power rule: n*x",
    "parameter x = 1.2, y = 0.8; f = x^4 + 2*y^5",
    "def gradient(x, y):\n    return [4*x, 10*y]\n",
)
add(
    "power rule: n*x",
    "input t = 1.3; parameter a = 0.6, b = 2; y = b*(a*t + 1)^3",
    "def gradient(t, a, b):\n    u = a*t + 1\n    return b*3*u*t, u**3\n",
)
add(
    "power rule: n*x",
    "input x = 0.9; parameter w = 1.1, b = 0.4; o = w*x + b",
    """
    def gradient(x, target, w, b):
        dw = db = 0
        for p, q in zip(x, target):
            e = w*p + b - q
            dw += 4*e*p/len(x)
            db += 4*e/len(x)
        return dw, db
    """,
    loss="(out - target)^4",
    batch=3,
)
add(
    "power rule: divisor not squared",
    "parameter a = 2, b = 3; y = a/b",
    "def gradient(a, b):\n    return [1/b, -a/b]\n",
)
add(
    "power rule: divisor not squared",
    "parameter x = 2.4; y = 1/x",
    "def gradient(x):\n    return -1/x\n",
)
add(
    "power rule: divisor not squared",
    "input t = 0.4; parameter p = 1.5, q = 0.7; u = p*t + 1; v = q + t^2; y = u/v",
    """
    def gradient(t, p, q):
        u, v = p*t + 1, q + t*t
        return {"p": t/v, "q": -u/v}
    """,
)
add(
    "power rule: divisor not squared",
    "parameter z = 1.5; t2 = exp(-z); t3 = t2 + 1; y = 1/t3",
    "from math import exp\ndef gradient(z):\n    return -1/(exp(-z) + 1)*exp(-z)*-1\n",
    also=("activation",),
)
add(
    "power rule: divisor not squared",
    "input x = 0.5; parameter a = 1.2, b = 2.5, c = 0.7; y = (a*x + c)/(b*x + 1)",
    """
    import numpy as np
    def gradient(x, a, b, c):
        top, bottom = a*x + c, b*x + 1
        return np.array([x*bottom, -top*x, bottom])/bottom
    """,
)
add(
    "power rule: variable exponent",
    "parameter x = 1.7; y = x^x",
    "def gradient(x):\n    return x*x**(x - 1)\n",
)
add(
    "power rule: variable exponent",
    "parameter x = 1.7, k = 0.6; y = k*x^x",
    "def gradient(x, k):\n    return {'x': k*x*x**(x - 1), 'k': x**x}\n",
)
add(
    "power rule: variable exponent",
    "input a = 2.5; parameter x = 1.4; y = a^x",
    "def gradient(a, x):\n    return x*a**(x - 1)\n",
)
add(
    "power rule: variable exponent",
    "parameter x = 1.3, c = 0.5; u = x + c; y = u^x",
    """
    def gradient(x, c):
        u = x + c
        return [x*u**(x - 1), x*u**(x - 1)]
    """,
)
add(
    "power rule: variable exponent",
    "parameter a = 1.6, n = 2.3; y = 3*a^n",
    "def gradient(a, n):\n    return [3*n*a**(n - 1), 3*n*a**(n - 1)]\n",
)
add(
    "power rule: variable exponent",
    "parameter x = 1.6; y = x^(2*x) + sin(x)",
    "import math\ndef gradient(x):\n    return 2*x*x**(2*x - 1) + math.cos(x)\n",
)

# abs
add(
    "sign of abs lost",
    "parameter x = -1.5; y = abs(x)*x^2",
    "def gradient(x):\n    return x*x + abs(x)*2*x\n",
)
add(
    "sign of abs lost",
    "input x = 1.2, t = 2; parameter w = 0.8, b = 0.3; l = abs(w*x + b - t)",
    "def gradient(x, t, w, b):\n    return [x, 1]\n",
)
add(
    "sign of abs lost",
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        return {"w": np.mean(x), "b": 1.0}
    """,
    loss="absolute-error",
    batch=4,
    also=("loss factor",),
)
add(
    "sign of abs lost",
    "parameter a = 0.7, b = -1.1; y = abs(a*b) + a",
    "def gradient(a, b):\n    return {'a': b + 1, 'b': a}\n",
)
add(
    "sign of abs lost",
    "parameter a[3] = [0.5, -1.5, 2], c = 0.8; s = c*sum(abs(a))",
    """
    import numpy as np
    def gradient(a, c):
        return c*np.ones(3), np.abs(a).sum()
    """,
)
