"""LLVM code of every primitive, on vectors of one type.

Simple operations are emitted inline. Mathematical functions become functions of the module, which
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
    FloatFormat,
    Ir,
    Vector,
    declare_function,
    emit_rare_branch,
)
from cgprimer.core.operations.primitive_registry import RECIPROCALS

register_c_functions = special_functions_ir.register_c_functions


@dataclass(frozen=True)
class MathFunction:
    """Code generator of a mathematical function, with alternatives from the C library."""

    emit: Callable[..., Vector | tuple[Vector, Vector]]  #: emits the LLVM code
    arity: int = 1
    library: tuple[str, ...] = ()  #: C functions for operands that are too large
    narrow: str = ""  #: float64 function for float32 results; empty: a float32 version exists
    scalar_library: str = ""  #: C function that is faster if there are no vectors


_M, _T, _S = exponential_ir, trigonometric_ir, special_functions_ir
MATH_FUNCTIONS = {
    **{
        emit.__name__: MathFunction(emit)
        for emit in (
            _M.exp, _M.expm1, _M.log, _M.log2, _M.log10, _M.log1p, _M.sigmoid, _M.softplus,
            _M.tanh, _M.sinh, _M.cosh,
        )
    },
    **{
        emit.__name__: MathFunction(emit, narrow=emit.__name__)
        for emit in (_M.asinh, _M.acosh, _M.atanh, _T.asin, _T.acos, _T.atan, _S.erf, _S.erfc)
    },
    "logaddexp": MathFunction(_M.logaddexp, arity=2),
    "pow": MathFunction(_S.power, arity=2, narrow="pow_for_single", scalar_library="pow"),
    "pow_for_single": MathFunction(_S.power_for_float32, arity=2),
    "sin": MathFunction(_T.sin, library=("sin",)),
    "cos": MathFunction(_T.cos, library=("cos",)),
    "tan": MathFunction(_T.tan, library=("tan",)),
    "sincos": MathFunction(_T.sincos, library=("sin", "cos")),
}  # fmt: skip


# --- inline operations: the same values as numpy's functions, also for nan ----------------------


def _emit_max(a: Vector, b: Vector) -> Vector:
    """Emit the maximum of each lane; propagate nan."""
    return b.replace_where(a > b, a).replace_where(a.is_nan(), a)


def _emit_min(a: Vector, b: Vector) -> Vector:
    """Emit the minimum of each lane; propagate nan."""
    return b.replace_where(a < b, a).replace_where(a.is_nan(), a)


def _emit_sign(a: Vector) -> Vector:
    """Emit the sign function: -1, 0 or 1."""
    return (
        a.replace_where(a.equals(0.0), 0.0).replace_where(a > 0.0, 1.0).replace_where(a < 0.0, -1.0)
    )


def _emit_heaviside(a: Vector) -> Vector:
    """Emit the Heaviside step function, which is 1/2 at 0."""
    return (
        a.replace_where(a.equals(0.0), 0.5).replace_where(a > 0.0, 1.0).replace_where(a < 0.0, 0.0)
    )


def _emit_comparison(a: Vector, b: Vector, *, less: bool) -> Vector:
    """Emit ``a < b`` or ``a == b`` as 1.0 or 0.0."""
    return a.splat(0.0).replace_where(a < b if less else a.equals(b), 1.0)


_INLINE: dict[str, Callable[..., Vector]] = {
    "neg": lambda a: -a,
    "copy": lambda a: a,
    "stop_gradient": lambda a: a,
    "sqrt": lambda a: a.sqrt(),
    "abs": abs,
    "sign": _emit_sign,
    "heaviside": _emit_heaviside,
    "step": _emit_heaviside,
    "relu": lambda a: a.replace_where(a <= 0.0, 0.0),
    "leaky_relu": lambda a, slope: a.replace_where(a < 0.0, slope * a),
    "max": _emit_max,
    "min": _emit_min,
    "clamp": lambda a, low, high: _emit_min(_emit_max(a, low), high),
    "where": lambda a, b, c: c.replace_where(a.differs(0.0), b),
    "less": partial(_emit_comparison, less=True),
    "equal": partial(_emit_comparison, less=False),
    "fma": lambda a, b, c: a.multiply_add(b, c),
    "fms": lambda a, b, c: a.multiply_add(b, -c),
    "fnma": lambda a, b, c: (-a).multiply_add(b, c),
}
_FAST_MATH_INSTRUCTIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}

# --- compositions of other operations, as in the numpy functions of the primitives -----------

_INVERSE_RECIPROCALS = {f"a{name}": f"a{other}" for name, other in RECIPROCALS.items()}

FUSED = ("fma", "fms", "fnma")  #: a*b + c, a*b - c, c - a*b, which are not primitives
SUPPORTED = frozenset(
    {
        *_FAST_MATH_INSTRUCTIONS,
        *_INLINE,
        *MATH_FUNCTIONS,
        *_INVERSE_RECIPROCALS,
        *RECIPROCALS,
        "log_base",
        "xlogy",
        "gelu",
    }
    - {*FUSED, "sincos", "pow_for_single"}
)  #: names of the primitives that :meth:`PrimitiveEmitter.emit` supports
INLINE_EXPONENTS = frozenset(
    (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
)  #: exponents whose powers are emitted as products and roots


class PrimitiveEmitter:
    """Code generator of the primitives, on vectors of one type.

    Args:
        module: LLVM module to which the mathematical functions are added.
        dtype: ``"float64"`` or ``"float32"``.
        width: lanes of a vector; 1 for scalars.
        flags: LLVM's fast-math flags, only for add, sub, mul and div. With ``nsz`` or
            ``reassoc`` the sign of a zero may be lost.
        inline: mark the mathematical functions as ``alwaysinline``. LLVM's passes inline them;
            without passes they stay functions.
    """

    def __init__(
        self, module: Ir, dtype: str, width: int, *, flags: Sequence[str] = (), inline: bool = False
    ) -> None:
        from llvmlite import ir

        self.module = module
        self.format: FloatFormat = FORMATS[dtype]
        self.width = width
        self.flags = flags
        self.inline = inline
        scalar = self.format.scalar_type
        self.type: Ir = ir.VectorType(scalar, width) if width > 1 else scalar
        self._functions: dict[str, Ir] = {}

    def emit(self, builder: Ir, primitive_name: str, *operands: Ir) -> Ir:
        """Emit a primitive listed in SUPPORTED or a multiply-add listed in FUSED.

        Raises:
            KeyError: if the operation is neither.
        """
        name = primitive_name
        if name in _FAST_MATH_INSTRUCTIONS:
            return getattr(builder, _FAST_MATH_INSTRUCTIONS[name])(*operands, flags=self.flags)
        vectors = [Vector(builder, operand, self.format) for operand in operands]
        if name in _INLINE:
            return _INLINE[name](*vectors).ir
        if name == "pow" and (exponent := get_constant_value(operands[1])) in INLINE_EXPONENTS:
            return _emit_power(vectors[0], exponent).ir
        return self._emit_composition(name, *vectors).ir

    def emit_sincos(self, builder: Ir, operand: Ir) -> tuple[Ir, Ir]:
        """Emit the sine and cosine of an operand, which cost little more than the sine alone."""
        pair = builder.call(self.get_function("sincos"), [operand])
        return builder.extract_value(pair, 0), builder.extract_value(pair, 1)

    def _emit_composition(self, name: str, a: Vector, *more: Vector) -> Vector:
        """Emit a primitive that is a composition of mathematical functions."""
        if name in RECIPROCALS:
            return 1.0 / self._emit_call(RECIPROCALS[name], a)
        if name in _INVERSE_RECIPROCALS:
            return self._emit_call(_INVERSE_RECIPROCALS[name], 1.0 / a)
        if name == "log_base":
            return self._emit_call("log", a) / self._emit_call("log", *more)
        if name == "xlogy":
            b = more[0].replace_where((abs(a) + abs(more[0])).equals(0.0), 1.0)
            return a * self._emit_call("log", b)
        if name == "gelu":
            return 0.5 * a * self._emit_call("erfc", -math.sqrt(0.5) * a)
        return self._emit_call(name, a, *more)

    def _emit_call(self, name: str, *operands: Vector) -> Vector:
        """Emit a call to a mathematical function."""
        first = operands[0]
        return first.wrap(first.builder.call(self.get_function(name), [o.ir for o in operands]))

    # --- functions of the module ---

    def get_function(self, name: str) -> Ir:
        """Return the LLVM function that implements a primitive, defined on first use."""
        if name not in self._functions:
            suffix = "_inline" if self.inline else ""
            symbol = f"cgprimer_{name}_{self.format.name}_x{self.width}{suffix}"
            existing = self.module.globals.get(symbol)
            self._functions[name] = existing or self._define_function(
                MATH_FUNCTIONS[name], name, symbol
            )
        return self._functions[name]

    def _define_function(self, math_function: MathFunction, name: str, symbol: str) -> Ir:
        """Define a mathematical function in the LLVM module under a symbol name."""
        from llvmlite import ir

        results = [self.type] * max(1, len(math_function.library))
        result_type = ir.LiteralStructType(results) if len(results) > 1 else self.type
        function = declare_function(
            self.module, symbol, result_type, [self.type] * math_function.arity
        )
        function.linkage = "internal"
        function.attributes.add("alwaysinline" if self.inline else "noinline")
        function.attributes.add("nounwind")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        operands = [Vector(builder, argument, self.format) for argument in function.args]
        values = self._emit_results(math_function, name, operands)
        result = values[0].ir
        if len(values) > 1:
            result = ir.Constant(result_type, ir.Undefined)
            for i, value in enumerate(values):
                result = builder.insert_value(result, value.ir, i)
        builder.ret(result)
        return function

    def _emit_results(
        self, math_function: MathFunction, name: str, operands: list[Vector]
    ) -> list[Vector]:
        """Emit the body of a mathematical function and return its results."""
        if self.format is not FLOAT64 and math_function.narrow:
            return self._emit_in_float64(math_function.narrow, operands)
        if math_function.scalar_library and self.width == 1:
            return self._emit_library_calls((math_function.scalar_library,), operands)
        results = math_function.emit(*operands)
        values = list(results) if isinstance(results, tuple) else [results]
        if not math_function.library:
            return values
        emit_rare: Callable[[], list[Vector]] = (
            partial(self._emit_library_calls, math_function.library, operands)
            if self.format is FLOAT64
            else partial(self._emit_in_float64, name, operands)
        )
        rare = trigonometric_ir.mask_large_operands(operands[0])
        return emit_rare_branch(rare, values, emit_rare)

    def _emit_library_calls(self, library: tuple[str, ...], operands: list[Vector]) -> list[Vector]:
        """Emit a call to each of several functions of the C library."""
        functions = [
            special_functions_ir.define_elementwise_call(self.module, name, self.type)
            for name in library
        ]
        x, arguments = operands[0], [operand.ir for operand in operands]
        return [x.wrap(x.builder.call(function, arguments)) for function in functions]

    def _emit_in_float64(self, name: str, operands: list[Vector]) -> list[Vector]:
        """Emit a call to the float64 version of a function, with conversions of its operands."""
        wide = PrimitiveEmitter(self.module, FLOAT64.name, self.width)
        builder = operands[0].builder
        result = builder.call(
            wide.get_function(name), [builder.fpext(o.ir, wide.type) for o in operands]
        )
        pair = len(MATH_FUNCTIONS[name].library) > 1
        values = [builder.extract_value(result, i) for i in range(2)] if pair else [result]
        return [operands[0].wrap(builder.fptrunc(value, self.type)) for value in values]


def get_constant_value(value: Ir) -> float | None:
    """Return the number in all lanes of an LLVM constant, or None for any other value."""
    number = getattr(value, "constant", None)
    if isinstance(number, list | tuple) and len({str(n) for n in number}) == 1:
        number = getattr(number[0], "constant", number[0])
    return float(number) if isinstance(number, int | float) else None


def _emit_power(a: Vector, exponent: float | None) -> Vector:
    """Emit a power with an exponent of INLINE_EXPONENTS as products and roots."""
    if exponent == 0.0:
        return a.splat(1.0)
    if exponent == 0.5:  # pow(-0, 1/2) is 0 and pow(-inf, 1/2) is inf, other than the root's
        return (a.sqrt() + 0.0).replace_where(a.equals(-math.inf), math.inf)
    square = a * a
    if exponent == -2.0:
        inverse = 1.0 / a
        return inverse * inverse
    return {-1.0: lambda: 1.0 / a, 1.0: lambda: a, 2.0: lambda: square}.get(
        exponent or 0.0, lambda: square * (a if exponent == 3.0 else square)
    )()
