"""Rendering of HTML pages that need no network, no server and no other files.

`page.html` is the layout of all pages and `style.css` their style sheet, in which the colors of the
theme are variables, once for light and once for dark pages.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any, NamedTuple

from cgprimer.support.files import format_json
from cgprimer.support.templates import Markup, render_template
from cgprimer.visualization.diagrams.theme import mix, theme

_FRAME_HEIGHT = 720  # pixels of a page in a notebook; the page scrolls
_FOCUS_COLORS = {False: "#0050d0", True: "#ffe14d"}


class ThemeColors(NamedTuple):
    """The colors of the light or the dark theme, as CSS variables.

    Attributes:
        scheme: the CSS color scheme, ``light`` or ``dark``.
        variables: the values of the CSS variables, keyed by name without ``--``.
    """

    scheme: str
    variables: dict[str, str]


def render_page(
    template: str, title: str, *, dark: bool = False, fixed_theme: bool = False, **values: Any
) -> str:
    """Render an HTML page from a template that extends ``page.html``.

    Args:
        template: the path of the template, relative to the package.
        title: the title of the page, and its heading.
        dark: open in dark colors instead of those of the reader's system.
        fixed_theme: ignore the reader's system in light pages as well.
        values: other names that the template uses; strings are escaped.

    >>> template = "visualization/pages/watching/picture_page.html"
    >>> page = render_page(template, "a < b", picture="", description="")
    >>> page.splitlines()[0], "<title>a &lt; b</title>" in page
    ('<!doctype html>', True)
    """
    return render_template(
        template,
        title=title,
        theme="dark" if dark else "light" if fixed_theme else "",
        themes=collect_themes(),
        **values,
    )


def render_frame(page: str) -> str:
    """Render a frame that shows a page in a notebook, isolated from its styles and shortcuts."""
    template = "visualization/notebook_page.html"
    return render_template(template, page=str(page), height=_FRAME_HEIGHT).rstrip("\n")


def collect_themes() -> dict[str, ThemeColors]:
    """Return the CSS variables of the light and the dark theme, keyed by ``light`` and ``dark``."""
    return {colors.scheme: colors for colors in map(collect_theme_colors, (False, True))}


def collect_theme_colors(dark: bool) -> ThemeColors:
    """Return the colors of the light or the dark theme as CSS variables, such as ``ink``.

    >>> collect_theme_colors(False).variables["background"]
    '#ffffff'
    """
    look = theme(dark)
    highlight = look.curves[1]
    variables = {
        "background": look.background,
        "ink": look.ink,
        "edge": look.edge,
        "grid": look.grid,
        "faint": mix(look.ink, look.background, 0.74),
        "lit": highlight,
        "glow": mix(highlight, look.background, 0.2),
        "focus": _FOCUS_COLORS[dark],
        **{f"m{index}": color for index, color in enumerate(look.curves)},
    }
    for role, style in look.roles.items():
        variables |= {role: style.outline, f"{role}-fill": style.fill}
    return ThemeColors("dark" if dark else "light", variables)


def encode_script_data(value: Any) -> Markup:
    """Encode a value as JSON that can be embedded safely in a script element of a page."""
    plain = json.loads(format_json(value, indent=None))
    return Markup(json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c"))


def inline_svg(
    picture: bytes, *, themed: bool = True, keep_size: bool = False, **attributes: str
) -> Markup:
    """Convert the content of an SVG file to an element that can be embedded in an HTML page.

    Args:
        picture: the file, drawn in light colors.
        themed: replace the light colors of the theme by the variables of the style sheet.
        keep_size: keep the width and the height of the file.
        attributes: attributes of the element; ``aria_label`` becomes ``aria-label``.

    >>> svg = b'<?xml version="1.0"?><svg width="9pt" height="9pt"><path fill="#ffffff"/></svg>'
    >>> print(inline_svg(svg, role="img"))
    <svg role="img"><path fill="var(--background)"/></svg>
    """
    text = picture.decode()
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = text[text.index("<svg") :]
    if not keep_size:
        text = re.sub(r' (?:width|height)="[^"]*pt"', "", text, count=2)
    names = (name.replace("_", "-") for name in attributes)
    written = (f' {n}="{escape(v)}"' for n, v in zip(names, attributes.values(), strict=True))
    text = text.replace("<svg", f"<svg{''.join(written)}", 1)
    return Markup(_replace_colors(text) if themed else text)


def _replace_colors(picture: str) -> str:
    """Replace the light theme's colors in an SVG picture by CSS variables."""
    look = theme(False)
    names = {look.ink: "ink", look.edge: "edge", look.grid: "grid"}
    for role, style in look.roles.items():
        names |= {style.outline: role, style.fill: f"{role}-fill"}
    names[look.background] = "background"  # also the fill of a dotted outline
    variables = {color: f"var(--{name})" for color, name in names.items()}
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: variables.get(match[0], match[0]), picture)
