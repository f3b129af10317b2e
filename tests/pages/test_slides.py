"""Slides of steps: nothing overlaps, vertices are complete or counted, columns do not move."""

from __future__ import annotations

import ast
import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import cgprimer
from cgprimer.visualization.diagrams.geometry import Box
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.stepping.slide_picture import (
    READABLE,
    bounding_box,
    choose_window,
    cut_line,
    split_into_dashes,
)
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_slides import draw_slide, lay_out_slide
from cgprimer.visualization.pages.stepping.vertex_positions import SceneLayout
from tests.pages.conftest import TABLES

CASES = {name: row for name, *row in TABLES["slides"]}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "lecture")) for n in CASES]
)
def test_slides_can_be_read_and_vertices_are_complete_or_counted(name: str) -> None:
    text, method, options, index = CASES[name]
    graph = cgprimer.parse(text) if "=" in text else cgprimer.load(text)
    shown = stepping(
        graph, of=graph.outputs[0], methods=[method], title="A title", **ast.literal_eval(options)
    )
    frame = shown.frames(method)[int(index)]
    figure = draw_slide(shown, method, frame, lay_out_slide(shown, method))
    check_texts(figure)
    pane, names = figure.axes[1], {vertex.name for vertex in shown.scene.vertices}
    width, height = pane.get_xlim()[1], pane.get_ylim()[0]
    texts = [t.get_text() for t in pane.texts]
    more = [int(t.split()[1]) for t in texts if t.endswith(" more")]
    assert len(names & set(texts)) + sum(more) == len(names)
    assert name != "lecture" or not more
    for patch in pane.patches:
        box = patch.get_path().get_extents(patch.get_patch_transform())
        assert -0.5 <= box.x0 <= box.x1 <= width + 0.5
        assert -0.5 <= box.y0 <= box.y1 <= height + 0.5
    lit = names & set(frame.step.vertices)
    assert len(lit) != 1 or lit <= set(texts)
    labels = {theme(False).roles[vertex.role].label for vertex in shown.scene.vertices}
    assert labels == set(texts) & {style.label for style in theme(False).roles.values()}


def check_texts(figure: Figure) -> None:
    """Check that all texts are large and separate."""
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    texts = [t for axes in figure.axes for t in axes.texts if t.get_text().strip()]
    boxes = [(t, t.get_window_extent(renderer)) for t in texts]
    assert tuple(figure.get_size_inches() * 72) == (960.0, 540.0)
    assert min(float(t.get_fontsize()) for t in texts) >= 14 - 1e-9
    for text, box in boxes:
        assert -0.5 <= box.x0 <= box.x1 <= figure.bbox.width + 0.5, text
        assert -0.5 <= box.y0 <= box.y1 <= figure.bbox.height + 0.5, text
    for (text, a), (other, b) in combinations(boxes, 2):
        across, along = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 0.5 or along <= 4, (text, other)  # 4: above and below letters


def test_columns_stay_where_they_are() -> None:
    shown, columns = stepping(cgprimer.load("olah"), of="e", methods=["forward"]), set()
    for frame in shown.frames("forward")[:5:4]:
        figure = draw_slide(shown, "forward", frame, lay_out_slide(shown, "forward"), dark=True)
        texts = {t.get_text(): t.get_position() for t in figure.axes[0].texts}
        columns.add((texts["value"][0], texts["tangent"][0]))
    assert len(columns) == 1


# --- the part of a graph that a slide shows -------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(1, 7), st.integers(1, 8), st.booleans(), st.data())
def test_windows_hold_complete_vertices_and_what_is_highlighted(
    columns: int, rows: int, across: bool, data: st.DataObject
) -> None:
    jitter = st.floats(-9, 9)
    placed = tuple(
        Box(170.0 * i + 200 + data.draw(jitter), 110.0 * j + 200, 130, 76)
        for i in range(columns) for j in range(rows)
    )  # fmt: skip
    width, height = (max(getattr(b, axis) for b in placed) + 200 for axis in ("x", "y"))
    place = SceneLayout(placed, (), (), (), width, height, across)
    lit = data.draw(st.integers(0, len(placed) - 1))
    room = (data.draw(st.floats(250, 600)), data.draw(st.floats(250, 600)))
    found = choose_window(place, room, [lit])
    assert found.shown[lit]
    assert found.scale >= READABLE
    assert sum(found.shown) + sum(found.hidden_counts) == len(placed)
    left, top, right, bottom = found.inner
    for box, shown in zip(placed, found.shown, strict=True):
        x, y = found.to_slide((box.x, box.y))
        reach_x, reach_y = box.width / 2 * found.scale, box.height / 2 * found.scale
        inside = left <= x - reach_x and x + reach_x <= right
        assert not shown or (inside and top <= y - reach_y and y + reach_y <= bottom)
    whole = bounding_box(place)
    if whole.width * READABLE <= room[0] and whole.height * READABLE <= room[1]:
        assert all(found.shown)


def test_a_window_counts_hidden_vertices_at_the_side_where_they_are() -> None:
    boxes = tuple(Box(200.0 * k + 100, 300.0, 130, 70) for k in range(10))
    found = choose_window(SceneLayout(boxes, (), (), (), 2000, 600), (400, 500), [9])
    assert found.hidden_counts[0] == 10 - sum(found.shown)
    assert sum(found.hidden_counts) == found.hidden_counts[0]
    ends = [found.to_slide((1800.0, 300.0)), found.to_slide((100.0, 300.0))]
    stub = cut_line(found, ends, math.inf)
    assert stub[-1][0] == pytest.approx(found.inner[0], abs=2.1)
    assert split_into_dashes([(0, 0), (30, 0)], 10, 5) == [[(0, 0), (10, 0)], [(15, 0), (25, 0)]]
    assert all(math.dist(*piece) == pytest.approx(8) for piece in split_into_dashes(stub, 8, 3))
    single = SceneLayout((Box(100, 100, 80, 40),), (), (), (), 200, 200)
    assert bounding_box(single) == Box(92, 100, 112, 56)
    wide = SceneLayout((Box(500, 100, 900, 70), Box(500, 900, 100, 70)), (), (), (), 1000, 1000)
    assert choose_window(wide, (400, 400), [0]).shown == (True, False)
