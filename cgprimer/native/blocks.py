"""The engine to read: numpy, a block of samples at a time.

A plan says what is to be done (:mod:`cgprimer.native.plans.plan`); every step of it becomes a small
function here, and running a tape is calling them in order. Samples are taken in blocks, so that
all live values of a block fit into the processor's cache and memory does not grow with the
number of samples; rows of the block's buffer are reused as soon as a value is not needed any
more. What does not vary with the sample is computed once, before the first block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.engines import Array, Reduction
from cgprimer.core.methods.contract import Execute, Given
from cgprimer.core.primitives import arrays, primitive
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.arguments import UniformValues, as_columns, result_of, times_samples
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.storage import Storage, storage_of

_CACHE_BYTES = 2**18  # live values of a block: half of a typical second-level cache
_BLOCK_LIMITS = (512, 2**15)
# OpenBLAS calls further threads for more multiplications than this. For matrices as small as ours
# they gain little, and on a busy machine waiting for them takes ten times as long as the work.
_ONE_THREAD = 2**18


class Block(NamedTuple):
    """What the steps read and write: the samples of one block."""

    values: list[Any]  # for each value an array of shape (samples of the block,), or a number
    buffer: Array  # shape (rows, samples of the block); the last row is for intermediate results
    sums: Array  # shape (accumulators,)
    matrices: Mapping[int, tuple[Array, Array]]  # step -> weights and biases of an affine group


Action = Callable[[Block], None]


class NumpyExecutable:
    """A tape compiled for numpy; arguments are those of an engine's ``compile``."""

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        self.plan = plan(tape, sums=reduction == "sum")
        placed = storage_of(self.plan)
        self.row_count = placed.count + 1
        steps = range(len(self.plan.varying))
        self.actions = [_action(self.plan, placed, position) for position in steps]
        self.uniform = UniformValues(self.plan.tape, self.plan.uniform, self.plan.size, dtype)
        live = self.row_count + len(self.plan.tape.of_kind("column"))
        block = _CACHE_BYTES // (live * self.dtype.itemsize)
        self.block = min(
            max(1 << block.bit_length() - 1 if block else 1, _BLOCK_LIMITS[0]), _BLOCK_LIMITS[1]
        )

    def __call__(self, columns: Given, scalars: Given, samples: int) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.core.engines.Execute`."""
        # Domain policy is IEEE 754's: nan and infinity are values, not exceptions.
        with np.errstate(all="ignore"):
            values = self.uniform(scalars)
            collect = self._sums if self.reduction == "sum" else self._per_sample
            return collect(values, columns, samples)

    def _matrices(self, values: Sequence[Any]) -> dict[int, tuple[Array, Array]]:
        """The weights, shape (outputs, inputs), and biases, shape (outputs, 1), of each group."""
        return {
            position: (
                np.array([[values[w] for w in row] for row in group.weights], self.dtype),
                np.array([[values[b] if b >= 0 else -0.0] for b in group.biases], self.dtype),
            )
            for position, group in self.plan.groups.items()
            if isinstance(group, Affine)
        }

    def _blocks(
        self, values: list[Any], columns: Given, samples: int
    ) -> Iterator[tuple[int, int, Block]]:
        """Run the steps block by block; yields each block with its first and last sample."""
        tape = self.plan.tape
        indices = [i for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"]
        given = as_columns(columns, tape.of_kind("column"), self.dtype, samples)
        leaves = list(zip(indices, map(_read_only, given), strict=True))
        size = max(1, min(self.block, samples))
        buffer = np.empty((self.row_count, size), self.dtype)
        sums = np.zeros(len(self.plan.accumulators))
        matrices = self._matrices(values)
        for start in range(0, samples, size):
            stop = min(start + size, samples)
            for index, column in leaves:
                values[index] = column[start:stop]
            block = Block(values, buffer[:, : stop - start], sums, matrices)
            for act in self.actions:
                act(block)
            yield start, stop, block

    def _per_sample(self, values: list[Any], columns: Given, samples: int) -> dict[str, Array]:
        found = {name: np.empty(samples, self.dtype) for name in self.plan.tape.outputs}
        for start, stop, block in self._blocks(values, columns, samples):
            for name, index in self.plan.outputs.items():
                found[name][start:stop] = block.values[index]
        return found

    def _sums(self, values: list[Any], columns: Given, samples: int) -> dict[str, Array]:
        # The sums of the blocks are added in double precision and in their order: the same
        # result from run to run.
        totals = np.zeros(len(self.plan.accumulators))
        for _, _, block in self._blocks(values, columns, samples):
            totals += block.sums
        summed, outputs = self.plan.summed, self.plan.outputs
        return {
            name: totals[summed[name]]
            if name in summed
            else np.float64(times_samples(values[outputs[name]], samples))
            for name in self.plan.tape.outputs
        }


def _read_only(column: Array) -> Array:
    """A view that no primitive can write to: the samples belong to the caller."""
    view = np.asarray(column).view()
    view.flags.writeable = False
    return view


# --- a step as a function ------------------------------------------------------------------------


def _action(plan: Plan, placed: Storage, position: int) -> Action:
    """The function that does one step of a plan."""
    step = plan.varying[position]
    match step.name:
        case "sum" | "dot":
            return _total(step)
        case "outer":
            return _outer(plan.groups[position], placed)  # type: ignore[arg-type]
        case "affine":
            return _affine(plan.groups[position], position, placed)  # type: ignore[arg-type]
        case "sincos":
            return _both(step, placed)
        case "fma" | "fms" | "fnma":
            return _multiply_add(step, placed)
    return _elementwise(step, placed)


def _elementwise(step: Step, placed: Storage) -> Action:
    """A primitive on arrays."""
    name, operands, (target,) = step
    function = arrays.function(name)
    row = placed.row_of[target]

    def straight(block: Block) -> None:
        values = block.values
        values[target] = function(*[values[o] for o in operands], out=block.buffer[row])

    def copied(block: Block) -> None:
        # Copied even if the function made an array of its own: it may as well have returned its
        # argument, or an array of another type.
        values = block.values
        place, given = block.buffer[row], [values[o] for o in operands]
        place[...] = function(*given) if own else result_of(name, function, given, place.shape)
        values[target] = place

    own = primitive(name).built_in
    return straight if own and isinstance(function, np.ufunc) else copied


def _multiply_add(step: Step, placed: Storage) -> Action:
    """numpy has no such operation: the product is made in a row that is always in the cache."""
    name, (a, b, c), (target,) = step
    row = placed.row_of[target]
    combined: Any = np.add if name == "fma" else np.subtract

    def act(block: Block) -> None:
        values = block.values
        product = np.multiply(values[a], values[b], out=block.buffer[-1])
        pair = (values[c], product) if name == "fnma" else (product, values[c])
        values[target] = combined(*pair, out=block.buffer[row])

    return act


def _both(step: Step, placed: Storage) -> Action:
    """The sine and the cosine, which numpy computes one after the other."""
    _, (operand,), (sine, cosine) = step
    sine_row, cosine_row = placed.row_of[sine], placed.row_of[cosine]

    def act(block: Block) -> None:
        values = block.values
        values[sine] = np.sin(values[operand], out=block.buffer[sine_row])
        values[cosine] = np.cos(values[operand], out=block.buffer[cosine_row])

    return act


def _total(step: Step) -> Action:
    """A sum over the samples, of values or of products, which are never stored."""
    name, operands, (number,) = step
    total: Any = np.add.reduce if name == "sum" else np.dot

    def act(block: Block) -> None:
        block.sums[number] = total(*[block.values[o] for o in operands])

    return act


def _affine(group: Affine, position: int, placed: Storage) -> Action:
    """A matrix times the values of a block, a column for each sample."""
    inputs = _stacked(group.inputs, placed)
    targets = [(output, placed.row_of[output]) for output in group.outputs]
    together = _neighbours([row for _, row in targets])
    biased = any(bias >= 0 for bias in group.biases)

    def act(block: Block) -> None:
        weights, biases = block.matrices[position]
        place = block.buffer[together] if together else None
        found = _times(weights, inputs(block), place)
        if biased:
            found += biases
        for (output, row), result in zip(targets, found, strict=True):
            if place is None:
                block.buffer[row] = result
            block.values[output] = block.buffer[row]

    return act


def _outer(group: Outer, placed: Storage) -> Action:
    """All pairs of products, summed over the samples: a matrix times a transposed one."""
    left, right = _stacked(group.left, placed), _stacked(group.right, placed)
    numbers = np.array(group.numbers)
    wanted = numbers >= 0
    numbers = numbers[wanted]

    def act(block: Block) -> None:
        block.sums[numbers] = _pairs(left(block), right(block))[wanted]

    return act


def _times(weights: Array, samples: Array, out: Array | None) -> Array:
    """A matrix times the samples, some at a time; shape (outputs, samples)."""
    found = np.empty((len(weights), samples.shape[1]), samples.dtype) if out is None else out
    for part in _parts(samples.shape[1], weights.size):
        np.matmul(weights, samples[:, part], out=found[:, part])
    return found


def _pairs(left: Array, right: Array) -> Array:
    """Sums over the samples of all products of a left and a right value; shape (left, right)."""
    total = np.zeros((len(left), len(right)), left.dtype)
    for part in _parts(left.shape[1], total.size):
        total += np.matmul(left[:, part], right[:, part].T)
    return total


def _parts(samples: int, weights: int) -> list[slice]:
    """The samples of a block in parts that one thread multiplies by so many weights."""
    size = _ONE_THREAD // weights
    if size < 16:  # large matrices: threads are worth it
        return [slice(0, samples)]
    return [slice(start, start + size) for start in range(0, samples, size)]


def _stacked(values: Sequence[int], placed: Storage) -> Callable[[Block], Array]:
    """How to get at several values as one matrix, shape (values, samples of the block)."""
    together = _neighbours([placed.row_of.get(value, -1) for value in values])
    if together:
        return lambda block: block.buffer[together]
    return lambda block: np.array([block.values[value] for value in values], block.buffer.dtype)


def _neighbours(places: Sequence[int]) -> slice | None:
    """The rows as a slice, if they follow each other; they need no copying then."""
    start = places[0]
    if start < 0 or list(places) != list(range(start, start + len(places))):
        return None
    return slice(start, start + len(places))


class NumpyEngine:
    """The reference engine; always available."""

    name = "numpy"

    def unavailable(self) -> str:
        """Never: numpy is a dependency."""
        return ""

    def describe(self) -> str:
        """The version of numpy."""
        return f"version: {np.__version__}"

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Execute:
        """Prepare a tape for being run many times."""
        with collector_paused():
            return NumpyExecutable(tape, reduction=reduction, dtype=dtype)


ENGINE = NumpyEngine()
