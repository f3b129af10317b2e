"""Expression swell: the growth of the formula of a derivative with the depth of nesting.

A value that is used twice is written twice in a formula, and the product rule copies it once more,
so the formula grows by a factor at each level. Reverse mode names every value once and grows by a
few operations at each level.

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
from cgprimer.visualization.diagrams.theme import AXIS_SIZE, Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.cost_plot import sort_counts

LIMIT = 20_000  # maximum number of operations of a formula
_CURVES = {  # legend labels, and the attributes of `Swell` with their counts
    "symbolic derivative, as one formula": "formula",
    "expression, as one formula": "written_out",
    "symbolic derivative, equal parts shared": "shared",
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
    """Draw how the costs of symbolic derivatives and of reverse mode grow with the nesting depth.

    Formulas of more than 20,000 operations are omitted; a ring marks the end of their curve.

    Args:
        family: function that is nested.
        depths: one or several depths of nesting. Default: up to 10, for softmax up to 5.

    Raises:
        UsageError: an unknown family, or a depth that is not positive.

    >>> swell("product", [1, 2, 3]).axes[0].get_xlabel()
    'depth of nesting'
    """
    rows = swell_counts(family, depths)
    labels = {"x": "depth of nesting", "y": "operations"}
    default_title = f"Expression swell: nested {family}"
    figure, axes, look = slide.create_plot(dark, title, default_title, **labels)
    ends: list[tuple[float, float]] = []
    for order, (name, count) in enumerate(_CURVES.items()):
        values = [(row.depth, getattr(row, count)) for row in rows]
        points = [(depth, value) for depth, value in values if value is not None]
        if not points:
            continue
        style = slide.choose_curve_style(order, look)
        last, end = points[-1]
        label = name
        if last == rows[-1].depth:
            ends.append((last, end))
        else:  # other curves continue to the right
            slide.mark_end(axes, (last, end), f"{end:,}", style["color"], look)
            label = f"{name}: too large beyond depth {last}"
        axes.plot(*zip(*points, strict=True), **style, linewidth=2.4, markersize=9, label=label)
    least, most = rows[0].depth, rows[-1].depth
    axes.set_xlim(least - 0.3, most + 0.06 * (most - least + 1) + 0.3)
    axes.set_yscale("log")
    axes.set_ylim(top=2 * axes.get_ylim()[1])  # room for the number over the highest point
    slide.use_log_axis(axes, "y")
    slide.use_linear_axis(axes, "x", max_ticks=12, integers=True)
    slide.draw_legend_below(figure, axes, look)
    _label_ends(figure, axes, ends, look)
    return figure


def _label_ends(
    figure: slide.Figure, axes: slide.Axes, ends: list[tuple[float, float]], look: Theme
) -> None:
    """Write the operation count next to the end of each curve, so that labels do not overlap."""
    figure.draw_without_rendering()  # computes the positions of the points
    ends = sorted(ends, key=lambda end: end[1])
    heights = [72 / figure.dpi * float(axes.transData.transform(end)[1]) for end in ends]
    for end, height, new in zip(
        ends, heights, spread_apart(heights, 1.15 * AXIS_SIZE), strict=True
    ):
        offset = (12, new - height)
        slide.annotate_point(axes, f"{end[1]:,}", end, offset, look, ha="left", va="center")


def _define_nested_variables(level: str, depth: int) -> str:
    """Return definitions of x1, x2, ...; ``@`` in `level` is replaced by the previous variable."""
    names = ["xa", *(f"x{k}" for k in range(1, depth + 1))]
    return "\n".join(f"{new} = {level.replace('@', old)}" for old, new in pairwise(names))


def _define_nested_softmax(depth: int) -> str:
    """Return the definitions of nested softmax functions of three scalars.

    The output is the first component of the outermost softmax.
    """
    names = ["xa", "xb", "xc"]
    lines = []
    for level in range(1, depth + 1):
        total = " + ".join(f"exp({name})" for name in names)
        results = [f"x{letter}{level}" for letter in "abc"]
        defined = results if level < depth else results[:1]
        lines += [f"{new} = exp({old})/({total})" for new, old in zip(defined, names, strict=False)]
        names = results
    return "\n".join(lines)


FAMILIES: dict[str, Callable[[int], str]] = {
    "product": partial(_define_nested_variables, "@*sin(@)"),
    "logistic": partial(_define_nested_variables, "4*@*(1 - @)"),
    "softmax": _define_nested_softmax,
}


class Swell(NamedTuple):
    """The operation counts at one nesting depth; formulas above the size limit have None.

    Attributes:
        depth: depth of nesting.
        expression: operations of the function if each value is named once.
        written_out: operations of the function as one formula.
        formula: operations of the function and its derivative, as one formula each.
        shared: operations of the same formulas if equal parts are computed once.
        reverse: operations of the function and its derivative in reverse mode.
    """

    depth: int
    expression: int
    written_out: int
    formula: int | None
    shared: int | None
    reverse: int


def swell_counts(
    family: str = "product", depths: int | Sequence[int] = (), *, limit: int = LIMIT
) -> tuple[Swell, ...]:
    """Count the operations of symbolic derivatives and of reverse mode at each nesting depth.

    >>> [(row.depth, row.formula, row.reverse) for row in swell_counts("product", [1, 4])]
    [(1, 6, 5), (4, 280, 26)]
    """
    write_graph = FAMILIES[check_choice("family", family, FAMILIES)]
    default = range(1, 6 if family == "softmax" else 11)
    chosen = default if isinstance(depths, Sequence) and not depths else depths
    rows = []
    too_large = False
    for depth in sort_counts(chosen, "depths"):
        tape = tape_of(parse(write_graph(depth)))
        (root,) = tape.outputs.values()
        formula = None if too_large else _count_symbolic(tape, False, limit)
        shared = None if formula is None else _count_symbolic(tape, True, limit)
        too_large = formula is None
        reverse = differentiate(tape, wrt="xa", method="reverse").operation_count
        rows.append(
            Swell(depth, len(tape), count_expanded_operations(tape, root), formula, shared, reverse)
        )
    return tuple(rows)


def _count_symbolic(tape: Tape, share: bool, limit: int) -> int | None:
    """Count the operations of the symbolic derivative; return None above the limit."""
    try:
        program = differentiate(tape, wrt="xa", method="symbolic", share=share, limit=limit)
    except ExpressionSwellError:
        return None
    return program.operation_count if program.operation_count <= limit else None


def spread_apart(levels: Sequence[float], min_distance: float) -> list[float]:
    """Move sorted values as little as possible until neighbors are `min_distance` apart.

    >>> spread_apart([0.0, 4.0, 30.0], 10.0)
    [-3.0, 7.0, 30.0]
    """
    # Isotonic regression: each value of the nearest ascending sequence is a minimax of means.
    free = [level - min_distance * k for k, level in enumerate(levels)]
    ends = range(1, len(free) + 1)
    return [
        min_distance * k + max(min(fmean(free[i:j]) for j in ends[k:]) for i in range(k + 1))
        for k in range(len(free))
    ]
