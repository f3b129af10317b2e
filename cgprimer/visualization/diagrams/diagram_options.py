"""The arguments of :func:`cgprimer.draw` as one object, with checks of their combinations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError
from cgprimer.support.type_checks import check_type

LEVELS = ("variables", "operations", "backward")
PARAMETERS = ("edges", "vertices")
ALL = "all"  #: a value of `scalars`: every array


@dataclass(frozen=True)
class DiagramOptions:
    """The options for the diagram of a graph, which :func:`cgprimer.draw` describes."""

    at: Mapping[str, Any] | None = None
    values: bool = False
    level: str = "variables"
    parameters: str | None = None
    partials: bool = False
    tangents: str | None = None
    adjoints: bool = False
    of: str | None = None
    loss: str | None = None
    path: str | Sequence[str] | None = None
    scalars: bool | str | Sequence[str] = False
    everything: bool = False
    why: bool = False
    backward_arrows: bool = False
    mask: float | Mapping[str, Any] | None = None
    place: str | None = None
    workers: Names | None = None
    title: str = ""

    @property
    def path_vertices(self) -> tuple[str, ...]:
        """Names of the vertices along the highlighted path; empty if no path is highlighted."""
        return parse_path(self.path)

    @property
    def has_overlays(self) -> bool:
        """True if the diagram shows partials, tangents, adjoints or a highlighted path."""
        return bool(self.path_vertices or self.partials or self.tangents or self.adjoints)

    @property
    def value_point(self) -> Mapping[str, Any] | None:
        """The point at which vertices show their values; None if values are not shown."""
        return {} if self.at is None and self.values else self.at

    def check_types(self) -> None:
        """Raise UsageError if an option has the wrong type."""
        for name in ("of", "tangents", "level", "title"):
            check_type(name, getattr(self, name), (str, type(None)), "a string")
        if self.path is not None:
            check_type("path", self.path, (str, Sequence), "a string or a sequence of names")

    def check_partition(self) -> None:
        """Raise UsageError for options that are incompatible with `mask` or `place`."""
        if self.workers is not None and self.place is None:
            raise UsageError(
                "`workers` (--workers) requires `place` (--place)",
                hint="pass place='layers:2' (--place layers:2)",
            )
        if self.mask is None and self.place is None:
            return
        name = "`mask` (--mask)" if self.mask is not None else "`place` (--place)"
        if self.level != "variables":
            raise UsageError(f"{name} requires level 'variables', got {self.level!r}")
        if self.mask is not None and self.scalars not in (False, True, ALL, (), ""):
            message = f"{name} expands all arrays, but `scalars` names single arrays"
            raise UsageError(message, hint="omit `scalars`, or pass scalars=True (--scalars all)")

    def check_level(self) -> None:
        """Raise UsageError for an invalid `level`, `parameters` or `backward_arrows` option."""
        if self.level not in LEVELS:
            hint = f"choose one of {', '.join(LEVELS)}"
            raise UsageError(f"unknown level {self.level!r}", hint=hint)
        if self.parameters not in (None, *PARAMETERS):
            hint = f"choose one of {', '.join(PARAMETERS)}"
            raise UsageError(f"unknown value {self.parameters!r} for `parameters`", hint=hint)
        if self.backward_arrows and not self.adjoints and self.level != "backward":
            raise UsageError(
                "`backward_arrows` (--backward-arrows) requires a backward pass",
                hint="pass adjoints=True (--adjoints) or level='backward' (--level backward)",
            )

    def check_overlays(self) -> None:
        """Raise UsageError if the chosen level does not support the chosen overlays."""
        if self.path is not None and not self.path_vertices:
            raise UsageError("`path` is empty", hint='list its vertices: path="xa xx xw"')
        if self.path_vertices and self.level != "variables":
            raise UsageError(f"`path` requires level 'variables', got {self.level!r}")
        if self.of is not None and not self.adjoints and self.level != "backward":
            raise UsageError(
                "`of` (--of) is the start of the backward pass, which this diagram does not show",
                hint="pass adjoints=True (--adjoints) or level='backward' (--level backward)",
            )
        if self.level == "backward" and self.has_overlays:
            hint = "pass values=True (--values) to show the values of its vertices"
            raise UsageError(
                "level 'backward' does not support `path`, `partials`, `tangents` or `adjoints`",
                hint=hint,
            )


def parse_path(path: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the vertices along a path, given as a sequence or as one string.

    >>> parse_path("xa xx, xz -> xw")
    ('xa', 'xx', 'xz', 'xw')
    """
    if isinstance(path, str):
        return tuple(name for name in re.split(r"[\s>→-]+|,(?![^\[]*\])", path) if name)
    return tuple(path or ())
