"""A picture that fills its window."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.figure_files import figure_bytes
from cgprimer.visualization.pages import page_markup
from cgprimer.visualization.pages.comparison.comparison_page import described


def picture_page(diagram: Diagram, title: str, *, dark: bool = False) -> str:
    """A diagram as a page.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> page = picture_page(Diagram((Node("xa", "x < y", "input"),), ()), "a.cg")
    >>> "<title>a.cg</title>" in page, 'alt="graph of 1 vertex and 0 edges: input x &lt; y' in page
    (True, True)
    """
    picture = figure_bytes(draw_diagram(diagram, dark=dark), "svg")
    # As an image it can run nothing, whatever names stand in it.
    fills = {"ALT": escape(described(diagram)), "PICTURE": b64encode(picture).decode()}
    look = f' data-look="{"dark" if dark else "light"}"'  # the picture cannot change its own
    return page_markup.page("watching/picture", title, {"LOOK": look, **fills})
