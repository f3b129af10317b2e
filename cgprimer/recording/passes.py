"""Backward passes that are kept: the same steps a second time are one program of numpy.

A training loop records the same steps in every turn. Reverse mode of the core writes their
backward pass as a tape, with the values that were recorded as its leaves; what runs tapes on
arrays runs it. There are no rules here: they are those of any tape.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from cgprimer.core.array_steps import ArraySteps, run
from cgprimer.core.methods.reverse import Step, sweep
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.tape.builder import Builder
from cgprimer.recording.eager import SILENT, WARNINGS, Eager, Recorded, function_of

_MOST_STEPS = 500  # a longer pass is worth its steps one by one, and so is one of large arrays:
_MOST_BYTES = 2**24  # that lets go of each array as soon as it is behind
_MOST_KEPT = 64
_kept: dict[Any, Any] = {}  # by what was recorded: None at first, the program from then on
_recent: dict[tuple[str, bool], KeptPass] = {}  # by the last primitive: what it was the last time


class _Passes(Builder):
    hand = Eager.hand  # type: ignore[assignment]  # operands are repeated by numpy there, too


class KeptPass:
    """The backward pass of steps, given by values in the order of the pass.

    Args:
        order: what the result was computed from and requires a gradient, the last first.
        given: what else was used, numbers apart; values come first.
        seeded: whether the adjoint to begin with is given; 1 otherwise.
    """

    def __init__(self, order: list[Recorded], given: list[Any], *, seeded: bool) -> None:
        b = _Passes()
        whole = [*order, *given]
        data = [v._data if isinstance(v, Recorded) else v for v in whole]
        places = {id(v): i for i, v in enumerate(whole)}
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
        steps = ArraySteps(tape, sums=False, dtype=kind.name, lookup=function_of)
        self.steps, self.size = steps.each, tape.size
        self.start: list[Any] = [None] * tape.size
        for i, leaf in enumerate(tape.leaves):
            if leaf.kind == "constant":
                self.start[i] = kind.type(leaf.value)
        run(steps.once, self.start)
        self.leaves = [
            (i, len(whole) if leaf.name == "seed" else int(leaf.name[1:]))
            for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"
        ]  # fmt: skip
        self.outputs = [(int(name), index) for name, index in tape.outputs.items()]
        self._remember(order, whole, places)

    def _remember(self, order: list[Recorded], whole: list[Any], places: dict[int, int]) -> None:
        """What another graph must be like, and how its values are found from the last one."""
        self.most, self.count = len(order), len(whole)
        self.inner = [i for i, v in enumerate(order) if v.operands]
        self.ends = [i for i, v in enumerate(whole) if i not in self.inner]
        paths: dict[int, tuple[int, int]] = {}  # by place: whose operand it is, and which
        self.used: list[int] = []  # places of all operands, one after the other
        self.constants: list[float] = []
        for i in self.inner:
            for which, operand in enumerate(order[i].operands):
                place = places.get(id(operand))
                if place is None:
                    place = self.count + len(self.constants)
                    self.constants.append(operand)
                self.used.append(place)
                paths.setdefault(place, (i, which))
        self.paths = [paths[i] for i in range(1, self.count + len(self.constants))]
        self.names = [v.primitive for v in order]
        self.types = list(map(type, [*whole[self.most :], *self.constants]))
        self.boxed = sum(isinstance(v, Recorded) for v in whole)
        self.wanted = [v.requires_grad for v in whole[: self.boxed]]
        self.kinds = self._kinds(self._data(whole))

    def _data(self, found: list[Any]) -> list[Any]:
        return [v._data for v in found[: self.boxed]] + found[self.boxed : self.count]

    def _kinds(self, data: list[Any]) -> list[Any]:
        """Shapes and precision of what was given."""
        given = [data[i] for i in self.ends]
        return [None if d.__class__ is float else (d.shape, d.dtype) for d in given]

    def places(self, root: Recorded) -> list[Any] | None:
        """The values of another graph, in the order of this one's; None where it is not alike."""
        found: list[Any] = [root]
        add = found.append
        try:
            for user, which in self.paths:
                add(found[user].operands[which])
            if [v.primitive for v in found[: self.most]] != self.names:
                return None
        except (AttributeError, IndexError):
            return None
        if list(map(type, found[self.most :])) != self.types:
            return None
        order, inner = found[: self.most], [found[i] for i in self.inner]
        used, serials = [o for v in inner for o in v.operands], [v.serial for v in inner]
        alike = (
            len(used) == len(self.used)
            and all(map(is_, used, [found[i] for i in self.used]))
            and len(set(order)) == self.most
            and serials == sorted(serials, reverse=True)
            and [v.requires_grad for v in found[: self.boxed]] == self.wanted
            and found[self.count :] == self.constants
            and self._kinds(self._data(found)) == self.kinds
        )
        return found[: self.count] if alike else None

    def __call__(self, found: list[Any], seed: Any) -> dict[Recorded, Any]:
        """The adjoints of leaves and of numbers, of values in their places."""
        values, data = self.start.copy(), self._data(found)
        data.append(seed)
        for place, which in self.leaves:
            one = data[which]
            values[place] = np.float64(one) if one.__class__ is float else one
        loud = WARNINGS.get()
        try:
            WARNINGS.set(SILENT)
            run(self.steps, values)
        finally:
            WARNINGS.set(loud)
        return {found[which]: values[index] for which, index in self.outputs}


def recent_pass(root: Recorded, *, seeded: bool) -> tuple[KeptPass | None, list[Any]]:
    """The program of the pass that began alike the last time, if this one goes on alike."""
    known = _recent.get((root.primitive, seeded))
    found = known and known.places(root)
    return (known, found) if found else (None, [])


def kept_pass(order: list[Recorded], *, seeded: bool) -> tuple[KeptPass | None, list[Any]]:
    """The program of a pass that came before, and the values in the places that it has for them.

    None for one that is new, long, large, in two precisions, or has functions with a pass of their
    own; those are walked step by step.
    """
    if len(order) > _MOST_STEPS or not order[0].operands:
        return None, []
    places = {id(v): i for i, v in enumerate(order)}
    key: list[Any] = [FUNCTIONS.generation, seeded]
    given: list[Any] = []
    note, kinds = key.append, set()
    for value in order:
        name = value.primitive
        if getattr(name, "kind", "") == "custom" and not name.setting[0].is_rule:  # type: ignore
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
            boxed = isinstance(operand, Recorded)
            data = operand._data if boxed else operand
            note(boxed)
            if data.__class__ is float:
                note("")
                kinds.add("d")
            else:
                note(data.shape)
                kinds.add(data.dtype.char)
    whole = (*key, *sorted(kinds))
    found = _kept.get(whole, False)
    if found is False:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
            _recent.clear()
        _kept[whole] = None
        return None, []
    given.sort(key=lambda v: not isinstance(v, Recorded))  # values first
    if found is None:
        size = sum(getattr(v._data, "nbytes", 8) for v in order)
        arrays = any(np.ndim(v._data) for v in order)
        worth = arrays and len(kinds) == 1 and size <= _MOST_BYTES
        found = _kept[whole] = KeptPass(order, given, seeded=seeded) if worth else ()
    if not found:
        return None, []
    if 0.0 not in found.constants:  # its sign counts
        _recent[order[0].primitive, seeded] = found
    return found, [*order, *given]
