"""Losses as expressions of the language.

There are three kinds of loss expressions:

- expressions in ``out`` and ``target``, like the built-in losses. The loss of a sample is the sum
  over the outputs and their elements. Both names have the shape of the output, so that functions of
  arrays can be used;
- expressions in variables and parameters of the graph; all other names are columns of the data;
- ``output``: the loss is the only output of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cgprimer.core.language.syntax_tree import Expression, Number, substitute
from cgprimer.core.operations.notation import parse_expression
from cgprimer.errors import DataError, UsageError, did_you_mean
from cgprimer.support.plugins import Registry
from cgprimer.support.validation import check_real_number
from cgprimer.support.value_names import internal_name

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
_BUILT_IN = ("squared-error", "half-squared-error", "absolute-error", "huber", "cross-entropy",
             "cross-entropy-logit", "softmax-cross-entropy", "hinge")  # fmt: skip
#: The losses by name: texts in ``out`` and ``target``, or Python functions of both.
LOSSES: Registry[Any] = Registry(
    "loss",
    "cgprimer.losses",
    {name: f"{__name__}:{name.upper().replace('-', '_')}" for name in _BUILT_IN},
)
_SETTINGS = {"huber": {"delta": 1.0}}  # names in the text of a loss, with their default values
_TARGETS: dict[str, tuple[str, Callable[[Any], Any]]] = {  # valid targets: description and test
    **dict.fromkeys(_BUILT_IN[4:7], ("between 0 and 1", lambda t: (t >= 0) & (t <= 1))),
    "hinge": ("-1 or 1", lambda t: abs(t) == 1),
}
SOFTMAX = "softmax-cross-entropy"
OUTPUT = "output"  #: the loss is the output of the graph
LOSS = internal_name("loss", "sample")  #: name of the loss on a tape


def target_column_name(output: str) -> str:
    """Return the name of the tape column that holds the target of an output."""
    return internal_name("target", output)


def parse_loss_name(loss: str) -> str:
    """Return the name of a loss without its settings, such as ``huber`` for ``huber(0.5)``.

    Return a loss that is not the name of a built-in loss unchanged.
    """
    return _parse_settings(loss)[0]


def _parse_settings(loss: str) -> tuple[str, dict[str, float]]:
    """Split a loss such as ``huber(0.5)`` into its name and the values of its settings."""
    if not isinstance(loss, str):
        raise UsageError(f"the loss must be a name or an expression, got {type(loss).__name__}")
    name, bracket, inside = loss.strip().partition("(")
    settings = dict(_SETTINGS.get(name.strip(), {}))
    if not settings or not (bracket and inside.endswith(")")):
        return loss.strip(), settings
    for argument, setting in zip(inside[:-1].split(","), settings, strict=False):
        keyword, equals, value = argument.rpartition("=")
        if equals and keyword.strip() != setting:
            raise UsageError(
                f"unknown setting {keyword.strip()!r} of the loss {name.strip()!r}",
                hint=f"use {setting}",
            )
        try:
            settings[setting] = check_real_number(f"the {setting} of {name}", float(value), above=0)
        except ValueError:
            hint = f"write {name}({setting}=0.5)"
            message = f"{setting} must be a number, got {value.strip()!r}"
            raise UsageError(message, hint=hint) from None
    return name.strip(), settings


def parse_loss(loss: str, names: Iterable[str] = ()) -> Expression | Callable[..., Any]:
    """Return the syntax tree of a loss, or the Python function that is registered as the loss.

    Args:
        loss: the name of a loss, or an expression in ``out``, ``target`` and other names.
        names: names that an expression may use, for hints.

    Raises:
        UsageError: `loss` is neither the name of a loss nor an expression.
        SourceError: the expression is invalid.

    >>> from cgprimer.core.operations.notation import unparse
    >>> unparse(parse_loss("huber(0.5)"))
    'where(less(abs(out - target), 0.5), (out - target)^2/2, 0.5*(abs(out - target) - 0.5/2))'
    """
    name, settings = _parse_settings(loss)
    if name in LOSSES:
        text = LOSSES[name]
        if callable(text):
            return text  # type: ignore[no-any-return]
        tree = parse_expression(text, source_name=f"<loss {name}>")
        return substitute(tree, {n: Number(value) for n, value in settings.items()})
    words = name.split("-")
    if not name or (all(map(str.isidentifier, words)) and set(words) - {*names, "out", "target"}):
        other = "or write an expression in out and target, or in names of the graph and columns"
        hint = (
            did_you_mean(name, (*LOSSES, *names)) or f"choose one of {', '.join(LOSSES)}, {other}"
        )
        raise UsageError(f"unknown loss {loss!r}", hint=hint)
    return parse_expression(loss, source_name="<loss>")


def check_target(loss: str, values: Any, subject: str, *, sample: bool = True) -> None:
    """Raise DataError if a target is not valid for the loss.

    Args:
        loss: the name of a loss or an expression.
        values: the targets: a float, or an array with the samples on its first axis.
        subject: description of the targets in the message.
        sample: whether the message states the index of the sample.

    >>> check_target("hinge", 0.0, "the target", sample=False)
    Traceback (most recent call last):
        ...
    cgprimer.errors.DataError: the target is 0; for hinge it must be -1 or 1
    """
    name = parse_loss_name(loss)
    if name in _TARGETS:
        must, fits = _TARGETS[name]
        check_values(
            values, fits(values), f"{subject}{{}}; for {name} it must be {must}", sample=sample
        )


def check_values(values: Any, valid: Any, message: str, *, sample: bool = True) -> None:
    """Raise DataError for the first invalid value.

    Args:
        values: a float, or an array with the samples on its first axis.
        valid: whether each value is valid.
        message: template of the message; ``{}`` is replaced by the index and the value.
        sample: whether the message states the index of the sample.
    """
    if isinstance(values, float):
        if not valid:
            raise DataError(message.format(f" is {values:g}"))
        return
    import numpy as np

    invalid = np.argwhere(~np.asarray(valid))
    if len(invalid):
        first = tuple(invalid[0].tolist())
        value, index = float(np.asarray(values)[first]), ",".join(map(str, first[sample:]))
        text = f"[{index}]" * bool(index) + f" is {value:g}"
        raise DataError(message.format(text + f" for sample {first[0]}" * sample))


def check_class_indices(values: Any, classes: int, subject: str, *, sample: bool = True) -> None:
    """Raise DataError if a target is not an integer class index from 0 to ``classes - 1``."""
    valid = (values >= 0) & (values < classes) & (values % 1 == 0)
    must = f"for {SOFTMAX} it must be a class index from 0 to {classes - 1}"
    check_values(values, valid, f"{subject}{{}}; {must}", sample=sample)
