"""The form of a wrong submission, and which names of the catalogue are acceptable for each kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any


@dataclass(frozen=True)
class WrongSubmission:
    """A wrong submission.

    Attributes:
        kind: the mistake that the author made, a key of :data:`ACCEPTABLE_NAMES`.
        graph: text of the graph, or the statement of a formula check.
        code: source of the submission, or the answer of a formula check.
        options: keyword arguments of the check.
        also: further acceptable names, where a mistake gives the same numbers as another one.
    """

    kind: str
    graph: str
    code: str
    options: dict[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    def accepts(self, name: str) -> bool:
        """Return whether the catalogue's name describes this mistake."""
        names = ACCEPTABLE_NAMES[self.kind] + self.also
        return any(part in name.lower() for part in names)


class Collection(list[WrongSubmission]):
    """A list of wrong submissions with a short way to add one."""

    def add(
        self, kind: str, graph: str, code: str, also: tuple[str, ...] = (), **options: Any
    ) -> None:
        """Append a wrong submission; the indentation of texts is removed."""
        self.append(WrongSubmission(kind, dedent(graph), dedent(code), options, also))


# Numbers that nobody can explain: a name is not required, and any is accepted.
ANY = ("",)

# A name of the catalogue is acceptable if it contains one of these texts.
ACCEPTABLE_NAMES: dict[str, tuple[str, ...]] = {
    "sign": ("sign",),
    "factor 2 missing": ("factor 2 missing",),
    "factor 2 too much": ("factor 2 too much",),
    "sum instead of mean": ("sum instead of mean",),
    "mean instead of sum": ("mean instead of sum",),
    "constant zero": ("zero",),
    "parameters swapped": ("swapped", "order of the values"),
    "transposed result": ("transposed", "order of the values"),
    "loss factor missing": ("loss factor", "error of the loss", "outer derivative"),
    "activation derivative missing": ("activation derivative", "outer derivative"),
    "product of averages": ("product of averages",),
    "one path of several": ("one path", "= instead of +="),
    "= instead of +=": ("= instead of +=", "one path"),
    "not zeroed": ("not zeroed",),
    "inner function not evaluated": ("inner function",),
    "derivative at the wrong point": ("wrong point",),
    "outer derivative missing": ("outer derivative", "activation derivative"),
    "inner derivative missing": ("inner derivative", "chain"),
    "power rule: exponent stays": ("power rule", "exponent"),
    "power rule: n*x": ("power rule", "exponent"),
    "power rule: divisor not squared": ("power rule", "divisor", "quotient"),
    "power rule: variable exponent": ("power rule", "exponent"),
    "sign of abs lost": (
        "absolute value",
        "abs",
        "kink",
        "mask",
        "sign",
        "activation derivative",
    ),  # the derivative of abs is the sign
    "reciprocal": ("reciprocal",),
    "rounded": ("rounded",),
    "difference step too large": ("step too large",),
    "difference step too small": ("step too small", "float32", "cancel"),
    "sigmoid derivative kept in cross-entropy": ("sigmoid", "cross-entropy", "activation"),
    "tanh derivative": ("tanh", "wrong derivative of a function"),
    "exponential without ln a": ("ln", "log", "exponential", "base"),
    "product rule": ("product rule",),
    "derivative of sin": ("sin", "trig", "not differentiated"),
    "degrees instead of radians": ("degree",),
    "wrong variable": (
        "wrong variable",
        "another variable",
        "swapped",
        "respect to",
        "differentiated by",
    ),
    "weight decay added": ("decay", "regular", "penalty"),
    "weight updated before its use": (
        "updated",
        "after the step",
        "new weight",
        "after its update",
    ),
    "bias forgotten": ("bias",),
    "relu(z) for its derivative": ("relu", "wrong derivative of a function", "not differentiated"),
    "relu without the mask": (
        "wrong derivative of a function",
        "mask",
        "activation derivative",
        "relu",
        "kink",
        "branch",
    ),
    "any number where inactive": ANY,
    "hidden by a large value": ANY,
    "last sample left out": ("sample",),
    "transposed weights": ("transposed",),
}
