"""Values that remember how they were computed: numbers and arrays with PyTorch's manners.

A :class:`Value` wraps a float or a numpy array. Every operation on one gives another, which knows
the primitive and the operands it came from: the graph is what was run. :meth:`Value.backward`
hands the sweep of reverse mode these steps, from the last to the first.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives import array_functions, shaped
from cgprimer.errors import ShapeError, UsageError
from cgprimer.recording.backward import accumulate
from cgprimer.recording.eager import EAGER, UNSEEN, State, locating, recording, serial
from cgprimer.recording.operators import (
    as_data,
    binary,
    compared,
    in_place,
    lifted,
    of_numpy,
    unary,
)
from cgprimer.recording.softmax import log_softmax_along
from cgprimer.recording.tensor_names import TensorNames

_MATRICES = Structural("matmul", 2, 2)


class Value(TensorNames):
    """A number or an array that is recorded.

    Args:
        data: a real number, or an array (or nested lists) of them; arrays are copied.
        requires_grad: whether a derivative with respect to it is wanted.
        name: what pictures and listings call it; ``label`` in the micrograd lecture's scripts.

    Raises:
        UsageError: the data are no real numbers, or lists of unlike lengths; ``requires_grad`` is
            neither True nor False.

    Attributes:
        data: a float, or an array of any shape.
        grad: the derivative that backward passes added up, in the shape of ``data``.

    >>> x = Value(3.0, name="x")
    >>> y = x*x + 2.0*x
    >>> y.backward()
    >>> y.data, x.grad
    (15.0, 8.0)

    Source: the interface of PyTorch's Tensor and of micrograd's Value.
    """

    __array_priority__ = 1000

    __slots__ = ()

    def __init__(
        self, data: Any, requires_grad: bool = True, name: str = "", *, label: str = ""
    ) -> None:
        if requires_grad is not True and not isinstance(requires_grad, bool | int | np.bool_):
            raise UsageError(
                f"requires_grad is True or False, not {requires_grad!r}", hint="name='w' names it"
            )
        self._data, self.serial, self.requires_grad = as_data(data), serial(), bool(requires_grad)
        self.primitive, self.operands, self._grad, self._bar = "", (), None, None
        if name or label:
            self.name = str(name or label)

    # --- data and gradient -----------------------------------------------------------------------

    @property
    def data(self) -> Any:
        """The number or array; assigning to it, or into it, is noticed by a backward pass."""
        return self.handed_out()

    @data.setter
    def data(self, data: Any) -> None:
        if data is self._data:  # ``x.data -= 1`` wrote into it
            self._mark = UNSEEN
        else:
            self._data, self._mark = _as_precise(as_data(data), self._data), None
        self.changed()

    @property
    def grad(self) -> Any:
        """What backward passes added up; zeros before the first, None where none is wanted.

        Numbers inside of a graph have theirs, too; inner arrays are let go of, theirs is None.
        """
        if self._grad is not None or not self.requires_grad:
            return self._grad
        if type(self._data) is float:
            return 0.0
        if self.primitive:
            warnings.warn(
                "an array that was computed keeps no gradient: it is None\n  hint: a parameter is"
                " what Value(...) gives, and changes in place, under no_grad(): w -= step",
                stacklevel=2,
            )
            return None
        return np.zeros_like(self._data)

    @grad.setter
    def grad(self, grad: Any) -> None:
        given = None if grad is None else as_data(grad)
        if given is not None and np.shape(given) not in ((), self.shape):
            raise ShapeError(
                f"the gradient must have the shape of the value, {self.shape}, not"
                f" {np.shape(given)}"
            )
        self._grad = given
        self._again = 0 if grad is None else -1

    def zero_grad(self) -> None:
        """Forget the derivative that was added up."""
        self._grad, self._again = None, 0

    def detach(self) -> Value:
        """The same data, without how they were computed."""
        if not State.here.with_lines:
            return Value(self._data, requires_grad=False, name=self.name)
        made: Value = EAGER.emit("copy", self)  # a step of a graph that is recorded
        made.requires_grad, made.name = False, self.name
        return made

    def item(self) -> float:
        """The number of a value that has just one.

        Raises:
            UsageError: it has several.
        """
        if type(self._data) is float:
            return self._data
        if self.size != 1:
            raise UsageError(
                f"a value of shape {self.shape} is no single number",
                hint="sum(), mean() or an index makes one; detach().data has them all",
            )
        return float(self._data.item())

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the data; ``()`` for a number."""
        data = self._data
        return () if type(data) is float else data.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return 1 if type(self._data) is float else int(self._data.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return np.asarray(self._data).dtype

    def __len__(self) -> int:
        if not self.shape:
            raise UsageError("a single number has no length, and nothing to go through")
        return self.shape[0]

    @locating
    def __float__(self) -> float:
        number = self.item()
        if self.requires_grad and State.here.recording:  # ``math.exp(x)``, ``array[0] = x``
            raise UsageError(
                "a plain number would forget how this value was computed",
                hint="value.item() is the number, f'{value:.3f}' writes it; np.exp for math.exp,"
                " np.stack for array[i] =",
            )
        return number

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @locating
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.requires_grad and State.here.recording:
            raise UsageError(
                "an array would forget how this value was computed",
                hint="np.stack joins values; value.detach().data gives the numbers",
            )
        return np.array(self._data, dtype)

    def __repr__(self) -> str:
        data = self._data
        shown = repr(data) if type(data) is float else repr(np.asarray(data))[6:-1]
        more = f", grad={self.grad}" if self._grad is not None else ""
        more += f", grad_fn={self.grad_fn!r}" if self.grad_fn else ""
        more += ", requires_grad=False" if not self.requires_grad else ""
        return f"Value({shown}{more})"

    __hash__ = object.__hash__

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.operands:
            raise UsageError(
                "a value that was computed is not copied or stored: its graph would go along",
                hint="value.detach() has the numbers alone",
            )
        return Value, (self._data, self.requires_grad, self.name), (None, {"_grad": self._grad})

    # --- reverse mode ----------------------------------------------------------------------------

    @locating
    def backward(self, gradient: Any = None, *, retain_graph: bool = False) -> None:
        """Add the derivative of this value to ``grad`` of every leaf that requires one.

        Args:
            gradient: the adjoint to begin with, of this value's shape; 1 where it is one number.
            retain_graph: keep the graph for another backward pass.

        Raises:
            DifferentiationError: nothing requires a gradient, the value is no number and no
                gradient is given, the graph was freed, or an array has been written to.
        """
        if gradient is None and self._data.__class__ is not float and self.shape and self.size == 1:
            gradient = np.ones(self.shape)
        accumulate(self, gradient if gradient is None else as_data(gradient), free=not retain_graph)

    @property
    def grad_fn(self) -> Any:
        """The chain of what a backward pass goes through; None for leaves."""
        from cgprimer.recording.chain import chain_of

        return chain_of(self)

    # --- operators and functions -----------------------------------------------------------------

    __add__, __radd__ = binary("add")
    __sub__, __rsub__ = binary("sub")
    __mul__, __rmul__ = binary("mul")
    __truediv__, __rtruediv__ = binary("div")
    __pow__, __rpow__ = binary("pow")
    __neg__, __abs__ = unary("neg"), unary("abs")
    __lt__, __le__ = compared(operator.lt), compared(operator.le)
    __gt__, __ge__ = compared(operator.gt), compared(operator.ge)
    __eq__, __ne__ = compared(operator.eq), compared(operator.ne)
    __iadd__, __isub__ = in_place("add"), in_place("sub")
    __imul__, __itruediv__ = in_place("mul"), in_place("div")
    relu, exp, log, tanh, sigmoid = map(unary, ("relu", "exp", "log", "tanh", "sigmoid"))
    sin, cos, sqrt, abs = map(unary, ("sin", "cos", "sqrt", "abs"))
    var, std, prod, dot, clip = map(of_numpy, ("var", "std", "prod", "dot", "clip"))
    ravel, flatten, squeeze, copy = map(of_numpy, ("ravel", "ravel", "squeeze", "copy"))
    swapaxes, repeat, cumsum, take = map(of_numpy, ("swapaxes", "repeat", "cumsum", "take"))
    trace, diagonal, argmax, argmin = map(of_numpy, ("trace", "diagonal", "argmax", "argmin"))
    __mod__, __floordiv__, __divmod__ = map(of_numpy, ("remainder", "floor_divide", "divmod"))
    __rmod__, __rfloordiv__, __rdivmod__ = __mod__, __floordiv__, __divmod__  # refused likewise
    __round__ = of_numpy("round")

    def __pos__(self) -> Value:
        return self

    def __matmul__(self, other: Any) -> Any:
        other = lifted(other)
        if len(EAGER.shape(self)) == len(EAGER.shape(other)) == 2:
            return EAGER.emit(_MATRICES, self, other)
        return locating(shaped.matmul)(EAGER, self, other)

    @locating
    def __rmatmul__(self, other: Any) -> Any:
        return shaped.matmul(EAGER, lifted(other), self)

    @locating
    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The sum over axes; all unless given."""
        return shaped.total(EAGER, self, axis, keep=keepdims)

    @locating
    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The mean over axes; all unless given."""
        made = self.sum(axis, keepdims)
        return made / (self.size / max(made.size, 1))

    @locating
    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The largest element along axes; all unless given."""
        return shaped.largest(EAGER, self, axis, keep=keepdims)

    @locating
    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The smallest element along axes; all unless given."""
        return -((-self).max(axis, keepdims))

    @locating
    def reshape(self, *shape: Any) -> Any:
        """The same numbers in another shape; one size may be -1."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        if not all(hasattr(size, "__index__") for size in sizes):
            raise ShapeError(f"sizes are whole numbers, not {sizes!r}")
        return shaped.reshape(EAGER, self, tuple(map(int, sizes)))

    @locating
    def transpose(self, *axes: int) -> Any:
        """Axes in another order; backwards unless given."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list | None) else axes
        if len(axes) == 2 < self.ndim:
            raise ShapeError("two axes are no order of all", hint=f"swapaxes{axes} swaps two")
        return shaped.transpose(EAGER, self, order or None)

    @property
    def T(self) -> Any:
        """Axes backwards."""
        return self.transpose()

    @locating
    def softmax(self, axis: int = -1) -> Any:
        """Exponentials along an axis, divided by their sum."""
        return array_functions.softmax(EAGER, self, axis)

    @locating
    def log_softmax(self, axis: int = -1) -> Any:
        """The logarithm of softmax, with all its digits, as one step.

        >>> scores = Value([[1.0, 2.0, 3.0]])
        >>> loss = -scores.log_softmax(axis=1)[0, 2]
        >>> loss.backward()
        >>> round(loss.item(), 8), np.round(scores.grad, 8).tolist()
        (0.40760596, [[0.09003057, 0.24472847, -0.33475904]])
        """
        (place,) = shaped.axes_of(self.shape, (axis,))
        return EAGER.emit(log_softmax_along(self.ndim, place), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UsageError(
            "parts of a value that is recorded are not assigned to",
            hint="np.where and np.concatenate make a new one; value.data[...] = changes plain data",
        )

    @locating
    def __getitem__(self, key: Any) -> Any:
        from cgprimer.recording.indexing import take

        return take(self, key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _numpy_functions().apply_ufunc(ufunc, method, inputs, options)

    @locating
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _numpy_functions().apply_function(function, args, kwargs)


EAGER.kind = Value


def _as_precise(data: Any, before: Any) -> Any:
    """New data of a value: single precision stays single, whatever is assigned."""
    single = getattr(before, "dtype", None) == np.float32
    return np.asarray(data, np.float32)[()] if single else data


@cache
def _numpy_functions() -> Any:
    from cgprimer.recording import numpy_functions

    return numpy_functions


def no_grad(function: Any = None) -> Any:
    """Record nothing inside of ``with no_grad():``, or of a function under ``@no_grad``.

    ``grad(f)`` and its like are taken as ever.

    >>> x = Value(2.0)
    >>> with no_grad():
    ...     y = x*x
    >>> y.requires_grad
    False
    """
    return recording(False)(function) if function else recording(False)
