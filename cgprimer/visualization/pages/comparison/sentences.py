"""What a comparison says in sentences, short numbers and tables, wherever it is shown.

Errors, times and ratios have two digits everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.core.methods import methods as all_methods
from cgprimer.errors import join_names, pluralize
from cgprimer.support.number_format import DIGITS, choose_equality_sign, mark_rounding
from cgprimer.support.number_format import format_number as in_digits
from cgprimer.visualization.diagrams.slide_pen import Cell, Row, Table

_LEAST_ERROR = 1e-17  # where the bars of errors begin
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NOTES = (
    "errors: relative, against fifty digits, their bars logarithmic",
    "time: the least of five runs here",
    "counts: the same everywhere",
)
_DOES = {
    "finite-difference": "Moves {moved} a little and runs the graph again: {runs} for {names}.",
    "symbolic": "Derives {formulas} and evaluates {them}: {runs}.",
    "forward": "Carries a tangent beside every value, seeded with one name at a time: {runs} for"
    " {names}.",
    "reverse": "Runs the graph once, then once backwards: one sweep gives {all}.",
    "path-sum": "Multiplies the local partials along every path and adds the products: {paths}.",
}


def heading(found: Comparison) -> str:
    """The title where nobody has given one.

    >>> from cgprimer import compare, parse
    >>> heading(compare(parse("xw = k*xa"), {"xa": 1, "k": 2}))
    'The derivative of xw, by five methods'
    """
    what = "derivative" if len(found.wrt) == 1 else "gradient"
    count = len(found.results)
    number = _COUNTS[count] if count < len(_COUNTS) else str(count)
    return f"The {what} of {found.of}, by {number} method{'' if count == 1 else 's'}"


def subheading(found: Comparison) -> str:
    """The value, and what it costs by itself."""
    sign = choose_equality_sign(found.value)
    operations = pluralize(found.primal_operations, "operation")
    return f"{found.of} {sign} {in_digits(found.value)}, computed with {operations}"


def error(number: float | None) -> str:
    """A relative error; ``exact`` where there is none, empty where nothing is known.

    >>> error(0.0), error(1.4e-8), error(0.25), error(float("inf")), error(None)
    ('exact', '1.4e-8', '0.25', 'inf', '')
    >>> error(99.4), error(99.7), error(512.3), error(999.7), error(1234.0)
    ('99', '100', '512', '1e3', '1.2e3')
    """
    if number is None:
        return ""
    if number == 0:
        return "exact"
    if 99.5 <= number < 999.5:  # what two digits round to 100 is more
        return str(math.floor(number + 0.5))
    return in_digits(number, 2)


def duration(seconds: float) -> str:
    """A time with two or three digits.

    >>> duration(1.24e-6), duration(3.1e-5), duration(0.0123), duration(2.5)
    ('1.2 µs', '31 µs', '12 ms', '2.5 s')
    >>> duration(0.0009994), duration(0.0009996), duration(0.9996)
    ('999 µs', '1 ms', '1 s')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * size or unit == "µs":  # 999.6 of a unit is one of the next
            break
    return f"{_two_digits(seconds / size)} {unit}"


def times(found: Comparison, result: MethodResult) -> str:
    """How many times the graph's own operations; empty where the graph has none."""
    own = found.primal_operations
    return f"{_two_digits(result.operations / own)}×" if own else ""


def _two_digits(count: float) -> str:
    """With one decimal below ten, as a whole number from there on."""
    return in_digits(count, 2) if count < 9.95 else str(math.floor(count + 0.5))


def shown_names(found: Comparison, most: int) -> tuple[str, ...]:
    """At most so many names, those with the largest errors, in their own order.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa + sin(m*xa)"), {"xa": 1, "k": 2, "m": 0.7})
    >>> shown_names(found, 1), shown_names(found, 9)
    (('m',), ('k', 'm'))
    """
    if len(found.wrt) <= most:
        return found.wrt

    def worst(name: str) -> float:
        known = [r.errors[name] for r in found.results if name in r.errors]
        return max((math.inf if math.isnan(e) else e for e in known), default=math.inf)

    order = sorted(found.wrt, key=lambda name: -worst(name))  # stable: equal ones stay in order
    kept = set(order[:most])
    return tuple(name for name in found.wrt if name in kept)


def remarks(found: Comparison) -> tuple[str, ...]:
    """What a reader must know about the errors of this comparison."""
    if found.reference is None:
        return (
            "no reference: a function here has no form in fifty digits, or hides its derivative",
        )
    kinks = [name for name in found.wrt if found.reference[name] == "nan"]
    if not kinks:
        return ()
    return (
        f"no derivative for {join_names(kinks, 6)} here (a kink, a pole or an edge of the domain):"
        " each method has its convention, no error is counted",
    )


def does(found: Comparison, result: MethodResult) -> str:
    """What a method does on this graph, in one sentence."""
    if result.refused:
        return f"Refused: {result.refused}."
    one, runs = len(found.wrt) == 1, pluralize(result.passes, "pass", "passes")
    names = "one name" if one else pluralize(len(found.wrt), "name")
    return _DOES.get(result.method, f"{runs} for {{names}}.").format(
        names=names,
        runs=runs,
        paths=pluralize(result.passes, "path"),
        moved="the name" if one else "one name after another",
        formulas="a formula" if one else f"a formula for each of {names}",
        them="it" if one else "them all",
        all="the derivative" if one else f"all {len(found.wrt)} derivatives",
    )


def sentence(found: Comparison, result: MethodResult) -> str:
    """What a method does, and what that costs.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["reverse", "forward"])
    >>> print(sentence(found, found.results[0]))
    Runs the graph once, then once backwards: one sweep gives the derivative. That takes 1
    operation, 1× those of the graph, and holds at most 1 value at one time.
    >>> print(sentence(found, found.results[1]))
    Carries a tangent beside every value, seeded with one name at a time: 1 pass for one name. That
    takes 2 operations, 2× those of the graph, and holds at most 2 values at one time.
    """
    if result.refused:
        return does(found, result)
    ratio = times(found, result)
    beside = f", {ratio} those of the graph," if ratio else ""
    return (
        f"{does(found, result)} That takes {pluralize(result.operations, 'operation')}{beside} and"
        f" holds at most {pluralize(result.live_values, 'value')} at one time."
    )


def trace_caption(found: Comparison, result: MethodResult) -> str:
    """What the last column of a method's trace holds."""
    first = found.wrt[0]
    seeded = f"tangents, seeded with {first}"
    return {
        "reverse": "adjoints: computed from the last row to the first",
        "finite-difference": f"difference quotients for {first}",
        "symbolic": f"formulas for {first}, evaluated",
        "path-sum": f"sums over the paths from {first}",
    }.get(result.method, f"{seeded}: pass 1 of {result.passes}" if result.passes > 1 else seeded)


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
    names = shown_names(found, most)
    unknown = "" if found.reference is None else "–"  # nothing to compare it with alone

    def cell(result: MethodResult, name: str) -> Cell:
        text = mark_rounding(result.derivatives[name], digits)
        return Cell(text, error(result.errors.get(name)) or unknown)

    rows = tuple(
        Row(f"d{found.of}/d{name}", tuple(cell(result, name) for result in able)) for name in names
    )
    header = ("derivative", *(result.method for result in able))
    series = tuple(place_of(result.method) for result in able)
    hidden = len(found.wrt) - len(names)
    more = f"{pluralize(hidden, 'more derivative')} of {len(found.wrt)} not shown"
    note = f"{more}: these have the largest errors" if hidden else ""
    return Table(header, rows, (False,) * len(able), series, note)


def cost_table(found: Comparison) -> Table:
    """A row per method: largest error, passes, operations, live values and time, with bars."""

    def shares(of: Callable[[MethodResult], float]) -> Callable[[MethodResult], float]:
        largest = max((of(result) for result in found.results if not result.refused), default=0.0)
        return lambda result: of(result) / largest if largest > 0 else 0.0

    operations = shares(lambda r: float(r.operations))
    live, seconds = shares(lambda r: float(r.live_values)), shares(lambda r: r.seconds)

    def row(r: MethodResult) -> Row:
        if r.refused:
            return Row(r.method, (), f"refused: {r.refused}", place_of(r.method))
        cells = (
            Cell(error(r.worst_error) or "no reference", share=_error_share(r)),
            Cell(pluralize(r.passes, "path") if r.method == "path-sum" else f"{r.passes:,}"),
            Cell(f"{r.operations:,}", times(found, r), operations(r)),
            Cell(f"{r.live_values:,}", share=live(r)),
            Cell(duration(r.seconds), share=seconds(r)),
        )
        return Row(r.method, cells, series=place_of(r.method))

    header = ("method", "largest error", "passes", "operations", "live values", "time")
    return Table(header, tuple(map(row, found.results)), (True, False, True, True, True))


def place_of(method: str) -> int:
    """The number of a method among all, which is that of its colour and hatching."""
    known = all_methods()
    return known.index(method) if method in known else len(known)


def _error_share(result: MethodResult) -> float | None:
    """The length of the bar of an error, on a logarithmic scale from 1e-17 to 1; None: no bar."""
    error = result.worst_error
    if error is None or error == 0:
        return None
    if not math.isfinite(error) or error >= 1:
        return 1.0
    return max(0.0, 1 - math.log10(error) / math.log10(_LEAST_ERROR))
