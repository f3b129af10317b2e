"""Memory that a graph keeps for its backward pass, in bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.errors import UsageError, pluralize
from cgprimer.recording.grad_functions import create_grad_fn
from cgprimer.recording.transforms import call_with_values
from cgprimer.recording.value import Value
from cgprimer.recording.value_base import (
    ValueBase,
    format_primitive_name,
    get_saved_context,
    is_freed,
    unlock_leaves,
)


class MemoryRow(NamedTuple):
    """A number or an array that is kept in memory.

    Attributes:
        what: the primitive that computed it, or the name of a leaf.
        shape: ``()`` for a number.
        bytes: size of its memory; 0 if it shares the memory of an earlier row.
        given: whether it is a leaf: its memory does not belong to the graph.
        gradient: size of its gradient, for a leaf that requires one.
        saved: whether a step of the backward pass reads it, so that any library must keep it.
    """

    what: str
    shape: Shape
    bytes: int
    given: bool
    gradient: int = 0
    saved: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """The result of :func:`memory`: a table for ``print`` and ``cgprimer.plot.memory``.

    Attributes:
        rows: the numbers and arrays that are kept, in the order in which they were computed.
    """

    rows: tuple[MemoryRow, ...]

    @property
    def kept(self) -> int:
        """Bytes that the graph keeps."""
        return sum(row.bytes for row in self.rows if not row.given)

    @property
    def given(self) -> int:
        """Bytes of the leaves: parameters and data."""
        return sum(row.bytes for row in self.rows if row.given)

    @property
    def saved(self) -> int:
        """Bytes of the computed values that steps of the backward pass read.

        A library that frees all other values at once, such as PyTorch, keeps this much.
        """
        return sum(row.bytes for row in self.rows if row.saved and not row.given)

    @property
    def gradients(self) -> int:
        """Bytes of the gradients of the leaves."""
        return sum(row.gradient for row in self.rows)

    def __repr__(self) -> str:
        return f"<Memory: {self.kept:,} bytes kept for the backward pass>"

    def __str__(self) -> str:
        table = [("what", "shape", "bytes", "")]
        for row in self.rows:
            size = f"{row.bytes:,}" if row.bytes else "shared"
            table.append((row.what, str(row.shape), size, "given" if row.given else ""))
        widths = [max(len(row[i]) for row in table) for i in range(3)]
        lines = [
            f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip()
            for a, b, c, d in table
        ]
        count = pluralize(sum(not row.given for row in self.rows), "value")
        lines.append(f"kept for the backward pass: {self.kept:,} bytes in {count}")
        return "\n".join(lines)


def memory(value: Value | Callable[..., Any], *args: Any) -> Memory:
    """Return the memory kept for the backward pass of a value, or of a function's result.

    Args:
        value: a computed value, or a function.
        args: arguments of the function, which is differentiated with respect to all of them.

    Raises:
        UsageError: ``value`` is neither a value nor a function that returns one.

    >>> import numpy as np
    >>> from cgprimer import Value, memory
    >>> x = Value(np.ones((2, 3)), name="x")
    >>> print(memory((x.tanh()*2.0).sum()))
    what  shape   bytes
    x     (2, 3)     48  given
    tanh  (2, 3)     48
    mul   (2, 3)     48
    sum   ()          8
    kept for the backward pass: 104 bytes in 3 values
    """
    is_function = False
    if callable(value) and not isinstance(value, Value):
        is_function = True
        value, _, _ = call_with_values(value, tuple(range(len(args))), args, {})
    if not isinstance(value, Value):
        raise UsageError(f"memory() requires a value or a function that returns one, got {value!r}")
    order = _list_ancestors(value)
    if is_function:
        unlock_leaves(order)
    rows: list[MemoryRow] = []
    counted: dict[int, Any] = {}
    read = set().union(*map(_find_saved_arrays, order)) if order else set()
    for ancestor in order:
        is_leaf = not ancestor.primitive or is_freed(ancestor.primitive)
        label = ancestor.name or "given" if is_leaf else format_primitive_name(ancestor.primitive)
        data = ancestor._data
        row = _create_row(label, data, counted, is_leaf=is_leaf)
        gradient = getattr(data, "nbytes", 8) if ancestor.requires_grad and is_leaf else 0
        rows.append(row._replace(gradient=gradient, saved=id(_find_memory_owner(data)) in read))
        rows += [
            _create_row(f"{label} saved", saved, counted, is_leaf=False)._replace(saved=True)
            for saved in _get_saved_values(ancestor)
            if isinstance(saved, float | np.ndarray)
            and id(_find_memory_owner(saved)) not in counted
        ]
    return Memory(tuple(rows))


def _get_saved_values(value: ValueBase) -> tuple[Any, ...]:
    """Return what a :class:`cgprimer.Function` saved for its backward pass."""
    context = get_saved_context(value.primitive)
    return context.saved if context else ()


def _find_saved_arrays(value: ValueBase) -> set[int]:
    """Return the identities of the arrays and numbers that one step of the backward pass reads."""
    function = None if is_freed(value.primitive) else create_grad_fn(value)
    if function is None:
        return set()
    saved = function.saved
    parts = saved.get("saved_tensors", tuple(saved.values()))
    return {id(_find_memory_owner(part)) for part in parts}


def _list_ancestors(root: ValueBase) -> list[ValueBase]:
    """Return all values that a value depends on, and itself, the first computed first."""
    seen, stack = {root}, [root]
    while stack:
        for operand in stack.pop().operands:
            if isinstance(operand, ValueBase) and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return sorted(seen, key=lambda value: value.serial)


def _create_row(what: str, data: Any, counted: dict[int, Any], *, is_leaf: bool) -> MemoryRow:
    """Return the row of an array or number; its memory is counted once."""
    owner = _find_memory_owner(data)
    size = 0 if id(owner) in counted else getattr(owner, "nbytes", 8)
    counted[id(owner)] = owner
    return MemoryRow(what, np.shape(data), size, given=is_leaf)


def _find_memory_owner(data: Any) -> Any:
    """Return the array that owns the memory of a view."""
    while isinstance(getattr(data, "base", None), np.ndarray):
        data = data.base
    return data
