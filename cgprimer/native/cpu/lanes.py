"""Vectors of numbers while LLVM code is written: arithmetic reads as arithmetic.

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
        """LLVM's type of one number."""
        from llvmlite import ir

        return ir.DoubleType() if self.bits == 64 else ir.FloatType()

    @property
    def shifter(self) -> float:
        """Added to a small number, it rounds it to an integer, which then stands in the last bits.

        One instruction everywhere; LLVM's ``rint`` is a library call on the oldest processors.
        """
        return 1.5 * 2.0**self.fraction

    @property
    def smallest_normal(self) -> float:
        """Below it, numbers lose digits."""
        return float(2.0 ** (1 - self.bias))


FLOAT64 = Format("float64", 64, 52, 1023)
FLOAT32 = Format("float32", 32, 23, 127)
FORMATS = {f.name: f for f in (FLOAT64, FLOAT32)}


@dataclass(frozen=True)
class Mask:
    """A truth value per lane."""

    builder: Ir
    ir: Ir

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.and_(self.ir, other.ir))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.or_(self.ir, other.ir))

    def __invert__(self) -> Mask:
        return Mask(self.builder, self.builder.not_(self.ir))

    def any(self) -> Ir:
        """One truth value: whether any lane has it."""
        kind = self.ir.type
        if not width_of(kind):
            return self.ir
        name = f"llvm.vector.reduce.or.v{kind.count}i1"
        reduce = declared(self.builder.module, name, kind.element, [kind])
        return self.builder.call(reduce, [self.ir])


def _arithmetic(name: str, *, turned: bool = False) -> Callable[[Lanes, Lanes | float], Lanes]:
    """An operation of LLVM; turned, the second operand comes first."""

    def written(a: Lanes, b: Lanes | float) -> Lanes:
        given = (a.of(b).ir, a.ir) if turned else (a.ir, a.of(b).ir)
        return a.like(getattr(a.builder, name)(*given))

    return written


def _question(sign: str, *, at_nan: bool = False) -> Callable[[Lanes, Lanes | float], Mask]:
    """A comparison, and what it is if either operand is nan."""

    def asked(a: Lanes, b: Lanes | float) -> Mask:
        compare = a.builder.fcmp_unordered if at_nan else a.builder.fcmp_ordered
        return Mask(a.builder, compare(sign, a.ir, a.of(b).ir))

    return asked


@dataclass(frozen=True)
class Lanes:
    """A vector of one format, written into one builder."""

    builder: Ir
    ir: Ir
    format: Format

    # --- making values of the same kind ---

    def like(self, value: Ir) -> Lanes:
        """The same builder and format around another value."""
        return Lanes(self.builder, value, self.format)

    def constant(self, number: float) -> Lanes:
        """The number in every lane."""
        return self.like(splat(self.ir.type, float(number)))

    def of(self, other: Lanes | float) -> Lanes:
        """A number becomes a constant, lanes stay."""
        return other if isinstance(other, Lanes) else self.constant(other)

    # --- arithmetic ---

    __add__, __radd__ = _arithmetic("fadd"), _arithmetic("fadd", turned=True)
    __sub__, __rsub__ = _arithmetic("fsub"), _arithmetic("fsub", turned=True)
    __mul__, __rmul__ = _arithmetic("fmul"), _arithmetic("fmul", turned=True)
    __truediv__, __rtruediv__ = _arithmetic("fdiv"), _arithmetic("fdiv", turned=True)

    def __neg__(self) -> Lanes:
        return self.like(self.builder.fneg(self.ir))

    def times_plus(self, factor: Lanes | float, term: Lanes | float) -> Lanes:
        """``self * factor + term``, rounded once where the processor can, else twice."""
        return self._call("fmuladd", self.of(factor), self.of(term))

    def _call(self, name: str, *more: Lanes) -> Lanes:
        return self.like(intrinsic(self.builder, name, [self.ir, *(m.ir for m in more)]))

    def __abs__(self) -> Lanes:
        return self._call("fabs")

    def sqrt(self) -> Lanes:
        """The square root, rounded correctly; nan below 0."""
        return self._call("sqrt")

    def with_sign_of(self, other: Lanes) -> Lanes:
        """The absolute value with the other's sign bit."""
        return self._call("copysign", other)

    # --- questions; all are false at nan, except differs ---

    __lt__, __le__, __gt__, __ge__ = (_question(sign) for sign in ("<", "<=", ">", ">="))
    equals = _question("==")  #: 0 and -0 are equal
    differs = _question("!=", at_nan=True)

    def is_nan(self) -> Mask:
        """Not a number."""
        return self.differs(self)

    def where(self, mask: Mask, other: Lanes | float) -> Lanes:
        """``other`` in the lanes of the mask, ``self`` in the rest."""
        return self.like(self.builder.select(mask.ir, self.of(other).ir, self.ir))

    def at_most(self, limit: float) -> Lanes:
        """No greater than the limit; nan stays nan."""
        return self.where(self > limit, limit)

    def at_least(self, limit: float) -> Lanes:
        """No less than the limit; nan stays nan."""
        return self.where(self < limit, limit)

    # --- bits ---

    @property
    def integers(self) -> Ir:
        """The type of the lanes' bits."""
        from llvmlite import ir

        return shaped(ir.IntType(self.format.bits), self.ir.type)

    def bits(self) -> Ir:
        """The lanes' bits as integers."""
        return self.builder.bitcast(self.ir, self.integers)

    def integer(self, number: int) -> Ir:
        """An integer in every lane."""
        return splat(self.integers, number)

    def from_bits(self, bits: Ir) -> Lanes:
        """The numbers that have these bits."""
        return self.like(self.builder.bitcast(bits, self.ir.type))

    def head(self) -> Lanes:
        """The leading half of the digits: products of two heads are exact."""
        lost = (self.format.fraction + 2) // 2
        kept = (1 << self.format.bits) - (1 << lost)
        return self.from_bits(self.builder.and_(self.bits(), self.integer(kept)))

    def two_to(self) -> Lanes:
        """2^self for integers from 1 - bias to bias + 1 (there: infinity).

        Added to the shifter, the integer stands in the last bits; moved to the place of the
        exponent it is the power.
        """
        f = self.format
        moved = self.builder.shl((self + (f.shifter + f.bias)).bits(), self.integer(f.fraction))
        return self.from_bits(moved)

    def polynomial(self, coefficients: Sequence[float]) -> Lanes:
        """c0 + c1*self + c2*self^2 + ..., in pairs, so that fewer steps wait for each other."""
        terms = [self.constant(c) for c in coefficients]
        power = self
        while len(terms) > 1:
            pairs = [power.times_plus(b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = pairs + terms[len(pairs) * 2 :]
            if len(terms) > 1:
                power = power * power
        return terms[0]


def width_of(kind: Ir) -> int:
    """Numbers in a vector of this type; 0 for the type of one number."""
    return getattr(kind, "count", 0)


def shaped(element: Ir, like: Ir) -> Ir:
    """The element, or a vector of it as wide as ``like``."""
    from llvmlite import ir

    return ir.VectorType(element, like.count) if width_of(like) else element


def splat(kind: Ir, number: float) -> Ir:
    """A constant with the number in every lane."""
    from llvmlite import ir

    return ir.Constant(kind, [number] * kind.count if width_of(kind) else number)


def declared(module: Ir, name: str, result: Ir, operands: Sequence[Ir]) -> Ir:
    """The function of that name in the module; declared if it is not there yet."""
    from llvmlite import ir

    found = module.globals.get(name)
    return found or ir.Function(module, ir.FunctionType(result, operands), name)


def intrinsic(builder: Ir, name: str, operands: Sequence[Ir]) -> Ir:
    """Call LLVM's own function, such as ``fabs``, on operands that all have one type."""
    kind = operands[0].type
    width = width_of(kind)
    letter = "f64" if str(kind.element if width else kind) == "double" else "f32"
    suffix = f"v{width}{letter}" if width else letter
    called = declared(builder.module, f"llvm.{name}.{suffix}", kind, [kind] * len(operands))
    return builder.call(called, operands)


def either(
    rare: Mask, usual: Sequence[Lanes], otherwise: Callable[[], Sequence[Lanes]]
) -> list[Lanes]:
    """``usual``, but in the lanes of ``rare`` what ``otherwise`` writes.

    The code of ``otherwise`` stands behind a branch and runs only if some lane needs it.
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
