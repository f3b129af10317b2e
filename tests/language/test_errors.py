"""Kinds, messages, locations and hints of errors in texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.errors import (
    CgprimerError,
    CycleError,
    ExpressionSyntaxError,
    ShapeError,
    SourceError,
    UsageError,
)
from tests.approval import approved, refused


def read_invalid_texts() -> list[tuple[str, str]]:
    """Return kinds of errors and texts; ‹ and › enclose the underlined part."""
    pairs, kind = [], ""
    for line in Path(__file__).with_name("invalid_texts.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            kind = line[2:]
        elif line:
            pairs.append((kind, line.replace("⏎", "\n").replace("␀", "\x00")))
    return pairs


TEXTS = read_invalid_texts()


def parse_error(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        cgprimer.parse(text, name="lesson.cg")
    return caught.value


def underlined(line: str, carets: str) -> str:
    """Return the characters of a line that are underlined by the carets of the next line."""
    assert set(carets.strip()) == {"^"}
    return line[carets.index("^") : carets.rindex("^") + 1]


def error_of(text: str) -> CgprimerError | None:
    """Return the error of a text or of the shapes of its values; None if there is none."""
    try:
        graph = cgprimer.parse(text, name="lesson.cg")
        cgprimer.tape(graph)
    except CgprimerError as error:
        return error
    return None


@pytest.mark.parametrize(("kind", "marked"), [t for t in TEXTS if t[0] != "two places"])
def test_invalid_text_message_and_location(kind: str, marked: str) -> None:
    before, _, rest = marked.partition("‹")
    under, _, after = rest.partition("›")
    error = error_of(before + under + after)
    assert isinstance(error, SourceError)
    assert kind in {parent.__name__ for parent in type(error).__mro__}
    assert error.exit_code == 2
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    first, shown, carets, *_ = approved(str(error)).split("\n")
    assert first.startswith(f"lesson.cg:{line}:{column}: ")
    shown = shown.replace("\N{SYMBOL FOR NULL}", "\x00")  # as control characters are shown
    assert shown[2:] == (before + under + after).split("\n")[line - 1]
    assert underlined(shown, carets) == under
    assert carets.index("^") == 2 + column - 1
    if kind == "ShapeError":
        graph = cgprimer.parse(before + under + after, name="lesson.cg")
        with pytest.raises(ShapeError) as caught:
            graph.evaluate(dict.fromkeys((*graph.inputs, *graph.parameters), 1.0))
        assert str(caught.value) == str(error)


VALID = """input xa[3] = [1, 2, 3], xb = 0.5 in {0, 0.5}
parameter k = normal(0.1), w[3] = 2  # two
xh = tanh(k*xb^2 - 1) + max(xa, 0)[1]
xw = (xh +
  where(less(xb, 1), w @ xa, -xh**2))/(1 + exp(-xh))
output xw"""
PIECES = re.findall(r"\w+|\s+|\*\*|[^\w\s]", VALID)
JUNK = ["(", ")", "[", "]", "{", ",", "=", "*", "^", ".", "2", "xw", "sinn(", "$", "in", "²", ";"]


@settings(max_examples=80)
@given(st.data())
def test_errors_of_mutated_texts_have_valid_locations(data: st.DataObject) -> None:
    """Delete, repeat, replace or insert a token of a valid text."""
    pieces = list(PIECES)
    for _ in range(data.draw(st.integers(1, 2))):
        location = data.draw(st.integers(0, len(pieces) - 1))
        change = data.draw(st.sampled_from(["delete", "repeat", "replace", "insert"]))
        token = data.draw(st.sampled_from(JUNK)) if change in ("replace", "insert") else ""
        end = location + (change in ("delete", "replace"))
        pieces[location:end] = [pieces[location]] if change == "repeat" else [token]
    text = "".join(pieces)
    error = error_of(text)
    if not isinstance(error, SourceError):
        return
    start, shown, carets, *_ = str(error).split("\n")
    location = re.match(r"lesson\.cg:(\d+):(\d+): \S", start)
    assert location
    line, column = int(location[1]), int(location[2])
    assert (line, column) == (error.line, error.column)
    source_line = text.split("\n")[line - 1]
    assert 1 <= column <= len(source_line) + 1
    assert re.sub(r"\.\.\.", "", shown).strip() in source_line  # long lines are truncated
    assert shown[carets.index("^") :] == source_line[column - 1 :]
    span = text[error.span.start : error.span.end].split("\n")[0]
    assert underlined(shown, carets).strip() == span.strip()


@pytest.mark.parametrize("marked", [marked for _, marked in TEXTS if marked.count("‹") == 2])
def test_errors_with_two_locations_show_both(marked: str) -> None:
    lines = approved(str(parse_error(re.sub("[‹›]", "", marked)))).split("\n")
    starts = [re.sub("[‹›]", "", marked[: m.start()]) for m in re.finditer("‹", marked)]
    locations = [(s.count("\n") + 1, len(s) - s.rfind("\n")) for s in starts]
    shown = [tuple(map(int, re.findall(r":(\d+):(\d+):", lines[i])[0])) for i in (0, 3)]
    assert sorted(shown) == locations
    name = re.findall("‹(.*?)›", marked)[0]
    assert underlined(*lines[1:3]) == underlined(*lines[4:6]) == name


def test_cycle_error_reports_only_the_cycle() -> None:
    # xin leads into the cycle and xend out of it; neither is part of it.
    error = parse_error("xend = xc; xin = 2; xb = xa*xin; xa = xc; xc = xb + xin")
    assert isinstance(error, CycleError)
    # Arrows are edges from operand to user; the path begins at the first name in the text.
    assert error.path == ("xc", "xa", "xb", "xc")
    assert "xc -> xa -> xb -> xc" in approved(str(error))
    count = 2_000  # more than the recursion limit
    error = parse_error("\n".join(f"x{i} = x{(i + 1) % count}" for i in range(count)))
    assert isinstance(error, CycleError)
    assert len(error.path) == count + 1


def test_long_lines_are_truncated_around_the_caret() -> None:
    for position in (0, 1_000, 1_990):
        terms = ["xa"] * 2_000
        terms[position] = "2xb"
        _, line, carets, *_ = str(parse_error("xw = " + " + ".join(terms))).split("\n")
        assert len(line) < 120
        assert underlined(line, carets) == "2xb"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_error_location_is_independent_of_newlines_and_tabs(newline: str) -> None:
    error = parse_error(newline.join(["xa = 1", "", "xb = max(1,", "\t2xa)"]))
    assert (error.line, error.column) == (4, 2)
    _, line, carets, *_ = str(error).split("\n")
    assert underlined(line, carets) == "2xa"
    assert carets == "  \t^^^"


def test_files_are_read_as_utf8_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "lesson.cg"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + "xw = θ*xa\r\n".encode())
        assert cgprimer.load(path).parameters == ("θ",)
    path.write_text("xa = 1\nxw = 2xa\n", encoding="utf-8")
    with pytest.raises(ExpressionSyntaxError) as caught:
        cgprimer.load(path)
    assert str(caught.value).startswith(f"{path}:2:6: ")
    path.write_bytes(b"xw = \xff\xfe")
    for wrong in (path, tmp_path / "absent.cg", tmp_path):
        with pytest.raises(UsageError, match=re.escape(wrong.name)):
            cgprimer.load(wrong)


def test_non_text_argument_raises_usage_error() -> None:
    wrong: Any
    for wrong in (None, 1.5, ["xw = 1", 2], {1: 2}, b"xw = 1"):
        with refused(UsageError, "expressions"):
            cgprimer.parse(wrong)
