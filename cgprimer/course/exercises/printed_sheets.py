"""Exercise sheets for printing: self-contained HTML pages, LaTeX, and PDF."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.course.checks.sheets.sheet_problems import Cell, DisplayFormula, Sheet, format_cell
from cgprimer.course.exercises.documents import (
    Section,
    build_sections,
    encode_sheet,
    format_headings,
    split_text,
)
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.expressions import Apply, Name, Number, parse_expression
from cgprimer.support.latex_text import declare_missing_characters, escape_latex_prose
from cgprimer.support.templates import Markup, render_template
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.figure_files import encode_figure
from cgprimer.visualization.diagrams.tikz import tikz
from cgprimer.visualization.pages.page_rendering import inline_svg, render_page

_MAX_UNBROKEN_ROWS = 24  # the rows of longer problems may continue on the next page
_NAME = re.compile(r"[A-Za-z]\w*")
_WORDS = (
    "input", "parameter", "row", "expression", "value", "adjoint", "tangent", "shape", "number",
    "formula", "what", "derivative", "question", "answer",
)  # fmt: skip


# --- HTML ----------------------------------------------------------------------------------------


class HtmlCell(NamedTuple):
    """The content of an HTML table cell: text, CSS class, and whether the text is code."""

    text: str
    css_class: str
    is_code: bool


@lru_cache(maxsize=4)  # a sheet and its solution have the same pictures
def draw_svg(diagram: Diagram) -> bytes:
    """Draw a diagram as SVG, and return the content of the SVG file."""
    return encode_figure(draw_diagram(diagram), "svg")


def draw_svg_element(diagram: Diagram) -> str:
    """Draw a diagram as an SVG element with the colors of the light theme."""
    return inline_svg(draw_svg(diagram), themed=False, keep_size=True)


def sheet_page(sheet: Sheet, *, solution: bool = False) -> str:
    """Render a sheet as a self-contained HTML page for printing."""
    title, subtitle = format_headings(sheet, solution=solution)
    sections = [
        {
            "heading": split_text(section.heading),
            "paragraphs": map(split_text, section.paragraphs),
            "picture": section.picture and _draw_page_picture(section.picture),
            "tables": section.format_tables(format_html_cell, solution),
        }
        for section in build_sections(sheet)
    ]
    return render_page(
        "course/exercises/sheet.html",
        title,
        subtitle=subtitle,
        sections=sections,
        data=encode_sheet(sheet),
    )


def _draw_page_picture(diagram: Diagram) -> Markup:
    """Draw a diagram as an SVG element that follows the colors of the page."""
    picture = draw_svg(diagram)
    return inline_svg(picture, keep_size=True, role="img", aria_label="the graph")


def format_html_cell(cell: Cell, is_blank: bool) -> HtmlCell:
    """Format a table cell for an HTML page; the CSS class marks empty and filled blanks."""
    text = format_cell(cell).replace(" -> ", " → ")
    css_class = ("filled" if text else "blank") if is_blank else ""
    return HtmlCell(text, css_class, isinstance(cell, Apply | Name | DisplayFormula))


# --- LaTeX ---------------------------------------------------------------------------------------


class LatexTable(NamedTuple):
    """A LaTeX table: its column specification, and its rows including the header."""

    columns: Markup
    rows: list[list[Markup]]


def latex_document(sheet: Sheet, *, solution: bool = False) -> str:
    """Render a sheet as a LaTeX document, with formulas typeset as mathematics."""
    title, subtitle = format_headings(sheet, solution=solution)
    colors = dict[str, None]()
    sections = []
    for section in build_sections(sheet):
        picture = ""
        if section.picture:
            drawing = tikz(section.picture)
            colors |= dict.fromkeys(re.findall(r"^\\definecolor.*$", drawing, re.MULTILINE))
            picture = _extract_tikz_picture(drawing)
        sections.append({
            "is_unbroken": _is_unbroken(section),
            "heading": _format_latex_text(section.heading, escape_latex_prose),
            "paragraphs": [_format_latex_text(p, _format_formula) for p in section.paragraphs],
            "picture": Markup(picture),
            "tables": _format_latex_tables(section, solution),
        })  # fmt: skip
    body = render_template(
        "course/exercises/sheet_body.tex", title=title, subtitle=subtitle, sections=sections
    ).rstrip("\n")
    # The class article of pdflatex is certain here, and the package iftex is not loaded.
    declarations = [
        Markup(line.replace(r"\ifPDFTeX", r"\iftrue"))
        for line in (*colors, *declare_missing_characters(body))
    ]
    return render_template(
        "course/exercises/sheet.tex",
        declarations=declarations,
        data=encode_sheet(sheet),
        body=Markup(body),
    )


def _is_unbroken(section: Section) -> bool:
    """Return whether a problem is short enough to be kept on one page."""
    above = section.worksheet.given_table[1] if section.worksheet.given_table else ()
    return len(section.worksheet.rows) + len(above) <= _MAX_UNBROKEN_ROWS


def _extract_tikz_picture(document: str) -> str:
    """Return the ``tikzpicture`` environment of a LaTeX document."""
    begin, end = r"\begin{tikzpicture}", r"\end{tikzpicture}"
    return begin + document.partition(begin)[2].partition(end)[0] + end


def _format_latex_tables(section: Section, solution: bool) -> list[LatexTable]:
    """Format the tables of a section in LaTeX, with the header as the first row."""
    tables = []
    for table in section.format_tables(_format_latex_cell, solution):
        header = [Markup(rf"\textbf{{{_format_latex_cell(name, False)}}}") for name in table.header]
        columns = Markup("|l" * len(header) + "|")
        tables.append(LatexTable(columns, [header, *table.rows]))
    return tables


def _format_latex_text(text: str, format_code: Callable[[str], str]) -> Markup:
    """Format a paragraph in LaTeX; ``format_code`` formats the pieces of code in it."""
    formats: dict[str, Callable[[str], str]] = {
        "text": escape_latex_prose,
        "code": format_code,
        "emphasis": lambda words: rf"\emph{{{escape_latex_prose(words)}}}",
    }
    return Markup("".join(formats[piece.kind](piece.text) for piece in split_text(text)))


def _format_formula(text: str) -> str:
    """Format a formula or an equation in LaTeX math mode, and any other string as code."""
    left, equals, right = text.partition(" = ")
    try:
        sides = [latex(parse_expression(side)) for side in (left, right) if side]
    except CgprimerError:
        return rf"\texttt{{{escape_latex_prose(text)}}}"
    return f"${' = '.join(sides) if equals else sides[0]}$"


def _format_latex_cell(cell: Cell, is_blank: bool) -> Markup:
    """Format a table cell in LaTeX; empty blanks have room for an answer."""
    if is_blank and not cell:
        return Markup(r"\blank")
    if isinstance(cell, Apply | Name | Number):
        formula = latex(cell)
        # A strut keeps fractions from touching the lines of the table.
        strut = r"\rule[-1.1em]{0pt}{2.7em}" if r"\frac" in formula else ""
        return Markup(rf"{strut}$\displaystyle {formula}$")
    text = format_cell(cell)
    if isinstance(cell, DisplayFormula):
        return Markup(rf"\texttt{{{escape_latex_prose(text)}}}")
    if _NAME.fullmatch(text) and text not in _WORDS:
        return Markup(f"${latex_name(text)}$")
    return Markup(escape_latex_prose(text.replace(" -> ", " → ")))


# --- PDF -----------------------------------------------------------------------------------------


def sheet_pdf(sheet: Sheet, *, solution: bool = False) -> bytes:
    """Typeset a sheet as PDF with ``pdflatex``.

    Raises:
        UsageError: ``pdflatex`` is not installed, or fails.
    """
    check_pdflatex()
    with TemporaryDirectory() as folder:
        Path(folder, "sheet.tex").write_text(latex_document(sheet, solution=solution), "utf-8")
        command = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error"]
        process = subprocess.run(
            [*command, "sheet.tex"],
            cwd=folder,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        file = Path(folder, "sheet.pdf")
        if process.returncode or not file.exists():
            error = re.search(rb"^! (.*)$", process.stdout, re.MULTILINE)
            reason = error[1].decode(errors="replace") if error else "no reason given"
            raise UsageError(f"pdflatex could not typeset the sheet: {reason}")
        return file.read_bytes()


def check_pdflatex() -> None:
    """Check that ``pdflatex`` is installed, before a long computation.

    Raises:
        UsageError: ``pdflatex`` is not installed.
    """
    if shutil.which("pdflatex") is None:
        raise UsageError(
            "PDF output requires pdflatex, which is not installed",
            hint="write LaTeX with `--format latex`, or print `--format html` from a browser",
        )
