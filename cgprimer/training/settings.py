"""Settings of a training run: fields, default values and validation.

:func:`cgprimer.train` accepts the fields of :class:`Settings` as arguments, a run records their
values, and a sweep varies them. To add a setting, write a field with a validation function,
describe the argument in the docstring of ``train``, and declare the option in
``cgprimer/cli/training_options.py``.
"""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar

from cgprimer.core.methods import METHODS, methods
from cgprimer.core.methods.derivative_program import normalize_names
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.support.validation import check_choice, check_integer, check_real_number
from cgprimer.training.metrics import METRICS
from cgprimer.training.parameter_snapshots import DEFAULT_SHORT_RUN_RECORDS
from cgprimer.training.schedules import list_hyperparameters
from cgprimer.training.worker_options import (
    PROTOCOLS,
    check_cluster_address,
    parse_stage_count,
)

F = TypeVar("F", bound=Callable[..., Any])
MIN_EPOCHS, MAX_EPOCHS = 30, 3_000  #: limits of the default number of epochs
REFERENCE_SAMPLES = 10_000  #: number of samples from which on `MIN_EPOCHS` is the default

#: Settings that a resumed run must share with the saved run.
FIXED_ON_RESUME = (
    "reduction", "optimizer", "batch_size", "normalize", "workers", "protocol", "groups", "place",
)  # fmt: skip
#: The hint of the error message if such a setting differs.
RESUME_HINT = "start from its parameters instead: start=run.parameters (--start NAME=VALUE)"


def _declare_setting(default: Any, validate: Callable[[Any], Any]) -> Any:
    """Declare a setting with its default value and its validation function."""
    return field(default=default, metadata={"validate": validate})


def _check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Validate an integer setting, which may be given as a string of digits."""
    value = int(value) if isinstance(value, str) and value.isdecimal() else value
    return check_integer(name, value, minimum=minimum)


def _check_batch_size(value: Any) -> int | None:
    """Validate a batch size; return None for ``all``."""
    if value in (None, "all"):
        return None
    with suppress(UsageError):
        return _check_count("batch_size", value)
    raise UsageError(f"`batch_size` must be an integer >= 1 or 'all', got {value!r}")


def _check_metrics(value: Any) -> tuple[str, ...]:
    """Validate names of metrics, given as a sequence or as a comma-separated string."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    return tuple(dict.fromkeys(check_choice("metric", name, METRICS) for name in names))


def _check_name_or_object(name: str, value: Any) -> Any:
    """Check that a method, engine or dtype is a string; an engine may also be an object."""
    if not (isinstance(value, str) or hasattr(value, "compile")):
        raise UsageError(f"unknown {name} {value!r}")
    return value


def _check_checkpoint_interval(value: Any) -> str | int:
    """Validate a checkpoint interval: a number of epochs, or a string such as ``30s``."""
    if isinstance(value, str) and value.endswith("s"):
        with suppress(ValueError):
            check_real_number("the interval in seconds", float(value[:-1]), above=0)
            return value
    with suppress(UsageError):
        return _check_count("checkpoint_every", value)
    raise UsageError(
        f"`checkpoint_every` must be an integer >= 1 or seconds such as '30s', got {value!r}"
    )


def parse_checkpoint_interval(interval: str | int) -> tuple[float, int]:
    """Convert a checkpoint interval to a pair of seconds and epochs.

    The unit that is not used is infinity (seconds) or 0 (epochs).

    >>> parse_checkpoint_interval("30s"), parse_checkpoint_interval(5)
    ((30.0, 0), (inf, 5))
    """
    if isinstance(interval, int):
        return math.inf, interval
    return float(interval[:-1]), 0


def _check_boolean(name: str, value: Any) -> bool:
    """Convert a setting to a boolean; raise UsageError for a string."""
    if isinstance(value, str):
        raise UsageError(f"`{name}` must be True or False, got {value!r}")
    return bool(value)


def _check_schedule(value: Any) -> str:
    """Check that a schedule is a known name or a valid formula."""
    if not isinstance(value, str):
        raise UsageError(
            f"`schedule` must be a string, got {type(value).__name__}",
            hint="pass a name, such as 'cosine', or an expression, such as 'rate*0.9^t'",
        )
    list_hyperparameters(value)
    return value


def _check_optimizer(value: Any) -> str:
    """Check that an optimizer is a string: a name or the text of an update rule."""
    if not isinstance(value, str):
        raise UsageError(f"`optimizer` must be a string, got {type(value).__name__}")
    return value


def _check_values_by_name(name: str, value: Any) -> dict[str, Any] | None:
    """Check that a setting is a mapping, and return it as a dict, or None if it is empty."""
    if not isinstance(value, Mapping):
        raise UsageError(
            f"`{name}` must be a dictionary from names to values, got {value!r}",
            hint=f"pass {name}={{'k': ...}}",
        )
    return dict(value) or None


def _check_number_or_values_by_name(name: str, value: Any) -> float | dict[str, Any] | None:
    """Validate a scalar for all parameters, or a mapping from parameter names to scalars."""
    return dict(value) or None if isinstance(value, Mapping) else check_real_number(name, value)


def _check_norm_order(value: Any) -> float:
    """Validate the order p of a norm: a number from 1 to infinity."""
    return math.inf if value in ("inf", math.inf) else check_real_number("norm", value, minimum=1)


def _check_placement(value: Any) -> str:
    """Validate a placement of layers on workers, such as ``layers:2``."""
    parse_stage_count(value)
    return str(value)


def _check_hashable(value: Any) -> Any:
    """Check only that a value is hashable; the function that uses the setting validates it.

    Raises:
        TypeError: the value, such as an array, is not hashable.
    """
    hash(value)
    return value


def _check_frozen_names(value: Any) -> tuple[str, ...] | None:
    """Convert the names of frozen parameters to a tuple; return None for no names."""
    return normalize_names(value, "freeze") if value else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Validated settings of a training run; :func:`create_settings` creates them.

    The docstring of :func:`cgprimer.train` describes each field.
    """

    # Model and differentiation
    method: str = _declare_setting("reverse", partial(_check_name_or_object, "method"))
    engine: str = _declare_setting("auto", partial(_check_name_or_object, "engine"))
    dtype: str = _declare_setting("float64", partial(_check_name_or_object, "dtype"))
    loss: str = _declare_setting("squared-error", _check_hashable)
    reduction: str = _declare_setting(
        "mean", partial(check_choice, "reduction", choices=("mean", "sum"))
    )
    # Optimizer
    optimizer: str = _declare_setting("adam", _check_optimizer)
    hyper: Mapping[str, float] | None = _declare_setting(
        None, partial(_check_values_by_name, "hyper")
    )
    learning_rate: float | None = _declare_setting(
        None, partial(check_real_number, "the learning rate", above=0)
    )
    schedule: str = _declare_setting("cosine", _check_schedule)
    warm_up: float = _declare_setting(0.0, partial(check_real_number, "warm_up", minimum=0))
    scale: Mapping[str, float] | None = _declare_setting(
        None, partial(_check_values_by_name, "scale")
    )
    # Regularization and constraints
    l2: float | Mapping[str, float] | None = _declare_setting(
        None, partial(_check_number_or_values_by_name, "l2")
    )
    l1: float | Mapping[str, float] | None = _declare_setting(
        None, partial(_check_number_or_values_by_name, "l1")
    )
    max_norm: float | Mapping[str, float] | None = _declare_setting(
        None, partial(_check_number_or_values_by_name, "max_norm")
    )
    norm: float = _declare_setting(2.0, _check_norm_order)
    bounds: Mapping[str, object] | None = _declare_setting(
        None, partial(_check_values_by_name, "bounds")
    )
    freeze: tuple[str, ...] | None = _declare_setting(None, _check_frozen_names)
    # Epochs, batches and stopping; without a number of epochs, `for_samples` computes it
    epochs: int = _declare_setting(None, partial(check_integer, "epochs"))
    batch_size: int | None = _declare_setting(50, _check_batch_size)
    seed: int = _declare_setting(0, partial(check_integer, "the seed"))
    normalize: str | None = _declare_setting(
        None, partial(check_choice, "normalize", choices=("inputs", "all"))
    )
    shuffle: bool = _declare_setting(True, partial(_check_boolean, "shuffle"))
    stop_below: float | None = _declare_setting(
        None, partial(check_real_number, "the loss to stop below", above=0)
    )
    patience: int | None = _declare_setting(None, partial(check_integer, "patience", minimum=1))
    metrics: tuple[str, ...] = _declare_setting((), _check_metrics)
    checkpoint_every: str | int = _declare_setting("30s", _check_checkpoint_interval)
    # Workers
    workers: int | None = _declare_setting(None, partial(_check_count, "workers"))
    simulate: bool = _declare_setting(False, partial(_check_boolean, "simulate"))
    cluster: str | None = _declare_setting(None, check_cluster_address)
    protocol: str = _declare_setting("sync", partial(check_choice, "protocol", choices=PROTOCOLS))
    staleness: int | None = _declare_setting(None, partial(_check_count, "staleness", minimum=0))
    backup: int | None = _declare_setting(None, partial(_check_count, "backup", minimum=0))
    groups: int | None = _declare_setting(None, partial(_check_count, "groups"))
    delays: str = _declare_setting("exponential", _check_hashable)
    place: str | None = _declare_setting(None, _check_placement)
    micro_batches: int = _declare_setting(1, partial(_check_count, "micro_batches"))
    # Recording
    short_run_records: int = _declare_setting(
        DEFAULT_SHORT_RUN_RECORDS, partial(check_integer, "short_run_records", minimum=1)
    )

    def for_samples(self, samples: int) -> Settings:
        """Return the settings with the default number of epochs for a number of samples."""
        if self.epochs is not None:
            return self
        return replace(self, epochs=compute_default_epochs(samples))


SETTING_NAMES: tuple[str, ...] = tuple(setting.name for setting in fields(Settings))
DEFAULT_SETTINGS: dict[str, Any] = {setting.name: setting.default for setting in fields(Settings)}
_VALIDATORS: dict[str, Callable[[Any], Any]] = {
    setting.name: setting.metadata["validate"] for setting in fields(Settings)
}


def create_settings(arguments: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Split arguments into validated settings and options of the differentiation method.

    Raises:
        UsageError: an argument is unknown, or its value is invalid.

    >>> settings, options = create_settings({"epochs": 3, "scheme": "forward"})
    >>> settings.epochs, settings.batch_size, options
    (3, 50, {'scheme': 'forward'})
    """
    options = {name: value for name, value in arguments.items() if name not in _VALIDATORS}
    values = {name: value for name, value in arguments.items() if name in _VALIDATORS}
    settings = Settings(**{name: validate_setting(name, value) for name, value in values.items()})
    if options:
        method_options = {
            option for name in methods() for option in inspect.signature(METHODS[name]).parameters
        }
        if unknown := [name for name in options if name not in method_options]:
            raise _unknown_setting_error(unknown[0])
    return settings, options


def _unknown_setting_error(name: str) -> UsageError:
    """Return the error for an unknown setting, with a hint."""
    hint = did_you_mean("learning_rate" if name == "lr" else name, SETTING_NAMES)
    hint = hint or f"pass hyperparameters of the optimizer as hyper={{{name!r}: ...}}"
    return UsageError(f"unknown setting {name!r}", hint=hint)


def compute_default_epochs(samples: int) -> int:
    """Return the default number of epochs for a number of samples.

    >>> [compute_default_epochs(samples) for samples in (500, 10_000, 1_000_000, 4)]
    [600, 30, 30, 3000]
    """
    epochs = math.ceil(MIN_EPOCHS * REFERENCE_SAMPLES / max(samples, 1))
    return min(max(epochs, MIN_EPOCHS), MAX_EPOCHS)


def validate_setting(name: str, value: Any) -> Any:
    """Validate the value of a setting, and convert it to the type of the setting.

    Raises:
        UsageError: the value is invalid.

    >>> validate_setting("batch_size", "all"), validate_setting("learning_rate", None)
    (None, None)
    """
    if value is None and DEFAULT_SETTINGS[name] is None:
        return None
    try:
        return _VALIDATORS[name](value)
    except (TypeError, ValueError):  # raised by Python or numpy for a value of an unexpected type
        raise UsageError(f"`{name}` has an invalid value: {reprlib.repr(value)}") from None


def add_settings_to_signature(function: F) -> F:
    """List the settings as keyword arguments in the signature of a function."""
    signature = inspect.signature(function)
    *explicit, variable = signature.parameters.values()
    settings = [
        inspect.Parameter(
            setting.name, variable.KEYWORD_ONLY, default=setting.default, annotation=setting.type
        )
        for setting in fields(Settings)
    ]
    parameters = [*explicit, *settings, variable]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
