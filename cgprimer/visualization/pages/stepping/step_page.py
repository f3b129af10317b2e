"""Steps as files: one page without network or server, an animation, or a folder of slides."""

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
from cgprimer.visualization.pages.stepping.vertex_positions import WIDE, drawing_data, placed

ENDINGS = (".html", ".gif")
KINDS = ("png", "svg", "pdf")
_SLIDE = re.compile(r"\d{3,}\.(png|svg|pdf)")
MOST_DRAWN = 300  #: steps drawn one by one, as slides or in an animation: a minute of work


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
    """A page that steps through the derivative of a graph, a tab per method.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable that is differentiated; the only output unless given.
        wrt: with respect to which names; by default all parameters (all inputs of a graph
            without parameters).
        loss: a loss to put behind the outputs, as in :func:`cgprimer.graph_with_loss`.
        method: the tab that is open at first; ``reverse`` unless given.
        methods: the tabs.
        level: the picture's vertices: ``variables`` or ``operations``.
        title: the heading, in which control characters become spaces; empty for none. Names the
            variable that is differentiated unless given.
        dark: open in dark colours; the page has a switch.
        quiz: open as a quiz, which asks for each number before it is shown; the page has a switch.
        scheme: of finite differences: ``central``, unless given, or ``forward``; the page can
            change it.
        h: by how much finite differences move a variable, in its unit; chosen from its size if
            None.
        scalars: of a graph with arrays, step through their numbers, by every method and with
            sliders. Else arrays stay what they are, and reverse mode alone is stepped through.
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
    check_type("title", title, (str, type(None)), "a string")
    check_type("method", method, str, "a name")
    check_type("methods", methods, Iterable, "names of methods")
    tabs = tuple(dict.fromkeys((*methods, method)))
    moved = {"scheme": scheme, "h": h}
    asked: dict[str, Any] = {"of": of, "wrt": wrt, "methods": tabs, "scalars": scalars, **moved}
    shown = stepping(graph, at, loss=loss, level=level, title=title, **asked)
    text = page(shown, method=method, dark=dark, quiz=quiz)
    if output is not None:
        write_generated_file(output, text)
    return text


def page(
    shown: Stepping, *, method: str = DEFAULT_METHOD, dark: bool = False, quiz: bool = False
) -> Page:
    """The page of a stepping, with one tab open."""
    arrays = shown.walk(method).refused and shown.scene.tape.has_arrays
    data = {
        **shown.to_dict(),
        "drawing": drawing_data(placed(shown.scene, label=WIDE)),
        "first": "reverse" if arrays else method,
        "quiz": quiz,
        "shapes": {role: [look.shape, look.word] for role, look in theme(False).roles.items()},
    }
    text = render_page(
        "visualization/pages/stepping/step_page.html",
        shown.title,
        dark=dark,
        roles=theme(False).roles,
        n_methods=len(shown.walks),
        data=encode_script_data(data),
    )
    return Page(text)


def check_step_path(path: Path, kind: str | None, *, force: bool = False) -> None:
    """Check that steps can be written to ``path``, before they are computed.

    Args:
        path: a file, or with ``kind`` a folder.
        kind: format of the slides in a folder; None for a file.
        force: accept a folder that contains nothing but slides.

    Raises:
        UsageError: an unknown ending, a folder that is not empty, or no permission.
    """
    if kind is None:
        if path.suffix.lower() not in ENDINGS:
            raise UsageError(
                f"cannot tell what to write from {path.name!r}; known are {', '.join(ENDINGS)}",
                hint=f"slides go into a folder: --format {' or '.join(KINDS)}",
            )
        check_writable(path)
        return
    if path.suffix.lower() in (*ENDINGS, *(f".{k}" for k in KINDS)):
        raise UsageError(
            f"slides go into a folder, and {path.name!r} looks like a file",
            hint=f"for instance: -o {path.stem} --format {kind}",
        )
    if path.is_dir():
        others = [file.name for file in path.iterdir() if not _SLIDE.fullmatch(file.name)]
        if others or (any(path.iterdir()) and not force):
            raise UsageError(
                f"cannot write slides to {path}: the folder is not empty",
                hint=f"another folder; {path / others[0]} is no slide"
                if others
                else "another folder, or --force to replace the slides in it",
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
    """Write the steps and return a description of what was written.

    Args:
        shown: the steps.
        path: ``.html``, ``.gif``, or with ``kind`` a folder.
        method: the page's open tab, or the method of the slides.
        kind: ``png``, ``svg`` or ``pdf``: one slide per step, ``001.png`` and on.
        dark: for dark rooms.
        quiz: of a page: open as a quiz.
        speed: steps per second of an animation.
        on_frame: called after each slide or frame with its number and how many there are.
        force: overwrite an existing page, and replace the slides in a folder.

    Raises:
        UsageError: what :func:`check_step_path` says, too many slides, or the file cannot be
            written.
    """
    check_step_path(path, kind, force=force)
    if kind is None and path.suffix.lower() == ".html":
        write = write_atomically if force else write_generated_file
        write(path, page(shown, method=method, dark=dark, quiz=quiz))
        return str(path)
    _check_drawn(shown, method)
    from cgprimer.visualization.pages.stepping.step_slides import animation, slides

    if kind is None:
        write_atomically(path, animation(shown, method, dark=dark, speed=speed, on_frame=on_frame))
        return str(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.mkdir()
        drawn = slides(shown, method, kind, dark=dark, on_frame=on_frame)
        for number, content in enumerate(drawn, start=1):
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


def _check_drawn(shown: Stepping, method: str) -> None:
    """Find out before the work whether the steps of a method are few enough to be drawn."""
    steps = len(shown.walk(method).steps)
    if steps <= MOST_DRAWN:
        return
    fewer = ["fewer names: --wrt NAME (in Python wrt=...)"] * (len(shown.scene.wrt) > 1)
    other = ["another method: --method reverse"] * (method != "reverse")
    raise UsageError(
        f"{method} takes {steps:,} steps here, and no more than {MOST_DRAWN} are drawn "
        "as slides or in an animation",
        hint=", or ".join([*fewer, *other, "the page, which has all steps: -o NAME.html"]),
    )
