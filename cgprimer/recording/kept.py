"""What is kept for the backward pass, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.language.syntax import Shape
from cgprimer.errors import UsageError, plural
from cgprimer.recording.chain import chain_of
from cgprimer.recording.eager import Recorded, called
from cgprimer.recording.transforms import called_with
from cgprimer.recording.value import Value


class Kept(NamedTuple):
    """A number or an array that is kept.

    Attributes:
        what: the primitive that computed it, or the name of what was given.
        shape: ``()`` for a number.
        bytes: 0 where it shares the memory of one before.
        given: whether it was there before: its memory is not the graph's.
        gradient: bytes of its gradient, of what was given and requires one.
        saved: whether a step of the backward pass reads it, so that it must be kept by any library.
    """

    what: str
    shape: Shape
    bytes: int
    given: bool
    gradient: int = 0
    saved: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """What :func:`memory` found; ``print`` shows it as a table, ``cgprimer.plot.memory`` draws it.

    Attributes:
        rows: what is kept, in the order in which it was computed.
    """

    rows: tuple[Kept, ...]

    @property
    def kept(self) -> int:
        """Bytes that the graph keeps."""
        return sum(row.bytes for row in self.rows if not row.given)

    @property
    def given(self) -> int:
        """Bytes that were there before: parameters and data."""
        return sum(row.bytes for row in self.rows if row.given)

    @property
    def saved(self) -> int:
        """Bytes of the computed values that steps of the backward pass read.

        A library that frees all other values at once, as PyTorch does, keeps as much.
        """
        return sum(row.bytes for row in self.rows if row.saved and not row.given)

    @property
    def gradients(self) -> int:
        """Bytes of the gradients of what was given and requires one."""
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
        number = plural(sum(not row.given for row in self.rows), "value")
        lines.append(f"kept for the backward pass: {self.kept:,} bytes in {number}")
        return "\n".join(lines)


def memory(value: Value | Callable[..., Any], *args: Any) -> Memory:
    """What is kept for the backward pass of a value, or of what a function returns.

    Args:
        value: one that was computed; or a function.
        args: the function's arguments; it is differentiated with respect to all.

    Raises:
        UsageError: it is neither, or the function returns no value.

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
    if callable(value) and not isinstance(value, Value):
        value, _, _ = called_with(value, tuple(range(len(args))), args, {})
    if not isinstance(value, Value):
        raise UsageError(
            f"memory is asked of a value or of a function that returns one, not of {value!r}"
        )
    rows: list[Kept] = []
    seen: dict[int, Any] = {}
    order = list(_in_order(value))
    read = set().union(*map(_read_by, order)) if order else set()
    for one in order:
        own = one.primitive and not one.primitive.startswith("freed:")
        what = called(one.primitive) if own else one.name or "given"
        row = _row(what, one._data, seen, given=not own)
        gradient = getattr(one._data, "nbytes", 8) if one.requires_grad and not own else 0
        rows.append(row._replace(gradient=gradient, saved=id(_owner(one._data)) in read))
        setting = getattr(one.primitive, "setting", ())
        context = getattr(setting[0], "context", None) if setting else None
        saved = context.saved if context else ()
        rows += [
            _row(f"{what} saved", kept, seen, given=False)._replace(saved=True)
            for kept in saved
            if isinstance(kept, float | np.ndarray) and id(_owner(kept)) not in seen
        ]
    return Memory(tuple(rows))


def _read_by(value: Recorded) -> set[int]:
    """Return the identities of the arrays and numbers that one step of the backward pass reads."""
    function = chain_of(value) if value.primitive and "freed:" not in value.primitive else None
    if function is None:
        return set()
    saved = function.saved
    parts = saved.get("saved_tensors", tuple(saved.values()))
    return {id(_owner(part)) for part in parts}


def _in_order(root: Recorded) -> Iterator[Recorded]:
    found, stack = {root}, [root]
    while stack:
        for operand in stack.pop().operands:
            if isinstance(operand, Recorded) and operand not in found:
                found.add(operand)
                stack.append(operand)
    return iter(sorted(found, key=lambda value: value.serial))


def _row(what: str, data: Any, seen: dict[int, Any], *, given: bool) -> Kept:
    owner = _owner(data)
    size = 0 if id(owner) in seen else getattr(owner, "nbytes", 8)
    seen[id(owner)] = owner
    return Kept(what, np.shape(data), size, given)


def _owner(data: Any) -> Any:
    """The array whose memory this is."""
    while isinstance(getattr(data, "base", None), np.ndarray):
        data = data.base
    return data
