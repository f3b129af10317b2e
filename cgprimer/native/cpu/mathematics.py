"""Exponentials, logarithms and hyperbolic functions as kernels without branches.

Each takes and gives :class:`~cgprimer.native.cpu.lanes.Lanes`, of either format, and treats
zeros, subnormal numbers, infinities and nan as numpy does. ``exp`` writes x as k*ln(2) + r with an
integer k and |r| <= ln(2)/2; ``log`` writes x as 2^e*m with m near 1. See Muller et al.,
"Handbook of Floating-Point Arithmetic", section 10.2 (reduction after Cody and Waite).

The kernels must keep their operations as they stand: the second parts of constants and the
corrections below vanish if an optimiser treats numbers as real numbers.
"""

from __future__ import annotations

import math

from cgprimer.native.cpu.coefficients import COEFFICIENTS, LN2, LOG2_E, LOG10_E, Coefficients
from cgprimer.native.cpu.lanes import Lanes

INFINITY = math.inf


def table(x: Lanes) -> Coefficients:
    """The numbers for x's format."""
    return COEFFICIENTS[x.format]


def rounded(x: Lanes) -> Lanes:
    """The nearest integer to a small number."""
    shifter = x.format.shifter
    return (x + shifter) - shifter


# --- exponentials ------------------------------------------------------------------------------


def reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """k and r with x = k*ln(2) + r."""
    shifter = x.format.shifter
    high, low = table(x).ln2
    k = x.times_plus(LOG2_E, shifter) - shifter
    return k, k.times_plus(-low, k.times_plus(-high, x))


def expm1_near_0(r: Lanes) -> Lanes:
    """exp(r) - 1 where |r| <= ln(2)/2."""
    return (r * r).times_plus(r.polynomial(table(r).exp), r)


def scaled(x: Lanes, k: Lanes) -> Lanes:
    """x * 2^k, rounded once: in two steps, as 2^k itself may be too large or too small."""
    half = rounded(k * 0.5)
    return x * half.two_to() * (k - half).two_to()


def exp(x: Lanes) -> Lanes:
    """e^x."""
    limits = table(x)
    k, r = reduced(x.at_most(limits.highest).at_least(limits.lowest))
    return scaled(expm1_near_0(r) + 1.0, k)


def exp_of_negative(x: Lanes) -> Lanes:
    """e^x where x <= 0."""
    k, r = reduced(x.at_least(table(x).lowest))
    return scaled(expm1_near_0(r) + 1.0, k)


def half_expm1(x: Lanes) -> Lanes:
    """(e^x - 1)/2: finite a little further than e^x is, as sinh needs."""
    k, r = reduced(x.at_most(table(x).highest + 0.5))
    quarter = (k - 2.0).two_to()
    sum_of_quarters = quarter.times_plus(expm1_near_0(r), quarter - 0.25)
    return sum_of_quarters + sum_of_quarters


def expm1(x: Lanes) -> Lanes:
    """e^x - 1; the digits stay near 0."""
    lowest = -2.0 * table(x).unity  # there e^x is lost beside 1
    half = half_expm1(x.at_least(lowest))
    return (half + half).where(abs(x) < tiny(x), x)


def tiny(x: Lanes) -> float:
    """Below it, functions with slope 1 at 0 and a second derivative give their operand back."""
    return float(2.0 ** -(x.format.fraction + 2))


def sigmoid(x: Lanes) -> Lanes:
    """1/(1 + e^-x), from the exponential that cannot overflow."""
    decay = exp_of_negative(-abs(x))
    return decay.where(x >= 0.0, 1.0) / (decay + 1.0)


def tanh(x: Lanes) -> Lanes:
    """(1 - e)/(1 + e) at e = exp(-2|x|), both through e - 1."""
    size = abs(x).at_most(table(x).unity)
    k, r = reduced(-(size + size))
    power = k.two_to()
    less = power.times_plus(expm1_near_0(r), power - 1.0)  # e - 1
    return (less / (less + 2.0)).with_sign_of(x)


def sinh(x: Lanes) -> Lanes:
    """(e^x - e^-x)/2 = h*(1 + 1/(2h + 1)) at h = (e^|x| - 1)/2."""
    size = abs(x)
    half = half_expm1(size)
    grown = half * (1.0 + 1.0 / (half + half + 1.0))
    return grown.where(size < 2.0 ** -(x.format.fraction // 2 + 1), size).with_sign_of(x)


def cosh(x: Lanes) -> Lanes:
    """(e^x + e^-x)/2."""
    k, r = reduced(abs(x).at_most(table(x).highest + 0.5))
    half = scaled(expm1_near_0(r) + 1.0, k - 1.0)
    return half + 0.25 / half


# --- logarithms --------------------------------------------------------------------------------


def parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """e and m with x = 2^e * m and m between sqrt(1/2) and sqrt(2), for 0 < x < inf."""
    build, form = x.builder, x.format
    small = x < form.smallest_normal
    lifted = x.where(small, x * 2.0 ** (form.fraction + 2))
    root = x.constant(math.sqrt(0.5)).bits()
    one = x.constant(1.0).bits()
    # Moved so that the exponent changes at sqrt(1/2) and not at 1.
    moved = build.add(lifted.bits(), build.sub(one, root))
    fraction = build.and_(moved, x.integer((1 << form.fraction) - 1))
    m = x.from_bits(build.add(fraction, root))
    # An integer in the last bits of 2^fraction, to become a number by a subtraction.
    ruler = 2.0**form.fraction
    exponent = build.lshr(moved, x.integer(form.fraction))
    number = x.from_bits(build.or_(exponent, x.constant(ruler).bits()))
    bias = x.constant(ruler + form.bias).where(small, ruler + form.bias + form.fraction + 2)
    return number - bias, m


def log_of_fraction(m: Lanes) -> tuple[Lanes, Lanes]:
    """ln(m) = f - rest at f = m - 1, as (f, rest): the caller adds what must not be lost first."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return f, half_square - s * (half_square + z * z.polynomial(table(m).log))


def edges_of_log(x: Lanes, result: Lanes) -> Lanes:
    """-inf at 0, nan below 0, infinity and nan at themselves."""
    result = result.where(x.equals(0.0), -INFINITY).where(x < 0.0, math.nan)
    return (x + x).where(x < INFINITY, result)


def log(x: Lanes) -> Lanes:
    """The natural logarithm."""
    e, m = parts(x)
    high, low = table(x).ln2
    f, rest = log_of_fraction(m)
    return edges_of_log(x, e.times_plus(high, f - e.times_plus(-low, rest)))


def log2(x: Lanes) -> Lanes:
    """The logarithm to base 2, exact at powers of 2."""
    e, m = parts(x)
    f, rest = log_of_fraction(m)
    return edges_of_log(x, (f - rest).times_plus(LOG2_E, e))


def log10(x: Lanes) -> Lanes:
    """The logarithm to base 10."""
    e, m = parts(x)
    high, low = table(x).log10_2
    f, rest = log_of_fraction(m)
    return edges_of_log(x, e.times_plus(high, (f - rest).times_plus(LOG10_E, e * low)))


def log1p(x: Lanes) -> Lanes:
    """ln(1 + x); what is lost in 1 + x is brought back as a correction."""
    u = x + 1.0
    without = u - x
    lost = (1.0 - without) + (x - (u - without))
    e, m = parts(u)
    high, low = table(x).ln2
    f, rest = log_of_fraction(m)
    correction = e.times_plus(low, lost / u)
    result = edges_of_log(u, e.times_plus(high, f - (rest - correction)))
    return result.where(abs(x) < tiny(x), x)


def log1p_of_fraction(d: Lanes) -> Lanes:
    """ln(1 + d) where 0 <= d <= 1: 2*atanh(s) at s = d/(2 + d), no exponent to take apart."""
    twice = (d + d) / (d + 2.0)
    z = twice * twice * 0.25
    return twice.times_plus(z * 0.5 * z.polynomial(table(d).log1p), twice)


def softplus(x: Lanes) -> Lanes:
    """ln(1 + e^x), from the exponential that cannot overflow."""
    decay = exp_of_negative(-abs(x))
    return x.where(x < 0.0, 0.0) + log1p_of_fraction(decay)


def logaddexp(a: Lanes, b: Lanes) -> Lanes:
    """ln(e^a + e^b): the greater plus a correction."""
    greater = b.where(a > b, a)
    distance = abs(a - b).where(a.equals(b), 0.0)  # inf - inf would be nan
    return greater + log1p_of_fraction(exp_of_negative(-distance))


# --- inverse hyperbolic functions --------------------------------------------------------------

_LARGE = 2.0**100  # 1 + x^2 is x^2 from far below, and x^2 is finite


def asinh(x: Lanes) -> Lanes:
    """ln(x + sqrt(1 + x^2)), through log1p."""
    size = abs(x)
    square = size * size
    large = size > _LARGE
    excess = size + square / (1.0 + (square + 1.0).sqrt())
    result = log1p(excess.where(large, size)) + x.constant(0.0).where(large, LN2)
    return result.with_sign_of(x)


def acosh(x: Lanes) -> Lanes:
    """ln(x + sqrt(x^2 - 1)), through log1p."""
    t = x - 1.0
    large = x > _LARGE
    result = log1p((t + (t * (t + 2.0)).sqrt()).where(large, x))
    return (result + x.constant(0.0).where(large, LN2)).where(x < 1.0, math.nan)


def atanh(x: Lanes) -> Lanes:
    """ln((1 + x)/(1 - x))/2, through log1p."""
    size = abs(x)
    return (0.5 * log1p((size + size) / (1.0 - size))).with_sign_of(x)
