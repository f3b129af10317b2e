"""What a comparison says in sentences and short numbers, on slides, pages and in notebooks alike.

Errors, times and ratios have two digits everywhere.
"""

from __future__ import annotations

import math

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.errors import plural
from cgprimer.number_format import equals
from cgprimer.number_format import number as in_digits

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NOTES = (
    "errors: relative, against fifty digits, their bars logarithmic",
    "time: the least of five runs here",
    "counts: the same everywhere",
)


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
    sign = equals(found.value)
    return f"{found.of} {sign} {in_digits(found.value)}, computed with {own(found)}"


def own(found: Comparison) -> str:
    """The operations of the graph itself."""
    return plural(found.primal_operations, "operation")


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


def largest_error(result: MethodResult) -> str:
    """The largest error of a method.

    >>> largest_error(MethodResult("forward", errors={"xa": 0.0})), largest_error(MethodResult(""))
    ('exact', 'no reference')
    """
    return error(result.worst_error) or "no reference"


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
    count = seconds / size
    return f"{_two_digits(count)} {unit}"


def times(found: Comparison, result: MethodResult) -> str:
    """How many times the graph's own operations; empty where the graph has none.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> times(found, found.result("finite-difference"))
    '2×'
    """
    if not found.primal_operations:
        return ""
    ratio = result.operations / found.primal_operations
    return f"{_two_digits(ratio)}×"


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
    named = ", ".join(kinks[:6]) + (f" and {len(kinks) - 6} more" if len(kinks) > 6 else "")
    return (
        f"no derivative for {named} here (a kink, a pole or an edge of the domain):"
        " each method has its convention, no error is counted",
    )


def does(found: Comparison, result: MethodResult) -> str:
    """What a method does on this graph, in one sentence.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["reverse"])
    >>> does(found, found.results[0])
    'Runs the graph once, then once backwards: one sweep gives the derivative.'
    """
    if result.refused:
        return f"Refused: {result.refused}."
    count = len(found.wrt)
    one = count == 1
    names = "one name" if one else f"{count} names"
    runs = plural(result.passes, "pass", "passes")
    return {
        "finite-difference": (
            f"Moves {'the name' if one else 'one name after another'} a little and runs the graph"
            f" again: {runs} for {names}."
        ),
        "symbolic": (
            f"Derives {'a formula' if one else f'a formula for each of {names}'} and evaluates"
            f" {'it' if one else 'them all'}: {runs}."
        ),
        "forward": (
            f"Carries a tangent beside every value, seeded with one name at a time: {runs}"
            f" for {names}."
        ),
        "reverse": (
            "Runs the graph once, then once backwards: one sweep gives"
            f" {'the derivative' if one else f'all {count} derivatives'}."
        ),
        "path-sum": (
            "Multiplies the local partials along every path and adds the products:"
            f" {plural(result.passes, 'path')}."
        ),
    }.get(result.method, f"{runs[0].upper()}{runs[1:]} for {names}.")


def sentence(found: Comparison, result: MethodResult) -> str:
    """What a method does, and what that costs.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["forward"])
    >>> print(sentence(found, found.results[0]))
    Carries a tangent beside every value, seeded with one name at a time: 1 pass for one name. That
    takes 2 operations, 2× those of the graph, and holds at most 2 values at one time.
    """
    if result.refused:
        return does(found, result)
    ratio = times(found, result)
    beside = f", {ratio} those of the graph," if ratio else ""
    return (
        f"{does(found, result)} That takes {plural(result.operations, 'operation')}{beside} and"
        f" holds at most {plural(result.live_values, 'value')} at one time."
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


def guide(found: Comparison) -> tuple[tuple[str, str], ...]:
    """How to read the numbers: terms and what they mean."""
    return (
        (
            "error",
            f"|value − reference| / |reference|; the reference of {found.of}'s derivatives"
            " has fifty digits. “exact”: no difference at all. Bars are logarithmic.",
        ),
        ("≈", "stands before a value that is rounded, half away from zero."),
        ("passes", "runs over the graph for the whole gradient; for path-sum: paths."),
        (
            "operations",
            "instructions executed for the whole gradient, and how many times those"
            " of the graph alone.",
        ),
        ("live values", "the most numbers that are held at one time: the memory that it takes."),
        (
            "time",
            "of the whole gradient once compiled, the least of five runs on the machine that"
            " made this page. All else is the same on every machine.",
        ),
    )
