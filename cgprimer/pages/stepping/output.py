"""Steps as files: a page, an animation, or a folder of slides; whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cgprimer.errors import UsageError, plural
from cgprimer.files import check_writable, write_whole
from cgprimer.pages.stepping.frames import Stepping, check_drawn
from cgprimer.pages.stepping.page import page

ENDINGS = (".html", ".gif")
KINDS = ("png", "svg", "pdf")


def check_step_path(path: Path, kind: str | None) -> None:
    """Find out before the work whether steps can be written to ``path``.

    Raises:
        UsageError: an unknown ending, a folder that has something in it, or no permission.
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
        if any(path.iterdir()):
            raise UsageError(f"cannot write slides to {path}: the folder is not empty")
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
    speed: float = 1.0,
    on_frame: Callable[[int, int], None] | None = None,
) -> str:
    """Write the steps and say what was written.

    Args:
        shown: the steps.
        path: ``.html``, ``.gif``, or with ``kind`` a folder.
        method: the page's open tab, or the method of the slides.
        kind: ``png``, ``svg`` or ``pdf``: one slide per step, ``001.png`` and on.
        dark: for dark rooms.
        speed: steps per second of an animation.
        on_frame: called after each slide or frame with its number and how many there are.

    Raises:
        UsageError: what :func:`check_step_path` says, too many slides, or the file cannot be
            written.

    >>> import tempfile
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.pages.stepping.frames import stepping
    >>> shown = stepping(parse("xw = cd*xa"), {"cd": 2, "xa": 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_steps(shown, Path(folder, "a.html"), method="reverse").rpartition("/")[2]
    'a.html'
    """
    check_step_path(path, kind)
    if kind is None and path.suffix.lower() == ".html":
        write_whole(path, page(shown, method=method, dark=dark))
        return str(path)
    check_drawn(shown, method)
    from cgprimer.pages.stepping.slides import animation, slides

    if kind is None:
        content = animation(shown, method, dark=dark, speed=speed, on_frame=on_frame)
        write_whole(path, content)
        return str(path)
    total = len(shown.walk(method).steps)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.mkdir()
        for number, content in enumerate(slides(shown, method, kind, dark=dark), start=1):
            (partial / f"{number:03d}.{kind}").write_bytes(content)
            if on_frame:
                on_frame(number, total)
        with suppress(OSError):
            path.rmdir()  # an empty folder that was there
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return f"{plural(total, 'slide', 'slides')} to {path}"
