"""Synthetic data: samples computed by a graph with known parameters."""

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
_MESSAGE_WIDTH = 1_000  # characters: arrays in a message are not wrapped


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
    """Generate samples from a graph with known parameters.

    Inputs are sampled uniformly, independently of each other: between the bounds, or from the
    domain that the graph declares for them (``input y in {0, 1}``). Targets are the graph's
    outputs, plus normal noise on request. Equal arguments give equal data on every machine.

    Args:
        graph: the graph.
        truth: ground-truth values of the parameters, scalars or arrays; parameters that are not
            given take the values declared in the graph.
        samples: number of samples.
        seed: seed of numpy's generator (PCG64).
        low, high: bounds of the inputs, in their unit: one for all inputs without a domain, or a
            mapping of names to bounds.
        noise: standard deviation of the noise added to each target, in the target's unit.
        targets: whether to compute targets. Without targets no truth is needed; a graph without
            inputs gets a column called ``sample`` that numbers the samples.

    Raises:
        MissingValueError: a parameter has no ground-truth value.
        UsageError: samples below 1, a lower bound above the upper bound, a bound for an input with
            a domain, negative noise, or an argument that is not a number.
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
            error.message.replace("missing value", "missing ground-truth value"),
            hint="pass truth={...} (--truth NAME=VALUE), declare `parameter NAME = VALUE` in the"
            " graph, or pass your own data (--data)",
        ) from None
    if not graph.definitions:
        raise UsageError("cannot generate data: the graph has no expressions")
    random = np.random.default_rng(seed)
    columns = {}

    def sample_integers(below: int, size: tuple[int, ...]) -> Any:
        """Sample an array of integers from 0 to ``below - 1``."""
        return random.integers(below, size=size)

    for name in graph.inputs:
        shape = graph.shapes.get(name, ())
        if domain := graph.domains.get(name):
            _check_no_bounds(name, low, high)
            columns[name] = sample_domain(domain, shape, samples, sample_integers)
            continue
        lowest, highest = _find_bound(low, name, "low"), _find_bound(high, name, "high")
        if not lowest <= highest or not math.isfinite(highest - lowest):
            rule = "difference must be finite" if lowest <= highest else "low must not exceed high"
            raise UsageError(f"bounds of {name!r}: {rule}, got {lowest} and {highest}")
        columns[name] = random.uniform(lowest, highest, (samples, *shape))
    if not targets:
        return Dataset(columns, {} if columns else {"sample": np.arange(float(samples))})
    scalars = {name: point[name] for name in graph.parameters}
    lowered = tape(graph, graph.mode({**scalars, **columns}))  # the samples are one batch
    execute = compile_tape(select_engine("numpy"), lowered, reduction="none", dtype="float64")
    outputs = execute(columns, scalars, samples)
    for name in graph.outputs:
        _check_finite_target(graph, columns, name, outputs[name])
        if noise:
            outputs[name] = outputs[name] + random.normal(0.0, noise, outputs[name].shape)
    return Dataset(columns, outputs, scalars)


def _check_finite_target(
    graph: ExpressionGraph, columns: Mapping[str, Any], name: str, target: Any
) -> None:
    """Raise DataError if a target is not finite, with the inputs of the first such sample."""
    if not (nonfinite := find_nonfinite(target, target.ndim - 1)):
        return
    value, sample, element = nonfinite
    samples = len(target)
    count = np.count_nonzero(~np.isfinite(target).reshape(samples, -1).all(axis=1))
    inputs = ", ".join(
        f"{n}={format_array(columns[n][sample], 6, width=_MESSAGE_WIDTH)}" for n in graph.inputs
    )
    frequency = f"{count:,} of {samples:,} samples"
    message = f"target {name + element!r} is {value} in {frequency}, first at {inputs}"
    hint = "choose bounds within the domain: low=..., high=... (--low, --high)"
    raise DataError(message, hint=hint)


def _check_no_bounds(name: str, low: Bound, high: Bound) -> None:
    """Raise UsageError if a bound is given for an input that has a declared domain."""
    for bound, argument in ((low, "low"), (high, "high")):
        if isinstance(bound, Mapping) and name in bound:
            message = f"{name!r} is sampled from its domain and accepts no {argument} bound"
            raise UsageError(message, hint=f"omit {name!r} from {argument}, or remove its domain")


def _find_bound(bound: Bound, name: str, argument: str) -> float:
    """Return the lower or upper bound of one input."""
    if isinstance(bound, Mapping):
        if name not in bound:
            raise UsageError(f"missing {argument} bound for {name!r}")
        bound = bound[name]
    return check_real_number(f"the {argument} bound of {name!r}", bound)
