"""What the data determine, on graphs whose Jacobian can be written down."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import cgprimer
from cgprimer.training.data import Dataset
from cgprimer.training.identifiability import Identifiability, format_combination, identifiability
from tests.cli.cli_tools import bad, good, read_json
from tests.training.training_graphs import TRUTH, lecture, lecture_data


def found_in(text: str, values: dict[str, float], **inputs: list[float]) -> Identifiability:
    graph = cgprimer.parse(text)
    columns = {n: inputs.get(n, [0.5, -1.0, 2.0, 3.0]) for n in graph.inputs}
    found = identifiability(graph, Dataset.from_arrays(columns, {}), values)
    assert found is not None
    return found


@pytest.mark.parametrize("values", [TRUTH, {"ab": 0.1, "bc": 0.9, "cd": -2.0, "ac": 0.3}])
def test_the_lecture_example(values: dict[str, float]) -> None:
    found = identifiability(lecture(), lecture_data(), values)
    assert found is not None
    assert found.rank == 3
    assert found.null_directions == ({"ab": 1.0, "bc": -1.0},)
    assert found.determined == ({"ab": 1.0, "bc": 1.0},)
    assert found.everywhere == (True,)
    assert found.undetermined() == ("ab", "bc")
    assert found.sentences(lecture().outputs) == [
        "The data determine 3 of 4 parameters (rank of the Jacobian).",
        "ab and bc cannot be determined separately: "
        "increasing ab by 1 and decreasing bc by 1 leaves xw unchanged.",
        "Combinations that the data determine: ab + bc.",
    ]


def test_full_rank_says_nothing() -> None:
    found = found_in("xw = k*xa + b", {"k": 1.0, "b": 2.0})
    assert found.condition < 10
    assert found == Identifiability(("k", "b"), 2, (), (), (), found.condition)
    assert found.sentences(("xw",)) == []
    assert found.undetermined() == ()


def test_a_product_is_only_locally_so() -> None:
    """xw = a*b*xa at a=2, b=3: the Jacobian is xa*(3, 2), the null direction (1, -1.5)."""
    found = found_in("xw = a*b*xa", {"a": 2.0, "b": 3.0})
    assert found.rank == 1
    assert found.null_directions[0] == pytest.approx({"a": 1.0, "b": -1.5})
    assert found.determined == ()  # what is determined is a*b, and no linear combination
    assert found.everywhere == (False,)
    sentences = found.sentences(("xw",))
    assert "increasing a by 1 and decreasing b by 1.5" in sentences[1]
    assert "to first order" in sentences[1]
    assert len(sentences) == 2


def test_coefficients() -> None:
    found = found_in("xw = (a + 2*b)*xa", {"a": 1.0, "b": 1.0})
    assert found.null_directions[0] == pytest.approx({"a": 1.0, "b": -0.5})
    assert found.determined[0] == pytest.approx({"a": 1.0, "b": 2.0})
    assert "a + 2*b" in found.sentences(("xw",))[-1]


def test_three_in_one_sum() -> None:
    found = found_in("xw = (a + b + c)*xa", dict.fromkeys("abc", 1.0))
    assert found.rank == 1
    assert len(found.null_directions) == 2
    for direction in found.null_directions:
        assert sum(direction.values()) == pytest.approx(0)
    assert found.determined == ({"a": 1.0, "b": 1.0, "c": 1.0},)
    assert found.undetermined() == ("a", "b", "c")


def test_two_groups_stay_apart() -> None:
    found = found_in("xw = (a + b)*xa + (c - d)*xa^2", dict.fromkeys("abcd", 1.0))
    assert found.rank == 2
    assert found.null_directions == ({"a": 1.0, "b": -1.0}, {"c": 1.0, "d": 1.0})
    assert found.determined == ({"a": 1.0, "b": 1.0}, {"c": 1.0, "d": -1.0})
    assert "increasing c by 1 and increasing d by 1" in " ".join(found.sentences(("xw",)))


def test_many_outputs_at_many_samples_take_little_memory() -> None:
    text = ";".join(f"xw{k} = a*xa" for k in range(30))
    tracemalloc.start()
    found = found_in(text, {"a": 1.0}, xa=list(range(100)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.rank == 1
    assert peak < 2e7  # with all left vectors of 3,000 numbers it was 72 MB; of 40,000 12 GB


def test_a_second_output_tells_them_apart() -> None:
    assert found_in("xw = (a + b)*xa", {"a": 1.0, "b": 1.0}).rank == 1
    assert found_in("xv = a*xa; xw = (a + b)*xa", {"a": 1.0, "b": 1.0}).rank == 2


def test_a_parameter_without_effect() -> None:
    text = "xv = u*xa; xw = k*xa; output xw"
    found = found_in(text, {"u": 1.0, "k": 1.0})
    assert found.rank == 1
    assert found.null_directions == ({"u": 1.0},)
    assert found.everywhere == (True,)
    assert found.determined == ()
    assert found.sentences(("xw",))[1] == "u has no effect on xw, so the data do not determine it."


def test_a_dead_unit_has_no_effect_here_but_elsewhere() -> None:
    found = found_in("xw = relu(a)*xa + b", {"a": -5.0, "b": 1.0})
    assert found.null_directions == ({"a": 1.0},)
    assert found.everywhere == (False,)
    assert "near these values" in found.sentences(("xw",))[1]


def test_the_greater_of_two_parameters() -> None:
    found = found_in("xw = max(a, b)*xa", {"a": 3.0, "b": 0.27})
    assert found.null_directions == ({"b": 1.0},)
    assert found.everywhere == (False,)


def test_nearly_dependent_parameters_are_named_as_such() -> None:
    found = found_in("xw = k*(1000 + xa/1000) + b", {"k": 1.0, "b": 1.0})
    assert found.rank == 2
    assert found.condition > 1e5
    assert "hardly determine" in found.sentences(("xw",))[-1]


def test_too_few_samples() -> None:
    found = found_in("xw = k*xa + b", {"k": 1.0, "b": 1.0}, xa=[2.0])
    assert found.rank == 1
    assert found.null_directions[0] == pytest.approx({"k": 1.0, "b": -2.0})


def test_nothing_depends_on_any_parameter() -> None:
    found = found_in("xw = k*xa", {"k": 1.0}, xa=[0.0, 0.0])
    assert found.rank == 0
    assert found.null_directions == ({"k": 1.0},)


def test_without_inputs() -> None:
    graph = cgprimer.parse("xw = a + b")
    data = Dataset.from_arrays({}, {"xw": [1.0, 2.0]})
    found = identifiability(graph, data, {"a": 1.0, "b": 1.0})
    assert found is not None
    assert (found.rank, found.null_directions) == (1, ({"a": 1.0, "b": -1.0},))


def test_where_the_jacobian_is_not_finite_nothing_is_said() -> None:
    graph = cgprimer.parse("xw = log(k*xa)")
    data = Dataset.from_arrays({"xa": [0.0, 1.0]}, {})
    assert identifiability(graph, data, {"k": 1.0}) is None


def test_samples_from_all_over_the_data_are_used() -> None:
    graph = cgprimer.parse("xw = k*xa + b")
    xa = np.repeat([1.0, 2.0, 3.0], 1000)  # sorted: the first thousand are all alike
    found = identifiability(graph, Dataset.from_arrays({"xa": xa}, {}), {"k": 1.0, "b": 1.0})
    assert found is not None
    assert found.rank == 2


def test_combinations_as_text() -> None:
    assert format_combination({"a": -1.0, "b": 0.5}) == "-a + 0.5*b"
    assert format_combination({"a": 1.0}) == "a"


def test_a_direction_of_many_parameters_is_counted_and_not_written_out() -> None:
    many = {f"a{k}": 1.0 for k in range(8)}
    few = {"ab": 1.0, "bc": -1.0}
    result = Identifiability(
        parameters=(*many, *few),
        rank=8,
        null_directions=(few, many),
        determined=(few, many),
        everywhere=(True, True),
    )
    short, full = result.sentences(("xw",)), result.sentences(("xw",), every=True)
    assert "1 other combined change " in short[2]
    assert "a7" not in " ".join(short)
    assert "a6 and a7" in full[2]
    assert "a7" in full[3]


def test_a_network_is_reported_in_few_lines() -> None:
    text = good("train", "-e", good("new", "mlp", "2-16-1"), "--epochs", "3")
    assert len(text) < 2_000
    assert max(map(len, text.splitlines())) < 200


def test_the_command_lists_every_direction() -> None:
    text = good("identifiability", "lecture")
    assert "ab and bc cannot be determined separately" in text
    assert good("identifiability", "lecture", "--wrt", "ab,cd").count("\n") == 1
    data = read_json("identifiability", "lecture", "--json")
    assert (data["rank"], data["null_directions"]) == (3, [{"ab": 1.0, "bc": -1.0}])
    assert "'ax'" in bad("identifiability", "lecture", "--wrt", "ax", code=2)
    assert "NAME" in bad("identifiability", "-e", "y = a*x")
