"""In which form a loss and its gradient run: in numbers or with arrays, from array to array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from cgprimer.core.engines import select
from cgprimer.core.losses import LOSS
from cgprimer.core.methods import WITH_SHAPES
from cgprimer.core.run import Runner
from cgprimer.core.tape.scalars import cost_of_numbers
from cgprimer.core.tape.tape import Tape
from cgprimer.training.vectors import Vectors

Array = Any
Point = tuple[float, Array]  # loss and gradient
FEW = 5_000  # operations of a graph with arrays that are done sooner one by one, compiled
_WORTH = 20  # samples for each of these: compiling one takes 20 us


def better_in_numbers(
    tape: Tape, method: str, options: Mapping[str, Any], engine: str, samples: int | None
) -> bool:
    """Whether a tape with arrays is written out in numbers, and not run with arrays.

    Measured: a small network's step takes a fraction of the time of numpy's calls, if it is
    compiled; a large one's is a few matrix products.
    """
    whole = ("batch_mean", "custom", "backward")  # of all samples; of arrays that stay together
    if engine in ("plain", "numpy") or any(
        getattr(name, "kind", "") in whole for name, _ in tape.instructions
    ):
        return False
    work, _ = cost_of_numbers(tape)
    known_alone = method not in WITH_SHAPES or options.get("carry")
    if known_alone or engine != "auto":
        return bool(known_alone) or work <= FEW or not hasattr(select(engine), "compile_arrays")
    return work <= FEW and _WORTH * work <= (samples or 0)


def at_once(
    runner: Runner, parameters: tuple[str, ...], wrt: tuple[str, ...], vectors: Vectors
) -> Callable[..., Point] | None:
    """Sums of loss and gradient from array to array, without a dictionary between.

    None where the engine, or the method, does not work like that.
    """
    program, execute = runner.program, cast(Any, runner.execute)  # isinstance of protocols is slow
    reads = program.passes[0].reads if len(program.passes) == 1 else ()
    plain = program.seeds_only and not program.passes[0].seeds and len(reads) == len(wrt)
    if not plain or any(read.weight != 1.0 for read in reads):
        return None
    if hasattr(execute, "place"):  # Placing
        if wrt != parameters:
            return None

        def placed(columns: Mapping[str, Array], values: Array, samples: int) -> Point:
            gradient = np.empty(len(vectors), execute.dtype)
            parts = vectors.parts(gradient)
            into = {read.output: parts[read.wrt] for read in reads}
            total = execute.place(columns, vectors.parts(values), samples, into)[LOSS]
            return float(total), gradient

        return placed
    if program.tape.shapes or not hasattr(execute, "totals"):  # Summing
        return None
    place = {name: k for k, name in enumerate(program.tape.outputs)}
    output = {read.wrt: place[read.output] for read in reads}
    index = {name: k for k, name in enumerate(parameters)}
    order = np.array([index[name] for name in execute.scalars], np.int64)
    wanted = np.array([place[LOSS], *(output[name] for name in wrt)], np.int64)
    totals = execute.totals

    def sums(columns: Mapping[str, Array], values: Array, samples: int) -> Point:
        found = totals(columns, values[order], samples)[wanted]
        return float(found[0]), found[1:]

    return sums
