"""What the contours and the landscape in 3-D have in common: heights, colours, paths, marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.number_format import number
from cgprimer.pictures.frame import MARKERS
from cgprimer.pictures.theme import DASHES, Theme, mix
from cgprimer.plots.surface_data import Descent, Landscape

Array = Any
_FLOOR = 0.02  # of the grid's points are the bottom
_DEEPEST = 1e-6  # of the greatest loss: what is less counts as the bottom
_FINER = 4  # times as many points to either side as were computed: contours without corners
HOLE = "no finite loss"


@dataclass(frozen=True, eq=False)
class Relief:
    """The losses as they are shown.

    Attributes:
        first, second: values of the two parameters, ascending; shapes (n,) and (m,).
        losses: shape (m, n); nan where there is none.
        floor: the least loss that is shown; all below are at the floor.
        logarithmic: whether the scale of losses is, as it is where none is negative.
    """

    first: Array
    second: Array
    losses: Array
    floor: float
    logarithmic: bool

    @property
    def holes(self) -> bool:
        """Whether there is no finite loss somewhere."""
        return bool(np.isnan(self.losses).any())

    def height(self, loss: Any) -> Any:
        """Where a loss lies on the scale: its decimal logarithm, or itself."""
        return np.log10(np.maximum(loss, self.floor)) if self.logarithmic else loss


def relief(found: Landscape) -> Relief:
    """The losses of a landscape on a finer grid, with a bottom if they are never negative."""
    finite = np.where(np.isfinite(found.losses), found.losses, np.nan)
    low, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    logarithmic = low >= 0 and high > 0
    # The bottom of a narrow valley lies between the points of the grid: a few are its floor.
    floor = max(high * _DEEPEST, float(np.nanquantile(finite, _FLOOR))) if logarithmic else low
    fine = _finer(_finer(finite).T).T
    return Relief(
        _between(found.first), _between(found.second), np.clip(fine, floor, high), floor,
        logarithmic,
    )  # fmt: skip


def _between(values: Array) -> Array:
    count = _FINER * (len(values) - 1) + 1
    return np.interp(np.arange(count) / _FINER, np.arange(len(values)), values)


def _finer(values: Array) -> Array:
    """Rows with more points between their own: exact for parabolas, straight beside holes.

    Catmull-Rom splines: through each point, with the slope of the line through its neighbours.

    >>> _finer(np.array([[0.0, 1.0, 4.0, 9.0]]))[0, :5].tolist()
    [0.0, 0.0625, 0.25, 0.5625, 1.0]
    """
    if values.shape[1] < 4:
        return np.array([np.interp(_between(np.arange(len(row))), np.arange(len(row)), row)
                         for row in values])  # fmt: skip
    first = 3 * values[:, :1] - 3 * values[:, 1:2] + values[:, 2:3]
    last = 3 * values[:, -1:] - 3 * values[:, -2:-1] + values[:, -3:-2]
    p = np.concatenate([first, values, last], axis=1)
    p0, p1, p2, p3 = (p[:, k : k + values.shape[1] - 1] for k in range(4))
    parts = []
    for share in np.arange(_FINER) / _FINER:
        smooth = 0.5 * (
            2 * p1
            + (p2 - p0) * share
            + (2 * p0 - 5 * p1 + 4 * p2 - p3) * share**2
            + (3 * p1 - p0 - 3 * p2 + p3) * share**3
        )
        parts.append(np.where(np.isnan(smooth), p1 + share * (p2 - p1), smooth))
    parts[0] = p1
    inner = np.stack(parts, axis=2).reshape(len(values), -1)
    return np.concatenate([inner, values[:, -1:]], axis=1)


def colours(look: Theme) -> Any:
    """From the paper to the first colour of the theme: deep is pale, high is strong."""
    from matplotlib.colors import LinearSegmentedColormap

    strong = mix(look.curves[0], look.background, 0.75)
    return LinearSegmentedColormap.from_list("loss", [look.background, strong])


def hole(look: Theme, **settings: Any) -> Any:
    """A hatched patch: what is no part of the surface."""
    from matplotlib.patches import Rectangle

    return Rectangle(
        **{"xy": (0.0, 0.0), "width": 1.0, "height": 1.0, **settings},
        facecolor=look.background,
        edgecolor=look.edge,
        linewidth=0.0,
        hatch="//",
        label=HOLE,
        zorder=0,
    )


def contains(found: Landscape, point: Any) -> bool:
    """Whether a point lies in the picture or on its edge."""
    return bool(
        found.first[0] <= point[0] <= found.first[-1]
        and found.second[0] <= point[1] <= found.second[-1]
    )


def outside(axes: Any, name: str) -> None:
    """Say in the legend that a mark is not in the picture."""
    axes.plot([], [], linestyle="", label=f"{name}: outside the picture")


def inside(found: Landscape, path: Descent) -> int:
    """How many points of a path lie in the picture, up to where it leaves for the first time."""
    low = np.array([found.first[0], found.second[0]])
    high = np.array([found.first[-1], found.second[-1]])
    outside = np.flatnonzero(((path.points < low) | (path.points > high)).any(axis=1))
    return int(outside[0]) if outside.size else len(path.points)


def path_label(found: Landscape, path: Descent) -> str:
    """What the legend says of a path."""
    text = f"{path.optimizer}, rate {number(path.rate, 2)}"
    if path.diverged:
        return f"{text}: diverges"
    return text if inside(found, path) == len(path.points) else f"{text}: leaves the picture"


def path_style(order: int, paths: int, look: Theme, points: int) -> dict[str, Any]:
    """Colours that stand out from the surface's own, each with a dash and a marker.

    Of paths that lie on one another the first is the widest, so that each of them is seen.
    """
    colours = look.curves[1:]
    under = min(max(0, paths - 1 - order), 3)
    return {
        "color": colours[order % len(colours)],
        "linestyle": DASHES[order % len(DASHES)],
        "linewidth": 2.6 + 1.4 * under,
        "marker": MARKERS[order % len(MARKERS)],
        "markersize": 10 + 3.5 * under,
        "markeredgecolor": look.background,
        "markeredgewidth": 0.6,
        "markevery": max(1, points // 20),
    }


def halo(style: dict[str, Any], look: Theme) -> dict[str, Any]:
    """The style of a wider line under a path, which parts it from the surface."""
    width = style["linewidth"] + 2.0
    return {"color": look.background, "linewidth": width, "label": "_halo", "zorder": 1.9}


def cross(look: Theme) -> dict[str, Any]:
    """The mark of the true values, whole also on the edge of the picture."""
    return {
        "linestyle": "",
        "marker": "X",
        "markersize": 15,
        "color": look.ink,
        "markeredgecolor": look.background,
        "zorder": 6,
        "clip_on": False,
    }


def ring(look: Theme) -> dict[str, Any]:
    """The mark of the start, wide enough for the first steps to be seen in it."""
    return {
        "linestyle": "",
        "marker": "o",
        "markersize": 24,
        "markerfacecolor": "none",
        "markeredgecolor": look.ink,
        "markeredgewidth": 2.6,
        "zorder": 6,
        "clip_on": False,
    }
