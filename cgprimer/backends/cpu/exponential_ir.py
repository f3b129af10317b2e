"""Exponentials, logarithms and hyperbolic functions as branch-free LLVM code.

The functions map a :class:`~cgprimer.backends.cpu.vector_ir.Vector` to a vector, and treat
zeros, subnormal numbers, infinities and nan as numpy does. ``exp`` splits x into k*ln(2) + r with
an integer k and |r| <= ln(2)/2; ``log`` splits x into 2^e*m with m near 1. See Muller et al.,
"Handbook of Floating-Point Arithmetic", section 10.2 (reduction after Cody and Waite).

The order of the operations must be preserved: an optimizer that treats floating-point numbers as
real numbers would remove the low parts of constants and the corrections.
"""

from __future__ import annotations

import math

from cgprimer.backends.cpu.coefficients import COEFFICIENTS, LN2, LOG2_E, LOG10_E, Coefficients
from cgprimer.backends.cpu.vector_ir import Vector

INFINITY = math.inf


def get_coefficients(x: Vector) -> Coefficients:
    """Return the polynomial coefficients for the floating-point format of x."""
    return COEFFICIENTS[x.format]


def round_to_integer(x: Vector) -> Vector:
    """Round to the nearest integer; |x| must be small."""
    constant = x.format.rounding_constant
    return (x + constant) - constant


# --- exponentials ------------------------------------------------------------------------------


def reduce_by_ln2(x: Vector) -> tuple[Vector, Vector]:
    """Return an integer k and a remainder r with x = k*ln(2) + r and |r| <= ln(2)/2."""
    constant = x.format.rounding_constant
    high, low = get_coefficients(x).ln2
    k = x.multiply_add(LOG2_E, constant) - constant
    return k, k.multiply_add(-low, k.multiply_add(-high, x))


def expm1_near_0(r: Vector) -> Vector:
    """Return e^r - 1 for |r| <= ln(2)/2."""
    return (r * r).multiply_add(r.evaluate_polynomial(get_coefficients(r).exp), r)


def scale_by_power_of_2(x: Vector, k: Vector) -> Vector:
    """Return x * 2^k, rounded once; multiply by two factors, since 2^k may overflow."""
    half = round_to_integer(k * 0.5)
    return x * half.exp2_integer() * (k - half).exp2_integer()


def exp(x: Vector) -> Vector:
    """Return e^x."""
    limits = get_coefficients(x)
    k, r = reduce_by_ln2(x.minimum(limits.highest).maximum(limits.lowest))
    return scale_by_power_of_2(expm1_near_0(r) + 1.0, k)


def exp_of_negative(x: Vector) -> Vector:
    """Return e^x for x <= 0."""
    k, r = reduce_by_ln2(x.maximum(get_coefficients(x).lowest))
    return scale_by_power_of_2(expm1_near_0(r) + 1.0, k)


def half_expm1(x: Vector) -> Vector:
    """Return (e^x - 1)/2, which overflows at a larger x than e^x does."""
    k, r = reduce_by_ln2(x.minimum(get_coefficients(x).highest + 0.5))
    quarter = (k - 2.0).exp2_integer()
    sum_of_quarters = quarter.multiply_add(expm1_near_0(r), quarter - 0.25)
    return sum_of_quarters + sum_of_quarters


def expm1(x: Vector) -> Vector:
    """Return e^x - 1, with full precision near 0."""
    lowest = -2.0 * get_coefficients(x).unity  # below this, e^x - 1 rounds to -1
    half = half_expm1(x.maximum(lowest))
    return (half + half).replace_where(abs(x) < get_identity_bound(x), x)


def get_identity_bound(x: Vector) -> float:
    """Return the bound of |x| below which expm1(x) and log1p(x) round to x."""
    return float(2.0 ** -(x.format.fraction + 2))


def sigmoid(x: Vector) -> Vector:
    """Return 1/(1 + e^-x), computed from e^-|x|, which cannot overflow."""
    decay = exp_of_negative(-abs(x))
    return decay.replace_where(x >= 0.0, 1.0) / (decay + 1.0)


def tanh(x: Vector) -> Vector:
    """Return the hyperbolic tangent, computed from e^(-2|x|) - 1."""
    size = abs(x).minimum(get_coefficients(x).unity)
    k, r = reduce_by_ln2(-(size + size))
    power = k.exp2_integer()
    less = power.multiply_add(expm1_near_0(r), power - 1.0)  # e - 1
    return (less / (less + 2.0)).copysign(x)


def sinh(x: Vector) -> Vector:
    """Return the hyperbolic sine, h*(1 + 1/(2h + 1)) with h = (e^|x| - 1)/2."""
    size = abs(x)
    half = half_expm1(size)
    grown = half * (1.0 + 1.0 / (half + half + 1.0))
    return grown.replace_where(size < 2.0 ** -(x.format.fraction // 2 + 1), size).copysign(x)


def cosh(x: Vector) -> Vector:
    """Return the hyperbolic cosine, (e^x + e^-x)/2."""
    k, r = reduce_by_ln2(abs(x).minimum(get_coefficients(x).highest + 0.5))
    half = scale_by_power_of_2(expm1_near_0(r) + 1.0, k - 1.0)
    return half + 0.25 / half


# --- logarithms --------------------------------------------------------------------------------


def split_exponent(x: Vector) -> tuple[Vector, Vector]:
    """Return e and m with x = 2^e * m and m between sqrt(1/2) and sqrt(2), for 0 < x < inf."""
    builder, form = x.builder, x.format
    small = x < form.smallest_normal
    lifted = x.replace_where(small, x * 2.0 ** (form.fraction + 2))
    root = x.splat(math.sqrt(0.5)).bitcast_to_integers()
    one = x.splat(1.0).bitcast_to_integers()
    # Shifted so that the exponent changes at sqrt(1/2) instead of 1.
    moved = builder.add(lifted.bitcast_to_integers(), builder.sub(one, root))
    fraction = builder.and_(moved, x.splat_integer((1 << form.fraction) - 1))
    m = x.bitcast_from_integers(builder.add(fraction, root))
    # An integer in the last bits of 2^fraction, to become a number by a subtraction.
    ruler = 2.0**form.fraction
    exponent = builder.lshr(moved, x.splat_integer(form.fraction))
    number = x.bitcast_from_integers(builder.or_(exponent, x.splat(ruler).bitcast_to_integers()))
    bias = x.splat(ruler + form.bias).replace_where(small, ruler + form.bias + form.fraction + 2)
    return number - bias, m


def log_of_significand(m: Vector) -> tuple[Vector, Vector]:
    """Return f and c with ln(m) = f - c and f = m - 1; for accuracy, callers add f last."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return f, half_square - s * (half_square + z * z.evaluate_polynomial(get_coefficients(m).log))


def set_log_special_values(x: Vector, result: Vector) -> Vector:
    """Set a logarithm to -inf at x = 0 and nan at x < 0; propagate infinity and nan."""
    result = result.replace_where(x.equals(0.0), -INFINITY).replace_where(x < 0.0, math.nan)
    return (x + x).replace_where(x < INFINITY, result)


def log(x: Vector) -> Vector:
    """Return the natural logarithm."""
    e, m = split_exponent(x)
    high, low = get_coefficients(x).ln2
    f, rest = log_of_significand(m)
    return set_log_special_values(x, e.multiply_add(high, f - e.multiply_add(-low, rest)))


def log2(x: Vector) -> Vector:
    """Return the logarithm to base 2, exact for powers of 2."""
    e, m = split_exponent(x)
    f, rest = log_of_significand(m)
    return set_log_special_values(x, (f - rest).multiply_add(LOG2_E, e))


def log10(x: Vector) -> Vector:
    """Return the logarithm to base 10."""
    e, m = split_exponent(x)
    high, low = get_coefficients(x).log10_2
    f, rest = log_of_significand(m)
    return set_log_special_values(
        x, e.multiply_add(high, (f - rest).multiply_add(LOG10_E, e * low))
    )


def log1p(x: Vector) -> Vector:
    """Return ln(1 + x), with a correction for the rounding error of 1 + x."""
    u = x + 1.0
    without = u - x
    lost = (1.0 - without) + (x - (u - without))
    e, m = split_exponent(u)
    high, low = get_coefficients(x).ln2
    f, rest = log_of_significand(m)
    correction = e.multiply_add(low, lost / u)
    result = set_log_special_values(u, e.multiply_add(high, f - (rest - correction)))
    return result.replace_where(abs(x) < get_identity_bound(x), x)


def log1p_of_fraction(d: Vector) -> Vector:
    """Return ln(1 + d) for 0 <= d <= 1, as 2*atanh(d/(2 + d))."""
    twice = (d + d) / (d + 2.0)
    z = twice * twice * 0.25
    return twice.multiply_add(z * 0.5 * z.evaluate_polynomial(get_coefficients(d).log1p), twice)


def softplus(x: Vector) -> Vector:
    """Return ln(1 + e^x) as max(x, 0) + ln(1 + e^-|x|), which cannot overflow."""
    decay = exp_of_negative(-abs(x))
    return x.replace_where(x < 0.0, 0.0) + log1p_of_fraction(decay)


def logaddexp(a: Vector, b: Vector) -> Vector:
    """Return ln(e^a + e^b) as max(a, b) + ln(1 + e^-|a - b|), which cannot overflow."""
    greater = b.replace_where(a > b, a)
    distance = abs(a - b).replace_where(a.equals(b), 0.0)  # inf - inf would be nan
    return greater + log1p_of_fraction(exp_of_negative(-distance))


# --- inverse hyperbolic functions --------------------------------------------------------------

_LARGE = 2.0**100  # 1 + x^2 is x^2 from far below, and x^2 is finite


def asinh(x: Vector) -> Vector:
    """Return the inverse hyperbolic sine, ln(x + sqrt(1 + x^2)), computed with log1p."""
    size = abs(x)
    square = size * size
    large = size > _LARGE
    excess = size + square / (1.0 + (square + 1.0).sqrt())
    result = log1p(excess.replace_where(large, size)) + x.splat(0.0).replace_where(large, LN2)
    return result.copysign(x)


def acosh(x: Vector) -> Vector:
    """Return the inverse hyperbolic cosine, ln(x + sqrt(x^2 - 1)), computed with log1p."""
    t = x - 1.0
    large = x > _LARGE
    result = log1p((t + (t * (t + 2.0)).sqrt()).replace_where(large, x))
    return (result + x.splat(0.0).replace_where(large, LN2)).replace_where(x < 1.0, math.nan)


def atanh(x: Vector) -> Vector:
    """Return the inverse hyperbolic tangent, ln((1 + x)/(1 - x))/2, computed with log1p."""
    size = abs(x)
    return (0.5 * log1p((size + size) / (1.0 - size))).copysign(x)
