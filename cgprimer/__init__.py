"""Computational graphs and automatic differentiation, taught.

>>> import cgprimer
>>> graph = cgprimer.parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
>>> cgprimer.gradient(graph, {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4})
{'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cgprimer import plot as plot
    from cgprimer.analysis.comparison import compare
    from cgprimer.analysis.trace import trace
    from cgprimer.core.derivatives import (
        gradient,
        hessian,
        hessian_vector_product,
        jacobian,
        partials,
        tape,
    )
    from cgprimer.core.engines import engines, register_engine
    from cgprimer.core.graph import ExpressionGraph, load, parse
    from cgprimer.core.methods import differentiate, methods
    from cgprimer.core.primitives import register_primitive, unregister_primitive
    from cgprimer.data import Dataset, make_dataset
    from cgprimer.errors import CgprimerError
    from cgprimer.lecture import ComputationalGraphPrimer
    from cgprimer.pages.comparison.slides import draw_comparison
    from cgprimer.pages.stepping.page import step
    from cgprimer.pictures.diagrams import draw
    from cgprimer.training.loop import train
    from cgprimer.training.objective import loss_and_gradient

# Public name -> module: nothing is imported before it is asked for, so that `import cgprimer`
# and `cgprimer --help` stay instant.
_PUBLIC = {
    "CgprimerError": "errors",
    "ComputationalGraphPrimer": "lecture",
    "Dataset": "data",
    "ExpressionGraph": "core.graph",
    "compare": "analysis.comparison",
    "differentiate": "core.methods",
    "draw": "pictures.diagrams",
    "draw_comparison": "pages.comparison.slides",
    "engines": "core.engines",
    "gradient": "core.derivatives",
    "hessian": "core.derivatives",
    "hessian_vector_product": "core.derivatives",
    "jacobian": "core.derivatives",
    "load": "core.graph",
    "loss_and_gradient": "training.objective",
    "make_dataset": "data",
    "methods": "core.methods",
    "parse": "core.graph",
    "partials": "core.derivatives",
    "register_engine": "core.engines",
    "register_primitive": "core.primitives",
    "step": "pages.stepping.page",
    "tape": "core.derivatives",
    "trace": "analysis.trace",
    "train": "training.loop",
    "unregister_primitive": "core.primitives",
}

# Modules of functions that are called by both names, as in cgprimer.plot.loss(run).
_MODULES = ("plot",)

__all__ = [
    "CgprimerError",
    "ComputationalGraphPrimer",
    "Dataset",
    "ExpressionGraph",
    "__version__",
    "compare",
    "differentiate",
    "draw",
    "draw_comparison",
    "engines",
    "gradient",
    "hessian",
    "hessian_vector_product",
    "jacobian",
    "load",
    "loss_and_gradient",
    "make_dataset",
    "methods",
    "parse",
    "partials",
    "plot",
    "register_engine",
    "register_primitive",
    "step",
    "tape",
    "trace",
    "train",
    "unregister_primitive",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"cgprimer.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'cgprimer' has no attribute {name!r}")
    value = getattr(import_module(f"cgprimer.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
