"""What a gradient costs, against the number of parameters, for each method.

Reverse mode takes a few times the operations of the function itself, whatever the number of
parameters (the cheap-gradient principle); forward mode and finite differences take a pass for
each parameter.

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
_WIDE = 1.06  # times the only size: half the width of its band
_REPEATS = 5
_MOST_SYMBOLIC = 256  # parameters, unless asked for: sympy takes ten seconds for twice as many
_REASONS: dict[type[DifferentiationError], str] = {  # as short as a legend
    PathLimitError: "too many paths beyond",
    ExpressionSwellError: "too large beyond",
}
_WORDS = {
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
    """The cost of a gradient against the number of parameters, for each method.

    Operations are counted on the tapes. The shaded band reaches from the function's own cost to
    `bound` times that (Griewank and Walther's constant): the cheap gradient lies inside it.

    Args:
        family: a network with one hidden layer, one neuron, or a sum of sines.
        sizes: how many hidden neurons, inputs or terms, a number or several; 1 to 128, doubling,
            unless given.
        methods: only this method, or these; all unless given, symbolic then up to 256 parameters,
            beyond which it takes long.
        timed: seconds for one sample beside the operations, the least of five runs.
        bound: upper end of the shaded band, times the function's own cost.

    Raises:
        UsageError: an unknown family or method, a size that is not positive, a bound below 1.

    Command line:
        cgprimer plot cost -o cost.png
        cgprimer plot cost --family sum --sizes 1,10,100 --methods forward,reverse -o sum.svg
        cgprimer plot cost --family neuron --sizes 1,4,16 --time --bound 3 -o neuron.pdf

    >>> figure = cost("sum", [1, 4], methods=["forward", "reverse"])
    >>> figure.axes[0].get_ylabel()
    'operations for the whole gradient'
    """
    bound = check_real_number("the bound", bound, above=1)  # before the work
    several = SIZES if isinstance(sizes, Sequence) and not sizes else sizes
    growth = cost_growth(family, several, methods=methods, timed=timed)
    figure, look = slide.new_figure(dark, title, f"Cost of a gradient: {_WORDS[family]}")
    kinds = {"operations": "operations", "seconds": "time in seconds"}
    panels = figure.subplots(1, 2 if timed else 1, squeeze=False)[0]
    for axes, (what, name) in zip(panels, kinds.items(), strict=False):
        slide.dress(axes, look, x="number of parameters", y=f"{name} for the whole gradient")
        _draw_panel(axes, growth, what, bound, look)
    slide.legend_below(figure, panels[0], look)
    return figure


def _plus(term: str, size: int) -> str:
    """A sum of so many terms, each with its own number in the place of ``#``."""
    return " + ".join(term.replace("#", str(k)) for k in range(1, size + 1))


def _network(size: int) -> str:
    """Two inputs, one hidden layer and one output."""
    hidden = [f"xh{k} = tanh(u{k}*x1 + v{k}*x2 + b{k})" for k in range(1, size + 1)]
    return "\n".join([*hidden, f"xw = {_plus('w#*xh#', size)}"])


FAMILIES: dict[str, Callable[[int], str]] = {
    "network": _network,
    "neuron": lambda size: f"xw = tanh({_plus('w#*x#', size)})",
    "sum": lambda size: f"xw = {_plus('sin(w#*xa)', size)}",
}


class Cost(NamedTuple):
    """What the whole gradient of one graph costs with one method; `seconds` is nan unless timed."""

    parameters: int
    operations: int
    seconds: float


class CostGrowth(NamedTuple):
    """Costs over a family of graphs."""

    primal: list[Cost]  # of the function itself
    methods: dict[str, list[Cost]]  # one per size, as far as the method goes
    refused: dict[str, str]  # for each method that ends earlier, why, in two or three words


def cost_growth(
    family: str = "network",
    sizes: int | Sequence[int] = SIZES,
    *,
    methods: Names = (),
    timed: bool = False,
) -> CostGrowth:
    """Operations, and times, for each method over a family: what :func:`cost` draws.

    >>> growth = cost_growth("sum", [1, 10], methods=["forward", "reverse"])
    >>> [cost.operations for cost in growth.primal]
    [2, 29]
    >>> {name: [cost.operations for cost in costs] for name, costs in growth.methods.items()}
    {'forward': [5, 680], 'reverse': [4, 49]}
    """
    text_of, counts = FAMILIES[check_choice("family", family, FAMILIES)], as_counts(sizes, "sizes")
    known = all_methods()
    chosen = normalize_names(methods, "methods") if methods else ()
    for name in chosen:
        check_choice("method", name, known)
    primal: list[Cost] = []
    costs: dict[str, list[Cost]] = {name: [] for name in chosen or known}
    refused: dict[str, str] = {}
    for size in counts:
        graph = parse(text_of(size))
        tape = tape_of(graph)
        count = len(graph.parameters)
        function = DerivativeProgram("none", tape, tuple(tape.outputs), (), ())
        primal.append(Cost(count, len(tape), _seconds(function, graph) if timed else math.nan))
        for name in [name for name in costs if name not in refused]:
            if name == "symbolic" and count > _MOST_SYMBOLIC and not chosen:
                refused[name] = "slow beyond"
                continue
            try:
                program = differentiate(tape, method=name)
            except DifferentiationError as error:
                refused[name] = _REASONS.get(type(error), "refused beyond")
                continue
            seconds = _seconds(program, graph) if timed else math.nan
            costs[name].append(Cost(count, program.operation_count, seconds))
    return CostGrowth(primal, costs, refused)


def as_counts(given: int | Iterable[int], what: str) -> list[int]:
    """How many, one number or several, ascending; numbers of numpy are whole numbers, too."""
    found = list(given) if isinstance(given, Iterable) else [given]
    if not found or any(not isinstance(one, Integral) or one < 1 for one in found):
        raise UsageError(f"{what} must be positive whole numbers")
    return sorted({int(one) for one in found})


def _seconds(program: DerivativeProgram, graph: ExpressionGraph) -> float:
    """The least time of a few runs on one sample."""
    runner = Runner(program)
    random = np.random.default_rng(0)
    columns = {name: random.random(1) for name in graph.inputs}
    scalars = {name: float(random.random()) for name in graph.parameters}
    run = runner if program.passes else runner.execute
    return min(repeat(lambda: run(columns, scalars, 1), number=1, repeat=_REPEATS))


def _draw_panel(axes: slide.Axes, growth: CostGrowth, what: str, bound: float, look: Theme) -> None:
    """Draw costs of one kind, ``operations`` or ``seconds``."""

    def points(costs: Sequence[Cost]) -> list[tuple[int, float]]:
        return [(cost.parameters, float(getattr(cost, what))) for cost in costs]

    sizes, own = (list(side) for side in zip(*points(growth.primal), strict=True))
    wide = (sizes, own)
    if len(sizes) == 1:  # a band needs a width to be seen
        wide = ([sizes[0] / _WIDE, sizes[0] * _WIDE], own * 2)
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    label = f"cheap gradient: up to {format_number(bound, 6)} times the function"
    axes.fill_between(*wide, bound * np.array(wide[1]), color=look.edge, alpha=0.16, linewidth=0,
                      label=label)  # fmt: skip
    axes.plot(sizes, own, color=look.ink, linewidth=2.0, marker="x", markersize=8,
              markeredgewidth=2.4, label="the function alone")  # fmt: skip
    for order, (method, costs) in enumerate(growth.methods.items()):
        style = slide.curve_style(order, look)
        label = method if costs else f"{method}: refused everywhere"
        if costs and method in growth.refused:
            last, end = points(costs)[-1]
            label = f"{method}, up to {format_number(last, 6)}: {growth.refused[method]}"
            others = [growth.primal, *(c for name, c in growth.methods.items() if name != method)]
            there = [value for c in others for size, value in points(c) if size == last]
            # The word is on the side where the next curve is farther away.
            up = min((value / end for value in there if value > end), default=math.inf)
            down = min((end / value for value in there if 0 < value < end), default=math.inf)
            word = f"stops at {format_number(last, 6)}"
            slide.mark_end(axes, (last, end), word, style["color"], look, up=up >= down)
        if method == "path-sum":
            style |= {"markersize": 13, "markerfacecolor": "none"}
        axes.plot(*np.array(points(costs)).reshape(-1, 2).T,
                  **{"markersize": 8, "linewidth": 2.2, "markeredgewidth": 2.0, **style},
                  label=label)  # fmt: skip
    slide.log_axis(axes, "x")
    slide.log_axis(axes, "y")
    if len(sizes) == 1:
        axes.set_xticks(sizes)
