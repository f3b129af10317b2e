"""``cgprimer plot KIND``: a command for each function of :mod:`cgprimer.plot`, loaded on demand."""

from __future__ import annotations

import click

from cgprimer.cli import LazyGroup

_KINDS = {
    "activations": "Plot the distributions of activations, with and without batch normalization.",
    "batches": "Plot the loss surface of each mini-batch, and the path of SGD.",
    "boundary": "Plot the predictions of a run over the plane of its two inputs.",
    "cost": "Plot the operations per gradient against the number of parameters, for each method.",
    "descent": "Plot the losses of Levenberg-Marquardt and of optimizers from the same start.",
    "error": "Plot the error of finite differences against the step size.",
    "function": "Plot a function of one variable, its derivatives, and the tangent at a point.",
    "gradients": "Plot the norms of adjoints by depth: vanishing and exploding gradients.",
    "loss": "Plot the training and validation losses of one or several runs.",
    "noise": "Plot the paths of full-batch and mini-batch gradient descent near a local minimum.",
    "parameters": "Plot the parameters of one or several runs over time, with their true values.",
    "points": "Plot a variable and its derivatives at the points of a range.",
    "surface": "Plot the mean loss, or a function, over two parameters.",
    "swell": "Plot the size of symbolic derivatives against the depth of nested functions.",
    "variance": "Plot the variance of a mini-batch gradient against the batch size.",
    "workers": "Plot the timeline, the losses or the staleness of training with multiple workers.",
}  # name of a module in cgprimer/cli/plots -> contents of the plot


@click.group(cls=LazyGroup, helps=_KINDS, modules="cgprimer.cli.plots.plot_{}")
def command() -> None:
    """Plot losses, parameters, surfaces, errors, costs and functions for slides.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot cost -o cost.svg
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.pdf --dark

    Each kind of plot has its own options: cgprimer plot error --help
    """
