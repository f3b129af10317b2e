"""Exported files run, accept their results, and agree with the package and with lectures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.analysis.export.exporter import TARGETS
from cgprimer.core.operations import Primitive, primitives
from cgprimer.errors import SourceError, UsageError
from tests.approval import approved, refused
from tests.arrays.array_graphs import Case as ArrayCase
from tests.arrays.array_graphs import array_cases
from tests.cases.case_tools import example
from tests.cli.cli_tools import bad, good
from tests.exporting.running import run, run_all_correct, run_correct, run_file
from tests.methods.graph_strategies import Case, cases

PROCESSES = settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LECTURE = {"ab": 5.671875, "ac": 11.34375, "bc": 5.671875, "cd": 0.25}
CASES = {  # A1, B2, C1, E1, E3: what the lectures print
    "lecture": ("xw", 21.546875, LECTURE),
    "logistic_loss": ("l", 0.125, {"w": -0.25, "b": -0.125, "x": -0.0625}),
    "two_paths": ("L", 15.0, {"a": 2.5, "w1": -1.0, "w2": -8.0, "w3": -6.0, "w4": 2.0}),
    "baydin": ("v5", 11.652071455223084, {"x1": 5.5, "x2": 1.7163378145367737}),
    "mazur": ("xe", 0.2983711087600027, {"w5": 0.08216704056423078, "w1": 0.0004385677344743471}),
}
SLOW = [pytest.mark.slow]


def targets(*quick: str, of: tuple[str, ...] = TARGETS) -> list[object]:
    """Return all targets, of which only the quick ones are in the default run."""
    return [pytest.param(t, marks=[] if t in quick else SLOW) for t in of]


@pytest.mark.parametrize("target", targets("python"))
@pytest.mark.parametrize("name", CASES)
def test_lecture_cases(name: str, target: str, tmp_path: Path) -> None:
    of, value, slopes = CASES[name]
    text = cgprimer.export(example(name), target, wrt=tuple(slopes))
    if name == "lecture":  # in a process, with nothing but what the file imports
        assert run_file(text, target, tmp_path).returncode == 0
    found = run_correct(text, target, tmp_path)
    if target != "latex":
        near = {of: value, **{f"d {of} / d {n}": slope for n, slope in slopes.items()}}
        assert found == pytest.approx(near, rel=1e-14)


@pytest.mark.parametrize("target", targets("numpy"))
def test_backpropagation_of_matrices(target: str, tmp_path: Path) -> None:
    graph = example("matrix_backpropagation")
    text = cgprimer.export(graph, target, wrt=("w1", "w2"))
    done = run(text, target, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    if target in ("numpy", "torch", "jax"):
        assert "ok    point 0: d L / d w1 = [[2.0, 0.0], [4.0, 0.0]]" in done.stdout
        assert "ok    sample 3: d L / d w2 = " in done.stdout
    elif target in ("python", "c"):
        assert re.search(r"point 0: d L / d w1(\[1,0\]|_1_0) = 4(\.0)?\b", done.stdout)


@pytest.mark.parametrize("target", targets("python", of=TARGETS[:5]))
@pytest.mark.parametrize(
    "how",
    [{"method": m} for m in ("forward", "path-sum", "symbolic", "finite-difference")]
    + [{"method": "forward", "carry": True}, {"method": "finite-difference", "scheme": "forward"},
       {"method": "finite-difference", "step": 1e-6}],
    ids=str,
)  # fmt: skip
def test_methods(target: str, how: dict[str, Any], tmp_path: Path) -> None:
    found = run_correct(cgprimer.export(example("lecture"), target, **how), target, tmp_path)
    exact = how["method"] != "finite-difference"
    for name, slope in LECTURE.items():
        rel = 1e-14 if exact else 1e-6 if how.get("scheme") != "forward" else 1e-5
        assert found[f"d xw / d {name}"] == pytest.approx(slope, rel=rel)


def exported(case: Case | ArrayCase, target: str) -> str:
    """Export a random graph; reject constant graphs."""
    graph, how = case.graph, dict[str, Any]()
    if isinstance(case, Case):
        at, how["wrt"] = case.at, case.names
    else:
        output, tape = graph.outputs[-1], cgprimer.tape(graph)
        rank = len(tape.shapes[tape.outputs[output]])
        how["of"] = output + (f"[{','.join('0' * rank)}]" if rank else "")
        at, how["wrt"] = ({n: case.values[n] for n in case.leaves}, graph.inputs + graph.parameters)
    try:
        return cgprimer.export(graph, target, at, **how)
    except UsageError as error:
        assume("is constant" not in str(error))
        raise


@pytest.mark.parametrize("target", ["python", "c"])
@given(case=cases())
@PROCESSES
def test_random_graphs_have_the_derivatives_of_the_package(
    target: str, case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = run_correct(exported(case, target), target, tmp_path_factory.mktemp("run"))
    of, rel = case.graph.outputs[0], 1e-15 if target == "python" else 1e-14
    expected = cgprimer.gradient(case.graph, case.at, wrt=case.names)
    printed = [v for name, v in found.items() if name.startswith(f"d {of} / d ")]
    assert printed == pytest.approx(list(expected.values()), rel=rel, abs=rel * case.scale)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "strategy"),
    [(target, cases) for target in TARGETS]
    + [(target, array_cases) for target in ("numpy", "torch", "jax", "c")],
)
@given(data=st.data())
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_graphs(
    target: str, strategy: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    several = data.draw(st.lists(strategy(), min_size=8, max_size=8))
    texts = (exported(case, target) for case in several)
    run_all_correct(texts, target, tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("target", targets("numpy", of=("numpy", "torch", "jax")))
def test_operations_that_move_elements(target: str, tmp_path: Path) -> None:
    """Backwards along several axes, by lists, joined, transposed, reduced, stacked."""
    graph = cgprimer.parse(
        """
        input x[3,4], z[2,3,4]; parameter v[4], k
        xa = x[::-1, ::-1] + x[2:0:-1, 3:0:-2][0,0]
        xb = concatenate(xa[[0,2,0], 1:3], x[::2, :2][[1,1,0]], 1) * k
        xc = transpose(z, 2, 0, 1) @ (xb @ v)
        xd = reshape(largest(xc*xc, 1) - mean(z), 2, 2)[::-1] + norm(v)
        xe = sum(xd*xd, 0) + x[-1, [1,1]] + dot(v, xb[0])
        xw = sum(softmax(xe)*xe) + max(xd) + min(v); output xw
        """
    )
    text = cgprimer.export(graph, target, wrt=("x", "z", "v", "k"))
    done = run(text, target, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("[::-1, 1:3]", "torch.flip(x[..., 0:3, 1:3], (-2,))"),
        ("[1:3, ::-1]", "torch.flip(x[..., 1:3, 0:4], (-1,))"),
        ("[::-1, ::-1]", "torch.flip(x[..., 0:3, 0:4], (-1, -2))"),
        ("[::-1, 2]", "torch.flip(x[..., 0:3, 2], (-1,))"),
    ],
)
def test_negative_steps_become_flips_in_torch(index: str, expected: str) -> None:
    graph = cgprimer.parse(f"input x[3,4]; parameter k; xa = k*x{index}; xw = sum(xa)")
    assert f" = {expected}" in cgprimer.export(graph, "torch")


def test_arrays_of_scalars(tmp_path: Path) -> None:
    """No leaf is an array, but operations on scalars return arrays."""
    lines = ["parameter a = 2, b = 3; xv = reshape(a, 1); xu = reshape(b, 1)"]
    graph = cgprimer.parse([*lines, "xs = concatenate(xv, xu); xw = sum(xs*xs)"])
    found = run_correct(cgprimer.export(graph, "numpy"), "numpy", tmp_path)
    assert found == {"xw": 13.0, "d xw / d a": 4.0, "d xw / d b": 6.0}


def format_primitive(row: Primitive) -> str:
    """Return an expression of a primitive that is finite and has a finite derivative."""
    operators = {"add": "{}+{}", "sub": "{}-{}", "mul": "{}*{}", "div": "{}/{}", "neg": "-{}",
                 "copy": "{}", "pow": "{}^{}"}  # fmt: skip
    form = operators.get(row.name, f"{row.spelling}({', '.join(['{}'] * row.arity)})")
    for first in ("a", "(a + 2)"):
        text = form.format(first, "b", "c")
        graph = cgprimer.parse(f"parameter a, b, c; w = {text}; output w")
        if math.isfinite(cgprimer.gradient(graph, POINT, wrt="a")["a"]):
            return text
    raise AssertionError(row)


POINT = {"a": 0.375, "b": 0.75, "c": 1.5}
EDGES = (POINT, dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 1.0), {"a": 800, "b": -2, "c": 1},
         {"a": -math.inf, "b": math.inf, "c": math.nan})  # fmt: skip


@pytest.mark.parametrize("target", targets("python", "c"))
def test_primitives(target: str, tmp_path: Path) -> None:
    texts = [format_primitive(row) for row in primitives() if row.built_in]
    lines = [f"v{k} = {text}" for k, text in enumerate(texts)]
    total = " + ".join(f"{k + 1}*v{k}" for k in range(len(texts)))
    graph = cgprimer.parse(["parameter a, b, c", *lines, f"w = {total}", "output w"])
    text = cgprimer.export(graph, target, POINT)
    run_correct(text, target, tmp_path)
    assert not re.search(r"^def .*(\) -> |: (float|bool|int|str)\b)", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS[:5])
def test_primitives_at_edges(target: str, tmp_path: Path) -> None:
    """At poles, kinks, ties and far outside: each alone, since a sum of all would be nan."""
    edges = EDGES[1:2] if target in ("c", "jax") else EDGES  # compilers take their time
    texts = [format_primitive(row) for row in primitives() if row.built_in]
    graphs = [cgprimer.parse(f"parameter a, b, c; w = 1*{text}; output w") for text in texts]
    exports = (cgprimer.export(graph, target, at) for graph in graphs for at in edges)
    run_all_correct(exports, target, tmp_path)


def test_zero_seed_times_infinite_derivative_is_zero(tmp_path: Path) -> None:
    graph, at = cgprimer.parse("xw = sqrt(a) + k*b"), {"a": 0, "k": 2, "b": 3}
    assert "dot_a=0.0" in cgprimer.export(graph, "python", at | {"a": 1}, method="forward")
    text = cgprimer.export(graph, "python", at, wrt=("a", "k", "b"), method="forward")
    found = run_correct(text, "python", tmp_path)
    assert list(found.values()) == [6.0, math.inf, 3.0, 2.0]


HOSTILE = """
    lambda int for if while h value gradient exp sin power div main np torch jax jnp math inf nan
    POINTS step float print range I NULL NAN errno y0 j1 __LINE__ __name__ _ bar_w dot_w größe
    α ж 中 def a b out True None sympy number at where double printf v1 v2 isfinite distance move
    tangent samples static register derivatives step_size batch_shape to_arrays to_tensor is_close
    compute_scale compute_results count_wrong check_batch expected result tolerance same zeros
"""


@pytest.mark.parametrize("target", targets("python", "c"))
def test_reserved_names_and_hostile_texts(target: str, tmp_path: Path) -> None:
    names = HOSTILE.split()
    given_ = ", ".join(f"{name} = {0.1 * (k % 7) + 0.2:.2f}" for k, name in enumerate(names))
    total = " + ".join(f"sin({name})*exp({name})" for name in names)
    text = f'# """ */ \\ \'\'\' %s ??/\nparameter {given_}\nw = {total} # */ """ \\\nz = w^2/3'
    graph = cgprimer.parse(text, name='evil"""\\*/\nimport os#.cg')
    made = cgprimer.export(graph, target)
    found = run_correct(made, target, tmp_path)
    if target != "latex":
        assert "double_" in made if target == "c" else "lambda_" in made
        assert len(found) == 1 + len(names)
        expected = cgprimer.gradient(graph)
        assert list(found.values())[1:] == pytest.approx(list(expected.values()), rel=1e-14)
    assert "evil" not in made
    assert "%s" not in made.replace('"%s point', "").replace(": %s =", "")


@pytest.mark.parametrize("target", targets("python", "c", of=TARGETS[:5]))
def test_values_that_are_not_finite(target: str, tmp_path: Path) -> None:
    graph = cgprimer.parse(
        "parameter a = 2; xb = a*(1/0) + 4.9e-324*a + (0/0); xc = a*1e308; xd = -a/0"
        "; xw = where(less(a, 3), 2e-320*a, xb) + xc - xd; output xw"
    )
    found = run_correct(cgprimer.export(graph, target), target, tmp_path)
    assert found["xw"] == math.inf
    assert math.isinf(cgprimer.gradient(graph)["a"]) == math.isinf(found["d xw / d a"])


def test_comments_name_the_edge_of_each_product() -> None:
    text = cgprimer.export(example("lecture"), "python")
    lines = dict(re.findall(r"^    (?:# )?(\w+) = .*  # (.+)$", text, re.MULTILINE))
    assert lines == {
        "bar_cd": "cd -> xw", "bar_xz": "xz -> xw", "bar_xy": "xy -> xz",
        "bar_ab": "bc -> xz, ab -> xy", "bar_ac": "ac -> xy",
    }  # fmt: skip
    paths = cgprimer.export(example("two_paths"), "python", wrt="a", method="path-sum")
    assert "# a -> b -> d -> L, a -> c -> d -> L" in paths


@pytest.mark.parametrize("target", targets("python", of=("python", "numpy", "torch", "jax")))
def test_exported_file_is_a_module(target: str, tmp_path: Path) -> None:
    """The file is also a module."""
    (tmp_path / "exported.py").write_text(cgprimer.export(example("lecture"), target))
    text = "import exported\nprint(float(exported.gradient(0.5, 1, 2, 3, 4)['ac']))"
    done = run_file(text, target if target != "python" else "numpy", tmp_path, "main")
    assert done.stdout == "11.34375\n", done.stderr


NUMERIC = tuple(target for target in TARGETS[:6] if target != "sympy")  # sympy exports formulas


@pytest.mark.parametrize("target", targets("python", "c", of=NUMERIC))
def test_step_of_differences(target: str, tmp_path: Path) -> None:
    """At 8 it is 8 times the cube root of eps, a power of two: no digit of the cube is rounded."""
    graph = cgprimer.parse("input xa = 8; xw = xa*xa*xa")
    found = run_correct(
        cgprimer.export(graph, target, method="finite-difference"), target, tmp_path
    )
    assert found["d xw / d xa"] == 192 + 2.0**-28


# --- what cannot be exported ---------------------------------------------------------------------


@pytest.fixture
def wobble() -> Iterator[None]:
    """A registered function with a form for sympy, but not for other targets."""
    cgprimer.register_primitive("wobble", lambda a: a * a, partials="2*a", sympy=lambda _, a: a**2)
    yield
    cgprimer.unregister_primitive("wobble")


@pytest.mark.usefixtures("wobble")
def test_registered_function_is_rejected_at_its_position() -> None:
    graph = cgprimer.parse("xb = 2*xa\nxw = k*wobble(xb + 1) + 3", name="wobbly.cg")
    for target in ("c", "numpy"):
        with refused(SourceError, "wobbly.cg:2:8"):
            cgprimer.export(graph, target)
    assert "wobble" in cgprimer.export(graph, "latex")
    assert "**2" in cgprimer.export(graph, "sympy")


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("lecture", {"to": "pyton"}, "'python'"),
        ("lecture", {"of": "xq"}, "'xq'"),
        ("softmax", {"wrt": "x"}, "of='s[0]'"),
        ("lecture", {"at": {"xa": [1.0, 2.0]}}, "'xa'"),
        ("lecture", {"to": "sympy", "method": "finite-difference"}, ""),
        ("lecture", {"wrt": "xx", "method": "finite-difference"}, "'xx'"),
        ("lecture", {"method": "finite-difference", "scheme": "complex-step"}, ""),
        ("lecture", {"method": "reverse", "carry": True}, "'carry'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_rejected(name: str, how: dict[str, object], said: str) -> None:
    with refused(UsageError, said):
        cgprimer.export(example(name), **how)  # type: ignore[arg-type]


def test_file_is_overwritten_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("mine")
    approved(bad("export", "lecture", "-o", "a.py", cwd=tmp_path), "a.py")
    assert (tmp_path / "a.py").read_text() == "mine"
    good("export", "lecture", "-o", "a.py", "--force", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text() == cgprimer.export(example("lecture"))
    assert good("export", "lecture") == cgprimer.export(example("lecture"))


def test_file_lists_renamed_names(tmp_path: Path) -> None:
    names = ["b", "a", "value", "for", "k", "lambda", "if"]
    graph = cgprimer.parse(f"parameter {', '.join(names)}; w = {' + '.join(names)}")
    said = "value -> value_, for -> for_, lambda -> lambda_, if -> if_\n"
    assert f"Renamed: {said}" in cgprimer.export(graph)


def test_options_of_the_command_reach_the_file() -> None:
    text = good("export", "-e", "xw = k*xa", "--loss", "squared-error", "--wrt", "k,xa",
                "--at", "k=2,xa=3,target=5", "--to", "numpy", "--method", "forward")  # fmt: skip
    assert '"at": {"xa": 3.0, "target": 5.0, "k": 2.0},' in text
    assert "def tangent(xa, target, k, dot_k, dot_xa):" in text
    assert "cobol" in bad("export", "lecture", "--to", "cobol")
    approved(bad("export", "lecture", "--step", "1e-3"), "--method finite-difference")
