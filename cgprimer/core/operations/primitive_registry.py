"""The registry of elementwise primitives and of array functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cgprimer.core.language.parser import parse_expression
from cgprimer.core.language.syntax_tree import Apply, Expression, Name, Shape, postorder
from cgprimer.core.operations.operation import Builder, Operation, Value
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.support.plugins import Registry

if TYPE_CHECKING:
    from cgprimer.core.operations.array_operation import ArrayOperation

Applied: TypeAlias = "str | ArrayOperation"  #: what an instruction of a tape holds
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
class Primitive(Operation):
    """An elementwise function of real numbers: one row of the table of primitives.

    Attributes:
        name: the name in the instructions of a tape.
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
        """True if the row belongs to the package."""
        return self.function is None

    def shape(self, *operands: Shape) -> Shape:
        """Return the broadcast shape of the operands."""
        from cgprimer.core.operations.array_shapes import broadcast_shapes

        return broadcast_shapes(self.name, *operands)

    def jvp(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the partial times the tangent; see :meth:`Operation.jvp`."""
        partial = self.emit_partial(builder, index, operands, result)
        return None if partial is None else (builder.emit("mul", partial, tangent), partial)

    def vjp(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the adjoint times the partial; see :meth:`Operation.vjp`."""
        partial = self.emit_partial(builder, index, operands, result)
        return None if partial is None else (builder.product(adjoint, partial), partial)

    def emit_partial(
        self, builder: Builder, index: int, operands: Sequence[Value], result: Value
    ) -> Value | None:
        """Emit the partial derivative with respect to one operand, counted from 0.

        None where it is zero everywhere.
        """
        stack: list[Value] = []
        for name, slot, number in self.compiled_partials[index]:
            if name:
                arguments = stack[-slot:]
                del stack[-slot:]
                stack.append(builder.emit(name, *arguments))
            elif slot < 0:
                stack.append(builder.constant(number))
            else:
                stack.append(result if slot == len(OPERANDS) else operands[slot])
        return stack[0] if stack else None

    @cached_property
    def compiled_partials(self) -> tuple[list[StackInstruction], ...]:
        """The partial derivatives, compiled for a stack machine."""
        return tuple(map(_compile_partial, self.partials))


class StackInstruction(NamedTuple):
    """One step of a partial derivative, compiled for a stack machine.

    Attributes:
        name: the primitive to apply; empty for a step that pushes a value.
        slot: how many arguments the primitive takes; else which operand (or, after them, the
            result) is pushed, or -1 for a number.
        number: the number that is pushed.
    """

    name: str
    slot: int
    number: float


def _compile_partial(text: str) -> list[StackInstruction]:
    """Return the steps of a partial derivative; an empty list if it is zero everywhere."""
    slots = {name: i for i, name in enumerate((*OPERANDS, RESULT))}
    steps: list[StackInstruction] = []
    for node in postorder(parse_partial(text)) if text != "0" else ():
        if isinstance(node, Apply):
            steps.append(StackInstruction(str(node.primitive), len(node.arguments), 0.0))
        elif isinstance(node, Name):
            steps.append(StackInstruction("", slots[node.name], 0.0))
        else:
            steps.append(StackInstruction("", -1, node.value))
    return steps


class ArrayFunction(NamedTuple):
    """A function of the language that is expanded into operations when shapes are known.

    Attributes:
        name: identifies the function in a syntax tree.
        operands: the number of operands, which come first; 0 for all arguments that are not
            constants. The arguments after them are integers: axes, or sizes.
        least, most: the smallest and largest number of arguments.
        spelling: the function's name in expressions.
        latex: a format string with ``{a}``, ``{b}``; empty for the name and its arguments.
        expand: of a function from outside: emits it, given a builder and the arguments. Those of
            the package are in :mod:`cgprimer.core.operations.function_expansions`.
    """

    name: str
    operands: int
    least: int
    most: int
    spelling: str
    latex: str = ""
    associative: bool = False
    expand: Callable[..., Any] | None = None

    @property
    def arity(self) -> Any:
        """The largest number of arguments."""
        return self.most

    @property
    def defaults(self) -> tuple[None, ...]:
        """None for each optional argument."""
        return (None,) * (self.most - self.least)


ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {}


class _FunctionTable(dict[str, list[Any]]):
    """The functions of the language by name; a name can have several numbers of arguments."""

    generation = 0  # changes whenever the table does: what was compiled before is stale then

    def __missing__(self, name: str) -> list[Any]:
        if name in _INSTALLED:
            add_row(_INSTALLED[name])
            return self.get(name, [])
        if name in ALIASES:  # ln takes no base, unlike log
            return [row for row in self[ALIASES[name]] if row.arity == 1]
        return []


FUNCTIONS = _FunctionTable()
_TABLE: dict[str, Primitive] = {}
_INSTALLED: Registry[Primitive] = Registry("primitive", "cgprimer.primitives")


def set_row(row: Primitive) -> None:
    """Add a row at the end of the table, or replace the row of its name."""
    FUNCTIONS.generation += 1
    _TABLE[row.name] = row


def add_row(row: Primitive) -> Primitive:
    """Add a new row at the end of the table.

    Raises:
        UsageError: a row from outside has a partial that names neither an operand nor the result.
    """
    allowed = {*OPERANDS[: row.arity], RESULT}
    for text in () if row.built_in else row.partials:
        for node in postorder(parse_partial(text)):
            if isinstance(node, Name) and node.name not in allowed:
                problem = f"unknown name {node.name!r} in the partial {text!r} of {row.name!r}"
                raise UsageError(problem, hint=f"use only {', '.join(sorted(allowed))}")
    set_row(row)
    if row.spelling:
        FUNCTIONS.setdefault(row.spelling, []).append(row)
    return row


def remove_row(row: Primitive) -> None:
    """Remove a row from the table."""
    FUNCTIONS.generation += 1
    del _TABLE[row.name]
    FUNCTIONS[row.spelling].remove(row)
    if not FUNCTIONS[row.spelling]:
        del FUNCTIONS[row.spelling]


def find_operation(applied: Applied) -> Operation:
    """Return the operation that an instruction of a tape applies.

    >>> find_operation("tanh").name
    'tanh'
    """
    return find_primitive(applied) if isinstance(applied, str) else applied


def find_primitive(name: str) -> Primitive:
    """Return the primitive with a name.

    >>> find_primitive("tanh").partials
    ('1 - out*out',)

    Raises:
        UsageError: no primitive has the name.
    """
    if name not in _TABLE:
        raise UsageError(f"unknown primitive {name!r}", hint=did_you_mean(name, _TABLE))
    return _TABLE[name]


def primitives() -> tuple[Primitive, ...]:
    """Return all rows, in the order of the table."""
    return tuple(_TABLE.values())


@lru_cache(maxsize=4096)
def parse_partial(text: str) -> Expression:
    """Return the syntax tree of a partial derivative; each text is parsed once."""
    return parse_expression(text, FUNCTIONS, "partial derivative")
