"""Wrong gradients: signs, factors, order, points, paths and precision."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from tests.trial.grading.records import Collection

BASICS = Collection()
add = BASICS.add

LINE = "input x = 1.5, t = 0.4; parameter w = 0.7, b = -0.2; y = w*x + b; loss = (y - t)^2"
NEURON = "input x = 1.5; parameter w = 0.6, b = -0.3, v = 1.2; h = tanh(w*x + b); o = v*h"
QUOTIENT = "parameter a = 2, b = 3, c = 0.5; y = a/b - c*a^2"
WAVE = "input t = 0.6; parameter A = 2, k = 1.3, f = 0.4; y = A*exp(-k*t)*cos(f*t)"
FIT = "input x = 2; parameter w = 0.5, b = 1; o = w*x + b"
DOUBLE = "input x1 = 0.5, x2 = -1.5; parameter u1 = 0.4, u2 = -0.7, c = 0.3; o = sigmoid(u1*x1 + u2*x2 + c)"
LAYER = """
input x[3] = [0.5, -1, 2]
parameter W[2,3] = [[0.4, -0.3, 0.2], [0.1, 0.6, -0.5]], b[2] = [0.1, -0.2], v[2] = [1.1, -0.7]
o = v @ tanh(W @ x + b)
"""

# sign
add(
    "sign",
    LINE,
    """
    def gradient(x, t, w, b):
        error = t - (w*x + b)
        return {"w": 2*error*x, "b": 2*error}
    """,
)
add(
    "sign",
    QUOTIENT,
    """
    def gradient(a, b, c):
        da = 1/b - 2*c*a
        db = a/b**2
        dc = -a*a
        return [da, db, dc]
    """,
)
add(
    "sign",
    WAVE,
    """
    import math
    def gradient(d):
        e = math.exp(-d["k"]*d["t"])
        co, si = math.cos(d["f"]*d["t"]), math.sin(d["f"]*d["t"])
        return {"A": e*co, "k": -d["A"]*d["t"]*e*co, "f": d["A"]*e*si*d["t"]}
    """,
)
add(
    "sign",
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        x, target = np.array(x), np.array(target)
        r = target - (w*x + b)
        return np.array([np.mean(2*r*x), np.mean(2*r)])
    """,
    loss="squared-error",
    batch=4,
)
add(
    "sign",
    DOUBLE,
    """
    from math import exp
    def gradient(x1, x2, target, u1, u2, c):
        g = [0.0, 0.0, 0.0]
        n = len(target)
        for p, q, y in zip(x1, x2, target):
            s = 1/(1 + exp(-(u1*p + u2*q + c)))
            d = (y - s)/n
            g[0] += d*p
            g[1] += d*q
            g[2] += d
        return g
    """,
    loss="cross-entropy",
    batch=5,
)
add(
    "sign",
    LAYER,
    """
    import numpy as np
    def gradient(x, W, b, v):
        cache = {"z": W @ x + b}
        cache["h"] = np.tanh(cache["z"])
        dz = -v*(1 - cache["h"]**2)
        return {"W": np.outer(dz, x), "b": dz, "v": cache["h"]}
    """,
)

# factor 2
for body, options in (
    ("return {'w': (w*x + b - t)*x, 'b': w*x + b - t}", {}),
    ("e = w*x + b - t\n        return [e*x, e]", {}),
):
    add(
        "factor 2 missing",
        LINE,
        f"""
    def gradient(x, t, w, b):
        {body}
    """,
        **options,
    )
add(
    "factor 2 missing",
    FIT,
    """
    def gradient(x, target, w, b):
        n = len(x)
        dw = sum((w*p + b - q)*p for p, q in zip(x, target))/n
        db = sum(w*p + b - q for p, q in zip(x, target))/n
        return dw, db
    """,
    loss="squared-error",
    batch=3,
)
add(
    "factor 2 missing",
    LAYER,
    """
    import numpy as np
    def gradient(x, W, b, v, target):
        h = np.tanh(W @ x + b)
        error = v @ h - target
        back = error*v*(1 - h*h)
        return np.outer(back, x), back, error*h
    """,
    loss="squared-error",
)
add(
    "factor 2 missing",
    "parameter x = 4, y = 5; f = 2*x^2 + 3*y^2",
    """
    gradient = lambda x, y: [2*x, 3*y]
    """,
    also=("power rule",),
)
add(
    "factor 2 missing",
    DOUBLE,
    """
    import numpy as np
    class Sigmoid:
        def forward(self, z):
            self.out = 1/(1 + np.exp(-z))
            return self.out
        def backward(self, g):
            return g*self.out*(1 - self.out)
    def gradient(x1, x2, u1, u2, c, target):
        unit = Sigmoid()
        out = unit.forward(u1*x1 + u2*x2 + c)
        g = unit.backward(out - target)
        return {"u1": g*x1, "u2": g*x2, "c": g}
    """,
    loss="squared-error",
)

add(
    "factor 2 too much",
    "input x = 2, y = 1; parameter w = 0.5, b = -1; yhat = 1/(1 + exp(-w*x - b)); l = (yhat - y)^2/2",
    """
    from math import exp
    def gradient(x, y, w, b):
        p = 1/(1 + exp(-w*x - b))
        d = 2*(p - y)*p*(1 - p)
        return {"w": d*x, "b": d}
    """,
)
add(
    "factor 2 too much",
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        e = 2*(w*np.asarray(x) + b - np.asarray(target))
        return [np.mean(e*x), np.mean(e)]
    """,
    loss="half-squared-error",
    batch=4,
)
add(
    "factor 2 too much",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v, target):
        h = tanh(w*x + b)
        e = 2*(v*h - target)
        return [e*v*(1 - h*h)*x, e*v*(1 - h*h), e*h]
    """,
    loss="half-squared-error",
)
add(
    "factor 2 too much",
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        gW, gb, gv = np.zeros((2, 3)), np.zeros(2), np.zeros(2)
        for one, t in zip(x, target):
            h = np.tanh(W @ one + b)
            e = 2*(v @ h - t)
            d = e*v*(1 - h**2)
            gW += np.outer(d, one)/len(x)
            gb += d/len(x)
            gv += e*h/len(x)
        return {"W": gW, "b": gb, "v": gv}
    """,
    loss="half-squared-error",
    batch=3,
)
add(
    "factor 2 too much",
    "input x = 0.7, t = 1; parameter a = 0.3, c = 0.2; p = a*x^3 + c; l = (p - t)^2/2 + c^2/2",
    """
    def gradient(values):
        p = values["a"]*values["x"]**3 + values["c"]
        return {"a": 2*(p - values["t"])*values["x"]**3, "c": 2*(p - values["t"]) + 2*values["c"]}
    """,
)

# sum and mean
for kind, reduction in (("sum instead of mean", "mean"), ("mean instead of sum", "sum")):
    divide = "" if reduction == "mean" else "/len(target)"
    total = "np.sum" if reduction == "mean" else "np.mean"
    add(
        kind,
        FIT,
        f"""
    def gradient(x, target, w, b):
        dw = db = 0
        for p, q in zip(x, target):
            error = w*p + b - q
            dw += 2*error*p
            db += 2*error
        return {{"w": dw{divide}, "b": db{divide}}}
    """,
        loss="squared-error",
        batch=4,
        reduction=reduction,
    )
    add(
        kind,
        FIT,
        f"""
    import numpy as np
    def gradient(x, target, w, b):
        e = w*np.array(x) + b - np.array(target)
        return {total}(e*np.array(x)), {total}(e)
    """,
        loss="half-squared-error",
        batch=6,
        reduction=reduction,
    )
    add(
        kind,
        DOUBLE,
        f"""
    import numpy as np
    def gradient(x1, x2, target, u1, u2, c):
        X = np.column_stack([x1, x2, np.ones(len(x1))])
        p = 1/(1 + np.exp(-X @ np.array([u1, u2, c])))
        return X.T @ (p - np.array(target)){divide}
    """,
        loss="cross-entropy",
        batch=5,
        reduction=reduction,
    )
    add(
        kind,
        LAYER,
        f"""
    import numpy as np
    def gradient(x, target, W, b, v):
        H = np.tanh(x @ W.T + b)
        e = 2*(H @ v - target)
        D = e[:, None]*v*(1 - H**2)
        return {{"W": D.T @ x{divide}, "b": D.sum(0){divide}, "v": H.T @ e{divide}}}
    """,
        loss="squared-error",
        batch=3,
        reduction=reduction,
    )
    add(
        kind,
        NEURON,
        f"""
    from math import tanh
    def one(x, w, b, v, t):
        h = tanh(w*x + b)
        e = 2*(v*h - t)
        return [e*v*(1 - h*h)*x, e*v*(1 - h*h), e*h]
    def gradient(x, target, w, b, v):
        rows = [one(p, w, b, v, t) for p, t in zip(x, target)]
        return [sum(column){divide} for column in zip(*rows)]
    """,
        loss="squared-error",
        batch=3,
        reduction=reduction,
    )

# constant zero
add("constant zero", LINE, "def gradient(x, t, w, b):\n    return [0, 0]\n")
add(
    "constant zero",
    NEURON,
    """
    class Value:
        def __init__(self, data):
            self.data, self.grad = data, 0.0
    def gradient(x, w, b, v):
        leaves = {"w": Value(w), "b": Value(b), "v": Value(v)}
        return {name: leaf.grad for name, leaf in leaves.items()}
    """,
)
add(
    "constant zero",
    LAYER,
    """
    import numpy as np
    def gradient(x, W, b, v):
        return np.zeros_like(W), np.zeros_like(b), np.zeros_like(v)
    """,
)
add(
    "constant zero",
    WAVE,
    """
    def f(A, k, f, t):
        import math
        return A*math.exp(-k*t)*math.cos(f*t)
    def gradient(t, A, k, f):
        h = 1e-30
        base = globals()["f"](A, k, f, t)
        call = globals()["f"]
        return [(call(A + h, k, f, t) - base)/h, (call(A, k + h, f, t) - base)/h, (call(A, k, f + h, t) - base)/h]
    """,
    also=("step too small",),
)
add(
    "constant zero",
    DOUBLE,
    """
    def gradient(x1, x2, u1, u2, c):
        result = dict.fromkeys(["u1", "u2", "c"], 0.0)
        for name in result:
            result[name] *= x1
        return result
    """,
)

# swapped
add(
    "parameters swapped",
    LINE,
    """
    def gradient(x, t, w, b):
        e = 2*(w*x + b - t)
        return {"w": e, "b": e*x}
    """,
)
add(
    "parameters swapped",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        return [v*(1 - h*h)*x, h, v*(1 - h*h)]
    """,
)
add(
    "parameters swapped",
    WAVE,
    """
    from math import exp, cos, sin
    def gradient(t, A, k, f):
        e = exp(-k*t)
        return {"A": e*cos(f*t), "f": -A*t*e*cos(f*t), "k": -A*t*e*sin(f*t)}
    """,
)
add(
    "parameters swapped",
    DOUBLE,
    """
    import math
    def gradient(x1, x2, target, u1, u2, c):
        out = [0, 0, 0]
        for p, q, y in zip(x1, x2, target):
            e = 1/(1 + math.exp(-u1*p - u2*q - c)) - y
            out = [out[0] + e*q/3, out[1] + e*p/3, out[2] + e/3]
        return out
    """,
    loss="cross-entropy",
    batch=3,
)
add(
    "parameters swapped",
    "input x[2] = [1, 2]; parameter p[2] = [0.3, -0.5], q[2] = [1.5, 0.7]; o = dot(p, x)*dot(q, x)",
    """
    import numpy as np
    def gradient(x, p, q):
        return {"q": x*np.dot(q, x), "p": x*np.dot(p, x)}
    """,
    also=("wrong variable",),
)

# transposed result
add(
    "transposed result",
    "input x[2] = [1, -2]; parameter W[2,2] = [[0.3, 0.5], [-0.4, 1.2]]; v = W @ x; o = sum(v^2)",
    """
    import numpy as np
    def gradient(x, W):
        return {"W": np.outer(x, 2*(W @ x))}
    """,
    also=("wrong variable", "wrong point"),
)
add(
    "transposed result",
    "input x[2] = [1, -2]; parameter W[2,2] = [[0.3, 0.5], [-0.4, 1.2]], v[2] = [0.8, 0.3]; o = v @ tanh(W @ x)",
    """
    import numpy as np
    def gradient(x, W, v):
        h = np.tanh(W @ x)
        d = v*(1 - h*h)
        return [x[:, None]*d, h]
    """,
)
add(
    "transposed result",
    "parameter A[2,2] = [[1, 2], [3, 4]], B[2,2] = [[0.5, -1], [2, 1.5]]; C = A @ B; s = sum(C*C)",
    """
    def matmul(p, q):
        return [[sum(p[i][k]*q[k][j] for k in range(2)) for j in range(2)] for i in range(2)]
    def transpose(p):
        return [list(row) for row in zip(*p)]
    def gradient(A, B):
        g = [[2*c for c in row] for row in matmul(A, B)]
        return {"A": transpose(matmul(g, transpose(B))), "B": transpose(matmul(transpose(A), g))}
    """,
)
add(
    "transposed result",
    "input x[3] = [1, -2, 0.5]; parameter M[3,3] = [[1, 2, 0], [0.5, 1, -1], [2, 0.3, 1]], u[3] = [0.2, -0.4, 0.6]; q = sigmoid(u @ M @ x)",
    """
    import numpy as np
    def gradient(x, M, u):
        s = 1/(1 + np.exp(-(u @ M @ x)))
        g = s*(1 - s)
        return {"M": g*np.outer(u, x).T, "u": g*(M @ x)}
    """,
)
add(
    "transposed result",
    "input x[2] = [1, -2]; parameter W[2,2] = [[0.3, 0.5], [-0.4, 1.2]]; o = W @ x",
    """
    import numpy as np
    def gradient(x, target, W):
        g = np.zeros((2, 2))
        for a, t in zip(x, target):
            e = W @ a - t
            for i in range(2):
                for j in range(2):
                    g[j, i] += 2*e[i]*a[j]/len(x)
        return g
    """,
    loss="squared-error",
    batch=3,
)

# reciprocal
add(
    "reciprocal",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        d = v*(1 - h*h)
        return [1/(d*x), 1/d, 1/h]
    """,
)
add(
    "reciprocal",
    "parameter x = 4, y = 5; f = 2*x^2 + 3*y^2",
    "def gradient(x, y):\n    return {'x': 1/(4*x), 'y': 1/(6*y)}\n",
)
add(
    "reciprocal",
    WAVE,
    """
    import numpy as np
    def gradient(t, A, k, f):
        e = np.exp(-k*t)
        right = np.array([e*np.cos(f*t), -A*t*e*np.cos(f*t), -A*t*e*np.sin(f*t)])
        return 1/right
    """,
)
add(
    "reciprocal",
    "parameter a = 2, b = 3; y = a*log(b)",
    """
    import math
    def f(a, b):
        return a*math.log(b)
    def gradient(a, b):
        h = 1e-5
        return [2*h/(f(a + h, b) - f(a - h, b)), 2*h/(f(a, b + h) - f(a, b - h))]
    """,
)
add(
    "reciprocal",
    FIT,
    """
    def gradient(x, target, w, b):
        e = 2*(w*x + b - target)
        return {"w": 1/(e*x), "b": 1/e}
    """,
    loss="squared-error",
)

# rounded
add(
    "rounded",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        return [round(v*(1 - h*h)*x, 2), round(v*(1 - h*h), 2), round(h, 2)]
    """,
)
add(
    "rounded",
    DOUBLE,
    """
    import numpy as np
    def gradient(x1, x2, u1, u2, c):
        s = 1/(1 + np.exp(-(u1*x1 + u2*x2 + c)))
        return np.round(s*(1 - s)*np.array([x1, x2, 1]), 3)
    """,
)
add(
    "rounded",
    WAVE,
    """
    from math import exp, cos, sin
    def gradient(t, A, k, f):
        e = exp(-k*t)
        rows = {"A": e*cos(f*t), "k": -A*t*e*cos(f*t), "f": -A*t*e*sin(f*t)}
        return {name: float(f"{value:.3f}") for name, value in rows.items()}
    """,
)
add(
    "rounded",
    FIT,
    """
    def gradient(x, target, w, b):
        n = len(x)
        e = [w*p + b - q for p, q in zip(x, target)]
        return [round(sum(2*r*p for r, p in zip(e, x))/n, 2), round(sum(2*r for r in e)/n, 2)]
    """,
    loss="squared-error",
    batch=4,
)
add(
    "rounded",
    LAYER,
    """
    import numpy as np
    def gradient(x, W, b, v):
        h = np.tanh(W @ x + b)
        d = v*(1 - h*h)
        return {k: np.around(g, 2) for k, g in {"W": np.outer(d, x), "b": d, "v": h}.items()}
    """,
)
add(
    "rounded",
    WAVE,
    """
    from math import exp, cos, sin
    def gradient(t, A, k, f):
        e = round(exp(-k*t), 2)
        co, si = round(cos(f*t), 2), round(sin(f*t), 2)
        return e*co, -A*t*e*co, -A*t*e*si
    """,
)

# steps of differences
STEPS = {
    NEURON: ("from math import tanh\n", ("x", "w", "b", "v"), "v*tanh(w*x + b)", ("w", "b", "v")),
    WAVE: (
        "from math import exp, cos\n",
        ("t", "A", "k", "f"),
        "A*exp(-k*t)*cos(f*t)",
        ("A", "k", "f"),
    ),
    DOUBLE: (
        "from math import exp\n",
        ("x1", "x2", "u1", "u2", "c"),
        "1/(1 + exp(-(u1*x1 + u2*x2 + c)))",
        ("u1", "u2", "c"),
    ),
    "parameter a = 1.3, b = 0.7; y = exp(a*b) + sin(a)": (
        "from math import exp, sin\n",
        ("a", "b"),
        "exp(a*b) + sin(a)",
        ("a", "b"),
    ),
    "input x = 0.8; parameter p = 1.4, q = 2.2; y = x^p/(1 + q^2) + log(q*p)": (
        "from math import log\n",
        ("x", "p", "q"),
        "x**p/(1 + q**2) + log(q*p)",
        ("p", "q"),
    ),
}
for index, (graph, (imports, names, expression, wrt)) in enumerate(STEPS.items()):
    for kind, step in (
        ("difference step too large", (0.1, 0.05, 0.01, 0.2, 0.03)[index]),
        ("difference step too small", (1e-15, 3e-16, 1e-14, 1e-15, 2e-15)[index]),
    ):
        central = index % 2
        other, width = ("- h", "2*h") if central else ("+ 0*h", "h")
        add(
            kind,
            graph,
            imports
            + f"""
def value({", ".join(names)}):
    return {expression}
def gradient(**at):
    h = {step}
    out = {{}}
    for name in {wrt!r}:
        up, down = dict(at), dict(at)
        up[name] = at[name] + h
        down[name] = at[name] {other}
        out[name] = (value(**up) - value(**down))/({width})
    return out
""",
            also=(("constant zero",) if "small" in kind else ()),
        )
