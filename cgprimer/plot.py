"""Curves and surfaces: each function computes what it shows and returns a matplotlib Figure.

``cgprimer plot KIND`` calls the function of that name. A figure has the size of a slide (13.33 by
7.5 inches) and is saved with ``figure.savefig(path)``, or shown by a notebook that it ends a cell
of. All take ``dark``, for dark slides, and ``title``, in the place of the usual one, "" for none.

>>> import cgprimer
>>> figure = cgprimer.plot.function(cgprimer.parse("xw = tanh(xa)"), tangent=0.5)
>>> figure.axes[0].get_title()
'xw = tanh(xa)'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgprimer.visualization.plots.activations_plot import activations
    from cgprimer.visualization.plots.batches_plot import batches
    from cgprimer.visualization.plots.boundary_plot import boundary
    from cgprimer.visualization.plots.cost_plot import cost
    from cgprimer.visualization.plots.descent_plot import descent
    from cgprimer.visualization.plots.error_plot import error
    from cgprimer.visualization.plots.fit_plot import fit as fit  # noqa: PLC0414
    from cgprimer.visualization.plots.function_plot import function
    from cgprimer.visualization.plots.gradients_plot import gradients
    from cgprimer.visualization.plots.loss_plot import loss
    from cgprimer.visualization.plots.memory_plot import memory as memory  # noqa: PLC0414
    from cgprimer.visualization.plots.noise_plot import noise
    from cgprimer.visualization.plots.parameters_plot import parameters
    from cgprimer.visualization.plots.points_plot import points
    from cgprimer.visualization.plots.surface_plot import surface
    from cgprimer.visualization.plots.sweep_plot import sweep as sweep  # noqa: PLC0414
    from cgprimer.visualization.plots.swell_plot import swell
    from cgprimer.visualization.plots.variance_plot import variance
    from cgprimer.visualization.plots.workers_plot import workers

__all__ = [
    "activations",
    "batches",
    "boundary",
    "cost",
    "descent",
    "error",
    "function",
    "gradients",
    "loss",
    "noise",
    "parameters",
    "points",
    "surface",
    "swell",
    "variance",
    "workers",
]
_OF_VALUES = ["fit", "memory", "sweep"]  # plots of Python objects; the command `plot` omits them


def __getattr__(name: str) -> Any:
    if name not in (*__all__, *_OF_VALUES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"cgprimer.visualization.plots.{name}_plot"), name)


def __dir__() -> list[str]:
    return [*__all__, *_OF_VALUES]
