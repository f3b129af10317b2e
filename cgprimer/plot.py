"""Curves and surfaces: each function computes what it shows and returns a matplotlib Figure.

``cgprimer plot KIND`` calls the function of that name. A figure has the size of a slide (13.33 by
7.5 inches) and is saved with ``figure.savefig(path)``, or shown by a notebook that it ends a cell
of.

>>> import cgprimer
>>> figure = cgprimer.plot.function(cgprimer.parse("xw = tanh(xa)"), tangent=0.5)
>>> figure.axes[0].get_title()
'xw = tanh(xa)'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cgprimer.core.graph import ExpressionGraph
    from cgprimer.core.methods.contract import Names
    from cgprimer.data import Dataset
    from cgprimer.plots.run_curves import Run

__all__ = ["cost", "error", "function", "loss", "parameters", "surface", "swell"]


def error(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: str | None = None,
    schemes: Names = (),
    steps: float | Sequence[float] | None = None,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """The error of finite differences against their step: the V.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: one name; the only input, or else the only parameter, unless given.
        schemes: of ``forward``, ``central`` and ``complex-step``; all unless given.
        steps: the step or steps, in the unit of ``wrt``; ten for every power of ten from 1e-16 to 1
            unless given.
        dark: for dark slides.
        title: above the picture; the derivative unless given.

    Raises:
        UsageError: an unknown name or scheme, or a step that is not positive.
        MissingValueError: a value is missing.
        DifferentiationError: there is no exact derivative here to compare with.

    >>> import cgprimer
    >>> figure = error(cgprimer.parse("xw = sin(xa)"), {"xa": 1}, schemes=["forward", "central"])
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_xscale()
    ('step h', 'log')
    """
    from cgprimer.core.graph import checked_graph
    from cgprimer.core.methods.contract import as_names
    from cgprimer.plots.error import draw_step_errors
    from cgprimer.plots.error_data import SCHEMES, step_errors

    chosen = as_names(schemes, "schemes") if schemes else SCHEMES
    several = steps if steps is None or isinstance(steps, Iterable) else (steps,)
    found = step_errors(checked_graph(graph), at, of=of, wrt=wrt, schemes=chosen, steps=several)
    return draw_step_errors(found, dark=dark, title=title)


def loss(
    *runs: Run | Mapping[str, Run],
    by: str = "auto",
    smooth: int | None = None,
    log: str = "auto",
    validation: bool = True,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """The losses of one or several runs, and beside them those on validation samples.

    Args:
        runs: what :func:`cgprimer.train` returned, files that ``cgprimer train --save`` wrote, or
            mappings from names to either.
        by: ``step``, ``epoch``, or ``auto``: epochs if every run has five.
        smooth: the mean of so many neighbouring losses, the losses themselves faint behind;
            unless given 1, and of more than 500 losses a hundredth of them.
        log: which axes are logarithmic: ``auto`` (the loss, where none is negative), ``none``,
            ``x``, ``y`` or ``both``.
        validation: draw the validation losses, where a run has some.
        dark: for dark slides.
        title: above the picture.

    Raises:
        UsageError: no run, a run without a step or without a finite loss, an unknown word.
        DataError: a file holds no run.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=500)
    >>> run = cgprimer.train(graph, data, epochs=8, validation=0.2)
    >>> figure = loss({"adam": run}, title="a line")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['adam', 'adam, validation']
    """
    from cgprimer.plots.curves import draw_loss
    from cgprimer.plots.run_curves import histories, named_runs, usual_window, validation_curve

    found = named_runs(runs)
    step_name, losses = histories(found, by)
    curves = {n: validation_curve(run, step_name) for n, run in found.items() if validation}
    return draw_loss(
        losses,
        validation={name: values for name, (_, values) in curves.items()},
        places={name: places for name, (places, _) in curves.items()},
        smooth=usual_window(losses) if smooth is None else smooth,
        log=log,
        dark=dark,
        title=title,
        step_name=step_name,
    )


def parameters(
    *runs: Run | Mapping[str, Run],
    names: Names = (),
    final: bool = False,
    by: str = "auto",
    log_steps: bool = False,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """The parameters of one or several runs over time, and their true values as dashed levels.

    Args:
        runs: as for :func:`loss`.
        names: only this parameter, or these; all unless given, of which the first nine are drawn.
        final: what was learnt in the end, all parameters side by side, instead.
        by: ``step``, ``epoch``, or ``auto``: epochs if every run has five.
        log_steps: a logarithmic axis of steps or epochs; it begins after the start.
        dark: for dark slides.
        title: above the picture.

    Raises:
        UsageError: no run, a run without a step, one saved before parameters were recorded, runs
            with different true values, an unknown name.
        DataError: a file holds no run.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=500), epochs=8)
    >>> figure = parameters({"adam": run})
    >>> [axes.get_title() for axes in figure.axes], figure.axes[0].get_xlabel()
    (['k', 'b'], 'epoch')
    """
    from cgprimer.plots.run_curves import chosen_parameters, common_truth, named_runs, over_time

    found = named_runs(runs)
    if final:
        from cgprimer.plots.curves import draw_parameters

        chosen = chosen_parameters(found, names)
        learnt = {
            run_name: {n: v for n, v in run.parameters.items() if n in chosen}
            for run_name, run in found.items()
        }
        return draw_parameters(learnt, common_truth(found), dark=dark, title=title)
    from cgprimer.plots.parameters import draw_parameters_over_time

    step_name, moved = over_time(found, by, names)
    return draw_parameters_over_time(
        moved,
        common_truth(found),
        step_name=step_name,
        log_steps=log_steps,
        dark=dark,
        title=title,
    )


def cost(
    family: str = "network",
    sizes: int | Sequence[int] = (),
    *,
    methods: Names = (),
    timed: bool = False,
    bound: float = 5.0,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """The cost of a gradient against the number of parameters, for each method.

    The shaded band reaches from the function's own cost to `bound` times that: the cheap gradient
    of reverse mode lies inside it.

    Args:
        family: ``network`` (hidden neurons), ``neuron`` (inputs) or ``sum`` (terms).
        sizes: how many of these, a number or several; 1 to 128, doubling, unless given.
        methods: only this method, or these; all unless given.
        timed: seconds for one sample beside the operations.
        bound: times the function's own cost.
        dark: for dark slides.
        title: above the picture.

    Raises:
        UsageError: an unknown family or method, a size that is not positive, a bound below 1.

    >>> figure = cost("sum", [1, 4], methods=["forward", "reverse"])
    >>> figure.axes[0].get_ylabel()
    'operations for the whole gradient'
    """
    from cgprimer.plots.cost import checked_bound, draw_cost
    from cgprimer.plots.cost_data import SIZES, cost_growth

    checked_bound(bound)  # before the work
    several = SIZES if isinstance(sizes, Sequence) and not sizes else sizes
    growth = cost_growth(family, several, methods=methods, timed=timed)
    return draw_cost(growth, bound=bound, dark=dark, title=title)


def swell(
    family: str = "product",
    depths: int | Sequence[int] = (),
    *,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """The growth of a symbolic derivative with the depth of nesting, beside reverse mode.

    Args:
        family: ``product``, ``logistic`` or ``softmax``.
        depths: levels of nesting, a number or several; up to 10, for softmax up to 5, unless given.
        dark: for dark slides.
        title: above the picture.

    Raises:
        UsageError: an unknown family, or a depth that is not positive.

    >>> swell("product", [1, 2, 3]).axes[0].get_xlabel()
    'depth of nesting'
    """
    from cgprimer.plots.cost import draw_swell
    from cgprimer.plots.swell_data import swell as counts

    return draw_swell(counts(family, depths), family=family, dark=dark, title=title)


def surface(
    graph: ExpressionGraph,
    over: Names = (),
    dataset: Dataset | None = None,
    *,
    in_3d: bool = False,
    ranges: Sequence[tuple[float, float]] = (),
    at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    optimizers: Names | None = None,
    rates: Mapping[str, float] | None = None,
    steps: int = 200,
    loss: str = "squared-error",
    seed: int = 0,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """The mean loss over two parameters, with the path of each optimizer on it.

    Args:
        graph: the graph.
        over: two of its parameters; the first two unless given.
        dataset: inputs and targets; 200 samples made from the true values unless given.
        in_3d: as a landscape, instead of contours.
        ranges: from where to where each of the two goes; three to either side of its value
            unless given.
        at: values of parameters; declared values fill the rest.
        start: where the paths begin; a tenth from the lower left corner unless given.
        optimizers: whose path or paths; all unless given, and with ``()`` none.
        rates: learning rates by optimizer; chosen by the steepness at the start unless given.
        steps: of each path.
        loss: as in :func:`cgprimer.train`.
        seed: of the data.
        dark: for dark slides.
        title: above the picture.

    Raises:
        UsageError: not two different parameters, an unknown optimizer, an empty range.
        MissingValueError: a parameter has no value to be held at.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> surface(graph, steps=20).axes[0].get_xlabel()
    'k'
    """
    from cgprimer.core.graph import checked_graph
    from cgprimer.plots.surface import draw_surface
    from cgprimer.plots.surface_data import landscape
    from cgprimer.training.optimizers import OPTIMIZERS

    found = landscape(
        checked_graph(graph),
        over or graph.parameters[:2],
        dataset,
        ranges=ranges,
        at=at,
        start=start,
        optimizers=tuple(OPTIMIZERS) if optimizers is None else optimizers,
        rates=rates,
        steps=steps,
        loss=loss,
        seed=seed,
    )
    return draw_surface(found, in_3d=in_3d, dark=dark, title=title)


def function(
    graph: ExpressionGraph,
    low: float = -3.0,
    high: float = 3.0,
    *,
    at: Mapping[str, float] | None = None,
    of: str | None = None,
    wrt: str | None = None,
    order: int = 1,
    tangent: float | None = None,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """A function of one variable, its derivatives, and the tangent at a point.

    Args:
        graph: the graph.
        low, high: from where to where the variable goes, in its unit.
        at: values of all other inputs and parameters; declared values fill the rest.
        of: the output; the only one unless given.
        wrt: the variable, an input or a parameter; the only input, or else the only
            parameter, unless given.
        order: of the highest derivative: 0 for the function alone.
        tangent: where the tangent touches.
        dark: for dark slides.
        title: above the picture; the function unless given.

    Raises:
        UsageError: an unknown name, an empty range, or an order that is too high.
        MissingValueError: another name has no value.

    >>> import cgprimer
    >>> figure = function(cgprimer.parse("xw = sin(xa)"), -6, 6, order=2)
    >>> len(figure.legends[0].get_texts())
    3
    """
    from cgprimer.core.graph import checked_graph
    from cgprimer.plots.function import draw_function
    from cgprimer.plots.function_data import function_curves

    found = function_curves(
        checked_graph(graph), low, high, at=at, of=of, wrt=wrt, order=order, tangent=tangent
    )
    return draw_function(found, dark=dark, title=title)
