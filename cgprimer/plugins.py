"""Things by name, from inside and from outside: methods, engines, optimizers, picture formats.

What the package brings is listed as ``module:attribute`` and loaded when it is asked for. Others
add theirs by a call (``register``), or put it into a package of their own: an entry point of the
group is found as soon as that package is installed.

Source: the Python Packaging User Guide, "Creating and discovering plugins".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Generic, TypeVar

from cgprimer.errors import UsageError, name_hint

T = TypeVar("T")


class Registry(Generic[T]):
    """All things of one kind, by name.

    Args:
        kind: what one of them is called in messages: ``method``.
        group: the entry points' group, such as ``cgprimer.methods``.
        built_in: name to ``module:attribute``.

    >>> shapes = Registry[object]("shape", "cgprimer.shapes", {"tree": "builtins:dict"})
    >>> shapes.names(), shapes["tree"]
    (('tree',), <class 'dict'>)
    >>> shapes.register("line", list)
    >>> shapes.names(), shapes["line"]
    (('tree', 'line'), <class 'list'>)
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.kind, self.group = kind, group
        self._places = dict(built_in or {})
        self._loaded: dict[str, T] = {}

    @cached_property
    def _installed(self) -> dict[str, str]:
        """Entry points of installed packages; looked up once, where a name is not built in."""
        from cgprimer.entry_points import entry_points

        return entry_points().get(self.group, {})

    def names(self) -> tuple[str, ...]:
        """Every name: built in, installed, registered, in this order."""
        return tuple(dict.fromkeys((*self._places, *self._installed, *self._loaded)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._loaded or name in self._installed

    def __getitem__(self, name: str) -> T:
        """The thing itself.

        Raises:
            UsageError: there is none of that name, or it cannot be imported.
        """
        if name not in self._loaded:
            if name not in self:
                hint = name_hint(name, self.names())
                raise UsageError(f"there is no {self.kind} {name!r}", hint=hint)
            place = self._places.get(name) or self._installed[name]
            module, _, attribute = place.partition(":")
            try:
                self._loaded[name] = getattr(import_module(module), attribute)
            except Exception as error:
                if name in self._places:
                    raise
                what = f"the {self.kind} {name!r} of {place!r}"
                raise UsageError(f"{what} cannot be loaded: {error}") from error
        return self._loaded[name]

    def register(self, name: str, thing: T) -> None:
        """Add a thing of one's own.

        Raises:
            UsageError: the name is taken.
        """
        if name in self:
            raise UsageError(f"the name {name!r} is taken by another {self.kind}")
        self._loaded[name] = thing

    def unregister(self, name: str) -> None:
        """Take a thing out again that was registered by a call.

        Raises:
            UsageError: it was not.
        """
        if name in self._places or name not in self._loaded:
            raise UsageError(f"no {self.kind} {name!r} was registered")
        del self._loaded[name]
