"""Each pass finds what it should on tapes worked by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import cgprimer
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_printing import labels
from cgprimer.errors import UsageError
from tests.native.plan_running import loss_program, network


def lowered(text: str) -> Tape:
    return lower(cgprimer.parse(text))


def planned(text: str, *, sums: bool = False) -> Plan:
    return build_plan(lowered(text), sums=sums)


def names(found: Plan) -> list[str]:
    return [step.name for step in found.varying]


def groups(found: Plan, kind: type) -> list:
    return [group for group in found.groups.values() if isinstance(group, kind)]


def called(found: Plan, values) -> list[str]:
    known = labels(found.tape)
    leaves = found.tape.leaves
    return [
        "none" if v < 0
        else f"{leaves[v].value:g}" if v < len(leaves) and leaves[v].kind == "constant"
        else known[v] if v < found.tape.size
        else "new"
        for v in values
    ]  # fmt: skip


# --- hoisting ------------------------------------------------------------------------------------


def test_what_no_sample_changes_is_computed_once() -> None:
    found = planned("xw = sin(k*m)*xa + exp(k)")
    assert [s.name for s in found.uniform] == ["mul", "sin", "exp"]
    assert names(found) == ["fma"]


# --- affine groups -------------------------------------------------------------------------------

LAYER = "\n".join(
    f"xz{j} = " + " + ".join(f"w{j}{i}*xa{i}" for i in range(4)) + f" + b{j}" for j in range(2)
)


def test_a_layer_is_a_matrix() -> None:
    found = planned(LAYER)
    (group,) = groups(found, AffineGroup)
    assert called(found, group.inputs) == ["xa0", "xa1", "xa2", "xa3"]
    assert called(found, group.outputs) == ["xz0", "xz1"]
    assert called(found, group.weights[1]) == ["w10", "w11", "w12", "w13"]
    assert called(found, group.biases) == ["b0", "b1"]
    assert names(found) == ["affine"]
    assert found.uniform == ()
    assert found.size == found.tape.size


@pytest.mark.parametrize(
    ("text", "inputs", "weights", "biases", "left"),
    [
        # one sum of many products; terms in any order, on any side, with any sign
        (
            "xw = a*x1 - x2*b + (c*x3 + (d*x4 - (e*x5 - f*x6))) + g*x7 + h*x8",
            "x1 x2 x3 x4 x5 x6 x7 x8", "a new c d new f g h", "none", [],
        ),
        # constants are weights; a negated product too
        (
            "xw = 2*x1 + (-(a*x2)) + 3*x3 + a*x4 + a*x5 + a*x6 + a*x7 + a*x8",
            "x1 x2 x3 x4 x5 x6 x7 x8", "2 new 3 a a a a a", "none", [],
        ),
        # several terms that do not vary are summed once
        (
            "xw = a*x1 + m + b*x2 + a*x3 + a*x4 - n + a*x5 + a*x6 + a*x7 + a*x8 + 2",
            "x1 x2 x3 x4 x5 x6 x7 x8", "a b a a a a a a", "new", [],
        ),
        # a value that has two weights: one of them is added
        (
            "xw = a*x1 + b*x1 + a*x2 + a*x3 + a*x4 + a*x5 + a*x6 + a*x7 + a*x8",
            "x1 x2 x3 x4 x5 x6 x7 x8", "a a a a a a a a", "none", ["fma"],
        ),
        # of what has no weight a single sum is not made wider
        (
            "xw = x9 + a*x1 + a*x2 + a*x3 + a*x4 + a*x5 + a*x6 + a*x7 + a*x8 - x0",
            "x1 x2 x3 x4 x5 x6 x7 x8", "a a a a a a a a", "none", ["add", "sub"],
        ),
    ],
)  # fmt: skip
def test_sums_are_taken_apart(text: str, inputs: str, weights: str, biases: str, left: list[str]):
    found = planned(text)
    (group,) = groups(found, AffineGroup)
    row = dict(zip(called(found, group.inputs), called(found, group.weights[0]), strict=True))
    assert row == dict(zip(inputs.split(), weights.split(), strict=True))
    assert called(found, group.biases) == biases.split()
    assert sorted(names(found)) == sorted(["affine", *left])


def test_a_value_without_a_weight_is_one_with_the_weight_one_where_sums_share_it() -> None:
    lines = [f"xz{j} = a{j}*x1 + b{j}*x2 {'-+'[j % 2]} x3" for j in range(4)]
    found = planned("\n".join(lines))
    (group,) = groups(found, AffineGroup)
    assert called(found, group.inputs) == ["x1", "x2", "x3"]
    assert called(found, [row[2] for row in group.weights]) == ["new", "1", "new", "1"]
    assert [s.name for s in found.uniform] == ["neg"]  # -1, once
    assert names(found) == ["affine"]


def test_a_bypass_of_its_own_for_each_sum_does_not_hide_the_layer() -> None:
    lines = [f"xz{j} = tanh(a{j}*x1 + b{j}*x2 + x{j + 3})" for j in range(4)]
    found = planned("\n".join(lines))
    (group,) = groups(found, AffineGroup)
    assert called(found, group.inputs) == ["x1", "x2"]
    assert Counter(names(found)) == {"affine": 1, "add": 4, "tanh": 4}


@pytest.mark.parametrize(
    "text",
    [
        "xw = a*x1 + b*x2 + c",  # too small
        "xw = a*x1 + b*x2; xv = a*x3 + b*x2; xu = a*x1 + b*x3",  # over different values
        "xw = x1*x2 + x3*x4 + x5*x6 + x7*x8 + x9*x0 + x1*x3 + x2*x4 + x3*x5 + x4*x6",
        "xw = a*(b*(c*(d*(e*(f*(g*(h*x1)))))))",
        "xw = x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9",
    ],
)
def test_what_is_no_matrix_is_left_alone(text: str) -> None:
    assert groups(planned(text), AffineGroup) == []


def test_partial_sums_that_others_need_stay() -> None:
    inner = " + ".join(f"a{i}*x{i}" for i in range(8))
    found = planned(f"xs = {inner}; xw = xs + b*x9; xv = sin(xs); output xw, xv")
    (group,) = groups(found, AffineGroup)
    assert called(found, group.outputs) == ["xs"]
    assert sorted(names(found)) == ["affine", "fma", "sin"]


@pytest.mark.parametrize("more", ["xv = sin(xp); output xw, xv", "output xp, xw"])
def test_a_product_that_others_need_is_a_value_like_any_other(more: str) -> None:
    rest = " + ".join(f"a{i}*x{i}" for i in range(1, 9))
    found = planned(f"xp = a0*x0; xw = xp + {rest}; {more}")
    (group,) = groups(found, AffineGroup)
    assert called(found, group.inputs) == [f"x{i}" for i in range(1, 9)]
    assert [n for n in names(found) if n != "sin"] == ["mul", "affine", "add"]


# --- networks ------------------------------------------------------------------------------------


def shapes(found: Plan, kind: type) -> list[tuple[int, int]]:
    if kind is AffineGroup:
        return [(len(g.outputs), len(g.inputs)) for g in groups(found, AffineGroup)]
    return [(len(g.left), len(g.right)) for g in groups(found, OuterProduct)]


def test_a_network_and_its_reverse_sweep_are_matrices() -> None:
    found = build_plan(loss_program(network(4, 8, 8, 1)), sums=True)
    # forward 4 -> 8 -> 8 -> 1, back 8 -> 8; the adjoints of a single output are products
    assert shapes(found, AffineGroup) == [(8, 4), (8, 8), (1, 8), (8, 8)]
    assert shapes(found, OuterProduct) == [(1, 8), (8, 8), (8, 4)]
    back = groups(found, AffineGroup)[3]
    forth = groups(found, AffineGroup)[1]
    first_layer = [f"h1_{i}" for i in range(8)]
    by_name = dict(zip(called(found, back.outputs), back.weights, strict=True))
    order = [int(n.rpartition("_")[2]) for n in called(found, back.inputs)]
    assert sorted(by_name) == [f"bar_{n}" for n in first_layer]
    for i, name in enumerate(first_layer):  # the transposed matrix
        column = [row[called(found, forth.inputs).index(name)] for row in forth.weights]
        assert by_name[f"bar_{name}"] == tuple(column[j] for j in order), i
    assert Counter(names(found)) == {
        "affine": 4, "outer": 3, "tanh": 16, "fnma": 16, "mul": 25, "sub": 1, "sum": 17, "dot": 1,
    }  # fmt: skip


@pytest.mark.parametrize("sizes", [(3, 5, 2), (2, 4, 4, 4, 3), (6, 6, 6)])
@pytest.mark.parametrize("bypass", [False, True])
def test_every_layer_is_found(sizes: tuple[int, ...], bypass: bool) -> None:
    found = build_plan(loss_program(network(*sizes, bypass=bypass)), sums=True)
    forward = [(b, a) for a, b in pairwise(sizes) if a * b >= 8]
    back = [(a, b) for a, b in pairwise(sizes[1:]) if a * b >= 8]
    assert Counter(shapes(found, AffineGroup)) == Counter([*forward, *back])
    weights = [{a, b} for a, b in pairwise(sizes)]
    assert sorted(map(sorted, map(set, shapes(found, OuterProduct)))) == sorted(
        map(sorted, weights)
    )


# --- reductions ----------------------------------------------------------------------------------


def test_products_are_summed_without_being_stored() -> None:
    found = planned("xb = sin(xa); xw = xb*xa; xv = xb + 1; output xw, xv", sums=True)
    assert names(found) == ["sin", "dot", "add", "sum"]
    assert found.accumulators == (-1, found.tape.outputs["xv"])
    assert found.summed == {"xw": 0, "xv": 1}
    assert found.outputs == {}


def test_a_product_that_is_used_is_stored() -> None:
    found = planned("xw = xa*xb; xv = sin(xw); output xw, xv", sums=True)
    assert names(found) == ["mul", "sum", "sin", "sum"]


def test_a_sum_stands_right_after_what_it_needs() -> None:
    found = planned(
        "xw = sin(xa); xv = exp(xw); xu = xv*xw; xt = xa*xa; output xw, xu, xt", sums=True
    )
    assert names(found) == ["dot", "sin", "sum", "exp", "dot"]


def test_equal_values_share_an_accumulator_and_inputs_are_summed_too() -> None:
    found = planned(
        "xw = xa*xb; xv = xb*xa; xu = xa*xb; xt = xa; xs = k; output xw, xv, xu, xt, xs", sums=True
    )
    assert names(found) == ["sum", "dot"]
    assert found.summed == {"xw": 0, "xv": 0, "xu": 0, "xt": 1}
    assert found.outputs == {"xs": found.tape.names["k"]}


def test_all_products_of_two_lists_are_a_block() -> None:
    lines = [f"xw{i}{j} = x{i}*xb{j}" for i in range(3) for j in range(4)]
    found = planned("\n".join(lines), sums=True)
    (group,) = groups(found, OuterProduct)
    assert [sorted(called(found, side)) for side in (group.left, group.right)] == [
        ["x0", "x1", "x2"],
        ["xb0", "xb1", "xb2", "xb3"],
    ]
    assert names(found) == ["outer"]
    for value, row in zip(called(found, group.left), group.accumulators, strict=True):
        for other, number in zip(called(found, group.right), row, strict=True):
            assert found.summed[f"xw{value[1:]}{other[2:]}"] == number


def test_a_block_may_have_gaps() -> None:
    wanted = [(i, j) for i in range(3) for j in range(4) if (i, j) != (1, 2)]
    lines = [f"xw{i}{j} = x{i}*xb{j}" for i, j in wanted]
    found = planned("\n".join(lines), sums=True)
    (group,) = groups(found, OuterProduct)
    assert sum(row.count(-1) for row in group.accumulators) == 1
    assert names(found) == ["outer"]


def test_a_weight_gradient_that_something_else_needs_leaves_a_gap() -> None:
    lines = [f"xw{i}{j} = x{i}*xb{j}" for i in range(3) for j in range(4)]
    found = planned("\n".join([*lines, "xq = sin(xw12)"]), sums=True)
    # xw12 is no output any more: sin takes it
    assert sum(row.count(-1) for row in groups(found, OuterProduct)[0].accumulators) == 1
    assert names(found) == ["mul", "outer", "sin", "sum"] or Counter(names(found)) == {
        "mul": 1, "outer": 1, "sin": 1, "sum": 1,
    }  # fmt: skip


def test_blocks_that_share_a_side_are_told_apart() -> None:
    # x with both layers, h with the second alone: x-z1, x-z2, h-z2, as with a bypass
    pairs = [(f"x{i}", f"xz{j}") for i in range(6) for j in range(12)]
    pairs += [(f"xh{i}", f"xz{j}") for i in range(6) for j in range(2)]
    lines = [f"xw{n} = {a}*{b}" for n, (a, b) in enumerate(pairs)]
    found = planned("\n".join(lines), sums=True)
    assert names(found) == ["outer"] * len(groups(found, OuterProduct))
    assert len(groups(found, OuterProduct)) == 2
    assert not any(-1 in row for g in groups(found, OuterProduct) for row in g.accumulators)


@pytest.mark.parametrize(
    "text",
    [
        "xw = xa*xa; xv = xb*xb; xu = xc*xc; xt = xd*xd",  # squares
        "xw = xa*xb; xv = xb*xc; xu = xc*xa; xt = xd*xe",  # a triangle has no two sides
        "xw = xa*xb; xv = xc*xd; xu = xe*xf; xt = xg*xh",
    ],
)
def test_what_is_no_block_stays_single(text: str) -> None:
    assert names(planned(text, sums=True)) == ["dot"] * 4


# --- one go --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "operands"),
    [
        ("xa*xb + xc", "fma", "xa xb xc"),
        ("xc + xa*xb", "fma", "xa xb xc"),
        ("xa*xb - xc", "fms", "xa xb xc"),
        ("xc - xa*xb", "fnma", "xa xb xc"),
        ("k*xa + m", "fma", "k xa m"),
        ("2*xa - 1", "fms", "2 xa 1"),
    ],
)
def test_a_product_that_one_sum_uses_is_a_part_of_it(text: str, name: str, operands: str) -> None:
    found = planned(f"xw = {text}")
    assert names(found) == [name]
    assert called(found, found.varying[0].operands) == operands.split()


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("xw = xa*xb + xc*xd", ["mul", "fma"]),  # one of two
        ("xp = xa*xb; xw = xp + xc; output xp, xw", ["mul", "add"]),  # an output
        ("xp = xa*xb; xw = xp + xc; xv = xp - xd; output xw, xv", ["mul", "add", "sub"]),
        ("xp = xa*xb; xw = xp + xp", ["mul", "add"]),
        ("xw = (xa*xb)*xc + xd", ["mul", "fma"]),
        ("xw = xa*xb + xc*xd + xe*xf", ["mul", "fma", "fma"]),
    ],
)
def test_other_products_stay(text: str, steps: list[str]) -> None:
    assert names(planned(text)) == steps


def test_a_summed_factor_is_not_taken_in() -> None:
    found = planned("xp = xa*xb; xw = xp + xc; output xp, xw", sums=True)
    assert names(found) == ["mul", "sum", "add", "sum"]


@pytest.mark.parametrize("text", ["sin(xa)*cos(xa)", "cos(xa)*sin(xa)"])
def test_sine_and_cosine_of_one_value_are_one_step(text: str) -> None:
    found = planned(f"xb = sin(xa); xc = cos(xa); xw = {text}; output xb, xc")
    (step,) = found.varying
    assert step.name == "sincos"
    assert called(found, step.results) == ["xb", "xc"]


def test_of_different_values_they_are_two() -> None:
    assert names(planned("xb = sin(xa); xc = cos(xd); output xb, xc")) == ["sin", "cos"]


def test_a_primitive_with_the_name_of_a_step_is_refused() -> None:
    with pytest.raises(UsageError, match="'fma'"):
        cgprimer.register_primitive("fma", lambda a, b, c: a * b, partials=("b", "a", "0"))
