"""Diagrams as files: pictures, and texts for other programs. The ending of the name decides."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from cgprimer.errors import UsageError
from cgprimer.support.files import write_generated_file
from cgprimer.support.plugins import Registry
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.figure_files import (
    FORMATS,
    check_picture_path,
    replace_control_characters,
    save_figure,
)

TEXTS: Registry[Callable[..., str]] = Registry(
    "picture format",
    "cgprimer.picture_formats",
    {
        "dot": "cgprimer.visualization.diagrams.flowcharts:dot",
        "gv": "cgprimer.visualization.diagrams.flowcharts:dot",
        "mmd": "cgprimer.visualization.diagrams.flowcharts:mermaid",
        "tex": "cgprimer.visualization.diagrams.tikz:tikz",
    },
)


def formats() -> tuple[str, ...]:
    """The endings of files that a diagram can be written to.

    >>> formats()[:7]
    ('png', 'svg', 'pdf', 'dot', 'gv', 'mmd', 'tex')
    """
    return (*FORMATS, *TEXTS.names())


def register_picture_format(ending: str, written: Callable[..., str]) -> None:
    """Add a format of one's own; a package may have it as an entry point instead.

    Args:
        ending: of the files, without a dot: ``cgprimer draw FILE -o graph.ENDING``.
        written: a function ``(diagram, *, dark)`` to the text of a file; the diagram is a
            :class:`cgprimer.visualization.diagrams.diagram.Diagram`.

    Raises:
        UsageError: there is such a format.

    >>> def edges(diagram, *, dark):
    ...     return "\\n".join(f"{edge.tail} -> {edge.head}" for edge in diagram.edges)
    >>> register_picture_format("edges", edges)
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
    >>> diagram_text(graph_diagram(parse("xw = ab*xa")), "edges")
    'xa -> xw'
    >>> TEXTS.unregister("edges")
    """
    if ending in FORMATS:
        raise UsageError(f"there is a picture format {ending!r} already")
    TEXTS.register(ending, written)


def unregister_picture_format(name: str) -> None:
    """Remove a format that :func:`register_picture_format` added.

    Raises:
        UsageError: no such format was registered.
    """
    TEXTS.unregister(name)


def diagram_text(diagram: Diagram, kind: str, *, dark: bool = False) -> str:
    """A diagram as DOT (`dot`, `gv`), Mermaid (`mmd`), TikZ (`tex`) or in a format from outside.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> diagram_text(Diagram((Node("xa", "xa", "input"),), ()), "gv").split()[0]
    'digraph'
    """
    return replace_control_characters(TEXTS[kind](diagram, dark=dark))


def check_output(output: str | Path) -> Path:
    """Return the path of a picture to write, after a check of its type, its ending and its folder.

    Raises `cgprimer.errors.UsageError` where no picture can be written there.

    >>> check_output("graph.svg").name
    'graph.svg'
    """
    if not isinstance(output, str | PathLike):
        raise UsageError(
            f"draw: output must be a path, got {reprlib.repr(output)}",
            hint="options are named: draw(graph, 'graph.png', at={'xa': 1})",
        )
    path = Path(output)
    check_picture_path(path, formats())
    return path


def save_diagram(diagram: Diagram, path: Path, *, dark: bool = False) -> float | None:
    """Write a diagram in one of the `formats`; the file is whole or not there.

    Returns the size in points that the smallest text of a picture has on a 16:9 slide; None for
    the formats that are text.

    Raises `cgprimer.errors.UsageError` for any other ending and where the file cannot be written.
    """
    kind = check_picture_path(path, formats())
    if kind in TEXTS:
        write_generated_file(path, diagram_text(diagram, kind, dark=dark))
        return None
    from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
    from cgprimer.visualization.diagrams.slide_layout import text_on_slide

    figure = draw_diagram(diagram, dark=dark)
    save_figure(figure, path)
    return text_on_slide(*(72.0 * figure.get_size_inches()))
