"""What a text means: precedence, associativity, separators, declarations, functions."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.language.parser import parse_program
from cgprimer.core.language.syntax_tree import Definition
from cgprimer.core.language.tokens import locate_tokens, tokenize
from cgprimer.core.operations.notation import parse_expression
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
def test_precedence_numbers_and_folded_constants(text: str, expected: float) -> None:
    # The configuration turns numpy's warnings into errors: folding has to be silent.
    np.testing.assert_array_equal(value_of(text), expected)


OPERANDS = st.sampled_from(["x", "xx", "a", "1", "2", "0.5", "1e3", "2.", ".5", "1E-2"])


def _joined(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Texts are put side by side without parentheses, so that precedence decides what they mean.
    binary = st.sampled_from([" + ", "-", "*", " / ", "**", "+", " - ", "* ", "/"])
    return (
        st.tuples(children, binary, children).map("".join)
        | children.map(lambda text: f"-{text}")
        | children.map(lambda text: f"+{text}")
        | children.map(lambda text: f"({text})")
    )


@given(st.recursive(OPERANDS, _joined, max_leaves=12))
@settings(deadline=None)
def test_arithmetic_reads_as_in_python(text: str) -> None:
    assert shape(parse_expression(text)) == python_shape(text)


def test_a_functions_name_without_a_parenthesis_is_a_parameter() -> None:
    for name in FUNCTIONS:
        parameters = cgprimer.parse(f"xw = {name}*xa").parameters
        assert parameters == ((name,) if name[0] != "x" else ())


def test_a_trailing_operand_with_a_default_may_be_left_out() -> None:
    short, full = parse_expression("leaky_relu(xa)"), parse_expression("leaky_relu(xa, 0.01)")
    assert shape(short) == shape(full)


def test_max_and_min_take_any_number_of_operands() -> None:
    for order in itertools.permutations(("9", "-4", "2.5")):
        operands = ", ".join(order)
        assert (value_of(f"max({operands})"), value_of(f"min({operands})")) == (9.0, -4.0)


def meaning(text: str) -> list[tuple[str, list[tuple[str, object]]]]:
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
def test_texts_that_mean_the_same(text: str) -> None:
    assert meaning(text) == meaning("xb = a*xa; xc = max(xb, 2)")


def test_a_text_without_statements_is_an_empty_graph() -> None:
    for text in ("", " ", "\n", ";", "# only a comment", "\r\n\r\n;;#x\n"):
        graph = cgprimer.parse(text)
        assert (graph.variables, graph.parameters, graph.evaluate()) == ((), (), {})


def test_names_that_contain_one_another_stay_apart() -> None:
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


def test_tokens_know_where_they_are() -> None:
    text = "xw = cd**2  # note\n ; xz=sin( xw)"
    tokens = tokenize(text)
    assert [text[s.start : s.end] for s in locate_tokens(Source("<text>", text))] == tokens
    assert tokens == ["xw", "=", "cd", "**", "2", "\n", ";", "xz", "=", "sin(", "xw", ")", ""]


def test_a_call_may_be_broken_before_its_parenthesis_inside_parentheses_only() -> None:
    for between in ("\n", "  # (\n\n ", "\t"):
        assert meaning(f"xw = (sin{between}(xa))") == meaning("xw = sin(xa)")
    with pytest.raises(cgprimer.CgprimerError):
        cgprimer.parse("xw = sin\n(xa)")


def test_domains_of_inputs() -> None:
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
    """The text of an input with a domain, and the domain that it must have."""
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
def test_domains_read_back_from_the_text(declared: tuple[str, dict[str, object]]) -> None:
    text, domains = declared
    graph = cgprimer.parse(text)
    assert graph.domains == domains
    again = cgprimer.parse(graph.text)
    assert (again.domains, again.values) == (graph.domains, graph.values)
    assert again.text == graph.text
