"""What pages share: a skeleton, and the theme's colours as variables of a style sheet."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from cgprimer.support.files import format_json
from cgprimer.visualization.diagrams.theme import mix, theme

_FOCUS = {False: "#0050d0", True: "#ffe14d"}


def page(folder: str, title: str, fills: Mapping[str, str], *, dark: bool = False) -> str:
    """A page that needs no network, no server and nothing beside it.

    Args:
        folder: a folder of ``cgprimer/visualization/pages`` with ``page.html``, ``page.css`` and
            the scripts.
        title: the heading.
        fills: of the marks ``@NAME@`` in them; a mark ``@name.js@`` (or css, html) stands for that
            file.
        dark: open dark, not as the reader's system has it.

    >>> parts = dict.fromkeys(("SUBTITLE", "GRAPH", "TABLES", "METHODS", "OF"), "")
    >>> page("comparison", "a < b", parts).splitlines()[0]
    '<!doctype html>'
    """
    look = ' data-look="dark"' if dark else ""
    given = {"TITLE": escape(title), "LOOK": look, "POLICY": "", **fills}
    body = filled(part(f"{folder}/page.html"), given, folder)
    sheet = part("common.css") + part(f"{folder}/page.css")
    style = filled(sheet, {"COLOURS": colours(), **fills}, folder)
    return filled(part("page.html"), {**given, "STYLE": style, "BODY": body})


def part(path: str) -> str:
    """A file of this folder."""
    return files("cgprimer.visualization.pages").joinpath(path).read_text(encoding="utf-8")


def script_data(value: Any) -> str:
    """A value as JSON; nothing inside closes the script element that it stands in."""
    plain = json.loads(format_json(value, indent=None))
    return json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")


def filled(template: str, fills: Mapping[str, str], folder: str = "") -> str:
    """A template with each mark ``@NAME@`` replaced, all at once.

    A mark inside a text of a user stays what it is.

    >>> filled("<h1>@TITLE@</h1><p>@TEXT@</p>", {"TITLE": "@TEXT@", "TEXT": "a"})
    '<h1>@TEXT@</h1><p>a</p>'
    """

    def fill(mark: re.Match[str]) -> str:
        return fills[mark[1]] if mark[1] else part(mark[2].replace("./", f"{folder}/"))

    return re.sub(r"@(?:([A-Z]+)|([\w./]+\.(?:js|css|html)))@", fill, template)


def colours() -> str:
    """Colours for both looks: what the reader's system has, unless the switch says otherwise."""
    light, dark = colour_variables(False), colour_variables(True)
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-look=light]) {{ {dark} }} }}\n"
        f":root[data-look=dark] {{ {dark} }}"
    )


def colour_variables(dark: bool) -> str:
    """Declarations for a style sheet: ``--ink``, ``--background``, one for each role, and others.

    >>> colour_variables(False).split(";")[:2]
    ['color-scheme: light', ' --background: #ffffff']
    """
    look = theme(dark)
    lit = look.curves[1]
    values = {
        "background": look.background,
        "ink": look.ink,
        "edge": look.edge,
        "grid": look.grid,
        "faint": mix(look.ink, look.background, 0.74),
        "lit": lit,
        "glow": mix(lit, look.background, 0.2),
        "focus": _FOCUS[dark],
        **{f"m{number}": colour for number, colour in enumerate(look.curves)},
    }
    for role, style in look.roles.items():
        values |= {role: style.outline, f"{role}-fill": style.fill}
    scheme = "dark" if dark else "light"
    return " ".join([f"color-scheme: {scheme};", *(f"--{n}: {v};" for n, v in values.items())])
