"""A result as text, as much of it as a feedback level allows."""

from __future__ import annotations

from cgprimer.checking.results import Result

LEVELS = ("points", "part", "mistake")


def report(result: Result, level: str = "mistake") -> str:
    """A result for a terminal.

    >>> from cgprimer.checking.results import Part
    >>> parts = (Part("ab", 1, 1, "right"), Part("bc", 1, 0, "wrong", "sign", "its sign is wrong"))
    >>> print(report(Result("gradient", "ann.py", parts)))
    ann.py: 1 of 2 points
      ab  right
      bc  wrong: its sign is wrong (sign)
    """
    lines = [f"{result.submission}: {result.points:g} of {result.possible:g} points"]
    if level != "points":
        if result.failure:
            lines += [f"  {line}" for line in str(result.failure).splitlines()]
        width = max((len(part.name) for part in result.parts), default=0)
        for part in result.parts:
            said: str = part.verdict
            if level == "mistake" and part.message:
                said += f": {part.message}" + (f" ({part.mistake})" if part.mistake else "")
            lines.append(f"  {part.name:{width}}  {said}")
            if level == "mistake":
                lines += [f"  {'':{width}}    {line}" for line in part.evidence]
    return "\n".join(lines)
