"""The tables of a comparison, and a section per method with its trace, as HTML.

Every text of a user goes through `escape`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.analysis.trace import Trace, TraceRow, trace
from cgprimer.errors import CgprimerError, plural
from cgprimer.pages.comparison import words
from cgprimer.pages.comparison.columns import METHOD, cost_columns, place_of

_MOST_DERIVATIVES = 100
_MOST_OPERATIONS = 24  # rows of a trace beyond which it has a row per variable
_MOST_ROWS = 30
_LONGEST = 120  # characters of an expression in a trace


def derivative_section(found: Comparison) -> str:
    """A row per name, for each method its value and the error.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["reverse"])
    >>> 'exact' in derivative_section(found)
    True
    """
    able = [result for result in found.results if not result.refused]
    if not able:
        return ""
    names = words.shown_names(found, _MOST_DERIVATIVES)
    header = "".join(f'<th scope="col">{_key(r)}{escape(r.method)}</th>' for r in able)
    rows = []
    for name in names:
        cells = "".join(
            f'<td><span class="value">{words.value(r.derivatives[name])}</span>'
            f' <span class="error">{words.error_in_row(found, r, name)}</span></td>'
            for r in able
        )
        title = escape(words.derivative(found, name))
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    notes = [note for note in (words.hidden(found, names), *words.remarks(found)) if note]
    return _section(
        "Derivatives",
        "derivatives",
        "each derivative by each method, and its relative error",
        f'<th scope="col">derivative</th>{header}',
        rows,
        notes,
    )


def cost_section(found: Comparison) -> str:
    """A row per method: largest error, passes, operations, live values and time, with bars."""
    columns = cost_columns(found)
    rows = []
    for r in found.results:
        title = f'<th scope="row">{_key(r)}{escape(r.method)}</th>'
        if r.refused:
            rows.append(f'<tr>{title}<td colspan="{len(columns)}" class="refused">refused: '
                        f"{escape(r.refused)}</td></tr>")  # fmt: skip
            continue
        cells = [_cell(c.text(r), _bar(r, c.share(r)), c.more(r)) for c in columns]
        rows.append(f"<tr>{title}{''.join(cells)}</tr>")
    titles = (METHOD, *(column.title for column in columns))
    return _section(
        "Costs",
        "costs",
        f"what the whole gradient costs; the graph alone takes {words.own(found)}",
        "".join(f'<th scope="col">{title}</th>' for title in titles),
        rows,
        [f"{'; '.join(words.NOTES)}."],
    )


def method_sections(found: Comparison) -> str:
    """A section per method: what it does here, and its trace."""
    parts = []
    for result in found.results:
        parts.append(
            f'<article aria-label="{escape(result.method)}"><h3>{_key(result)}'
            f"{escape(result.method)}</h3><p>{escape(words.sentence(found, result))}</p>"
            f"{_trace_table(found, result)}</article>"
        )
    parts.append(_guide(found))
    return "\n".join(parts)


def _guide(found: Comparison) -> str:
    """How to read the numbers."""
    entries = (
        (
            "error",
            f"|value − reference| / |reference|; the reference of {escape(found.of)}'s derivatives"
            " has fifty digits. “exact”: no difference at all. Bars are logarithmic.",
        ),
        ("passes", "runs over the graph for the whole gradient; for path-sum: paths."),
        ("operations", "instructions executed for the whole gradient, and how many times those"
         " of the graph alone."),
        ("live values", "the most numbers that are held at one time: the memory that it takes."),
        ("time", "of the whole gradient once compiled, the least of five runs on the machine that"
         " made this page. All else is the same on every machine."),
    )  # fmt: skip
    said = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in entries)
    return f'<article class="guide"><h3>How to read the numbers</h3><dl>{said}</dl></article>'


def trace_of(found: Comparison, result: MethodResult) -> Trace:
    """The trace of a method at the point of the comparison.

    Reverse mode has the adjoint of every value; the others tangents, seeded with the first name.

    Raises:
        CgprimerError: the method refuses; also one that gives the gradient may refuse the
            derivative of every row.
    """
    wrt = None if result.method == "reverse" else found.wrt[0]
    given = len(found.graph.inputs) + len(found.graph.parameters)
    small = given + found.primal_operations <= _MOST_OPERATIONS
    level = "operations" if small else "variables"
    return trace(found.graph, found.at, of=found.of, wrt=wrt, method=result.method, level=level)


def _trace_table(found: Comparison, result: MethodResult) -> str:
    if result.refused:
        return ""
    try:
        made = trace_of(found, result)
    except CgprimerError as error:
        return f'<p class="note">no trace: {escape(error.message)}</p>'
    first = escape(found.wrt[0])
    captions = {
        "reverse": "adjoints: computed from the last row to the first",
        "finite-difference": f"difference quotients for {first}",
        "symbolic": f"formulas for {first}, evaluated",
        "path-sum": f"sums over the paths from {first}",
    }
    default = f"tangents, seeded with {first}" + (
        f": pass 1 of {result.passes}" if result.passes > 1 else ""
    )
    rows = made.rows
    left_out = len(rows) - _MOST_ROWS
    half = _MOST_ROWS // 2
    body = [_row(row) for row in rows]
    if left_out > 0:
        gap = f'<tr><td colspan="4" class="refused">{plural(left_out, "row")} left out</td></tr>'
        body = [*body[:half], gap, *body[-half:]]
    header = "".join(
        f'<th scope="col">{escape(text)}</th>'
        for text in ("name", "expression", "value", made.heading)
    )
    caption = captions.get(result.method, default)
    return _table("trace", caption, header, body)


def _row(row: TraceRow) -> str:
    return (
        f'<tr><th scope="row">{escape(row.name)}</th><td class="expression">'
        f"{_breakable(row.expression)}</td><td>{words.value(row.value)}</td>"
        f"<td>{words.value(row.derivative)}</td></tr>"
    )


def _breakable(expression: str) -> str:
    """An expression that a browser may break at operators, not within names.

    >>> _breakable("sin(a)*b + 1")
    'sin(<wbr>a)<wbr>*b + 1'
    """
    if len(expression) > _LONGEST:
        expression = f"{expression[:_LONGEST].rpartition(' ')[0] or expression[:_LONGEST]} …"
    return re.sub(r"(?<=\S)(?=[*/])|(?<=\()", "<wbr>", escape(expression))


def _section(
    title: str, kind: str, caption: str, header: str, rows: Sequence[str], notes: Sequence[str]
) -> str:
    below = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    table = _table(kind, escape(caption), header, rows)
    return f"<section><h2>{title}</h2>{table}{below}</section>"


def _table(kind: str, caption: str, header: str, rows: Sequence[str]) -> str:
    """A table in a box of its own, so that one that is too wide does not widen the page."""
    return (
        f'<div class="box" tabindex="0"><table class="{kind}"><caption>{caption}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(text: str, bar: str = "", more: str = "") -> str:
    beside = f' <span class="more">{more}</span>' if more else ""
    return f'<td><span class="value">{text}</span>{beside}{bar}</td>'


def _bar(result: MethodResult, share: float | None) -> str:
    if share is None:
        return ""
    which = place_of(result.method)
    return (
        f'<span class="bar" aria-hidden="true"><span class="m{which}"'
        f' style="width: {100 * share:.1f}%"></span></span>'
    )


def _key(result: MethodResult) -> str:
    """The colour and pattern of a method."""
    return f'<span class="key m{place_of(result.method)}" aria-hidden="true"></span>'
