"""A page whose window is filled by a picture."""

from __future__ import annotations

from base64 import b64encode

from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.figure_files import encode_figure
from cgprimer.visualization.pages.comparison.comparison_page import describe_diagram
from cgprimer.visualization.pages.page_rendering import render_page


def picture_page(diagram: Diagram, title: str, *, dark: bool = False) -> str:
    """Render a page on which the picture of a diagram fills the browser window.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> page = picture_page(Diagram((Node("xa", "x < y", "input"),), ()), "a.cg")
    >>> "<title>a.cg</title>" in page, 'alt="graph of 1 vertex and 0 edges: input x &lt; y' in page
    (True, True)
    """
    picture = encode_figure(draw_diagram(diagram, dark=dark), "svg")
    return render_page(
        "visualization/pages/watching/picture_page.html",
        title,
        dark=dark,
        fixed_theme=True,  # the picture cannot change its colors
        description=describe_diagram(diagram),
        picture=b64encode(picture).decode(),  # an image runs no script, whatever names it shows
    )
