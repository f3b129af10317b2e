"""Recorded scalars and arrays with the interface of PyTorch's tensors.

A :class:`Value` wraps a float or a numpy array. Every operation on values returns a value that
stores its primitive and operands. :meth:`Value.backward` runs reverse mode over these operations,
from the last to the first.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from cgprimer.core.operations import function_expansions, matrix_operations, shape_operations
from cgprimer.core.operations.array_shapes import normalize_axis
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.errors import ShapeError, UsageError
from cgprimer.recording.backward_pass import accumulate_gradients
from cgprimer.recording.data_conversion import to_data, to_operand
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.fused_softmax import create_log_softmax
from cgprimer.recording.grad_functions import create_grad_fn
from cgprimer.recording.indexing import index_value
from cgprimer.recording.numpy_functions import apply_function, apply_ufunc
from cgprimer.recording.operators import (
    create_binary_operator,
    create_comparison,
    create_in_place_operator,
    create_numpy_method,
    create_unary_operator,
)
from cgprimer.recording.recording_state import State, set_recording
from cgprimer.recording.source_lines import locate_errors
from cgprimer.recording.torch_names import TensorNames

_MATRIX_PRODUCT = Matmul(2, 2)


class Value(TensorNames):
    """A scalar or an array whose operations are recorded for differentiation.

    Args:
        data: a real number, or an array or nested lists of real numbers; arrays are copied.
        requires_grad: whether derivatives with respect to the value are computed.
        name: name in pictures and listings; ``label`` in micrograd.

    Raises:
        UsageError: the data is not real-valued, nested lists have different lengths, or
            ``requires_grad`` is neither True nor False.

    Attributes:
        data: a float, or an array of any shape.
        grad: the gradient accumulated in all backward passes, in the shape of ``data``.

    >>> x = Value(3.0, name="x")
    >>> y = x*x + 2.0*x
    >>> y.backward()
    >>> y.data, x.grad
    (15.0, 8.0)

    Source: the interfaces of PyTorch's Tensor and micrograd's Value.
    """

    __array_priority__ = 1000

    __slots__ = ()

    def __init__(
        self, data: Any, requires_grad: bool = True, name: str = "", *, label: str = ""
    ) -> None:
        if requires_grad is not True and not isinstance(requires_grad, bool | int | np.bool_):
            raise UsageError(
                f"`requires_grad` must be True or False, got {requires_grad!r}",
                hint="pass a name by keyword: Value(1.0, name='w')",
            )
        super().__init__(to_data(data), requires_grad=bool(requires_grad))
        if name or label:
            self.name = str(name or label)

    # --- data and gradient -----------------------------------------------------------------------

    @property
    def data(self) -> Any:
        """The float or array of the value; arrays of computed values are read-only."""
        return self._expose_data()

    @data.setter
    def data(self, data: Any) -> None:
        """Set the data, which counts as an in-place modification."""
        if data is not self._data:  # ``x.data -= 1`` assigns the array itself
            self._data = _match_precision(to_data(data), self._data)
            if self._in_use:
                self._in_use = False
        self._before_exposure = None
        self._mark_changed()

    @property
    def grad(self) -> Any:
        """The accumulated gradient; zeros before the first backward pass.

        None for values that do not require grad and for computed arrays; computed scalars keep
        their gradients.
        """
        if self._grad is not None or not self.requires_grad:
            return self._grad
        if type(self._data) is float:
            return 0.0
        if self.primitive:
            warnings.warn(
                "`grad` of a computed array is always None: only leaves and scalars accumulate"
                " gradients\n  hint: create parameters with Value(...), and update them in place"
                " under no_grad(): w -= step",
                stacklevel=2,
            )
            return None
        return np.zeros_like(self._data)

    @grad.setter
    def grad(self, grad: Any) -> None:
        """Set the accumulated gradient."""
        data = None if grad is None else to_data(grad)
        if data is not None and np.shape(data) not in ((), self.shape):
            raise ShapeError(f"`grad` must have shape {self.shape}, got {np.shape(data)}")
        self._grad = data
        self._repeats = 0 if grad is None else -1

    def zero_grad(self) -> None:
        """Reset the accumulated gradient to zero."""
        self._grad, self._repeats = None, 0

    def detach(self) -> Value:
        """Return a value with the same data that does not require grad."""
        if not State.thread.with_lines:
            return Value(self._data, requires_grad=False, name=self.name)
        copy: Value = EAGER.emit("copy", self)  # record() writes it into its graph
        copy.requires_grad, copy.name = False, self.name
        return copy

    def item(self) -> float:
        """Return the only element as a float.

        Raises:
            UsageError: the value does not have exactly one element.
        """
        if type(self._data) is float:
            return self._data
        if self.size != 1:
            raise UsageError(
                f"cannot convert a Value of shape {self.shape} to a scalar",
                hint="reduce it with sum(), mean() or an index, or use detach().data",
            )
        return float(self._data.item())

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the data; ``()`` for a scalar."""
        data = self._data
        return () if type(data) is float else data.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return 1 if type(self._data) is float else int(self._data.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the data: float64 or float32."""
        return np.asarray(self._data).dtype

    def __len__(self) -> int:
        if not self.shape:
            raise UsageError("cannot iterate over a scalar Value, which has no length")
        return self.shape[0]

    @locate_errors
    def __float__(self) -> float:
        number = self.item()
        if self.requires_grad and State.thread.recording:  # ``math.exp(x)``, ``array[0] = x``
            raise UsageError(
                "cannot convert a Value that requires grad to float",
                hint="use np.exp instead of math.exp, and np.stack instead of array[i] = value; to"
                " get the number, use value.item() or f'{value:.3f}'",
            )
        return number

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @locate_errors
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.requires_grad and State.thread.recording:
            raise UsageError(
                "cannot convert a Value that requires grad to a numpy array",
                hint="join values with np.stack, or pass value.detach().data",
            )
        return np.array(self._data, dtype)

    def __repr__(self) -> str:
        data = self._data
        text = repr(data) if type(data) is float else repr(np.asarray(data))[6:-1]
        if self._grad is not None:
            text += f", grad={self.grad}"
        if self.grad_fn:
            text += f", grad_fn={self.grad_fn!r}"
        if not self.requires_grad:
            text += ", requires_grad=False"
        return f"Value({text})"

    __hash__ = object.__hash__

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.operands:
            raise UsageError(
                "cannot copy or pickle a computed Value, which refers to its whole graph",
                hint="copy value.detach(), which holds the data without the graph",
            )
        return Value, (self._data, self.requires_grad, self.name), (None, {"_grad": self._grad})

    # --- reverse mode ----------------------------------------------------------------------------

    @locate_errors
    def backward(self, gradient: Any = None, *, retain_graph: bool = False) -> None:
        """Compute the derivatives of this value and add them to ``grad`` of all leaves.

        Args:
            gradient: upstream gradient, in the shape of this value; 1 by default for a scalar.
            retain_graph: keep the graph for another backward pass.

        Raises:
            DifferentiationError: the value does not require grad, it is not a scalar and no
                gradient is given, the graph was freed, or data was modified in place after use.
        """
        if gradient is None and self._data.__class__ is not float and self.shape and self.size == 1:
            gradient = np.ones(self.shape)
        accumulate_gradients(
            self, gradient if gradient is None else to_data(gradient), free=not retain_graph
        )

    @property
    def grad_fn(self) -> Any:
        """The backward function of the operation that computed this value; None for leaves."""
        return create_grad_fn(self)

    # --- operators and functions -----------------------------------------------------------------

    __add__, __radd__ = create_binary_operator("add")
    __sub__, __rsub__ = create_binary_operator("sub")
    __mul__, __rmul__ = create_binary_operator("mul")
    __truediv__, __rtruediv__ = create_binary_operator("div")
    __pow__, __rpow__ = create_binary_operator("pow")
    __neg__, __abs__ = create_unary_operator("neg"), create_unary_operator("abs")
    __lt__, __le__ = create_comparison(operator.lt), create_comparison(operator.le)
    __gt__, __ge__ = create_comparison(operator.gt), create_comparison(operator.ge)
    __eq__, __ne__ = create_comparison(operator.eq), create_comparison(operator.ne)
    __iadd__, __isub__ = create_in_place_operator("add"), create_in_place_operator("sub")
    __imul__, __itruediv__ = create_in_place_operator("mul"), create_in_place_operator("div")
    relu, exp, log, tanh, sigmoid = map(
        create_unary_operator, ("relu", "exp", "log", "tanh", "sigmoid")
    )
    sin, cos, sqrt, abs = map(create_unary_operator, ("sin", "cos", "sqrt", "abs"))
    var, std, prod, dot, clip = map(create_numpy_method, ("var", "std", "prod", "dot", "clip"))
    ravel, flatten, squeeze, copy = map(create_numpy_method, ("ravel", "ravel", "squeeze", "copy"))
    swapaxes, repeat, cumsum, take = map(
        create_numpy_method, ("swapaxes", "repeat", "cumsum", "take")
    )
    trace, diagonal, argmax, argmin = map(
        create_numpy_method, ("trace", "diagonal", "argmax", "argmin")
    )
    __mod__, __floordiv__, __divmod__ = map(
        create_numpy_method, ("remainder", "floor_divide", "divmod")
    )
    __rmod__, __rfloordiv__, __rdivmod__ = __mod__, __floordiv__, __divmod__  # raise errors
    __round__ = create_numpy_method("round")

    def __pos__(self) -> Value:
        return self

    def __matmul__(self, other: Any) -> Any:
        other = to_operand(other)
        if len(EAGER.shape(self)) == len(EAGER.shape(other)) == 2:
            return EAGER.emit(_MATRIX_PRODUCT, self, other)
        return locate_errors(matrix_operations.matmul)(EAGER, self, other)

    @locate_errors
    def __rmatmul__(self, other: Any) -> Any:
        return matrix_operations.matmul(EAGER, to_operand(other), self)

    @locate_errors
    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the sum over the given axes, by default over all axes."""
        return shape_operations.sum_over_axes(EAGER, self, axis, keep=keepdims)

    @locate_errors
    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the mean over the given axes, by default over all axes."""
        total = self.sum(axis, keepdims)
        return total / (self.size / max(total.size, 1))

    @locate_errors
    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the maximum over the given axes, by default over all axes."""
        return shape_operations.max_over_axes(EAGER, self, axis, keep=keepdims)

    @locate_errors
    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the minimum over the given axes, by default over all axes."""
        return -((-self).max(axis, keepdims))

    @locate_errors
    def reshape(self, *shape: Any) -> Any:
        """Return the elements in another shape; a size of -1 is inferred."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        if not all(hasattr(size, "__index__") for size in sizes):
            raise ShapeError(f"`shape` must consist of integers, got {sizes!r}")
        return shape_operations.reshape(EAGER, self, tuple(map(int, sizes)))

    @locate_errors
    def transpose(self, *axes: int) -> Any:
        """Permute the axes, by default to the reverse order."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list | None) else axes
        if len(axes) == 2 < self.ndim:
            raise ShapeError(
                f"`axes` of transpose() must be a permutation of all {self.ndim} axes, got {axes}",
                hint=f"use swapaxes{axes} to swap two axes",
            )
        return shape_operations.transpose(EAGER, self, order or None)

    @property
    def T(self) -> Any:
        """The transpose of the value: all axes in reverse order."""
        return self.transpose()

    @locate_errors
    def softmax(self, axis: int = -1) -> Any:
        """Compute softmax along an axis."""
        return function_expansions.emit_softmax(EAGER, self, axis)

    @locate_errors
    def log_softmax(self, axis: int = -1) -> Any:
        """Compute the logarithm of softmax along an axis, without overflow.

        >>> scores = Value([[1.0, 2.0, 3.0]])
        >>> loss = -scores.log_softmax(axis=1)[0, 2]
        >>> loss.backward()
        >>> round(loss.item(), 8), np.round(scores.grad, 8).tolist()
        (0.40760596, [[0.09003057, 0.24472847, -0.33475904]])
        """
        axis_from_end = normalize_axis(self.shape, axis)
        return EAGER.emit(create_log_softmax(self.ndim, axis_from_end), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UsageError(
            "cannot assign to elements of a Value",
            hint="create a new Value with np.where or np.concatenate, or assign to value.data[...]",
        )

    @locate_errors
    def __getitem__(self, key: Any) -> Any:
        return index_value(self, key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    @locate_errors
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply_function(function, args, kwargs)


EAGER.value_class = Value


def _match_precision(data: Any, previous: Any) -> Any:
    """Convert new data to float32 if the previous data is float32."""
    if getattr(previous, "dtype", None) != np.float32:
        return data
    return np.array(data, np.float32)


def no_grad(function: Any = None) -> Any:
    """Disable recording inside ``with no_grad():`` or in a function decorated with ``@no_grad``.

    Transforms such as ``grad(f)`` still work inside.

    >>> x = Value(2.0)
    >>> with no_grad():
    ...     y = x*x
    >>> y.requires_grad
    False
    """
    return set_recording(False)(function) if function else set_recording(False)
