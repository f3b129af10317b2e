"""Tapes whose values have shapes: what the verifier refuses, passes, print, and planted faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import cgprimer
from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.operations.element_operations import Concatenate, Take
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.operations.shape_operations import Broadcast, Transpose
from cgprimer.core.tape.scalarization import elements, scalarize, split_arrays
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.core.tape.tape_passes import remove_dead_code, substitute_seeds
from cgprimer.core.tape.verifier import verify
from tests.approval import approved
from tests.arrays.array_graphs import Case, array_cases

NETWORK = """
input x[3]
parameter W[2,3], b[2]
xh = tanh(W @ x + b)
xs = softmax(xh)
xo = sum(xs[::-1]*xh, 0) + max(xh) + mean(reshape(transpose(W), 2, 3))
"""
LEAVES = (Leaf("column", "x", 0.0, (3,)), Leaf("scalar", "W", 0.0, (2, 3)), Leaf("scalar", "k"))
BROKEN = {
    "sizes that do not meet": (Matmul(2, 2), (0, 1)),
    "an elementwise primitive of two shapes": ("add", (0, 1)),
    "an array with a number that was not repeated": ("mul", (0, 2)),
    "a broadcast to a smaller shape": (Broadcast(1, (2,)), (0,)),
    "parts that do not join": (Concatenate(-1), (0, 1)),
    "an axis that is not there": (Transpose((-1, -2, -3)), (0,)),
    "an index that is outside": (Take((5,)), (0,)),
    "an unknown name": ("rotate", (0,)),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_tapes_are_refused(fault):
    with pytest.raises(cgprimer.TapeError):
        verify(Tape(LEAVES, (Instruction(*BROKEN[fault]),), {"y": 3}))


@settings(max_examples=6, deadline=None)
@given(array_cases())
def test_passes_and_numbers_change_nothing(case: Case):
    """Without dead code, optimized, with its seeds in, written out in numbers: the same values."""
    program = cgprimer.differentiate(cgprimer.tape(case.graph), wrt=case.leaves, method="forward")
    for one in program.passes[:3]:
        given = {**case.at, **one.seeds}
        full = values_of(program.tape, given)
        for made in (remove_dead_code(program.tape), optimize(program.tape),
                     substitute_seeds(program.tape, one.seeds)):  # fmt: skip
            values = values_of(made, given)
            for name, index in made.outputs.items():
                expected = full[program.tape.outputs[name]]
                np.testing.assert_allclose(values[index], expected, rtol=1e-11, atol=1e-11)
        shapes = {leaf.name: leaf.shape for leaf in program.tape.leaves}
        flat = scalarize(program.tape)
        values = values_of(flat, split_arrays(given, shapes))
        for name, index in program.tape.outputs.items():
            parts = elements(name, np.shape(full[index]))
            for part, expected in zip(parts, np.ravel(full[index]), strict=True):
                np.testing.assert_allclose(
                    values[flat.outputs[part]], expected, rtol=1e-10, atol=1e-10
                )


def test_sums_over_blocks_are_sums(monkeypatch):
    """Matrices' gradients are taken before the products; a last block may be a short one."""
    from cgprimer.core.evaluation import array_evaluator

    monkeypatch.setattr(array_evaluator, "_BLOCK", 2)  # blocks of 64 samples
    program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse(NETWORK)))
    rng = np.random.default_rng(0)
    at = {"W": rng.normal(size=(2, 3)), "b": rng.normal(size=2)}
    for samples in (0, 1, 64, 65, 300):
        x = rng.normal(size=(samples, 3))
        each = Runner(program)({"x": x}, at, samples)
        total = Runner(program, reduction="sum")({"x": x}, at, samples)
        for pair, value in each.derivatives.items():
            np.testing.assert_allclose(total.derivatives[pair], value.sum(0), atol=1e-11)
        assert total.values["xo"] == pytest.approx(each.values["xo"].sum(), rel=1e-12)


def test_print_names_what_is_done_as_the_language_does():
    approved(str(cgprimer.tape(cgprimer.parse(NETWORK))))


def test_single_precision_stays_single():
    """Constants, softmax and sums do not make arrays of one sample double."""
    text = "input x[4], t[3]; parameter W[3,4], b[3]; xo = -sum(t*log_softmax(relu(W @ x + b)))"
    program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse(text)), wrt=["W"])
    columns = {"x": np.random.default_rng(0).normal(size=(3, 4)), "t": np.eye(3)}
    scalars = {"W": np.full((3, 4), 0.5), "b": np.zeros(3)}
    for reduction in ("sum", "none"):
        found = Runner(program, dtype="float32", reduction=reduction)(columns, scalars, 3)
        assert {v.dtype for v in found.derivatives.values()} == {np.dtype("float32")}
        exact = Runner(program, reduction=reduction)(columns, scalars, 3)
        for pair, value in exact.derivatives.items():
            np.testing.assert_allclose(found.derivatives[pair], value, rtol=1e-4, atol=1e-6)


def test_a_tape_written_out_in_numbers_keeps_every_operation() -> None:
    graph = cgprimer.parse("input x[2]; parameter w[2]; xh = 1*x + 0; xo = (w @ xh)*1 + x[0]^1")
    approved(str(scalarize(cgprimer.tape(graph))))
