"""The class of the lecture, implemented by the functions of this package."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgprimer.core.edge_partials import Partials, partials
from cgprimer.course.lecture_class.figure_display import show_figure
from cgprimer.course.lecture_class.layered_networks import (
    add_neurons,
    check_layers,
    group_by_layer,
    sample_batches,
    sample_two_classes,
)
from cgprimer.course.lecture_class.lecture_extension import AutogradCustomization
from cgprimer.course.lecture_class.torch_verification import create_network, verify_with_torch
from cgprimer.course.lecture_class.training_hooks import NetworkSteps
from cgprimer.course.lecture_class.training_messages import print_line, print_losses, print_samples
from cgprimer.course.lecture_class.vertex_differences import select_method, vertex_differences
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
    """An expression graph or a small network, with its data and its training.

    Args:
        expressions: a list of strings such as ``xw=cd*xx+xz^3``.
        output_vars: the outputs; by default the variables that no expression uses.
        dataset_size: number of samples that :meth:`gen_gt_dataset` generates, or
            :meth:`gen_training_data` for both classes together.
        learning_rate: the constant learning rate of gradient descent.
        display_vals_how_often: number of samples or iterations between printed lines; 0 for none.
        display_loss_how_often: the name of ``display_vals_how_often`` in later versions.
        grad_delta: the step size of the differences at vertices in :meth:`train_on_all_data`;
            None for reverse mode.
        one_neuron_model: add a bias and a sigmoid to the expression.
        num_layers: number of layers of a network with the inputs; None to count them.
        layers_config: number of nodes in each layer; None to count them.
        training_iterations: number of batches on which a network is trained.
        batch_size: number of samples in a batch.
        epochs: number of epochs of :class:`AutogradCustomization`.
        for_verification_only: use only the number of inputs of the expressions.
        debug: print the parsed graph.
        seed: random seed of data, start values and batches. By default it is sampled by Python's
            ``random``, so that ``random.seed(0)`` at the top of a script determines all results.

    Raises:
        UsageError: a method is called before the method that it requires, or a setting is invalid.

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
            [strings] if isinstance(strings, str) else [*strings]
            for strings in (self.expressions, self.output_vars)
        )
        self.display_vals_how_often = self.display_vals_how_often or display_loss_how_often

    def parse_expressions(self) -> None:
        """Build the graph of the expressions; a one-neuron model gets a bias and a sigmoid.

        Raises:
            SourceError: the expressions are invalid.
        """
        self._build_graph(neurons=self.one_neuron_model)

    def parse_general_dag_expressions(self) -> None:
        """Build the graph of the expressions, without biases and sigmoids."""
        self._build_graph(neurons=False)

    def parse_multi_layer_expressions(self) -> None:
        """Build a network, in which each expression is a node with a bias and a sigmoid.

        Raises:
            SourceError: the expressions are invalid.
            UsageError: the layers are not those of ``num_layers`` or ``layers_config``.
        """
        self._build_graph(neurons=True)
        check_layers(group_by_layer(self.graph), self.num_layers, self.layers_config)

    def _build_graph(self, *, neurons: bool) -> None:
        """Build the graph; if ``neurons`` is true, each expression gets a bias and a sigmoid."""
        lines = add_neurons([*self.expressions]) if neurons else [*self.expressions]
        declarations = [f"output {', '.join(self.output_vars)}"] if self.output_vars else []
        graph = parse([*lines, *declarations])
        if graph.shapes:
            problem = "the lecture's class supports scalars only, but the expressions have arrays"
            raise UsageError(problem, hint="use cgprimer.train instead")
        self._graph = graph
        if self.debug:
            print_line("\n".join(["expressions:", *lines]))
            print_line(f"inputs: {', '.join(self.independent_vars)}")
            print_line(f"learnable parameters: {', '.join(self.graph.parameters)}")
            print_line(f"depends_on: {self.depends_on}")
            print_line(f"leads_to: {self.leads_to}")

    @property
    def graph(self) -> ExpressionGraph:
        """The graph of the expressions."""
        if self._graph is None:
            raise UsageError(
                "the expressions are not parsed yet", hint="call parse_expressions() first"
            )
        return self._graph

    @property
    def depends_on(self) -> dict[str, list[str]]:
        """The variables that each variable's expression uses, keyed by the defined variable."""
        return self.graph.depends_on

    @property
    def leads_to(self) -> dict[str, list[str]]:
        """The variables that use each variable in their expressions, keyed by the used variable."""
        return self.graph.leads_to

    @property
    def all_vars(self) -> list[str]:
        """The names of all variables."""
        return [*self.graph.variables]

    @property
    def independent_vars(self) -> list[str]:
        """The names of the inputs."""
        return [*self.graph.inputs]

    @property
    def dependent_vars(self) -> list[str]:
        """The names of the variables that expressions define."""
        return [name for name in self.graph.variables if name not in self.graph.inputs]

    def gen_gt_dataset(self, vals_for_learnable_params: Mapping[str, float]) -> None:
        """Generate the dataset from true parameters and inputs sampled uniformly from [-1, 1)."""
        self._dataset = make_dataset(
            self.graph, truth=vals_for_learnable_params, samples=self.dataset_size, seed=self.seed
        )

    def gen_gt_dataset_with_activations(
        self, vals_for_learnable_params: Mapping[str, float]
    ) -> None:
        """Generate the dataset from true parameters, with a ReLU after each expression."""
        rectified = [f"{n} = relu({self.graph.expression(n)})" for n in self.graph.definitions]
        graph = parse([*rectified, f"output {', '.join(self.graph.outputs)}"])
        self._dataset = make_dataset(
            graph, truth=vals_for_learnable_params, samples=self.dataset_size, seed=self.seed
        )

    @property
    def dataset(self) -> Dataset:
        """The dataset from :meth:`gen_gt_dataset` or from the last training of a network."""
        if self._dataset is None:
            raise UsageError("no dataset", hint="call gen_gt_dataset(...) first")
        return self._dataset

    def gen_training_data(self) -> dict[int, list[Any]]:
        """Generate samples of two classes as ``{0: [...], 1: [...]}``; each sample is an array.

        Each input is N(2, 1) in class 0 and N(4, 2^2) in class 1.
        """
        samples = check_integer("dataset_size for two classes", self.dataset_size, minimum=2)
        return sample_two_classes(len(self.graph.inputs), samples, self.seed)

    def train_on_all_data(self) -> TrainingRun:
        """Train on the dataset for one epoch, sample by sample."""
        self.run = self._train_on(self.dataset)
        if interval := self.display_vals_how_often:
            print_samples(self.run, self.dataset, interval, self._train_on, self._compute_partials)
        return self.run

    def _train_on(self, dataset: Dataset, **settings: Any) -> TrainingRun:
        """Train for one epoch, sample by sample, with the method that ``grad_delta`` selects."""
        with select_method(self.grad_delta) as method:
            all_settings = self._lecture_settings | method | settings
            return train(self.graph, dataset, batch_size=1, **all_settings)

    @property
    def _lecture_settings(self) -> dict[str, Any]:
        """The arguments of ``train`` for one epoch of gradient descent on unshuffled data."""
        return {
            "optimizer": "sgd",
            "schedule": "constant",
            "epochs": 1,
            "shuffle": False,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
        }

    def forward_propagate_one_input_sample_with_partial_deriv_calc(
        self, sample_index: int, input_vals_for_ind_vars: Mapping[str, float]
    ) -> Partials:
        """Compute the local partials for a sample, with the parameters of the last training.

        Each vertex is differentiated with respect to its operands, shifted by ``grad_delta``.
        """
        return self._compute_partials({**self._learned_values, **input_vals_for_ind_vars})

    def _compute_partials(self, at: Mapping[str, Any]) -> Partials:
        """Compute the local partials for given values, by finite differences or exactly."""
        if self.grad_delta is None:
            return partials(self.graph, dict(at))
        return vertex_differences(self.graph, at, self.grad_delta)

    def run_training_loop_one_neuron_model(
        self, training_data: Mapping[int, Any], **settings: Any
    ) -> TrainingRun:
        """Train the neuron on batches of two classes, and print and plot the losses.

        Args:
            training_data: samples of :meth:`gen_training_data`.
            settings: settings of :func:`cgprimer.train`, such as ``optimizer="adam"``.
        """
        return self._train_network(self.graph, training_data, settings)

    def run_training_loop_multi_neuron_model(
        self, training_data: Mapping[int, Any], **settings: Any
    ) -> TrainingRun:
        """Train the network on batches of two classes, and print and plot the losses."""
        return self._train_network(self.graph, training_data, settings)

    def run_training_with_torchnn(
        self, option: str, training_data: Mapping[int, Any]
    ) -> TrainingRun:
        """Train ``one_neuron`` or a ``multi_neuron`` network, and verify the training with torch.

        The multi-neuron network has a ReLU layer and a linear output. The losses of a batch are
        added, as in the lecture. torch repeats the first iterations.
        """
        graph, start = create_network(option, len(self.graph.inputs), self.seed)
        run = self._train_network(graph, training_data, {"start": start, "reduction": "sum"})
        print_line(
            verify_with_torch(run, self.dataset, option, self.learning_rate, self.batch_size)
        )
        return run

    def _train_network(
        self, graph: ExpressionGraph, training_data: Mapping[int, Any], settings: dict[str, Any]
    ) -> TrainingRun:
        """Train a network on batches of two classes, and print and plot the losses."""
        number = check_integer("training_iterations", self.training_iterations, minimum=1)
        size = check_integer("batch_size", self.batch_size, minimum=1)
        self._dataset = sample_batches(training_data, graph, number, size, self.seed)
        if self.overridden and graph is self.graph:
            self.run = self.batch_by_batch(self._dataset, size, self.seed)
            return self._report_last_run()
        all_settings = self._lecture_settings | settings
        self.run = train(graph, self._dataset, batch_size=size, **all_settings)
        self._assigned_values = self._assigned_bias = None
        return self._report_last_run()

    def _report_last_run(self) -> TrainingRun:
        """Print and plot the losses of the last training, and return its run."""
        assert self.run is not None
        print_losses(self.run, self.display_vals_how_often, "[iter={}]".format)
        self.plot_loss()
        return self.run

    def display_network2(self, path: Picture = None) -> Figure:
        """Draw the graph, and show it in a window or write it to a file.

        The picture is written if a path is given or no window is available. A notebook shows the
        returned figure.
        """
        return self._display_graph(path, "display_network2")

    def display_network1(self, path: Picture = None) -> Figure:
        """Draw the graph, like :meth:`display_network2`."""
        return self._display_graph(path, "display_network1")

    def display_DAG(self, path: Picture = None) -> Figure:
        """Draw the graph, like :meth:`display_network2`."""
        return self._display_graph(path, "display_DAG")

    def display_one_neuron_network(self, path: Picture = None) -> Figure:
        """Draw the graph, like :meth:`display_network2`."""
        return self._display_graph(path, "display_one_neuron_network")

    def display_multi_neuron_network(self, path: Picture = None) -> Figure:
        """Draw the graph, like :meth:`display_network2`."""
        return self._display_graph(path, "display_multi_neuron_network")

    def _display_graph(self, path: Picture, call: str) -> Figure:
        """Draw the graph, and show or write it; ``call`` is the name of the calling method."""
        from cgprimer.visualization.diagrams.drawing import draw

        return show_figure(draw(self.graph), path, call)

    def plot_loss(self, path: Picture = None) -> Figure:
        """Plot the loss of each iteration, and show the plot or write it to a file."""
        from cgprimer.plot import loss

        if self.run is None:
            raise UsageError("no training run", hint="call train_on_all_data() first")
        return show_figure(loss({"training": self.run}, by="step"), path, "plot_loss")


# A second name of the attribute: another field of the dataclass would have its own value.
setattr(  # noqa: B010
    ComputationalGraphPrimer,
    "display_loss_how_often",
    property(
        lambda self: self.display_vals_how_often,
        lambda self, interval: setattr(self, "display_vals_how_often", interval),
    ),
)
