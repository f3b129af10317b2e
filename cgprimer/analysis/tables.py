"""Rows as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape

from cgprimer.errors import UsageError, name_hint

FORMATS = ("text", "markdown", "latex", "csv")


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
    columns = list(zip(header, *rows, strict=True))
    widths = [max([len(column[0]) + 2, *map(len, column[1:])]) for column in columns]

    def cells(row: Sequence[str]) -> list[str]:
        padded = enumerate(zip(row, widths, strict=True))
        return [text.ljust(w) if i in left else text.rjust(w) for i, (text, w) in padded]

    if style == "markdown":
        lines = [f"| {' | '.join(cells(row))} |" for row in (header, *rows)]
        return "\n".join([lines[0], f"|{'|'.join('-' * (w + 2) for w in widths)}|", *lines[1:]])
    if style == "latex":
        lines = [f" {' & '.join(cells(row))} \\\\" for row in (header, *rows)]
        align = "".join("l" if i in left else "r" for i in range(len(header)))
        begin, end = rf"\begin{{tabular}}{{{align}}}", r"\end{tabular}"
        return "\n".join([begin, r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", end])
    rule = "  ".join("-" * width for width in widths)
    lines = ["  ".join(cells(row)).rstrip() for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]])


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> str:
    """The same for a page; every cell is escaped.

    >>> print(html_table(["name"], [["<b>"]]))
    <table>
    <tr><th style="text-align: left">name</th></tr>
    <tr><td style="text-align: left">&lt;b&gt;</td></tr>
    </table>
    """

    def line(row: Sequence[str], tag: str) -> str:
        sides = ("left" if i in left else "right" for i in range(len(row)))
        cells = zip(row, sides, strict=True)
        inner = (f'<{tag} style="text-align: {side}">{escape(c)}</{tag}>' for c, side in cells)
        return f"<tr>{''.join(inner)}</tr>"

    return "\n".join(["<table>", line(header, "th"), *(line(r, "td") for r in rows), "</table>"])
