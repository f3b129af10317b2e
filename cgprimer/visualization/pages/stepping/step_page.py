"""Steps as files: a self-contained HTML page, an animation, or a folder of slides."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.files import check_writable, write_atomically, write_generated_file
from cgprimer.support.type_checks import check_type
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.page_rendering import encode_script_data, render_page
from cgprimer.visualization.pages.stepping.method_walks import DEFAULT_METHOD, METHODS
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.vertex_positions import (
    WIDE,
    encode_layout,
    lay_out_scene,
)

ENDINGS = (".html", ".gif")
KINDS = ("png", "svg", "pdf")
_SLIDE = re.compile(r"\d{3,}\.(png|svg|pdf)")
MAX_DRAWN = 300  #: steps drawn as slides or in an animation; drawing them takes a minute


class Page(str):
    """The HTML of a page, as a string that a notebook displays in a frame."""

    _shown: Stepping | None = None
    _method = DEFAULT_METHOD

    def __repr__(self) -> str:
        return f"<a page of {len(self):,} characters>"

    def widget(self) -> Any:
        """Create a notebook widget that shows the page and shares its state with Python.

        When you move through the page, the attributes of the widget change. When you assign an
        attribute, the page moves. The widget works in JupyterLab, VS Code and marimo, and requires
        the package ``anywidget`` (``pip install 'cgprimer[widget]'``).

        Returns:
            The widget, an ``anywidget.AnyWidget`` with these attributes:

            - ``method``: the open tab.
            - ``step``: the index of the current step, counted from 0. After a change of the method,
              the index is at most the last step of the method.
            - ``point``: the values of inputs and parameters, keyed by name. The dict is read-only:
              assign a new dict with the values that change.
            - ``h`` and ``scheme``: the step size (None if automatic) and the scheme of finite
              differences.
            - ``gradient``: the derivatives at the point by the method, keyed by name (read-only).
            - ``result``: the number that the current step computes, or None (read-only).

        Raises:
            UsageError: anywidget is not installed, or the page was not created by :func:`step`.
                An invalid value of an attribute is a UsageError, and the page stays unchanged.

        Example:
            ```python
            widget = cgprimer.step(cgprimer.load("lecture")).widget()
            widget.point = {"xa": 0.75}
            widget.gradient
            ```
        """
        if not self._shown:
            hint = "create the page with cgprimer.step"
            raise UsageError("this string is not a step page", hint=hint)
        try:
            from cgprimer.visualization.pages.stepping.step_widget import StepWidget
        except ImportError as error:
            if error.name not in ("anywidget", "traitlets"):
                raise
            hint = "run pip install 'cgprimer[widget]'"
            raise UsageError("a widget requires the package `anywidget`", hint=hint) from None
        return StepWidget(self, self._shown, self._method)


def step(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    method: str = DEFAULT_METHOD,
    methods: Sequence[str] = METHODS,
    level: str = "variables",
    title: str | None = None,
    dark: bool = False,
    quiz: bool = False,
    scheme: str | None = None,
    h: float | None = None,
    scalars: bool = False,
    output: str | Path | None = None,
) -> Page:
    """Render a page that steps through the derivative of a graph, with one tab for each method.

    Args:
        graph: the graph.
        at: the values of inputs and parameters; missing ones are taken from declarations.
        of: the variable that is differentiated; by default the only output.
        wrt: the names with respect to which it is differentiated; by default all parameters, or all
            inputs of a graph without parameters.
        loss: a loss node to add after the outputs, as in :func:`cgprimer.graph_with_loss`.
        method: the tab that is open at first.
        methods: the methods, one tab for each.
        level: the vertices of the picture: ``variables`` or ``operations``.
        title: the title, empty for none; control characters become spaces. By default it names the
            variable that is differentiated.
        dark: open in dark colors; the page has a switch.
        quiz: open as a quiz, which asks for each number before it is shown; the page has a switch.
        scheme: the scheme of finite differences: ``central`` (default) or ``forward``.
        h: the step size of finite differences; by default it depends on the size of the variable.
        scalars: step through the elements of arrays, with every method and with sliders. Otherwise
            arrays are values, and only reverse mode is available.
        output: a file to which the page is written.

    Returns:
        The HTML of the page.

    Raises:
        UsageError: an invalid argument, or a file that cannot be written.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> step(parse("xw = cd*xa"), {"cd": 2, "xa": 3}).splitlines()[0]
    '<!doctype html>'
    """
    tabs = _check_step_arguments(title, method, methods, output)
    shown = stepping(
        graph, at, of=of, wrt=wrt, loss=loss, methods=tabs, level=level, title=title, scheme=scheme,
        h=h, scalars=scalars,
    )  # fmt: skip
    text = render_step_page(shown, method=method, dark=dark, quiz=quiz)
    if output is not None:
        write_generated_file(output, text)
    return text


def _check_step_arguments(
    title: str | None, method: str, methods: Sequence[str], output: str | Path | None
) -> tuple[str, ...]:
    """Check the arguments of ``step``, and return the methods without duplicates.

    Raises:
        UsageError: an argument of the wrong type, or a file that cannot be written.
    """
    if output is not None:
        check_writable(output)
    check_type("title", title, (str, type(None)), "a string")
    check_type("method", method, str, "a name")
    check_type("methods", methods, Iterable, "names of methods")
    return tuple(dict.fromkeys((*methods, method)))


def render_step_page(
    shown: Stepping, *, method: str = DEFAULT_METHOD, dark: bool = False, quiz: bool = False
) -> Page:
    """Render the page that steps through all methods, with the tab of one method selected."""
    data = build_step_data(shown, method=method, quiz=quiz)
    text = render_page(
        "visualization/pages/stepping/step_page.html",
        shown.title,
        dark=dark,
        roles=theme(False).roles,
        n_methods=len(shown.walks),
        data=encode_script_data(data),
    )
    page = Page(text)
    page._shown, page._method = shown, data["first"]
    return page


def build_step_data(
    shown: Stepping, *, method: str = DEFAULT_METHOD, quiz: bool = False
) -> dict[str, Any]:
    """Build the data that the step page shows, to be encoded by ``format_json``.

    Args:
        shown: the steps.
        method: the open tab of the page.
        quiz: open the page as a quiz.
    """
    needs_reverse = shown.walk(method).refusal and shown.scene.tape.has_arrays
    return {
        **shown.to_dict(),
        "drawing": encode_layout(lay_out_scene(shown.scene, label=WIDE)),
        "first": "reverse" if needs_reverse else method,
        "quiz": quiz,
        "shapes": {role: [look.shape, look.label] for role, look in theme(False).roles.items()},
    }


def check_step_path(path: Path, kind: str | None, *, force: bool = False) -> None:
    """Check that steps can be written to a path before the steps are computed.

    Args:
        path: a file, or a folder if ``kind`` is given.
        kind: the format of the slides in a folder; None for a file.
        force: accept a folder that contains only slides.

    Raises:
        UsageError: an unknown file extension, a folder that is not empty, or no permission.
    """
    if kind is None:
        if path.suffix.lower() not in ENDINGS:
            raise UsageError(
                f"unknown file extension of {path.name!r}: expected one of {', '.join(ENDINGS)}",
                hint=f"write slides to a folder and choose a format: --format {' or '.join(KINDS)}",
            )
        check_writable(path)
        return
    if path.suffix.lower() in (*ENDINGS, *(f".{k}" for k in KINDS)):
        raise UsageError(
            f"slides require a folder, but {path.name!r} is the name of a file",
            hint=f"pass a folder, for example -o {path.stem} --format {kind}",
        )
    if path.is_dir():
        others = [file.name for file in path.iterdir() if not _SLIDE.fullmatch(file.name)]
        if others or (any(path.iterdir()) and not force):
            raise UsageError(
                f"cannot write slides to {path}: the folder is not empty",
                hint=f"choose another folder; {path / others[0]} is not a slide"
                if others
                else "choose another folder, or replace the slides with --force",
            )
    elif path.exists():
        raise UsageError(f"cannot write slides to {path}: it is a file")
    check_writable(path.parent / f"{path.name}.part")


def write_steps(
    shown: Stepping,
    path: Path,
    *,
    method: str,
    kind: str | None = None,
    dark: bool = False,
    quiz: bool = False,
    speed: float = 1.0,
    on_frame: Callable[[int, int], None] | None = None,
    force: bool = False,
) -> str:
    """Write steps as a page, an animation or slides, and return a text that describes the files.

    Args:
        shown: the steps.
        path: a file ``.html`` or ``.gif``, or a folder if ``kind`` is given.
        method: the open tab of the page, or the method of the slides.
        kind: ``png``, ``svg`` or ``pdf``: one slide per step, named ``001.png`` and so on.
        dark: use dark colors.
        quiz: open the page as a quiz.
        speed: steps per second of an animation.
        on_frame: called after each slide or frame with its number and the number of all frames.
        force: overwrite an existing page, or replace the slides in a folder.

    Raises:
        UsageError: an error of :func:`check_step_path`, too many slides, or a file that cannot be
            written.
    """
    check_step_path(path, kind, force=force)
    if kind is None and path.suffix.lower() == ".html":
        write = write_atomically if force else write_generated_file
        write(path, render_step_page(shown, method=method, dark=dark, quiz=quiz))
        return str(path)
    _check_slide_count(shown, method)
    from cgprimer.visualization.pages.stepping.step_slides import render_animation, render_slides

    if kind is None:
        animation = render_animation(shown, method, dark=dark, speed=speed, on_frame=on_frame)
        write_atomically(path, animation)
        return str(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.mkdir()
        slides = render_slides(shown, method, kind, dark=dark, on_frame=on_frame)
        for number, content in enumerate(slides, start=1):
            (partial / f"{number:03d}.{kind}").write_bytes(content)
        if path.is_dir() and not path.is_symlink():
            for old in filter(lambda file: _SLIDE.fullmatch(file.name), path.iterdir()):
                old.unlink()
            path.rmdir()
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return f"{pluralize(len(shown.walk(method).steps), 'slide')} to {path}"


def _check_slide_count(shown: Stepping, method: str) -> None:
    """Raise UsageError if a method has too many steps for slides or an animation."""
    steps = len(shown.walk(method).steps)
    if steps <= MAX_DRAWN:
        return
    remedies = ["write a page, which can show all steps: -o NAME.html"]
    if method != "reverse":
        remedies.insert(0, "choose another method: --method reverse")
    if len(shown.scene.wrt) > 1:
        remedies.insert(0, "select fewer names with --wrt NAME (in Python, wrt=...)")
    raise UsageError(
        f"{method} takes {steps:,} steps, but slides and animations can have at most {MAX_DRAWN}",
        hint=", or ".join(remedies),
    )
