"""The tables of a comparison as data: the same on slides, on pages and in notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.core.methods import methods as all_methods
from cgprimer.errors import plural
from cgprimer.number_format import DIGITS, marked
from cgprimer.pages.comparison import sentences
from cgprimer.pictures.pen import Cell, Row, Table

_LEAST_ERROR = 1e-17  # where the bars of errors begin


def derivative_table(found: Comparison, most: int, digits: int = DIGITS) -> Table | None:
    """At most so many rows, a derivative each: by each method its value and its relative error.

    None where every method refused.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 3, "k": 2}, methods=["reverse"])
    >>> derivative_table(found, 5).rows
    (Row(title='dxw/dk', cells=(Cell(text='3', more='exact', share=None),), instead='', series=-1),)
    """
    able = [result for result in found.results if not result.refused]
    if not able:
        return None
    names = sentences.shown_names(found, most)

    def cell(result: MethodResult, name: str) -> Cell:
        unknown = "" if found.reference is None else "–"  # nothing to compare it with alone
        error = result.errors.get(name)
        text = marked(result.derivatives[name], digits)
        return Cell(text, unknown if error is None else sentences.error(error))

    rows = tuple(
        Row(f"d{found.of}/d{name}", tuple(cell(result, name) for result in able)) for name in names
    )
    header = ("derivative", *(result.method for result in able))
    series = tuple(place_of(result.method) for result in able)
    hidden = len(found.wrt) - len(names)
    more = f"{plural(hidden, 'more derivative')} of {len(found.wrt)} not shown"
    note = f"{more}: these have the largest errors" if hidden else ""
    return Table(header, rows, (False,) * len(able), series, note)


def cost_table(found: Comparison) -> Table:
    """A row per method: largest error, passes, operations, live values and time, with bars.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["reverse"])
    >>> [cell.text for cell in cost_table(found).rows[0].cells[:3]]
    ['exact', '1', '1']
    """

    def shares(of: Callable[[MethodResult], float]) -> Callable[[MethodResult], float]:
        largest = max((of(result) for result in found.results if not result.refused), default=0.0)
        return lambda result: of(result) / largest if largest > 0 else 0.0

    operations = shares(lambda r: float(r.operations))
    live, seconds = shares(lambda r: float(r.live_values)), shares(lambda r: r.seconds)

    def row(r: MethodResult) -> Row:
        if r.refused:
            return Row(r.method, (), f"refused: {r.refused}", place_of(r.method))
        cells = (
            Cell(sentences.largest_error(r), share=error_share(r)),
            Cell(plural(r.passes, "path") if r.method == "path-sum" else f"{r.passes:,}"),
            Cell(f"{r.operations:,}", sentences.times(found, r), operations(r)),
            Cell(f"{r.live_values:,}", share=live(r)),
            Cell(sentences.duration(r.seconds), share=seconds(r)),
        )
        return Row(r.method, cells, series=place_of(r.method))

    header = ("method", "largest error", "passes", "operations", "live values", "time")
    return Table(header, tuple(map(row, found.results)), (True, False, True, True, True))


def error_share(result: MethodResult) -> float | None:
    """The length of the bar of an error, on a logarithmic scale from 1e-17 to 1; None: no bar.

    >>> error_share(MethodResult("", errors={"xa": 1.0})), error_share(MethodResult(""))
    (1.0, None)
    """
    error = result.worst_error
    if error is None or error == 0:
        return None
    if not math.isfinite(error) or error >= 1:
        return 1.0
    return max(0.0, 1 - math.log10(error) / math.log10(_LEAST_ERROR))


def place_of(method: str) -> int:
    """The number of a method among all, which is that of its colour and hatching."""
    known = all_methods()
    return known.index(method) if method in known else len(known)
