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
    combine_options,
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
    """Validate the value of a training setting; report errors as errors of the option."""
    from cgprimer.training.settings import validate_setting

    try:
        return validate_setting(name, value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


class SettingOption(GroupedOption):
    """An option that sets one value of a training setting.

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
        """Convert and validate the option value for the training setting."""
        if self._value_reader is not None:
            value = self._value_reader(context, parameter, value)
        return validate_option(str(self.name), value)


class SettingListOption(GroupedOption):
    """An option that sets several values of a training setting, separated by commas.

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
        """Parse the option value into a list of values, or into a dictionary keyed by parameter."""
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
    """Return a decorator that adds the options that all training commands share.

    Args:
        lists: let the options of settings accept several values, as in a sweep.
        samples: the option ``--samples``.
    """
    value_option = partial(option, cls=SettingOption)
    setting_option = partial(option, cls=SettingListOption) if lists else value_option
    return combine_options(
        data_option,
        columns_option,
        validation_option,
        samples,
        sampling_options,
        truth_option,
        start_option,
        *_create_model_options(setting_option),
        *_create_optimizer_options(value_option, setting_option),
        *_create_regularization_options(value_option, setting_option),
        *_create_stopping_options(setting_option),
        *_create_worker_options(value_option, setting_option),
        *_create_placement_options(setting_option),
        method_options("reverse"),
        engine_option,
        _create_dtype_option(setting_option),
        *_create_recording_options(value_option, setting_option),
    )


def read_validation(context: object, parameter: object, text: str | None) -> str | float | None:
    """Parse the fraction of validation samples, or return the path of a validation file."""
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


def _create_model_options(setting_option: _OptionFactory) -> tuple[_Decorator, ...]:
    """Create the options for the loss and for normalization."""
    return (
        setting_option(
            "--loss",
            group=MODEL,
            metavar="NAME|TEXT",
            default="squared-error",
            help="Loss name, or an expression in out and target.",
        ),
        setting_option(
            "--reduction",
            group=MODEL,
            type=click.Choice(["mean", "sum"]),
            default="mean",
            help="Reduction of the loss over a batch.",
        ),
        setting_option(
            "--normalize",
            group=DATA,
            type=click.Choice(["inputs", "all"]),
            help="Columns to standardize: inputs, or all (inputs and targets).",
        ),
    )


def _create_dtype_option(setting_option: _OptionFactory) -> _Decorator:
    """Create the option for the floating-point precision."""
    return setting_option(
        "--dtype",
        group=DIFFERENTIATION,
        metavar="DTYPE",
        type=click.Choice(["float64", "float32"]),
        default="float64",
        help="Floating-point precision: float64 or float32.",
    )


def _create_optimizer_options(
    value_option: _OptionFactory, setting_option: _OptionFactory
) -> tuple[_Decorator, ...]:
    """Create the optimizer options; a sweep can vary options from `setting_option`."""
    value_option, setting_option = (
        partial(factory, group=OPTIMIZER) for factory in (value_option, setting_option)
    )
    return (
        setting_option(
            "--optimizer",
            metavar="NAME|TEXT",
            default="adam",
            help="Optimizer: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw, coordinates,"
            " l-bfgs, or an update rule.",
        ),
        value_option(
            "--hyper",
            metavar="NAME=VALUE,...",
            multiple=True,
            callback=read_assignments,
            help="Hyperparameters of the optimizer and the schedule, such as beta=0.8.",
        ),
        setting_option(
            "--learning-rate",
            metavar="NUMBER",
            type=float,
            help="Initial learning rate (default: depends on the optimizer).",
        ),
        setting_option(
            "--schedule",
            metavar="NAME|TEXT",
            default="cosine",
            help="Learning-rate schedule: cosine, constant, exponential, steps, or an expression"
            " in the epoch t.",
        ),
        setting_option(
            "--warm-up",
            metavar="NUMBER",
            type=float,
            default=0.0,
            help="Number of epochs of linear learning-rate warm-up.",
        ),
        value_option(
            "--scale",
            metavar="NAME=VALUE,...",
            multiple=True,
            callback=read_assignments,
            help="Learning-rate factors of parameters, such as W=0.1.",
        ),
        setting_option(
            "--batch-size", metavar="N|all", default="50", help="Mini-batch size, or 'all'."
        ),
        setting_option(
            "--shuffle/--no-shuffle",
            type=bool,
            default=True,
            help="Shuffle the samples in every epoch.",
        ),
    )


def _create_regularization_options(
    value_option: _OptionFactory, setting_option: _OptionFactory
) -> tuple[_Decorator, ...]:
    """Create the regularization options; a sweep can vary options from `setting_option`."""
    value_option, setting_option = (
        partial(factory, group=REGULARIZATION) for factory in (value_option, setting_option)
    )
    return (
        setting_option(
            "--l2",
            metavar="NUMBER|NAME=VALUE,...",
            multiple=True,
            callback=read_number_or_assignments,
            help="L2 coefficient: adds l2*W^2 to the loss (weight decay).",
        ),
        setting_option(
            "--l1",
            metavar="NUMBER|NAME=VALUE,...",
            multiple=True,
            callback=read_number_or_assignments,
            help="L1 coefficient: adds 2*l1*|W| to the loss (sparsity).",
        ),
        setting_option(
            "--max-norm",
            metavar="NUMBER|NAME=VALUE,...",
            multiple=True,
            callback=read_number_or_assignments,
            help="Maximum norm of each array, or joint norm, such as a+b=1.",
        ),
        setting_option(
            "--norm",
            metavar="NUMBER",
            type=float,
            default=2.0,
            help="Order p of the norm of --max-norm, from 1 to inf.",
        ),
        value_option(
            "--bounds",
            metavar="NAME=LOW:HIGH,...",
            multiple=True,
            callback=read_bounds,
            help="Lower and upper bounds of parameters, such as k=0:1.",
        ),
        value_option(
            "--freeze",
            metavar="NAME,...",
            multiple=True,
            callback=read_names,
            help="Parameters to keep at their initial values.",
        ),
    )


def _create_stopping_options(setting_option: _OptionFactory) -> tuple[_Decorator, ...]:
    """Create the options that stop training early or after a number of epochs."""
    setting_option = partial(setting_option, group=STOPPING)
    return (
        setting_option(
            "--epochs",
            metavar="N",
            type=click.IntRange(min=0),
            help="Number of epochs (default: 30, or more for fewer than 10,000 samples).",
        ),
        setting_option(
            "--stop-below",
            metavar="NUMBER",
            type=float,
            help="Stop when the mean loss of an epoch is below this value.",
        ),
        setting_option(
            "--patience",
            metavar="N",
            type=click.IntRange(min=1),
            help="Stop after this number of epochs without a lower validation loss.",
        ),
    )


def _create_recording_options(
    value_option: _OptionFactory, setting_option: _OptionFactory
) -> tuple[_Decorator, ...]:
    """Create the options for metrics and checkpoints."""
    return (
        value_option(
            "--metrics",
            group=OUTPUT,
            metavar="NAME,...",
            multiple=True,
            callback=read_names,
            help="Metrics to record after each epoch: accuracy, r2.",
        ),
        setting_option(
            "--checkpoint-every",
            group=OUTPUT,
            metavar="N|Ns",
            default="30s",
            help="Checkpoint interval in epochs, such as 10, or in seconds, such as 10s.",
        ),
    )


def _create_worker_options(
    value_option: _OptionFactory, setting_option: _OptionFactory
) -> tuple[_Decorator, ...]:
    """Create the worker options; a sweep can vary options from `setting_option`."""
    value_option, setting_option = (
        partial(factory, group=WORKERS) for factory in (value_option, setting_option)
    )
    return (
        setting_option(
            "--workers",
            metavar="N",
            type=click.IntRange(min=1),
            help="Number of workers that compute gradients in parallel.",
        ),
        value_option("--simulate", is_flag=True, help="Simulate the workers on a virtual clock."),
        setting_option(
            "--cluster",
            metavar="ADDRESS",
            help="Dask cluster that runs the workers: local, or tcp://HOST:PORT.",
        ),
        setting_option(
            "--protocol",
            metavar="NAME",
            type=click.Choice(["sync", "async", "backup", "groups"]),
            default="sync",
            help="Protocol of the workers: sync, async, backup or groups.",
        ),
        setting_option(
            "--staleness",
            metavar="N",
            type=click.IntRange(min=0),
            help="Maximum lead over the slowest worker, in gradients (--protocol async).",
        ),
        setting_option(
            "--backup",
            metavar="N",
            type=click.IntRange(min=0),
            help="Number of slow workers to skip per update (--protocol backup; default: 1).",
        ),
        setting_option(
            "--groups",
            metavar="N",
            type=click.IntRange(min=1),
            help="Number of groups of workers (--protocol groups; default: 2).",
        ),
        setting_option(
            "--delays",
            metavar="TEXT",
            default="exponential",
            help="Compute time per gradient of simulated workers, in seconds: constant,"
            " exponential(1), pareto(2), or one time per worker.",
        ),
    )


def _create_placement_options(setting_option: _OptionFactory) -> tuple[_Decorator, ...]:
    """Create the options that distribute the layers of a graph over the workers."""
    setting_option = partial(setting_option, group=WORKERS)
    return (
        setting_option(
            "--place",
            metavar="layers:N",
            help="Cut the graph between layers into N stages, one per worker.",
        ),
        setting_option(
            "--micro-batches",
            metavar="N",
            type=click.IntRange(min=1),
            default=1,
            help="Number of micro-batches per batch in the pipeline of --place.",
        ),
    )
