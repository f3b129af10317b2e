"""Methods of :class:`Value` with the names of PyTorch and micrograd."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.recording.operators import create_numpy_method
from cgprimer.recording.value_base import ValueBase, format_primitive_name, get_data

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "relu": "ReLU"}
#: Hints for methods of PyTorch that are not supported.
_REPLACEMENTS = {
    "add_ sub_ mul_ div_ copy_": "update parameters in place under no_grad(): w -= step",
    "zero_ fill_": "use zero_grad() to reset a gradient, value.data[...] = 0.0 to set all elements",
    "retain_grad": "computed arrays keep no gradient: use grad(f) instead",
    "register_hook": "define a Function with a custom backward pass",
    "values indices": "use max(axis) for the values, argmax(axis) for the indices",
    "to cpu cuda type astype float double half": "create a new value: Value(np.float32(data))",
    "int long bool": "use detach().data for the plain data",
    "gather": "use np.take_along_axis(value, indices, axis)",
    "masked_fill": "use np.where(mask, number, value)",
    "expand": "use np.broadcast_to(value, shape)",
    "sign floor ceil sort flip roll tile split triu tril outer where any all":
        "use np.{0}(value, ...)",
}  # fmt: skip


class UnknownMethodError(UsageError, AttributeError):
    """Raised for a method of PyTorch's Tensor that Value does not support."""


class _MissingMethod:
    """A descriptor of an unsupported method, which raises an error with a hint.

    ``__getattr__`` would slow down all methods.

    Args:
        name: name of the method.
        hint: the supported replacement.
    """

    def __init__(self, name: str, hint: str) -> None:
        self.name, self.hint = name, hint

    def __get__(self, value: Any, owner: Any) -> Any:
        if value is None:
            return self
        raise UnknownMethodError(f"Value has no attribute {self.name!r}", hint=self.hint)


class TensorNames(ValueBase):
    """Methods with the names of PyTorch and micrograd, implemented by methods with numpy's names.

    >>> from cgprimer import Value
    >>> x = Value([[1.0, 2.0], [3.0, 4.0]])
    >>> x.view(-1).pow(2).sum().item(), x.permute(1, 0).unsqueeze(0).shape
    (30.0, (1, 2, 2))
    >>> x.numel(), x.dim(), x.is_leaf, x.requires_grad_(False).numpy().tolist()
    (4, 2, True, [[1.0, 2.0], [3.0, 4.0]])
    """

    __slots__ = ()

    add, sub, mul, div = map(create_numpy_method, ("add", "subtract", "multiply", "divide"))
    pow, matmul, mm, neg = map(create_numpy_method, ("power", "matmul", "matmul", "negative"))
    square, log1p, expm1, log10 = map(create_numpy_method, ("square", "log1p", "expm1", "log10"))
    tan, sinh, cosh, log2 = map(create_numpy_method, ("tan", "sinh", "cosh", "log2"))
    unsqueeze, clone, norm = map(create_numpy_method, ("expand_dims", "copy", "norm"))

    def clamp(self: Any, min: Any = None, max: Any = None) -> Any:
        """Clamp all elements to a range; either bound may be None."""
        return np.clip(self, min, max)

    def view(self: Any, *shape: Any) -> Any:
        """Return the elements in another shape; the same as ``reshape``."""
        return self.reshape(*shape)

    def permute(self: Any, *axes: Any) -> Any:
        """Permute the axes; the same as ``transpose``."""
        return self.transpose(*axes)

    def t(self: Any) -> Any:
        """Return the transpose; the same as ``T``."""
        return self.T

    def numpy(self) -> Any:
        """Return the data as an array; call ``detach()`` first if the value requires grad."""
        return np.asarray(self)

    def tolist(self) -> Any:
        """Return the data as nested lists."""
        return np.asarray(self._data).tolist()

    def numel(self: Any) -> int:
        """Return the number of elements."""
        return int(self.size)

    def dim(self: Any) -> int:
        """Return the number of axes."""
        return int(self.ndim)

    @property
    def is_leaf(self) -> bool:
        """True for a value created by the user, False for the result of an operation."""
        return not self.primitive

    @property
    def label(self) -> str:
        """An alias of ``name``, as in micrograd."""
        return self.name

    @label.setter
    def label(self, label: str) -> None:
        """Set the name of the value."""
        self.name = label

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Set ``requires_grad`` in place, and return the value."""
        self.requires_grad = requires_grad
        return self

    @property
    def _prev(self) -> set[Any]:
        """The set of operands that are values, as in micrograd."""
        return {o for o in self.operands if isinstance(o, ValueBase)}

    def __format__(self: Any, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    @property
    def _op(self) -> str:
        """The symbol of the operation, as in micrograd."""
        name = format_primitive_name(self.primitive)
        if name == "pow" and self.operands:
            return f"**{get_data(self.operands[1]):g}"
        return _SIGNS.get(name, name)


for _names, _hint in _REPLACEMENTS.items():
    for _name in _names.split():
        setattr(TensorNames, _name, _MissingMethod(_name, _hint.format(_name)))
