"""Sums that grow: what each share adds to a tangent or an adjoint, on its edge and in its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cgprimer.pages.stepping.flows import Flows, Share
from cgprimer.pages.stepping.scene import Scene
from cgprimer.pages.stepping.steps import CONSTANT, Show, Step, Write


def with_shares(
    steps: Sequence[Step], found: Flows, scene: Scene, mark: str
) -> tuple[list[Step], int]:
    """Steps that also show the shares; returns the number of slots that they need, too.

    Args:
        steps: of the program, each row's derivative computed in one or more of them.
        found: the shares.
        scene: what is on the stage.
        mark: what stands before a derivative: ``bar`` or ``dot``.
    """
    told = list(steps)
    places: dict[int, list[int]] = {}  # of a row: the steps that work on its derivative
    for place, step in enumerate(steps):
        if step.row >= 0 and step.column == "derivative":
            places.setdefault(step.row, []).append(place)
    _numbers(told, found, places)
    for row, shares in found.shares.items():
        here = places.get(row, [])
        _notes(told, here, shares, f"{mark}_{scene.rows[row].name}")
        _sums(told, here, shares, row)
    return told, found.size


def _numbers(told: list[Step], found: Flows, places: Mapping[int, Sequence[int]]) -> None:
    """A number on an edge is the sum of the shares that came along it until then.

    The program may compute a later share first, as part of something else; the edge's sum then
    waits for the earlier one, so that nothing is added before it is known.
    """
    known = {w.slot: place for place, step in enumerate(told) for w in step.writes}
    for slot, write in found.extra.items():  # operands first
        operands = () if write.operation == CONSTANT else write.arguments
        known[slot] = max((known.get(int(o), -1) for o in operands), default=-1)
    last: dict[int, int] = {}  # of an edge: the step of its latest number
    made: dict[int, int] = {}  # the first step that has a slot which the program does without
    for row, shares in found.shares.items():
        here = places.get(row, [])
        for share in shares if here else ():  # an adjoint that the program does without has none
            for edge, slot in share.loads:
                ready = max(
                    here[0], last.get(edge, -1), known.get(slot, -1), known.get(share.value, -1)
                )
                fits = (p for p in here if p >= ready and edge in told[p].edges)
                place = last[edge] = next(fits, max(ready, here[-1]))
                writes = _missing(slot, found.extra, made, place)
                made.update((write.slot, place) for write in writes)
                told[place] = replace(
                    told[place],
                    writes=(*told[place].writes, *writes),
                    shows=(*told[place].shows, Show("edge", edge, slot)),
                )


def _missing(
    slot: int, extra: Mapping[int, Write], made: Mapping[int, int], place: int
) -> list[Write]:
    """What has to be written for a slot, in order, where a step and those before it lack it."""
    writes, waiting = dict[int, Write](), [slot]
    while waiting:
        here = waiting.pop()
        if here in extra and here not in writes and made.get(here, place + 1) > place:
            writes[here] = extra[here]
            if extra[here].operation != CONSTANT:
                waiting.extend(int(a) for a in extra[here].arguments)
    return [writes[here] for here in sorted(writes)]


def _notes(told: list[Step], here: Sequence[int], shares: Sequence[Share], name: str) -> None:
    """Which shares of a sum a line computes; one line may serve for several."""
    for place in here:
        step = told[place]
        own = [k for k, share in enumerate(shares, start=1) if share.value == step.result]
        for negative in (False, True):
            numbers = [k for k in own if shares[k - 1].negative == negative]
            if numbers and step.text.partition(" = ")[0] != name:
                note = f"{name} {'-' if negative else '+'}= {step.text.partition(' = ')[0]}"
                if len(shares) > 1:
                    word = "share" if len(numbers) == 1 else "shares"
                    note += f", {word} {' and '.join(map(str, numbers))} of {len(shares)}"
                step = replace(step, note=f"{step.note}; {note}" if step.note else note)
        told[place] = step


def _sums(told: list[Step], here: Sequence[int], shares: Sequence[Share], row: int) -> None:
    """What is known of a sum before its last share; and how many shares a line adds up."""
    many = len(shares)
    for number, share in enumerate(shares, start=1):
        place = next((p for p in here if told[p].result == share.total), -1)
        if place < 0 or many == 1:
            continue
        step = told[place]
        if number < many:
            step = replace(step, shows=(*step.shows, Show("sofar", row, share.total)))
        if number > 1:
            counted = "both shares" if number == many == 2 else f"{number} of {many} shares"
            step = replace(step, note=f"the sum of {counted}")
        told[place] = step
