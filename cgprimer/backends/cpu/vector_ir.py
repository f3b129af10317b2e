"""Vector arithmetic that emits LLVM code: Python expressions become LLVM instructions.

A :class:`Vector` stands for an LLVM value, a vector or a scalar; ``a * b + 1.0`` emits the
instructions. The code is independent of the processor: LLVM selects the machine instructions, and
every formula must hold without a fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Ir = Any  # an ir.Value, an ir.Type or an ir.Function: llvmlite has no type hints


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format of IEEE 754."""

    name: str  #: name of the numpy dtype
    bits: int  #: total number of bits
    fraction: int  #: number of stored fraction bits
    bias: int  #: exponent bias

    @property
    def scalar_type(self) -> Ir:
        """LLVM type of a scalar in this format."""
        from llvmlite import ir

        return ir.DoubleType() if self.bits == 64 else ir.FloatType()

    @property
    def itemsize(self) -> int:
        """Number of bytes of a scalar in this format."""
        return self.bits // 8

    @property
    def rounding_constant(self) -> float:
        """Constant that rounds a small number to an integer when added and subtracted.

        The last bits of the sum are the integer. LLVM's ``rint`` is a library call on old
        processors.
        """
        return 1.5 * 2.0**self.fraction

    @property
    def smallest_normal(self) -> float:
        """Smallest positive normal number."""
        return float(2.0 ** (1 - self.bias))


FLOAT64 = FloatFormat("float64", 64, 52, 1023)
FLOAT32 = FloatFormat("float32", 32, 23, 127)
FORMATS = {f.name: f for f in (FLOAT64, FLOAT32)}


@dataclass(frozen=True)
class Mask:
    """A vector of booleans that selects lanes."""

    builder: Ir
    ir: Ir

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.and_(self.ir, other.ir))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.or_(self.ir, other.ir))

    def __invert__(self) -> Mask:
        return Mask(self.builder, self.builder.not_(self.ir))

    def any(self) -> Ir:
        """Return whether any lane of the mask is true, as an LLVM boolean."""
        mask_type = self.ir.type
        if not count_lanes(mask_type):
            return self.ir
        name = f"llvm.vector.reduce.or.v{mask_type.count}i1"
        reduce = declare_function(self.builder.module, name, mask_type.element, [mask_type])
        return self.builder.call(reduce, [self.ir])


def _make_arithmetic_method(
    instruction: str, *, swapped: bool = False
) -> Callable[[Vector, Vector | float], Vector]:
    """Create an operator method that emits an LLVM arithmetic instruction."""

    def emit_arithmetic(a: Vector, b: Vector | float) -> Vector:
        """Emit the arithmetic instruction for two vectors, or for a vector and a number."""
        operands = (a.to_vector(b).ir, a.ir) if swapped else (a.ir, a.to_vector(b).ir)
        return a.wrap(getattr(a.builder, instruction)(*operands))

    return emit_arithmetic


def _make_comparison_method(
    operator: str, *, at_nan: bool = False
) -> Callable[[Vector, Vector | float], Mask]:
    """Create a method that emits a comparison; ``at_nan`` is the result if an operand is nan."""

    def emit_comparison(a: Vector, b: Vector | float) -> Mask:
        """Emit the comparison of a vector with a vector or a number."""
        compare = a.builder.fcmp_unordered if at_nan else a.builder.fcmp_ordered
        return Mask(a.builder, compare(operator, a.ir, a.to_vector(b).ir))

    return emit_comparison


@dataclass(frozen=True)
class Vector:
    """An LLVM value with floating-point lanes, and the IRBuilder that emits operations on it."""

    builder: Ir
    ir: Ir
    format: FloatFormat

    # --- construction ---

    def wrap(self, value: Ir) -> Vector:
        """Wrap an LLVM value as a vector with the builder and format of this vector."""
        return Vector(self.builder, value, self.format)

    def splat(self, number: float) -> Vector:
        """Return a constant vector with the number in every lane."""
        return self.wrap(splat_constant(self.ir.type, float(number)))

    def to_vector(self, operand: Vector | float) -> Vector:
        """Convert a number to a constant vector; return a vector unchanged."""
        return operand if isinstance(operand, Vector) else self.splat(operand)

    # --- arithmetic ---

    __add__, __radd__ = (
        _make_arithmetic_method("fadd"),
        _make_arithmetic_method("fadd", swapped=True),
    )
    __sub__, __rsub__ = (
        _make_arithmetic_method("fsub"),
        _make_arithmetic_method("fsub", swapped=True),
    )
    __mul__, __rmul__ = (
        _make_arithmetic_method("fmul"),
        _make_arithmetic_method("fmul", swapped=True),
    )
    __truediv__, __rtruediv__ = (
        _make_arithmetic_method("fdiv"),
        _make_arithmetic_method("fdiv", swapped=True),
    )

    def __neg__(self) -> Vector:
        return self.wrap(self.builder.fneg(self.ir))

    def multiply_add(self, factor: Vector | float, term: Vector | float) -> Vector:
        """Return ``self * factor + term``, rounded once if the processor supports it."""
        return self._call_intrinsic("fmuladd", self.to_vector(factor), self.to_vector(term))

    def _call_intrinsic(self, name: str, *operands: Vector) -> Vector:
        """Call an LLVM intrinsic on this vector and further operands."""
        values = [self.ir, *(operand.ir for operand in operands)]
        return self.wrap(call_intrinsic(self.builder, name, values))

    def __abs__(self) -> Vector:
        return self._call_intrinsic("fabs")

    def sqrt(self) -> Vector:
        """Return the correctly rounded square root; nan for negative lanes."""
        return self._call_intrinsic("sqrt")

    def copysign(self, sign: Vector) -> Vector:
        """Return the magnitude of this vector with the sign of another vector."""
        return self._call_intrinsic("copysign", sign)

    # --- comparisons; all are false for nan, except differs ---

    __lt__, __le__, __gt__, __ge__ = (
        _make_comparison_method(sign) for sign in ("<", "<=", ">", ">=")
    )
    equals = _make_comparison_method("==")  #: 0 and -0 are equal
    differs = _make_comparison_method("!=", at_nan=True)

    def is_nan(self) -> Mask:
        """Return the mask of lanes that are nan."""
        return self.differs(self)

    def replace_where(self, mask: Mask, replacement: Vector | float) -> Vector:
        """Replace the lanes that a mask selects."""
        return self.wrap(self.builder.select(mask.ir, self.to_vector(replacement).ir, self.ir))

    def minimum(self, limit: float) -> Vector:
        """Return the minimum of each lane and a limit; propagate nan."""
        return self.replace_where(self > limit, limit)

    def maximum(self, limit: float) -> Vector:
        """Return the maximum of each lane and a limit; propagate nan."""
        return self.replace_where(self < limit, limit)

    # --- bits ---

    @property
    def integer_type(self) -> Ir:
        """LLVM integer type with as many bits and lanes as the vector."""
        from llvmlite import ir

        return vectorize_type_like(ir.IntType(self.format.bits), self.ir.type)

    def bitcast_to_integers(self) -> Ir:
        """Reinterpret the bits of the lanes as integers."""
        return self.builder.bitcast(self.ir, self.integer_type)

    def splat_integer(self, number: int) -> Ir:
        """Return a constant integer vector with the number in every lane."""
        return splat_constant(self.integer_type, number)

    def bitcast_from_integers(self, bits: Ir) -> Vector:
        """Reinterpret integers as the bits of floating-point lanes."""
        return self.wrap(self.builder.bitcast(bits, self.ir.type))

    def truncate_significand(self) -> Vector:
        """Clear the lower half of the significand, so that products of two results are exact."""
        dropped_bits = (self.format.fraction + 2) // 2
        mask = (1 << self.format.bits) - (1 << dropped_bits)
        return self.bitcast_from_integers(
            self.builder.and_(self.bitcast_to_integers(), self.splat_integer(mask))
        )

    def exp2_integer(self) -> Vector:
        """Return 2^n for integer lanes n from 1 - bias to bias + 1 (which gives infinity).

        Adding the rounding constant puts the integer into the last bits; shifted to the exponent
        field, the integer becomes the exponent of the result.
        """
        f = self.format
        biased = (self + (f.rounding_constant + f.bias)).bitcast_to_integers()
        return self.bitcast_from_integers(self.builder.shl(biased, self.splat_integer(f.fraction)))

    def evaluate_polynomial(self, coefficients: Sequence[float]) -> Vector:
        """Evaluate c0 + c1*x + c2*x^2 + ... by Estrin's scheme."""
        terms = [self.splat(c) for c in coefficients]
        power = self
        while len(terms) > 1:
            pairs = [
                power.multiply_add(b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)
            ]
            terms = pairs + terms[len(pairs) * 2 :]
            if len(terms) > 1:
                power = power * power
        return terms[0]


def count_lanes(llvm_type: Ir) -> int:
    """Return the number of lanes of an LLVM vector type, or 0 for a scalar type."""
    return getattr(llvm_type, "count", 0)


def vectorize_type_like(element_type: Ir, reference_type: Ir) -> Ir:
    """Return a type with the given element type and as many lanes as a reference type."""
    from llvmlite import ir

    lanes = count_lanes(reference_type)
    return ir.VectorType(element_type, lanes) if lanes else element_type


def splat_constant(llvm_type: Ir, number: float) -> Ir:
    """Return an LLVM constant with the number in every lane."""
    from llvmlite import ir

    lanes = count_lanes(llvm_type)
    return ir.Constant(llvm_type, [number] * lanes if lanes else number)


def declare_function(module: Ir, name: str, result: Ir, operands: Sequence[Ir]) -> Ir:
    """Return the function with the given name; declare it if the module lacks it."""
    from llvmlite import ir

    existing = module.globals.get(name)
    return existing or ir.Function(module, ir.FunctionType(result, operands), name)


def call_intrinsic(builder: Ir, name: str, operands: Sequence[Ir]) -> Ir:
    """Call an LLVM intrinsic, such as ``fabs``, on operands of equal types."""
    operand_type = operands[0].type
    lanes = count_lanes(operand_type)
    element = "f64" if str(operand_type.element if lanes else operand_type) == "double" else "f32"
    suffix = f"v{lanes}{element}" if lanes else element
    function = declare_function(
        builder.module, f"llvm.{name}.{suffix}", operand_type, [operand_type] * len(operands)
    )
    return builder.call(function, operands)


def call_masked_intrinsic(builder: Ir, name: str, vector_type: Ir, operands: Sequence[Ir]) -> Ir:
    """Call the LLVM intrinsic ``masked.load`` or ``masked.store`` for a vector type."""
    from llvmlite import ir

    element = "f64" if vector_type.element == ir.DoubleType() else "f32"
    symbol = f"llvm.masked.{name}.v{vector_type.count}{element}.p0"
    result = vector_type if name == "load" else ir.VoidType()
    types = [operand.type for operand in operands]
    return builder.call(declare_function(builder.module, symbol, result, types), operands)


def emit_rare_branch(
    rare: Mask, usual: Sequence[Vector], emit_rare: Callable[[], Sequence[Vector]]
) -> list[Vector]:
    """Emit a branch that corrects the lanes of a rare case, taken only if a lane needs it.

    Args:
        rare: mask of the lanes that need other code.
        usual: the vectors that are correct in all other lanes.
        emit_rare: emits the code of the branch and returns a replacement for each vector.
    """
    builder = rare.builder
    needed, before = rare.any(), builder.block
    with builder.if_then(needed, likely=False):
        pairs = zip(usual, emit_rare(), strict=True)
        repaired = [old.replace_where(rare, new) for old, new in pairs]
        inside = builder.block
    chosen = []
    for old, new in zip(usual, repaired, strict=True):
        value = builder.phi(old.ir.type)
        value.add_incoming(old.ir, before)
        value.add_incoming(new.ir, inside)
        chosen.append(old.wrap(value))
    return chosen
