"""Stage 10: a small network that learns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import exp
from typing import Any

from cgprimer.course.checks.check_results import Failure, Part
from cgprimer.course.checks.stages.optimizer_stage import WRONG_DIRECTION, descend
from cgprimer.course.checks.stages.stage import Case, DriverCall, Stage, Task, is_close
from cgprimer.course.checks.verdicts import accept, reject
from cgprimer.expressions import parse

_TAUGHT = (  # the lecture's 4-2-1 network
    [[[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], [[0.9, 0.35]]],
    [[0.05, 0.05], [0.07]],
    [[0.2, -0.4, 0.6, 0.8], [1.0, 0.5, -0.25, 0.75]],
)
_DISTINCT = (
    [[[0.15, -0.2], [0.25, 0.3]], [[0.4, -0.45], [0.5, 0.55]]],
    [[0.35, -0.1], [0.6, 0.05]],
    [[0.05, 0.1], [0.9, -0.6]],
)
_NIELSEN = ((0.6, 0.9), (2.0, 2.0))
_EPOCHS, _LEARNING = 300, 0.15
_NEURON = "each neuron gives sigmoid(sum of weight*input + bias)"
_TRAININGS: dict[str, tuple[Any, ...]] = {  # message; loss, update rule, fixed parameters
    "gradients not zeroed": ("the gradients of earlier epochs are still there", "y^2/2",
                             "s = s + g; p = p - rate*s"),
    "sign": (WRONG_DIRECTION, "y^2/2", "p = p + rate*g"),
    "factor 2": ("the loss is half the square of the error", "y^2"),
    "error not squared": ("the loss is half the square of the error", "y"),
    "another loss": ("this is cross-entropy: the loss is half the square of the error",
                     "-log(1 - y)"),
    "bias not trained": ("the bias stays as it is", "y^2/2", "", "c"),
    "weights not trained": ("the weights stay as they are", "y^2/2", "", "w"),
    "parameters never moved": ("the network is what it was before", "y^2/2", "", "c", "w"),
}  # fmt: skip
_OTHERS = {  # functions of neurons, and of those of the last layer
    "no activation": ("", ""),
    "no activation at the output": ("sigmoid", ""),
    "tanh instead of sigmoid": ("tanh", "tanh"),
    "no activation inside": ("", "sigmoid"),
}


def network_text(weights: Sequence[Any], function: str = "sigmoid", last: str = "sigmoid") -> str:
    """A network as statements of the language, biases included.

    >>> network_text([[[1.0, 2.0]]])
    'x1_1 = sigmoid(w1_1_1*x0_1 + w1_1_2*x0_2 + b1_1)'
    """
    lines = []
    for layer, rows in enumerate(weights, 1):
        outer = last if layer == len(weights) else function
        for unit, row in enumerate(rows, 1):
            terms = [f"w{layer}_{unit}_{k}*x{layer - 1}_{k}" for k in range(1, len(row) + 1)]
            lines.append(f"x{layer}_{unit} = {outer}({' + '.join(terms)} + b{layer}_{unit})")
    return "\n".join(lines)


def _points(
    weights: Sequence[Any], biases: Sequence[Any], inputs: Sequence[float]
) -> dict[str, float]:
    at = {f"x0_{k}": value for k, value in enumerate(inputs, 1)}
    for layer, (rows, offsets) in enumerate(zip(weights, biases, strict=True), 1):
        for unit, (row, offset) in enumerate(zip(rows, offsets, strict=True), 1):
            at |= {f"w{layer}_{unit}_{k}": weight for k, weight in enumerate(row, 1)}
            at[f"b{layer}_{unit}"] = offset
    return at


def _outputs(network: Any, *functions: str) -> list[list[float]]:
    weights, biases, inputs = network
    names = [f"x{len(weights)}_{k}" for k in range(1, len(weights[-1]) + 1)]
    graph = parse(f"{network_text(weights, *functions)}\noutput {', '.join(names)}")
    rows = [graph.evaluate(_points(weights, biases, row)) for row in inputs]
    return [[float(row[name]) for name in names] for row in rows]


def _forward(answers: Sequence[Any]) -> Part:
    for answer, network in zip(answers, (_TAUGHT, _DISTINCT), strict=True):
        weights, _, inputs = network
        if is_close(answer["outputs"], _outputs(network)):
            continue
        zero = [[0.0] * len(rows) for rows in weights]
        if is_close(answer["outputs"], _outputs((weights, zero, inputs))):
            return reject("no bias", _NEURON)
        for mistake, functions in _OTHERS.items():
            if is_close(answer["outputs"], _outputs(network, *functions)):
                return reject(mistake, _NEURON)
        return reject("", "the outputs are not those of this network")
    return accept()


_WANTED = Case(network_text(_DISTINCT[0]) + "\noutput x2_1",
               _points(*_DISTINCT[:2], _DISTINCT[2][0]))  # fmt: skip


def _slopes(parameters: Sequence[float]) -> list[float] | None:
    """Return the derivatives of the first output by parameters; None for other parameters."""
    names = {value: name for name, value in _WANTED.at.items() if not name.startswith("x")}
    if sorted(parameters, key=str) != sorted(names, key=str):
        return None
    slopes = dict(zip(_WANTED.names, _WANTED.gradient, strict=True))
    # Parameters of the second output do not move the first.
    return [slopes.get(names[value], 0.0) for value in parameters]


def _parameters(answers: Sequence[Any]) -> Part:
    found, grads = answers[0]["parameters"], answers[0]["grads"]
    wanted = sum(not name.startswith("x") for name in _WANTED.at)
    if len(found) < wanted:
        says = f"{len(found)} parameters: every weight and every bias is one"
        return reject("parameters missing", says)
    slopes = _slopes(found)
    if slopes is None:
        return reject("wrong parameters", "every weight and every bias, each once")
    if not is_close(grads, slopes):
        return reject("", "the gradient of the first output by its parameters is wrong")
    return accept()


def _learned(answers: Sequence[Any]) -> Part:
    """Judge where training ends and the losses that it returns.

    The last two answers are of several samples and, to see whether gradients are right, of the
    network before training: mistakes of training can be told from right gradients only.
    """
    *trained, several, network = answers

    def ends(loss: str = "y^2/2", rule: str = "", *fixed: str) -> bool:
        for (w, b), answer in zip(_NIELSEN, trained, strict=True):
            case = Case(f"y = sigmoid(w*x + c); l = {loss}", {"w": w, "c": b, "x": 1.0})
            rows = descend(case, _LEARNING, _EPOCHS, rule, ["x", *fixed])
            output = case.graph.evaluate({**rows[-1], "x": 1.0})["y"]
            if not is_close(answer["output"], float(output), 1e-8):
                return False
        return True

    if ends():
        return _of_samples(several)
    slopes = None if isinstance(network, Failure) else _slopes(network["parameters"])
    if slopes and not is_close(network["grads"], slopes):
        return reject("", "training follows gradients that are wrong")
    for mistake, (says, *how) in _TRAININGS.items():
        if ends(*how):
            return reject(mistake, says)
    return reject("", f"after {_EPOCHS} epochs the network is not where it should be")


# --- epochs of several samples --------------------------------------------------------------------

_SAMPLES = (((1.0,), (0.0,)), ((-0.5,), (1.0,)), ((2.0,), (0.25,)))
_SHORT = 12  # epochs
_NEURON_AT = (0.6, 0.9)
_SAMPLE_BY_SAMPLE = "an epoch takes a step after each sample, one after the other"
_EPOCHS_WRONG: dict[str, str] = {
    "one step per epoch": f"{_SAMPLE_BY_SAMPLE}; this is a step for all of them",
    "gradients not zeroed": "the gradients of the samples before are still there: zero them before"
    " each sample",
    "only the first sample": f"{_SAMPLE_BY_SAMPLE}; this is trained on the first one",
    "only the last sample": f"{_SAMPLE_BY_SAMPLE}; this is trained on the last one",
    "last sample left out": f"{_SAMPLE_BY_SAMPLE}; the last one is left out",
    "first sample left out": f"{_SAMPLE_BY_SAMPLE}; the first one is left out",
}


def _epochs(way: str = "") -> tuple[float, list[list[float]], list[list[float]]]:
    """Return the weight and the losses of one neuron that is trained on several samples.

    Returns:
        The weight after the last epoch; by epoch the losses of the samples before their steps; and
        those at the end of the epoch.
    """
    weight, bias = _NEURON_AT
    used = {
        "only the first sample": _SAMPLES[:1], "only the last sample": _SAMPLES[-1:],
        "last sample left out": _SAMPLES[:-1], "first sample left out": _SAMPLES[1:],
    }.get(way, _SAMPLES)  # fmt: skip
    running, after = [], []
    for _ in range(_SHORT):
        slope, offset, losses = 0.0, 0.0, []
        for (x,), (target,) in used:
            output = 1 / (1 + exp(-(weight * x + bias)))
            losses.append((output - target) ** 2 / 2)
            delta = (output - target) * output * (1 - output)
            keeps = way in ("one step per epoch", "mean step per epoch", "gradients not zeroed")
            slope, offset = (slope * keeps + delta * x, offset * keeps + delta)
            if not way.endswith("per epoch"):
                weight, bias = weight - _LEARNING * slope, bias - _LEARNING * offset
        if way.endswith("per epoch"):
            rate = _LEARNING / (len(used) if way.startswith("mean") else 1)
            weight, bias = weight - rate * slope, bias - rate * offset
        running.append(losses)
        outputs = [1 / (1 + exp(-(weight * x + bias))) for (x,), _ in used]
        after.append([(o - t) ** 2 / 2 for o, (_, (t,)) in zip(outputs, used, strict=True)])
    return weight, running, after


def _of_samples(answer: Any) -> Part:
    """Judge an epoch of several samples: the steps, then the losses that are returned."""
    weight, running, after = _epochs()
    found, losses = answer["parameters"], answer["losses"]
    if not any(is_close(value, weight, 1e-8) for value in found):
        for way in ("mean step per epoch", *_EPOCHS_WRONG):
            if any(is_close(value, _epochs(way)[0], 1e-8) for value in found):
                mistake = way.replace("mean", "one")
                return reject(mistake, _EPOCHS_WRONG[mistake])
        return reject("", "after several samples the network is not where it should be:"
                     f" {_SAMPLE_BY_SAMPLE}")  # fmt: skip
    if len(losses) != _SHORT:
        if len(losses) == _SHORT * len(_SAMPLES):
            return reject("loss of each step", "train returns one loss for each epoch: sum over the"
                         " samples")  # fmt: skip
        return reject("losses missing", "train returns the loss of every epoch")
    if any(isinstance(loss, str) for loss in losses):
        return reject("losses are no numbers", "a loss is data, not a value")
    if any(_proportional(losses, [sum(row) for row in rows]) for rows in (running, after)):
        return accept()
    return reject(*_wrong_losses(losses, running, after))


def _proportional(numbers: Sequence[float], expected: Sequence[float]) -> bool:
    """Return whether numbers are expected ones times a positive factor: sums or means."""
    factor = numbers[0] / expected[0]
    return factor > 0 and is_close(list(numbers), [factor * value for value in expected], 1e-8)


def _wrong_losses(
    losses: Sequence[float], running: Sequence[Sequence[float]], after: Sequence[Sequence[float]]
) -> tuple[str, str]:
    """Return the mistake in the losses of the epochs, and a sentence."""
    whole = "the loss of an epoch is the sum of the losses of all samples"
    for mistake, part in (
        ("loss of the last sample", slice(-1, None)),
        ("loss of the first sample", slice(0, 1)),
        ("last sample left out of the loss", slice(0, -1)),
        ("first sample left out of the loss", slice(1, None)),
    ):
        if any(_proportional(losses, [sum(row[part]) for row in of]) for of in (running, after)):
            return mistake, whole
    for of in (running, after):
        sums = [sum(row) for row in of]
        if _proportional(losses, list(accumulate(sums))):
            return "losses add up", "the losses of earlier epochs are in it: begin each epoch at 0"
    return "wrong losses", f"these are not the losses of the epochs: {whole}"


_TRAINED = (
    *(
        DriverCall("train_network", ([[[w]]], [[b]], [[[1.0], [0.0]]], _LEARNING, _EPOCHS))
        for w, b in _NIELSEN
    ),
    DriverCall(
        "train_network", ([[[_NEURON_AT[0]]]], [[_NEURON_AT[1]]], _SAMPLES, _LEARNING, _SHORT)
    ),
)
_SLOPES = DriverCall("run_network", _DISTINCT)
NETWORK = Stage(10, "small network", ("Value", "Network", "train"), (
    Task("outputs", 3, (DriverCall("run_network", _TAUGHT), _SLOPES), _forward),
    Task("parameters and their gradients", 3, (_SLOPES,), _parameters),
    Task("training", 4, _TRAINED, _learned, (_SLOPES,)),
), (2, 3, 4, 5, 6, 7, 10))  # fmt: skip
