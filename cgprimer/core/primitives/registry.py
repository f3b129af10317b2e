"""What a row of the table states, and looking rows up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from cgprimer.core.language.parser import parse_expression
from cgprimer.core.language.syntax import Expression, Name, postorder
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.plugins import Registry

OPERANDS = ("a", "b", "c")  #: names of the operands in the text of partial derivatives
RESULT = "out"  #: name of the result in the text of partial derivatives
RECIPROCALS = {
    "sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh",
}  # fmt: skip

#: Other names of functions in expressions; a function that a user registers under one wins.
ALIASES = {
    "ln": "log",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsec": "asec",
    "arccsc": "acsc",
    "arccot": "acot",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arsinh": "asinh",
    "arcosh": "acosh",
    "artanh": "atanh",
}


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


class ArrayFunction(NamedTuple):
    """A function of the language that is written out in primitives when shapes are known.

    Attributes:
        name: what a tree calls it.
        operands: how many operands come first; 0 for all that are no numbers. What follows them
            are whole numbers: axes, or sizes.
        least, most: how many arguments there are.
        spelling: what it is called in expressions.
        latex: a format string with ``{a}``, ``{b}``; empty for the name and its arguments.
    """

    name: str
    operands: int
    least: int
    most: int
    spelling: str
    latex: str = ""
    associative: bool = False

    @property
    def arity(self) -> Any:
        """The most arguments that it takes."""
        return self.most

    @property
    def defaults(self) -> tuple[None, ...]:
        """One for each argument that may be left out."""
        return (None,) * (self.most - self.least)


ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {}


class _Functions(dict[str, list[Any]]):
    """What the parser is given: by name, the rows that ``name(...)`` may mean."""

    generation = 0  # changes whenever the table does: what was compiled before is stale then

    def __missing__(self, name: str) -> list[Any]:
        if name in _INSTALLED:
            add_row(_INSTALLED[name])
            return self.get(name, [])
        if name in ALIASES:  # ln takes no base, unlike log
            return [row for row in self[ALIASES[name]] if row.arity == 1]
        return []


FUNCTIONS = _Functions()
_TABLE: dict[str, Primitive] = {}
_INSTALLED: Registry[Primitive] = Registry("primitive", "cgprimer.primitives")


def put_row(row: Primitive) -> None:
    """Put a row into the table, at the end or in the place of the one with its name."""
    FUNCTIONS.generation += 1
    _TABLE[row.name] = row


def add_row(row: Primitive) -> Primitive:
    """Put a new row at the end of the table.

    Raises:
        UsageError: a row from outside has a partial that names neither an operand nor the result.
    """
    allowed = {*OPERANDS[: row.arity], RESULT}
    for text in () if row.built_in else row.partials:
        for node in postorder(partial_tree(text)):
            if isinstance(node, Name) and node.name not in allowed:
                said = f"the partial {text!r} of {row.name!r} names {node.name!r}"
                raise UsageError(said, hint=f"it may name {', '.join(sorted(allowed))}")
    put_row(row)
    if row.spelling:
        FUNCTIONS.setdefault(row.spelling, []).append(row)
    return row


def remove_row(row: Primitive) -> None:
    """Take a row out of the table."""
    FUNCTIONS.generation += 1
    del _TABLE[row.name]
    FUNCTIONS[row.spelling].remove(row)
    if not FUNCTIONS[row.spelling]:
        del FUNCTIONS[row.spelling]


def primitive(name: str) -> Primitive:
    """The row called ``name``.

    >>> primitive("tanh").partials
    ('1 - out*out',)

    Raises:
        UsageError: there is no such row; near names are suggested.
    """
    if name not in _TABLE:
        raise UsageError(f"there is no primitive {name!r}", hint=did_you_mean(name, _TABLE))
    return _TABLE[name]


def primitives() -> tuple[Primitive, ...]:
    """All rows, in the order of the table."""
    return tuple(_TABLE.values())


@lru_cache(maxsize=4096)
def partial_tree(text: str) -> Expression:
    """The text of a partial derivative as a syntax tree; each text is parsed once."""
    return parse_expression(text, FUNCTIONS, "partial derivative")
