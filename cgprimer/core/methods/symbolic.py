"""Symbolic differentiation: sympy differentiates the whole expression, and the result is lowered.

The expression of the output is written out in full, differentiated as a formula, and turned back
into instructions. Nothing here reads the primitive table's derivatives (but for rows without a
sympy form, such as registered ones), so agreement with the other methods is evidence.

Formulas swell: a value used twice is written twice, and the product rule copies it again. With
``share=True`` (the default) parts that sympy writes alike are computed once; ``share=False`` shows
the size of the formulas themselves. Beyond ``limit`` operations the method refuses.

sympy may cancel: ``xa^2/xa`` is ``xa`` to it. The derivative is then right where the original is
undefined.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial, reduce
from importlib.util import find_spec
from typing import Any

from cgprimer.core.methods.contract import DerivativeProgram, one_pass
from cgprimer.core.primitives import primitive, primitives
from cgprimer.core.primitives.formulas import form, opaque_function, symbolic_call
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import depends, reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import DifferentiationError, ExpressionSwellError, counted

LIMIT = 5_000  #: operations of the written-out expression beyond which the method refuses


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, share: bool = True, limit: int = LIMIT
) -> DerivativeProgram:
    """The program of symbolic differentiation: one pass.

    Args:
        share: compute equal parts of the formulas once.
        limit: the most operations that the written-out expression may have.

    Raises:
        ExpressionSwellError: the expression, or the formula of a derivative, is larger.
        DifferentiationError: sympy cannot write or differentiate the expression.
    """
    if find_spec("sympy") is None:
        raise DifferentiationError(
            "symbolic differentiation needs sympy, which is not installed", hint="pip install sympy"
        )
    roots = [tape.index(name) for name in of]
    needed = reachable(tape, roots)
    for name, root in zip(of, roots, strict=True):
        size = written_out_size(tape, root)
        if size > limit:
            raise ExpressionSwellError(
                f"written out in full, {name} has {counted(size)} operations,"
                f" more than the limit of {limit:,}",
                hint="use reverse mode, or raise the limit: limit=... (--symbolic-limit N)",
            )
    builder = Builder(share=share)
    value = builder.extend(tape, keep=needed)
    derivatives = {}
    for target, root in zip(of, roots, strict=True):
        known: dict[Any, int] = {}
        for name in wrt:
            derivative = _derivative(tape, root, tape.index(name))
            most = 50 * (limit if share else 20 * limit)
            found = _lowered(builder, value, derivative, known, most)
            if (number := builder.value_of(found)) is not None and math.isnan(number):
                found = builder.emit("mul", found, value[tape.index(name)])  # not 0 when derived
            derivatives[target, name] = found
    values = {name: value[root] for name, root in zip(of, roots, strict=True)}
    return one_pass("symbolic", builder, tape, wrt, values, derivatives)


def written_out_size(tape: Tape, root: int) -> int:
    """Operations of a value's expression when every shared part is written again."""
    first = len(tape.leaves)
    sizes = [0] * (root + 1)
    for index in range(first, root + 1):
        sizes[index] = 1 + sum(sizes[o] for o in tape.instructions[index - first].operands)
    return sizes[root]


def _derivative(tape: Tape, root: int, source: int) -> Any:
    """sympy's derivative of one value with respect to another, in symbols named ``v<index>``."""
    import sympy

    needed, reached = reachable(tape, [root]), depends(tape, [source])
    found: dict[int, Any] = {}
    try:
        for index in (i for i in range(root + 1) if needed[i]):
            instruction = tape.instruction(index)
            leaf = None if instruction else tape.leaves[index]
            if instruction and index != source and reached[index]:
                arguments = [found[o] for o in instruction.operands]
                found[index] = _call(instruction.primitive, arguments)
            elif leaf and leaf.kind == "constant" and math.isfinite(leaf.value):
                found[index] = _exact(leaf.value)  # nan would swallow a whole sum
            else:  # what does not depend on the variable stays a symbol: it is computed already
                found[index] = sympy.Symbol(f"v{index}", real=True)
        if found[root].has(sympy.zoo, sympy.nan):  # they would swallow the rest of a sum
            return sympy.nan
        return sympy.diff(found[root], sympy.Symbol(f"v{source}", real=True))
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise DifferentiationError(f"sympy cannot differentiate this expression: {error}") from None


def _exact(value: float) -> Any:
    """A double as sympy's number: whole and decimal ones exactly, extreme ones as floats.

    Powers of huge exact integers would be computed digit by digit, for ever.
    """
    import sympy

    if value == int(value) and abs(value) <= 1024:
        return sympy.Integer(int(value))
    return sympy.Rational(repr(value)) if 1e-6 < abs(value) <= 1e6 else sympy.Float(value, 17)


_ABOVE = "(1 - (1 - less(c, a))*(1 - less(c, b)))"
_BELOW = f"less(a, b)*(1 - {_ABOVE})"
# Functions that sympy would write with complex parts or delta functions, or rewrite into forms that
# overflow. Their derivatives are stated here, independently of the primitive table.
_STATED = {
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
def _stated(name: str) -> Any:
    return opaque_function(replace(primitive(name), partials=_STATED[name]), _call)


def _call(name: str, arguments: list[Any]) -> Any:
    """A primitive applied to sympy expressions."""
    if name in _STATED:
        return _stated(name)(*arguments)
    row = primitive(name)
    if name == "pow" and arguments[0] == 0:  # sympy's derivative would have a logarithm of 0
        return opaque_function(replace(row, partials=("0", "0")), _call)(*arguments)
    opaque = form(row) is None
    return opaque_function(row, _call)(*arguments) if opaque else symbolic_call(name, arguments)


def _lowered(
    builder: Builder, value: dict[int, int], expression: Any, known: dict[Any, int], most: int
) -> int:
    """Emit a sympy expression, walking it with a stack of its own; ``known`` has what was met."""
    results: list[int] = []
    stack: list[tuple[Any, bool]] = [(expression, False)]
    budget = len(builder.entries) + most
    while stack:
        node, done = stack.pop()
        if builder.share and node in known:
            results.append(known[node])
        elif node.args and not done:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.args))
        else:
            first = len(results) - len(node.args)
            results[first:] = [_emitted(builder, value, node, results[first:])]
            known[node] = results[-1]
            if len(builder.entries) > budget:
                raise ExpressionSwellError(
                    f"the formula of the derivative has more than {budget:,} operations",
                    hint="use reverse mode, or share=True (--symbolic-share)",
                )
    return results[0]


def _emitted(builder: Builder, value: dict[int, int], node: Any, arguments: list[int]) -> int:
    """Emit one node of a sympy expression."""
    emit, constant = builder.emit, builder.constant
    if node.is_Symbol:
        return value[int(node.name[1:])]
    if node.is_number and not node.args:
        return constant(_as_float(node))
    if node.is_Add:
        return reduce(partial(emit, "add"), arguments)
    if node.is_Mul:
        return _product(builder, node, arguments)
    if node.is_Pow:
        exponent = _as_float(node.args[1]) if node.args[1].is_number else None
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
            f"sympy's {name} has no counterpart in the table of primitives",
            hint="register the primitive without a sympy form: it then uses its own partials",
        )
    return emit(name, *arguments)


def _product(builder: Builder, node: Any, arguments: list[int]) -> int:
    """A product: negative powers gathered into one division, the number in front last."""
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


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except (TypeError, OverflowError):  # sympy's complex infinity, or a number off the real line
        return math.nan


_OTHER_NAMES = {"Abs": "abs", "Heaviside": "heaviside", "Max": "max", "Min": "min"}
