"""A sweep that goes wrong in one way: what it does wrong, and the builder that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cgprimer.course.checks.tape_places import Place
from cgprimer.tapes import Builder


@dataclass(frozen=True)
class Slip:
    """One way for a sweep to go wrong.

    Attributes:
        mistake: its short name.
        said: where, and what.
        lost: shares that are not handed on.
        bare: shares of which the partial is left out.
        negative: shares with the other sign.
        times: shares with a value as a factor too much.
        averaged: shares whose adjoint is the mean over the batch.
        elsewhere: instructions whose partials are taken at other operands and another result.
        keeps: ``last`` or ``first`` of the shares of a vertex, where they should add up; ``last
            step`` where those of one expression do add up.
        of: the vertices at which it does; empty for all.
        deep: whether the sweep goes in the order of a search in depth, not in that of the text.
        roots: where the sweep begins, if not at its end.
        passed: vertices that hand their adjoint on to another one as it is.
        twice: shares that are multiplied with their partial twice.
        partials: wrong values of local partials, by the places where they are used.
        forward: the values of a wrong forward pass; the right values unless given.
        rate: the learning rate with which factors of products are updated before the adjoint of
            the other factor is computed, or None.
    """

    mistake: str
    said: str
    lost: frozenset[Place] = frozenset()
    bare: frozenset[Place] = frozenset()
    negative: frozenset[Place] = frozenset()
    times: Mapping[Place, int] = field(default_factory=dict)
    averaged: frozenset[Place] = frozenset()
    elsewhere: Mapping[int, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    keeps: str = ""
    of: frozenset[int] = frozenset()
    deep: bool = False
    roots: tuple[int, ...] = ()
    passed: Mapping[int, int] = field(default_factory=dict)
    twice: frozenset[Place] = frozenset()
    partials: Mapping[Place, int] = field(default_factory=dict)
    forward: Mapping[int, int] | None = None
    rate: int | None = None


class Hands:
    """A builder in whose hands a sweep goes wrong."""

    def __init__(self, builder: Builder, slip: Slip, owner: Sequence[int]) -> None:
        self.builder, self.slip, self.owner = builder, slip, owner
        self.emit, self.constant = builder.emit, builder.constant
        self.here: Place = 0, 0
        self.last: dict[int, int] = {}

    def product(self, bar: int, partial: int) -> int:
        """An adjoint times a partial, or what the slip makes of it."""
        slip = self.slip
        partial = slip.partials.get(self.here, partial)
        made = bar if self.here in slip.bare else self.builder.product(bar, partial)
        if self.here in slip.twice:
            made = self.builder.product(made, partial)
        if self.here in slip.times:
            made = self.emit("mul", made, slip.times[self.here])
        return self.emit("neg", made) if self.here in slip.negative else made

    def add_contribution(self, totals: dict[int, int], to: int, product: int, *share: int) -> None:
        """Add a share to an adjoint, or overwrite it."""
        slip, owner = self.slip, self.owner[self.here[0]]
        if to in totals and slip.keeps and (not slip.of or to in slip.of):
            if slip.keeps == "first":
                return
            if slip.keeps == "last" or self.last[to] != owner:
                del totals[to]
        self.last[to] = owner
        self.builder.add_contribution(totals, to, product, *share)
