"""Every error has a kind, a place with carets under it, and a hint where one is likely to help."""

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
    """Return kinds of errors and texts, in which ‹ and › enclose what the carets underline."""
    pairs, kind = [], ""
    for line in Path(__file__).with_name("invalid_texts.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            kind = line[2:]
        elif line:
            pairs.append((kind, line.replace("⏎", "\n").replace("␀", "\x00")))
    return pairs


TEXTS = read_invalid_texts()


def complaint(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        cgprimer.parse(text, name="lesson.cg")
    return caught.value


def underlined(line: str, carets: str) -> str:
    """The characters of a line that the carets of the next line stand under."""
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
def test_an_invalid_text_has_an_approved_message_and_its_place(kind: str, marked: str) -> None:
    before, _, rest = marked.partition("‹")
    under, _, after = rest.partition("›")
    error = error_of(before + under + after)
    assert isinstance(error, SourceError)
    assert kind in {parent.__name__ for parent in type(error).__mro__}
    assert error.exit_code == 2
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    first, shown, carets, *_ = approved(str(error)).split("\n")
    assert first.startswith(f"lesson.cg:{line}:{column}: ")
    shown = shown.replace("\N{SYMBOL FOR NULL}", "\x00")  # as every control character is shown
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
def test_a_mutated_text_is_valid_or_its_error_points_into_it(data: st.DataObject) -> None:
    """Delete, repeat, exchange or insert a token of a valid text."""
    pieces = list(PIECES)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, len(pieces) - 1))
        change = data.draw(st.sampled_from(["delete", "repeat", "replace", "insert"]))
        token = data.draw(st.sampled_from(JUNK)) if change in ("replace", "insert") else ""
        end = place + (change in ("delete", "replace"))
        pieces[place:end] = [pieces[place]] if change == "repeat" else [token]
    text = "".join(pieces)
    error = error_of(text)
    if not isinstance(error, SourceError):
        return
    start, shown, carets, *_ = str(error).split("\n")
    place = re.match(r"lesson\.cg:(\d+):(\d+): \S", start)
    assert place
    line, column = int(place[1]), int(place[2])
    assert (line, column) == (error.line, error.column)
    written = text.split("\n")[line - 1]
    assert 1 <= column <= len(written) + 1
    assert re.sub(r"\.\.\.", "", shown).strip() in written  # a long line is cut
    assert shown[carets.index("^") :] == written[column - 1 :]
    span = text[error.span.start : error.span.end].split("\n")[0]
    assert underlined(shown, carets).strip() == span.strip()


@pytest.mark.parametrize("marked", [marked for _, marked in TEXTS if marked.count("‹") == 2])
def test_an_error_with_two_places_shows_both(marked: str) -> None:
    lines = approved(str(complaint(re.sub("[‹›]", "", marked)))).split("\n")
    starts = [re.sub("[‹›]", "", marked[: m.start()]) for m in re.finditer("‹", marked)]
    places = [(s.count("\n") + 1, len(s) - s.rfind("\n")) for s in starts]
    shown = [tuple(map(int, re.findall(r":(\d+):(\d+):", lines[i])[0])) for i in (0, 3)]
    assert sorted(shown) == places
    name = re.findall("‹(.*?)›", marked)[0]
    assert underlined(*lines[1:3]) == underlined(*lines[4:6]) == name


def test_a_cycle_gives_its_whole_path_and_nothing_beside_it() -> None:
    # xin leads into the circle and xend out of it; neither is on it.
    error = complaint("xend = xc; xin = 2; xb = xa*xin; xa = xc; xc = xb + xin")
    assert isinstance(error, CycleError)
    # Arrows are edges, from what is used to what uses it, and begin at the first in the text.
    assert error.path == ("xc", "xa", "xb", "xc")
    assert "xc -> xa -> xb -> xc" in approved(str(error))
    count = 2_000  # without recursion
    error = complaint("\n".join(f"x{i} = x{(i + 1) % count}" for i in range(count)))
    assert isinstance(error, CycleError)
    assert len(error.path) == count + 1


def test_a_long_line_is_cut_around_the_caret() -> None:
    for position in (0, 1_000, 1_990):
        terms = ["xa"] * 2_000
        terms[position] = "2xb"
        _, line, carets, *_ = str(complaint("xw = " + " + ".join(terms))).split("\n")
        assert len(line) < 120
        assert underlined(line, carets) == "2xb"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_and_columns_do_not_depend_on_the_line_end_or_tabs(newline: str) -> None:
    error = complaint(newline.join(["xa = 1", "", "xb = max(1,", "\t2xa)"]))
    assert (error.line, error.column) == (4, 2)
    _, line, carets, *_ = str(error).split("\n")
    assert underlined(line, carets) == "2xa"
    assert carets == "  \t^^^"


def test_files_are_utf8_and_named_in_errors(tmp_path: Path) -> None:
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


def test_what_is_no_text_is_a_usage_error() -> None:
    wrong: Any
    for wrong in (None, 1.5, ["xw = 1", 2], {1: 2}, b"xw = 1"):
        with refused(UsageError, "expressions"):
            cgprimer.parse(wrong)
