"""Differentiation rule by rule: the rules of the lecture, and every result against the gradient."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import rules
from cgprimer.core.operations.notation import unparse
from tests.approval import approved, refused
from tests.methods.graph_strategies import Case, cases
from tests.primitives.row_tools import ROWS, ids, one_line, random_points
from tests.primitives.row_tools import at as point_of

LECTURE = cgprimer.load("lecture")


def evaluate(text: str, at: dict[str, float]) -> float:
    graph = cgprimer.parse(f"out_ = {text}")
    return graph.evaluate({n: at[n] for n in (*graph.inputs, *graph.parameters)})["out_"]


def test_polynomial_of_the_lecture_step_by_step() -> None:
    """Case F17."""
    found = rules("2*x^3 - 6*x^2 + x + 1")
    assert found.result == "6*x^2 - 12*x + 1"
    approved("\n".join(f"{step.label}: {step.part} -> {step.becomes}" for step in found.steps))
    assert found.laws["power rule"] == "(x^n)' = n*x^(n - 1)"
    assert rules("2*3").laws == {"constant rule": "c' = 0"}


FORMULAS = (  # f, g, p and u are functions of x; letters other than x, y and z are constants
    "f*g", "f + g", "f - g", "c*f", "-f", "f/c", "f/g", "1/f", "y = f*g; f = u*v", "f(g(x))",
    "f(g(h(x)))", "f^n", "2^f", "f^g", "f(2)*x", "x^-2", "3^2*x^2", "0.2*x^2 + sin(x)/3",
    "cos(x^2)", "asin(2*x)", "atanh(x/2)", "log10(x)", "softplus(3*x)", "sqrt(x)", "tan(x)",
    "cot(x)", "csc(x)", "csch(x)", "coth(x)", "acsch(x)", "asec(x)", "acsc(x)", "acoth(x)",
    "xb*x^2 + xa", "a*xb", "2*3",
)  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_results_are_written_as_in_textbooks(formula: str) -> None:
    found = rules(formula)
    approved(f"{found.result} by {', '.join(step.rule for step in found.steps)}")
    assert not re.search(r"where|less|\b0\.5|[0-9]{6}", str(found))


def test_values_of_the_lecture() -> None:
    """Cases A1, D1, D2, D4 and E6."""
    exact = {"xa": 161.8125, "ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375}
    for name, slope in exact.items():
        whole = rules(LECTURE, name, inner="substitute").result
        assert evaluate(whole, LECTURE.point()) == pytest.approx(slope, rel=1e-14)
    assert [s.name for s in rules(LECTURE, "xa").sections] == ["xw", "xz", "xy", "xx"]
    assert [s.name for s in rules(LECTURE, "xa", of="xy").sections] == ["xy", "xx"]
    assert evaluate(rules("2*x^3 - 6*x^2 + x + 1").result, {"x": 2.0}) == 1
    assert [rules("2*x^2 + 3*y^2", name).result for name in "xy"] == ["4*x", "6*y"]
    at = {"x1": 1.0, "x2": 2.0, "x3": 3.0}
    assert [evaluate(rules("6*(x1 + x2^2*x3)", n).result, at) for n in at] == [6, 72, 24]
    cubic = [rules("x^3 + 2*x^2 - 3*x + 1", order=k).result for k in (1, 2, 3, 4)]
    assert [evaluate(text, {"x": 1.0}) for text in cubic] == [4, 10, 6, 0]
    assert evaluate(rules("tanh(x)").result, {"x": 1.0}) == pytest.approx(0.419974341614026)
    assert evaluate(rules("coth(x)").result, {"x": 0.7}) == pytest.approx(-1.7378, abs=5e-5)
    slope = math.sin(5) / 5 + math.log(10) * math.cos(5)
    found = evaluate(rules("log(x1*x2)*sin(x2)", "x2").result, {"x1": 2.0, "x2": 5.0})
    assert found == pytest.approx(slope, rel=1e-14)


def evaluate_sections(found: cgprimer.Derivation, values: dict[str, float]) -> float:
    """Return the derivative of the first section, after evaluating the inner ones."""
    known = dict(values)
    for section in reversed(found.sections):
        text = unparse(section.derivative).replace("'", "_prime")
        known[f"{section.name}_prime"] = evaluate(text, known)
    return known[f"{found.sections[0].name}_prime"]


@given(cases(most=4), st.data())
@settings(max_examples=12)
def test_random_graphs_agree_with_the_gradient(case: Case, data: st.DataObject) -> None:
    graph, at = case.graph, case.at
    name = data.draw(st.sampled_from([*graph.inputs, *graph.parameters]))
    exact = cgprimer.gradient(graph, at, wrt=name)[name]
    chained, whole = rules(graph, name), rules(graph, name, inner="substitute")
    values = {**at, **graph.evaluate(at)}
    for found in (evaluate_sections(chained, values), evaluate(whole.result, at)):
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-11 * case.scale)
    for step in whole.steps:
        assert step.part != step.becomes


@pytest.mark.parametrize("row", [r for r in ROWS if r.name != "stop_gradient"], ids=ids)
def test_every_primitive_agrees_with_its_gradient_inside_a_chain(row) -> None:
    """Differentiate with respect to the first and the last operand."""
    inner = one_line(row).expression("xw").replace("pa", "(pa^3/pa^2)")
    graph = cgprimer.parse(f"xw = {inner}")
    results = {
        name: rules(graph, name, inner="substitute").result
        for name in ("pa", ("pa", "pb", "pc")[row.arity - 1])
    }
    for values in random_points(row, 2).T:
        at = point_of(row, values)
        for name, result in results.items():
            exact = cgprimer.gradient(graph, at, wrt=name)[name]
            found = evaluate(result, at | {"xw": 0.0})
            assert found == pytest.approx(exact, rel=1e-9, abs=1e-12), (row.name, name)


def test_lines_mark_the_part_that_is_rewritten() -> None:
    found = rules("x*sin(x)")
    (section,) = found.sections
    for line, step in zip(section.lines(), section.steps, strict=False):
        begin, end = line.part
        assert line.text[begin:end] == step.part
    data = found.to_dict()["sections"][0]
    assert data["steps"][1]["line"] == "d/dx(x)*sin(x) + x*d/dx(sin(x))"
    assert data["operations"] == {"before": 2, "after": 4}
    assert found._repr_latex_() == found.latex()
    for derivation in (found, rules("f(g(x))"), rules(LECTURE, "xa")):
        approved(derivation.latex())


def test_expression_swell_is_counted_and_refused() -> None:
    """Case D8."""
    text = "x"
    for _ in range(6):
        text = f"sin({text})*({text} + 1)"
    counts = rules(text).to_dict()["sections"][0]["operations"]
    assert counts["after"] > 3 * counts["before"]
    with refused(cgprimer.ExpressionSwellError):
        rules("*".join(f"(x + {k})" for k in range(400)))
    lines = "\n".join(f"x{k + 1} = x{k}*x{k} + x0" for k in range(60))
    with refused(cgprimer.ExpressionSwellError, "10^ ... names"):
        rules(cgprimer.parse(lines), inner="substitute")
    assert len(rules(cgprimer.parse(lines)).sections) == 60


def test_long_and_deep_formulas_are_differentiated() -> None:
    found = rules(" + ".join(f"{k}*x^{k}" for k in range(1, 101)))
    assert len(found.steps) == 202
    assert "operations: 299 before" in str(found)
    nested = rules("sin(" * 100 + "x" + ")" * 100)
    assert nested.result.count("cos(") == 100


def test_variable_and_functions_are_chosen() -> None:
    for formula, arguments, result in (
        ("5", {"wrt": "x"}, "0"), ("5", {"wrt": "t"}, "0"), ("u^2", {"wrt": "u"}, "2*u"),
        ("p*q", {"functions": ["p"], "wrt": "x"}, "q*p'"),
        ("p(x)*q", {"functions": "p"}, "q*p'(x)"), ("f*g", {"order": 2}, "f''*g + 2*f'*g' + f*g''"),
        (cgprimer.parse("y = f*x"), {}, "f"),  # a parameter of the graph
    ):  # fmt: skip
        found = rules(formula, **arguments)
        assert (found.result, found.wrt) == (result, arguments.get("wrt", "x"))


@pytest.mark.parametrize(
    ("formula", "arguments"),
    [
        ("x^2*y", {"wrt": "z"}), ("xa*xb", {}), ("sin(x", {}), ("softmax(x)", {}),
        ("x[0]^2", {}), ("stop_gradient(x)", {}), ("f(x, 2)", {}), ("x^2", {"of": "y"}),
        ("y = x^2", {"of": "z"}), ("x^2", {"functions": ["q"]}), ("x^2", {"order": 0}),
        ("x^2", {"inner": "chian"}),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments(formula: str, arguments: dict[str, Any]) -> None:
    with refused(cgprimer.CgprimerError):
        rules(formula, **arguments)
