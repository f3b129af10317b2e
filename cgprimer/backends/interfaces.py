"""Optional protocols of engines: results in arrays instead of dictionaries, and training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.tape.tape import Tape

Array = npt.NDArray[Any]
State = tuple[Array, ...]  # state of an optimizer: one array per parameter vector, and scalars


class VectorExecutable(Protocol):
    """An executable that accepts scalars as one vector and returns sums as one vector.

    A network of 25,000 weights would spend more time in dictionaries than in its samples.

    Attributes:
        scalars: names of the scalars, in the order of ``values``.
    """

    scalars: tuple[str, ...]

    def compute_sums(self, columns: Inputs, values: Array, samples: int) -> Array:
        """Compute the sums of all outputs over the samples.

        Args:
            columns: as for a call to the executable.
            values: values of the scalars; shape (scalars,).
            samples: number of samples.

        Returns:
            An array of shape (outputs,), in the order of the tape's outputs.
        """


class InPlaceExecutable(Protocol):
    """An executable that stores outputs in arrays of the caller, without copies.

    Attributes:
        dtype: dtype of the computation.
    """

    dtype: np.dtype[Any]

    def run_into(
        self, columns: Inputs, scalars: Inputs, samples: int, into: Inputs
    ) -> dict[str, Array]:
        """Run the tape and store some outputs in the given arrays.

        Args:
            columns: as for a call to the executable.
            scalars: as for a call to the executable.
            samples: number of samples.
            into: output name -> contiguous array with the dtype of the computation.
        """


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """The update rule of an optimizer, expressed as a tape.

    Attributes:
        name: name of the optimizer.
        tape: the tape, with one value per parameter in its columns, and scalars for all parameters.
        columns: parameter, gradient, then the parts of the state that are arrays.
        scalars: learning rate, then the parts of the state that are scalars.
        outputs: the updated parameter, then the updated state, arrays before scalars.
        summed: whether the gradient is the sum over a batch instead of the mean.
    """

    name: str
    tape: Tape
    columns: tuple[str, ...]
    scalars: tuple[str, ...]
    outputs: tuple[str, ...]
    summed: bool = False


class SampleBatches(NamedTuple):
    """Samples in the order of training, split into mini-batches.

    Attributes:
        columns: name -> array of shape (samples,).
        order: indices of the samples, in the order of training.
        size: samples per mini-batch; the last mini-batch may be smaller.
    """

    columns: Inputs
    order: Array
    size: int


class UpdateResult(NamedTuple):
    """Result of several updates of the parameters.

    Attributes:
        values: the parameters after the last update; shape (parameters,).
        state: state of the optimizer after the last update.
        losses: mean loss of each mini-batch, before its update.
        failed: index of the first update whose loss or gradient was not finite, or -1. Parameters
            and state are then the ones before this update, whose loss is the last one.
    """

    values: Array
    state: State
    losses: Array
    failed: int


class Trainer(Protocol):
    """Training loop that runs inside an engine."""

    def run_updates(
        self, batches: SampleBatches, values: Array, state: State, rates: Array
    ) -> UpdateResult:
        """Update the parameters once per mini-batch.

        Args:
            batches: the samples.
            values: initial values of the parameters; shape (parameters,).
            state: initial state of the optimizer.
            rates: learning rate of each update.
        """
