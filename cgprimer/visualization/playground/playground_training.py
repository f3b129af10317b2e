"""The training runs of the playground: they are started, continued for a while, and forgotten.

The page sends ``train``, then ``train-more`` again and again until the run is finished. Between two
requests it can send others, so that a run neither blocks the page nor needs a second worker.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from cgprimer.core.graph import ExpressionGraph
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.training.scalar_samples import generate_samples, parse_samples
from cgprimer.training.scalar_training import ScalarTraining

_MAX_RUNS = 4  # a new run replaces the oldest
_MAX_EPOCHS = 10_000
_MAX_MILLISECONDS = 2_000.0
SETTINGS = ("epochs", "optimizer", "learning_rate", "batch_size", "seed", "loss", "schedule")
_RUNS: dict[int, ScalarTraining] = {}
_NUMBERS = count(1)


def start_run(graph: ExpressionGraph, arguments: dict[str, Any]) -> dict[str, Any]:
    """Start a training run on pasted or generated data, without running an update.

    Args:
        graph: the graph.
        arguments: ``data`` (CSV text, or None to generate ``samples`` samples, by default 200), and
            settings of `ScalarTraining`; None means the default, which is 100 epochs, and for
            ``batch_size`` all samples.

    Returns:
        The progress, see `encode_progress`.

    >>> from cgprimer.core.graph import parse
    >>> answer = start_run(parse("parameter k = 3; xw = k*xa"), {"epochs": 50, "batch_size": 20})
    >>> answer = continue_run(answer["run"], 1_000)
    >>> answer["epoch"], answer["finished"], round(answer["parameters"]["k"], 1)
    (50, True, 3.0)
    """
    settings: dict[str, Any] = {name: arguments.get(name) for name in SETTINGS}
    settings = {n: v for n, v in settings.items() if v is not None or n == "batch_size"}
    if check_integer("epochs", settings.get("epochs", 100), minimum=1) > _MAX_EPOCHS:
        hint = "use the installed package for longer runs: cgprimer train"
        raise UsageError(f"the playground trains at most {_MAX_EPOCHS:,} epochs", hint=hint)
    data, samples, seed = (arguments.get(name) for name in ("data", "samples", "seed"))
    check_type("data", data, (str, type(None)), "CSV text")
    if data is None:
        columns = generate_samples(graph, 200 if samples is None else samples, seed or 0)
    else:
        columns = parse_samples(data, (*graph.inputs, *graph.outputs))
    run = ScalarTraining(graph, columns, **settings)
    number = next(_NUMBERS)
    _RUNS[number] = run
    if len(_RUNS) > _MAX_RUNS:
        del _RUNS[next(iter(_RUNS))]
    return encode_progress(number)


def continue_run(number: Any, milliseconds: Any) -> dict[str, Any]:
    """Train for about the given time; return the progress.

    Raises:
        UsageError: the run does not exist, or the time is not a positive number.
        NonFiniteError: a number is not finite; the run is then forgotten.
    """
    _check_run(number)
    duration = check_real_number("milliseconds", milliseconds, above=0)
    try:
        _RUNS[number].train_for(min(duration, _MAX_MILLISECONDS))
    except CgprimerError:
        del _RUNS[number]
        raise
    return encode_progress(number)


def forget_run(number: Any) -> dict[str, Any]:
    """Forget a run; accept a run that does not exist.

    Returns:
        ``run`` and ``forgotten``, which is false if the run did not exist.
    """
    forgotten = isinstance(number, int) and _RUNS.pop(number, None) is not None
    return {"run": number, "forgotten": forgotten}


def encode_progress(number: int) -> dict[str, Any]:
    """Return the progress of a run as built-in types.

    Returns:
        ``run`` (its number), ``epoch`` (the number of completed epochs), ``epochs``, ``losses``
        (the mean loss of each completed epoch), ``parameters`` by name, and ``finished``.
    """
    run = _RUNS[number]
    return {
        "run": number,
        "epoch": run.epoch,
        "epochs": run.epochs,
        "losses": run.losses,
        "parameters": run.parameters,
        "finished": run.finished,
    }


def _check_run(number: Any) -> None:
    """Raise UsageError if a run does not exist."""
    if not isinstance(number, int) or number not in _RUNS:
        raise UsageError(f"unknown run {number!r}", hint="start the training again")
