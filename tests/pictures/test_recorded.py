"""Pictures of recorded values: what was run, the chain of the backward pass, gradients added up."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import Value
from cgprimer.visualization.diagrams import diagram_figure
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_options import DiagramOptions
from cgprimer.visualization.diagrams.recorded_diagrams import build_recorded_diagram
from tests.approval import refused


def diagram(shown: Any, **options: Any) -> Diagram:
    return build_recorded_diagram(shown, sys._getframe(1), DiagramOptions(**options), list(options))


@pytest.mark.parametrize("option", [{"values": False}, {"values": True}, {"at": None}, {"at": {}}])
def test_draw_hides_recorded_data_if_values_are_chosen(
    option: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Diagram] = []
    monkeypatch.setattr(diagram_figure, "draw_diagram", lambda made, dark: drawn.append(made))
    w = Value(2.0)
    loss = w * w
    loss.backward(retain_graph=True)
    cgprimer.draw(loss)
    cgprimer.draw(loss, **option)
    shown, hidden = map(details, drawn)
    assert shown["w"] == ("= 2", "grad = 4")
    assert "grad = 4" not in hidden["w"]
    if option == {"values": False}:
        assert hidden["w"] == ()


def details(made: Diagram) -> dict[str, tuple[str, ...]]:
    return {node.key if node.key.isidentifier() else node.label: node.detail for node in made.nodes}


def test_two_passes_over_the_two_path_notes_are_said_in_the_picture() -> None:
    a, w1, w2, w3 = (Value(v, requires_grad=False) for v in (2.0, 3.0, -1.0, 0.5))
    w4 = Value(4.0)
    b, c = w1 * a, w2 * a
    d = w3 * b + w4 * c
    loss = 10.0 - d
    loss.backward(retain_graph=True)
    made = diagram(loss)
    assert details(made)["w4"] == ("= 4", "grad = 2")
    assert details(made)["loss"] == ("10 - d", "= 15", "grad = 1")
    assert details(made)["c"] == ("= -2", "no gradient")
    assert made.notes == ()
    loss.backward(retain_graph=True)
    again = diagram(loss)
    assert details(again)["w4"] == ("= 4", "grad = 4", "sum of 2 passes")
    assert "(w4); zero_grad() resets them" in again.notes[0]
    chain = diagram(loss.grad_fn)
    assert [n.label for n in chain.nodes] == [
        "Sub",
        "Add",
        "Mul",
        "AccumulateGrad",
        "None",
        "None",
        "None",
    ]
    assert details(chain)["AccumulateGrad"] == ("w4", "grad = 4", "sum of 2 passes")
    w4.zero_grad()
    assert details(diagram(loss))["w4"] == ("= 4",)
    w4.grad = 0.0
    loss.backward()
    assert w4.grad == 2.0
    assert details(diagram(w4 * 1.0))["w4"] == ("= 4", "grad = 2")


def test_arrays_show_shapes_and_a_few_numbers() -> None:
    w, b = Value(np.linspace(0, 1, 25), name="w"), Value([1.0, 2.0], name="b")
    y = np.sin(3.0 * w).sum() + (b * b).sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    made = details(diagram(y))
    w_lines = ("≈ [0, 0.04167, …]", "norm ≈ 2.917", "grad", "≈ [9, 8.93, …]", "norm ≈ 31.74")
    assert made["w"] == (*w_lines, "sum of 3 passes")
    assert made["b"] == ("= [1, 2]", "grad = [6, 12]", "sum of 3 passes")


def test_overlays_go_with_values_and_recordings() -> None:
    a = Value(2.0)
    z = a * a + a
    edges = diagram(z, adjoints=True).edges
    assert {e.label for e in edges} >= {"1 × 4 = 4", "1 × 1 = 1"}
    recording = cgprimer.record(lambda a: a * a, 2.0)
    assert len(cgprimer.draw(recording, values=True).axes) == 1
    assert len(cgprimer.draw(z.grad_fn, dark=True).axes) == 1


def test_what_cannot_be_drawn_says_so() -> None:
    with refused(cgprimer.UsageError, "graph ... 'xw = xa'"):
        cgprimer.draw("xw = xa")
    y = Value(2.0) * 3.0
    y.backward()
    with refused(cgprimer.UsageError):
        cgprimer.draw(y)
