"""Formulas and numbers worked out by hand, rules that somebody states, and their notation."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import check_formula, rules
from cgprimer.core.language.syntax_tree import names_in
from cgprimer.core.operations.notation import parse_expression, unparse
from cgprimer.course.checks.check_results import Part, Result
from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.course.checks.sheets.answer_values import parse_number
from tests.approval import approved, refused
from tests.checking.submissions import compute, read_tables, sample
from tests.cli.cli_tools import bad, good, read_json
from tests.methods.graph_strategies import Case, cases

TABLES = read_tables("formulas.txt")
BOWL = "input x = 4, y = 5; z = 2*x^2 + 3*y^2"
LECTURE = cgprimer.load("lecture")


def verdicts(result: Result) -> dict[str, str]:
    return {part.name: part.verdict for part in result.parts}


def test_f17_the_wrong_component_is_named_and_no_right_value_said():
    graph = cgprimer.parse(BOWL)
    found = check_formula(graph, "15, 30")
    assert verdicts(found) == {"x": "wrong", "y": "right"}
    assert found.points == 1
    said = str(found)
    assert "x = 4, y = 5" in said
    assert "your value is 15" in said
    assert "16" not in said


def check_statement(text: str) -> Part:
    (part,) = check_formula(text).parts
    return part


@pytest.mark.parametrize("text", sample([row[0] for row in TABLES["rules of tables"]], 28))
def test_d7_the_rules_of_the_table_hold(text):
    part = check_statement(text)
    assert part.points == part.possible == 1, str(part)
    assert re.fullmatch("proven equal|equal at all 20 points tried", part.message)


@pytest.mark.parametrize("text", sample([row[0] for row in TABLES["mistakes"]], 9))
def test_f18_slips_are_refuted_by_a_point(text):
    part = check_statement(text)
    assert (part.verdict, part.points) == ("wrong", 0), text
    assert re.match(
        r"at .* = .* the slope is \S+, but this formula (gives|has no)", part.evidence[0]
    )


@pytest.mark.parametrize(("text", "holds"), TABLES["rules about any functions"])
def test_rules_about_any_functions(text, holds):
    if holds == "None":
        with pytest.raises(cgprimer.CgprimerError):
            check_formula(text)
        return
    part = check_statement(text)
    assert (part.verdict == "right") is (holds == "True")
    assert part.message.startswith("holds for " if holds == "True" else "does not hold for ")
    assert ("= exp(x/2) + 1" in part.message) is ("f" in text)


@pytest.mark.parametrize(("text", "points"), TABLES["statements"])
def test_statements_are_asked_on_every_branch_and_with_constants(text, points):
    assert check_statement(text).points == float(points)


def test_domains_are_tried_on_both_sides():
    for text, evidence in (
        ("asec' = 1/(x*sqrt(x^2-1))", "at x = -"),
        ("d(x^2) = 2*exp(log(x))", "has no value"),
    ):
        part = check_statement(text)
        assert part.verdict == "wrong"
        assert evidence in part.evidence[0]


@pytest.mark.parametrize(("graph", "answer", "names", "points"), TABLES["points of answers"])
def test_formulas_and_numbers_by_name_in_order_and_on_every_branch(graph, answer, names, points):
    text = BOWL if graph == "BOWL" else graph
    model = cgprimer.parse(text) if "=" in text else cgprimer.load(text)
    assert check_formula(model, answer, wrt=names.split() or None).points == int(points)


def test_an_answer_to_some_of_the_names_leaves_the_others_without_a_verdict():
    some = check_formula(LECTURE, "dcd = xx")
    assert (some.points, some.possible) == (1, 4)
    assert verdicts(some) == {"ab": "not run", "bc": "not run", "cd": "right", "ac": "not run"}
    bowl = cgprimer.parse(BOWL)
    assert verdicts(check_formula(bowl, "16, 6*x")) == {"x": "right", "y": "wrong"}
    assert verdicts(check_formula(bowl, "dy = 31")) == {"x": "not run", "y": "wrong"}
    circle = cgprimer.parse("parameter r = 2; area = 3.141592653589793*r^2")
    assert check_formula(circle, "6.2832*r").parts[0].verdict == "suspicious"


@given(cases(most=3), st.data())
@settings(max_examples=2, deadline=None)
def test_right_formulas_of_random_graphs_are_right_and_others_are_not(case: Case, data):
    name = data.draw(st.sampled_from([*case.graph.inputs, *case.graph.parameters]))
    right = rules(case.graph, name, inner="substitute").result
    try:
        assert check_formula(case.graph, right, wrt=[name]).points == 1
    except cgprimer.CgprimerError:  # no points with slopes, or nothing depends on the name
        return
    if not re.fullmatch("0|.* - .*", right):  # which may be 0 everywhere
        wrong = check_formula(case.graph, f"1.001*({right})", wrt=[name])
        assert wrong.parts[0].verdict != "right"


def test_numbers_are_compared_to_the_digits_that_are_given():
    graph = cgprimer.load("baydin")  # 5.5 and 1.7163378145367737
    found = check_formula(graph, "-5.5, 1.716", wrt=["x1", "x2"])
    assert found.parts[0].mistake == "sign"
    assert check_formula(graph, "8, 1.5", wrt=["x1", "x2"], at={"x1": 1, "x2": 7}).points == 1


@pytest.mark.parametrize(("answer", "mistake"), TABLES["bowl"])
def test_likely_mistakes_are_named(answer, mistake):
    assert check_formula(cgprimer.parse(BOWL), answer).mistakes == (mistake,)


def test_the_inner_derivative_that_is_missing_is_named():
    (part,) = check_formula(cgprimer.parse("y = b + sin(w^2)"), "cos(w^2)", wrt=["w"]).parts
    assert (part.verdict, bool(part.mistake)) == ("wrong", True)
    approved(part.message)


def test_arrays_are_answered_number_by_number_or_whole():
    graph = cgprimer.load("matrix_backpropagation")  # grad w2 = (4, 0), grad w1 = ((2, 0), (4, 0))
    found = check_formula(graph, "dw2 = [0, 4], dw1 = [[2, 0], [4, 0]]")
    assert verdicts(found)["w2"] == "wrong"


@pytest.mark.parametrize(("graph", "answer", "contains"), TABLES["refused"])
def test_what_cannot_be_read_is_said(graph, answer, contains):
    text = BOWL if graph == "BOWL" else graph
    with refused(cgprimer.CgprimerError, contains.strip("_")):
        check_formula(
            cgprimer.parse(text) if "; " in text else text, None if answer == "None" else answer
        )


@pytest.mark.parametrize("text", sample([row[0] for row in TABLES["huge powers"]], 9))
def test_huge_powers_end_in_a_verdict_or_an_error(text):
    with contextlib.suppress(cgprimer.CgprimerError):
        assert check_formula(compute(text)).points == 0


@pytest.mark.slow
def test_a_proof_that_takes_too_long_is_given_up():
    assert check_statement("d(x) = 1 + 0.5^9^9^9^9").message == "equal at all 20 points tried"
    assert check_statement("sin' = cos").message == "proven equal"


def test_proofs_do_not_import_from_the_current_folder(tmp_path):
    (tmp_path / "sympy.py").write_text("open('stolen', 'w').close()")
    assert "right" in good("check", "formula", "sin' = cos", cwd=tmp_path)
    assert not (tmp_path / "stolen").exists()


def test_the_command(tmp_path):
    (tmp_path / "bowl.cg").write_text(BOWL.replace("; ", "\n"))
    done = good("check", "formula", "bowl.cg", "-4*x, 6*y", cwd=tmp_path)
    assert "the sign is wrong" in done
    data = read_json("check", "formula", "coth' = -csch")
    assert data["parts"][0]["evidence"][0].startswith("at x = 0.7 the slope is -1.7378")
    for level, hidden in (("points", "x"), ("part", "sign")):
        shown = good("check", "formula", "bowl.cg", "-4*x, 6*y", "--feedback", level, cwd=tmp_path)
        assert "1 of 2 points" in shown
        assert f"  {hidden} " not in shown.replace("-4*x, 6*y", "")
    good("check", "formula", "bowl.cg", "4*x, 6*y", "--junit", "r.xml", cwd=tmp_path)
    assert 'tests="2"' in (tmp_path / "r.xml").read_text()
    assert "--force" in bad("check", "formula", "bowl.cg", "4, 6", "--junit", "r.xml", cwd=tmp_path)
    approved(bad("check", "formula", "bowl.cg", cwd=tmp_path))
    assert "<answer for x>:1:5" in bad("check", "formula", "bowl.cg", "4*x+, 1", cwd=tmp_path)


def test_a_statement_has_no_file_and_no_calls_before():
    part = check_statement("d(sqrt(x^2)) = 1")
    assert (part.verdict, part.mistake, "other possible mistakes" in part.message) == (
        "wrong", "absolute value", False
    )  # fmt: skip


def test_messages_use_the_words_of_the_statement():
    assert "1 of 1 points" in good("check", "formula", "(u*v)' = u'v + uv'")
    assert "u\u02b9 + * v\u02b9" in bad("check", "formula", "(u*v)' = u' + * v'")


def test_an_infinite_prediction_explains_nothing() -> None:
    """At the values rounded down, 1 and -1, the slope of asec is infinite."""
    part = check_statement("d(asec(x)) = 1/(x*sqrt(x^2 - 1))")
    assert part.mistake == "wrong derivative of a function"


NAMES = ("x", "y", "z", "e", "pi", "W", "ab")
NOTATION = read_tables("notation.txt")


@pytest.mark.parametrize(("text", "expected"), NOTATION["spellings"])
def test_a_spelling_has_the_meaning_that_a_teacher_reads(text: str, expected: str) -> None:
    assert unparse(read_formula(text, NAMES)) == unparse(parse_expression(expected))


@pytest.mark.parametrize(("text", "hint"), NOTATION["ambiguous"])
def test_a_spelling_with_two_readings_is_refused_with_both(text: str, hint: str) -> None:
    with pytest.raises(cgprimer.CgprimerError) as error:
        read_formula(text, NAMES)
    assert hint in error.value.hint


@pytest.mark.parametrize(("text", "expected", "names"), NOTATION["names"])
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


@pytest.mark.parametrize("row", sample([[row] for (row,) in NOTATION["statements"]], 20))
def test_statements_in_usual_notation(row: list[str]) -> None:
    assert check_formula(row[0]).points == 1


def test_answers_of_a_graph_in_usual_notation() -> None:
    with refused(cgprimer.UsageError, "'xq'"):
        check_formula(LECTURE, "3xq", wrt="ab")


@pytest.mark.parametrize(("text", "number"), NOTATION["numbers"])
def test_numbers_of_sheets_in_usual_notation(text: str, number: str) -> None:
    assert parse_number(text) == pytest.approx(float(number))
