"""What pages share: the theme's colours as variables of a style sheet, and how a page is filled."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cgprimer.pictures.theme import mix, theme

_FOCUS = {False: "#0050d0", True: "#ffe14d"}


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
        "faint": mix(look.ink, look.background, 0.72),
        "lit": lit,
        "glow": mix(lit, look.background, 0.2),
        "focus": _FOCUS[dark],
    }
    for role, style in look.roles.items():
        values |= {role: style.outline, f"{role}-fill": style.fill}
    scheme = "dark" if dark else "light"
    return " ".join([f"color-scheme: {scheme};", *(f"--{n}: {v};" for n, v in values.items())])


def filled(template: str, fills: Mapping[str, str]) -> str:
    """A template with each mark ``@NAME@`` replaced, all at once.

    A mark inside a text of a user stays what it is.

    >>> filled("<h1>@TITLE@</h1><p>@TEXT@</p>", {"TITLE": "@TEXT@", "TEXT": "a"})
    '<h1>@TEXT@</h1><p>a</p>'
    """
    return re.sub("@([A-Z]+)@", lambda mark: fills[mark[1]], template)
