"""Figures as files, written atomically and reproducibly."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgprimer.errors import UsageError
from cgprimer.support.files import check_writable, write_atomically
from cgprimer.visualization.diagrams.text_layout import (
    ignore_missing_glyphs,
    warn_of_missing_glyphs,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
_DPI = 200.0
_LONGEST_SIDE = 16_000  # pixels; matplotlib's raster engine ends at 2^16
_MAX_PIXELS = 60_000_000

# Without dates, files of the same figure are identical.
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF; the suffix of `path` selects the format.

    The picture is drawn in memory, written to a temporary file in the same folder and renamed, so
    a reader never sees an incomplete file and an older file survives an error. Very large pictures
    are written as PNG with fewer than 200 dots per inch, to fit into memory.

    Raises `cgprimer.errors.UsageError` for an unknown suffix or an unwritable file.

    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(Figure(figsize=(1, 1)), Path(folder, "empty.svg"))
    ...     Path(folder, "empty.svg").read_text()[:5]
    '<?xml'
    """
    write_atomically(path, encode_figure(figure, check_picture_path(path)))


def encode_figure(figure: Figure, kind: str) -> bytes:
    """Encode a figure as the content of a PNG, SVG or PDF file.

    >>> from matplotlib.figure import Figure
    >>> encode_figure(Figure(figsize=(1, 1)), "png")[1:4]
    b'PNG'
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    picture = io.BytesIO()
    warn_of_missing_glyphs(text.get_text() for text in figure.findobj(Text))
    width, height = (float(side) for side in figure.get_size_inches())
    dense = math.sqrt(_MAX_PIXELS / (width * height))
    dpi = min(_DPI, _LONGEST_SIDE / max(width, height), dense)
    look: Any = {"facecolor": figure.get_facecolor(), "bbox_inches": None}
    with rc_context({"svg.hashsalt": "cgprimer", "svg.fonttype": "path"}), ignore_missing_glyphs():
        figure.savefig(picture, format=kind, dpi=dpi, metadata=_METADATA.get(kind), **look)
    content = picture.getvalue()
    return replace_control_characters(content.decode()).encode() if kind == "svg" else content


def replace_control_characters(text: str) -> str:
    r"""Replace control characters that are invalid in XML, DOT or LaTeX by question marks.

    >>> replace_control_characters("a\x07b\n")
    'a?b\n'
    """
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", text)


def check_picture_path(path: Path, formats: tuple[str, ...] = FORMATS) -> str:
    """Return the format given by a picture file's suffix; check that the format can be written.

    Raises `cgprimer.errors.UsageError` for an unknown suffix or an unwritable folder.

    >>> check_picture_path(Path("Loss.PNG"))
    'png'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in formats and not path.is_dir():
        hint = f"choose one of the suffixes {', '.join(f'.{name}' for name in formats)}"
        raise UsageError(f"unknown picture format of file {path.name!r}", hint=hint)
    check_writable(path)
    return kind
