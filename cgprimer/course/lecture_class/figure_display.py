"""Display of the figures of the lecture's class in a window, a notebook or a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from cgprimer.visualization.diagrams.figure_files import encode_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show_figure(figure: Figure, path: str | Path | None, call: str) -> Figure:
    """Show a figure in a window or a notebook, or write it to a file; return the figure.

    Without a path, a matplotlib backend with windows shows the figure until the window is closed,
    and a notebook shows the returned figure. With any other backend (``Agg``, no display), the
    figure is written to ``CALL.png`` in the working directory, and a line says so.

    Args:
        figure: the figure.
        path: the file to write.
        call: the name of the called method.
    """
    if path is None:
        display = _detect_display()
        if display == "window":
            _show_in_window(figure)
        if display != "file":
            return figure
    target = Path(path if path is not None else f"{call}.png")
    save_figure(figure, target)
    if path is None:
        print(f"{call}: written to {target}")  # noqa: T201 - tells users of scripts the file
    return figure


def _detect_display() -> str:
    """Return where matplotlib can show figures: ``window``, ``notebook`` or ``file``."""
    import matplotlib

    try:
        name = matplotlib.get_backend()
        if name.lower().startswith("module://"):
            return "notebook"
        from matplotlib import pyplot

        canvas = pyplot.figure().canvas
        pyplot.close(canvas.figure)
    except Exception:  # the selected backend cannot be loaded, for any reason
        return "file"
    return "window" if getattr(canvas, "required_interactive_framework", None) else "file"


def _show_in_window(figure: Figure) -> None:
    """Show a figure as an image in a window of matplotlib."""
    from matplotlib import pyplot

    width, height = figure.get_size_inches()
    window = pyplot.figure(figsize=(width, height))
    axes = window.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(pyplot.imread(io.BytesIO(encode_figure(figure, "png"))), aspect="auto")
    axes.set_axis_off()
    pyplot.show()
