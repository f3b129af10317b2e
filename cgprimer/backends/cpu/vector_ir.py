"""Vector arithmetic for writing LLVM code: expressions of Python become LLVM instructions.

A :class:`Lanes` stands for a vector (or, at width 1, one number) that will exist when the code
runs; ``a * b + 1.0`` writes the instructions. Nothing here names a processor: LLVM chooses the
instructions, and every formula must hold without a fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Ir = Any  # an ir.Value, an ir.Type or an ir.Function: llvmlite has no type hints


@dataclass(frozen=True)
class Format:
    """A floating-point format."""

    name: str  #: numpy's
    bits: int  #: of the whole number
    fraction: int  #: stored bits of the fraction
    bias: int  #: of the exponent

    @property
    def scalar(self) -> Ir:
        """LLVM type of one number."""
        from llvmlite import ir

        return ir.DoubleType() if self.bits == 64 else ir.FloatType()

    @property
    def shifter(self) -> float:
        """Constant that rounds a small number to an integer when added to it.

        The integer is in the last bits. LLVM's ``rint`` is a library call on old processors.
        """
        return 1.5 * 2.0**self.fraction

    @property
    def smallest_normal(self) -> float:
        """Smallest normal number."""
        return float(2.0 ** (1 - self.bias))


FLOAT64 = Format("float64", 64, 52, 1023)
FLOAT32 = Format("float32", 32, 23, 127)
FORMATS = {f.name: f for f in (FLOAT64, FLOAT32)}


@dataclass(frozen=True)
class Mask:
    """A boolean per lane."""

    builder: Ir
    ir: Ir

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.and_(self.ir, other.ir))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.or_(self.ir, other.ir))

    def __invert__(self) -> Mask:
        return Mask(self.builder, self.builder.not_(self.ir))

    def any(self) -> Ir:
        """Return whether the mask is true in any lane."""
        kind = self.ir.type
        if not vector_width(kind):
            return self.ir
        name = f"llvm.vector.reduce.or.v{kind.count}i1"
        reduce = declare_function(self.builder.module, name, kind.element, [kind])
        return self.builder.call(reduce, [self.ir])


def _arithmetic(name: str, *, swapped: bool = False) -> Callable[[Vector, Vector | float], Vector]:
    """Return a method that writes an LLVM instruction; with ``swapped``, operands are swapped."""

    def method(a: Vector, b: Vector | float) -> Vector:
        operands = (a.of(b).ir, a.ir) if swapped else (a.ir, a.of(b).ir)
        return a.like(getattr(a.builder, name)(*operands))

    return method


def _comparison(sign: str, *, at_nan: bool = False) -> Callable[[Vector, Vector | float], Mask]:
    """Return a comparison method, with its result if an operand is nan."""

    def method(a: Vector, b: Vector | float) -> Mask:
        compare = a.builder.fcmp_unordered if at_nan else a.builder.fcmp_ordered
        return Mask(a.builder, compare(sign, a.ir, a.of(b).ir))

    return method


@dataclass(frozen=True)
class Vector:
    """A vector of one format, written with one builder."""

    builder: Ir
    ir: Ir
    format: Format

    # --- construction ---

    def like(self, value: Ir) -> Vector:
        """Return another value with the same builder and format."""
        return Vector(self.builder, value, self.format)

    def constant(self, number: float) -> Vector:
        """Return the number in every lane."""
        return self.like(splat(self.ir.type, float(number)))

    def of(self, other: Vector | float) -> Vector:
        """Return a number as a constant vector; return a vector unchanged."""
        return other if isinstance(other, Vector) else self.constant(other)

    # --- arithmetic ---

    __add__, __radd__ = _arithmetic("fadd"), _arithmetic("fadd", swapped=True)
    __sub__, __rsub__ = _arithmetic("fsub"), _arithmetic("fsub", swapped=True)
    __mul__, __rmul__ = _arithmetic("fmul"), _arithmetic("fmul", swapped=True)
    __truediv__, __rtruediv__ = _arithmetic("fdiv"), _arithmetic("fdiv", swapped=True)

    def __neg__(self) -> Vector:
        return self.like(self.builder.fneg(self.ir))

    def multiply_add(self, factor: Vector | float, term: Vector | float) -> Vector:
        """Return ``self * factor + term``, rounded once if the processor supports it."""
        return self._call("fmuladd", self.of(factor), self.of(term))

    def _call(self, name: str, *more: Vector) -> Vector:
        return self.like(call_intrinsic(self.builder, name, [self.ir, *(m.ir for m in more)]))

    def __abs__(self) -> Vector:
        return self._call("fabs")

    def sqrt(self) -> Vector:
        """Return the correctly rounded square root; nan below 0."""
        return self._call("sqrt")

    def with_sign_of(self, other: Vector) -> Vector:
        """Return the absolute value with the sign bit of ``other``."""
        return self._call("copysign", other)

    # --- comparisons; all are false for nan, except differs ---

    __lt__, __le__, __gt__, __ge__ = (_comparison(sign) for sign in ("<", "<=", ">", ">="))
    equals = _comparison("==")  #: 0 and -0 are equal
    differs = _comparison("!=", at_nan=True)

    def is_nan(self) -> Mask:
        """Return the mask of nan."""
        return self.differs(self)

    def where(self, mask: Mask, other: Vector | float) -> Vector:
        """Return ``other`` in the lanes of the mask, ``self`` elsewhere."""
        return self.like(self.builder.select(mask.ir, self.of(other).ir, self.ir))

    def at_most(self, limit: float) -> Vector:
        """Return the minimum with a limit; nan is propagated."""
        return self.where(self > limit, limit)

    def at_least(self, limit: float) -> Vector:
        """Return the maximum with a limit; nan is propagated."""
        return self.where(self < limit, limit)

    # --- bits ---

    @property
    def integers(self) -> Ir:
        """Integer type with the bits of the vector."""
        from llvmlite import ir

        return with_lanes_of(ir.IntType(self.format.bits), self.ir.type)

    def bits(self) -> Ir:
        """Return the bits of the lanes as integers."""
        return self.builder.bitcast(self.ir, self.integers)

    def integer(self, number: int) -> Ir:
        """Return an integer in every lane."""
        return splat(self.integers, number)

    def from_bits(self, bits: Ir) -> Vector:
        """Return the floating-point numbers with these bits."""
        return self.like(self.builder.bitcast(bits, self.ir.type))

    def head(self) -> Vector:
        """Return the leading half of the digits: products of two heads are exact."""
        dropped_bits = (self.format.fraction + 2) // 2
        mask = (1 << self.format.bits) - (1 << dropped_bits)
        return self.from_bits(self.builder.and_(self.bits(), self.integer(mask)))

    def two_to(self) -> Vector:
        """Return 2^self for integers from 1 - bias to bias + 1 (where it is infinite).

        Added to the shifter, the integer stands in the last bits; moved to the place of the
        exponent it is the power.
        """
        f = self.format
        moved = self.builder.shl((self + (f.shifter + f.bias)).bits(), self.integer(f.fraction))
        return self.from_bits(moved)

    def polynomial(self, coefficients: Sequence[float]) -> Vector:
        """Evaluate c0 + c1*self + c2*self^2 + ... in pairs, for instruction-level parallelism."""
        terms = [self.constant(c) for c in coefficients]
        power = self
        while len(terms) > 1:
            pairs = [
                power.multiply_add(b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)
            ]
            terms = pairs + terms[len(pairs) * 2 :]
            if len(terms) > 1:
                power = power * power
        return terms[0]


def vector_width(kind: Ir) -> int:
    """Return the number of lanes of a vector type; 0 for a scalar type."""
    return getattr(kind, "count", 0)


def with_lanes_of(element: Ir, like: Ir) -> Ir:
    """Return the element type, as a vector if ``like`` is a vector."""
    from llvmlite import ir

    return ir.VectorType(element, like.count) if vector_width(like) else element


def splat(kind: Ir, number: float) -> Ir:
    """Return a constant with the number in every lane."""
    from llvmlite import ir

    return ir.Constant(kind, [number] * kind.count if vector_width(kind) else number)


def declare_function(module: Ir, name: str, result: Ir, operands: Sequence[Ir]) -> Ir:
    """Return the function of this name in the module; declare it if necessary."""
    from llvmlite import ir

    existing = module.globals.get(name)
    return existing or ir.Function(module, ir.FunctionType(result, operands), name)


def call_intrinsic(builder: Ir, name: str, operands: Sequence[Ir]) -> Ir:
    """Call an LLVM intrinsic, such as ``fabs``, on operands of the same type."""
    kind = operands[0].type
    width = vector_width(kind)
    letter = "f64" if str(kind.element if width else kind) == "double" else "f32"
    suffix = f"v{width}{letter}" if width else letter
    function = declare_function(
        builder.module, f"llvm.{name}.{suffix}", kind, [kind] * len(operands)
    )
    return builder.call(function, operands)


def select_rare(
    rare: Mask, usual: Sequence[Vector], otherwise: Callable[[], Sequence[Vector]]
) -> list[Vector]:
    """Return ``usual``, replaced in the lanes of ``rare`` by the values that ``otherwise`` writes.

    The code of ``otherwise`` runs only if some lane needs it.
    """
    builder = rare.builder
    needed, before = rare.any(), builder.block
    with builder.if_then(needed, likely=False):
        repaired = [u.where(rare, o) for u, o in zip(usual, otherwise(), strict=True)]
        inside = builder.block
    chosen = []
    for old, new in zip(usual, repaired, strict=True):
        value = builder.phi(old.ir.type)
        value.add_incoming(old.ir, before)
        value.add_incoming(new.ir, inside)
        chosen.append(old.like(value))
    return chosen
