"""The cost of a gradient as a function of the number of parameters, for each method.

Reverse mode costs a few times as many operations as the function, for any number of parameters (the
cheap gradient principle); forward mode and finite differences need one pass per parameter.

Source: Griewank and Walther, "Evaluating Derivatives" (2008), section 4.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from timeit import repeat
from typing import NamedTuple

import numpy as np

from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.methods import methods as all_methods
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.errors import DifferentiationError, ExpressionSwellError, PathLimitError, UsageError
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_choice, check_real_number
from cgprimer.tapes import DerivativeProgram, differentiate
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
_BAND_FACTOR = 1.06  # half of the width of the band around a single size
_REPEATS = 5
_MAX_SYMBOLIC = 256  # parameters, by default: sympy takes ten seconds for twice as many
_REASONS: dict[type[DifferentiationError], str] = {  # short enough for a legend
    PathLimitError: "then too many paths",
    ExpressionSwellError: "then too large",
}
_FAMILY_NAMES = {
    "network": "a network with one hidden layer",
    "neuron": "one neuron",
    "sum": "a sum of sines",
}


def cost(
    family: str = "network",
    sizes: int | Sequence[int] = (),
    *,
    methods: Names = (),
    timed: bool = False,
    bound: float = 5.0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Plot the cost of a gradient against the number of parameters for each method.

    Operations are counted on the tapes. The shaded band extends from the cost of the function to
    `bound` times this cost (Griewank and Walther's constant): a cheap gradient lies inside.

    Args:
        family: a network with one hidden layer, one neuron, or a sum of sines.
        sizes: one or several numbers of hidden neurons, inputs or terms. Default: powers of two
            from 1 to 128.
        methods: methods to compare. Default: all; symbolic only up to 256 parameters, because it is
            slow.
        timed: draw the time for one sample as well, in seconds; the minimum of five runs.
        bound: upper end of the shaded band, relative to the cost of the function.

    Raises:
        UsageError: an unknown family or method, a size that is not positive, a bound below 1.

    >>> figure = cost("sum", [1, 4], methods=["forward", "reverse"])
    >>> figure.axes[0].get_ylabel()
    'operations for the whole gradient'
    """
    bound = check_real_number("the bound", bound, above=1)  # before the computation
    chosen_sizes = SIZES if isinstance(sizes, Sequence) and not sizes else sizes
    growth = cost_growth(family, chosen_sizes, methods=methods, timed=timed)
    figure, look = slide.create_figure(dark, title, f"Cost of a gradient: {_FAMILY_NAMES[family]}")
    kinds = {"operations": "operations", "seconds": "seconds"}
    panels = figure.subplots(1, 2 if timed else 1, squeeze=False)[0]
    for axes, (what, name) in zip(panels, kinds.items(), strict=False):
        slide.style_axes(axes, look, x="number of parameters", y=f"{name} for the whole gradient")
        _draw_panel(axes, growth, what, bound, look)
    slide.draw_legend_below(figure, panels[0], look)
    return figure


def _define_sum_of_terms(term: str, size: int) -> str:
    """Return a sum of ``size`` terms as text; each ``#`` in ``term`` is replaced by the index."""
    return " + ".join(term.replace("#", str(k)) for k in range(1, size + 1))


def _define_network(size: int) -> str:
    """Return the definitions of a network with two inputs, a hidden layer and one output."""
    hidden = [f"xh{k} = tanh(u{k}*x1 + v{k}*x2 + b{k})" for k in range(1, size + 1)]
    return "\n".join([*hidden, f"xw = {_define_sum_of_terms('w#*xh#', size)}"])


FAMILIES: dict[str, Callable[[int], str]] = {
    "network": _define_network,
    "neuron": lambda size: f"xw = tanh({_define_sum_of_terms('w#*x#', size)})",
    "sum": lambda size: f"xw = {_define_sum_of_terms('sin(w#*xa)', size)}",
}


class Cost(NamedTuple):
    """The cost of a gradient for one graph and one method; `seconds` is nan if not measured."""

    parameters: int
    operations: int
    seconds: float


class CostGrowth(NamedTuple):
    """The costs of gradients for graphs of increasing size, keyed by method.

    Attributes:
        primal: costs of the function.
        methods: costs of the gradient for each size, keyed by method.
        refused: short reasons why methods have no costs for large sizes, keyed by method.
    """

    primal: list[Cost]
    methods: dict[str, list[Cost]]
    refused: dict[str, str]


def cost_growth(
    family: str = "network",
    sizes: int | Sequence[int] = SIZES,
    *,
    methods: Names = (),
    timed: bool = False,
) -> CostGrowth:
    """Count each method's operations for graphs of increasing size, and optionally time them.

    >>> growth = cost_growth("sum", [1, 10], methods=["forward", "reverse"])
    >>> [cost.operations for cost in growth.primal]
    [2, 29]
    >>> {name: [cost.operations for cost in costs] for name, costs in growth.methods.items()}
    {'forward': [5, 680], 'reverse': [4, 49]}
    """
    write_graph = FAMILIES[check_choice("family", family, FAMILIES)]
    counts = sort_counts(sizes, "sizes")
    available = all_methods()
    chosen = normalize_names(methods, "methods") if methods else ()
    for name in chosen:
        check_choice("method", name, available)
    primal: list[Cost] = []
    costs: dict[str, list[Cost]] = {name: [] for name in chosen or available}
    refused: dict[str, str] = {}
    for size in counts:
        graph = parse(write_graph(size))
        tape = tape_of(graph)
        count = len(graph.parameters)
        function = DerivativeProgram("none", tape, tuple(tape.outputs), (), ())
        primal.append(
            Cost(count, len(tape), _measure_seconds(function, graph) if timed else math.nan)
        )
        for name in [name for name in costs if name not in refused]:
            if name == "symbolic" and count > _MAX_SYMBOLIC and not chosen:
                refused[name] = "then slow"
                continue
            try:
                program = differentiate(tape, method=name)
            except DifferentiationError as error:
                refused[name] = _REASONS.get(type(error), "then not supported")
                continue
            seconds = _measure_seconds(program, graph) if timed else math.nan
            costs[name].append(Cost(count, program.operation_count, seconds))
    return CostGrowth(primal, costs, refused)


def sort_counts(counts: int | Iterable[int], name: str) -> list[int]:
    """Return one or several positive integers as a sorted list without duplicates.

    NumPy integers are accepted. Raises UsageError for other values; the message contains `name`.
    """
    values = list(counts) if isinstance(counts, Iterable) else [counts]
    if not values or any(not isinstance(value, Integral) or value < 1 for value in values):
        raise UsageError(f"{name} must be positive integers, got {counts!r}")
    return sorted({int(value) for value in values})


def _measure_seconds(program: DerivativeProgram, graph: ExpressionGraph) -> float:
    """Measure the minimum run time of a program for one sample, in seconds."""
    runner = Runner(program)
    random = np.random.default_rng(0)
    columns = {name: random.random(1) for name in graph.inputs}
    scalars = {name: float(random.random()) for name in graph.parameters}
    run = runner if program.passes else runner.execute
    return min(repeat(lambda: run(columns, scalars, 1), number=1, repeat=_REPEATS))


def _list_points(costs: Sequence[Cost], kind: str) -> list[tuple[int, float]]:
    """Convert costs to points (number of parameters, cost); `kind` selects the cost."""
    return [(cost.parameters, float(getattr(cost, kind))) for cost in costs]


def _draw_panel(axes: slide.Axes, growth: CostGrowth, kind: str, bound: float, look: Theme) -> None:
    """Plot one kind of cost, ``operations`` or ``seconds``, for all methods."""
    points = _list_points(growth.primal, kind)
    sizes, primal = (list(side) for side in zip(*points, strict=True))
    band = (sizes, primal)
    if len(sizes) == 1:  # the band of a single size needs a width to be visible
        band = ([sizes[0] / _BAND_FACTOR, sizes[0] * _BAND_FACTOR], primal * 2)
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    label = f"cheap gradient: up to {format_number(bound, 6)} times the function"
    axes.fill_between(*band, bound * np.array(band[1]), color=look.edge, alpha=0.16, linewidth=0,
                      label=label)  # fmt: skip
    axes.plot(sizes, primal, color=look.ink, linewidth=2.0, marker="x", markersize=8,
              markeredgewidth=2.4, label="the function alone")  # fmt: skip
    for order, (method, costs) in enumerate(growth.methods.items()):
        style = slide.choose_curve_style(order, look)
        label = method if costs else f"{method}: not supported"
        if costs and method in growth.refused:
            last = format_number(costs[-1].parameters, 6)
            label = f"{method}, up to {last}, {growth.refused[method]}"
            _mark_last_cost(axes, growth, method, kind, style["color"], look)
        if method == "path-sum":
            style |= {"markersize": 13, "markerfacecolor": "none"}
        axes.plot(*np.array(_list_points(costs, kind)).reshape(-1, 2).T,
                  **{"markersize": 8, "linewidth": 2.2, "markeredgewidth": 2.0, **style},
                  label=label)  # fmt: skip
    slide.use_log_axis(axes, "x")
    slide.use_log_axis(axes, "y")
    if len(sizes) == 1:
        axes.set_xticks(sizes)


def _mark_last_cost(
    axes: slide.Axes, growth: CostGrowth, method: str, kind: str, color: str, look: Theme
) -> None:
    """Mark the last point of a method's curve if the method does not support larger graphs."""
    last, cost = _list_points(growth.methods[method], kind)[-1]
    others = [growth.primal, *(c for name, c in growth.methods.items() if name != method)]
    values = [v for c in others for size, v in _list_points(c, kind) if size == last]
    # The text is on the side on which the next curve is farther away.
    up = min((value / cost for value in values if value > cost), default=math.inf)
    down = min((cost / value for value in values if 0 < value < cost), default=math.inf)
    text = f"stops at {format_number(last, 6)}"
    slide.mark_end(axes, (last, cost), text, color, look, up=up >= down)
