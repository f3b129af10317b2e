"""Training epochs that stay on the GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.engines import Array, Executable, UpdateRule
from cgprimer.core.tape.passes import optimize
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError, UsageError
from cgprimer.native.blocks import ENGINE as NUMPY
from cgprimer.native.cuda.columns import DeviceColumn, Piece, Shard, resident_pieces, upload
from cgprimer.native.cuda.device import Settings, devices, kernel, on, quiet, simulated, toolkit
from cgprimer.native.cuda.epoch_source import GATHER, epoch_text
from cgprimer.native.cuda.executable import CudaExecutable
from cgprimer.native.cuda.source import Body, body
from cgprimer.native.cuda.straight import MOST_RESULTS, definitions

State = tuple[Array, ...]
_MOST_THREADS = 256
_SHARED_NUMBERS = 5_000  # sums that fit into a block's shared memory, parameters apart
_MOST_PARAMETERS = 512
LARGEST_BATCH = 8192  # of the one block; larger batches are worth the whole GPU at each step


def epoch_functions(
    found: Body, scalars: Sequence[int], rule: UpdateRule, dtype: str, **places: Any
) -> tuple[Any, str]:
    """The kernel of an epoch as a plain function, and its text."""
    counts: dict[str, Any] = {"arrays": len(rule.columns) - 2, "numbers": len(rule.scalars) - 1}
    text = "\n".join(("@device\n" + found.text(), epoch_text(found, scalars, **counts, **places)))
    space = definitions(text, dtype, found.constants)
    space["update"] = _update(rule)  # in float64 always
    return space["epoch"], text


def _update(rule: UpdateRule) -> Any:
    """One parameter's update as a function on the device."""
    tape = optimize(rule.tape)
    step = body(tape, everything=True)
    value = dict(step.columns) | {tape.leaves[v].name: v for v in step.uniforms}
    names = (*rule.columns, *rule.scalars)
    given = [f"v{value[n]}" if n in value else f"unused{k}" for k, n in enumerate(names)]
    written = dict(zip(step.results, step.returned, strict=True))
    results = ", ".join(written[tape.outputs[name]] for name in rule.after)
    lines = [f"@device\ndef update({', '.join(given)}):", *step.lines, f"return ({results},)"]
    return definitions("\n    ".join(lines) + "\n", "float64", step.constants)["update"]


def epoch_signature(found: Body, dtype: str) -> tuple[Any, ...]:
    """Types of the kernel's arguments."""
    from numba import types

    wide, whole = types.float64[::1], types.int64
    return (
        getattr(types, dtype)[::1], whole, whole, whole, *(whole,) * len(found.columns),
        types.int32[::1], wide, wide, wide, wide, types.int32[::1],
    )  # fmt: skip


def gather_signature(dtype: str) -> tuple[Any, ...]:
    """Types of the arguments of the kernel that puts a column into an epoch's order."""
    from numba import types

    real, whole = getattr(types, dtype)[::1], types.int64
    return (real, whole, types.int64[::1], whole, real, whole)


class _Places(NamedTuple):
    """Which parts of an optimizer's state have an entry per parameter, and which are numbers."""

    arrays: tuple[int, ...]
    numbers: tuple[int, ...]

    @staticmethod
    def of(rule: UpdateRule) -> _Places:
        """The last part of a state's name is its place in the state."""
        arrays, numbers = (
            tuple(int(name.rsplit(".", 1)[1]) for name in names)
            for names in (rule.columns[2:], rule.scalars[1:])
        )
        return _Places(arrays, numbers)

    def flat(self, state: State) -> Array:
        """The state as one array: entries, then numbers; never empty."""
        parts = [np.ravel(np.asarray(state[k], np.float64)) for k in self.arrays + self.numbers]
        return np.concatenate([*parts, np.zeros(1)])

    def state(self, flat: Array, count: int) -> State:
        """The other way round, for so many parameters."""
        arrays = [flat[k * count : (k + 1) * count] for k in range(len(self.arrays))]
        first = len(arrays) * count
        numbers = [np.array(flat[first + k]) for k in range(len(self.numbers))]
        return self.ordered([*arrays, *numbers])

    def ordered(self, parts: Sequence[Array]) -> State:
        """Parts, arrays before numbers, put where the state has them."""
        placed = dict(zip(self.arrays + self.numbers, parts, strict=True))
        return tuple(placed[k] for k in sorted(placed))


class CudaTrainer:
    """Epochs of mini-batches, or of single samples, without the host at each step.

    Args:
        tape: computes, for a sample, the loss and its derivative with respect to each parameter.
        loss: the output that is the loss.
        gradients: the outputs that are the derivatives, one per parameter.
        parameters: the scalars that are learnt, in the order of ``values``; the tape has no others.
        rule: how parameters are changed.
        dtype: ``float64`` or ``float32``; parameters and state are float64 always.
        settings: how work is laid out.

    A small tape and batches of up to 8,192 samples run as one kernel an epoch. For anything
    larger the samples stay on the GPU, and each step is one call of the compiled tape.
    """

    def __init__(
        self,
        tape: Tape,
        *,
        loss: str,
        gradients: tuple[str, ...],
        parameters: tuple[str, ...],
        rule: UpdateRule,
        dtype: str,
        settings: Settings,
    ) -> None:
        strange = [name for name in tape.of_kind("scalar") if name not in parameters]
        if strange:
            raise EngineError(f"the scalar {strange[0]!r} is not among the parameters")
        self.tape = optimize(tape)
        self.loss, self.gradients, self.parameters = loss, gradients, parameters
        self.rule = rule
        self.places = _Places.of(rule)
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.columns = tape.of_kind("column")
        self._kernels: dict[int, Any] = {}
        self._gather: Any = None
        self._executable: CudaExecutable | None = None
        self._update: Executable | None = None
        self.body: Body | None = None
        if len(gradients) < MOST_RESULTS and len(self.tape) <= settings.straight:
            self.body = body(self.tape, everything=True)

    def epoch(
        self,
        columns: Mapping[str, Array],
        order: Array,
        batch: int,
        values: Array,
        state: State,
        rates: Array,
    ) -> tuple[Array, State, Array, int]:
        """One epoch: all batches, in order.

        Args:
            columns: host arrays, or what the engine's ``resident`` gave.
            order: numbers of the samples, in the order in which they are gone through; an epoch
                that is taken up midway leaves out the first ones.
            batch: samples per step; the last step may have fewer.
            values: of the parameters; shape (parameters,).
            state: the optimizer's.
            rates: the learning rate of each step.

        Returns:
            Values and state after the last step; the mean loss of each step's batch, before the
            step; and the first step whose loss or gradient was not finite, or -1. Values and
            state are then those before that step, and the losses end with it.
        """
        samples = len(order)
        steps = -(-samples // batch)
        if len(rates) < steps:
            raise UsageError(f"{steps} steps need as many rates, not {len(rates)}")
        with quiet(), np.errstate(all="ignore"):
            piece = self._in_order(columns, np.asarray(order, np.int64))
            if self.body is None or batch > LARGEST_BATCH:
                return self._by_steps(piece, batch, values, state, rates)
            return self._on_device(self.body, piece, batch, values, state, rates)

    # --- one kernel ------------------------------------------------------------------------------

    def _on_device(
        self, found: Body, piece: Piece, batch: int, values: Array, state: State, rates: Array
    ) -> tuple[Array, State, Array, int]:
        cuda, n = toolkit(), piece.samples
        steps = -(-n // batch)
        threads = self._threads(found, batch)
        with on(piece.device):
            place = {v: r for r, v in enumerate(found.results)}
            places = [place[self.tape.outputs[name]] for name in self.gradients]
            moved = cuda.to_device(np.array(values, np.float64))
            memory = cuda.to_device(self.places.flat(state))
            losses = cuda.device_array(max(1, steps), np.float64)
            failed = cuda.to_device(np.full(1, -1, np.int32))
            number = {name: j for j, name in enumerate(self.columns)}
            self._kernel(found, threads)[1, threads](
                piece.data, n, batch, min(threads, _power(batch)),
                *(piece.offsets[number[name]] for name, _ in found.columns),
                cuda.to_device(np.array(places, np.int32)), moved, memory,
                cuda.to_device(np.ascontiguousarray(rates[: max(1, steps)], np.float64)),
                losses, failed,
            )  # fmt: skip
            first_bad = int(failed.copy_to_host()[0])
            end = steps if first_bad < 0 else first_bad
            after = self.places.state(memory.copy_to_host(), len(self.parameters))
            shown = losses.copy_to_host()[: end if first_bad < 0 else end + 1]
            return moved.copy_to_host(), after, shown, first_bad

    def _threads(self, found: Body, batch: int) -> int:
        most = self.settings.threads if simulated() else _MOST_THREADS
        most = min(most, 1 << (_SHARED_NUMBERS // len(found.results)).bit_length() - 1)
        least = 1 if simulated() else 32
        return max(least, min(most, _power(batch)))

    def _kernel(self, found: Body, threads: int) -> Any:
        if threads not in self._kernels:
            place = {v: r for r, v in enumerate(found.results)}
            outputs = self.tape.outputs
            names = [self.tape.leaves[v].name for v in found.uniforms]
            function, _ = epoch_functions(
                found,
                [self.parameters.index(name) for name in names],
                self.rule,
                self.dtype.name,
                loss=place[outputs[self.loss]],
                gradients=[place[outputs[name]] for name in self.gradients],
                threads=threads,
            )
            signature = epoch_signature(found, self.dtype.name)
            self._kernels[threads] = kernel(function, signature)
        return self._kernels[threads]

    # --- a call at each step ---------------------------------------------------------------------

    def _by_steps(
        self, piece: Piece, batch: int, values: Array, state: State, rates: Array
    ) -> tuple[Array, State, Array, int]:
        if self._executable is None:
            self._executable = CudaExecutable(
                self.tape, reduction="sum", dtype=self.dtype.name, settings=self.settings
            )
        values = np.array(values, np.float64)
        losses = []
        for step, begin in enumerate(range(0, piece.samples, batch)):
            size = min(batch, piece.samples - begin)
            columns = {
                name: DeviceColumn(
                    [Shard(piece.device, 0, size, piece.data, offset + begin)], self.dtype.name
                )
                for name, offset in zip(self.columns, piece.offsets, strict=True)
            }
            given = dict(zip(self.parameters, values, strict=True))
            sums = self._executable(columns, given, size)
            losses.append(float(sums[self.loss]) / size)
            gradient = np.array([sums[name] for name in self.gradients], np.float64) / size
            if not (np.isfinite(losses[-1]) and np.isfinite(gradient).all()):
                return values, state, np.array(losses), step
            values, state = self._moved(values, gradient, state, float(rates[step]))
        return values, state, np.array(losses), -1

    def _moved(
        self, values: Array, gradient: Array, state: State, rate: float
    ) -> tuple[Array, State]:
        """One update, on the host."""
        rule = self.rule
        if self._update is None:
            self._update = NUMPY.compile(rule.tape, reduction="none", dtype="float64")
        arrays = [state[k] for k in self.places.arrays]
        numbers = [float(state[k]) for k in self.places.numbers]
        made = self._update(
            dict(zip(rule.columns, (values, gradient, *arrays), strict=True)),
            dict(zip(rule.scalars, (rate, *numbers), strict=True)),
            len(values),
        )
        found = [made[name] for name in rule.after]
        single = [np.array(part[0]) for part in found[1 + len(arrays) :]]
        return found[0], self.places.ordered([*found[1 : 1 + len(arrays)], *single])

    # --- samples ---------------------------------------------------------------------------------

    def _in_order(self, columns: Mapping[str, Array], order: Array) -> Piece:
        """The columns on the first GPU, in the order of the epoch."""
        given = [columns[name] for name in self.columns]
        pieces = resident_pieces(given, self.dtype)
        device = devices(self.settings)[0]
        if pieces is None or len(pieces) != 1:
            arrays = [np.asarray(column)[order] for column in given]
            return upload(arrays, 0, len(order), self.dtype, device)
        whole, n, cuda = pieces[0], len(order), toolkit()
        if self._gather is None:
            gather = definitions(GATHER, self.dtype.name, {})["gather"]
            self._gather = kernel(gather, gather_signature(self.dtype.name))
        with on(whole.device):
            out = cuda.device_array(max(1, n * len(given)), self.dtype)
            there = cuda.to_device(order)
            threads = self.settings.threads
            blocks = max(1, min(-(-n // threads), self.settings.block_limit or 1024))
            for j, offset in enumerate(whole.offsets):
                self._gather[blocks, threads](whole.data, offset, there, n, out, j * n)
        return Piece(whole.device, 0, n, out, tuple(j * n for j in range(len(given))))


def _power(number: int) -> int:
    """The smallest power of two that is not less.

    >>> [_power(n) for n in (1, 2, 3, 64, 65)]
    [1, 2, 4, 64, 128]
    """
    return 1 << max(0, number - 1).bit_length()
