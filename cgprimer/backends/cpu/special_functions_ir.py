"""Powers, the error function, and calls of the C library for single numbers.

Powers and the error function need an exponential whose operand has more digits than a double: it
is given as a sum of two numbers. Products are made exact by splitting the factors into halves
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
    coefficients_for,
    exp,
    expm1_near_0,
    log,
    reduce_by_ln2,
    scale_by_power_of_2,
    split_exponent,
)
from cgprimer.backends.cpu.ir_writer import FunctionWriter
from cgprimer.backends.cpu.vector_ir import Ir, Mask, Vector, declare_function, vector_width

# --- the C library -----------------------------------------------------------------------------

LIBRARY_FUNCTIONS = {
    "sin": 1,
    "cos": 1,
    "tan": 1,
    "pow": 2,
}  #: C functions and their numbers of operands
_PREFIX = "cgprimer_c_"  # prefix of the symbols that LLVM resolves


def _libraries() -> Iterator[ctypes.CDLL]:
    """Yield libraries that may contain the functions, the most likely first."""
    for name in (None, "m", "ucrtbase", "msvcrt"):
        library_name = ctypes.util.find_library("m") if name == "m" else name
        with suppress(OSError, TypeError):  # not on this system; Windows refuses None
            yield ctypes.CDLL(library_name)


@cache
def _address(name: str) -> int:
    """Return the address of a function of the C library."""
    for library in _libraries():
        if function := getattr(library, name, None):
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise OSError(f"the C library has no function {name}")


def register_symbols() -> None:
    """Register the addresses of the C functions in LLVM, before code is loaded."""
    from llvmlite import binding

    for name in LIBRARY_FUNCTIONS:
        binding.add_symbol(_PREFIX + name, _address(name))


def elementwise_library_call(module: Ir, name: str, kind: Ir) -> Ir:
    """Return a function that applies a C function to each element of a vector."""
    from llvmlite import ir

    double = ir.DoubleType()
    library_function = declare_function(
        module, _PREFIX + name, double, [double] * LIBRARY_FUNCTIONS[name]
    )
    width = vector_width(kind)
    if not width:
        return library_function
    title = f"cgprimer_each_{name}_x{width}"
    if title in module.globals:
        return module.globals[title]
    function = declare_function(module, title, kind, [kind])
    function.linkage = "internal"
    function.attributes.add("noinline")
    writer = FunctionWriter(function)
    build = writer.build

    def one(position: Ir, vectors: list[Ir]) -> list[Ir]:
        result = build.call(library_function, [build.extract_element(vectors[0], position)])
        return [build.insert_element(vectors[0], result, position)]

    build.ret(*writer.fold(width, 1, [function.args[0]], one, once=True))
    return function


# --- powers ------------------------------------------------------------------------------------

_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)  # the nearest number, and the rest
# of 2*(atanh(s)/s - 1 - z/3)/z^2 at z = s^2 <= .03; error 4e-17 (times z^2)
_REST = (
    0.4, 0.2857142857142937, 0.222222222216545, 0.1818181833570672, 0.1538459492898411,
    0.133348065173055, 0.11706187519978793, 0.11723689023649227,
)  # fmt: skip


def _split(x: Vector) -> tuple[Vector, Vector]:
    """Return x as a sum of two numbers with half the digits each."""
    head = x.head()
    return head, x - head


def _precise_log(x: Vector) -> tuple[Vector, Vector]:
    """Return ln(x) for 0 < x < inf as a sum of two numbers with about 64 binary digits.

    ln(m) = 2*s + s*u at s = f/(2 + f) and u = s^2*(2/3 + s^2*(2/5 + ...)); s and u are kept as
    a head, whose products are exact, and a small rest.
    """
    e, m = split_exponent(x)
    f = m - 1.0
    below = m + 1.0
    below_lost = m - (below - 1.0)
    inverse = 1.0 / below
    near = f * inverse  # good enough for what is multiplied by s^2 twice
    square = near * near
    q = square * square.polynomial(_REST)
    s = near.head()
    first, second = _split(below)
    left = f - s * first - s * second - s * below_lost
    s_rest = left * inverse
    quotient = s + s_rest
    z = s * s
    z_rest = s_rest * (s + quotient)
    c = (q + _TWO_THIRDS[0]).head()
    c_rest = (_TWO_THIRDS[0] - c) + q + _TWO_THIRDS[1]
    z_head = z.head()
    z_rest = (z - z_head) + z_rest
    u = z_head * c
    u_rest = z_head * c_rest + z_rest * (c + c_rest)
    head = (u + u_rest).head()
    u_rest = (u - head) + u_rest
    high, low = coefficients_for(x).ln2
    total = e * high
    rest = (s_rest + s_rest) + s * u_rest + s_rest * (head + u_rest) + e * low
    for term in (s + s, s * head):  # each is smaller than the total so far, or that is 0
        following = total + term
        rest = rest + (term - (following - total))
        total = following
    result = total + rest
    return result, rest - (result - total)


def _is_integer(x: Vector) -> Mask:
    """Return whether x >= 0 is an integer."""
    ruler = 2.0**x.format.fraction
    return ((x + ruler) - ruler).equals(x) | (x >= ruler)


def power(a: Vector, b: Vector) -> Vector:
    """Return a^b with the special cases of IEEE 754 (function pow)."""
    return _power(a, b, _precise_power)


def power_for_single(a: Vector, b: Vector) -> Vector:
    """Return a^b in float64, with sufficient precision for a float32 result."""
    return _power(a, b, lambda size, exponent: exp(exponent * log(size)))


def _power(a: Vector, b: Vector, of_size: Callable[[Vector, Vector], Vector]) -> Vector:
    size = abs(a)
    # A finite exponent of that size does to every base but 1 what an infinite one does.
    result = of_size(size, b.at_most(2.0**1000).at_least(-(2.0**1000)))
    length = abs(b)
    integral = _is_integer(length)
    odd = integral & ~_is_integer(length * 0.5)
    result = result.where(odd, result.with_sign_of(a))
    result = result.where((a < 0.0) & (a > -math.inf) & ~integral, math.nan)
    result = result.where(b.is_nan(), b)
    return result.where(b.equals(0.0) | a.equals(1.0), 1.0)


def _precise_power(size: Vector, exponent: Vector) -> Vector:
    high, low = _precise_log(size)
    high = size.where(size < math.inf, high).where(size.equals(0.0), -math.inf)
    product = exponent * high
    first, second = _split(exponent)
    third, fourth = _split(high)
    lost = (first * third - product) + first * fourth + second * third + second * fourth
    limits = coefficients_for(size)
    inside = abs(product) < 1000.0  # else the result is 0 or infinite, and lost may be nan
    lost = size.constant(0.0).where(inside, lost + exponent * low)
    return scale_by_power_of_2(
        *_exp_of_sum(product.at_most(limits.highest).at_least(limits.lowest), lost)
    )


def _exp_of_sum(x: Vector, small: Vector) -> tuple[Vector, Vector]:
    """Return m and k with e^(x + small) = m*2^k, for a very small second operand."""
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
_NEAR = 0.75  # erf from its series below, from erfc above: erfc then loses no digits to 1 - erf


def _erf_near_0(size: Vector) -> Vector:
    return size.multiply_add((size * size).polynomial(_ERF), size)


def _erfc_from_afar(size: Vector) -> Vector:
    """Return erfc(x) = exp(-x^2) times a smooth function, for x >= 3/4."""
    x = size.at_most(27.5)  # erfc is 0 from 26.6 on
    head = x.head()
    m, k = _exp_of_sum(-(head * head), (head - x) * (head + x))
    inverse = 1.0 / (x + 3.0)
    smooth = (x.multiply_add(1.27734375, -4.70703125) * inverse).polynomial(_ERFC)
    return scale_by_power_of_2(m * (smooth * inverse), k)


def erfc(x: Vector) -> Vector:
    """Return one minus the error function, with full precision."""
    size = abs(x)
    afar = _erfc_from_afar(size)
    near = 1.0 - _erf_near_0(size).with_sign_of(x)
    return afar.where(x < 0.0, 2.0 - afar).where(size < _NEAR, near)


def erf(x: Vector) -> Vector:
    """Return the error function."""
    size = abs(x)
    afar = 1.0 - _erfc_from_afar(size)
    return afar.where(size < _NEAR, _erf_near_0(size)).with_sign_of(x)
