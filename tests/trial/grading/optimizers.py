"""Optimizers as students write them: wrong ones, and correct ones in many styles."""

# Texts of graphs and submissions stay on one line.
# ruff: noqa: E501

from tests.trial.grading.records import ACCEPTABLE_NAMES, Collection

WRONG_OPTIMIZERS = Collection()
CORRECT_OPTIMIZERS: list[tuple[str, str]] = []

ACCEPTABLE_NAMES |= {
    "bias correction missing": ("no bias correction", "not corrected"),
    "1 - beta*t": ("beta*t", "bias correction", "times t", "power"),
    "beta1 in both corrections": ("beta1 in both", "both corrections", "correction"),
    "velocity starting at g": ("starts at", "starting at", "start", "initial"),
    "rho for 1 - rho": ("rho", "1 - beta", "swapped"),
    "normalized gradient": ("normal",),
    "state shared": ("shared",),
    "no state kept": ("state not", "state reset", "not used", "beta", "squares decay"),
    "optimizer sign": ("sign",),
    "epsilon inside the root of Adam": ("epsilon",),
}


def add(kind: str, optimizer: str, code: str, also: tuple[str, ...] = ()) -> None:
    WRONG_OPTIMIZERS.add(kind, "", code, also, optimizer=optimizer)


def correct(optimizer: str, code: str) -> None:
    from textwrap import dedent

    CORRECT_OPTIMIZERS.append((optimizer, dedent(code)))


# Five styles of Adam; {m}, {v} are the corrected moments, {t} the number of the step.
ADAM_STYLES = (
    """
    class Adam:
        def __init__(self, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
            self.rate, self.b1, self.b2, self.eps = rate, beta1, beta2, epsilon
            self.m, self.v, self.t = {{}}, {{}}, 0
        def step(self, parameters, gradients):
            self.t += 1
            t, b1, b2 = self.t, self.b1, self.b2
            for name in gradients:
                g = gradients[name]
                self.m[name] = b1*self.m.get(name, 0.0) + (1 - b1)*g
                self.v[name] = b2*self.v.get(name, 0.0) + (1 - b2)*g**2
                m, v = self.m[name], self.v[name]
                parameters[name] = parameters[name] - self.rate*{m}/({v}**0.5 + self.eps)
    """,
    """
    import numpy as np
    class Adam:
        def __init__(self, parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-8):
            self.parameters, self.lr, self.betas, self.eps, self.count = parameters, lr, betas, eps, 0
            self.state = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
        def step(self, gradients):
            self.count += 1
            t = self.count
            b1, b2 = self.betas
            for k, g in enumerate(gradients):
                m, v = self.state[k]
                m = b1*m + (1 - b1)*g
                v = b2*v + (1 - b2)*g*g
                self.state[k] = m, v
                self.parameters[k] -= self.lr*{m}/(np.sqrt({v}) + self.eps)
    """,
    """
    from math import sqrt
    def adam(parameters, gradients, state, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
        b1, b2 = beta1, beta2
        n = len(parameters)
        if not state:
            state.update(m=[0.0]*n, v=[0.0]*n, t=0)
        state["t"] += 1
        t = state["t"]
        result = []
        for i in range(n):
            state["m"][i] = b1*state["m"][i] + (1 - b1)*gradients[i]
            state["v"][i] = b2*state["v"][i] + (1 - b2)*gradients[i]**2
            m, v = state["m"][i], state["v"][i]
            result.append(parameters[i] - rate*{m}/(sqrt({v}) + epsilon))
        return result
    """,
    """
    import numpy as np
    class MyAdam:
        m = None
        def __init__(self, learning_rate, beta1=0.9, beta2=0.999, eps=1e-8):
            self.eta, self.b1, self.b2, self.eps, self.t = learning_rate, beta1, beta2, eps, 0
        def step(self, parameters, gradients):
            theta, g = np.asarray(parameters, float), np.asarray(gradients, float)
            if self.m is None:
                self.m, self.v = 0*theta, 0*theta
            self.t = self.t + 1
            t, b1, b2 = self.t, self.b1, self.b2
            self.m = self.m*b1 + g*(1 - b1)
            self.v = self.v*b2 + np.square(g)*(1 - b2)
            m, v = self.m, self.v
            return theta - self.eta*{m}/(np.sqrt({v}) + self.eps)
    """,
    """
    class Adam:
        def __init__(self, rate=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8):
            self.__dict__.update(rate=rate, b1=beta1, b2=beta2, epsilon=epsilon, memory={{}}, steps=0)
        def step(self, parameters, gradients):
            self.steps += 1
            new = {{}}
            for key, g in gradients.items():
                m, v = self.memory.setdefault(key, [0, 0])
                t, b1, b2 = self.steps, self.b1, self.b2
                m += (1 - b1)*(g - m)
                v += (1 - b2)*(g*g - v)
                self.memory[key] = [m, v]
                new[key] = parameters[key] - self.rate*{m}/({v}**0.5 + self.epsilon)
            return new
    """,
)
M, V = "(m/(1 - b1**t))", "(v/(1 - b2**t))"
for style in ADAM_STYLES:
    correct("adam", style.format(m=M, v=V))
    add("bias correction missing", "adam", style.format(m="m", v="v"))
    add("1 - beta*t", "adam", style.format(m="(m/abs(1 - b1*t + 1e-12))", v="(v/abs(1 - b2*t))"))
    add("beta1 in both corrections", "adam", style.format(m=M, v="(v/(1 - b1**t))"))
    if "g - m" in style:
        shared = style.replace("setdefault(key", "setdefault('all'").replace(
            "memory[key]", "memory['all']"
        )
    elif "gradients.items" in style or "self.m[name]" in style:
        shared = (
            style.replace("self.m[name]", "self.m[0]")
            .replace("self.v[name]", "self.v[0]")
            .replace("get(name", "get(0")
        )
    elif "self.state[k]" in style:
        shared = style.replace("self.state[k]", "self.state[0]")
    elif 'state["m"][i]' in style:
        shared = style.replace('["m"][i]', '["m"][0]').replace('["v"][i]', '["v"][0]')
    else:
        shared = (
            style.replace(
                "        def step",
                "        def mix(self, a):\n            return np.full_like(a, a.mean())\n        def step",
            )
            .replace("+ g*(1 - b1)", "+ self.mix(g)*(1 - b1)")
            .replace("np.square(g)", "np.square(self.mix(g))")
        )
        continue
    add("state shared", "adam", shared.format(m=M, v=V))

add(
    "state shared",
    "momentum",
    """
    class Momentum:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.velocity = rate, beta, 0.0
        def step(self, parameters, gradients):
            for name, g in gradients.items():
                self.velocity = self.beta*self.velocity + g
                parameters[name] -= self.rate*self.velocity
    """,
)
add(
    "state shared",
    "rmsprop",
    """
    def rmsprop(parameters, gradients, state, rate=0.01, rho=0.9, epsilon=1e-8):
        state.setdefault("s", 0.0)
        for i, g in enumerate(gradients):
            state["s"] = rho*state["s"] + (1 - rho)*g*g
            parameters[i] -= rate*g/(state["s"]**0.5 + epsilon)
    """,
)

# velocity starting at g
for code, name in (
    (
        """
    class Momentum:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.v = rate, beta, None
        def step(self, parameters, gradients):
            if self.v is None:
                self.v = dict(gradients)
            for n, g in gradients.items():
                self.v[n] = self.beta*self.v[n] + g
                parameters[n] -= self.rate*self.v[n]
    """,
        "momentum",
    ),
    (
        """
    def momentum(parameters, gradients, state, lr=0.1, mu=0.9):
        for k in range(len(parameters)):
            v = mu*state.get(k, gradients[k]) + gradients[k]
            state[k] = v
            parameters[k] = parameters[k] - lr*v
        return parameters
    """,
        "momentum",
    ),
    (
        """
    import numpy as np
    class SGDMomentum:
        def __init__(self, lr=0.01, momentum=0.9):
            self.lr, self.momentum = lr, momentum
        def step(self, parameters, gradients):
            if not hasattr(self, "buf"):
                self.buf = [np.array(g, float) for g in gradients]
            for i, g in enumerate(gradients):
                self.buf[i] = self.momentum*self.buf[i] + g
                parameters[i] = parameters[i] - self.lr*self.buf[i]
            return parameters
    """,
        "momentum",
    ),
    (
        """
    class Adam:
        def __init__(self, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
            self.rate, self.b1, self.b2, self.e, self.t, self.m, self.v = rate, beta1, beta2, epsilon, 0, {}, {}
        def step(self, p, grads):
            self.t += 1
            for n, g in grads.items():
                self.m[n] = self.b1*self.m.get(n, g) + (1 - self.b1)*g
                self.v[n] = self.b2*self.v.get(n, 0) + (1 - self.b2)*g*g
                p[n] -= self.rate*self.m[n]/(1 - self.b1**self.t)/((self.v[n]/(1 - self.b2**self.t))**0.5 + self.e)
    """,
        "adam",
    ),
    (
        """
    class Nesterov:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.v = rate, beta, {}
        def step(self, parameters, gradients):
            for n, g in gradients.items():
                self.v[n] = self.beta*self.v.get(n, g) + g
                parameters[n] -= self.rate*(g + self.beta*self.v[n])
    """,
        "nesterov",
    ),
):
    add("velocity starting at g", name, code)

# rho for 1 - rho
for code in (
    """
    class RMSprop:
        def __init__(self, rate=0.01, rho=0.9, epsilon=1e-8):
            self.rate, self.rho, self.eps, self.s = rate, rho, epsilon, {}
        def step(self, parameters, gradients):
            for n, g in gradients.items():
                self.s[n] = (1 - self.rho)*self.s.get(n, 0.0) + self.rho*g*g
                parameters[n] -= self.rate*g/(self.s[n]**0.5 + self.eps)
    """,
    """
    import numpy as np
    def rmsprop(parameters, gradients, state, lr=0.01, rho=0.9, eps=1e-8):
        g = np.array(gradients, float)
        state["avg"] = (1 - rho)*state.get("avg", 0) + rho*g**2
        return np.array(parameters, float) - lr*g/(np.sqrt(state["avg"]) + eps)
    """,
    """
    class RMSprop:
        def __init__(self, lr=0.01, alpha=0.99, eps=1e-8):
            self.lr, self.alpha, self.eps, self.avg = lr, alpha, eps, None
        def step(self, p, grads):
            self.avg = self.avg or [0.0 for _ in grads]
            for i, g in enumerate(grads):
                self.avg[i] = self.alpha*g*g + (1 - self.alpha)*self.avg[i]
                p[i] = p[i] - self.lr*g/(self.avg[i]**.5 + self.eps)
            return p
    """,
    """
    import math
    class RmsProp:
        def __init__(self, rate=0.001, rho=0.9, epsilon=1e-7):
            self.r, self.rho, self.e, self.cache = rate, rho, epsilon, {}
        def step(self, parameters, gradients):
            out = {}
            for n in parameters:
                c = self.cache.get(n, 0)
                self.cache[n] = c + self.rho*(gradients[n]**2 - c)
                out[n] = parameters[n] - self.r*gradients[n]/(math.sqrt(self.cache[n]) + self.e)
            return out
    """,
    """
    def rmsprop(parameters, gradients, state, rate=0.01, rho=0.9, epsilon=1e-8):
        for n, g in gradients.items():
            old = state[n] if n in state else 0
            state[n] = old*(1 - rho) + g*g*rho
            parameters[n] += -rate*g/(epsilon + state[n]**0.5)
    """,
):
    add("rho for 1 - rho", "rmsprop", code)

# normalized gradient
for code, name in (
    (
        """
    class SGD:
        def __init__(self, rate=0.1):
            self.rate = rate
        def step(self, parameters, gradients):
            size = sum(g*g for g in gradients.values())**0.5 or 1
            for n, g in gradients.items():
                parameters[n] -= self.rate*g/size
    """,
        "sgd",
    ),
    (
        """
    import numpy as np
    def sgd(parameters, gradients, state, rate=0.1):
        g = np.array(gradients, float)
        norm = np.linalg.norm(g)
        return np.array(parameters, float) - rate*(g/norm if norm else g)
    """,
        "sgd",
    ),
    (
        """
    class SGD:
        def __init__(self, lr=0.01):
            self.lr = lr
        def step(self, p, g):
            return [a - self.lr*(b/abs(b) if b else 0) for a, b in zip(p, g)]
    """,
        "sgd",
    ),
    (
        """
    class Momentum:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.v = rate, beta, {}
        def step(self, parameters, gradients):
            length = sum(g**2 for g in gradients.values())**0.5 + 1e-12
            for n, g in gradients.items():
                self.v[n] = self.beta*self.v.get(n, 0) + g/length
                parameters[n] -= self.rate*self.v[n]
    """,
        "momentum",
    ),
    (
        """
    def sgd(parameters, gradients, state, rate=0.1):
        total = max(sum(g*g for g in gradients)**0.5, 1e-30)
        for i in range(len(parameters)):
            parameters[i] -= rate*gradients[i]/total
        return parameters
    """,
        "sgd",
    ),
):
    add("normalized gradient", name, code)

# no state kept
for code, name in (
    (
        """
    class Momentum:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta = rate, beta
        def step(self, parameters, gradients):
            v = {n: 0.0 for n in parameters}
            for n, g in gradients.items():
                v[n] = self.beta*v[n] + g
                parameters[n] -= self.rate*v[n]
    """,
        "momentum",
    ),
    (
        """
    def rmsprop(parameters, gradients, state, rate=0.01, rho=0.9, epsilon=1e-8):
        for i, g in enumerate(gradients):
            s = (1 - rho)*g*g
            parameters[i] -= rate*g/(s**0.5 + epsilon)
    """,
        "rmsprop",
    ),
    (
        """
    import numpy as np
    class AdaGrad:
        def __init__(self, lr=0.1, eps=1e-8):
            self.lr, self.eps = lr, eps
        def step(self, parameters, gradients):
            h = [np.zeros_like(p) for p in parameters]
            for i, g in enumerate(gradients):
                h[i] = h[i] + np.square(g)
                parameters[i] = parameters[i] - self.lr*g/(np.sqrt(h[i]) + self.eps)
            return parameters
    """,
        "adagrad",
    ),
    (
        """
    class Adam:
        def __init__(self, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
            self.rate, self.b1, self.b2, self.eps, self.t = rate, beta1, beta2, epsilon, 0
        def step(self, parameters, gradients):
            self.t += 1
            m, v = {}, {}
            for n, g in gradients.items():
                m[n] = self.b1*m.get(n, 0) + (1 - self.b1)*g
                v[n] = self.b2*v.get(n, 0) + (1 - self.b2)*g*g
                a, b = m[n]/(1 - self.b1**self.t), v[n]/(1 - self.b2**self.t)
                parameters[n] -= self.rate*a/(b**0.5 + self.eps)
    """,
        "adam",
    ),
    (
        """
    class Nesterov:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta = rate, beta
        def step(self, p, g):
            velocity = [0]*len(p)
            for i in range(len(p)):
                velocity[i] = self.beta*velocity[i] + g[i]
                p[i] = p[i] - self.rate*(g[i] + self.beta*velocity[i])
            return p
    """,
        "nesterov",
    ),
):
    add("no state kept", name, code)

for code, name in (
    (
        "def sgd(parameters, gradients, state, rate=0.1):\n    return [p + rate*g for p, g in zip(parameters, gradients)]\n",
        "sgd",
    ),
    (
        """
    class Momentum:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.v = rate, beta, {}
        def step(self, parameters, gradients):
            for n, g in gradients.items():
                self.v[n] = self.beta*self.v.get(n, 0) + g
                parameters[n] += self.rate*self.v[n]
    """,
        "momentum",
    ),
    (ADAM_STYLES[0].format(m="-" + M, v=V), "adam"),
    (
        """
    class AdaGrad:
        def __init__(self, rate=0.1, epsilon=1e-8):
            self.rate, self.eps, self.s = rate, epsilon, {}
        def step(self, parameters, gradients):
            for n, g in gradients.items():
                self.s[n] = self.s.get(n, 0) + g*g
                parameters[n] += self.rate*g/(self.s[n]**0.5 + self.eps)
    """,
        "adagrad",
    ),
    (
        """
    def rmsprop(parameters, gradients, state, rate=0.01, rho=0.9, epsilon=1e-8):
        for n, g in gradients.items():
            state[n] = rho*state.get(n, 0) + (1 - rho)*g*g
            parameters[n] = parameters[n] + rate*g/(state[n]**0.5 + epsilon)
    """,
        "rmsprop",
    ),
):
    add("optimizer sign", name, code)

# correct: momentum, Nesterov, AdaGrad, RMSprop, SGD, AdamW, with the variants that the documentation allows
for body in (
    "self.v[n] = self.beta*self.v.get(n, 0) + g; p[n] -= self.rate*self.v[n]",
    "self.v[n] = self.beta*self.v.get(n, 0) - self.rate*g; p[n] += self.v[n]",
    "self.v[n] = self.v.get(n, 0)*self.beta + self.rate*g; p[n] = p[n] - self.v[n]",
):
    correct(
        "momentum",
        f"""
    class Momentum:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.v = rate, beta, {{}}
        def step(self, p, gradients):
            for n, g in gradients.items():
                {body}
    """,
    )
correct(
    "momentum",
    """
    class SGDMomentum:
        def __init__(self, lr=0.01, momentum=0.9):
            self.lr, self.momentum, self.buf = lr, momentum, None
        def step(self, parameters, gradients):
            first = self.buf is None
            self.buf = [g if first else self.momentum*b + g for g, b in zip(gradients, self.buf or gradients)]
            return [p - self.lr*b for p, b in zip(parameters, self.buf)]
    """,
)
for root in ("(self.s[n]**0.5 + self.eps)", "(self.s[n] + self.eps)**0.5"):
    for rule, update in (
        ("RMSprop", "0.9*self.s.get(n, 0) + 0.1*g*g"),
        ("AdaGrad", "self.s.get(n, 0) + g*g"),
    ):
        correct(
            rule.lower(),
            f"""
    class {rule}:
        def __init__(self, rate=0.01, epsilon=1e-8):
            self.rate, self.eps, self.s = rate, epsilon, {{}}
        def step(self, parameters, gradients):
            for n, g in gradients.items():
                self.s[n] = {update}
                parameters[n] -= self.rate*g/{root}
    """,
        )
for update in ("p[i] -= self.rate*(g[i] + self.beta*self.v[i])",):
    correct(
        "nesterov",
        f"""
    class NAG:
        def __init__(self, rate=0.1, beta=0.9):
            self.rate, self.beta, self.v = rate, beta, None
        def step(self, p, g):
            self.v = self.v or [0.0]*len(p)
            for i in range(len(p)):
                self.v[i] = self.beta*self.v[i] + g[i]
                {update}
            return p
    """,
    )
correct(
    "sgd",
    "def sgd(parameters, gradients, state, rate=0.1):\n    return [p - rate*g for p, g in zip(parameters, gradients)]\n",
)
correct(
    "sgd",
    """
    class SGD:
        def __init__(self, lr=0.1):
            self.lr = lr
        def step(self, parameters, gradients):
            for name in parameters:
                parameters[name] -= self.lr*gradients[name]
    """,
)
correct(
    "adamw",
    """
    class AdamW:
        def __init__(self, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01):
            self.rate, self.b1, self.b2, self.eps, self.decay = rate, beta1, beta2, epsilon, weight_decay
            self.m, self.v, self.t = {}, {}, 0
        def step(self, p, grads):
            self.t += 1
            for n, g in grads.items():
                p[n] -= self.rate*self.decay*p[n]
                self.m[n] = self.b1*self.m.get(n, 0) + (1 - self.b1)*g
                self.v[n] = self.b2*self.v.get(n, 0) + (1 - self.b2)*g*g
                m, v = self.m[n]/(1 - self.b1**self.t), self.v[n]/(1 - self.b2**self.t)
                p[n] -= self.rate*m/(v**0.5 + self.eps)
    """,
)
correct(
    "adam",
    """
    class Adam:
        def __init__(self, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
            self.rate, self.b1, self.b2, self.eps = rate, beta1, beta2, epsilon
            self.m, self.v, self.t = {}, {}, 0
        def step(self, p, grads):
            self.t += 1
            rate = self.rate*(1 - self.b2**self.t)**0.5/(1 - self.b1**self.t)
            for n, g in grads.items():
                self.m[n] = self.b1*self.m.get(n, 0) + (1 - self.b1)*g
                self.v[n] = self.b2*self.v.get(n, 0) + (1 - self.b2)*g*g
                p[n] -= rate*self.m[n]/(self.v[n]**0.5 + self.eps)
    """,
)
