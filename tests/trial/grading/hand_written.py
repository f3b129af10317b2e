"""Correct gradients written by hand, in the styles of the documentation."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from __future__ import annotations

from textwrap import dedent
from typing import Any

from tests.trial.grading.wrong_basics import DOUBLE, FIT, LAYER, LINE, NEURON, QUOTIENT, WAVE
from tests.trial.grading.wrong_chain import (
    DEEP,
    ENGINE,
    LECTURE,
    LOGISTIC,
    RECURRENT,
    RESIDUAL,
    SHARED,
    SOFT,
    TWO_PATHS,
)
from tests.trial.grading.wrong_rules import HINGE, RELU, RELU_LAYER, SQUARE

HAND_WRITTEN: list[tuple[str, str, dict[str, Any]]] = []
RIGHT_ENGINE = ENGINE.replace("parent.grad = node", "parent.grad += node")


def add(graph: str, code: str, **options: Any) -> None:
    HAND_WRITTEN.append((dedent(graph), dedent(code), options))


add(LINE, "def gradient(x, t, w, b):\n    e = 2*(w*x + b - t)\n    return {'w': e*x, 'b': e}\n")
add(LINE, "def gradient(x, t, w, b):\n    return (2*w*x*x + 2*b*x - 2*t*x, 2*w*x + 2*b - 2*t)\n")
add(
    LINE,
    "import numpy as np\ndef gradient(b, w, t, x):\n    A = np.array([[x*x, x], [x, 1]])\n    return 2*(A @ np.array([w, b]) - t*np.array([x, 1]))\n",
)
add(QUOTIENT, "def gradient(a, b, c):\n    return [1/b - 2*a*c, -a*b**-2, -a*a]\n")
add(
    WAVE,
    "from math import *\ndef gradient(t, A, k, f):\n    y = A*exp(-k*t)*cos(f*t)\n    return [y/A, -t*y, -t*A*exp(-k*t)*sin(f*t)]\n",
)
add(
    WAVE,
    "import numpy as np\ndef gradient(d):\n    z = d['A']*np.exp((-d['k'] + 1j*d['f'])*d['t'])\n    return {'A': z.real/d['A'], 'k': -d['t']*z.real, 'f': -d['t']*z.imag}\n",
)
add(
    NEURON,
    "from math import cosh, tanh\ndef gradient(x, w, b, v):\n    z = w*x + b\n    s = v/cosh(z)**2\n    return [s*x, s, tanh(z)]\n",
)
add(
    NEURON,
    "import math\ndef gradient(x, w, b, v):\n    e = math.exp(2*(w*x + b))\n    h = (e - 1)/(e + 1)\n    d = 4*v*e/(e + 1)**2\n    return d*x, d, h\n",
)
add(
    FIT,
    """
    def gradient(x, target, w, b):
        n = len(x)
        sxx = sum(p*p for p in x); sx = sum(x); sxy = sum(p*q for p, q in zip(x, target)); sy = sum(target)
        return [2*(w*sxx + b*sx - sxy)/n, 2*(w*sx + b*n - sy)/n]
    """,
    loss="squared-error",
    batch=4,
)
add(
    FIT,
    "import numpy as np\ndef gradient(x, target, w, b):\n    e = w*np.array(x) + b - np.array(target)\n    return np.sum(e*x), np.sum(e)\n",
    loss="half-squared-error",
    batch=5,
    reduction="sum",
)
add(
    FIT,
    "import numpy as np\ndef gradient(x, target, w, b):\n    s = np.sign(w*np.array(x) + b - np.array(target))\n    return np.mean(s*x), np.mean(s)\n",
    loss="absolute-error",
    batch=4,
)
add(
    FIT,
    "def gradient(x, target, w, b):\n    e = w*x + b - target\n    d = max(-1, min(1, e))\n    return [d*x, d]\n",
    loss="huber",
)
add(
    DOUBLE,
    "from math import cosh\ndef gradient(x1, x2, u1, u2, c):\n    z = u1*x1 + u2*x2 + c\n    d = 0.25/cosh(z/2)**2\n    return {'c': d, 'u2': d*x2, 'u1': d*x1}\n",
)
add(
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        cache = []
        for row in x:
            z = W @ row + b
            cache.append((row, z, np.tanh(z)))
        grads = {"W": np.zeros_like(W), "b": np.zeros_like(b), "v": np.zeros_like(v)}
        for (row, z, h), t in zip(reversed(cache), reversed(list(target))):
            e = 2*(h @ v - t)/len(cache)
            dz = e*v/np.cosh(z)**2
            grads["W"] += dz[:, None]*row[None, :]
            grads["b"] += dz
            grads["v"] += e*h
        return grads
    """,
    loss="squared-error",
    batch=4,
)
add(
    LAYER,
    "from math import tanh\ndef gradient(x, W, b, v):\n    h = [tanh(sum(p*q for p, q in zip(r, x)) + s) for r, s in zip(W, b)]\n    d = [u*(1 - k*k) for u, k in zip(v, h)]\n    return [[[e*p for p in x] for e in d], d, h]\n",
)
add(
    LAYER,
    "import numpy as np\ndef gradient(x, W, b, v):\n    h = np.tanh(W @ x + b)\n    d = v*(1 - h*h)\n    return np.concatenate([np.outer(d, x).ravel(), d, h])\n",
)
add(
    DEEP,
    """
    from math import exp, tanh
    def gradient(x, a, b, c):
        p = 1/(1 + exp(-a*x)); q = tanh(b*p)
        dq = c*(1 - q*q)
        return {"a": dq*b*p*(1 - p)*x, "b": dq*p, "c": q}
    """,
)
add(
    LECTURE,
    "def gradient(xa, ab, bc, cd, ac):\n    xx = xa**2\n    xz = (ab + bc)*xx + ac*xa\n    u = 3*xz**2\n    return [u*xx, u*xx, xx, u*xa]\n",
)
add(
    LECTURE,
    "def gradient(xa, ab, bc, cd, ac):\n    xz = (ab + bc)*xa**2 + ac*xa\n    return 2*cd*xa + 3*xz**2*(2*(ab + bc)*xa + ac)\n",
    wrt="xa",
)
add(
    LOGISTIC,
    "from math import exp\ndef gradient(x, y, w, b):\n    p = 1/(1 + exp(-w*x - b))\n    d = (p - y)*(p - p*p)\n    return d*x, d\n",
)
add(
    TWO_PATHS,
    "def gradient(a, w1, w2, w3, w4):\n    return {'w1': -w3*a, 'w2': -w4*a, 'w3': -w1*a, 'w4': -w2*a}\n",
)
add(
    TWO_PATHS,
    "def gradient(values):\n    return -(values['w1']*values['w3'] + values['w2']*values['w4'])\n",
    wrt="a",
)
add(
    SHARED,
    RIGHT_ENGINE
    + """
    def gradient(a, b):
        a, b = Value(a), Value(b)
        c = a*b
        ((c.sin() + c*c)*a).backward()
        return [a.grad, b.grad]
    """,
)
add(
    RESIDUAL,
    RIGHT_ENGINE
    + """
    def gradient(x, w, u):
        w, u = Value(w), Value(u)
        h = (w*x).tanh()
        (h + u*h*w).backward()
        return {"w": w.grad, "u": u.grad}
    """,
)
add(
    RECURRENT,
    """
    from math import tanh
    def gradient(x1, x2, x3, w, u):
        h, dw, du = 0, 0, 0
        for x in (x1, x2, x3):
            new = tanh(w*h + u*x)
            slope = 1 - new**2
            dw, du = slope*(h + w*dw), slope*(x + w*du)
            h = new
        return dw, du
    """,
)
add(
    SOFT,
    "from math import exp\ndef gradient(x, a, b):\n    s = 1/(1 + exp((b - a)*x))\n    return s*(1 - s)*x, -s*(1 - s)*x\n",
)
add(
    SQUARE,
    """
    import numpy as np
    def gradient(x, target, W, V, u):
        H = np.tanh(x @ W.T); G = np.tanh(H @ V.T)
        e = 2*(G @ u - target)/len(x)
        dG = np.outer(e, u)*(1 - G*G)
        dH = (dG @ V)*(1 - H*H)
        return {"W": dH.T @ x, "V": dG.T @ H, "u": G.T @ e}
    """,
    loss="squared-error",
    batch=4,
)
add(
    RELU,
    "def gradient(x, w, b, v):\n    z = w*x + b\n    return [v*x, v, z] if z > 0 else [0, 0, 0]\n",
)
add(
    RELU,
    "def gradient(x, w, b, v):\n    on = w*x + b >= 0\n    return {'w': v*x*on, 'b': v*on, 'v': (w*x + b)*on}\n",
)
add(
    HINGE,
    "def gradient(x, t, w, b):\n    on = 1 - t*(w*x + b) > 0\n    return {'w': -t*x*on, 'b': -t*on}\n",
)
add(
    RELU_LAYER,
    """
    import numpy as np
    def gradient(x, y, W1, w2):
        z = W1 @ x
        e = 2*(w2 @ np.maximum(z, 0) - y)
        return {"W1": np.outer(e*w2*(z > 0), x), "w2": e*np.maximum(z, 0)}
    """,
)
add(
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = max(a*x, b)",
    "def gradient(x, a, b):\n    return (x, 0) if a*x > b else (0, 1)\n",
)
add(
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = min(a*x, b*x)",
    "def gradient(x, a, b):\n    return [x, 0.0] if a*x < b*x else [0.0, x]\n",
)
add(
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = clamp(a*x + b, -1, 1)",
    "import numpy as np\ndef gradient(x, a, b):\n    on = float(abs(a*x + b) < 1)\n    return np.array([x, 1])*on\n",
)
add(
    "input x = 1.2; parameter w = 0.8, b = -0.3; y = where(less(x, 0), w*x, b*x)",
    "def gradient(x, w, b):\n    return {'w': x*(x < 0), 'b': x*(x >= 0)}\n",
)
add(
    "input x = 1.2; parameter w = 0.8, b = -0.3; y = leaky_relu(w*x + b)",
    "def gradient(x, w, b):\n    s = 1 if w*x + b > 0 else 0.01\n    return s*x, s\n",
)
add("parameter x = -1.5; y = abs(x)*x^2", "def gradient(x):\n    return 3*x*abs(x)\n")
add(
    "parameter x = -1.5, k = 0.4; y = abs(x - k)",
    "import math\ndef gradient(x, k):\n    s = math.copysign(1, x - k)\n    return [s, -s]\n",
)
add(
    "parameter x = 1.7; y = x^x",
    "from math import log\ndef gradient(x):\n    return x**x*(log(x) + 1)\n",
)
add(
    "parameter A[2,2] = [[1, 2], [3, 4]], B[2,2] = [[0.5, -1], [2, 1.5]]; C = A @ B; s = sum(C*C)",
    "import numpy as np\ndef gradient(A, B):\n    return {'A': 2*A @ B @ B.T, 'B': 2*A.T @ A @ B}\n",
)
add(
    "parameter a[3] = [0.5, -1.5, 2], c = 0.8; s = c*max(a)",
    "import numpy as np\ndef gradient(a, c):\n    g = np.zeros(3)\n    g[np.argmax(a)] = c\n    return g, a.max()\n",
)
add(
    "parameter a[3] = [0.5, -1.5, 2]; s = norm(a)",
    "import numpy as np\ndef gradient(a):\n    return a/np.sqrt(a @ a)\n",
)
