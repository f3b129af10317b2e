"""Wrong optimizers written by hand, each in another style, without a look at the catalogue.

For each mistake: classes with dictionaries, functions with a state, numpy arrays in place, lists,
closures. ``WRONG`` has the mistake, the optimizer and the source.
"""

# ruff: noqa: E501
from __future__ import annotations

_POWER = "power missing in the correction"
_BOTH = "beta1 in both corrections"
_START = "state starts at the gradient"
_RHO = "alpha instead of 1 - alpha"
_NORM = "normalized gradient"

WRONG: list[tuple[str, str, str]] = [
    # --- 1 - beta*t ---
    (_POWER, "adam", """
class Adam:
    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.m, self.v, self.t = {}, {}, 0

    def step(self, params, grads):
        self.t += 1
        for name in params:
            g = grads[name]
            self.m[name] = self.beta1 * self.m.get(name, 0.0) + (1 - self.beta1) * g
            self.v[name] = self.beta2 * self.v.get(name, 0.0) + (1 - self.beta2) * g ** 2
            m_hat = self.m[name] / (1 - self.beta1 * self.t)
            v_hat = self.v[name] / (1 - self.beta2 * self.t)
            params[name] -= self.lr * m_hat / (v_hat ** 0.5 + self.eps)
"""),
    (_POWER, "adam", """
import math

def adam(w, dw, config, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8):
    t = config['t'] = config.get('t', 0) + 1
    new = {}
    for k in w:
        m = config.get(('m', k), 0.0)
        v = config.get(('v', k), 0.0)
        m = beta1*m + (1 - beta1)*dw[k]
        v = beta2*v + (1 - beta2)*dw[k]*dw[k]
        config['m', k], config['v', k] = m, v
        new[k] = w[k] - learning_rate*(m/(1 - beta1*t))/(math.sqrt(v/(1 - beta2**t)) + epsilon)
    return new
"""),
    (_POWER, "adam", """
import numpy as np

class AdamOptimizer:
    def __init__(self, alpha=0.01, betas=(0.9, 0.999), eps=1e-8):
        self.alpha, self.betas, self.eps = alpha, betas, eps
        self.step_count = 0

    def update(self, params, grads):
        if self.step_count == 0:
            self.m = [np.zeros_like(p) for p in params]
            self.v = [np.zeros_like(p) for p in params]
        self.step_count += 1
        b1, b2 = self.betas
        for p, g, m, v in zip(params, grads, self.m, self.v):
            m *= b1
            m += (1 - b1) * g
            v *= b2
            v += (1 - b2) * np.square(g)
            rate = self.alpha * np.sqrt(1 - b2 * self.step_count) / (1 - b1 * self.step_count)
            p -= rate * m / (np.sqrt(v) + self.eps)
"""),
    (_POWER, "adam", """
class Adam:
    def __init__(self, rate=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8):
        calls = []
        average = {}

        def mean(key, beta, new):
            average[key] = beta * average.get(key, 0.0) + (1.0 - beta) * new
            return average[key]

        def one(k, p, g):
            t = len(calls)
            first = mean((k, 1), beta1, g) / (1 - beta1 ** t)
            second = mean((k, 2), beta2, g * g) / (1 - t * beta2)
            return p - rate * first / (second ** 0.5 + epsilon)

        def step(parameters, gradients):
            calls.append(None)
            return [one(k, p, g) for k, (p, g) in enumerate(zip(parameters, gradients))]

        self.inner = step

    def step(self, parameters, gradients):
        if isinstance(parameters, dict):
            raise TypeError("lists only")
        return self.inner(parameters, gradients)
"""),
    (_POWER, "adam", """
import numpy as np

class Adam(object):
    def __init__(self, params, lr=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
        self.params = params
        self.lr, self.b1, self.b2, self.epsilon = lr, beta_1, beta_2, epsilon
        self.moments = {i: [0.0, 0.0] for i in range(len(params))}
        self.iteration = 0

    def step(self, grads):
        self.iteration = self.iteration + 1
        correction1 = 1 - np.multiply(self.b1, self.iteration)
        correction2 = 1 - np.multiply(self.b2, self.iteration)
        for i in range(len(self.params)):
            mean, square = self.moments[i]
            mean = mean + (1 - self.b1) * (grads[i] - mean)
            square = square + (1 - self.b2) * (grads[i] ** 2 - square)
            self.moments[i] = [mean, square]
            self.params[i] = self.params[i] - self.lr * (mean / correction1) / (np.sqrt(square / correction2) + self.epsilon)
"""),
    # --- beta1 in both corrections ---
    (_BOTH, "adam", """
class Adam:
    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.state, self.t = {}, 0

    def step(self, params, grads):
        self.t += 1
        for k, g in grads.items():
            m, v = self.state.get(k, (0, 0))
            m = self.beta1*m + (1 - self.beta1)*g
            v = self.beta2*v + (1 - self.beta2)*g*g
            self.state[k] = m, v
            correction = 1 - self.beta1**self.t
            params[k] -= self.lr*(m/correction)/((v/correction)**0.5 + self.eps)
"""),
    (_BOTH, "adam", """
from math import sqrt

def adam_step(params, grads, state, lr=0.01, b1=0.9, b2=0.999, eps=1e-8):
    if not state:
        state.update(m=[0.0]*len(params), v=[0.0]*len(params), n=0)
    state['n'] += 1
    for i, g in enumerate(grads):
        state['m'][i] += (1 - b1)*(g - state['m'][i])
        state['v'][i] += (1 - b2)*(g*g - state['v'][i])
        scale = lr*sqrt(1 - b1**state['n'])/(1 - b1**state['n'])
        params[i] = params[i] - scale*state['m'][i]/(sqrt(state['v'][i]) + eps*sqrt(1 - b1**state['n']))
"""),
    (_BOTH, "adam", """
import numpy as np

class Adam:
    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.99, epsilon=1e-8):
        self.__dict__.update(locals())
        self.s = None
        self.r = None
        self.k = 0

    def step(self, theta, grad):
        if self.s is None:
            self.s, self.r = np.zeros(theta.shape), np.zeros(theta.shape)
        self.k += 1
        self.s = self.beta1 * self.s + (1 - self.beta1) * grad
        self.r = self.beta2 * self.r + (1 - self.beta2) * np.multiply(grad, grad)
        s_hat = self.s / (1 - np.power(self.beta1, self.k))
        r_hat = self.r / (1 - np.power(self.beta1, self.k))
        theta -= self.learning_rate * s_hat / (np.sqrt(r_hat) + self.epsilon)
"""),
    (_BOTH, "adam", """
class Adam:
    def __init__(self, rate=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.rate, self.epsilon = rate, epsilon
        self.decay = (beta1, beta2)
        self.product = 1.0
        self.averages = {}

    def step(self, parameters, gradients):
        self.product *= self.decay[0]
        result = {}
        for name, value in parameters.items():
            g = gradients[name]
            a = self.averages.setdefault(name, [0.0, 0.0])
            for i, power in enumerate((g, g * g)):
                a[i] = self.decay[i] * a[i] + (1 - self.decay[i]) * power
            m, v = (x / (1 - self.product) for x in a)
            result[name] = value - self.rate * m / (v ** 0.5 + self.epsilon)
        return result
"""),
    (_BOTH, "adam", """
class Adam:
    def __init__(self, lr=0.01, betas=(0.9, 0.999), eps=1e-8):
        def corrector(beta):
            def correct(value, t):
                return value / (1 - betas[0] ** t)
            return lambda old, new: beta * old + (1 - beta) * new, correct
        self.first, self.unbias1 = corrector(betas[0])
        self.second, self.unbias2 = corrector(betas[1])
        self.lr, self.eps, self.t, self.m, self.v = lr, eps, 0, {}, {}

    def step(self, p, g):
        self.t += 1
        for k in p:
            self.m[k] = self.first(self.m.get(k, 0.0), g[k])
            self.v[k] = self.second(self.v.get(k, 0.0), g[k] ** 2)
            p[k] = p[k] - self.lr * self.unbias1(self.m[k], self.t) / (self.unbias2(self.v[k], self.t) ** 0.5 + self.eps)
"""),
    # --- velocity that starts at the gradient ---
    (_START, "momentum", """
class Momentum:
    def __init__(self, rate=0.02, beta=0.9):
        self.rate, self.beta = rate, beta
        self.velocity = {}

    def step(self, parameters, gradients):
        for k, g in gradients.items():
            if k not in self.velocity:
                self.velocity[k] = g
            self.velocity[k] = self.beta*self.velocity[k] + g
            parameters[k] -= self.rate*self.velocity[k]
"""),
    (_START, "momentum", """
def momentum(params, grads, state, lr=0.01, momentum=0.9):
    new = []
    for i, (p, g) in enumerate(zip(params, grads)):
        v = state.get(i, -lr*g)
        v = momentum*v - lr*g
        state[i] = v
        new.append(p + v)
    return new
"""),
    (_START, "momentum", """
import numpy as np

class SGDMomentum:
    def __init__(self, learning_rate=0.01, mu=0.9):
        self.learning_rate, self.mu = learning_rate, mu
        self.v = None

    def update(self, w, dw):
        if self.v is None:
            self.v = np.copy(dw)
        self.v *= self.mu
        self.v += dw
        w -= self.learning_rate * self.v
"""),
    (_START, "momentum", """
class HeavyBall:
    def __init__(self, params, lr=0.02, gamma=0.9):
        self.params, self.lr, self.gamma = params, lr, gamma
        self.buffer = None

    def step(self, grads):
        if self.buffer is None:
            self.buffer = list(grads)
        for i, g in enumerate(grads):
            self.buffer[i] = self.gamma*self.buffer[i] + self.lr*g if False else self.gamma*self.buffer[i] + g
            self.params[i] -= self.lr*self.buffer[i]
"""),
    (_START, "momentum", """
class Momentum:
    def __init__(self, rate=0.1, beta=0.8):
        def remember():
            memory = {}
            def velocity(key, gradient):
                old = memory.get(key)
                memory[key] = gradient + beta*(gradient if old is None else old)
                return memory[key]
            return velocity
        self.velocity, self.rate = remember(), rate

    def step(self, parameters, gradients):
        return {k: p - self.rate*self.velocity(k, gradients[k]) for k, p in parameters.items()}
"""),
    (_START, "adam", """
class Adam:
    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
        self.lr, self.b1, self.b2, self.eps, self.t = lr, beta1, beta2, eps, 0
        self.m, self.v = None, None

    def step(self, params, grads):
        if self.m is None:
            self.m = dict(grads)
            self.v = {k: g*g for k, g in grads.items()}
        self.t += 1
        for k, g in grads.items():
            self.m[k] = self.b1*self.m[k] + (1 - self.b1)*g
            self.v[k] = self.b2*self.v[k] + (1 - self.b2)*g*g
            m, v = self.m[k]/(1 - self.b1**self.t), self.v[k]/(1 - self.b2**self.t)
            params[k] -= self.lr*m/(v**0.5 + self.eps)
"""),
    (_START, "nesterov", """
class NAG:
    def __init__(self, lr=0.02, momentum=0.9):
        self.lr, self.momentum, self.v = lr, momentum, {}

    def step(self, p, g):
        for k in p:
            self.v[k] = self.momentum*self.v.get(k, g[k]) + g[k]
            p[k] -= self.lr*(g[k] + self.momentum*self.v[k])
"""),
    (_START, "rmsprop", """
import numpy as np

class RMSprop:
    def __init__(self, lr=0.01, rho=0.9, eps=1e-8):
        self.lr, self.rho, self.eps, self.cache = lr, rho, eps, None

    def step(self, p, g):
        if self.cache is None:
            self.cache = g**2
        self.cache = self.rho*self.cache + (1 - self.rho)*g**2
        return p - self.lr*g/(np.sqrt(self.cache) + self.eps)
"""),
    # --- rho for 1 - rho ---
    (_RHO, "rmsprop", """
class RMSprop:
    def __init__(self, lr=0.01, rho=0.9, eps=1e-8):
        self.lr, self.rho, self.eps = lr, rho, eps
        self.cache = {}

    def step(self, params, grads):
        for k, g in grads.items():
            self.cache[k] = self.rho*self.cache.get(k, 0.0) + self.rho*g**2
            params[k] -= self.lr*g/(self.cache[k]**0.5 + self.eps)
"""),
    (_RHO, "rmsprop", """
import math

def rmsprop(x, dx, config, learning_rate=1e-2, decay_rate=0.99, epsilon=1e-8):
    out = dict(x)
    for name in x:
        config.setdefault(name, 0.0)
        config[name] = decay_rate*(config[name] + dx[name]**2)
        out[name] = x[name] - learning_rate*dx[name]/(math.sqrt(config[name]) + epsilon)
    return out, config
"""),
    (_RHO, "rmsprop", """
import numpy as np

class RMSProp:
    def __init__(self, eta=0.001, alpha=0.9, epsilon=1e-7):
        self.eta, self.alpha, self.epsilon = eta, alpha, epsilon

    def update(self, params, grads):
        if not hasattr(self, "h"):
            self.h = {key: np.zeros_like(val) for key, val in params.items()}
        for key in params.keys():
            self.h[key] *= self.alpha
            self.h[key] += self.alpha * grads[key] * grads[key]
            params[key] -= self.eta * grads[key] / (np.sqrt(self.h[key]) + self.epsilon)
"""),
    (_RHO, "rmsprop", """
class RMSprop:
    def __init__(self, rate=0.01, alpha=0.99, epsilon=1e-8):
        squares = []

        def scale(i, g):
            while len(squares) <= i:
                squares.append(0.0)
            squares[i] = sum(alpha*part for part in (squares[i], g*g))
            return g/(squares[i]**0.5 + epsilon)

        self.apply_one = lambda i, p, g: p - rate*scale(i, g)

    def step(self, parameters, gradients):
        for i in range(len(parameters)):
            parameters[i] = self.apply_one(i, parameters[i], gradients[i])
"""),
    (_RHO, "rmsprop", """
import numpy as np

class RMSprop:
    def __init__(self, params, lr=0.01, rho=0.95, delta=1e-6):
        self.params, self.lr, self.rho, self.delta = params, lr, rho, delta
        self.r = [0.0 for _ in params]

    def step(self, grads):
        self.r = [self.rho*r + self.rho*g*g for r, g in zip(self.r, grads)]
        for j, (g, r) in enumerate(zip(grads, self.r)):
            self.params[j] += -self.lr/(np.sqrt(r) + self.delta)*g
"""),
    # --- normalized gradient ---
    (_NORM, "sgd", """
import math

class SGD:
    def __init__(self, rate=0.1):
        self.rate = rate

    def step(self, parameters, gradients):
        length = math.sqrt(sum(g*g for g in gradients.values()))
        for k in parameters:
            parameters[k] -= self.rate*gradients[k]/length
"""),
    (_NORM, "sgd", """
import numpy as np

def sgd(params, grads, state, lr=0.1):
    g = np.asarray(grads, dtype=float)
    g = g / np.linalg.norm(g)
    return [p - lr*d for p, d in zip(params, g)]
"""),
    (_NORM, "sgd", """
import numpy as np

class GradientDescent:
    def __init__(self, learning_rate=0.01):
        self.learning_rate = learning_rate

    def update(self, w, dw):
        w -= self.learning_rate * np.sign(dw)
"""),
    (_NORM, "momentum", """
class Momentum:
    def __init__(self, rate=0.02, beta=0.9):
        self.rate, self.beta, self.v = rate, beta, {}

    def step(self, parameters, gradients):
        norm = sum(g**2 for g in gradients.values())**0.5 + 1e-12
        for k, g in gradients.items():
            self.v[k] = self.beta*self.v.get(k, 0.0) + g/norm
            parameters[k] -= self.rate*self.v[k]
"""),
    (_NORM, "sgd", """
class SGD:
    def __init__(self, lr=0.05):
        def unit(values):
            size = sum(v*v for v in values)**0.5
            return [v/size if size > 0 else 0.0 for v in values]
        self.move = lambda ps, gs: [p - lr*u for p, u in zip(ps, unit(gs))]

    def step(self, params, grads):
        params[:] = self.move(params, grads)
"""),
    (_NORM, "adagrad", """
class AdaGrad:
    def __init__(self, rate=0.1, epsilon=1e-10):
        self.rate, self.epsilon, self.sums = rate, epsilon, {}

    def step(self, parameters, gradients):
        size = sum(g*g for g in gradients.values())**0.5
        for k in parameters:
            g = gradients[k]/size
            self.sums[k] = self.sums.get(k, 0.0) + g*g
            parameters[k] -= self.rate*g/(self.sums[k]**0.5 + self.epsilon)
"""),
    (_NORM, "sgd", """
class SGD:
    def __init__(self, lr=0.05):
        self.lr = lr

    def step(self, params, grads):
        for k in grads:
            params[k] -= self.lr*grads[k]/(abs(grads[k]) + 1e-8)
"""),
]  # fmt: skip
