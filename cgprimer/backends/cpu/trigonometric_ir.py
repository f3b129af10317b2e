"""Trigonometric functions and their inverses as LLVM code.

The operand is reduced to |r| <= pi/4 by subtracting a multiple of pi/2, which is stored in several
parts (Cody and Waite). Operands that are too large for this reduction are rare; a branch of the
caller handles them (:func:`~cgprimer.backends.cpu.vector_ir.emit_rare_branch`).
"""

from __future__ import annotations

from cgprimer.backends.cpu.coefficients import ASIN, ATAN, HALF_PI, QUARTER_PI
from cgprimer.backends.cpu.exponential_ir import get_coefficients
from cgprimer.backends.cpu.vector_ir import Ir, Mask, Vector


class ReducedAngle:
    """A nonnegative angle, reduced to its quadrant and the sine and cosine of the remainder."""

    def __init__(self, size: Vector) -> None:
        rounding_constant = size.format.rounding_constant
        numbers = get_coefficients(size)
        shifted = size.multiply_add(2.0 / 3.141592653589793, rounding_constant)
        turns = shifted - rounding_constant
        r = size
        for part in numbers.half_pi:
            r = turns.multiply_add(-part, r)
        z = r * r
        self.size = size
        self.quadrant = shifted.bitcast_to_integers()  #: quadrant in the last two bits
        self.sine = r.multiply_add(z * z.evaluate_polynomial(numbers.sine), r)
        # 1 - z/2 first: the other terms are small compared with it.
        self.cosine = (z * z).multiply_add(
            z.evaluate_polynomial(numbers.cosine), z.multiply_add(-0.5, 1.0)
        )

    def mask_odd_quadrants(self) -> Mask:
        """Return the mask of angles in odd quadrants, where sine and cosine are exchanged."""
        builder, size = self.size.builder, self.size
        last = builder.and_(self.quadrant, size.splat_integer(1))
        return Mask(builder, builder.icmp_unsigned("!=", last, size.splat_integer(0)))

    def get_sine_sign(self, turns: int) -> Ir:
        """Return the sign bit of the sine of the angle plus a number of quarter turns."""
        builder, size = self.size.builder, self.size
        quadrant = builder.add(self.quadrant, size.splat_integer(turns)) if turns else self.quadrant
        second = builder.and_(quadrant, size.splat_integer(2))
        return builder.shl(second, size.splat_integer(size.format.bits - 2))


def _flip_sign(x: Vector, sign: Ir) -> Vector:
    """Flip the sign of the lanes in which a given sign bit is set."""
    return x.bitcast_from_integers(x.builder.xor(x.bitcast_to_integers(), sign))


def _get_sign_bit(x: Vector) -> Ir:
    """Return the sign bit of each lane as an integer mask."""
    return x.builder.and_(x.bitcast_to_integers(), x.splat_integer(1 << (x.format.bits - 1)))


def mask_large_operands(x: Vector) -> Mask:
    """Return the mask of operands for which the reduction modulo pi/2 would lose precision."""
    return abs(x) > get_coefficients(x).widest


def sincos(x: Vector) -> tuple[Vector, Vector]:
    """Return the sine and cosine of x, for |x| below the limit of mask_large_operands."""
    angle = ReducedAngle(abs(x))
    odd = angle.mask_odd_quadrants()
    sine = angle.sine.replace_where(odd, angle.cosine)
    cosine = angle.cosine.replace_where(odd, angle.sine)
    sign = x.builder.xor(angle.get_sine_sign(0), _get_sign_bit(x))
    return _flip_sign(sine, sign), _flip_sign(cosine, angle.get_sine_sign(1))


def sin(x: Vector) -> Vector:
    """Return the sine of x, for |x| below the limit of mask_large_operands."""
    return sincos(x)[0]


def cos(x: Vector) -> Vector:
    """Return the cosine of x, for |x| below the limit of mask_large_operands."""
    return sincos(x)[1]


def tan(x: Vector) -> Vector:
    """Return the tangent of x, for |x| below the limit of mask_large_operands."""
    angle = ReducedAngle(abs(x))
    odd = angle.mask_odd_quadrants()
    above = angle.sine.replace_where(odd, -angle.cosine)
    below = angle.cosine.replace_where(odd, angle.sine)
    return _flip_sign(above / below, _get_sign_bit(x))


def atan(x: Vector) -> Vector:
    """Return the arctangent, reduced to |y| <= tan(pi/8) by the addition theorem."""
    size = abs(x)
    middle, far = size > 0.41421356237309503, size > 2.414213562373095
    above = size.replace_where(middle, size - 1.0).replace_where(far, -1.0)
    below = x.splat(1.0).replace_where(middle, size + 1.0).replace_where(far, size)
    base = x.splat(0.0).replace_where(middle, QUARTER_PI[0]).replace_where(far, HALF_PI[0])
    lost = x.splat(0.0).replace_where(middle, QUARTER_PI[1]).replace_where(far, HALF_PI[1])
    y = above / below
    z = y * y
    return (base + (y + (y * z).multiply_add(z.evaluate_polynomial(ATAN), lost))).copysign(x)


def asin(x: Vector) -> Vector:
    """Return the arcsine: a polynomial for |x| <= 1/2, else pi/2 - 2*asin(sqrt((1 - |x|)/2))."""
    size = abs(x)
    near = size <= 0.5
    z = ((1.0 - size) * 0.5).replace_where(near, size * size)
    s = z.sqrt().replace_where(near, size)
    small = s.multiply_add(z * z.evaluate_polynomial(ASIN), s)
    large = HALF_PI[0] - (small + small - HALF_PI[1])
    return large.replace_where(near, small).copysign(x)


def acos(x: Vector) -> Vector:
    """Return the arccosine, with separate formulas for x < -1/2, |x| <= 1/2 and x > 1/2."""
    size = abs(x)
    near = size <= 0.5
    z = ((1.0 - size) * 0.5).replace_where(near, x * x)
    s = z.sqrt().replace_where(near, x)
    correction = s * (z * z.evaluate_polynomial(ASIN))
    between = HALF_PI[0] - (s - (HALF_PI[1] - correction))
    twice = 2.0 * (s + correction)
    mirrored = 2.0 * HALF_PI[0] - (twice - 2.0 * HALF_PI[1])
    return twice.replace_where(x < 0.0, mirrored).replace_where(near, between)
