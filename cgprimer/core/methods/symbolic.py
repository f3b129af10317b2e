"""Symbolic differentiation: sympy differentiates the whole expression, and the result is lowered.

The expression of the output is expanded in full, differentiated as a formula, and converted back to
instructions. The derivatives in the primitive table are used only for primitives without a sympy
form, such as registered ones. The method is therefore an independent check of the other methods.

Formulas swell: a value that is used twice is expanded twice, and the product rule copies it again.
With ``share=True`` (the default), equal subexpressions are computed once; ``share=False`` shows the
size of the formulas themselves. An expression with more than ``limit`` operations is an error.

sympy may simplify ``xa^2/xa`` to ``xa``. The derivative then has a value where the original
expression is undefined.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial, reduce
from importlib.util import find_spec
from typing import Any

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.core.methods.single_pass import build_single_pass_program
from cgprimer.core.operations import find_primitive, primitives
from cgprimer.core.operations.symbolic_arithmetic import (
    apply_to_sympy,
    create_opaque_function,
    get_sympy_form,
)
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_dependents, reachable
from cgprimer.errors import DifferentiationError, ExpressionSwellError, format_count

LIMIT = 5_000  #: the default of the maximum number of operations of an expanded expression


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, share: bool = True, limit: int = LIMIT
) -> DerivativeProgram:
    """Differentiate a tape symbolically, and return the derivative program.

    Args:
        tape: the tape to differentiate.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        share: compute equal subexpressions of the derivatives once.
        limit: the maximum number of operations of the expanded expression.

    Raises:
        ExpressionSwellError: the expanded expression, or its derivative, is too large.
        DifferentiationError: sympy cannot represent or differentiate the expression.
    """
    if find_spec("sympy") is None:
        raise DifferentiationError(
            "symbolic differentiation requires sympy, which is not installed",
            hint="install it with: pip install sympy",
        )
    roots = [tape.index(name) for name in of]
    needed = reachable(tape, roots)
    for name, root in zip(of, roots, strict=True):
        size = count_expanded_operations(tape, root)
        if size > limit:
            raise ExpressionSwellError(
                f"the expanded expression of {name!r} has {format_count(size)} operations,"
                f" but at most {limit:,} are allowed",
                hint="use reverse mode, or raise the limit: `limit=N`",
            )
    builder = Builder(share=share)
    value = builder.extend(tape, keep=needed)
    derivatives = {}
    for target, root in zip(of, roots, strict=True):
        lowered: dict[Any, int] = {}
        for name in wrt:
            derivative = _differentiate_value(tape, root, tape.index(name))
            size_limit = 50 * (limit if share else 20 * limit)
            derived = _lower_expression(builder, value, derivative, lowered, size_limit)
            if (number := builder.value_of(derived)) is not None and math.isnan(number):
                # A constant would have the derivative 0.
                derived = builder.emit("mul", derived, value[tape.index(name)])
            derivatives[target, name] = derived
    values = {name: value[root] for name, root in zip(of, roots, strict=True)}
    return build_single_pass_program("symbolic", builder, tape, wrt, values, derivatives)


def count_expanded_operations(tape: Tape, root: int) -> int:
    """Count the operations of the expanded expression of a value, without shared subexpressions."""
    first = len(tape.leaves)
    sizes = [0] * (root + 1)
    for index in range(first, root + 1):
        sizes[index] = 1 + sum(sizes[o] for o in tape.instructions[index - first].operands)
    return sizes[root]


def _differentiate_value(tape: Tape, root: int, source: int) -> Any:
    """Differentiate the expression of one value with respect to another with sympy.

    Args:
        tape: the tape.
        root: the index of the value to differentiate.
        source: the index of the value with respect to which to differentiate.

    Returns:
        A sympy expression with the symbols ``v0``, ``v1`` and so on for values of the tape.
    """
    import sympy

    needed, reached = reachable(tape, [root]), find_dependents(tape, [source])
    expressions: dict[int, Any] = {}
    try:
        for index in (i for i in range(root + 1) if needed[i]):
            instruction = tape.instruction(index)
            leaf = None if instruction else tape.leaves[index]
            if instruction and index != source and reached[index]:
                arguments = [expressions[o] for o in instruction.operands]
                expressions[index] = _apply_primitive(
                    operator_name(instruction.primitive), arguments
                )
            elif leaf and leaf.kind == "constant" and math.isfinite(leaf.value):
                expressions[index] = _convert_to_sympy_number(
                    leaf.value
                )  # nan would absorb a whole sum
            else:  # values that do not depend on the variable are symbols: computed already
                expressions[index] = sympy.Symbol(f"v{index}", real=True)
        if expressions[root].has(sympy.zoo, sympy.nan):  # they would absorb the rest of a sum
            return sympy.nan
        return sympy.diff(expressions[root], sympy.Symbol(f"v{source}", real=True))
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise DifferentiationError(f"sympy cannot differentiate this expression: {error}") from None


def _convert_to_sympy_number(value: float) -> Any:
    """Convert a float to an exact sympy number, or to a sympy float if it is very large or small.

    Exact powers of huge integers would take too long to compute.
    """
    import sympy

    if value == int(value) and abs(value) <= 1024:
        return sympy.Integer(int(value))
    return sympy.Rational(repr(value)) if 1e-6 < abs(value) <= 1e6 else sympy.Float(value, 17)


_ABOVE = "(1 - (1 - less(c, a))*(1 - less(c, b)))"
_BELOW = f"less(a, b)*(1 - {_ABOVE})"
# Derivatives of functions for which sympy returns complex parts, delta functions or forms that
# overflow. They are independent of the primitive table.
_PARTIALS = {
    "sign": ("0",),
    "heaviside": ("0",),
    "step": ("0",),
    "less": ("0", "0"),
    "equal": ("0", "0"),
    "abs": ("sign(a)",),
    "relu": ("less(0, a)",),
    "leaky_relu": ("1 + (b - 1)*less(a, 0)", "a*less(a, 0)"),
    "max": ("heaviside(a - b)", "1 - heaviside(a - b)"),  # 1 together, however they are rounded
    "min": ("1 - heaviside(a - b)", "heaviside(a - b)"),
    "where": ("0", "1 - equal(a, 0)", "equal(a, 0)"),
    "clamp": (f"1 - {_BELOW} - {_ABOVE}", _BELOW, _ABOVE),
    "sigmoid": ("sigmoid(a)*sigmoid(-a)",),
    "softplus": ("sigmoid(a)",),
    # sympy writes erfc(-x) as 2 - erfc(x), which has no digits left for large x.
    "erfc": (f"-{2 / math.sqrt(math.pi)}*exp(-a^2)",),
    "gelu": (f"erfc(-a/sqrt(2))/2 + a*exp(-a^2/2)/{math.sqrt(2 * math.pi)}",),
    "xlogy": ("log(b)", "where(equal(a, 0)*equal(b, 0), 0, a/b)"),
    "logaddexp": ("sigmoid(a - b)", "sigmoid(b - a)"),
}


@cache
def _build_opaque_form(name: str) -> Any:
    """Return a sympy function for a primitive, with the partials of ``_PARTIALS``."""
    return create_opaque_function(
        replace(find_primitive(name), partials=_PARTIALS[name]), _apply_primitive
    )


def _apply_primitive(name: str, arguments: list[Any]) -> Any:
    """Apply a primitive to sympy expressions."""
    if name in _PARTIALS:
        return _build_opaque_form(name)(*arguments)
    row = find_primitive(name)
    if name == "pow" and arguments[0] == 0:  # sympy's derivative would have a logarithm of 0
        return create_opaque_function(replace(row, partials=("0", "0")), _apply_primitive)(
            *arguments
        )
    opaque = get_sympy_form(row) is None
    return (
        create_opaque_function(row, _apply_primitive)(*arguments)
        if opaque
        else apply_to_sympy(name, arguments)
    )


def _lower_expression(
    builder: Builder,
    value: dict[int, int],
    expression: Any,
    lowered: dict[Any, int],
    size_limit: int,
) -> int:
    """Emit the instructions of a sympy expression; return its value.

    Args:
        builder: the builder.
        value: the value in the builder for each value of the tape, for the symbols.
        expression: the sympy expression.
        lowered: the value of each subexpression emitted so far; updated.
        size_limit: the maximum number of instructions to emit.
    """
    results: list[int] = []
    stack: list[tuple[Any, bool]] = [(expression, False)]
    budget = len(builder.entries) + size_limit
    while stack:
        node, expanded = stack.pop()
        if builder.share and node in lowered:
            results.append(lowered[node])
        elif node.args and not expanded:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.args))
        else:
            first = len(results) - len(node.args)
            results[first:] = [_emit_node(builder, value, node, results[first:])]
            lowered[node] = results[-1]
            if len(builder.entries) > budget:
                raise ExpressionSwellError(
                    f"the symbolic derivative has more than {budget:,} operations",
                    hint="use reverse mode, or `share=True`",
                )
    return results[0]


def _emit_node(builder: Builder, value: dict[int, int], node: Any, arguments: list[int]) -> int:
    """Emit the instructions of the top-level operation of a sympy expression."""
    emit, constant = builder.emit, builder.constant
    if node.is_Symbol:
        return value[int(node.name[1:])]
    if node.is_number and not node.args:
        return constant(_convert_to_float(node))
    if node.is_Add:
        return reduce(partial(emit, "add"), arguments)
    if node.is_Mul:
        return _emit_product(builder, node, arguments)
    if node.is_Pow:
        exponent = _convert_to_float(node.args[1]) if node.args[1].is_number else None
        if exponent == -1.0:
            return emit("div", constant(1.0), arguments[0])
        if exponent in (0.5, -0.5):
            root = emit("sqrt", arguments[0])
            return root if exponent == 0.5 else emit("div", constant(1.0), root)
        return emit("pow", *arguments)
    name = type(node).__name__
    name = _OTHER_NAMES.get(name, name)
    if name not in {row.name for row in primitives()}:
        raise DifferentiationError(
            f"no primitive corresponds to the sympy function {name!r}",
            hint="register the primitive without a sympy form, so that its own partials are used",
        )
    return emit(name, *arguments)


def _emit_product(builder: Builder, node: Any, arguments: list[int]) -> int:
    """Emit a sympy product, with factors of power -1 as a single division."""
    one = builder.constant(1.0)
    above, below, coefficient = [one], [one], 1.0
    for factor, argument in zip(node.args, arguments, strict=True):
        number = builder.value_of(argument)
        if number is not None:
            coefficient *= number
        elif factor.is_Pow and factor.args[1] == -1:
            below.append(builder.entries[argument][1][1])  # type: ignore[arg-type]
        else:
            above.append(argument)
    multiplied = partial(builder.emit, "mul")
    top = builder.emit("div", reduce(multiplied, above), reduce(multiplied, below))
    return builder.emit("mul", builder.constant(coefficient), top)


def _convert_to_float(number: Any) -> float:
    """Convert a sympy number to a float; nan if it is not a real number."""
    try:
        return float(number)
    except (TypeError, OverflowError):  # complex numbers, also complex infinity
        return math.nan


_OTHER_NAMES = {"Abs": "abs", "Heaviside": "heaviside", "Max": "max", "Min": "min"}
