"""Options that set fields of ``Settings``: one value for a run, or several values for a sweep."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from cgprimer.cli.grouped_help import (
    DATA,
    DIFFERENTIATION,
    MODEL,
    OPTIMIZER,
    OUTPUT,
    REGULARIZATION,
    STOPPING,
    WORKERS,
    GroupedOption,
    option,
)
from cgprimer.cli.option_values import (
    read_assignments,
    read_bounds,
    read_names,
    read_number_or_assignments,
)
from cgprimer.cli.shared_options import (
    columns_option,
    data_option,
    engine_option,
    method_options,
    samples_option,
    sampling_options,
    start_option,
    truth_option,
)
from cgprimer.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_Decorator = Callable[[Any], Any]
_OptionFactory = Callable[..., _Decorator]
_COMMA = re.compile(r",(?![^(\[]*[)\]])")  # commas outside of brackets


def validate_option(name: str, value: Any) -> Any:
    """Validate the value of a setting; an error names the option."""
    from cgprimer.training.settings import validate_setting

    try:
        return validate_setting(name, value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


class SettingOption(GroupedOption):
    """An option for one value of a setting.

    Args:
        *declarations: the spellings of the option.
        callback: converts the value before its validation.
        **attributes: arguments of :class:`GroupedOption`.
    """

    def __init__(
        self, *declarations: Any, callback: Callable[..., Any] | None = None, **attributes: Any
    ) -> None:
        super().__init__(*declarations, callback=self._read_setting, **attributes)
        self._value_reader = callback

    def _read_setting(self, context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if self._value_reader is not None:
            value = self._value_reader(context, parameter, value)
        return validate_option(str(self.name), value)


class SettingListOption(GroupedOption):
    """An option for several values of a setting, separated by commas.

    Args:
        *declarations: the spellings of the option; a spelling that switches it off is dropped.
        setting: name of the setting; by default the name of the option.
        type: click's type of each value.
        callback: converts each value, or all values if they are keyed by parameter name.
        **attributes: arguments of the option for one value; defaults are not used.
    """

    def __init__(
        self,
        *declarations: Any,
        setting: str = "",
        type: Any = None,
        callback: Callable[..., Any] | None = None,
        **attributes: Any,
    ) -> None:
        spellings = [text.partition("/")[0] for (text,) in declarations]
        attributes |= {"metavar": "VALUE,...", "default": None, "show_default": False}
        attributes |= {"multiple": True, "callback": self._read_setting_list}
        super().__init__(spellings, **attributes)
        self.setting = setting or str(self.name)
        self._value_type = click.types.convert_type(type)
        self._value_reader = callback

    def _read_setting_list(
        self, context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
    ) -> Any:
        """Return the list of values, or one dictionary of values keyed by parameter name."""
        read = self._value_reader
        if read is not None and any("=" in text for text in texts):
            return validate_option(self.setting, read(context, parameter, texts))
        parts = [part.strip() for text in texts for part in _COMMA.split(text)]
        return [
            validate_option(
                self.setting,
                self._value_type.convert(part, parameter, context)
                if read is None
                else read(context, parameter, (part,)),
            )
            for part in parts
            if part
        ]


def run_options(*, lists: bool = False, samples: _Decorator = samples_option) -> Callable[[F], F]:
    """Add the options of all commands that train: data, settings, method and engine.

    Args:
        lists: let the options of settings accept several values, as in a sweep.
        samples: the option ``--samples``.
    """
    single = partial(option, cls=SettingOption)
    setting = partial(option, cls=SettingListOption) if lists else single
    options = (
        data_option,
        columns_option,
        validation_option,
        samples,
        sampling_options,
        truth_option,
        start_option,
        *_model_options(setting),
        *_optimizer_options(single, setting),
        *_regularization_options(single, setting),
        *_stopping_options(setting),
        *_worker_options(single, setting),
        method_options("reverse"),
        engine_option,
        _dtype_option(setting),
        *_recording_options(single, setting),
    )

    def decorate(function: F) -> F:
        for decorator in reversed(options):
            function = decorator(function)
        return function

    return decorate


def read_validation(context: object, parameter: object, text: str | None) -> str | float | None:
    """Return a fraction of the samples, or the path of a file."""
    try:
        fraction = None if text is None else float(text)
    except ValueError:
        return text
    if fraction is not None and not 0 < fraction < 1:
        raise click.BadParameter(f"a fraction must be between 0 and 1, got {fraction:g}")
    return fraction


validation_option = option(
    "--validation",
    group=DATA,
    metavar="SHARE|PATH",
    callback=read_validation,
    help="Fraction of the data to hold out, or a file of validation data.",
)


def _model_options(setting: _OptionFactory) -> tuple[_Decorator, ...]:
    return (
        setting(
            "--loss",
            group=MODEL,
            metavar="NAME|TEXT",
            default="squared-error",
            help="Loss name, or an expression in out and target.",
        ),
        setting(
            "--reduction",
            group=MODEL,
            type=click.Choice(["mean", "sum"]),
            default="mean",
            help="Reduction of the loss over a batch.",
        ),
        setting(
            "--normalize",
            group=DATA,
            type=click.Choice(["inputs", "all"]),
            help="Columns to standardize: inputs, or all (inputs and targets).",
        ),
    )


def _dtype_option(setting: _OptionFactory) -> _Decorator:
    return setting(
        "--dtype",
        group=DIFFERENTIATION,
        metavar="DTYPE",
        type=click.Choice(["float64", "float32"]),
        default="float64",
        help="Floating-point precision: float64 or float32.",
    )


def _optimizer_options(single: _OptionFactory, setting: _OptionFactory) -> tuple[_Decorator, ...]:
    single, setting = (partial(factory, group=OPTIMIZER) for factory in (single, setting))
    return (
        setting(
            "--optimizer",
            metavar="NAME|TEXT",
            default="adam",
            help="Optimizer: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw, coordinates,"
            " l-bfgs, or an update rule.",
        ),
        single(
            "--hyper",
            metavar="NAME=VALUE,...",
            multiple=True,
            callback=read_assignments,
            help="Hyperparameters of the optimizer and the schedule, such as beta=0.8.",
        ),
        setting(
            "--learning-rate",
            metavar="NUMBER",
            type=float,
            help="Initial learning rate (default: depends on the optimizer).",
        ),
        setting(
            "--schedule",
            metavar="NAME|TEXT",
            default="cosine",
            help="Learning-rate schedule: cosine, constant, exponential, steps, or an expression"
            " in the epoch t.",
        ),
        setting(
            "--warm-up",
            metavar="NUMBER",
            type=float,
            default=0.0,
            help="Number of epochs of linear learning-rate warm-up.",
        ),
        single(
            "--scale",
            metavar="NAME=VALUE,...",
            multiple=True,
            callback=read_assignments,
            help="Learning-rate factors of single parameters, such as W=0.1.",
        ),
        setting("--batch-size", metavar="N|all", default="50", help="Mini-batch size, or 'all'."),
        setting(
            "--shuffle/--no-shuffle",
            type=bool,
            default=True,
            help="Shuffle the samples in every epoch.",
        ),
    )


def _regularization_options(
    single: _OptionFactory, setting: _OptionFactory
) -> tuple[_Decorator, ...]:
    single, setting = (partial(factory, group=REGULARIZATION) for factory in (single, setting))
    return (
        setting(
            "--l2",
            metavar="NUMBER|NAME=VALUE,...",
            multiple=True,
            callback=read_number_or_assignments,
            help="L2 coefficient: adds l2*W^2 to the loss (weight decay).",
        ),
        setting(
            "--l1",
            metavar="NUMBER|NAME=VALUE,...",
            multiple=True,
            callback=read_number_or_assignments,
            help="L1 coefficient: adds 2*l1*|W| to the loss (sparsity).",
        ),
        setting(
            "--max-norm",
            metavar="NUMBER|NAME=VALUE,...",
            multiple=True,
            callback=read_number_or_assignments,
            help="Maximum norm of each array, or joint norm, such as a+b=1.",
        ),
        setting(
            "--norm",
            metavar="NUMBER",
            type=float,
            default=2.0,
            help="Order p of the norm of --max-norm, from 1 to inf.",
        ),
        single(
            "--bounds",
            metavar="NAME=LOW:HIGH,...",
            multiple=True,
            callback=read_bounds,
            help="Lower and upper bounds of parameters, such as k=0:1.",
        ),
        single(
            "--freeze",
            metavar="NAME,...",
            multiple=True,
            callback=read_names,
            help="Parameters to keep at their initial values.",
        ),
    )


def _stopping_options(setting: _OptionFactory) -> tuple[_Decorator, ...]:
    setting = partial(setting, group=STOPPING)
    return (
        setting(
            "--epochs",
            metavar="N",
            type=click.IntRange(min=0),
            help="Number of epochs (default: 30, or more for fewer than 10,000 samples).",
        ),
        setting(
            "--stop-below",
            metavar="NUMBER",
            type=float,
            help="Stop when the mean loss of an epoch is below this value.",
        ),
        setting(
            "--patience",
            metavar="N",
            type=click.IntRange(min=1),
            help="Stop after this number of epochs without a lower validation loss.",
        ),
    )


def _recording_options(single: _OptionFactory, setting: _OptionFactory) -> tuple[_Decorator, ...]:
    return (
        single(
            "--metrics",
            group=OUTPUT,
            metavar="NAME,...",
            multiple=True,
            callback=read_names,
            help="Metrics to record after each epoch: accuracy, r2.",
        ),
        setting(
            "--checkpoint-every",
            group=OUTPUT,
            metavar="N|Ns",
            default="30s",
            help="Checkpoint interval, in epochs (10) or seconds (10s).",
        ),
    )


def _worker_options(single: _OptionFactory, setting: _OptionFactory) -> tuple[_Decorator, ...]:
    single, setting = (partial(factory, group=WORKERS) for factory in (single, setting))
    return (
        setting(
            "--workers",
            metavar="N",
            type=click.IntRange(min=1),
            help="Number of workers that compute gradients in parallel.",
        ),
        single("--simulate", is_flag=True, help="Simulate the workers on a virtual clock."),
        setting(
            "--cluster",
            metavar="ADDRESS",
            help="Dask cluster that runs the workers: local, or tcp://HOST:PORT.",
        ),
        setting(
            "--protocol",
            metavar="NAME",
            type=click.Choice(["sync", "async", "backup", "groups"]),
            default="sync",
            help="Protocol of the workers: sync, async, backup or groups.",
        ),
        setting(
            "--staleness",
            metavar="N",
            type=click.IntRange(min=0),
            help="Maximum lead over the slowest worker, in gradients (--protocol async).",
        ),
        setting(
            "--backup",
            metavar="N",
            type=click.IntRange(min=0),
            help="Number of slow workers to skip per update (--protocol backup; default: 1).",
        ),
        setting(
            "--groups",
            metavar="N",
            type=click.IntRange(min=1),
            help="Number of groups of workers (--protocol groups; default: 2).",
        ),
        setting(
            "--delays",
            metavar="TEXT",
            default="exponential",
            help="Compute time per gradient of simulated workers, in seconds: constant,"
            " exponential(1), pareto(2), or one time per worker.",
        ),
        setting(
            "--place",
            metavar="layers:N",
            help="Cut the graph by layers into N stages, one per worker.",
        ),
        setting(
            "--micro-batches",
            metavar="N",
            type=click.IntRange(min=1),
            default=1,
            help="Number of micro-batches per batch in the pipeline of --place.",
        ),
    )
