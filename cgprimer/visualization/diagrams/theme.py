"""The theme of pictures: colors, shapes, fonts and sizes.

Roles differ in color and in outline, so pictures can be read in grayscale and by color-blind
readers. Lengths and font sizes are in points (1/72 inch).

Colors: Okabe and Ito, "Color Universal Design" (2008), https://jfly.uni-koeln.de/color/, a
little darkened if an outline needs more contrast on white.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cgprimer.visualization.diagrams.diagram import Diagram, Role

Shape: TypeAlias = Literal["rounded", "rectangle", "double", "hexagon", "dotted", "circle"]
LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]

FONT = "DejaVu Sans"  # ships with matplotlib, so every machine measures and draws the same glyphs
LABEL_SIZE = 20.0
DETAIL_SIZE = 16.0  # the smallest size, also for edge labels and legends
TITLE_SIZE = 22.0
AXIS_SIZE = 16.0
READABLE_SIZE = 14.0  # minimum size of text on a slide that can be read from the last row
LINE_SPACING = 1.25  # line height over font size
SLIDE_WIDTH, SLIDE_HEIGHT = 960.0, 540.0  # 13.33 by 7.5 inches
SLIDE_ASPECT = SLIDE_WIDTH / SLIDE_HEIGHT


@dataclass(frozen=True, slots=True)
class RoleStyle:
    """The style of all vertices with one role; `label` is the text in the legend."""

    label: str
    shape: Shape
    outline: str
    fill: str
    line_width: float


@dataclass(frozen=True, slots=True)
class Theme:
    """The colors of a picture, either light or dark.

    `path` is the color of a highlighted path, which is also drawn with a wide double line; `curves`
    are the colors of curves in plots.
    """

    background: str
    ink: str
    edge: str
    path: str
    grid: str
    roles: Mapping[Role, RoleStyle]
    curves: tuple[str, ...]


DASHES: tuple[LineStyle, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (8, 2, 2, 2)))
"""Line styles of curves, cycled with the colors, so curves do not differ only in color."""


def mix(color: str, other: str, share: float) -> str:
    """Mix two colors `#rrggbb`; `share` is the fraction of the first color, from 0 to 1.

    >>> mix("#000000", "#ffffff", 0.2)
    '#cccccc'
    """
    pairs = ((int(color[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


# For each role its label, shape, line width, and color in the light and dark theme.
_ROLES: dict[Role, tuple[str, Shape, float, str, str]] = {
    "input": ("input", "rounded", 3.2, "#007a5a", "#1fc796"),
    "inner": ("inner variable", "rectangle", 1.6, "#0072b2", "#56b4e9"),
    "output": ("output", "double", 1.6, "#c44f00", "#ff8a3d"),
    "parameter": ("learnable parameter", "hexagon", 1.8, "#b87a00", "#f0b429"),
    "constant": ("constant", "dotted", 1.6, "#555555", "#b8b8b8"),
    "operation": ("operation", "circle", 1.8, "#a8457b", "#e59ac2"),
    # The backward graph has none of the roles above, so it can use the same styles.
    "seed": ("seed", "rounded", 3.2, "#c44f00", "#ff8a3d"),
    "adjoint": ("intermediate adjoint", "rectangle", 1.6, "#a8457b", "#e59ac2"),
    "gradient": ("adjoint of an input or parameter", "double", 1.6, "#007a5a", "#1fc796"),
}


def _build_role_styles(dark: bool, background: str, tint: float) -> dict[Role, RoleStyle]:
    """Return the style of each role; `tint` is the strength of the fill color."""
    styles = {}
    for role, (label, shape, width, *colors) in _ROLES.items():
        fill = mix(colors[dark], background, 0.0 if shape == "dotted" else tint)
        styles[role] = RoleStyle(label, shape, colors[dark], fill, width)
    return styles


LIGHT = Theme(
    background="#ffffff",
    ink="#1a1a1a",
    edge="#4a4a4a",
    path="#c44f00",
    grid="#d9d9d9",
    roles=_build_role_styles(False, "#ffffff", 0.13),
    curves=("#0072b2", "#d55e00", "#009e73", "#b84a86", "#b87a00", "#2f9bd6", "#1a1a1a"),
)
DARK = Theme(
    background="#16191d",
    ink="#f2f2f2",
    edge="#b5bac0",
    path="#ff8a3d",
    grid="#3a3f46",
    roles=_build_role_styles(True, "#16191d", 0.24),
    curves=("#56b4e9", "#ff8a3d", "#1fc796", "#e59ac2", "#f0e442", "#7aa6ff", "#f2f2f2"),
)


def theme(dark: bool) -> Theme:
    """Return the light or the dark theme.

    >>> theme(dark=False).background, theme(dark=True).roles["output"].shape
    ('#ffffff', 'double')
    """
    return DARK if dark else LIGHT


FRAME = (0, (8.0, 3.0, 1.5, 3.0))  #: dashes of the frame of a part of a graph
DROPPED = (0, (4.0, 3.0))  #: dashes of vertices and edges that dropout removes


def fade_color(color: str, look: Theme) -> str:
    """Return a color faded toward the background, for vertices and edges that dropout removes.

    >>> fade_color("#000000", LIGHT)
    '#8c8c8c'
    """
    return mix(color, look.background, 0.45)


def choose_faded_ink(look: Theme) -> str:
    """Return the faded text color for vertices and edges that dropout removes."""
    return mix(look.ink, look.background, 0.6)


def list_roles(diagram: Diagram) -> list[Role]:
    """Return the roles that occur in a diagram, in the order of the legend.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> list_roles(Diagram((Node("k", "k", "parameter"), Node("xa", "xa", "input")), ()))
    ['input', 'parameter']
    """
    present = {node.role for node in diagram.nodes}
    return [role for role in LIGHT.roles if role in present]
