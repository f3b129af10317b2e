"""Models that are trained on the same data: other settings, other graphs, fewer samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_choice, check_integer
from cgprimer.tapes import tape
from cgprimer.training.data import Dataset
from cgprimer.training.settings import SETTING_NAMES

Array = Any
GRAPH, SAMPLES = "graph", "samples"  #: what varies in addition to settings
TEST_SHARE = 0.25  #: of the data, kept for validation if the size of the training set varies
_MAX_RUNS = 10_000
_STREAM = 1_000_033  # a stream of the seed that neither epochs nor validation use


def iterate_combinations(
    vary: Mapping[str, Any], allowed: Sequence[str] = (*SETTING_NAMES, GRAPH, SAMPLES)
) -> Iterator[dict[str, Any]]:
    """Iterate over all combinations of the varied values; the last setting varies fastest.

    Graphs are given as a mapping of names to graphs, and a combination has the name of one.

    Raises:
        UsageError: an unknown name, a name without a list of values, or too many combinations.

    >>> list(iterate_combinations({"epochs": [1, 2], "optimizer": ["sgd"]}))
    [{'epochs': 1, 'optimizer': 'sgd'}, {'epochs': 2, 'optimizer': 'sgd'}]
    """
    check_type("vary", vary, Mapping, "a mapping of settings to lists of values")
    if not vary:
        hint = 'pass vary={"learning_rate": [0.1, 0.01]} (--learning-rate 0.1,0.01)'
        raise UsageError("`vary` must not be empty", hint=hint)
    lists: dict[str, list[Any]] = {}
    for name, choices in vary.items():
        check_choice("setting", name, allowed)
        values = _list_graph_names(choices) if name == GRAPH else choices
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise UsageError(f"values of `{name}` must be a list, got {values!r}")
        if name == SAMPLES:
            for one in values:
                check_integer("a number of samples", one, minimum=1)
        lists[name] = [v for k, v in enumerate(values) if v not in values[:k]]
    if (count := math.prod(map(len, lists.values()))) > _MAX_RUNS:
        raise UsageError(f"{count:,} runs exceed the maximum of {_MAX_RUNS:,}")
    return (dict(zip(lists, values, strict=True)) for values in product(*lists.values()))


def _list_graph_names(graphs: Any) -> list[str]:
    """Return the names of the graphs in a mapping, after checking its type."""
    values = list(graphs.values()) if isinstance(graphs, Mapping) else [graphs]
    wrong = next((one for one in values if not isinstance(one, ExpressionGraph)), None)
    if wrong is not None or not isinstance(graphs, Mapping):
        hint = 'pass vary={"graph": {"small": graph, "large": another}}'
        raise UsageError(
            f"`graph` in `vary` must be a dict from names to graphs, got {graphs!r:.80}", hint=hint
        )
    return list(map(str, graphs))


def sample_subset(data: Dataset, samples: int, seed: int) -> Dataset:
    """Sample a subset of the data, determined by the seed; larger subsets contain smaller ones.

    Raises:
        UsageError: the dataset has fewer samples.

    >>> data = Dataset.from_arrays({"x": range(10)})
    >>> small, large = (sample_subset(data, n, seed=0).inputs["x"].tolist() for n in (2, 5))
    >>> small == large[:2], len(large)
    (True, 5)
    """
    if samples > len(data):
        raise UsageError(
            f"cannot train on {samples:,} samples: the training data have {len(data):,}",
            hint="choose fewer samples, or provide more data",
        )
    return data.where(np.random.default_rng([seed, _STREAM]).permutation(len(data))[:samples])


def match_columns_to_graph(graph: ExpressionGraph, data: Dataset) -> Dataset:
    """Return a dataset whose columns have the names and shapes of a graph.

    Columns are matched by name; if the names or shapes of the inputs differ, the inputs are
    matched by position, element by element; the same holds for the targets. Targets that do not
    fit the outputs (labels of classes, for instance) stay as they are.

    Raises:
        DataError: the inputs of graph and data have different numbers of elements.

    >>> from cgprimer.core.graph import parse
    >>> data = Dataset.from_arrays({"a": [1.0], "b": [2.0]}, {"label": [0.0]})
    >>> match_columns_to_graph(parse("input x[2]; xo = x[0]*k + x[1]"), data).columns
    {'x': array([[1., 2.]]), 'xo': array([0.])}
    """
    shapes = {name: graph.shapes.get(name, ()) for name in graph.inputs}
    inputs = match_columns(data.inputs, shapes)
    targets = match_columns(data.targets, find_output_shapes(graph))
    if inputs is None:
        sizes = [sum(math.prod(c.shape[1:]) for c in data.inputs.values())]
        sizes.append(sum(math.prod(graph.shapes.get(name, ())) for name in graph.inputs))
        raise DataError(
            f"{graph.source.name} has {sizes[1]} input values per sample,"
            f" but the data have {sizes[0]}",
            hint=f"choose a graph whose inputs match those of the data: {', '.join(data.inputs)}",
        )
    return replace(data, inputs=inputs, targets=data.targets if targets is None else targets)


def find_output_shapes(graph: ExpressionGraph) -> dict[str, tuple[int, ...]]:
    """Return the shape of each output for one sample."""
    graph_tape = tape(graph)
    return {name: graph_tape.shapes[index] for name, index in graph_tape.outputs.items()}


def match_columns(
    columns: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array] | None:
    """Rename and reshape columns to match names and shapes; return None if sizes differ."""
    if all(name in columns and columns[name].shape[1:] == shapes[name] for name in shapes):
        return dict(columns)
    sizes = [math.prod(shape) for shape in shapes.values()]
    flat = [np.reshape(column, (len(column), -1)) for column in columns.values()]
    if not flat or sum(part.shape[1] for part in flat) != sum(sizes):
        return None
    parts = np.split(np.concatenate(flat, axis=1), np.cumsum(sizes)[:-1], axis=1)
    return {
        name: np.ascontiguousarray(part.reshape(len(part), *shape))
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
