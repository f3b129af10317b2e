"""Execution plans: printed plans are approved, and the work of planning grows with the tape."""

from __future__ import annotations

import cProfile
from pathlib import Path

import pytest

import cgprimer
from cgprimer.backends.code_listing import code_text
from cgprimer.backends.plans.optimization import extract_constant_factors, optimize
from cgprimer.backends.plans.plan import AffineGroup, Plan
from cgprimer.backends.plans.plan_printing import format_passes
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import allocate_rows
from tests.approval import approved
from tests.native.engine_agreement import gradient_tape, network

PER_SAMPLE, SUMMED = (
    dict(line.split(" | ") for line in section.splitlines() if " | " in line)
    for section in Path(__file__).with_name("plan_texts.txt").read_text().split("\n\n== ")[1:]
)


@pytest.mark.parametrize("name", [*PER_SAMPLE, *SUMMED, "a network", "a network with a bypass"])
def test_plans_are_approved(name: str) -> None:
    sums = name not in PER_SAMPLE
    if name.startswith("a network"):  # the layers and their reverse pass are matrices
        sizes, bypass = ((2, 4, 4, 3), True) if "bypass" in name else ((4, 8, 8, 1), False)
        tape = gradient_tape(network(*sizes, bypass=bypass))
    else:
        tape = cgprimer.tape(cgprimer.parse((SUMMED if sums else PER_SAMPLE)[name]))
    passes = format_passes(tape, sums=sums)
    approved("\n\n".join(p for p in passes.split("\n\n")[1:] if not p.endswith("\nnone")))
    assert "..." in format_passes(tape, sums=sums, max_lines=1)
    approved(code_text(tape, "cuda-interpreter", sums=sums).partition("\ndef ")[0])


def test_constant_factors_leave_a_sum_only_within_bounds() -> None:
    for a, b, expected in ((8, 8, 64), (8, 9, 1), (0.125, 0.125, 1 / 64), (0.125, 0.1, 1)):
        tape = optimize(cgprimer.tape(cgprimer.parse(f"xw = ({a}*xa)*({b}*xb)*xc")))
        assert extract_constant_factors(tape)[1] == {"xw": expected}


def test_long_tapes_need_no_recursion_and_few_rows() -> None:
    terms = 3_000

    def planned(text: str) -> Plan:
        return build_plan(cgprimer.tape(cgprimer.parse(text)), sums=False)

    plan = planned("xw = " + " + ".join(f"w{i}*x{i}" for i in range(terms)))
    (group,) = plan.groups.values()
    assert isinstance(group, AffineGroup)
    assert (len(group.outputs), len(group.inputs)) == (1, terms)
    plan = planned("xw = " + "".join(f"{'+-'[i % 2]} x{i}*xb{i % 7}" for i in range(terms)))
    assert len(plan.varying) == terms
    assert allocate_rows(plan).count <= 2
    chain = "\n".join(f"x{i} = sin(x{i - 1})" for i in range(1, terms))
    assert allocate_rows(planned(chain)).count == 1
    program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse(chain)), wrt=["x0"])
    plan = build_plan(program.tape, sums=True)
    assert terms <= allocate_rows(plan).count <= terms + 2


def test_the_work_of_planning_is_proportional_to_the_tape() -> None:
    """Count calls of Python, which do not depend on the load of the machine."""

    def count_calls(width: int) -> tuple[int, int]:
        tape, profile = gradient_tape(network(width, width, width, 1)), cProfile.Profile()
        profile.runcall(lambda: allocate_rows(build_plan(tape, sums=True)))
        return len(tape), sum(entry.callcount for entry in profile.getstats())

    (small, few), (large, many) = count_calls(6), count_calls(18)
    assert large > 5 * small
    assert many / large < 1.1 * few / small
