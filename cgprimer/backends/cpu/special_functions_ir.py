"""Powers, the error function, and calls to the C library for single elements.

Powers and the error function need an exponential whose operand has more digits than a double: the
operand is a sum of two numbers. Products are made exact by splitting the factors into halves
(Dekker 1971), which works with and without fused multiply-add. Double precision only.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

from cgprimer.backends.cpu.exponential_ir import (
    exp,
    expm1_near_0,
    get_coefficients,
    log,
    reduce_by_ln2,
    scale_by_power_of_2,
    split_exponent,
)
from cgprimer.backends.cpu.function_emitter import FunctionEmitter
from cgprimer.backends.cpu.vector_ir import Ir, Mask, Vector, count_lanes, declare_function

# --- the C library -----------------------------------------------------------------------------

LIBRARY_FUNCTIONS = {
    "sin": 1,
    "cos": 1,
    "tan": 1,
    "pow": 2,
}  #: C functions and their numbers of operands
_PREFIX = "cgprimer_c_"  # prefix of the symbols that LLVM resolves


def _open_c_libraries() -> Iterator[ctypes.CDLL]:
    """Yield the shared libraries that may contain the C math functions, the most likely first."""
    for name in (None, "m", "ucrtbase", "msvcrt"):
        library_name = ctypes.util.find_library("m") if name == "m" else name
        with suppress(OSError, TypeError):  # not on this system; Windows refuses None
            yield ctypes.CDLL(library_name)


@cache
def _find_c_function(name: str) -> int:
    """Return the address of a function in the C library."""
    for library in _open_c_libraries():
        if function := getattr(library, name, None):
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise OSError(f"cannot find the function {name!r} in the C library")


def register_c_functions() -> None:
    """Register the addresses of the C math functions with LLVM, before code is loaded."""
    from llvmlite import binding

    for name in LIBRARY_FUNCTIONS:
        binding.add_symbol(_PREFIX + name, _find_c_function(name))


def define_elementwise_call(module: Ir, name: str, operand_type: Ir) -> Ir:
    """Define an LLVM function that applies a C function to each lane of a vector."""
    from llvmlite import ir

    double = ir.DoubleType()
    library_function = declare_function(
        module, _PREFIX + name, double, [double] * LIBRARY_FUNCTIONS[name]
    )
    lanes = count_lanes(operand_type)
    if not lanes:
        return library_function
    title = f"cgprimer_each_{name}_x{lanes}"
    if title in module.globals:
        return module.globals[title]
    function = declare_function(module, title, operand_type, [operand_type])
    function.linkage = "internal"
    function.attributes.add("noinline")
    writer = FunctionEmitter(function)
    builder = writer.builder

    def emit_lane_call(position: Ir, vectors: list[Ir]) -> list[Ir]:
        """Replace one lane of a vector by the result of the C function."""
        result = builder.call(library_function, [builder.extract_element(vectors[0], position)])
        return [builder.insert_element(vectors[0], result, position)]

    builder.ret(*writer.emit_carried_loop(lanes, 1, [function.args[0]], emit_lane_call, once=True))
    return function


# --- powers ------------------------------------------------------------------------------------

_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)  # the nearest number, and the rest
# of 2*(atanh(s)/s - 1 - z/3)/z^2 at z = s^2 <= .03; error 4e-17 (times z^2)
_REST = (
    0.4, 0.2857142857142937, 0.222222222216545, 0.1818181833570672, 0.1538459492898411,
    0.133348065173055, 0.11706187519978793, 0.11723689023649227,
)  # fmt: skip


def _split_significand(x: Vector) -> tuple[Vector, Vector]:
    """Split x into a sum of two numbers whose significands have half the length."""
    head = x.truncate_significand()
    return head, x - head


def _log_in_two_parts(x: Vector) -> tuple[Vector, Vector]:
    """Return ln(x) for 0 < x < inf as a sum of two numbers, accurate to about 64 bits.

    ln(m) = 2*s + s*u at s = f/(2 + f) and u = s^2*(2/3 + s^2*(2/5 + ...)); s and u are stored as
    a head, whose products are exact, and a small rest.
    """
    e, m = split_exponent(x)
    f = m - 1.0
    below = m + 1.0
    below_lost = m - (below - 1.0)
    inverse = 1.0 / below
    near = f * inverse  # good enough for what is multiplied by s^2 twice
    square = near * near
    q = square * square.evaluate_polynomial(_REST)
    s = near.truncate_significand()
    first, second = _split_significand(below)
    left = f - s * first - s * second - s * below_lost
    s_rest = left * inverse
    quotient = s + s_rest
    z = s * s
    z_rest = s_rest * (s + quotient)
    c = (q + _TWO_THIRDS[0]).truncate_significand()
    c_rest = (_TWO_THIRDS[0] - c) + q + _TWO_THIRDS[1]
    z_head = z.truncate_significand()
    z_rest = (z - z_head) + z_rest
    u = z_head * c
    u_rest = z_head * c_rest + z_rest * (c + c_rest)
    head = (u + u_rest).truncate_significand()
    u_rest = (u - head) + u_rest
    high, low = get_coefficients(x).ln2
    total = e * high
    rest = (s_rest + s_rest) + s * u_rest + s_rest * (head + u_rest) + e * low
    for term in (s + s, s * head):  # each is smaller than the total so far, or that is 0
        following = total + term
        rest = rest + (term - (following - total))
        total = following
    result = total + rest
    return result, rest - (result - total)


def _is_integer(x: Vector) -> Mask:
    """Return the mask of lanes that are integers, for x >= 0."""
    ruler = 2.0**x.format.fraction
    return ((x + ruler) - ruler).equals(x) | (x >= ruler)


def power(a: Vector, b: Vector) -> Vector:
    """Return a^b in full precision, with the special cases of pow in IEEE 754."""
    return _power_with_special_cases(a, b, _power_of_magnitude)


def power_for_float32(a: Vector, b: Vector) -> Vector:
    """Return a^b in float64 arithmetic, precise enough for a result in float32."""
    return _power_with_special_cases(a, b, lambda size, exponent: exp(exponent * log(size)))


def _power_with_special_cases(
    a: Vector, b: Vector, power_of_magnitude: Callable[[Vector, Vector], Vector]
) -> Vector:
    """Return a^b with the special cases of IEEE 754, given a function for |a|^b."""
    # A finite exponent of this size has the effect of an infinite one, for every base except 1.
    result = power_of_magnitude(abs(a), b.minimum(2.0**1000).maximum(-(2.0**1000)))
    length = abs(b)
    integral = _is_integer(length)
    odd = integral & ~_is_integer(length * 0.5)
    result = result.replace_where(odd, result.copysign(a))
    result = result.replace_where((a < 0.0) & (a > -math.inf) & ~integral, math.nan)
    result = result.replace_where(b.is_nan(), b)
    return result.replace_where(b.equals(0.0) | a.equals(1.0), 1.0)


def _power_of_magnitude(size: Vector, exponent: Vector) -> Vector:
    """Return size^exponent in full precision, for size >= 0."""
    high, low = _log_in_two_parts(size)
    high = size.replace_where(size < math.inf, high).replace_where(size.equals(0.0), -math.inf)
    product = exponent * high
    first, second = _split_significand(exponent)
    third, fourth = _split_significand(high)
    lost = (first * third - product) + first * fourth + second * third + second * fourth
    limits = get_coefficients(size)
    inside = abs(product) < 1000.0  # else the result is 0 or infinite, and lost may be nan
    lost = size.splat(0.0).replace_where(inside, lost + exponent * low)
    return scale_by_power_of_2(
        *_exp_of_sum(product.minimum(limits.highest).maximum(limits.lowest), lost)
    )


def _exp_of_sum(x: Vector, small: Vector) -> tuple[Vector, Vector]:
    """Return m and k with e^(x + small) = m*2^k, for a tiny correction ``small`` of x."""
    k, r = reduce_by_ln2(x)
    return expm1_near_0(r + small) + 1.0, k


# --- the error function ------------------------------------------------------------------------

# of erf(x)/x - 1 at z = x^2 <= 9/16; error 8e-17
_ERF = (
    0.1283791670955125, -0.3761263890318123, 0.11283791670806737, -0.02686617061128781,
    0.005223977232952475, -0.0008548300832069432, 0.00012054266028326731, -1.489862284147446e-05,
    1.6044523839624666e-06, -1.2711547089821422e-07,
)  # fmt: skip
# of (x + 3)*exp(x^2)*erfc(x) at v = (1.27734375*x - 4.70703125)/(x + 3), which is between -1 and 1
# for x from 3/4 to 27.75; error 1.6e-16
_ERFC = (
    0.9893615582742927, -0.5422466639062629, 0.24786195047407847, -0.09169199704612015,
    0.025765902192820964, -0.004614302227520687, 9.390918316095741e-05, 0.00021096982873190247,
    -4.446682839199799e-05, -6.406526264346156e-06, 3.7724086032849123e-06, 1.28425165769419e-07,
    -3.00632495489957e-07, 3.8211499426304355e-10, 2.5865111358173764e-08, 9.470268105100987e-11,
    -2.298006707465656e-09, -4.5064226187320614e-11, 1.542999976759165e-10,
)  # fmt: skip
_NEAR = 0.75  # erf from its polynomial below, from erfc above: 1 - erf then cancels no digits


def _erf_near_0(size: Vector) -> Vector:
    """Return erf(x) for 0 <= x < 3/4, from a polynomial."""
    return size.multiply_add((size * size).evaluate_polynomial(_ERF), size)


def _erfc_far_from_0(size: Vector) -> Vector:
    """Return erfc(x) for x >= 3/4, as exp(-x^2) times a polynomial."""
    x = size.minimum(27.5)  # erfc is 0 from 26.6 on
    head = x.truncate_significand()
    m, k = _exp_of_sum(-(head * head), (head - x) * (head + x))
    inverse = 1.0 / (x + 3.0)
    smooth = (x.multiply_add(1.27734375, -4.70703125) * inverse).evaluate_polynomial(_ERFC)
    return scale_by_power_of_2(m * (smooth * inverse), k)


def erfc(x: Vector) -> Vector:
    """Return the complementary error function in full precision."""
    size = abs(x)
    far = _erfc_far_from_0(size)
    near = 1.0 - _erf_near_0(size).copysign(x)
    return far.replace_where(x < 0.0, 2.0 - far).replace_where(size < _NEAR, near)


def erf(x: Vector) -> Vector:
    """Return the error function."""
    size = abs(x)
    far = 1.0 - _erfc_far_from_0(size)
    return far.replace_where(size < _NEAR, _erf_near_0(size)).copysign(x)
