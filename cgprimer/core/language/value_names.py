"""Names of values that a text does not name: elements of arrays, and internal values of tapes.

An element is written ``W[0,1]``. Internal values, such as running statistics and adjoints, have
names with a dot, ``mean.xh``, which no name in a text can have. Only this module knows how both are
spelled.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ELEMENT = re.compile(r"([^\[]*)\[(\s*-?\d+\s*(?:,\s*-?\d+\s*)*)\]\s*")


class Element(NamedTuple):
    """An element of an array, such as ``W[0,1]``; no indices for a whole variable."""

    array: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.array}[{','.join(map(str, self.indices))}]" if self.indices else self.array


def parse_element(name: str) -> Element:
    """Return the array and the indices that a name such as ``W[0,1]`` stands for.

    >>> parse_element("W[0, 1]"), parse_element("k")
    (Element(array='W', indices=(0, 1)), Element(array='k', indices=()))
    >>> str(Element("W", (0, 1)))
    'W[0,1]'
    """
    match = _ELEMENT.fullmatch(name)
    if match is None:
        return Element(name, ())
    return Element(match[1].strip(), tuple(map(int, match[2].split(","))))


class InternalName(NamedTuple):
    """The name of an internal value: its kind, and the variable that it belongs to.

    >>> str(InternalName("mean", "xh"))
    'mean.xh'
    """

    kind: str
    variable: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.variable}"


def parse_internal(name: str) -> InternalName:
    """Return the parts of an internal name; the kind of any other name is empty.

    >>> parse_internal("variance.xh"), parse_internal("xh")
    (InternalName(kind='variance', variable='xh'), InternalName(kind='', variable='xh'))
    """
    kind, dot, variable = name.partition(".")
    return InternalName(kind, variable) if dot else InternalName("", name)


def is_internal(name: str) -> bool:
    """Return whether a name is internal, so that no text can have it.

    >>> is_internal("bar.xw"), is_internal("bar_xw")
    (True, False)
    """
    return "." in name
