"""What the lecture's calls draw: into a window where there is one, else into a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from cgprimer.visualization.diagrams.figure_files import figure_bytes, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def shown(figure: Figure, path: str | Path | None, call: str) -> Figure:
    """Write or show a figure, and return it.

    With a path it is written there. Without one a matplotlib backend with windows shows it until
    the window is closed, a notebook shows what is returned, and any other backend (``Agg``, no
    display) has it written to ``CALL.png`` in the working directory, which is said.
    """
    if path is None:
        where = _backend()
        if where == "window":
            _window(figure)
        if where != "file":
            return figure
    target = Path(path if path is not None else f"{call}.png")
    save_figure(figure, target)
    if path is None:
        print(f"{call}: written to {target}")  # noqa: T201 - a script says where its picture is
    return figure


def _backend() -> str:
    """``window``, ``notebook`` or ``file``."""
    import matplotlib

    try:
        name = matplotlib.get_backend()
        if name.lower().startswith("module://"):
            return "notebook"
        from matplotlib import pyplot

        canvas = pyplot.figure().canvas
        pyplot.close(canvas.figure)
    except Exception:  # a backend that is asked for and cannot be had: no window, for any reason
        return "file"
    return "window" if getattr(canvas, "required_interactive_framework", None) else "file"


def _window(figure: Figure) -> None:
    """A window with the picture; it is one of pyplot's, which figures made here are not."""
    from matplotlib import pyplot

    width, height = figure.get_size_inches()
    opened = pyplot.figure(figsize=(width, height))
    axes = opened.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(pyplot.imread(io.BytesIO(figure_bytes(figure, "png"))), aspect="auto")
    axes.set_axis_off()
    pyplot.show()
