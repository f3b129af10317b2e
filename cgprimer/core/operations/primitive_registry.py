"""The registry of elementwise primitives and array functions."""

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
OPERANDS = ("a", "b", "c")  #: names of the operands in partial derivatives
RESULT = "out"  #: name of the result in partial derivatives
RECIPROCALS = {
    "sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh",
}  # fmt: skip

#: Other names of functions in expressions; functions that users register take precedence.
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
    """An elementwise function of real numbers, with its partial derivatives as expressions.

    Each primitive is one row of the table in ``primitive_table.py``.

    Attributes:
        name: the name in the instructions of a tape.
        partials: for each operand the partial derivative as an expression.
        latex: a format string with ``{a}``, ``{b}``, ``{c}``.
        domain: the operands for which the result is a finite real number.
        edges: the results at kinks, ties and at the boundary of the domain.
        source: the publication that defines the function.
        analytic: True if complex operands are allowed (complex step).
        spelling: the name of the function in expressions; empty if it cannot be called by name.
        defaults: default values of trailing operands.
        associative: True if a call can have more than two arguments, which are combined in pairs.
        function: for a registered primitive: computes the result for floats and arrays.
        sympy: for a registered primitive: a function of the sympy module and the operands that
            returns an expression. If None, sympy treats the primitive as an opaque function with
            the derivatives ``partials``.
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
        """The number of operands."""
        return len(self.partials)

    @property
    def built_in(self) -> bool:
        """True if the primitive is part of cgprimer."""
        return self.function is None

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape to which the operands broadcast."""
        from cgprimer.core.operations.array_shapes import broadcast_shapes

        return broadcast_shapes(self.name, *operands)

    def jvp(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the partial derivative times the tangent; see :meth:`Operation.jvp`."""
        partial = self.emit_partial(builder, index, operands, result)
        return None if partial is None else (builder.emit("mul", partial, tangent), partial)

    def vjp(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the adjoint times the partial derivative; see :meth:`Operation.vjp`."""
        partial = self.emit_partial(builder, index, operands, result)
        return None if partial is None else (builder.product(adjoint, partial), partial)

    def emit_partial(
        self, builder: Builder, index: int, operands: Sequence[Value], result: Value
    ) -> Value | None:
        """Emit the partial derivative with respect to the operand ``index``, counted from 0.

        Returns None if the partial derivative is zero everywhere.
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
        """The partial derivatives as instructions for a stack machine."""
        return tuple(map(_compile_partial, self.partials))


class StackInstruction(NamedTuple):
    """One instruction of a partial derivative, for a stack machine.

    Attributes:
        name: the primitive to apply; empty if the instruction pushes a value.
        slot: the number of arguments of the primitive. For a push: the index of the operand,
            ``len(OPERANDS)`` for the result or -1 for a constant.
        number: the constant that is pushed.
    """

    name: str
    slot: int
    number: float


def _compile_partial(text: str) -> list[StackInstruction]:
    """Compile a partial derivative to stack instructions; the constant 0 gives an empty list."""
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
        operands: the number of leading arguments that are operands; 0 if all arguments are
            operands except constants. The remaining arguments are integers: axes or sizes.
        min_arguments, max_arguments: the minimum and maximum number of arguments.
        spelling: the name of the function in expressions.
        latex: a format string with ``{a}``, ``{b}``; empty for the name and its arguments.
        associative: False; a field of primitives that the parser reads.
        expand: for a registered function: emits the operations, given a builder and the arguments.
            Built-in functions are in :mod:`cgprimer.core.operations.function_expansions`.
    """

    name: str
    operands: int
    min_arguments: int
    max_arguments: int
    spelling: str
    latex: str = ""
    associative: bool = False
    expand: Callable[..., Any] | None = None

    @property
    def arity(self) -> Any:
        """The maximum number of arguments."""
        return self.max_arguments

    @property
    def defaults(self) -> tuple[None, ...]:
        """The default values of the optional arguments, which are all None."""
        return (None,) * (self.max_arguments - self.min_arguments)


ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {}


class _FunctionTable(dict[str, list[Any]]):
    """A table of all functions of the language, keyed by name, with one entry for each arity."""

    generation = 0  # increases with each change of the table, which invalidates compiled code

    def __missing__(self, name: str) -> list[Any]:
        if name in _INSTALLED:
            insert_primitive(_INSTALLED[name])
            return self.get(name, [])
        if name in ALIASES:  # ln takes no base, unlike log
            return [row for row in self[ALIASES[name]] if row.arity == 1]
        return []


FUNCTIONS = _FunctionTable()
_TABLE: dict[str, Primitive] = {}
_INSTALLED: Registry[Primitive] = Registry("primitive", "cgprimer.primitives")


def store_primitive(primitive: Primitive) -> None:
    """Add a primitive at the end of the table, or replace the primitive with its name."""
    FUNCTIONS.generation += 1
    _TABLE[primitive.name] = primitive


def insert_primitive(primitive: Primitive) -> Primitive:
    """Add a primitive at the end of the table and make it callable in expressions.

    Raises:
        UsageError: a partial of a registered primitive contains an unknown name.
    """
    allowed = {*OPERANDS[: primitive.arity], RESULT}
    for text in () if primitive.built_in else primitive.partials:
        for node in postorder(parse_partial(text)):
            if isinstance(node, Name) and node.name not in allowed:
                message = (
                    f"unknown name {node.name!r} in the partial {text!r} of {primitive.name!r}"
                )
                raise UsageError(message, hint=f"use only the names {', '.join(sorted(allowed))}")
    store_primitive(primitive)
    if primitive.spelling:
        FUNCTIONS.setdefault(primitive.spelling, []).append(primitive)
    return primitive


def remove_primitive(primitive: Primitive) -> None:
    """Remove a primitive from the table."""
    FUNCTIONS.generation += 1
    del _TABLE[primitive.name]
    FUNCTIONS[primitive.spelling].remove(primitive)
    if not FUNCTIONS[primitive.spelling]:
        del FUNCTIONS[primitive.spelling]


def find_operation(applied: Applied) -> Operation:
    """Return the operation that an instruction of a tape applies.

    >>> find_operation("tanh").name
    'tanh'
    """
    return find_primitive(applied) if isinstance(applied, str) else applied


def find_primitive(name: str) -> Primitive:
    """Return the primitive with the given name.

    >>> find_primitive("tanh").partials
    ('1 - out*out',)

    Raises:
        UsageError: no primitive has the name.
    """
    if name not in _TABLE:
        raise UsageError(f"unknown primitive {name!r}", hint=did_you_mean(name, _TABLE))
    return _TABLE[name]


def primitives() -> tuple[Primitive, ...]:
    """Return all registered primitives, in the order of the primitive table."""
    return tuple(_TABLE.values())


@lru_cache(maxsize=4096)
def parse_partial(text: str) -> Expression:
    """Parse a partial derivative into a syntax tree; results are cached."""
    return parse_expression(text, FUNCTIONS, "partial derivative")
