"""Wrong arguments of plots are refused, and the message names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cgprimer import load, parse, plot
from cgprimer.errors import CgprimerError
from tests.approval import approved
from tests.plots.plot_tools import moved, run_of

SINE = "xw = sin(xa)"
LINE = "xw = k*xa + b; parameter k = 3, b = -1"
WAVE = "y = sin(k*x); parameter k = 6"
LAYER = "input x[2] = [1, 2]; parameter w[2,2] = 1; xL = sum(x @ w)"
VECTOR = "input x[2]; parameter w[2] = [3, -1], b = 0.5; xw = x @ w + b"
START, OVER, POINT = {"start": {"k": -1.8}}, {"over": ["k", "b"]}, {"at": {"xa": 1}}
REFUSED: list[tuple[str, Any, list[dict[str, Any]]]] = [
    ("function", SINE, [
        {"low": "a"}, {"at": [1]}, {"order": 1.5}, {"order": 7}, {"order": -1},
        {"tangent": np.nan}, {"wrt": "q"}, {"low": 1.0, "high": 1.0},
    ]),
    ("function", "xw = xa*xb", [{}]),
    ("function", "xw = k*xa", [{}]),
    ("function", "xw = log(xa)", [{"low": -2.0, "high": -1.0}, {"tangent": 0.0}]),
    ("function", "xw = abs(xa)", [{"tangent": 0.0}]),
    ("function", "xw = stop_gradient(xa^2)", [{"tangent": 1.0}]),
    ("function", LAYER, [{"wrt": "w"}, {"wrt": "w[2,0]"}]),
    ("error", SINE, [
        {}, {"at": 1}, {"at": {"xa": "1"}}, {**POINT, "of": 1}, {**POINT, "wrt": "xb"},
        {**POINT, "schemes": 3}, {**POINT, "schemes": ["middle"]}, {**POINT, "steps": []},
        {**POINT, "steps": [0.1, "b"]}, {**POINT, "steps": -1.0}, {**POINT, "steps": [0.0]},
    ]),
    ("error", "xw = abs(xa)", [{"at": {"xa": 0}}]),
    ("error", "xw = relu(xa)", [{**POINT, "schemes": ["complex-step"]}]),
    ("error", "xw = xa*xb", [{"at": {"xa": 1, "xb": 1}}]),
    ("error", LAYER, [{"wrt": "w"}]),
    ("cost", None, [
        {"family": ["sum"]}, {"family": "netwrok"}, {"sizes": "8"}, {"sizes": [0]},
        {"methods": 1}, {"methods": ["backward"]}, {"bound": np.inf}, {"bound": 0.5},
    ]),
    ("swell", None, [{"family": None}, {"family": "softmx"}, {"depths": 2.5}, {"depths": [-1]}]),
    ("surface", LINE, [
        {"over": 3}, {"over": ["k"]}, {"over": ["k", "k"]}, {"over": ["k", "xa"]},
        {"data": [1.0]}, {"ranges": [(0, 1), 2]}, {"ranges": [("a", 1), (0, 1)]},
        {"ranges": [(1, 0), (0, 1)]}, {"ranges": [(0, 1)]}, {"start": {"k": "b"}},
        {"start": {"xa": 1.0}}, {"at": {"xa": 1.0}}, {"rates": 0.1}, {"rates": {"sgd": "fast"}},
        {"rates": {"sgd": -1.0}}, {"steps": 1.5}, {"steps": 0}, {"optimizers": 3},
        {"optimizers": ["adamm"]}, {"gradient": 3, "optimizers": "none"},
    ]),
    ("surface", "xw = k*xa + b*xa^2 + c; parameter k = 1, b = 1", [OVER]),
    ("surface", VECTOR, [{"over": ["w", "b"]}]),
    ("noise", WAVE, [
        {}, {"start": {"j": 1}}, {**START, "over": "z"}, {**START, "rate": 0},
        {**START, "seeds": 0}, {**START, "batch_sizes": (1, 2, 3, 4)},
        {**START, "batch_sizes": 101}, {**START, "ranges": [(0, 1)]},
        {**START, "ranges": [(-3, 1), (0, 1)]}, {**START, "ranges": [(-3, float("nan"))]},
    ]),
    ("noise", load("lecture"), [{"start": {"ab": 1}}]),
    ("activations", None, [
        {"depth": 0}, {"depth": 100}, {"width": 1000}, {"activation": "foo"}, {"std": 0},
        {"rate": float("nan")}, {"depth": 2, "std": 50, "activation": "exp"},
    ]),
    ("gradients", "xw = 3*xa", [POINT]),
    ("variance", LINE, [{"batches": 1}]),
    ("memory", {}, [{}]),
    ("loss", run_of([1.0, 0.5]), [
        {"smooth": 2.5}, {"smooth": "all"}, {"by": None}, {"log": 3}, {"log": "z"},
    ]),
    ("loss", run_of([1.0, -1.0]), [{"log": "y"}]),
    ("loss", run_of([0.0]), [{"log": "both"}]),
    ("parameters", moved({"k": [0.0, 1.0]}), [{"names": 3}]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "subject", "refused"),
    [
        pytest.param(*row, id=f"{row[0]} {row[1] if isinstance(row[1], str) else number}")
        for number, row in enumerate(REFUSED)
    ],
)
def test_wrong_arguments_are_refused(
    kind: str, subject: Any, refused: list[dict[str, Any]]
) -> None:
    first = [parse(subject) if isinstance(subject, str) else subject] * (subject is not None)
    for options in refused:
        with pytest.raises(CgprimerError) as caught:
            getattr(plot, kind)(*first, **options)
        approved(f"{options} {caught.typename}: {caught.value}")
