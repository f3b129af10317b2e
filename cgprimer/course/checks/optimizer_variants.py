"""Update rules as students write them: the right ones, other conventions, and mistakes.

A rule is a text of the package's language of update rules, a mistake a change of that text (or of
the way in which the state is kept). :func:`simulate` does the steps of any of them, so that what
a student's optimizer did can be compared with each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from cgprimer.core.language.parser import parse_program
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.expressions import Definition, Expression
from cgprimer.training.update_rules import evaluated

_ADAM = (
    "m = beta1*m + (1 - beta1)*g; v = beta2*v + (1 - beta2)*g*g;"
    " p = p - rate*(m/(1 - beta1^t))/(sqrt(v/(1 - beta2^t)) + epsilon)"
)
#: The rules of the package's optimizers; a test holds that both give the same numbers.
RULES = {
    "sgd": "p = p - rate*g",
    "momentum": "v = beta*v + g; p = p - rate*v",
    "nesterov": "v = beta*v + g; p = p - rate*(g + beta*v)",
    "adagrad": "s = s + g*g; p = p - rate*g/(sqrt(s) + epsilon)",
    "rmsprop": "s = alpha*s + (1 - alpha)*g*g; p = p - rate*g/(sqrt(s) + epsilon)",
    "adam": _ADAM,
    "adamw": _ADAM,
}
#: Nesterov's rule with the gradient asked for where the velocity leads: ``g + slope*place``.
LOOKING_AHEAD = "v = beta*v - rate*(g + slope*(p + beta*v)); p = p + v"
_AHEAD = "nesterov ahead"
_MOMENTS = ("adam", "adamw")
_SCALED = ("adagrad", "rmsprop", *_MOMENTS)
_VELOCITY = ("momentum", "nesterov")


@dataclass(frozen=True)
class Change:
    """A change of a rule's text.

    Attributes:
        name: what it is called in reports.
        says: one sentence for the student, without a number.
        swaps: texts and what stands in their place; of rules without the first text, nothing.
        of: the optimizers that it is of; all unless given.
        right: a convention of good standing, not a mistake.
        by_parameter: the number of the step is raised by each parameter.
        shared: one state serves all parameters.
        forgets: each step begins with the first state; the number of the step is kept.
        doubtful: some courses teach it; it is named and left to the lecturer.
        normalizes: the gradient is divided by its size before the rule sees it: ``all`` by the norm
            over all parameters, ``each`` by the absolute value of each entry, ``sign`` likewise,
            with 0 for 0.
        offset: number that is added to the size, against a division by zero.
    """

    name: str
    says: str
    swaps: tuple[tuple[str, str], ...] = ()
    of: tuple[str, ...] = ()
    right: bool = False
    by_parameter: bool = False
    shared: bool = False
    forgets: bool = False
    doubtful: bool = False
    normalizes: str = ""
    offset: float = 0.0

    def applied(self, rule: str, text: str) -> str | None:
        """The changed text; None where there is nothing to change."""
        if self.of and rule not in self.of:
            return None
        for old, new in self.swaps:
            if old not in text:
                return None
            text = text.replace(old, new)
        return text


def _mistake(name: str, says: str, *swaps: tuple[str, str], of: Sequence[str] = ()) -> Change:
    return Change(name, says, swaps, tuple(of))


_FIRST = "where(less(t, 1.5), {}, {})"  # what a state is before the first step, and after it
_M, _V = "(m/(1 - beta1^t))", "v/(1 - beta2^t)"
_M1, _V1 = "(1 - beta1)*g;", "(1 - beta2)*g*g"
_ROOT = f"sqrt({_V})"
_STEP = f"p = p - rate*{_M}/({_ROOT} + epsilon)"
_DAMPED = Change(
    "damped by 1 - beta",
    "the velocity is an average: the gradient is multiplied by 1 - beta, so steps are that much"
    " shorter than Polyak's and PyTorch's; some courses teach it so",
    (("v + g;", "v + (1 - beta)*g;"),), _VELOCITY, doubtful=True,
)  # fmt: skip
CHANGES: tuple[Change, ...] = (
    Change("epsilon inside the root", "epsilon stands inside the root, as in Keras and D2L",
           (("sqrt(s) + epsilon", "sqrt(s + epsilon)"),), right=True),
    Change("epsilon hat", "the rate is corrected instead of the moments, as in TensorFlow and in"
           " section 2 of Kingma and Ba",
           ((_STEP, "p = p - rate*sqrt(1 - beta2^t)/(1 - beta1^t)*m/(sqrt(v) + epsilon)"),),
           right=True),
    Change("centred", "the variance of the gradient, not its mean square: centred RMSprop",
           (("s = alpha", "a = alpha*a + (1 - alpha)*g; s = alpha"),
            ("sqrt(s)", "sqrt(s - a*a)")), right=True),
    Change("gradient where the parameters are", "the gradient is asked for at the parameters, in"
           " the form that PyTorch has",
           ((LOOKING_AHEAD, "v = beta*v + (g + slope*p); p = p - rate*((g + slope*p) + beta*v)"),),
           (_AHEAD,), right=True),
    replace(_DAMPED, swaps=(*_DAMPED.swaps, ("rate*(g", "rate*((1 - beta)*g"))),
    _DAMPED,
    # What every rule can get wrong.
    _mistake("sign", "the parameters move up the gradient", ("p - rate", "p + rate")),
    _mistake("sign", "the parameters move up the gradient", ("+ g;", "- g;"), of=_VELOCITY),
    _mistake("sign", "the parameters move up the gradient", ("p = p + v", "p = p - v")),
    _mistake("rate applied twice", "the learning rate stands in two places",
             ("rate*", "rate*rate*")),
    _mistake("rate not applied", "the learning rate is nowhere used", ("rate*", "1*")),
    *(
        Change("normalized gradient", "the gradient is divided by its size: every step has the same"
               " length, however steep it is", of=tuple(RULES), normalizes=how, offset=offset)
        for how, offset in (
            ("all", 0.0), ("sign", 0.0), ("each", 0.0),
            *((how, 10.0**-k) for how in ("all", "each") for k in (12, 10, 8, 7, 6)),
        )
    ),
    # State.
    *(
        _mistake("state starts at the gradient", "the state is 0 before the first step; here it is"
                 f" {start}", (old, old.replace(f"*{name} ", f"*{_FIRST.format(value, name)} ")),
                 of=of)
        for name, value, start, old, of in (
            ("v", "g", "the first gradient", "beta*v + ", _VELOCITY),
            ("m", "g", "the first gradient", "beta1*m + ", _MOMENTS),
            ("v", "g*g", "the square of the first gradient", "beta2*v + ", _MOMENTS),
            ("s", "g*g", "the square of the first gradient", "alpha*s + ", ("rmsprop",)),
        )
    ),
    _mistake("state starts at the gradient", "the moments are 0 before the first step; here they"
             " are the first gradient and its square",
             ("beta1*m + ", f"beta1*{_FIRST.format('g', 'm')} + "),
             ("beta2*v + ", f"beta2*{_FIRST.format('g*g', 'v')} + ")),
    _mistake("state starts at the gradient", "the sum of squares is 0 before the first step; here"
             " it is the square of the first gradient",
             ("s + g*g", f"{_FIRST.format('g*g', 's')} + g*g"), of=("adagrad",)),
    Change("state shared between parameters", "one state serves all parameters: each needs its"
           " own", shared=True),
    Change("state shared between parameters", "one state, and one number of the step, serve all"
           " parameters: each needs its own state", shared=True, by_parameter=True),
    Change("steps counted by parameter", "t is raised for each parameter; it counts the calls of"
           " step", by_parameter=True, of=_MOMENTS),
    Change("state not kept", "the state of the last step is not used in the next", forgets=True),
    Change("state not kept", "the state of the last step is not used in the next, nor is the step"
           " counted", (("^t", "^1"),), forgets=True),
    _mistake("first moment not kept", "the first moment of the last step is not used in the next",
             ("beta1*m + ", "")),
    _mistake("second moment not kept", "the second moment of the last step is not used in the"
             " next", ("beta2*v + ", "")),
    *(
        _mistake("state of the step before", "the parameters move before the state is brought up"
                 " to date", (text, "; ".join([text.split("; ")[-1], *text.split("; ")[:-1]])))
        for name, text in RULES.items() if name not in ("sgd", "nesterov", "adamw")
    ),
    # Velocity.
    _mistake("look-ahead missing", "the step is that of plain momentum",
             ("rate*(g + beta*v)", "rate*v")),
    _mistake("look-ahead missing", "the gradient is taken where the parameters are, and the step"
             " is that of plain momentum", ("slope*(p + beta*v)", "slope*p")),
    _mistake("look-ahead by the whole velocity", "the place ahead is beta times the velocity away",
             ("slope*(p + beta*v)", "slope*(p + v)")),
    _mistake("look-ahead backwards", "the place ahead lies in the direction of the velocity",
             ("slope*(p + beta*v)", "slope*(p - beta*v)")),
    _mistake("look-ahead in momentum", "this is Nesterov's step, not plain momentum",
             ("rate*v", "rate*(g + beta*v)"), of=("momentum",)),
    _mistake("gradient left out of the look-ahead", "beta times the velocity alone moves the"
             " parameters", ("rate*(g + beta*v)", "rate*(beta*v)")),
    _mistake("beta left out of the look-ahead", "the velocity is added whole",
             ("rate*(g + beta*v)", "rate*(g + v)")),
    _mistake("gradient counted twice", "the gradient is in the velocity already",
             ("rate*v", "rate*(v + g)"), of=("momentum",)),
    _mistake("beta left out", "the velocity never forgets", ("beta*v + g;", "v + g;")),
    _mistake("beta and 1 - beta swapped", "the velocity keeps 1 - beta of itself",
             ("beta*v + g;", "(1 - beta)*v + beta*g;")),
    _mistake("beta and 1 - beta swapped", "the velocity keeps 1 - beta of itself",
             ("beta*v + g;", "(1 - beta)*v + g;")),
    _mistake("beta times the gradient, too", "beta multiplies the velocity alone",
             ("beta*v + g;", "beta*(v + g);")),
    # Squares.
    _mistake("gradient not squared", "the sizes are to be collected as squares", ("g*g", "g"),
             of=_SCALED),
    _mistake("gradient not squared", "the sizes are to be collected as squares",
             ("g*g", "abs(g)"), of=_SCALED),
    _mistake("root missing", "the squares are divided by without a root", ("sqrt", "")),
    _mistake("never forgets", "squares are added up, as AdaGrad does",
             ("alpha*s + (1 - alpha)*g*g", "s + g*g")),
    _mistake("1 - alpha left out", "the new square is to be weighed by 1 - alpha",
             ("(1 - alpha)*g*g", "g*g")),
    _mistake("alpha and 1 - alpha swapped", "the average keeps 1 - alpha of itself",
             ("alpha*s + (1 - alpha)", "(1 - alpha)*s + alpha")),
    *(
        _mistake("forgets", "squares are averaged, as RMSprop does: AdaGrad adds them up",
                 ("s + g*g", f"{keep}*s + (1 - {keep})*g*g"), of=("adagrad",))
        for keep in (0.9, 0.95, 0.99, 0.999)
    ),
    _mistake("bias corrected", "RMSprop has no bias correction",
             ("sqrt(s)", "sqrt(s/(1 - alpha^t))"), of=("rmsprop",)),
    _mistake("epsilon missing", "nothing keeps the division from zero", (" + epsilon", "")),
    _mistake("epsilon inside the root", "epsilon stands outside of Adam's root: inside, it counts"
             " as its own root", (f"{_ROOT} + epsilon", f"sqrt({_V} + epsilon)")),
    _mistake("epsilon inside the root", "epsilon stands outside of Adam's root: inside, it counts"
             " as its own root", (f"{_ROOT} + epsilon", "sqrt((v + epsilon)/(1 - beta2^t))")),
    _mistake("alpha for 1 - alpha", "the new square is to be weighed by 1 - alpha, not by alpha",
             ("(1 - alpha)*g*g", "alpha*g*g"), of=("rmsprop",)),
    _mistake("1 - alpha for alpha", "the average is to keep alpha of itself, not 1 - alpha",
             ("alpha*s + (1", "(1 - alpha)*s + (1"), of=("rmsprop",)),
    # Adam's moments.
    _mistake("beta1 in both corrections", "the second moment is corrected by 1 - beta2^t",
             ("beta2^t", "beta1^t")),
    _mistake("beta2 in both corrections", "the first moment is corrected by 1 - beta1^t",
             ("beta1^t", "beta2^t")),
    *(
        _mistake("beta for 1 - beta", f"the new value is to be weighed by {which}, not by beta",
                 *swaps)
        for which, swaps in (
            ("1 - beta1 or 1 - beta2", ((_M1, "beta1*g;"), (_V1, "beta2*g*g"))),
            ("1 - beta1", ((_M1, "beta1*g;"),)),
            ("1 - beta2", ((_V1, "beta2*g*g"),)),
        )
    ),
    _mistake("no bias correction", "both moments start at zero, and are not corrected for it",
             (_M, "m"), (_V, "v")),
    _mistake("first moment not corrected", "the first moment's bias correction is missing",
             (_M, "m")),
    _mistake("first moment not corrected", "the rate lacks the first moment's bias correction",
             (_STEP, "p = p - rate*sqrt(1 - beta2^t)*m/(sqrt(v) + epsilon)")),
    _mistake("second moment not corrected", "the second moment's bias correction is missing",
             (_V, "v")),
    _mistake("steps counted from 0", "t is 1 in the first step", ("^t", "^(t - 1)")),
    _mistake("steps counted from 2", "t is 1 in the first step", ("^t", "^(t + 1)")),
    _mistake("step not counted", "t stays 1", ("^t", "^1")),
    *(
        _mistake("power missing in the correction", "beta is raised to t, not multiplied by it",
                 (f"{beta}^t", f"{beta}*t"))
        for beta in ("", "beta1", "beta2")
    ),
    _mistake("power missing in the correction", "beta is raised to t, not multiplied by it",
             ("(1 - beta1^t)", "(abs(1 - beta1*t))"), ("(1 - beta2^t)", "(abs(1 - beta2*t))")),
    _mistake("power of the whole correction", "beta is raised to t, not 1 - beta",
             ("(1 - beta1^t)", "((1 - beta1)^t)"), ("(1 - beta2^t)", "((1 - beta2)^t)")),
    _mistake("multiplied by the correction", "the moments are to be divided by 1 - beta^t",
             ("m/(1 - beta1", "m*(1 - beta1"), ("v/(1 - beta2", "v*(1 - beta2")),
    _mistake("corrected moments stored", "the correction is of the step alone: the moments stay as"
             " they are", ("m = beta1*m + (1 - beta1)*g", "m = (beta1*m + (1 - beta1)*g)/(1 -"
             " beta1^t)"), (f"v = beta2*v + {_V1}", f"v = (beta2*v + {_V1})/(1 - beta2^t)"),
             (_M, "m"), (f"({_V})", "(v)")),
    _mistake("beta1 and beta2 swapped", "beta1 is the first moment's, beta2 the second's",
             ("beta1", "beta3"), ("beta2", "beta1"), ("beta3", "beta2")),
    _mistake("beta1 and beta2 swapped", "beta1 is the first moment's, beta2 the second's, in the"
             " averages", ("beta1*m + (1 - beta1)", "beta3*m + (1 - beta3)"),
             ("beta2*v + (1 - beta2)", "beta1*v + (1 - beta1)"), ("beta3", "beta2")),
    _mistake("beta1 and beta2 swapped", "beta1 is the first moment's, beta2 the second's, in the"
             " corrections", ("beta1^t", "beta3^t"), ("beta2^t", "beta1^t"), ("beta3", "beta2")),
    _mistake("beta1 twice", "the second moment has beta2", ("beta2", "beta1")),
    _mistake("beta2 twice", "the first moment has beta1", ("beta1", "beta2")),
    _mistake("1 - beta left out", "the gradient is to be weighed by 1 - beta1, its square by"
             " 1 - beta2", ("(1 - beta1)*g;", "g;"), (_V1, "g*g")),
    _mistake("1 - beta left out", "the gradient is to be weighed by 1 - beta1",
             ("(1 - beta1)*g;", "g;")),
    _mistake("1 - beta left out", "the gradient's square is to be weighed by 1 - beta2",
             (_V1, "g*g")),
    _mistake("beta and 1 - beta swapped", "the averages keep 1 - beta of themselves",
             ("beta1*m + (1 - beta1)", "(1 - beta1)*m + beta1"),
             ("beta2*v + (1 - beta2)", "(1 - beta2)*v + beta2")),
    _mistake("beta and 1 - beta swapped", "the first moment keeps 1 - beta1 of itself",
             ("beta1*m + (1 - beta1)", "(1 - beta1)*m + beta1")),
    _mistake("beta and 1 - beta swapped", "the second moment keeps 1 - beta2 of itself",
             ("beta2*v + (1 - beta2)", "(1 - beta2)*v + beta2")),
    _mistake("average squared", "the gradient is to be squared, not its average",
             ("(1 - beta2)*g*g", "(1 - beta2)*m*m")),
    _mistake("first moment not used", "the step goes along the gradient, not along its average",
             (_M, "g")),
    _mistake("moments share one storage", "both moments are the same list or dictionary",
             ("m = beta1*m +", "v = beta1*v +"), (_M, "(v/(1 - beta1^t))")),
    _mistake("moments share one storage", "both moments are the same list or dictionary",
             ("m = beta1*m +", "v = beta1*v +"), ("; v = beta2", "; m = v; v = beta2")),
)  # fmt: skip

_DECAY_IN = "h = g + {0}*p; "
_DECAYED = "p = (1 - rate*{0})*p; "
#: Ways of weight decay: the name, what is said, before the rule, behind it, whether it is right.
DECAYS = tuple(
    (name, says, before.format(by), behind.format(by), kind)
    for by in ("wd", "(2*wd)")
    for name, says, before, behind, kind in (
        ("coupled", "the decay is added to the gradient", _DECAY_IN, "", "coupled"),
        ("decoupled", "the parameters shrink beside the step", _DECAYED, "", "decoupled"),
        ("decoupled, after the step", "the parameters shrink after they have moved", "",
         "; p = (1 - rate*{0})*p", "decoupled"),
        ("decoupled, without the rate", "the parameters shrink by the decay itself, as in"
         " Loshchilov and Hutter's algorithm 2", "p = (1 - {0})*p; ", "", "decoupled"),
        ("sign of the decay", "the decay drives parameters away from zero",
         "h = g - {0}*p; ", "", ""),
        ("sign of the decay", "the decay drives parameters away from zero",
         "p = (1 + rate*{0})*p; ", "", ""),
        ("decay applied twice", "the decay is in the gradient and beside the step",
         _DECAY_IN + _DECAYED, "", ""),
        ("decay by the sign", "the decay has the sizes of l1, not of l2",
         "h = g + {0}*sign(p); ", "", ""),
    )
)  # fmt: skip


def decayed(text: str, before: str, behind: str) -> str:
    """A rule with weight decay in front of it and behind it.

    >>> decayed("p = p - rate*g", "h = g + wd*p; ", "")
    'h = g + wd*p; p = p - rate*h'
    """
    inner = re.sub(r"\bg\b", "h", text) if before.startswith("h =") else text
    return before + inner + behind


@dataclass(frozen=True)
class Variant:
    """A rule, and the changes that made it from the right one."""

    text: str
    changes: tuple[Change, ...] = ()

    @property
    def right(self) -> bool:
        """Whether it is the rule, but for conventions."""
        return all(change.right for change in self.changes)


@lru_cache(maxsize=16)
def variants(rule: str, ahead: bool, most: int = 1) -> tuple[Variant, ...]:
    """The rule itself and its variants by so many changes, conventions first.

    >>> [variant.changes[0].name for variant in variants("sgd", False)[1:5]]
    ['sign', 'rate applied twice', 'rate not applied', 'normalized gradient']
    """
    own = _AHEAD if ahead else rule
    base = LOOKING_AHEAD if ahead else RULES[rule]
    found = {Variant(base).text: Variant(base)} if most == 1 else {}
    single = [change for change in CHANGES if not change.of or own in change.of]
    single = [c for c in single if c.swaps or c.normalizes or rule != "sgd"]
    for changes in combinations(single, most):
        text: str | None = base
        for change in changes:
            text = None if text is None else change.applied(own, text)
        if text is None:
            continue
        mode = "".join(
            "t" * c.by_parameter + "s" * c.shared + "f" * c.forgets + c.normalizes + f"{c.offset:g}"
            for c in changes
        )
        found.setdefault(f"{text} {mode}", Variant(text, changes))
    return tuple(sorted(found.values(), key=lambda variant: not variant.right))


@lru_cache(maxsize=2048)
def _parsed(text: str) -> tuple[tuple[str, Expression], ...]:
    statements = parse_program(text, FUNCTIONS, "<rule>").statements
    return tuple((one.name, one.expression) for one in statements if isinstance(one, Definition))


def _normalized(gradients: Any, change: Change) -> Any:
    """Return gradients of shape (steps, parameters) divided by their sizes, if a change does so."""
    if change.normalizes == "sign":
        return np.sign(gradients)
    if change.normalizes == "all":
        return gradients / (np.linalg.norm(gradients, axis=1, keepdims=True) + change.offset)
    if change.normalizes == "each":
        return gradients / (np.abs(gradients) + change.offset)
    return gradients


def simulate(variant: Variant, hyper: Mapping[str, float], start: Any, gradients: Any) -> Any:
    """The parameters after each step.

    Args:
        variant: the rule.
        hyper: numbers for its names, the rate among them.
        start: shape (parameters,).
        gradients: shape (steps, parameters).

    Returns:
        Shape (steps, parameters); nan from the step on in which a number is not finite.

    >>> hyper = {"beta": 0.5, "rate": 0.1}
    >>> simulate(Variant(RULES["momentum"]), hyper, np.zeros(1), np.ones((2, 1)))
    array([[-0.1 ],
           [-0.25]])
    """
    steps = _parsed(variant.text)
    shared = any(change.shared for change in variant.changes)
    each = any(change.by_parameter for change in variant.changes)
    forgets = any(change.forgets for change in variant.changes)
    found = np.full(np.shape(gradients), np.nan)
    p, size = np.array(start, dtype=float), len(start)
    names = ("m", *(name for name, _ in steps))  # two changes can leave m out
    zero: dict[str, Any] = {name: np.zeros(1 if shared else size) for name in names}
    state = dict(zero)

    def moved(at: Any, g: Any, t: Any) -> Any:
        known = {**hyper, **(zero if forgets else state), "p": at, "g": g, "t": t}
        for name, tree in steps:
            state[name] = known[name] = evaluated(tree, known)
        return known["p"]

    with np.errstate(all="ignore"):
        for change in variant.changes:
            gradients = _normalized(np.asarray(gradients), change)
        for step, gradient in enumerate(gradients):
            # As it is counted once a step, or once for each parameter.
            t = step * size + 1.0 + np.arange(size) if each else np.full(size, step + 1.0)
            if shared:
                for k in range(size):
                    one = slice(k, k + 1)
                    p[one] = moved(p[one], gradient[one], t[one])
            else:
                p = moved(p, gradient, t)
            found[step] = p
            if not np.all(np.isfinite(p)):
                break
    return found
