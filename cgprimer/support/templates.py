r"""Documents rendered from jinja2 templates.

A template is a file next to the module that uses it. Its path is relative to the package, such as
``visualization/pages/page.html``, and its ending decides how values are escaped: ``.tex`` for
LaTeX, ``.md`` for Markdown, every other ending (``.html``, ``.css``, ``.js``) for HTML. Values of
the class :class:`Markup` are inserted unchanged. HTML and Markdown templates have jinja2's own
delimiters; LaTeX templates have ``<< value >>``, ``<% statement %>`` and ``<# comment #>``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from cgprimer.support.latex_text import escape_latex_prose

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment

_LATEX_DELIMITERS: dict[str, Any] = {
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "block_start_string": "<%",
    "block_end_string": "%>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}


class Markup(str):
    """A string that is HTML, LaTeX or Markdown already: templates insert it unchanged.

    >>> Markup("<b>").__html__()
    '<b>'
    """

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup; jinja2 calls this method instead of escaping."""
        return str(self)


def render_template(path: str, **values: Any) -> str:
    """Render a template file of the package, with all values escaped.

    Args:
        path: the path of the template, relative to the package.
        values: the names that the template may use; any other name is an error.
    """
    environment = _create_environment(path.rpartition(".")[2])
    return environment.get_template(path).render(values)


def escape_markdown(text: str) -> str:
    r"""Escape a string so that Markdown shows it as written, in one line.

    >>> print(escape_markdown("a_1 * <b>"))
    a\_1 \* \<b\>
    """
    return re.sub(r"([\\`*_<>|#\[\]])", r"\\\1", " ".join(text.split()))


@cache
def _create_environment(suffix: str) -> Environment:
    """Create the jinja2 environment for templates with a file suffix; this imports jinja2."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    escape = {"tex": escape_latex_prose, "md": escape_markdown}.get(suffix)
    environment = Environment(
        loader=PackageLoader("cgprimer", ""),
        undefined=StrictUndefined,
        autoescape=escape is None,
        finalize=None if escape is None else _skip_markup(escape),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **(_LATEX_DELIMITERS if suffix == "tex" else {}),
    )
    environment.filters["markup"] = Markup  # for the output of macros outside HTML
    return environment


def _skip_markup(escape: Callable[[str], str]) -> Callable[[Any], str]:
    """Return a function that escapes every value except markup."""
    return lambda value: value if isinstance(value, Markup) else escape(str(value))
