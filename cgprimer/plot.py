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
    from cgprimer.plots.activations import activations
    from cgprimer.plots.batches import batches
    from cgprimer.plots.boundary import boundary
    from cgprimer.plots.cost import cost
    from cgprimer.plots.descent import descent
    from cgprimer.plots.error import error
    from cgprimer.plots.fit import fit as fit  # noqa: PLC0414
    from cgprimer.plots.function import function
    from cgprimer.plots.gradients import gradients
    from cgprimer.plots.loss import loss
    from cgprimer.plots.memory import memory as memory  # noqa: PLC0414
    from cgprimer.plots.noise import noise
    from cgprimer.plots.parameters import parameters
    from cgprimer.plots.points import points
    from cgprimer.plots.surface import surface
    from cgprimer.plots.sweep import sweep as sweep  # noqa: PLC0414
    from cgprimer.plots.swell import swell
    from cgprimer.plots.variance import variance
    from cgprimer.plots.workers import workers

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
_OF_VALUES = ["fit", "memory", "sweep"]  # of objects in Python: `plot` draws none of them


def __getattr__(name: str) -> Any:
    if name not in (*__all__, *_OF_VALUES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"cgprimer.plots.{name}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_OF_VALUES]
