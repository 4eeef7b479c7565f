"""The natural logarithm from sums, products and quotients alone, so that it has the same bits on every device.

The mathematical libraries of CPUs and GPUs round the last bit of a logarithm differently. A rule that uses logarithms
would then make different choices when indices are nearly equal. These functions are interpreted, compiled for the CPU
and compiled for the GPU. Their error is below two units in the last place.
"""

import math

#: log 2 in two parts; the first has 32 bits, so that its product with an exponent is exact.
LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")
LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")

ROOT_HALF = math.sqrt(0.5)


def log(x: float) -> float:
    """log x for a finite x > 0.

    x = 2^k(1 + f) with 1 + f between √½ and √2. With s = f/(2 + f), log(1 + f) = 2·artanh s = 2s + s·R, where
    R = ⅔s² + ⅖s⁴ + …, and f − s·f = 2s: nine terms of R leave less than 2⁻⁵⁴ of the whole.
    """
    mantissa, exponent = math.frexp(x)
    if mantissa < ROOT_HALF:
        mantissa = mantissa + mantissa
        exponent = exponent - 1
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = 2.0 / 15.0 + z * (2.0 / 17.0 + z * (2.0 / 19.0))
    series = 2.0 / 9.0 + z * (2.0 / 11.0 + z * (2.0 / 13.0 + z * series))
    series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * series)))
    half = 0.5 * f * f
    return exponent * LOG_2_HIGH + (f - (half - (s * (half + series) + exponent * LOG_2_LOW)))


def log1p(x: float) -> float:
    """log(1 + x) for a finite x ≥ 0: the logarithm of the rounded sum, plus a correction for the rounding."""
    total = 1.0 + x
    return log(total) + (x - (total - 1.0)) / total
