"""Trigonometric functions and their inverses as LLVM code.

The operand is reduced to |r| <= pi/4 by subtracting a multiple of pi/2, which is stored in several
parts (Cody and Waite). Operands that are too large for this reduction are rare; a separate branch
handles them.
"""

from __future__ import annotations

from cgprimer.backends.cpu.coefficients import ASIN, ATAN, HALF_PI, QUARTER_PI
from cgprimer.backends.cpu.exponential_ir import coefficients_for
from cgprimer.backends.cpu.vector_ir import Ir, Mask, Vector


class ReducedAngle:
    """A nonnegative angle, reduced to a quadrant and a remainder, with sine and cosine of it."""

    def __init__(self, size: Vector) -> None:
        shifter = size.format.shifter
        numbers = coefficients_for(size)
        shifted = size.multiply_add(2.0 / 3.141592653589793, shifter)
        turns = shifted - shifter
        r = size
        for part in numbers.half_pi:
            r = turns.multiply_add(-part, r)
        z = r * r
        self.size = size
        self.quadrant = shifted.bits()  #: quadrant in the last two bits
        self.sine = r.multiply_add(z * z.polynomial(numbers.sine), r)
        # 1 - z/2 first: the other terms are small compared with it.
        self.cosine = (z * z).multiply_add(z.polynomial(numbers.cosine), z.multiply_add(-0.5, 1.0))

    def odd(self) -> Mask:
        """Return the mask of odd quadrants, in which sine and cosine are exchanged."""
        build, size = self.size.builder, self.size
        last = build.and_(self.quadrant, size.integer(1))
        return Mask(build, build.icmp_unsigned("!=", last, size.integer(0)))

    def sign(self, ahead: int) -> Ir:
        """Return the sign bit of the sine, ``ahead`` quadrants later."""
        build, size = self.size.builder, self.size
        quadrant = build.add(self.quadrant, size.integer(ahead)) if ahead else self.quadrant
        second = build.and_(quadrant, size.integer(2))
        return build.shl(second, size.integer(size.format.bits - 2))


def _flip_sign(x: Vector, sign: Ir) -> Vector:
    return x.from_bits(x.builder.xor(x.bits(), sign))


def _sign_bit(x: Vector) -> Ir:
    return x.builder.and_(x.bits(), x.integer(1 << (x.format.bits - 1)))


def too_large(x: Vector) -> Mask:
    """Return the mask of operands for which the reduction would lose precision."""
    return abs(x) > coefficients_for(x).widest


def sincos(x: Vector) -> tuple[Vector, Vector]:
    """Return sine and cosine; x must not be too large."""
    angle = ReducedAngle(abs(x))
    odd = angle.odd()
    sine = angle.sine.where(odd, angle.cosine)
    cosine = angle.cosine.where(odd, angle.sine)
    sign = x.builder.xor(angle.sign(0), _sign_bit(x))
    return _flip_sign(sine, sign), _flip_sign(cosine, angle.sign(1))


def sin(x: Vector) -> Vector:
    """Return the sine; x must not be too large."""
    return sincos(x)[0]


def cos(x: Vector) -> Vector:
    """Return the cosine; x must not be too large."""
    return sincos(x)[1]


def tan(x: Vector) -> Vector:
    """Return the tangent; x must not be too large."""
    angle = ReducedAngle(abs(x))
    odd = angle.odd()
    above = angle.sine.where(odd, -angle.cosine)
    below = angle.cosine.where(odd, angle.sine)
    return _flip_sign(above / below, _sign_bit(x))


def atan(x: Vector) -> Vector:
    """Return the arctangent, by reduction at tan(pi/8) and tan(3pi/8)."""
    size = abs(x)
    middle, far = size > 0.41421356237309503, size > 2.414213562373095
    above = size.where(middle, size - 1.0).where(far, -1.0)
    below = x.constant(1.0).where(middle, size + 1.0).where(far, size)
    base = x.constant(0.0).where(middle, QUARTER_PI[0]).where(far, HALF_PI[0])
    lost = x.constant(0.0).where(middle, QUARTER_PI[1]).where(far, HALF_PI[1])
    y = above / below
    z = y * y
    return (base + (y + (y * z).multiply_add(z.polynomial(ATAN), lost))).with_sign_of(x)


def asin(x: Vector) -> Vector:
    """Return the arcsine: a polynomial up to 1/2, then pi/2 - 2*asin(sqrt((1 - x)/2))."""
    size = abs(x)
    near = size <= 0.5
    z = ((1.0 - size) * 0.5).where(near, size * size)
    s = z.sqrt().where(near, size)
    small = s.multiply_add(z * z.polynomial(ASIN), s)
    large = HALF_PI[0] - (small + small - HALF_PI[1])
    return large.where(near, small).with_sign_of(x)


def acos(x: Vector) -> Vector:
    """Return the arccosine, with separate formulas below -1/2, above 1/2 and between."""
    size = abs(x)
    near = size <= 0.5
    z = ((1.0 - size) * 0.5).where(near, x * x)
    s = z.sqrt().where(near, x)
    correction = s * (z * z.polynomial(ASIN))
    between = HALF_PI[0] - (s - (HALF_PI[1] - correction))
    twice = 2.0 * (s + correction)
    mirrored = 2.0 * HALF_PI[0] - (twice - 2.0 * HALF_PI[1])
    return twice.where(x < 0.0, mirrored).where(near, between)
