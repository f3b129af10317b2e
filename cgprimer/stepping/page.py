"""One page that steps through the methods: no network, no server, nothing beside it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from cgprimer.differentiators.contract import Names
from cgprimer.drawing.theme import Theme, mix, theme
from cgprimer.files import check_writable, json_text, write_whole
from cgprimer.graph import ExpressionGraph
from cgprimer.stepping.frames import Stepping, stepping
from cgprimer.stepping.placing import drawing_data, placed
from cgprimer.stepping.walks import METHODS

_FOCUS = {False: "#0050d0", True: "#ffe14d"}


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
    output: str | Path | None = None,
) -> str:
    """A page that steps through the derivative of a graph, a tab per method.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable that is differentiated; the only output unless given.
        wrt: with respect to which names; all parameters unless given.
        method: the tab that is open at first.
        methods: the tabs.
        level: the picture's vertices: ``variables`` or ``operations``.
        title: the heading.
        dark: open in dark colours; the page has a switch.
        output: a file to write the page to.

    Returns:
        The page as text.

    Raises:
        UsageError: an unknown name, method or level; arrays; a path that cannot be written.
        MissingValueError: a value is missing.

    >>> from cgprimer.graph import parse
    >>> step(parse("xw = cd*xa"), {"cd": 2, "xa": 3}).splitlines()[0]
    '<!doctype html>'
    """
    if output is not None:
        check_writable(output)
    tabs = tuple(dict.fromkeys((*methods, method)))
    heading = title or f"{of or ', '.join(graph.outputs)} step by step"
    shown = stepping(graph, at, of=of, wrt=wrt, methods=tabs, level=level, title=heading)
    text = page(shown, method=method, dark=dark)
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
    }
    # Nothing inside may close the script element that the data stands in.
    written = json.dumps(json.loads(json_text(data, indent=None)), separators=(",", ":"))
    written = written.replace("<", "\\u003c")
    fills = {
        "TITLE": html.escape(shown.title),
        "STYLE": _part("page.css").replace("@ROOT@", _colours()),
        "METHODS": str(len(shown.walks)),
        "ARITHMETIC": _part("arithmetic.js"),
        "PROGRAM": _part("page.js"),
        "DATA": written,
    }
    # All at once: a mark inside a text of a user stays what it is.
    return re.sub("@([A-Z]+)@", lambda mark: fills[mark[1]], _part("page.html"))


def _part(name: str) -> str:
    return files("cgprimer.stepping").joinpath(name).read_text(encoding="utf-8")


def _colours() -> str:
    """The theme's colours as variables of the style sheet, for both looks."""
    lines = [f":root {{ {_look(theme(False), False)} }}"]
    lines.append(f"[data-look=dark] {{ {_look(theme(True), True)} }}")
    for role, style in theme(False).roles.items():
        stroke = f"stroke: var(--{role}); stroke-width: {style.line_width};"
        lines.append(f"#graph .body.{role} {{ {stroke} fill: var(--{role}-fill); }}")
    return "\n".join(lines)


def _look(look: Theme, dark: bool) -> str:
    lit = look.curves[1]
    values = {
        "background": look.background,
        "ink": look.ink,
        "edge": look.edge,
        "grid": look.grid,
        "faint": mix(look.ink, look.background, 0.72),
        "lit": lit,
        "glow": mix(lit, look.background, 0.2),
        "focus": _FOCUS[dark],
    }
    for role, style in look.roles.items():
        values |= {role: style.outline, f"{role}-fill": style.fill}
    scheme = "dark" if dark else "light"
    return " ".join([f"color-scheme: {scheme};", *(f"--{n}: {v};" for n, v in values.items())])
