"""What PyTorch and micrograd call what values have by numpy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.recording.eager import Recorded, called
from cgprimer.recording.operators import of_numpy

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "relu": "ReLU"}


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
    unsqueeze, clone = map(of_numpy, ("expand_dims", "copy"))

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

    def norm(self: Any) -> Any:
        """The square root of the sum of squares."""
        return np.linalg.norm(self)

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

    @property
    def _op(self) -> str:
        """The operation in micrograd's signs."""
        name = called(self.primitive)
        if name == "pow" and self.operands:
            return f"**{getattr(self.operands[1], '_data', self.operands[1]):g}"
        return _SIGNS.get(name, name)
