"""``cgprimer plot``: curves and surfaces, one command for each kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cgprimer.cli.common import (
    assignments_option,
    at_option,
    graph_arguments,
    names_option,
    note,
    read_graph,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

F = TypeVar("F", bound=Callable[..., Any])
_FAMILIES = ("network", "neuron", "sum")
_NESTINGS = ("product", "logistic", "softmax")
_BY = ("auto", "step", "epoch")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Curves for slides: losses, surfaces, errors, costs, functions.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot cost -o cost.svg
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.pdf --dark

    Every kind has its own options: cgprimer plot error --help
    """


def picture_options(function: F) -> F:
    """``-o``, ``--dark`` and ``--title``."""
    for option in (
        click.option("--title", default="", metavar="TEXT", help="Above the picture."),
        click.option("--dark", is_flag=True, help="For dark slides."),
        click.option(
            "-o",
            "--output",
            metavar="PATH",
            type=click.Path(),
            required=True,
            help="A .png, .svg or .pdf file.",
        ),
    ):
        function = option(function)
    return function


def range_option(name: str, text: str, *, multiple: bool = False) -> Callable[[F], F]:
    """An option that takes ``LOW:HIGH``."""

    def one(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[float, float]:
        low, colon, high = text.partition(":")
        try:
            if colon:
                return float(low), float(high)
        except ValueError:
            pass
        raise click.BadParameter(f"expected LOW:HIGH, such as -3:3, got {text!r}", ctx, parameter)

    def read(ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
        if multiple:
            return tuple(one(ctx, parameter, text) for text in given)
        return None if given is None else one(ctx, parameter, given)

    return click.option(name, metavar="LOW:HIGH", callback=read, multiple=multiple, help=text)


def _check(output: str) -> None:
    from cgprimer.drawing.saving import check_picture_path

    check_picture_path(Path(output))


def _save(figure: Figure, output: str) -> None:
    from cgprimer.drawing.saving import save_figure

    save_figure(figure, Path(output))
    note(f"wrote {output}")


def _whole_numbers(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[int, ...]:
    texts = [t.strip() for text in given for t in text.split(",") if t.strip()]
    for text in texts:
        if not text.isdecimal() or int(text) < 1:
            raise click.BadParameter(f"{text!r} is no positive whole number", ctx, parameter)
    return tuple(int(text) for text in texts)


@command.command("error")
@graph_arguments
@at_option
@click.option("--of", metavar="NAME", help="The variable to differentiate (default: the output).")
@click.option("--wrt", metavar="NAME", help="With respect to what (default: the only input).")
@click.option(
    "--scheme",
    "schemes",
    multiple=True,
    type=click.Choice(("forward", "central", "complex-step")),
    help="Only these schemes; may be repeated.",
)
@picture_options
def error(
    file: str | None,
    expression: str | None,
    at: dict[str, float],
    of: str | None,
    wrt: str | None,
    schemes: tuple[str, ...],
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The error of finite differences against their step: the V.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot error examples/lecture.cg --wrt ab -o lecture-error.svg --dark

    Errors are against a derivative of fifty digits. A star marks the best step.
    """
    _check(output)
    graph = read_graph(file, expression)
    from cgprimer.drawing.error_curves import draw_step_errors
    from cgprimer.teaching.step_error import SCHEMES, step_errors

    found = step_errors(graph, at, of=of, wrt=wrt, schemes=schemes or SCHEMES)
    _save(draw_step_errors(found, dark=dark, title=title), output)


@command.command("loss")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="auto",
    show_default=True,
    help="A value per step or per epoch; auto: epochs if there are five.",
)
@click.option(
    "--smooth",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="The mean of so many neighbouring losses, the losses themselves faint behind.",
)
@click.option("--parameters", is_flag=True, help="Learnt parameters beside the true ones instead.")
@picture_options
def loss(
    runs: tuple[str, ...],
    by: str,
    smooth: int,
    parameters: bool,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The losses of saved runs on one picture, or what they have learnt.

    \b
    Examples:
      cgprimer train examples/lecture.cg --save adam.json
      cgprimer train examples/lecture.cg --optimizer sgd --learning-rate 1e-4 --save sgd.json
      cgprimer plot loss adam.json sgd.json -o loss.png
      cgprimer plot loss adam.json --by step --smooth 50 -o steps.svg
      cgprimer plot loss adam.json sgd.json --parameters -o learnt.pdf
    """
    _check(output)
    from cgprimer.drawing.curves import draw_loss, draw_parameters
    from cgprimer.teaching.runs import common_truth, histories, read_runs

    found = read_runs(runs)
    if parameters:
        learnt = {name: run.parameters for name, run in found.items()}
        figure = draw_parameters(learnt, common_truth(found), dark=dark, title=title)
    else:
        step_name, losses = histories(found, by)
        figure = draw_loss(losses, smooth=smooth, dark=dark, title=title, step_name=step_name)
    _save(figure, output)


@command.command("cost")
@click.option(
    "--family",
    type=click.Choice(_FAMILIES),
    default="network",
    show_default=True,
    help="A network with one hidden layer, one neuron, or a sum of sines.",
)
@click.option(
    "--sizes",
    multiple=True,
    metavar="N,...",
    callback=_whole_numbers,
    help="Hidden neurons, inputs or terms (default: 1 to 128, doubling).",
)
@names_option("--methods", "Only these methods (default: all).")
@click.option("--time", "timed", is_flag=True, help="Times beside operations.")
@click.option(
    "--bound", type=float, default=5.0, show_default=True, help="Upper end of the shaded band."
)
@picture_options
def cost(
    family: str,
    sizes: tuple[int, ...],
    methods: tuple[str, ...],
    timed: bool,
    bound: float,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The cost of a gradient against the number of parameters, for each method.

    \b
    Examples:
      cgprimer plot cost -o cost.png
      cgprimer plot cost --family sum --sizes 1,10,100 --methods forward,reverse -o sum.svg
      cgprimer plot cost --family neuron --sizes 1,4,16 --time --bound 3 -o neuron.pdf

    Operations are counted on the tapes. The band reaches from the function's own cost to
    --bound times that: the cheap gradient of reverse mode lies inside it.
    """
    _check(output)
    from cgprimer.drawing.cost_curves import draw_cost
    from cgprimer.teaching.costs import SIZES, cost_growth

    growth = cost_growth(family, sizes or SIZES, methods=methods, timed=timed)
    _save(draw_cost(growth, bound=bound, dark=dark, title=title), output)


@command.command("swell")
@click.option(
    "--family",
    type=click.Choice(_NESTINGS),
    default="product",
    show_default=True,
    help="What is nested.",
)
@click.option(
    "--depths",
    multiple=True,
    metavar="N,...",
    callback=_whole_numbers,
    help="Levels of nesting (default: up to 10, for softmax up to 5).",
)
@picture_options
def swell(family: str, depths: tuple[int, ...], output: str, dark: bool, title: str) -> None:
    """The growth of a symbolic derivative with the depth of nesting, beside reverse mode.

    \b
    Examples:
      cgprimer plot swell -o swell.png
      cgprimer plot swell --family softmax --depths 1,2,3,4 -o softmax.svg --dark

    Formulas of more than 20,000 operations are left out.
    """
    _check(output)
    from cgprimer.drawing.cost_curves import draw_swell
    from cgprimer.teaching.swell import swell as counts

    figure = draw_swell(counts(family, depths), family=family, dark=dark, title=title)
    _save(figure, output)


@command.command("surface")
@graph_arguments
@names_option("--over", "The two parameters (default: the first two).")
@range_option(
    "--range",
    "From where to where, once for each of the two (default: three to either side).",
    multiple=True,
)
@click.option("--3d", "in_3d", is_flag=True, help="As a landscape in 3-D.")
@at_option
@assignments_option("--start", "Where the paths begin.")
@names_option("--optimizers", "Whose paths (default: all); none for no path.")
@assignments_option("--rates", "Learning rates, optimizer=value (default: by steepness).")
@click.option("--steps", type=click.IntRange(1), default=200, show_default=True, help="Of a path.")
@click.option("--data", metavar="PATH", type=click.Path(), help="A .csv or .npz file.")
@click.option(
    "--loss",
    "loss_name",
    default="squared-error",
    metavar="NAME|TEXT",
    show_default=True,
    help="As for train.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the data.")
@picture_options
def surface(
    file: str | None,
    expression: str | None,
    over: tuple[str, ...],
    range: tuple[tuple[float, float], ...],
    in_3d: bool,
    at: dict[str, float],
    start: dict[str, float],
    optimizers: tuple[str, ...],
    rates: dict[str, float],
    steps: int,
    data: str | None,
    loss_name: str,
    seed: int,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The loss over two parameters, with the path of each optimizer on it.

    \b
    Examples:
      cgprimer plot surface examples/lecture.cg --over ab,cd -o surface.png
      cgprimer plot surface examples/lecture.cg --over ab,cd --3d -o surface3d.png
      cgprimer plot surface -e "xw = k*xa + b; parameter k=3, b=-1" --rates sgd=0.3 -o a.svg

    All other parameters keep the values declared or given with --at. Each step sees all samples.
    """
    _check(output)
    graph = read_graph(file, expression)
    from cgprimer.data import Dataset
    from cgprimer.drawing.surfaces import draw_surface
    from cgprimer.teaching.landscape import landscape
    from cgprimer.training.optimizers import OPTIMIZERS

    dataset = Dataset.load(data, inputs=graph.inputs, targets=graph.outputs) if data else None
    found = landscape(
        graph,
        over or graph.parameters[:2],
        dataset,
        ranges=range,
        at=at,
        start=start,
        optimizers=() if optimizers == ("none",) else optimizers or tuple(OPTIMIZERS),
        rates=rates,
        steps=steps,
        loss=loss_name,
        seed=seed,
    )
    _save(draw_surface(found, in_3d=in_3d, dark=dark, title=title), output)


@command.command("function")
@graph_arguments
@range_option("--range", "From where to where (default: -3:3).")
@at_option
@click.option("--of", metavar="NAME", help="The output (default: the only one).")
@click.option("--wrt", metavar="NAME", help="The variable (default: the only input).")
@click.option("--order", type=click.IntRange(0), default=1, show_default=True,
              help="Of the highest derivative.")  # fmt: skip
@click.option("--tangent", type=float, metavar="X", help="Draw the tangent at this place.")
@picture_options
def function(
    file: str | None,
    expression: str | None,
    range: tuple[float, float] | None,
    at: dict[str, float],
    of: str | None,
    wrt: str | None,
    order: int,
    tangent: float | None,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """A function of one variable, its derivatives, and the tangent at a point.

    \b
    Examples:
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.png
      cgprimer plot function -e "xw = sin(xa)" --order 3 --range -6:6 -o sine.svg
      cgprimer plot function examples/lecture.cg --range 0:1 -o lecture-function.pdf --dark
    """
    _check(output)
    graph = read_graph(file, expression)
    from cgprimer.drawing.function_curves import draw_function
    from cgprimer.teaching.slopes import function_curves

    low, high = range or (-3.0, 3.0)
    found = function_curves(graph, low, high, at=at, of=of, wrt=wrt, order=order, tangent=tangent)
    _save(draw_function(found, dark=dark, title=title), output)
