"""Listings of plans and of generated code, which do not depend on the machine."""

from __future__ import annotations

import pytest

import cgprimer
from cgprimer.backends.code_listing import code_text
from cgprimer.backends.plans.plan_printing import format_passes
from tests.approval import approved

TEXTS = {
    "matrix": "; ".join(f"xw{j} = a{j}*xa + b{j}*xb + c{j}*xc" for j in range(3)),
    "outer": "; ".join(f"xw{i}{j} = x{i}*xb{j}" for i in range(3) for j in range(2 + (i > 0))),
    "small": "xb = sin(xa)*cos(xa) + exp(k)*xa^4; xw = xb + k; xv = xb; output xw, xv",
}


@pytest.mark.parametrize("name", TEXTS)
def test_listings_are_approved(name: str) -> None:
    tape = cgprimer.tape(cgprimer.parse(TEXTS[name]))
    approved(format_passes(tape, sums=name != "matrix"))
    code = code_text(tape, "cuda-interpreter", sums=name != "matrix")
    approved(code.partition("\ndef ")[0])
    abbreviated = format_passes(tape, sums=name != "matrix", max_lines=2)
    assert "..." in abbreviated
    assert len(abbreviated) < len(format_passes(tape, sums=name != "matrix"))
