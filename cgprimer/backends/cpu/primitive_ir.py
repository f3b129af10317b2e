"""LLVM code of every primitive, on vectors of one type.

Simple operations are written inline. Mathematical functions become functions of the module, which
are defined at their first use: inlining all of them would multiply the compile time by eight, and
the code would run more slowly because of register spills.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cgprimer.backends.cpu import exponential_ir, special_functions_ir, trigonometric_ir
from cgprimer.backends.cpu.vector_ir import (
    FLOAT64,
    FORMATS,
    Format,
    Ir,
    Vector,
    declare_function,
    select_rare,
)
from cgprimer.core.operations.primitive_registry import RECIPROCALS

register_symbols = special_functions_ir.register_symbols


@dataclass(frozen=True)
class MathFunction:
    """A mathematical function of the module."""

    write: Callable[..., Vector | tuple[Vector, Vector]]  #: writes the LLVM code
    arity: int = 1
    library: tuple[str, ...] = ()  #: C functions for operands that are too large
    narrow: str = ""  #: float64 function for float32 results; empty: a float32 version exists
    scalar_library: str = ""  #: C function that is faster if there are no vectors


_M, _T, _S = exponential_ir, trigonometric_ir, special_functions_ir
MATH_FUNCTIONS = {
    **{
        write.__name__: MathFunction(write)
        for write in (
            _M.exp, _M.expm1, _M.log, _M.log2, _M.log10, _M.log1p, _M.sigmoid, _M.softplus,
            _M.tanh, _M.sinh, _M.cosh,
        )
    },
    **{
        write.__name__: MathFunction(write, narrow=write.__name__)
        for write in (_M.asinh, _M.acosh, _M.atanh, _T.asin, _T.acos, _T.atan, _S.erf, _S.erfc)
    },
    "logaddexp": MathFunction(_M.logaddexp, arity=2),
    "pow": MathFunction(_S.power, arity=2, narrow="pow_for_single", scalar_library="pow"),
    "pow_for_single": MathFunction(_S.power_for_single, arity=2),
    "sin": MathFunction(_T.sin, library=("sin",)),
    "cos": MathFunction(_T.cos, library=("cos",)),
    "tan": MathFunction(_T.tan, library=("tan",)),
    "sincos": MathFunction(_T.sincos, library=("sin", "cos")),
}  # fmt: skip


# --- inline operations: the same values as numpy's functions, also for nan ----------------------


def _greater(a: Vector, b: Vector) -> Vector:
    return b.where(a > b, a).where(a.is_nan(), a)


def _lesser(a: Vector, b: Vector) -> Vector:
    return b.where(a < b, a).where(a.is_nan(), a)


def _sign(a: Vector) -> Vector:
    return a.where(a.equals(0.0), 0.0).where(a > 0.0, 1.0).where(a < 0.0, -1.0)


def _step(a: Vector) -> Vector:
    return a.where(a.equals(0.0), 0.5).where(a > 0.0, 1.0).where(a < 0.0, 0.0)


def _one_where(a: Vector, b: Vector, *, less: bool) -> Vector:
    return a.constant(0.0).where(a < b if less else a.equals(b), 1.0)


_INLINE: dict[str, Callable[..., Vector]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "copy": lambda a: a,
    "stop_gradient": lambda a: a,
    "sqrt": lambda a: a.sqrt(),
    "abs": abs,
    "sign": _sign,
    "heaviside": _step,
    "step": _step,
    "relu": lambda a: a.where(a <= 0.0, 0.0),
    "leaky_relu": lambda a, slope: a.where(a < 0.0, slope * a),
    "max": _greater,
    "min": _lesser,
    "clamp": lambda a, low, high: _lesser(_greater(a, low), high),
    "where": lambda a, b, c: c.where(a.differs(0.0), b),
    "less": partial(_one_where, less=True),
    "equal": partial(_one_where, less=False),
    "fma": lambda a, b, c: a.multiply_add(b, c),
    "fms": lambda a, b, c: a.multiply_add(b, -c),
    "fnma": lambda a, b, c: (-a).multiply_add(b, c),
}
_FLAGGED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}

# --- compositions of other operations, as in the numpy functions of the primitives -----------

_INVERTED = {f"a{name}": f"a{other}" for name, other in RECIPROCALS.items()}

FUSED = ("fma", "fms", "fnma")  #: a*b + c, a*b - c, c - a*b; not primitives
SUPPORTED = frozenset(
    {*_INLINE, *MATH_FUNCTIONS, *_INVERTED, *RECIPROCALS, "log_base", "xlogy", "gelu"}
    - {*FUSED, "sincos", "pow_for_single"}
)  #: names of the primitives that :meth:`Emitter.apply` writes
INLINE_EXPONENTS = frozenset(
    (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
)  #: exponents that are written as products


class Emitter:
    """Writer of operations on vectors of one type.

    Args:
        module: gets the mathematical functions.
        dtype: ``"float64"`` or ``"float32"``.
        width: numbers in a vector; 1 for plain numbers.
        flags: of LLVM's fast arithmetic, for add, sub, mul and div alone. With ``nsz`` or
            ``reassoc`` the sign of a zero may be lost.
        inline: whether the mathematical functions are marked to be written where they are used.
            LLVM's passes do that; without passes they stay functions.
    """

    def __init__(
        self, module: Ir, dtype: str, width: int, *, flags: Sequence[str] = (), inline: bool = False
    ) -> None:
        from llvmlite import ir

        self.module = module
        self.format: Format = FORMATS[dtype]
        self.width = width
        self.flags = flags
        self.inline = inline
        scalar = self.format.scalar
        self.type: Ir = ir.VectorType(scalar, width) if width > 1 else scalar
        self._functions: dict[str, Ir] = {}

    def apply(self, builder: Ir, primitive_name: str, *operands: Ir) -> Ir:
        """Write one operation: a primitive of SUPPORTED, or one of FUSED.

        Raises:
            KeyError: if it is neither.
        """
        name = primitive_name
        if name in _FLAGGED:
            return getattr(builder, _FLAGGED[name])(*operands, flags=self.flags)
        lanes = [Vector(builder, operand, self.format) for operand in operands]
        if name in _INLINE:
            return _INLINE[name](*lanes).ir
        if name == "pow" and (exponent := constant_value(operands[1])) in INLINE_EXPONENTS:
            return _small_power(lanes[0], exponent).ir
        return self._composed(name, *lanes).ir

    def sincos(self, builder: Ir, operand: Ir) -> tuple[Ir, Ir]:
        """Write sine and cosine of one operand, which cost little more than one of them."""
        pair = builder.call(self.function("sincos"), [operand])
        return builder.extract_value(pair, 0), builder.extract_value(pair, 1)

    def _composed(self, name: str, a: Vector, *more: Vector) -> Vector:
        if name in RECIPROCALS:
            return 1.0 / self._call_function(RECIPROCALS[name], a)
        if name in _INVERTED:
            return self._call_function(_INVERTED[name], 1.0 / a)
        if name == "log_base":
            return self._call_function("log", a) / self._call_function("log", *more)
        if name == "xlogy":
            b = more[0].where((abs(a) + abs(more[0])).equals(0.0), 1.0)
            return a * self._call_function("log", b)
        if name == "gelu":
            return 0.5 * a * self._call_function("erfc", -math.sqrt(0.5) * a)
        return self._call_function(name, a, *more)

    def _call_function(self, name: str, *operands: Vector) -> Vector:
        first = operands[0]
        return first.like(first.builder.call(self.function(name), [o.ir for o in operands]))

    # --- functions of the module ---

    def function(self, name: str) -> Ir:
        """Return the module's function for a name of MATH_FUNCTIONS; define it at the first use."""
        if name not in self._functions:
            marked = "_inline" if self.inline else ""
            title = f"cgprimer_{name}_{self.format.name}_x{self.width}{marked}"
            existing = self.module.globals.get(title)
            self._functions[name] = existing or self._define(MATH_FUNCTIONS[name], name, title)
        return self._functions[name]

    def _define(self, kernel: MathFunction, name: str, title: str) -> Ir:
        from llvmlite import ir

        results = [self.type] * max(1, len(kernel.library))
        kind = ir.LiteralStructType(results) if len(results) > 1 else self.type
        function = declare_function(self.module, title, kind, [self.type] * kernel.arity)
        function.linkage = "internal"
        function.attributes.add("alwaysinline" if self.inline else "noinline")
        function.attributes.add("nounwind")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        operands = [Vector(builder, argument, self.format) for argument in function.args]
        values = self._values(kernel, name, operands)
        result = values[0].ir
        if len(values) > 1:
            result = ir.Constant(kind, ir.Undefined)
            for i, value in enumerate(values):
                result = builder.insert_value(result, value.ir, i)
        builder.ret(result)
        return function

    def _values(self, kernel: MathFunction, name: str, operands: list[Vector]) -> list[Vector]:
        if self.format is not FLOAT64 and kernel.narrow:
            return self._through_float64(kernel.narrow, operands)
        if kernel.scalar_library and self.width == 1:
            return self._call_library((kernel.scalar_library,), operands)
        written = kernel.write(*operands)
        values = list(written) if isinstance(written, tuple) else [written]
        if not kernel.library:
            return values
        rare = trigonometric_ir.too_large(operands[0])
        if self.format is FLOAT64:
            return select_rare(rare, values, lambda: self._call_library(kernel.library, operands))
        return select_rare(rare, values, lambda: self._through_float64(name, operands))

    def _call_library(self, library: tuple[str, ...], operands: list[Vector]) -> list[Vector]:
        functions = [
            special_functions_ir.elementwise_library_call(self.module, name, self.type)
            for name in library
        ]
        x, arguments = operands[0], [operand.ir for operand in operands]
        return [x.like(x.builder.call(function, arguments)) for function in functions]

    def _through_float64(self, name: str, operands: list[Vector]) -> list[Vector]:
        wide = Emitter(self.module, FLOAT64.name, self.width)
        build = operands[0].builder
        result = build.call(wide.function(name), [build.fpext(o.ir, wide.type) for o in operands])
        pair = len(MATH_FUNCTIONS[name].library) > 1
        values = [build.extract_value(result, i) for i in range(2)] if pair else [result]
        return [operands[0].like(build.fptrunc(value, self.type)) for value in values]


def constant_value(value: Ir) -> float | None:
    """Return the number in all lanes of a constant; None if the value is not constant."""
    number = getattr(value, "constant", None)
    if isinstance(number, list | tuple) and len({str(n) for n in number}) == 1:
        number = getattr(number[0], "constant", number[0])
    return float(number) if isinstance(number, int | float) else None


def _small_power(a: Vector, exponent: float | None) -> Vector:
    if exponent == 0.0:
        return a.constant(1.0)
    if exponent == 0.5:  # pow(-0, 1/2) is 0 and pow(-inf, 1/2) is inf, other than the root's
        return (a.sqrt() + 0.0).where(a.equals(-math.inf), math.inf)
    square = a * a
    if exponent == -2.0:
        inverse = 1.0 / a
        return inverse * inverse
    return {-1.0: lambda: 1.0 / a, 1.0: lambda: a, 2.0: lambda: square}.get(
        exponent or 0.0, lambda: square * (a if exponent == 3.0 else square)
    )()
