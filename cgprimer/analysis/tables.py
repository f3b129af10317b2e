"""Rows as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from tabulate import tabulate

from cgprimer.errors import UsageError, name_hint

FORMATS = ("text", "markdown", "latex", "csv")
_STYLE = {"text": "simple", "markdown": "github", "latex": "latex_raw"}


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    style: str = "text",
    left: Sequence[int] = (0,),
) -> str:
    """A table.

    Args:
        header: the columns' titles.
        rows: texts, a row each.
        style: one of ``FORMATS``.
        left: columns that are aligned to the left; the others hold numbers.

    Raises:
        UsageError: another style.

    >>> print(table(["name", "value"], [["xa", "0.5"]]))
    name      value
    ------  -------
    xa          0.5
    """
    if style not in FORMATS:
        raise UsageError(f"there is no table format {style!r}", hint=name_hint(style, FORMATS))
    if style == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        return out.getvalue().rstrip("\n")
    align = ["left" if i in left else "right" for i in range(len(header))]
    return tabulate(rows, header, tablefmt=_STYLE[style], colalign=align, disable_numparse=True)
