"""Sums that grow: what each share adds to a tangent or an adjoint, on its edge and in its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cgprimer.stepping.flows import Flows, Share
from cgprimer.stepping.scene import Scene
from cgprimer.stepping.steps import Show, Step, Write


def with_shares(
    steps: Sequence[Step], found: Flows, scene: Scene, size: int, mark: str
) -> tuple[list[Step], int]:
    """Steps that also show the shares; returns the number of slots that they need, too.

    Args:
        steps: of the program, each row's derivative computed in one or more of them.
        found: the shares.
        scene: what is on the stage.
        size: the number of slots so far.
        mark: what stands before a derivative: ``bar`` or ``dot``.
    """
    told = list(steps)
    places: dict[int, list[int]] = {}  # of a row: the steps that work on its derivative
    for place, step in enumerate(steps):
        if step.row >= 0 and step.column == "derivative":
            places.setdefault(step.row, []).append(place)
    written = {w.slot: place for place, step in enumerate(steps) for w in step.writes}
    for row, shares in found.shares.items():
        here = places.get(row)
        if not here:
            continue
        on_edge: dict[int, int] = {}
        for number, share in enumerate(shares, start=1):
            ready = max(written.get(share.value, -1), here[0])
            place = next((p for p in here if p >= ready and _works(told[p], share)), -1)
            if share.value < 0 or place < 0:
                continue
            # A number on the edge; several shares between two vertices are summed.
            before, slot = on_edge.get(share.edge), share.value
            extra: list[Write] = []
            if share.negative:
                extra, slot, size = [Write(size, "neg", (slot,))], size, size + 1
            if before is not None:
                extra, slot, size = [*extra, Write(size, "add", (before, slot))], size, size + 1
            # A tangent's share goes to one operation of a vertex, an adjoint's leaves a vertex
            # whole: only the latter are numbers of the edge.
            shows: tuple[Show, ...] = ()
            if share.edge >= 0 and mark == "bar":
                shows, on_edge[share.edge] = (Show("edge", share.edge, slot),), slot
            step = told[place]
            own_line = step.result == share.value
            sign = "-" if share.negative else "+"
            note = f"{mark}_{scene.rows[row].name} {sign}= {_name(step)}" if own_line else ""
            told[place] = replace(
                step,
                writes=(*step.writes, *extra),
                shows=(*step.shows, *shows),
                note=f"{note}, share {number} of {len(shares)}" if note and len(shares) > 1 else "",
            )
        _sums(told, here, shares, row)
    return told, size


def _works(step: Step, share: Share) -> bool:
    return share.edge < 0 or share.edge in step.edges


def _name(step: Step) -> str:
    return step.text.partition(" = ")[0]


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
