"""Formulas in usual notation: what each spelling means, and which are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cgprimer
from cgprimer import check_formula
from cgprimer.core.language.syntax_tree import names_in
from cgprimer.core.operations.notation import parse_expression, unparse
from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.course.checks.sheets.answer_values import parse_number
from tests.approval import refused

NAMES = ("x", "y", "z", "e", "pi", "W", "ab")

SPELLINGS = [
    ("2x", "2*x"),
    ("2 x", "2*x"),
    ("-2x", "-2*x"),
    ("2xy", "2*x*y"),
    ("xy", "x*y"),
    ("x y z", "x*y*z"),
    ("2(x + 1)", "2*(x + 1)"),
    ("x(x + 1)", "x*(x + 1)"),
    ("(x + 1)(x - 1)", "(x + 1)*(x - 1)"),
    ("(x + 1)y", "(x + 1)*y"),
    ("3ab x", "3*ab*x"),
    ("abx", "ab*x"),
    ("4x^3 - 2x", "4*x^3 - 2*x"),
    ("2x**2", "2*x^2"),
    ("x^2y", "x^2*y"),
    ("x^2 y", "x^2*y"),
    ("x^2(x + 1)", "x^2*(x + 1)"),
    ("2(x + 1)^2", "2*(x + 1)^2"),
    ("1/(2x)", "1/(2*x)"),
    ("W[0,1]x", "W[0,1]*x"),
    ("e^x", "e^x"),
    ("x e^x", "x*e^x"),
    ("xe^x", "x*e^x"),
    ("e^-x", "e^-x"),
    ("e^(2x)", "e^(2*x)"),
    ("e^(-x^2/2)", "e^(-x^2/2)"),
    ("e^x(x + 1)", "e^x*(x + 1)"),
    ("2e^x", "2*e^x"),
    ("e^2 x", "e^2*x"),
    ("2^x y", "2^x*y"),
    ("1e3x", "1000*x"),
    ("2πx", "2*pi*x"),
    ("2pi x", "2*pi*x"),
    ("πx", "pi*x"),
    ("ln(x)", "log(x)"),
    ("ln x", "log(x)"),
    ("lnx", "log(x)"),
    ("ln(x)/x", "log(x)/x"),
    ("ln x / x", "log(x)/x"),
    ("ln|x|", "log(abs(x))"),
    ("lg(x)", "log10(x)"),
    ("log_2(x)", "log2(x)"),
    ("arctan(x)", "atan(x)"),
    ("arcsin x", "asin(x)"),
    ("arccos(2x)", "acos(2*x)"),
    ("arccot(x)", "acot(x)"),
    ("arsinh(x)", "asinh(x)"),
    ("arcosh(x)", "acosh(x)"),
    ("artanh x", "atanh(x)"),
    ("arcsinh(x)", "asinh(x)"),
    ("sh(x)", "sinh(x)"),
    ("tg x", "tan(x)"),
    ("ctg(x)", "cot(x)"),
    ("cosec x", "csc(x)"),
    ("sgn(x)", "sign(x)"),
    ("Sin(x)", "sin(x)"),
    ("EXP(x)", "exp(x)"),
    ("σ(x)(1 - σ(x))", "sigmoid(x)*(1 - sigmoid(x))"),
    ("sin^2(x)", "sin(x)^2"),
    ("sin^2 x", "sin(x)^2"),
    ("sin²x", "sin(x)^2"),
    ("sin(x)^2", "sin(x)^2"),
    ("sin²(x) + cos²(x)", "sin(x)^2 + cos(x)^2"),
    ("sin 2x", "sin(2*x)"),
    ("sin 2πx", "sin(2*pi*x)"),
    ("sin x cos x", "sin(x)*cos(x)"),
    ("2 sin(x) cos(x)", "2*sin(x)*cos(x)"),
    ("sin x^2", "sin(x^2)"),
    ("xsin(x)", "x*sin(x)"),
    ("ln sin x", "log(sin(x))"),
    ("sin x / cos x", "sin(x)/cos(x)"),
    ("tan x + 1", "tan(x) + 1"),
    ("sinx", "sin(x)"),
    ("exp x", "exp(x)"),
    ("max(2x, y)", "max(2*x, y)"),
    ("√x", "sqrt(x)"),
    ("√(x + 1)", "sqrt(x + 1)"),
    ("2√x", "2*sqrt(x)"),
    ("√2 x", "sqrt(2)*x"),
    ("√2√x", "sqrt(2)*sqrt(x)"),
    ("1/√x", "1/sqrt(x)"),
    ("√sin(x)", "sqrt(sin(x))"),
    ("|x|", "abs(x)"),
    ("2|x - 1|", "2*abs(x - 1)"),
    ("||x| - 1|", "abs(abs(x) - 1)"),
    ("|x||y|", "abs(x)*abs(y)"),
    ("x/|x|", "x/abs(x)"),
    ("max(x, |y|)", "max(x, abs(y))"),
    ("x·y", "x*y"),
    ("x × y", "x*y"),
    ("x⋅y", "x*y"),
    ("x ÷ y", "x/y"),
    ("x − 1", "x - 1"),
    ("–x", "-x"),
    ("x²", "x^2"),
    ("x²y", "x^2*y"),
    ("x⁻¹", "x^-1"),
    ("x¹⁰", "x^10"),
    ("eˣ", "e^x"),
    ("e²ˣ", "e^(2*x)"),
    ("e⁻ˣ", "e^-x"),
    ("(x + 1)²", "(x + 1)^2"),
    ("½x", "1/2*x"),
    ("x^½", "x^(1/2)"),
    ("3x²/4", "3*x^2/4"),
    (r"\frac{x}{2}", "x/2"),
    (r"\frac{1}{2}x", "1/2*x"),
    (r"\sqrt{x}", "sqrt(x)"),
    (r"\frac{\sqrt{x}}{x^{2}}", "sqrt(x)/x^2"),
    (r"2\cdot x", "2*x"),
    ("e^{2x}", "e^(2*x)"),
    (r"\sin\left(x\right)", "sin(x)"),
    (r"\ln x", "log(x)"),
    (r"2\pi x", "2*pi*x"),
]


@pytest.mark.parametrize(("text", "expected"), SPELLINGS)
def test_a_spelling_means_what_a_teacher_reads(text, expected):
    assert unparse(read_formula(text, NAMES)) == unparse(parse_expression(expected))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1/2x", "(1/2)*x or 1/(2*x)"),
        ("x/2y", "(x/2)*y"),
        ("1/(x + 1)(x - 1)", "/("),
        ("e^2x", "e^(2*"),
        ("10^-3x", "10^(-3"),
        ("2^3(x + 1)", "2^(3"),
        ("e^xy", "x*y"),
        ("sin^-1(x)", "asin"),
        ("sin⁻¹(x)", "asin"),
        ("cos^(-1) x", "acos"),
        ("√2x", "parentheses"),
        ("√x²", "parentheses"),
        ("ln x/x", "parentheses"),
        ("sin 2*x", "parentheses"),
        ("sin x y", "parentheses"),
        ("sin x (x + 1)", "parentheses"),
        ("e^sin x", "parentheses"),
        ("|x|y|z|", "abs"),
        ("2½", "2.5"),
        ("5 6", "*"),
        ("x 2", "*"),
    ],
)
def test_two_usual_readings_are_refused_with_both(text, hint):
    with pytest.raises(cgprimer.CgprimerError) as error:
        read_formula(text, NAMES)
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("xy", ["x", "y", "xy"], "xy"),
        ("2xy", ["x", "y", "xy"], "2*xy"),
        ("pi", ["p", "i", "pi"], "pi"),
        ("sinx", ["sinx", "x"], "sinx"),
        ("ln x", ["ln", "x"], "ln*x"),
        ("sin(x)", ["sin", "x"], "sin(x)"),
        ("π", ["π"], "π"),
        ("f(x + 1)", ["f", "x"], "f*(x + 1)"),
        ("e x", ["e", "x"], "e*x"),
    ],
)
def test_a_known_name_wins_over_a_product(text, names, expected):
    assert unparse(read_formula(text, names)) == expected


def test_a_name_is_divided_in_one_way_only():
    with pytest.raises(cgprimer.CgprimerError) as error:
        read_formula("xab", ["x", "xa", "ab", "b"])
    assert "x*ab" in error.value.hint
    assert "xa*b" in error.value.hint
    for unknown in ("xx", "x2", "x_1", "q"):
        assert unparse(read_formula(unknown, ["x"])) == unknown  # the caller reports it


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        ")",
        "|",
        "||",
        "√",
        "^",
        "²",
        "x^",
        "sin",
        "sin(",
        "x]",
        "W[",
        "½½",
        "\\",
        "\\frac",
        "{",
        "x!",
        "'",
        "\ud800",
        "(" * 5000,
        "√" * 5000,
        "|" * 5000,
        "sin " * 5000,
        "x" * 5000,
        "²" * 5000,
        "{" * 5000,
        "x^" * 5000,
        "\\frac{" * 500,
    ],
)
def test_broken_text_is_an_error_of_the_answer(text):
    try:
        tree = read_formula(text, ["y"])
    except cgprimer.CgprimerError:
        return
    assert {*names_in(tree)} - {"y"}, "an unknown name, which the caller reports"


@given(st.text("xyesinla012.+-*/^()|[]√²⁻½, {}\\πW", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        read_formula(text, NAMES)
    except cgprimer.CgprimerError:
        return


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
def test_text_of_the_language_keeps_its_meaning(text):
    assert unparse(read_formula(text, NAMES)) == unparse(parse_expression(text))


@pytest.mark.parametrize(
    "text",
    [
        "d(x e^x) = e^x + x e^x",
        "d(xe^x) = (1 + x)e^x",
        "ln' = 1/x",
        "arctan' = 1/(1 + x²)",
        "d(sin^2(x)) = 2 sin(x) cos(x)",
        "tan' = 1/cos^2 x",
        "tan' = sec²",
        "d(xy)/dx = y",
        "d(x^2 y)/dx = 2xy",
        "d/dx ax^2 = 2ax",
        "d(√x) = 1/(2√x)",
        "d(|x|) = x/|x|",
        "sin^2' = 2 sin cos",
        "d/dx sin x = cos x",
        "d(sin 2x) = 2 cos 2x",
        "d(eˣ) = eˣ",
        "d(x^n)/dx = nx^(n-1)",
        "(x ln x)' = ln x + 1",
        "arsinh' = 1/√(1 + x²)",
    ],
)
def test_statements_in_usual_notation(text):
    assert check_formula(text).points == 1


def test_answers_of_a_graph_in_usual_notation():
    graph = cgprimer.parse("input x = 0.7, y = 1.2; z = x*y*exp(x) + atan(x)*log(y)")
    answer = "dx = y e^x(1 + x) + (ln y)/(1 + x²), dy = x e^x + arctan(x)/y"
    assert check_formula(graph, answer).points == 2
    lecture = cgprimer.load("lecture")
    assert check_formula(lecture, "3xz²xx", wrt="ab").points == 1
    with refused(cgprimer.UsageError, "'xq'"):
        check_formula(lecture, "3xq", wrt="ab")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("√2", 2**0.5),
        ("2π", 6.283185307179586),
        ("e²", 7.38905609893065),
        ("3√4", 6),
        ("−2", -2),
        ("2⁻¹", 0.5),
        ("½", 0.5),
        ("ln 2", 0.6931471805599453),
        ("2·3² = 18", 18),
        ("−0,5", -0.5),
        (r"$-\frac{3}{4}$", -0.75),
        ("|−3|", 3),
        ("2(3 + 4)", 14),
        ("arctan(1)", 0.7853981633974483),
    ],
)
def test_numbers_of_sheets_in_usual_notation(text, number):
    assert parse_number(text) == pytest.approx(number)
