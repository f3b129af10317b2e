"""The self-check of an exported file rejects each number that is changed, nan and inf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cgprimer
from cgprimer.analysis.export.exporter import TARGETS
from tests.cases.case_tools import example
from tests.exporting.running import run, run_correct, run_file

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
    "target", [pytest.param(t, marks=[] if t == "python" else pytest.mark.slow) for t in CHECKED]
)
def test_each_changed_number_is_rejected(target: str, part: object, tmp_path: Path) -> None:
    text = cgprimer.export(cgprimer.parse(GRAPH), target)
    run_correct(text, target, tmp_path)
    every = {"sympy": 2, "c": 2}.get(target, 1)  # sympy is slow, and so is a compiler
    planted = list(part(text, target))[::every]  # type: ignore[operator]
    assert len(planted) >= 2
    for k, changed in enumerate(planted):
        assert changed != text
        done = run(changed, target, tmp_path, f"changed{k}")
        assert done.returncode == 1, changed
        assert "WRONG" in done.stdout
        assert done.stdout.splitlines()[-1] != "all checks passed"


@pytest.mark.parametrize("part", [change_functions, change_results, change_expected])
def test_sample_of_changed_numbers_is_rejected_by_c(part: object, tmp_path: Path) -> None:
    text = cgprimer.export(cgprimer.parse(GRAPH), "c")
    changed = next(iter(part(text, "c")))  # type: ignore[operator]
    done = run_file(changed, "c", tmp_path)
    assert done.returncode == 1, done.stdout
    assert "WRONG" in done.stdout


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
