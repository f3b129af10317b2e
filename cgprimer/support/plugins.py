"""Registries that find methods, engines, optimizers and picture formats by name.

Built-in objects are listed as ``module:attribute`` and imported on first use. Users add objects by
calling ``register``, or through an entry point of an installed package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from typing import Generic, TypeVar

from cgprimer.errors import UsageError, name_hint

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from names to objects of one kind, such as methods or engines.

    Args:
        kind: the noun for an object in messages, such as ``method``.
        group: the group of entry points, such as ``cgprimer.methods``.
        built_in: locations ``module:attribute`` of the built-in objects, keyed by name.

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
        """Locations ``module:attribute`` of the entry points of the group, keyed by name."""
        from cgprimer.support.entry_points import read_entry_points

        return read_entry_points().get(self.group, {})

    def names(self) -> tuple[str, ...]:
        """Return all names: built-in names, then entry points, then registered names."""
        return tuple(dict.fromkeys((*self._built_in, *self._installed, *self._loaded)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            name in self._built_in or name in self._loaded or name in self._installed
        )

    def __getitem__(self, name: str) -> T:
        """Return the object with the given name; import it at its first use.

        Raises:
            UsageError: the name is unknown, or the object cannot be imported.
        """
        if not isinstance(name, str) or name not in self._loaded:
            if name not in self:
                hint = name_hint(name, self.names())
                raise UsageError(f"unknown {self.kind} {name!r}", hint=hint)
            location = self._built_in.get(name) or self._installed[name]
            module, _, attribute = location.partition(":")
            try:
                self._loaded[name] = attrgetter(attribute)(import_module(module))
            except Exception as error:
                if name in self._built_in:
                    raise
                message = f"cannot load {self.kind} {name!r} from {location!r}: {error}"
                raise UsageError(message) from error
        return self._loaded[name]

    def register(self, name: str, entry: T) -> None:
        """Register an object under a new name.

        Raises:
            UsageError: the name is in use.
        """
        if name in self:
            raise UsageError(f"{self.kind} {name!r} is already registered")
        self._loaded[name] = entry

    def unregister(self, name: str) -> None:
        """Remove a registered object.

        Raises:
            UsageError: no such object was registered.
        """
        if name in self._built_in or name not in self._loaded:
            raise UsageError(f"{self.kind} {name!r} is not registered")
        del self._loaded[name]
