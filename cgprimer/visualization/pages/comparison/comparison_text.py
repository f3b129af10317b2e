"""The text of a comparison for pages and slides: sentences, short numbers and tables.

Errors, times and ratios are rounded to two digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.core.methods import methods as all_methods
from cgprimer.errors import join_names, pluralize
from cgprimer.support.number_format import (
    DIGITS,
    choose_equality_sign,
    format_number,
    mark_rounding,
)
from cgprimer.visualization.diagrams.slide_pen import Cell, Row, Table

_LEAST_ERROR = 1e-17  # the error at which bars of errors begin
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NOTES = (
    "errors: relative to fifty digits, with logarithmic bars",
    "time: minimum of five runs",
    "other numbers: the same on every machine",
)
_DESCRIPTIONS = {
    "finite-difference": "Shifts {shifted} slightly and evaluates the graph again: {runs} for"
    " {names}.",
    "symbolic": "Derives {formulas} and evaluates {them}: {runs}.",
    "forward": "Propagates a tangent with every value, seeded with one name at a time: {runs} for"
    " {names}.",
    "reverse": "Evaluates the graph, then propagates adjoints backward: one sweep yields {all}.",
    "path-sum": "Multiplies the local partials along every path and adds the products: {paths}.",
}


def format_default_title(comparison: Comparison) -> str:
    """Return the default title of a comparison, such as ``The gradient of xw, by five methods``.

    >>> from cgprimer import compare, parse
    >>> format_default_title(compare(parse("xw = k*xa"), {"xa": 1, "k": 2}))
    'The derivative of xw, by five methods'
    """
    noun = "derivative" if len(comparison.wrt) == 1 else "gradient"
    count = len(comparison.results)
    number = _COUNTS[count] if count < len(_COUNTS) else str(count)
    return f"The {noun} of {comparison.of}, by {number} method{'' if count == 1 else 's'}"


def format_subtitle(comparison: Comparison) -> str:
    """Return the subtitle of a comparison: the output's value and its number of operations."""
    sign = choose_equality_sign(comparison.value)
    operations = pluralize(comparison.primal_operations, "operation")
    return f"{comparison.of} {sign} {format_number(comparison.value)}, computed with {operations}"


def format_error(error: float | None) -> str:
    """Format a relative error with two digits; zero becomes ``exact`` and None an empty string.

    >>> format_error(0.0), format_error(1.4e-8), format_error(float("inf")), format_error(None)
    ('exact', '1.4e-8', 'inf', '')
    >>> format_error(99.4), format_error(99.7), format_error(512.3), format_error(999.7)
    ('99', '100', '512', '1e3')
    """
    if error is None:
        return ""
    if error == 0:
        return "exact"
    if 99.5 <= error < 999.5:  # two digits would turn 512 into 510
        return str(math.floor(error + 0.5))
    return format_number(error, 2)


def format_duration(seconds: float) -> str:
    """Format a duration in seconds with two or three digits and a unit.

    >>> format_duration(1.24e-6), format_duration(0.0123), format_duration(2.5)
    ('1.2 µs', '12 ms', '2.5 s')
    >>> format_duration(0.0009994), format_duration(0.0009996), format_duration(0.9996)
    ('999 µs', '1 ms', '1 s')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * size or unit == "µs":  # 999.6 µs is 1 ms
            break
    return f"{_format_two_digits(seconds / size)} {unit}"


def format_operation_ratio(comparison: Comparison, result: MethodResult) -> str:
    """Format how many times more operations a method needs than the graph, such as ``2.5×``.

    Empty for a graph without operations.
    """
    primal = comparison.primal_operations
    return f"{_format_two_digits(result.operations / primal)}×" if primal else ""


def _format_two_digits(count: float) -> str:
    """Format a positive number with two digits below ten, and as an integer otherwise."""
    return format_number(count, 2) if count < 9.95 else str(math.floor(count + 0.5))


def choose_names(comparison: Comparison, max_names: int) -> tuple[str, ...]:
    """Choose the names, at most ``max_names``, whose derivatives have the largest errors.

    The names keep their order.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xw = k*xa + sin(m*xa)"), {"xa": 1, "k": 2, "m": 0.7})
    >>> choose_names(comparison, 1), choose_names(comparison, 9)
    (('m',), ('k', 'm'))
    """
    if len(comparison.wrt) <= max_names:
        return comparison.wrt

    def find_largest_error(name: str) -> float:
        """Return the largest error of a derivative over all methods; nan counts as infinite."""
        errors = [r.errors[name] for r in comparison.results if name in r.errors]
        return max((math.inf if math.isnan(e) else e for e in errors), default=math.inf)

    # The sort is stable: names with equal errors keep their order.
    chosen = set(sorted(comparison.wrt, key=lambda name: -find_largest_error(name))[:max_names])
    return tuple(name for name in comparison.wrt if name in chosen)


def explain_missing_errors(comparison: Comparison) -> tuple[str, ...]:
    """Return notes that explain why the errors of some derivatives are unknown."""
    if comparison.reference is None:
        return (
            "no reference: a function cannot be evaluated with fifty digits, or hides its"
            " derivative",
        )
    kinks = [name for name in comparison.wrt if comparison.reference[name] == "nan"]
    if not kinks:
        return ()
    return (
        f"no derivative for {join_names(kinks, 6)} here (a kink, a pole or the boundary of the"
        " domain): each method follows its own convention, and errors are not counted",
    )


def describe_method(comparison: Comparison, result: MethodResult) -> str:
    """Describe in one sentence how a method computes the gradient of the compared graph."""
    if result.refused:
        return f"Refused: {result.refused}."
    is_single, runs = len(comparison.wrt) == 1, pluralize(result.passes, "pass", "passes")
    names = "one name" if is_single else pluralize(len(comparison.wrt), "name")
    return _DESCRIPTIONS.get(result.method, f"{runs} for {{names}}.").format(
        names=names,
        runs=runs,
        paths=pluralize(result.passes, "path"),
        shifted="the value" if is_single else "one value at a time",
        formulas="a formula" if is_single else f"a formula for each of {names}",
        them="it" if is_single else "them",
        all="the derivative" if is_single else f"all {len(comparison.wrt)} derivatives",
    )


def describe_method_and_costs(comparison: Comparison, result: MethodResult) -> str:
    """Describe in two sentences how a method computes the gradient, and its costs.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["reverse"])
    >>> print(describe_method_and_costs(comparison, comparison.results[0]))
    Evaluates the graph, then propagates adjoints backward: one sweep yields the derivative. This
    takes 1 operation, 1× those of the graph, and stores at most 1 value at a time.
    """
    description = describe_method(comparison, result)
    if result.refused:
        return description
    ratio = format_operation_ratio(comparison, result)
    comparison_with_graph = f", {ratio} those of the graph," if ratio else ""
    return (
        f"{description} This takes {pluralize(result.operations, 'operation')}"
        f"{comparison_with_graph} and stores at most {pluralize(result.live_values, 'value')} at a"
        " time."
    )


def describe_trace(comparison: Comparison, result: MethodResult) -> str:
    """Return the caption for a method's trace, which explains the trace's last column."""
    first = comparison.wrt[0]
    tangents = f"tangents, seeded with {first}"
    return {
        "reverse": "adjoints: computed from the last row to the first",
        "finite-difference": f"difference quotients with respect to {first}",
        "symbolic": f"formulas of derivatives with respect to {first}, evaluated",
        "path-sum": f"sums over the paths from {first}",
    }.get(
        result.method, f"{tangents}: pass 1 of {result.passes}" if result.passes > 1 else tangents
    )


def build_derivative_table(
    comparison: Comparison, max_derivatives: int, digits: int = DIGITS
) -> Table | None:
    """Build the table of derivatives, with the value and the relative error for each method.

    Of more than ``max_derivatives`` derivatives, those with the largest errors are included. None
    if every method refused.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xw = k*xa"), {"xa": 3, "k": 2}, methods=["reverse"])
    >>> build_derivative_table(comparison, 5).rows
    (Row(title='dxw/dk', cells=(Cell(text='3', more='exact', share=None),), instead='', series=-1),)
    """
    results = [result for result in comparison.results if not result.refused]
    if not results:
        return None
    names = choose_names(comparison, max_derivatives)
    unknown = "" if comparison.reference is None else "–"

    def build_derivative_cell(result: MethodResult, name: str) -> Cell:
        """Build the table cell with one derivative computed by a method, and its error."""
        text = mark_rounding(result.derivatives[name], digits)
        return Cell(text, format_error(result.errors.get(name)) or unknown)

    rows = tuple(
        Row(
            f"d{comparison.of}/d{name}",
            tuple(build_derivative_cell(result, name) for result in results),
        )
        for name in names
    )
    header = ("derivative", *(result.method for result in results))
    series = tuple(find_method_index(result.method) for result in results)
    n_hidden = len(comparison.wrt) - len(names)
    hidden = f"{pluralize(n_hidden, 'more derivative')} of {len(comparison.wrt)} not shown"
    note = f"{hidden}: the table has those with the largest errors" if n_hidden else ""
    return Table(header, rows, (False,) * len(results), series, note)


def build_cost_table(comparison: Comparison) -> Table:
    """Build the cost table: maximum error, passes, operations, memory and time of each method."""

    def build_bar_scale(
        cost: Callable[[MethodResult], float],
    ) -> Callable[[MethodResult], float]:
        """Return a function that divides a method's cost by the maximum cost over all methods."""
        costs = (cost(result) for result in comparison.results if not result.refused)
        maximum = max(costs, default=0.0)
        return lambda result: cost(result) / maximum if maximum > 0 else 0.0

    operations = build_bar_scale(lambda r: float(r.operations))
    live_values = build_bar_scale(lambda r: float(r.live_values))
    seconds = build_bar_scale(lambda r: r.seconds)

    def build_cost_row(result: MethodResult) -> Row:
        """Build the table row with a method's costs, or with the reason why the method refused."""
        if result.refused:
            return Row(
                result.method, (), f"refused: {result.refused}", find_method_index(result.method)
            )
        cells = (
            Cell(
                format_error(result.worst_error) or "no reference", share=_compute_error_bar(result)
            ),
            Cell(
                pluralize(result.passes, "path")
                if result.method == "path-sum"
                else f"{result.passes:,}"
            ),
            Cell(
                f"{result.operations:,}",
                format_operation_ratio(comparison, result),
                operations(result),
            ),
            Cell(f"{result.live_values:,}", share=live_values(result)),
            Cell(format_duration(result.seconds), share=seconds(result)),
        )
        return Row(result.method, cells, series=find_method_index(result.method))

    header = ("method", "largest error", "passes", "operations", "live values", "time")
    rows = tuple(map(build_cost_row, comparison.results))
    return Table(header, rows, (True, False, True, True, True))


def find_method_index(method: str) -> int:
    """Return a method's position among all methods, which determines its color and hatching."""
    names = all_methods()
    return names.index(method) if method in names else len(names)


def _compute_error_bar(result: MethodResult) -> float | None:
    """Return the length of the bar for a method's error, from 0 to 1 on a logarithmic scale.

    None for no bar.
    """
    error = result.worst_error
    if error is None or error == 0:
        return None
    if not math.isfinite(error) or error >= 1:
        return 1.0
    return max(0.0, 1 - math.log10(error) / math.log10(_LEAST_ERROR))
