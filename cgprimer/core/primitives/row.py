"""What a row of the table states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Array = Any  # a float, a numpy scalar or an ndarray; numpy's own stubs cannot say this briefly
SympyForm = Callable[..., Any]  # takes the sympy module and the operands
OPERANDS = ("a", "b", "c")  #: names of the operands in the text of partial derivatives
RESULT = "out"  #: name of the result in the text of partial derivatives


@dataclass(frozen=True)
class Primitive:
    """One row of the table. All values are dimensionless real numbers, taken element by element.

    Attributes:
        name: what instructions of a tape call it.
        partials: one text per operand, the partial derivative with respect to it.
        numpy: the function on floats and arrays; it must broadcast and never raise.
        python: the same as a Python expression over ``math``, for generated code and for
            arithmetic with more digits (``math`` then stands for mpmath). Empty: none.
        sympy: takes the sympy module and the operands, returns the expression. None: sympy
            sees an opaque function whose derivatives are the texts of ``partials``.
        latex: a format string with ``{a}``, ``{b}``, ``{c}``.
        domain: where the result is a finite real number.
        edges: what is returned at kinks, ties and edges.
        analytic: whether the function may be evaluated at complex numbers (complex step).
        spelling: the function's name in expressions; empty for what has no name there.
        defaults: values of trailing operands that a call may leave out.
        associative: whether more than two operands may be given, taken two by two.
        built_in: whether the row belongs to the package.
    """

    name: str
    partials: tuple[str, ...]
    numpy: Callable[..., Array]
    python: str = ""
    sympy: SympyForm | None = None
    latex: str = ""
    domain: str = "all real numbers"
    edges: str = ""
    source: str = ""
    analytic: bool = True
    spelling: str = ""
    defaults: tuple[float, ...] = ()
    associative: bool = False
    built_in: bool = True

    @property
    def arity(self) -> int:
        """Number of operands."""
        return len(self.partials)
