"""One page that steps through the methods: no network, no server, nothing beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Names
from cgprimer.files import check_writable, json_text, write_whole
from cgprimer.pages import markup
from cgprimer.pages.markup import colour_variables
from cgprimer.pages.stepping.frames import Stepping, stepping
from cgprimer.pages.stepping.graph_places import drawing_data, placed
from cgprimer.pages.stepping.method_steps import METHODS
from cgprimer.pictures.theme import theme


class Page(str):
    """The text of a page; a notebook shows the page itself, in a frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<a page of {len(self):,} characters>"


def step(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = METHODS[0],
    methods: Sequence[str] = METHODS,
    level: str = "variables",
    title: str | None = None,
    dark: bool = False,
    scheme: str | None = None,
    h: float | None = None,
    output: str | Path | None = None,
) -> Page:
    """A page that steps through the derivative of a graph, a tab per method.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable that is differentiated; the only output unless given.
        wrt: with respect to which names; all parameters unless given.
        method: the tab that is open at first.
        methods: the tabs.
        level: the picture's vertices: ``variables`` or ``operations``.
        title: the heading, in which control characters become spaces; empty for none. Names the
            variable that is differentiated unless given.
        dark: open in dark colours; the page has a switch.
        scheme: of finite differences: ``central``, unless given, or ``forward``; the page can
            change it.
        h: by how much finite differences move a variable, in its unit; chosen from its size if
            None.
        output: a file to write the page to.

    Returns:
        The page as text.

    Raises:
        UsageError: an unknown name, method, scheme or level; arrays; a step that is not a positive
            number; a scheme or a step without the method finite-difference; a path that cannot be
            written.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> step(parse("xw = cd*xa"), {"cd": 2, "xa": 3}).splitlines()[0]
    '<!doctype html>'
    """
    if output is not None:
        check_writable(output)
    tabs = tuple(dict.fromkeys((*methods, method)))
    shown = stepping(
        graph, at, of=of, wrt=wrt, methods=tabs, level=level, title=title, scheme=scheme, h=h
    )
    text = page(shown, method=method, dark=dark)
    if output is not None:
        write_whole(output, text)
    return text


def page(shown: Stepping, *, method: str = METHODS[0], dark: bool = False) -> Page:
    """The page of a stepping, with one tab open."""
    data = {
        **shown.to_dict(),
        "drawing": drawing_data(placed(shown.scene)),
        "first": shown.walk(method).method,
        "shapes": {role: [look.shape, look.word] for role, look in theme(False).roles.items()},
    }
    # Nothing inside may close the script element that the data stands in.
    written = json.dumps(json.loads(json_text(data, indent=None)), separators=(",", ":"))
    fills = {
        "ROLES": "\n".join(
            f".body.{role} {{ stroke: var(--{role}); stroke-width: {style.line_width};"
            f" fill: var(--{role}-fill); }}"
            for role, style in theme(False).roles.items()
        ),
        "PRINT": colour_variables(False),
        "METHODS": str(len(shown.walks)),
        "DATA": written.replace("<", "\\u003c"),
    }
    return Page(markup.page("stepping", shown.title, fills, look="dark" if dark else ""))
