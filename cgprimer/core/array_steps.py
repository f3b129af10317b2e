"""The plain engine on arrays: a tape's instructions as functions of numpy, prepared once.

Many samples go through in blocks, so that the values of a block stay in the caches; what is not
needed any more is let go at once, and what no sample changes is computed before the first block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Structural
from cgprimer.core.methods.contract import Given
from cgprimer.core.primitives import arrays, primitive
from cgprimer.core.tape.passes import depends, varying
from cgprimer.core.tape.sums import summed
from cgprimer.core.tape.tape import Tape, shape_of

Array = Any
Step = tuple[int, Callable[..., Array], tuple[int, ...], tuple[int, ...]]  # with what then goes
_VIEWS = ("reshape", "transpose", "take", "broadcast", "copy", "stop_gradient", "batch_sum")
_BLOCK = 2**17  # numbers of the largest value in a block of samples: a megabyte


class ArraySteps:
    """A tape on arrays; call it with the values of its leaves.

    Args:
        tape: what is computed.
        sums: over the samples, in the place of a value for each.
        dtype: of numpy's arithmetic.
        lookup: the functions of primitives.
    """

    def __init__(
        self, tape: Tape, *, sums: bool, dtype: str, lookup: Any = arrays.function
    ) -> None:
        self.dtype, self.sums = np.dtype(dtype), sums
        self.varying: tuple[str, ...] = ()
        self.whole = any(getattr(name, "kind", "") == "batch_mean" for name, _ in tape.instructions)
        if sums:
            tape, self.varying, width = summed(tape)
            self.block = max(64, _BLOCK // width)
        self.tape = tape
        varies, first = varying(tape), len(tape.leaves)
        skipped = _repeated_by_numpy(tape)
        last = {o: i for i, (_, used) in enumerate(tape.instructions, first) for o in used}
        kept = {*tape.outputs.values(), *range(first)}
        own = _alone(tape) - kept
        self.once: list[Step] = []
        self.each: list[Step] = []
        for index, (name, operands) in enumerate(tape.instructions, first):
            ends = {o for o in operands if last[o] == index and varies[o]} - kept
            function = lookup(name)
            if index in skipped:
                function = _longer(*name.setting) if varies[index] else _same  # type: ignore
            elif name in ("copy", "stop_gradient"):
                function = _same
            elif name == "pow" and operands[1] < first:
                function = _POWERS.get(tape.leaves[operands[1]].value, function)
            if isinstance(function, np.ufunc) and varies[index] and tape.shapes[index]:
                over = (p for p, o in enumerate(operands) if o in ends & own)
                shapes = tape.shapes
                place = next((p for p in over if shapes[operands[p]] == shapes[index]), None)
                function = function if place is None else _into(function, place)
            steps = self.each if varies[index] else self.once
            steps.append((index, function, operands, tuple(ends)))

    def __call__(self, columns: Given, scalars: Given, samples: int) -> dict[str, Array]:
        """For each output a value for every sample, or the sum."""
        tape, dtype = self.tape, self.dtype
        with np.errstate(all="ignore"):
            given = {n: np.asarray(v).astype(dtype, copy=False) for n, v in scalars.items()}
            data = {n: np.asarray(v).astype(dtype, copy=False) for n, v in columns.items()}
            start: list[Any] = [
                dtype.type(leaf.value) if leaf.kind == "constant" else given.get(leaf.name)
                for leaf in tape.leaves
            ]
            start += [None] * len(tape)
            places = [(i, leaf.name) for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"]
            run(self.once, start)
            if not self.sums:
                values = start.copy()
                for index, name in places:
                    values[index] = data[name]
                run(self.each, values)
                whole = {n: (samples, *shape_of(tape, i)) for n, i in tape.outputs.items()}
                each = {n: np.asarray(values[i], dtype) for n, i in tape.outputs.items()}
                return {n: np.array(np.broadcast_to(each[n], whole[n])) for n in whole}
            block = max(1, samples if self.whole or not places else self.block)
            totals: dict[str, Array] = {}
            for begin in range(0, max(samples, 1), block):
                values, count = start.copy(), min(block, samples - begin)
                for index, name in places:
                    values[index] = data[name][begin : begin + block]
                run(self.each, values)
                for name, index in tape.outputs.items():
                    value = values[index] if name in self.varying else values[index] * float(count)
                    totals[name] = totals[name] + value if begin else value
            return totals


def _alone(tape: Tape) -> set[int]:
    """Values in memory that no other value looks at: such may be written over."""
    first = len(tape.leaves)
    batch = [
        i for i, (name, _) in enumerate(tape.instructions, first)
        if getattr(name, "kind", "").startswith("batch")
    ]  # fmt: skip
    found = {i for i, after in enumerate(depends(tape, batch)) if i >= first and not after}
    for index, (name, operands) in enumerate(tape.instructions, first):
        if isinstance(name, Structural):
            looks = name.kind in _VIEWS
        else:
            looks = name in _VIEWS or not primitive(name).built_in
        if looks:
            found.difference_update((index, *operands))
    return found


def _into(function: Callable[..., Array], place: int) -> Callable[..., Array]:
    """A function of numpy that writes its result over one of its operands."""
    return lambda *values: function(*values, out=values[place])


def _same(a: Array) -> Array:
    return a


_POWERS: dict[float, Callable[..., Array]] = {2.0: lambda a, _: a * a, 3.0: lambda a, _: a * a * a}


def run(steps: list[Step], values: list[Any]) -> None:
    """Do steps; values that are not needed any more are let go."""
    for index, function, operands, ends in steps:
        if len(operands) == 2:
            left, right = operands
            values[index] = function(values[left], values[right])
        else:
            values[index] = function(*[values[o] for o in operands])
        for end in ends:
            values[end] = None


def _repeated_by_numpy(tape: Tape) -> set[int]:
    """Broadcasts that numpy does by itself, beside an operand that has the shape already."""
    first = len(tape.leaves)
    found = {
        i for i, (name, _) in enumerate(tape.instructions, first)
        if getattr(name, "kind", "") == "broadcast"
    } - {*tape.outputs.values()}  # fmt: skip
    small = found | {i for i, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    for name, operands in tape.instructions:
        if isinstance(name, Structural) or small.issuperset(operands):
            found.difference_update(operands)
    return found


def _longer(rank: int, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """With as many axes for a sample as the shape has: new ones have the length 1."""
    more = (1,) * (len(shape) - rank)

    def reshaped(a: Array) -> Array:
        samples = a.ndim - rank
        return a.reshape(a.shape[:samples] + more + a.shape[samples:]) if more else a

    return reshaped
