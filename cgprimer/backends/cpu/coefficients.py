"""Constants of the mathematical functions, computed with mpmath at 60 digits.

The polynomials come from ``mpmath.chebyfit`` (interpolation at the Chebyshev nodes, within a
factor of two of the minimax error) and are rounded to the format; their errors were then measured
at 400 points. ``error`` in the comments is the absolute error of the polynomial; the function
multiplies it by the small factor in parentheses.
"""

from __future__ import annotations

from dataclasses import dataclass

from cgprimer.backends.cpu.vector_ir import FLOAT32, FLOAT64


@dataclass(frozen=True)
class Coefficients:
    """Polynomial coefficients and argument ranges of mathematical functions for a float format.

    In the comments, z is the square of r or s.
    """

    exp: tuple[float, ...]  #: (exp(r) - 1 - r)/r^2 for |r| <= ln(2)/2
    log: tuple[float, ...]  #: 2*(atanh(s)/s - 1)/z, exp(2*atanh(s)) from sqrt(1/2) to sqrt(2)
    log1p: tuple[float, ...]  #: 2*(atanh(s)/s - 1)/z, s from 0 to 1/3
    sine: tuple[float, ...]  #: (sin(r)/r - 1)/z for |r| <= pi/4
    cosine: tuple[float, ...]  #: (cos(r) - 1 + z/2)/z^2 for |r| <= pi/4
    ln2: tuple[float, float]  #: ln(2) in two parts; products of the first and an exponent are exact
    log10_2: tuple[float, float]  #: log10(2) in two parts like ``ln2``
    half_pi: tuple[float, ...]  #: pi/2 in parts; all but the last times a quadrant are exact
    widest: float  #: largest operand that is reduced with ``half_pi``
    lowest: float  #: exp rounds to 0 at this operand
    highest: float  #: exp overflows at this operand
    unity: float  #: tanh rounds to 1 at this operand


_DOUBLE = Coefficients(
    exp=(  # error 1.2e-16 (times r^2 <= .12)
        0.5000000000000001, 0.16666666666666669, 0.041666666666623824, 0.008333333333330039,
        0.0013888888917367081, 0.00019841269863171557, 2.4801521057868204e-05,
        2.7557268276905696e-06, 2.7620201591031547e-07, 2.5100472505694996e-08,
    ),
    log=(  # error 3.2e-16 (times z <= .03)
        0.666666666666667, 0.399999999998992, 0.2857142862611452, 0.22222211112104948,
        0.1818289077802613, 0.15331666676597175, 0.146171283998073,
    ),
    log1p=(  # error 4.1e-17 (times z <= .12)
        0.6666666666666666, 0.39999999999999525, 0.285714285716001, 0.2222222219823677,
        0.18181819897962714, 0.1538454396486055, 0.13335178631449257, 0.11734279061303197,
        0.10845178394880015, 0.07492143795550767, 0.1563057780092285,
    ),
    sine=(  # error 3.2e-17
        -0.16666666666666666, 0.008333333333330925, -0.00019841269836722418,
        2.755731608381636e-06, -2.5051127944014188e-08, 1.5917848524808262e-10,
    ),
    cosine=(  # error 2.3e-18
        0.041666666666666664, -0.0013888888888887382, 2.480158729874307e-05,
        -2.7557317260008837e-07, 2.0876143827993133e-09, -1.1382456778061306e-11,
    ),
    ln2=(0.6931471805598903, 5.497923018708371e-14),
    log10_2=(0.30102999566395283, 2.8363394551044964e-14),
    half_pi=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    widest=2.0**20,
    lowest=-746.0,
    highest=710.0,
    unity=20.0,
)  # fmt: skip

_SINGLE = Coefficients(
    exp=(  # error 6.7e-8 (times r^2 <= .12)
        0.5, 0.16666576266288757, 0.04166655242443085, 0.00836323294788599, 0.0013926250394433737,
    ),
    log=(0.6666668653488159, 0.39988768100738525, 0.2958046793937683),  # 2.0e-7 (z <= .03)
    log1p=(  # error 2.0e-8 (times z <= .12)
        0.6666666865348816, 0.3999970555305481, 0.285923570394516, 0.2170657515525818,
        0.23224329948425293,
    ),
    sine=(-0.166666641831398, 0.008332746103405952, -0.00019587387214414775),  # 2.5e-8
    cosine=(0.0416666641831398, -0.0013888300163671374, 2.4547436623834074e-05),  # 2.5e-9
    ln2=(0.693145751953125, 1.428606765330187e-06),
    log10_2=(0.301025390625, 4.605039066518657e-06),
    half_pi=(1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
    widest=2.0**12,
    lowest=-104.0,
    highest=89.0,
    unity=10.0,
)  # fmt: skip

COEFFICIENTS = {FLOAT64: _DOUBLE, FLOAT32: _SINGLE}

# of (atan(y)/y - 1)/z at z = y^2 <= tan(pi/8)^2; error 4.5e-17 (times z <= .18)
ATAN = (
    -0.3333333333333333, 0.19999999999995513, -0.1428571428466518, 0.11111111015146714,
    -0.0909090457366906, 0.07692183087342026, -0.06664509989818045, 0.058581362519061465,
    -0.05085383488842831, 0.03922974453661223, -0.019174543572021332,
)  # fmt: skip
# of (asin(s)/s - 1)/z at z = s^2 <= 1/4; error 2.2e-17 (times z)
ASIN = (
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
    0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
    0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
    0.028757851367421566,
)  # fmt: skip
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)  #: the nearest double, and the remainder
QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)  #: the nearest double, and the remainder
LOG2_E = 1.4426950408889634
LOG10_E = 0.4342944819032518
LN2 = 0.6931471805599453
