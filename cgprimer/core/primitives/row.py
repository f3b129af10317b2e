"""What a row of the table states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OPERANDS = ("a", "b", "c")  #: names of the operands in the text of partial derivatives
RESULT = "out"  #: name of the result in the text of partial derivatives


@dataclass(frozen=True)
class Primitive:
    """One row of the table. All values are dimensionless real numbers, taken element by element.

    Attributes:
        name: what instructions of a tape call it.
        partials: one text per operand, the partial derivative with respect to it.
        latex: a format string with ``{a}``, ``{b}``, ``{c}``.
        domain: where the result is a finite real number.
        edges: what is returned at kinks, ties and edges.
        analytic: whether the function may be evaluated at complex numbers (complex step).
        spelling: the function's name in expressions; empty for what has no name there.
        defaults: values of trailing operands that a call may leave out.
        associative: whether more than two operands may be given, taken two by two.
        function: of a row from outside: computes it on floats and arrays, element by element.
        sympy: of a row from outside: takes the sympy module and the operands, returns the
            expression. None: sympy sees an opaque function whose derivatives are ``partials``.
    """

    name: str
    partials: tuple[str, ...]
    latex: str = ""
    domain: str = "all real numbers"
    edges: str = ""
    source: str = ""
    analytic: bool = True
    spelling: str = ""
    defaults: tuple[float, ...] = ()
    associative: bool = False
    function: Callable[..., Any] | None = None
    sympy: Callable[..., Any] | None = None

    @property
    def arity(self) -> int:
        """Number of operands."""
        return len(self.partials)

    @property
    def built_in(self) -> bool:
        """Whether the row belongs to the package."""
        return self.function is None
