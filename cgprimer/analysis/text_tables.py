"""Tables as text, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
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
    """Format rows of cells as a table in plain text, Markdown, LaTeX or CSV.

    Args:
        header: the titles of the columns.
        rows: the cells of each row; a cell may have several lines.
        style: one of ``FORMATS``.
        left: the indices of left-aligned columns; the others are right-aligned.

    Raises:
        UsageError: the style is unknown.

    >>> print(table(["name", "value"], [["xa", "0.5"]]))
    name  value
    ----  -----
    xa      0.5
    """
    check_choice("table format", style, FORMATS)
    if style == "csv":
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        return file.getvalue().rstrip("\n")
    if style == "markdown":
        rows = [[cell.replace("\n", "<br>") for cell in row] for row in rows]
    rows = [line for row in rows for line in _split_lines(row)]
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]

    def join_cells(row: Sequence[str], separator: str) -> str:
        """Join the cells of a row, each padded to the width of its column."""
        padded = enumerate(zip(row, widths, strict=True))
        return separator.join(t.ljust(w) if i in left else t.rjust(w) for i, (t, w) in padded)

    if style == "markdown":
        head, *body = [f"| {join_cells(row, ' | ')} |" for row in (header, *rows)]
        return "\n".join([head, f"|{'|'.join('-' * (w + 2) for w in widths)}|", *body])
    if style == "latex":
        head, *body = [f" {join_cells(row, ' & ')} \\\\" for row in (header, *rows)]
        alignment = "".join("l" if i in left else "r" for i in range(len(header)))
        begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
        return "\n".join([begin, r"\hline", head, r"\hline", *body, r"\hline", end])
    head, *body = [join_cells(row, "  ").rstrip() for row in (header, *rows)]
    return "\n".join([head, "  ".join("-" * width for width in widths), *body])


def _split_lines(row: Sequence[str]) -> list[tuple[str, ...]]:
    """Split a table row at the line breaks in its cells into multiple padded rows."""
    if not any("\n" in cell for cell in row):
        return [tuple(row)]
    cells = [cell.split("\n") for cell in row]
    padded = [[line.ljust(max(map(len, lines))) for line in lines] for lines in cells]
    return list(zip_longest(*padded, fillvalue=""))


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> str:
    """Format rows of cells as an HTML table, with escaped text.

    >>> print(html_table(["name"], [["<b>"]]))
    <table>
    <tr><th style="text-align: left">name</th></tr>
    <tr><td style="text-align: left">&lt;b&gt;</td></tr>
    </table>
    """
    from cgprimer.support.templates import render_template

    text = render_template("analysis/html_table.html", header=header, rows=rows, left=left)
    return text.rstrip("\n")
