"""Tapes whose values have shapes: what the verifier refuses, passes, print, and planted faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import cgprimer
from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.operations.element_operations import Concatenate, Scatter, Take, take
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.operations.shape_operations import (
    Broadcast,
    Transpose,
    reshape,
    sum_over_axes,
)
from cgprimer.core.tape.scalarization import elements, scalarize, split_arrays
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.core.tape.tape_passes import remove_dead_code, substitute_seeds
from cgprimer.core.tape.verifier import verify
from tests.arrays.array_graphs import Case, array_cases

NETWORK = """
input x[3]
parameter W[2,3], b[2]
xh = tanh(W @ x + b)
xs = softmax(xh)
xo = sum(xs[::-1]*xh, 0) + max(xh) + mean(reshape(transpose(W), 2, 3))
"""
right_product = Matmul.pull_back
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


def test_a_whole_tape_is_not():
    right = Instruction(Matmul(2, 1), (1, 0)), Instruction("exp", (3,))
    assert verify(Tape(LEAVES, right, {"y": 4})).shapes[-1] == (2,)


@settings(max_examples=30, deadline=None)
@given(array_cases())
def test_passes_and_numbers_change_nothing(case: Case):
    """Without dead code, optimized, with its seeds in, written out in numbers: the same values."""
    program = cgprimer.differentiate(cgprimer.tape(case.graph), wrt=case.leaves, method="forward")
    columns = {name: case.at[name] for name in case.graph.inputs}
    scalars = {name: case.at[name] for name in case.graph.parameters}
    for one in program.passes[:3]:
        given = {**columns, **scalars, **one.seeds}
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


@pytest.mark.parametrize(
    ("operation", "wrong"),
    [
        (Transpose, lambda self, b, position, bar, operands, result: reshape(
            b, bar, b.shape(operands[0]))),
        (Broadcast, lambda self, b, position, bar, operands, result: take(
            b, bar, (0,) * (len(b.shape(bar)) - len(b.shape(operands[0]))))),
        (Matmul, lambda self, b, position, bar, operands, result: right_product(
            self, b, position, b.emit("neg", bar), operands, result)),
        (Take, lambda self, b, position, bar, operands, result: b.broadcast(
            sum_over_axes(b, bar), b.shape(operands[0]))),
        (Scatter, lambda self, b, position, bar, operands, result: b.emit("neg", b.emit(
            Take(self.key), bar))),
    ],
)  # fmt: skip
def test_a_wrong_transpose_is_caught(operation, wrong, monkeypatch):
    """What the other tests of this folder compare with: forward mode, and differences."""
    text = (
        "parameter W[3,3], b[3], k; input x[3]\n"
        "xh = transpose(W) @ x + k*b\nxo = sum(tanh(xh[::-1])*W[0] + concatenate(x[:1], xh[1:]))"
    )
    rng = np.random.default_rng(0)
    at = {"W": rng.normal(size=(3, 3)), "b": rng.normal(size=3), "k": 0.5, "x": rng.normal(size=3)}

    def differ() -> bool:
        graph, names = cgprimer.parse(text), ("W", "b", "k")
        by = {
            m: cgprimer.hessian(graph, at, wrt=names, method=f"{m}-over-reverse")
            for m in ("forward", "finite-difference")
        }
        first = {
            m: cgprimer.gradient(graph, at, wrt=names, method=m) for m in ("reverse", "forward")
        }
        return any(
            not np.allclose(first["reverse"][n], first["forward"][n], atol=1e-5) for n in names
        ) or any(
            not np.allclose(by["forward"][n][o], by["finite-difference"][n][o], atol=1e-4)
            for n in names for o in names
        )  # fmt: skip

    assert not differ()
    monkeypatch.setattr(operation, "pull_back", wrong)
    if operation is Scatter:  # takes are pulled as scatters, and scatters are only pulled once more
        graph = cgprimer.parse(text)
        by = [
            cgprimer.hessian(graph, at, method=f"{m}-over-reverse")["W"]["W"]
            for m in ("forward", "reverse")
        ]
        assert not np.allclose(*by, atol=1e-6)
    else:
        assert differ()


def test_a_wrong_arithmetic_is_caught(monkeypatch):
    case_text = "input x[2]; parameter W[2,2]; xo = sum(W @ x)"
    at = {"x": [1.0, 2.0], "W": [[1.0, 2.0], [3.0, 4.0]]}
    right = cgprimer.gradient(cgprimer.parse(case_text), at)["W"]
    monkeypatch.setattr(Matmul, "run", lambda self, a, b: a.T @ b)
    wrong = cgprimer.parse(case_text).evaluate(at)["xo"]
    assert wrong != pytest.approx(16.0)
    np.testing.assert_array_equal(right, [[1, 2], [1, 2]])


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


def test_single_precision_stays_single():
    """Whatever constants, softmax and sums there are, arrays of one sample are not made double."""
    text = (
        "input x[4], xt[3]; parameter W[3,4] = 0.5, b[3] = 0\n"
        "xo = -sum(xt*log_softmax(relu(W @ x + b)))"
    )
    graph = cgprimer.parse(text)
    program = cgprimer.differentiate(cgprimer.tape(graph))
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=(8, 4)), "xt": np.eye(3)[rng.integers(0, 3, 8)]}
    run = Runner(program, dtype="float32")
    scalars = {"W": np.full((3, 4), 0.5), "b": np.zeros(3)}
    found = run(columns, scalars, 8)
    assert {v.dtype for v in found.derivatives.values()} == {np.dtype("float32")}
    total = Runner(program, dtype="float32", reduction="sum")(columns, scalars, 8)
    assert total.derivatives["xo", "W"].dtype == np.float32
    exact = Runner(program, reduction="sum")(columns, scalars, 8)
    np.testing.assert_allclose(
        total.derivatives["xo", "W"], exact.derivatives["xo", "W"], rtol=1e-4, atol=1e-6
    )


def test_a_leaf_is_not_written_over():
    """Values are written over where nothing looks at them; what is given is never such a one."""
    graph = cgprimer.parse("input x[3]; parameter w[3]; xa = x; xo = sum(exp(xa)*w + transpose(w))")
    x, w = np.ones((5, 3)), np.full(3, 2.0)
    for reduction in ("sum", "none"):
        Runner(cgprimer.differentiate(cgprimer.tape(graph), wrt=("w", "x")), reduction=reduction)(
            {"x": x}, {"w": w}, 5
        )
    assert (x == 1).all()
    assert (w == 2).all()


def test_print_names_what_is_done_as_the_language_does():
    graph = cgprimer.parse(NETWORK)
    lines = [line.partition("#")[0].rstrip() for line in str(cgprimer.tape(graph)).split("\n")]
    assert "v1 = W @ x" in lines
    assert {"v9 = sum(v8)", "v12 = xs[1::-1]", "v16 = transpose(W)"} <= set(lines)
    assert cgprimer.parse(str(graph)).evaluate({"x": 1, "W": 0.5, "b": 0})["xo"] == pytest.approx(
        graph.evaluate({"x": 1, "W": 0.5, "b": 0})["xo"]
    )
