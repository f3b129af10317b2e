"""Sample values of inputs and parameters: fixed values, values of a domain, or any numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from cgprimer.core.language.input_domains import (
    ONE_HOT,
    Domain,
    domain_contains,
    domain_shape_error,
    domain_values_error,
)
from cgprimer.core.methods.derivative_program import normalize_names
from cgprimer.errors import UsageError, join_names, name_hint
from cgprimer.expressions import ExpressionGraph, Shape
from cgprimer.support.validation import check_real_number
from cgprimer.training.data.domain_samples import sample_domain

Array = Any


def sample_values(
    random: Random,
    shape: Shape,
    samples: int,
    domain: Domain | None,
    sample_element: Callable[[int, int], list[float]],
) -> Array:
    """Sample values for one input or parameter; return an array of shape (samples, *shape).

    Args:
        random: the source of random numbers.
        shape: the shape of one sample.
        samples: the number of samples.
        domain: the domain of the values; None for any numbers.
        sample_element: returns the given number of random values for the element with the given
            index in the flattened array; called only without a domain.
    """
    if domain is not None:

        def choose_indices(bound: int, shape: Shape) -> Array:
            """Return an array of random indices below a bound, with the given shape."""
            indices = [random.randrange(bound) for _ in range(math.prod(shape))]
            return np.array(indices, int).reshape(shape)

        return sample_domain(domain, shape, samples, choose_indices)
    size = math.prod(shape)
    columns = [sample_element(element, samples) for element in range(size)]
    return np.array(columns).T.reshape(samples, *shape)


def resolve_kept_inputs(graph: ExpressionGraph, keep: Sequence[str] | str = ()) -> tuple[str, ...]:
    """Validate and return the names of the inputs that keep their declared values.

    Raises:
        UsageError: a name is not an input, or has no declared value.

    >>> from cgprimer.core.graph import parse
    >>> resolve_kept_inputs(parse("input y = 1; z = k*y"), "y")
    ('y',)
    """
    names = normalize_names(keep, "keep") if keep or not isinstance(keep, Sequence) else ()
    for name in names:
        _check_input(graph, name, "keep")
        if name not in graph.values:
            what = f"cannot keep {name!r} (keep=, --keep): the graph declares no value for it"
            raise UsageError(what, hint=f"declare a value: input {name} = 1")
    return names


def resolve_input_domains(
    graph: ExpressionGraph, domain: Mapping[str, Any] | None
) -> dict[str, Domain]:
    """Return the domains of the graph inputs; the domains in `domain` override declared ones.

    Args:
        graph: the graph.
        domain: for each input a set of numbers, such as ``(0, 1)``, or ``"one-hot"``.

    Raises:
        UsageError: a name is not an input, or a domain is not valid for it.

    >>> from cgprimer.core.graph import parse
    >>> resolve_input_domains(parse("input y in {0, 1}, t; z = k*y*t"), {"t": (-1, 1)})
    {'y': (0.0, 1.0), 't': (-1.0, 1.0)}
    """
    if domain is not None and not isinstance(domain, Mapping):
        what = f"domain must map inputs to their possible values, got {type(domain).__name__}"
        raise UsageError(what, hint='write domain={"y": (0, 1)} or domain={"y": "one-hot"}')
    domains = dict(graph.domains)
    for name, values in (domain or {}).items():
        _check_input(graph, name, "domain")
        domains[name] = _convert_to_domain(name, values, graph.shapes.get(name, ()))
    return domains


def _check_input(graph: ExpressionGraph, name: str, option: str) -> None:
    """Raise UsageError if a name is not an input; the message mentions ``option``."""
    if name in graph.inputs:
        return
    kind = "a parameter" if name in graph.parameters else "not an input"
    kind = "computed by the graph" if name in graph.definitions else kind
    hint = name_hint(str(name), graph.inputs) if graph.inputs else "the graph has no inputs"
    raise UsageError(f"{option} applies only to inputs, but {name!r} is {kind}", hint=hint)


def _convert_to_domain(name: str, values: Any, shape: Shape) -> Domain:
    """Convert and validate the domain that a caller specifies for an input."""
    if isinstance(values, str):
        if values.replace("_", "-").casefold() != ONE_HOT:
            what = f"the domain of {name!r} must be numbers or 'one-hot', got {values!r}"
            raise UsageError(what, hint="write (0, 1), (-1, 1) or 'one-hot'")
        domain: Domain = ONE_HOT
    else:
        numbers = values if isinstance(values, Iterable) else [values]
        domain = tuple(check_real_number(f"the domain of {name!r}", one) for one in numbers)
        problem, _ = domain_values_error(domain)
        if problem:
            raise UsageError(f"invalid domain of {name!r}: {problem}")
    if problem := domain_shape_error(domain, shape):
        raise UsageError(f"invalid domain of {name!r}: {problem}")
    return domain


def check_disjoint(keep: Iterable[str], domain: Iterable[str]) -> None:
    """Raise UsageError if an input is in both ``keep`` and ``domain``."""
    if both := [name for name in keep if name in set(domain)]:
        what = f"{join_names(both)}: an input is either kept or sampled from a domain, not both"
        raise UsageError(what, hint="pass either keep= (--keep) or domain= (--domain)")


def is_declared_in_domain(graph: ExpressionGraph, name: str, domains: Mapping[str, Domain]) -> bool:
    """Return whether a name has a declared value that does not violate its domain."""
    if name not in graph.values:
        return False
    return name not in domains or domain_contains(
        domains[name], np.asarray(graph.values[name]).tolist()
    )
