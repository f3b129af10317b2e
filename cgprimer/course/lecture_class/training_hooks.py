"""What the training loops of the networks call inside, for subclasses that have it their own way.

A loop whose steps nobody overrides is the package's trainer. One that a subclass takes apart goes
batch by batch through these methods, as the original does, and is as slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.derivatives import gradient
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.course.lecture_class.layered_networks import BIAS, layers_of
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
    """An expression in its parts."""

    exp: str
    body: str
    dependent_var: str
    right_vars: list[str]
    right_params: list[str]


class NetworkSteps:
    """A step forward and a step back through a neuron or a network, and what they work on.

    While a loop of a subclass runs, ``vals_for_learnable_params`` and ``bias`` are its own to
    change: ``bias`` is a number for one neuron, of a network ``{layer: [number of each node]}``.
    """

    expressions: Iterable[str]
    learning_rate: float
    run: TrainingRun | None
    _own: dict[str, float] | None = None
    _own_bias: Any = None
    _batch: Array = ()

    @property
    def graph(self) -> ExpressionGraph:
        """The graph of the expressions."""
        raise NotImplementedError

    # --- names ---------------------------------------------------------------------------------

    @property
    def layer_vars(self) -> dict[int, list[str]]:
        """The variables of each layer, from the inputs, layer 0, on."""
        return dict(enumerate(layers_of(self.graph)))

    @property
    def layer_params(self) -> dict[int, list[list[str]]]:
        """For each layer behind the inputs the parameters of each of its nodes."""
        return {k: [e.right_params for e in of] for k, of in self.layer_exp_objects.items()}

    @property
    def layer_exp_objects(self) -> dict[int, list[Exp]]:
        """For each layer behind the inputs the expressions of its nodes."""
        known = {e.dependent_var: e for e in self.exp_objects}
        return {k: [known[n] for n in names] for k, names in self.layer_vars.items() if k}

    @property
    def exp_objects(self) -> list[Exp]:
        """The expressions as they were given, without bias and sigmoid."""
        return [*self._expressions()]

    def _expressions(self) -> Iterator[Exp]:
        for text in self.expressions:
            name, _, body = (part.strip() for part in text.partition("="))
            used = self.graph.parameters_of.get(name, [])
            mine = [n for n in used if not n.startswith(BIAS)]
            yield Exp(text, body, name, [*self.graph.depends_on.get(name, [])], mine)

    @property
    def var_to_var_param(self) -> dict[str, dict[str, str]]:
        """For each node the parameter that each of its variables is multiplied with."""
        parameters = {*self.graph.parameters}
        found: dict[str, dict[str, str]] = {}
        for node, tree in self.graph.definitions.items():
            pairs = found.setdefault(node, {})
            for part in postorder(tree):
                if isinstance(part, Apply) and part.primitive == "mul":
                    names = [a.name for a in part.arguments if isinstance(a, Name)]
                    for name in parameters.intersection(names):
                        pairs |= {n: name for n in names if n not in parameters}
        return found

    @property
    def learnable_params(self) -> list[str]:
        """The parameters that stand in the expressions: biases are apart."""
        return [name for name in self.graph.parameters if not name.startswith(BIAS)]

    all_params = learnable_params

    # --- values --------------------------------------------------------------------------------

    @property
    def _learnt(self) -> dict[str, float]:
        if self.run is None:
            raise UsageError("nothing is learnt yet", hint="call the training loop first")
        return self.run.parameters

    @property
    def vals_for_learnable_params(self) -> dict[str, float]:
        """Their values, as they were learnt last."""
        if self._own is not None:
            return self._own
        return {name: self._learnt[name] for name in self.learnable_params}

    @vals_for_learnable_params.setter
    def vals_for_learnable_params(self, values: dict[str, float]) -> None:
        self._own = values

    @property
    def bias(self) -> Any:
        """The bias of each node, as it was learnt last."""
        if self._own_bias is not None:
            return self._own_bias
        biases = (name for name in self.graph.parameters if name.startswith(BIAS))
        return {name.removeprefix(BIAS): self._learnt[name] for name in biases}

    @bias.setter
    def bias(self, values: Any) -> None:
        self._own_bias = values

    def _parameters(self) -> dict[str, float]:
        """All parameters by name, biases as the graph calls them."""
        known, layers = self.bias, self.layer_vars
        if not isinstance(known, Mapping):
            known = dict.fromkeys(self.graph.definitions, known)
        elif not {*known} - {*layers}:
            known = {n: b for k, of in known.items() for n, b in zip(layers[k], of, strict=True)}
        return self.vals_for_learnable_params | {f"{BIAS}{n}": float(b) for n, b in known.items()}

    def _point(self, data_tuples: Any) -> dict[str, Any]:
        self._batch = np.asarray(data_tuples, dtype=float)
        return self._parameters() | dict(zip(self.graph.inputs, self._batch.T, strict=True))

    # --- steps ---------------------------------------------------------------------------------

    def eval_expression(
        self,
        exp: str,
        vals_for_vars: Mapping[str, float],
        vals_for_learnable_params: Mapping[str, float],
        ind_vars: Any = None,
    ) -> Any:
        """The value of an expression, in this package's language."""
        made = parse(f"value_ = {exp}")
        known = {**vals_for_learnable_params, **vals_for_vars}
        return made.evaluate({n: known[n] for n in (*made.inputs, *made.parameters)})["value_"]

    def forward_prop_one_neuron_model(self, data_tuples_in_batch: Any) -> tuple[Any, Any]:
        """The neuron's output for each sample of a batch, and the slope of its sigmoid there."""
        self.forward_prop_multi_neuron_model(data_tuples_in_batch)
        last = max(self.forw_prop_vals_at_layers)
        found = self.forw_prop_vals_at_layers[last], self.gradient_vals_for_layers[last]
        values, slopes = ([row[0] for row in rows] for rows in found)
        return values, slopes

    def forward_prop_multi_neuron_model(self, data_tuples_in_batch: Any) -> None:
        """The values of each layer's nodes for each sample, and the slopes of their sigmoids.

        They are ``forw_prop_vals_at_layers`` and ``gradient_vals_for_layers``.
        """
        at = self._point(data_tuples_in_batch)
        values, layers = self.graph.evaluate(at), self.layer_vars
        self.forw_prop_vals_at_layers = {
            k: np.transpose([values[n] for n in names]).tolist() for k, names in layers.items()
        }
        slopes = {  # by its bias a neuron's output has the slope of its sigmoid
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
        """A step of gradient descent on the mean squared error of a batch."""
        self._step_back(self._point(data_tuples_in_batch), y_errors_in_batch)

    def backprop_and_update_params_multi_neuron_model(self, y_errors: Any) -> None:
        """The same, after :meth:`forward_prop_multi_neuron_model`."""
        self._step_back(self._point(self._batch), y_errors)

    def _step_back(self, at: dict[str, Any], y_errors: Any) -> None:
        graph, values = self.graph, self.graph.evaluate(at)
        errors = np.reshape(np.asarray(y_errors, dtype=float), (-1, len(graph.outputs))).T
        loss = graph_with_loss(graph, "squared-error")
        targets = [n for n in loss.inputs if n not in graph.inputs]
        pairs = zip(targets, graph.outputs, errors, strict=True)
        at = at | {target: values[output] + error for target, output, error in pairs}
        found = gradient(loss, at, wrt=graph.parameters)
        steps = {n: -self.learning_rate * float(np.mean(g)) for n, g in found.items()}
        for name in self.vals_for_learnable_params:
            self.vals_for_learnable_params[name] += steps[name]
        if not isinstance(self.bias, Mapping):
            self.bias += steps[BIAS + graph.outputs[0]]
            return
        for layer, names in self.layer_vars.items():
            for place, name in enumerate(names if layer in self.bias else ()):
                self.bias[layer][place] += steps[BIAS + name]

    # --- the loop ------------------------------------------------------------------------------

    @property
    def overridden(self) -> bool:
        """Whether a subclass has its own way with a step."""
        return any(getattr(type(self), name) is not getattr(NetworkSteps, name) for name in STEPS)

    def batch_by_batch(self, dataset: Dataset, size: int, seed: int) -> TrainingRun:
        """Go through a dataset with the methods as a subclass has them."""
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
        start, losses = self._parameters(), []
        for first in range(0, len(inputs), size):
            rows, truth = [*inputs[first : first + size]], labels[first : first + size].ravel()
            if several:
                self.forward_prop_multi_neuron_model(rows)
                predicted = np.ravel(self.forw_prop_vals_at_layers[max(layers)])
                self.backprop_and_update_params_multi_neuron_model([*(truth - predicted)])
            else:
                values, slopes = self.forward_prop_one_neuron_model(rows)
                predicted = np.asarray(values, dtype=float)
                errors = [*(truth - predicted)]
                self.backprop_and_update_params_one_neuron_model(rows, values, errors, slopes)
            losses.append(float(np.sum((truth - predicted) ** 2)) / len(rows))
        steps = len(losses)
        return TrainingRun(
            self._parameters(), start, {}, {"method": "overridden"},
            losses[0], losses[-1], losses, [float(np.mean(losses))],
            epochs=1, steps=steps, graph=graph,
        )  # fmt: skip
