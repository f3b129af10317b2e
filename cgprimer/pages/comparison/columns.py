"""The columns of costs: what each says of a method, the same on slides, pages and in notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.core.methods import methods as all_methods
from cgprimer.pages.comparison import words

METHOD = "method"  # the title of the column before these
_LEAST_ERROR = 1e-17  # where the bars of errors begin


@dataclass(frozen=True, slots=True)
class Column:
    """What a column says of a method.

    Attributes:
        title: its heading.
        text: a number.
        share: the length of its bar over that of the longest; None: no bar.
        more: what stands behind the number, if anything.
        bars: whether there is room for bars.
    """

    title: str
    text: Callable[[MethodResult], str]
    share: Callable[[MethodResult], float | None]
    more: Callable[[MethodResult], str] = lambda _: ""
    bars: bool = True


def cost_columns(found: Comparison) -> tuple[Column, ...]:
    """Largest error, passes, operations, live values and time.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2}, methods=["forward", "reverse"])
    >>> [(column.title, column.text(found.results[1])) for column in cost_columns(found)[:3]]
    [('largest error', 'exact'), ('passes', '1'), ('operations', '1')]
    """

    def share(of: Callable[[MethodResult], float]) -> Callable[[MethodResult], float | None]:
        largest = max((of(result) for result in found.results if not result.refused), default=0.0)
        return lambda result: of(result) / largest if largest > 0 else 0.0

    return (
        Column("largest error", words.largest_error, error_share),
        Column("passes", words.passes, lambda _: None, bars=False),
        Column(
            "operations",
            lambda r: f"{r.operations:,}",
            share(lambda r: float(r.operations)),
            lambda r: words.times(found, r),
        ),
        Column(
            "live values", lambda r: f"{r.live_values:,}", share(lambda r: float(r.live_values))
        ),
        Column("time", lambda r: words.duration(r.seconds), share(lambda r: r.seconds)),
    )


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
    scale = -math.log10(_LEAST_ERROR)
    return max(0.0, (math.log10(error) + scale) / scale)


def place_of(method: str) -> int:
    """The number of a method among all, which is that of its colour and hatching."""
    known = all_methods()
    return known.index(method) if method in known else len(known)
