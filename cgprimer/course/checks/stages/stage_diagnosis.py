"""Causes before consequences: one mistake is named once, at the earliest part that shows it.

Parts are judged on their own first (a :class:`Finding` each). :func:`attribute` then reads the
findings from the bottom of the ladder to its top and attributes what is wrong to the causes that
are already established.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgprimer.course.checks.check_results import Part

#: What a mistake of an earlier stage looks like in a later one that uses the wrong function.
_LOOKS_LIKE: Mapping[str, tuple[str, ...]] = {
    "order reversed": ("child before parent", "result not last", "second derivative lost"),
    "values listed twice": ("child before parent", "rows do not replay", "sent on again and again"),
    "= instead of +=": ("backward zeroes",),
    "values missing": ("child before parent", "inputs missing", "result not last"),
}


@dataclass(frozen=True)
class Finding:
    """The verdict on a part, and every mistake that gives the same answers.

    Attributes:
        part: the verdict that the answers of this part suggest alone.
        causes: mistakes that predict these answers, each with a sentence; the earliest in the
            ladder first.
        stage: number of the stage.
        builds_on: numbers of the stages whose functions this part uses; its own number if it uses
            functions that earlier parts of the same stage check.
        reported: whether the part is shown; parts of other stages only establish causes.
    """

    part: Part
    causes: Mapping[str, str] = field(default_factory=dict)
    stage: int = 0
    builds_on: tuple[int, ...] = ()
    reported: bool = True

    @property
    def verdict(self) -> str:
        """The verdict on the part."""
        return self.part.verdict


@dataclass
class _Cause:
    """A mistake that is established, and where it shows first."""

    mistake: str
    stage: int
    part: str
    reported: bool

    def __str__(self) -> str:
        where = f"stage {self.stage}, {self.part}"
        return f"'{self.mistake}' ({where})" if self.mistake else where

    def predicts(self, finding: Finding) -> bool:
        """Return whether this cause gives the answers of a finding."""
        known = (self.mistake, *_LOOKS_LIKE.get(self.mistake, ()))
        return bool(self.mistake) and any(name in finding.causes for name in known)


def create_finding(part: Part, causes: Mapping[str, str] | None = None) -> Finding:
    """Return a verdict as a finding; a named mistake predicts its own answers."""
    named = {part.mistake: part.message} if part.mistake else {}
    return Finding(part, {**(causes or {}), **named})


def attribute_to_causes(findings: Sequence[Finding]) -> list[Part]:
    """Return the reported parts, each mistake named only where it shows first.

    A part whose answers an established cause predicts is a consequence. Another named mistake of a
    wrong part is a new cause. A wrong part without a name may follow from the earliest cause in
    what it builds on, and says so.

    Args:
        findings: in the order of the ladder, those that are not reported included.
    """
    causes: list[_Cause] = []
    parts = []
    for one in findings:
        part = one.part
        if part.verdict in ("wrong", "suspicious"):
            below = [cause for cause in causes if cause.stage in one.builds_on]
            predicting = next((cause for cause in below if cause.predicts(one)), None)
            earliest = predicting
            if part.verdict == "wrong" and not part.mistake:
                earliest = predicting or next(iter(below), None)
            if earliest:
                part = _consequence(part, earliest, one.reported, certain=predicting is not None)
            elif part.verdict == "wrong":
                causes.append(_Cause(part.mistake, one.stage, part.name, one.reported))
        if one.reported:
            parts.append(part)
    return parts


def _consequence(part: Part, cause: _Cause, reported: bool, *, certain: bool) -> Part:
    """Return a wrong part as a consequence; a cause that was not shown yet is named here."""
    named = "" if cause.reported else cause.mistake
    cause.reported = cause.reported or reported
    if certain:
        return replace(part, mistake=named, message=f"this follows from {cause}", evidence=())
    message = f"{part.message}; " if part.message else ""
    return replace(part, mistake=named, message=f"{message}this may follow from {cause}")
