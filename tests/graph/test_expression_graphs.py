"""Names, roles, order, dictionaries and values of a graph; generated networks."""

from __future__ import annotations

import json
import math
import re
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import networks
from cgprimer.errors import MissingValueError, UsageError
from tests.approval import refused
from tests.tape.tape_running import POINTS, texts

LECTURE = "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3"


def test_depends_on_and_leads_to_of_the_lecture_example() -> None:
    graph = cgprimer.parse(LECTURE)
    assert repr(graph.depends_on) == (
        "{'xx': ['xa'], 'xy': ['xa', 'xx'], 'xz': ['xx', 'xy'], 'xw': ['xx', 'xz']}"
    )
    assert repr(graph.leads_to) == (
        "{'xa': ['xx', 'xy'], 'xx': ['xy', 'xz', 'xw'], 'xy': ['xz'], 'xz': ['xw']}"
    )
    assert json.loads(json.dumps(graph.leads_to)) == graph.leads_to


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("xd = xb + xa; xc = xa*xb", "xb xa xd xc"),
        ("xp = xb; xw = xc + xp", "xb xp xc xw"),  # xp and xc are both ready; xp appears first
        ("xd = xc + xa; xc = xb", "xa xb xc xd"),
        ("xz = xq; xa = xq", "xq xz xa"),
        ("input xk, xj; xw = xj*xk", "xk xj xw"),
        ("output xb; xa = 1; xb = 2", "xb xa"),
        ("x9 = 1; x10 = 2; x2 = x9 + x10", "x9 x10 x2"),
        ("input xfree = 1; xw = 2", "xfree xw"),
    ],
)
def test_variables_are_in_topological_order_with_ties_by_appearance(text, variables) -> None:
    assert " ".join(cgprimer.parse(text).variables) == variables


def test_roles_of_names() -> None:
    graph = cgprimer.parse("b = x0*a; xw = k*b\ninput a\nparameter x0 = 2")
    roles = ["input", "inner", "output", "parameter", "parameter"]
    assert [graph.role(n) for n in ("a", "b", "xw", "x0", "k")] == roles
    assert graph.inputs == ("a",)
    assert graph.parameters == ("x0", "k")
    assert graph.variables == ("a", "b", "xw")
    assert graph.depends_on == {"b": ["a"], "xw": ["b"]}
    assert graph.parameters_of == {"b": ["x0"], "xw": ["k"]}


def test_only_output_raises_without_a_unique_output() -> None:
    with refused(UsageError, "xb ... xc"):
        cgprimer.parse("xb = xa; xc = xa").only_output()
    with refused(UsageError):
        cgprimer.parse("input xa").only_output()


MUTATIONS: dict[type, dict[str, tuple[Any, ...]]] = {
    dict: {"update": ({"zz": 1},), "__setitem__": ("zz", 1), "__delitem__": ("xx",), "pop": ("xx",),
           "__ior__": ({"zz": 1},), "setdefault": ("zz", 1), "clear": (), "popitem": ()},
    list: {"append": ("xw",), "extend": (["xw"],), "__iadd__": (["xw"],), "insert": (0, "xw"),
           "__setitem__": (0, "xw"), "__delitem__": (0,), "pop": (), "remove": ("xa",),
           "sort": (), "reverse": (), "clear": ()},
}  # fmt: skip


@pytest.mark.parametrize(
    "of", ["depends_on", "leads_to", "parameters_of", "values", "definitions", "depends_on['xx']",
           "leads_to['xa']", "parameters_of['xy']"],
)  # fmt: skip
def test_graph_attributes_are_read_only(of: str) -> None:
    mapping = eval(f"graph.{of}", {"graph": cgprimer.parse(LECTURE)})  # noqa: S307
    before = repr(mapping)
    for method, arguments in MUTATIONS[list if "[" in of else dict].items():
        with refused(UsageError):
            getattr(mapping, method)(*arguments)
    assert repr(mapping) == before


@given(texts(numbers=["0.5", "1", "2"]), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_random_graph_structure_and_text_round_trip(text: str, random: Random) -> None:
    *lines, output = text.split("\n")
    random.shuffle(lines)
    graph = cgprimer.parse([*lines, output])
    used = {n: {*re.findall(r"[a-z]\w*", t)} for n, t in (line.split(" = ") for line in lines)}
    place = {name: i for i, name in enumerate(graph.variables)}
    assert set(graph.definitions) == set(used)
    assert set(graph.parameters) == set().union(*used.values()) - {*used, "xa", "xb"}
    for name, tails in used.items():
        variables = {t for t in tails if t in place}
        assert graph.depends_on.get(name, []) == sorted(variables, key=place.__getitem__)
        assert all(place[t] < place[name] for t in variables)
    turned = {(u, v) for u, heads in graph.leads_to.items() for v in heads}
    assert turned == {(u, v) for v, tails in graph.depends_on.items() for u in tails}
    assert list(graph.leads_to) == [n for n in graph.variables if n in graph.leads_to]
    assert all(h == sorted(h, key=place.__getitem__) for h in graph.leads_to.values())
    assert {*graph.outputs} == {*output.removeprefix("output ").split(", ")}
    assert {*cgprimer.parse(lines).outputs} == {*used} - {*graph.leads_to}
    again = cgprimer.parse(str(graph))
    for what in ("variables", "inputs", "outputs", "parameters", "values"):
        assert getattr(again, what) == getattr(graph, what)
    assert repr((again.depends_on, again.leads_to)) == repr((graph.depends_on, graph.leads_to))
    assert str(again) == str(graph)


def test_graph_text_and_repr() -> None:
    graph = cgprimer.parse(
        "input xa=.50;input xb;parameter k=-0.0 # slope\nxw=(k*xa)+xb**2;output xw"
    )
    assert str(graph) == "input xa = 0.5, xb\nparameter k = -0\nxw = k*xa + xb^2\noutput xw"
    assert repr(graph) == "<ExpressionGraph <expressions>: 2 inputs, 1 expression, 1 parameter>"


def test_str_truncates_long_graphs() -> None:
    graph = cgprimer.parse("\n".join(f"xb{i} = k*xa{i}" for i in range(2_000)))
    shown = str(graph).splitlines()
    assert shown[0] == "xb0 = k*xa0"
    assert len(shown) == 101
    assert "1,900 more" in shown[-1]
    assert "graph.text" in shown[-1]
    assert len(graph.text.splitlines()) == 2_000


def test_layers_ignore_comments_and_names():
    """Only calls in expressions count as layers."""
    graph = cgprimer.parse("# no dropout, no batchnorm here\nxbatchnorm = k*xa; output xbatchnorm")
    assert not graph.layered
    assert graph.mode({"xa": 1.0, "k": 2.0}) == ""
    with pytest.raises(UsageError, match=r"mean\.xh"):  # no running statistic
        graph.point({"mean.xh": 1.0})
    assert cgprimer.parse("xh = 1 + 2*dropout(xa, 0.5)").layers == {"dropout"}
    assert cgprimer.parse("xh = batchnorm(xa, g, b)").layered


def test_to_sympy() -> None:
    sympy = pytest.importorskip("sympy")
    expressions = cgprimer.parse(LECTURE).to_sympy()
    assert list(expressions) == ["xx", "xy", "xz", "xw"]
    xw = expressions["xw"]
    for name in ("xz", "xy", "xx"):
        xw = xw.subs(sympy.Symbol(name, real=True), expressions[name])
    at = {"xa": sympy.Rational(1, 2), "ab": 1, "bc": 2, "cd": 3, "ac": 4}
    point = {sympy.Symbol(name, real=True): value for name, value in at.items()}
    assert xw.free_symbols == set(point)
    exact = dict(zip(at, [float(sympy.diff(xw, p).subs(point)) for p in point], strict=True))
    assert exact == {"xa": 161.8125, "ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375}


@pytest.mark.parametrize(("keep", "expected"), [("0.5", 2.0), ("0", 1.0), ("1", 3.0)])
def test_dropout_scales_by_keep_probability_in_evaluation(keep: str, expected: float) -> None:
    graph = cgprimer.parse(f"xh = 1 + 2*dropout(xa, {keep})")
    assert graph.evaluate({"xa": 1.0})["xh"] == expected
    for wrong in ("-0.1", "1.5", "xa"):
        with pytest.raises(cgprimer.CgprimerError):
            cgprimer.parse(f"xh = dropout(xa, {wrong})").evaluate({"xa": 1.0})


GROUND_TRUTH = {"ab": 1, "bc": 2, "cd": 3, "ac": 4}


@given(texts(numbers=["0.5", "2", "3.25", "0.001"]), POINTS)
@settings(max_examples=15, deadline=None)
def test_values_match_python_arithmetic(text: str, point: dict[str, float]) -> None:
    graph, expected = cgprimer.parse(text), {n: np.float64(v) for n, v in point.items()}
    with np.errstate(all="ignore"):
        for name, expression in (line.split(" = ") for line in text.split("\n")[:-1]):
            expected[name] = eval(expression.replace("^", "**"), {}, expected)  # noqa: S307
    values = graph.evaluate({n: point[n] for n in (*graph.inputs, *graph.parameters)})
    assert tuple(values) == graph.variables
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(1,), (4,), (0,), (3, 2), (1, 1), (0, 3), (2, 1, 3)])
def test_values_have_the_shape_of_the_samples(shape: tuple[int, ...]) -> None:
    graph = cgprimer.parse(f"{LECTURE}; xconst = 7; xpar = ab")
    xa = np.linspace(-1.0, 1.0, math.prod(shape)).reshape(shape)
    values = graph.evaluate({"xa": xa, **GROUND_TRUTH})
    assert {v.shape for v in values.values()} == {shape}
    assert {v.dtype for v in values.values()} == {np.dtype(float)}
    np.testing.assert_allclose(values["xw"], 3 * xa**2 + (3 * xa**2 + 4 * xa) ** 3, rtol=1e-12)
    assert (values["xconst"] == 7.0).all()


def test_real_scalars_return_floats() -> None:
    for number in (2, 2.0, True, np.float32(2), np.int64(2), np.array(2.0), np.bool_(True)):
        values = cgprimer.parse("xw = 3*xa").evaluate({"xa": number})
        assert values["xw"] == 3 * float(number)
        assert type(values["xw"]) is type(values["xa"]) is float


def test_input_arrays_are_not_modified() -> None:
    xa = np.arange(3.0)
    xa.flags.writeable = False
    values = cgprimer.parse("xb = xa; xw = xb + 1").evaluate({"xa": xa})
    values["xb"] += 1  # returned arrays belong to the caller
    values["xa"] += 1
    assert xa.tolist() == [0.0, 1.0, 2.0]
    assert values["xw"].tolist() == [1.0, 2.0, 3.0]


def test_at_overrides_declared_values() -> None:
    graph = cgprimer.parse("input xa = 0.5; parameter k = 3; xw = k*xa")
    assert graph.evaluate()["xw"] == 1.5
    assert graph.evaluate({"xa": 2})["xw"] == 6.0
    assert graph.evaluate({"k": 1})["xw"] == 0.5
    assert graph.values == {"xa": 0.5, "k": 3.0}


def test_missing_value_error_suggests_a_similar_name() -> None:
    graph = cgprimer.parse("input xa = 1; parameter bb = 2; xw = ab*xa")
    with refused(MissingValueError, "'bb'"):
        graph.evaluate()
    assert graph.point(needed=["xa"]) == {"xa": 1.0, "bb": 2.0}


@pytest.mark.parametrize(
    ("at", "contains"),
    [
        ({"abb": 1}, "'abb' ... 'ab'"),
        ({"qqqq": 1}, "'qqqq'"),
        ({"xx": 1}, "'xx'"),
        ({"xa": "0.5"}, "'xa'"),
        ({"xa": None}, "'xa'"),
        ({"xa": 1j}, "'xa'"),
        ({"xa": [1, [2, 3]]}, "'xa'"),
        ({"xa": {"a": 1}}, "'xa'"),
    ],
)
def test_invalid_point_raises_usage_error(at, contains: str) -> None:
    with refused(UsageError, contains):
        cgprimer.parse(LECTURE).evaluate({"xa": 0.5, **GROUND_TRUTH, **at})


NETWORKS = {
    "mlp": partial(networks.mlp, "3-4-2"),
    "units": partial(networks.mlp, "3-4-2", scalars=True, activation="sigmoid"),
    "neuron": partial(networks.neuron, 3),
    "chain": partial(networks.chain, 5),
    "polynomial": partial(networks.polynomial, 4),
    "recurrent": partial(networks.recurrent, 3),
    "random": partial(networks.random, 8),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_generated_networks_declare_initializers(kind: str) -> None:
    graph, numbers = NETWORKS[kind](values=False), NETWORKS[kind](seed=0)
    assert graph.initializers.keys() == {*graph.inputs, *graph.parameters}
    assert (graph.inputs, graph.parameters) == (numbers.inputs, numbers.parameters)
    assert graph.shapes == numbers.shapes
    for name in graph.definitions:
        assert graph.expression(name) == numbers.expression(name)
    values = graph.evaluate()
    assert all(np.isfinite(values[name]).all() for name in graph.outputs)


def test_relu_layers_use_he_initialization() -> None:
    graph = networks.mlp("9-4-2", activation="relu", values=False)
    laws = {name: law.name for name, law in graph.initializers.items()}
    assert laws == {"x": "uniform", "W1": "he", "b1": "zeros", "W2": "glorot", "b2": "zeros"}
    units = networks.mlp("8-4-2", activation="relu", values=False, scalars=True)
    assert units.initializers["w1_3_2"].arguments == (0.5,)
    assert units.initializers["w2_1_4"].arguments == (-1.0, 1.0)


@pytest.mark.parametrize("sizes", ["4-2-1", "2-3-3-2", "1-1"])
def test_scalar_and_matrix_networks_are_equal(sizes: str) -> None:
    matrices = networks.mlp(sizes, activation="sigmoid", output="tanh", seed=3)
    units = networks.mlp(sizes, activation="sigmoid", output="tanh", seed=3, scalars=True)
    (name,) = matrices.outputs
    expected = [units.evaluate({})[output] for output in units.outputs]
    assert np.ravel(matrices.evaluate({})[name]).tolist() == pytest.approx(expected, rel=1e-14)
    assert len(units.parameters) == sum(
        int(np.prod(matrices.shapes[p])) for p in matrices.parameters
    )


def test_recurrent_unit_matches_the_lecture() -> None:
    graph = networks.recurrent(3)
    at = {"w": 0.5, "u": 1, "x1": 1, "x2": 2, "x3": 3}  # case F4
    assert graph.evaluate(at)["xh3"] == pytest.approx(0.998146762128968, rel=1e-12)
    result = cgprimer.gradient(graph, at)
    assert result["w"] == pytest.approx(0.003687663930367874, rel=1e-12)
    assert result["u"] == pytest.approx(0.011246733018121341, rel=1e-12)


def test_random_networks_are_determined_by_the_seed_and_connected() -> None:
    graphs = [networks.random(30, inputs=3, seed=seed) for seed in range(8)]
    assert len({graph.source.text for graph in graphs}) == 8
    assert networks.random(30, inputs=3, seed=4).source.text == graphs[4].source.text
    for graph in graphs:
        assert graph.outputs == ("xo",)
        assert {*graph.leads_to} >= {f"xv{k}" for k in range(1, 30)}
        assert set(graph.inputs) == {"x1", "x2", "x3"}
        assert abs(graph.evaluate({})["xo"]) < 100
