"""Conventions and mistakes of update rules, as changes to the statements of the optimizer table.

The sentences are shown to students. They contain no values, because a check must not reveal the
solution.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cgprimer.training.rule_tables import OPTIMIZER_TABLE
from cgprimer.training.statement_tapes import find_state_names, parse_statements

_CHECKED = ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam")
#: Statements of each optimizer that a submission can have. Weight decay is checked separately.
RULES = {name: OPTIMIZER_TABLE[name].formula for name in _CHECKED}
RULES["adamw"] = RULES["adam"]
#: Nesterov's rule with the gradient ``g + slope*position`` at the position ahead.
LOOKING_AHEAD = "v = beta*v - rate*(g + slope*(p + beta*v)); p = p + v"
AHEAD = "nesterov ahead"
_MOMENTS = ("adam", "adamw")
_SCALED = ("adagrad", "rmsprop", *_MOMENTS)
_VELOCITY = ("momentum", "nesterov")


@dataclass(frozen=True)
class Change:
    """A mistake or convention: a change to an update rule, or to the handling of its state.

    Attributes:
        name: name of the convention or mistake in reports.
        message: one sentence for the student, without values.
        replacements: pairs of old and new text; the change does not apply to a rule without an old
            text.
        optimizers: the optimizers that the change applies to; empty for all.
        is_convention: whether the change is a common convention and not a mistake.
        is_disputed: whether some courses teach the change; the lecturer decides.
        counts_per_parameter: whether the number of updates increases for each parameter.
        shares_state: whether all parameters share one state.
        resets_state: whether each update starts with the initial state; updates are still counted.
        normalizes: how the gradient is divided by its size first: ``all`` by the norm over all
            parameters, ``each`` by the absolute value of each element, ``sign`` by the absolute
            value where it is not 0; empty for no division.
        offset: constant that is added to the size, against a division by zero.
    """

    name: str
    message: str
    replacements: tuple[tuple[str, str], ...] = ()
    optimizers: tuple[str, ...] = ()
    is_convention: bool = False
    is_disputed: bool = False
    counts_per_parameter: bool = False
    shares_state: bool = False
    resets_state: bool = False
    normalizes: str = ""
    offset: float = 0.0

    def apply(self, rule: str, text: str) -> str | None:
        """Apply the change to the statements of a rule; return None if it is not applicable."""
        if self.optimizers and rule not in self.optimizers:
            return None
        for old, new in self.replacements:
            if old not in text:
                return None
            text = text.replace(old, new)
        return text


def _create_mistake(
    name: str, message: str, *replacements: tuple[str, str], of: Sequence[str] = ()
) -> Change:
    """Create a change to an update rule that represents a mistake."""
    return Change(name, message, replacements, tuple(of))


def _move_parameters_first(text: str) -> str:
    """Reorder statements so that the parameters are updated before the state.

    >>> _move_parameters_first("v = beta*v + g; p = p - rate*v")
    'p = p - rate*v; v = beta*v + g'
    """
    state = find_state_names(parse_statements(text))
    statements = text.split("; ")
    return "; ".join(sorted(statements, key=lambda one: one.split(" = ")[0].strip() in state))


_INITIAL = "where(less(t, 1.5), {}, {})"  # a state before the first update, and after it
_MH, _VH = "mh = m/(1 - beta1^t)", "vh = v/(1 - beta2^t)"
_M1, _V1 = "(1 - beta1)*g;", "(1 - beta2)*g*g"
_STEP = f"{_MH}; {_VH}; p = p - rate*mh/(sqrt(vh) + epsilon)"
_DAMPED = Change(
    "damped by 1 - beta",
    "the gradient in the velocity is multiplied by 1 - beta, which makes the updates shorter than"
    " those of Polyak and PyTorch; some courses teach this form",
    (("v + g;", "v + (1 - beta)*g;"),), _VELOCITY, is_disputed=True,
)  # fmt: skip
#: Conventions, then mistakes.
CHANGES: tuple[Change, ...] = (
    Change(
        "epsilon inside the root",
        "epsilon is inside the square root, as in Keras and D2L",
        (("sqrt(s) + epsilon", "sqrt(s + epsilon)"),),
        is_convention=True,
    ),
    Change(
        "epsilon hat",
        "the bias correction is applied to the learning rate instead of the"
        " moments, as in TensorFlow and in section 2 of Kingma and Ba",
        ((_STEP, "p = p - rate*sqrt(1 - beta2^t)/(1 - beta1^t)*m/(sqrt(v) + epsilon)"),),
        is_convention=True,
    ),
    Change(
        "centered",
        "the update divides by the variance of the gradient instead of its mean"
        " square: this is centered RMSprop",
        (("s = alpha", "a = alpha*a + (1 - alpha)*g; s = alpha"), ("sqrt(s)", "sqrt(s - a*a)")),
        is_convention=True,
    ),
    Change(
        "gradient at the parameters",
        "the gradient is computed at the parameters, as in PyTorch",
        ((LOOKING_AHEAD, "v = beta*v + (g + slope*p); p = p - rate*((g + slope*p) + beta*v)"),),
        (AHEAD,),
        is_convention=True,
    ),
    replace(_DAMPED, replacements=(*_DAMPED.replacements, ("rate*(g", "rate*((1 - beta)*g"))),
    _DAMPED,
    # Mistakes that every rule can have.
    _create_mistake(
        "sign",
        "the parameters move in the direction of the gradient, so the loss increases",
        ("p - rate", "p + rate"),
    ),
    _create_mistake(
        "sign",
        "the parameters move in the direction of the gradient, so the loss increases",
        ("+ g;", "- g;"),
        of=_VELOCITY,
    ),
    _create_mistake(
        "sign",
        "the parameters move in the direction of the gradient, so the loss increases",
        ("p = p + v", "p = p - v"),
    ),
    _create_mistake(
        "rate applied twice",
        "the update is multiplied by the learning rate twice",
        ("rate*", "rate*rate*"),
    ),
    _create_mistake(
        "rate not applied", "the update is not multiplied by the learning rate", ("rate*", "1*")
    ),
    *(
        Change(
            "normalized gradient",
            "the gradient is divided by its norm or absolute value, so its size has no effect",
            optimizers=tuple(RULES),
            normalizes=how,
            offset=offset,
        )
        for how, offset in (
            ("all", 0.0),
            ("sign", 0.0),
            ("each", 0.0),
            *((how, 10.0**-k) for how in ("all", "each") for k in (12, 10, 8, 7, 6)),
        )
    ),
    # State.
    *(
        _create_mistake(
            "state starts at the gradient",
            f"the state must be 0 before the first update, but it is {start}",
            (old, old.replace(f"*{name} ", f"*{_INITIAL.format(value, name)} ")),
            of=of,
        )
        for name, value, start, old, of in (
            ("v", "g", "the first gradient", "beta*v + ", _VELOCITY),
            ("m", "g", "the first gradient", "beta1*m + ", _MOMENTS),
            ("v", "g*g", "the square of the first gradient", "beta2*v + ", _MOMENTS),
            ("s", "g*g", "the square of the first gradient", "alpha*s + ", ("rmsprop",)),
        )
    ),
    _create_mistake(
        "state starts at the gradient",
        "the moments must be 0 before the first update, but"
        " they are the first gradient and its square",
        ("beta1*m + ", f"beta1*{_INITIAL.format('g', 'm')} + "),
        ("beta2*v + ", f"beta2*{_INITIAL.format('g*g', 'v')} + "),
    ),
    _create_mistake(
        "state starts at the gradient",
        "the sum of squares must be 0 before the first update,"
        " but it is the square of the first gradient",
        ("s + g*g", f"{_INITIAL.format('g*g', 's')} + g*g"),
        of=("adagrad",),
    ),
    Change(
        "state shared between parameters",
        "all parameters share one state; each needs a separate state",
        shares_state=True,
    ),
    Change(
        "state shared between parameters",
        "all parameters share one state and one counter; each needs a separate state",
        shares_state=True,
        counts_per_parameter=True,
    ),
    Change(
        "steps counted per parameter",
        "t increases once per parameter; it must count the calls to step",
        counts_per_parameter=True,
        optimizers=_MOMENTS,
    ),
    Change(
        "state not kept",
        "the state of the previous update is not used",
        resets_state=True,
    ),
    Change(
        "state not kept",
        "the state of the previous update is not used, and updates are not counted",
        (("^t", "^1"),),
        resets_state=True,
    ),
    _create_mistake(
        "first moment not kept",
        "the previous first moment is not used",
        ("beta1*m + ", ""),
    ),
    _create_mistake(
        "second moment not kept",
        "the previous second moment is not used",
        ("beta2*v + ", ""),
    ),
    *(
        _create_mistake(
            "state of the previous step",
            "the parameters are updated before the state; update the state first",
            (text, _move_parameters_first(text)),
        )
        for name, text in RULES.items()
        if name not in ("sgd", "nesterov", "adamw")
    ),
    # Velocity.
    _create_mistake(
        "look-ahead missing",
        "this is the update of plain momentum",
        ("rate*(g + beta*v)", "rate*v"),
    ),
    _create_mistake(
        "look-ahead missing",
        "the gradient is computed at the parameters, and this is the update of plain momentum",
        ("slope*(p + beta*v)", "slope*p"),
    ),
    _create_mistake(
        "look-ahead by the whole velocity",
        "the look-ahead must be beta times the velocity",
        ("slope*(p + beta*v)", "slope*(p + v)"),
    ),
    _create_mistake(
        "look-ahead backwards",
        "the look-ahead must be in the direction of the velocity",
        ("slope*(p + beta*v)", "slope*(p - beta*v)"),
    ),
    _create_mistake(
        "look-ahead in momentum",
        "this is Nesterov's update, not plain momentum",
        ("rate*v", "rate*(g + beta*v)"),
        of=("momentum",),
    ),
    _create_mistake(
        "gradient left out of the look-ahead",
        "the update lacks the gradient; it is only beta times the velocity",
        ("rate*(g + beta*v)", "rate*(beta*v)"),
    ),
    _create_mistake(
        "beta left out of the look-ahead",
        "the look-ahead must multiply the velocity by beta",
        ("rate*(g + beta*v)", "rate*(g + v)"),
    ),
    _create_mistake(
        "gradient counted twice",
        "the velocity already contains the gradient",
        ("rate*v", "rate*(v + g)"),
        of=("momentum",),
    ),
    _create_mistake(
        "beta left out",
        "the velocity is not multiplied by beta, so it never decays",
        ("beta*v + g;", "v + g;"),
    ),
    _create_mistake(
        "beta and 1 - beta swapped",
        "the velocity is multiplied by 1 - beta instead of beta",
        ("beta*v + g;", "(1 - beta)*v + beta*g;"),
    ),
    _create_mistake(
        "beta and 1 - beta swapped",
        "the velocity is multiplied by 1 - beta instead of beta",
        ("beta*v + g;", "(1 - beta)*v + g;"),
    ),
    _create_mistake(
        "gradient multiplied by beta",
        "beta must multiply only the velocity",
        ("beta*v + g;", "beta*(v + g);"),
    ),
    # Squares.
    _create_mistake(
        "gradient not squared",
        "the state must accumulate squared gradients",
        ("g*g", "g"),
        of=_SCALED,
    ),
    _create_mistake(
        "gradient not squared",
        "the state must accumulate squared gradients",
        ("g*g", "abs(g)"),
        of=_SCALED,
    ),
    _create_mistake("root missing", "the update must divide by the square root", ("sqrt", "")),
    _create_mistake(
        "squares never decay",
        "squares are summed, as in AdaGrad; RMSprop averages them",
        ("alpha*s + (1 - alpha)*g*g", "s + g*g"),
    ),
    _create_mistake(
        "1 - alpha left out",
        "the squared gradient must have the weight 1 - alpha",
        ("(1 - alpha)*g*g", "g*g"),
    ),
    _create_mistake(
        "alpha and 1 - alpha swapped",
        "the weights of the average and of the squared gradient are swapped",
        ("alpha*s + (1 - alpha)", "(1 - alpha)*s + alpha"),
    ),
    *(
        _create_mistake(
            "squares decay",
            "squares are averaged, as in RMSprop; AdaGrad sums them",
            ("s + g*g", f"{keep}*s + (1 - {keep})*g*g"),
            of=("adagrad",),
        )
        for keep in (0.9, 0.95, 0.99, 0.999)
    ),
    _create_mistake(
        "bias correction added",
        "RMSprop has no bias correction",
        ("sqrt(s)", "sqrt(s/(1 - alpha^t))"),
        of=("rmsprop",),
    ),
    _create_mistake(
        "epsilon missing",
        "epsilon is missing, so the update can divide by zero",
        (" + epsilon", ""),
    ),
    _create_mistake(
        "epsilon inside the root",
        "epsilon must be outside Adam's square root; inside, its square root is added",
        ("sqrt(vh) + epsilon", "sqrt(vh + epsilon)"),
    ),
    _create_mistake(
        "epsilon inside the root",
        "epsilon must be outside Adam's square root; inside, its square root is added",
        ("sqrt(vh) + epsilon", "sqrt(vh)"),
        ("vh = v/", "vh = (v + epsilon)/"),
    ),
    _create_mistake(
        "alpha instead of 1 - alpha",
        "the squared gradient must have the weight 1 - alpha, not alpha",
        ("(1 - alpha)*g*g", "alpha*g*g"),
        of=("rmsprop",),
    ),
    _create_mistake(
        "1 - alpha instead of alpha",
        "the previous average must have the weight alpha, not 1 - alpha",
        ("alpha*s + (1", "(1 - alpha)*s + (1"),
        of=("rmsprop",),
    ),
    # Adam's moments.
    _create_mistake(
        "beta1 in both corrections",
        "the second moment must be divided by 1 - beta2^t",
        ("beta2^t", "beta1^t"),
    ),
    _create_mistake(
        "beta2 in both corrections",
        "the first moment must be divided by 1 - beta1^t",
        ("beta1^t", "beta2^t"),
    ),
    *(
        _create_mistake(
            "beta instead of 1 - beta",
            f"the new value must have the weight {which}, not beta",
            *swaps,
        )
        for which, swaps in (
            ("1 - beta1 or 1 - beta2", ((_M1, "beta1*g;"), (_V1, "beta2*g*g"))),
            ("1 - beta1", ((_M1, "beta1*g;"),)),
            ("1 - beta2", ((_V1, "beta2*g*g"),)),
        )
    ),
    _create_mistake(
        "no bias correction",
        "both moments start at 0 and need a bias correction",
        (_MH, "mh = m"),
        (_VH, "vh = v"),
    ),
    _create_mistake(
        "first moment not corrected",
        "the bias correction of the first moment is missing",
        (_MH, "mh = m"),
    ),
    _create_mistake(
        "first moment not corrected",
        "the learning rate lacks the bias correction of the first moment",
        (_STEP, "p = p - rate*sqrt(1 - beta2^t)*m/(sqrt(v) + epsilon)"),
    ),
    _create_mistake(
        "second moment not corrected",
        "the bias correction of the second moment is missing",
        (_VH, "vh = v"),
    ),
    _create_mistake("steps counted from 0", "t must be 1 in the first update", ("^t", "^(t - 1)")),
    _create_mistake("steps counted from 2", "t must be 1 in the first update", ("^t", "^(t + 1)")),
    _create_mistake("step not counted", "t is 1 in all updates", ("^t", "^1")),
    *(
        _create_mistake(
            "power missing in the correction",
            "beta must be raised to the power t, not multiplied by t",
            (f"{beta}^t", f"{beta}*t"),
        )
        for beta in ("", "beta1", "beta2")
    ),
    _create_mistake(
        "power missing in the correction",
        "beta must be raised to the power t, not multiplied by t",
        ("(1 - beta1^t)", "(abs(1 - beta1*t))"),
        ("(1 - beta2^t)", "(abs(1 - beta2*t))"),
    ),
    _create_mistake(
        "power of the whole correction",
        "beta must be raised to the power t, not 1 - beta",
        ("(1 - beta1^t)", "((1 - beta1)^t)"),
        ("(1 - beta2^t)", "((1 - beta2)^t)"),
    ),
    _create_mistake(
        "multiplied by the correction",
        "the moments must be divided by 1 - beta^t",
        ("m/(1 - beta1", "m*(1 - beta1"),
        ("v/(1 - beta2", "v*(1 - beta2"),
    ),
    _create_mistake(
        "corrected moments stored",
        "the corrected moments must not be stored; correct copies of the moments",
        ("m = beta1*m + (1 - beta1)*g", "m = (beta1*m + (1 - beta1)*g)/(1 - beta1^t)"),
        (f"v = beta2*v + {_V1}", f"v = (beta2*v + {_V1})/(1 - beta2^t)"),
        (_MH, "mh = m"),
        (_VH, "vh = v"),
    ),
    _create_mistake(
        "beta1 and beta2 swapped",
        "beta1 belongs to the first moment, beta2 to the second",
        ("beta1", "beta3"),
        ("beta2", "beta1"),
        ("beta3", "beta2"),
    ),
    _create_mistake(
        "beta1 and beta2 swapped",
        "beta1 belongs to the first moment, beta2 to the second, in the averages",
        ("beta1*m + (1 - beta1)", "beta3*m + (1 - beta3)"),
        ("beta2*v + (1 - beta2)", "beta1*v + (1 - beta1)"),
        ("beta3", "beta2"),
    ),
    _create_mistake(
        "beta1 and beta2 swapped",
        "beta1 belongs to the first moment, beta2 to the second, in the corrections",
        ("beta1^t", "beta3^t"),
        ("beta2^t", "beta1^t"),
        ("beta3", "beta2"),
    ),
    _create_mistake("beta1 twice", "the second moment must use beta2", ("beta2", "beta1")),
    _create_mistake("beta2 twice", "the first moment must use beta1", ("beta1", "beta2")),
    _create_mistake(
        "1 - beta left out",
        "the gradient must have the weight 1 - beta1, its square the weight 1 - beta2",
        ("(1 - beta1)*g;", "g;"),
        (_V1, "g*g"),
    ),
    _create_mistake(
        "1 - beta left out", "the gradient must have the weight 1 - beta1", ("(1 - beta1)*g;", "g;")
    ),
    _create_mistake(
        "1 - beta left out", "the squared gradient must have the weight 1 - beta2", (_V1, "g*g")
    ),
    _create_mistake(
        "beta and 1 - beta swapped",
        "the weights of the averages and of the new values are swapped",
        ("beta1*m + (1 - beta1)", "(1 - beta1)*m + beta1"),
        ("beta2*v + (1 - beta2)", "(1 - beta2)*v + beta2"),
    ),
    _create_mistake(
        "beta and 1 - beta swapped",
        "the weights of the first moment and of the gradient are swapped",
        ("beta1*m + (1 - beta1)", "(1 - beta1)*m + beta1"),
    ),
    _create_mistake(
        "beta and 1 - beta swapped",
        "the weights of the second moment and of the squared gradient are swapped",
        ("beta2*v + (1 - beta2)", "(1 - beta2)*v + beta2"),
    ),
    _create_mistake(
        "average squared",
        "the gradient must be squared, not its average",
        ("(1 - beta2)*g*g", "(1 - beta2)*m*m"),
    ),
    _create_mistake(
        "first moment not used",
        "the update uses the gradient instead of its average",
        (_MH, "mh = g"),
    ),
    _create_mistake(
        "moments share one storage",
        "both moments are stored in the same list or dictionary",
        ("m = beta1*m +", "v = beta1*v +"),
        ("mh = m/", "mh = v/"),
    ),
    _create_mistake(
        "moments share one storage",
        "both moments are stored in the same list or dictionary",
        ("m = beta1*m +", "v = beta1*v +"),
        ("; v = beta2", "; m = v; v = beta2"),
    ),
)

_COUPLED = "h = g + {0}*p; "
_DECOUPLED = "p = (1 - rate*{0})*p; "


@dataclass(frozen=True)
class WeightDecay:
    """A form of weight decay that a submission may implement.

    Attributes:
        name: name of the form or of the mistake.
        message: one sentence for the student.
        before: statements before the rule; a rule after ``h = ...`` reads ``h`` instead of ``g``.
        after: statements after the rule.
        kind: ``coupled`` or ``decoupled``; empty for a mistake.
    """

    name: str
    message: str
    before: str
    after: str
    kind: str

    def apply(self, text: str) -> str:
        """Return the statements of an update rule after adding this form of weight decay.

        >>> DECAYS[0].apply("p = p - rate*g")
        'h = g + wd*p; p = p - rate*h'
        """
        is_coupled = self.before.startswith("h =")
        return self.before + (re.sub(r"\bg\b", "h", text) if is_coupled else text) + self.after


#: Forms of weight decay; ``wd`` is the strength of the decay.
DECAYS = tuple(
    WeightDecay(name, message, before.format(strength), after.format(strength), kind)
    for strength in ("wd", "(2*wd)")
    for name, message, before, after, kind in (
        ("coupled", "the decay is added to the gradient", _COUPLED, "", "coupled"),
        ("decoupled", "the parameters shrink before the update", _DECOUPLED, "", "decoupled"),
        ("decoupled, after the step", "the parameters shrink after the update", "",
         "; p = (1 - rate*{0})*p", "decoupled"),
        ("decoupled, without the rate", "the decay is not multiplied by the learning rate, as in"
         " algorithm 2 of Loshchilov and Hutter", "p = (1 - {0})*p; ", "", "decoupled"),
        ("sign of the decay", "the decay moves parameters away from 0",
         "h = g - {0}*p; ", "", ""),
        ("sign of the decay", "the decay moves parameters away from 0",
         "p = (1 + rate*{0})*p; ", "", ""),
        ("decay applied twice", "the decay is applied both to the gradient and to the parameters",
         _COUPLED + _DECOUPLED, "", ""),
        ("decay by the sign", "this is the decay of an L1 penalty instead of an L2 penalty",
         "h = g + {0}*sign(p); ", "", ""),
    )
)  # fmt: skip
