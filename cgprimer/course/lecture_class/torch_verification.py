"""Is the training right? The same steps by torch, where it is installed."""

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
_REPEATED = 2000  # steps that torch repeats; 40,000 would take it longer than a lecture waits


def network(option: str, inputs: int, seed: int) -> tuple[ExpressionGraph, dict[str, float]]:
    """The network of an option and its start, uniform as torch's linear layers begin.

    Raises:
        UsageError: there is no such option.
    """
    if option not in OPTIONS:
        raise UsageError(
            f"there is no option {option!r}", hint=f"choose one of {', '.join(OPTIONS)}"
        )
    output, hidden = OPTIONS[option]
    sizes = [inputs, *hidden, 1]
    graph = mlp(sizes, activation="relu", output=output, scalars=True)
    random, start = np.random.default_rng(seed), dict[str, float]()
    for name in graph.parameters:  # the layer's number stands in its name: w1_2_3, b1_2
        within = 1 / sqrt(sizes[int(name[1:].partition("_")[0]) - 1])
        start[name] = float(random.uniform(-within, within))
    return graph, start


def verify(run: TrainingRun, dataset: Dataset, option: str, rate: float, size: int) -> str:
    """Repeat the first steps of a run with ``torch.nn``; how far the losses are apart, in words."""
    try:
        import torch
        from torch import nn
    except ImportError:
        return "torch is not installed: only cgprimer's own engines ran, nothing verifies them"
    graph = run.graph
    assert graph is not None
    x = torch.tensor(np.stack([dataset.inputs[n] for n in graph.inputs], axis=1))
    y = torch.tensor(np.asarray(dataset.targets[graph.outputs[0]])[:, None])
    inputs, hidden = x.shape[1], OPTIONS[option][1]
    parts: list[Any] = [nn.Linear(inputs, 1), nn.Sigmoid()]
    if hidden:
        parts = [nn.Linear(inputs, *hidden), nn.ReLU(), nn.Linear(*hidden, 1)]
    net = nn.Sequential(*parts).double()
    with torch.no_grad():
        for number, layer in enumerate((p for p in parts if isinstance(p, nn.Linear)), start=1):
            own = [n for n in graph.parameters if n[1:].partition("_")[0] == str(number)]
            for kind, into in ("w", layer.weight), ("b", layer.bias):
                values = [run.start[n] for n in own if n[0] == kind]
                into.copy_(torch.tensor(values, dtype=torch.float64).reshape(into.shape))
    loss = nn.MSELoss(reduction="sum")
    steps, apart = min(_REPEATED, run.steps), 0.0
    for step in range(steps):
        rows = slice(step * size, (step + 1) * size)
        error = loss(net(x[rows]), y[rows])
        net.zero_grad()
        error.backward()
        with torch.no_grad():  # torch.optim would take a second to import
            for parameter in net.parameters():
                parameter.sub_(parameter.grad, alpha=rate)
        if step % run.steps_apart == 0:
            ours = run.step_losses[step // run.steps_apart]
            apart = max(apart, abs(error.item() / size - ours) / max(ours, 1e-300))
    return (
        f"torch {torch.__version__} repeated the first {steps:,} iterations with torch.nn: the"
        f" losses differ by at most {apart:.1e} of themselves"
    )
