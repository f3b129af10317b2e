"""Sheets for paper: a page of HTML that holds all it needs, and LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import lru_cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.course.checks.sheets.sheet_problems import Cell, DisplayFormula, Sheet, format_cell
from cgprimer.course.exercises.documents import embedded, headings, inline, sections
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.expressions import Apply, Name, Number, parse_expression
from cgprimer.support.latex_text import declare_missing_characters, escape_latex_prose
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.figure_files import figure_bytes
from cgprimer.visualization.diagrams.tikz import tikz

_ON_A_PAGE = 24  # rows of a problem that is not broken over two pages
_STYLE = """
:root { color-scheme: light; }
body { font: 12pt/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2em auto;
  max-width: 50em; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; }
.under { color: #555; margin-top: .2em; }
code { font: .95em ui-monospace, monospace; }
.box { overflow-x: auto; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #888; padding: .35em .7em; text-align: left; height: 1.5em; }
th { background: #eee; }
td.blank { min-width: 7em; background: #fffbe6; }
td.filled { background: #e8f3ec; font-weight: 600; }
figure { margin: 1em 0; } figure svg { max-width: 100%; height: auto; max-height: 24em; }
@media print {
  body { margin: 0; max-width: none; font-size: 10.5pt; } td.blank { background: #fff; }
  h2 { break-after: avoid; } tr, figure, table { break-inside: avoid; } section + section { break-before: auto; }
}
""".strip()  # noqa: E501


@lru_cache(maxsize=4)  # a sheet and its solution have the same
def svg(diagram: Diagram) -> str:
    """A picture as an element of a page."""
    text = figure_bytes(draw_diagram(diagram), "svg").decode()
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)


def page(sheet: Sheet, *, solution: bool = False) -> str:
    """A sheet as a page that needs no network and prints on paper; every text is escaped."""
    title, under = headings(sheet, solution=solution)
    parts = [f"<h1>{escape(title)}</h1>", f'<p class="under">{escape(under)}</p>']
    for section in sections(sheet):
        parts += ["<section>", f"<h2>{_html(section.heading)}</h2>"]
        parts += [f"<p>{_html(paragraph)}</p>" for paragraph in section.text]
        if section.picture:
            parts.append(
                f'<figure role="img" aria-label="the graph">{svg(section.picture)}</figure>'
            )
        for header, rows in section.tables(_html_cell, solution):
            head = "".join(f"<th>{escape(text)}</th>" for text in header)
            body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
            parts.append(
                f'<div class="box"><table><thead><tr>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table></div>"
            )
        parts.append("</section>")
    data = f'<script type="application/json" id="cgprimer-sheet">{embedded(sheet)}</script>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{_STYLE}\n</style></head><body>\n"
        + "\n".join(parts)
        + f"\n{data}\n</body></html>\n"
    )


def _html(text: str) -> str:
    return inline(
        text, lambda c: f"<code>{escape(c)}</code>", lambda s: f"<em>{escape(s)}</em>", escape
    )


def _html_cell(cell: Cell, asked: bool) -> str:
    text = escape(format_cell(cell).replace(" -> ", " → "))
    own = f' class="{"filled" if text else "blank"}"' if asked else ""
    code = isinstance(cell, Apply | Name | DisplayFormula)
    return f"<td{own}>{f'<code>{text}</code>' if code else text}</td>"


# --- LaTeX ---------------------------------------------------------------------------------------

_PREAMBLE = r"""\documentclass[11pt,a4paper]{article}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{\usepackage{fix-cm}}
\usepackage{amsmath}
\usepackage[margin=2.2cm]{geometry}
\usepackage{tikz}
\usetikzlibrary{arrows.meta, backgrounds}
\setlength{\parindent}{0pt} \setlength{\parskip}{0.6em} \renewcommand{\arraystretch}{1.5}
\newsavebox{\fitted}
\newcommand{\fit}[1]{\sbox{\fitted}{#1}\par\ifdim\wd\fitted>\linewidth
  \resizebox{\linewidth}{!}{\usebox{\fitted}}\else\usebox{\fitted}\fi\par}
\newcommand{\blank}{\rule{0pt}{1.4em}\hspace*{2.6cm}}"""


def latex_document(sheet: Sheet, *, solution: bool = False) -> str:
    """A sheet for ``pdflatex``; formulas are set as mathematics."""
    title, under = headings(sheet, solution=solution)
    body, colours = (
        [rf"{{\Large\bfseries {escape_latex_prose(title)}}}\\{{}}{escape_latex_prose(under)}"],
        dict[str, None](),
    )
    for section in sections(sheet):
        above = section.worksheet.given_table[1] if section.worksheet.given_table else ()
        together = len(section.worksheet.rows) + len(above) <= _ON_A_PAGE
        page_begins = r"\par\vspace{1.5em}\begin{minipage}{\linewidth}\setlength{\parskip}{0.6em}"
        body += ["", page_begins] * together
        body += [rf"\section*{{{_tex(section.heading, escape_latex_prose)}}}"]
        body += [_tex(paragraph, _mathematics) + r"\par" for paragraph in section.text]
        if section.picture:
            drawn = tikz(section.picture)
            colours |= dict.fromkeys(re.findall(r"^\\definecolor.*$", drawn, re.MULTILINE))
            begin, end = r"\begin{tikzpicture}", r"\end{tikzpicture}"
            picture = begin + drawn.partition(begin)[2].partition(end)[0] + end
            body += [rf"\begin{{center}}\fit{{\scalebox{{0.62}}{{{picture}}}}}\end{{center}}"]
        for header, rows in section.tables(_tex_cell, solution):
            head = [rf"\textbf{{{_tex_cell(text)}}}" for text in header]
            lines = [" & ".join(cells) + r" \\ \hline" for cells in (head, *rows)]
            begin = rf"\begin{{tabular}}{{{'|l' * len(head)}|}} \hline"
            body += [r"\fit{" + "\n".join([begin, *lines, r"\end{tabular}}"])]
        body += [r"\end{minipage}"] * together
    text = "\n".join(body)
    return "\n".join(
        [_PREAMBLE, *colours, *declare_missing_characters(text),
         f"% cgprimer-sheet {embedded(sheet)}",
         r"\begin{document}", text, r"\end{document}", ""]
    ).replace(r"\ifPDFTeX", r"\iftrue")  # fmt: skip


def _tex(text: str, code: Callable[[str], str]) -> str:
    return inline(text, code, lambda s: rf"\emph{{{escape_latex_prose(s)}}}", escape_latex_prose)


def _mathematics(text: str) -> str:
    """A formula or an equation as mathematics, another text as it is written."""
    left, equals, right = text.partition(" = ")
    try:
        made = [latex(parse_expression(side)) for side in (left, right) if side]
    except CgprimerError:
        return rf"\texttt{{{escape_latex_prose(text)}}}"
    return f"${' = '.join(made) if equals else made[0]}$"


_NAME = re.compile(r"[A-Za-z]\w*")


def _tex_cell(cell: Cell, asked: bool = False) -> str:
    if asked and not cell:
        return r"\blank"
    if isinstance(cell, Apply | Name | Number):
        made = latex(cell)
        high = r"\rule[-1.1em]{0pt}{2.7em}" if r"\frac" in made else ""  # it touches no line
        return rf"{high}$\displaystyle {made}$"
    text = format_cell(cell)
    if isinstance(cell, DisplayFormula):
        return rf"\texttt{{{escape_latex_prose(text)}}}"
    words = ("input", "parameter", "row", "expression", "value", "adjoint", "tangent", "shape",
             "number", "formula", "what", "derivative", "question", "answer")  # fmt: skip
    if _NAME.fullmatch(text) and text not in words:
        return f"${latex_name(text)}$"
    return escape_latex_prose(text.replace(" -> ", " → "))


def pdf(sheet: Sheet, *, solution: bool = False) -> bytes:
    """A sheet as PDF, made by ``pdflatex``.

    Raises:
        UsageError: there is no ``pdflatex``, or it could not set the sheet.
    """
    check_pdflatex()
    with TemporaryDirectory() as folder:
        Path(folder, "sheet.tex").write_text(latex_document(sheet, solution=solution), "utf-8")
        command = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error"]
        done = subprocess.run(
            [*command, "sheet.tex"], cwd=folder, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        made = Path(folder, "sheet.pdf")
        if done.returncode or not made.exists():
            said = re.search(rb"^! (.*)$", done.stdout, re.MULTILINE)
            why = said[1].decode(errors="replace") if said else "it gave no reason"
            raise UsageError(f"pdflatex could not set the sheet: {why}")
        return made.read_bytes()


def check_pdflatex() -> None:
    """Find out before a long job whether PDF files can be made.

    Raises:
        UsageError: there is no ``pdflatex``.
    """
    if shutil.which("pdflatex") is None:
        raise UsageError(
            "PDF needs pdflatex, which is not installed here",
            hint="--format latex writes the text for it; --format html prints from a browser",
        )
