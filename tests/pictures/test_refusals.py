"""Options of diagrams that are wrong, or do not fit the graph, are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import CgprimerError
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from tests.approval import approved
from tests.pictures.diagram_tools import F1, load

DROPOUT = "input x[2] = 1; parameter W[3,2] = 1; xh = dropout(W @ x, 0.5); xo = sum(xh)"
MISSING = "input xa = 1; xw = k*xa"
REFUSED: dict[str, list[dict[str, Any]]] = {
    "lecture": [
        {"level": "atoms"}, {"parameters": "nowhere"}, {"at": {"xq": 1.0}},
        {"at": {"xa": [1.0, 2.0]}}, {"path": "xa xw"}, {"path": "xa xq"}, {"path": "xa"},
        {"path": ""}, {"path": "xa xx", "level": "operations"}, {"tangents": "xq"},
        {"adjoints": True, "of": "xq"}, {"of": "xw"}, {"level": "backward", "partials": True},
        {"backward_arrows": True}, {"place": "layers:99"}, {"place": "rows:2"}, {"place": 2},
        {"place": "layers:2", "workers": ["a"]}, {"place": "layers:2", "workers": ["a", "a"]},
        {"place": "layers:2", "level": "backward"}, {"workers": ["a", "b"]}, {"mask": 0},
    ],
    F1: [
        {"tangents": "x"}, {"scalars": "xq"}, {"adjoints": True, "of": "xh"},
        {"partials": True, "level": "operations"}, {"scalars": "xh", "path": "x xh"},
        {"path": "x[0] xh"}, {"path": "xh"}, {"path": "xh x"},
    ],
    DROPOUT: [
        {"mask": {"xh": [1, 0]}}, {"mask": {"xh": [1, 0, 2]}}, {"mask": {"xh": [1, 0, np.nan]}},
        {"mask": {"xg": [1, 0, 1]}}, {"mask": {}}, {"mask": -1}, {"mask": 0.5}, {"mask": np.nan},
        {"mask": True}, {"mask": "1"}, {"mask": 0, "level": "operations"},
    ],
    MISSING: [
        {"values": True}, {"partials": True}, {"tangents": "xa"}, {"adjoints": True},
        {"path": "xa xw"}, {"level": "backward", "values": True},
    ],
    "input xa = 2; xb = xa^2; xc = 3*xa; output xb, xc": [{"adjoints": True}],
    "parameter k = 1": [{}],
    "input x[784]; parameter W[128,784]; xh = W @ x": [{"scalars": True}],
    "\n".join(f"x{k} = x{k - 1}" for k in range(1, 700)): [{"everything": True}],
}  # fmt: skip


@pytest.mark.parametrize("graph", REFUSED, ids=lambda graph: graph.split("\n")[0])
def test_wrong_options_are_refused(graph: str) -> None:
    for options in REFUSED[graph]:
        with pytest.raises(CgprimerError) as caught:
            slide_layout(graph_diagram(load(graph), **options))
        approved(f"{options} {caught.typename}: {caught.value}")


def test_what_cannot_be_drawn_is_refused() -> None:
    y = cgprimer.Value(2.0) * 3.0
    y.backward()
    for subject in ("xw = xa", y):
        with pytest.raises(CgprimerError) as caught:
            cgprimer.draw(subject)
        approved(str(caught.value))
