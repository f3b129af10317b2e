"""A comparison as a file: a page, or slides. The ending of the name decides."""

from __future__ import annotations

import io
from pathlib import Path

from cgprimer.analysis.comparison import Comparison, checked_comparison
from cgprimer.files import check_writable, write_whole
from cgprimer.pages.comparison.slides import comparison_slides
from cgprimer.pictures.saving import FORMATS as PICTURES
from cgprimer.pictures.saving import figure_bytes, picture_kind

FORMATS = ("html", "pdf", "png", "svg")


def check_comparison_path(path: Path) -> str:
    """The format that ``path`` asks for, after a look whether it can be written.

    Raises:
        UsageError: an unknown ending, or a folder that cannot be written to.

    >>> check_comparison_path(Path("lecture.html"))
    'html'
    """
    kind = picture_kind(path, FORMATS)
    check_writable(path)
    return kind


def save_comparison(
    found: Comparison, path: Path, *, dark: bool = False, title: str = ""
) -> tuple[Path, ...]:
    """Write a comparison as a page (``.html``) or as slides (``.pdf``, ``.png``, ``.svg``).

    A PDF has all slides. PNG and SVG files have one each: where there are two, the second is
    written beside the first, as ``lecture-2.png`` beside ``lecture.png``; a file that has this
    name is replaced.

    Args:
        found: from ``cgprimer.compare``.
        path: where to.
        dark: for dark slides; a page opens in dark colours, and has a switch.
        title: the heading; says what is compared unless given.

    Returns:
        The files that were written.

    Raises:
        UsageError: an unknown ending, a file that cannot be written, or no comparison.

    >>> import tempfile
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save_comparison(found, Path(folder, "line.pdf"))]
    ['line.pdf']
    """
    kind = check_comparison_path(path)
    checked_comparison(found)
    if kind not in PICTURES:
        from cgprimer.pages.comparison.page import comparison_page

        write_whole(path, comparison_page(found, dark=dark, title=title))
        return (path,)
    slides = comparison_slides(found, dark=dark, title=title)
    if kind == "pdf":
        from matplotlib.backends.backend_pdf import PdfPages

        document = io.BytesIO()
        with PdfPages(document, metadata={"CreationDate": None}) as pages:
            for slide in slides:
                pages.savefig(slide, facecolor=slide.get_facecolor())
        write_whole(path, document.getvalue())
        return (path,)
    contents = [figure_bytes(slide, kind) for slide in slides]  # all drawn before any is written
    names = [path, *(path.with_name(f"{path.stem}-{k}{path.suffix}") for k in range(2, 9))]
    written = tuple(names[: len(contents)])
    for name in written:
        check_writable(name)
    for name, content in zip(written, contents, strict=True):
        write_whole(name, content)
    return written
