"""The lecture's own class, its calls unchanged.

The calls are those of the ``ComputationalGraphPrimer`` class that accompanies Avinash Kak's
lectures on computational graphs (Purdue University). What they compute is this package's: values
are right for negative inputs, the gradient goes along every path, and the loss falls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.data import Dataset, make_dataset
from cgprimer.errors import UsageError
from cgprimer.number_format import number
from cgprimer.training.loop import train
from cgprimer.training.runs import TrainingRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(kw_only=True, eq=False, repr=False)
class ComputationalGraphPrimer:
    """An expression graph with its dataset and its training run, step by step.

    Args:
        expressions: a list of texts such as ``xw=cd*xx+xz^3``.
        output_vars: the outputs; variables that lead to nothing unless given.
        dataset_size: samples that :meth:`gen_gt_dataset` makes.
        learning_rate: of one-sample-at-a-time gradient descent, constant.
        display_vals_how_often: print the loss every so many samples; 0 for never.
        display_loss_how_often: the same, as later versions call it.
        grad_delta: the step of the finite differences with which :meth:`train_on_all_data`
            differentiates; None for reverse mode.
        seed: of the data, the start values and the order of the samples.

    Raises:
        UsageError: a call comes before the one that it needs.

    >>> cgp = ComputationalGraphPrimer(
    ...     expressions=["xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3"],
    ...     output_vars=["xw"], dataset_size=1000, learning_rate=1e-6, grad_delta=1e-4)
    >>> cgp.parse_expressions()
    >>> cgp.depends_on["xw"]
    ['xx', 'xz']
    >>> cgp.gen_gt_dataset(vals_for_learnable_params={"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0})
    >>> run = cgp.train_on_all_data()
    >>> run.loss < run.start_loss
    True
    """

    expressions: Iterable[str]
    output_vars: Iterable[str] = ()
    dataset_size: int = 10_000
    learning_rate: float = 1e-6
    display_vals_how_often: int = 0
    display_loss_how_often: InitVar[int] = 0
    grad_delta: float | None = 1e-4
    seed: int = 0
    run: TrainingRun | None = field(default=None, init=False)
    _graph: ExpressionGraph | None = field(default=None, init=False)
    _dataset: Dataset | None = field(default=None, init=False)

    def __post_init__(self, display_loss_how_often: int) -> None:
        self.expressions, self.output_vars = list(self.expressions), list(self.output_vars)
        self.display_vals_how_often = self.display_vals_how_often or display_loss_how_often

    def parse_expressions(self) -> None:
        """Build the graph: ``depends_on`` and ``leads_to``.

        Raises:
            SourceError: the expressions are no graph.
        """
        declared = [f"output {', '.join(self.output_vars)}"] if self.output_vars else []
        self._graph = parse([*self.expressions, *declared])

    parse_general_dag_expressions = parse_expressions

    @property
    def graph(self) -> ExpressionGraph:
        """The graph that :meth:`parse_expressions` built."""
        if self._graph is None:
            raise UsageError("there is no graph yet", hint="call parse_expressions() first")
        return self._graph

    @property
    def depends_on(self) -> dict[str, list[str]]:
        """For each variable the variables that its expression uses."""
        return self.graph.depends_on

    @property
    def leads_to(self) -> dict[str, list[str]]:
        """For each variable the variables whose expressions use it."""
        return self.graph.leads_to

    def gen_gt_dataset(self, vals_for_learnable_params: Mapping[str, float]) -> None:
        """Make the dataset from the true values of the parameters, inputs uniform in [-1, 1)."""
        self._dataset = make_dataset(
            self.graph, truth=vals_for_learnable_params, samples=self.dataset_size, seed=self.seed
        )

    @property
    def dataset(self) -> Dataset:
        """The dataset that :meth:`gen_gt_dataset` made."""
        if self._dataset is None:
            raise UsageError("there are no data yet", hint="call gen_gt_dataset(...) first")
        return self._dataset

    def train_on_all_data(self) -> TrainingRun:
        """Go once through the data, a sample at a time, and return what was learnt."""
        differences: dict[str, Any] = {"step": self.grad_delta} if self.grad_delta else {}
        self.run = train(
            self.graph,
            self.dataset,
            method="finite-difference" if self.grad_delta else "reverse",
            optimizer="sgd",
            learning_rate=self.learning_rate,
            schedule="constant",
            epochs=1,
            batch_size=1,
            seed=self.seed,
            on_step=self._display_values if self.display_vals_how_often else None,
            **differences,
        )
        return self.run

    def _display_values(self, step: int, _total: int, loss: float) -> None:
        if step % self.display_vals_how_often == 0:
            print(f"sample {step}: squared error {number(loss, 6)}")  # noqa: T201 - the lecture prints

    def display_network2(self, path: str | Path | None = None) -> Figure:
        """A picture of the graph; written as PNG, SVG or PDF where a path is given.

        A notebook shows the figure that is returned.
        """
        from cgprimer.pictures.graph_diagrams import draw

        return _written(draw(self.graph), path)

    display_DAG = display_network2

    def plot_loss(self, path: str | Path | None = None) -> Figure:
        """The loss of every sample in turn; written where a path is given."""
        from cgprimer.plot import loss

        if self.run is None:
            raise UsageError("there is no loss yet", hint="call train_on_all_data() first")
        return _written(loss({"training": self.run}, by="step"), path)


def _written(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        from cgprimer.pictures.saving import save_figure

        save_figure(figure, Path(path))
    return figure
