"""The inner class of the lecture that extends automatic differentiation by a custom function."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.course.lecture_class.training_messages import print_losses
from cgprimer.errors import UsageError
from cgprimer.expressions import parse
from cgprimer.recording.custom_functions import Context, Function
from cgprimer.training.data import Dataset
from cgprimer.training.data.class_samples import make_classes
from cgprimer.training.loop import train
from cgprimer.training.runs import TrainingRun

_LOSS_INTERVAL = 200  # samples between two printed losses


class DoSillyWithTensor(Function):
    """A function that truncates to unsigned bytes; its backward pass adds the truncation error.

    >>> import cgprimer, numpy
    >>> x = cgprimer.Value([3.75, 4.5])
    >>> y = DoSillyWithTensor.apply(x)
    >>> y.backward(numpy.array([2.0, 3.0]))
    >>> y.data, x.grad
    (array([3., 4.]), array([2.75, 3.5 ]))
    """

    @staticmethod
    def forward(ctx: Context, x: Any) -> Any:
        """Return the truncated values as floats."""
        truncated = np.clip(np.trunc(x), 0.0, 255.0)
        ctx.save(x - truncated)
        return truncated

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        """Return the upstream gradient plus the truncation error."""
        (error,) = ctx.saved
        return grad + error


class AutogradCustomization:
    """A 2-10-2 network with ReLU and without biases, trained with and without a custom function.

    Args:
        cgp: the primer with learning rate, number of epochs and seed.
        num_samples_per_class: number of samples in each of two classes in the plane, N([3, 3], I)
            with label 1 and N([5, 5], I) with label 2.
    """

    DoSillyWithTensor = DoSillyWithTensor

    def __init__(self, cgp: Any, num_samples_per_class: int = 1000) -> None:
        self.cgp, self.num_samples_per_class = cgp, num_samples_per_class
        self._dataset: Dataset | None = None

    def gen_training_data(self) -> None:
        """Generate the training samples of both classes."""
        samples = 2 * self.num_samples_per_class
        self._dataset = make_classes(
            "lecture-planes", parse(_format_network("x")), samples=samples, seed=self.cgp.seed
        )

    def train_with_straight_autograd(self) -> TrainingRun:
        """Train the network sample by sample on unchanged inputs, and print mean losses."""
        return self._train("x")

    def train_with_extended_autograd(self) -> TrainingRun:
        """Train the network on inputs that are transformed by :class:`DoSillyWithTensor`."""
        name = DoSillyWithTensor.__name__
        register_primitive(DoSillyWithTensor)
        try:
            return self._train(f"{name}(x)")
        finally:
            unregister_primitive(name)

    def _train(self, transformed_input: str) -> TrainingRun:
        """Train the network on inputs transformed by an expression, and print mean losses."""
        if self._dataset is None:
            raise UsageError("no training data", hint="call gen_training_data() first")
        graph, random = (
            parse(_format_network(transformed_input)),
            np.random.default_rng(self.cgp.seed),
        )
        run = train(
            graph,
            self._dataset,
            start={"W1": random.normal(size=(10, 2)), "W2": random.normal(size=(2, 10))},
            optimizer="sgd",
            learning_rate=self.cgp.learning_rate,
            schedule="constant",
            batch_size=1,
            epochs=self.cgp.epochs,
            seed=self.cgp.seed,
        )
        samples = len(self._dataset)
        print_losses(
            run,
            _LOSS_INTERVAL,
            lambda step: f"epoch={(step - 1) // samples} i={(step - 1) % samples}",
        )
        return run


def _format_network(transformed_input: str) -> str:
    """Return the text of the network, whose input ``x`` is transformed by an expression."""
    return (
        "input x[2]; parameter W1[10,2], W2[2,10]; output xo\n"
        f"xs = {transformed_input}; xh = relu(W1 @ xs); xo = W2 @ xh"
    )
