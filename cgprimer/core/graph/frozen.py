"""Dictionaries and lists of a graph: those of Python, but that nothing changes them."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from cgprimer.errors import UsageError

K = TypeVar("K")
V = TypeVar("V")


def _refuse(self: Any, *args: Any, **more: Any) -> NoReturn:
    raise UsageError(
        "a graph does not change: its dictionaries and lists are read only",
        hint="change the text and parse it again; copy.deepcopy makes a copy that may be changed",
    )


class FrozenList(list[V]):
    """A list that stays as it is. Copies and pickles of it are plain lists."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> Any:
        return list, (list(self),)


class FrozenDict(dict[K, V]):
    """A dictionary that stays as it is. Copies and pickles of it are plain dictionaries."""

    __slots__ = ()
    pop = popitem = clear = update = setdefault = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
