"""Attribution of wrong parts to causes: each mistake is named once, at the first part with it.

Each part is first judged independently (a :class:`Finding`). :func:`attribute_to_causes` then reads
the findings from the first stage to the last and attributes wrong parts to earlier mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgprimer.course.checks.check_results import Part

#: The mistakes that a mistake of an earlier stage appears as in later stages.
_APPEARS_AS: Mapping[str, tuple[str, ...]] = {
    "order reversed": ("child before parent", "result not last", "second derivative lost"),
    "values listed twice": (
        "child before parent",
        "rows do not replay",
        "gradient passed on too often",
    ),
    "= instead of +=": ("backward zeroes",),
    "values missing": ("child before parent", "inputs missing", "result not last"),
}


@dataclass(frozen=True)
class Finding:
    """The verdict on one part of a stage, and every mistake that explains the answers.

    Attributes:
        part: the verdict based only on the answers of this part.
        causes: explanations of the mistakes that predict these answers, keyed by mistake; the
            earliest in the ladder first.
        stage: the number of the stage.
        builds_on: the numbers of the stages whose functions this part uses; includes ``stage`` if
            earlier parts of the stage check functions that this part uses.
        reported: whether the part is shown; other parts only establish causes.
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
    """A mistake of the submission and the first part that shows it."""

    mistake: str
    stage: int
    part: str
    reported: bool

    def __str__(self) -> str:
        where = f"stage {self.stage}, {self.part}"
        return f"'{self.mistake}' ({where})" if self.mistake else where

    def predicts(self, finding: Finding) -> bool:
        """Return whether this mistake predicts the answers of a finding."""
        names = (self.mistake, *_APPEARS_AS.get(self.mistake, ()))
        return bool(self.mistake) and any(name in finding.causes for name in names)


def create_finding(part: Part, causes: Mapping[str, str] | None = None) -> Finding:
    """Create a finding from a verdict; a mistake in the verdict becomes one of the causes."""
    mistake = {part.mistake: part.message} if part.mistake else {}
    return Finding(part, {**(causes or {}), **mistake})


def attribute_to_causes(findings: Sequence[Finding]) -> list[Part]:
    """Return the reported parts, with each mistake named only at the first part that shows it.

    A part is a consequence if an established cause predicts its answers. Another named mistake of a
    wrong part is a new cause. The message of a wrong part without a named mistake refers to the
    earliest cause in the stages that it builds on.

    Args:
        findings: all findings in the order of the ladder, including those that are not reported.
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
                part = _create_consequence(
                    part, earliest, one.reported, certain=predicting is not None
                )
            elif part.verdict == "wrong":
                causes.append(_Cause(part.mistake, one.stage, part.name, one.reported))
        if one.reported:
            parts.append(part)
    return parts


def _create_consequence(part: Part, cause: _Cause, reported: bool, *, certain: bool) -> Part:
    """Change the message of a wrong part to refer to the earlier mistake that causes it."""
    mistake = "" if cause.reported else cause.mistake
    cause.reported = cause.reported or reported
    if certain:
        return replace(part, mistake=mistake, message=f"this follows from {cause}", evidence=())
    message = f"{part.message}; " if part.message else ""
    return replace(part, mistake=mistake, message=f"{message}this may follow from {cause}")
