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
from functools import cache
from importlib.util import find_spec
from typing import Any

from cgprimer.core.methods.contract import DerivativeProgram
from cgprimer.core.methods.one_pass import one_pass
from cgprimer.core.primitives import primitive, primitives
from cgprimer.core.primitives.formulas import form, opaque_function, symbolic_call
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import depends, reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import DifferentiationError, ExpressionSwellError

LIMIT = 5_000  #: operations of the written-out expression beyond which the method refuses


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, share: bool = True, limit: int = LIMIT
) -> DerivativeProgram:
    """The program of symbolic differentiation: one pass.

    Args:
        tape: the primal.
        of: names to differentiate.
        wrt: names with respect to which.
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
                f"written out in full, {name} has {size:,} operations,"
                f" more than the limit of {limit:,}",
                hint="use reverse mode, or raise the limit: limit=... (--symbolic-limit N)",
            )
    builder = Builder(share=share)
    value = builder.extend(tape, keep=needed)
    derivatives = {}
    for target, root in zip(of, roots, strict=True):
        lowering = Lowering(builder, value, limit if share else 20 * limit)
        for name in wrt:
            derivative = derivative_expression(tape, root, tape.index(name))
            derivatives[target, name] = lowering.lower(derivative)
    values = {name: value[root] for name, root in zip(of, roots, strict=True)}
    return one_pass("symbolic", builder, tape, wrt, values, derivatives)


def written_out_size(tape: Tape, root: int) -> int:
    """Operations of a value's expression when every shared part is written again."""
    first = len(tape.leaves)
    sizes = [0] * (root + 1)
    for index in range(first, root + 1):
        sizes[index] = 1 + sum(sizes[o] for o in tape.instructions[index - first].operands)
    return sizes[root]


def derivative_expression(tape: Tape, root: int, source: int) -> Any:
    """sympy's derivative of one value with respect to another, in symbols named ``v<index>``.

    Raises:
        DifferentiationError: sympy cannot do it.
    """
    import sympy

    try:
        expression = expressions(tape, root, cut=source)[root]
        return sympy.diff(expression, symbol(source))
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise DifferentiationError(f"sympy cannot differentiate this expression: {error}") from None


def expressions(tape: Tape, root: int, *, cut: int) -> dict[int, Any]:
    """sympy expressions of all values that lead to ``root``; ``cut`` stays a symbol."""
    first = len(tape.leaves)
    needed = reachable(tape, [root])
    reached = depends(tape, [cut])
    found: dict[int, Any] = {}
    for index in range(root + 1):
        if not needed[index]:
            continue
        if index >= first and index != cut and reached[index]:
            name, operands = tape.instructions[index - first]
            found[index] = call(name, [found[o] for o in operands])
        elif _finite_constant(tape, index):
            found[index] = exact(tape.leaves[index].value)
        else:  # what does not depend on the variable stays a symbol: it is computed already
            found[index] = symbol(index)
    return found


def _finite_constant(tape: Tape, index: int) -> bool:
    """sympy lets nan swallow a whole sum, so such constants stay symbols."""
    if index >= len(tape.leaves) or tape.leaves[index].kind != "constant":
        return False
    return math.isfinite(tape.leaves[index].value)


def symbol(index: int) -> Any:
    """The symbol that stands for a value of the tape."""
    import sympy

    return sympy.Symbol(f"v{index}", real=True)


def exact(value: float) -> Any:
    """A double as sympy's number: whole and decimal ones exactly, extreme ones as floats.

    Powers of huge exact integers would be computed digit by digit, for ever.
    """
    import sympy

    if value == int(value) and abs(value) <= 1024:
        return sympy.Integer(int(value))
    if 1e-6 < abs(value) <= 1e6:
        return sympy.Rational(repr(value))
    return sympy.Float(value, 17)


@cache
def _kinked() -> dict[str, Any]:
    """Functions that sympy would write with complex parts or delta functions.

    Their derivatives are stated here, independently of the primitive table.
    """
    import sympy

    def make(name: str, *derivatives: Any) -> Any:
        def fdiff(self: Any, argindex: int = 1) -> Any:
            return sympy.sympify(derivatives[argindex - 1](*self.args))

        return type(name, (sympy.Function,), {"fdiff": fdiff, "nargs": len(derivatives)})

    def zero(*_: Any) -> int:
        return 0

    table: dict[str, Any] = {
        "sign": make("sign", zero),
        "heaviside": make("heaviside", zero),
        "step": make("step", zero),
        "less": make("less", zero, zero),
        "equal": make("equal", zero, zero),
    }
    sign, step, less, equal = table["sign"], table["heaviside"], table["less"], table["equal"]
    table["abs"] = make("abs", sign)
    table["relu"] = make("relu", lambda a: less(0, a))
    table["leaky_relu"] = make(
        "leaky_relu", lambda a, b: 1 + (b - 1) * less(a, 0), lambda a, b: a * less(a, 0)
    )
    table["max"] = make("max", lambda a, b: step(a - b), lambda a, b: step(b - a))
    table["min"] = make("min", lambda a, b: step(b - a), lambda a, b: step(a - b))
    table["where"] = make(
        "where", zero, lambda a, b, c: 1 - equal(a, 0), lambda a, b, c: equal(a, 0)
    )

    # These have forms that do not overflow, which sympy would rewrite into ones that do.
    table["sigmoid"] = make("sigmoid", lambda a: table["sigmoid"](a) * table["sigmoid"](-a))
    table["softplus"] = make("softplus", table["sigmoid"])
    sigmoid = table["sigmoid"]
    # erfc too: sympy writes erfc(-x) as 2 - erfc(x), which has no digits left for large x.
    erfc = table["erfc"] = make("erfc", lambda a: -2 / sympy.sqrt(sympy.pi) * sympy.exp(-(a**2)))
    table["gelu"] = make(
        "gelu",
        lambda a: (
            erfc(-a / sympy.sqrt(2)) / 2 + a * sympy.exp(-(a**2) / 2) / sympy.sqrt(2 * sympy.pi)
        ),
    )
    table["logaddexp"] = make("logaddexp", lambda a, b: sigmoid(a - b), lambda a, b: sigmoid(b - a))

    def outside(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
        above = 1 - (1 - less(high, a)) * (1 - less(high, low))
        return less(a, low) * (1 - above), above

    table["clamp"] = make(
        "clamp",
        lambda a, b, c: 1 - sum(outside(a, b, c)),
        lambda a, b, c: outside(a, b, c)[0],
        lambda a, b, c: outside(a, b, c)[1],
    )
    return table


def call(name: str, arguments: list[Any]) -> Any:
    """A primitive applied to sympy expressions."""
    own = _kinked().get(name)
    row = primitive(name)
    if own is None and form(row) is None:
        own = opaque_function(row, call)
    return own(*arguments) if own else symbolic_call(name, arguments)


class Lowering:
    """sympy expressions to instructions.

    Args:
        builder: where the instructions go.
        value: values of the tape to values of the builder, for the symbols.
        limit: the most instructions that may be emitted.
    """

    def __init__(self, builder: Builder, value: dict[int, int], limit: int) -> None:
        self.builder = builder
        self.value = value
        self.limit = limit
        self.known: dict[Any, int] = {}

    def lower(self, expression: Any) -> int:
        """Emit an expression, walking it with a stack of its own."""
        results: list[int] = []
        stack: list[tuple[Any, bool]] = [(expression, False)]
        budget = len(self.builder.entries) + 50 * self.limit
        while stack:
            node, done = stack.pop()
            if self.builder.share and node in self.known:
                results.append(self.known[node])
                continue
            if not node.args:
                results.append(self._atom(node))
            elif done:
                arguments = results[-len(node.args) :]
                del results[-len(node.args) :]
                results.append(self._function(node, arguments))
            else:
                stack.append((node, True))
                stack.extend((argument, False) for argument in reversed(node.args))
                continue
            self.known[node] = results[-1]
            if len(self.builder.entries) > budget:
                raise ExpressionSwellError(
                    f"the formula of the derivative has more than {budget:,} operations",
                    hint="use reverse mode, or share=True (--symbolic-share)",
                )
        return results[0]

    def _atom(self, node: Any) -> int:
        if node.is_Symbol:
            return self.value[int(node.name[1:])]
        if node.is_number:
            return self.builder.constant(_as_float(node))
        raise DifferentiationError(f"sympy's {node} has no counterpart in the table of primitives")

    def _function(self, node: Any, arguments: list[int]) -> int:
        emit, constant = self.builder.emit, self.builder.constant
        name = type(node).__name__
        if name == "Add":
            total = arguments[0]
            for argument in arguments[1:]:
                total = emit("add", total, argument)
            return total
        if name == "Mul":
            return self._product(node, arguments)
        if name == "Pow":
            exponent = _as_float(node.args[1]) if node.args[1].is_number else None
            if exponent == -1.0:
                return emit("div", constant(1.0), arguments[0])
            if exponent in (0.5, -0.5):
                root = emit("sqrt", arguments[0])
                return root if exponent == 0.5 else emit("div", constant(1.0), root)
            return emit("pow", *arguments)
        name = _OTHER_NAMES.get(name, name)
        if name not in {row.name for row in primitives()}:
            raise DifferentiationError(
                f"sympy's {name} has no counterpart in the table of primitives",
                hint="register the primitive without a sympy form: it then uses its own partials",
            )
        return emit(name, *arguments[: primitive(name).arity])

    def _product(self, node: Any, arguments: list[int]) -> int:
        """A product: negative powers gathered into one division, the number in front last."""
        emit = self.builder.emit
        above: list[int] = []
        below: list[int] = []
        coefficient = 1.0
        for factor, argument in zip(node.args, arguments, strict=True):
            number = self.builder.value_of(argument)
            if number is not None:
                coefficient *= number
            elif type(factor).__name__ == "Pow" and factor.args[1] == -1:
                below.append(self.lower(factor.args[0]))
            else:
                above.append(argument)
        top = self._multiplied(above)
        if below:
            top = emit("div", top, self._multiplied(below))
        return emit("mul", self.builder.constant(coefficient), top)

    def _multiplied(self, factors: list[int]) -> int:
        product = self.builder.constant(1.0)
        for factor in factors:
            product = self.builder.emit("mul", product, factor)
        return product


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except (TypeError, OverflowError):  # sympy's complex infinity, or a number off the real line
        return math.nan


_OTHER_NAMES = {"Abs": "abs", "Heaviside": "heaviside", "Max": "max", "Min": "min"}
