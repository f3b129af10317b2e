"""What decides a run, said once: each setting with its check, its default and its words.

From here come the arguments of :func:`cgprimer.train` and their part of its documentation, the
options of ``cgprimer train``, what the file of a run records, and what a sweep varies.

To add a setting: write a field below, and use it where it acts (``settings.NAME`` in ``train``).
It is an argument, an option and a key at once. Its check takes what was given and returns the value
or raises UsageError; None is not checked where it is the default. What fits together, or does not,
is checked at the end of :func:`settings_of`. The line of its option is read by `cli.options`.
"""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from cgprimer.core.evaluation.runner import DTYPES
from cgprimer.core.methods import METHODS, methods
from cgprimer.core.methods.derivative_program import normalize_names
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.support.validation import check_choice, check_integer, check_real_number
from cgprimer.training.metrics import METRICS
from cgprimer.training.parameter_snapshots import WITHIN
from cgprimer.training.schedules import SCHEDULES, hyper_of
from cgprimer.training.worker_options import (
    PROTOCOLS,
    check_cluster_address,
    parse_stage_count,
)

F = TypeVar("F", bound=Callable[..., Any])
LEAST_EPOCHS, MOST_EPOCHS = 30, 3_000  #: of a run whose number of epochs is not given
FEW_SAMPLES = 10_000  #: a run over fewer samples has as many steps as one over this many
ONE_OR_BY_NAME = "NUMBER|NAME=VALUE,..."  #: one number for all parameters, or numbers by name
_INSTEAD = "start from its parameters instead: start=run.parameters (--start NAME=VALUE)"


class Setting(NamedTuple):
    """One of them, without its name and default."""

    check: Callable[[Any], Any]
    takes: str  # as an option of the command line (`cli.options`); "": it is none
    help: str  # sentences, for both
    same: str  # what to do instead where a run that is taken up began with another; "": it may

    @property
    def varies(self) -> bool:
        """Whether a sweep takes a list of values; switches and values by name alone do not vary."""
        by_name_only = self.takes.endswith(",...") and self.takes != ONE_OR_BY_NAME
        return bool(self.takes) and not by_name_only and not self.takes.endswith("/")


def _setting(
    default: Any, check: Callable[[Any], Any], takes: str, help: str, *, same: str = ""
) -> Any:
    return field(default=default, metadata={"": Setting(check, takes, help, same)})


def _count(what: str, given: Any, *, least: int = 1) -> int:
    given = int(given) if isinstance(given, str) and given.isdecimal() else given
    return check_integer(what, given, minimum=least)


def _batch_size(given: Any) -> int | None:
    """A number of samples, or None, which texts call ``all``."""
    return None if given in (None, "all") else _count("batch_size, unless 'all',", given)


def _metrics(given: Any) -> tuple[str, ...]:
    names = [n.strip() for n in given.split(",")] if isinstance(given, str) else given
    return tuple(dict.fromkeys(check_choice("metric", name, METRICS) for name in names))


def _word(what: str) -> Callable[[Any], Any]:
    def check(given: Any) -> Any:
        if not (isinstance(given, str) or hasattr(given, "compile")):
            raise UsageError(f"there is no {what} {given!r}")
        return given

    return check


def _checkpoint_every(given: Any) -> str | int:
    if isinstance(given, str) and given.endswith("s"):
        with suppress(ValueError):
            check_real_number("the seconds", float(given[:-1]), above=0)
            return given
    return _count("checkpoint_every, unless seconds, as 30s are,", given)


def checkpoint_times(every: str | int) -> tuple[float, int]:
    """After how many seconds, and how many epochs, to save; infinity or 0 for never.

    >>> checkpoint_times("30s"), checkpoint_times(5)
    ((30.0, 0), (inf, 5))
    """
    return (math.inf, every) if isinstance(every, int) else (float(every[:-1]), 0)


def _switch(what: str) -> Callable[[Any], bool]:
    def check(given: Any) -> bool:
        if isinstance(given, str):
            raise UsageError(f"{what} is yes or no, not {given!r}")
        return bool(given)

    return check


def _schedule(given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f"a schedule is a name or a text (rate*0.9^t), not {type(given).__name__}")
    hyper_of(given)
    return given


def _optimizer(given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f"an optimizer is called by its name, not by {type(given).__name__}")
    return given


def _by_name(what: str, *, one: bool = False) -> Callable[[Any], Any]:
    """Values by name, whose names are checked where the graph is known; perhaps one for all."""

    def check(given: Any) -> Any:
        if not isinstance(given, Mapping) and not one:
            raise UsageError(f"{what} is given by name, as in {{'k': ...}}, not as {given!r}")
        return (
            (dict(given) or None) if isinstance(given, Mapping) else check_real_number(what, given)
        )

    return check


def _norm(given: Any) -> float:
    return math.inf if given in ("inf", math.inf) else check_real_number("norm", given, minimum=1)


def _place(given: Any) -> str:
    parse_stage_count(given)
    return str(given)


def _as_it_is(given: Any) -> Any:  # checked where it is looked up
    hash(given)  # an array is none
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a run. Made by :func:`settings_of`, which checks them."""

    method: str = _setting(
        "reverse", _word("method"), "", "The differentiator that gives the gradient."
    )
    engine: str = _setting("auto", _word("engine"), "", "The engine that runs it.")
    dtype: str = _setting(
        "float64", _word("dtype"), "|".join(DTYPES), "Precision of the computation."
    )
    loss: str = _setting(
        "squared-error", _as_it_is, "NAME|TEXT",
        "squared-error, half-squared-error, absolute-error, huber(1), cross-entropy,"
        " cross-entropy-logit, softmax-cross-entropy, hinge, an expression in out and target or in"
        " names of the graph and of columns, or output where the graph's output is the loss.",
    )  # fmt: skip
    reduction: str = _setting(
        "mean", partial(check_choice, "reduction", choices=("mean", "sum")), "mean|sum",
        "What of the samples of a step is minimised; losses are told as means either way.",
        same=_INSTEAD,
    )  # fmt: skip
    optimizer: str = _setting(
        "adam", _optimizer, "NAME|TEXT",
        "The update rule: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw, coordinates,"
        " l-bfgs, one that was registered, or a text such as 'v = mu*v + g; p = p - rate*v'.",
        same=_INSTEAD,
    )  # fmt: skip
    hyper: Mapping[str, float] | None = _setting(
        None, _by_name("hyper"), "NAME=VALUE,...",
        "Hyperparameters of optimizer and schedule, such as beta=0.8; those of a text must be"
        " given.",
    )  # fmt: skip
    learning_rate: float | None = _setting(
        None, partial(check_real_number, "the learning rate", above=0), "NUMBER",
        "The rate at the first step (default: by optimizer).",
    )  # fmt: skip
    schedule: str = _setting(
        "cosine", _schedule, "NAME|TEXT",
        f"How the rate goes on: {', '.join(SCHEDULES)}, or a text in t (the epoch, from 0), step,"
        " steps, epochs and rate, such as 'rate/(1 + 0.01*t)'.",
    )  # fmt: skip
    warm_up: float = _setting(
        0.0, partial(check_real_number, "warm_up", minimum=0), "NUMBER",
        "Epochs in which the rate rises in a straight line to what the schedule says.",
    )  # fmt: skip
    scale: Mapping[str, float] | None = _setting(
        None, _by_name("scale"), "NAME=VALUE,...", "Factors of the rate for single parameters."
    )
    l2: float | Mapping[str, float] | None = _setting(
        None, _by_name("l2", one=True), ONE_OR_BY_NAME,
        "Weight decay: lambda*W^2 is added to the loss, for all parameters or by name.",
    )  # fmt: skip
    l1: float | Mapping[str, float] | None = _setting(
        None, _by_name("l1", one=True), ONE_OR_BY_NAME,
        "Sparse weights: 2*lambda*|W| is added, by proximal steps that do not cross 0.",
    )  # fmt: skip
    max_norm: float | Mapping[str, float] | None = _setting(
        None, _by_name("max_norm", one=True), ONE_OR_BY_NAME,
        "The largest norm of each array, and of all parameters that are numbers together; by"
        " name, a+b=1 takes a and b together.",
    )  # fmt: skip
    norm: float = _setting(2.0, _norm, "NUMBER", "p of --max-norm, from 1 to inf.")
    bounds: Mapping[str, object] | None = _setting(
        None, _by_name("bounds"), "NAME=LOW:HIGH,...",
        "Least and largest value of parameters, such as k=0:1; inf for none.",
    )  # fmt: skip
    freeze: tuple[str, ...] | None = _setting(
        None, lambda given: normalize_names(given, "freeze") if given else None, "NAME,...",
        "Parameters that keep their start or declared values, and are not differentiated.",
    )  # fmt: skip
    epochs: int = _setting(  # None where it is not given: train knows how many samples there are
        None, partial(check_integer, "epochs"), "0..",
        f"Number of epochs (default: {LEAST_EPOCHS}, and more for fewer than"
        f" {FEW_SAMPLES:,} samples, up to {MOST_EPOCHS:,}).",
    )  # fmt: skip
    batch_size: int | None = _setting(
        50, _batch_size, "N|all", "Samples per step; 1 is one sample at a time.", same=_INSTEAD
    )
    seed: int = _setting(
        0, partial(check_integer, "the seed"), "",
        "Of the start values (uniform in [0, 1)) and of the order of the samples.",
    )  # fmt: skip
    normalize: str | None = _setting(
        None, partial(check_choice, "normalize", choices=("inputs", "all")), "inputs|all",
        "Give each input, or each target as well, the mean 0 and the standard deviation 1 over the"
        " samples that are trained on; kept with the run, for what it predicts.", same=_INSTEAD
    )  # fmt: skip
    shuffle: bool = _setting(
        True, _switch("shuffle"), "/--no-shuffle", "A new order of the samples in every epoch."
    )
    stop_below: float | None = _setting(
        None, partial(check_real_number, "the loss to stop below", above=0), "NUMBER",
        "End once the mean loss of an epoch is below this.",
    )  # fmt: skip
    patience: int | None = _setting(
        None, partial(check_integer, "patience", minimum=1), "1..",
        "End once the validation loss has not fallen for so many epochs; the parameters are those"
        " of the best epoch.",
    )  # fmt: skip
    metrics: tuple[str, ...] = _setting(
        (), _metrics, "NAME,...",
        f"What to take after each epoch, of the validation samples where there are some:"
        f" {', '.join(METRICS)}.",
    )  # fmt: skip
    checkpoint_every: str | int = _setting(
        "30s", _checkpoint_every, "N|Ns",
        "How often a run is saved while it goes on: 10 is every ten epochs, 30s every 30 seconds.",
    )  # fmt: skip
    workers: int | None = _setting(
        None, partial(_count, "workers"), "1..",
        "Many workers, each of whom computes gradients of batch_size samples.", same=_INSTEAD,
    )  # fmt: skip
    simulate: bool = _setting(
        False, _switch("simulate"), "/", "The workers are simulated, on a virtual clock."
    )
    cluster: str | None = _setting(
        None, check_cluster_address, "ADDRESS",
        "The workers are processes of dask.distributed: local starts some here, tcp://HOST:PORT"
        " takes those of a scheduler that runs already.",
    )  # fmt: skip
    protocol: str = _setting(
        "sync", partial(check_choice, "protocol", choices=PROTOCOLS), "|".join(PROTOCOLS),
        "Which gradients make a step: those of all workers (sync), each by itself (async), all but"
        " those of the slowest (backup), or those of a group of workers (groups).", same=_INSTEAD,
    )  # fmt: skip
    staleness: int | None = _setting(
        None, partial(_count, "staleness", least=0), "0..",
        "async: how many gradients a worker may be ahead of the slowest (default: any).",
    )  # fmt: skip
    backup: int | None = _setting(
        None, partial(_count, "backup", least=0), "0..",
        "backup: how many workers a step does not wait for (default: 1).",
    )  # fmt: skip
    groups: int | None = _setting(
        None, partial(_count, "groups"), "1..", "groups: how many there are (default: 2).",
        same=_INSTEAD,
    )  # fmt: skip
    delays: str = _setting(
        "exponential", _as_it_is, "TEXT",
        "What a gradient takes a simulated worker, in seconds: constant, exponential(1),"
        " pareto(2), or a time for each, such as 1,1,5; and slow(5) for a slow worker, dies(10,20)"
        " for one that is away, network(1e-9) for the seconds of a byte.",
    )  # fmt: skip
    place: str | None = _setting(
        None, _place, "layers:N",
        "Cut the graph by layers into parts, each on a worker of its own: layers:2.", same=_INSTEAD,
    )  # fmt: skip
    micro_batches: int = _setting(
        1, partial(_count, "micro_batches"), "1..",
        "place: into how many parts a batch is cut that go through the stages one after the other.",
    )  # fmt: skip
    short_run_records: int = _setting(
        WITHIN, partial(check_integer, "short_run_records", minimum=1), "",
        "How often about the parameters are recorded in a run of fewer than five epochs; longer"
        " ones record them at the ends of epochs. A record halts an engine for some 30 us.",
    )  # fmt: skip

    def for_samples(self, samples: int) -> Settings:
        """Return the settings of a run over this many samples, with its number of epochs."""
        return self if self.epochs is not None else replace(self, epochs=default_epochs(samples))


SETTINGS: dict[str, Setting] = {one.name: one.metadata[""] for one in fields(Settings)}
_KINDS: dict[str, str] = {one.name: str(one.type) for one in fields(Settings)}
_TEXTS: dict[str, Callable[[str], Any]] = {
    "int": int, "float": float, "bool": {"yes": True, "no": False}.__getitem__
}  # fmt: skip
DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(Settings)}


def settings_of(given: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """The settings, checked, and what is left: options of the method.

    Raises:
        UsageError: a value that is none.

    >>> settings, rest = settings_of({"epochs": 3, "scheme": "forward"})
    >>> settings.epochs, settings.batch_size, rest
    (3, 50, {'scheme': 'forward'})
    """
    rest = {name: value for name, value in given.items() if name not in SETTINGS}
    settings = Settings(**{n: checked(n, value) for n, value in given.items() if n not in rest})
    if rest:
        of_methods = {o for m in methods() for o in inspect.signature(METHODS[m]).parameters}
        for name in rest:
            if name not in of_methods:
                hint = did_you_mean("learning_rate" if name == "lr" else name, SETTINGS)
                hint = hint or f"an optimizer's own is a hyperparameter: hyper={{{name!r}: ...}}"
                raise UsageError(f"there is no setting {name!r}", hint=hint)
    return settings, rest


def default_epochs(samples: int) -> int:
    """Return the number of epochs of a run that is not given one.

    >>> default_epochs(500), default_epochs(10_000), default_epochs(1_000_000), default_epochs(4)
    (600, 30, 30, 3000)
    """
    wanted = math.ceil(LEAST_EPOCHS * FEW_SAMPLES / max(samples, 1))
    return min(max(wanted, LEAST_EPOCHS), MOST_EPOCHS)


def checked(name: str, value: Any) -> Any:
    """The value of a setting.

    Raises:
        UsageError: it is none.

    >>> checked("batch_size", "all"), checked("batch_size", 20), checked("learning_rate", None)
    (None, 20, None)
    """
    if value is None and DEFAULTS[name] is None:
        return None
    try:
        return SETTINGS[name].check(value)
    except (TypeError, ValueError):  # of Python's or numpy's: of another kind than any choice
        takes = SETTINGS[name].takes
        raise UsageError(f"{name} cannot be {reprlib.repr(value)}", hint=f"it is {takes}") from None


def from_text(name: str, text: str) -> Any:
    """The value of a setting that a text says, as in a list of values to vary.

    Raises:
        UsageError: it says none.

    >>> from_text("epochs", "20"), from_text("learning_rate", "1e-3"), from_text("shuffle", "no")
    (20, 0.001, False)
    """
    value: Any = text
    with suppress(ValueError, KeyError):  # else it is a word, or the check says what is wrong
        value = _TEXTS[_KINDS[name].partition(" ")[0]](text)
    return checked(name, value)


def option_lines(*, several: bool = False) -> str:
    """Lines for :func:`cgprimer.cli.options.options`, one for each setting that is an option.

    With `several` each takes a list of values, and has no default.
    """
    lines = []
    for name, setting in SETTINGS.items():
        taken, text = setting.takes, setting.help
        if several and setting.varies:
            lines.append(f"--{name.replace('_', '-')} VALUE,...  {text}")
        elif taken:
            flag, default = f"--{name.replace('_', '-')}", DEFAULTS[name]
            flag += taken.rstrip("/") if taken.startswith("/") else f" {taken}"
            given = " =yes" if default is True else f" ={default}"
            lines.append(
                f"{flag}{'' if default in (None, ()) or default is False else given}  {text}"
            )
    return "\n".join(lines)


def documented(function: F) -> F:
    """Give a function with ``**settings`` a signature with all of them, and their words.

    They stand in its docstring where it says ``{settings}``.
    """
    own = inspect.signature(function)
    *first, rest = own.parameters.values()
    named = [
        inspect.Parameter(f.name, rest.KEYWORD_ONLY, default=f.default, annotation=f.type)
        for f in fields(Settings)
    ]
    function.__signature__ = own.replace(parameters=[*first, *named, rest])  # type: ignore[attr-defined]
    words = [f"{name}: {one.help}" for name, one in SETTINGS.items()]
    function.__doc__ = (function.__doc__ or "").replace("{settings}", "\n        ".join(words))
    return function
