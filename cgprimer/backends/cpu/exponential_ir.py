"""Exponentials, logarithms and hyperbolic functions as branch-free LLVM code.

The functions map a :class:`~cgprimer.backends.cpu.vector_ir.Vector` to a vector, and treat
zeros, subnormal numbers, infinities and nan as numpy does. ``exp`` writes x as k*ln(2) + r with an
integer k and |r| <= ln(2)/2; ``log`` writes x as 2^e*m with m near 1. See Muller et al.,
"Handbook of Floating-Point Arithmetic", section 10.2 (reduction after Cody and Waite).

The order of the operations must be preserved: an optimizer that treats floating-point numbers as
real numbers would remove the low parts of constants and the corrections.
"""

from __future__ import annotations

import math

from cgprimer.backends.cpu.coefficients import COEFFICIENTS, LN2, LOG2_E, LOG10_E, Coefficients
from cgprimer.backends.cpu.vector_ir import Vector

INFINITY = math.inf


def coefficients_for(x: Vector) -> Coefficients:
    """Return the polynomial coefficients for the format of x."""
    return COEFFICIENTS[x.format]


def round_to_integer(x: Vector) -> Vector:
    """Return the nearest integer to a small number."""
    shifter = x.format.shifter
    return (x + shifter) - shifter


# --- exponentials ------------------------------------------------------------------------------


def reduce_by_ln2(x: Vector) -> tuple[Vector, Vector]:
    """Return k and r with x = k*ln(2) + r."""
    shifter = x.format.shifter
    high, low = coefficients_for(x).ln2
    k = x.multiply_add(LOG2_E, shifter) - shifter
    return k, k.multiply_add(-low, k.multiply_add(-high, x))


def expm1_near_0(r: Vector) -> Vector:
    """Return exp(r) - 1 for |r| <= ln(2)/2."""
    return (r * r).multiply_add(r.polynomial(coefficients_for(r).exp), r)


def scale_by_power_of_2(x: Vector, k: Vector) -> Vector:
    """Return x * 2^k, rounded once; in two factors, since 2^k may overflow or underflow."""
    half = round_to_integer(k * 0.5)
    return x * half.two_to() * (k - half).two_to()


def exp(x: Vector) -> Vector:
    """Return e^x."""
    limits = coefficients_for(x)
    k, r = reduce_by_ln2(x.at_most(limits.highest).at_least(limits.lowest))
    return scale_by_power_of_2(expm1_near_0(r) + 1.0, k)


def exp_of_negative(x: Vector) -> Vector:
    """Return e^x for x <= 0."""
    k, r = reduce_by_ln2(x.at_least(coefficients_for(x).lowest))
    return scale_by_power_of_2(expm1_near_0(r) + 1.0, k)


def half_expm1(x: Vector) -> Vector:
    """Return (e^x - 1)/2, for sinh: it overflows later than e^x."""
    k, r = reduce_by_ln2(x.at_most(coefficients_for(x).highest + 0.5))
    quarter = (k - 2.0).two_to()
    sum_of_quarters = quarter.multiply_add(expm1_near_0(r), quarter - 0.25)
    return sum_of_quarters + sum_of_quarters


def expm1(x: Vector) -> Vector:
    """Return e^x - 1, with full precision near 0."""
    lowest = -2.0 * coefficients_for(x).unity  # below this, e^x - 1 rounds to -1
    half = half_expm1(x.at_least(lowest))
    return (half + half).where(abs(x) < tiny(x), x)


def tiny(x: Vector) -> float:
    """Return the bound below which functions with slope 1 at 0 are replaced by the identity."""
    return float(2.0 ** -(x.format.fraction + 2))


def sigmoid(x: Vector) -> Vector:
    """Return 1/(1 + e^-x), computed from the exponential that cannot overflow."""
    decay = exp_of_negative(-abs(x))
    return decay.where(x >= 0.0, 1.0) / (decay + 1.0)


def tanh(x: Vector) -> Vector:
    """Return (1 - e)/(1 + e) with e = exp(-2|x|), computed from e - 1."""
    size = abs(x).at_most(coefficients_for(x).unity)
    k, r = reduce_by_ln2(-(size + size))
    power = k.two_to()
    less = power.multiply_add(expm1_near_0(r), power - 1.0)  # e - 1
    return (less / (less + 2.0)).with_sign_of(x)


def sinh(x: Vector) -> Vector:
    """Return (e^x - e^-x)/2 = h*(1 + 1/(2h + 1)) with h = (e^|x| - 1)/2."""
    size = abs(x)
    half = half_expm1(size)
    grown = half * (1.0 + 1.0 / (half + half + 1.0))
    return grown.where(size < 2.0 ** -(x.format.fraction // 2 + 1), size).with_sign_of(x)


def cosh(x: Vector) -> Vector:
    """Return (e^x + e^-x)/2."""
    k, r = reduce_by_ln2(abs(x).at_most(coefficients_for(x).highest + 0.5))
    half = scale_by_power_of_2(expm1_near_0(r) + 1.0, k - 1.0)
    return half + 0.25 / half


# --- logarithms --------------------------------------------------------------------------------


def split_exponent(x: Vector) -> tuple[Vector, Vector]:
    """Return e and m with x = 2^e * m and m between sqrt(1/2) and sqrt(2), for 0 < x < inf."""
    build, form = x.builder, x.format
    small = x < form.smallest_normal
    lifted = x.where(small, x * 2.0 ** (form.fraction + 2))
    root = x.constant(math.sqrt(0.5)).bits()
    one = x.constant(1.0).bits()
    # Shifted, so that the exponent changes at sqrt(1/2) instead of 1.
    moved = build.add(lifted.bits(), build.sub(one, root))
    fraction = build.and_(moved, x.integer((1 << form.fraction) - 1))
    m = x.from_bits(build.add(fraction, root))
    # An integer in the last bits of 2^fraction, to become a number by a subtraction.
    ruler = 2.0**form.fraction
    exponent = build.lshr(moved, x.integer(form.fraction))
    number = x.from_bits(build.or_(exponent, x.constant(ruler).bits()))
    bias = x.constant(ruler + form.bias).where(small, ruler + form.bias + form.fraction + 2)
    return number - bias, m


def log_of_fraction(m: Vector) -> tuple[Vector, Vector]:
    """Return (f, rest) with ln(m) = f - rest and f = m - 1, for an exact final addition."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return f, half_square - s * (half_square + z * z.polynomial(coefficients_for(m).log))


def edges_of_log(x: Vector, result: Vector) -> Vector:
    """Set the special values of a logarithm: -inf at 0, nan below 0, infinity and nan."""
    result = result.where(x.equals(0.0), -INFINITY).where(x < 0.0, math.nan)
    return (x + x).where(x < INFINITY, result)


def log(x: Vector) -> Vector:
    """Return the natural logarithm."""
    e, m = split_exponent(x)
    high, low = coefficients_for(x).ln2
    f, rest = log_of_fraction(m)
    return edges_of_log(x, e.multiply_add(high, f - e.multiply_add(-low, rest)))


def log2(x: Vector) -> Vector:
    """Return the logarithm to base 2, exact for powers of 2."""
    e, m = split_exponent(x)
    f, rest = log_of_fraction(m)
    return edges_of_log(x, (f - rest).multiply_add(LOG2_E, e))


def log10(x: Vector) -> Vector:
    """Return the logarithm to base 10."""
    e, m = split_exponent(x)
    high, low = coefficients_for(x).log10_2
    f, rest = log_of_fraction(m)
    return edges_of_log(x, e.multiply_add(high, (f - rest).multiply_add(LOG10_E, e * low)))


def log1p(x: Vector) -> Vector:
    """Return ln(1 + x), with a correction for the rounding error of 1 + x."""
    u = x + 1.0
    without = u - x
    lost = (1.0 - without) + (x - (u - without))
    e, m = split_exponent(u)
    high, low = coefficients_for(x).ln2
    f, rest = log_of_fraction(m)
    correction = e.multiply_add(low, lost / u)
    result = edges_of_log(u, e.multiply_add(high, f - (rest - correction)))
    return result.where(abs(x) < tiny(x), x)


def log1p_of_fraction(d: Vector) -> Vector:
    """Return ln(1 + d) = 2*atanh(s) with s = d/(2 + d), for 0 <= d <= 1."""
    twice = (d + d) / (d + 2.0)
    z = twice * twice * 0.25
    return twice.multiply_add(z * 0.5 * z.polynomial(coefficients_for(d).log1p), twice)


def softplus(x: Vector) -> Vector:
    """Return ln(1 + e^x), computed from the exponential that cannot overflow."""
    decay = exp_of_negative(-abs(x))
    return x.where(x < 0.0, 0.0) + log1p_of_fraction(decay)


def logaddexp(a: Vector, b: Vector) -> Vector:
    """Return ln(e^a + e^b): the greater operand plus a correction."""
    greater = b.where(a > b, a)
    distance = abs(a - b).where(a.equals(b), 0.0)  # inf - inf would be nan
    return greater + log1p_of_fraction(exp_of_negative(-distance))


# --- inverse hyperbolic functions --------------------------------------------------------------

_LARGE = 2.0**100  # 1 + x^2 is x^2 from far below, and x^2 is finite


def asinh(x: Vector) -> Vector:
    """Return ln(x + sqrt(1 + x^2)), computed with log1p."""
    size = abs(x)
    square = size * size
    large = size > _LARGE
    excess = size + square / (1.0 + (square + 1.0).sqrt())
    result = log1p(excess.where(large, size)) + x.constant(0.0).where(large, LN2)
    return result.with_sign_of(x)


def acosh(x: Vector) -> Vector:
    """Return ln(x + sqrt(x^2 - 1)), computed with log1p."""
    t = x - 1.0
    large = x > _LARGE
    result = log1p((t + (t * (t + 2.0)).sqrt()).where(large, x))
    return (result + x.constant(0.0).where(large, LN2)).where(x < 1.0, math.nan)


def atanh(x: Vector) -> Vector:
    """Return ln((1 + x)/(1 - x))/2, computed with log1p."""
    size = abs(x)
    return (0.5 * log1p((size + size) / (1.0 - size))).with_sign_of(x)
