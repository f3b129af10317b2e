"""What layers need while they train: masks of dropout, running statistics of batchnorm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from cgprimer.core.evaluation.engines import Engine
from cgprimer.core.evaluation.runner import compile_tape
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import Loss, attach_to_tape
from cgprimer.core.methods.derivative_program import Execute
from cgprimer.core.operations.layer_expansions import MASK, VARIANCE, is_statistic
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.core.tape.tape_passes import remove_dead_code
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.array_values import convert_value
from cgprimer.support.caller_warnings import warn_user
from cgprimer.support.value_names import parse_internal
from cgprimer.tapes import Leaf, Tape, scalarize, tape

Array = Any
Draw = Callable[[int], dict[str, Array]]
MOMENTUM = 0.1  #: how much of a batch's statistics goes into the running ones; PyTorch's too
_AT_ONCE = 2**21  # numbers of masks that are drawn for an engine: 16 megabytes


class Masks:
    """Masks of all dropouts: 1 where a unit is kept, 0 where it is dropped.

    Those of an epoch's k-th sample depend on the seed, the epoch and k alone: a run that is taken
    up again goes on with the same ones, whoever does the steps, and however many at a time.

    The leaves are columns of a tape, each with its probability as value.

    >>> draw = Masks([Leaf("column", "mask.xh", 0.5)], seed=1, dtype="float64").create_stream(0, 0)
    >>> draw(6)["mask.xh"], draw(2)["mask.xh"]
    (array([0., 0., 0., 1., 0., 1.]), array([1., 0.]))
    """

    def __init__(self, leaves: Iterable[Leaf], seed: int, dtype: str) -> None:
        self.leaves, self.seed, self.dtype = tuple(leaves), seed, dtype
        self.width = sum(prod(leaf.shape) for leaf in self.leaves)  # numbers for a sample
        self.max_samples = max(1, _AT_ONCE // max(1, self.width))  #: samples to draw for, at most

    def create_stream(self, epoch: int, sample: int) -> Draw:
        """Masks from a sample of an epoch's order on, for so many of them at each call."""
        if not self.leaves:
            return lambda count: {}
        bits = np.random.Philox(np.random.SeedSequence([self.seed, epoch, 1]))
        blocks, within = divmod(sample * self.width, 4)  # it counts in blocks of four numbers
        bits.advance(blocks)
        random = np.random.Generator(bits)
        random.random(within)

        def draw(count: int) -> dict[str, Array]:
            rows, begin, found = random.random((count, self.width)), 0, {}
            for leaf in self.leaves:
                end = begin + prod(leaf.shape)
                kept = rows[:, begin:end] < leaf.value
                found[leaf.name] = kept.astype(self.dtype).reshape(count, *leaf.shape)
                begin = end
            return found

        return draw

    def compute_expected_masks(self, count: int) -> dict[str, Array]:
        """What masks are on average."""
        return {f.name: np.full((count, *f.shape), f.value, self.dtype) for f in self.leaves}


class Layers:
    """The layers of a graph in training: of its tape, with the loss of a sample."""

    def __init__(
        self,
        graph: ExpressionGraph,
        whole: Tape,
        loss: Loss,
        engine: Engine,
        in_numbers: bool,
        dtype: str,
    ) -> None:
        self.graph, self.whole, self.loss = graph, whole, loss
        self.engine, self.in_numbers, self.dtype = engine, in_numbers, dtype
        #: Columns of the tape, each with its probability as value.
        self.masks = tuple(f for f in whole.leaves if parse_internal(f.name).kind == MASK)
        names = filter(is_statistic, whole.names)
        #: Means and variances, with their shapes.
        self.statistics = {n: whole.shapes[whole.index(n)] for n in names}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.masks or self.statistics)

    def check_batches(self, samples: int, batch: int) -> None:
        """No batch has one sample; who knows PyTorch may have meant the other probability."""
        if self.statistics and 1 in (batch, samples % batch):
            left = f": in batches of {batch}, {samples} samples leave one" if batch > 1 else ""
            raise UsageError(
                "batchnorm has a batch of one sample here, and that has no variance",
                hint=f"choose another batch_size (--batch-size){left}",
            )
        for leaf in self.masks:
            if leaf.value < 0.5:
                unit = parse_internal(leaf.name).variable
                warn_user(
                    f"dropout keeps a unit of {unit} with the probability {leaf.value:g} only: p is"
                    " the probability that it is kept; PyTorch's p is that of dropping it"
                )

    def split_masks(self, masks: dict[str, Array]) -> dict[str, Array]:
        """Masks as the columns that the engine wants."""
        return (
            split_arrays(masks, {f.name: f.shape for f in self.masks}) if self.in_numbers else masks
        )

    def mean_loss(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> float:
        """The mean loss of the graph as it is used; statistics are among the scalars."""
        return float(self._inference_program(columns, scalars, samples)[LOSS]) / samples

    def update_statistics(
        self,
        running: Mapping[str, Array],
        columns: Mapping[str, Array],
        scalars: Mapping[str, Any],
        samples: int,
    ) -> dict[str, Array]:
        """Running statistics after a batch, whose variance is divided by one less than its samples.

        Source: PyTorch, ``torch.nn.BatchNorm1d``.
        """
        batch, unbiased = (
            self._batch_statistics_program(columns, scalars, samples),
            samples / (samples - 1),
        )
        return {
            name: (1 - MOMENTUM) * before
            + MOMENTUM * (unbiased if _is_variance(name) else 1.0) * batch[name][0]
            for name, before in running.items()
        }

    def create_initial_statistics(self) -> dict[str, Array]:
        """Running statistics before the first step: mean 0 and variance 1."""
        return {n: np.full(shape, float(_is_variance(n))) for n, shape in self.statistics.items()}

    @cached_property
    def _inference_program(self) -> Execute:
        made = attach_to_tape(tape(self.graph), self.loss)
        made = scalarize(made) if self.in_numbers else made
        return compile_tape(self.engine, made, reduction="sum", dtype=self.dtype)

    @cached_property
    def _batch_statistics_program(self) -> Execute:
        places = {name: self.whole.index(name) for name in self.statistics}
        made = remove_dead_code(replace(self.whole, outputs=places))
        return compile_tape(self.engine, made, reduction="none", dtype=self.dtype)


def convert_statistics(running: Mapping[str, Array]) -> dict[str, Any]:
    """Statistics as a run has them: floats, or arrays of a shape."""
    return {name: convert_value(name, np.asarray(value)) for name, value in running.items()}


def _is_variance(name: str) -> bool:
    return parse_internal(name).kind == VARIANCE
