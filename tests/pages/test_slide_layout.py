"""Slides of steps: no text over another, whole vertices, columns that stay, a legend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

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
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.step_slides import (
    draw_slide,
    format_headline,
    lay_out_slide,
)
from cgprimer.visualization.pages.stepping.vertex_positions import SceneLayout

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = (
    "long_name = sin(xa)*cos(xa) + exp(-xa^2)*k - tanh(k*xa)*sigmoid(xa + k)"
    " + log(1 + xa^2)*sqrt(2 + xa)*cos(k*xa) - xa/(1 + k^2)"
)
NAMES = (
    "the_temperature_of_oven_a = sin(the_temperature_of_input1)*k_heat_transfer_coefficient\n"
    "xw = exp(the_temperature_of_oven_a)*the_temperature_of_input1"
)


def example(name: str, method: str, **more: Any) -> Stepping:
    graph = cgprimer.load(EXAMPLES / f"{name}.cg")
    return stepping(graph, of=graph.outputs[0], methods=[method], title=f"{name}.cg", **more)


def shows() -> Iterator[Any]:
    def one(label: str, method: str, shown: Stepping, *steps: int) -> Any:
        marks = [pytest.mark.slow] * (label.startswith("network"))  # long as all others together
        return pytest.param((shown, method, steps), id=label, marks=marks)

    yield one("mazur", "forward", example("mazur", "forward", wrt=["w1"]), 10, 30, 50)
    yield one("olah", "path-sum", example("olah", "path-sum"), 8, 12)
    yield one("log_sine", "forward", example("log_sine", "forward"), 1, 9)
    yield one("baydin", "finite-difference", example("baydin", "finite-difference"), 20, 36)
    yield one("lecture", "reverse", example("lecture", "reverse"), 2, 15, 23)
    yield one("operations", "reverse", example("lecture", "reverse", level="operations"), 2, 15)
    yield one("network", "reverse", example("network", "reverse"), 1, 60, 150)
    long, at = cgprimer.parse(LONG), {"xa": -0.5, "k": 1.5}
    yield one("long", "reverse", stepping(long, at, methods=["reverse"]), 9, 40)
    apart = stepping(long, at, methods=["reverse"], level="operations")
    yield one("long-operations", "reverse", apart, 3, 30, 58)
    values = {"the_temperature_of_input1": -1.2345678e-103, "k_heat_transfer_coefficient": -1e99}
    names = stepping(cgprimer.parse(NAMES), values, methods=["reverse"])
    yield one("long-names", "reverse", names, 5, 12)
    small = "xb = 1e-4*xa*k; xc = sin(xa)*1.2345e-5; xd = xb*xc; xe = xb - xc*1e3; xf = xd*xe*xa"
    small += "; input xa = -0.712345; parameter k = 1.2345"
    yield one(
        "long-numbers", "reverse", stepping(cgprimer.parse(small), methods=["reverse"]), 12, 17
    )


CASES = list(shows())


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Stepping, str, dict[int, Figure]]:
    """Steps, a method and some slides by the number of their step."""
    shown, method, steps = request.param
    figures = drawn(shown, method, *steps)
    return shown, method, dict(zip(steps, figures, strict=True))


def drawn(shown: Stepping, method: str, *numbers: int, dark: bool = False) -> list[Figure]:
    frames, place = shown.frames(method), lay_out_slide(shown, method)
    chosen = [frames[min(number, len(frames)) - 1] for number in numbers]
    return [draw_slide(shown, method, frame, place, dark=dark) for frame in chosen]


def renderer_of(figure: Figure) -> Any:
    canvas: Any = FigureCanvasAgg(figure)
    return canvas.get_renderer()


def boxes(figure: Figure) -> list[tuple[str, Any]]:
    """Every text that is seen and where it stands, in pixels."""
    renderer = renderer_of(figure)
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for axes in figure.axes
        for text in axes.texts
        if text.get_text().strip()
    ]


def test_no_text_lies_over_another_or_leaves_the_slide(
    case: tuple[Stepping, str, dict[int, Figure]],
) -> None:
    _, _, figures = case
    for number, figure in figures.items():
        found = boxes(figure)
        width, height = figure.bbox.width, figure.bbox.height
        assert tuple(figure.get_size_inches() * 72) == (960.0, 540.0)
        for text, box in found:
            assert box.x0 >= -0.5, text
            assert box.x1 <= width + 0.5, text
            assert box.y0 >= -0.5, text
            assert box.y1 <= height + 0.5, text
        for (text, a), (other, b) in combinations(found, 2):
            across = min(a.x1, b.x1) - max(a.x0, b.x0)
            along = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert across <= 0.5 or along <= 4, (number, text, other)  # 4: below and above letters
        sizes = [float(text.get_fontsize()) for axes in figure.axes for text in axes.texts]
        assert min(sizes) >= 14 - 1e-9


def test_the_frame_around_a_number_is_free_of_other_numbers(
    case: tuple[Stepping, str, dict[int, Figure]],
) -> None:
    shown, method, figures = case
    framed = 0
    for figure in figures.values():
        renderer = renderer_of(figure)
        texts = [t for t in figure.axes[0].texts if t.get_text()]
        for text in texts:
            patch = text.get_bbox_patch()
            if patch is None:
                continue
            framed += 1
            pixels = figure.dpi / 72
            around = text.get_window_extent(renderer).padded(4 * pixels)  # 2, and half of the line
            for other in texts:
                box = other.get_window_extent(renderer)
                beside = box.x1 <= around.x0 or around.x1 <= box.x0
                level = abs(box.y0 + box.y1 - around.y0 - around.y1) < 10
                assert other is text or beside or not level, (text, other)
    frames = shown.frames(method)
    assert framed or all(frames[number - 1].step.row < 0 for number in figures)


def test_columns_stay_where_they_are() -> None:
    shown = example("mazur", "forward", wrt=["w1"])
    places = set()
    for figure in drawn(shown, "forward", 1, 20, 40):
        texts = {t.get_text(): t.get_position() for t in figure.axes[0].texts}
        places.add((texts["value"][0], texts["tangent"][0]))
    assert len(places) == 1


def test_a_vertex_is_shown_whole_or_counted(case: tuple[Stepping, str, dict[int, Figure]]) -> None:
    shown, method, figures = case
    names = {vertex.name for vertex in shown.scene.vertices}
    for number, figure in figures.items():
        pane = figure.axes[1]
        width, height = pane.get_xlim()[1], pane.get_ylim()[0]
        texts = [t.get_text() for t in pane.texts]
        more = [int(t.split()[1]) for t in texts if t.endswith(" more")]
        assert len(names & set(texts)) + sum(more) == len(names)
        for patch in pane.patches:
            box = patch.get_path().get_extents(patch.get_patch_transform())
            assert min(box.x0, box.y0) >= -0.5
            assert box.x1 <= width + 0.5
            assert box.y1 <= height + 0.5
        step = shown.frames(method)[min(number, len(shown.frames(method))) - 1].step
        lit = names & set(step.vertices)
        if len(lit) == 1:
            assert lit <= set(texts)


def test_long_names_stay_on_the_slide_and_in_their_places() -> None:
    wall, device = "heat_transfer_coefficient_of_the_wall", "offset_of_the_measurement_device"
    rate = f"x_rate_of_change_of_temperature = {wall}*x_temperature_of_the_reactor + {device}"
    text = f"{rate}\nx_final_value = x_rate_of_change_of_temperature*x_temperature_of_the_reactor"
    graph = cgprimer.parse(text)
    shown = stepping(graph, dict.fromkeys((*graph.inputs, wall, device), 1.5), methods=["reverse"])
    (figure,) = drawn(shown, "reverse", 99)
    found = [(text, box) for text, box in boxes(figure) if box.x0 > figure.bbox.width * 0.55]
    assert max(box.x1 for _, box in found) < figure.bbox.width
    assert "2 of 2 derivatives computed" in dict(found)
    for (text, a), (other, b) in combinations(found, 2):
        across, along = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 0.5 or along <= 4, (text, other)


def test_windows_hold_whole_vertices_and_what_is_lit() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        across = bool(rng.integers(2))
        placed = tuple(
            Box(170.0 * i + 200 + rng.uniform(-9, 9), 110.0 * j + 200, 130, 76)
            for i in range(int(rng.integers(1, 8)))
            for j in range(int(rng.integers(1, 9)))
        )
        size = [max(getattr(b, axis) for b in placed) + 200 for axis in ("x", "y")]
        place = SceneLayout(placed, (), (), (), size[0], size[1], across)
        lit = int(rng.integers(len(placed)))
        room = (rng.uniform(250, 600), rng.uniform(250, 600))
        found = choose_window(place, room, [lit])
        assert found == choose_window(place, room, [lit])
        assert found.shown[lit]
        assert found.scale >= READABLE
        assert sum(found.shown) + sum(found.hidden_counts) == len(placed)
        left, top, right, bottom = found.inner
        for box, shown in zip(placed, found.shown, strict=True):
            x, y = found.to_slide((box.x, box.y))
            reach_x, reach_y = box.width / 2 * found.scale, box.height / 2 * found.scale
            inside = (
                left <= x - reach_x and x + reach_x <= right
                and top <= y - reach_y and y + reach_y <= bottom
            )  # fmt: skip
            assert inside or not shown
        whole = bounding_box(place)
        if whole.width * READABLE <= room[0] and whole.height * READABLE <= room[1]:
            assert all(found.shown)


def test_a_window_counts_to_the_side_where_something_is_missing() -> None:
    boxes = tuple(Box(200.0 * k + 100, 300.0, 130, 70) for k in range(10))
    found = choose_window(SceneLayout(boxes, (), (), (), 2000, 600), (400, 500), [9])
    assert found.hidden_counts[0] == 10 - sum(found.shown)
    assert sum(found.hidden_counts) == found.hidden_counts[0]
    stub = cut_line(
        found, [found.to_slide((1800.0, 300.0)), found.to_slide((100.0, 300.0))], math.inf
    )
    assert stub[-1][0] == pytest.approx(found.inner[0], abs=2.1)
    assert split_into_dashes([(0, 0), (30, 0)], 10, 5) == [[(0, 0), (10, 0)], [(15, 0), (25, 0)]]
    assert bounding_box(SceneLayout((Box(100, 100, 80, 40),), (), (), (), 200, 200)) == Box(
        92, 100, 112, 56
    )
    pieces = split_into_dashes(stub, 8, 3)
    assert all(math.dist(*piece) == pytest.approx(8) for piece in pieces)


def test_one_very_wide_vertex_is_shown_as_far_as_it_goes() -> None:
    wide = SceneLayout((Box(500, 100, 900, 70), Box(500, 900, 100, 70)), (), (), (), 1000, 1000)
    assert choose_window(wide, (400, 400), [0]).shown == (True, False)


@pytest.mark.parametrize("dark", [False, True])
def test_arrow_heads_lie_over_the_ring(dark: bool) -> None:
    shown = example("lecture", "reverse")
    pane = drawn(shown, "reverse", 15, dark=dark)[0].axes[1]
    lit = to_rgba(theme(dark).curves[1])
    none = to_rgba("none")
    rings = [p for p in pane.patches if (p.get_edgecolor(), p.get_facecolor()) == (lit, none)]
    assert rings
    heads = [
        p
        for p in pane.patches
        if isinstance(p, Polygon) and p.get_edgecolor() == to_rgba(theme(dark).background)
    ]
    assert len(heads) == len(shown.scene.edges)
    assert min(h.get_zorder() for h in heads) > max(r.get_zorder() for r in rings)


@pytest.mark.parametrize(("name", "level"), [("lecture", "variables"), ("lecture", "operations")])
def test_the_legend_names_the_roles_and_this_step(name: str, level: str) -> None:
    shown = example(name, "reverse", level=level)
    texts = [t.get_text() for t in drawn(shown, "reverse", 15)[0].axes[1].texts]
    words = {theme(False).roles[vertex.role].label for vertex in shown.scene.vertices}
    assert words <= set(texts)
    assert "this step" in texts
    unused = {style.label for style in theme(False).roles.values()} - words
    assert not unused & set(texts)


def test_the_lecture_fits_with_its_legend() -> None:
    shown = example("lecture", "reverse")
    texts = [t.get_text() for t in drawn(shown, "reverse", 15)[0].axes[1].texts]
    assert not [t for t in texts if t.endswith(" more")]


def test_a_path_is_not_equal_to_a_number() -> None:
    shown = example("olah", "path-sum")
    lines = [format_headline(frame) for frame in shown.frames("path-sum")]
    assert "path 1: b → c → e: 2" in lines
    assert not [line for line in lines if "->" in line]
    assert "c = a + b = 3" in lines
