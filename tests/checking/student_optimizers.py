# ruff: noqa: E501
"""Optimizers as students write them: the source of classes and functions in many styles."""

from __future__ import annotations

import math
import re
import textwrap
from itertools import product
from typing import Any

from cgprimer.course.checks.optimizer_variants import list_variants

# The body of a step for one parameter: p, g, the state s[...] of this parameter, t, o the settings.
BODIES: dict[str, list[str]] = {
    "sgd": ["p = p - o.rate*g", "p = p + (-o.rate)*g", "step = g*o.rate\np = p - step"],
    "momentum": [
        "s['v'] = o.beta*s['v'] + g\np = p - o.rate*s['v']",
        "s['v'] = o.beta*s['v'] - o.rate*g\np = p + s['v']",
        "s['v'] = o.beta*s['v'] + o.rate*g\np = p - s['v']",
        "s['v'] *= o.beta\ns['v'] += g\np = p - s['v']*o.rate",
    ],
    "nesterov": [
        "s['v'] = o.beta*s['v'] + g\np = p - o.rate*(g + o.beta*s['v'])",
        "old = s['v']\ns['v'] = o.beta*old - o.rate*g\np = p + (1 + o.beta)*s['v'] - o.beta*old",
        "s['v'] = o.beta*s['v'] - o.rate*g\np = p + o.beta*s['v'] - o.rate*g",
        "y = p - o.rate*g\nlast = s['v'] + p if t > 1 else p\nq = y + o.beta*(y - last)\n"
        "s['v'] = y - q\np = q",
    ],
    "adagrad": [
        "s['v'] = s['v'] + g**2\np = p - o.rate*g/(sqrt(s['v']) + o.epsilon)",
        "s['v'] += g*g\np = p - (o.rate/(o.epsilon + sqrt(s['v'])))*g",
        "s['v'] += g*g\np = p - o.rate*g/sqrt(s['v'] + o.epsilon)",
        "s['v'] += g*g\np = p - o.rate/(s['v'] + o.epsilon)**0.5*g",
    ],
    "rmsprop": [
        "s['v'] = o.alpha*s['v'] + (1 - o.alpha)*g**2\np = p - o.rate*g/(sqrt(s['v']) + o.epsilon)",
        "s['v'] += (1 - o.alpha)*(g*g - s['v'])\np = p - o.rate*g/(s['v']**0.5 + o.epsilon)",
        "s['v'] = o.alpha*s['v'] + (1 - o.alpha)*g**2\np = p - o.rate*g/sqrt(s['v'] + o.epsilon)",
        "s['m'] = o.alpha*s['m'] + (1 - o.alpha)*g\ns['v'] = o.alpha*s['v'] + (1 - o.alpha)*g**2\n"
        "p = p - o.rate*g/(sqrt(s['v'] - s['m']**2) + o.epsilon)",
    ],
    "adam": [
        "s['m'] = o.beta1*s['m'] + (1 - o.beta1)*g\ns['v'] = o.beta2*s['v'] + (1 - o.beta2)*g**2\n"
        "mh = s['m']/(1 - o.beta1**t)\nvh = s['v']/(1 - o.beta2**t)\n"
        "p = p - o.rate*mh/(sqrt(vh) + o.epsilon)",
        "s['v'] += (1 - o.beta2)*(g*g - s['v'])\ns['m'] += (1 - o.beta1)*(g - s['m'])\n"
        "size = sqrt(s['v'])/sqrt(1 - o.beta2**t) + o.epsilon\n"
        "p = p - o.rate/(1 - o.beta1**t)*s['m']/size",
        "s['m'] = o.beta1*s['m'] + (1 - o.beta1)*g\ns['v'] = o.beta2*s['v'] + (1 - o.beta2)*g**2\n"
        "rate = o.rate*sqrt(1 - o.beta2**t)/(1 - o.beta1**t)\n"
        "p = p - rate*s['m']/(sqrt(s['v']) + o.epsilon)",
    ],
}  # fmt: skip
ARGUMENTS = {
    "sgd": ["rate=0.1"],
    "momentum": ["rate=0.02, beta=0.9", "lr=0.02, momentum=0.9"],
    "nesterov": ["rate=0.02, beta=0.9", "learning_rate=0.02, mu=0.9"],
    "adagrad": ["rate=0.1, epsilon=1e-10", "lr, eps=1e-8"],
    "rmsprop": ["rate=0.01, alpha=0.99, epsilon=1e-8", "lr=0.01, rho=0.9, eps=1e-7"],
    "adam": ["rate=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8", "lr=1e-3, betas=(0.9, 0.999),"
             " eps=1e-8", "alpha=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-8"],
}  # fmt: skip
STYLES = ("dict in place", "list in place", "new list", "arrays", "one array", "one number",
          "function", "owner")  # fmt: skip
_SETTINGS = ("rate", "beta", "beta1", "beta2", "alpha", "epsilon")


def _stored(arguments: str) -> list[str]:
    names = [
        part.split("=")[0].strip() for part in arguments.replace("(0.9, 0.999)", "b").split(",")
    ]
    lines = []
    for name in names:
        plain = name.replace("_", "")
        means = {"lr": "rate", "learningrate": "rate", "eps": "epsilon", "momentum": "beta",
                 "mu": "beta", "rho": "alpha"}.get(plain, plain)  # fmt: skip
        means = "rate" if name == "alpha" and "beta" in arguments else means
        lines.append(f"o.beta1, o.beta2 = {name}" if name == "betas" else f"o.{means} = {name}")
    return lines


def source(rule: str, style: str, body: str, arguments: str, sizes: str = "") -> str:
    """A submission with one optimizer."""
    each = textwrap.indent(body, " " * 12)
    name = rule.capitalize()
    imports = "from math import sqrt\n" if style not in ("arrays", "one array") else (
        "import numpy as np\nfrom numpy import sqrt\n")  # fmt: skip
    zero = {"arrays": "np.zeros_like(p)", "one array": "np.zeros_like(p)"}.get(style, "0.0")
    start = f"dict(m={zero}, v={zero})"
    stored = textwrap.indent("\n".join(_stored(arguments)), " " * 8)
    head = f"{imports}class {name}:\n    def __init__(self, {arguments}):\n        o = self\n"
    head += f"{stored}\n        self.t = 0\n        self.state = {{}}\n"
    if style == "dict in place":
        return (
            head
            + f"""
    def step(self, parameters, gradients):
        o = self
        o.t += 1
        t = o.t
        for k in parameters:
            s = o.state.setdefault(k, {start})
            p, g = parameters[k], gradients[k]
{each}
            parameters[k] = p
"""
        )
    if style in ("list in place", "new list"):
        loop = "enumerate(zip(parameters, gradients))"
        keep = "parameters[k] = p" if style == "list in place" else "new.append(p)"
        end = "" if style == "list in place" else "        return new\n"
        if style == "list in place":
            loop = "enumerate(zip(list(parameters), gradients))"
        return (
            head
            + f"""
    def step(self, parameters, gradients):
        o = self
        o.t += 1
        t = o.t
        new = []
        if isinstance(parameters, dict): raise TypeError('a list, please')
        for k, (p, g) in {loop}:
            s = o.state.setdefault(k, {start})
{each}
            {keep}
{end}"""
        )
    if style == "arrays":
        return (
            head
            + f"""
    def update(self, params, grads):
        o = self
        o.t += 1
        t = o.t
        for k, g in grads.items():
            p = params[k]
            s = o.state.setdefault(k, {start})
{each}
            params[k][...] = p
"""
        )
    if style in ("one array", "one number"):
        check = "float(p)" if style == "one number" else "p.shape"
        return (
            head
            + f"""
    def step(self, p, g):
        o = self
        o.t += 1
        t = o.t
        {check}
        if not o.state: o.state = {start}
        s = o.state
        for _ in range(1):
{each}
        return p
"""
        )
    if style == "function":
        inner = textwrap.indent("\n".join(_stored(arguments)), " " * 4)
        return (
            imports
            + f"""
class O: pass
def {rule}(parameters, gradients, state, {arguments}):
    o = O()
{inner}
    t = state['t'] = state.get('t', 0) + 1
    new = dict(parameters)
    for k in parameters:
            s = state.setdefault(k, {start})
            p, g = parameters[k], gradients[k]
{each}
            new[k] = p
    return new, state
"""
        )
    return (
        head.replace("(self, ", "(self, params, ")
        + f"""
        self.params = params
    def step(self, grads):
        o = self
        o.t += 1
        t = o.t
        for k in range(len(self.params)):
            s = o.state.setdefault(k, {start})
            p, g = self.params[k], grads[k]
{each}
            self.params[k] = p
"""
    )


def right_ones() -> list[tuple[str, str]]:
    """The name and the source of submissions that are right."""
    return [
        (rule, source(rule, style, body, arguments))
        for rule, bodies in BODIES.items()
        for body, arguments, style in product(bodies, ARGUMENTS[rule], STYLES)
    ]


def names_of(text: str) -> dict[str, Any]:
    """The names that a source defines, as a notebook has them."""
    names: dict[str, Any] = {"__name__": "student", "sqrt": math.sqrt}
    exec(compile(text, "student.py", "exec"), names)  # noqa: S102
    return names


_T = ("o.t += 1\n        t = o.t", "t = o.t")
_EACH_T = ("s = o.state.set", "o.t += 1; t = o.t; s = o.state.set")
_WITH_STATE = ("momentum", "nesterov", "adagrad", "rmsprop", "adam")
_SCALED = ("adagrad", "rmsprop", "adam")
#: Mistakes: their name, the optimizers that can have them, and what becomes of the source.
PLANTED: list[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]] = [
    ("sign", ("sgd",), (("p - o.rate*g", "p + o.rate*g"),)),
    ("sign", ("sgd",), (("p - step", "p + step"),)),
    ("sign", _WITH_STATE, (("p = p - ", "p = p + "),)),
    ("rate applied twice", ("sgd", *_WITH_STATE), (("o.rate*", "o.rate**2*"),)),
    ("rate applied twice", ("sgd", *_WITH_STATE), (("o.rate/", "o.rate**2/"),)),
    ("state shared between parameters", _WITH_STATE, (("setdefault(k,", "setdefault(0,"),)),
    ("state shared between parameters", _WITH_STATE,
     (("s = o.state.setdefault(k,", "s = o.__dict__.setdefault('one',"),)),
    ("state shared between optimizers", _WITH_STATE, (("        self.state = {}", "        self.state = SHARED"), ("class ", "SHARED = {}\nclass "))),
    ("beta1 ignored", ("adam",), (("o.beta1 = beta1", "o.beta1 = 0.9"),)),
    ("beta ignored", ("momentum", "nesterov"), (("o.beta = beta\n", "o.beta = 0.9\n"),)),
    ("steps counted per parameter", ("adam",), (_T, _EACH_T)),
    ("state not updated", _WITH_STATE, (("s = o.state.setdefault(k, dict(", "s = (dict("),)),
    ("state reset every step", _WITH_STATE, (("t = o.t\n", "t = o.t; o.state = {}\n"),)),
    ("parameters never moved", ("sgd", *_WITH_STATE), (("parameters[k] = p\n", "pass\n"),)),
    ("parameters never moved", ("sgd", *_WITH_STATE), (("[k][...] = p\n", "[k]\n"),)),
    ("parameters never moved", ("sgd", *_WITH_STATE), (("            params[k] = p\n", ""),)),
    ("parameters never moved", ("sgd", *_WITH_STATE), (("new.append(p)", "new.append(parameters[k])"),)),
    ("epsilon missing", _SCALED, ((" + o.epsilon", ""),)),
    ("epsilon missing", _SCALED, (("o.epsilon + ", ""),)),
    ("gradient not squared", _SCALED, (("g**2", "g"),)),
    ("gradient not squared", _SCALED, (("g**2", "abs(g)"),)),
    ("gradient not squared", _SCALED, (("g*g", "g"),)),
    ("root missing", _SCALED, (("sqrt(", "("),)),
    ("root missing", _SCALED, (("**0.5", ""),)),
    ("look-ahead missing", ("nesterov",), (("g + o.beta*s['v']", "s['v']"),)),
    ("look-ahead missing", ("nesterov",), (("p + (1 + o.beta)*s['v'] - o.beta*old", "p + s['v']"),)),
    ("look-ahead missing", ("nesterov",), (("p + o.beta*s['v'] - o.rate*g", "p + s['v']"),)),
    ("damped by 1 - beta", ("momentum",), (("s['v'] + g", "s['v'] + (1 - o.beta)*g"),)),
    ("damped by 1 - beta", ("momentum",), (("- o.rate*g", "- o.rate*(1 - o.beta)*g"),)),
    ("damped by 1 - beta", ("momentum",), (("+ o.rate*g", "+ o.rate*(1 - o.beta)*g"),)),
    ("damped by 1 - beta", ("momentum",), (("+= g", "+= (1 - o.beta)*g"),)),
    ("beta left out", ("momentum",), (("o.beta*s", "s"),)),
    ("state not used", ("momentum",), (("p - o.rate*s['v']", "p - o.rate*g"),)),
    ("look-ahead in momentum", ("momentum",), (("p + s['v']", "p + o.beta*s['v'] - o.rate*g"),)),
    ("gradient counted twice", ("momentum",), (("p - o.rate*s['v']", "p - o.rate*(s['v'] + g)"),)),
    ("squares never decay", ("rmsprop",), (("o.alpha*s['v'] + (1 - o.alpha)*g", "s['v'] + g"),)),
    ("1 - alpha left out", ("rmsprop",), (("(1 - o.alpha)*g**2\n            p", "g**2\n            p"),)),
    ("squares decay", ("adagrad",), (("s['v'] + g**2", "0.9*s['v'] + 0.1*g**2"),)),
    ("squares decay", ("adagrad",), (("s['v'] += g*g", "s['v'] = 0.99*s['v'] + 0.01*g*g"),)),
    ("epsilon inside the root", ("adam",), (("sqrt(vh) + o.epsilon", "sqrt(vh + o.epsilon)"),)),
    ("epsilon inside the root", ("adam",),
     (("sqrt(s['v'])/sqrt(1 - o.beta2**t) + o.epsilon", "sqrt(s['v']/(1 - o.beta2**t) + o.epsilon)"),)),
    ("no bias correction", ("adam",), (("/(1 - o.beta1**t)", ""), ("/(1 - o.beta2**t)", ""))),
    ("no bias correction", ("adam",), (("/(1 - o.beta1**t)", ""), ("/sqrt(1 - o.beta2**t)", ""))),
    ("no bias correction", ("adam",), (("*sqrt(1 - o.beta2**t)/(1 - o.beta1**t)", ""),)),
    ("first moment not corrected", ("adam",), (("/(1 - o.beta1**t)", ""),)),
    ("second moment not corrected", ("adam",), (("/(1 - o.beta2**t)", ""),)),
    ("second moment not corrected", ("adam",), (("/sqrt(1 - o.beta2**t)", ""),)),
    ("steps counted from 0", ("adam",), (("t = o.t\n", "t = o.t - 1\n"),)),
    ("steps counted from 2", ("adam",), (("self.t = 0", "self.t = 1"),)),
    ("step not counted", ("adam",), (("o.t += 1", "o.t = 1"),)),
    ("corrected moments stored", ("adam",),
     (("mh = s['m']/", "mh = s['m'] = s['m']/"), ("vh = s['v']/", "vh = s['v'] = s['v']/"))),
    ("beta1 and beta2 swapped", ("adam",),
     (("o.beta1*", "o.beta3*"), ("o.beta2*", "o.beta1*"), ("o.beta3*", "o.beta2*"),
      ("- o.beta1)", "- o.beta3)"), ("- o.beta2)", "- o.beta1)"), ("- o.beta3)", "- o.beta2)"))),
    ("1 - beta left out", ("adam",), (("(1 - o.beta1)*g\n", "g\n"), ("(1 - o.beta2)*g", "g"))),
    ("average squared", ("adam",), (("g**2", "s['m']**2"),)),
    ("first moment not used", ("adam",), (("mh = s['m']/(1 - o.beta1**t)", "mh = g"),)),
    ("step not counted", ("adam",), (("o.beta1**t", "o.beta1"), ("o.beta2**t", "o.beta2"))),
    ("normalized gradient", ("sgd", *_WITH_STATE), (("gradients[k]\n", "gradients[k]/sum(x*x for x in gradients.values())**0.5\n"),)),
]  # fmt: skip


_NAMES = {"s": "s['v']", "m": "s['m']", "v": "s['v']"}
_NORMALIZED = {"each": "g = g/abs(g)", "sign": "g = (g > 0)*1.0 - (g < 0)*1.0"}


def _python(text: str) -> str:
    """The body of a step for a rule of the catalogue."""
    for name in ("rate", "beta1", "beta2", "beta", "alpha", "epsilon"):
        text = re.sub(rf"\b{name}\b", f"o.{name}", text)
    text = re.sub(r"where\(less\(t, 1\.5\), ([^,]+), (\w+)\)", r"(\1 if t < 1.5 else \2)", text)
    text = re.sub(r"\b[smv]\b", lambda found: _NAMES[found[0]], text.replace("^", "**"))
    return text.replace("; ", "\n")


def from_catalogue() -> dict[str, list[tuple[str, str]]]:
    """For each mistake of the catalogue that changes a rule's text, optimizers that have it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for rule in BODIES:
        for variant in list_variants(rule, False):
            if variant.is_right:
                continue
            (change,) = variant.changes
            if change.shares_state or change.counts_per_parameter or change.resets_state:
                continue  # planted by hand
            if change.normalizes == "all" or (change.normalizes and change.offset):
                continue  # planted by hand
            lines = [_NORMALIZED.get(change.normalizes, ""), _python(variant.text)]
            body = "\n".join(filter(None, lines))
            found.setdefault(change.name, []).extend(
                (rule, source(rule, style, body, arguments))
                for arguments, style in product(ARGUMENTS[rule], STYLES)
            )
    return found


def planted() -> dict[str, list[tuple[str, str]]]:
    """For each mistake the optimizers' names and sources that have it."""
    found: dict[str, list[tuple[str, str]]] = {}
    right = right_ones()
    for name, rules, swaps in PLANTED:
        for rule, text in right:
            wrong = text
            for old, new in swaps:
                if old not in wrong:
                    break
                wrong = wrong.replace(old, new)
            else:
                # These keep other state than the velocity, so that losing it shows otherwise.
                # What is shared between optimizers must not be left over from forms that fail.
                failing = name.endswith("optimizers") and "gradients[k]\n" not in text
                if rule in rules and not failing and not ("y = p" in text and "state" in name):
                    found.setdefault(name, []).append((rule, wrong))
    return found
