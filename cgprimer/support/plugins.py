"""Registries: methods, engines, optimizers and picture formats by name.

Built-in objects are listed as ``module:attribute`` and imported on first use. Users add objects by
a call of ``register``, or by an entry point of an installed package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Generic, TypeVar

from cgprimer.errors import UsageError, name_hint

T = TypeVar("T")


class Registry(Generic[T]):
    """All objects of one kind by name.

    Args:
        kind: the noun for an object in messages, such as ``method``.
        group: the group of entry points, such as ``cgprimer.methods``.
        built_in: for each name the ``module:attribute`` of the object.

    >>> shapes = Registry[object]("shape", "cgprimer.shapes", {"tree": "builtins:dict"})
    >>> shapes.names(), shapes["tree"]
    (('tree',), <class 'dict'>)
    >>> shapes.register("line", list)
    >>> shapes.names(), shapes["line"]
    (('tree', 'line'), <class 'list'>)
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.kind, self.group = kind, group
        self._built_in = dict(built_in or {})
        self._loaded: dict[str, T] = {}

    @cached_property
    def _installed(self) -> dict[str, str]:
        """Entry points of installed packages: for each name ``module:attribute``."""
        from cgprimer.support.entry_points import read_entry_points

        return read_entry_points().get(self.group, {})

    def names(self) -> tuple[str, ...]:
        """Return all names: built-in, installed, registered, in this order."""
        return tuple(dict.fromkeys((*self._built_in, *self._installed, *self._loaded)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            name in self._built_in or name in self._loaded or name in self._installed
        )

    def __getitem__(self, name: str) -> T:
        """Return the object of a name.

        Raises:
            UsageError: the name is unknown, or the object cannot be imported.
        """
        if not isinstance(name, str) or name not in self._loaded:
            if name not in self:
                hint = name_hint(name, self.names())
                raise UsageError(f"there is no {self.kind} {name!r}", hint=hint)
            location = self._built_in.get(name) or self._installed[name]
            module, _, attribute = location.partition(":")
            try:
                self._loaded[name] = getattr(import_module(module), attribute)
            except Exception as error:
                if name in self._built_in:
                    raise
                what = f"the {self.kind} {name!r} of {location!r}"
                raise UsageError(f"{what} cannot be loaded: {error}") from error
        return self._loaded[name]

    def register(self, name: str, thing: T) -> None:
        """Add an object.

        Raises:
            UsageError: the name is in use.
        """
        if name in self:
            raise UsageError(f"the name {name!r} is taken by another {self.kind}")
        self._loaded[name] = thing

    def unregister(self, name: str) -> None:
        """Remove an object that :meth:`register` added.

        Raises:
            UsageError: no such object was registered.
        """
        if name in self._built_in or name not in self._loaded:
            raise UsageError(f"no {self.kind} {name!r} was registered")
        del self._loaded[name]
