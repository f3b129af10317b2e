"""Initializers: their laws, their seeds, their text, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.language.initializers import START_STREAM, VALUES_STREAM, Initializer

OUT, IN = 300, 200
LAWS = {  # expression, mean, variance and the largest absolute value
    "zeros": (0.0, 0.0, 0.0),
    "ones": (1.0, 0.0, 1.0),
    "normal(0.1)": (0.0, 0.01, math.inf),
    "normal(0)": (0.0, 0.0, 0.0),
    "uniform(-1, 3)": (1.0, 16 / 12, 3.0),
    "uniform(2, 2)": (2.0, 0.0, 2.0),
    "glorot": (0.0, 2 / (OUT + IN), math.sqrt(6 / (OUT + IN))),
    "he": (0.0, 2 / IN, math.inf),
}


@pytest.mark.parametrize("law", LAWS)
def test_mean_and_variance_are_those_of_the_law(law: str) -> None:
    mean, variance, largest = LAWS[law]
    graph = cgprimer.parse(f"parameter W[{OUT},{IN}] = {law}; input x[{IN}]; xo = W @ x")
    for values in (np.array(graph.values["W"]), graph.sampled_start(3)["W"]):
        error = 5 * math.sqrt(variance / values.size)
        assert values.mean() == pytest.approx(mean, abs=error + 1e-15)
        assert values.var() == pytest.approx(variance, rel=0.03, abs=1e-15)
        assert np.abs(values).max() <= largest
        if variance:
            excess = ((values - values.mean()) ** 4).mean() / values.var() ** 2
            normal = law.startswith(("normal", "he"))
            assert excess == pytest.approx(3.0 if normal else 1.8, abs=0.1)


def test_the_last_axis_counts_the_inputs_also_of_stacks_of_matrices() -> None:
    tall = Initializer("he").sample("W", (1000, 8), seed=0, stream=VALUES_STREAM)
    wide = Initializer("he").sample("W", (8, 1000), seed=0, stream=VALUES_STREAM)
    stack = Initializer("glorot").sample("W", (50, 30, 20), seed=0, stream=VALUES_STREAM)
    assert tall.var() == pytest.approx(2 / 8, rel=0.1)
    assert wide.var() == pytest.approx(2 / 1000, rel=0.1)
    assert stack.var() == pytest.approx(2 / 50, rel=0.05)


def test_values_depend_on_the_name_and_not_on_other_lines() -> None:
    first = cgprimer.parse("parameter a = normal(1), b = normal(1); xo = a*xa + b")
    other = cgprimer.parse("xo = a*xa + b + c; parameter c = normal(1), b = normal(1), a = 2")
    assert first.values["b"] == other.values["b"]
    assert first.values["a"] != first.values["b"]
    assert first.values == cgprimer.parse(first.text).values
    named = cgprimer.parse("parameter he[2,2] = he, zeros[2,2] = he; xo = sum(he @ zeros)*xa")
    assert named.initializers == {"he": Initializer("he"), "zeros": Initializer("he")}
    assert named.values["he"] != named.values["zeros"]


def test_the_start_depends_on_the_seed_and_is_not_the_ground_truth() -> None:
    graph = cgprimer.parse("parameter a = normal(1), b = 3; xo = a*xa + b")
    starts = [graph.sampled_start(seed)["a"] for seed in (0, 1, 0)]
    assert starts[0] == starts[2] != starts[1]
    assert graph.values["a"] not in starts
    assert graph.sampled_start(0).keys() == {"a"}
    law = Initializer("normal", (1.0,))
    assert law.sample("a", (), seed=0, stream=VALUES_STREAM) == graph.values["a"]
    assert law.sample("a", (), seed=0, stream=START_STREAM) == starts[0]


def test_values_are_a_mapping_of_numbers_and_nested_tuples() -> None:
    graph = cgprimer.parse("parameter W[2,3] = glorot, b = 2; input x[3] = ones; xo = b*(W @ x)")
    assert graph.initializers == {"W": Initializer("glorot"), "x": Initializer("ones")}
    assert graph.declared_values["b"] == 2
    assert [len(row) for row in graph.values["W"]] == [3, 3]
    assert all(type(number) is float for row in graph.values["W"] for number in row)
    assert (graph.values["b"], graph.values["x"]) == (2.0, (1.0, 1.0, 1.0))
    assert json.loads(json.dumps(graph.values))["x"] == [1.0, 1.0, 1.0]
    for mapping in (graph.values, graph.initializers, graph.declared_values):
        with pytest.raises(cgprimer.UsageError):
            mapping["b"] = 1.0
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert again.values == graph.values
        assert again.initializers == graph.initializers


def test_values_that_are_not_needed_are_not_sampled() -> None:
    graph = cgprimer.parse("parameter W[9000,9000] = he; input x[9000]; xo = W @ x")
    assert graph.text.startswith("parameter W[9000,9000] = he")
    assert "values" not in vars(graph)


numbers = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
initializers = st.one_of(
    st.sampled_from(["zeros", "ones", "glorot", "he"]).map(Initializer),
    numbers.map(lambda value: Initializer("normal", (abs(value),))),
    st.tuples(numbers, numbers).map(lambda both: Initializer("uniform", tuple(sorted(both)))),
)


@given(st.lists(initializers, min_size=1, max_size=5))
def test_text_is_parsed_to_the_same_initializers(laws: list[Initializer]) -> None:
    from cgprimer.core.operations.notation import format_declaration

    texts = [format_declaration(f"W{k}", law, (2, 3)) for k, law in enumerate(laws)]
    graph = cgprimer.parse(f"parameter {', '.join(texts)}; xo = xa")
    assert list(graph.initializers.values()) == laws
    again = cgprimer.parse(graph.text)
    assert again.text == graph.text
    assert again.initializers == graph.initializers
    assert again.values == graph.values
