"""What the lecture's training prints: losses on their true scale, and a sample on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cgprimer.core.edge_partials import Partials
from cgprimer.core.graph import ExpressionGraph
from cgprimer.number_format import number
from cgprimer.training.runs import TrainingRun


def tell(text: str = "") -> None:
    """A line; scripts of the lecture are read while they run."""
    print(text)  # noqa: T201


def tell_losses(run: TrainingRun, often: int, where: Callable[[int], str]) -> None:
    """``WHERE  loss = NUMBER`` every so many steps: the mean of the losses since the last line."""
    for step in range(often, run.steps + 1, often) if often else ():
        tell(f"{where(step)}  loss = {mean_loss(run, step - often, step):.4f}")


def mean_loss(run: TrainingRun, first: int, end: int) -> float:
    """The mean of the losses of some steps, of those that a long run has kept."""
    apart = run.steps_apart
    some = run.step_losses[-(-first // apart) : -(-end // apart)]
    return sum(some) / len(some) if some else float("nan")


def tell_sample(
    index: int,
    graph: ExpressionGraph,
    at: Mapping[str, float],
    truth: Mapping[str, float],
    edges: Partials,
) -> None:
    """A sample on its way forward, and the partials that are made there."""
    values = graph.evaluate(dict(at))
    predicted = {name: float(values[name]) for name in graph.outputs}
    error = sum((predicted[name] - truth[name]) ** 2 for name in graph.outputs)
    tell(f"sample {index}, forward")
    tell(f"  inputs       {_listed({name: at[name] for name in graph.inputs})}")
    tell(f"  prediction   {_listed(predicted)}")
    tell(f"  truth        {_listed(truth)}    squared error {number(error, 6)}")
    tell(f"  parameters   {_listed({name: at[name] for name in graph.parameters})}")
    for what, pairs in (
        ("vertices", edges.variable_to_variable), ("parameters", edges.variable_to_parameter)
    ):  # fmt: skip
        tell(f"  partials by {what}")
        tell(f"    {_listed({f'd({h})/d({t})': float(v) for (h, t), v in pairs.items()})}")


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {number(value, 6)}" for name, value in values.items())
