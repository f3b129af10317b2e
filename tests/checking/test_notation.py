"""Formulas in usual notation: the meaning of each spelling, and the spellings that are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import check_formula
from cgprimer.core.language.syntax_tree import names_in
from cgprimer.core.operations.notation import parse_expression, unparse
from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.course.checks.sheets.answer_values import parse_number
from tests.approval import refused
from tests.checking.submissions import read_tables, sample

NAMES = ("x", "y", "z", "e", "pi", "W", "ab")
TABLES = read_tables("notation.txt")


@pytest.mark.parametrize(("text", "expected"), TABLES["spellings"])
def test_a_spelling_has_the_meaning_that_a_teacher_reads(text: str, expected: str) -> None:
    assert unparse(read_formula(text, NAMES)) == unparse(parse_expression(expected))


@pytest.mark.parametrize(("text", "hint"), TABLES["ambiguous"])
def test_a_spelling_with_two_readings_is_refused_with_both(text: str, hint: str) -> None:
    with pytest.raises(cgprimer.CgprimerError) as error:
        read_formula(text, NAMES)
    assert hint in error.value.hint


@pytest.mark.parametrize(("text", "expected", "names"), TABLES["names"])
def test_a_known_name_wins_over_a_product(text: str, expected: str, names: str) -> None:
    assert unparse(read_formula(text, names.split())) == expected


def test_a_name_is_divided_in_one_way_only() -> None:
    with pytest.raises(cgprimer.CgprimerError) as error:
        read_formula("xab", ["x", "xa", "ab", "b"])
    assert "x*ab" in error.value.hint
    assert "xa*b" in error.value.hint
    for unknown in ("xx", "x2", "x_1", "q"):
        assert unparse(read_formula(unknown, ["x"])) == unknown  # the caller reports it


BROKEN = "|( |) || ||| √ ^ ² x^ sin sin( x] W[ ½½ \\ \\frac { x! ' \ud800"
LONG = [text * 3000 for text in ("(", "√", "|", "sin ", "x", "²", "{", "x^")]


@pytest.mark.parametrize("text", ["", *BROKEN.split(), *LONG, "\\frac{" * 500])
def test_broken_text_is_an_error_of_the_answer(text: str) -> None:
    try:
        tree = read_formula(text, ["y"])
    except cgprimer.CgprimerError:
        return
    assert {*names_in(tree)} - {"y"}, "an unknown name, which the caller reports"


@settings(max_examples=60)
@given(st.text("xyesinla012.+-*/^()|[]√²⁻½, {}\\πW", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_formula(text, NAMES)
    except cgprimer.CgprimerError:
        return


@settings(max_examples=60)
@given(
    st.recursive(
        st.sampled_from(["x", "y", "2", "ab"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/^"), inner).map(
                lambda t: f"({t[0]}){t[1]}({t[2]})"
            ),
            st.tuples(st.sampled_from(["sin", "exp", "-"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
        ),
        max_leaves=12,
    )
)
def test_text_of_the_language_keeps_its_meaning(text: str) -> None:
    assert unparse(read_formula(text, NAMES)) == unparse(parse_expression(text))


@pytest.mark.parametrize("row", sample([[row] for (row,) in TABLES["statements"]], 20))
def test_statements_in_usual_notation(row: list[str]) -> None:
    assert check_formula(row[0]).points == 1


def test_answers_of_a_graph_in_usual_notation() -> None:
    graph = cgprimer.parse("input x = 0.7, y = 1.2; z = x*y*exp(x) + atan(x)*log(y)")
    answer = "dx = y e^x(1 + x) + (ln y)/(1 + x²), dy = x e^x + arctan(x)/y"
    assert check_formula(graph, answer).points == 2
    lecture = cgprimer.load("lecture")
    assert check_formula(lecture, "3xz²xx", wrt="ab").points == 1
    with refused(cgprimer.UsageError, "'xq'"):
        check_formula(lecture, "3xq", wrt="ab")


@pytest.mark.parametrize(("text", "number"), TABLES["numbers"])
def test_numbers_of_sheets_in_usual_notation(text: str, number: str) -> None:
    assert parse_number(text) == pytest.approx(float(number))
