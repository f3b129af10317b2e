"""Correct submissions for graphs with labels, and the ways in which a teacher may declare them."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from __future__ import annotations

from textwrap import dedent
from typing import Any

LABELS: list[tuple[str, str, str, dict[str, Any]]] = []


def add(kind: str, graph: str, code: str, **options: Any) -> None:
    LABELS.append((kind, dedent(graph), dedent(code), options))


WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("{y} = {v} in {set}", {}),
    ("{y} = {v}", {"domain": True}),
    ("{y} = {v}", {"keep": True}),
)


def add_declared(
    kind: str,
    name: str,
    shape: str,
    value: str,
    domain: str,
    given: Any,
    graph: str,
    codes: list[str],
    **options: Any,
) -> None:
    """Add each code under each way of declaring that a name is a label."""
    for template, extra in WAYS:
        declaration = template.format(y=name + shape, v=value, set=domain)
        more = (
            {"domain": {name: given}}
            if "domain" in extra
            else {"keep": name}
            if "keep" in extra
            else {}
        )
        for code in codes:
            add(kind, f"input {declaration}\n" + dedent(graph), code, **more, **options)


SOFTMAX = """
input x[2] = [1, -0.5]
parameter W[3,2] = [[0.2, -0.4], [0.7, 0.1], [-0.3, 0.5]], b[3] = [0.1, -0.2, 0.3]
p = softmax(W @ x + b)
L = -sum(y*log(p))
output L
"""
TEXTBOOK = [
    """
    import numpy as np
    def gradient(x, y, W, b):
        z = W @ x + b
        e = np.exp(z - z.max())
        delta = e/e.sum() - y
        return {"W": np.outer(delta, x), "b": delta}
    """,
    """
    from math import exp
    def gradient(x, y, W, b):
        z = [sum(w*v for w, v in zip(row, x)) + c for row, c in zip(W, b)]
        total = sum(exp(s) for s in z)
        d = [exp(s)/total - t for s, t in zip(z, y)]
        return [[e*v for v in x] for e in d], d
    """,
    """
    import numpy as np
    def gradient(values):
        x, y, W, b = (np.asarray(values[n]) for n in ("x", "y", "W", "b"))
        p = np.exp(W @ x + b)
        p /= p.sum()
        k = int(np.argmax(y))
        p[k] -= 1
        return [np.outer(p, x), p]
    """,
]
add_declared(
    "softmax cross-entropy", "y", "[3]", "[0, 1, 0]", "one-hot", "one-hot", SOFTMAX, TEXTBOOK
)
BATCHED = """
    import numpy as np
    def gradient(x, y, W, b):
        z = np.asarray(x) @ W.T + b
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        d = (p - np.asarray(y))/len(x)
        return d.T @ np.asarray(x), d.sum(0)
    """
for template, extra in WAYS[:2]:
    add(
        "softmax cross-entropy",
        "input " + template.format(y="y[3]", v="[0, 1, 0]", set="one-hot") + SOFTMAX,
        BATCHED,
        batch=4,
        **({"domain": {"y": "one-hot"}} if extra else {}),
    )
add(
    "softmax cross-entropy",
    "input y[3] = [0.2, 0.5, 0.3]" + SOFTMAX,
    """
    import numpy as np
    def gradient(x, y, W, b):
        p = np.exp(W @ x + b)
        p /= p.sum()
        d = p*np.sum(y) - y
        return np.outer(d, x), d
    """,
)
for batch in (0, 1, 4):
    add(
        "softmax cross-entropy",
        "input x[2] = [1, -0.5]; parameter W[3,2] = [[0.2, -0.4], [0.7, 0.1], [-0.3, 0.5]], b[3] = [0.1, -0.2, 0.3]; z = W @ x + b",
        """
    import numpy as np
    def gradient(x, target, W, b):
        x, t = np.asarray(x, float), np.asarray(target, float)
        X = x.reshape(-1, 2)
        T = t.reshape(-1, 3) if t.size == 3*len(X) and t.ndim == x.ndim else np.eye(3)[t.astype(int).reshape(-1)]
        Z = X @ np.asarray(W).T + b
        P = np.exp(Z - Z.max(1, keepdims=True))
        P /= P.sum(1, keepdims=True)
        D = (P - T)/len(X)
        return D.T @ X, D.sum(0)
    """,
        loss="softmax-cross-entropy",
        batch=batch,
    )

LOGISTIC = """
input x = 1.5
parameter w = 0.7, b = -0.3
p = sigmoid(w*x + b)
L = -y*log(p) - (1 - y)*log(1 - p)
output L
"""
BINARY = [
    """
    from math import exp
    def gradient(x, y, w, b):
        p = 1/(1 + exp(-(w*x + b)))
        if y == 1:
            d = p - 1
        else:
            d = p
        return {"w": d*x, "b": d}
    """,
    """
    import math
    def gradient(x, y, w, b):
        p = 1/(1 + math.exp(-w*x - b))
        dp = -1/p if y == 1 else 1/(1 - p)
        dz = dp*p*(1 - p)
        return [dz*x, dz]
    """,
    """
    import numpy as np
    def gradient(d):
        p = 1/(1 + np.exp(-(d["w"]*d["x"] + d["b"])))
        delta = np.where(d["y"] > 0.5, p - 1, p)
        return np.array([delta*d["x"], delta])
    """,
    """
    import math
    def loss(x, y, w, b):
        p = 1/(1 + math.exp(-w*x - b))
        return -math.log(p) if y == 1 else -math.log(1 - p)
    def gradient(x, y, w, b):
        h = 1e-5
        return [(loss(x, y, w + h, b) - loss(x, y, w - h, b))/(2*h), (loss(x, y, w, b + h) - loss(x, y, w, b - h))/(2*h)]
    """,
]
add_declared("binary cross-entropy", "y", "", "1", "{0, 1}", [0, 1], LOGISTIC, BINARY)
for code in BINARY:
    for batch in (0, 3):
        single = (
            dedent(code).replace("def gradient", "def one").replace("y)", "target)")
            if batch
            else dedent(code)
        )
        if batch:
            code_text = dedent(code).replace("def gradient", "def one") + dedent("""
            def gradient(x, target, w, b):
                rows = []
                for p, t in zip(x, target):
                    try:
                        row = one(p, t, w, b)
                    except TypeError:
                        row = one({"x": p, "y": t, "w": w, "b": b})
                    rows.append([row["w"], row["b"]] if isinstance(row, dict) else list(row))
                return [sum(column)/len(rows) for column in zip(*rows)]
            """)
        else:
            code_text = dedent(code).replace(
                "def gradient(x, y, w, b)", "def gradient(x, target, w, b, y=None)"
            )
            code_text = (
                code_text.replace(":\n", ":\n    y = target\n", 1)
                if "target" in code_text and "def loss" not in code_text
                else code_text
            )
            if "def loss" in code_text:
                code_text = (
                    code_text.replace("loss(x, y, w + h", "loss(x, target, w + h")
                    .replace("loss(x, y, w - h", "loss(x, target, w - h")
                    .replace("loss(x, y, w, b +", "loss(x, target, w, b +")
                    .replace("loss(x, y, w, b -", "loss(x, target, w, b -")
                )
            code_text = code_text.replace('d["y"]', 'd["target"]')
        add(
            "binary cross-entropy",
            "input x = 1.5; parameter w = 0.7, b = -0.3; p = sigmoid(w*x + b)",
            code_text,
            loss="cross-entropy",
            batch=batch,
        )
        add(
            "binary cross-entropy",
            "input x = 1.5; parameter w = 0.7, b = -0.3; z = w*x + b",
            code_text,
            loss="cross-entropy-logit",
            batch=batch,
        )

HINGE = """
input x = 1.2
parameter w = 0.8, b = 0.3
l = relu(1 - t*(w*x + b))
output l
"""
MARGINS = [
    "def gradient(x, t, w, b):\n    if t*(w*x + b) >= 1:\n        return [0, 0]\n    return [-t*x, -t]\n",
    """
    def gradient(x, t, w, b):
        s = w*x + b
        if t == 1:
            return {"w": -x if s < 1 else 0.0, "b": -1.0 if s < 1 else 0.0}
        return {"w": x if s > -1 else 0.0, "b": 1.0 if s > -1 else 0.0}
    """,
    "import numpy as np\ndef gradient(x, t, w, b):\n    return np.array([-t*x, -t])*(1 - t*(w*x + b) > 0)\n",
]
add_declared("hinge", "t", "", "1", "{-1, 1}", [-1, 1], HINGE, MARGINS)
for code in MARGINS:
    text = (
        dedent(code)
        .replace("(x, t, w, b)", "(x, target, w, b)")
        .replace("t*(", "target*(")
        .replace("-t*x, -t]", "-target*x, -target]")
        .replace("if t ==", "if target ==")
    )
    add("hinge", "input x = 1.2; parameter w = 0.8, b = 0.3; o = w*x + b", text, loss="hinge")
    add(
        "hinge",
        "input x = 1.2; parameter w = 0.8, b = 0.3; o = w*x + b",
        text.replace("gradient", "one")
        + dedent("""
        def gradient(x, target, w, b):
            rows = [one(p, q, w, b) for p, q in zip(x, target)]
            rows = [[r["w"], r["b"]] if isinstance(r, dict) else list(r) for r in rows]
            return [sum(column)/len(rows) for column in zip(*rows)]
        """),
        loss="hinge",
        batch=3,
    )
