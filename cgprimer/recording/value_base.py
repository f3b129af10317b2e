"""Storage of recorded values: data, primitive, operands, and a version counter.

A backward pass needs the data that the forward pass used. Each change through the interface of a
value increases its version. Arrays that a graph uses are read-only for the user until the backward
pass. If the user reads ``x.data`` of a leaf before the backward pass, the array becomes writable
and is copied: the next use of the leaf and the next backward pass compare the array with the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any
from weakref import ref

import numpy as np

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.operations.custom_operations import CustomCall
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.recording.recording_state import State, next_serial

FREED = "freed:"  #: prefix of the primitive's name after a backward pass has freed the graph


class ValueBase:
    """The storage of a :class:`Value`, without operators and methods.

    Attributes:
        requires_grad: whether derivatives with respect to the value or its operands are computed.
        name: name in pictures and listings.
        primitive: the primitive that computed the value; empty for a leaf.
        operands: operands of the primitive: values, or plain scalars and arrays.
        serial: serial number, greater than the serial numbers of the operands.
        line: file and line number of the code that computed the value, if lines are recorded.
    """

    # Attributes of all values are slots, for loops of a million operations. Attributes that few
    # values set are in ``__dict__``, with the defaults below.
    __slots__ = (
        "__dict__", "__weakref__", "_bar", "_data", "_grad", "operands", "primitive",
        "requires_grad", "serial",
    )  # fmt: skip
    _data: Any
    _grad: Any
    _bar: Any  # adjoint while a backward pass runs; None outside of a pass
    requires_grad: bool
    primitive: Applied
    operands: tuple[Any, ...]
    serial: int
    name: str = ""
    line: tuple[str, int] | None = None
    _repeats: int = 0  # number of passes that added to an existing gradient; -1: grad was assigned
    _version: int = 0  # serial number of the latest in-place change
    _in_use: bool = False  # whether a graph has used the array of this leaf since the last pass
    _exposed: bool = False  # whether the user may have the array of this leaf
    _before_exposure: Any = None  # copy of an array that was read while a graph used it

    def __init__(
        self,
        data: Any,
        primitive: Applied = "",
        operands: tuple[Any, ...] = (),
        requires_grad: bool = True,
    ) -> None:
        self._data = data
        self.primitive = primitive
        self.operands = operands
        self.requires_grad = requires_grad
        self.serial = next_serial()
        self._grad = self._bar = None

    def _mark_changed(self) -> None:
        """Increase the version after an in-place change to the data."""
        self._version = State.last_change = next_serial()

    def _expose_data(self) -> Any:
        """Return the data for the user: writable for leaves, read-only for computed values."""
        data = self._data
        if isinstance(data, np.ndarray):
            if not self.primitive and data.base is not None:
                data = self._data = data.copy()  # writing to a view would change its base
            self._exposed = True
            data.flags.writeable = not self.primitive
            if self._in_use:
                self._in_use = False  # the next use compares with the copy
                self._before_exposure = data.copy()
                _exposed_in_use.append(ref(self))
        return data

    def _detect_change(self) -> None:
        """Increase the version if the user wrote to an array that a graph uses."""
        before, self._before_exposure = self._before_exposure, None
        if before is not None and before.tobytes() != self._data.tobytes():
            self._mark_changed()

    def _lock_data(self) -> None:
        """Make the array of this leaf read-only while a graph uses the array."""
        self._detect_change()
        self._in_use = True
        if self._exposed and isinstance(self._data, np.ndarray):
            self._data.flags.writeable = False

    def _unlock_data(self) -> None:
        """Make the array of this leaf writable after a backward pass."""
        self._in_use = False
        if self._exposed and isinstance(self._data, np.ndarray):
            self._data.flags.writeable = True

    def _get_writable_data(self) -> Any:
        """Return the array for an in-place change; None for a scalar or a view."""
        data = self._data
        if not isinstance(data, np.ndarray) or data.base is not None:
            return None
        data.flags.writeable = True
        return data


initialize = ValueBase.__init__
_exposed_in_use: list[ref[ValueBase]] = []  # leaves read while a graph used them


def detect_changes() -> None:
    """Increase the versions of leaves whose arrays the user changed after a graph used them."""
    while _exposed_in_use:
        leaf = _exposed_in_use.pop()()
        if leaf is not None:
            leaf._detect_change()


def get_data(operand: Any) -> Any:
    """Return the data of a ``Value``; return plain scalars and arrays unchanged."""
    return operand._data if isinstance(operand, ValueBase) else operand


def lock_leaves(operands: Iterable[Any]) -> None:
    """Make the arrays of all leaves among the operands read-only."""
    for operand in operands:
        if isinstance(operand, ValueBase) and not operand.primitive and not operand._in_use:
            operand._lock_data()


def unlock_leaves(operands: Iterable[Any]) -> None:
    """Make the arrays of all leaves among the operands writable."""
    for operand in operands:
        if isinstance(operand, ValueBase) and operand._in_use:
            operand._unlock_data()


def list_ancestors(
    roots: Iterable[ValueBase],
    get_operands: Callable[[ValueBase], Iterable[Any]] = attrgetter("operands"),
) -> list[ValueBase]:
    """Return the roots and all values that they depend on, in the order of computation."""
    seen, stack = set(roots), [*roots]
    while stack:
        for operand in get_operands(stack.pop()):
            if isinstance(operand, ValueBase) and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return sorted(seen, key=attrgetter("serial"))


def format_primitive_name(primitive: Applied) -> str:
    """Return the name of a primitive in listings and messages."""
    if isinstance(primitive, CustomCall):
        return primitive.spelling
    return operator_name(primitive).removeprefix(FREED)


def is_freed(primitive: Applied) -> bool:
    """Return whether a primitive is marked as freed by a backward pass."""
    return isinstance(primitive, str) and primitive.startswith(FREED)


def get_saved_context(primitive: Applied) -> Any:
    """Return the context that a custom function filled; None for other primitives."""
    return (
        getattr(primitive.function, "context", None) if isinstance(primitive, CustomCall) else None
    )
