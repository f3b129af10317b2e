"""Expression swell: how the formula of a derivative grows with the depth of nesting.

A value that is used twice is written twice in a formula, and the product rule copies it once
more, so the formula grows by a factor at each level. Reverse mode names every value once, and
grows by a few operations at each level.

Source: Baydin, Pearlmutter, Radul and Siskind, "Automatic differentiation in machine learning: a
survey" (2018), table 1, for the logistic map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from cgprimer.core.methods.symbolic import count_expanded_operations
from cgprimer.errors import ExpressionSwellError
from cgprimer.expressions import parse
from cgprimer.support.validation import check_choice
from cgprimer.tapes import Tape, differentiate
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.theme import AXIS_SIZE
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.cost_plot import as_counts

LIMIT = 20_000  # operations beyond which a formula is not written out
_CURVES = {  # the curves, and which count of a `Swell` each shows
    "derivative as a formula (symbolic)": "formula",
    "expression as a formula": "written_out",
    "symbolic, equal parts shared": "shared",
    "reverse mode": "reverse",
    "expression, each value named once": "expression",
}


def swell(
    family: str = "product",
    depths: int | Sequence[int] = (),
    *,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """The growth of a symbolic derivative with the depth of nesting, beside reverse mode.

    Formulas of more than 20,000 operations are left out; a ring stands where their curve ends.

    Args:
        family: what is nested.
        depths: levels of nesting, a number or several; up to 10, for softmax up to 5, unless given.

    Raises:
        UsageError: an unknown family, or a depth that is not positive.

    Command line:
        cgprimer plot swell -o swell.png
        cgprimer plot swell --family softmax --depths 1,2,3,4 -o softmax.svg --dark

    >>> swell("product", [1, 2, 3]).axes[0].get_xlabel()
    'depth of nesting'
    """
    rows = swell_counts(family, depths)
    usual = f"Expression swell: nested {family}"
    words = {"x": "depth of nesting", "y": "operations"}
    figure, axes, look = slide.framed(dark, title, usual, **words)
    ends: list[tuple[float, float]] = []
    for order, (name, what) in enumerate(_CURVES.items()):
        points = [(row.depth, getattr(row, what)) for row in rows if getattr(row, what) is not None]
        if not points:
            continue
        style = slide.curve_style(order, look)
        last, end = points[-1]
        label = name
        if last == rows[-1].depth:
            ends.append((last, end))
        else:  # other curves go on to the right
            slide.mark_end(axes, (last, end), f"{end:,}", style["color"], look)
            label = f"{name}: too large a formula beyond depth {last}"
        axes.plot(*zip(*points, strict=True), **style, linewidth=2.4, markersize=9, label=label)
    least, most = rows[0].depth, rows[-1].depth
    axes.set_xlim(least - 0.3, most + 0.06 * (most - least + 1) + 0.3)
    axes.set_yscale("log")
    axes.set_ylim(top=2 * axes.get_ylim()[1])  # room for the number over the highest point
    slide.log_axis(axes, "y")
    slide.linear_axis(axes, "x", most=12, whole=True)
    slide.legend_below(figure, axes, look)
    figure.draw_without_rendering()  # the layout says where the points are
    ends.sort(key=lambda end: end[1])
    levels = [72 / figure.dpi * float(axes.transData.transform(end)[1]) for end in ends]
    # Numbers to the right of the last points, moved apart where they would overlap.
    for end, level, moved in zip(ends, levels, apart(levels, 1.15 * AXIS_SIZE), strict=True):
        aside = (12, moved - level)
        slide.beside(axes, f"{end[1]:,}", end, aside, look, ha="left", va="center")
    return figure


def _nested(level: str, depth: int) -> str:
    """Variables x1, x2, ..., each a formula of the one before, which ``@`` stands for."""
    names = ["xa", *(f"x{k}" for k in range(1, depth + 1))]
    return "\n".join(f"{new} = {level.replace('@', old)}" for old, new in pairwise(names))


def _softmax(depth: int) -> str:
    """The softmax of a softmax of ... of three numbers; the output is the first component."""
    names = ["xa", "xb", "xc"]
    lines = []
    for level in range(1, depth + 1):
        total = " + ".join(f"exp({name})" for name in names)
        made = [f"x{letter}{level}" for letter in "abc"]
        kept = made if level < depth else made[:1]
        lines += [f"{new} = exp({old})/({total})" for new, old in zip(kept, names, strict=False)]
        names = made
    return "\n".join(lines)


FAMILIES: dict[str, Callable[[int], str]] = {
    "product": partial(_nested, "@*sin(@)"),
    "logistic": partial(_nested, "4*@*(1 - @)"),
    "softmax": _softmax,
}


class Swell(NamedTuple):
    """Counts of operations for one depth; None where the formula is larger than the limit."""

    depth: int
    expression: int  # each value named once
    written_out: int  # the expression as one formula
    formula: int | None  # with its derivative as one formula: symbolic without sharing
    shared: int | None  # the same with equal parts computed once
    reverse: int  # with its derivative by reverse mode


def swell_counts(
    family: str = "product", depths: int | Sequence[int] = (), *, limit: int = LIMIT
) -> tuple[Swell, ...]:
    """Counts for each depth: what :func:`swell` draws; formulas above the limit are not made.

    >>> [(row.depth, row.formula, row.reverse) for row in swell_counts("product", [1, 4])]
    [(1, 6, 5), (4, 280, 26)]
    """
    text_of = FAMILIES[check_choice("family", family, FAMILIES)]
    usual = range(1, 6 if family == "softmax" else 11)
    given = usual if isinstance(depths, Sequence) and not depths else depths
    rows = []
    too_large = False
    for depth in as_counts(given, "depths"):
        tape = tape_of(parse(text_of(depth)))
        (root,) = tape.outputs.values()
        formula = None if too_large else _symbolic(tape, False, limit)
        shared = None if formula is None else _symbolic(tape, True, limit)
        too_large = formula is None
        reverse = differentiate(tape, wrt="xa", method="reverse").operation_count
        rows.append(
            Swell(depth, len(tape), count_expanded_operations(tape, root), formula, shared, reverse)
        )
    return tuple(rows)


def _symbolic(tape: Tape, share: bool, limit: int) -> int | None:
    """Operations of the symbolic derivative; None where it is too large."""
    try:
        program = differentiate(tape, wrt="xa", method="symbolic", share=share, limit=limit)
    except ExpressionSwellError:
        return None
    return program.operation_count if program.operation_count <= limit else None


def apart(levels: Sequence[float], least: float) -> list[float]:
    """Ascending levels, moved as little as is needed to be `least` from one another.

    >>> apart([0.0, 4.0, 30.0], 10.0)
    [-3.0, 7.0, 30.0]
    """
    # What ascends and is nearest to given numbers lies, at each place, between means around it.
    free = [level - least * k for k, level in enumerate(levels)]
    ends = range(1, len(free) + 1)
    return [
        least * k + max(min(fmean(free[i:j]) for j in ends[k:]) for i in range(k + 1))
        for k in range(len(free))
    ]
