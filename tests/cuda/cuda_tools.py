"""Graphs, tapes and points that the tests of the engine cuda share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cgprimer
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.tape.scalarization import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_passes import substitute_seeds
from cgprimer.training.objective import Objective

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cg"))
LECTURE = cgprimer.load(EXAMPLES[0].parent / "lecture.cg")
# Examples whose loss is of one sample: a normalized batch is refused.
LEARNING = [
    path
    for path in EXAMPLES
    if (graph := cgprimer.load(path)).parameters and not graph.mode({"x": np.zeros(2)})
]


def gradient_tape(graph: ExpressionGraph) -> Tape:
    """Return the loss and its gradient on one tape of scalars that contains the seeds."""
    program = Objective(graph, method="reverse", engine="numpy").program
    return scalarize(substitute_seeds(program.tape, program.passes[0].seeds))
