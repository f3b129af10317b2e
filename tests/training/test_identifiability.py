"""Which parameters the data determine, for graphs whose Jacobian is known."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.training.data import Dataset
from cgprimer.training.identifiability import Identifiability, format_combination, identifiability
from tests.approval import approved
from tests.cli.cli_tools import bad, good, read_json
from tests.training.training_graphs import TRUTH, lecture, lecture_data


@pytest.mark.parametrize("values", [TRUTH, {"ab": 0.1, "bc": 0.9, "cd": -2.0, "ac": 0.3}])
def test_lecture_example(values: dict[str, float]) -> None:
    found = identifiability(lecture(), lecture_data(), values)
    assert found is not None
    assert (found.rank, found.everywhere) == (3, (True,))
    assert found.null_directions == ({"ab": 1.0, "bc": -1.0},)
    assert found.determined == ({"ab": 1.0, "bc": 1.0},)
    approved("\n".join(found.sentences(lecture().outputs)))


KNOWN: dict[str, tuple[dict[str, float], int, list[Any], list[Any], list[bool]]] = {
    # values, rank, directions without effect, determined combinations, and where they hold
    "xw = k*xa + b": ({"k": 1, "b": 2}, 2, [], [], []),
    # The Jacobian is xa*(3, 2); a*b is determined, but no linear combination.
    "xw = a*b*xa": ({"a": 2, "b": 3}, 1, [{"a": 1, "b": -1.5}], [], [False]),
    "xw = (a + 2*b)*xa": (
        {"a": 1, "b": 1}, 1, [{"a": 1, "b": -0.5}], [{"a": 1, "b": 2}], [True],
    ),
    "xw = (a + b)*xa + (c - d)*xa^2": (
        dict.fromkeys("abcd", 1.0), 2, [{"a": 1, "b": -1}, {"c": 1, "d": 1}],
        [{"a": 1, "b": 1}, {"c": 1, "d": -1}], [True, True],
    ),
    "xv = a*xa; xw = (a + b)*xa": ({"a": 1, "b": 1}, 2, [], [], []),
    "xv = u*xa; xw = k*xa; output xw": ({"u": 1, "k": 1}, 1, [{"u": 1}], [], [True]),
    "xw = relu(a)*xa + b": ({"a": -5, "b": 1}, 1, [{"a": 1}], [], [False]),
    "xw = max(a, b)*xa": ({"a": 3, "b": 0.27}, 1, [{"b": 1}], [], [False]),
    "xw = k*0*xa": ({"k": 1}, 0, [{"k": 1}], [], [True]),
    "xw = a + b": ({"a": 1, "b": 1}, 1, [{"a": 1, "b": -1}], [{"a": 1, "b": 1}], [True]),
}  # fmt: skip


def identify(text: str, values: dict[str, float], *samples: float) -> Identifiability:
    """Analyze a graph with given samples of its inputs."""
    graph = cgprimer.parse(text)
    columns = dict.fromkeys(graph.inputs, samples or (0.5, -1.0, 2.0, 3.0))
    targets = {} if graph.inputs else {"xw": [1.0, 2.0]}
    found = identifiability(graph, Dataset.from_arrays(columns, targets), values)
    assert found is not None
    return found


@pytest.mark.parametrize("text", KNOWN)
def test_known_jacobians(text: str) -> None:
    values, rank, null, determined, everywhere = KNOWN[text]
    found = identify(text, values)
    assert found.rank == rank
    assert [*found.null_directions] == [pytest.approx(d) for d in null]
    assert [*found.determined] == [pytest.approx(d) for d in determined]
    assert [*found.everywhere] == everywhere
    assert {*found.undetermined()} == {name for direction in null for name in direction}
    sentences = found.sentences(cgprimer.parse(text).outputs)
    assert (sentences == []) == (not null)
    if null:
        approved("\n".join(sentences))


def test_sums_of_three_and_nearly_dependent_parameters() -> None:
    found = identify("xw = (a + b + c)*xa", dict.fromkeys("abc", 1.0))
    assert (found.rank, len(found.null_directions)) == (1, 2)
    assert [sum(direction.values()) for direction in found.null_directions] == pytest.approx([0, 0])
    assert found.determined == ({"a": 1.0, "b": 1.0, "c": 1.0},)
    assert identify("xw = k*xa + b", {"k": 1.0, "b": 2.0}).condition < 10
    near = identify("xw = k*(1000 + xa/1000) + b", {"k": 1.0, "b": 1.0})
    assert near.rank == 2
    assert near.condition > 1e5
    approved(near.sentences(("xw",))[-1], "hardly determine")


def test_few_and_many_samples() -> None:
    few = identify("xw = k*xa + b", {"k": 1.0, "b": 1.0}, 2.0)
    assert few.rank == 1
    assert few.null_directions[0] == pytest.approx({"k": 1.0, "b": -2.0})
    blocks = np.repeat([1.0, 2.0, 3.0], 1000)  # samples are chosen from all parts
    assert identify("xw = k*xa + b", {"k": 1.0, "b": 1.0}, *blocks).rank == 2
    graph, data = cgprimer.parse("xw = log(k*xa)"), Dataset.from_arrays({"xa": [0.0, 1.0]}, {})
    assert identifiability(graph, data, {"k": 1.0}) is None  # the Jacobian is not finite
    text = ";".join(f"xw{k} = a*xa" for k in range(30))
    tracemalloc.start()
    try:
        assert identify(text, {"a": 1.0}, *range(100)).rank == 1
        assert tracemalloc.get_traced_memory()[1] < 2e7  # a square matrix of 3,000 takes 72 MB
    finally:
        tracemalloc.stop()


def test_long_directions_are_counted() -> None:
    assert format_combination({"a": -1.0, "b": 0.5}) == "-a + 0.5*b"
    assert format_combination({"a": 1.0}) == "a"
    many = {f"a{k}": 1.0 for k in range(8)}
    few = {"ab": 1.0, "bc": -1.0}
    result = Identifiability((*many, *few), 8, (few, many), (few, many), (True, True))
    short, full = result.sentences(("xw",)), result.sentences(("xw",), every=True)
    assert "1 other combined change " in short[2]
    assert "a7" not in " ".join(short)
    assert "a6 and a7" in full[2]
    assert "a7" in full[3]


def test_the_command_lists_every_direction() -> None:
    assert "ab and bc cannot be determined separately" in good("identifiability", "lecture")
    assert good("identifiability", "lecture", "--wrt", "ab,cd").count("\n") == 1
    data = read_json("identifiability", "lecture")
    assert (data["rank"], data["null_directions"]) == (3, [{"ab": 1.0, "bc": -1.0}])
    assert "'ax'" in bad("identifiability", "lecture", "--wrt", "ax", code=2)
    assert "NAME" in bad("identifiability", "-e", "y = a*x")
