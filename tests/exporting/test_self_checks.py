"""The self-check of an exported file: its points, and that it rejects each changed number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.analysis.export.exporter import TARGETS
from tests.cases.case_tools import example
from tests.exporting.running import run, run_correct

CHECKED = [target for target in TARGETS if target != "latex"]  # a document checks nothing
NOT_FINITE = {"c": ("NAN", "INFINITY", "-INFINITY")}
PYTHON_NOT_FINITE = ("float('nan')", "float('inf')", "-float('inf')")
NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"


def split(text: str, target: str) -> tuple[str, str, str]:
    """Return a file in three parts, of which the second has the exported functions."""
    begin = text.index("static double value(" if target == "c" else "def value(")
    end = text.index("/* Test points" if target == "c" else "# Test points")
    return text[:begin], text[begin:end], text[end:]


def change_digit(number: str) -> str:
    """Change the first nonzero digit of a number, or the ninth digit if it has so many."""
    digits = [m.start() for m in re.finditer(r"\d", number.partition("e")[0])]
    index = digits[8] if len(digits) > 8 else digits[0]
    other = str((int(number[index]) + 1) % 10)
    return number[:index] + other + number[index + 1 :]


def change_functions(text: str, target: str) -> Iterator[str]:
    """Yield the file with one digit in an exported function changed."""
    before, functions, after = split(text, target)
    for match in re.finditer(r"(?<![\w.])\d+(\.\d+)?(?![\w.\"]*\])", functions):
        lead = functions[: match.start()]
        is_index = target == "c" and lead.endswith("[")
        if not (lead.endswith("bar_xw = ") or is_index):  # a comment, because x*1 is not written
            changed = change_digit(match[0])
            yield before + lead + changed + functions[match.end() :] + after


def change_results(text: str, target: str) -> Iterator[str]:
    """Yield the file with a value or a derivative that is not finite."""
    before, functions, after = split(text, target)
    pattern = r"(?<=^    return )[^{}\n]+(?=;)|(?<=\] = )[^\n]+?(?=;)"
    if target != "c":
        pattern = r"(?<=^    return )[^{}\n]+$|(?<=\": )[^\n{}]+(?=,$)"
    found = list(re.finditer(pattern, functions, re.MULTILINE))
    assert len(found) >= 2, functions
    for match in found:
        for number in NOT_FINITE.get(target, PYTHON_NOT_FINITE):
            start, end = match.span()
            changed = f"0*({match[0]}) + {number}"
            yield before + functions[:start] + changed + functions[end:] + after


def change_expected(text: str, target: str) -> Iterator[str]:
    """Yield the file with an expected number that has another digit or is not finite."""
    pattern = (
        r"(?<=\n     \{)[^{}\n]+(?=\},\n     )" if target == "c" else r'(?<="right": \{).+(?=\})'
    )
    rows = list(re.finditer(pattern, text))
    assert len(rows) >= 3, text  # the point with the declared values, and sampled points
    for row in rows:
        values = rf"(?<![\w.])(?<!-){NUMBER}(?=,|$)"
        found = list(re.finditer(values, row[0]))
        assert len(found) == 3  # the value and two derivatives
        for match in found:
            begin, end = (row.start() + k for k in match.span())
            for number in (change_digit(match[0]), *NOT_FINITE.get(target, PYTHON_NOT_FINITE)):
                yield text[:begin] + number + text[end:]


GRAPH = "input xa = 0.75; parameter k = 1.25, b = 0.5; xb = 3*k*xa^2; xw = xb^3/7 + b*sin(k)"


@pytest.mark.parametrize("part", [change_functions, change_results, change_expected])
@pytest.mark.parametrize(
    ("target", "every"),  # sympy is slow, and so is a compiler
    [("python", 1), ("c", 30)]
    + [pytest.param(t, 1 + (t in ("sympy", "c")), marks=pytest.mark.slow) for t in CHECKED[1:]],
)
def test_each_changed_number_is_rejected(
    target: str, every: int, part: Callable[[str, str], Iterator[str]], tmp_path: Path
) -> None:
    text = cgprimer.export(cgprimer.parse(GRAPH), target)
    run_correct(text, target, tmp_path)
    changes = list(part(text, target))
    assert len(changes) >= 4
    for k, changed in enumerate(changes[::every]):
        assert changed != text
        done = run(changed, target, tmp_path, f"changed{k}")
        assert done.returncode == 1, changed
        assert "WRONG" in done.stdout
        assert done.stdout.splitlines()[-1] != "all checks passed"


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_results_and_expected_numbers_that_are_not_finite_can_agree(number: str) -> None:
    """A self-check compares nan with nan and inf with inf, but not with each other."""
    text = cgprimer.export(cgprimer.parse("input xa = 3; xw = 1.75*xa"), "python")
    _, code = text.split("def is_close", 1)
    names: dict[str, object] = {}
    exec("from math import isnan\ndef is_close" + code.split("\n\n\n")[0], names)  # noqa: S102
    is_close = names["is_close"]
    assert callable(is_close)
    accepted = [n for n in ("nan", "inf", "-inf", "5.25") if is_close(float(number), float(n), 1.0)]
    assert accepted == [number]


@pytest.mark.parametrize("name", ["cs231n_max", "cs231n_product", "shared_sum", "two_paths"])
def test_each_sign_of_a_derivative_is_checked(name: str, tmp_path: Path) -> None:
    """Derivatives that are 0 at the declared values are not 0 at another point."""
    text = cgprimer.export(example(name), "python", method="reverse")
    begin = text.index("# the derivative")
    code = text[begin : text.index("    return {", begin)]
    assert re.search(r"^    # bar_\w+ = ", code, re.MULTILINE)  # nothing reads these
    for line in re.findall(r"^    bar_.*", code, re.MULTILINE):
        changed = text.replace(line, re.sub(r" = (.*?)(?=  #|$)", r" = -(\1)", line))
        assert run(changed, "python", tmp_path).returncode == 1, changed


def test_missing_contribution_is_rejected(tmp_path: Path) -> None:
    text = cgprimer.export(example("two_paths"), "python", wrt="a")
    changed, count = re.subn(r"(bar_\w+ = )(\w+) \+ \w+( +# add.*)", r"\1\2\3", text, count=1)
    assert count == 1, text
    assert run(changed, "python", tmp_path).returncode == 1


# --- the points, and their tolerances ------------------------------------------------------------


def check_points(text: str, at: dict[str, float], **options: Any) -> list[dict[str, Any]]:
    """Return the check points of an exported Python file."""
    code = cgprimer.export(cgprimer.parse(text), "python", at, **options)
    names: dict[str, Any] = {"__name__": "exported"}
    exec(code, names)  # noqa: S102 - exported by the test
    return list(names["POINTS"])


def test_first_point_has_the_declared_values_and_expected_derivatives() -> None:
    first, *sampled = check_points("xw = k*xa^2", {"k": 2.0, "xa": 3.0}, wrt=["k", "xa"])
    assert first["at"] == {"xa": 3.0, "k": 2.0}
    assert first["right"] == {"xw": 18.0, "d xw / d k": 9.0, "d xw / d xa": 12.0}
    assert len(sampled) == 3
    for point in sampled:
        k, xa = point["at"]["k"], point["at"]["xa"]
        assert (round(k, 3), round(xa, 3)) == (k, xa)
        expected = {"xw": k * xa**2, "d xw / d k": xa**2, "d xw / d xa": 2 * k * xa}
        assert point["right"] == pytest.approx(expected, rel=1e-14)


def test_points_are_near_the_declared_values_and_near_zero() -> None:
    points = check_points("xw = k*sin(xa)", {"k": 2.0, "xa": 100.0})[1:]
    near = [abs(point["at"]["xa"] - 100) <= 1.5 for point in points]
    assert near == [True, False, True]
    assert all(
        abs(p["at"]["xa"]) <= 1.5 for p, is_near in zip(points, near, strict=True) if not is_near
    )
    points = check_points("xw = k*log(xa - 98)", {"k": 2.0, "xa": 100.0})
    assert len(points) == 4  # no point near 0 is in the domain
    assert all(abs(point["at"]["xa"] - 100) <= 1.5 for point in points)


@pytest.mark.parametrize(
    ("text", "at", "least", "most"),
    [
        ("xw = k*xa^2", {"k": 1.25, "xa": 0.75}, 1e-14, 3e-14),
        ("xw = (k + 1e10) - 1e10", {"k": 1.25}, 1e-6, 1e-4),  # cancellation
        ("xw = k*step(xa*3 - 0.3)", {"k": 1.25, "xa": 0.1}, 5e-14, 2e-13),  # a tie
    ],
)
def test_tolerances_cover_rounding_and_nothing_else(
    text: str, at: dict[str, float], least: float, most: float
) -> None:
    first = check_points(text, at)[0]
    assert least <= first["within"]["xw"] / abs(first["right"]["xw"]) <= most


@pytest.mark.parametrize(
    ("text", "at", "smooth"),
    [
        ("xw = relu(k)", 0.0, False), ("xw = relu(k)", 0.5, True), ("xw = abs(k)", 0.0, False),
        ("xw = k^2", 0.0, True), ("xw = sqrt(k)", 0.0, False),
    ],
)  # fmt: skip
def test_kinks_are_not_smooth(text: str, at: float, smooth: bool) -> None:
    assert check_points(text, {"k": at})[0]["smooth"] is smooth


def test_derivatives_that_are_zero_have_further_points() -> None:
    """A derivative is 0 at the declared values and at the three sampled points."""
    points = check_points("xw = k*relu(xa - 1)", {"k": 2.0, "xa": 0.0})
    assert [bool(point["right"]["d xw / d k"]) for point in points] == [False] * 4 + [True]
    assert len(check_points("xw = k*relu(xa - 3)", {"k": 2.0, "xa": 0.0})) == 4  # none is found
