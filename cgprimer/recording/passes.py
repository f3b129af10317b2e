"""Backward passes that are kept: the same steps a second time are one program of numpy.

A training loop records the same steps in every turn. Reverse mode of the core writes their
backward pass as a tape, with the values that were recorded as its leaves; what runs tapes on
arrays runs it. There are no rules here: they are those of any tape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.core.array_steps import ArraySteps, run
from cgprimer.core.methods.reverse import Step, sweep
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.tape.builder import Builder
from cgprimer.recording.eager import Eager, Recorded

_MOST_STEPS = 500  # a longer pass is worth its steps one by one, and so is one of large arrays:
_MOST_BYTES = 2**24  # that lets go of each array as soon as it is behind
_MOST_KEPT = 64
_kept: dict[Any, Any] = {}  # by what was recorded: None at first, the program from then on


class _Passes(Builder):
    hand = Eager.hand  # type: ignore[assignment]  # operands are repeated by numpy there, too


class KeptPass:
    """The backward pass of steps, given by values in the order of the pass.

    Args:
        order: what the result was computed from and requires a gradient, the last first.
        given: constants that were used, numbers apart.
        seeded: whether the adjoint to begin with is given; 1 otherwise.
    """

    def __init__(self, order: list[Recorded], given: list[Any], *, seeded: bool) -> None:
        b = _Passes()
        data = [v._data if isinstance(v, Recorded) else v for v in (*order, *given)]
        places = {id(v): i for i, v in enumerate([*order, *given])}
        leaves = [b.leaf("column", f"v{i}", shape=np.shape(d)) for i, d in enumerate(data)]

        def known(operand: Any) -> int:
            if operand.__class__ is float:
                return b.constant(operand)
            return leaves[places[id(operand)]]

        seed = b.constant(1.0)
        if seeded:
            seed = b.leaf("column", "seed", shape=np.shape(data[0]))
        adjoints = {leaves[0]: seed}
        sweep(b, [
            Step(
                leaves[i], v.primitive,
                tuple(known(o) if getattr(o, "requires_grad", False) else None for o in v.operands),
                tuple(known(o) for o in v.operands), leaves[i],
            )
            for i, v in enumerate(order) if v.operands
        ], adjoints)  # fmt: skip
        outputs = {}
        for i, value in enumerate(order):
            bar = adjoints.get(leaves[i])
            if bar is not None and (not value.primitive or type(value._data) is float):
                outputs[str(i)] = b.broadcast(bar, np.shape(value._data))
        tape = b.finish(outputs, prune=True)
        kind = getattr(data[0], "dtype", np.dtype(float))
        steps = ArraySteps(tape, sums=False, dtype=kind.name)
        self.steps, self.size = steps.each, tape.size
        self.start: list[Any] = [None] * tape.size
        for i, leaf in enumerate(tape.leaves):
            if leaf.kind == "constant":
                self.start[i] = kind.type(leaf.value)
        run(steps.once, self.start)
        self.leaves = [
            (i, -1 if leaf.name == "seed" else int(leaf.name[1:]))
            for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"
        ]  # fmt: skip
        self.outputs = [(int(name), index) for name, index in tape.outputs.items()]

    def __call__(self, order: list[Recorded], given: list[Any], seed: Any) -> dict[Recorded, Any]:
        """The adjoints of leaves and of numbers."""
        values = self.start.copy()
        for place, which in self.leaves:
            if which < 0:
                data = seed
            elif which < len(order):
                data = order[which]._data
            else:
                data = given[which - len(order)]
                data = data._data if isinstance(data, Recorded) else data
            values[place] = np.float64(data) if data.__class__ is float else data
        run(self.steps, values)
        return {order[which]: values[index] for which, index in self.outputs}


def kept_pass(order: list[Recorded], *, seeded: bool) -> tuple[KeptPass | None, list[Any]]:
    """The program of a pass that came before, and the constants that it needs.

    None for one that is new, long, large, in two precisions, or has functions with a pass of their
    own; those are walked step by step.
    """
    if len(order) > _MOST_STEPS:
        return None, []
    places = {id(v): i for i, v in enumerate(order)}
    key: list[Any] = [FUNCTIONS.generation, seeded]
    given: list[Any] = []
    note, kinds = key.append, set()
    for value in order:
        name = value.primitive
        if name.__class__ is not str and name.kind in ("custom", "backward"):  # type: ignore
            return None, []  # it runs Python, and holds arrays that must not be kept
        note(name)
        for operand in value.operands or (value,):
            if operand.__class__ is float:
                note(operand.hex())
                continue
            place = places.get(id(operand))
            if place is None:
                place = places[id(operand)] = len(places)
                given.append(operand)
            elif operand is not value:
                note(place)
                continue
            data = operand._data if isinstance(operand, Recorded) else operand
            if data.__class__ is float:
                note("")
                kinds.add("d")
            else:
                note(data.shape)
                kinds.add(data.dtype.char)
    whole = tuple(key)
    if whole not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[whole] = None
        return None, []
    found = _kept[whole]
    if found is None:
        size = sum(getattr(v._data, "nbytes", 8) for v in order)
        arrays = any(np.ndim(v._data) for v in order)
        worth = arrays and len(kinds) == 1 and size <= _MOST_BYTES
        found = _kept[whole] = KeptPass(order, given, seeded=seeded) if worth else ()
    return found or None, given
