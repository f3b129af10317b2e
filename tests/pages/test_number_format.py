"""One rule of rounding, in Python and in the JavaScript of the pages."""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
import subprocess
from fractions import Fraction
from importlib.resources import files

import pytest

from cgprimer.support.number_format import choose_equality_sign, format_number, mark_rounding
from tests.checking.submissions import compute
from tests.pages.conftest import TABLES

AWKWARD = [compute(*row) for row in TABLES["awkward numbers"]]


def values() -> list[float]:
    """The awkward ones, and doubles of any size and of few binary digits."""
    draw = random.Random(9)
    bits = [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(300)]
    few = [draw.randrange(-(2**20), 2**20) / 2 ** draw.randrange(12) for _ in range(300)]
    return [*AWKWARD, *bits, *few]


@pytest.mark.parametrize("digits", [1, 2, 5, 8, 12])
def test_numbers_are_rounded_half_up_by_their_exact_value(digits: int) -> None:
    for value in values():
        if not math.isfinite(value) or value == 0:
            continue
        exact, text = abs(Fraction(value)), format_number(value, digits)
        power = math.floor(math.log10(abs(value)))
        power += (exact >= Fraction(10) ** (power + 1)) - (exact < Fraction(10) ** power)
        unit = Fraction(10) ** (power - digits + 1)
        expected = math.floor(exact / unit + Fraction(1, 2)) * unit
        assert Fraction(text.removeprefix("-")) == expected, value
        assert text.startswith("-") == (value < 0)


@pytest.mark.parametrize(("value", "text"), TABLES["short exponents"])
def test_large_and_small_numbers_have_a_short_exponent(value: str, text: str) -> None:
    assert format_number(float(value), 5) == text


@pytest.mark.parametrize(("value", "digits", "text"), TABLES["marks of rounding"])
def test_rounded_numbers_are_marked(value: str, digits: str, text: str) -> None:
    assert mark_rounding(compute(value), int(digits)) == text


def test_a_sum_of_rounded_numbers_has_another_sign() -> None:
    assert choose_equality_sign(0.5, 0.25, 0.4 * 0.8, 0.1 + 0.2, math.inf, -0.0) == "="
    assert choose_equality_sign(0.5, 1 / 3) == choose_equality_sign(0.3 - 1e-13) == "≈"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_pages_round_as_python_does() -> None:
    source = files("cgprimer.visualization.pages").joinpath("number_format.js")
    numbers, digits = values(), (1, 2, 5, 8, 12)
    program = f"""{source.read_text(encoding="utf-8")}
    const numbers = {json.dumps([repr(v).replace("inf", "Infinity") for v in numbers])}
      .map(text => text === "nan" ? NaN : Number(text));
    console.log(JSON.stringify({[*digits]}.map(d => numbers.map(
      v => [formatNumber(v, d), markRounding(v, d)]))));"""
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    for n_digits, column in zip(digits, json.loads(done.stdout), strict=True):
        for value, texts in zip(numbers, column, strict=True):
            assert texts == [format_number(value, n_digits), mark_rounding(value, n_digits)], value
