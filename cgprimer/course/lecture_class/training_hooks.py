"""The methods of the training loops that subclasses of the lecture's class can override.

Without overridden methods, the trainer of this package runs the loop. With overridden methods, the
loop calls them for each batch, like the original class, and is as slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.derivatives import gradient
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.course.lecture_class.layered_networks import BIAS, group_by_layer
from cgprimer.errors import UsageError
from cgprimer.expressions import Apply, ExpressionGraph, Name, parse, postorder
from cgprimer.training.data import Dataset
from cgprimer.training.runs import TrainingRun

Array = Any
STEPS = (
    "forward_prop_one_neuron_model",
    "backprop_and_update_params_one_neuron_model",
    "forward_prop_multi_neuron_model",
    "backprop_and_update_params_multi_neuron_model",
)


class Exp(NamedTuple):
    """An expression of the lecture's class, split into its variable, right side and names."""

    exp: str
    body: str
    dependent_var: str
    right_vars: list[str]
    right_params: list[str]


class NetworkSteps:
    """The forward pass and the parameter update of a network, which subclasses may override.

    While the loop of a subclass runs, its methods can change ``vals_for_learnable_params`` and
    ``bias``. The bias of a single neuron is a number, the biases of a network are
    ``{layer: [bias of each node]}``.
    """

    expressions: Iterable[str]
    learning_rate: float
    run: TrainingRun | None
    _assigned_values: dict[str, float] | None = None
    _assigned_bias: Any = None
    _batch: Array = ()

    @property
    def graph(self) -> ExpressionGraph:
        """The graph of the expressions."""
        raise NotImplementedError

    @property
    def layer_vars(self) -> dict[int, list[str]]:
        """The names of the variables in each layer, keyed by the index of the layer.

        Layer 0 has the inputs.
        """
        return dict(enumerate(group_by_layer(self.graph)))

    @property
    def layer_params(self) -> dict[int, list[list[str]]]:
        """The parameter names of each node, keyed by the index of the layer (1 or higher)."""
        layers = self.layer_exp_objects.items()
        return {layer: [e.right_params for e in nodes] for layer, nodes in layers}

    @property
    def layer_exp_objects(self) -> dict[int, list[Exp]]:
        """The expressions of the nodes, keyed by the index of the layer (1 or higher)."""
        expressions = {e.dependent_var: e for e in self.exp_objects}
        layers = self.layer_vars.items()
        return {layer: [expressions[n] for n in names] for layer, names in layers if layer}

    @property
    def exp_objects(self) -> list[Exp]:
        """The expressions that the constructor received, without bias and sigmoid."""
        return [*self._iterate_expressions()]

    def _iterate_expressions(self) -> Iterator[Exp]:
        """Yield each expression of the constructor, split into its parts."""
        for text in self.expressions:
            name, _, body = (part.strip() for part in text.partition("="))
            parameters = self.graph.parameters_of.get(name, [])
            weights = [n for n in parameters if not n.startswith(BIAS)]
            yield Exp(text, body, name, [*self.graph.depends_on.get(name, [])], weights)

    @property
    def var_to_var_param(self) -> dict[str, dict[str, str]]:
        """The name of the parameter that multiplies each variable, keyed by node and variable."""
        parameters = {*self.graph.parameters}
        weights: dict[str, dict[str, str]] = {}
        for node, tree in self.graph.definitions.items():
            pairs = weights.setdefault(node, {})
            for part in postorder(tree):
                if isinstance(part, Apply) and part.primitive == "mul":
                    names = [a.name for a in part.arguments if isinstance(a, Name)]
                    for name in parameters.intersection(names):
                        pairs |= {n: name for n in names if n not in parameters}
        return weights

    @property
    def learnable_params(self) -> list[str]:
        """The names of the parameters in the expressions, without biases."""
        return [name for name in self.graph.parameters if not name.startswith(BIAS)]

    all_params = learnable_params

    @property
    def _learned_values(self) -> dict[str, float]:
        """The values of all parameters after the last training."""
        if self.run is None:
            raise UsageError("no training run", hint="run a training loop first")
        return self.run.parameters

    @property
    def vals_for_learnable_params(self) -> dict[str, float]:
        """The values of the learnable parameters after the last training."""
        if self._assigned_values is not None:
            return self._assigned_values
        return {name: self._learned_values[name] for name in self.learnable_params}

    @vals_for_learnable_params.setter
    def vals_for_learnable_params(self, values: dict[str, float]) -> None:
        """Set the learnable parameters while the loop of a subclass runs."""
        self._assigned_values = values

    @property
    def bias(self) -> Any:
        """The bias of each node after the last training."""
        if self._assigned_bias is not None:
            return self._assigned_bias
        biases = (name for name in self.graph.parameters if name.startswith(BIAS))
        return {name.removeprefix(BIAS): self._learned_values[name] for name in biases}

    @bias.setter
    def bias(self, values: Any) -> None:
        """Set the biases while the loop of a subclass runs."""
        self._assigned_bias = values

    def _collect_parameters(self) -> dict[str, float]:
        """Return the values of all parameters of the graph, including biases."""
        biases, layers = self.bias, self.layer_vars
        if not isinstance(biases, Mapping):
            biases = dict.fromkeys(self.graph.definitions, biases)
        elif not {*biases} - {*layers}:
            biases = {
                name: bias
                for layer, values in biases.items()
                for name, bias in zip(layers[layer], values, strict=True)
            }
        return self.vals_for_learnable_params | {f"{BIAS}{n}": float(b) for n, b in biases.items()}

    def _store_batch(self, data_tuples: Any) -> dict[str, Any]:
        """Store a batch, and return the values of all parameters and inputs, keyed by name."""
        self._batch = np.asarray(data_tuples, dtype=float)
        return self._collect_parameters() | dict(zip(self.graph.inputs, self._batch.T, strict=True))

    def eval_expression(
        self,
        exp: str,
        vals_for_vars: Mapping[str, float],
        vals_for_learnable_params: Mapping[str, float],
        ind_vars: Any = None,
    ) -> Any:
        """Evaluate an expression for the given values of its variables and parameters."""
        graph = parse(f"value_ = {exp}")
        values = {**vals_for_learnable_params, **vals_for_vars}
        names = (*graph.inputs, *graph.parameters)
        return graph.evaluate({name: values[name] for name in names})["value_"]

    def forward_prop_one_neuron_model(self, data_tuples_in_batch: Any) -> tuple[Any, Any]:
        """Compute the neuron's output and its sigmoid's derivative for each sample of a batch."""
        self.forward_prop_multi_neuron_model(data_tuples_in_batch)
        last = max(self.forw_prop_vals_at_layers)
        results = self.forw_prop_vals_at_layers[last], self.gradient_vals_for_layers[last]
        values, slopes = ([row[0] for row in rows] for rows in results)
        return values, slopes

    def forward_prop_multi_neuron_model(self, data_tuples_in_batch: Any) -> None:
        """Compute the value of each node and the derivative of its sigmoid, for each sample.

        The results are stored in ``forw_prop_vals_at_layers`` and ``gradient_vals_for_layers``.
        """
        at = self._store_batch(data_tuples_in_batch)
        values, layers = self.graph.evaluate(at), self.layer_vars
        self.forw_prop_vals_at_layers = {
            k: np.transpose([values[n] for n in names]).tolist() for k, names in layers.items()
        }
        slopes = {  # the derivative with respect to the bias is the derivative of the sigmoid
            n: gradient(self.graph, at, of=n, wrt=f"{BIAS}{n}")[f"{BIAS}{n}"]
            for n in self.graph.definitions
        }
        self.gradient_vals_for_layers = {
            k: np.transpose([slopes[n] for n in names]).tolist() for k, names in layers.items() if k
        }

    def backprop_and_update_params_one_neuron_model(
        self,
        data_tuples_in_batch: Any,
        predictions: Any,
        y_errors_in_batch: Any,
        deriv_sigmoids: Any,
    ) -> None:
        """Update the parameters by gradient descent on the mean squared error of a batch."""
        self._update_parameters(self._store_batch(data_tuples_in_batch), y_errors_in_batch)

    def backprop_and_update_params_multi_neuron_model(self, y_errors: Any) -> None:
        """Update parameters by gradient descent, after :meth:`forward_prop_multi_neuron_model`."""
        self._update_parameters(self._store_batch(self._batch), y_errors)

    def _update_parameters(self, at: dict[str, Any], y_errors: Any) -> None:
        """Update the parameters by gradient descent on the mean squared error of a batch."""
        graph, values = self.graph, self.graph.evaluate(at)
        errors = np.reshape(np.asarray(y_errors, dtype=float), (-1, len(graph.outputs))).T
        loss = graph_with_loss(graph, "squared-error")
        targets = [n for n in loss.inputs if n not in graph.inputs]
        pairs = zip(targets, graph.outputs, errors, strict=True)
        at = at | {target: values[output] + error for target, output, error in pairs}
        gradients = gradient(loss, at, wrt=graph.parameters)
        changes = {n: -self.learning_rate * float(np.mean(g)) for n, g in gradients.items()}
        for name in self.vals_for_learnable_params:
            self.vals_for_learnable_params[name] += changes[name]
        if not isinstance(self.bias, Mapping):
            self.bias += changes[BIAS + graph.outputs[0]]
            return
        for layer, names in self.layer_vars.items():
            for index, name in enumerate(names if layer in self.bias else ()):
                self.bias[layer][index] += changes[BIAS + name]

    @property
    def overridden(self) -> bool:
        """True if a subclass overrides a method of the training loop."""
        return any(getattr(type(self), name) is not getattr(NetworkSteps, name) for name in STEPS)

    def batch_by_batch(self, dataset: Dataset, size: int, seed: int) -> TrainingRun:
        """Train on a dataset, batch by batch, with the methods that a subclass overrides."""
        graph, several = self.graph, len(self.graph.definitions) > 1
        inputs = np.transpose([dataset.inputs[n] for n in graph.inputs])
        labels = np.transpose([dataset.targets[n] for n in graph.outputs])
        draw = np.random.default_rng(seed).random
        self.vals_for_learnable_params = {n: float(draw()) for n in self.learnable_params}
        layers = self.layer_vars
        self.bias = (
            {k: draw(len(names)).tolist() for k, names in layers.items() if k}
            if several
            else float(draw())
        )
        start, losses = self._collect_parameters(), []
        for first in range(0, len(inputs), size):
            rows, targets = [*inputs[first : first + size]], labels[first : first + size].ravel()
            if several:
                self.forward_prop_multi_neuron_model(rows)
                predictions = np.ravel(self.forw_prop_vals_at_layers[max(layers)])
                self.backprop_and_update_params_multi_neuron_model([*(targets - predictions)])
            else:
                values, slopes = self.forward_prop_one_neuron_model(rows)
                predictions = np.asarray(values, dtype=float)
                errors = [*(targets - predictions)]
                self.backprop_and_update_params_one_neuron_model(rows, values, errors, slopes)
            losses.append(float(np.sum((targets - predictions) ** 2)) / len(rows))
        steps = len(losses)
        return TrainingRun(
            self._collect_parameters(), start, {}, {"method": "overridden"},
            losses[0], losses[-1], losses, [float(np.mean(losses))],
            epochs=1, steps=steps, graph=graph,
        )  # fmt: skip
