"""Memory that a recorded graph keeps for its backward pass, in bytes."""

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
    list_ancestors,
    unlock_leaves,
)


class MemoryRow(NamedTuple):
    """A scalar or an array that a recorded graph keeps in memory.

    Attributes:
        what: the primitive that computed the data, or the name of a leaf.
        shape: shape of the data; ``()`` for a scalar.
        bytes: size in memory; 0 if the data shares the memory of an earlier row.
        given: whether the data is a leaf, whose memory does not belong to the graph.
        gradient: size of the gradient of a leaf that requires grad; 0 otherwise.
        saved: whether the backward pass reads the data, so that any library must keep it.
    """

    what: str
    shape: Shape
    bytes: int
    given: bool
    gradient: int = 0
    saved: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """The memory use of a recorded graph: the result of :func:`memory`.

    ``print`` shows a table, ``cgprimer.plot.memory`` a picture.

    Attributes:
        rows: the scalars and arrays in memory, in the order in which they were computed.
    """

    rows: tuple[MemoryRow, ...]

    @property
    def kept(self) -> int:
        """Number of bytes that the graph keeps for its backward pass."""
        return sum(row.bytes for row in self.rows if not row.given)

    @property
    def given(self) -> int:
        """Number of bytes of the leaves: parameters and data."""
        return sum(row.bytes for row in self.rows if row.given)

    @property
    def saved(self) -> int:
        """Number of bytes of the computed values that the backward pass reads.

        Libraries that free all other values immediately, such as PyTorch, keep this much.
        """
        return sum(row.bytes for row in self.rows if row.saved and not row.given)

    @property
    def gradients(self) -> int:
        """Number of bytes of the gradients of the leaves."""
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
    """Measure the memory that is kept for the backward pass of a value or a function.

    Args:
        value: a computed value, or a function.
        args: arguments of the function, which is differentiated with respect to all of them.

    Raises:
        UsageError: ``value`` is neither a ``Value`` nor a function that returns a ``Value``.

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
        raise UsageError(
            f"memory() requires a Value or a function that returns a Value, got {value!r}"
        )
    order = list_ancestors([value])
    if is_function:
        unlock_leaves(order)
    rows: list[MemoryRow] = []
    owners: dict[int, Any] = {}
    read = set().union(*map(_find_saved_arrays, order)) if order else set()
    for ancestor in order:
        is_leaf = not ancestor.primitive or is_freed(ancestor.primitive)
        label = ancestor.name or "given" if is_leaf else format_primitive_name(ancestor.primitive)
        data = ancestor._data
        row = _create_row(label, data, owners, is_leaf=is_leaf)
        gradient = getattr(data, "nbytes", 8) if ancestor.requires_grad and is_leaf else 0
        rows.append(row._replace(gradient=gradient, saved=id(_find_memory_owner(data)) in read))
        rows += [
            _create_row(f"{label} saved", saved, owners, is_leaf=False)._replace(saved=True)
            for saved in _get_saved_values(ancestor)
            if isinstance(saved, float | np.ndarray) and id(_find_memory_owner(saved)) not in owners
        ]
    return Memory(tuple(rows))


def _get_saved_values(value: ValueBase) -> tuple[Any, ...]:
    """Return the values that a :class:`cgprimer.Function` saved for its backward pass."""
    context = get_saved_context(value.primitive)
    return context.saved if context else ()


def _find_saved_arrays(value: ValueBase) -> set[int]:
    """Return the ids of the arrays and floats that the backward function of a value reads."""
    function = None if is_freed(value.primitive) else create_grad_fn(value)
    if function is None:
        return set()
    saved = function.saved
    parts = saved.get("saved_tensors", tuple(saved.values()))
    return {id(_find_memory_owner(part)) for part in parts}


def _create_row(label: str, data: Any, owners: dict[int, Any], *, is_leaf: bool) -> MemoryRow:
    """Return the table row of an array or float, with 0 bytes if its memory is counted already."""
    owner = _find_memory_owner(data)
    size = 0 if id(owner) in owners else getattr(owner, "nbytes", 8)
    owners[id(owner)] = owner
    return MemoryRow(label, np.shape(data), size, given=is_leaf)


def _find_memory_owner(data: Any) -> Any:
    """Return the array that owns the memory of a view."""
    while isinstance(getattr(data, "base", None), np.ndarray):
        data = data.base
    return data
