"""Grammar of the language: precedence, separators, functions, declarations, initializers."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.language.initializers import START_STREAM, VALUES_STREAM, Initializer
from cgprimer.core.language.parser import parse_program
from cgprimer.core.language.syntax_tree import Definition
from cgprimer.core.language.tokens import locate_tokens, tokenize
from cgprimer.core.operations.notation import format_declaration, parse_expression
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.errors import Source
from tests.language.language_trees import python_shape, shape


def value_of(text: str) -> float:
    graph = cgprimer.parse(f"input x = 3; parameter a = 5, b = 7; xresult = {text}")
    return graph.evaluate()["xresult"]


def read_values() -> list[tuple[str, float]]:
    """Return expressions of numbers and x, a and b, and their values."""
    lines = Path(__file__).with_name("expression_values.txt").read_text("utf-8").splitlines()
    pairs = [line.split(" | ") for line in lines if not line.startswith("#")]
    return [(text, float(value)) for text, value in pairs]


@pytest.mark.parametrize(("text", "expected"), read_values())
def test_expression_values(text: str, expected: float) -> None:
    # The configuration turns warnings into errors, so constant folding must not warn.
    np.testing.assert_array_equal(value_of(text), expected)


OPERANDS = st.sampled_from(["x", "xx", "a", "1", "2", "0.5", "1e3", "2.", ".5", "1E-2"])


def _extend(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Operands are joined without parentheses, so that precedence decides the structure.
    binary = st.sampled_from([" + ", "-", "*", " / ", "**", "+", " - ", "* ", "/"])
    return (
        st.tuples(children, binary, children).map("".join)
        | children.map(lambda text: f"-{text}")
        | children.map(lambda text: f"+{text}")
        | children.map(lambda text: f"({text})")
    )


@given(st.recursive(OPERANDS, _extend, max_leaves=12))
@settings(deadline=None)
def test_arithmetic_parses_as_in_python(text: str) -> None:
    assert shape(parse_expression(text)) == python_shape(text)


def test_function_name_without_call_is_a_parameter() -> None:
    for name in FUNCTIONS:
        parameters = cgprimer.parse(f"xw = {name}*xa").parameters
        assert parameters == ((name,) if name[0] != "x" else ())


def test_trailing_operand_has_a_default() -> None:
    short, full = parse_expression("leaky_relu(xa)"), parse_expression("leaky_relu(xa, 0.01)")
    assert shape(short) == shape(full)


def test_max_and_min_are_variadic() -> None:
    for order in itertools.permutations(("9", "-4", "2.5")):
        operands = ", ".join(order)
        assert (value_of(f"max({operands})"), value_of(f"min({operands})")) == (9.0, -4.0)


def parse_definitions(text: str) -> list[tuple[str, list[tuple[str, object]]]]:
    statements = parse_program(text, FUNCTIONS).statements
    assert all(isinstance(s, Definition) for s in statements)
    return [(s.name, shape(s.expression)) for s in statements if isinstance(s, Definition)]


@pytest.mark.parametrize(
    "text",
    [
        "xb=a*xa;xc=max(xb,2)",
        "xb = a*xa\nxc = max(xb, 2)",
        "xb = a*xa\r\nxc = max(xb, 2)\r\n",
        "xb = a*xa\rxc = max(xb, 2)\r",
        ";;\n;xb = a*xa;\n\n;;xc = max(xb, 2);;\n",
        "# first; xq = 1\nxb = a*xa # the slope (\nxc = max(xb, 2) # ) ; xz = 3",
        "xb = a*xa # no newline ;\nxc = max(xb, 2)#",
        "xb = a*xa;xc = max(\n  xb,\n  2\n)",
        "xb = (a\n*\nxa); xc = max(xb\r\n, 2)",
        "xb = a*xa; xc = max(xb, # the first\n 2  # the second\n)",
        "\ufeffxb = a*xa; xc = max(xb, 2)",
        "\t xb\t=\ta *\u00a0xa \f\v;  xc=max ( xb , 2 )",
    ],
)
def test_equivalent_texts(text: str) -> None:
    assert parse_definitions(text) == parse_definitions("xb = a*xa; xc = max(xb, 2)")


def test_text_without_statements_is_an_empty_graph() -> None:
    for text in ("", " ", "\n", ";", "# only a comment", "\r\n\r\n;;#x\n"):
        graph = cgprimer.parse(text)
        assert (graph.variables, graph.parameters, graph.evaluate()) == ((), (), {})


def test_names_with_common_prefixes_are_distinct() -> None:
    values = {"x": 2.0, "xa": 3.0, "xab": 5.0, "xx": 7.0, "a": 11.0, "ab": 13.0, "b": 17.0}
    graph = cgprimer.parse(
        "xxx = x + xa*10 + xab*100 + xx*1000 + a*1e4 + ab*1e6 + b*1e8; xaa = xxx - x"
    )
    result = graph.evaluate(values)
    assert graph.inputs == ("x", "xa", "xab", "xx")
    assert graph.parameters == ("a", "ab", "b")
    assert result["xxx"] == 2 + 30 + 500 + 7000 + 11e4 + 13e6 + 17e8
    assert result["xaa"] == result["xxx"] - 2
    assert graph.depends_on["xaa"] == ["x", "xxx"]


def test_token_locations() -> None:
    text = "xw = cd**2  # note\n ; xz=sin( xw)"
    tokens = tokenize(text)
    assert [text[s.start : s.end] for s in locate_tokens(Source("<text>", text))] == tokens
    assert tokens == ["xw", "=", "cd", "**", "2", "\n", ";", "xz", "=", "sin(", "xw", ")", ""]


def test_line_break_before_call_parenthesis() -> None:
    for between in ("\n", "  # (\n\n ", "\t"):
        assert parse_definitions(f"xw = (sin{between}(xa))") == parse_definitions("xw = sin(xa)")
    with pytest.raises(cgprimer.CgprimerError):
        cgprimer.parse("xw = sin\n(xa)")


def test_input_domains() -> None:
    graph = cgprimer.parse(
        "input y = 1 in {0, 1}, x; input t in {-1,\n 1}\n"
        "input c[2,3] = [[0, 1, 0], [1, 0, 0]] in one-hot; input in in {2}\n"
        "z = k*x*y*t*in + sum(c)"
    )
    assert graph.domains == {"y": (0.0, 1.0), "t": (-1.0, 1.0), "c": "one-hot", "in": (2.0,)}
    assert graph.values["y"] == 1.0
    assert "x" not in graph.domains
    with pytest.raises(cgprimer.UsageError):
        graph.domains["x"] = (1.0,)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float)


@st.composite
def declared_inputs(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    """Generate the text of an input with a domain, and the expected domain."""
    numbers = draw(st.lists(NUMBERS, min_size=1, max_size=5, unique=True))
    gap = draw(st.sampled_from(["", " ", "\n", " # two\n "]))
    braces = f"{{{gap}" + f"{gap},{gap}".join(map(repr, numbers)) + f"{gap}}}"
    last = repr(numbers[-1])
    shape, value, domain, expected = draw(
        st.sampled_from(
            [
                ("", last, braces, tuple(numbers)),
                ("[2]", f"[{last}, {last}]", braces, tuple(numbers)),
                ("[3]", "[0, 1, 0]", "one-hot", "one-hot"),
                ("[2,2]", "[[0, 1], [1, 0]]", "one-hot", "one-hot"),
            ]
        )
    )
    given = draw(st.sampled_from(["", f" = {value}"]))
    return f"input y{shape}{given} in {domain}; s = sum(y)", {"y": expected}


@given(declared_inputs())
@settings(deadline=None)
def test_domains_round_trip_through_text(declared: tuple[str, dict[str, object]]) -> None:
    text, domains = declared
    graph = cgprimer.parse(text)
    assert graph.domains == domains
    again = cgprimer.parse(graph.text)
    assert (again.domains, again.values) == (graph.domains, graph.values)
    assert again.text == graph.text


OUT, IN = 300, 200
INITIALIZERS = {  # expression, mean, variance and the largest absolute value
    "zeros": (0.0, 0.0, 0.0),
    "ones": (1.0, 0.0, 1.0),
    "normal(0.1)": (0.0, 0.01, math.inf),
    "normal(0)": (0.0, 0.0, 0.0),
    "uniform(-1, 3)": (1.0, 16 / 12, 3.0),
    "uniform(2, 2)": (2.0, 0.0, 2.0),
    "glorot": (0.0, 2 / (OUT + IN), math.sqrt(6 / (OUT + IN))),
    "he": (0.0, 2 / IN, math.inf),
}


@pytest.mark.parametrize("law", INITIALIZERS)
def test_initializer_moments(law: str) -> None:
    mean, variance, largest = INITIALIZERS[law]
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


@pytest.mark.parametrize(
    ("name", "shape", "variance"),
    [("he", (1000, 8), 2 / 8), ("he", (8, 1000), 2 / 1000), ("glorot", (50, 30, 20), 2 / 50)],
)
def test_fan_in_is_the_last_axis(name: str, shape: tuple[int, ...], variance: float) -> None:
    values = Initializer(name).sample("W", shape, seed=0, stream=VALUES_STREAM)
    assert values.var() == pytest.approx(variance, rel=0.1)


def test_sampled_values_depend_only_on_the_name() -> None:
    first = cgprimer.parse("parameter a = normal(1), b = normal(1); xo = a*xa + b")
    other = cgprimer.parse("xo = a*xa + b + c; parameter c = normal(1), b = normal(1), a = 2")
    assert first.values["b"] == other.values["b"]
    assert first.values["a"] != first.values["b"]
    assert first.values == cgprimer.parse(first.text).values
    named = cgprimer.parse("parameter he[2,2] = he, zeros[2,2] = he; xo = sum(he @ zeros)*xa")
    assert named.initializers == {"he": Initializer("he"), "zeros": Initializer("he")}
    assert named.values["he"] != named.values["zeros"]


def test_sampled_start_depends_on_the_seed() -> None:
    graph = cgprimer.parse("parameter a = normal(1), b = 3; xo = a*xa + b")
    starts = [graph.sampled_start(seed)["a"] for seed in (0, 1, 0)]
    assert starts[0] == starts[2] != starts[1]
    assert graph.values["a"] not in starts
    assert graph.sampled_start(0).keys() == {"a"}
    law = Initializer("normal", (1.0,))
    assert law.sample("a", (), seed=0, stream=VALUES_STREAM) == graph.values["a"]
    assert law.sample("a", (), seed=0, stream=START_STREAM) == starts[0]


def test_graph_values_are_floats_and_nested_tuples() -> None:
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


def test_values_are_sampled_lazily() -> None:
    graph = cgprimer.parse("parameter W[9000,9000] = he; input x[9000]; xo = W @ x")
    assert graph.text.startswith("parameter W[9000,9000] = he")
    assert "values" not in vars(graph)


FINITE = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
initializers = st.one_of(
    st.sampled_from(["zeros", "ones", "glorot", "he"]).map(Initializer),
    FINITE.map(lambda value: Initializer("normal", (abs(value),))),
    st.tuples(FINITE, FINITE).map(lambda both: Initializer("uniform", tuple(sorted(both)))),
)


@given(st.lists(initializers, min_size=1, max_size=5))
def test_initializers_round_trip_through_text(laws: list[Initializer]) -> None:
    texts = [format_declaration(f"W{k}", law, (2, 3)) for k, law in enumerate(laws)]
    graph = cgprimer.parse(f"parameter {', '.join(texts)}; xo = xa")
    assert list(graph.initializers.values()) == laws
    again = cgprimer.parse(graph.text)
    assert again.text == graph.text
    assert again.initializers == graph.initializers
    assert again.values == graph.values
