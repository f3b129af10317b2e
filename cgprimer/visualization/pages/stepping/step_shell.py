"""The step page without data, for web sites whose security policy forbids inline scripts."""

from __future__ import annotations

from cgprimer.support.templates import render_template
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.page_rendering import collect_themes, render_page
from cgprimer.visualization.pages.stepping.method_walks import METHODS

_FOLDER = "visualization/pages/stepping"


def render_step_shell() -> dict[str, str]:
    """Render the step page without data as three files, to be served from one folder.

    The page loads its scripts and styles from the other files, so a policy such as
    ``script-src 'self'; style-src 'self'`` accepts the page. The window that embeds the page in a
    frame waits until the frame is loaded, and then posts ``{type: "cgprimer-data", data}`` with the
    data of :func:`build_step_data`. After new data, the page continues at the same step. The page
    answers unusable data with ``{type: "cgprimer-error", message}``.

    Returns:
        The texts of the files, keyed by file name: ``step.html``, ``step.css`` and ``step.js``.

    >>> sorted(render_step_shell())
    ['step.css', 'step.html', 'step.js']
    """
    roles = theme(False).roles
    return {
        "step.html": render_page(
            f"{_FOLDER}/step_shell.html", "step by step", n_methods=len(METHODS)
        ),
        "step.css": render_template(
            f"{_FOLDER}/step_shell.css", themes=collect_themes(), roles=roles
        ),
        "step.js": render_template(f"{_FOLDER}/step_shell.js"),
    }
