"""The heights of a landscape as they are drawn: on a finer grid, with a floor and a scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cgprimer.visualization.plots.loss_landscape import Landscape

Array = Any
_FLOOR_FRACTION = 0.02  # fraction of the grid points that lie on the floor
_LEAST_FLOOR = 1e-6  # of the maximum loss
_REFINEMENT = 4  # intervals of the finer grid per interval of the grid: contours without corners
_STEEP = 10.0  # maximum over median of a function, from which on its scale is logarithmic


@dataclass(frozen=True, eq=False)
class LossSurface:
    """A loss landscape prepared for plotting: on a finer grid, on a linear or logarithmic scale.

    Attributes:
        first: values of the first parameter; shape (n,).
        second: values of the second parameter; shape (m,).
        losses: mean losses; shape (m, n); nan for losses that are not finite.
        floor: minimum loss that is shown; smaller losses are raised to it.
        logarithmic: True for a logarithmic scale, used if no loss is negative.
    """

    first: Array
    second: Array
    losses: Array
    floor: float
    logarithmic: bool

    def contains(self, points: Array) -> Array:
        """Return a mask of the points, of shape (..., 2), that lie inside the plotted range."""
        low, high = ([side[k] for side in (self.first, self.second)] for k in (0, -1))
        return ((points >= low) & (points <= high)).all(axis=-1)

    @property
    def has_holes(self) -> bool:
        """True if some losses on the grid are not finite."""
        return bool(np.isnan(self.losses).any())

    @cached_property
    def heights(self) -> Array:
        """The losses or their logarithms as heights in 3-D, in an array of shape (m, n)."""
        return np.log10(self.losses) if self.logarithmic else self.losses

    @property
    def top(self) -> float:
        """The maximum loss of the plotted surface."""
        return float(np.nanmax(self.losses))

    def interpolate_heights(self, first: Array, second: Array) -> Array:
        """Interpolate the surface heights bilinearly at points between grid points."""
        across = np.interp(first, self.first, np.arange(len(self.first)))
        along = np.interp(second, self.second, np.arange(len(self.second)))
        column = np.minimum(across.astype(int), len(self.first) - 2)
        row = np.minimum(along.astype(int), len(self.second) - 2)
        s, t, heights = across - column, along - row, self.heights
        near, far = (
            (1 - s) * heights[k, column] + s * heights[k, column + 1] for k in (row, row + 1)
        )
        return (1 - t) * near + t * far


def build_loss_surface(grid: Landscape) -> LossSurface:
    """Refine the grid of a landscape, and raise low losses to a floor on a logarithmic scale."""
    finite = np.where(np.isfinite(grid.losses), grid.losses, np.nan)
    floor, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    logarithmic = floor >= 0
    if grid.function:  # a bowl is drawn as a bowl unless almost all of it would look flat
        logarithmic &= high > _STEEP * float(np.nanmedian(finite))
    if logarithmic:
        # The floor of a narrow valley lies between grid points: the lowest of them form the floor.
        floor = max(high * _LEAST_FLOOR, float(np.nanquantile(finite, _FLOOR_FRACTION)))
    fine = np.clip(_refine_rows(_refine_rows(finite).T).T, floor, high)
    sides = _refine_linearly(grid.first), _refine_linearly(grid.second)
    return LossSurface(*sides, fine, floor, logarithmic and high > floor)


def _refine_linearly(values: Array) -> Array:
    """Insert linearly interpolated values between neighboring values."""
    count = _REFINEMENT * (len(values) - 1) + 1
    return np.interp(np.arange(count) / _REFINEMENT, np.arange(len(values)), values)


def _refine_rows(values: Array) -> Array:
    """Insert interpolated values into each row: splines, or lines next to missing values.

    The curves are Catmull-Rom splines, which pass through each point with the slope of the line
    through its neighbors. SciPy's splines spread a single nan over the whole surface.
    """
    if values.shape[1] < 4:
        return np.array([_refine_linearly(row) for row in values])
    first = 3 * values[:, :1] - 3 * values[:, 1:2] + values[:, 2:3]
    last = 3 * values[:, -1:] - 3 * values[:, -2:-1] + values[:, -3:-2]
    p = np.concatenate([first, values, last], axis=1)
    p0, p1, p2, p3 = (p[:, k : k + values.shape[1] - 1] for k in range(4))
    t = np.arange(_REFINEMENT) / _REFINEMENT
    weights = np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]]) / 2
    smooth = np.einsum("sk,kij->ijs", t[:, None] ** np.arange(4) @ weights, [p0, p1, p2, p3])
    inner = np.where(np.isnan(smooth), p1[..., None] + t * (p2 - p1)[..., None], smooth)
    inner[..., 0] = p1
    return np.concatenate([inner.reshape(len(values), -1), values[:, -1:]], axis=1)
