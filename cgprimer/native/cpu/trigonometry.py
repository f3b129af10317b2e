"""Trigonometric functions as kernels.

The operand is reduced to |r| <= pi/4 by subtracting a multiple of pi/2 that is kept in parts
(Cody and Waite). Operands too large for that are rare, and go another way behind a branch.
"""

from __future__ import annotations

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
