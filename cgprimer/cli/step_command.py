"""``cgprimer step``: a page, slides or an animation that steps through the methods."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Any

import click

from cgprimer.cli.common import (
    check_outputs,
    default_output_path,
    graph_command,
    graph_file,
    note,
    progress_bar,
)
from cgprimer.cli.file_watching import watch_options
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NUMBER, PATH, TEXT
from cgprimer.cli.shared_options import NumberRange, at_option, force_option, of_option, wrt_option
from cgprimer.expressions import ExpressionGraph
from cgprimer.visualization.pages.stepping.method_walks import METHODS

_MAX_TITLE = 60  # characters


@graph_command(with_loss=True, with_watch=True)
@option(
    "-o",
    "--output",
    **PATH,
    help="Output file, .html or .gif, or the folder of the slides (default: NAME.html).",
)
@at_option
@of_option
@wrt_option
@option(
    "--method",
    type=click.Choice(["forward", "reverse", "path-sum", "finite-difference"]),
    default="reverse",
    help="Differentiation method for the slides and for the initially open tab.",
)
@option(
    "--scheme",
    type=click.Choice(["central", "forward"]),
    help="Finite differences: central (default) or forward.",
)
@option(
    "--step", "h", **NUMBER, help="Step size of finite differences (default: scaled to the value)."
)
@option(
    "--level",
    type=click.Choice(["variables", "operations"]),
    default="variables",
    help="Level of detail: variables or operations.",
)
@option("--scalars", is_flag=True, help="Step through the elements of arrays.")
@option(
    "--format",
    "kind",
    type=click.Choice(["png", "svg", "pdf"]),
    help="Write numbered slides in this format to the folder of -o.",
)
@option(
    "--speed",
    metavar="NUMBER",
    type=NumberRange(min=0.1, max=50.0),
    default=1.0,
    help="Speed of a .gif, in steps per second.",
)
@option("--dark", is_flag=True, help="Use a dark color theme.")
@option("--quiz", is_flag=True, help="Open the page as a quiz that asks for each value.")
@option("--title", **TEXT, help="Title, or '' for none (default: name of FILE).")
@force_option
@watch_options
def command(
    graph: ExpressionGraph,
    output: str | None,
    method: str,
    title: str | None,
    live: bool,
    force: bool,
    **settings: Any,
) -> str | None:
    """Create a page that steps through the computation of a derivative.

    \b
    Examples:
      cgprimer step lecture --at xa=0.5 -o lecture.html
      cgprimer step baydin --wrt x1 --dark -o baydin.html
      cgprimer step -e "xw = k*xa^2" --at k=3,xa=0.5 --method path-sum -o paths.html
      cgprimer step olah --method forward -o olah.gif
      cgprimer step matrix_backpropagation --scalars -o numbers.html
      cgprimer step -e "xw = exp(xa)" --at xa=1 --wrt xa --method finite-difference --step 1e-3

    The page works offline and has one tab per method; moving a slider recomputes all values. A
    .gif, or a folder of slides with --format, shows the steps of --method only. --scheme and --step
    are the initial settings of the finite-difference tab.
    With --watch, a browser shows the page; -o then also writes it after each change.
    """
    from cgprimer.visualization.pages.stepping.step_frames import stepping
    from cgprimer.visualization.pages.stepping.step_page import (
        check_step_path,
        render_step_page,
        write_steps,
    )

    path = Path(output) if output else default_output_path(graph, ".html")
    how = {name: settings.pop(name) for name in ("kind", "dark", "quiz", "speed")}
    writes = output is not None or not live
    if live and how["kind"]:
        raise click.UsageError("--format cannot be used with --watch")
    if writes:
        check_step_path(path, how["kind"], force=force)
    if writes and not live and how["kind"] is None:  # --watch writes again at every change
        check_outputs(force, str(path))
    file = graph_file(graph)
    if title is None:
        lines = (" ".join(line.split()).rstrip("; ") for line in graph.source.text.splitlines())
        text = "; ".join(filter(None, lines))
        title = file.name if file else shorten(text, _MAX_TITLE, placeholder=" …")
    # Slides show one method, so the other methods are not evaluated.
    shows_page = live or (path.suffix.lower() == ".html" and how["kind"] is None)
    methods = METHODS if shows_page else (method,)
    if how["quiz"] and not shows_page:
        raise click.UsageError("--quiz requires a page: -o NAME.html")
    for name, flag in {"scheme": "--scheme", "h": "--step"}.items():
        if settings[name] is not None and "finite-difference" not in methods:
            raise click.UsageError(
                f"{flag} requires --method finite-difference, got --method {method}"
            )
    settings["wrt"] = settings["wrt"] or None
    shown = stepping(graph, methods=methods, title=title, **settings)
    if writes:
        with progress_bar("drawing", path.suffix.lower() != ".html") as on_frame:
            written = write_steps(shown, path, method=method, on_frame=on_frame, force=force, **how)
        note(f"wrote {written}")
    return (
        render_step_page(shown, method=method, dark=how["dark"], quiz=how["quiz"]) if live else None
    )
