"""Sections of the suite: each is a function from settings to rows."""

from __future__ import annotations

from collections.abc import Callable

from ..measuring import Row
from ..settings import Settings
from . import (
    calls,
    certified_fits,
    costs,
    epochs,
    first,
    gpu,
    gradients,
    homework,
    learning,
    matrices,
    reading,
    recorded,
)

Section = Callable[[Settings], list[Row]]

SECTIONS: dict[str, Section] = {
    "gradients": gradients.gradients,
    "batch": gradients.methods_on_lecture,
    "epoch": epochs.one_sample,
    "minibatch": epochs.minibatch,
    "methods": costs.methods,
    "reverse": costs.reverse_over_primal,
    "first": first.first_gradient,
    "parse": reading.reading,
    "chain": reading.chain,
    "calls": calls.calls,
    "process": reading.processes,
    "recorded": recorded.recorded,
    "matrices": matrices.matrices,
    "learning": learning.learning,
    "fits": certified_fits.certified_fits,
    "homework": homework.homework,
    "million": first.million,
}
OPTIONAL = ("million",)
GPU_SECTIONS: dict[str, Section] = {"gradients": gpu.gradients, "bandwidth": gpu.bandwidth}

# What the times of a section are divided by.
RATIO_TO = {
    "gradients": "against cgprimer's best",
    "batch": "against numpy by hand",
    "epoch": "against cgprimer's best",
    "minibatch": "against cgprimer's best",
    "methods": "against reverse",
    "reverse": "against the primal",
    "first": "against warm",
    "parse": "ratio",
    "chain": "against linear",
    "process": "against `import click`",
    "matrices": "against cgprimer",
    "recorded": "against micrograd, torch, keeping all",
    "bandwidth": "against the copy",
}
