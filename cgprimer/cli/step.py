"""``cgprimer step``: a page, slides or an animation that steps through the methods."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from cgprimer.cli.common import (
    at_option,
    graph_arguments,
    make_command,
    names_option,
    note,
    read_graph,
)
from cgprimer.pages.stepping.differences import SCHEMES
from cgprimer.pages.stepping.scene import LEVELS
from cgprimer.pages.stepping.walks import METHODS

_LONGEST_HEADING = 60  # characters


@make_command(name="step")
@graph_arguments
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    help="A .html or .gif file, or a folder for slides (default: FILE's name with .html).",
)
@at_option
@click.option("--of", metavar="NAME", help="The variable to differentiate (default: the output).")
@names_option("--wrt", "With respect to which names (default: all parameters).")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="The tab that is open at first; the method of the slides.",
)
@click.option(
    "--scheme",
    type=click.Choice(SCHEMES),
    help="finite-difference: which quotient (default: central).",
)
@click.option("--step", type=float, help="finite-difference: the step (default: by size).")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="variables",
    show_default=True,
    help="The vertices of the picture.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(("png", "svg", "pdf")),
    help="The output is a folder, filled with one numbered slide per step.",
)
@click.option("--speed", type=click.FloatRange(0.1, 50), default=1.0, show_default=True,
              help="Steps per second of a .gif.")  # fmt: skip
@click.option("--dark", is_flag=True, help="Open in dark colours.")
@click.option(
    "--title",
    default="",
    metavar="TEXT",
    help="The heading (default: FILE's name, or TEXT of -e shortened).",
)
def command(
    file: str | None,
    expression: str | None,
    output: str | None,
    at: dict[str, float],
    of: str | None,
    wrt: tuple[str, ...],
    method: str,
    scheme: str | None,
    step: float | None,
    level: str,
    kind: str | None,
    speed: float,
    dark: bool,
    title: str,
) -> None:
    """Step through a derivative: one page with graph, trace and program side by side.

    \b
    Examples:
      cgprimer step lecture --at xa=0.5 --method reverse -o lecture.html
      cgprimer step baydin --wrt x1 --dark -o baydin.html
      cgprimer step -e "xw = k*xa^2" --at k=3,xa=0.5 --method path-sum -o paths.html
      cgprimer step olah --method reverse -o olah.gif
      cgprimer step -e "xw = exp(xa)" --at xa=1 --wrt xa --method finite-difference --step 1e-3

    The page needs no network and has a tab per method; its sliders compute everything anew. A
    .gif, or with --format a folder of slides, holds the same steps of the method that is named.
    --scheme and --step set up the page's tab of finite differences, where both can be changed.
    """
    from cgprimer.pages.stepping.frames import stepping
    from cgprimer.pages.stepping.output import check_step_path, write_steps

    named = file if file and file != "-" else "graph"
    path = Path(output or f"{Path(named).stem}.html")
    check_step_path(path, kind)
    graph = read_graph(file, expression)
    default = Path(file).name if file and file != "-" else _heading(expression or "")
    # Slides show one method; the others need not be worked out.
    methods = METHODS if path.suffix.lower() == ".html" and kind is None else (method,)
    for flag, value in (("scheme", scheme), ("step", step)):
        if value is not None and "finite-difference" not in methods:
            raise click.UsageError(
                f"--{flag} belongs to --method finite-difference, not to {method}"
            )
    shown = stepping(
        graph,
        at,
        of=of,
        wrt=wrt or None,
        methods=methods,
        level=level,
        title=title or default,
        scheme=scheme,
        h=step,
    )
    with _progress(path, kind) as on_frame:
        written = write_steps(
            shown, path, method=method, kind=kind, dark=dark, speed=speed, on_frame=on_frame
        )
    note(f"wrote {written}")


def _heading(expression: str) -> str:
    """Expressions in one line, cut where they are too long for a heading.

    >>> _heading("xx = xa^2\\n\\n xw = cd*xx")
    'xx = xa^2; xw = cd*xx'
    """
    lines = (" ".join(line.split()).rstrip("; ") for line in expression.splitlines())
    text = "; ".join(line for line in lines if line)
    return text if len(text) <= _LONGEST_HEADING else f"{text[: _LONGEST_HEADING - 2].rstrip()} …"


def _progress(
    path: Path, kind: str | None
) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """A bar while slides are drawn; nothing for a page, or where standard error is piped."""
    if (kind is None and path.suffix.lower() == ".html") or not _on_a_terminal():
        return nullcontext(None)
    from cgprimer.cli.progress import drawing_bar

    return drawing_bar()


def _on_a_terminal() -> bool:
    return sys.stderr.isatty()
