"""Training of one neuron on several samples, and mistakes in its updates and reported losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, Literal

from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.stage import is_close
from cgprimer.course.checks.verdicts import accept, reject
from cgprimer.expressions import parse
from cgprimer.tapes import DerivativeProgram, differentiate, run
from cgprimer.tapes import tape as tape_of

SAMPLES = (((1.0,), (0.0,)), ((-0.5,), (1.0,)), ((2.0,), (0.25,)))
N_EPOCHS = 12
RATE = 0.15
INITIAL_WEIGHT, INITIAL_BIAS = 0.6, 0.9
_TOLERANCE = 1e-8
_UPDATE_PER_SAMPLE = "an epoch updates the parameters after each sample"
Losses = list[list[float]]  #: for each epoch the loss of each sample


@dataclass(frozen=True)
class NeuronTraining:
    """A way to train one neuron on several samples, correct by default.

    Attributes:
        samples: the indices of the samples that are used.
        zeroes: whether gradients are zeroed before each sample.
        reduction: the reduction of the gradients of an epoch if the parameters are updated once
            per epoch; None if they are updated after each sample.
    """

    samples: tuple[int, ...] = (0, 1, 2)
    zeroes: bool = True
    reduction: Literal["sum", "mean"] | None = None

    def run(self) -> tuple[float, Losses, Losses]:
        """Train the neuron.

        Returns:
            The weight after the last epoch, the losses of the samples before their updates, and
            the losses of the samples at the end of each epoch.
        """
        parameters = [INITIAL_WEIGHT, INITIAL_BIAS]
        before, after = [], []
        for _ in range(N_EPOCHS):
            total, losses = [0.0, 0.0], []
            for sample in self.samples:
                loss, gradient = _differentiate_loss(parameters, sample)
                losses.append(loss)
                is_kept = not self.zeroes or self.reduction is not None
                total = [g + is_kept * t for g, t in zip(gradient, total, strict=True)]
                if self.reduction is None:
                    parameters = [p - RATE * g for p, g in zip(parameters, total, strict=True)]
            if self.reduction is not None:
                rate = RATE / (len(self.samples) if self.reduction == "mean" else 1)
                parameters = [p - rate * g for p, g in zip(parameters, total, strict=True)]
            before.append(losses)
            after.append([_differentiate_loss(parameters, sample)[0] for sample in self.samples])
        return parameters[0], before, after


@cache
def _build_program() -> DerivativeProgram:
    """Return the reverse-mode program of the loss of the neuron."""
    graph = parse("input x, t; y = sigmoid(w*x + c); l = (y - t)^2/2; output l")
    return differentiate(tape_of(graph), wrt=("w", "c"), method="reverse")


def _differentiate_loss(parameters: Sequence[float], sample: int) -> tuple[float, list[float]]:
    """Return the loss of one sample and its gradient with respect to weight and bias."""
    program = _build_program()
    (derivative_pass,) = program.passes
    (x,), (target,) = SAMPLES[sample]
    point = {"w": parameters[0], "c": parameters[1], "x": x, "t": target}
    outputs = run(program.tape, point | dict(derivative_pass.seeds))
    return outputs["l"], [outputs[read.output] for read in derivative_pass.reads]


#: The mistakes in the updates: training and message.
_WRONG_TRAININGS = {
    "one step per epoch": (
        (NeuronTraining(reduction="mean"), NeuronTraining(reduction="sum")),
        f"{_UPDATE_PER_SAMPLE}; here there is one update for all samples",
    ),
    "gradients not zeroed": (
        (NeuronTraining(zeroes=False),),
        "gradients must be zeroed before each sample; here they include those of earlier samples",
    ),
    "only the first sample": (
        (NeuronTraining((0,)),), f"{_UPDATE_PER_SAMPLE}; here only the first sample is used",
    ),
    "only the last sample": (
        (NeuronTraining((2,)),), f"{_UPDATE_PER_SAMPLE}; here only the last sample is used",
    ),
    "last sample left out": (
        (NeuronTraining((0, 1)),), f"{_UPDATE_PER_SAMPLE}; here the last sample is left out",
    ),
    "first sample left out": (
        (NeuronTraining((1, 2)),), f"{_UPDATE_PER_SAMPLE}; here the first sample is left out",
    ),
}  # fmt: skip


def judge_epochs(answer: Any) -> Part:
    """Judge training on several samples: first the updates, then the returned losses."""
    weight, before, after = NeuronTraining().run()
    parameters, losses = answer["parameters"], answer["losses"]

    def has_weight(expected: float) -> bool:
        """Return whether one of the parameters is the expected weight."""
        return any(is_close(value, expected, _TOLERANCE) for value in parameters)

    if not has_weight(weight):
        for mistake, (trainings, message) in _WRONG_TRAININGS.items():
            if any(has_weight(training.run()[0]) for training in trainings):
                return reject(mistake, message)
        message = (
            f"the parameters are wrong after training on several samples: {_UPDATE_PER_SAMPLE}"
        )
        return reject("", message)
    if len(losses) == N_EPOCHS * len(SAMPLES):
        message = "train must return one loss per epoch: the sum over the samples"
        return reject("loss of each step", message)
    if len(losses) != N_EPOCHS:
        return reject("losses missing", "train must return the loss of each epoch")
    if any(isinstance(loss, str) for loss in losses):
        return reject("losses are not numbers", "a loss must be a number: return its data")
    if any(_is_proportional(losses, [sum(row) for row in rows]) for rows in (before, after)):
        return accept()
    return reject(*_explain_losses(losses, before, after))


def _is_proportional(numbers: Sequence[float], expected: Sequence[float]) -> bool:
    """Return whether numbers are a positive multiple of the expected values."""
    factor = numbers[0] / expected[0]
    scaled = [factor * value for value in expected]
    return factor > 0 and is_close(list(numbers), scaled, _TOLERANCE)


def _explain_losses(losses: Sequence[float], before: Losses, after: Losses) -> tuple[str, str]:
    """Return the name of the mistake in the loss per epoch, and its explanation."""
    rule = "the loss of an epoch is the sum of the losses of all samples"
    for mistake, part in (
        ("loss of the last sample", slice(-1, None)),
        ("loss of the first sample", slice(0, 1)),
        ("last sample left out of the loss", slice(0, -1)),
        ("first sample left out of the loss", slice(1, None)),
    ):
        if any(
            _is_proportional(losses, [sum(row[part]) for row in rows]) for rows in (before, after)
        ):
            return mistake, rule
    for rows in (before, after):
        if _is_proportional(losses, list(accumulate(sum(row) for row in rows))):
            message = "each loss includes those of earlier epochs: start each epoch at 0"
            return "losses add up", message
    return "wrong losses", f"the losses of the epochs are wrong: {rule}"
