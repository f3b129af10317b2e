"""Verification of a training run by torch, which repeats the first iterations."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.networks import mlp
from cgprimer.training.data import Dataset
from cgprimer.training.runs import TrainingRun

OPTIONS = {"one_neuron": ("sigmoid", ()), "multi_neuron": ("none", (2,))}
_MAX_ITERATIONS = 2000  # that torch repeats: 40,000 would take too long for a lecture


def create_network(option: str, inputs: int, seed: int) -> tuple[ExpressionGraph, dict[str, float]]:
    """Create the network for an option, with start values sampled as in torch's linear layers.

    Raises:
        UsageError: the option is unknown.
    """
    if option not in OPTIONS:
        raise UsageError(f"unknown option {option!r}", hint=f"choose one of {', '.join(OPTIONS)}")
    output, hidden = OPTIONS[option]
    sizes = [inputs, *hidden, 1]
    graph = mlp(sizes, activation="relu", output=output, scalars=True)
    random, start = np.random.default_rng(seed), dict[str, float]()
    for name in graph.parameters:  # names start with the index of the layer: w1_2_3, b1_2
        bound = 1 / sqrt(sizes[int(name[1:].partition("_")[0]) - 1])
        start[name] = float(random.uniform(-bound, bound))
    return graph, start


def verify_with_torch(
    run: TrainingRun, dataset: Dataset, option: str, rate: float, size: int
) -> str:
    """Repeat the first iterations of a run with ``torch.nn``, and describe the differences.

    Args:
        run: the training run.
        dataset: its samples.
        option: the option that :func:`create_network` received.
        rate: the learning rate.
        size: the batch size.

    Returns:
        A sentence about the difference of the losses.
    """
    try:
        import torch
        from torch import nn
    except ImportError:
        return "torch is not installed: the training was not verified"
    graph = run.graph
    assert graph is not None
    x = torch.tensor(np.stack([dataset.inputs[n] for n in graph.inputs], axis=1))
    y = torch.tensor(np.asarray(dataset.targets[graph.outputs[0]])[:, None])
    net = _create_torch_network(run, option)
    loss = nn.MSELoss(reduction="sum")
    iterations, max_difference = min(_MAX_ITERATIONS, run.steps), 0.0
    for iteration in range(iterations):
        rows = slice(iteration * size, (iteration + 1) * size)
        error = loss(net(x[rows]), y[rows])
        net.zero_grad()
        error.backward()
        with torch.no_grad():  # importing torch.optim would take a second
            for parameter in net.parameters():
                parameter.sub_(parameter.grad, alpha=rate)
        if iteration % run.steps_apart == 0:
            expected = run.step_losses[iteration // run.steps_apart]
            difference = abs(error.item() / size - expected) / max(expected, 1e-300)
            max_difference = max(max_difference, difference)
    return (
        f"torch {torch.__version__} repeated the first {iterations:,} iterations with torch.nn:"
        f" the relative difference of the losses is at most {max_difference:.1e}"
    )


def _create_torch_network(run: TrainingRun, option: str) -> Any:
    """Create a torch module with the network and the start values of a training run."""
    import torch
    from torch import nn

    assert run.graph is not None
    inputs, hidden = len(run.graph.inputs), OPTIONS[option][1]
    modules: list[Any] = [nn.Linear(inputs, 1), nn.Sigmoid()]
    if hidden:
        modules = [nn.Linear(inputs, *hidden), nn.ReLU(), nn.Linear(*hidden, 1)]
    network = nn.Sequential(*modules).double()
    layers = (module for module in modules if isinstance(module, nn.Linear))
    with torch.no_grad():
        for index, layer in enumerate(layers, start=1):
            names = [n for n in run.graph.parameters if n[1:].partition("_")[0] == str(index)]
            for kind, target in ("w", layer.weight), ("b", layer.bias):
                values = [run.start[name] for name in names if name[0] == kind]
                target.copy_(torch.tensor(values, dtype=torch.float64).reshape(target.shape))
    return network
