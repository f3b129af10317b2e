"""Names of elements of arrays and of internal values of tapes.

An element has a name such as ``W[0,1]``. Internal values, such as adjoints and running statistics,
have names with a kind and a dot, such as ``bar.xw``, which names of users cannot contain. Mappings
are keyed by these strings; only this module formats and parses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cgprimer.errors import name_hint

_ELEMENT = re.compile(r"([^\[]*)\[(\s*-?\d+\s*(?:,\s*-?\d+\s*)*)\]\s*")
_INTERNAL = re.compile(r"([^.]*?)(\d*)\.(.*)", re.DOTALL)


class Element(NamedTuple):
    """The name of an element or row of an array, such as ``W[0,1]``, or of a whole variable."""

    array: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.array}[{','.join(map(str, self.indices))}]" if self.indices else self.array


def parse_element(name: str) -> Element:
    """Split the name of an element, such as ``W[0,1]``, into the array name and the indices.

    A name without brackets has no indices.

    >>> parse_element("W[0, 1]"), parse_element("k")
    (Element(array='W', indices=(0, 1)), Element(array='k', indices=()))
    >>> str(Element("W", (0, 1)))
    'W[0,1]'
    """
    match = _ELEMENT.fullmatch(name)
    if match is None:
        return Element(name, ())
    return Element(match[1].strip(), tuple(map(int, match[2].split(","))))


def extract_array_name(name: object) -> str:
    """Return the part of a name before the first bracket, even if the indices are invalid.

    >>> extract_array_name("W[0,1]"), extract_array_name("W[0:2]"), extract_array_name("k")
    ('W', 'W', '')
    """
    array, bracket, _ = str(name).partition("[")
    return array if bracket else ""


def element_hint(name: str, names: Iterable[str]) -> str:
    """Return a hint that suggests names similar to an unknown variable or element.

    >>> element_hint("W[0:2]", ["W", "k"])
    "use all of 'W', or one element, such as W[0]"
    """
    candidates = list(names)
    if (array := extract_array_name(name)) and array in candidates:
        return f"use all of {array!r}, or one element, such as {Element(array, (0,))}"
    return name_hint(name, candidates)


class InternalName(NamedTuple):
    """The name of an internal value: a kind, such as ``bar`` for an adjoint, and its variables.

    Attributes:
        kind: ``bar`` for an adjoint, ``dot`` for a tangent, ``mean`` for a running mean, etc.
        variables: the variable of an adjoint, or head and tail of a partial derivative.
        number: distinguishes internal values with equal kind and variables.

    >>> str(InternalName("bar", ("xz",))), str(InternalName("bar", ("xz",), number=2))
    ('bar.xz', 'bar2.xz')
    """

    kind: str
    variables: tuple[str, ...]
    number: int = 1

    def __str__(self) -> str:
        return internal_name(self.kind, *self.variables, number=self.number)

    @property
    def variable(self) -> str:
        """The names of the variables of the internal value, joined by dots."""
        return ".".join(self.variables)


def internal_name(kind: str, *variables: str, number: int = 1) -> str:
    """Format the name of an internal value, such as ``bar.xw``.

    >>> internal_name("mean", "xh"), internal_name("partial", "xw", "xa")
    ('mean.xh', 'partial.xw.xa')
    """
    return ".".join((kind if number == 1 else f"{kind}{number}", *variables))


def parse_internal(name: str) -> InternalName:
    """Split an internal name into its kind and variables; the name of a user has no kind.

    >>> parse_internal("partial.xw.xa")
    InternalName(kind='partial', variables=('xw', 'xa'), number=1)
    >>> parse_internal("xh").kind
    ''
    """
    match = _INTERNAL.fullmatch(name)
    if match is None:
        return InternalName("", (name,))
    return InternalName(match[1], tuple(match[3].split(".")), int(match[2] or 1))


def is_internal(name: str) -> bool:
    """Return whether a name belongs to an internal value, such as ``bar.xw``.

    >>> is_internal("bar.xw"), is_internal("bar_xw")
    (True, False)
    """
    return "." in name


def format_name(name: str) -> str:
    """Format a name for listings, with underscores instead of dots.

    >>> format_name("bar.xw")
    'bar_xw'
    """
    return name.replace(".", "_")
