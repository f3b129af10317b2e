"""Every error says what and where, with carets under it, and what was likely meant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import cgprimer
from cgprimer.errors import (
    CgprimerError,
    CycleError,
    DefinitionError,
    ExpressionSyntaxError,
    Source,
    SourceError,
    Span,
    UnknownFunctionError,
    UsageError,
    did_you_mean,
)
from tests.approval import approved, refused


def underlined(line: str, carets: str) -> str:
    """The characters of a line that the carets of the next line stand under."""
    assert set(carets.strip()) == {"^"}
    first = carets.index("^")
    return line[first : carets.rindex("^") + 1]


def complaint(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        cgprimer.parse(text, name="lesson.cg")
    return caught.value


@dataclass(frozen=True)
class Case:
    text: str
    kind: type[SourceError]
    line: int
    column: int
    under: str  # what the carets underline; empty at the end of a line
    says: str  # the values that the message contains
    hint: str = ""


SYNTAX, FUNCTION, DEFINITION, CYCLE = (
    ExpressionSyntaxError,
    UnknownFunctionError,
    DefinitionError,
    CycleError,
)

CASES = [
    # unknown functions
    Case("xw = tahn(xa)", FUNCTION, 1, 6, "tahn", "'tahn'", "'tanh'"),
    Case("xw = 2*sinn(xa)", FUNCTION, 1, 8, "sinn", "'sinn'", "'sin'"),
    Case("xw = xa*sgmoid(xb)", FUNCTION, 1, 9, "sgmoid", "'sgmoid'", "'sigmoid'"),
    Case("xw = zzzz(xa)", FUNCTION, 1, 6, "zzzz", "'zzzz'", "zzzz*("),
    Case("xw = a(xa + xb)", FUNCTION, 1, 6, "a", "'a'", "a*("),
    Case("xw = sin (tahn  (xa))", FUNCTION, 1, 11, "tahn", "'tahn'", "'tanh'"),
    # wrong number of arguments
    Case("xw = sin(xa, xb)", FUNCTION, 1, 6, "sin(xa, xb)", "'sin' ... 1 ... 2"),
    Case("xw = 1 + where(xa)", FUNCTION, 1, 10, "where(xa)", "'where' ... 3 ... 1"),
    Case("xw = where(1, 2)", FUNCTION, 1, 6, "where(1, 2)", "3 ... 2"),
    Case("xw = log(1, 2, 3)", FUNCTION, 1, 6, "log(1, 2, 3)", "1 ... 2 ... 3"),
    Case("xw = leaky_relu(1, 2, 3)", FUNCTION, 1, 6, "leaky_relu(1, 2, 3)", "1 ... 2 ... 3"),
    Case("xw = sin()", SYNTAX, 1, 10, ")", "'sin'"),
    Case("xw = max(xa,)", SYNTAX, 1, 13, ")", "'max'"),
    Case("xw = max(,xa)", SYNTAX, 1, 10, ",", ""),
    # a missing operator
    Case("xw = 2xa", SYNTAX, 1, 6, "2xa", "'2' ... 'xa'", "2*xa"),
    Case(
        "xw = xb + 2.5xa^2",
        SYNTAX,
        1,
        11,
        "2.5xa",
        "'2.5' ... 'xa'",
        "2.5*xa",
    ),
    Case("xw = 2(xa)", SYNTAX, 1, 6, "2(", "'2' ... '('", "*"),
    Case("xw = (xa)(xb)", SYNTAX, 1, 9, ")(", "')' ... '('", "*"),
    Case("xw = (xa) xb", SYNTAX, 1, 9, ") xb", "')' ... 'xb'", "*"),
    Case("xw = xa xb", SYNTAX, 1, 6, "xa xb", "'xa' ... 'xb'", "operator"),
    Case("xw = (xa xb)", SYNTAX, 1, 7, "xa xb", "'xa' ... 'xb'", "operator"),
    # a missing operand
    Case("xw =", SYNTAX, 1, 5, "", "'xw ='"),
    Case("xw = ; xz = 1", SYNTAX, 1, 6, ";", "'xw ='"),
    Case("xw = 2*", SYNTAX, 1, 8, "", "after '*'"),
    Case("xw = 1 +* 2", SYNTAX, 1, 9, "*", "'+' ... '*'"),
    Case("xw = *xa", SYNTAX, 1, 6, "*", ""),
    Case("xw = 2^\nxz = 3", SYNTAX, 1, 8, "", "'^'"),
    Case("xw = ()", SYNTAX, 1, 7, ")", ""),
    Case("xw = (xa, xb)", SYNTAX, 1, 9, ",", "comma"),
    Case("xw = xa, xb", SYNTAX, 1, 8, ",", "','"),
    # = missing or too many
    Case("xw xa", SYNTAX, 1, 4, "xa", "'=' ... 'xw'"),
    Case(
        "xw",
        SYNTAX,
        1,
        3,
        "",
        "'=' ... 'xw'",
        "=",
    ),
    Case("xw + xa", SYNTAX, 1, 4, "+", "'=' ... 'xw' ... '+'", "="),
    Case("xz = 1\n  xw(xa)", SYNTAX, 2, 5, "(", "'=' ... 'xw'", "="),
    Case("= 2", SYNTAX, 1, 1, "=", "'='", "="),
    Case("2 = xw", SYNTAX, 1, 1, "2", "'2'", "="),
    Case("xw == 2", SYNTAX, 1, 5, "=", "'xw =' ... '='"),
    Case("xw = 2 = 3", SYNTAX, 1, 8, "=", ""),
    Case("inputs xa = 1", SYNTAX, 1, 8, "xa", "'=' ... 'inputs'", "'input'"),
    # parentheses
    Case("xw = sin(xa", SYNTAX, 1, 9, "(", "", "')'"),
    Case("xw = (xa + sin(xb)\nxz = 2", SYNTAX, 1, 6, "(", "", "')'"),
    Case("xw = (xa + (xb*xc) + tanh (xd + 1\n\n", SYNTAX, 1, 27, "(", "", "')'"),
    Case("xv = 1\nxw = 2*(xa;xz = 1)", SYNTAX, 2, 8, "(", "", "')'"),
    Case("xw = (xa + \ninput xb = 2", SYNTAX, 1, 6, "(", "", "')'"),
    Case("xw = (xa # )\n", SYNTAX, 1, 6, "(", "", "')'"),
    Case("xw = (sin # (\n (xa", SYNTAX, 2, 2, "(", "", "')'"),
    Case("xw = sin\n(xa)", SYNTAX, 1, 6, "sin", ""),
    Case("xw = xa)", SYNTAX, 1, 8, ")", "", "remove"),
    # what numpy and PyTorch write
    Case("xw = sum(xa, to=0)", SYNTAX, 1, 9, "(", "", "sum(a, 0)"),
    Case("xw = xa[0]]", SYNTAX, 1, 11, "]", "", "remove"),
    Case("xw = sum([1, 2])", SYNTAX, 1, 10, "[", "found '['", "a[2] = [1,2]"),
    Case("xw = xa.mm(w)", SYNTAX, 1, 8, ".", "", "@ b"),
    Case("xa[2] = [1, 2]", SYNTAX, 1, 3, "[", "expected '='", "W[8,4]"),
    Case("input xa[-1]", SYNTAX, 1, 10, "-", "'xa'"),
    Case("xw = reshape(xa)", FUNCTION, 1, 6, "reshape(xa)", "32 ... 1"),
    # characters
    Case("xw = xa × 2", SYNTAX, 1, 9, "×", "", "'*'"),
    Case("xw = xa·2", SYNTAX, 1, 8, "·", "", "'*'"),
    Case("xw = xa²", SYNTAX, 1, 8, "²", "'²'", "'^2'"),
    Case("xw = xa³ + 1", SYNTAX, 1, 8, "³", "'³'", "'^3'"),
    Case("xw = (xa)²", SYNTAX, 1, 10, "²", "'²'", "'^2'"),
    Case("xw = −xa", SYNTAX, 1, 6, "−", "", "'-'"),
    Case("xw = xa ÷ 2", SYNTAX, 1, 9, "÷", "", "'/'"),
    Case("xw = [xa]", SYNTAX, 1, 6, "[", "found '['", "'('"),
    Case("xz = 1\nxw = xa $ 2", SYNTAX, 2, 9, "$", ""),
    Case("xw = xa.T", SYNTAX, 1, 8, ".", "", "transpose(a)"),
    Case("xw = sum(xa, axis=0)", SYNTAX, 1, 14, "axis", "", "sum(a, 0)"),
    Case("xw = max(xa, axis=0)", SYNTAX, 1, 14, "axis", "", "largest(a, 0)"),
    Case("xw = 'a'", SYNTAX, 1, 6, "'", ""),
    Case("xw = “a”", SYNTAX, 1, 6, "“", "", ""),
    Case("xw = xa⁻¹²*2", SYNTAX, 1, 8, "⁻", "", "'^-12'"),
    Case("xw = kˆ2*xa", SYNTAX, 1, 7, "ˆ", "'ˆ'", "'^'"),  # of LaTeX's PDFs
    Case("xw = x₁", SYNTAX, 1, 7, "₁", "'₁'", "'_1'"),
    Case("xe\u0301 = 2", SYNTAX, 1, 3, "\u0301", "character 'U+0301'", ""),
    Case("xw = sin\u2061(xa)", SYNTAX, 1, 9, "\u2061", "character 'U+2061'", ""),
    Case("// slope", SYNTAX, 1, 1, "/", "'/'", ""),
    Case("% slope", SYNTAX, 1, 1, "%", "", ""),
    Case("xw = \\sin(xa)", SYNTAX, 1, 6, "\\", "", "LaTeX"),
    Case("xw = np.sin(xa)", SYNTAX, 1, 8, ".", "", "sin(a)"),
    Case("xw = tan^2(xa)", SYNTAX, 1, 10, "2(", "", "tan(...)^2"),
    Case("xw = tan**-1 (xa)", SYNTAX, 1, 12, "1 (", "", "write atan(...)"),
    Case("xw = xa\x00", SYNTAX, 1, 8, "\x00", "U+0000"),
    # numbers
    Case("xw = 2*1e999", SYNTAX, 1, 8, "1e999", ""),
    Case("input xa = -1e309", SYNTAX, 1, 13, "1e309", ""),
    # declarations
    Case("input xa = b", SYNTAX, 1, 12, "b", "'xa' ... 'b'"),
    Case("input xa = sin(2)", SYNTAX, 1, 12, "sin", "'xa' ... 'sin'"),
    Case("input sin(2)", SYNTAX, 1, 10, "(", ""),
    Case("input a, sin(2)", SYNTAX, 1, 13, "(", ""),
    Case("input xa = ", SYNTAX, 1, 12, "", "'xa'"),
    Case("input xa = --1", SYNTAX, 1, 13, "-", "'xa'"),
    Case("input xa = 1, ", SYNTAX, 1, 15, "", "'input'"),
    Case("input xa = 1 + 2", SYNTAX, 1, 14, "+", "'+'"),
    Case("parameter a b", SYNTAX, 1, 13, "b", "'b'"),
    # domains
    Case("input y in {}; w = y", SYNTAX, 1, 12, "{", ""),
    Case("input y in {0, 1, 0}; w = y", SYNTAX, 1, 19, "0", "0"),
    Case("input y in {0, a}; w = y", SYNTAX, 1, 16, "a", "", ""),
    Case("input y in {0 1}; w = y", SYNTAX, 1, 15, "1", "'y'"),
    Case("input y in {0, 1; w = y", SYNTAX, 1, 17, ";", "'y'"),
    Case("input y in {1e999}; w = y", SYNTAX, 1, 13, "1e999", ""),
    Case("input y = 2 in {0, 1}; w = y", SYNTAX, 1, 11, "2", "'y'"),
    Case("input y[2] = [1, 1] in one-hot; w = y", SYNTAX, 1, 14, "[", "one-hot"),
    Case("input y in one-hot; w = y", SYNTAX, 1, 12, "one", ""),
    Case("input y[1] in one-hot; w = y", SYNTAX, 1, 15, "one", ""),
    Case("parameter k in {0, 1}; w = k", SYNTAX, 1, 13, "in", "", "k"),
    Case("output w in {0, 1}; w = k", SYNTAX, 1, 10, "in", "", "remove"),
    Case("input y in; w = y", SYNTAX, 1, 11, ";", "'in'", "{0, 1}"),
    Case("input y in (0, 1); w = y", SYNTAX, 1, 9, "in", "'in'", "{0, 1}"),
    Case("input y in [0, 1]; w = y", SYNTAX, 1, 12, "[", "'in' ... '['", "{0, 1}"),
    Case("input y[2] in onehot; w = y", SYNTAX, 1, 15, "onehot", "found 'onehot'", "one-hot"),
    Case("input y in {0, 1} = 1; w = y", SYNTAX, 1, 19, "=", ""),
    Case("output xq; xw = 1", DEFINITION, 1, 8, "xq", ""),
    Case("output xww; xw = 1", DEFINITION, 1, 8, "xww", "", "'xw'"),
    Case("output xw = 3; xw = 1", DEFINITION, 1, 8, "xw", "", "xw"),
    # circles
    Case("xa = xb; xb = xa", CYCLE, 1, 1, "xa", "xa -> xb -> xa"),
    Case("xw = xw + 1", CYCLE, 1, 1, "xw", "xw -> xw"),
    Case("xz = 2\nxa = 2*xc; xb = xa; xc = sin(xb)", CYCLE, 2, 1, "xa", "xa -> xb -> xc -> xa"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text.replace("\n", "|"))
def test_errors(case: Case) -> None:
    error = complaint(case.text)
    assert type(error) is case.kind
    assert (error.line, error.column) == (case.line, case.column)
    first, line, carets, *_ = str(error).split("\n")
    assert first.startswith(f"lesson.cg:{case.line}:{case.column}: ")
    approved(str(error), case.says)
    line = line.replace("\N{SYMBOL FOR NULL}", "\x00")  # shown, as every control character is
    assert line[2:] == case.text.split("\n")[case.line - 1]
    assert underlined(line, carets) == case.under
    assert carets.index("^") == 2 + case.column - 1
    if case.hint:
        assert str(error).split("\n")[-1].startswith("  hint: ")
        assert case.hint in error.hint


@pytest.mark.parametrize("kind", [SYNTAX, FUNCTION, DEFINITION, CYCLE])
def test_one_except_clause_catches_them_all_and_they_mean_wrong_input(
    kind: type[SourceError],
) -> None:
    assert issubclass(kind, SourceError)
    assert issubclass(kind, cgprimer.CgprimerError)
    assert kind.exit_code == 2
    assert {type(complaint(c.text)) for c in CASES} >= {kind}


@pytest.mark.parametrize(
    ("text", "first", "second", "says"),
    [
        ("xw = 1\nxz = 2\nxw = 3", (1, 1), (3, 1), "'xw'"),
        ("xz = 1; xw = 2\n  xw = 3", (1, 9), (2, 3), "'xw'"),
        ("input a\nxw = a\nparameter a", (1, 7), (3, 11), "'a'"),
        ("input a, b = 1, a", (1, 7), (1, 17), "'a'"),
        (
            "input xw = 1\n\nxw = 3",
            (1, 7),
            (3, 1),
            "'xw' ... 'input'",
        ),
        (
            "c = 3\nparameter c",
            (2, 11),
            (1, 1),
            "'c' ... 'parameter'",
        ),
    ],
)
def test_an_error_with_two_places_shows_both(text, first, second, says) -> None:
    error = complaint(text)
    assert type(error) is DefinitionError
    approved(str(error), says)
    assert (error.line, error.column) == second
    ((_, related),) = error.related
    assert related.source.position(related.start) == first
    lines = str(error).split("\n")
    assert lines[0].startswith(f"lesson.cg:{second[0]}:{second[1]}: ")
    assert lines[3].startswith(f"lesson.cg:{first[0]}:{first[1]}: ")
    assert underlined(*lines[1:3]) == underlined(*lines[4:6]) == error.message.split("'")[1]


def test_a_cycle_gives_its_whole_path_and_nothing_beside_it() -> None:
    # xin leads into the circle and xend out of it; neither is on it.
    error = complaint("xend = xc; xin = 2; xb = xa*xin; xa = xc; xc = xb + xin")
    assert isinstance(error, CycleError)
    # Arrows are edges, from what is used to what uses it, and begin at the first in the text.
    assert error.path == ("xc", "xa", "xb", "xc")
    assert "xc -> xa -> xb -> xc" in approved(str(error))


def test_a_long_cycle_is_found_without_recursion() -> None:
    count = 20_000
    text = "\n".join(f"x{i} = x{(i + 1) % count}" for i in range(count))
    error = complaint(text)
    assert isinstance(error, CycleError)
    assert len(error.path) == count + 1
    assert error.path[0] == error.path[-1]


def test_the_caret_follows_tabs() -> None:
    _, line, carets, *_ = str(complaint("\txw =\t2xa")).split("\n")
    assert underlined(line, carets) == "2xa"
    assert carets == "  \t    \t^^^"


@pytest.mark.parametrize("position", [0, 10, 5_000, 9_990])
def test_a_long_line_is_cut_around_the_caret(position: int) -> None:
    terms = ["xa"] * 10_000
    terms[position] = "2xb"
    _, line, carets, *_ = str(complaint("xw = " + " + ".join(terms))).split("\n")
    assert len(line) < 120
    assert underlined(line, carets) == "2xb"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_and_columns_do_not_depend_on_the_line_end(newline: str) -> None:
    error = complaint(newline.join(["xa = 1", "", "xb = max(1,", "   2xa)"]))
    assert (error.line, error.column) == (4, 4)
    assert "\r" not in str(error)


def test_only_the_first_complaint_is_made_about_parentheses_inside_one_another() -> None:
    error = complaint("xw = (1 + (2 + (3")
    approved(str(error))
    assert error.line == 1
    assert error.span.source.text[error.span.start] == "("


def test_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.cg"
    path.write_text("xa = 1\nxw = 2xa\n", encoding="utf-8")
    with pytest.raises(ExpressionSyntaxError) as caught:
        cgprimer.load(path)
    assert str(caught.value).startswith(f"{path}:2:6: ")


def test_a_file_is_utf8_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    for number, mark in enumerate((b"", b"\xef\xbb\xbf")):
        path = tmp_path / f"{number}.cg"
        path.write_bytes(mark + "xw = θ*xa\r\n".encode())
        assert cgprimer.load(path).parameters == ("θ",)


@pytest.mark.parametrize("content", [None, b"xw = \xff\xfe"])
def test_a_file_that_cannot_be_read_is_a_usage_error_with_its_name(tmp_path: Path, content) -> None:
    path = tmp_path / "absent.cg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"absent\.cg"):
        cgprimer.load(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        cgprimer.load(tmp_path)


@pytest.mark.parametrize("wrong", [None, 3, 1.5, ["xw = 1", 2], [None], {1: 2}, b"xw = 1"])
def test_what_is_no_text_is_a_usage_error(wrong) -> None:
    with refused(UsageError, "expressions"):
        cgprimer.parse(wrong)


def test_an_error_without_a_hint_has_no_empty_hint() -> None:
    span = Span(Source("t", "xw"), 0, 2)
    assert "hint" not in str(ExpressionSyntaxError("no", span))
    assert str(CgprimerError("no")) == "no"
    assert str(CgprimerError("no", hint="yes")) == "no\n  hint: yes"


def test_nearest_names_come_likeliest_first() -> None:
    assert did_you_mean("sigmod", ["sin", "sigmoid", "sign"]).startswith("did you mean 'sigmoid'")
    assert did_you_mean("qqq", ["sin", "cos"]) == ""
