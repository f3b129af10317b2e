"""Optional abilities of engines: sums from arrays to arrays, and training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.tape.tape import Tape

Array = npt.NDArray[Any]
State = tuple[Array, ...]  # of an optimizer: arrays of numbers for each parameter, and numbers


class VectorExecutable(Protocol):
    """An executable that also takes scalars and gives sums as arrays.

    A network of 25,000 weights would spend more time in dictionaries than in its samples.

    Attributes:
        scalars: names, in the order of ``values``.
    """

    scalars: tuple[str, ...]

    def compute_sums(self, columns: Inputs, values: Array, samples: int) -> Array:
        """Return the sums of all outputs.

        Args:
            columns: as for a call.
            values: of the scalars; shape (scalars,).
            samples: how many there are.

        Returns:
            An array of shape (outputs,), in the order of the tape's outputs.
        """


class InPlaceExecutable(Protocol):
    """An executable that writes sums into arrays of the caller, without copies.

    Attributes:
        dtype: of the computation.
    """

    dtype: np.dtype[Any]

    def run_into(
        self, columns: Inputs, scalars: Inputs, samples: int, into: Inputs
    ) -> dict[str, Array]:
        """Run the tape, and write some outputs into contiguous arrays of the computation's type."""


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """The update rule of an optimizer, as a tape over the parameters.

    Attributes:
        name: of the optimizer.
        tape: a value per parameter in its columns, one for all in its scalars.
        columns: parameter, gradient, then the parts of the state that are arrays.
        scalars: learning rate, then the parts of the state that are numbers.
        after: the outputs: the parameter, then the state's parts, arrays before numbers.
        summed: whether the gradient is that of the sum over a batch, and not of the mean.
    """

    name: str
    tape: Tape
    columns: tuple[str, ...]
    scalars: tuple[str, ...]
    after: tuple[str, ...]
    summed: bool = False


class Trainer(Protocol):
    """Training steps that run inside an engine."""

    def epoch(
        self,
        columns: Inputs,
        order: Array,
        batch: int,
        values: Array,
        state: State,
        rates: Array,
    ) -> tuple[Array, State, Array, int]:
        """Run steps over samples in a given order.

        Args:
            columns: an array of shape (samples,) for each column of the tape.
            order: indices of the samples, in the order of the epoch.
            batch: samples per step; the last step may have fewer.
            values: of the parameters; shape (parameters,).
            state: the optimizer's.
            rates: the learning rate of each step.

        Returns:
            Values and state after the last step; the mean loss of each step's batch, before the
            step; and the first step whose loss or gradient was not finite, or -1. Values and state
            are then those before that step, and the losses end with it.
        """
