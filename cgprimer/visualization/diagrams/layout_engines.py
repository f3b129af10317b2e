"""The choice of a layout engine, which arranges the vertices of a graph in layers.

graphlay is used if it is installed, and otherwise the built-in layout of `layered_layout.py`.
`set_layout_engine` installs another engine, such as dagre in a browser (`dagre_layout.py`).
"""

from __future__ import annotations

from functools import cache

from cgprimer.support.caller_warnings import warn_user
from cgprimer.visualization.diagrams.layout_requests import LayoutEngine

_installed_engines: list[LayoutEngine] = []  # empty, or the engine that replaces the default


def set_layout_engine(engine: LayoutEngine | None) -> None:
    """Install the engine of all following layouts; None restores the default engine.

    >>> from cgprimer.visualization.diagrams.layered_layout import lay_out_layers
    >>> set_layout_engine(lay_out_layers)
    >>> find_layout_engine().__name__
    'lay_out_layers'
    >>> set_layout_engine(None)
    """
    _installed_engines[:] = [] if engine is None else [engine]


def find_layout_engine() -> LayoutEngine:
    """Return the installed engine, or else graphlay, or else the built-in layout with a warning."""
    if _installed_engines:
        return _installed_engines[0]
    try:
        from cgprimer.visualization.diagrams.graphlay_layout import lay_out_with_graphlay
    except ImportError:
        from cgprimer.visualization.diagrams.layered_layout import lay_out_layers

        _warn_of_missing_graphlay()
        return lay_out_layers
    return lay_out_with_graphlay


@cache
def _warn_of_missing_graphlay() -> None:
    """Warn once that the built-in layout is used."""
    warn_user("graphlay is not installed, so graphs are drawn with the built-in layout")
