"""State of layers during training: dropout masks and running statistics of batchnorm."""

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
MOMENTUM = 0.1  #: weight of a batch in the running statistics, as in PyTorch
_MAX_ELEMENTS = 2**21  # elements of masks that are sampled at a time: 16 megabytes


class Masks:
    """Dropout masks: 1 for each unit that dropout keeps, 0 for each unit that it drops.

    The masks of the k-th sample of an epoch depend only on the seed, the epoch and k. A resumed run
    therefore continues with the same masks, for every strategy and chunk size.

    Args:
        leaves: columns of a tape; the value of a leaf is the probability of keeping a unit.
        seed: random seed.
        dtype: type of the masks.

    Attributes:
        width: number of elements of all masks for one sample.
        max_samples: number of samples whose masks are sampled at a time.

    >>> draw = Masks([Leaf("column", "mask.xh", 0.5)], seed=1, dtype="float64").create_stream(0, 0)
    >>> draw(6)["mask.xh"], draw(2)["mask.xh"]
    (array([0., 0., 0., 1., 0., 1.]), array([1., 0.]))
    """

    def __init__(self, leaves: Iterable[Leaf], seed: int, dtype: str) -> None:
        self.leaves, self.seed, self.dtype = tuple(leaves), seed, dtype
        self.width = sum(prod(leaf.shape) for leaf in self.leaves)
        self.max_samples = max(1, _MAX_ELEMENTS // max(1, self.width))

    def create_stream(self, epoch: int, sample: int) -> Draw:
        """Return a function that samples the masks of the next samples of an epoch.

        Args:
            epoch: the epoch.
            sample: position of the first sample in the order of the epoch.
        """
        if not self.leaves:
            return lambda count: {}
        bits = np.random.Philox(np.random.SeedSequence([self.seed, epoch, 1]))
        blocks, within = divmod(sample * self.width, 4)  # the generator advances by blocks of four
        bits.advance(blocks)
        random = np.random.Generator(bits)
        random.random(within)

        def sample_next_masks(count: int) -> dict[str, Array]:
            """Sample the masks of the next ``count`` samples."""
            rows, begin, masks = random.random((count, self.width)), 0, {}
            for leaf in self.leaves:
                end = begin + prod(leaf.shape)
                is_kept = rows[:, begin:end] < leaf.value
                masks[leaf.name] = is_kept.astype(self.dtype).reshape(count, *leaf.shape)
                begin = end
            return masks

        return sample_next_masks

    def compute_expected_masks(self, count: int) -> dict[str, Array]:
        """Return the expected values of the masks of ``count`` samples."""
        return {f.name: np.full((count, *f.shape), f.value, self.dtype) for f in self.leaves}


class Layers:
    """The dropout and batchnorm layers of a graph with a loss, during training.

    Attributes:
        masks: leaves of the tape for dropout masks; the value of a leaf is the probability of
            keeping a unit.
        statistics: shapes of the running means and variances, keyed by name.
    """

    def __init__(
        self,
        graph: ExpressionGraph,
        graph_tape: Tape,
        loss: Loss,
        engine: Engine,
        in_numbers: bool,
        dtype: str,
    ) -> None:
        self.graph, self.graph_tape, self.loss = graph, graph_tape, loss
        self.engine, self.in_numbers, self.dtype = engine, in_numbers, dtype
        self.masks = tuple(f for f in graph_tape.leaves if parse_internal(f.name).kind == MASK)
        names = filter(is_statistic, graph_tape.names)
        self.statistics = {n: graph_tape.shapes[graph_tape.index(n)] for n in names}

    def __bool__(self) -> bool:
        """Return whether the graph has layers with state."""
        return bool(self.masks or self.statistics)

    def check_batches(self, samples: int, batch: int) -> None:
        """Check that no batch has a single sample; warn about unusual dropout probabilities.

        Raises:
            UsageError: batchnorm would have a batch with one sample.
        """
        if self.statistics and 1 in (batch, samples % batch):
            left = f": {samples} samples in batches of {batch} leave one" if batch > 1 else ""
            raise UsageError(
                "batchnorm requires at least two samples in each batch",
                hint=f"choose another batch_size (--batch-size){left}",
            )
        for leaf in self.masks:
            if leaf.value < 0.5:
                unit = parse_internal(leaf.name).variable
                warn_user(
                    f"dropout keeps a unit of {unit} with probability {leaf.value:g} only: p is the"
                    " probability of keeping a unit; in PyTorch it is that of dropping it"
                )

    def split_masks(self, masks: dict[str, Array]) -> dict[str, Array]:
        """Return masks as columns for the engine, split into scalars if the program needs them."""
        return (
            split_arrays(masks, {f.name: f.shape for f in self.masks}) if self.in_numbers else masks
        )

    def mean_loss(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> float:
        """Compute the mean loss in inference mode; ``scalars`` includes the running statistics."""
        return float(self._inference_program(columns, scalars, samples)[LOSS]) / samples

    def update_statistics(
        self,
        running: Mapping[str, Array],
        columns: Mapping[str, Array],
        scalars: Mapping[str, Any],
        samples: int,
    ) -> dict[str, Array]:
        """Return the running statistics updated with the mean and unbiased variance of a batch.

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
        """Return the running statistics before the first update: mean 0 and variance 1."""
        return {n: np.full(shape, float(_is_variance(n))) for n, shape in self.statistics.items()}

    @cached_property
    def _inference_program(self) -> Execute:
        """The compiled graph with its loss, in inference mode."""
        program_tape = attach_to_tape(tape(self.graph), self.loss)
        program_tape = scalarize(program_tape) if self.in_numbers else program_tape
        return compile_tape(self.engine, program_tape, reduction="sum", dtype=self.dtype)

    @cached_property
    def _batch_statistics_program(self) -> Execute:
        """The compiled tape whose outputs are the means and variances of a batch."""
        places = {name: self.graph_tape.index(name) for name in self.statistics}
        program_tape = remove_dead_code(replace(self.graph_tape, outputs=places))
        return compile_tape(self.engine, program_tape, reduction="none", dtype=self.dtype)


def convert_statistics(running: Mapping[str, Array]) -> dict[str, Any]:
    """Convert running statistics to the floats and arrays that a run stores."""
    return {name: convert_value(name, np.asarray(value)) for name, value in running.items()}


def _is_variance(name: str) -> bool:
    """Return whether the statistic with the given name is a variance (otherwise a mean)."""
    return parse_internal(name).kind == VARIANCE
