"""Scripts written for micrograd run with the import changed; its figures are micrograd's own."""

from __future__ import annotations

import pytest

from cgprimer import Value
from tests.recording.micrograd_demo import ancestors, trained


def test_the_network_of_its_demo_trains_to_the_same_losses_and_parameters() -> None:
    losses, parameters, model = trained(Value)
    assert losses == pytest.approx(
        [0.7734614148899123, 1.5031458592534834, 0.6243032877927714, 0.6670009217803196], rel=1e-12
    )
    assert sum(parameters) == pytest.approx(3.17126346380003, rel=1e-12)
    assert parameters[:2] == pytest.approx([0.07773724293758455, 0.18587335930646395], rel=1e-12)
    assert len(model.parameters()) == 2 * 8 + 8 + 8 * 8 + 8 + 8 + 1


def test_the_expression_of_its_page() -> None:
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert g.data == pytest.approx(24.70408163265306, rel=1e-14)
    assert (a.grad, b.grad) == (
        pytest.approx(138.83381924198252, rel=1e-14),
        pytest.approx(645.5772594752186, rel=1e-14),
    )
    assert f.grad == pytest.approx(0.4958350687213661, rel=1e-14)  # of one in between, too
    nodes, edges = ancestors(g)  # as its drawing walks, after the pass
    assert {a, b, c, e, f} <= nodes
    assert (e, f) in edges
    assert {v._op for v in nodes} == {"", "+", "-", "*", "/", "**2", "**3", "ReLU", "neg"}
