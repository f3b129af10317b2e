"""How pictures look: colours, shapes, fonts and sizes, in one place.

A role is told apart by its colour and by its outline, so a picture survives a grey printer and
a colour-blind reader. Lengths and font sizes are in points (1/72 inch).

Colours: Okabe and Ito, "Color Universal Design" (2008), https://jfly.uni-koeln.de/color/, a
little darkened where an outline needs more contrast on white.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from cgprimer.pictures.diagram import Diagram, Role

Shape: TypeAlias = Literal["rounded", "rectangle", "double", "hexagon", "dotted", "circle"]
LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]

FONT = "DejaVu Sans"  # ships with matplotlib, so every machine measures and draws the same glyphs
LABEL_SIZE = 20.0
DETAIL_SIZE = 16.0
EDGE_LABEL_SIZE = 16.0
LEGEND_SIZE = 16.0
TITLE_SIZE = 22.0
AXIS_SIZE = 16.0
SMALLEST_SIZE = min(LABEL_SIZE, DETAIL_SIZE, EDGE_LABEL_SIZE, LEGEND_SIZE)
READABLE_SIZE = 14.0  # of the smallest text on a slide, to be read from the last row
LINE_SPACING = 1.25  # times the font size
SLIDE_WIDTH, SLIDE_HEIGHT = 960.0, 540.0  # 13.33 by 7.5 inches
SLIDE_ASPECT = SLIDE_WIDTH / SLIDE_HEIGHT


@dataclass(frozen=True, slots=True)
class RoleStyle:
    """How one role is drawn; `word` is what the legend calls it."""

    word: str
    shape: Shape
    outline: str
    fill: str
    line_width: float


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a whole picture.

    `path` is for a highlighted path, which is also wider and drawn with a double line; `curves`
    are for lines in plots, in the order of use.
    """

    background: str
    ink: str
    edge: str
    path: str
    grid: str
    roles: Mapping[Role, RoleStyle]
    curves: tuple[str, ...]


DASHES: tuple[LineStyle, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (8, 2, 2, 2)))
"""Line styles for curves, cycled beside the colours so that no curve is told by colour alone."""


def mix(colour: str, other: str, share: float) -> str:
    """Return `share` of `colour` (0 to 1) mixed with `other`, both `#rrggbb`.

    >>> mix("#000000", "#ffffff", 0.2)
    '#cccccc'
    """
    pairs = ((int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


def _roles(colours: Mapping[Role, str], background: str, tint: float) -> Mapping[Role, RoleStyle]:
    def style(role: Role, word: str, shape: Shape, width: float, tint: float = tint) -> RoleStyle:
        outline = colours[role]
        return RoleStyle(word, shape, outline, mix(outline, background, tint), width)

    return MappingProxyType(
        {
            "input": style("input", "input", "rounded", 3.2),
            "inner": style("inner", "inner variable", "rectangle", 1.6),
            "output": style("output", "output", "double", 1.6),
            "parameter": style("parameter", "learnable parameter", "hexagon", 1.8),
            "constant": style("constant", "constant", "dotted", 1.6, 0.0),
            "operation": style("operation", "operation", "circle", 1.8),
            # The backward graph has no vertex of the roles above, so shapes may be used again.
            "seed": style("seed", "seed", "rounded", 3.2),
            "adjoint": style("adjoint", "adjoint on the way", "rectangle", 1.6),
            "gradient": style("gradient", "adjoint of what is given", "double", 1.6),
        }
    )


_LIGHT_ROLES: dict[Role, str] = {
    "input": "#007a5a",
    "inner": "#0072b2",
    "output": "#c44f00",
    "parameter": "#b87a00",
    "constant": "#555555",
    "operation": "#a8457b",
    "seed": "#c44f00",
    "adjoint": "#a8457b",
    "gradient": "#007a5a",
}
_DARK_ROLES: dict[Role, str] = {
    "input": "#1fc796",
    "inner": "#56b4e9",
    "output": "#ff8a3d",
    "parameter": "#f0b429",
    "constant": "#b8b8b8",
    "operation": "#e59ac2",
    "seed": "#ff8a3d",
    "adjoint": "#e59ac2",
    "gradient": "#1fc796",
}

LIGHT = Theme(
    background="#ffffff",
    ink="#1a1a1a",
    edge="#4a4a4a",
    path="#c44f00",
    grid="#d9d9d9",
    roles=_roles(_LIGHT_ROLES, "#ffffff", 0.13),
    curves=("#0072b2", "#d55e00", "#009e73", "#b84a86", "#b87a00", "#2f9bd6", "#1a1a1a"),
)
DARK = Theme(
    background="#16191d",
    ink="#f2f2f2",
    edge="#b5bac0",
    path="#ff8a3d",
    grid="#3a3f46",
    roles=_roles(_DARK_ROLES, "#16191d", 0.24),
    curves=("#56b4e9", "#ff8a3d", "#1fc796", "#e59ac2", "#f0e442", "#7aa6ff", "#f2f2f2"),
)


def theme(dark: bool) -> Theme:
    """Return the light or the dark theme.

    >>> theme(dark=False).background, theme(dark=True).roles["output"].shape
    ('#ffffff', 'double')
    """
    return DARK if dark else LIGHT


def roles_in(diagram: Diagram, look: Theme) -> list[Role]:
    """The roles that occur in a diagram, in the theme's order.

    >>> from cgprimer.pictures.diagram import Node
    >>> nodes = (Node("k", "k", "parameter"), Node("xa", "xa", "input"))
    >>> roles_in(Diagram(nodes, ()), theme(dark=False))
    ['input', 'parameter']
    """
    present = {node.role for node in diagram.nodes}
    return [role for role in look.roles if role in present]
