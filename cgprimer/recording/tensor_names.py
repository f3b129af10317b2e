"""What PyTorch and micrograd call what values have by numpy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.recording.eager import Recorded, called
from cgprimer.recording.operators import of_numpy

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "relu": "ReLU"}
#: What is done here in the place of some methods.
_ELSEWHERE = {
    "add_ sub_ mul_ div_ copy_": "with no_grad(): w -= step changes a parameter in place",
    "zero_ fill_": "zero_grad() forgets a gradient, value.data[...] = 0.0 writes numbers",
    "retain_grad": "computed arrays keep no gradient; grad(f) has those of any argument",
    "register_hook": "a Function has a backward pass of one's own",
    "values indices": "max(axis) has the values, argmax(axis) the places",
    "to cpu cuda type astype float double half": "Value(np.float32(data)) has another precision",
    "int long bool": "detach().data has plain numbers",
    "gather": "np.take_along_axis(value, places, axis)",
    "masked_fill": "np.where(mask, number, value)",
    "expand": "np.broadcast_to(value, shape)",
    "sign floor ceil sort flip roll tile split triu tril outer where any all": "np.{0}(value, ...)",
}


class NoSuchName(UsageError, AttributeError):
    """A method that a value does not have."""


class _Elsewhere:
    """In the place of such a method; ``__getattr__`` would slow all others down."""

    def __init__(self, name: str, said: str) -> None:
        self.name, self.said = name, said

    def __get__(self, value: Any, kind: Any) -> Any:
        if value is None:
            return self
        raise NoSuchName(f"a value has no {self.name!r}", hint=self.said)


class TensorNames(Recorded):
    """Methods that students type who come from PyTorch; each is a line on what is there.

    >>> from cgprimer import Value
    >>> x = Value([[1.0, 2.0], [3.0, 4.0]])
    >>> x.view(-1).pow(2).sum().item(), x.permute(1, 0).unsqueeze(0).shape
    (30.0, (1, 2, 2))
    >>> x.numel(), x.dim(), x.is_leaf, x.requires_grad_(False).numpy().tolist()
    (4, 2, True, [[1.0, 2.0], [3.0, 4.0]])
    """

    __slots__ = ()

    add, sub, mul, div = map(of_numpy, ("add", "subtract", "multiply", "divide"))
    pow, matmul, mm, neg = map(of_numpy, ("power", "matmul", "matmul", "negative"))
    square, log1p, expm1, log10 = map(of_numpy, ("square", "log1p", "expm1", "log10"))
    tan, sinh, cosh, log2 = map(of_numpy, ("tan", "sinh", "cosh", "log2"))
    unsqueeze, clone, norm = map(of_numpy, ("expand_dims", "copy", "norm"))

    def clamp(self: Any, min: Any = None, max: Any = None) -> Any:
        """Kept between two numbers."""
        return np.clip(self, min, max)

    def view(self: Any, *shape: Any) -> Any:
        """As ``reshape``."""
        return self.reshape(*shape)

    def permute(self: Any, *axes: Any) -> Any:
        """As ``transpose``, which has numpy's meaning: two axes are swapped by ``swapaxes``."""
        return self.transpose(*axes)

    def t(self: Any) -> Any:
        """As ``T``."""
        return self.T

    def numpy(self) -> Any:
        """The numbers as an array; of what requires a gradient, ``detach().numpy()``."""
        return np.asarray(self)

    def tolist(self) -> Any:
        """The numbers as nested lists."""
        return np.asarray(self._data).tolist()

    def numel(self: Any) -> int:
        """How many numbers there are."""
        return int(self.size)

    def dim(self: Any) -> int:
        """The number of axes."""
        return int(self.ndim)

    @property
    def is_leaf(self) -> bool:
        """Whether it was given and not computed."""
        return not self.primitive

    @property
    def label(self) -> str:
        """The name, by the word of the micrograd lecture."""
        return self.name

    @label.setter
    def label(self, label: str) -> None:
        self.name = label

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Set ``requires_grad``; returns the value."""
        self.requires_grad = requires_grad
        return self

    @property
    def _prev(self) -> set[Any]:
        return {o for o in self.operands if isinstance(o, Recorded)}

    def __format__(self: Any, how: str) -> str:
        return format(self.item(), how) if how else str(self)

    @property
    def _op(self) -> str:
        """The operation in micrograd's signs."""
        name = called(self.primitive)
        if name == "pow" and self.operands:
            return f"**{getattr(self.operands[1], '_data', self.operands[1]):g}"
        return _SIGNS.get(name, name)


for _names, _said in _ELSEWHERE.items():
    for _name in _names.split():
        setattr(TensorNames, _name, _Elsewhere(_name, _said.format(_name)))
