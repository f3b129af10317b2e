"""The lecture's inner class that extends automatic differentiation by a function of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.course.lecture_class.training_messages import tell_losses
from cgprimer.errors import UsageError
from cgprimer.expressions import parse
from cgprimer.recording.custom_functions import Context, Function
from cgprimer.training.data import Dataset, make_classes
from cgprimer.training.loop import train
from cgprimer.training.runs import TrainingRun

_OFTEN = 200  # samples from one line to the next


class DoSillyWithTensor(Function):
    """Truncates to an unsigned byte; its backward pass adds the error that this made.

    >>> import cgprimer, numpy
    >>> x = cgprimer.Value([3.75, 4.5])
    >>> y = DoSillyWithTensor.apply(x)
    >>> y.backward(numpy.array([2.0, 3.0]))
    >>> y.data, x.grad
    (array([3., 4.]), array([2.75, 3.5 ]))
    """

    @staticmethod
    def forward(ctx: Context, x: Any) -> Any:
        """The bytes, as numbers again."""
        kept = np.clip(np.trunc(x), 0.0, 255.0)
        ctx.save(x - kept)
        return kept

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        """The adjoint of the result, and what was cut off."""
        (error,) = ctx.saved
        return grad + error


class AutogradCustomization:
    """A network 2-10-2 with ReLU and without biases, trained with and without a silly function.

    Args:
        cgp: the primer that has the learning rate, the epochs and the seed.
        num_samples_per_class: of two classes in the plane, N([3, 3], I) and N([5, 5], I), with
            the labels 1 and 2.
    """

    DoSillyWithTensor = DoSillyWithTensor

    def __init__(self, cgp: Any, num_samples_per_class: int = 1000) -> None:
        self.cgp, self.num_samples_per_class = cgp, num_samples_per_class
        self._dataset: Dataset | None = None

    def gen_training_data(self) -> None:
        """Make the samples."""
        many = 2 * self.num_samples_per_class
        self._dataset = make_classes(
            "lecture-planes", parse(_network("x")), samples=many, seed=self.cgp.seed
        )

    def train_with_straight_autograd(self) -> TrainingRun:
        """Train the network, a sample at a time; prints mean losses."""
        return self._train("x")

    def train_with_extended_autograd(self) -> TrainingRun:
        """The same with each sample passed through :class:`DoSillyWithTensor` first."""
        name = DoSillyWithTensor.__name__
        register_primitive(DoSillyWithTensor)
        try:
            return self._train(f"{name}(x)")
        finally:
            unregister_primitive(name)

    def _train(self, passed: str) -> TrainingRun:
        if self._dataset is None:
            raise UsageError("there are no data yet", hint="call gen_training_data() first")
        graph, random = parse(_network(passed)), np.random.default_rng(self.cgp.seed)
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
        tell_losses(
            run, _OFTEN, lambda step: f"epoch={(step - 1) // samples} i={(step - 1) % samples}"
        )
        return run


def _network(passed: str) -> str:
    return (
        "input x[2]; parameter W1[10,2], W2[2,10]; output xo\n"
        f"xs = {passed}; xh = relu(W1 @ xs); xo = W2 @ xh"
    )
