"""The class itself: the lecture's calls, each a few lines on what this package has."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgprimer.core.edge_partials import Partials, partials
from cgprimer.course.lecture_class.figure_display import shown
from cgprimer.course.lecture_class.layered_networks import (
    batches,
    check_layers,
    layers_of,
    two_classes,
    with_neurons,
)
from cgprimer.course.lecture_class.lecture_extension import AutogradCustomization
from cgprimer.course.lecture_class.torch_verification import network, verify
from cgprimer.course.lecture_class.training_hooks import NetworkSteps
from cgprimer.course.lecture_class.training_messages import tell, tell_losses, tell_samples
from cgprimer.course.lecture_class.vertex_differences import method_of, vertex_differences
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.support.validation import check_integer
from cgprimer.training.data import Dataset, make_dataset
from cgprimer.training.loop import train
from cgprimer.training.runs import TrainingRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = str | Path | None


@dataclass(kw_only=True, eq=False, repr=False)
class ComputationalGraphPrimer(NetworkSteps):
    """An expression graph or a small network with its data and its training, step by step.

    Args:
        expressions: a list of texts such as ``xw=cd*xx+xz^3``.
        output_vars: the outputs; variables that lead to nothing unless given.
        dataset_size: samples that :meth:`gen_gt_dataset` makes, or :meth:`gen_training_data`, half
            of them of each class.
        learning_rate: of gradient descent, constant.
        display_vals_how_often: print every so many samples or iterations; 0 for never.
        display_loss_how_often: the same, as later versions call it.
        grad_delta: the step of the differences at vertices with which :meth:`train_on_all_data`
            differentiates; None for reverse mode.
        one_neuron_model: :meth:`parse_expressions` gives the expression a bias and a sigmoid.
        num_layers: of a multi-neuron model, inputs counted; None for what the expressions say.
        layers_config: how many nodes each layer has; None for what the expressions say.
        training_iterations: batches that a network is trained on.
        batch_size: samples of a batch.
        epochs: of :class:`AutogradCustomization`.
        for_verification_only: the expressions only say how many inputs there are.
        debug: print what the parser found.
        seed: of data, start values and batches; drawn from Python's ``random`` unless given, so
            that ``random.seed(0)`` at the top of a script decides everything.

    Raises:
        UsageError: a call comes before the one that it needs, a number is none.

    >>> cgp = ComputationalGraphPrimer(
    ...     expressions=["xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3"],
    ...     output_vars=["xw"], dataset_size=1000, learning_rate=1e-6, grad_delta=1e-4, seed=0)
    >>> cgp.parse_expressions()
    >>> cgp.depends_on["xw"]
    ['xx', 'xz']
    >>> cgp.gen_gt_dataset(vals_for_learnable_params={"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0})
    >>> run = cgp.train_on_all_data()
    >>> run.loss < run.start_loss
    True
    """

    AutogradCustomization = AutogradCustomization

    expressions: Iterable[str] = ()
    output_vars: Iterable[str] = ()
    dataset_size: int = 10_000
    learning_rate: float = 1e-6
    display_vals_how_often: int = 0
    display_loss_how_often: InitVar[int] = 0
    grad_delta: float | None = 1e-4
    one_neuron_model: bool = False
    num_layers: int | None = None
    layers_config: Sequence[int] | None = None
    training_iterations: int = 10_000
    batch_size: int = 8
    epochs: int = 1
    for_verification_only: bool = False
    debug: bool = False
    seed: int = field(default_factory=lambda: random.getrandbits(32))
    run: TrainingRun | None = field(default=None, init=False)
    _graph: ExpressionGraph | None = field(default=None, init=False)
    _dataset: Dataset | None = field(default=None, init=False)

    def __post_init__(self, display_loss_how_often: int) -> None:
        self.expressions, self.output_vars = (
            [given] if isinstance(given, str) else [*given]
            for given in (self.expressions, self.output_vars)
        )
        self.display_vals_how_often = self.display_vals_how_often or display_loss_how_often

    # --- expressions ---------------------------------------------------------------------------

    def parse_expressions(self) -> None:
        """Build the graph: ``depends_on`` and ``leads_to``; of a one-neuron model, its neuron.

        Raises:
            SourceError: the expressions are no graph.
        """
        self._parse(neurons=self.one_neuron_model)

    def parse_general_dag_expressions(self) -> None:
        """Build the graph of the expressions as they are written."""
        self._parse(neurons=False)

    def parse_multi_layer_expressions(self) -> None:
        """Build a network: each expression is a node with a bias and a sigmoid.

        Raises:
            SourceError: the expressions are no graph.
            UsageError: they are not the layers that the constructor was told.
        """
        self._parse(neurons=True)
        check_layers(layers_of(self.graph), self.num_layers, self.layers_config)

    def _parse(self, *, neurons: bool) -> None:
        lines = with_neurons([*self.expressions]) if neurons else [*self.expressions]
        declared = [f"output {', '.join(self.output_vars)}"] if self.output_vars else []
        graph = parse([*lines, *declared])
        if graph.shapes:
            what = "the lecture's class computes with numbers, and these expressions have arrays"
            raise UsageError(what, hint="cgprimer.train and the other functions take them")
        self._graph = graph
        if self.debug:
            tell("\n".join(["the expressions, as they are computed:", *lines]))
            tell(f"inputs: {', '.join(self.independent_vars)}")
            tell(f"learnable parameters: {', '.join(self.graph.parameters)}")
            tell(f"depends_on: {self.depends_on}")
            tell(f"leads_to: {self.leads_to}")

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

    @property
    def all_vars(self) -> list[str]:
        """All variables."""
        return [*self.graph.variables]

    @property
    def independent_vars(self) -> list[str]:
        """The inputs."""
        return [*self.graph.inputs]

    @property
    def dependent_vars(self) -> list[str]:
        """The variables that expressions define."""
        return [name for name in self.graph.variables if name not in self.graph.inputs]

    # --- data ----------------------------------------------------------------------------------

    def gen_gt_dataset(self, vals_for_learnable_params: Mapping[str, float]) -> None:
        """Make the dataset from the true values of the parameters, inputs uniform in [-1, 1)."""
        self._dataset = make_dataset(
            self.graph, truth=vals_for_learnable_params, samples=self.dataset_size, seed=self.seed
        )

    def gen_gt_dataset_with_activations(
        self, vals_for_learnable_params: Mapping[str, float]
    ) -> None:
        """The same, with a ReLU behind each expression of the true graph."""
        rectified = [f"{n} = relu({self.graph.expression(n)})" for n in self.graph.definitions]
        graph = parse([*rectified, f"output {', '.join(self.graph.outputs)}"])
        self._dataset = make_dataset(
            graph, truth=vals_for_learnable_params, samples=self.dataset_size, seed=self.seed
        )

    @property
    def dataset(self) -> Dataset:
        """The dataset that :meth:`gen_gt_dataset` made, or that a network was trained on."""
        if self._dataset is None:
            raise UsageError("there are no data yet", hint="call gen_gt_dataset(...) first")
        return self._dataset

    def gen_training_data(self) -> dict[int, list[Any]]:
        """Samples of two classes: ``{0: [...], 1: [...]}``, an array with a number per input each.

        Class 0 is N(2, 1) in each input, class 1 N(4, 2^2).
        """
        samples = check_integer("dataset_size, for two classes,", self.dataset_size, minimum=2)
        return two_classes(len(self.graph.inputs), samples, self.seed)

    # --- training ------------------------------------------------------------------------------

    def train_on_all_data(self) -> TrainingRun:
        """Go once through the data, a sample at a time, and return what was learnt."""
        self.run = self._go_through(self.dataset)
        if often := self.display_vals_how_often:
            tell_samples(self.run, self.dataset, often, self._go_through, self._partials)
        return self.run

    def _go_through(self, dataset: Dataset, **more: Any) -> TrainingRun:
        with method_of(self.grad_delta) as how:
            return train(self.graph, dataset, batch_size=1, **self._plain, **how, **more)

    @property
    def _plain(self) -> dict[str, Any]:
        """Descent as in the lectures: once through the samples, as they stand, with one rate."""
        own = {"learning_rate": self.learning_rate, "seed": self.seed}
        return {"optimizer": "sgd", "schedule": "constant", "epochs": 1, "shuffle": False, **own}

    def forward_propagate_one_input_sample_with_partial_deriv_calc(
        self, sample_index: int, input_vals_for_ind_vars: Mapping[str, float]
    ) -> Partials:
        """The partials that a sample's way forward makes, at the parameters learnt last.

        Of vertices by vertices and by parameters, each moved by ``grad_delta`` by itself.
        """
        return self._partials({**self._learnt, **input_vals_for_ind_vars})

    def _partials(self, at: Mapping[str, Any]) -> Partials:
        if self.grad_delta is None:
            return partials(self.graph, dict(at))
        return vertex_differences(self.graph, at, self.grad_delta)

    def run_training_loop_one_neuron_model(
        self, training_data: Mapping[int, Any], **settings: Any
    ) -> TrainingRun:
        """Train the neuron on batches of two classes, print the losses and plot them.

        Args:
            training_data: what :meth:`gen_training_data` made.
            settings: of :func:`cgprimer.train`, such as ``optimizer="adam"``.
        """
        return self._train_network(self.graph, training_data, settings)

    def run_training_loop_multi_neuron_model(
        self, training_data: Mapping[int, Any], **settings: Any
    ) -> TrainingRun:
        """The same for the network."""
        return self._train_network(self.graph, training_data, settings)

    def run_training_with_torchnn(
        self, option: str, training_data: Mapping[int, Any]
    ) -> TrainingRun:
        """Train ``one_neuron`` or a ``multi_neuron`` network (ReLU, then a sum) and check it.

        The losses of the batch are added up, as there. torch repeats the first steps.
        """
        graph, start = network(option, len(self.graph.inputs), self.seed)
        run = self._train_network(graph, training_data, {"start": start, "reduction": "sum"})
        tell(verify(run, self.dataset, option, self.learning_rate, self.batch_size))
        return run

    def _train_network(
        self, graph: ExpressionGraph, training_data: Mapping[int, Any], settings: dict[str, Any]
    ) -> TrainingRun:
        many = check_integer("training_iterations", self.training_iterations, minimum=1)
        size = check_integer("batch_size", self.batch_size, minimum=1)
        self._dataset = batches(training_data, graph, many, size, self.seed)
        if self.overridden and graph is self.graph:
            self.run = self.batch_by_batch(self._dataset, size, self.seed)
            return self._told()
        self.run = train(graph, self._dataset, batch_size=size, **(self._plain | settings))
        self._own = self._own_bias = None
        return self._told()

    def _told(self) -> TrainingRun:
        assert self.run is not None
        tell_losses(self.run, self.display_vals_how_often, "[iter={}]".format)
        self.plot_loss()
        return self.run

    # --- pictures ------------------------------------------------------------------------------

    def display_network2(self, path: Picture = None) -> Figure:
        """A picture of the graph: shown, or written where a path is given or nothing can show it.

        A notebook shows the figure that is returned.
        """
        return self._display(path, "display_network2")

    def display_network1(self, path: Picture = None) -> Figure:
        """The same picture."""
        return self._display(path, "display_network1")

    def display_DAG(self, path: Picture = None) -> Figure:
        """The same picture."""
        return self._display(path, "display_DAG")

    def display_one_neuron_network(self, path: Picture = None) -> Figure:
        """The same picture."""
        return self._display(path, "display_one_neuron_network")

    def display_multi_neuron_network(self, path: Picture = None) -> Figure:
        """The same picture."""
        return self._display(path, "display_multi_neuron_network")

    def _display(self, path: Picture, call: str) -> Figure:
        from cgprimer.visualization.diagrams.drawing import draw

        return shown(draw(self.graph), path, call)

    def plot_loss(self, path: Picture = None) -> Figure:
        """The loss of every step in turn, shown or written as pictures of the graph are."""
        from cgprimer.plot import loss

        if self.run is None:
            raise UsageError("there is no loss yet", hint="call train_on_all_data() first")
        return shown(loss({"training": self.run}, by="step"), path, "plot_loss")


# A second name for the same number: a field would be a number of its own.
setattr(  # noqa: B010
    ComputationalGraphPrimer,
    "display_loss_how_often",
    property(
        lambda self: self.display_vals_how_often,
        lambda self, often: setattr(self, "display_vals_how_often", often),
    ),
)
