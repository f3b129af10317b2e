"""Stage 10: a small network that learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cgprimer.course.checks.check_results import Failure, Part
from cgprimer.course.checks.stages.neuron_training import (
    INITIAL_BIAS,
    INITIAL_WEIGHT,
    N_EPOCHS,
    RATE,
    SAMPLES,
    judge_epochs,
)
from cgprimer.course.checks.stages.optimizer_stage import WRONG_DIRECTION, descend
from cgprimer.course.checks.stages.stage import Case, DriverCall, Stage, Task, is_close
from cgprimer.course.checks.verdicts import accept, reject
from cgprimer.expressions import parse


class _Network(NamedTuple):
    """A network of sigmoid neurons, with the inputs of its samples.

    Attributes:
        weights: for each layer the weights of each neuron.
        biases: for each layer the bias of each neuron.
        inputs: the inputs of each sample.
    """

    weights: list[list[list[float]]]
    biases: list[list[float]]
    inputs: list[list[float]]


_LECTURE_NETWORK = _Network(
    [[[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], [[0.9, 0.35]]],
    [[0.05, 0.05], [0.07]],
    [[0.2, -0.4, 0.6, 0.8], [1.0, 0.5, -0.25, 0.75]],
)
_DISTINCT_NETWORK = _Network(
    [[[0.15, -0.2], [0.25, 0.3]], [[0.4, -0.45], [0.5, 0.55]]],
    [[0.35, -0.1], [0.6, 0.05]],
    [[0.05, 0.1], [0.9, -0.6]],
)
_NEURONS = ((0.6, 0.9), (2.0, 2.0))  # weight and bias: Nielsen, chapter 3
_EPOCHS = 300  # of training on one sample
_NEURON_RULE = "each neuron must return sigmoid(sum of weight*input + bias)"
_LOSS_RULE = "the loss must be half the square of the error"


class _WrongTraining(NamedTuple):
    """A mistake in training on one sample.

    Attributes:
        message: the explanation.
        loss: the loss as a function of the output ``y``.
        rule: the statements of the update rule; gradient descent if empty.
        fixed: the parameters that are not updated.
    """

    message: str
    loss: str = "y^2/2"
    rule: str = ""
    fixed: tuple[str, ...] = ()


_WRONG_TRAININGS = {
    "gradients not zeroed": _WrongTraining(
        "the gradients of earlier epochs are still included", rule="s = s + g; p = p - rate*s"
    ),
    "sign": _WrongTraining(WRONG_DIRECTION, rule="p = p + rate*g"),
    "factor 2": _WrongTraining(_LOSS_RULE, "y^2"),
    "error not squared": _WrongTraining(_LOSS_RULE, "y"),
    "another loss": _WrongTraining(f"this is cross-entropy: {_LOSS_RULE}", "-log(1 - y)"),
    "bias not trained": _WrongTraining("the bias is never updated", fixed=("c",)),
    "weights not trained": _WrongTraining("the weights are never updated", fixed=("w",)),
    "parameters never moved": _WrongTraining("no parameter is updated", fixed=("c", "w")),
}
#: The functions of inner neurons and of output neurons for each mistake.
_WRONG_FUNCTIONS = {
    "no activation": ("", ""),
    "no activation at the output": ("sigmoid", ""),
    "tanh instead of sigmoid": ("tanh", "tanh"),
    "no activation in inner neurons": ("", "sigmoid"),
}


def write_network(weights: Sequence[Any], function: str = "sigmoid", last: str = "sigmoid") -> str:
    """Write a network with biases as statements in cgprimer's language.

    Args:
        weights: for each layer the weights of each neuron.
        function: the activation function of inner neurons.
        last: the activation function of output neurons.

    >>> write_network([[[1.0, 2.0]]])
    'x1_1 = sigmoid(w1_1_1*x0_1 + w1_1_2*x0_2 + b1_1)'
    """
    lines = []
    for layer, rows in enumerate(weights, 1):
        outer = last if layer == len(weights) else function
        for unit, row in enumerate(rows, 1):
            terms = [f"w{layer}_{unit}_{k}*x{layer - 1}_{k}" for k in range(1, len(row) + 1)]
            lines.append(f"x{layer}_{unit} = {outer}({' + '.join(terms)} + b{layer}_{unit})")
    return "\n".join(lines)


def _name_values(network: _Network, inputs: Sequence[float]) -> dict[str, float]:
    """Return the inputs, weights and biases, keyed by their names in :func:`write_network`."""
    values = {f"x0_{k}": value for k, value in enumerate(inputs, 1)}
    for layer, (rows, offsets) in enumerate(zip(network.weights, network.biases, strict=True), 1):
        for unit, (row, offset) in enumerate(zip(rows, offsets, strict=True), 1):
            values |= {f"w{layer}_{unit}_{k}": weight for k, weight in enumerate(row, 1)}
            values[f"b{layer}_{unit}"] = offset
    return values


def _compute_outputs(network: _Network, *functions: str) -> list[list[float]]:
    """Return the outputs of a network for each sample."""
    weights = network.weights
    names = [f"x{len(weights)}_{k}" for k in range(1, len(weights[-1]) + 1)]
    graph = parse(f"{write_network(weights, *functions)}\noutput {', '.join(names)}")
    rows = [graph.evaluate(_name_values(network, inputs)) for inputs in network.inputs]
    return [[float(row[name]) for name in names] for row in rows]


def _judge_outputs(answers: Sequence[Any]) -> Part:
    """Judge the outputs of two networks."""
    for answer, network in zip(answers, (_LECTURE_NETWORK, _DISTINCT_NETWORK), strict=True):
        if is_close(answer["outputs"], _compute_outputs(network)):
            continue
        zero = [[0.0] * len(rows) for rows in network.weights]
        if is_close(answer["outputs"], _compute_outputs(network._replace(biases=zero))):
            return reject("no bias", _NEURON_RULE)
        for mistake, functions in _WRONG_FUNCTIONS.items():
            if is_close(answer["outputs"], _compute_outputs(network, *functions)):
                return reject(mistake, _NEURON_RULE)
        return reject("", "the outputs of the network are wrong")
    return accept()


_FIRST_OUTPUT = Case(
    write_network(_DISTINCT_NETWORK.weights) + "\noutput x2_1",
    _name_values(_DISTINCT_NETWORK, _DISTINCT_NETWORK.inputs[0]),
)
_PARAMETERS = {value: name for name, value in _FIRST_OUTPUT.at.items() if not name.startswith("x")}


def _compute_gradient(parameters: Sequence[float]) -> list[float] | None:
    """Return the first output's derivatives for parameters that are identified by value.

    Returns None if the values are not those of all parameters.
    """
    if sorted(parameters, key=str) != sorted(_PARAMETERS, key=str):
        return None
    derivatives = dict(zip(_FIRST_OUTPUT.names, _FIRST_OUTPUT.gradient, strict=True))
    # The first output does not depend on the parameters of the second output.
    return [derivatives.get(_PARAMETERS[value], 0.0) for value in parameters]


def _judge_parameters(answers: Sequence[Any]) -> Part:
    """Judge the parameters of a network and the gradient of its first output."""
    parameters, gradient = answers[0]["parameters"], answers[0]["grads"]
    if len(parameters) < len(_PARAMETERS):
        message = (
            f"parameters() must return every weight and every bias: expected {len(_PARAMETERS)},"
            f" got {len(parameters)}"
        )
        return reject("parameters missing", message)
    expected = _compute_gradient(parameters)
    if expected is None:
        message = "parameters() must return every weight and every bias once"
        return reject("wrong parameters", message)
    if not is_close(gradient, expected):
        message = "the gradient of the first output with respect to the parameters is wrong"
        return reject("", message)
    return accept()


def _judge_training(answers: Sequence[Any]) -> Part:
    """Judge the outputs after training, and the losses of training on several samples.

    The last two answers are about training on several samples, and about the gradients before
    training: mistakes of training are named only if these gradients are correct.
    """
    *trained, several, network = answers
    initial = {"w": INITIAL_WEIGHT, "c": INITIAL_BIAS}

    def keeps(name: str) -> bool:
        """Return whether training on several samples leaves a parameter at its initial value."""
        return any(is_close(value, initial[name], 0.0) for value in several["parameters"])

    def matches(training: _WrongTraining) -> bool:
        """Return whether a given way of training predicts the submission's outputs."""
        for (w, b), answer in zip(_NEURONS, trained, strict=True):
            text = f"y = sigmoid(w*x + c); l = {training.loss}"
            case = Case(text, {"w": w, "c": b, "x": 1.0})
            points = descend(case, RATE, _EPOCHS, training.rule, ["x", *training.fixed])
            output = case.graph.evaluate({**points[-1], "x": 1.0})["y"]
            if not is_close(answer["output"], float(output), 1e-8):
                return False
        # With the input 1, weight and bias have the same gradient: one sample cannot tell which
        # of the two is trained.
        return all(map(keeps, training.fixed))

    if matches(_WrongTraining("")):
        return judge_epochs(several)
    expected = None if isinstance(network, Failure) else _compute_gradient(network["parameters"])
    if expected and not is_close(network["grads"], expected):
        return reject("", "the training uses wrong gradients")
    for mistake, training in _WRONG_TRAININGS.items():
        if matches(training):
            return reject(mistake, training.message)
    return reject("", f"the output of the network is wrong after {_EPOCHS} epochs")


_TRAINING_CALLS = (
    *(
        DriverCall("train_network", ([[[w]]], [[b]], [[[1.0], [0.0]]], RATE, _EPOCHS))
        for w, b in _NEURONS
    ),
    DriverCall("train_network", ([[[INITIAL_WEIGHT]]], [[INITIAL_BIAS]], SAMPLES, RATE, N_EPOCHS)),
)
_DISTINCT_CALL = DriverCall("run_network", tuple(_DISTINCT_NETWORK))
NETWORK = Stage(10, "small network", ("Value", "Network", "train"), (
    Task("outputs", 3, (DriverCall("run_network", tuple(_LECTURE_NETWORK)), _DISTINCT_CALL),
         _judge_outputs),
    Task("parameters and their gradients", 3, (_DISTINCT_CALL,), _judge_parameters),
    Task("training", 4, _TRAINING_CALLS, _judge_training, (_DISTINCT_CALL,)),
), (2, 3, 4, 5, 6, 7, 10))  # fmt: skip
