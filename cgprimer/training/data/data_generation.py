"""Data that a graph with known parameters would produce."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.evaluation.runner import compile_tape
from cgprimer.core.graph import check_graph
from cgprimer.errors import DataError, MissingValueError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.array_values import find_nonfinite
from cgprimer.support.number_format import format_array
from cgprimer.support.validation import check_integer, check_named_values, check_real_number
from cgprimer.tapes import tape
from cgprimer.training.data.dataset import Dataset
from cgprimer.training.data.domain_samples import sample_domain

Bound = float | Mapping[str, float]
_LINE = 1_000  # letters: arrays in a message are not broken into lines


def make_dataset(
    graph: ExpressionGraph,
    *,
    truth: Mapping[str, Any] | None = None,
    samples: int = 10_000,
    seed: int = 0,
    low: Bound = -1.0,
    high: Bound = 1.0,
    noise: float = 0.0,
    targets: bool = True,
) -> Dataset:
    """Data that a graph with known parameters would produce.

    Inputs are sampled uniformly, independently of each other: between the bounds, or from the
    domain that the graph declares for them (``input y in {0, 1}``). Targets are the graph's
    outputs, plus normal noise if asked for. Equal arguments give equal data on every machine.

    Args:
        graph: the graph.
        truth: values of the parameters, numbers or arrays of their shapes; those declared in the
            text fill the rest.
        samples: how many.
        seed: of numpy's generator (PCG64).
        low, high: bounds of the inputs, in their unit: a number for all that have no domain, or
            one for each of their names.
        noise: standard deviation of what is added to each target, in the target's unit.
        targets: whether there are any. If not, nothing is computed, and no truth is needed; samples
            of a graph without inputs are numbered, by a column called ``sample``.

    Raises:
        MissingValueError: a parameter has no true value.
        UsageError: samples below 1, bounds the wrong way round or for an input with a domain,
            negative noise, or no numbers.
        DataError: a target is not finite for some input.

    >>> from cgprimer.core.graph import parse
    >>> data = make_dataset(parse("xw = k*xa"), truth={"k": 2.0}, samples=3, seed=1)
    >>> bool((data.targets["xw"] == 2*data.inputs["xa"]).all())
    True
    """
    check_graph(graph)
    samples = check_integer("the number of samples", samples, minimum=1)
    seed = check_integer("the seed", seed)
    noise = check_real_number("the noise, a standard deviation,", noise, minimum=0)
    truth = check_named_values(
        "truth", truth, "parameter", graph.parameters, shapes=graph.shapes, parts=True
    )
    try:
        point = graph.point(truth, needed=graph.parameters if targets else ())
    except MissingValueError as error:
        raise MissingValueError(
            error.message.replace("missing value", "missing true value"),
            hint="give truth={...} (--truth NAME=VALUE), write in the text: parameter NAME = VALUE,"
            " or give data of your own (--data)",
        ) from None
    if not graph.definitions:
        raise UsageError("there is nothing to make data from: the graph has no expressions")
    random = np.random.default_rng(seed)
    columns = {}

    def choose(below: int, size: tuple[int, ...]) -> Any:
        return random.integers(below, size=size)

    for name in graph.inputs:
        shape = graph.shapes.get(name, ())
        if domain := graph.domains.get(name):
            _refuse_bounds(name, low, high)
            columns[name] = sample_domain(domain, shape, samples, choose)
            continue
        lowest, highest = _bound(low, name, "low"), _bound(high, name, "high")
        if not lowest <= highest or not math.isfinite(highest - lowest):
            wrong = "are too far apart" if lowest <= highest else "are the wrong way round"
            raise UsageError(f"the bounds of {name!r} {wrong}: {lowest} and {highest}")
        columns[name] = random.uniform(lowest, highest, (samples, *shape))
    if not targets:
        return Dataset(columns, {} if columns else {"sample": np.arange(float(samples))})
    scalars = {name: point[name] for name in graph.parameters}
    made = tape(graph, graph.mode({**scalars, **columns}))  # a batch of its own, where that matters
    execute = compile_tape(select_engine("numpy"), made, reduction="none", dtype="float64")
    made_targets = execute(columns, scalars, samples)
    for name in graph.outputs:
        found = made_targets[name]
        if bad := find_nonfinite(found, found.ndim - 1):
            value, sample, place = bad
            count = np.count_nonzero(~np.isfinite(found).reshape(samples, -1).all(axis=1))
            where = ", ".join(
                f"{n}={format_array(columns[n][sample], 6, width=_LINE)}" for n in graph.inputs
            )
            some = f"{count:,} of {samples:,} samples"
            what = f"the target {name + place!r} is {value} for {some}, first at {where}"
            hint = "choose bounds inside the domain: low=..., high=... (--low, --high)"
            raise DataError(what, hint=hint)
        if noise:
            made_targets[name] = found + random.normal(0.0, noise, found.shape)
    return Dataset(columns, made_targets, scalars)


def _refuse_bounds(name: str, low: Bound, high: Bound) -> None:
    """Raise UsageError if there is a bound for an input that has a domain."""
    for bound, what in ((low, "low"), (high, "high")):
        if isinstance(bound, Mapping) and name in bound:
            said = f"{name!r} is sampled from its domain and has no {what} bound"
            raise UsageError(said, hint=f"leave {name!r} out of {what}, or remove its domain")


def _bound(bound: Bound, name: str, what: str) -> float:
    if isinstance(bound, Mapping):
        if name not in bound:
            raise UsageError(f"no {what} bound is given for {name!r}")
        bound = bound[name]
    return check_real_number(f"the {what} bound of {name!r}", bound)
