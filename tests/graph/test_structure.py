"""Names, roles, order and the two dictionaries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

import cgprimer
from cgprimer.errors import UsageError
from tests.approval import refused
from tests.graph.graph_texts import INPUTS, Plan, plans

LECTURE = "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3"


def test_the_lectures_two_dictionaries() -> None:
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
        ("xd = xb + xa; xc = xa*xb", ("xb", "xa", "xd", "xc")),
        ("xp = xb; xw = xc + xp", ("xb", "xp", "xc", "xw")),  # xp is free before xc, and earlier
        ("xd = xc + xa; xc = xb", ("xa", "xb", "xc", "xd")),
        ("xz = xq; xa = xq", ("xq", "xz", "xa")),
        ("input xk, xj; xw = xj*xk", ("xk", "xj", "xw")),
        ("output xb; xa = 1; xb = 2", ("xb", "xa")),
        ("x9 = 1; x10 = 2; x2 = x9 + x10", ("x9", "x10", "x2")),
        ("input xfree = 1; xw = 2", ("xfree", "xw")),
    ],
)
def test_vertices_come_in_topological_order_ties_by_first_appearance(text, variables) -> None:
    assert cgprimer.parse(text).variables == variables


def test_roles() -> None:
    graph = cgprimer.parse("b = x0*a; xw = k*b\ninput a\nparameter x0 = 2")
    roles = ["input", "inner", "output", "parameter", "parameter"]
    assert [graph.role(n) for n in ("a", "b", "xw", "x0", "k")] == roles
    assert graph.inputs == ("a",)
    assert graph.parameters == ("x0", "k")
    assert graph.variables == ("a", "b", "xw")
    assert graph.depends_on == {"b": ["a"], "xw": ["b"]}
    assert graph.parameters_of == {"b": ["x0"], "xw": ["k"]}


def test_several_outputs_are_named_where_one_is_needed() -> None:
    with refused(UsageError, "xb ... xc"):
        cgprimer.parse("xb = xa; xc = xa").only_output()
    with refused(UsageError):
        cgprimer.parse("input xa").only_output()


CHANGES: dict[type, dict[str, tuple[Any, ...]]] = {
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
def test_its_dictionaries_and_lists_are_read_only(of: str) -> None:
    mapping = eval(f"graph.{of}", {"graph": cgprimer.parse(LECTURE)})  # noqa: S307
    before = repr(mapping)
    for method, arguments in CHANGES[list if "[" in of else dict].items():
        with refused(UsageError):
            getattr(mapping, method)(*arguments)
    assert repr(mapping) == before


@given(plans())
@settings(max_examples=25, deadline=None)
def test_structure_of_random_graphs_and_of_their_texts(plan: Plan) -> None:
    graph = cgprimer.parse(plan.text)
    used = plan.names_used
    place = {name: i for i, name in enumerate(graph.variables)}
    assert set(graph.definitions) == set(plan.definitions)
    assert set(graph.parameters) == set().union(*used.values()) - {*plan.definitions, *INPUTS}
    for name, tails in used.items():
        variables = {t for t in tails if t in place}
        assert graph.depends_on.get(name, []) == sorted(variables, key=place.__getitem__)
        assert all(place[t] < place[name] for t in variables)
    turned = {(u, v) for u, heads in graph.leads_to.items() for v in heads}
    assert turned == {(u, v) for v, tails in graph.depends_on.items() for u in tails}
    assert list(graph.leads_to) == [n for n in graph.variables if n in graph.leads_to]
    assert all(h == sorted(h, key=place.__getitem__) for h in graph.leads_to.values())
    loose = set(plan.definitions) - set(graph.leads_to)
    assert set(graph.outputs) == set(plan.outputs or loose)
    again = cgprimer.parse(str(graph))
    for what in ("variables", "inputs", "outputs", "parameters", "values"):
        assert getattr(again, what) == getattr(graph, what)
    assert repr((again.depends_on, again.leads_to)) == repr((graph.depends_on, graph.leads_to))
    assert str(again) == str(graph)


def test_the_text_of_a_graph() -> None:
    graph = cgprimer.parse(
        "input xa=.50;input xb;parameter k=-0.0 # slope\nxw=(k*xa)+xb**2;output xw"
    )
    assert str(graph) == "input xa = 0.5, xb\nparameter k = -0\nxw = k*xa + xb^2\noutput xw"
    assert repr(graph) == "<ExpressionGraph <expressions>: 2 inputs, 1 expression, 1 parameter>"


def test_print_shows_the_first_lines_of_a_graph_that_nobody_reads_to_its_end() -> None:
    graph = cgprimer.parse("\n".join(f"xb{i} = k*xa{i}" for i in range(2_000)))
    shown = str(graph).splitlines()
    assert shown[0] == "xb0 = k*xa0"
    assert len(shown) == 101
    assert "1,900 more" in shown[-1]
    assert "graph.text" in shown[-1]
    assert len(graph.text.splitlines()) == 2_000


def test_a_comment_is_no_layer():
    """Layers are those that the expressions apply; a comment or a name only mentions them."""
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
def test_dropout_multiplies_by_its_mean_without_training(keep: str, expected: float) -> None:
    graph = cgprimer.parse(f"xh = 1 + 2*dropout(xa, {keep})")
    assert graph.evaluate({"xa": 1.0})["xh"] == expected
    for wrong in ("-0.1", "1.5", "xa"):
        with pytest.raises(cgprimer.CgprimerError):
            cgprimer.parse(f"xh = dropout(xa, {wrong})").evaluate({"xa": 1.0})
