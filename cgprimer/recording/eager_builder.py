"""A builder that computes immediately: ``emit`` returns a number or an array, not an index.

It has the methods that the backward sweep and the derivative rules need from
:class:`cgprimer.core.tape.builder.Builder` (``emit``, ``constant``, ``shape``, ``broadcast``,
``product``, ``add_contribution``), so that values use the
same derivative rules. If an operand is a :class:`Value`, so is the result: derivatives can be
differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations import float_arithmetic, numpy_arithmetic
from cgprimer.core.operations.array_shapes import broadcast_shapes, format_shape
from cgprimer.core.operations.element_operations import Concatenate, Scatter, Take
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.operations.primitive_registry import FUNCTIONS, Applied
from cgprimer.core.operations.shape_operations import (
    Broadcast,
    Reshape,
    Sum,
    Transpose,
    sum_to_shape,
)
from cgprimer.errors import ShapeError
from cgprimer.recording.recording_state import State, silent_context
from cgprimer.recording.source_lines import add_location, find_calling_line
from cgprimer.recording.value_base import ValueBase, get_data, initialize, lock_leaves

Operand = Any  # a float, an array, or a value
Entry = TypeVar("Entry")
_LIMIT = 1000
_MAX_INDICES = 250  # of a primitive that is cached
_new = object.__new__


class PrimitiveCache(dict[Any, Entry]):
    """A bounded cache keyed by primitive.

    Indexing primitives may contain long lists of indices that differ in every iteration.
    """

    def store(self, name: Applied, entry: Entry) -> Entry:
        """Store an entry, unless its primitive has long lists of indices, and return the entry."""
        if not _has_long_lists(name):
            if len(self) >= _LIMIT:
                self.clear()
            self[name] = entry
        return entry


def _has_long_lists(primitive: Applied) -> bool:
    """Return whether an indexing primitive contains long lists of indices."""
    if not isinstance(primitive, Take | Scatter):
        return False
    return sum(len(entry) for entry in primitive.key if isinstance(entry, tuple)) > _MAX_INDICES


class EagerBuilder:
    """A builder that computes primitives immediately, for scalars, arrays and recorded values.

    Args:
        value_class: class of recorded results; the module of :class:`Value` sets it.
    """

    def __init__(self, value_class: type[ValueBase] = ValueBase) -> None:
        self.value_class = value_class
        self.functions: PrimitiveCache[Callable[..., Any]] = PrimitiveCache()
        self.generation = 0  # generation of the primitive table that ``functions`` belongs to

    def constant(self, value: float) -> float:
        """Return a constant unchanged, because an eager builder has no leaves."""
        return value

    def shape(self, operand: Operand) -> Shape:
        """Return the shape of a scalar, an array or a recorded value."""
        data = operand._data if isinstance(operand, ValueBase) else operand
        if type(data) is float:
            return ()
        shape: Shape = data.shape if type(data) is np.ndarray else np.shape(data)
        return shape

    def broadcast(self, operand: Operand, shape: Shape) -> Operand:
        """Broadcast an operand to the given shape."""
        current = self.shape(operand)
        if current == shape:
            return operand
        if broadcast_shapes("broadcast", current, shape) != shape:
            raise ShapeError(
                f"cannot broadcast shape {format_shape(current)} to shape {format_shape(shape)}"
            )
        return self.emit(Broadcast.create(len(current), shape), operand)

    def emit(self, name: Applied, *operands: Operand) -> Operand:
        """Apply a primitive to operands; record the call if any operand is a ``Value``.

        Raises:
            ShapeError: the shapes do not match; the message shows the line of the user's program.
        """
        data, has_value, requires_grad = [], False, False
        has_array = name.__class__ is not str
        new_leaves: tuple[ValueBase, ...] = ()
        value_class = self.value_class
        for operand in operands:
            operand_data, kind = operand, operand.__class__
            if kind is value_class or (kind is not float and isinstance(operand, ValueBase)):
                has_value = True
                if operand.requires_grad:
                    requires_grad = True
                operand_data = operand._data
                kind = operand_data.__class__
                if kind is not float and not operand.primitive and not operand._in_use:
                    new_leaves += (operand,)
            if kind is not float:
                has_array = True
            data.append(operand_data)
        if not has_array:
            result = float_arithmetic.float_function(name)(*data)
        else:
            result = self._apply_to_arrays(name, data)
        if requires_grad and State.fast_path:
            for leaf in new_leaves:
                leaf._lock_data()
            value = _new(value_class)
            initialize(value, result, name, operands)
            return value
        if has_value:
            return self.wrap_result(result, name, operands, requires_grad=requires_grad)
        return result

    def _apply_to_arrays(self, name: Applied, data: Sequence[Any]) -> Any:
        """Apply a primitive to scalars and arrays with numpy; return a float or an array."""
        if self.generation != FUNCTIONS.generation:
            self.functions = PrimitiveCache()
            self.generation = FUNCTIONS.generation
        function = self.functions.get(name)
        if function is None:
            function = self.functions.store(name, find_array_function(name))
        try:
            result = silent_context().run(function, *data)
        except (ValueError, ShapeError) as error:
            raise shape_error(name, data, error) from None
        if not result.ndim and result.dtype == np.float64:
            return float(result)
        return result

    def wrap_result(
        self, data: Any, name: Applied, operands: tuple[Operand, ...], *, requires_grad: bool
    ) -> ValueBase:
        """Wrap the result of a primitive in a ``Value``, recorded if recording is enabled."""
        thread = State.thread
        requires_grad = requires_grad and thread.recording
        if requires_grad and not thread.with_lines:
            lock_leaves(operands)
        if requires_grad or thread.with_lines:
            return self.create_value(data, name, operands, requires_grad=requires_grad)
        if getattr(data, "base", None) is not None:
            data = data.copy()  # no graph keeps the base of this view
        return self.create_value(data, "", (), requires_grad=False)

    def create_value(
        self, data: Any, name: Applied, operands: tuple[Operand, ...], *, requires_grad: bool = True
    ) -> ValueBase:
        """Create the ``Value`` of an operation, with its source line if lines are recorded."""
        value = _new(self.value_class)
        initialize(value, data, name, operands, requires_grad)
        if State.thread.with_lines:
            value.line = find_calling_line()
        return value

    def product(self, adjoint: Operand, partial: Operand) -> Operand:
        """Multiply an adjoint by a partial derivative; return the adjoint if the partial is 1."""
        if type(partial) is float and partial == 1.0:
            return adjoint
        if type(adjoint) is type(partial) is np.ndarray and adjoint.dtype != partial.dtype:
            partial = partial.astype(adjoint.dtype)  # single precision stays single
        return self.emit("mul", adjoint, partial)

    def add_contribution(
        self, totals: dict[Any, Operand], to: Any, product: Operand, *contribution: Any
    ) -> None:
        """Add a contribution to the adjoint of a value, summed over broadcast axes."""
        product = sum_to_shape(self, product, self.shape(to))
        total = totals.get(to)
        totals[to] = product if total is None else self.emit("add", total, product)


def find_array_function(name: Applied) -> Callable[..., Any]:
    """Return the numpy function of a primitive, for arrays without sample axes."""
    if isinstance(name, str):
        return numpy_arithmetic.numpy_function(name)
    match name:
        case Matmul():
            return np.dot if name.ranks == (1, 1) else np.matmul
        case Transpose(axes):
            return lambda a: np.asarray(a).transpose(axes)
        case Reshape(_, shape):
            return lambda a: np.asarray(a).reshape(shape)
        case Sum(axes):
            return partial(np.add.reduce, axis=axes)

    def apply(*operands: Any) -> Any:
        """Apply the array operation to operands converted to arrays."""
        arrays = tuple([np.asarray(operand) for operand in operands])
        if isinstance(name, Concatenate):
            name.shape(*[array.shape for array in arrays])
        return name.run(*arrays)

    return apply


def shape_error(name: Applied, data: Sequence[Any], error: Exception) -> Exception:
    """Convert numpy's exception to a ShapeError with the user's line, if shapes do not match."""
    if not isinstance(error, ShapeError):
        shapes = [np.shape(get_data(operand)) for operand in data]
        try:
            if isinstance(name, str):
                broadcast_shapes(name, *shapes)
            else:
                name.shape(*shapes)
        except ShapeError as cause:
            error = cause
    return add_location(error) if isinstance(error, ShapeError) else error


EAGER: Any = EagerBuilder()  #: the builder of all values; its ``value_class`` is Value
