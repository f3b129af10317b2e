"""Invalid texts raise only CgprimerError; long and deeply nested texts are supported."""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax_tree import Apply, Expression, Name, Number
from cgprimer.core.operations.notation import parse_expression, readable, unparse
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.core.tape.lowering import lower
from cgprimer.errors import SourceError
from tests.language.language_trees import NAMES, shape, trees

CHARACTERS = "xaе019.eE+-*/^()=,;#\n\r\t _²×\u00a0\ufeff\u2028\x00'\"[]{}\\%"
WORDS = "max log leaky_relu xw 2 0.5 1e3 1e999 1e + - * / ^ ** = == ( ) , ; # sin( max( foo( ²"
SPACED = ("\n", " ", "xa=", "\nxw=", "input ", "parameter ", "output ")
TOKENS = (*NAMES, *sorted(FUNCTIONS)[:8], *WORDS.split(), *SPACED)


def try_parse(text: str) -> ExpressionGraph | SourceError:
    """Return the graph or the SourceError; any other exception fails the test."""
    try:
        return cgprimer.parse(text)
    except SourceError as error:
        return error


def check_graph_or_error(text: str) -> None:
    result = try_parse(text)
    if isinstance(result, SourceError):  # which has a location in the text
        assert 0 <= result.span.start <= len(text)
        assert min(result.line, result.column) >= 1
        assert "^" in str(result)
    else:
        again = cgprimer.parse(str(result))
        assert again.variables == result.variables
        assert again.parameters == result.parameters


@given(st.text(alphabet=CHARACTERS, max_size=60))
@settings(max_examples=120, deadline=None)
@example("xa=\r")
@example("x=(\r\n)")
def test_random_characters_parse_or_raise_source_error(text: str) -> None:
    check_graph_or_error(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=30), st.sampled_from(["", " "]))
@settings(max_examples=120, deadline=None)
def test_random_tokens_parse_or_raise_source_error(tokens: list[str], between: str) -> None:
    check_graph_or_error(between.join(tokens))


@given(trees())
@settings(max_examples=80, deadline=None)
def test_unparse_round_trip(tree) -> None:
    text = unparse(tree)
    assert shape(parse_expression(text)) == shape(tree)
    if not re.search(r"(less|equal|where)\(", text):
        assert readable(tree) == text


@pytest.mark.parametrize(("name", "convert"), [("parentheses", unparse), ("conditions", readable)])
def test_formula_formatting(name: str, convert: Callable[[Expression], str]) -> None:
    for line in Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines()[1:]:
        text, expected = line.split(" | ")
        assert convert(parse_expression(text)) == expected


def test_nested_conditions_format_without_recursion() -> None:
    tree: Expression = Name("a")
    for _ in range(2_000):
        tree = Apply("where", (Name("k"), Number(1.0), Apply("less", (Number(0.0), tree))))
    assert readable(tree).count(" if ") == 4_000


def test_unparse_of_negative_numbers() -> None:
    # The parser creates no negative numbers, but constant folding does.
    two = Number(-2.0)
    for tree, text in [
        (Apply("pow", (two, Name("a"))), "(-2)^a"),
        (Apply("pow", (Name("a"), two)), "a^-2"),
        (Apply("sub", (Name("a"), two)), "a - -2"),
        (Apply("neg", (two,)), "--2"),
    ]:
        assert unparse(tree) == text


DEEP = 10_000
LONG = {
    "parentheses": ("(" * DEEP + "xa" + ")" * DEEP, 0.5),
    "minus": ("-" * DEEP + "xa", 0.5),
    "odd minus": ("-" * (DEEP + 1) + "xa", -0.5),
    "plus and minus": ("+-" * DEEP + "xa", 0.5),
    "tower of 2": ("^".join(["2"] * DEEP), math.inf),
    "tower of 1": ("^".join(["1"] * DEEP), 1.0),
    "signed exponent": ("2^" + "-" * DEEP + "xa", 2**0.5),
    "calls": ("abs(" * DEEP + "-xa" + ")" * DEEP, 0.5),
    "sums in sums": ("1 + (" * DEEP + "xa" + ")" * DEEP, DEEP + 0.5),
    "difference": (" - ".join(["xa"] * DEEP), 0.5 * (2 - DEEP)),
    "quotient": ("/".join(["1"] * DEEP + ["xa"]), 2.0),
    "100,000 terms": (" + ".join(["xa"] * 100_000), 50_000.0),
    "max of many": ("max(" + ", ".join(["xa"] * DEEP) + ")", 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG)
def test_deep_and_long_expressions(kind: str) -> None:
    text, expected = LONG[kind]
    graph = cgprimer.parse(f"input xa = 0.5; xw = {text}")
    assert graph.evaluate()["xw"] == pytest.approx(expected, rel=1e-15)
    again = cgprimer.parse(str(graph))
    assert shape(again.definitions["xw"]) == shape(graph.definitions["xw"])
    assert lower(graph).outputs
    del graph, again  # freeing a deep tree must not recurse
    gc.collect()


@pytest.mark.parametrize("text", ["(" * DEEP, "(" * DEEP + "1" + ")" * (DEEP - 1), "sin(" * DEEP,
                                  ")" * DEEP, "-" * DEEP], ids=lambda text: text[:4])  # fmt: skip
def test_deep_invalid_texts_raise_source_error(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        cgprimer.parse(f"xw = {text}")
    assert len(str(caught.value)) < 1000


def test_long_chain_of_definitions_in_reverse_order() -> None:
    count = 3_000
    graph = cgprimer.parse([f"x{i} = x{i - 1} + 1" for i in range(count, 0, -1)])
    assert graph.variables == tuple(f"x{i}" for i in range(count + 1))
    assert graph.evaluate({"x0": 0.5})[f"x{count}"] == count + 0.5
