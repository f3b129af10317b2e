"""A comparison as one page without network, server or anything beside it, and in notebooks."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files

from cgprimer.analysis.comparison import Comparison
from cgprimer.pages.comparison import words
from cgprimer.pages.comparison.fragments import (
    cost_section,
    derivative_section,
    method_sections,
)
from cgprimer.pages.comparison.panel import standing_alone, whole_graph
from cgprimer.pages.look import colour_variables, filled
from cgprimer.pictures.diagram import Diagram
from cgprimer.pictures.saving import figure_bytes
from cgprimer.pictures.theme import theme

_FEW_VERTICES = 40  # beyond which the description for screen readers counts them
_PIXELS = 96 / 72  # per point


def comparison_page(found: Comparison, *, dark: bool = False, title: str = "") -> str:
    """A comparison as a page: graph, derivatives, costs, and a section per method with its trace.

    The page follows the light or dark colours of its reader's system, and has a switch.

    Args:
        found: from ``cgprimer.compare``.
        dark: open in dark colours, whatever the system has.
        title: the heading; says what is compared unless given.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> page = comparison_page(found, title="a < b")
    >>> page.splitlines()[0], "<h1>a &lt; b</h1>" in page
    ('<!doctype html>', True)
    """
    fills = {
        "LOOK": ' data-look="dark"' if dark else "",
        "TITLE": escape(title or words.heading(found)),
        "SUBTITLE": escape(words.subheading(found)),
        "ROOT": _root(),
        "STYLE": _shared_style() + _part("page.css"),
        "GRAPH": graph_section(found),
        "DERIVATIVES": derivative_section(found),
        "COSTS": cost_section(found),
        "METHODS": method_sections(found),
        "PROGRAM": _part("page.js"),
    }
    return filled(_part("page.html"), fills)


def notebook_html(found: Comparison) -> str:
    """What a notebook shows of a comparison: the graph and both tables, on a light ground.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> notebook_html(compare(parse("xw = k*xa"), {"xa": 1, "k": 2}))[:23]
    '<div class="comparison"'
    """
    colours = colour_variables(False) + _method_colours(False)
    ground = "background: var(--background); color: var(--ink); padding: 0.8em;"
    parts = [
        f'<div class="comparison" style="{escape(colours)} {ground}">',
        f"<style>{_shared_style()}</style>",
        f"<p>{escape(words.subheading(found))}</p>",
        graph_section(found),
        derivative_section(found),
        cost_section(found),
        "</div>",
    ]
    return "\n".join(parts)


def graph_section(found: Comparison) -> str:
    """The graph as SVG that takes its colours from the style sheet, with a description."""
    made = standing_alone(found)
    if made is None:
        return ""
    figure, note = made
    width = float(figure.get_size_inches()[0]) * 72 * _PIXELS
    picture = figure_bytes(figure, "svg").decode()
    picture = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = picture[picture.index("<svg") :]
    label = escape(described(whole_graph(found)), quote=True)
    opening = f'<svg role="img" aria-label="{label}" style="width: {width:.0f}px" '
    picture = re.sub(r' (?:width|height)="[^"]*pt"', "", picture, count=2)
    picture = _themed(picture.replace("<svg ", opening, 1))
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    return (
        f'<section><h2>The graph</h2><figure tabindex="0" aria-label="the graph">{picture}'
        f"{caption}</figure></section>"
    )


def described(diagram: Diagram) -> str:
    """A graph in words, for readers who cannot see it.

    >>> from cgprimer.pictures.diagram import Edge, Node
    >>> nodes = (Node("xa", "xa", "input", ("= 1",)), Node("xw", "xw", "output", ("2*xa", "= 2")))
    >>> described(Diagram(nodes, (Edge("xa", "xw"),)))
    'graph of 2 vertices and 1 edges: input xa = 1; output xw = 2*xa = 2'
    """
    count = f"graph of {len(diagram.nodes)} vertices and {len(diagram.edges)} edges"
    if len(diagram.nodes) > _FEW_VERTICES:
        return count

    def said(label: str, role: str, detail: tuple[str, ...]) -> str:
        texts = [text if text.startswith("= ") else f"= {text}" for text in detail]
        return " ".join([role, label, *texts])

    return f"{count}: " + "; ".join(said(n.label, n.role, n.detail) for n in diagram.nodes)


def _themed(picture: str) -> str:
    """A light picture whose colours are those of the style sheet, light or dark."""
    look = theme(False)
    names = {
        look.background: "background",
        look.ink: "ink",
        look.edge: "edge",
        look.grid: "grid",
        **{style.outline: role for role, style in look.roles.items()},
        **{style.fill: f"{role}-fill" for role, style in look.roles.items()},
    }
    names[look.background] = "background"  # also the fill of a dotted outline

    def variable(found: re.Match[str]) -> str:
        return f"var(--{names[found[0]]})" if found[0] in names else found[0]

    return re.sub(r"#[0-9a-f]{6}\b", variable, picture)


def _root() -> str:
    """Colours for both looks: what the reader's system has, unless the switch says otherwise."""
    light = f"{colour_variables(False)} {_method_colours(False)}"
    dark = f"{colour_variables(True)} {_method_colours(True)}"
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-look=light]) {{ {dark} }} }}\n"
        f":root[data-look=dark] {{ {dark} }}"
    )


def _method_colours(dark: bool) -> str:
    return " ".join(f"--m{k}: {colour};" for k, colour in enumerate(theme(dark).curves))


def _shared_style() -> str:
    return _part("tables.css")


def _part(name: str) -> str:
    return files("cgprimer.pages.comparison").joinpath(name).read_text(encoding="utf-8")
