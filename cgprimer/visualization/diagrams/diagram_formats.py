"""Diagrams as files: pictures, and text formats of other programs, chosen by the file suffix."""

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
        "html": "cgprimer.visualization.pages.exploring.explorer_page:explorer_page",
    },
)


def formats() -> tuple[str, ...]:
    """Return the file suffixes of all picture formats, including custom ones.

    >>> formats()[:8]
    ('png', 'svg', 'pdf', 'dot', 'gv', 'mmd', 'tex', 'html')
    """
    return (*FORMATS, *TEXTS.names())


def shows_every_vertex(path: Path) -> bool:
    """Return whether a file always shows all vertices, even those of a large graph.

    A page closes groups of vertices instead of summarizing the graph.

    >>> shows_every_vertex(Path("graph.html")), shows_every_vertex(Path("graph.svg"))
    (True, False)
    """
    return path.suffix.lower() == ".html"


def register_picture_format(ending: str, written: Callable[..., str]) -> None:
    """Register a custom picture format; a package can declare an entry point instead.

    Args:
        ending: suffix of the files, without a dot: ``cgprimer draw FILE -o graph.ENDING``.
        written: function ``(diagram, *, dark)`` that returns the content of a file; the diagram is
            a :class:`cgprimer.visualization.diagrams.diagram.Diagram`.

    Raises:
        UsageError: the format exists.

    >>> def edges(diagram, *, dark):
    ...     return "\\n".join(f"{edge.tail} -> {edge.head}" for edge in diagram.edges)
    >>> register_picture_format("edges", edges)
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
    >>> format_diagram(graph_diagram(parse("xw = ab*xa")), "edges")
    'xa -> xw'
    >>> TEXTS.unregister("edges")
    """
    if ending in FORMATS:
        raise UsageError(f"picture format {ending!r} is already registered")
    TEXTS.register(ending, written)


def unregister_picture_format(name: str) -> None:
    """Remove a picture format that was registered with :func:`register_picture_format`.

    Raises:
        UsageError: the format is not registered.
    """
    TEXTS.unregister(name)


def format_diagram(diagram: Diagram, kind: str, *, dark: bool = False) -> str:
    """Convert a diagram to DOT, Mermaid, TikZ, an HTML page or a registered format, by suffix.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> format_diagram(Diagram((Node("xa", "xa", "input"),), ()), "gv").split()[0]
    'digraph'
    """
    return replace_control_characters(TEXTS[kind](diagram, dark=dark))


def check_output(output: str | Path) -> Path:
    """Convert the argument `output` to a path; check its type, its suffix and its folder.

    Raises `cgprimer.errors.UsageError` if a picture cannot be written to the path.

    >>> check_output("graph.svg").name
    'graph.svg'
    """
    if not isinstance(output, str | PathLike):
        raise UsageError(
            f"`output` must be a path, got {reprlib.repr(output)}",
            hint="pass options by name: draw(graph, 'graph.png', at={'xa': 1})",
        )
    path = Path(output)
    check_picture_path(path, formats())
    return path


def save_diagram(diagram: Diagram, path: Path, *, dark: bool = False) -> float | None:
    """Write a diagram to a file atomically; the suffix of the path selects the format.

    Returns the size of the smallest text of a picture on a 16:9 slide, in points; None for text
    formats.

    Raises `cgprimer.errors.UsageError` for an unknown suffix or an unwritable file.
    """
    kind = check_picture_path(path, formats())
    if kind in TEXTS:
        write_generated_file(path, format_diagram(diagram, kind, dark=dark))
        return None
    from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
    from cgprimer.visualization.diagrams.slide_layout import compute_text_size_on_slide

    figure = draw_diagram(diagram, dark=dark)
    save_figure(figure, path)
    return compute_text_size_on_slide(*(72.0 * figure.get_size_inches()))
