"""Losses: expressions that become one more vertex, to be differentiated and shown like any other.

A loss is said in one of three ways:

- in ``out`` and ``target``, as all that have a name here: the loss of a sample is then the sum over
  the outputs and all their elements. Both have the output's shape: functions of arrays can be used;
- in the names of the graph, variables and parameters: every other name is a column of the data;
- as ``output``: the graph's only output is the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cgprimer.checked_numbers import real_number
from cgprimer.core.language.names import replaced
from cgprimer.core.language.syntax import Expression, Number
from cgprimer.core.primitives.notation import parse_expression
from cgprimer.errors import DataError, UsageError, did_you_mean
from cgprimer.plugins import Registry

SQUARED_ERROR = "(out - target)^2"
HALF_SQUARED_ERROR = "(out - target)^2/2"
ABSOLUTE_ERROR = "abs(out - target)"
HUBER = (
    "where(less(abs(out - target), delta), (out - target)^2/2, delta*(abs(out - target) - delta/2))"
)
CROSS_ENTROPY = "-xlogy(target, out) - xlogy(1 - target, 1 - out)"  # 0*log(0) is 0
CROSS_ENTROPY_LOGIT = "target*softplus(-out) + (1 - target)*softplus(out)"
SOFTMAX_CROSS_ENTROPY = "-sum(target*log_softmax(out))"
HINGE = "max(0, 1 - out*target)"
_OWN = ("squared-error", "half-squared-error", "absolute-error", "huber", "cross-entropy",
        "cross-entropy-logit", "softmax-cross-entropy", "hinge")  # fmt: skip
#: Each a text in ``out`` and ``target``; a function of them where no text says what it does.
_PLACES = {name: f"{__name__}:{name.upper().replace('-', '_')}" for name in _OWN}
LOSSES: Registry[Any] = Registry("loss", "cgprimer.losses", _PLACES)
_SETTINGS = {"huber": {"delta": 1.0}}  # names in the text of a loss that stand for a number
_TARGETS: dict[str, tuple[str, Callable[[Any], Any]]] = {  # what targets must be: words and a test
    **dict.fromkeys(_OWN[4:7], ("between 0 and 1", lambda t: (t >= 0) & (t <= 1))),
    "hinge": ("-1 or 1", lambda t: abs(t) == 1),
}
SOFTMAX = "softmax-cross-entropy"
OUTPUT = "output"  #: the loss of a graph whose output is the loss
TARGET = "target."  #: on a tape, before the name of a column that the loss needs
LOSS = "loss.sample"  #: name of the loss on the tape; no variable of a user can have a dot


def base_name(loss: str) -> str:
    """The name of a loss without its settings: ``huber`` for ``huber(0.5)``; else the text."""
    return _with_settings(loss)[0]


def _with_settings(loss: str) -> tuple[str, dict[str, float]]:
    """The name of a loss, and the numbers that stand for names in its text."""
    if not isinstance(loss, str):
        raise UsageError(f"a loss is a text, or a name (register_loss), not {type(loss).__name__}")
    name, bracket, inside = loss.strip().partition("(")
    settings = dict(_SETTINGS.get(name.strip(), {}))
    if not settings or not (bracket and inside.endswith(")")):
        return loss.strip(), settings
    for given, setting in zip(inside[:-1].split(","), settings, strict=False):
        known, equals, value = given.rpartition("=")
        if equals and known.strip() != setting:
            raise UsageError(f"{name.strip()} has the setting {setting}, not {known.strip()!r}")
        try:
            settings[setting] = real_number(f"the {setting} of {name}", float(value), above=0)
        except ValueError:
            hint = f"such as {name}({setting}=0.5)"
            raise UsageError(f"{setting} is a number, not {value.strip()!r}", hint=hint) from None
    return name.strip(), settings


def loss_tree(loss: str, known: Iterable[str] = ()) -> Expression | Callable[..., Any]:
    """What a loss says: one of ``LOSSES``, or a text in ``out``, ``target`` and known names.

    Returns:
        Its syntax tree; a function where no text says what it does.

    Raises:
        UsageError: neither a known loss nor an expression.
        SourceError: it is no expression.

    >>> from cgprimer.core.primitives.notation import unparse
    >>> unparse(loss_tree("huber(0.5)"))
    'where(less(abs(out - target), 0.5), (out - target)^2/2, 0.5*(abs(out - target) - 0.5/2))'
    """
    name, settings = _with_settings(loss)
    if name in LOSSES:
        text = LOSSES[name]
        if callable(text):
            return text  # type: ignore[no-any-return]
        tree = parse_expression(text, source_name=f"<loss {name}>")
        return replaced(tree, {n: Number(value) for n, value in settings.items()})
    words = name.split("-")
    if not name or (all(map(str.isidentifier, words)) and set(words) - {*known, "out", "target"}):
        ways = "or an expression in out and target, or in names of the graph and of columns"
        hint = did_you_mean(name, (*LOSSES, *known)) or f"one of: {', '.join(LOSSES)}, {ways}"
        raise UsageError(f"there is no loss {loss!r}", hint=hint)
    return parse_expression(loss, source_name="<loss>")


def check_target(loss: str, values: Any, what: str, *, sample: bool = True) -> None:
    """Raise DataError if a target is none that the loss knows.

    Args:
        loss: a name or a text.
        values: the targets: a number, or an array, samples first.
        what: what messages call them.
        sample: whether there are samples: the message then says which.

    >>> check_target("hinge", 0.0, "the target", sample=False)
    Traceback (most recent call last):
        ...
    cgprimer.errors.DataError: the target is 0; for hinge it must be -1 or 1
    """
    name = base_name(loss)
    if name in _TARGETS:
        must, fits = _TARGETS[name]
        refuse(values, fits(values), f"{what}{{}}; for {name} it must be {must}", sample=sample)


def refuse(values: Any, fit: Any, said: str, *, sample: bool = True) -> None:
    """Raise DataError with the first value that does not fit, if there is one."""
    if isinstance(values, float):
        if not fit:
            raise DataError(said.format(f" is {values:g}"))
        return
    import numpy as np

    wrong = np.argwhere(~np.asarray(fit))
    if len(wrong):
        first = tuple(wrong[0].tolist())
        value, own = float(np.asarray(values)[first]), ",".join(map(str, first[sample:]))
        place = f"[{own}]" * bool(own) + f" is {value:g}"
        raise DataError(said.format(place + f" for sample {first[0]}" * sample))


def check_classes(values: Any, classes: int, what: str, *, sample: bool = True) -> None:
    """Raise DataError if a target is no number of a class; arguments as for check_target."""
    fit = (values >= 0) & (values < classes) & (values % 1 == 0)
    must = f"for {SOFTMAX} it must be a class, a whole number from 0 to {classes - 1}"
    refuse(values, fit, f"{what}{{}}; {must}", sample=sample)
