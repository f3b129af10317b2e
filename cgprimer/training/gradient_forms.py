"""The form in which a loss and its gradient are run: on scalars or arrays, or on vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cgprimer.core.evaluation.engines import SCALARIZE_UP_TO, get_scalarization_limit, select_engine
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.methods import WITH_SHAPES
from cgprimer.core.tape.scalarization import estimate_scalar_cost
from cgprimer.tapes import Tape
from cgprimer.training.parameter_vector import ParameterVectors

Array: TypeAlias = npt.NDArray[np.floating[Any]]
Point: TypeAlias = tuple[float, Array]  #: loss and gradient
FEW = SCALARIZE_UP_TO
_SAMPLES_PER_OPERATION = 20  # from which compiling pays: it takes 20 us for one operation


def prefers_scalars(
    tape: Tape, method: str, options: Mapping[str, Any], engine: str, samples: int | None
) -> bool:
    """Return whether training is faster if the arrays of a tape are expanded into scalars.

    Compiled scalar code of a small network takes a fraction of the time of numpy's calls; a large
    network is a few matrix products.
    """
    if tape.combines_samples or tape.custom:
        return False
    operations, _ = estimate_scalar_cost(tape)
    scalars_only = method not in WITH_SHAPES or bool(options.get("carry"))
    if engine == "auto":
        pays = operations <= FEW and _SAMPLES_PER_OPERATION * operations <= (samples or 0)
        return scalars_only or pays
    limit = get_scalarization_limit(select_engine(engine))
    return limit > 0 and (scalars_only or operations <= limit)


def create_vector_runner(
    runner: Runner, parameters: tuple[str, ...], wrt: tuple[str, ...], vectors: ParameterVectors
) -> Callable[..., Point] | None:
    """Return a function from the parameter vector to the summed loss and its gradient.

    The gradient is a vector, so that no dictionary is built for each step. The result is None
    if the engine or the method does not support vectors.
    """
    program, execute = runner.program, cast(Any, runner.execute)  # isinstance of protocols is slow
    reads = program.passes[0].reads if len(program.passes) == 1 else ()
    plain = program.seeds_only and not program.passes[0].seeds and len(reads) == len(wrt)
    if not plain or any(read.weight != 1.0 for read in reads):
        return None
    if hasattr(execute, "run_into"):  # InPlaceExecutable
        if wrt != parameters:
            return None

        def run_in_place(columns: Mapping[str, Array], values: Array, samples: int) -> Point:
            """Compute the loss and its gradient, which the engine writes directly into a vector."""
            gradient = np.empty(len(vectors), execute.dtype)
            parts = vectors.parts(gradient)
            into = {read.output: parts[read.wrt] for read in reads}
            total = execute.run_into(columns, vectors.parts(values), samples, into)[LOSS]
            return float(total), gradient

        return run_in_place
    if program.tape.has_arrays or not hasattr(execute, "compute_sums"):  # VectorExecutable
        return None
    position = {name: k for k, name in enumerate(program.tape.outputs)}
    output = {read.wrt: position[read.output] for read in reads}
    index = {name: k for k, name in enumerate(parameters)}
    order = np.array([index[name] for name in execute.scalars], np.int64)
    wanted = np.array([position[LOSS], *(output[name] for name in wrt)], np.int64)
    compute_sums = execute.compute_sums

    def run_on_vectors(columns: Mapping[str, Array], values: Array, samples: int) -> Point:
        """Compute the loss and its gradient by one engine call that accepts and returns vectors."""
        loss_and_gradient = compute_sums(columns, values[order], samples)[wanted]
        return float(loss_and_gradient[0]), loss_and_gradient[1:]

    return run_on_vectors
