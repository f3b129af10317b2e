"""Diagrams as files: pictures, and texts for other programs. The ending of the name decides."""

from __future__ import annotations

from pathlib import Path

from cgprimer.files import check_writable, write_whole
from cgprimer.pictures.diagram import Diagram
from cgprimer.pictures.saving import FORMATS as PICTURES
from cgprimer.pictures.saving import picture_kind, printable, save_figure

TEXTS = ("dot", "gv", "mmd", "tex")
FORMATS = (*PICTURES, *TEXTS)


def diagram_text(diagram: Diagram, kind: str, *, dark: bool = False) -> str:
    """A diagram as DOT (`dot`, `gv`), Mermaid (`mmd`) or TikZ (`tex`).

    >>> from cgprimer.pictures.diagram import Node
    >>> diagram_text(Diagram((Node("xa", "xa", "input"),), ()), "gv").split()[0]
    'digraph'
    """
    if kind == "mmd":
        from cgprimer.pictures.mermaid import mermaid as written
    elif kind == "tex":
        from cgprimer.pictures.tikz import tikz as written
    else:
        from cgprimer.pictures.dot import dot as written
    return printable(written(diagram, dark=dark))


def save_diagram(diagram: Diagram, path: Path, *, dark: bool = False) -> float | None:
    """Write a diagram as PNG, SVG, PDF, DOT, Mermaid or TikZ; the file is whole or not there.

    Returns the size in points that the smallest text of a picture has on a 16:9 slide; None for
    the formats that are text.

    Raises `cgprimer.errors.UsageError` for any other ending and where the file cannot be written.
    """
    kind = check_diagram_path(path)
    if kind in TEXTS:
        write_whole(path, diagram_text(diagram, kind, dark=dark))
        return None
    from cgprimer.pictures.captions import text_on_slide
    from cgprimer.pictures.figure import draw_diagram

    figure = draw_diagram(diagram, dark=dark)
    save_figure(figure, path)
    width, height = figure.get_size_inches()
    return text_on_slide(72.0 * float(width), 72.0 * float(height))


def check_diagram_path(path: Path) -> str:
    """The format that `path` asks for, after a look whether it can be written.

    Raises `cgprimer.errors.UsageError` for an unknown ending or a folder that cannot be written to.

    >>> check_diagram_path(Path("graph.gv"))
    'gv'
    """
    kind = picture_kind(path, FORMATS)
    check_writable(path)
    return kind
