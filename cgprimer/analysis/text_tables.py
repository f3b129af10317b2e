"""Rows as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from cgprimer.support.validation import check_choice

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
        rows: texts, a row each; a cell may have several lines.
        style: one of ``FORMATS``.
        left: columns that are aligned to the left; the others hold numbers.

    Raises:
        UsageError: another style.

    >>> print(table(["name", "value"], [["xa", "0.5"]]))
    name      value
    ------  -------
    xa          0.5
    """
    check_choice("table format", style, FORMATS)
    if style == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        return out.getvalue().rstrip("\n")
    if style == "markdown":
        rows = [[cell.replace("\n", "<br>") for cell in row] for row in rows]
    rows = [line for row in rows for line in _lines(row)]
    columns = list(zip(header, *rows, strict=True))
    widths = [max([len(column[0]) + 2, *map(len, column[1:])]) for column in columns]

    def joined(row: Sequence[str], between: str) -> str:
        padded = enumerate(zip(row, widths, strict=True))
        return between.join(t.ljust(w) if i in left else t.rjust(w) for i, (t, w) in padded)

    if style == "markdown":
        head, *body = [f"| {joined(row, ' | ')} |" for row in (header, *rows)]
        return "\n".join([head, f"|{'|'.join('-' * (w + 2) for w in widths)}|", *body])
    if style == "latex":
        head, *body = [f" {joined(row, ' & ')} \\\\" for row in (header, *rows)]
        align = "".join("l" if i in left else "r" for i in range(len(header)))
        begin, end = rf"\begin{{tabular}}{{{align}}}", r"\end{tabular}"
        return "\n".join([begin, r"\hline", head, r"\hline", *body, r"\hline", end])
    head, *body = [joined(row, "  ").rstrip() for row in (header, *rows)]
    return "\n".join([head, "  ".join("-" * width for width in widths), *body])


def _lines(row: Sequence[str]) -> list[tuple[str, ...]]:
    """A row as the lines that its cells have; the lines of a cell are equally long."""
    if not any("\n" in cell for cell in row):
        return [tuple(row)]
    cells = [cell.split("\n") for cell in row]
    padded = [[line.ljust(max(map(len, lines))) for line in lines] for lines in cells]
    return list(zip_longest(*padded, fillvalue=""))


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> str:
    """The same for a page; every cell is escaped, and its lines stay lines.

    >>> print(html_table(["name"], [["<b>"]]))
    <table>
    <tr><th style="text-align: left">name</th></tr>
    <tr><td style="text-align: left">&lt;b&gt;</td></tr>
    </table>
    """

    def line(row: Sequence[str], tag: str) -> str:
        sides = ["left" if i in left else "right" for i in range(len(row))]
        cells = zip(sides, (escape(c).replace("\n", "<br>") for c in row), strict=True)
        inner = (f'<{tag} style="text-align: {side}">{text}</{tag}>' for side, text in cells)
        return f"<tr>{''.join(inner)}</tr>"

    return "\n".join(["<table>", line(header, "th"), *(line(r, "td") for r in rows), "</table>"])
