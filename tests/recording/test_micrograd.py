"""Scripts written for micrograd run with the import changed; its figures are micrograd's own."""

from __future__ import annotations

import pytest

from cgprimer import Value


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
    assert a.grad == pytest.approx(138.83381924198252, rel=1e-14)
    assert b.grad == pytest.approx(645.5772594752186, rel=1e-14)
    assert f.grad == pytest.approx(0.4958350687213661, rel=1e-14)  # of one in between, too
    nodes, pending = set(), [g]  # as its drawing walks, after the pass
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes.add(node)
            pending += node._prev
    assert {a, b, c, e, f} <= nodes
    assert e in f._prev
    assert {v._op for v in nodes} == {"", "+", "-", "*", "/", "**2", "**3", "ReLU", "neg"}


def test_a_neuron_learns_as_in_its_demo() -> None:
    """A margin loss with weight decay; the gradient by hand."""
    w, x, y, rate = [Value(0.5), Value(-0.25)], [1.0, 2.0], -1.0, 0.1
    for _ in range(2):
        before = [v.data for v in w]
        score = sum((wi * xi for wi, xi in zip(w, x, strict=True)), Value(0.75))
        loss = (1 + -y * score).relu() + 1e-4 * sum(v * v for v in w)
        for v in w:
            v.grad = 0
        loss.backward()
        for v in w:
            v.data -= rate * v.grad
        slopes = [-y * xi + 2e-4 * old for xi, old in zip(x, before, strict=True)]
        assert [v.data for v in w] == pytest.approx(
            [old - rate * slope for old, slope in zip(before, slopes, strict=True)]
        )
