"""Wrong gradients: rules of differentiation, networks and training habits."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from tests.trial.grading.records import Collection

RULES = Collection()
add = RULES.add

FIT = "input x = 2; parameter w = 0.5, b = 1; o = w*x + b"
NEURON = "input x = 1.5; parameter w = 0.6, b = -0.3, v = 1.2; h = tanh(w*x + b); o = v*h"
DOUBLE = "input x1 = 0.5, x2 = -1.5; parameter u1 = 0.4, u2 = -0.7, c = 0.3; o = sigmoid(u1*x1 + u2*x2 + c)"
LAYER = """
input x[3] = [0.5, -1, 2]
parameter W[2,3] = [[0.4, -0.3, 0.2], [0.1, 0.6, -0.5]], b[2] = [0.1, -0.2], v[2] = [1.1, -0.7]
o = v @ tanh(W @ x + b)
"""
SQUARE = """
input x[2] = [0.5, -1]
parameter W[2,2] = [[0.4, -0.3], [0.9, 0.6]], V[2,2] = [[0.2, 0.7], [-0.5, 0.3]], u[2] = [1, -2]
h = tanh(W @ x)
g = tanh(V @ h)
o = u @ g
"""
RELU_LAYER = """
input x[2] = [1, 2], y = 1
parameter W1[3,2] = [[1, 1], [0.5, -2], [2, 0.25]], w2[3] = [1, 3, -2]
h = W1 @ x
y_pred = w2 @ relu(h)
L = (y - y_pred)^2
"""
RELU = "input x = 1.2; parameter w = 0.8, b = 0.3, v = 1.5; h = relu(w*x + b); o = v*h"
HINGE = "input x = 1.2, t = 1; parameter w = 0.8, b = 0.3; l = relu(1 - t*(w*x + b))"

# (p - y) p (1 - p) for cross-entropy
KIND = "sigmoid derivative kept in cross-entropy"
add(
    KIND,
    DOUBLE,
    """
    from math import exp
    def gradient(x1, x2, target, u1, u2, c):
        p = 1/(1 + exp(-(u1*x1 + u2*x2 + c)))
        d = (p - target)*p*(1 - p)
        return [d*x1, d*x2, d]
    """,
    loss="cross-entropy",
)
add(
    KIND,
    DOUBLE,
    """
    import numpy as np
    def gradient(x1, x2, target, u1, u2, c):
        x1, x2, y = map(np.array, (x1, x2, target))
        p = 1/(1 + np.exp(-(u1*x1 + u2*x2 + c)))
        d = (p - y)*p*(1 - p)
        return {"u1": (d*x1).mean(), "u2": (d*x2).mean(), "c": d.mean()}
    """,
    loss="cross-entropy",
    batch=4,
)
add(
    KIND,
    "input x = 2, y = 0.8; parameter w = 0.5, b = -1; p = sigmoid(w*x + b); l = -y*log(p) - (1 - y)*log(1 - p)",
    """
    import math
    def gradient(x, y, w, b):
        p = 1/(1 + math.exp(-w*x - b))
        return {"w": (p - y)*p*(1 - p)*x, "b": (p - y)*p*(1 - p)}
    """,
)
add(
    KIND,
    "input x[2] = [1, -2]; parameter w[2] = [0.3, 0.5], b = 0.1; p = sigmoid(w @ x + b)",
    """
    import numpy as np
    def gradient(x, target, w, b):
        p = 1/(1 + np.exp(-(x @ w + b)))
        delta = (p - target)*p*(1 - p)
        return [x.T @ delta/len(x), delta.mean()]
    """,
    loss="cross-entropy",
    batch=5,
)
add(
    KIND,
    "input x = 0.4; parameter a = 0.8, b = 0.2, v = 1.3, c = -0.4; h = tanh(a*x + b); q = sigmoid(v*h + c)",
    """
    import math
    def forward(x, a, b, v, c):
        h = math.tanh(a*x + b)
        return h, 1/(1 + math.exp(-(v*h + c)))
    def gradient(x, target, a, b, v, c):
        h, q = forward(x, a, b, v, c)
        d = (q - target)*q*(1 - q)
        dh = d*v*(1 - h*h)
        return [dh*x, dh, d*h, d]
    """,
    loss="cross-entropy",
)
add(
    KIND,
    "input x = 2; parameter w = 0.5, b = -1; z = w*x + b",
    """
    import math
    def gradient(x, target, w, b):
        p = 1/(1 + math.exp(-w*x - b))
        d = (p - target)*p*(1 - p)
        return d*x, d
    """,
    loss="cross-entropy-logit",
)

# tanh
for formula in ("1 - h", "1 + h**2"):
    add(
        "tanh derivative",
        NEURON,
        f"""
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        return [v*({formula})*x, v*({formula}), h]
    """,
    )
    add(
        "tanh derivative",
        LAYER,
        f"""
    import numpy as np
    def gradient(x, target, W, b, v):
        h = np.tanh(x @ W.T + b)
        e = 2*(h @ v - target)/len(x)
        d = np.outer(e, v)*({formula})
        return {{"W": d.T @ x, "b": d.sum(0), "v": h.T @ e}}
    """,
        loss="squared-error",
        batch=4,
    )
    add(
        "tanh derivative",
        "parameter a = 0.5, k = 2; u = a*k; y = tanh(u) + a^2",
        f"""
    import math
    class Tanh:
        def forward(self, z):
            self.h = math.tanh(z)
            return self.h
        def backward(self, grad):
            h = self.h
            return grad*({formula})
    def gradient(a, k):
        node = Tanh()
        node.forward(a*k)
        g = node.backward(1.0)
        return {{"a": g*k + 2*a, "k": g*a}}
    """,
    )

# a^(bx)
KIND = "exponential without ln a"
add(KIND, "parameter x = 1.3; y = 2^x", "def gradient(x):\n    return 2**x\n")
add(
    KIND,
    "input a = 2.5; parameter b = 0.6, x = 1.4; y = a^(b*x)",
    "def gradient(a, b, x):\n    return [a**(b*x)*x, a**(b*x)*b]\n",
)
add(
    KIND,
    "input t = 0.8; parameter A = 3, k = 0.7; y = A*10^(-k*t)",
    "def gradient(t, A, k):\n    return {'A': 10**(-k*t), 'k': -A*t*10**(-k*t)}\n",
)
add(
    KIND,
    "parameter a = 1.8, u = 0.9; y = a^(2*u) + u",
    "import numpy as np\ndef gradient(a, u):\n    return np.array([2*u*a**(2*u - 1), 2*a**(2*u) + 1])\n",
)
add(
    KIND,
    "parameter x = 0.7, c = 1.5; s = sin(x); y = c*3^s",
    """
    from math import sin, cos
    def gradient(d):
        s = sin(d["x"])
        return [d["c"]*3**s*cos(d["x"]), 3**s]
    """,
)

# product rule
add(
    "product rule",
    "parameter x = 1.2; y = x^2*sin(x)",
    "from math import cos\ndef gradient(x):\n    return 2*x*cos(x)\n",
)
add(
    "product rule",
    "parameter x = 1.4; u = x^3; v = exp(-x); y = u*v",
    "from math import exp\ndef gradient(x):\n    return -3*x*x*exp(-x)\n",
)
add(
    "product rule",
    "input k = 0.8; parameter a = 1.5, b = 0.6; p = log(a*k + 1); q = cos(a) + b; y = p*q",
    """
    import math
    def gradient(k, a, b):
        return {"a": k/(a*k + 1)*-math.sin(a), "b": math.log(a*k + 1)}
    """,
)
add(
    "product rule",
    "parameter x = 0.5, k = 1.6; y = tanh(x)*(k*x^2 + 1)",
    """
    import numpy as np
    def gradient(x, k):
        f, df = np.tanh(x), 1 - np.tanh(x)**2
        g, dg = k*x*x + 1, 2*k*x
        return np.array([df*dg, f*x*x])
    """,
)
add(
    "product rule",
    "parameter t = 0.9; f = sin(2*t); g = exp(t); h = f*g",
    """
    from math import cos, exp
    def gradient(t):
        derivative = {"f": 2*cos(2*t), "g": exp(t)}
        return derivative["f"]*derivative["g"]
    """,
)

# sin left as sin
add(
    "derivative of sin",
    "parameter x = 1; y = sin(x)",
    "from math import sin\ndef gradient(x):\n    return sin(x)\n",
)
add(
    "derivative of sin",
    "parameter w = 0.4, b = 0.3; xs = 3*w + b; y = sin(xs)",
    "import math\ndef gradient(w, b):\n    s = math.sin(3*w + b)\n    return {'w': 3*s, 'b': s}\n",
)
add(
    "derivative of sin",
    "input t = 0.6; parameter A = 2, f = 1.4; y = A*sin(f*t)",
    "import numpy as np\ndef gradient(t, A, f):\n    return np.sin(f*t), A*t*np.sin(f*t)\n",
)
add(
    "derivative of sin",
    "parameter a = 0.5, b = 0.75; u = a*b; v = log(u); w = sin(b); y = v*w",
    """
    import math
    def gradient(a, b):
        v, w = math.log(a*b), math.sin(b)
        return [w/a, w/b + v*math.sin(b)]
    """,
)
add(
    "derivative of sin",
    "input x[3] = [0.3, 0.8, 1.4]; parameter k[3] = [1, 2, 0.5]; s = sum(sin(k*x))",
    """
    from math import sin
    def gradient(x, k):
        return [sin(p*q)*p for p, q in zip(x, k)]
    """,
)

# degrees
add(
    "degrees instead of radians",
    "parameter x = 1; y = sin(x)",
    "import math\ndef gradient(x):\n    return math.cos(math.radians(x))\n",
)
add(
    "degrees instead of radians",
    "parameter w = 0.4, b = 0.3; xs = 3*w + b; y = sin(xs)",
    "import numpy as np\ndef gradient(w, b):\n    c = np.cos(np.deg2rad(3*w + b))\n    return [3*c, c]\n",
)
add(
    "degrees instead of radians",
    "input t = 0.6; parameter A = 2, f = 1.4; y = A*cos(f*t)",
    """
    from math import cos, sin, pi
    def gradient(t, A, f):
        angle = f*t*pi/180
        return {"A": cos(angle), "f": -A*t*sin(angle)}
    """,
)
add(
    "degrees instead of radians",
    "parameter a = 0.7, b = 1.2; y = sin(a)*cos(b)",
    """
    from math import radians, sin, cos
    def gradient(a, b):
        a, b = radians(a), radians(b)
        return cos(a)*cos(b), -sin(a)*sin(b)
    """,
)
add(
    "degrees instead of radians",
    "parameter x = 0.5, c = 1.5; y = c*tan(x)",
    "import math\ndef gradient(x, c):\n    r = x*math.pi/180\n    return [c/math.cos(r)**2, math.tan(r)]\n",
)

# wrong variable
add(
    "wrong variable",
    "input x = 1.3; parameter w = 0.7; y = w^2*x^3",
    "def gradient(x, w):\n    return 3*x**2*w**2\n",
)
add("wrong variable", FIT, "def gradient(x, w, b):\n    return {'w': w, 'b': 1}\n")
add(
    "wrong variable",
    "input t = 0.6; parameter A = 2, k = 1.3; y = A*exp(-k*t)",
    "from math import exp\ndef gradient(t, A, k):\n    return [exp(-k*t), -A*k*exp(-k*t)]\n",
)
add(
    "wrong variable",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        return [v*(1 - h*h)*w, v*(1 - h*h), h]
    """,
)
add(
    "wrong variable",
    "input x[3] = [0.5, -1, 2]; parameter w[3] = [0.3, 0.8, -0.6]; o = tanh(w @ x)",
    """
    import numpy as np
    def gradient(x, w):
        return (1 - np.tanh(w @ x)**2)*w
    """,
)
add(
    "wrong variable",
    "input x = 0.8; parameter a = 1.4, c = 0.3; y = sin(a*x) + c*x",
    "import math\ndef gradient(x, a, c):\n    return {'a': a*math.cos(a*x), 'c': x}\n",
)

# weight decay
add(
    "weight decay added",
    FIT,
    """
    def gradient(x, target, w, b):
        e = 2*(w*x + b - target)
        return [e*x + 0.1*w, e + 0.1*b]
    """,
    loss="squared-error",
)
add(
    "weight decay added",
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        e = w*np.array(x) + b - np.array(target)
        return {"w": (2*e*x).mean() + 2*0.01*w, "b": (2*e).mean() + 2*0.01*b}
    """,
    loss="squared-error",
    batch=4,
)
add(
    "weight decay added",
    LAYER,
    """
    import numpy as np
    def gradient(x, W, b, v):
        h = np.tanh(W @ x + b)
        d = v*(1 - h*h)
        lam = 0.05
        return np.outer(d, x) + lam*W, d + lam*b, h + lam*v
    """,
)
add(
    "weight decay added",
    DOUBLE,
    """
    import math
    LAMBDA = 0.5
    def gradient(x1, x2, target, u1, u2, c):
        p = 1/(1 + math.exp(-(u1*x1 + u2*x2 + c)))
        return [(p - target)*x1 + LAMBDA*u1, (p - target)*x2 + LAMBDA*u2, p - target + LAMBDA*c]
    """,
    loss="cross-entropy",
)
add(
    "weight decay added",
    NEURON,
    """
    from math import tanh
    def gradient(x, w, b, v):
        h = tanh(w*x + b)
        grads = {"w": v*(1 - h*h)*x, "b": v*(1 - h*h), "v": h}
        for name, value in (("w", w), ("v", v)):
            grads[name] += 1e-2*value
        return grads
    """,
)

# weight updated before its use
KIND = "weight updated before its use"
add(
    KIND,
    NEURON,
    """
    from math import tanh
    def gradient(x, target, w, b, v, rate=0.1):
        h = tanh(w*x + b)
        e = 2*(v*h - target)
        dv = e*h
        v -= rate*dv
        dz = e*v*(1 - h*h)
        return {"w": dz*x, "b": dz, "v": dv}
    """,
    loss="squared-error",
)
add(
    KIND,
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        h = np.tanh(x @ W.T + b)
        e = 2*(h @ v - target)/len(x)
        gv = h.T @ e
        v = v - 0.01*gv
        d = np.outer(e, v)*(1 - h*h)
        return d.T @ x, d.sum(axis=0), gv
    """,
    loss="squared-error",
    batch=4,
)
add(
    KIND,
    "input x = 0.8; parameter a = 0.9, b = 1.4, c = -0.7; p = sigmoid(a*x); q = tanh(b*p); o = c*q",
    """
    from math import exp, tanh
    def gradient(x, target, a, b, c):
        rate = 0.5
        p = 1/(1 + exp(-a*x)); q = tanh(b*p)
        e = c*q - target
        dc = e*q
        c = c - rate*dc
        dq = e*c*(1 - q*q)
        db = dq*p
        b = b - rate*db
        return [dq*b*p*(1 - p)*x, db, dc]
    """,
    loss="half-squared-error",
)
add(
    KIND,
    SQUARE,
    """
    import numpy as np
    def gradient(x, target, W, V, u):
        h = np.tanh(W @ x); g = np.tanh(V @ h)
        e = 2*(u @ g - target)
        gu = e*g
        u = u - 0.1*gu
        dg = e*u*(1 - g*g)
        gV = np.outer(dg, h)
        V = V - 0.1*gV
        dh = V.T @ dg*(1 - h*h)
        return {"W": np.outer(dh, x), "V": gV, "u": gu}
    """,
    loss="squared-error",
)
add(
    KIND,
    "input i = 0.5; parameter w = 0.3, u = 0.7; h = sigmoid(w*i); o = sigmoid(u*h)",
    """
    from math import exp
    def gradient(i, target, w, u):
        h = 1/(1 + exp(-w*i)); o = 1/(1 + exp(-u*h))
        delta = (o - target)*o*(1 - o)
        new_u = u - 0.5*delta*h
        return [delta*new_u*h*(1 - h)*i, delta*h]
    """,
    loss="half-squared-error",
)

# bias forgotten in the forward pass
add(
    "bias forgotten",
    LAYER,
    """
    import numpy as np
    def gradient(x, W, b, v):
        h = np.tanh(W @ x)
        d = v*(1 - h*h)
        return [np.outer(d, x), d, h]
    """,
)
add(
    "bias forgotten",
    NEURON,
    "from math import tanh\ndef gradient(x, w, b, v):\n    h = tanh(w*x)\n    return v*(1 - h*h)*x, v*(1 - h*h), h\n",
)
add(
    "bias forgotten",
    FIT,
    """
    def gradient(x, target, w, b):
        e = [2*(w*p - q)/len(x) for p, q in zip(x, target)]
        return {"w": sum(r*p for r, p in zip(e, x)), "b": sum(e)}
    """,
    loss="squared-error",
    batch=4,
)
add(
    "bias forgotten",
    DOUBLE,
    """
    import numpy as np
    def gradient(x1, x2, target, u1, u2, c):
        p = 1/(1 + np.exp(-(u1*x1 + u2*x2)))
        return (p - target)*np.array([x1, x2, 1])
    """,
    loss="cross-entropy",
)
add(
    "bias forgotten",
    "input x = 1.2; parameter w = 0.8, b = 0.3, v = 1.5, c = -0.4; h = sigmoid(w*x + b); o = sigmoid(v*h + c)",
    """
    import math
    def s(z):
        return 1/(1 + math.exp(-z))
    def gradient(x, w, b, v, c):
        h = s(w*x + b)
        o = s(v*h)
        d = o*(1 - o)
        return {"w": d*v*h*(1 - h)*x, "b": d*v*h*(1 - h), "v": d*h, "c": d}
    """,
)

# relu(z) for its derivative
KIND = "relu(z) for its derivative"
add(KIND, RELU, "def gradient(x, w, b, v):\n    h = max(0, w*x + b)\n    return [v*h*x, v*h, h]\n")
add(
    KIND,
    RELU_LAYER,
    """
    import numpy as np
    def gradient(x, y, W1, w2):
        r = np.maximum(0, W1 @ x)
        e = 2*(w2 @ r - y)
        return {"W1": np.outer(e*w2*r, x), "w2": e*r}
    """,
)
add(
    KIND,
    HINGE,
    "def gradient(x, t, w, b):\n    m = max(0, 1 - t*(w*x + b))\n    return [-t*x*m, -t*m]\n",
)
add(
    KIND,
    "input x1 = 0.7, x2 = -0.4; parameter a = 1.1, b = 0.6, c = 0.2; z = a*x1 + b*x2 + c; o = relu(z)",
    """
    import numpy as np
    def relu(z):
        return np.maximum(z, 0)
    def gradient(x1, x2, target, a, b, c):
        z = a*np.array(x1) + b*np.array(x2) + c
        d = 2*(relu(z) - np.array(target))*relu(z)/len(z)
        return [np.sum(d*x1), np.sum(d*x2), np.sum(d)]
    """,
    loss="squared-error",
    batch=6,
)
add(
    KIND,
    "input x = 0.9; parameter a = 1.2, b = -0.5, c = 0.8; h = relu(a*x + b); g = relu(c*h + 1); o = g^2",
    """
    class Relu:
        def forward(self, z):
            self.out = z if z > 0 else 0.0
            return self.out
        def backward(self, up):
            return up*self.out
    def gradient(x, a, b, c):
        first, second = Relu(), Relu()
        h = first.forward(a*x + b)
        g = second.forward(c*h + 1)
        dg = second.backward(2*g)
        dh = first.backward(dg*c)
        return dh*x, dh, dg*h
    """,
)

# relu without the mask, and the same of other kinks
KIND = "relu without the mask"
add(KIND, RELU, "def gradient(x, w, b, v):\n    return {'w': v*x, 'b': v, 'v': w*x + b}\n")
add(KIND, RELU, "def gradient(x, w, b, v):\n    h = max(0.0, w*x + b)\n    return [v*x, v, h]\n")
add(
    "any number where inactive",
    RELU,
    "def gradient(x, w, b, v):\n    z = w*x + b\n    on = z > 0\n    return [v*x if on else 99, v*on, z*on]\n",
)
add(KIND, HINGE, "def gradient(x, t, w, b):\n    return {'w': -t*x, 'b': -t}\n")
add(
    KIND,
    RELU_LAYER,
    """
    import numpy as np
    def gradient(x, y, W1, w2):
        r = np.maximum(0, W1 @ x)
        e = 2*(w2 @ r - y)
        return np.outer(e*w2, x), e*r
    """,
)
add(
    KIND,
    "input x[2] = [1, 2]; parameter W[3,2] = [[1, 1], [0.5, -2], [2, 0.25]], b[3] = 0.1, v[3] = [1, 3, -2]; o = v @ relu(W @ x + b)",
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        h = np.maximum(x @ W.T + b, 0)
        e = 2*(h @ v - target)/len(x)
        d = np.outer(e, v)
        return d.T @ x, d.sum(0), h.T @ e
    """,
    loss="squared-error",
    batch=4,
)
add(
    KIND,
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = max(a*x, b)",
    "def gradient(x, a, b):\n    return [x, 1]\n",
)
add(
    KIND,
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = max(a*x, b)",
    "def gradient(x, a, b):\n    return [x, 0]\n",
)
add(
    KIND,
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = clamp(a*x + b, -1, 1)",
    "def gradient(x, a, b):\n    return [x, 1]\n",
)
add(
    KIND,
    "input x = 1.2; parameter w = 0.8, b = -0.3; y = where(less(x, 0), w*x, b*x)",
    "def gradient(x, w, b):\n    return {'w': x, 'b': x}\n",
)
add(
    KIND,
    "input x = 1.2; parameter w = 0.8, b = -0.3; y = leaky_relu(w*x + b)",
    "def gradient(x, w, b):\n    return [x, 1]\n",
)
add(
    KIND,
    "input x = 1.2; parameter w = 0.8, b = -0.3; y = min(w*x, b*x)",
    "def gradient(x, w, b):\n    return [x*(w < b), x]\n",
)
add(
    KIND,
    FIT,
    """
    def gradient(x, target, w, b):
        return [sum(-t*p for p, t in zip(x, target))/len(x), sum(-t for t in target)/len(x)]
    """,
    loss="hinge",
    batch=4,
)

add(
    "any number where inactive",
    HINGE,
    "def gradient(x, t, w, b):\n    m = 1 - t*(w*x + b)\n    return [-t*x if m > 0 else -7*x, -t if m > 0 else 0]\n",
)
add(
    "any number where inactive",
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = max(a*x, b)",
    "def gradient(x, a, b):\n    return [x if a*x > b else 5, 1 if b > a*x else 0]\n",
)
add(
    "any number where inactive",
    "input x = 1.2; parameter a = 0.8, b = -0.3; y = clamp(a*x + b, -1, 1)",
    "def gradient(x, a, b):\n    z = a*x + b\n    return [x, 1] if -1 < z < 1 else [z, 0]\n",
)
add(
    "any number where inactive",
    "input x[2] = [1, -2]; parameter w[2] = [0.3, -0.5], c = 1; o = c*sum(relu(w*x))",
    "import numpy as np\ndef gradient(x, w, c):\n    on = w*x > 0\n    return [np.where(on, c*x, 3.0), np.sum(w*x*on)]\n",
)

# last sample left out
KIND = "last sample left out"
add(
    KIND,
    FIT,
    """
    def gradient(x, target, w, b):
        dw = db = 0
        for i in range(len(x) - 1):
            e = 2*(w*x[i] + b - target[i])
            dw += e*x[i]
            db += e
        return dw/len(x), db/len(x)
    """,
    loss="squared-error",
    batch=4,
)
add(
    KIND,
    DOUBLE,
    """
    import numpy as np
    def gradient(x1, x2, target, u1, u2, c):
        X = np.array([x1, x2, [1]*len(x1)])[:, :-1]
        y = np.array(target)[:-1]
        p = 1/(1 + np.exp(-(np.array([u1, u2, c]) @ X)))
        return X @ (p - y)/len(y)
    """,
    loss="cross-entropy",
    batch=5,
)
add(
    KIND,
    LAYER,
    """
    import numpy as np
    def gradient(x, target, W, b, v):
        x, target = x[:-1], target[:-1]
        h = np.tanh(x @ W.T + b)
        e = 2*(h @ v - target)
        d = np.outer(e, v)*(1 - h*h)
        return d.T @ x, d.sum(0), h.T @ e
    """,
    loss="squared-error",
    batch=3,
    reduction="sum",
)
add(
    KIND,
    NEURON,
    """
    from math import tanh
    def gradient(x, target, w, b, v):
        total = {"w": 0, "b": 0, "v": 0}
        i = 0
        while i < len(x) - 1:
            h = tanh(w*x[i] + b)
            e = (v*h - target[i])/len(x)
            total["w"] += e*v*(1 - h*h)*x[i]
            total["b"] += e*v*(1 - h*h)
            total["v"] += e*h
            i += 1
        return total
    """,
    loss="half-squared-error",
    batch=6,
)
add(
    KIND,
    FIT,
    """
    import numpy as np
    def gradient(x, target, w, b):
        x, t = np.array(x)[:-1], np.array(target)[:-1]
        e = 2*(w*x + b - t)
        return [np.mean(e*x), np.mean(e)]
    """,
    loss="squared-error",
    batch=4,
)

# transposed weights in the backward pass
KIND = "transposed weights"
add(
    KIND,
    SQUARE,
    """
    import numpy as np
    def gradient(x, W, V, u):
        h = np.tanh(W @ x); g = np.tanh(V @ h)
        dg = u*(1 - g*g)
        dh = (V @ dg)*(1 - h*h)
        return np.outer(dh, x), np.outer(dg, h), g
    """,
)
add(
    KIND,
    SQUARE,
    """
    import numpy as np
    def gradient(x, target, W, V, u):
        H = np.tanh(x @ W.T); G = np.tanh(H @ V.T)
        e = 2*(G @ u - target)/len(x)
        dG = np.outer(e, u)*(1 - G*G)
        dH = (dG @ V.T)*(1 - H*H)
        return {"W": dH.T @ x, "V": dG.T @ H, "u": G.T @ e}
    """,
    loss="squared-error",
    batch=4,
)
add(
    KIND,
    "input x[2] = [1, -2]; parameter A[2,2] = [[0.3, 0.5], [-0.4, 1.2]], B[2,2] = [[0.8, 0.1], [0.6, -0.9]]; o = B @ (A @ x); s = sum(o^2)",
    """
    import numpy as np
    def gradient(x, A, B):
        h = A @ x
        g = 2*(B @ h)
        return [np.outer(B @ g, x), np.outer(g, h)]
    """,
)
add(
    KIND,
    "input x[2] = [1, -2]; parameter A[2,2] = [[0.3, 0.5], [-0.4, 1.2]], B[2,2] = [[0.8, 0.1], [0.6, -0.9]]; h = sigmoid(A @ x); o = B @ h",
    """
    from math import exp
    def gradient(x, target, A, B):
        h = [1/(1 + exp(-sum(A[i][j]*x[j] for j in range(2)))) for i in range(2)]
        e = [2*(sum(B[i][j]*h[j] for j in range(2)) - target[i]) for i in range(2)]
        dh = [sum(B[i][k]*e[k] for k in range(2))*h[i]*(1 - h[i]) for i in range(2)]
        return {"A": [[dh[i]*x[j] for j in range(2)] for i in range(2)],
                "B": [[e[i]*h[j] for j in range(2)] for i in range(2)]}
    """,
    loss="squared-error",
)
add(
    KIND,
    "parameter A[2,2] = [[1, 2], [3, 4]], B[2,2] = [[0.5, -1], [2, 1.5]]; s = sum((A @ B)^2)",
    """
    import numpy as np
    def gradient(A, B):
        G = 2*(A @ B)
        return G @ B, A @ G
    """,
)
add(
    KIND,
    "input x[3] = [1, -2, 0.5]; parameter R[3,3] = [[0.5, 0.2, -0.1], [0.3, 0.7, 0.4], [-0.6, 0.1, 0.2]], h0[3] = [0.1, 0.5, -0.4]; h1 = tanh(R @ h0 + x); h2 = tanh(R @ h1); s = sum(h2)",
    """
    import numpy as np
    def gradient(x, R, h0):
        h1 = np.tanh(R @ h0 + x); h2 = np.tanh(R @ h1)
        d2 = 1 - h2**2
        d1 = (R @ d2)*(1 - h1**2)
        return np.outer(d2, h1) + np.outer(d1, h0), R @ d1
    """,
)

# a slope that is small compared with the value
KIND = "hidden by a large value"
OFFSET = "input xa = 0.5; parameter k = 1.5; xw = 1e10 + k*xa"
add(KIND, OFFSET, "def gradient(xa, k):\n    return 0\n")
add(KIND, OFFSET, "def gradient(xa, k):\n    return -xa\n")
add(KIND, OFFSET, "def gradient(xa, k):\n    return {'k': 2*xa}\n")
add(
    KIND,
    "input x = 0.7; parameter a = 2, c = 5e11; y = sin(a*x) + c",
    "def gradient(x, a, c):\n    return [x, 1]\n",
)
add(
    KIND,
    "input x = 0.7; parameter a = 2, c = 0.3; y = 1e12*c + tanh(a*x)",
    "def gradient(x, a, c):\n    return [0, 1e12]\n",
)
