"""Trigonometric functions and their inverses as kernels.

The operand is reduced to |r| <= pi/4 by subtracting a multiple of pi/2 that is kept in parts
(Cody and Waite). Operands too large for that are rare, and go another way behind a branch.
"""

from __future__ import annotations

from cgprimer.native.cpu.coefficients import ASIN, ATAN, HALF_PI, QUARTER_PI
from cgprimer.native.cpu.lanes import Ir, Lanes, Mask
from cgprimer.native.cpu.mathematics import table


class Turned:
    """An absolute value, reduced to a quadrant and what is left, with sine and cosine of that."""

    def __init__(self, size: Lanes) -> None:
        shifter = size.format.shifter
        numbers = table(size)
        shifted = size.times_plus(2.0 / 3.141592653589793, shifter)
        turns = shifted - shifter
        r = size
        for part in numbers.half_pi:
            r = turns.times_plus(-part, r)
        z = r * r
        self.size = size
        self.quadrant = shifted.bits()  #: its last two bits say which
        self.sine = r.times_plus(z * z.polynomial(numbers.sine), r)
        # 1 - z/2 first: the rest is then small beside it.
        self.cosine = (z * z).times_plus(z.polynomial(numbers.cosine), z.times_plus(-0.5, 1.0))

    def odd(self) -> Mask:
        """Where sine and cosine change places."""
        build, size = self.size.builder, self.size
        last = build.and_(self.quadrant, size.integer(1))
        return Mask(build, build.icmp_unsigned("!=", last, size.integer(0)))

    def sign(self, ahead: int) -> Ir:
        """The sign bit of the function that is ``ahead`` quadrants ahead of the sine."""
        build, size = self.size.builder, self.size
        quadrant = build.add(self.quadrant, size.integer(ahead)) if ahead else self.quadrant
        second = build.and_(quadrant, size.integer(2))
        return build.shl(second, size.integer(size.format.bits - 2))


def _flipped(x: Lanes, sign: Ir) -> Lanes:
    return x.from_bits(x.builder.xor(x.bits(), sign))


def _sign_bit(x: Lanes) -> Ir:
    return x.builder.and_(x.bits(), x.integer(1 << (x.format.bits - 1)))


def too_large(x: Lanes) -> Mask:
    """Where the reduction would lose digits."""
    return abs(x) > table(x).widest


def sincos(x: Lanes) -> tuple[Lanes, Lanes]:
    """Sine and cosine, where x is not too large."""
    turned = Turned(abs(x))
    odd = turned.odd()
    sine = turned.sine.where(odd, turned.cosine)
    cosine = turned.cosine.where(odd, turned.sine)
    sign = x.builder.xor(turned.sign(0), _sign_bit(x))
    return _flipped(sine, sign), _flipped(cosine, turned.sign(1))


def sin(x: Lanes) -> Lanes:
    """The sine, where x is not too large."""
    return sincos(x)[0]


def cos(x: Lanes) -> Lanes:
    """The cosine, where x is not too large."""
    return sincos(x)[1]


def tan(x: Lanes) -> Lanes:
    """The tangent, where x is not too large."""
    turned = Turned(abs(x))
    odd = turned.odd()
    above = turned.sine.where(odd, -turned.cosine)
    below = turned.cosine.where(odd, turned.sine)
    return _flipped(above / below, _sign_bit(x))


def atan(x: Lanes) -> Lanes:
    """Reduced at tan(pi/8) and tan(3pi/8) to an operand below tan(pi/8)."""
    size = abs(x)
    middle, far = size > 0.41421356237309503, size > 2.414213562373095
    above = size.where(middle, size - 1.0).where(far, -1.0)
    below = x.constant(1.0).where(middle, size + 1.0).where(far, size)
    base = x.constant(0.0).where(middle, QUARTER_PI[0]).where(far, HALF_PI[0])
    lost = x.constant(0.0).where(middle, QUARTER_PI[1]).where(far, HALF_PI[1])
    y = above / below
    z = y * y
    return (base + (y + (y * z).times_plus(z.polynomial(ATAN), lost))).with_sign_of(x)


def asin(x: Lanes) -> Lanes:
    """A polynomial up to 1/2, from there pi/2 - 2*asin(sqrt((1 - x)/2))."""
    size = abs(x)
    near = size <= 0.5
    z = ((1.0 - size) * 0.5).where(near, size * size)
    s = z.sqrt().where(near, size)
    small = s.times_plus(z * z.polynomial(ASIN), s)
    large = HALF_PI[0] - (small + small - HALF_PI[1])
    return large.where(near, small).with_sign_of(x)


def acos(x: Lanes) -> Lanes:
    """2*asin(sqrt((1 - x)/2)) above 1/2, pi minus that below -1/2, pi/2 - asin(x) between."""
    size = abs(x)
    near = size <= 0.5
    z = ((1.0 - size) * 0.5).where(near, x * x)
    s = z.sqrt().where(near, x)
    correction = s * (z * z.polynomial(ASIN))
    between = HALF_PI[0] - (s - (HALF_PI[1] - correction))
    twice = 2.0 * (s + correction)
    mirrored = 2.0 * HALF_PI[0] - (twice - 2.0 * HALF_PI[1])
    return twice.where(x < 0.0, mirrored).where(near, between)
