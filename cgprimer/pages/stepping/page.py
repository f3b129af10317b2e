"""One page that steps through the methods: no network, no server, nothing beside it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Names
from cgprimer.files import check_writable, json_text, write_whole
from cgprimer.pages.look import colour_variables, filled
from cgprimer.pages.stepping.frames import Stepping, stepping
from cgprimer.pages.stepping.placing import drawing_data, placed
from cgprimer.pages.stepping.walks import METHODS
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
    title: str = "",
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
        title: the heading; names the variable that is differentiated unless given.
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
    text = Page(page(shown, method=method, dark=dark))
    if output is not None:
        write_whole(output, text)
    return text


def page(shown: Stepping, *, method: str = METHODS[0], dark: bool = False) -> str:
    """The page of a stepping, with one tab open."""
    data = {
        **shown.to_dict(),
        "drawing": drawing_data(placed(shown.scene)),
        "first": shown.walk(method).method,
        "dark": dark,
        "shapes": {role: [look.shape, look.word] for role, look in theme(False).roles.items()},
    }
    # Nothing inside may close the script element that the data stands in.
    written = json.dumps(json.loads(json_text(data, indent=None)), separators=(",", ":"))
    written = written.replace("<", "\\u003c")
    fills = {
        "TITLE": html.escape(shown.title),
        "STYLE": filled(_part("page.css"), {"ROOT": _colours(), "PRINT": colour_variables(False)}),
        "METHODS": str(len(shown.walks)),
        "NUMBERS": _part("../number_format.js"),
        "ARITHMETIC": _part("arithmetic.js"),
        "FRAMES": _part("frames.js"),
        "PICTURE": _part("picture.js"),
        "PAGE": _part("page.js"),
        "CONTROLS": _part("controls.js"),
        "DATA": written,
    }
    return filled(_part("page.html"), fills)


def _part(name: str) -> str:
    return files("cgprimer.pages.stepping").joinpath(name).read_text(encoding="utf-8")


def _colours() -> str:
    """The theme's colours as variables of the style sheet, for both looks."""
    lines = [f":root {{ {colour_variables(False)} }}"]
    lines.append(f"[data-look=dark] {{ {colour_variables(True)} }}")
    for role, style in theme(False).roles.items():
        stroke = f"stroke: var(--{role}); stroke-width: {style.line_width};"
        lines.append(f".body.{role} {{ {stroke} fill: var(--{role}-fill); }}")
    return "\n".join(lines)
