"""Single samples on Python's floats are what the numpy engine gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.engines import select
from cgprimer.core.point import PointProgram, PointRunner
from cgprimer.core.primitives import OPERANDS, primitives
from cgprimer.core.run import Runner
from cgprimer.core.tape.tape import Tape

AWKWARD = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 1e-300, -1e-300, 5e-324, 1e300, -1e300, 1e154,
    710.0, -746.0, 1.0 + 2**-52, math.pi, math.inf, -math.inf, math.nan,
)  # fmt: skip


def both(tape: Tape, names: list[str], given: dict[str, float]) -> tuple[list[float], list[float]]:
    program = PointProgram(tape, names)
    with np.errstate(all="ignore"):
        point = program([given[n] for n in program.columns], [given[n] for n in program.scalars])
    execute = select("numpy").compile(tape, reduction="none", dtype="float64")
    columns = {n: np.array([given[n]]) for n in tape.of_kind("column")}
    whole = execute(columns, {n: given[n] for n in tape.of_kind("scalar")}, 1)
    return point, [float(whole[n][0]) for n in names]


@pytest.mark.parametrize("row", primitives(), ids=lambda row: row.name)
def test_every_primitive_at_awkward_points(row) -> None:
    if row.name == "copy":
        return
    infix = {"add": "a+b", "sub": "a-b", "mul": "a*b", "div": "a/b", "pow": "a^b", "neg": "-a"}
    call = infix.get(row.name) or f"{row.spelling}({', '.join(OPERANDS[: row.arity])})"
    graph = cgprimer.parse(f"xw = {call}")
    tape = cgprimer.tape(graph)
    others = AWKWARD if row.arity == 2 else (0.5,) if row.arity == 1 else (-1.0, 0.0, 2.0)
    for a in AWKWARD:
        for b in others:
            given_values = dict(zip(OPERANDS, (a, b, 1.5), strict=False))
            point, whole = both(tape, ["xw"], given_values)
            assert type(point[0]) is float
            assert point == pytest.approx(whole, rel=1e-14, abs=1e-322, nan_ok=True), given_values


leaves = st.sampled_from(["xa", "xb", "k", "b", "2", "0", "0.5"])
exact = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner).map(lambda t: f"({t[1]} {t[0]} {t[2]})"),
        st.tuples(st.sampled_from(["-", "abs", "relu", "sqrt", "sign"]), inner).map(
            lambda t: f"(-{t[1]})" if t[0] == "-" else f"{t[0]}({t[1]})"
        ),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
    ),
    max_leaves=12,
)
numbers = st.one_of(st.sampled_from(AWKWARD), st.floats(-5, 5))


@settings(max_examples=150, deadline=None)
@given(text=exact, xa=numbers, xb=numbers, k=numbers, b=numbers)
def test_exact_operations_agree_bit_by_bit(
    text: str, xa: float, xb: float, k: float, b: float
) -> None:
    """Infinities and nan included; IEEE 754 leaves no choice here."""
    tape = cgprimer.tape(cgprimer.parse(f"xv = {text}; xw = xv*k + xa; output xv, xw"))
    point, whole = both(tape, ["xv", "xw"], {"xa": xa, "xb": xb, "k": k, "b": b})
    assert np.array_equal(point, whole, equal_nan=True)
    assert all(type(value) is float for value in point)


@settings(max_examples=60, deadline=None)
@given(text=exact, xa=numbers, xb=numbers, k=numbers, b=numbers)
def test_gradients_agree_too(text: str, xa: float, xb: float, k: float, b: float) -> None:
    tape = cgprimer.tape(cgprimer.parse(f"xw = {text} + k*xa"))
    program = cgprimer.differentiate(tape, "xw", ("k", "xa"))
    names = [read.output for read in program.passes[0].reads]
    point, whole = both(program.tape, names, {"xa": xa, "xb": xb, "k": k, "b": b})
    assert np.array_equal(point, whole, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "given_values", "value"),
    [
        ("1/xa", {"xa": 0.0}, math.inf),
        ("1/xa", {"xa": -0.0}, -math.inf),
        ("xa/xa", {"xa": 0.0}, math.nan),
        ("log(xa)", {"xa": 0.0}, -math.inf),
        ("log(xa)", {"xa": -1.0}, math.nan),
        ("sqrt(xa)", {"xa": -1.0}, math.nan),
        ("exp(xa)", {"xa": 1000.0}, math.inf),
        ("exp(xa)", {"xa": -1000.0}, 0.0),
        ("xa*xa", {"xa": 1e200}, math.inf),
        ("xa^3", {"xa": 1e200}, math.inf),
        ("xa^0.5", {"xa": -1.0}, math.nan),
        ("xa^(-1)", {"xa": 0.0}, math.inf),
        ("sin(xa)", {"xa": math.inf}, math.nan),
        ("sec(xa)", {"xa": math.inf}, math.nan),
        ("cot(xa)", {"xa": 0.0}, math.inf),
        ("csc(xa)", {"xa": 0.0}, math.inf),
        ("asec(xa)", {"xa": 0.0}, math.nan),
        ("acosh(xa)", {"xa": 0.5}, math.nan),
        ("atanh(xa)", {"xa": 1.0}, math.inf),
        ("cosh(xa)", {"xa": 1000.0}, math.inf),
        ("sigmoid(xa)", {"xa": -1000.0}, 0.0),
        ("softplus(xa)", {"xa": 1000.0}, 1000.0),
    ],
)
def test_edges(text: str, given_values: dict[str, float], value: float) -> None:
    tape = cgprimer.tape(cgprimer.parse(f"xw = {text}"))
    point, whole = both(tape, ["xw"], given_values)
    assert point == pytest.approx([value], nan_ok=True)
    assert whole == pytest.approx([value], nan_ok=True)


@pytest.mark.parametrize("method", cgprimer.methods())
@pytest.mark.parametrize("xa", [0.5, -0.5, 0.0, 1e200, math.nan])
def test_whole_derivative_programs(method: str, xa: float) -> None:
    """All passes of a program, on floats and on the engine."""
    text = "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3 + xa/ab"
    names = {"ab": 1.5, "ac": -0.25, "bc": 2.0, "cd": 3.0}
    program = cgprimer.differentiate(
        cgprimer.tape(cgprimer.parse(text)), "xw", tuple(names), method=method
    )
    with np.errstate(all="ignore"):
        value, gradient = PointRunner(program, ["xa"], list(names))([xa], list(names.values()))
    found = Runner(program)({"xa": np.array([xa])}, names, 1)
    assert value == pytest.approx(float(found.values["xw"][0]), rel=1e-13, nan_ok=True)
    expected = [float(np.reshape(found.derivatives["xw", n], -1)[0]) for n in names]
    rel = 1e-8 if method == "finite-difference" else 1e-13
    assert gradient == pytest.approx(expected, rel=rel, abs=1e-9, nan_ok=True)
